//! Promise: a dimension with an open end begins without a coordinate, and reaches to what is written, in the commit that
//! writes it; an array that is empty along a dimension answers every question with nothing.

use crate::support::columns::longs;
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Appended, Array, At, Call, CellData, Column, Condition, Context, Dedup, MergeChoice, Opened, Options, ReadOrder,
    Span, Strategy, Transaction, create_array_on, open_on, verify_on,
};
use gridstone::engine::{Isolation, commit_receipts_on};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

fn context() -> Context {
    Context::new(&Options { threads: Some(2), memory_budget: 4 << 20, ..Options::default() }).unwrap()
}

fn created(json: &str) -> (Array, Arc<dyn Storage>) {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let schema = Schema::from_json(json).unwrap();
    (create_array_on(&context(), storage.clone(), "/", schema, false).unwrap(), storage)
}

fn opened(storage: &Arc<dyn Storage>, at: At) -> Array {
    match open_on(&context(), storage.clone(), "/", at == At::Latest, at).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// A dense array with times that go on, and three places.
fn frames(ends: &str, tile: u64) -> String {
    format!(
        r#"{{"dims":[{{"name":"t","dtype":"int64","domain":{ends},"tile":"{tile}"}},
        {{"name":"x","dtype":"int64","domain":["0","2"],"tile":"2"}}],
        "attrs":[{{"name":"v","dtype":"int64","fill":"-1"}}]}}"#
    )
}

fn scattered(order: &str) -> String {
    format!(
        r#"{{"sparse":true,"capacity":50,"cell_order":"{order}",
        "dims":[{{"name":"x","dtype":"int64","domain":["0",null],"tile":"7"}},
        {{"name":"y","dtype":"int64","domain":[null,null],"tile":"16"}}],"attrs":[{{"name":"v","dtype":"int64"}}]}}"#
    )
}

fn pair(low: i64, high: i64) -> (String, String) {
    (low.to_string(), high.to_string())
}

fn numbers(column: &Column) -> Vec<i64> {
    column.view().values().as_chunks::<8>().0.iter().map(|bytes| i64::from_le_bytes(*bytes)).collect()
}

fn times(array: &Array) -> Option<(String, String)> {
    let schema = array.schema().unwrap();
    (!schema.is_without_cells()).then(|| schema.ends(&schema.domain()).remove(0))
}

fn put(array: &Array, t: (i64, i64), first: i64) -> Result<u64> {
    let v = longs(first..first + (t.1 - t.0 + 1) * 3);
    let sub = [pair(t.0, t.1), pair(0, 2)];
    let staged = array.stage_dense(Some(&sub), &vec![("v".to_owned(), v.view())], Order::Row, &Call::default())?;
    array.commit(vec![staged], None)
}

