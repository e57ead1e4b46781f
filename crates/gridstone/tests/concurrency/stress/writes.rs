//! The writes, and what they come to when they are done one by one.

use super::{COLUMNS, HALF, Made, PATHS, World};
use crate::support::columns::{as_text, bytes_of, numbers, view};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, Call, CellData, Condition, Dedup, Isolation, ReadOrder, Staged, Transaction};
use gridstone::schema;
use gridstone_testkit::Dice;
use std::collections::{BTreeMap, BTreeSet};

/// More than a writer ever makes.
const WRITES_MAX: i64 = 1_000_000;

/// How often a transaction is begun again.
const TRIES: usize = 200;

/// One write: what it does to the upper half of one of the arrays, and so to the lower.
#[derive(Debug, Clone)]
pub(super) enum Write {
    Box {
        rows: (i64, i64),
        columns: (i64, i64),
    },
    DeleteBox {
        place: usize,
        rows: (i64, i64),
        columns: (i64, i64),
    },
    /// Deletes what the writer wrote since a write of its own, by a condition. Nobody else writes such values: what is there when the
    /// delete looks and what is there when it is committed differ by nothing that it selects.
    DeleteOwn {
        place: usize,
        since: u64,
    },
    /// A transaction over both arrays.
    Together {
        isolation: Isolation,
        parts: Vec<Write>,
    },
    Cells {
        place: usize,
        cells: BTreeSet<(i64, i64)>,
        apart: bool,
    },
    Delete {
        place: usize,
        cells: BTreeSet<(i64, i64)>,
        apart: bool,
    },
    Notes {
        place: usize,
    },
}

/// A write of its own number, so that whoever reads a value knows who wrote it.
pub(super) fn token(writer: u64, write: u64) -> i64 {
    writer as i64 * WRITES_MAX + write as i64 + 1
}

fn write_of(writer: u64, write: u64) -> Write {
    let mut dice = Dice::new(token(writer, write) as u64);
    let range = |dice: &mut Dice, count: i64| {
        let (a, b) = (dice.below(count as usize) as i64, dice.below(count as usize) as i64);
        (a.min(b), a.max(b))
    };
    match dice.below(100) {
        0..4 => Write::Box { rows: range(&mut dice, HALF), columns: range(&mut dice, COLUMNS) },
        4..9 => {
            Write::DeleteBox { place: dice.below(2), rows: range(&mut dice, HALF), columns: range(&mut dice, COLUMNS) }
        }
        9..14 => Write::DeleteOwn { place: dice.below(2), since: write.saturating_sub(1 + dice.below(20) as u64) },
        14..24 => together(&mut dice, write),
        24..75 => some_cells(&mut dice),
        75..91 => some_deletions(&mut dice),
        _ => Write::Notes { place: dice.below(2) },
    }
}

fn some(dice: &mut Dice) -> BTreeSet<(i64, i64)> {
    let place = |dice: &mut Dice| (dice.below(HALF as usize) as i64, dice.below(COLUMNS as usize) as i64);
    (0..1 + dice.below(6)).map(|_| place(dice)).collect()
}

fn some_cells(dice: &mut Dice) -> Write {
    Write::Cells { apart: dice.chance(50), place: dice.below(2), cells: some(dice) }
}

fn some_deletions(dice: &mut Dice) -> Write {
    Write::Delete { apart: dice.chance(50), place: dice.below(2), cells: some(dice) }
}

/// What is written in a transaction differs by the order of its parts: cells are deleted, written, and deleted by a condition. One that
/// selects cells by a condition has read them, and would seldom pass as a serializable one.
fn together(dice: &mut Dice, write: u64) -> Write {
    let mut parts =
        vec![some_deletions(dice), some_cells(dice), some_cells(dice), Write::Notes { place: dice.below(2) }];
    if dice.chance(50) {
        return Write::Together { isolation: Isolation::Serializable, parts };
    }
    parts.insert(dice.below(3), Write::DeleteOwn { place: dice.below(2), since: write.saturating_sub(30) });
    Write::Together { isolation: Isolation::Snapshot, parts }
}

