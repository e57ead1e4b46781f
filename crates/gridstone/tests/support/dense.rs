//! A dense square of two attributes, written box by box and cell by cell.

use super::columns::longs;
use gridstone::engine::{
    Array, Call, CellData, Column, ConsolidateReport, Context, Dedup, Options, ReadOrder, Strategy, create_array_on,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

pub(crate) fn schema(side: i64, tile: i64, nullable: bool) -> Schema {
    Schema::from_json(&format!(
        r#"{{"dims":[{{"name":"x","dtype":"int64","domain":["0","{0}"],"tile":"{tile}"}},
        {{"name":"y","dtype":"int64","domain":["0","{0}"],"tile":"{tile}"}}],
        "attrs":[{{"name":"v","dtype":"int64","nullable":{nullable}}},{{"name":"w","dtype":"int64","nullable":{nullable}}}]}}"#,
        side - 1
    ))
    .unwrap()
}

pub(crate) fn created(schema: Schema, budget: u64) -> (Array, Arc<dyn Storage>) {
    created_with(schema, &Options { threads: Some(2), memory_budget: budget, ..Options::default() })
}

/// An array whose context keeps no file open, so that it sees what is done to the files.
pub(crate) fn created_uncached(schema: Schema) -> (Array, Arc<dyn Storage>) {
    created_with(schema, &Options { threads: Some(2), cache: 0, ..Options::default() })
}

fn created_with(schema: Schema, options: &Options) -> (Array, Arc<dyn Storage>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = Context::new(options).unwrap();
    (create_array_on(&context, storage.clone(), "/", schema, false).unwrap(), storage)
}

/// A value that does not compress.
pub(crate) fn noise(seed: i64) -> i64 {
    let mixed = (seed as u64).wrapping_add(1).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    ((mixed ^ mixed >> 29).wrapping_mul(0xBF58_476D_1CE4_E5B9) ^ mixed >> 32) as i64
}

/// Writes a box, low and high of each dimension, in one commit; every value says who wrote it and where.
pub(crate) fn write_box(array: &Array, (x, y): ((i64, i64), (i64, i64)), attrs: &[&str], number: i64) {
    let values = (x.0..=x.1).flat_map(|i| (y.0..=y.1).map(move |j| noise(number * 1_000_003 + i * 1_009 + j * 7)));
    let column = longs(values);
    let data = attrs.iter().map(|a| ((*a).to_owned(), column.view())).collect();
    let sub = [(x.0.to_string(), x.1.to_string()), (y.0.to_string(), y.1.to_string())];
    let staged = array.stage_dense(Some(&sub), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

pub(crate) fn write_cells(array: &Array, cells: &[(i64, i64)], number: i64) {
    let (x, y) = (longs(cells.iter().map(|c| c.0)), longs(cells.iter().map(|c| c.1)));
    let v = longs(cells.iter().map(|_| -number));
    let attrs = vec![("v".to_owned(), v.view()), ("w".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view(), y.view()], attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
}

pub(crate) fn delete(array: &Array, cells: &[(i64, i64)]) {
    let (x, y) = (longs(cells.iter().map(|c| c.0)), longs(cells.iter().map(|c| c.1)));
    array.commit(vec![array.stage_delete(&[x.view(), y.view()], &Call::default()).unwrap()], None).unwrap();
}

type Values = Vec<(Vec<u8>, Option<Vec<u8>>)>;

pub(crate) fn read(array: &Array) -> Values {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let one = |c: Column| {
        let (values, _, validity) = c.into_parts();
        (values.to_vec(), validity)
    };
    cells.attrs.into_iter().map(one).collect()
}

pub(crate) fn consolidate(array: &Array, strategy: &Strategy) -> ConsolidateReport {
    array.consolidate(strategy, 1 << 30, false, &Call::default()).unwrap()
}

pub(crate) const BOTH: [&str; 2] = ["v", "w"];