fn whole(array: &Array) -> (Vec<i64>, Vec<u64>) {
    let (cells, shape, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
    (numbers(&cells.attrs[0]), shape.unwrap_or_default())
}

#[test]
fn an_open_end_reaches_to_what_is_written_and_older_versions_end_where_they_did() {
    for (ends, reached) in [("[\"0\",null]", (0, 14)), ("[null,\"20\"]", (5, 20)), ("[null,null]", (5, 14))] {
        for tile in [1, 4, 1000] {
            let (array, storage) = created(&frames(ends, tile));
            assert_eq!((times(&array), whole(&array)), (None, (vec![], vec![0, 3])));
            let two = put(&array, (5, 9), 0).unwrap();
            put(&array, (8, 14), 100).unwrap();
            let last = opened(&storage, At::Latest);
            assert_eq!(times(&last), Some(pair(reached.0, reached.1)), "{ends}");
            let (values, shape) = whole(&last);
            assert_eq!(shape, [(reached.1 - reached.0 + 1) as u64, 3]);
            let at = |t: i64, x: i64| match t {
                5..=7 => (t - 5) * 3 + x,
                8..=14 => 100 + (t - 8) * 3 + x,
                _ => -1,
            };
            let want: Vec<i64> = (reached.0..=reached.1).flat_map(|t| (0..3).map(move |x| at(t, x))).collect();
            assert_eq!(values, want, "{ends} {tile}");
            let before = opened(&storage, At::Version(two));
            assert_eq!(
                times(&before),
                Some(pair(reached.0.min(5), reached.1.min(9).max(if ends.contains("20") { 20 } else { 9 })))
            );
            assert_eq!(times(&opened(&storage, At::Version(1))), None);
            last.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
            assert_eq!(whole(&last).0, want, "{ends} {tile}, merged");
            assert!(verify_on(&context(), storage, &Call::default()).unwrap().damage.is_empty());
        }
    }
}

#[test]
fn an_end_that_is_closed_grows_only_if_it_is_told_to() {
    let (array, _) = created(&frames("[\"0\",null]", 4));
    let error = put(&array, (-2, 3), 0).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds, "{error}");
    assert_eq!(times(&array), None);
    let v = longs(0..18);
    let sub = [pair(-2, 3), pair(0, 2)];
    let call = Call::default().growing(true);
    let staged = array.stage_dense(Some(&sub), &vec![("v".to_owned(), v.view())], Order::Row, &call).unwrap();
    array.commit(vec![staged], None).unwrap();
    assert_eq!((times(&array), whole(&array).0), (Some(pair(-2, 3)), (0..18).collect()));
}

#[test]
fn cells_of_a_sparse_array_reach_beyond_open_ends_at_once_streamed_and_in_order() {
    for order in ["row", "col", "hilbert"] {
        let (array, storage) = created(&scattered(order));
        let cells: Vec<[i64; 3]> = (0..400).map(|i| [(i * 37) % 211, (i * 53) % 307 - 150, i]).collect();
        let column = |part: &[[i64; 3]], at: usize| longs(part.iter().map(|cell| cell[at]).collect::<Vec<_>>());
        let (first, rest) = cells.split_at(150);
        let (second, third) = rest.split_at(100);
        let [x, y, v] = [0, 1, 2].map(|at| column(first, at));
        let data = CellData {
            dims: vec![x.view(), y.view()],
            attrs: vec![("v".to_owned(), v.view())],
            sorted: false,
            dedup: Dedup::Error,
        };
        array.commit(vec![array.stage_cells(data, &Call::default()).unwrap()], None).unwrap();
        let mut writer = array.unsorted_writer(None, Dedup::Error).unwrap();
        let [x, y, v] = [0, 1, 2].map(|at| column(second, at));
        writer.append(&Call::default(), &[x.view(), y.view()], &[v.view()]).unwrap();
        array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
        // A stream in global order: one cell after another.
        for cell in third {
            let mut writer = array.writer(None, None).unwrap();
            let [x, y, v] = [0, 1, 2].map(|at| column(&[*cell], at));
            writer.append(&Call::default(), &[x.view(), y.view()], &[v.view()]).unwrap();
            array.commit(vec![writer.finish(&Call::default()).unwrap()], None).unwrap();
        }
        let array = opened(&storage, At::Latest);
        let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
        let [x, y, v] = [&found.dims[0], &found.dims[1], &found.attrs[0]].map(numbers);
        let mut seen: Vec<[i64; 3]> = (0..found.count).map(|i| [x[i], y[i], v[i]]).collect();
        seen.sort_unstable_by_key(|cell| cell[2]);
        assert_eq!(seen, cells, "{order}");
        let schema = array.schema().unwrap();
        let ends = |at: usize| (cells.iter().map(|c| c[at]).min().unwrap(), cells.iter().map(|c| c[at]).max().unwrap());
        let (x, y) = (ends(0), ends(1));
        assert_eq!(schema.ends(&schema.domain()), [pair(0, x.1), pair(y.0, y.1)], "{order}");
        let [x, y, v] = [0, 1, 2].map(|at| column(&[[-1, 0, 0]], at));
        let data = CellData {
            dims: vec![x.view(), y.view()],
            attrs: vec![("v".to_owned(), v.view())],
            sorted: false,
            dedup: Dedup::Error,
        };
        let error = array.stage_cells(data, &Call::default()).unwrap_err();
        assert!(error.kind() == ErrorKind::Bounds && error.message().contains("row 0"), "{error}");
    }
}