/// The cells in the upper half, those in the lower, or both.
fn halves(cells: &BTreeSet<(i64, i64)>, apart: bool) -> Vec<BTreeSet<(i64, i64)>> {
    let lower = cells.iter().map(|(y, x)| (y + HALF, *x));
    if apart { vec![cells.clone(), lower.collect()] } else { vec![cells.iter().copied().chain(lower).collect()] }
}

fn coordinates(cells: &BTreeSet<(i64, i64)>) -> [Vec<u8>; 2] {
    [bytes_of(cells.iter().map(|at| at.0)), bytes_of(cells.iter().map(|at| at.1))]
}

pub(super) fn stage_cells(array: &Array, cells: &BTreeSet<(i64, i64)>, value: i64) -> Staged {
    let (dims, values) = (coordinates(cells), bytes_of(cells.iter().map(|_| value)));
    let attrs = vec![("v".to_owned(), view(&values))];
    let dims = dims.iter().map(|b| view(b)).collect();
    array.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, &Call::default()).unwrap()
}

fn stage_box(array: &Array, (from, to): (i64, i64), columns: (i64, i64), value: i64) -> Staged {
    let values = bytes_of((0..(to - from + 1) * (columns.1 - columns.0 + 1)).map(|_| value));
    let data = vec![("v".to_owned(), view(&values))];
    let bounds = [as_text((from, to)), as_text(columns)];
    array.stage_dense(Some(&bounds), &data, schema::Order::Row, &Call::default()).unwrap()
}

/// A write that has been prepared: in which array, and what is to be committed.
pub(super) enum Prepared {
    Fragments(usize, Vec<Staged>),
    Notes(usize, i64),
    /// In which array, and the values of what is to be deleted.
    Own(usize, (i64, i64)),
    Together(Isolation, Vec<Write>, i64),
}

pub(super) fn prepare(arrays: &[Array; 2], writer: u64, number: u64) -> Prepared {
    prepared(arrays, write_of(writer, number), token(writer, number))
}

/// Prepares a write of `value`.
fn prepared(arrays: &[Array; 2], write: Write, value: i64) -> Prepared {
    let lower = |rows: (i64, i64)| (rows.0 + HALF, rows.1 + HALF);
    match write {
        Write::Box { rows, columns } => {
            let stage = |rows| stage_box(&arrays[0], rows, columns, value);
            Prepared::Fragments(0, [rows, lower(rows)].map(stage).into())
        }
        Write::DeleteBox { place, rows, columns } => {
            let stage = |rows| arrays[place].stage_delete_box(Some(&[as_text(rows), as_text(columns)])).unwrap();
            Prepared::Fragments(place, [rows, lower(rows)].map(stage).into())
        }
        Write::Cells { place, cells, apart } => {
            let stage = |cells| stage_cells(&arrays[place], cells, value);
            Prepared::Fragments(place, halves(&cells, apart).iter().map(stage).collect())
        }
        Write::Delete { place, cells, apart } => {
            let stage = |cells: &BTreeSet<_>| {
                let dims = coordinates(cells);
                arrays[place].stage_delete(&[view(&dims[0]), view(&dims[1])], &Call::default()).unwrap()
            };
            Prepared::Fragments(place, halves(&cells, apart).iter().map(stage).collect())
        }
        Write::DeleteOwn { place, since } => Prepared::Own(place, own(since, value)),
        Write::Notes { place } => Prepared::Notes(place, value),
        Write::Together { isolation, parts } => Prepared::Together(isolation, parts, value),
    }
}

/// The values that the writer of `value` wrote since one of its writes, up to this one.
fn own(since: u64, value: i64) -> (i64, i64) {
    (value - (value - 1) % WRITES_MAX + since as i64, value)
}

