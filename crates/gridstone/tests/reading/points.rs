//! Cells read by their coordinates: each block touched once, one chunk of a raw page per cell, damage noticed.

use gridstone::base::{AlignedBuf, CounterSnapshot, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CancelFlag, CellData, Cells, Column, Context, Dedup, Opened, Options, create_array_on, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::sync::Arc;

const CHUNK: u64 = 4_096;

fn grid(filters: &str) -> String {
    format!(
        r#"{{"dims":[{{"name":"y","dtype":"int32","domain":["0","499"],"tile":"250"}},
        {{"name":"x","dtype":"int64","domain":["-500","499"],"tile":"500"}}],
        "attrs":[{{"name":"v","dtype":"int32","filters":"{filters}"}},{{"name":"w","dtype":"int16","filters":"{filters}"}}]}}"#
    )
}

const LINE: &str = r#"{"sparse":true,"capacity":4096,"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":null}],
    "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;

fn open(storage: &MemoryStorage, threads: usize) -> Array {
    let context = Context::new(&Options { threads: Some(threads), ..Options::default() }).unwrap();
    match open_on(&context, Arc::new(storage.clone()), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn create(json: &str) -> (MemoryStorage, Array) {
    let storage = MemoryStorage::new();
    let context = Context::new(&Options { threads: Some(2), ..Options::default() }).unwrap();
    let schema = Schema::from_json(json).unwrap();
    let array = create_array_on(&context, Arc::new(storage.clone()), "/", schema, false).unwrap();
    (storage, array)
}

fn column(datatype: Datatype, values: impl Iterator<Item = i64>) -> Column {
    let width = datatype.width().unwrap();
    let bytes: Vec<u8> = values.flat_map(|v| v.to_le_bytes()[..width].to_vec()).collect();
    Column::new(datatype, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

fn word(y: i64, x: i64) -> i64 {
    (y * 1_000 + x) * 7
}

/// A grid whose every cell is written at once: four tiles of eight blocks of 32 rows, of 64,000 bytes of `v` each.
fn written(filters: &str) -> (MemoryStorage, Array) {
    let (storage, array) = create(&grid(filters));
    let all = || (0..500).flat_map(|y| (-500..500).map(move |x| word(y, x)));
    let (v, w) = (column(Datatype::Int32, all()), column(Datatype::Int16, all()));
    let data = vec![("v".to_owned(), v.view()), ("w".to_owned(), w.view())];
    let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    (storage, array)
}

fn read(
    array: &Array,
    points: &[(i64, i64)],
    attrs: &[&str],
    call: &Call,
) -> gridstone::base::Result<(Cells, CounterSnapshot)> {
    let y = column(Datatype::Int32, points.iter().map(|p| p.0));
    let x = column(Datatype::Int64, points.iter().map(|p| p.1));
    let names: Vec<String> = attrs.iter().map(|a| (*a).to_owned()).collect();
    array.points(&[y.view(), x.view()], Some(&names), call)
}

fn words(column: &Column) -> Vec<i64> {
    let view = column.view();
    let extended =
        |bytes: &[u8]| bytes.iter().rev().fold(-i64::from(bytes[bytes.len() - 1] >> 7), |n, b| n << 8 | i64::from(*b));
    (0..view.len()).map(|row| extended(view.value(row))).collect()
}

#[test]
fn a_point_of_a_raw_page_reads_one_chunk() {
    let (storage, _) = written("none");
    let array = open(&storage, 1);
    let (cells, counters) = read(&array, &[(321, 77)], &["v"], &Call::default()).unwrap();
    assert_eq!(words(&cells.attrs[0]), [word(321, 77)]);
    assert_eq!((counters.bytes_fetched, counters.blocks_decoded, counters.requests), (CHUNK, 1, 1));
    assert_eq!(counters.bytes_decoded, 4);
    // A row of a tile is 2,000 bytes: neighbours share chunks, which are read once.
    let points: Vec<(i64, i64)> = (0..8).flat_map(|y| (-500..0).step_by(3).map(move |x| (y, x))).collect();
    let (cells, counters) = read(&array, &points, &["v"], &Call::default()).unwrap();
    assert_eq!(words(&cells.attrs[0]), points.iter().map(|(y, x)| word(*y, *x)).collect::<Vec<_>>());
    assert_eq!((counters.bytes_fetched, counters.blocks_decoded), (4 * CHUNK, 1), "16,000 bytes");
}

#[test]
fn every_block_is_touched_once() {
    for filters in ["none", "zstd:1"] {
        let (storage, _) = written(filters);
        let array = open(&storage, 2);
        let mut dice = Dice::new(5);
        let points: Vec<(i64, i64)> =
            (0..20_000).map(|_| (dice.below(500) as i64, dice.below(1_000) as i64 - 500)).collect();
        let (cells, counters) = read(&array, &points, &["w", "v", "w"], &Call::default()).unwrap();
        let expected: Vec<i64> = points.iter().map(|(y, x)| word(*y, *x)).collect();
        let short: Vec<i64> = expected.iter().map(|v| i64::from(*v as i16)).collect();
        assert_eq!(words(&cells.attrs[1]), expected);
        assert!(words(&cells.attrs[0]) == short && words(&cells.attrs[2]) == short);
        assert_eq!(counters.blocks_decoded, 3 * 32, "four tiles of eight blocks, of three columns asked for");
        assert_eq!((counters.blocks_alone, counters.cells_returned, counters.cells_merged), (3 * 32, 20_000, 0));
        assert!(counters.requests <= 3 * 32, "{counters:?}");
    }
}

#[test]
fn what_a_newer_fragment_covers_is_not_fetched() {
    let (_, array) = written("none");
    let v = column(Datatype::Int32, 0..250_000);
    let sub: Vec<(String, String)> = [("0", "499"), ("-500", "-1")].map(|(a, b)| (a.into(), b.into())).to_vec();
    let data = vec![("v".to_owned(), v.view())];
    let staged = array.stage_dense(Some(&sub), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let points = [(400, -3), (10, -500), (10, 5)];
    let (cells, counters) = read(&array, &points, &["v", "w"], &Call::default()).unwrap();
    assert_eq!(words(&cells.attrs[0]), [400 * 500 + 497, 10 * 500, word(10, 5)]);
    assert_eq!(words(&cells.attrs[1]), points.map(|(y, x)| i64::from(word(y, x) as i16)));
    assert_eq!((counters.blocks_decoded, counters.bytes_fetched), (6, 6 * CHUNK));
}

#[test]
fn points_of_a_sparse_array_read_the_blocks_that_may_hold_them() {
    let (_, array) = create(LINE);
    let x = column(Datatype::Int64, (0..100_000).step_by(2));
    let cells =
        CellData { dims: vec![x.view()], attrs: vec![("v".to_owned(), x.view())], sorted: true, dedup: Dedup::Error };
    let staged = array.stage_cells(cells, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let asked = |list: &[i64]| {
        let x = column(Datatype::Int64, list.iter().copied());
        array.points(&[x.view()], None, &Call::default()).unwrap()
    };
    // Blocks hold 1,024 even numbers each; the last point is asked for twice, the odd one is not there.
    let (cells, counters) = asked(&[90_000, 17, 18, 90_002, 90_000]);
    assert_eq!(words(&cells.dims[0]), [90_000, 18, 90_002, 90_000]);
    assert_eq!(words(&cells.attrs[0]), [90_000, 18, 90_002, 90_000]);
    assert_eq!((counters.blocks_decoded, counters.tiles_read), (4, 2), "two blocks of coordinates, two of values");
    // No block of values where no point is there.
    let (cells, counters) = asked(&[17]);
    assert_eq!((cells.count, counters.blocks_decoded), (0, 1));
    let (cells, counters) = asked(&[]);
    assert_eq!((cells.count, cells.dims.len(), cells.attrs.len(), counters.bytes_fetched), (0, 1, 1, 0));
}

#[test]
fn a_damaged_chunk_is_an_error_where_it_is_read() {
    let (storage, _) = written("none");
    let name = storage.list("_data").unwrap().remove(0);
    let good = storage.read_all(&name).unwrap().to_vec();
    let points: Vec<(i64, i64)> = (0..500).step_by(7).map(|y| (y, y - 250)).collect();
    let expected: Vec<i64> = points.iter().map(|(y, x)| word(*y, *x)).collect();
    let mut noticed = 0;
    // The pages begin after the header, at the first whole chunk.
    let (first, pages) = (CHUNK as usize, 500 * 1_000 * 6);
    for at in (first..first + pages).step_by(pages / 300) {
        let mut bad = good.clone();
        bad[at] ^= 1 << (at % 8);
        storage.put(&name, &bad).unwrap();
        match read(&open(&storage, 1), &points, &["v"], &Call::default()) {
            Ok((cells, _)) => assert_eq!(words(&cells.attrs[0]), expected, "byte {at}"),
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Corruption, "{e}");
                assert!(e.message().contains("checksum") && e.message().contains("tile"), "{e}");
                noticed += 1;
            }
        }
    }
    assert!((5..200).contains(&noticed), "{noticed} of 300: only the chunks that are read are checked");
}

#[test]
fn a_point_outside_is_named() {
    let (_, array) = written("none");
    let refused = |points: &[(i64, i64)]| read(&array, points, &["v"], &Call::default()).unwrap_err();
    let error = refused(&[(0, 0), (3, 500)]);
    assert_eq!(error.kind(), ErrorKind::Bounds);
    assert!(error.message().contains("row 1: coordinate 500 of dimension \"x\""), "{error}");
    let x = column(Datatype::Int64, 0..3);
    let y = column(Datatype::Int32, 0..2);
    for dims in [vec![y.view()], vec![y.view(), x.view()], vec![x.view(), y.view()]] {
        assert_eq!(array.points(&dims, None, &Call::default()).unwrap_err().kind(), ErrorKind::Input);
    }
    assert_eq!(read(&array, &[(0, 0)], &["z"], &Call::default()).unwrap_err().kind(), ErrorKind::Input);
}

#[test]
fn points_stop_when_they_are_told_to() {
    let (_, array) = written("zstd:1");
    let flag = CancelFlag::new();
    flag.cancel();
    let call = Call { cancel: Arc::new(flag), ..Call::default() };
    assert_eq!(read(&array, &[(0, 0)], &["v"], &call).unwrap_err().kind(), ErrorKind::Cancelled);
}
