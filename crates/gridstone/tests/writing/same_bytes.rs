//! Promise: what is written does not depend on how many threads write it, byte for byte: cells in one commit, streamed, and merged.

use crate::support::columns::{bytes_of, numbers, view};
use gridstone::engine::{
    Array, Call, CellData, Context, Dedup, Durability, Options, ReadOrder, Strategy, create_array_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

/// Tiles of a thousand cells, of which eighty share a choice of filters.
const SCHEMA: &str = r#"{"sparse":true,"capacity":1000,"dims":[{"name":"y","dtype":"int64","domain":["0","999"],"tile":"100"},
    {"name":"x","dtype":"int64","domain":["0","999"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;

/// Cells so many apart, in rows so that they ascend in global order; what values are like differs between parts, so that filters do.
fn cells(step: i64) -> [Vec<i64>; 3] {
    let all = (0..1_000_000).step_by(step as usize);
    let value = |n: i64| match n / 180_000 % 3 {
        0 => n * 3,
        1 => (n as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15) as i64,
        _ => n / 5_000,
    };
    [all.clone().map(|n| n / 1_000).collect(), all.clone().map(|n| n % 1_000).collect(), all.map(value).collect()]
}

fn views(columns: &[Vec<u8>; 3]) -> [gridstone::engine::ColumnView<'_>; 3] {
    columns.each_ref().map(|bytes| view(bytes))
}

fn commit(array: &Array, [mut y, mut x, mut v]: [Vec<i64>; 3]) {
    // Backwards, so that there is something to sort.
    [&mut y, &mut x, &mut v].into_iter().for_each(|column| column.reverse());
    let columns = [y, x, v].map(bytes_of);
    let [y, x, v] = views(&columns);
    let data = CellData { dims: vec![y, x], attrs: vec![("v".to_owned(), v)], sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
}

fn stream(array: &Array, columns: [Vec<i64>; 3]) {
    let columns = columns.map(bytes_of);
    let mut writer = array.writer(None, None).unwrap();
    // Now and then many tiles at once.
    for (from, to) in [(0, 7), (7, 90_000), (90_000, 90_001), (90_001, columns[0].len() / 8)] {
        let [y, x, v] = columns.each_ref().map(|column| view(&column[from * 8..to * 8]));
        writer.append(&Call::default(), &[y, x], &[v]).unwrap();
    }
    array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
}

/// What all data files hold between header and footer, which have the fragment's id; sorted, since ids are drawn.
fn files(storage: &Arc<dyn Storage>) -> Vec<Vec<u8>> {
    let between = |name: &String| {
        let bytes = storage.read_all(name).unwrap();
        bytes[64..bytes.len() - 64].to_vec()
    };
    let mut files: Vec<Vec<u8>> = storage.list("_data").unwrap().iter().map(between).collect();
    files.sort_unstable();
    files
}

#[test]
fn files_are_the_same_with_any_number_of_threads() {
    let mut first: Option<Vec<Vec<u8>>> = None;
    for threads in [1, 2, 5] {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let options = Options { threads: Some(threads), durability: Durability::Close, ..Options::default() };
        let context = Context::new(&options).unwrap();
        let array = create_array_on(&context, storage.clone(), "/", Schema::from_json(SCHEMA).unwrap(), false).unwrap();
        commit(&array, cells(4));
        stream(&array, cells(5));
        commit(&array, cells(6));
        let done = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        assert_eq!((done.after, done.merges.len()), (1, 1));
        let all = array.read(None, None, ReadOrder::Global, &Call::default()).unwrap().0;
        let expected = (0..1_000_000i64).filter(|n| n % 4 == 0 || n % 5 == 0 || n % 6 == 0).count();
        assert_eq!(numbers(&all.attrs[0]).len(), expected);
        let written = files(&storage);
        assert_eq!(written.len(), 4);
        match &first {
            Some(first) => {
                for (a, b) in first.iter().zip(&written) {
                    let at = a.iter().zip(b).position(|(a, b)| a != b);
                    assert!(a == b, "of {} bytes, {} with {threads} threads, from {at:?} on", a.len(), b.len());
                }
            }
            None => first = Some(written),
        }
    }
}
