//! Sparse arrays in memory: loads, boxes, merges of fragments, many small fragments.

use super::case::{Case, work};
use super::input::{PLANE, scattered};
use super::world::{CELL_BYTES, Rows, create, open_with, reopen, texts, values};
use gridstone::base::Result;
use gridstone::engine::{Array, At, Call, Cells, Context, Options, ReadOrder};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

/// Bytes of a cell: two coordinates and a value.
const ROW_BYTES: u64 = 3 * CELL_BYTES;

/// Cells scattered over the plane, in fragments that all overlap.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Cloud {
    /// Fragments, each a commit.
    pub(crate) fragments: u32,
    /// Cells of each.
    pub(crate) cells: u32,
}

fn value(x: i64, y: i64) -> i64 {
    x * 3 + y
}

/// A sparse array without cells.
pub(crate) fn empty(storage: Arc<dyn Storage>) -> Result<Array> {
    let last = PLANE - 1;
    let dim =
        |name: &str| format!(r#"{{"name":"{name}","dtype":"int64","domain":["0","{last}"],"tile":"{}"}}"#, PLANE / 8);
    let json = format!(
        r#"{{"sparse":true,"capacity":8192,"dims":[{},{}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#,
        dim("x"),
        dim("y")
    );
    create(storage, &json)
}

/// Whether these are `count` cells of the cloud, in row order if that was requested.
fn is_right(cells: &Cells, count: usize, order: ReadOrder) -> bool {
    let columns: Vec<Vec<i64>> = cells.dims.iter().chain(&cells.attrs).map(values).collect();
    let [xs, ys, vs] = columns.as_slice() else { return false };
    let places: Vec<(i64, i64)> = xs.iter().copied().zip(ys.iter().copied()).collect();
    let ordered = order != ReadOrder::Row || places.is_sorted();
    ordered && cells.count == count && places.iter().zip(vs).all(|((x, y), v)| value(*x, *y) == *v)
}

impl Cloud {
    fn places(self, fragment: u32) -> Vec<(i64, i64)> {
        scattered(fragment * self.cells..(fragment + 1) * self.cells)
    }

    fn written(self) -> Result<MemoryStorage> {
        let storage = MemoryStorage::new();
        let array = empty(Arc::new(storage.clone()))?;
        for fragment in 0..self.fragments {
            Rows::new(&self.places(fragment), value)?.write(&array)?;
        }
        Ok(storage)
    }

    fn count_in(self, (from, to): (i64, i64)) -> usize {
        let inside = |(x, y): &(i64, i64)| (from..=to).contains(x) && (from..=to).contains(y);
        (0..self.fragments).map(|f| self.places(f).iter().filter(|place| inside(place)).count()).sum()
    }

    /// Every fragment, written and committed.
    pub(crate) fn load(self) -> Case {
        let bytes = u64::from(self.fragments * self.cells) * ROW_BYTES;
        Case::once("sparse/load", bytes, move || {
            let (array, count) = (empty(Arc::new(MemoryStorage::new()))?, (self.fragments * self.cells) as usize);
            let written = array.clone();
            let rows: Vec<Rows> =
                (0..self.fragments).map(|f| Rows::new(&self.places(f), value)).collect::<Result<_>>()?;
            work(
                move || rows.iter().try_fold(0, |_, rows| rows.write(&written)),
                move |version| {
                    let array = array.at(At::Version(*version))?;
                    let order = ReadOrder::Row;
                    Ok(is_right(&array.read(None, None, order, &Call::default())?.0, count, order))
                },
            )
        })
    }

    /// A square of `side` in the middle, in `order`.
    pub(crate) fn read(self, name: impl Into<String>, side: i64, order: ReadOrder) -> Case {
        let range = ((PLANE - side) / 2, (PLANE + side) / 2 - 1);
        let count = self.count_in(range);
        Case::repeated(name, count as u64 * ROW_BYTES, move || {
            let (array, sub) = (reopen(&self.written()?)?, texts(&[range, range]));
            work(
                move || Ok(array.read(Some(&sub), None, order, &Call::default())?.0),
                move |cells| Ok(is_right(cells, count, order)),
            )
        })
    }

    /// Opens the array, by a context with an empty cache.
    pub(crate) fn open(self) -> Case {
        Case::repeated(format!("open/commits/{}", self.fragments), 0, move || {
            let storage = self.written()?;
            let (context, version) = (Context::new(&Options::default())?, u64::from(self.fragments) + 1);
            work(move || open_with(&context, &storage), move |array| Ok(array.version() == version))
        })
    }

    /// Cells read by their coordinates.
    pub(crate) fn points(self, count: u32) -> Case {
        Case::repeated(format!("points/{count}/sparse"), 0, move || {
            let (array, places) = (reopen(&self.written()?)?, scattered(0..count));
            let rows = Rows::new(&places, value)?;
            let count = rows.values().len();
            work(move || rows.read(&array), move |cells| Ok(is_right(cells, count, ReadOrder::Any)))
        })
    }
}
