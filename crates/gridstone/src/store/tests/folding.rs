//! Folding, the floor, and the I/O of opening, refreshing and committing.

use super::world::*;
use crate::base::{ErrorKind, FileRef, Result, limits};
use crate::storage::{
    CountingStorage, FLOOR, Fault, FaultPlan, FaultyStorage, LATEST, MemoryStorage, Operation, Storage, log_name,
};
use crate::store::{Changes, Floor, Rebase, Record, RootRef, Snapshot, StandardRules, Store};
use std::sync::Arc;

fn counted() -> (MemoryStorage, Arc<CountingStorage>) {
    let memory = MemoryStorage::new();
    (memory.clone(), Arc::new(CountingStorage::new(Arc::new(memory))))
}

#[test]
fn a_small_commit_is_one_object_and_looks_at_the_record_before_and_the_floor() {
    let (_, storage) = counted();
    let (store, mut snapshot, id) = with_array(storage.clone());
    storage.reset();
    for _ in 0..6 {
        snapshot = add_one(&store, &snapshot, id).unwrap();
        let counts = storage.snapshot();
        let hints = u64::from(snapshot.version() == 4);
        assert_eq!((counts.count(Operation::PutIfAbsent), counts.count(Operation::ReadAll)), (1, 2));
        assert_eq!((counts.count(Operation::PutHint), counts.total()), (hints, 3 + hints));
        storage.reset();
    }
    add_one(&store, &snapshot, id).unwrap();
    assert_eq!((storage.snapshot().count(Operation::PutHint), storage.snapshot().total()), (1, 4));
}

