//! A writer whose every version is known beforehand, and the model of what its store must hold.
//!
//! Version n of its store is a function of n: 1 creates a dense array, 2 a sparse one, and each later version is one
//! write of a kind and of cells that n chooses. So whoever finds version n in a store, after whatever happened to the
//! writer, knows every cell and every metadata key that it must hold.

use super::columns::{as_text, bytes_of, numbers, view};
use super::random::Random;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Opened, Options, ReadOrder, create_array_on, open_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::Storage;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Both arrays have `SIDE` x `SIDE` cells of int64, unfiltered: 162 KiB, more than a log record takes in.
pub(crate) const SIDE: i64 = 144;

/// Values by coordinates; no value is 0, the fill of the dense array.
pub(crate) type CellMap = BTreeMap<(i64, i64), i64>;

impl Random {
    fn coordinate(&mut self) -> i64 {
        self.below(SIDE as u64) as i64
    }

    fn value(&mut self) -> i64 {
        (self.next() | 1) as i64
    }

    fn range(&mut self) -> (i64, i64) {
        let (a, b) = (self.coordinate(), self.coordinate());
        (a.min(b), a.max(b).min(a.min(b) + 20))
    }

    fn cells(&mut self, count: u64) -> CellMap {
        (0..count).map(|_| ((self.coordinate(), self.coordinate()), self.value())).collect()
    }
}

/// Which of the two arrays.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    Dense,
    Sparse,
}

impl Place {
    pub(crate) const BOTH: [Self; 2] = [Self::Dense, Self::Sparse];

    fn path(self) -> &'static str {
        match self {
            Self::Dense => "/dense",
            Self::Sparse => "/sparse",
        }
    }

    fn schema(self) -> Schema {
        let sparse = self == Self::Sparse;
        let (rows, columns) = if sparse { ("null", "null") } else { (r#""50""#, r#""40""#) };
        let dim = |name: &str, tile: &str| {
            format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{}"],"tile":{tile}}}"#, SIDE - 1)
        };
        Schema::from_json(&format!(
            r#"{{"sparse":{sparse},"capacity":500,"coord_filters":"none","dims":[{},{}],
            "attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
            dim("y", rows),
            dim("x", columns)
        ))
        .unwrap()
    }
}

/// The kinds of writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    SmallBox,
    WholeBox,
    FewCells(Place),
    ManyCells,
    Stream,
    Delete(Place),
    Note(Place),
}

impl Kind {
    pub(crate) const ALL: [Self; 10] = [
        Self::SmallBox,
        Self::WholeBox,
        Self::FewCells(Place::Dense),
        Self::FewCells(Place::Sparse),
        Self::ManyCells,
        Self::Stream,
        Self::Delete(Place::Dense),
        Self::Delete(Place::Sparse),
        Self::Note(Place::Dense),
        Self::Note(Place::Sparse),
    ];
}

/// One version's worth of change.
#[derive(Debug, Clone)]
pub(crate) enum Write {
    Create(Place),
    Box { rows: (i64, i64), columns: (i64, i64), values: Vec<i64> },
    Cells(Place, CellMap),
    Stream(CellMap),
    Delete(Place, BTreeSet<(i64, i64)>),
    Note(Place, String, Option<String>),
}

impl Write {
    /// What version `version` does.
    pub(crate) fn of(version: u64) -> Self {
        match version {
            1 => Self::Create(Place::Dense),
            2 => Self::Create(Place::Sparse),
            _ => {
                let kind = Kind::ALL[Random(version).below(Kind::ALL.len() as u64) as usize];
                Self::new(kind, version)
            }
        }
    }

    /// A write of `kind` with the cells that `seed` chooses.
    pub(crate) fn new(kind: Kind, seed: u64) -> Self {
        let mut random = Random(seed ^ 0x5eed);
        match kind {
            Kind::SmallBox => Self::filled(random.range(), random.range(), &mut random),
            Kind::WholeBox => Self::filled((0, SIDE - 1), (0, SIDE - 1), &mut random),
            Kind::FewCells(place) => Self::Cells(place, random.cells(1 + seed % 40)),
            Kind::ManyCells => Self::Cells(Place::Sparse, random.cells(8_000)),
            Kind::Stream => Self::Stream(random.cells(300)),
            Kind::Delete(place) => Self::Delete(place, random.cells(200).into_keys().collect()),
            Kind::Note(place) => {
                let value = (!seed.is_multiple_of(3)).then(|| format!("\"{}\"", random.next()));
                Self::Note(place, format!("key-{}", random.below(5)), value)
            }
        }
    }

