//! Arrays that a transaction creates with an id, and whose cells others have written before: receipts that it adds.

use crate::base::{Entropy, ErrorKind, Id, Result};
use crate::engine::{
    Array, At, Call, Context, Isolation, Opened, Options, Receipt, Transaction, commit_receipts_on, create_group_on,
    open_on, verify_on,
};
use crate::query::ReadOrder;
use crate::runtime::SystemEntropy;
use crate::schema::{Datatype, Order, Schema};
use crate::storage::{MemoryStorage, Storage};
use crate::tile::ColumnView;
use std::sync::Arc;

fn context() -> Context {
    Context::new(&Options { threads: Some(1), ..Options::default() }).unwrap()
}

fn store() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    create_group_on(&context(), storage.clone(), "/").unwrap();
    storage
}

fn begin(storage: &Arc<dyn Storage>) -> Transaction {
    Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap()
}

fn schema() -> Schema {
    let json = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","7"],"tile":"4"}],"attrs":[{"name":"v","dtype":"int64"}]}"#;
    Schema::from_json(json).unwrap()
}

fn receipt(array: &Array, from: i64, values: &[i64]) -> Result<Receipt> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    let data = vec![("v".to_owned(), ColumnView::new(Datatype::Int64, &bytes, None, None).unwrap())];
    let sub = [(from.to_string(), (from + values.len() as i64 - 1).to_string())];
    array.receipt(vec![array.stage_dense(Some(&sub), &data, Order::Row, &Call::default())?])
}

/// Cells of an array that is not there yet, as another process writes them.
fn written(storage: &Arc<dyn Storage>, id: Id, from: i64, values: &[i64]) -> Receipt {
    let own = begin(storage);
    let array = own.create_array_as(id, "/a", schema(), true).unwrap();
    let made = receipt(&array, from, values).unwrap();
    own.abort();
    Receipt::from_json(&made.to_json().unwrap()).unwrap()
}

fn values(array: &Array) -> Vec<i64> {
    let (cells, ..) = array.read_box(None, None, ReadOrder::Row, &Call::default()).unwrap();
    cells.attrs[0].view().values().as_chunks::<8>().0.iter().map(|v| i64::from_le_bytes(*v)).collect()
}

fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/a", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group"),
    }
}

fn files(storage: &Arc<dyn Storage>) -> usize {
    storage.list("_data").unwrap().len()
}

#[test]
fn cells_of_others_come_with_the_array_in_one_commit() {
    let storage = store();
    let id = SystemEntropy.id();
    let receipts = [written(&storage, id, 0, &[1, 2, 3]), written(&storage, id, 2, &[30, 40, 50, 60])];
    let transaction = begin(&storage);
    let base = transaction.base_version();
    let array = transaction.create_array_as(id, "/a", schema(), false).unwrap();
    transaction.add_receipts(&receipts).unwrap();
    assert_eq!(values(&array), [1, 2, 30, 40, 50, 60, 0, 0], "the later one wins");
    receipt(&array, 7, &[9]).unwrap();
    assert_eq!(values(&array)[7], 0, "a receipt is not staged");
    assert_eq!(transaction.commit(None).unwrap(), base + 1);
    assert_eq!(values(&opened(&storage)), [1, 2, 30, 40, 50, 60, 0, 0]);
    // They were committed, and are not again.
    let error = commit_receipts_on(&context(), storage.clone(), &receipts[..1], None).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("committed already"), "{error}");
    let error = begin(&storage).add_receipts(&receipts[..1]).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("has not created"), "{error}");
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{:?}", report.damage);
}

#[test]
fn what_is_aborted_leaves_no_version_and_the_receipts_stay() {
    let storage = store();
    let id = SystemEntropy.id();
    let made = [written(&storage, id, 0, &[1, 2, 3])];
    let before = files(&storage);
    let first = begin(&storage);
    first.create_array_as(id, "/a", schema(), false).unwrap();
    first.add_receipts(&made).unwrap();
    first.abort();
    assert_eq!(files(&storage), before, "files of receipts belong to their holder");
    let second = begin(&storage);
    second.create_array_as(id, "/a", schema(), false).unwrap();
    second.add_receipts(&made).unwrap();
    second.commit(None).unwrap();
    assert_eq!(values(&opened(&storage))[..3], [1, 2, 3]);
    // The id is taken.
    let third = begin(&storage);
    let error = third.create_array_as(id, "/b", schema(), false).unwrap_err();
    assert!(error.kind() == ErrorKind::Exists, "{error}");
}

#[test]
fn receipts_that_do_not_fit_are_refused_and_add_nothing() {
    let storage = store();
    let id = SystemEntropy.id();
    let good = written(&storage, id, 0, &[1]);
    let lost = written(&storage, id, 1, &[2]);
    let transaction = begin(&storage);
    let error = transaction.add_receipts(std::slice::from_ref(&good)).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("has not created"), "{error}");
    let array = transaction.create_array_as(id, "/a", schema(), false).unwrap();
    let error = transaction.add_receipts(&[good.clone(), good.clone()]).unwrap_err();
    assert!(error.message().contains("given twice"), "{error}");
    let strange = written(&store(), id, 0, &[1]);
    let error = transaction.add_receipts(&[strange]).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("of the store"), "{error}");
    let name = format!("_data/{}.frag", lost.fragments[0].description.id);
    storage.delete(&name).unwrap();
    let error = transaction.add_receipts(&[good.clone(), lost]).unwrap_err();
    assert!(error.kind() == ErrorKind::NotFound && error.message().contains(&name), "{error}");
    assert_eq!(values(&array), [0; 8]);
    transaction.add_receipts(&[good]).unwrap();
    // A receipt of an array that is in the store is written outside of transactions.
    transaction.commit(None).unwrap();
    let inside = begin(&storage);
    let error = receipt(&inside.array("/a").unwrap(), 0, &[1]).unwrap_err();
    assert!(error.kind() == ErrorKind::Input && error.message().contains("inside a transaction"), "{error}");
}

#[test]
fn metadata_is_staged_by_path() {
    let storage = store();
    let transaction = begin(&storage);
    transaction.create_group("/g").unwrap();
    let set = |text: &str| vec![("title".to_owned(), Some(text.to_owned())), ("gone".to_owned(), None)];
    transaction.set_metadata("/g", &set("\"a\"")).unwrap();
    transaction.set_metadata("/", &set("\"root\"")).unwrap();
    assert_eq!(transaction.metadata("/g").unwrap()["title"], "\"a\"");
    assert_eq!(transaction.metadata("/none").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(transaction.set_metadata("/none", &set("1")).unwrap_err().kind(), ErrorKind::NotFound);
    let base = transaction.base_version();
    assert_eq!(transaction.commit(None).unwrap(), base + 1);
    // Also of a group that comes with an array below it.
    let implied = begin(&storage);
    implied.create_array("/h/k/a", schema(), false).unwrap();
    implied.set_metadata("/h", &set("\"h\"")).unwrap();
    implied.commit(None).unwrap();
    assert_eq!(begin(&storage).metadata("/h").unwrap()["title"], "\"h\"");
    // What is read and set is not lost to another commit.
    let (one, other) = (begin(&storage), begin(&storage));
    for each in [&one, &other] {
        assert_eq!(each.metadata("/g").unwrap()["title"], "\"a\"");
        each.set_metadata("/g", &set("\"b\"")).unwrap();
    }
    one.commit(None).unwrap();
    assert_eq!(other.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(begin(&storage).metadata("/g").unwrap()["title"], "\"b\"");
}