/// Every question to arrays that have no coordinate along a dimension.
#[test]
fn an_empty_array_answers_every_question_with_nothing() {
    let dense = [frames("[\"0\",null]", 4), frames("[null,null]", 3), frames("[]", 5)];
    let sparse = ["row", "col", "hilbert"].map(scattered);
    for json in dense.iter().chain(&sparse) {
        let (array, storage) = created(json);
        let call = Call::default();
        let schema = array.schema().unwrap();
        assert!(schema.is_without_cells());
        for order in [ReadOrder::Row, ReadOrder::Col, ReadOrder::Global, ReadOrder::Any] {
            let (cells, shape, _) = array.read(None, None, order, &call).unwrap();
            assert_eq!((cells.count, shape.is_some()), (0, !schema.sparse()), "{json}");
            assert_eq!(array.read_region(None, None, None, order, &call).unwrap().0.count, 0);
        }
        let condition = Condition::parse("v > 3").unwrap();
        assert_eq!(array.read_where(None, None, &condition, ReadOrder::Row, &call).unwrap().0.count, 0);
        assert!(array.scan(None, None, ReadOrder::Any, 1 << 16, &call).unwrap().next_batch().unwrap().is_none());
        assert!(array.tiles(None, &call).unwrap().is_empty());
        assert!(array.fragments().unwrap().is_empty() && array.nonempty_domain().unwrap().is_none());
        let open = Span { lo: None, hi: None, below: false };
        let region = array.region(&[vec![open.clone(), open]]).unwrap();
        assert_eq!(array.read_region(Some(&region), None, None, ReadOrder::Row, &call).unwrap().0.count, 0);
        let none = longs([]);
        assert_eq!(array.points(&[none.view(), none.view()], None, &call).unwrap().0.count, 0);
        let one = longs([1]);
        let error = array.points(&[one.view(), one.view()], None, &call).unwrap_err();
        assert!(error.kind() == ErrorKind::Bounds && error.message().contains("no coordinate"), "{error}");
        let sub = [pair(0, 1), pair(0, 1)];
        let error = array.read(Some(&sub), None, ReadOrder::Row, &call).unwrap_err();
        assert!(error.kind() == ErrorKind::Bounds && error.message().contains("no coordinate"), "{error}");
        let version = array.version();
        array.delete_where(None, &condition, None, &call).unwrap();
        let staged = array.stage_delete_box(None).unwrap();
        array.commit(vec![staged], None).unwrap();
        assert_eq!(array.version(), version, "nothing is there to be deleted");
        let merged = array.consolidate(&Strategy::All, 1 << 30, false, &call).unwrap();
        assert_eq!((merged.before, merged.after), (0, 0));
        assert!(array.strategy(&MergeChoice::Box(&sub)).is_err());
        if !schema.sparse() {
            // A box that is open along the empty dimension keeps its other side.
            let span = Span { lo: None, hi: None, below: false };
            let region = array.region(&[vec![span, Span::between("1", "2")]]).unwrap();
            let (_, shape, _) = array.read_box(Some(&region), None, ReadOrder::Row, &call).unwrap();
            assert_eq!(shape, Some(vec![0, 2]), "{json}");
            let staged = array.stage_box(None, &vec![("v".to_owned(), none.view())], Order::Row, &call).unwrap();
            assert_eq!(array.commit(vec![staged], None).unwrap(), version);
            let (mut nothing, mut some) = ([], [0; 24]);
            assert!(array.read_into(None, None, ReadOrder::Row, &mut [&mut some], &call).is_err());
            array.read_into(None, None, ReadOrder::Row, &mut [&mut nothing], &call).unwrap();
        }
        assert!(verify_on(&context(), storage, &call).unwrap().damage.is_empty());
    }
}

