//! A store's life without accidents: nodes, fragments, metadata, time travel, history, conflicts.

use super::world::*;
use crate::base::{ErrorKind, Id};
use crate::storage::{FaultPlan, FaultyStorage, MemoryStorage, Operation as Touch, Storage};
use crate::store::{Changes, Node, Operation, Recorded, Snapshot, StandardRules, Store};
use std::sync::Arc;
use std::sync::atomic::Ordering;

fn array_at(path: &str) -> (Id, Operation) {
    let id = fresh();
    (id, Operation::CreateArray { id, path: path.to_owned(), schema: schema(), ext: None })
}

fn commit(store: &Store, base: &Arc<Snapshot>, operations: Vec<Operation>) -> crate::base::Result<Arc<Snapshot>> {
    store.commit(base, Changes::new(operations), &mut StandardRules)
}

fn kind(result: crate::base::Result<Arc<Snapshot>>) -> ErrorKind {
    result.unwrap_err().kind()
}

#[test]
fn a_place_without_a_store_says_what_was_looked_for() {
    let store = store_in(memory());
    assert!(!store.exists().unwrap());
    let error = store.latest().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound);
    assert!(error.message().contains("there is no Gridstone store in mem://"), "{error}");
    assert_eq!(kind(store.at_version(1)), ErrorKind::NotFound);
    assert_eq!(kind(store.at_time(0)), ErrorKind::NotFound);
}

#[test]
fn a_store_is_created_once() {
    let storage = memory();
    let (store, snapshot, id) = with_array(Arc::clone(&storage));
    assert!(store.exists().unwrap());
    assert_eq!((snapshot.version(), snapshot.array("/").unwrap().id()), (1, id));
    assert_eq!(kind(store.create(Changes::default())), ErrorKind::Exists);
    assert_eq!(kind(store_in(storage).create(Changes::default())), ErrorKind::Exists);
}

