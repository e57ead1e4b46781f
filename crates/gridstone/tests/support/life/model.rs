//! What a store of a scripted life holds, and the cells that seeds choose.

use super::hand::Sort;
use gridstone_testkit::Dice;
use std::collections::{BTreeMap, BTreeSet};

/// The domain of both arrays of the script: `ROWS` x `COLUMNS`, in tiles of `TILE`.
pub(crate) const ROWS: i64 = 12;
pub(crate) const COLUMNS: i64 = 10;
pub(crate) const TILE: (i64, i64) = (5, 4);

/// A cell's two attributes: a number, and bytes, which make a write large.
pub(crate) type Value = (i64, Vec<u8>);
pub(crate) type Place = (i64, i64);
pub(crate) type Cells = BTreeMap<Place, Value>;

/// Bytes of a large value: a whole box of them is more than a log record takes in.
const LARGE_BYTES: usize = 3_000;

/// An inclusive range of rows and one of columns.
pub(crate) type Area = (Place, Place);

/// What lies at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Node {
    Group,
    Array {
        sparse: bool,
        cells: Cells,
        notes: BTreeMap<String, String>,
        parts: Parts,
    },
    /// An array with cells several times at one place, sorted.
    Doubled(Vec<(Place, Value)>),
}

/// What an array has besides its cells and its own metadata.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Parts {
    /// The cells of its hidden arrays, by their names.
    pub(crate) hidden: BTreeMap<String, Cells>,
    /// Metadata of its attributes and dimensions, by their names and the keys.
    pub(crate) fields: BTreeMap<(String, String), String>,
    /// The contents of the files that are kept, and beside what.
    pub(crate) kept: BTreeSet<(Beside, Vec<u8>)>,
}

impl Parts {
    /// In few words.
    pub(super) fn told(&self) -> String {
        let hidden: Vec<_> = self.hidden.iter().map(|(name, cells)| (name, cells.len())).collect();
        let kept: Vec<_> = self.kept.iter().map(|(beside, content)| (beside, content.len())).collect();
        format!("hidden arrays {hidden:?}, metadata of fields {:?}, kept files {kept:?}", self.fields)
    }
}

/// What a kept file belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Beside {
    Array,
    Fragment,
}

/// What a store holds; `None` at "/" and no other: there is no store.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Model {
    pub(crate) nodes: BTreeMap<String, Node>,
    /// The seeds of the commits with a key of their own that were done.
    pub(crate) keyed: BTreeSet<u64>,
}

impl Model {
    /// Puts a node where a path says, and groups above it.
    pub(crate) fn put(&mut self, path: &str, node: Node) {
        self.remove(path);
        for (at, _) in path.match_indices('/') {
            let above = if at == 0 { "/" } else { &path[..at] };
            self.nodes.entry(above.to_owned()).or_insert(Node::Group);
        }
        self.nodes.insert(path.to_owned(), node);
    }

    /// An empty array.
    pub(crate) fn put_array(&mut self, path: &str, sort: Sort) {
        let (sparse, cells, notes, parts) = (sort == Sort::Sparse, Cells::new(), BTreeMap::new(), Parts::default());
        let array = Node::Array { sparse, cells, notes, parts };
        self.put(path, if sort == Sort::Doubled { Node::Doubled(Vec::new()) } else { array });
    }

    /// Takes a node away, and all below it.
    pub(crate) fn remove(&mut self, path: &str) {
        let below = format!("{path}/");
        self.nodes.retain(|at, _| at != path && !at.starts_with(&below));
    }

    /// Moves a node to a free path.
    pub(crate) fn rename(&mut self, from: &str, to: &str) {
        let node = self.nodes.remove(from).unwrap_or_else(|| panic!("a node at {from}"));
        self.put(to, node);
    }

    pub(crate) fn cells(&mut self, path: &str) -> &mut Cells {
        match self.nodes.get_mut(path) {
            Some(Node::Array { cells, .. }) => cells,
            other => panic!("an array at {path}: {other:?}"),
        }
    }

