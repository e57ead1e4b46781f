//! Promise: tags and leases keep the versions that they name, and every pair of commits that touch what is kept comes out as the
//! table of conflicts says.

use crate::support::columns::numbers;
use crate::support::line::{create, read, stage, write};
use crate::support::store::{SetClock, context_with, nothing_is_left, open, options};
use gridstone::base::{ErrorKind, Id};
use gridstone::engine::{Array, At, Call, Context, Keep, Options, ReadOrder, Strategy, VacuumOptions};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::storage::{FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage};
use gridstone::store::{Changes, Condemned, Lease, Operation as Change, Snapshot, StandardRules, Store};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

fn store_of(storage: &Arc<dyn Storage>) -> Store {
    Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy))
}

/// A store of `versions` versions with a sparse array.
fn written(context: &Context, versions: u64) -> (Arc<dyn Storage>, Array) {
    written_in(MemoryStorage::new(), context, versions)
}

fn written_in(storage: MemoryStorage, context: &Context, versions: u64) -> (Arc<dyn Storage>, Array) {
    let storage: Arc<dyn Storage> = Arc::new(storage);
    let array = create(context, &storage, "/line", false);
    for version in 2..=versions as i64 {
        write(&array, &[(version, version)].into()).unwrap();
    }
    (storage, array)
}

fn context() -> Context {
    context_with(64, Arc::new(SystemClock))
}

fn tag(name: &str, version: u64, replace: bool) -> Change {
    Change::Tag { name: name.to_owned(), version, replace }
}

fn untag(name: &str, version: u64) -> Change {
    Change::Untag { name: name.to_owned(), version }
}

/// What becomes of `ours`, prepared before `theirs` was committed.
fn race(store: &Store, theirs: Change, ours: Change) -> std::result::Result<Arc<Snapshot>, ErrorKind> {
    let base = store.latest().unwrap();
    store.commit(&base, Changes::new(vec![theirs]), &mut StandardRules).unwrap();
    store.commit(&base, Changes::new(vec![ours]), &mut StandardRules).map_err(|e| e.kind())
}

#[test]
fn pairs_of_tags_follow_the_table() {
    let (storage, array) = written(&context(), 9);
    let store = store_of(&storage);
    let tags = |snapshot: &Snapshot| snapshot.retained().tags().unwrap().into_iter().collect::<Vec<_>>();
    assert_eq!(race(&store, tag("a", 3, false), tag("a", 4, false)).unwrap_err(), ErrorKind::Exists);
    assert_eq!(tags(&race(&store, tag("a", 5, true), tag("a", 6, true)).unwrap()), [("a".to_owned(), 6)]);
    assert_eq!(race(&store, tag("a", 7, true), untag("a", 6)).unwrap_err(), ErrorKind::Conflict);
    assert_eq!(race(&store, untag("a", 7), untag("a", 7)).unwrap_err(), ErrorKind::Conflict);
    assert_eq!(tags(&race(&store, tag("b", 3, false), tag("a", 4, false)).unwrap()).len(), 2);
    let metadata = Change::SetMetadata { node: array.id(), changes: vec![("k".into(), Some("1".into()))] };
    race(&store, metadata.clone(), tag("c", 5, false)).unwrap();
    race(&store, tag("d", 5, false), metadata).unwrap();
    race(&store, Change::Remove { id: array.id() }, tag("e", 5, false)).unwrap();
    let alone = |change| {
        let newest = store.latest().unwrap();
        store.commit(&newest, Changes::new(vec![change]), &mut StandardRules).map_err(|e| e.kind()).map(|s| s.version())
    };
    let newest = store.latest().unwrap().version();
    assert_eq!(alone(tag("later", newest + 1, false)), Err(ErrorKind::NotFound));
    assert_eq!(alone(tag("", 1, false)), Err(ErrorKind::Input));
    assert_eq!(alone(tag(&"x".repeat(256), 1, false)), Err(ErrorKind::Input));
    assert_eq!(alone(tag("new\nline", 1, false)), Err(ErrorKind::Input));
    assert_eq!(alone(untag("unknown", 1)), Err(ErrorKind::NotFound));
    assert_eq!(alone(tag("now", newest, false)), Ok(newest + 1));
}

