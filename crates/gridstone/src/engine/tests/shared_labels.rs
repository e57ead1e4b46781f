//! Labels that several arrays share: appends beside each other, removals, copies.

use crate::base::{ErrorKind, Result};
use crate::engine::{
    Appended, Array, At, Call, Context, CopyOptions, Isolation, Opened, Options, Transaction, copy_on, create_array_on,
    open_on, verify_on,
};
use crate::query::ReadOrder;
use crate::schema::{Datatype, Evolution, Labels, Order, Schema};
use crate::storage::{MemoryStorage, Storage};
use crate::tile::ColumnView;
use std::sync::Arc;

fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap()
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn opened(storage: &Arc<dyn Storage>, path: &str) -> Array {
    match open_on(&context(), storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group"),
    }
}

/// Removes the coordinate.
fn remove(storage: &Arc<dyn Storage>) {
    match open_on(&context(), storage.clone(), "/g", true, At::Latest).unwrap() {
        Opened::Group(group) => group.remove("t", None).unwrap(),
        Opened::Array(_) => panic!("an array"),
    };
}

fn bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn view(bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(Datatype::Int64, bytes, None, None).unwrap()
}

/// An array of one dimension with `count` values 0, 10, 20 …
fn made(storage: &Arc<dyn Storage>, path: &str, name: &str, count: i64) -> Array {
    made_as(storage, path, (name, false), count)
}

fn made_as(storage: &Arc<dyn Storage>, path: &str, (name, nullable): (&str, bool), count: i64) -> Array {
    let json = format!(
        r#"{{"dims":[{{"name":"{name}","dtype":"int64","domain":["0","{}"],"tile":"4"}}],"attrs":[{{"name":"v","dtype":"int64","nullable":{nullable}}}]}}"#,
        count - 1
    );
    let array = create_array_on(&context(), storage.clone(), path, Schema::from_json(&json).unwrap(), false).unwrap();
    let values = bytes(&(0..count).map(|n| n * 10).collect::<Vec<_>>());
    let data = vec![("v".to_owned(), view(&values))];
    let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
    array.commit(vec![staged], None).unwrap();
    array
}

fn share(array: &Array, path: &str) -> Result<u64> {
    let id = array.shared_labels("t", path)?;
    let evolution = Evolution { labels: vec![("t".to_owned(), Some(Labels::Shared(id)))], ..Evolution::default() };
    array.alter_labelled(&evolution, &[], None, &Call::default())
}

fn append(array: &Array, value: i64, labels: Option<&[i64]>, count: usize) -> Result<u64> {
    let (cells, labels) = (bytes(&vec![value; count]), labels.map(bytes));
    let data = vec![("v".to_owned(), view(&cells))];
    let labels = labels.as_deref().map(view);
    array.append(&Appended { axis: 0, count: count as u64, data, layout: Order::Row, labels }, None, &Call::default())
}

fn values(array: &Array) -> Vec<i64> {
    let (cells, ..) = array.read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
    cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|v| i64::from_le_bytes(*v)).collect()
}

fn labels(array: &Array) -> Vec<i64> {
    values(&array.labels(0).unwrap().unwrap())
}

