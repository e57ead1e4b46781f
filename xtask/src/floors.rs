//! The table of floors (`xtask/floors.toml`): who may import whom, and who may touch the machine.
//!
//! Invariant: a floor lists only floors written above it, so the table has no circle.

use serde::Deserialize;

/// The whole table.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Floors {
    floor: Vec<Floor>,
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

/// Floors that take bytes and give values, and the paths they must not name.
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
        Ok(floors)
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
    }
}
