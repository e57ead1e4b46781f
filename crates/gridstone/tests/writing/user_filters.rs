//! Promise: a filter that a program brings along is one like any other: in pipelines, in dense and sparse arrays, through merges; where nobody
//! has registered it, what needs it says so, and all else is read.

use crate::support::columns::longs;
use gridstone::base::{Error, ErrorKind, Result};
use gridstone::engine::{
    Array, At, Call, CellData, Context, Dedup, Opened, Options, ReadOrder, Strategy, UserFilter, create_array_on,
    open_on, register_filter,
};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

/// Adds one to each byte; says how often it was asked.
#[derive(Default)]
struct PlusOne(AtomicUsize, AtomicUsize);

impl UserFilter for PlusOne {
    fn encode(&self, input: &[u8], _: usize) -> Result<Vec<u8>> {
        self.0.fetch_add(1, Relaxed);
        Ok(input.iter().map(|byte| byte.wrapping_add(1)).collect())
    }

    fn decode(&self, input: &[u8], _: usize, _: usize) -> Result<Vec<u8>> {
        self.1.fetch_add(1, Relaxed);
        Ok(input.iter().map(|byte| byte.wrapping_sub(1)).collect())
    }
}

/// Refuses what it is given.
struct Refusing;

impl UserFilter for Refusing {
    fn encode(&self, _: &[u8], _: usize) -> Result<Vec<u8>> {
        Err(Error::input("no such values, please"))
    }

    fn decode(&self, input: &[u8], _: usize, _: usize) -> Result<Vec<u8>> {
        Ok(input.to_vec())
    }
}

fn array_of(sparse: bool, filters: &str) -> (Array, MemoryStorage) {
    let json = format!(
        r#"{{"sparse":{sparse},"dims":[{{"name":"x","dtype":"int64","domain":["0","9999"],"tile":"100"}}],
        "attrs":[{{"name":"v","dtype":"int64","filters":"{filters}"}},{{"name":"w","dtype":"int64","filters":"none"}}]}}"#
    );
    let storage = MemoryStorage::new();
    let context = Context::new(&Options { threads: Some(2), ..Options::default() }).unwrap();
    let schema = Schema::from_json(&json).unwrap();
    let array = create_array_on(&context, Arc::new(storage.clone()), "/", schema, false).unwrap();
    (array, storage)
}

/// Writes the numbers from `from` on at the places of the same numbers.
fn write(array: &Array, from: i64, count: i64) -> Result<u64> {
    let values = longs(from..from + count);
    let data = ["v", "w"].map(|name| (name.to_owned(), values.view())).to_vec();
    let staged = if array.schema()?.sparse() {
        let data = CellData { dims: vec![values.view()], attrs: data, sorted: false, dedup: Dedup::Error };
        array.stage_cells(data, &Call::default())?
    } else {
        let side = [(from.to_string(), (from + count - 1).to_string())];
        array.stage_dense(Some(&side), &data, Order::Row, &Call::default())?
    };
    array.commit(vec![staged], None)
}

#[test]
fn a_registered_filter_serves_writes_reads_and_merges() {
    let filter = Arc::new(PlusOne::default());
    register_filter("test.plus-one", filter.clone(), false).unwrap();
    let taken = register_filter("test.plus-one", filter.clone(), false).unwrap_err();
    assert_eq!(taken.kind(), ErrorKind::Exists);
    for sparse in [false, true] {
        for filters in ["test.plus-one", "test.plus-one,zstd:3", "shuffle,test.plus-one"] {
            let (array, storage) = array_of(sparse, filters);
            let before = (filter.0.load(Relaxed), filter.1.load(Relaxed));
            write(&array, 0, 5_000).unwrap();
            write(&array, 4_000, 3_000).unwrap();
            array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
            let Opened::Array(opened) =
                open_on(array.context(), Arc::new(storage.clone()), "/", false, At::Latest).unwrap()
            else {
                panic!("a group")
            };
            let side = [("0".to_owned(), "6999".to_owned())];
            let (cells, _, _) = opened.read(Some(&side), None, ReadOrder::Row, &Call::default()).unwrap();
            let expected = longs(0..7_000);
            for attr in &cells.attrs {
                assert!(attr.view().values() == expected.view().values(), "{filters}, sparse: {sparse}");
            }
            assert!(filter.0.load(Relaxed) > before.0 && filter.1.load(Relaxed) > before.1, "it was not asked");
            assert!(opened.verify(&Call::default()).unwrap().damage.is_empty());
        }
    }
}

#[test]
fn where_it_is_unknown_or_refuses_nothing_is_written_and_the_rest_is_read() {
    register_filter("test.refusing", Arc::new(Refusing), true).unwrap();
    for (filters, told) in [("test.unknown", "register_filter"), ("test.refusing", "no such values, please")] {
        for sparse in [false, true] {
            let (array, storage) = array_of(sparse, filters);
            let version = array.version();
            let error = write(&array, 0, 5_000).unwrap_err();
            assert!(error.to_string().contains(told), "{error}");
            assert_eq!((array.version(), storage.list("_data").unwrap()), (version, Vec::new()));
            let read = array.read(None, Some(&["w".to_owned()]), ReadOrder::Row, &Call::default()).unwrap();
            assert_eq!(read.0.count, if sparse { 0 } else { 10_000 });
        }
    }
}