#[test]
fn pairs_with_condemned_files_follow_the_table() {
    let (storage, array) = written(&context(), 9);
    let store = store_of(&storage);
    let floor = |version| store.rooted(version, None).unwrap().root();
    let condemn = |floor, data: Vec<Id>| Change::Condemn(Condemned { floor, data, ..Condemned::default() });
    // A file that is added or put in the place of others after it was condemned.
    let cells = (0..9_000).map(|x| (x, x)).collect();
    array.refresh().unwrap();
    let staged = stage(&array, &cells);
    let base = store.latest().unwrap();
    let file = storage.list("_data").unwrap().pop().unwrap();
    let id = Id::parse(&file[6..38]).unwrap();
    store.commit(&base, Changes::new(vec![condemn(None, vec![id])]), &mut StandardRules).unwrap();
    let error = array.commit(vec![staged], None).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("condemned"), "{error}");
    // Others stand, before and after.
    let metadata = Change::SetMetadata { node: array.id(), changes: vec![("k".into(), Some("1".into()))] };
    race(&store, condemn(None, vec![]), metadata.clone()).unwrap();
    race(&store, metadata, condemn(None, vec![])).unwrap();
    race(&store, condemn(floor(3), vec![]), tag("kept", 3, false)).unwrap();
    race(&store, condemn(floor(3), vec![]), untag("kept", 3)).unwrap();
    // A tag below a floor, a floor above a tag, a floor below a floor.
    assert_eq!(race(&store, condemn(floor(5), vec![]), tag("late", 4, false)).unwrap_err(), ErrorKind::SnapshotExpired);
    assert_eq!(race(&store, tag("first", 6, false), condemn(floor(7), vec![])).unwrap_err(), ErrorKind::Conflict);
    assert_eq!(race(&store, condemn(floor(6), vec![]), condemn(floor(5), vec![])).unwrap_err(), ErrorKind::Conflict);
    let state = store.latest().unwrap();
    let held = (state.retained().floor().unwrap().version, state.retained().condemned_data().unwrap().len());
    assert_eq!(held, (6, 1));
    let forget = Change::Condemn(Condemned { forget: vec![id], ..Condemned::default() });
    let state = store.commit(&state, Changes::new(vec![forget]), &mut StandardRules).unwrap();
    assert!(state.retained().condemned_data().unwrap().is_empty());
}

