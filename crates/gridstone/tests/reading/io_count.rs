//! What reading costs in I/O: objects and bytes touched, asserted.

use gridstone::base::{AlignedBuf, CounterSnapshot, limits};
use gridstone::engine::{
    Array, At, Call, CellData, Cells, Column, Context, Dedup, Opened, Options, ReadOrder, Staged, Strategy,
    create_array_on, open_on,
};
use gridstone::schema::{Datatype, Order, Schema};
use gridstone::storage::{CountingStorage, Fault, FaultPlan, FaultyStorage, MemoryStorage, Operation, Storage};
use std::sync::Arc;

const GRID: &str = r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","1999"],"tile":"1000"},
    {"name":"x","dtype":"int64","domain":["0","999"]}],"attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
const POINTS: &str = r#"{"sparse":true,"capacity":100,"dims":[{"name":"x","dtype":"int64","domain":["0","9999"],"tile":"100"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap()
}

fn create(json: &str) -> (MemoryStorage, Array) {
    let storage = MemoryStorage::new();
    let array =
        create_array_on(&context(), Arc::new(storage.clone()), "/", Schema::from_json(json).unwrap(), false).unwrap();
    (storage, array)
}

fn counted(storage: &MemoryStorage) -> (Arc<CountingStorage>, Array) {
    let counting = Arc::new(CountingStorage::new(Arc::new(storage.clone())));
    let storage: Arc<dyn Storage> = counting.clone();
    match open_on(&context(), storage, "/", false, At::Latest).unwrap() {
        Opened::Array(array) => (counting, array),
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn longs(values: impl Iterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}

/// Values that no filter makes smaller.
fn noise(i: i64) -> i64 {
    gridstone_testkit::Dice::new(i as u64).word() as i64
}

fn sub(ranges: &[(i64, i64)]) -> Vec<(String, String)> {
    ranges.iter().map(|(lo, hi)| (lo.to_string(), hi.to_string())).collect()
}

fn write_box(array: &Array, ranges: &[(i64, i64)], start: i64) {
    let cells: i64 = ranges.iter().map(|(lo, hi)| hi - lo + 1).product();
    let column = longs((start..start + cells).map(noise));
    let data = vec![("v".to_owned(), column.view())];
    let staged = array.stage_dense(Some(&sub(ranges)), &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
}

fn write_points(array: &Array, points: std::ops::Range<i64>) {
    array.commit(vec![stage_points(array, points)], None).unwrap();
}

fn stage_points(array: &Array, points: std::ops::Range<i64>) -> Staged {
    let (x, v) = (longs(points.clone()), longs(points.map(noise)));
    let data =
        CellData { dims: vec![x.view()], attrs: vec![("v".to_owned(), v.view())], sorted: false, dedup: Dedup::Error };
    array.stage_cells(data, &Call::default()).unwrap()
}

fn read(array: &Array, ranges: &[(i64, i64)]) -> (Cells, CounterSnapshot) {
    let (cells, _, counters) = array.read(Some(&sub(ranges)), None, ReadOrder::Row, &Call::default()).unwrap();
    (cells, counters)
}

fn values(cells: &Cells) -> Vec<i64> {
    cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect()
}

/// The data files that were touched.
fn files(counting: &CountingStorage) -> Vec<String> {
    counting.snapshot().touched.into_iter().filter(|name| name.starts_with("_data/")).collect()
}

/// What a consolidation took out is named in its record; the next opening does not decode it.
#[test]
fn opening_after_a_consolidation_reads_no_long_record() {
    let (storage, array) = create(POINTS);
    for i in 0..1_000 {
        write_points(&array, i..i + 1);
    }
    let report = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!((report.after, array.version()), (1, 1_003), "one merge, then the list of fragments");
    let (counting, opened) = counted(&storage);
    let counts = counting.snapshot();
    assert_eq!(opened.version(), 1_003);
    // The long record has more than 100,000 bytes; looking for the newest version reads the first 65,536 of it.
    assert!(counts.bytes_read <= 97_000, "{} bytes were read", counts.bytes_read);
    assert_eq!(values(&read(&opened, &[(0, 9_999)]).0), (0..1_000).map(noise).collect::<Vec<_>>());
    // A short list stays as it is, however much the cells weigh that came meanwhile.
    for i in 0..20 {
        write_points(&array, i * 100..i * 100 + 1_000);
    }
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!(array.version(), 1_024);
}

/// The merges count, whether the list of what they took out can be packed or not.
#[test]
fn a_list_that_cannot_be_packed_is_no_failure() {
    let (storage, array) = create(POINTS);
    for i in 0..500 {
        write_points(&array, i..i + 1);
    }
    // From here on a fold is due long after the merge, whose cells go into its record: what is created is the list.
    array.consolidate(&Strategy::Manifest, 1 << 30, false, &Call::default()).unwrap();
    let plan = FaultPlan::new();
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(storage.clone()), plan.clone()));
    let Opened::Array(array) = open_on(&context(), faulty, "/", true, At::Latest).unwrap() else { panic!("a group") };
    plan.fail_nth_of(Operation::Create, 1, Fault::Error);
    let report = array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert!(plan.struck());
    assert_eq!((report.after, report.merges.len(), array.version()), (1, 1, 503));
    let (_, opened) = counted(&storage);
    assert_eq!(values(&read(&opened, &[(0, 9_999)]).0), (0..500).map(noise).collect::<Vec<_>>());
}

#[test]
fn opening_after_a_thousand_commits_reads_a_bounded_number_of_objects() {
    let (storage, array) = create(POINTS);
    for i in 0..1_000 {
        write_points(&array, i..i + 1);
    }
    assert_eq!(array.version(), 1_001);
    let (counting, array) = counted(&storage);
    let counts = counting.snapshot();
    let objects = counts.reads.len() as u64;
    assert!(objects <= limits::FOLD_VERSIONS + 4, "{objects} objects were read");
    assert!(counts.count(Operation::Exists) <= 32, "{} probes", counts.count(Operation::Exists));
    assert_eq!(counts.count(Operation::List), 0, "opening lists nothing");
    // A record with one cell takes about a kilobyte, the root less than that per page.
    assert!(counts.bytes_read <= 200_000, "{} bytes were read", counts.bytes_read);
    counting.reset();
    let (cells, _) = read(&array, &[(0, 9_999)]);
    assert_eq!(values(&cells), (0..1_000).map(noise).collect::<Vec<_>>());
    let touched = counting.snapshot().touched.len() as u64;
    assert!(
        touched <= limits::FOLD_VERSIONS + 20,
        "{touched} objects for a thousand fragments: packs, a page, records"
    );
    counting.reset();
    let (again, counters) = read(&array, &[(0, 9_999)]);
    assert_eq!((again.count, counting.snapshot().total()), (1_000, 0), "all of it is in the cache");
    assert_eq!((counters.bytes_fetched, counters.overlay_entries), (0, 1_000));
}

#[test]
fn opening_a_hundred_thousand_fragments_reads_a_bounded_number_of_objects_and_bytes() {
    let (storage, array) = create(&POINTS.replace("\"9999\"", "\"99999\""));
    for part in 0..100 {
        let staged = (part * 1_000..(part + 1) * 1_000).map(|x| stage_points(&array, x..x + 1)).collect();
        array.commit(staged, None).unwrap();
    }
    let (counting, array) = counted(&storage);
    let opened = counting.snapshot();
    // Records of a thousand fragments are large, so that they are folded by their bytes long before their number.
    let record = 1_000 * 2_048;
    // Of ten records that may follow the hint, those that are there, the start is read.
    assert!(opened.reads.len() as u64 <= limits::FOLD_BYTES / record + 14, "{:?}", opened.reads);
    assert!(opened.bytes_read <= limits::FOLD_BYTES + 2 * record, "{} bytes were read", opened.bytes_read);
    assert!(opened.count(Operation::Exists) <= 32 && opened.count(Operation::List) == 0, "{:?}", opened.operations);
    counting.reset();
    let (cells, counters) = read(&array, &[(41_777, 41_777)]);
    assert_eq!(values(&cells), [noise(41_777)]);
    let one = counting.snapshot();
    let page = (limits::PAGE_FRAGMENTS_MAX * 128) as u64;
    assert!(
        one.reads.len() <= 2 && one.bytes_read <= page,
        "a page and a pack: {:?}, {} bytes",
        one.reads,
        one.bytes_read
    );
    assert_eq!((counters.fragments_considered, counters.cells_returned), (1, 1));
    assert_eq!(array.fragments().unwrap().len(), 100_000);
}

#[test]
fn a_box_that_one_fragment_serves_touches_that_fragment_alone() {
    // Each too large for a log record, and each in a file of its own.
    let (storage, array) = create(&POINTS.replace("\"9999\"", "\"99999\""));
    for part in 0..4 {
        write_points(&array, part * 25_000..(part + 1) * 25_000);
    }
    let listed = array.fragments().unwrap();
    assert!(listed.iter().all(|f| !f.inline));
    let (counting, array) = counted(&storage);
    counting.reset();
    let (cells, counters) = read(&array, &[(25_100, 25_199)]);
    assert_eq!(values(&cells), (25_100..25_200).map(noise).collect::<Vec<_>>());
    assert_eq!(files(&counting), [format!("_data/{}.frag", listed[1].id)]);
    assert_eq!((counters.fragments_touched, counters.tiles_read, counters.cells_returned), (1, 1, 100));
    assert_eq!(counters.cells_merged, 0, "one fragment alone is not merged");
    // One tile of coordinates and values, the index, and the end of the file.
    let bytes = counting.snapshot().bytes_read;
    assert!(bytes < listed[1].bytes / 2, "{bytes} of {} bytes", listed[1].bytes);
}

#[test]
fn what_a_newer_fragment_covers_is_not_fetched() {
    let (storage, array) = create(GRID);
    write_box(&array, &[(0, 999), (0, 999)], 0);
    write_box(&array, &[(0, 999), (0, 999)], 7_000_000);
    let listed = array.fragments().unwrap();
    let (counting, array) = counted(&storage);
    counting.reset();
    let (cells, counters) = read(&array, &[(100, 199), (0, 999)]);
    assert_eq!(values(&cells), (7_100_000..7_200_000).map(noise).collect::<Vec<_>>());
    let old = format!("_data/{}.frag", listed[0].id);
    let counts = counting.snapshot();
    // The new one holds the whole box: the old one is not even opened.
    assert_eq!(counts.reads.get(&old), None, "{:?}", counts.reads);
    // Seven blocks of 16 rows, each in whole chunks of 4 KiB.
    let needed = 112 * 1_000 * 8 + 7 * 2 * 4_096;
    assert!(counts.bytes_read < needed + 200_000, "{} bytes were read, {needed} are needed", counts.bytes_read);
    assert!(counters.bytes_fetched <= needed && counters.blocks_decoded == 7, "{counters:?}");
    // Of a box that goes beyond both the index of the old one may be looked at, its cells (8 MB) not.
    counting.reset();
    let (_, counters) = read(&array, &[(990, 1_009), (0, 999)]);
    let counts = counting.snapshot();
    assert!(counts.reads.get(&old).copied().unwrap_or(0) <= 2, "{:?}", counts.reads);
    assert!(counters.tiles_shadowed > 0 && counts.bytes_read < 500_000, "{counters:?}, {} bytes", counts.bytes_read);
}

#[test]
fn one_chunk_of_a_large_tile_is_fetched_alone() {
    let (storage, array) = create(GRID);
    write_box(&array, &[(0, 1_999), (0, 999)], 0);
    let (counting, array) = counted(&storage);
    read(&array, &[(1_999, 1_999), (999, 999)]);
    counting.reset();
    let (cells, counters) = read(&array, &[(517, 517), (3, 5)]);
    assert_eq!(values(&cells), (517_003..517_006).map(noise).collect::<Vec<_>>());
    // Blocks of a 1000 x 1000 tile are 16 rows of 1000 cells: 128,000 bytes, of which one chunk of 4 KiB holds the cells.
    assert_eq!((counters.blocks_decoded, counters.bytes_fetched), (1, 4_096));
    // The index of the tile's stripe was not needed before; the chunk is all else.
    assert!(
        counting.snapshot().bytes_read <= counters.bytes_fetched + 60_000,
        "{} bytes",
        counting.snapshot().bytes_read
    );
    counting.reset();
    let (_, again) = read(&array, &[(517, 517), (3, 5)]);
    assert_eq!(again.bytes_fetched, counters.bytes_fetched);
    assert_eq!(
        counting.snapshot().bytes_read,
        counters.bytes_fetched,
        "the index is in the cache, the chunk is read again"
    );
    assert_eq!(counting.snapshot().requests, 1);
}

#[test]
fn a_second_read_through_a_context_fetches_less() {
    let (storage, array) = create(&POINTS.replace("\"9999\"", "\"99999\""));
    write_points(&array, 0..50_000);
    write_points(&array, 60_000..60_100);
    let (counting, array) = counted(&storage);
    counting.reset();
    let (first, _) = read(&array, &[(49_000, 60_050)]);
    let cold = counting.snapshot();
    counting.reset();
    let (second, _) = read(&array, &[(49_000, 60_050)]);
    let warm = counting.snapshot();
    assert_eq!((first.count, values(&first)), (1_051, values(&second)));
    assert!(warm.bytes_read < cold.bytes_read && warm.requests < cold.requests, "{warm:?} after {cold:?}");
    assert_eq!(warm.count(Operation::Open), 0);
}

/// The cells that were written one by one lie on two attributes that are delivered and on one that is painted.
#[test]
fn an_overlay_entry_counts_once_on_however_many_attributes() {
    let dims = r#"{"name":"y","dtype":"int64","domain":["0","199"],"tile":"50"},{"name":"x","dtype":"int64","domain":["0","999"]}"#;
    let attrs =
        r#"{"name":"a","dtype":"int64"},{"name":"b","dtype":"int64"},{"name":"c","dtype":"int64","nullable":true}"#;
    let (_, array) = create(&format!(r#"{{"dims":[{dims}],"attrs":[{attrs}]}}"#));
    let whole = longs((0..200_000).map(noise));
    let data = vec![("a".to_owned(), whole.view())];
    let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let places = longs((0..100).map(|i| i * 2));
    let dims = vec![places.view(), places.view()];
    let attrs = ["a", "b"].map(|name| (name.to_owned(), places.view())).to_vec();
    let cells = CellData { dims, attrs, sorted: false, dedup: Dedup::Error };
    array.commit(vec![array.stage_cells(cells, &Call::default()).unwrap()], None).unwrap();
    for asked in [vec!["a"], vec!["b"], vec!["a", "b"], vec!["a", "b", "c"]] {
        let names: Vec<String> = asked.iter().map(|name| (*name).to_owned()).collect();
        let ranges = sub(&[(0, 199), (0, 999)]);
        let (_, _, counters) = array.read(Some(&ranges), Some(&names), ReadOrder::Row, &Call::default()).unwrap();
        assert_eq!(counters.overlay_entries, 100, "{asked:?}");
    }
}

/// What has to be decoded decides, not what is returned.
#[test]
fn a_read_is_quick_if_it_decodes_little_of_fixed_width() {
    let wide = |attrs: &str| {
        let dims = r#"{"name":"y","dtype":"int64","domain":["0","9999"],"tile":"1"},
            {"name":"x","dtype":"int64","domain":["0","16383"],"tile":"16384"}"#;
        create(&format!(r#"{{"dims":[{dims}],"attrs":[{attrs}]}}"#)).1
    };
    let long = r#"{"name":"v","dtype":"int64"}"#;
    let array = wide(long);
    assert!(array.is_quick(Some(&sub(&[(5, 14), (100, 199)]))), "ten blocks");
    assert!(!array.is_quick(Some(&sub(&[(0, 9_999), (7, 7)]))), "a column: 10,000 cells in as many blocks");
    assert!(!array.is_quick(None), "all");
    let texts = wide(&format!(r#"{long},{{"name":"s","dtype":"string"}}"#));
    assert!(!texts.is_quick(Some(&sub(&[(5, 5), (100, 100)]))), "a text may be of any length");
    let (_, sparse) = create(POINTS);
    assert!(!sparse.is_quick(Some(&sub(&[(5, 5)]))), "nobody knows how many cells are there");
}

/// A sparse array of two dimensions over all of int64, with these cells written.
fn wide(columns: [Column; 3]) -> Array {
    let domain = format!(r#""dtype":"int64","domain":["{}","{}"]"#, i64::MIN, i64::MAX);
    let (_, array) = create(&format!(
        r#"{{"sparse":true,"capacity":1000,"dims":[{{"name":"x",{domain}}},{{"name":"y",{domain}}}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#
    ));
    let dims = columns[..2].iter().map(Column::view).collect();
    let data = CellData { dims, attrs: vec![("v".to_owned(), columns[2].view())], sorted: false, dedup: Dedup::Error };
    let staged = array.stage_cells(data, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    array
}

/// Reads all in small batches; gives cells, batches, and what it took.
fn stream(array: &Array, order: ReadOrder, batch_bytes: u64, cells_max: usize) -> (usize, usize, CounterSnapshot) {
    let mut scan = array.scan(None, None, order, batch_bytes, &Call::default()).unwrap();
    let (mut found, mut batches) = (0, 0);
    while let Some(batch) = scan.next_batch().unwrap() {
        assert!(batch.count <= cells_max, "a batch of {} cells", batch.count);
        found += batch.count;
        batches += 1;
    }
    let counters = scan.counters().snapshot();
    assert_eq!(counters.cells_returned, found as u64);
    (found, batches, counters)
}

/// Row- and column-ordered streams re-read what several slabs touch; the number of slabs follows the batches, not the
/// coordinates.
#[test]
fn a_stream_in_another_order_cuts_few_slabs() {
    let array = wide([0, 1, 2].map(|c| longs((0..10_000).map(|i| noise(3 * i + c)))));
    for order in [ReadOrder::Row, ReadOrder::Col] {
        // 40 bytes or less per cell: batches of at most 2 x 500 to 850 cells.
        let (found, batches, counters) = stream(&array, order, 20_000, 1_700);
        assert_eq!(found, 10_000);
        assert!(batches <= 40, "{batches} batches");
        // Ten blocks of three columns, touched by every slab if the order is another one.
        let slabs_max = if order == ReadOrder::Row { 10 } else { 80 };
        assert!(
            counters.blocks_decoded <= slabs_max * 30,
            "{order:?}: {} blocks were decoded",
            counters.blocks_decoded
        );
    }
}

/// A few cells in a wide domain are found without halving the domain bit by bit.
#[test]
fn a_stream_of_few_cells_looks_at_few_slabs() {
    let far = |i: i64| if i % 2 == 0 { i - 9_000_000_000 } else { i + 7_000_000_000_000 };
    let array = wide([longs((0..40).map(|i| i / 8)), longs((0..40).map(far)), longs(0..40)]);
    for order in [ReadOrder::Row, ReadOrder::Col] {
        let (found, batches, counters) = stream(&array, order, 1, 2);
        assert_eq!(found, 40);
        // One fragment: it is considered once per slab that is looked at.
        let slabs = counters.fragments_considered as usize;
        assert!(slabs <= 4 * batches, "{slabs} slabs for {batches} batches in {order:?}");
    }
}

/// The index of a dense fragment of 80 MB lies in two stripes: a cell of the last tile needs the shorter one.
#[test]
fn a_cell_of_a_large_dense_fragment_reads_a_part_of_its_index() {
    let (storage, array) = create(
        r#"{"dims":[{"name":"y","dtype":"int64","domain":["0","9999"],"tile":"1000"},
        {"name":"x","dtype":"int64","domain":["0","999"]}],"attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#,
    );
    write_box(&array, &[(0, 9_999), (0, 999)], 0);
    let fetched = |row: i64| {
        let (counting, reader) = counted(&storage);
        counting.reset();
        assert_eq!(values(&read(&reader, &[(row, row), (7, 7)]).0), [noise(row * 1_000 + 7)]);
        counting.snapshot().bytes_read
    };
    // The end of the file, a chunk, and 8.6 KB of index for each tile of the stripe: eight, or two.
    let (first, last) = (fetched(5), fetched(9_995));
    assert!(first > 64 * 1024 + 8 * 8_000 && last < 64 * 1024 + 30_000, "{first} {last}");
}
