//! A store in memory with a dense and a sparse array of the same square.

use super::columns::{as_text, numbers};
use super::writer::{CellMap, context};
use gridstone::engine::{
    Array, At, Call, Context, Isolation, Opened, ReadOrder, Transaction, create_array_on, open_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

/// All cells of a sparse array take more than a log record takes in.
pub(crate) const SIDE: i64 = 150;

pub(crate) fn schema(sparse: bool) -> Schema {
    Schema::from_json(&format!(
        r#"{{"sparse":{sparse},"capacity":50,"coord_filters":"none","dims":[{{"name":"y","dtype":"int64","domain":["0","{end}"],"tile":"7"}},
            {{"name":"x","dtype":"int64","domain":["0","{end}"],"tile":"9"}}],
            "attrs":[{{"name":"v","dtype":"int64","filters":"none"}}]}}"#,
        end = SIDE - 1
    ))
    .unwrap()
}

/// A store in memory with a dense and a sparse array.
pub(crate) fn memory() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    for (path, sparse) in [("/dense", false), ("/sparse", true)] {
        create_array_on(&context(), storage.clone(), path, schema(sparse), false).unwrap();
    }
    storage
}

pub(crate) fn opened(context: &Context, storage: &Arc<dyn Storage>, path: &str) -> Array {
    match open_on(context, storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("{path} is a group"),
    }
}

/// The cells of a box that are there; of a dense array those that are not 0.
pub(crate) fn cells(array: &Array, (y, x): ((i64, i64), (i64, i64))) -> CellMap {
    let bounds = [as_text(y), as_text(x)];
    let (found, shape, _) = array.read(Some(&bounds), None, ReadOrder::Row, &Call::default()).unwrap();
    let values = numbers(&found.attrs[0]);
    let width = x.1 - x.0 + 1;
    match shape {
        Some(_) => (0..).map(|i| (y.0 + i / width, x.0 + i % width)).zip(values).filter(|(_, v)| *v != 0).collect(),
        None => numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect(),
    }
}

pub(crate) fn one(y: i64, x: i64, value: i64) -> CellMap {
    CellMap::from([((y, x), value)])
}

pub(crate) fn begin(storage: &Arc<dyn Storage>) -> Transaction {
    Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap()
}