#[test]
fn a_refresh_reads_what_is_new() {
    let (_, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let two = add_one(&store, &one, id).unwrap();
    storage.reset();
    assert_eq!(seen(&store.refresh(&one).unwrap()), seen(&two));
    assert_eq!(storage.snapshot().count(Operation::ReadAll), 3);
    storage.reset();
    assert!(Arc::ptr_eq(&store.refresh(&two).unwrap(), &two));
    assert_eq!(storage.snapshot().total(), 2);
}

#[test]
fn opening_after_a_thousand_commits_reads_a_bounded_number_of_objects() {
    let (_, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let last = commits(&store, one, id, 1_000);
    for version in [last.version(), 1_000, 777, 65, 64, 1] {
        storage.reset();
        let opened = store_in(storage.clone()).at_version(version).unwrap();
        assert_eq!(opened.array("/").unwrap().count_fragments(), version - 1);
        let counts = storage.snapshot();
        assert!(counts.count(Operation::ReadAll) <= limits::FOLD_VERSIONS + 3, "{:?}", counts.operations);
        assert_eq!(counts.count(Operation::List), 0);
    }
    storage.reset();
    let opened = store_in(storage.clone()).latest().unwrap();
    let reads = storage.snapshot().count(Operation::ReadAll);
    assert!(reads <= limits::FOLD_VERSIONS + 4, "{reads}");
    assert!(storage.snapshot().count(Operation::Exists) <= 10);
    storage.reset();
    let all = opened.array("/").unwrap().fragments(None).unwrap();
    let again = opened.array("/").unwrap().fragments(Some(&cells(0, 50))).unwrap();
    assert_eq!((all.len(), storage.snapshot().count(Operation::ReadAll)), (1_000, 1));
    assert!(again.len() < 100);
    assert!(all.is_sorted_by(|a, b| a.order < b.order));
    check_bytes(&store, &opened, id);
}

#[test]
fn a_refresh_from_far_behind_opens_anew_and_one_from_near_adopts_the_root() {
    let (_, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let near = commits(&store, one.clone(), id, 150);
    let last = commits(&store, near.clone(), id, 60);
    storage.reset();
    let opened = store_in(storage.clone()).refresh(&one).unwrap();
    assert_eq!(seen(&opened), seen(&last));
    assert_eq!(seen(&store.refresh(&near).unwrap()), seen(&last));
    assert_eq!(store.refresh(&near).unwrap().root(), last.root());
}

#[test]
fn pages_are_cut_by_space_and_full_ones_are_kept() {
    let (_, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(1);
    let many = |from: i64, count: i64| (from..from + count).map(|i| inline(i * 7 % 90_000, i * 7 % 90_000)).collect();
    let two = store.commit(&one, add(id, many(0, 9_000)), &mut StandardRules).unwrap();
    let three = add_one(&store, &two, id).unwrap();
    let pages = |s: &Snapshot| {
        let mut pages: Vec<_> = s.array("/").unwrap().shelves.iter().map(|s| s.info().clone()).collect();
        // In the order in which they were made: a page that is not full comes last.
        pages.sort_by_key(|page| (!page.full, page.bounds.ranges()[0].lo));
        pages
    };
    let first = pages(&three);
    assert_eq!(first.iter().map(|p| p.count).collect::<Vec<_>>(), [3_000; 3]);
    assert!(first.iter().all(|p| p.full));
    assert!((0..3).all(|i| (0..i).all(|j| !first[i].bounds.intersects(&first[j].bounds))));

    let four = add_one(&store, &three, id).unwrap();
    let five = add_one(&store, &four, id).unwrap();
    assert_eq!((&pages(&five)[..3], pages(&five).len(), pages(&five)[3].count), (&first[..], 4, 2));
    storage.reset();
    let opened = store_in(storage.clone()).latest().unwrap();
    storage.reset();
    opened.array("/").unwrap().fragments(Some(&cells(50_000, 50_010))).unwrap();
    assert_eq!(storage.snapshot().count(Operation::ReadAll), 1);
    assert_eq!(opened.array("/").unwrap().count_fragments(), 9_003);
    check_bytes(&store, &opened, id);
}

#[test]
fn a_fold_rewrites_one_page_and_moves_inline_fragments_into_one_pack() {
    let (memory, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(10);
    let before = commits(&store, one, id, 9);
    storage.reset();
    let after = add_one(&store, &before, id).unwrap();
    let counts = storage.snapshot();
    assert_eq!(counts.count(Operation::Create), 3, "a pack, a page and a root");
    assert_eq!(after.root().unwrap().version, 10);
    assert_eq!(memory.list("_data").unwrap().len(), 1);
    let fragments = after.array("/").unwrap().fragments(None).unwrap();
    let packed = fragments.iter().filter(|d| matches!(d.location.file, FileRef::Data(_))).count();
    assert_eq!((fragments.len(), packed), (10, 9));
    assert_eq!(seen(&store_in(storage).latest().unwrap()), seen(&after));
    check_bytes(&store, &after, id);
}

/// A store whose log was truncated at version `floor`, by hand.
fn truncated(memory: &MemoryStorage, store: &Store, floor: u64) -> RootRef {
    let root = store.record(floor + 1).unwrap().root.unwrap();
    assert_eq!(root.version, floor);
    memory.put(FLOOR, &Floor { version: floor, root }.encode().unwrap()).unwrap();
    (1..floor).for_each(|v| memory.delete(&log_name(v)).unwrap());
    root
}

#[test]
fn the_floor_is_obeyed() {
    let (memory, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(10);
    let five = commits(&store, one.clone(), id, 4);
    let last = commits(&store, five.clone(), id, 30);
    let past: Vec<_> = (20..=35).map(|v| seen(&store.at_version(v).unwrap())).collect();
    truncated(&memory, &store, 20);
    for hint in ["8", "20", "35", "99", ""] {
        memory.put_hint(LATEST, hint.as_bytes()).unwrap();
        assert_eq!(seen(&store_in(storage.clone()).latest().unwrap()), seen(&last));
    }
    for (version, then) in (20..).zip(&past) {
        assert_eq!(&seen(&store.at_version(version).unwrap()), then);
    }
    assert_eq!(store.at_version(19).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(store.record(3).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(store.at_time(five.time_us()).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(store.at_time(i64::MAX).unwrap().version(), 35);
    assert_eq!(store.history(1, u64::MAX).unwrap().count(), 16);
    assert_eq!(seen(&store.refresh(&five).unwrap()), seen(&last));
    assert!(store_in(storage.clone()).exists().unwrap());
    assert_eq!(store.create(Changes::default()).unwrap_err().kind(), ErrorKind::Exists);
}

#[test]
fn a_commit_below_the_floor_is_lost_and_done_again_at_the_end() {
    let (memory, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(10);
    let five = commits(&store, one, id, 4);
    commits(&store, five.clone(), id, 30);
    truncated(&memory, &store, 20);
    let next = add_one(&store, &five, id).unwrap();
    assert_eq!((next.version(), next.array("/").unwrap().count_fragments()), (36, 35));
    assert!(!memory.exists(&log_name(6)).unwrap());

    struct Careful;
    impl Rebase for Careful {
        fn rebase(&mut self, _: &Record, _: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
            Ok(())
        }
    }
    let error = store.commit(&five, Changes::default(), &mut Careful).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::SnapshotExpired);
    assert_eq!(store.latest().unwrap().version(), 36);
}

#[test]
fn the_history_that_the_floor_passes_while_it_is_read_has_expired() {
    let (memory, storage) = counted();
    let (store, one, id) = with_array(storage);
    let store = store.with_fold_versions(10);
    commits(&store, one, id, 34);
    let mut history = store.history(1, u64::MAX).unwrap();
    assert_eq!(history.next().unwrap().unwrap().version, 1);
    truncated(&memory, &store, 20);
    assert_eq!(history.next().unwrap().unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert!(history.next().is_none());
}

/// Remembers the versions passed to it.
struct Watching(Vec<u64>);

impl Rebase for Watching {
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
        assert_eq!(lost_to.version, newest.version());
        self.0.push(lost_to.version);
        Ok(())
    }
}

#[test]
fn a_writer_far_behind_opens_the_newest_version_if_its_rules_allow() {
    let (_, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(10);
    let last = commits(&store, one.clone(), id, 400);
    storage.reset();
    let next = add_one(&store, &one, id).unwrap();
    assert_eq!((next.version(), next.array("/").unwrap().count_fragments()), (last.version() + 1, 401));
    let reads = storage.snapshot().count(Operation::ReadAll);
    assert!(reads < 100, "{reads}");
    let mut watching = Watching(Vec::new());
    let after = store.commit(&one, add(id, vec![inline(0, 9)]), &mut watching).unwrap();
    assert_eq!(after.version(), next.version() + 1);
    assert_eq!(watching.0, (2..=next.version()).collect::<Vec<_>>());
    check_bytes(&store, &after, id);
}

/// Must not get a record that is no version.
struct OnlyPastFloor;

impl Rebase for OnlyPastFloor {
    fn rebase(&mut self, lost_to: &Record, _: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
        panic!("version {} is void", lost_to.version)
    }

    fn rebase_past_floor(&mut self, _: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
        Ok(())
    }
}

/// A writer below the floor could not remove its void record: it does not count as a version.
#[test]
fn a_record_left_below_the_floor_means_nothing() {
    let (memory, plan) = (MemoryStorage::new(), FaultPlan::new());
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(memory.clone()), Arc::clone(&plan)));
    let (store, one, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(10);
    let five = commits(&store, one, id, 4);
    commits(&store, five.clone(), id, 30);
    truncated(&memory, &store, 20);
    plan.fail_nth_of(Operation::Delete, 1, Fault::Error);
    let next = add_one(&store, &five, id).unwrap();
    assert!(memory.exists(&log_name(6)).unwrap() && next.version() == 36);
    memory.put_hint(LATEST, b"6").unwrap();
    let other = store_in(Arc::clone(&storage));
    assert_eq!(seen(&other.refresh(&five).unwrap()), seen(&next));
    assert_eq!(seen(&store_in(storage).latest().unwrap()), seen(&next));
    let after = other.commit(&five, add(id, vec![inline(0, 9)]), &mut OnlyPastFloor).unwrap();
    assert_eq!((after.version(), after.array("/").unwrap().count_fragments()), (37, 36));
}

#[test]
fn a_floor_without_its_record_is_damage() {
    let (memory, storage) = counted();
    let (store, one, id) = with_array(storage.clone());
    let store = store.with_fold_versions(2);
    commits(&store, one, id, 2);
    truncated(&memory, &store, 2);
    memory.delete(&log_name(2)).unwrap();
    memory.delete(&log_name(3)).unwrap();
    assert_eq!(store_in(storage).latest().unwrap_err().kind(), ErrorKind::Corruption);
}
