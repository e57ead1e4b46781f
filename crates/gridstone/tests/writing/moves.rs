//! Promise: a move changes where an array or group lies, in one commit, and nothing else: handles, receipts and transactions go on
//! meaning it, and older versions have it where it was.

use crate::support::columns::{bytes_of, view};
use crate::support::pair::{cells, memory, one, opened, schema};
use crate::support::writer::{commit_cells, context, version_of};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    At, Call, Isolation, Opened, Transaction, commit_receipts_on, create_array_on, move_node_on, open_on,
};
use gridstone::storage::Storage;
use std::sync::Arc;

const ALL: ((i64, i64), (i64, i64)) = ((0, 149), (0, 149));

fn moved(storage: &Arc<dyn Storage>, from: &str, to: &str) -> Result<u64> {
    move_node_on(&context(), storage.clone(), from, to, Some("tidied".to_owned()))
}

fn names(storage: &Arc<dyn Storage>, path: &str, at: At) -> Vec<String> {
    match open_on(&context(), storage.clone(), path, false, at).unwrap() {
        Opened::Group(group) => group.children().unwrap().into_iter().map(|(name, _)| name).collect(),
        Opened::Array(_) => panic!("{path} is an array"),
    }
}

#[test]
fn handles_receipts_and_old_versions_know_what_was_moved() {
    let storage = memory();
    let context = context();
    let array = opened(&context, &storage, "/sparse");
    commit_cells(&array, &one(1, 1, 5), None).unwrap();
    let staged = {
        let [y, x, v] = [2i64, 2, 6].map(|n| bytes_of([n]));
        let [y, x, v] = [&y, &x, &v].map(|b| view(b));
        let attrs = vec![("v".to_owned(), v)];
        let data = gridstone::engine::CellData {
            dims: vec![y, x],
            attrs,
            sorted: false,
            dedup: gridstone::engine::Dedup::Error,
        };
        array.stage_cells(data, &Call::default()).unwrap()
    };
    let receipt = array.receipt(vec![staged]).unwrap();
    let version = moved(&storage, "/sparse", "/deep/er/points").unwrap();
    assert_eq!(array.path().unwrap(), "/sparse", "the version that it shows");
    commit_receipts_on(&context, storage.clone(), &[receipt], None).unwrap();
    commit_cells(&array, &one(3, 3, 7), None).unwrap();
    assert_eq!(array.path().unwrap(), "/deep/er/points");
    let found = cells(&opened(&context, &storage, "/deep/er/points"), ALL);
    assert_eq!(found.into_values().collect::<Vec<_>>(), [5, 6, 7]);
    let history = array.history(&Call::default()).unwrap();
    let line = history.iter().find(|v| v.version == version).unwrap();
    let done: Vec<_> = line.operations.iter().map(|change| (change.name, change.count)).collect();
    assert_eq!((done, line.message.as_deref()), (vec![("move", 1)], Some("tidied")));
    assert_eq!(names(&storage, "/", At::Version(version - 1)), ["dense", "sparse"]);
    assert_eq!(names(&storage, "/", At::Latest), ["deep", "dense"]);
    let gone = open_on(&context, storage.clone(), "/sparse", false, At::Latest).map(drop).unwrap_err();
    assert_eq!(gone.kind(), ErrorKind::NotFound);
    // A group with all below it, over a fold and back.
    for step in 0..70 {
        let (from, to) = if step % 2 == 0 { ("/deep", "/shallow") } else { ("/shallow", "/deep") };
        moved(&storage, from, to).unwrap();
    }
    assert_eq!(names(&storage, "/deep/er", At::Latest), ["points"]);
    assert_eq!(cells(&opened(&context, &storage, "/deep/er/points"), ALL).len(), 3);
    // What is created at the old place is another array.
    create_array_on(&context, storage.clone(), "/sparse", schema(true), false).unwrap();
    array.refresh().unwrap();
    assert_eq!((array.path().unwrap().as_str(), cells(&array, ALL).len()), ("/deep/er/points", 3));
}

#[test]
fn impossible_moves_are_refused_and_change_nothing() {
    let storage = memory();
    create_array_on(&context(), storage.clone(), "/g/a", schema(true), false).unwrap();
    let before = version_of(&storage);
    for (from, to, kind) in [
        ("/", "/x", ErrorKind::Input),
        ("/g", "/g", ErrorKind::Input),
        ("/g", "/g/h", ErrorKind::Input),
        ("/g", "/g/a/h", ErrorKind::Input),
        ("/g", "x", ErrorKind::Input),
        ("/g", "/", ErrorKind::Exists),
        ("/g", "/dense", ErrorKind::Exists),
        ("/g", "/dense/x", ErrorKind::Exists),
        ("/g/a", "/g", ErrorKind::Exists),
        ("/none", "/x", ErrorKind::NotFound),
    ] {
        let refused = moved(&storage, from, to).unwrap_err();
        assert_eq!(refused.kind(), kind, "{from} to {to}: {refused}");
    }
    assert_eq!(version_of(&storage), before);
    moved(&storage, "/g", "/gg").unwrap();
    assert_eq!(names(&storage, "/gg", At::Latest), ["a"]);
}

#[test]
fn moves_in_transactions_are_seen_inside_and_all_or_nothing() {
    let storage = memory();
    let begin = || Transaction::begin_on(&context(), storage.clone(), Isolation::Serializable).unwrap();
    let transaction = begin();
    transaction.move_node("/dense", "/old/dense").unwrap();
    transaction.move_node("/sparse", "/dense").unwrap();
    transaction.move_node("/old", "/older").unwrap();
    assert_eq!(transaction.kind("/older/dense").unwrap(), Some("array"));
    commit_cells(&transaction.array("/dense").unwrap(), &one(4, 4, 1), None).unwrap();
    assert_eq!(names(&storage, "/", At::Latest), ["dense", "sparse"], "nothing is seen outside");
    transaction.commit(None).unwrap();
    assert_eq!(
        (names(&storage, "/", At::Latest), names(&storage, "/older", At::Latest)),
        (vec!["dense".to_owned(), "older".to_owned()], vec!["dense".to_owned()])
    );
    assert_eq!(cells(&opened(&context(), &storage, "/dense"), ALL), one(4, 4, 1));

    // One that looked a path up which another moved away, and one that moves what another moved.
    let reader = begin();
    assert_eq!(reader.kind("/dense").unwrap(), Some("array"));
    reader.create_array("/new", schema(true), false).unwrap();
    let [first, second] = [begin(), begin()];
    first.move_node("/dense", "/a").unwrap();
    second.move_node("/dense", "/b").unwrap();
    first.commit(None).unwrap();
    assert_eq!(second.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(reader.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(names(&storage, "/", At::Latest), ["a", "older"]);
    // Chains within one transaction stand beside others' writes.
    let chain = begin();
    chain.move_node("/older", "/x").unwrap();
    chain.move_node("/x/dense", "/y").unwrap();
    commit_cells(&opened(&context(), &storage, "/older/dense"), &one(0, 0, 3), None).unwrap();
    chain.commit(None).unwrap();
    assert_eq!(cells(&opened(&context(), &storage, "/y"), ALL), one(0, 0, 3));
}
