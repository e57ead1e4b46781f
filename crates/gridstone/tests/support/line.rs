//! Arrays of one dimension: the sparse `/line` and the dense `/grid`.

use super::columns::{bytes_of, numbers, view};
use gridstone::base::Result;
use gridstone::engine::{Array, Call, CellData, Context, Dedup, ReadOrder, create_array_on};
use gridstone::schema::Schema;
use gridstone::storage::Storage;
use std::collections::BTreeMap;
use std::sync::Arc;

pub(crate) const SIDE: i64 = 20_000;
const LINE: &str = r#"{"sparse":true,"capacity":500,"coord_filters":"none","dims":[{"name":"x","dtype":"int64",
    "domain":["0","19999"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
const GRID: &str = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","19999"],"tile":"5000"}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;

pub(crate) type Cells = BTreeMap<i64, i64>;

pub(crate) fn create(context: &Context, storage: &Arc<dyn Storage>, path: &str, overwrite: bool) -> Array {
    let schema = Schema::from_json(if path == "/line" { LINE } else { GRID }).unwrap();
    create_array_on(context, storage.clone(), path, schema, overwrite).unwrap()
}

/// The cells of an array; of the dense one those that are not fill.
pub(crate) fn read(array: &Array) -> Result<Cells> {
    read_in(array, ReadOrder::Row)
}

pub(crate) fn read_in(array: &Array, order: ReadOrder) -> Result<Cells> {
    let (cells, ..) = array.read(None, None, order, &Call::default())?;
    let values = numbers(&cells.attrs[0]);
    Ok(match cells.dims.first() {
        Some(x) => numbers(x).into_iter().zip(values).collect(),
        None => (0..SIDE).zip(values).filter(|(_, v)| *v != 0).collect(),
    })
}

pub(crate) fn stage(array: &Array, cells: &Cells) -> gridstone::engine::Staged {
    let (x, v) = (bytes_of(cells.keys().copied()), bytes_of(cells.values().copied()));
    let attrs = vec![("v".to_owned(), view(&v))];
    let data = CellData { dims: vec![view(&x)], attrs, sorted: false, dedup: Dedup::Error };
    array.stage_cells(data, &Call::default()).unwrap()
}

pub(crate) fn write(array: &Array, cells: &Cells) -> Result<u64> {
    array.commit(vec![stage(array, cells)], None)
}
