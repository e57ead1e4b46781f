//! Promise: cells beyond the domain make it grow in their own commit, whatever else grows it meanwhile; a block that is
//! appended lies behind all that were committed before it.

use crate::support::columns::longs;
use crate::support::dense::noise;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Appended, Array, Call, CellData, Column, CommitKey, Condition, Context, Dedup, Isolation, Naming, Opened, Options,
    ReadOrder, Strategy, Transaction, commit_receipts_on, create_array_on, open_on, verify_on,
};
use gridstone::engine::{At, Receipt};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::collections::BTreeMap;
use std::sync::Arc;

const BUDGET: u64 = 4 << 20;
const ROWS: &str = r#"{"dims":[{"name":"t","dtype":"int64","domain":["10","15"],"tile":"4"},
    {"name":"x","dtype":"int64","domain":["0","2"],"tile":"2"}],"attrs":[{"name":"v","dtype":"int64","fill":"-1"}]}"#;

fn context() -> Context {
    Context::new(&Options { threads: Some(2), memory_budget: BUDGET, ..Options::default() }).unwrap()
}

fn created(json: &str) -> (Array, Arc<dyn Storage>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = Schema::from_json(json).unwrap();
    (create_array_on(&context(), storage.clone(), "/", schema, false).unwrap(), storage)
}

fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

fn field(order: &str, duplicates: bool) -> String {
    format!(
        r#"{{"sparse":true,"duplicates":{duplicates},"capacity":100,"cell_order":"{order}",
        "dims":[{{"name":"x","dtype":"int64","domain":["0","99"],"tile":"7"}},
        {{"name":"y","dtype":"int64","domain":["0","99"]}}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#
    )
}

fn growing() -> Call {
    Call::default().growing(true)
}

fn data<'a>(columns: &'a [Column; 3], dedup: Dedup) -> CellData<'a> {
    let [x, y, v] = columns;
    CellData { dims: vec![x.view(), y.view()], attrs: vec![("v".to_owned(), v.view())], sorted: false, dedup }
}

fn columns(cells: &[[i64; 3]]) -> [Column; 3] {
    [0, 1, 2].map(|at| longs(cells.iter().map(|cell| cell[at])))
}

fn write(array: &Array, cells: &[[i64; 3]], call: &Call) -> Result<u64> {
    let columns = columns(cells);
    array.commit(vec![array.stage_cells(data(&columns, Dedup::Error), call)?], None)
}