fn sound(storage: &Arc<dyn Storage>) {
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

/// A coordinate, and two arrays with their labels in it.
fn group() -> Arc<dyn Storage> {
    let storage = memory();
    made(&storage, "/g/t", "t_dim", 3);
    for path in ["/g/a", "/g/b"] {
        share(&made(&storage, path, "t", 3), "/g/t").unwrap();
    }
    storage
}

#[test]
fn arrays_have_the_values_of_a_coordinate_as_labels() {
    let storage = group();
    assert_eq!(labels(&opened(&storage, "/g/a")), [0, 10, 20]);
    assert_eq!(opened(&storage, "/g/a").hidden_names().unwrap(), Vec::<String>::new());
    // What is written to it is seen at once.
    append(&opened(&storage, "/g/t"), 30, None, 1).unwrap();
    append(&opened(&storage, "/g/a"), 7, None, 1).unwrap();
    assert_eq!(
        (labels(&opened(&storage, "/g/a")), labels(&opened(&storage, "/g/b"))),
        (vec![0, 10, 20, 30], vec![0, 10, 20, 30])
    );
    let error = append(&opened(&storage, "/g/a"), 7, None, 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("/g/t, which has none"), "{error}");
    sound(&storage);
}

#[test]
fn a_block_writes_its_labels_once_for_all_that_share_them() {
    let storage = group();
    append(&opened(&storage, "/g/a"), 1, Some(&[33, 44]), 2).unwrap();
    assert_eq!(labels(&opened(&storage, "/g/b")), [0, 10, 20, 33, 44]);
    let fragments = opened(&storage, "/g/t").fragments().unwrap().len();
    append(&opened(&storage, "/g/b"), 2, Some(&[33]), 1).unwrap();
    append(&opened(&storage, "/g/b"), 3, Some(&[44]), 1).unwrap();
    assert_eq!(opened(&storage, "/g/t").fragments().unwrap().len(), fragments, "nothing new was written");
    let error = append(&opened(&storage, "/g/b"), 3, Some(&[]), 1).unwrap_err();
    assert!(error.message().contains("with 0 labels"), "{error}");
    append(&opened(&storage, "/g/b"), 4, Some(&[55]), 1).unwrap();
    let error = append(&opened(&storage, "/g/a"), 5, Some(&[56]), 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("another label for position 5"), "{error}");
    // A block that reaches further than what is there.
    append(&opened(&storage, "/g/a"), 6, Some(&[55, 66]), 2).unwrap();
    assert_eq!(labels(&opened(&storage, "/g/b")), [0, 10, 20, 33, 44, 55, 66]);
    assert_eq!(values(&opened(&storage, "/g/a")), [0, 10, 20, 1, 1, 6, 6]);
    assert_eq!(values(&opened(&storage, "/g/b")), [0, 10, 20, 2, 3, 4]);
    sound(&storage);
}

#[test]
fn blocks_of_two_arrays_do_not_put_two_labels_at_one_position() {
    let storage = group();
    let (one, other) = (opened(&storage, "/g/a"), opened(&storage, "/g/b"));
    append(&one, 1, Some(&[33]), 1).unwrap();
    // It was opened before, and its block would lie at the same coordinate.
    let error = append(&other, 2, Some(&[44]), 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("another label"), "{error}");
    append(&other, 2, Some(&[33]), 1).unwrap();
    // Two blocks of one array that met: each has its own label.
    let (one, other) = (opened(&storage, "/g/a"), opened(&storage, "/g/a"));
    append(&one, 3, Some(&[55]), 1).unwrap();
    append(&other, 4, Some(&[66]), 1).unwrap();
    assert_eq!(labels(&opened(&storage, "/g/a")), [0, 10, 20, 33, 55, 66]);
    // Blocks without labels, of which one has no label where it comes to lie.
    append(&opened(&storage, "/g/t"), 77, None, 1).unwrap();
    let (one, other) = (opened(&storage, "/g/a"), opened(&storage, "/g/a"));
    append(&one, 5, None, 1).unwrap();
    assert_eq!(append(&other, 6, None, 1).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(values(&opened(&storage, "/g/a")), [0, 10, 20, 1, 3, 4, 5]);
    sound(&storage);
}

#[test]
fn a_label_that_others_have_put_meanwhile_stays() {
    let storage = memory();
    made_as(&storage, "/g/t", ("t_dim", true), 3);
    for path in ["/g/a", "/g/b"] {
        share(&made(&storage, path, "t", 3), "/g/t").unwrap();
    }
    // The coordinate reaches further already, where it has no label yet.
    let grow = Evolution::from_json(r#"{"domains":[["t_dim","0","4"]]}"#).unwrap();
    opened(&storage, "/g/t").alter(&grow, None).unwrap();
    let (one, other) = (opened(&storage, "/g/a"), opened(&storage, "/g/b"));
    append(&one, 1, Some(&[33]), 1).unwrap();
    let error = append(&other, 2, Some(&[44]), 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("another label"), "{error}");
    append(&other, 2, Some(&[33]), 1).unwrap();
    assert_eq!(labels(&opened(&storage, "/g/b"))[..4], [0, 10, 20, 33]);
    sound(&storage);
}

#[test]
fn a_coordinate_that_is_removed_or_changed_leaves_no_labels_and_no_damage() {
    let storage = group();
    let version = opened(&storage, "/g/a").version();
    remove(&storage);
    let array = opened(&storage, "/g/a");
    assert!(array.labels(0).unwrap().is_none());
    assert_eq!(labels(&array.at(At::Version(version)).unwrap()), [0, 10, 20]);
    append(&array, 1, None, 1).unwrap();
    let error = append(&array, 1, Some(&[9]), 1).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("was removed"), "{error}");
    sound(&storage);
    // Another array at its path is not the coordinate.
    made(&storage, "/g/t", "t_dim", 4);
    let array = opened(&storage, "/g/a");
    assert!(array.labels(0).unwrap().is_none());
    share(&array, "/g/t").unwrap();
    assert_eq!(labels(&array), [0, 10, 20, 30]);
    let add = Evolution::from_json(r#"{"add":[{"name":"w","dtype":"int8"}]}"#).unwrap();
    opened(&storage, "/g/t").alter(&add, None).unwrap();
    assert!(opened(&storage, "/g/a").labels(0).unwrap().is_none());
    sound(&storage);
}

#[test]
fn what_cannot_have_labels_is_refused() {
    let storage = group();
    made(&storage, "/g/x", "t", 3);
    let array = opened(&storage, "/g/x");
    for (path, kind, word) in [
        ("/g", ErrorKind::Input, "a group"),
        ("/g/x", ErrorKind::Input, "the array itself"),
        ("/g/none", ErrorKind::NotFound, "no array"),
    ] {
        let error = share(&array, path).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(word), "{path}: {error}");
    }
    let schema = Schema::from_json(
        r#"{"dims":[{"name":"t","dtype":"int32","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int64"}]}"#,
    );
    create_array_on(&context(), storage.clone(), "/g/int32", schema.unwrap(), false).unwrap();
    let error = share(&opened(&storage, "/g/x"), "/g/int32").unwrap_err();
    assert!(error.kind() == ErrorKind::Schema && error.message().contains("same type"), "{error}");
    let error = opened(&storage, "/g/x").shared_labels("nope", "/g/t").unwrap_err();
    assert!(error.message().contains("no dimension"), "{error}");
}

#[test]
fn copies_have_their_labels_whatever_is_copied() {
    let storage = group();
    append(&opened(&storage, "/g/a"), 1, Some(&[33, 44]), 2).unwrap();
    let copied = |path: &str, target_path: &str, to: &Arc<dyn Storage>| {
        let options = CopyOptions { path, target_path, at: At::Latest, tag: None, history: false, overwrite: false };
        let context = context();
        copy_on((&context, storage.clone()), (&context, to.clone()), &options, &Call::default()).unwrap();
        sound(to);
    };
    let whole = memory();
    copied("/g", "/h", &whole);
    assert_eq!(labels(&opened(&whole, "/h/a")), [0, 10, 20, 33, 44]);
    append(&opened(&whole, "/h/b"), 1, Some(&[33]), 1).unwrap();
    append(&opened(&whole, "/h/t"), 55, None, 1).unwrap();
    assert_eq!(labels(&opened(&whole, "/h/a")).last(), Some(&55), "the copies share the copy");
    // Alone it has labels of its own.
    let alone = memory();
    copied("/g/a", "/x", &alone);
    let copy = opened(&alone, "/x");
    assert_eq!((labels(&copy), values(&copy)), (vec![0, 10, 20, 33, 44], vec![0, 10, 20, 1, 1]));
    assert_eq!(copy.hidden_names().unwrap(), ["@labels-0"]);
    append(&copy, 2, Some(&[55]), 1).unwrap();
    assert_eq!(labels(&opened(&alone, "/x")), [0, 10, 20, 33, 44, 55]);
    // Also in the same store, where the coordinate may go.
    copied("/g/a", "/y", &storage);
    remove(&storage);
    assert_eq!(labels(&opened(&storage, "/y")), [0, 10, 20, 33, 44]);
    copied("/g/a", "/z", &storage);
    assert!(opened(&storage, "/z").labels(0).unwrap().is_none());
}

#[test]
fn labels_are_shared_and_appended_in_a_transaction() {
    let storage = group();
    made(&storage, "/g/c", "t", 3);
    let begin = || Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
    let (transaction, other) = (begin(), begin());
    for (path, value) in [("/g/a", 1), ("/g/b", 2)] {
        append(&transaction.array(path).unwrap(), value, Some(&[33]), 1).unwrap();
    }
    let third = transaction.array("/g/c").unwrap();
    append(&third, 3, None, 1).unwrap();
    share(&third, "/g/t").unwrap();
    assert_eq!(labels(&third), [0, 10, 20, 33]);
    append(&other.array("/g/b").unwrap(), 9, Some(&[99]), 1).unwrap();
    transaction.commit(None).unwrap();
    assert_eq!(other.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    for path in ["/g/a", "/g/b", "/g/c"] {
        assert_eq!(labels(&opened(&storage, path)), [0, 10, 20, 33], "{path}");
    }
    // Own labels in the place of shared ones, and back.
    let array = opened(&storage, "/g/c");
    let steps = Evolution::from_json(r#"{"labels":[["t",{"start":"1","step":"1","dtype":"int64"}]]}"#).unwrap();
    array.alter_labelled(&steps, &[], None, &Call::default()).unwrap();
    assert!(array.labels(0).unwrap().is_none());
    share(&array, "/g/t").unwrap();
    assert_eq!(labels(&array), [0, 10, 20, 33]);
    assert_eq!(labels(&opened(&storage, "/g/a")), [0, 10, 20, 33], "the coordinate is there");
    sound(&storage);
}
