//! Promise: more cells than memory holds are loaded in any order, in one commit, as if they had been written at once; what
//! was needed for it is gone afterwards, also when it fails.

use crate::support::columns::longs;
use crate::support::dense::{created, noise, schema};
use gridstone::base::ErrorKind;
use gridstone::engine::{
    Array, Call, CellData, Column, Context, Dedup, Isolation, Options, ReadOrder, Staged, Transaction, create_array_on,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{Durability, LocalStorage, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;

const BUDGET: u64 = 4 << 20;

fn cells_schema(duplicates: bool) -> Schema {
    Schema::from_json(&format!(
        r#"{{"sparse":true,"duplicates":{duplicates},"capacity":1000,
        "dims":[{{"name":"x","dtype":"int64","domain":["0","9999"],"tile":"100"}},
        {{"name":"y","dtype":"int64","domain":["0","9999"],"tile":"100"}}],
        "attrs":[{{"name":"v","dtype":"int64"}},{{"name":"w","dtype":"int64"}}]}}"#
    ))
    .unwrap()
}

type Cell = (i64, i64, i64);

/// Cells anywhere below `side`, numbered; some lie at one place.
fn cells(count: i64, side: i64) -> Vec<Cell> {
    (0..count).map(|i| (noise(i).rem_euclid(side), noise(i * 7 + 3).rem_euclid(side), i)).collect()
}

fn columns(cells: &[Cell]) -> [Column; 3] {
    [longs(cells.iter().map(|c| c.0)), longs(cells.iter().map(|c| c.1)), longs(cells.iter().map(|c| c.2))]
}

/// Streams cells in portions of uneven size.
fn streamed(array: &Array, cells: &[Cell], dedup: Dedup) -> gridstone::base::Result<Staged> {
    let mut writer = array.unsorted_writer(None, dedup)?;
    let (mut rest, mut size) = (cells, 1);
    while !rest.is_empty() {
        let (portion, later) = rest.split_at(size.min(rest.len()));
        let [x, y, v] = columns(portion);
        writer.append(&Call::default(), &[x.view(), y.view()], &[v.view(), v.view()])?;
        (rest, size) = (later, size * 3 % 40_009 + 1);
    }
    writer.finish(&Call::default())
}

/// The cells in row order, with those of one place in the order of writing.
fn read(array: &Array) -> Vec<Cell> {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let long =
        |c: &Column| c.view().values().as_chunks::<8>().0.iter().map(|b| i64::from_le_bytes(*b)).collect::<Vec<_>>();
    let (x, y, v, w) = (long(&cells.dims[0]), long(&cells.dims[1]), long(&cells.attrs[0]), long(&cells.attrs[1]));
    assert_eq!(v, w);
    (0..cells.count).map(|i| (x[i], y[i], v[i])).collect()
}