    fn filled(rows: (i64, i64), columns: (i64, i64), random: &mut Random) -> Self {
        let cells = (rows.1 - rows.0 + 1) * (columns.1 - columns.0 + 1);
        Self::Box { rows, columns, values: (0..cells).map(|_| random.value()).collect() }
    }
}

/// What one array holds.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
struct Content {
    cells: CellMap,
    notes: BTreeMap<String, String>,
}

/// What a store holds after the writes applied to it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Model {
    pub(crate) version: u64,
    arrays: [Option<Content>; 2],
}

impl Model {
    /// Moves on to what the writer's store holds at `version`.
    pub(crate) fn advance(&mut self, version: u64) {
        while self.version < version {
            self.apply(&Write::of(self.version + 1));
        }
    }

    /// Does `write` as the next version.
    pub(crate) fn apply(&mut self, write: &Write) {
        self.version += 1;
        match write {
            Write::Create(place) => self.arrays[*place as usize] = Some(Content::default()),
            Write::Box { rows, columns, values } => {
                let places = (rows.0..=rows.1).flat_map(|y| (columns.0..=columns.1).map(move |x| (y, x)));
                self.content(Place::Dense).cells.extend(places.zip(values.iter().copied()));
            }
            Write::Cells(place, cells) => self.content(*place).cells.extend(cells),
            Write::Stream(cells) => self.content(Place::Sparse).cells.extend(cells),
            Write::Delete(place, cells) => {
                let content = self.content(*place);
                content.cells.retain(|at, _| !cells.contains(at));
            }
            Write::Note(place, key, Some(value)) => drop(self.content(*place).notes.insert(key.clone(), value.clone())),
            Write::Note(place, key, None) => drop(self.content(*place).notes.remove(key)),
        }
    }

    fn content(&mut self, place: Place) -> &mut Content {
        self.arrays[place as usize].as_mut().unwrap()
    }

    /// Checks that the store opens, at this version, and holds exactly this; `what` tells what happened to it.
    pub(crate) fn check(&self, storage: &Arc<dyn Storage>, what: &str) {
        assert_eq!(version_of(storage), self.version, "{what}: the version");
        let context = context();
        for (place, expected) in Place::BOTH.into_iter().zip(&self.arrays) {
            let found = open_array(&context, storage, place).map(|array| content_of(&array, place));
            let Some((found, expected)) = found.as_ref().zip(expected.as_ref()) else {
                assert_eq!(
                    found.is_some(),
                    expected.is_some(),
                    "{what}: whether version {} has {place:?}",
                    self.version
                );
                continue;
            };
            assert_eq!(found.notes, expected.notes, "{what}: metadata of {place:?} in version {}", self.version);
            let difference = found.cells.iter().zip(&expected.cells).find(|(a, b)| a != b);
            assert_eq!(difference, None, "{what}: found and expected cell of {place:?} in version {}", self.version);
            assert_eq!(
                found.cells.len(),
                expected.cells.len(),
                "{what}: cells of {place:?} in version {}",
                self.version
            );
        }
    }
}

/// A context of its own, so that nothing is answered from a cache.
pub(crate) fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap()
}

/// The newest version of the store; 0 if there is none.
pub(crate) fn version_of(storage: &Arc<dyn Storage>) -> u64 {
    match open_on(&context(), storage.clone(), "/", false, At::Latest) {
        Ok(Opened::Group(group)) => group.version(),
        Ok(Opened::Array(_)) => panic!("the root is an array, which nobody made"),
        Err(e) if e.kind() == ErrorKind::NotFound => 0,
        Err(e) => panic!("the store does not open: {e}"),
    }
}

fn open_array(context: &Context, storage: &Arc<dyn Storage>, place: Place) -> Option<Array> {
    match open_on(context, storage.clone(), place.path(), true, At::Latest) {
        Ok(Opened::Array(array)) => Some(array),
        Ok(Opened::Group(_)) => panic!("{} is a group, which nobody made", place.path()),
        Err(e) if e.kind() == ErrorKind::NotFound => None,
        Err(e) => panic!("{} does not open: {e}", place.path()),
    }
}

