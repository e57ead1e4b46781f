//! Labels that come and go with the commits of their array, and blocks that are appended with some beside each other.

use crate::base::{ErrorKind, Result};
use crate::engine::{
    Appended, Array, At, Call, CommitKey, Context, Isolation, Listed, Opened, Options, Transaction, create_array_on,
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

fn rows(storage: &Arc<dyn Storage>) -> Array {
    let schema = Schema::from_json(
        r#"{"dims":[{"name":"t","dtype":"int64","domain":["5","6"],"tile":"1"},{"name":"x","dtype":"int64","domain":["0","1"]}],
        "attrs":[{"name":"v","dtype":"int64"}]}"#,
    );
    create_array_on(&context(), storage.clone(), "/a", schema.unwrap(), false).unwrap()
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/a", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group"),
    }
}

fn bytes(values: &[i64]) -> Vec<u8> {
    values.iter().flat_map(|v| v.to_le_bytes()).collect()
}

fn view(bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(Datatype::Int64, bytes, None, None).unwrap()
}

fn label(array: &Array, labels: &[i64]) -> Result<u64> {
    let values = bytes(labels);
    let listed = [Listed { dimension: "t".to_owned(), values: view(&values) }];
    array.alter_labelled(&Evolution::default(), &listed, None, &Call::default())
}