impl Prepared {
    pub(super) fn commit(self, world: &World, arrays: &[Array; 2]) -> Result<u64> {
        match self {
            Self::Together(isolation, parts, value) => together_on(world, isolation, &parts, value),
            Self::Own(place, values) => {
                // The condition takes what the handle sees, and that was made by another one if it was in a transaction.
                arrays[place].refresh()?;
                delete_own(&arrays[place], values)
            }
            other => other.stage(arrays),
        }
    }

    /// As [`Prepared::commit`], of what may be a part of a transaction.
    fn stage(self, arrays: &[Array; 2]) -> Result<u64> {
        match self {
            Self::Fragments(place, staged) => arrays[place].commit(staged, None),
            Self::Notes(place, value) => {
                let note = |key: &str| (key.to_owned(), Some(value.to_string()));
                arrays[place].set_metadata(vec![note("upper"), note("lower")])
            }
            Self::Own(place, values) => delete_own(&arrays[place], values),
            Self::Together(..) => panic!("a transaction within another"),
        }
    }
}

fn delete_own(array: &Array, (lo, hi): (i64, i64)) -> Result<u64> {
    let condition = Condition::parse(&format!("v >= {lo} and v <= {hi}"))?;
    array.delete_where(None, &condition, None, &Call::default())
}

/// Does a transaction, again where others merged or vacuumed meanwhile what it has looked at.
fn together_on(world: &World, isolation: Isolation, parts: &[Write], value: i64) -> Result<u64> {
    let attempt = || {
        let transaction = Transaction::begin_on(&world.context, world.storage.clone(), isolation)?;
        let arrays = [transaction.array(PATHS[0])?, transaction.array(PATHS[1])?];
        for part in parts {
            prepared(&arrays, part.clone(), value).stage(&arrays)?;
        }
        transaction.commit(None)
    };
    for _ in 0..TRIES {
        match attempt() {
            Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => {}
            outcome => return outcome,
        }
    }
    attempt()
}

/// Does a write; its version.
pub(super) fn commit(world: &World, arrays: &[Array; 2], writer: u64, number: u64) -> u64 {
    let version = prepare(arrays, writer, number).commit(world, arrays);
    version.unwrap_or_else(|e| panic!("write {number} of writer {writer} failed: {e}"))
}

/// Writes in the order of their versions. A delete by a condition that selects nothing makes no version, and is told the one that it looked at; it
/// comes after what made that one.
pub(super) struct Order(BTreeSet<(u64, bool, u64, u64)>);

impl Order {
    /// Fails if two others than such deletes were told the same version.
    pub(super) fn of(made: Vec<Made>) -> Self {
        let (mut versions, mut order) = (BTreeSet::new(), BTreeSet::new());
        for (version, writer, number) in made {
            let may_be_none = matches!(write_of(writer, number), Write::DeleteOwn { .. });
            assert!(may_be_none || versions.insert(version), "two writes were told version {version}");
            order.insert((version, may_be_none, writer, number));
        }
        Self(order)
    }

    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn first(&self) -> Option<u64> {
        self.0.first().map(|(version, ..)| *version)
    }

    /// Writers with the numbers of their writes.
    pub(super) fn writes(&self) -> impl Iterator<Item = (u64, u64)> {
        self.0.iter().map(|(.., writer, number)| (*writer, *number))
    }
}

/// What an array holds: the values at each place, ascending.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Content {
    cells: BTreeMap<(i64, i64), Vec<i64>>,
    notes: BTreeMap<String, String>,
}

/// What the writes come to, in this order, and how many cells were deleted by conditions.
pub(super) fn replayed(order: &Order, doubled: bool) -> ([Content; 2], usize) {
    let (mut all, mut emptied) = ([Content::default(), Content::default()], 0);
    for (writer, number) in order.writes() {
        replay(&mut all, &mut emptied, write_of(writer, number), token(writer, number), doubled);
    }
    (all, emptied)
}

