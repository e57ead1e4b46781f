//! Arrays in memory, and columns for them.

use gridstone::base::{AlignedBuf, Error, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Cells, Column, Context, Dedup, Opened, Options, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

pub(crate) const CELL_BYTES: u64 = 8;

/// A new array on `storage`; the environment sets the number of threads.
pub(crate) fn create(storage: Arc<dyn Storage>, json: &str) -> Result<Array> {
    create_array_on(&Context::new(&Options::default())?, storage, "/", Schema::from_json(json)?, false)
}

/// The same array with empty caches.
pub(crate) fn reopen(storage: &MemoryStorage) -> Result<Array> {
    open_with(&Context::new(&Options::default())?, storage)
}

pub(crate) fn open_with(context: &Context, storage: &MemoryStorage) -> Result<Array> {
    match open_on(context, Arc::new(storage.clone()), "/", true, At::Latest)? {
        Opened::Array(array) => Ok(array),
        Opened::Group(_) => Err(Error::input("a group where an array was created")),
    }
}

/// A column of int64.
pub(crate) fn longs(values: impl IntoIterator<Item = i64>) -> Result<Column> {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None)
}

/// The values of a column of int64.
pub(crate) fn values(column: &Column) -> Vec<i64> {
    let (words, _) = column.view().values().as_chunks::<8>();
    words.iter().map(|word| i64::from_le_bytes(*word)).collect()
}

/// A box as text, from inclusive numbers.
pub(crate) fn texts(ranges: &[(i64, i64)]) -> Vec<(String, String)> {
    ranges.iter().map(|(lo, hi)| (lo.to_string(), hi.to_string())).collect()
}

/// Cells of an array of two dimensions and the attribute `v`, all int64.
#[derive(Debug)]
pub(crate) struct Rows {
    x: Column,
    y: Column,
    v: Column,
}

impl Rows {
    pub(crate) fn new(places: &[(i64, i64)], value: impl Fn(i64, i64) -> i64) -> Result<Self> {
        Ok(Self {
            x: longs(places.iter().map(|p| p.0))?,
            y: longs(places.iter().map(|p| p.1))?,
            v: longs(places.iter().map(|p| value(p.0, p.1)))?,
        })
    }

    /// Writes them in one commit; returns the version.
    pub(crate) fn write(&self, array: &Array) -> Result<u64> {
        let dims = vec![self.x.view(), self.y.view()];
        let attrs = vec![("v".to_owned(), self.v.view())];
        let data = CellData { dims, attrs, sorted: false, dedup: Dedup::Error };
        array.commit(vec![array.stage_cells(data, &Call::default())?], None)
    }

    /// Reads the cells by their coordinates.
    pub(crate) fn read(&self, array: &Array) -> Result<Cells> {
        Ok(array.points(&[self.x.view(), self.y.view()], None, &Call::default())?.0)
    }

    pub(crate) fn values(&self) -> Vec<i64> {
        values(&self.v)
    }
}

/// Whether the column `v` of `cells` is exactly `expected`.
pub(crate) fn holds(cells: &Cells, expected: &[i64]) -> bool {
    cells.attrs.first().is_some_and(|v| values(v) == expected)
}