    /// The cells of an array with several at one place.
    pub(crate) fn doubled(&mut self, path: &str) -> &mut Vec<(Place, Value)> {
        match self.nodes.get_mut(path) {
            Some(Node::Doubled(cells)) => cells,
            other => panic!("an array with doubled cells at {path}: {other:?}"),
        }
    }

    /// Adds cells beside those that are there.
    pub(crate) fn double(&mut self, path: &str, added: Cells) {
        let cells = self.doubled(path);
        cells.extend(added);
        cells.sort();
    }

    pub(crate) fn notes(&mut self, path: &str) -> &mut BTreeMap<String, String> {
        match self.nodes.get_mut(path) {
            Some(Node::Array { notes, .. }) => notes,
            other => panic!("an array at {path}: {other:?}"),
        }
    }

    pub(crate) fn parts(&mut self, path: &str) -> &mut Parts {
        match self.nodes.get_mut(path) {
            Some(Node::Array { parts, .. }) => parts,
            other => panic!("an array at {path}: {other:?}"),
        }
    }

    /// The cells of a hidden array.
    pub(crate) fn hidden(&mut self, path: &str, name: &str) -> &mut Cells {
        self.parts(path).hidden.get_mut(name).unwrap_or_else(|| panic!("a hidden array {name} of {path}"))
    }

    pub(crate) fn delete(&mut self, path: &str, places: &BTreeSet<Place>) {
        self.cells(path).retain(|place, _| !places.contains(place));
    }
}

/// The cells of an area, row by row.
pub(crate) fn places(area: Area) -> impl Iterator<Item = Place> {
    let (rows, columns) = area;
    (rows.0..=rows.1).flat_map(move |y| (columns.0..=columns.1).map(move |x| (y, x)))
}

/// The whole domain.
pub(crate) const EVERYWHERE: Area = ((0, ROWS - 1), (0, COLUMNS - 1));

/// How large values are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Size {
    Small,
    Large,
}

fn value(size: Size, dice: &mut Dice) -> Value {
    let bytes = if size == Size::Large { LARGE_BYTES } else { 1 + dice.below(9) };
    let noise = (0..bytes.div_ceil(8)).flat_map(|_| dice.word().to_le_bytes()).take(bytes).collect();
    ((dice.word() | 1) as i64, noise)
}

/// An area that the seed chooses.
pub(crate) fn area(seed: u64) -> Area {
    let mut dice = Dice::new(seed);
    let mut range = |count: i64| {
        let (a, b) = (dice.below(count as usize) as i64, dice.below(count as usize) as i64);
        (a.min(b), a.max(b).min(a.min(b) + 3))
    };
    (range(ROWS), range(COLUMNS))
}

/// Values for all cells of an area.
pub(crate) fn filled(area: Area, size: Size, seed: u64) -> Cells {
    let mut dice = Dice::new(seed);
    places(area).map(|place| (place, value(size, &mut dice))).collect()
}

/// Single cells, at most so many.
pub(crate) fn scattered(count: usize, size: Size, seed: u64) -> Cells {
    let mut dice = Dice::new(seed);
    let mut place = || (dice.below(ROWS as usize) as i64, dice.below(COLUMNS as usize) as i64);
    let places: BTreeSet<Place> = (0..count).map(|_| place()).collect();
    let mut dice = Dice::new(!seed);
    places.into_iter().map(|place| (place, value(size, &mut dice))).collect()
}

/// A metadata key and its new value; `None` removes it.
pub(crate) type Note = (String, Option<String>);

/// Changes of several keys.
pub(crate) fn notes(seed: u64) -> Vec<Note> {
    let mut dice = Dice::new(seed);
    let keys: BTreeSet<usize> = (0..3).map(|_| dice.below(6)).collect();
    let mut change = |key| (format!("key-{key}"), dice.chance(70).then(|| format!("\"{}\"", dice.word())));
    keys.into_iter().map(&mut change).collect()
}