#[test]
fn a_closed_empty_domain_grows_as_it_is_told_to() {
    let (array, _) = created(&frames("[]", 5));
    let error = put(&array, (0, 1), 0).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds && error.message().contains("no coordinate"), "{error}");
    let v = longs(0..6);
    let block =
        Appended { axis: 0, count: 2, data: vec![("v".to_owned(), v.view())], layout: Order::Row, labels: None };
    array.append(&block, None, &Call::default()).unwrap();
    assert_eq!((times(&array), whole(&array).0), (Some(pair(0, 1)), (0..6).collect()));
    assert!(put(&array, (2, 2), 0).is_err(), "it is closed");
}

#[test]
fn the_first_block_that_is_appended_lies_at_the_closed_end() {
    for (ends, first, second) in [
        ("[\"7\",null]", pair(7, 8), pair(7, 10)),
        ("[null,\"7\"]", pair(6, 7), pair(6, 9)),
        ("[null,null]", pair(0, 1), pair(0, 3)),
    ] {
        let (array, _) = created(&frames(ends, 3));
        let v = longs(0..6);
        let block =
            || Appended { axis: 0, count: 2, data: vec![("v".to_owned(), v.view())], layout: Order::Row, labels: None };
        array.append(&block(), None, &Call::default()).unwrap();
        assert_eq!(times(&array), Some(first), "{ends}");
        array.append(&block(), None, &Call::default()).unwrap();
        assert_eq!((times(&array), whole(&array).0), (Some(second), (0..6).chain(0..6).collect()), "{ends}");
    }
}

/// The last coordinates of a type are taken: the same block again is done, another one finds no room.
#[test]
fn a_block_with_a_key_is_appended_once_also_to_the_end_of_its_type() {
    let (array, _) = created(
        r#"{"dims":[{"name":"t","dtype":"uint8","domain":["0","252"],"tile":"16"}],"attrs":[{"name":"v","dtype":"int64"}]}"#,
    );
    let v = longs(0..3);
    let call = super::commit_keys::call("last");
    let block =
        || Appended { axis: 0, count: 3, data: vec![("v".to_owned(), v.view())], layout: Order::Row, labels: None };
    let version = array.append(&block(), None, &call).unwrap();
    assert_eq!(array.append(&block(), None, &call).unwrap(), version);
    let error = array.append(&block(), None, &Call::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds && error.message().contains("0 coordinates left"), "{error}");
    assert_eq!(times(&array), Some(pair(0, 255)));
}

#[test]
fn blocks_appended_to_an_empty_axis_side_by_side_lie_one_behind_the_other() {
    let (array, storage) = created(&frames("[\"0\",null]", 4));
    let handles: Vec<Array> = (0..4).map(|_| opened(&storage, At::Latest)).collect();
    std::thread::scope(|scope| {
        for (number, handle) in (0i64..).zip(&handles) {
            scope.spawn(move || {
                for turn in 0..12 {
                    let count = 1 + (turn % 5);
                    let v = longs(std::iter::repeat_n(number * 100 + turn, (count * 3) as usize).collect::<Vec<_>>());
                    let data = vec![("v".to_owned(), v.view())];
                    let block = Appended { axis: 0, count: count as u64, data, layout: Order::Row, labels: None };
                    handle.append(&block, None, &Call::default()).unwrap();
                }
            });
        }
    });
    array.refresh().unwrap();
    let mut found = whole(&array).0;
    // Each block lies in one piece, and those of one handle in the order in which it appended them.
    let mut runs = found.chunk_by(|a, b| a == b).map(|run| (run[0], run.len()));
    assert!(runs.all(|(value, count)| count == ((1 + value % 100 % 5) * 3) as usize));
    for handle in 0..4 {
        assert!(found.iter().filter(|value| **value / 100 == handle).is_sorted());
    }
    let mut want: Vec<i64> = (0..4)
        .flat_map(|n| (0..12).flat_map(move |t| std::iter::repeat_n(n * 100 + t, ((1 + t % 5) * 3) as usize)))
        .collect();
    found.sort_unstable();
    want.sort_unstable();
    assert_eq!(found, want);
    assert!(verify_on(&context(), storage, &Call::default()).unwrap().damage.is_empty());
}

