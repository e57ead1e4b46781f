//! The table of floors (`xtask/floors.toml`): the allowed imports between floors, and the floors that may use the
//! machine's interfaces.
//!
//! Invariant: a floor lists only floors written above it, so the table has no cycle.

use serde::Deserialize;

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floors {
    floor: Vec<Floor>,
    #[serde(default)]
    room: Vec<Room>,
    #[serde(default)]
    circles: Circles,
    #[serde(default)]
    pub(crate) seam: Option<Seam>,
    pub(crate) sans_io: SansIo,
    pub(crate) confined: Vec<Confined>,
    pub(crate) public: Public,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Floor {
    name: String,
    imports: Vec<String>,
}

/// A part of a floor: a folder or a file directly in it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Room {
    floor: String,
    pub(crate) name: String,
    /// The rooms of the same floor that it may import.
    pub(crate) imports: Vec<String>,
}

/// Floors whose files import one another without cycles.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Circles {
    none_in: Vec<String>,
}

/// The files that lay out grids of tiles and blocks.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Seam {
    /// The floor that owns those of stored tiles; the floors above it are checked.
    pub(crate) floor: String,
    /// The floor that holds the items.
    pub(crate) of: String,
    pub(crate) items: Vec<String>,
    /// Items of the seam's own floor that stand for a grid of a fragment.
    pub(crate) sources: Vec<String>,
    /// Files above the floor that lay out grids, and what these are of.
    #[serde(rename = "use")]
    pub(crate) uses: Vec<SeamUse>,
}

/// A module above the seam that lays out a grid.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SeamUse {
    pub(crate) module: String,
    #[expect(dead_code, reason = "said to the reader of the table")]
    lays_out: String,
}

/// Floors that do no I/O, and the paths that they must not name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct SansIo {
    pub(crate) floors: Vec<String>,
    pub(crate) forbidden: Vec<String>,
}

/// A path that only some floors may name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Confined {
    pub(crate) path: String,
    pub(crate) floors: Vec<String>,
}

/// The adapters' crates and the floors of the core that they may name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Public {
    pub(crate) adapters: Vec<String>,
    pub(crate) face: Vec<String>,
}

impl Floors {
    /// Reads the table and checks its invariant.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let floors: Self = toml::from_str(text).map_err(|error| format!("floors.toml: {error}"))?;
        for (index, floor) in floors.floor.iter().enumerate() {
            let above = floors.floor.get(..index).unwrap_or_default();
            if let Some(name) = floor.imports.iter().find(|name| !above.iter().any(|floor| floor.name == **name)) {
                return Err(format!("floors.toml: `{}` imports `{name}`, which is not written above it", floor.name));
            }
        }
        for (index, room) in floors.room.iter().enumerate() {
            let above = floors.room.get(..index).unwrap_or_default();
            let stands_above = |name: &String| above.iter().any(|r| r.floor == room.floor && r.name == *name);
            if let Some(name) = room.imports.iter().find(|name| !stands_above(name)) {
                return Err(format!(
                    "floors.toml: room `{}` imports `{name}`, which is not written above it",
                    room.name
                ));
            }
            if floors.imports(&room.floor).is_none() {
                return Err(format!("floors.toml: `{}`, of the room `{}`, is not a floor", room.floor, room.name));
            }
        }
        let of_seam = floors.seam.iter().flat_map(|seam| [&seam.floor, &seam.of]);
        if let Some(name) = of_seam.into_iter().find(|name| floors.imports(name).is_none()) {
            return Err(format!("floors.toml: `{name}`, of the seam, is not a floor"));
        }
        if let Some(name) = floors.circles.none_in.iter().find(|name| floors.imports(name).is_none()) {
            return Err(format!("floors.toml: `{name}` is to have no circle, and is no floor"));
        }
        Ok(floors)
    }

    /// The rooms of `floor`, from the bottom; none if it is one room.
    pub(crate) fn rooms(&self, floor: &str) -> impl Iterator<Item = &Room> {
        self.room.iter().filter(move |room| room.floor == floor)
    }

    /// The floors whose files import one another without cycles.
    pub(crate) fn without_circles(&self) -> impl Iterator<Item = &str> {
        self.circles.none_in.iter().map(String::as_str)
    }

    /// What `floor` may import; `None` if there is no such floor.
    pub(crate) fn imports(&self, floor: &str) -> Option<&[String]> {
        self.floor.iter().find(|known| known.name == floor).map(|known| known.imports.as_slice())
    }

    /// Every floor, from the bottom.
    pub(crate) fn names(&self) -> impl Iterator<Item = &str> {
        self.floor.iter().map(|floor| floor.name.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const REST: &str = "[sans_io]\nfloors = []\nforbidden = []\n[public]\nadapters = []\nface = []\n";

    fn table(floors: &str) -> Result<Floors, String> {
        Floors::parse(&format!("confined = []\n{floors}{REST}"))
    }

    #[test]
    fn the_table_of_this_repository_is_sound() {
        let floors = Floors::parse(include_str!("../floors.toml")).unwrap();
        assert_eq!(floors.names().next(), Some("base"));
        assert_eq!(floors.names().last(), Some("engine"));
        assert_eq!(floors.imports("storage").unwrap(), ["base", "runtime"]);
        assert!(floors.imports("attic").is_none());
    }

    #[test]
    fn a_circle_cannot_be_written_down() {
        let up = "[[floor]]\nname = \"a\"\nimports = [\"b\"]\n[[floor]]\nname = \"b\"\nimports = []\n";
        assert!(table(up).unwrap_err().contains("`a` imports `b`"));
        assert!(table("[[floor]]\nname = \"a\"\nimports = [\"a\"]\n").is_err());
        assert!(table("[[floor]]\nname = \"a\"\nimports = []\n").is_ok());
        let floor = "[[floor]]\nname = \"a\"\nimports = []\n";
        let up = "[[room]]\nfloor = \"a\"\nname = \"b\"\nimports = [\"c\"]\n";
        let c = "[[room]]\nfloor = \"a\"\nname = \"c\"\nimports = []\n";
        assert!(table(&format!("{floor}{up}{c}")).unwrap_err().contains("room `b` imports `c`"));
        assert!(table(&format!("{floor}{c}{up}")).is_ok());
        assert!(table(&format!("{floor}[circles]\nnone_in = [\"a\"]\n")).is_ok());
        assert!(table(&format!("{floor}[circles]\nnone_in = [\"attic\"]\n")).unwrap_err().contains("`attic`"));
        let seam = "[seam]\nfloor = \"a\"\nof = \"attic\"\nitems = []\nsources = []\nuse = []\n";
        assert!(table(&format!("{floor}{seam}")).unwrap_err().contains("`attic`"));
        assert!(table(&format!("{floor}{}", c.replace("\"a\"", "\"x\""))).is_err());
    }
}