/// Reads and checks every stored byte of the newest version.
pub(crate) fn verify(storage: &Arc<dyn Storage>) {
    let context = context();
    for array in Place::BOTH.iter().filter_map(|place| open_array(&context, storage, *place)) {
        let report = array.verify(&Call::default()).unwrap();
        assert!(report.damage.is_empty(), "{report:?}");
    }
}

fn content_of(array: &Array, place: Place) -> Content {
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let values = numbers(&found.attrs[0]);
    let cells: CellMap = match place {
        Place::Dense => (0..SIDE * SIDE).map(|i| (i / SIDE, i % SIDE)).zip(values).filter(|(_, v)| *v != 0).collect(),
        Place::Sparse => numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect(),
    };
    assert!(place == Place::Dense || cells.len() == found.count, "a cell came twice");
    let note = |key: String| array.metadata(&key).unwrap().map(|value| (key, value));
    Content { cells, notes: array.metadata_keys().unwrap().into_iter().filter_map(note).collect() }
}

/// A store being written, from whichever version it is at.
pub(crate) struct Writer {
    context: Context,
    storage: Arc<dyn Storage>,
    arrays: [Option<Array>; 2],
}

impl Writer {
    pub(crate) fn open(storage: &Arc<dyn Storage>) -> Self {
        let context = context();
        let arrays = Place::BOTH.map(|place| open_array(&context, storage, place));
        Self { context, storage: storage.clone(), arrays }
    }

    /// Commits `write` and gives the version that it made. The two handles follow each other through what they lose:
    /// the one at hand is as old as its last commit.
    pub(crate) fn commit(&mut self, write: &Write) -> Result<u64> {
        let array = |place: Place| self.arrays[place as usize].as_ref().unwrap();
        let call = Call::default();
        match write {
            Write::Create(place) => {
                let made = create_array_on(&self.context, self.storage.clone(), place.path(), place.schema(), false)?;
                let version = made.version();
                self.arrays[*place as usize] = Some(made);
                Ok(version)
            }
            Write::Box { rows, columns, values } => {
                let bytes = bytes_of(values.iter().copied());
                let bounds = [as_text(*rows), as_text(*columns)];
                let data = vec![("v".to_owned(), view(&bytes))];
                let staged = array(Place::Dense).stage_dense(Some(&bounds), &data, Order::Row, &call)?;
                array(Place::Dense).commit(vec![staged], None)
            }
            Write::Cells(place, cells) => commit_cells(array(*place), cells, None),
            Write::Stream(cells) => stream(array(Place::Sparse), cells),
            Write::Delete(place, cells) => {
                let (rows, columns) = (bytes_of(cells.iter().map(|c| c.0)), bytes_of(cells.iter().map(|c| c.1)));
                let staged = array(*place).stage_delete(&[view(&rows), view(&columns)], &call)?;
                array(*place).commit(vec![staged], None)
            }
            Write::Note(place, key, value) => array(*place).set_metadata(vec![(key.clone(), value.clone())]),
        }
    }
}

fn columns_of(cells: &CellMap) -> [Vec<u8>; 3] {
    [bytes_of(cells.keys().map(|at| at.0)), bytes_of(cells.keys().map(|at| at.1)), bytes_of(cells.values().copied())]
}

/// Writes cells of the attribute "v" in one commit.
pub(crate) fn commit_cells(array: &Array, cells: &CellMap, message: Option<String>) -> Result<u64> {
    let [rows, columns, values] = columns_of(cells);
    let attrs = vec![("v".to_owned(), view(&values))];
    let data = CellData { dims: vec![view(&rows), view(&columns)], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default())?], message)
}

/// Streams cells, which are sorted by row as the sparse array is, in pieces of 100.
fn stream(array: &Array, cells: &CellMap) -> Result<u64> {
    let columns = columns_of(cells);
    let mut writer = array.writer(None, None)?;
    for from in (0..cells.len()).step_by(100) {
        let run = from * 8..(from + 100).min(cells.len()) * 8;
        let [rows, columns, values] = columns.each_ref().map(|column| view(&column[run.clone()]));
        writer.append(&Call::default(), &[rows, columns], &[values])?;
    }
    array.commit(vec![writer.finish(&Call::default())?], None)
}