#[test]
fn groups_are_made_for_a_path_and_arrays_have_no_children() {
    let store = store_in(memory());
    let (id, create) = array_at("/a/b/c");
    let one = store.create(Changes::new(vec![create])).unwrap();
    let paths: Vec<String> = one.nodes().unwrap().iter().map(|n| format!("{} {}", n.kind(), n.path())).collect();
    assert_eq!(paths, ["group /", "group /a", "group /a/b", "array /a/b/c"]);
    assert_eq!(one.children("/a").unwrap()[0].0, "b");
    assert_eq!(one.array("/a").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(one.array("/a/x").unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(kind(commit(&store, &one, vec![array_at("/a/b/c").1])), ErrorKind::Exists);
    assert_eq!(kind(commit(&store, &one, vec![array_at("/a/b/c/d").1])), ErrorKind::Exists);
    assert_eq!(kind(commit(&store, &one, vec![array_at("a").1])), ErrorKind::Input);

    let (second, create) = array_at("/a/b/c");
    let two = commit(&store, &one, vec![Operation::Remove { id }, create]).unwrap();
    assert_eq!(two.array("/a/b/c").unwrap().id(), second);
    assert!(two.node_by_id(id).unwrap().is_none() && one.node_by_id(id).unwrap().is_some());
    let group = two.node("/a").unwrap().id();
    let three = commit(&store, &two, vec![Operation::Remove { id: group }]).unwrap();
    assert_eq!((three.nodes().unwrap().len(), three.node_by_id(second).unwrap().is_none()), (1, true));
    let root = three.node("/").unwrap().id();
    assert_eq!(kind(commit(&store, &three, vec![Operation::Remove { id: root }])), ErrorKind::Input);
    let replaced = commit(&store, &three, vec![Operation::Remove { id: root }, array_at("/").1]).unwrap();
    assert!(matches!(replaced.node("/").unwrap(), Node::Array(_)));
    assert_eq!(seen(&store.latest().unwrap()), seen(&replaced));
}

#[test]
fn fragments_get_their_order_and_place_from_the_commit() {
    let storage = memory();
    let (store, one, id) = with_array(Arc::clone(&storage));
    let fragments = vec![inline(0, 9), in_file(storage.as_ref(), 10, 19), inline(20, 29)];
    let two = store.commit(&one, add(id, fragments), &mut StandardRules).unwrap();
    let array = two.array("/").unwrap();
    let orders: Vec<_> = array.fragments(None).unwrap().iter().map(|d| (d.order.version, d.order.index)).collect();
    assert_eq!(orders, [(2, 0), (2, 1), (2, 2)]);
    assert_eq!(array.fragments(Some(&cells(9, 10))).unwrap().len(), 2);
    assert_eq!((array.count_fragments(), one.array("/").unwrap().count_fragments()), (3, 0));
    check_bytes(&store, &two, id);
}

#[test]
fn fragments_that_do_not_fit_are_refused() {
    let (store, one, id) = with_array(memory());
    let refuse = |change: &dyn Fn(&mut crate::fragment::Description), expected| {
        let mut fragment = inline(0, 9);
        change(&mut fragment.description);
        assert_eq!(kind(store.commit(&one, add(id, vec![fragment]), &mut StandardRules)), expected);
    };
    refuse(&|d| d.schema = 1, ErrorKind::Input);
    refuse(&|d| d.attrs = vec![0, 2], ErrorKind::Input);
    refuse(&|d| d.bounds = cells(-1, 9), ErrorKind::Bounds);
    let mut empty = inline(0, 9);
    empty.body = Some(bytes::Bytes::new());
    assert_eq!(kind(store.commit(&one, add(id, vec![empty]), &mut StandardRules)), ErrorKind::Input);
    let twin = inline(0, 9);
    assert_eq!(
        kind(store.commit(&one, add(id, vec![twin.clone(), twin.clone()]), &mut StandardRules)),
        ErrorKind::Conflict
    );
    let two = store.commit(&one, add(id, vec![twin.clone()]), &mut StandardRules).unwrap();
    assert_eq!(kind(store.commit(&two, add(id, vec![twin.clone()]), &mut StandardRules)), ErrorKind::Conflict);
    assert_eq!(kind(store.commit(&one, add(id, vec![twin]), &mut StandardRules)), ErrorKind::Conflict);
    assert_eq!(store.latest().unwrap().version(), 2);
}

#[test]
fn a_receipt_committed_again_after_a_fold_is_found_out() {
    let storage = memory();
    let (store, one, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(3);
    let receipt = in_file(storage.as_ref(), 0, 9);
    let two = store.commit(&one, add(id, vec![receipt.clone()]), &mut StandardRules).unwrap();
    let later = commits(&store, two, id, 8);
    assert!(later.root().unwrap().version > 2);
    assert_eq!(kind(store.commit(&later, add(id, vec![receipt]), &mut StandardRules)), ErrorKind::Conflict);
}

#[test]
fn metadata_is_set_and_removed_and_the_last_writer_wins() {
    let (store, one, id) = with_array(memory());
    let set = |changes: &[(&str, Option<&str>)]| {
        let changes = changes.iter().map(|(k, v)| ((*k).to_owned(), v.map(str::to_owned))).collect();
        vec![Operation::SetMetadata { node: id, changes }]
    };
    let two = commit(&store, &one, set(&[("unit", Some("\"m\"")), ("n", Some("[1, 2.50]"))])).unwrap();
    let three = commit(&store, &one, set(&[("unit", Some("\"km\"")), ("gone", None)])).unwrap();
    let metadata = |s: &Snapshot| format!("{:?}", s.node("/").unwrap().metadata().all().unwrap());
    assert_eq!(metadata(&two), r#"{"n": "[1, 2.50]", "unit": "\"m\""}"#);
    assert_eq!(metadata(&three), r#"{"n": "[1, 2.50]", "unit": "\"km\""}"#);
    let four = commit(&store, &three, set(&[("n", None)])).unwrap();
    assert_eq!(metadata(&store.refresh(&one).unwrap()), metadata(&four));
    assert_eq!(kind(commit(&store, &four, set(&[("bad", Some("{"))]))), ErrorKind::Input);
}

/// The table of conflicts: each pair with a writer that has not seen the other's commit.
#[test]
fn conflicts_follow_the_table() {
    let store = store_in(memory());
    let (id, create) = array_at("/a");
    let one = store.create(Changes::new(vec![create])).unwrap();
    let (mine, create) = array_at("/a");
    let two = commit(&store, &one, vec![Operation::Remove { id }, create.clone(), array_at("/b").1]).unwrap();
    let metadata = Operation::SetMetadata { node: id, changes: vec![("k".into(), None)] };
    for stale in [Operation::Remove { id }, add(id, vec![inline(0, 9)]).operations.remove(0), metadata] {
        assert_eq!(kind(commit(&store, &one, vec![stale])), ErrorKind::Conflict);
    }
    assert_eq!(kind(commit(&store, &one, vec![Operation::Remove { id }, create.clone()])), ErrorKind::Conflict);
    for taken in ["/a", "/b", "/b/c"] {
        assert_eq!(kind(commit(&store, &one, vec![array_at(taken).1])), ErrorKind::Exists);
    }
    let absent = Operation::Remove { id: fresh() };
    assert_eq!(kind(commit(&store, &two, vec![absent])), ErrorKind::NotFound);
    assert_eq!(store.latest().unwrap().version(), 2);
    let three = add_one(&store, &two, mine).unwrap();
    let four = add_one(&store, &two, mine).unwrap();
    assert_eq!((three.version(), four.version(), four.array("/a").unwrap().count_fragments()), (3, 4, 2));
    let five = commit(&store, &three, vec![array_at("/c").1]).unwrap();
    assert_eq!((five.version(), five.nodes().unwrap().len()), (5, 4));
}

#[test]
fn any_version_can_be_opened_and_looks_as_it_did() {
    let storage = memory();
    let (store, mut snapshot, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(5);
    let mut past = vec![seen(&snapshot)];
    let mut follower = Arc::clone(&snapshot);
    for step in 0..40 {
        snapshot = match step % 8 {
            3 => commit(
                &store,
                &snapshot,
                vec![Operation::SetMetadata { node: id, changes: vec![("step".to_owned(), Some(step.to_string()))] }],
            ),
            _ => add_one(&store, &snapshot, id),
        }
        .unwrap();
        past.push(seen(&snapshot));
        follower = store.refresh(&follower).unwrap();
        assert_eq!(seen(&follower), seen(&snapshot));
        assert_eq!(follower.root().map(|r| r.version), snapshot.root().map(|r| r.version));
        assert_eq!(seen(&store_in(Arc::clone(&storage)).latest().unwrap()), seen(&snapshot));
    }
    for (version, then) in (1..).zip(&past) {
        let opened = store_in(Arc::clone(&storage)).at_version(version).unwrap();
        assert_eq!(&seen(&opened), then);
        check_bytes(&store, &opened, id);
    }
    assert_eq!(kind(store.at_version(0)), ErrorKind::NotFound);
    assert_eq!(kind(store.at_version(42)), ErrorKind::NotFound);
}

#[test]
fn times_ascend_and_lead_to_versions() {
    let clock = Arc::new(SetClock::default());
    let store = Store::new(memory(), clock.clone(), Arc::new(Counting));
    let at = |us: i64| clock.0.store(us, Ordering::Relaxed);
    at(1_000);
    let (id, create) = array_at("/");
    let mut snapshot = store.create(Changes::new(vec![create])).unwrap();
    for us in [2_000, 2_000, 500, 9_000] {
        at(us);
        snapshot = add_one(&store, &snapshot, id).unwrap();
    }
    let times: Vec<i64> = store.history(1, 99).unwrap().map(|r| r.unwrap().time_us).collect();
    assert_eq!(times, [1_000, 2_000, 2_001, 2_002, 9_000]);
    for (us, version) in [(1_000, 1), (1_999, 1), (2_000, 2), (2_001, 3), (8_999, 4), (i64::MAX, 5)] {
        assert_eq!(store.at_time(us).unwrap().version(), version, "{us}");
    }
    assert_eq!(kind(store.at_time(999)), ErrorKind::NotFound);
    at(9_000 - 25 * 3_600_000_000);
    assert_eq!(add_one(&store, &snapshot, id).unwrap().time_us(), 9_001);
}

#[test]
fn history_tells_what_was_done() {
    let (store, one, id) = with_array(memory());
    let mut changes = add(id, vec![inline(0, 9), inline(10, 19)]);
    changes.message = Some("first cells".to_owned());
    store.commit(&one, changes, &mut StandardRules).unwrap();
    let records: Vec<_> = store.history(0, u64::MAX).unwrap().collect::<Result<_, _>>().unwrap();
    assert_eq!(records.len(), 2);
    assert_eq!((records[1].message.as_deref(), records[1].read_version), (Some("first cells"), 1));
    assert_eq!(records[1].parent, Some(records[0].xxh3));
    assert!(matches!(&records[1].operations[0], Recorded::AddFragments { fragments, .. } if fragments.len() == 2));
    assert!(records[1].touches(id) && !records[1].touches(fresh()));
    assert_eq!(store.history(2, 2).unwrap().count(), 1);
    assert_eq!(store.history(3, 2).unwrap().count(), 0);
}

#[test]
fn a_gap_in_the_history_is_an_error() {
    let memory = MemoryStorage::new();
    let (store, one, id) = with_array(Arc::new(memory.clone()));
    commits(&store, one, id, 9);
    memory.delete("_log/00000000000000000005").unwrap();
    let told: Vec<_> = store.history(3, u64::MAX).unwrap().collect();
    let versions: Vec<u64> = told.iter().flatten().map(|r| r.version).collect();
    let error = told.last().unwrap().as_ref().unwrap_err();
    assert_eq!((versions, told.len(), error.kind()), (vec![3, 4], 3, ErrorKind::Corruption));
    assert!(error.message().contains("version 5"), "{error}");
}

#[test]
fn a_bad_path_leaves_nothing_behind() {
    let memory = MemoryStorage::new();
    let plan = FaultPlan::new();
    let store = store_in(Arc::new(FaultyStorage::new(Arc::new(memory), Arc::clone(&plan))));
    for path in ["a", "/a//b", "/a/../b", ""] {
        assert_eq!(kind(store.create(Changes::new(vec![array_at(path).1]))), ErrorKind::Input);
        let group = Operation::CreateGroup { id: fresh(), path: path.to_owned(), ext: None };
        assert_eq!(kind(store.create(Changes::new(vec![group]))), ErrorKind::Input);
    }
    assert!(!plan.journal().contains(&Touch::Prepare));
}

#[test]
fn a_missing_or_wrong_hint_costs_only_probes() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (store, one, id) = with_array(Arc::clone(&storage));
    commits(&store, one, id, 29);
    for hint in ["24", "1", "30", "31", "999999", "0", "-1", "", "\u{fffd}", "18446744073709551615"] {
        memory.put_hint("_log/latest", hint.as_bytes()).unwrap();
        assert_eq!(store_in(Arc::clone(&storage)).latest().unwrap().version(), 30, "{hint:?}");
    }
    memory.delete("_log/latest").unwrap();
    assert_eq!(store_in(storage).latest().unwrap().version(), 30);
}
