//! Reads with a condition: what statistics rule out is not fetched, no attribute is without a survivor, memory is bounded.

use gridstone::base::{AlignedBuf, CounterSnapshot, ErrorKind};
use gridstone::engine::{
    Array, At, Call, CancelFlag, CellData, Cells, Column, Condition, Context, Dedup, Opened, Options, ReadOrder,
    create_array_on, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{CountingStorage, MemoryStorage, Storage};
use gridstone_testkit::Dice;
use std::sync::Arc;

const LINE: &str = r#"{"sparse":true,"capacity":10000,"dims":[{"name":"x","dtype":"int64","domain":["0","9999999"]}],
    "attrs":[{"name":"k","dtype":"int64","filters":"none"},{"name":"v","dtype":"int64","filters":"none"}]}"#;
const GRID: &str = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","999"],"tile":"100"},
    {"name":"x","dtype":"int64","domain":["0","999"],"tile":"1000"}],
    "attrs":[{"name":"k","dtype":"int64","filters":"none"},{"name":"v","dtype":"int64","filters":"none"}]}"#;

fn context(budget: u64, threads: usize) -> Context {
    Context::new(&Options { threads: Some(threads), memory_budget: budget, ..Options::default() }).unwrap()
}

fn create(json: &str, budget: u64) -> (MemoryStorage, Array) {
    let (storage, schema) = (MemoryStorage::new(), Schema::from_json(json).unwrap());
    let array = create_array_on(&context(budget, 2), Arc::new(storage.clone()), "/", schema, false).unwrap();
    (storage, array)
}