#[test]
fn more_than_memory_is_loaded_as_if_at_once() {
    // 400,000 cells of 32 bytes: three times the budget, in twenty-five runs and more.
    let given = cells(400_000, 2_000);
    let rules = [(true, Dedup::Error), (true, Dedup::First), (true, Dedup::Last)];
    for (duplicates, dedup) in rules.into_iter().chain([(false, Dedup::First), (false, Dedup::Last)]) {
        let (array, storage) = created(cells_schema(duplicates), BUDGET);
        let staged = streamed(&array, &given, dedup).unwrap();
        assert_eq!(
            storage.list("_data").unwrap().len(),
            1,
            "runs are still there, or the cells are not in one fragment"
        );
        let version = array.version();
        assert_eq!(array.commit(vec![staged], None).unwrap(), version + 1);
        let mut expected = given.clone();
        expected.sort_by_key(|c| (c.0, c.1));
        if dedup != Dedup::Error {
            let mut kept: BTreeMap<(i64, i64), i64> = BTreeMap::new();
            for (x, y, v) in &given {
                let slot = kept.entry((*x, *y)).or_insert(*v);
                *slot = if dedup == Dedup::Last { *v } else { *slot };
            }
            expected = kept.into_iter().map(|((x, y), v)| (x, y, v)).collect();
            assert!(expected.len() < 395_000, "some places are taken twice");
        }
        assert!(read(&array) == expected, "{duplicates} {dedup:?}");
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

#[test]
fn its_memory_is_bounded_by_the_budget() {
    let (array, _) = created(cells_schema(true), BUDGET);
    let staged = streamed(&array, &cells(400_000, 10_000), Dedup::Error).unwrap();
    assert!(array.context().peak_bytes() <= BUDGET, "{}", array.context().peak_bytes());
    assert_eq!(staged.cells(), 400_000);
}

#[test]
fn a_cell_in_two_runs_is_named_and_nothing_is_left() {
    let (array, storage) = created(cells_schema(false), BUDGET);
    // Each place once, but for one: in the first run and in the last.
    let mut given: Vec<Cell> = (0..200_000).map(|i| (i % 2_000, i / 2_000 * 7, i)).collect();
    given.push((1_234, 0, -1));
    let error = streamed(&array, &given, Dedup::Error).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Input);
    assert!(error.message().contains("(x=1234, y=0)"), "{error}");
    assert_eq!(storage.list("_data").unwrap(), Vec::<String>::new());
    given.pop();
    assert_eq!(streamed(&array, &given, Dedup::Error).unwrap().cells(), 200_000);
}

#[test]
fn what_is_wrong_is_named_before_it_is_taken_and_an_aborted_load_leaves_nothing() {
    let (array, storage) = created(cells_schema(true), BUDGET);
    let mut writer = array.unsorted_writer(None, Dedup::Error).unwrap();
    for portion in cells(200_000, 10_000).chunks(50_000) {
        let [x, y, v] = columns(portion);
        writer.append(&Call::default(), &[x.view(), y.view()], &[v.view(), v.view()]).unwrap();
    }
    assert!(!storage.list("_data").unwrap().is_empty(), "nothing was spilled");
    let [x, y, v] = columns(&[(1, 1, 1), (5, 10_000, 1)]);
    let error = writer.append(&Call::default(), &[x.view(), y.view()], &[v.view(), v.view()]).unwrap_err();
    assert!(error.message().contains("row 1") && error.message().contains("10000"), "{error}");
    assert_eq!(storage.list("_data").unwrap(), Vec::<String>::new());
    assert_eq!(writer.finish(&Call::default()).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(array.fragments().unwrap().len(), 0);
}

/// Writes cells that are said to be in order.
fn in_order(array: &Array, cells: &[Cell], dedup: Dedup) -> gridstone::base::Result<Staged> {
    let [x, y, v] = columns(cells);
    let attrs = ["v", "w"].map(|name| (name.to_owned(), v.view())).to_vec();
    array.stage_cells(CellData { dims: vec![x.view(), y.view()], attrs, sorted: true, dedup }, &Call::default())
}

/// Cells in global order: by space tiles of 100 x 100, then by place.
fn ordered_cells(count: i64, side: i64) -> Vec<Cell> {
    let mut all = cells(count, side);
    all.sort_by_key(|c| (c.0 / 100, c.1 / 100, c.0, c.1));
    all
}

#[test]
fn cells_in_order_are_written_as_they_come_within_the_budget() {
    let given = ordered_cells(400_000, 2_000);
    let mut once = given.clone();
    once.dedup_by_key(|c| (c.0, c.1));
    let repeated =
        [(true, Dedup::Error), (true, Dedup::First), (true, Dedup::Last), (false, Dedup::First), (false, Dedup::Last)];
    let repeated = repeated.map(|(duplicates, dedup)| (duplicates, dedup, &given));
    for (duplicates, dedup, given) in repeated.into_iter().chain([(false, Dedup::Error, &once)]) {
        let (small, storage) = created(cells_schema(duplicates), BUDGET);
        let (large, _) = created(cells_schema(duplicates), 1 << 30);
        for array in [&small, &large] {
            array.commit(vec![in_order(array, given, dedup).unwrap()], None).unwrap();
        }
        assert_eq!(storage.list("_data").unwrap().len(), 1);
        assert!(read(&small) == read(&large), "{duplicates} {dedup:?}");
        assert!(small.context().peak_bytes() <= BUDGET, "{}", small.context().peak_bytes());
        assert!(large.context().peak_bytes() > 4 * BUDGET, "the large one did it at once");
    }
}

/// Runs of cells at one place lie across the ends of portions, wherever these are.
#[test]
fn of_many_cells_at_one_place_one_is_taken_across_portions() {
    let given: Vec<Cell> = (0..200_000).map(|i| (i / 4_999, 0, i)).collect();
    for (dedup, expected) in [(Dedup::First, 0), (Dedup::Last, 4_998)] {
        let (array, _) = created(cells_schema(false), BUDGET);
        array.commit(vec![in_order(&array, &given, dedup).unwrap()], None).unwrap();
        let expected: Vec<Cell> = (0..41).map(|x| (x, 0, (x * 4_999 + expected).min(199_999))).collect();
        assert!(read(&array) == expected, "{dedup:?}");
    }
}

#[test]
fn what_is_wrong_with_cells_in_order_is_told_by_row_and_as_of_a_write_at_once() {
    let mut given: Vec<Cell> = ordered_cells(300_000, 9_000);
    given.dedup_by_key(|c| (c.0, c.1));
    // Of 64 KiB of keys and more portions begin at these rows, and at 1, which is no border.
    for row in [1, 4_096, 6_553, 6_554, 8_192, 16_384, 200_000, given.len() - 1] {
        for (later, wrong) in
            [(false, given[row - 1]), (true, given[row - 1]), (false, (0, 0, 1)), (false, (9_000, 10_000, 1))]
        {
            let mut bad = given.clone();
            bad[row] = wrong;
            if later && row + 2 < bad.len() {
                // A row that is out of order is named before two that are one cell.
                let last = bad.len() - 1;
                bad[last] = (0, 0, 7);
            }
            let told = [BUDGET, 1 << 30].map(|budget| {
                let (array, storage) = created(cells_schema(false), budget);
                let error = in_order(&array, &bad, Dedup::Error).unwrap_err();
                assert_eq!(storage.list("_data").unwrap(), Vec::<String>::new());
                (error.kind(), error.to_string())
            });
            assert_eq!(told[0], told[1], "row {row}");
            let named = if later && row + 2 < bad.len() { bad.len() - 1 } else { row };
            assert!(told[0].1.contains(&format!("{named}")), "{} does not name row {named}", told[0].1);
        }
    }
}

/// Coordinates come before values, values before the order.
#[test]
fn of_several_things_wrong_the_one_is_told_that_a_write_at_once_tells() {
    let mut given: Vec<Cell> = ordered_cells(300_000, 9_000);
    given.dedup_by_key(|c| (c.0, c.1));
    given[100_000] = (0, 0, 1);
    for (outside, short) in [(true, true), (false, true), (true, false), (false, false)] {
        let mut bad = given.clone();
        bad[200_000].1 += if outside { 10_000 } else { 0 };
        let [x, y, v] = columns(&bad);
        let fewer = v.view().copy_range(0, if short { 299 } else { bad.len() });
        let told = [BUDGET, 1 << 30].map(|budget| {
            let (array, storage) = created(cells_schema(false), budget);
            let attrs = ["v", "w"].map(|name| (name.to_owned(), fewer.view())).to_vec();
            let data = CellData { dims: vec![x.view(), y.view()], attrs, sorted: true, dedup: Dedup::Error };
            let error = array.stage_cells(data, &Call::default()).unwrap_err();
            assert_eq!(storage.list("_data").unwrap(), Vec::<String>::new());
            error.to_string()
        });
        assert_eq!(told[0], told[1]);
        let named = [(outside, "row 200000"), (short, "299"), (true, "row 100000 comes before")];
        let first = named.iter().find(|(is, _)| *is).unwrap().1;
        assert!(told[0].contains(first), "{} does not tell {first}", told[0]);
    }
}

/// How many files of a folder this process holds open that are deleted.
#[cfg(target_os = "linux")]
pub(crate) fn open_but_gone(folder: &std::path::Path) -> usize {
    let links = std::fs::read_dir("/proc/self/fd").unwrap().filter_map(|fd| std::fs::read_link(fd.ok()?.path()).ok());
    links.filter(|link| link.starts_with(folder) && link.to_string_lossy().ends_with("(deleted)")).count()
}

#[cfg(target_os = "linux")]
#[test]
fn files_that_go_are_not_held_open() {
    let folder = crate::support::scratch::Folder::new("unsorted");
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(folder.path(), Durability::Close).unwrap());
    let options = Options { threads: Some(2), memory_budget: BUDGET, ..Options::default() };
    let context = Context::new(&options).unwrap();
    let array = create_array_on(&context, storage, "/", cells_schema(false), false).unwrap();
    let staged = streamed(&array, &cells(200_000, 10_000), Dedup::Last).unwrap();
    array.commit(vec![staged], None).unwrap();
    assert_eq!(open_but_gone(folder.path()), 0, "runs are gone, and their room is not free");
    assert!(read(&array).len() > 199_000);
}

/// What was begun under one schema is written under it, whatever becomes of the array meanwhile.
#[test]
fn a_load_goes_on_while_the_schema_changes() {
    let (array, _) = created(cells_schema(false), BUDGET);
    let given = cells(150_000, 10_000);
    let mut writer = array.unsorted_writer(None, Dedup::Last).unwrap();
    for (number, portion) in given.chunks(50_000).enumerate() {
        let [x, y, v] = columns(portion);
        writer.append(&Call::default(), &[x.view(), y.view()], &[v.view(), v.view()]).unwrap();
        if number == 1 {
            let added = Attribute::new("z", Datatype::Int64, false, Some("7"), "auto").unwrap();
            array.alter(&Evolution { add: vec![added], ..Evolution::default() }, None).unwrap();
        }
    }
    let staged = writer.finish(&Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    let (found, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    assert!(found.count > 149_000 && found.attrs.len() == 3, "{} cells", found.count);
    assert!(found.attrs[2].view().values().as_chunks::<8>().0.iter().all(|b| i64::from_le_bytes(*b) == 7));
}

/// A transaction's handles all see what is staged in it, the writer's too: of cells that are kept as runs, and of those that are merged.
#[test]
fn a_load_in_a_transaction_keeps_the_schema_that_it_began_with() {
    for (duplicates, count) in [(true, 60_000), (false, 150_000)] {
        let (array, storage) = created(cells_schema(duplicates), BUDGET);
        let transaction = Transaction::begin_on(array.context(), storage, Isolation::Snapshot).unwrap();
        let inside = transaction.array("/").unwrap();
        let mut writer = inside.unsorted_writer(None, Dedup::Error).unwrap();
        let given: Vec<Cell> = (0..count).map(|i| (i % 10_000, i / 10_000 * 7, i)).collect();
        for (number, portion) in given.chunks(20_000).enumerate() {
            if number == 1 {
                let evolution = Evolution { drop: vec!["w".to_owned()], ..Evolution::default() };
                inside.alter(&evolution, None).unwrap();
            }
            let [x, y, v] = columns(portion);
            writer.append(&Call::default(), &[x.view(), y.view()], &[v.view(), v.view()]).unwrap();
        }
        let staged = writer.finish(&Call::default()).unwrap();
        inside.commit(vec![staged], None).unwrap();
        transaction.commit(None).unwrap();
        array.refresh().unwrap();
        assert!(duplicates == (array.fragments().unwrap().len() > 1), "duplicates are kept as runs");
        let (found, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
        assert_eq!((found.count as i64, found.attrs.len()), (count, 1), "duplicates {duplicates}");
        assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

#[test]
fn a_small_stream_is_one_small_fragment_and_an_empty_one_none() {
    let (array, storage) = created(cells_schema(false), BUDGET);
    let staged = streamed(&array, &[(3, 4, 5), (1, 2, 3)], Dedup::Error).unwrap();
    array.commit(vec![staged], None).unwrap();
    assert_eq!((read(&array), storage.list("_data").unwrap().len()), (vec![(1, 2, 3), (3, 4, 5)], 0));
    assert_eq!(streamed(&array, &[], Dedup::Error).unwrap().cells(), 0);
}

/// The paper's random updates of a dense array, more of them than memory holds.
#[test]
fn cells_go_into_a_dense_array_too() {
    let given = cells(150_000, 320);
    let [arrays, expected] = [true, false].map(|stream| {
        let (array, _) = created(schema(320, 32, false), BUDGET);
        let staged = if stream {
            streamed(&array, &given, Dedup::Last).unwrap()
        } else {
            let [x, y, v] = columns(&given);
            let attrs = vec![("v".to_owned(), v.view()), ("w".to_owned(), v.view())];
            let data = CellData { dims: vec![x.view(), y.view()], attrs, sorted: false, dedup: Dedup::Last };
            array.stage_cells(data, &Call::default()).unwrap()
        };
        array.commit(vec![staged], None).unwrap();
        crate::support::dense::read(&array)
    });
    assert!(arrays == expected);
}