/// A storage in which `meanwhile` happens right before the n-th operation of a kind in a folder.
fn interrupted(
    storage: &Arc<dyn Storage>,
    (kind, folder, nth): (Operation, &'static str, usize),
    meanwhile: impl FnOnce() + Send + 'static,
) -> Arc<dyn Storage> {
    let (meanwhile, count) = (Mutex::new(Some(meanwhile)), AtomicUsize::new(0));
    let hook = move |operation, name: &str| {
        if operation == kind
            && name.starts_with(folder)
            && count.fetch_add(1, Ordering::Relaxed) + 1 == nth
            && let Some(meanwhile) = meanwhile.lock().unwrap().take()
        {
            meanwhile();
        }
    };
    Arc::new(HookedStorage::new(storage.clone(), hook))
}

/// What others commit between the plan of a vacuum and its own commit is heeded.
#[test]
fn a_vacuum_that_loses_its_slot_looks_again() {
    let run = |meanwhile: fn(&Array)| {
        let (storage, array) = written(&context(), 9);
        let staged = stage(&array, &(0..9_000).map(|x| (x, 5)).collect());
        let (other, healthy) = (array.clone(), storage.clone());
        let hooked = interrupted(&storage, (Operation::PutIfAbsent, "_log", 1), move || {
            other.commit(vec![staged], None).unwrap();
            meanwhile(&other);
        });
        let vacuuming = open(&context(), &hooked, "/line", At::Latest).unwrap();
        let report = vacuuming.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
        let after = open(&context(), &healthy, "/line", At::Latest).unwrap();
        assert_eq!(read(&after).unwrap().get(&8_999), Some(&5), "the file that was committed first is there");
        assert!(after.verify(&Call::default()).unwrap().damage.is_empty());
        (report, after)
    };
    let (report, _) = run(|_| ());
    assert_eq!((report.oldest, report.data.objects), (9, 0));
    let (report, after) = run(|other| assert_eq!(other.tag("in time", Some(4), false).unwrap(), 4));
    assert_eq!((report.oldest, report.held_by[0].tag.as_deref()), (4, Some("in time")));
    assert_eq!(read(&after.at_tag("in time").unwrap()).unwrap(), [(2, 2), (3, 3), (4, 4)].into());
    let (report, _) = run(|other| drop(other.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap()));
    assert!(report.oldest >= 10, "{report:?}");
}

/// A vacuum writes a root for its floor, which no version names yet. Another one without a safety age may take it away, and
/// leave the floor where it is.
#[test]
fn a_vacuum_whose_root_another_takes_looks_again() {
    let (storage, array) = written(&context(), 9);
    let other = array.clone();
    let hooked = interrupted(&storage, (Operation::ReadAll, "_manifest", 1), move || {
        let report = other.vacuum(&options(Keep::Versions(100)), &Call::default()).unwrap();
        assert!(report.oldest == 1 && report.manifest.objects > 1, "{report:?}");
    });
    let vacuuming = open(&context(), &hooked, "/line", At::Latest).unwrap();
    let report = vacuuming.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    assert_eq!((report.oldest_before, report.oldest), (1, 9), "{report:?}");
    assert_eq!(read(&open(&context(), &storage, "/line", At::Latest).unwrap()).unwrap().len(), 8);
    nothing_is_left(&storage, "after both");
}

fn write_more(array: &Array, count: i64) {
    for x in 100..100 + count {
        write(array, &[(x, x)].into()).unwrap();
    }
}

/// A reader opens its version anew because a vacuum has taken its pages away, and the next vacuum takes those that it finds
/// then, whichever object it is about to read.
#[test]
fn a_reader_may_be_overtaken_twice() {
    for nth in 1..8 {
        let context = context_with(10, Arc::new(SystemClock));
        let (storage, array) = written(&context, 29);
        let other = array.clone();
        let hooked = interrupted(&storage, (Operation::ReadAll, "_manifest", nth), move || {
            other.vacuum(&options(Keep::Versions(12)), &Call::default()).unwrap();
        });
        let reader = open(&context, &hooked, "/line", At::Version(29)).unwrap();
        write_more(&array, 10);
        array.vacuum(&options(Keep::Versions(14)), &Call::default()).unwrap();
        let found = read(&reader).unwrap_or_else(|e| panic!("overtaken before reading object {nth}: {e}"));
        assert_eq!(found, (2..=29).map(|x| (x, x)).collect());
    }
}

/// A merge loses its slot, and looks at what came first while a vacuum takes the pages of that away.
#[test]
fn a_merge_may_be_overtaken_by_writers_and_a_vacuum() {
    for nth in 1..12 {
        let context = context_with(4, Arc::new(SystemClock));
        let (storage, array) = written(&context, 18);
        let (first, second) = (array.clone(), array.clone());
        let lost = interrupted(&storage, (Operation::PutIfAbsent, "_log", 1), move || write_more(&first, 5));
        let hooked = interrupted(&lost, (Operation::ReadAll, "_manifest", nth), move || {
            write_more(&second, 8);
            second.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
        });
        let merging = open(&context, &hooked, "/line", At::Latest).unwrap();
        if let Err(e) = merging.consolidate(&Strategy::All, 1 << 20, false, &Call::default()) {
            assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "overtaken before reading object {nth}: {e}");
        }
        write_more(&array, 8);
        let after = open(&context, &storage, "/line", At::Latest).unwrap();
        assert_eq!(read(&after).unwrap(), (2..=18).chain(100..108).map(|x| (x, x)).collect());
        assert!(after.verify(&Call::default()).unwrap().damage.is_empty());
    }
}