fn numbers(column: &Column) -> Vec<i64> {
    column.view().values().as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

fn read(array: &Array) -> BTreeMap<[i64; 2], i64> {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    let (dims, v) = ([numbers(&cells.dims[0]), numbers(&cells.dims[1])], numbers(&cells.attrs[0]));
    (0..cells.count).map(|row| ([dims[0][row], dims[1][row]], v[row])).collect()
}

fn domain(array: &Array) -> Vec<(String, String)> {
    let schema = array.schema().unwrap();
    schema.ends(&schema.domain())
}

fn pair(low: i64, high: i64) -> (String, String) {
    (low.to_string(), high.to_string())
}

/// Cells that lie further off with every round, at both ends.
fn round(number: i64, count: i64) -> Vec<[i64; 3]> {
    let reach = 50 * (number + 1);
    let place = |i: i64, salt: i64| noise(i * 13 + salt + number * 1_000_003).rem_euclid(2 * reach) - reach;
    let mut all: BTreeMap<[i64; 2], i64> = BTreeMap::new();
    (0..count).for_each(|i| {
        all.insert([place(i, 1), place(i, 5)], i + number * 100_000);
    });
    all.into_iter().map(|([x, y], v)| [x, y, v]).collect()
}

#[test]
fn cells_anywhere_make_the_domain_grow_in_their_commit() {
    for order in ["row", "col", "hilbert"] {
        let (array, storage) = created(&field(order, false));
        let mut want = BTreeMap::new();
        for number in 0..6 {
            let cells = round(number, 300);
            write(&array, &cells, &growing()).unwrap();
            want.extend(cells.iter().map(|[x, y, v]| ([*x, *y], *v)));
            assert_eq!(read(&array), want, "{order}, round {number}");
        }
        let ends = |at: usize| (want.keys().map(|c| c[at]).min().unwrap(), want.keys().map(|c| c[at]).max().unwrap());
        let reached = |(low, high): (i64, i64)| pair(low.min(0), high.max(99));
        assert_eq!(domain(&array), [reached(ends(0)), reached(ends(1))], "no further than needed");
        array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
        assert_eq!(read(&opened(&storage)), want, "{order}, merged");
        assert!(verify_on(&context(), storage, &Call::default()).unwrap().damage.is_empty());
    }
}

/// Runs that were written before the domain reached further are merged with those after it.
#[test]
fn more_cells_than_memory_holds_make_it_grow_while_they_are_streamed() {
    for (order, duplicates) in [("row", false), ("hilbert", false), ("col", true)] {
        let (array, _) = created(&field(order, duplicates));
        let mut writer = array.unsorted_writer(None, Dedup::Last).unwrap().growing().unwrap();
        let mut want = BTreeMap::new();
        for number in 0..8 {
            let cells = round(number * 3, 12_000);
            let [x, y, v] = columns(&cells);
            writer.append(&Call::default(), &[x.view(), y.view()], &[v.view()]).unwrap();
            want.extend(cells.iter().map(|[x, y, v]| ([*x, *y], *v)));
        }
        let staged = writer.finish(&Call::default()).unwrap();
        assert!(read(&array).is_empty() && domain(&array) == [pair(0, 99), pair(0, 99)], "nothing before the commit");
        array.commit(vec![staged], None).unwrap();
        assert_eq!(read(&array), want, "{order}");
    }
}

#[test]
fn without_growth_a_cell_beyond_the_domain_is_refused_by_its_row() {
    let (array, _) = created(&field("row", false));
    let error = write(&array, &[[0, 0, 1], [-1, 5, 2]], &Call::default()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Bounds);
    assert!(error.message().contains("row 1") && error.message().contains("grow"), "{error}");
    let mut writer = array.unsorted_writer(None, Dedup::Error).unwrap();
    let [x, y, v] = columns(&[[100, 0, 1]]);
    writer.append(&Call::default(), &[x.view(), y.view()], &[v.view()]).unwrap_err();
}

/// Two loads with one base, and a receipt: the domain reaches as far as any of them.
#[test]
fn growth_side_by_side_does_not_conflict() {
    let (first, storage) = created(&field("row", false));
    let (second, third) = (opened(&storage), opened(&storage));
    let columns = columns(&[[-70, 40, 3]]);
    let receipt = third.receipt(vec![third.stage_cells(data(&columns, Dedup::Error), &growing()).unwrap()]).unwrap();
    let receipt = Receipt::from_json(&receipt.to_json().unwrap()).unwrap();
    write(&first, &[[500, 1, 1]], &growing()).unwrap();
    write(&second, &[[2, 900, 2]], &growing()).unwrap();
    commit_receipts_on(&context(), storage.clone(), &[receipt], None).unwrap();
    let newest = opened(&storage);
    assert_eq!(domain(&newest), [pair(-70, 500), pair(0, 900)]);
    assert_eq!(read(&newest), BTreeMap::from([([500, 1], 1), ([2, 900], 2), ([-70, 40], 3)]));
}

#[test]
fn a_transaction_stages_growth_and_a_key_commits_it_once() {
    let (array, storage) = created(&field("row", false));
    let tx = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let inside = tx.array("/").unwrap();
    write(&inside, &[[200, 200, 7]], &growing()).unwrap();
    assert_eq!((read(&inside).len(), read(&array).len()), (1, 0));
    tx.commit(None).unwrap();
    let key = CommitKey::new(b"load").unwrap();
    let keyed = growing().with_key(Some(key.clone()));
    let version = write(&opened(&storage), &[[-5, 3, 9]], &keyed).unwrap();
    assert_eq!(write(&opened(&storage), &[[-5, 3, 9]], &keyed).unwrap(), version);
    let stream = |array: &Array| {
        let writer = array.unsorted_writer(None, Dedup::Error)?.with_key(key.clone(), Naming::Id)?.growing()?;
        drop(writer);
        Ok::<(), gridstone::base::Error>(())
    };
    stream(&opened(&storage)).unwrap();
    assert_eq!(domain(&opened(&storage)), [pair(-5, 200), pair(0, 200)]);
}

fn block(count: i64, first: i64) -> Column {
    longs((0..count * 3).map(|i| first + i))
}

fn append(array: &Array, count: i64, first: i64, call: &Call) -> Result<u64> {
    let column = block(count, first);
    let data = vec![("v".to_owned(), column.view())];
    array.append(&Appended { axis: 0, count: count.unsigned_abs(), data, layout: Order::Row, labels: None }, None, call)
}

fn rows(array: &Array) -> Vec<i64> {
    let (cells, _, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    numbers(&cells.attrs[0])
}

/// The blocks in the order of their commits, behind six rows that nobody wrote.
fn stacked(blocks: &[(i64, i64)]) -> Vec<i64> {
    let written = blocks.iter().flat_map(|(count, first)| (0..count * 3).map(move |i| first + i));
    std::iter::repeat_n(-1, 18).chain(written).collect()
}

/// Every handle has seen the array before anything was appended.
#[test]
fn blocks_of_handles_with_one_base_follow_each_other() {
    let (_, storage) = created(ROWS);
    let handles: Vec<Array> = (0..6).map(|_| opened(&storage)).collect();
    let blocks: Vec<(i64, i64)> = [(4, 100), (8, 200), (1, 300), (3, 400), (2, 500), (5, 600)].to_vec();
    for (handle, (count, first)) in handles.iter().zip(&blocks) {
        append(handle, *count, *first, &Call::default()).unwrap();
    }
    let newest = opened(&storage);
    assert_eq!(rows(&newest), stacked(&blocks));
    assert_eq!(domain(&newest)[0], pair(10, 15 + 23));
    newest.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!(rows(&opened(&storage)), stacked(&blocks));
    assert!(verify_on(&context(), storage, &Call::default()).unwrap().damage.is_empty());
}

/// A block that lost its place by whole tiles is moved in its description, and not written again.
#[test]
fn a_block_moves_by_whole_tiles_without_being_written_again() {
    let (first, storage) = created(ROWS);
    let second = opened(&storage);
    let large = longs((0..3 * 60_000).map(noise));
    let whole = |array: &Array| {
        let data = vec![("v".to_owned(), large.view())];
        array
            .append(
                &Appended { axis: 0, count: 60_000, data, layout: Order::Row, labels: None },
                None,
                &Call::default(),
            )
            .unwrap()
    };
    append(&first, 8, 1_000, &Call::default()).unwrap();
    let before = storage.list("_data").unwrap().len();
    whole(&second);
    assert_eq!(storage.list("_data").unwrap().len(), before + 1, "one file was written, once");
    let (found, newest) = (numbers(&large), opened(&storage));
    assert_eq!(rows(&newest)[42..], found);
    newest.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!(rows(&opened(&storage))[42..], found);
}

#[test]
fn a_block_with_a_key_is_appended_once_wherever_it_came_to_lie() {
    let (array, storage) = created(ROWS);
    let keyed = Call::default().with_key(Some(CommitKey::new(b"frames-1").unwrap()));
    let version = append(&array, 2, 100, &keyed).unwrap();
    append(&opened(&storage), 3, 200, &Call::default()).unwrap();
    assert_eq!(append(&opened(&storage), 2, 100, &keyed).unwrap(), version);
    assert_eq!(append(&opened(&storage), 2, 101, &keyed).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(rows(&opened(&storage)), stacked(&[(2, 100), (3, 200)]));
}

/// Cells at `from` and nine behind it, written where a look found none: of two such transactions one commits.
#[test]
fn what_lies_beyond_the_domain_and_is_looked_for_is_read() {
    type Look = fn(&Array) -> usize;
    let looks: [Look; 3] = [
        |array| {
            let condition = Condition::parse("x > 99").unwrap();
            array.read_where(None, None, &condition, ReadOrder::Row, &Call::default()).unwrap().0.count
        },
        |array| read(array).len(),
        |array| {
            array.note_ends().unwrap();
            0
        },
    ];
    for (number, look) in looks.into_iter().enumerate() {
        for isolation in [Isolation::Snapshot, Isolation::Serializable] {
            let (_, storage) = created(&field("row", false));
            let both = [0i64, 1].map(|value| {
                let tx = Transaction::begin_on(&context(), storage.clone(), isolation).unwrap();
                let inside = tx.array("/").unwrap();
                assert_eq!(look(&inside), 0);
                let cells: Vec<[i64; 3]> = (100..110).map(|x| [x, 5, value]).collect();
                write(&inside, &cells, &growing()).unwrap();
                tx
            });
            both[0].commit(None).unwrap();
            let error = both[1].commit(None).expect_err(&format!("look {number}"));
            assert_eq!(error.kind(), ErrorKind::Conflict, "{error}");
            assert!(read(&opened(&storage)).values().all(|value| *value == 0));
        }
    }
}

/// A transaction has placed its block where it saw the end, so another append before its commit is a conflict.
#[test]
fn of_an_append_and_a_transaction_that_appends_the_first_commits() {
    let (array, storage) = created(ROWS);
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let before = rows(&opened(&storage)).len();
        let tx = Transaction::begin_on(&context(), storage.clone(), isolation).unwrap();
        append(&tx.array("/").unwrap(), 2, 100, &Call::default()).unwrap();
        append(&array, 1, 200, &Call::default()).unwrap();
        assert_eq!(tx.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
        assert_eq!(rows(&opened(&storage)).len(), before + 3, "one row of three cells");
    }
}

#[test]
fn what_cannot_be_appended_is_refused() {
    let (sparse, _) = created(&field("row", false));
    assert_eq!(append(&sparse, 1, 0, &Call::default()).unwrap_err().kind(), ErrorKind::Unsupported);
    let bytes = ROWS.replace("int64\",\"domain\":[\"10\",\"15\"]", "uint8\",\"domain\":[\"10\",\"250\"]");
    let (array, storage) = created(&bytes);
    let error = append(&array, 6, 0, &Call::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds && error.message().contains("has 5 coordinates left"), "{error}");
    append(&array, 5, 0, &Call::default()).unwrap();
    assert!(
        append(&opened(&storage), 1, 0, &Call::default()).unwrap_err().message().contains("has 0 coordinates left")
    );
    let column = block(2, 0);
    let data = vec![("v".to_owned(), column.view())];
    let wrong = Appended { axis: 2, count: 1, data, layout: Order::Row, labels: None };
    assert_eq!(array.append(&wrong, None, &Call::default()).unwrap_err().kind(), ErrorKind::Bounds);
}

/// A position counts from one end of its dimension. Cells that others write beyond that end conflict with it, and no others do.
#[test]
fn of_an_end_that_was_used_what_lies_beyond_it_was_read() {
    let sides = [(0, false, [-1, 5]), (0, true, [100, 5]), (1, false, [5, -1]), (1, true, [5, 100])];
    for used in 0..4usize {
        let mut ends = [(false, false); 2];
        let (axis, high) = (used / 2, used % 2 == 1);
        if high {
            ends[axis].1 = true
        } else {
            ends[axis].0 = true
        }
        for (beyond, is_high, [x, y]) in sides {
            let (array, storage) = created(&field("row", false));
            let tx = Transaction::begin_on(&context(), storage, Isolation::Serializable).unwrap();
            let inside = tx.array("/").unwrap();
            inside.note_ends_of(&ends).unwrap();
            inside.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).unwrap();
            write(&array, &[[x, y, 1]], &growing()).unwrap();
            let stands = (beyond, is_high) != (axis, high);
            assert_eq!(tx.commit(None).is_ok(), stands, "end {used}, cell {x}, {y}");
        }
    }
}