fn replay(all: &mut [Content; 2], emptied: &mut usize, write: Write, value: i64, doubled: bool) {
    let boxed = |rows: (i64, i64), columns: (i64, i64)| -> BTreeSet<(i64, i64)> {
        (rows.0..=rows.1).flat_map(|y| (columns.0..=columns.1).map(move |x| (y, x))).collect()
    };
    match write {
        Write::Box { rows, columns } => all[0].put(&boxed(rows, columns), value, false),
        Write::Cells { place, cells, .. } => all[place].put(&cells, value, doubled && place == 1),
        Write::DeleteBox { place, rows, columns } => all[place].take(&boxed(rows, columns)),
        Write::Delete { place, cells, .. } => all[place].take(&cells),
        Write::DeleteOwn { place, since } => {
            let (lo, hi) = own(since, value);
            let cells = &mut all[place].cells;
            let before: usize = cells.values().map(Vec::len).sum();
            cells.values_mut().for_each(|values| values.retain(|v| !(lo..=hi).contains(v)));
            cells.retain(|_, values| !values.is_empty());
            *emptied += before - cells.values().map(Vec::len).sum::<usize>();
        }
        Write::Notes { place } => {
            all[place].notes = ["upper", "lower"].map(|key| (key.to_owned(), value.to_string())).into();
        }
        Write::Together { parts, .. } => {
            parts.into_iter().for_each(|part| replay(all, emptied, part, value, doubled));
        }
    }
}

impl Content {
    /// Writes cells in both halves, in the place of others or beside them.
    fn put(&mut self, cells: &BTreeSet<(i64, i64)>, value: i64, beside: bool) {
        for at in halves(cells, false).remove(0) {
            let values = self.cells.entry(at).or_default();
            if !beside {
                values.clear();
            }
            values.push(value);
            values.sort_unstable();
        }
    }

    fn take(&mut self, cells: &BTreeSet<(i64, i64)>) {
        let gone = halves(cells, false).remove(0);
        self.cells.retain(|at, _| !gone.contains(at));
    }
}

/// What an array holds at the version of its handle; fails where the halves differ.
pub(super) fn read(array: &Array) -> Content {
    seen(array).unwrap()
}

/// As [`read`], or why it cannot be read.
pub(super) fn seen(array: &Array) -> Result<Content> {
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default())?;
    let (rows, mut cells) = (numbers(&found.attrs[0]), BTreeMap::<(i64, i64), Vec<i64>>::new());
    let places: Vec<(i64, i64)> = if found.dims.is_empty() {
        (0..2 * HALF * COLUMNS).map(|i| (i / COLUMNS, i % COLUMNS)).collect()
    } else {
        numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).collect()
    };
    for (at, value) in places.into_iter().zip(rows).filter(|(_, value)| *value != 0) {
        cells.entry(at).or_default().push(value);
    }
    cells.values_mut().for_each(|values| values.sort_unstable());
    let lower: BTreeMap<_, _> = cells.range((HALF, 0)..).map(|((y, x), v)| ((y - HALF, *x), v)).collect();
    let upper: BTreeMap<_, _> = cells.range(..(HALF, 0)).map(|(at, v)| (*at, v)).collect();
    let torn = upper.iter().chain(&lower).find(|(at, v)| upper.get(at) != Some(v) || lower.get(at) != Some(v));
    assert_eq!(torn, None, "a write is seen in part at version {}", array.version());
    let note = |key: String| array.metadata(&key).unwrap().map(|value| (key, value));
    let notes: BTreeMap<String, String> = array.metadata_keys().unwrap().into_iter().filter_map(note).collect();
    assert_eq!(notes.get("upper"), notes.get("lower"), "metadata is seen in part at version {}", array.version());
    Ok(Content { cells, notes })
}