fn step(array: &Array, json: &str) -> Result<u64> {
    let evolution = Evolution::from_json(&format!(r#"{{"labels":[["t",{json}]]}}"#))?;
    array.alter_labelled(&evolution, &[], None, &Call::default())
}

fn append_with(array: &Array, labels: Option<&[i64]>, count: usize, call: &Call) -> Result<u64> {
    let (cells, labels) = (bytes(&vec![labels.map_or(0, |l| l[0]); count * 2]), labels.map(bytes));
    let data = vec![("v".to_owned(), view(&cells))];
    let labels = labels.as_deref().map(view);
    array.append(&Appended { axis: 0, count: count as u64, data, layout: Order::Row, labels }, None, call)
}

fn append(array: &Array, labels: &[i64]) -> Result<u64> {
    append_with(array, Some(labels), labels.len(), &Call::default())
}

/// The labels as they are listed, and the first value of each row.
fn listed(array: &Array) -> (Vec<i64>, Vec<i64>) {
    let values = |array: &Array| {
        let (cells, ..) = array.read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
        cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|v| i64::from_le_bytes(*v)).collect::<Vec<_>>()
    };
    (values(&array.labels(0).unwrap().unwrap()), values(array).into_iter().step_by(2).collect())
}

fn sound(storage: &Arc<dyn Storage>) {
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

#[test]
fn labels_are_listed_replaced_and_taken_away_in_one_commit_each() {
    let storage = memory();
    let array = rows(&storage);
    let first = array.version();
    assert_eq!(label(&array, &[3, 9]).unwrap(), first + 1);
    assert_eq!((listed(&array).0, array.hidden_names().unwrap()), (vec![3, 9], vec!["@labels-0".to_owned()]));
    assert_eq!(label(&array, &[4, 8]).unwrap(), first + 2);
    assert_eq!((listed(&array).0, array.hidden_names().unwrap()), (vec![4, 8], vec!["@labels-0-2".to_owned()]));
    assert_eq!(listed(&array.at(At::Version(first + 1)).unwrap()).0, [3, 9]);
    step(&array, r#"{"start":"10","step":"5","dtype":"int64"}"#).unwrap();
    assert!(matches!(array.schema().unwrap().dims()[0].labels(), Some(Labels::Steps(_))));
    assert_eq!(array.hidden_names().unwrap(), Vec::<String>::new());
    assert_eq!(step(&array, "null").unwrap(), first + 4);
    assert_eq!(step(&array, "null").unwrap(), first + 4, "nothing changes");
    let error = label(&array, &[1]).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("has 2 positions, and 1 labels"), "{error}");
    sound(&storage);
}

#[test]
fn a_block_that_lost_its_place_takes_its_labels_along() {
    let storage = memory();
    let array = rows(&storage);
    label(&array, &[1, 2]).unwrap();
    let handles: Vec<Array> = (0..3).map(|_| opened(&storage)).collect();
    for (number, handle) in handles.iter().enumerate() {
        append(handle, &[10 * (number as i64 + 1), 5]).unwrap();
    }
    assert_eq!(listed(&opened(&storage)), (vec![1, 2, 10, 5, 20, 5, 30, 5], vec![0, 0, 10, 10, 20, 20, 30, 30]));
    sound(&storage);
}

#[test]
fn a_block_whose_labels_went_on_before_another_came_first_makes_a_list() {
    let storage = memory();
    let array = rows(&storage);
    step(&array, r#"{"start":"0","step":"1","dtype":"int64"}"#).unwrap();
    let (one, other) = (opened(&storage), opened(&storage));
    append(&one, &[2]).unwrap();
    assert!(matches!(one.schema().unwrap().dims()[0].labels(), Some(Labels::Steps(_))));
    // It would have continued the steps at the place that it had first.
    append(&other, &[2]).unwrap();
    assert_eq!(listed(&opened(&storage)), (vec![0, 1, 2, 2], vec![0, 0, 2, 2]));
    let late = opened(&storage);
    step(&opened(&storage), r#"{"start":"0","step":"1","dtype":"int64"}"#).unwrap();
    append(&late, &[4]).unwrap();
    assert!(matches!(late.schema().unwrap().dims()[0].labels(), Some(Labels::Steps(_))));
    // Without labels of its own a block moves, and the steps with it.
    let (one, other) = (opened(&storage), opened(&storage));
    for handle in [&one, &other] {
        append_with(handle, None, 1, &Call::default()).unwrap();
    }
    assert_eq!(opened(&storage).schema().unwrap().dims()[0].range().count(), 7);
    sound(&storage);
}

#[test]
fn a_block_without_labels_is_refused_once_others_list_them() {
    let storage = memory();
    let array = rows(&storage);
    let late = opened(&storage);
    label(&array, &[1, 2]).unwrap();
    let error = append_with(&late, None, 1, &Call::default()).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("labels="), "{error}");
    let late = opened(&storage);
    step(&array, "null").unwrap();
    let error = append(&late, &[7]).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("has no labels"), "{error}");
    assert_eq!(opened(&storage).schema().unwrap().dims()[0].range().count(), 2);
}

#[test]
fn labels_for_all_positions_are_refused_once_there_are_more() {
    let storage = memory();
    let array = rows(&storage);
    let late = opened(&storage);
    append_with(&array, None, 3, &Call::default()).unwrap();
    let error = label(&late, &[1, 2]).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("longer"), "{error}");
    late.refresh().unwrap();
    label(&late, &[1, 2, 3, 4, 5]).unwrap();
    // The same of labels that others have continued meanwhile.
    let late = opened(&storage);
    append(&opened(&storage), &[6]).unwrap();
    assert_eq!(label(&late, &[9, 8, 7, 6, 5]).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(listed(&opened(&storage)).0, [1, 2, 3, 4, 5, 6]);
    sound(&storage);
}

#[test]
fn a_block_whose_labels_make_a_list_is_cut_again_if_the_low_end_moved() {
    let storage = memory();
    let array = rows(&storage);
    step(&array, r#"{"start":"0","step":"1","dtype":"int64"}"#).unwrap();
    let (below, block) = (bytes(&[7, 7]), [70]);
    let late = opened(&storage);
    let grown = Call::default().growing(true);
    let sub = [("4".to_owned(), "4".to_owned()), ("0".to_owned(), "1".to_owned())];
    let staged = array.stage_dense(Some(&sub), &vec![("v".to_owned(), view(&below))], Order::Row, &grown).unwrap();
    array.commit(vec![staged], None).unwrap();
    append(&late, &block).unwrap();
    assert_eq!(listed(&opened(&storage)), (vec![-1, 0, 1, 70], vec![7, 0, 0, 70]));
    sound(&storage);
}

#[test]
fn labels_count_as_content_of_a_key() {
    let storage = memory();
    label(&rows(&storage), &[1, 2]).unwrap();
    let call = Call::default().with_key(Some(CommitKey::new(b"k").unwrap()));
    let version = append_with(&opened(&storage), Some(&[7]), 1, &call).unwrap();
    assert_eq!(append_with(&opened(&storage), Some(&[7]), 1, &call).unwrap(), version);
    let (cells, labels) = (bytes(&[7, 7]), bytes(&[8]));
    let data = vec![("v".to_owned(), view(&cells))];
    let block = Appended { axis: 0, count: 1, data, layout: Order::Row, labels: Some(view(&labels)) };
    assert_eq!(opened(&storage).append(&block, None, &call).unwrap_err().kind(), ErrorKind::Conflict);
}

#[test]
fn labels_are_staged_in_a_transaction() {
    let storage = memory();
    rows(&storage);
    let transaction = Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
    let array = transaction.array("/a").unwrap();
    label(&array, &[1, 2]).unwrap();
    append(&array, &[5, 6]).unwrap();
    label(&array, &[9, 8, 7, 6]).unwrap();
    append(&array, &[5]).unwrap();
    assert_eq!(listed(&array).0, [9, 8, 7, 6, 5]);
    transaction.commit(None).unwrap();
    assert_eq!(listed(&opened(&storage)), (vec![9, 8, 7, 6, 5], vec![0, 0, 5, 5, 5]));
    sound(&storage);
}