#[test]
fn a_tag_keeps_its_version_until_it_is_taken_away() {
    let (storage, array) = written(&context(), 20);
    assert_eq!(array.tag("five", Some(5), false).unwrap(), 5);
    assert_eq!(array.tag("now", None, false).unwrap(), 21);
    assert_eq!(array.tag("five", Some(6), false).unwrap_err().kind(), ErrorKind::Exists);
    let report = array.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    assert_eq!((report.oldest, report.held_by.len()), (5, 2), "{report:?}");
    let at_five = array.at_tag("five").unwrap();
    assert_eq!(read(&at_five).unwrap(), (2..=5).map(|v| (v, v)).collect());
    assert_eq!(array.at_tag("six").unwrap_err().kind(), ErrorKind::NotFound);
    let history = array.history(&Call::default()).unwrap();
    let tagged: Vec<_> = history.iter().filter(|v| !v.tags.is_empty()).map(|v| (v.version, v.tags.clone())).collect();
    assert_eq!(tagged, [(5, vec!["five".to_owned()])]);
    assert_eq!(array.tags().unwrap(), [("five".to_owned(), 5), ("now".to_owned(), 21)]);
    array.untag("five").unwrap();
    array.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    // All that the handle needs is still needed by others, and so it reads on; but nobody can open the version any more.
    assert_eq!(read(&at_five).unwrap(), (2..=5).map(|v| (v, v)).collect());
    assert_eq!(array.at(At::Version(5)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(array.at(At::Version(20)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(array.at_tag("now").unwrap().version(), 21);
    assert_eq!(array.tag("five", Some(5), false).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    // Tags and the floor are in the roots: they outlive the records.
    let reopened = open(&context(), &storage, "/line", At::Latest).unwrap();
    assert_eq!(reopened.tags().unwrap(), [("now".to_owned(), 21)]);
}

const MINUTE: i64 = 60_000_000;

fn at_time(clock: &Arc<SetClock>, now_us: i64) {
    clock.0.store(now_us, Ordering::Relaxed);
}

#[test]
fn age_counts_from_when_a_version_was_replaced() {
    let clock = Arc::new(SetClock::default());
    let context = context_with(64, clock.clone());
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new().with_clock(clock.clone()));
    at_time(&clock, MINUTE);
    let array = create(&context, &storage, "/line", false);
    for minute in 2..=10 {
        at_time(&clock, minute * MINUTE);
        write(&array, &[(minute, minute)].into()).unwrap();
    }
    let oldest = |now: i64, age: i64| {
        at_time(&clock, now);
        let plan = VacuumOptions { dry_run: true, ..options(Keep::AgeUs(age)) };
        array.vacuum(&plan, &Call::default()).unwrap().oldest
    };
    // Version n came at minute n and was the newest until minute n + 1.
    assert_eq!(oldest(10 * MINUTE, 3 * MINUTE), 7);
    assert_eq!(oldest(10 * MINUTE, 3 * MINUTE + 1), 6);
    assert_eq!(oldest(1_000 * MINUTE, MINUTE), 10, "the newest stays, however old");
    assert_eq!(oldest(10 * MINUTE, 1_000 * MINUTE), 1);
    assert_eq!(oldest(10 * MINUTE, i64::MAX), 1);
    at_time(&clock, 10 * MINUTE);
    array.vacuum(&options(Keep::AgeUs(3 * MINUTE)), &Call::default()).unwrap();
    assert_eq!(array.at(At::Version(6)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(read(&array.at(At::Version(7)).unwrap()).unwrap().len(), 6);
}

fn leases(storage: &Arc<dyn Storage>) -> Vec<Lease> {
    let names = storage.list("_lease").unwrap();
    names.iter().map(|name| Lease::decode(&storage.read_all(name).unwrap()).unwrap()).collect()
}

#[test]
fn a_lease_keeps_what_a_reader_uses() {
    let clock = Arc::new(SetClock::default());
    let context = context_with(64, clock.clone());
    at_time(&clock, MINUTE);
    let (storage, array) = written_in(MemoryStorage::new().with_clock(clock.clone()), &context, 10);
    let reader = array.at(At::Version(5)).unwrap();
    read(&reader).unwrap();
    at_time(&clock, 2 * MINUTE - 1);
    read(&reader).unwrap();
    assert!(leases(&storage).is_empty(), "the snapshot is not a minute old");
    at_time(&clock, 2 * MINUTE);
    let expected = read(&reader).unwrap();
    let lease = Lease { version: 5, written_us: 2 * MINUTE, expires_us: 12 * MINUTE };
    assert_eq!(leases(&storage), [lease]);
    let vacuum = || array.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    let report = vacuum();
    assert_eq!((report.oldest, report.held_by[0].version, report.leases), (5, 5, 0));
    assert_eq!(read(&reader).unwrap(), expected);
    // Reading renews it when half the term has passed, not before.
    at_time(&clock, 7 * MINUTE - 1);
    read(&reader).unwrap();
    assert_eq!(leases(&storage), [lease]);
    at_time(&clock, 7 * MINUTE);
    read(&reader).unwrap();
    assert_eq!(leases(&storage), [Lease { version: 5, written_us: 7 * MINUTE, expires_us: 17 * MINUTE }]);
    // A reader that is silent for the term, and a minute for clocks that differ, loses it.
    at_time(&clock, 18 * MINUTE - 1);
    assert_eq!(vacuum().oldest, 5);
    at_time(&clock, 18 * MINUTE);
    let report = vacuum();
    assert_eq!((report.oldest, report.leases), (10, 1), "{report:?}");
    assert!(leases(&storage).is_empty());
    let error = read(&reader).unwrap_err();
    assert!(error.kind() == ErrorKind::SnapshotExpired && error.message().contains("refresh"), "{error}");
    assert_eq!(
        reader
            .points(&[crate::support::columns::view(&3i64.to_le_bytes())], None, &Call::default())
            .unwrap_err()
            .kind(),
        ErrorKind::SnapshotExpired
    );
    drop(reader);
    assert!(leases(&storage).is_empty());
}

/// The lease goes with the handle, or when it moves on; a scan under way holds it.
#[test]
fn a_lease_goes_with_its_last_user() {
    let clock = Arc::new(SetClock::default());
    let options = Options { lease_after_us: 0, clock: clock.clone(), threads: Some(1), ..Options::default() };
    let context = Context::new(&options).unwrap();
    let (storage, array) = written(&context, 10);
    let versions = || leases(&storage).iter().map(|l| l.version).collect::<Vec<_>>();
    let reader = array.at(At::Version(4)).unwrap();
    let mut scan = reader.scan(None, None, ReadOrder::Any, 1 << 20, &Call::default()).unwrap();
    assert_eq!(versions(), [4]);
    drop(reader);
    assert_eq!(versions(), [4], "the scan goes on");
    assert_eq!(numbers(&scan.next_batch().unwrap().unwrap().dims[0]), [2, 3, 4]);
    drop(scan);
    assert!(versions().is_empty());
    read(&array).unwrap();
    assert_eq!(versions(), [10]);
    write(&array, &[(1, 1)].into()).unwrap();
    assert!(versions().is_empty(), "the handle has moved on");
    read(&array).unwrap();
    assert_eq!(versions(), [11]);
    for terms in [(-1, 1), (0, 0), (0, -5)] {
        let bad = Options { lease_after_us: terms.0, lease_term_us: terms.1, ..Options::default() };
        assert_eq!(Context::new(&bad).unwrap_err().kind(), ErrorKind::Input);
    }
}

/// Where leases cannot be written reading works, until the version is vacuumed, which is said.
#[test]
fn a_reader_that_cannot_write_is_told_when_its_snapshot_expires() {
    let (storage, array) = written(&context(), 10);
    let plan = FaultPlan::new();
    let read_only: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan.clone()));
    let options_ = Options { lease_after_us: 0, threads: Some(1), cache: 0, ..Options::default() };
    let reader = open(&Context::new(&options_).unwrap(), &read_only, "/line", At::Version(4)).unwrap();
    plan.fail_nth_of(Operation::PutHint, 1, gridstone::storage::Fault::Error);
    assert_eq!(read(&reader).unwrap().len(), 3);
    assert!(plan.struck() && leases(&storage).is_empty());
    array.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
    assert_eq!(read(&reader).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(reader.verify(&Call::default()).unwrap_err().kind(), ErrorKind::SnapshotExpired);
    assert_eq!(reader.history(&Call::default()).unwrap().len(), 0);
    // A file that is missing from a kept version is damage, and no vacuum's doing.
    let newest = open(&Context::new(&options_).unwrap(), &storage, "/line", At::Latest).unwrap();
    for name in storage.list("_data").unwrap() {
        storage.delete(&name).unwrap();
    }
    assert_ne!(read(&newest).unwrap_err().kind(), ErrorKind::SnapshotExpired);
}
