//! An array in memory from the JSON of its schema, and the columns and ranges that it takes.

use gridstone::base::AlignedBuf;
use gridstone::engine::{Array, Column, Context, Durability, Options, create_array_on};
use gridstone::schema::{Datatype, Schema};
use gridstone::storage::MemoryStorage;
use std::sync::Arc;

pub(crate) fn create(json: &str) -> Array {
    let options =
        Options { memory_budget: 8 << 20, threads: Some(1), durability: Durability::Close, ..Options::default() };
    let storage = Arc::new(MemoryStorage::new());
    create_array_on(&Context::new(&options).unwrap(), storage, "/", Schema::from_json(json).unwrap(), false).unwrap()
}

pub(crate) fn column<const N: usize>(datatype: Datatype, values: impl IntoIterator<Item = [u8; N]>) -> Column {
    let bytes: Vec<u8> = values.into_iter().flatten().collect();
    Column::new(datatype, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

pub(crate) fn bytes(values: &[u8]) -> Column {
    column(Datatype::UInt8, values.iter().map(|v| [*v]))
}

pub(crate) fn sub(ranges: &[(&str, &str)]) -> Vec<(String, String)> {
    ranges.iter().map(|(lo, hi)| ((*lo).to_owned(), (*hi).to_owned())).collect()
}