#[test]
fn what_is_found_empty_in_a_transaction_was_read_to_infinity() {
    let (array, storage) = created(&frames("[\"0\",null]", 4));
    let other = created_group_array(&storage);
    let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
    let inside = transaction.array("/").unwrap();
    assert_eq!(whole(&inside).1, [0, 3]);
    put(&other, (0, 0), 5).unwrap();
    put(&inside, (7, 7), 1).unwrap();
    let error = transaction.commit(None).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    array.refresh().unwrap();
    assert_eq!(times(&array), Some(pair(0, 0)));
}

fn created_group_array(storage: &Arc<dyn Storage>) -> Array {
    opened(storage, At::Latest)
}

#[test]
fn a_transaction_sees_the_domain_that_it_has_staged() {
    let (array, storage) = created(&frames("[\"0\",null]", 4));
    let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let inside = transaction.array("/").unwrap();
    put(&inside, (3, 4), 0).unwrap();
    assert_eq!((times(&inside), times(&array)), (Some(pair(0, 4)), None));
    transaction.commit(None).unwrap();
    array.refresh().unwrap();
    assert_eq!((times(&array), whole(&array).0[9..].to_vec()), (Some(pair(0, 4)), (0..6).collect()));
}

#[test]
fn receipts_bring_the_domain_that_they_need() {
    let (array, storage) = created(&frames("[\"0\",null]", 4));
    let v = longs(0..6);
    let sub = [pair(8, 9), pair(0, 2)];
    let staged =
        array.stage_dense(Some(&sub), &vec![("v".to_owned(), v.view())], Order::Row, &Call::default()).unwrap();
    let receipt = array.receipt(vec![staged]).unwrap();
    assert_eq!(times(&opened(&storage, At::Latest)), None);
    commit_receipts_on(&context(), storage.clone(), &[receipt], None).unwrap();
    assert_eq!(times(&opened(&storage, At::Latest)), Some(pair(0, 9)));
}

#[test]
fn a_domain_never_shrinks() {
    let (array, storage) = created(&frames("[\"0\",null]", 4));
    put(&array, (0, 9), 0).unwrap();
    let staged = array.stage_delete_box(None).unwrap();
    array.commit(vec![staged], None).unwrap();
    array.consolidate(&Strategy::All, 1 << 30, false, &Call::default()).unwrap();
    assert_eq!(times(&opened(&storage, At::Latest)), Some(pair(0, 9)));
    assert!(whole(&array).0.iter().all(|v| *v == -1));
}

#[test]
fn an_array_of_no_dimension_has_one_cell() {
    let (array, storage) = created(r#"{"dims":[],"attrs":[{"name":"v","dtype":"int64","fill":"-1"}]}"#);
    assert!(array.schema().unwrap().is_scalar());
    assert_eq!(whole(&array).0, [-1]);
    let v = longs([42]);
    let staged = array.stage_box(None, &vec![("v".to_owned(), v.view())], Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    assert_eq!(whole(&opened(&storage, At::Latest)).0, [42]);
    let sub = [pair(0, 1)];
    let grown = Call::default().growing(true);
    assert!(array.stage_dense(Some(&sub), &vec![("v".to_owned(), v.view())], Order::Row, &grown).is_err());
    let v = longs([1]);
    let block =
        Appended { axis: 0, count: 1, data: vec![("v".to_owned(), v.view())], layout: Order::Row, labels: None };
    assert!(array.append(&block, None, &Call::default()).is_err());
}