fn counted(storage: &MemoryStorage) -> (Arc<CountingStorage>, Array) {
    let counting = Arc::new(CountingStorage::new(Arc::new(storage.clone())));
    let storage: Arc<dyn Storage> = counting.clone();
    match open_on(&context(1 << 30, 1), storage, "/", false, At::Latest).unwrap() {
        Opened::Array(array) => (counting, array),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn longs(values: impl Iterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

fn words(column: &Column) -> Vec<i64> {
    column.view().values().as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect()
}

fn noise(i: i64) -> i64 {
    Dice::new(i as u64).word() as i64
}

/// Cells at `places`, whose `k` is given by one function and whose `v` is noise.
fn write(array: &Array, places: std::ops::Range<i64>, k: impl Fn(i64) -> i64) {
    let (x, k, v) = (longs(places.clone()), longs(places.clone().map(k)), longs(places.map(noise)));
    let attrs = vec![("k".to_owned(), k.view()), ("v".to_owned(), v.view())];
    let data = CellData { dims: vec![x.view()], attrs, sorted: true, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
}

fn read(array: &Array, text: &str, attrs: &[&str], order: ReadOrder) -> (Cells, CounterSnapshot) {
    let names: Vec<String> = attrs.iter().map(|a| (*a).to_owned()).collect();
    array.read_where(None, Some(&names), &Condition::parse(text).unwrap(), order, &Call::default()).unwrap()
}

#[test]
fn what_statistics_rule_out_is_not_fetched() {
    let (storage, array) = create(LINE, 1 << 30);
    write(&array, 0..200_000, |x| x / 100);
    let (counting, array) = counted(&storage);
    counting.reset();
    let (cells, counters) = read(&array, "k between 500 and 549", &["v"], ReadOrder::Row);
    assert_eq!(words(&cells.dims[0]), (50_000..55_000).collect::<Vec<_>>());
    assert_eq!(words(&cells.attrs[0]), (50_000..55_000).map(noise).collect::<Vec<_>>());
    assert_eq!((counters.tiles_pruned, counters.tiles_read, counters.cells_returned), (19, 1, 5_000));
    // Of the one tile left all ten blocks of `k`; those of `v` and of the coordinates where a cell survived.
    assert_eq!((counters.cells_scanned, counters.blocks_rejected), (10_000, 5));
    assert!(counters.bytes_fetched <= 80_000 + 5 * 8 * 1_024 + 5 * 8 * 1_024 + 8_192, "{counters:?}");
    let bytes = counting.snapshot().bytes_read;
    assert!(bytes < counters.bytes_fetched + 150_000, "{bytes} bytes: the index and the end of the file besides");
    counting.reset();
    let (none, counters) = read(&array, "k > 5000 and v > 0", &["v"], ReadOrder::Row);
    assert_eq!((none.count, none.dims.len(), none.attrs.len()), (0, 1, 1));
    assert_eq!((counting.snapshot().total(), counters.fragments_pruned), (0, 1), "the description tells");
    let (none, counters) = read(&array, "k == 5 and v == k", &["v"], ReadOrder::Row);
    assert_eq!((none.count, counters.fragments_pruned, counters.tiles_pruned), (0, 0, 19), "the tiles tell");
    counting.reset();
    let (_, counters) = read(&array, "k > 3 and false", &["v"], ReadOrder::Row);
    assert_eq!((counting.snapshot().total(), counters.fragments_considered), (0, 0));
}

#[test]
fn what_is_selected_nowhere_fetches_nothing_but_the_condition() {
    let (storage, array) = create(LINE, 1 << 30);
    write(&array, 0..100_000, |x| noise(x) & 1_023);
    let (_, array) = counted(&storage);
    let (cells, counters) = read(&array, "k == 77 and v == 5", &["v", "k"], ReadOrder::Any);
    assert_eq!((cells.count, counters.tiles_pruned, counters.blocks_rejected), (0, 0, 100));
    // Both are the condition's; of the coordinates not a byte.
    assert_eq!(counters.bytes_decoded, 1_600_000);
    let (cells, counters) = read(&array, "k == 1024", &["v"], ReadOrder::Any);
    assert_eq!((cells.count, counters.bytes_fetched), (0, 0));
}

#[test]
fn a_block_that_may_hide_an_older_cell_stays_without_its_values() {
    let (storage, array) = create(LINE, 1 << 30);
    write(&array, 0..40_000, |_| 7);
    write(&array, 35_000..80_000, |_| 3);
    let (_, reader) = counted(&storage);
    let (cells, counters) = read(&reader, "k == 7", &["v"], ReadOrder::Row);
    assert_eq!(words(&cells.dims[0]), (0..35_000).collect::<Vec<_>>());
    // 45,000 cells in five tiles, one of which reaches below 40,000.
    assert_eq!((counters.tiles_pruned, counters.tiles_read), (4, 5));
    let (cells, counters) = read(&reader, "k == 3", &["v"], ReadOrder::Row);
    assert_eq!(words(&cells.dims[0]), (35_000..80_000).collect::<Vec<_>>());
    assert_eq!((counters.fragments_pruned, counters.cells_merged), (1, 0), "nothing older lies below what is selected");
}

#[test]
fn tiles_of_a_dense_array_are_pruned_and_unwritten_ones_judged_by_their_fill() {
    let (storage, array) = create(GRID, 1 << 30);
    let (k, v) = (longs((0..500_000).map(|i| i / 1_000)), longs((0..500_000).map(noise)));
    let data = vec![("k".to_owned(), k.view()), ("v".to_owned(), v.view())];
    let sub = [("100".to_owned(), "599".to_owned()), ("0".to_owned(), "999".to_owned())];
    array.commit(vec![array.stage_dense(Some(&sub), &data, Order::Row, &Call::default()).unwrap()], None).unwrap();
    let (counting, array) = counted(&storage);
    let (cells, counters) = read(&array, "k between 250 and 251", &["v"], ReadOrder::Row);
    assert_eq!(words(&cells.attrs[0]), (250_000..252_000).map(noise).collect::<Vec<_>>());
    assert_eq!(words(&cells.dims[0]), [[350; 1_000], [351; 1_000]].concat());
    assert_eq!((counters.tiles_pruned, counters.cells_returned), (4, 2_000));
    // A tile has seven blocks of sixteen rows; the rows lie in one of them.
    assert!(counters.blocks_rejected == 6 && counters.bytes_fetched < 1_100_000, "{counters:?}");
    counting.reset();
    let (cells, _) = read(&array, "k > 499 and v != 3", &["v"], ReadOrder::Global);
    assert_eq!((cells.count, counting.snapshot().total()), (0, 0));
    let (cells, counters) = read(&array, "k == 0 and y >= 700", &["k"], ReadOrder::Col);
    assert_eq!((cells.count, counters.bytes_fetched), (300_000, 0), "never written: the fill is 0");
    assert_eq!(words(&cells.dims[1])[..600], [[0; 300], [1; 300]].concat());
}

#[test]
fn a_wide_empty_domain_costs_its_fragments() {
    let dim = |name: &str| {
        format!(
            r#"{{"name":"{name}","dtype":"int64","domain":["-4611686018427387904","4611686018427387904"],"tile":"50"}}"#
        )
    };
    let (y, x) = (dim("y"), dim("x"));
    let (_, array) = create(&format!(r#"{{"dims":[{y},{x}],"attrs":[{{"name":"k","dtype":"int64"}}]}}"#), 1 << 30);
    let (corners, ones) = ([-(1i64 << 62), 0, (1 << 62) - 9], longs(std::iter::repeat_n(3, 100)));
    for corner in corners {
        let side = (corner.to_string(), (corner + 9).to_string());
        let data = vec![("k".to_owned(), ones.view())];
        let staged = array.stage_dense(Some(&[side.clone(), side]), &data, Order::Row, &Call::default()).unwrap();
        array.commit(vec![staged], None).unwrap();
    }
    let condition = Condition::parse("k > 2").unwrap();
    for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Any] {
        let (cells, _) = read(&array, "k > 2", &["k"], order);
        assert_eq!(
            (cells.count, words(&cells.dims[0])[0], words(&cells.dims[1])[299]),
            (300, corners[0], corners[2] + 9)
        );
        let mut scan = array.scan_where(None, None, &condition, order, 2_000, &Call::default()).unwrap();
        let mut found = Vec::new();
        while let Some(batch) = scan.next_batch().unwrap() {
            found.extend(words(&batch.dims[1]));
        }
        assert_eq!(found, words(&cells.dims[1]), "{order:?}");
    }
    // An unwritten cell has the fill, 0.
    let whole = array.read_where(None, None, &Condition::parse("k < 2").unwrap(), ReadOrder::Row, &Call::default());
    assert_eq!(whole.map(drop).map_err(|e| e.kind()), Err(ErrorKind::Budget));
}

#[test]
fn memory_is_bounded_by_the_budget() {
    let budget = 4 << 20;
    for json in [LINE, GRID] {
        let (_, array) = create(json, budget);
        if array.schema().unwrap().sparse() {
            for start in [0, 150_000, 300_000] {
                write(&array, start..start + 250_000, |x| x % 1_000);
            }
        }
        for order in [ReadOrder::Any, ReadOrder::Row, ReadOrder::Col] {
            let condition = Condition::parse("k < 900 and k != 5").unwrap();
            let mut scan = array.scan_where(None, None, &condition, order, 1 << 30, &Call::default()).unwrap();
            let (mut cells, mut largest) = (0, 0);
            while let Some(batch) = scan.next_batch().unwrap() {
                let bytes: usize = batch.dims.iter().chain(&batch.attrs).map(Column::size_bytes).sum();
                (cells, largest) = (cells + batch.count, largest.max(bytes));
            }
            let expected = if array.schema().unwrap().sparse() { 550 * 899 } else { 1_000_000 };
            assert_eq!(cells, expected, "{order:?}");
            assert!(largest as u64 <= budget / 2, "a batch of {largest} bytes");
        }
        assert!(array.context().peak_bytes() <= budget, "{} bytes", array.context().peak_bytes());
    }
}

#[test]
fn a_read_stops_on_request_and_refuses_what_does_not_fit() {
    let (_, array) = create(LINE, 1 << 30);
    write(&array, 0..100_000, |x| x);
    let flag = Arc::new(CancelFlag::new());
    flag.cancel();
    let call = Call { cancel: flag, ..Call::default() };
    let condition = Condition::parse("v > 3").unwrap();
    let stopped = array.read_where(None, None, &condition, ReadOrder::Row, &call);
    assert_eq!(stopped.map(drop).map_err(|e| e.kind()), Err(ErrorKind::Cancelled));
    for wrong in ["w > 3", "v > 'a'"] {
        let condition = Condition::parse(wrong).unwrap();
        let refused = array.scan_where(None, None, &condition, ReadOrder::Row, 1_000, &Call::default());
        assert_eq!(refused.map(drop).map_err(|e| e.kind()), Err(ErrorKind::Input), "{wrong}");
    }
}

/// A wide empty domain: its unwritten cells are selected, or they are not, and what they would take is known before any is made.
#[test]
fn unwritten_cells_past_the_budget_are_refused_at_once() {
    let json = GRID.replace("\"999\"", "\"29999\"");
    let (_, array) = create(&json, 1 << 26);
    let whole = |text: &str| {
        array
            .read_where(None, None, &Condition::parse(text).unwrap(), ReadOrder::Row, &Call::default())
            .map(|found| found.0.count)
    };
    let error = whole("k == 0").unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Budget, "{error}");
    for word in ["28800000000 bytes", "67108864", "scan()", "leaves out the fill"] {
        assert!(error.message().contains(word), "{word:?} is not in: {error}");
    }
    assert_eq!(whole("k == 1").unwrap(), 0, "no unwritten cell");
    assert_eq!(whole("k == 0 and y < 10 and x < 10").unwrap(), 100, "a box that fits");
    let condition = Condition::parse("k == 0").unwrap();
    let mut scan = array.scan_where(None, None, &condition, ReadOrder::Any, 1 << 20, &Call::default()).unwrap();
    assert!(scan.next_batch().unwrap().is_some_and(|batch| batch.count > 0));
}
