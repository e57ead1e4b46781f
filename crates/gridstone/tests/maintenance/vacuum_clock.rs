//! Promise: a vacuum goes by the storage's clock alone. Whatever the clocks of readers, writers and the machine that vacuums show, no write is
//! undone, no version that is to stay is taken, and no living reader loses its own.

use crate::support::line::{create, read, write};
use crate::support::store::{SetClock, context_with, open};
use gridstone::base::{Clock, ErrorKind};
use gridstone::engine::{Array, At, Call, Context, Keep, Options, VacuumOptions};
use gridstone::runtime::SystemClock;
use gridstone::storage::{FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage, log_name};
use gridstone::store::Lease;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};

const HOUR: i64 = 3_600_000_000;
const DAY: i64 = 24 * HOUR;

/// A clock that is wrong by so many microseconds.
#[derive(Debug)]
struct Wrong(i64);

impl Clock for Wrong {
    fn now_us(&self) -> i64 {
        SystemClock.now_us() + self.0
    }
}

fn context(wrong_us: i64) -> Context {
    context_with(64, Arc::new(Wrong(wrong_us)))
}

fn store(wrong_us: i64) -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new().with_clock(Arc::new(Wrong(wrong_us))))
}

fn vacuum(array: &Array, keep: Keep) -> gridstone::engine::VacuumReport {
    array.vacuum(&VacuumOptions { keep, safety_us: DAY, dry_run: false }, &Call::default()).unwrap()
}

/// Hours by which the storage's clock and that of who vacuums may be wrong.
fn clocks() -> impl Iterator<Item = (i64, i64)> {
    [0, 5, -5].into_iter().flat_map(|store| [0, 2, -2, 20].map(|vacuum| (store * HOUR, vacuum * HOUR)))
}

/// A puts a record and stalls before it has seen whether that counts. B overwrites the cell three times, somebody vacuums, A goes on.
#[test]
fn no_write_comes_back_whatever_the_clock_of_a_vacuum() {
    for (store_us, vacuum_us) in clocks() {
        let storage = store(store_us);
        create(&context(0), &storage, "/line", false);
        let (healthy, put) = (storage.clone(), Mutex::new(Some(false)));
        let hook = move |operation, name: &str| {
            let mut state = put.lock().unwrap();
            if operation == Operation::PutIfAbsent && name.starts_with("_log/") {
                *state = state.map(|_| true);
            } else if *state == Some(true) {
                *state = None;
                drop(state);
                let other = open(&context(0), &healthy, "/line", At::Latest).unwrap();
                (1..=3).for_each(|value| _ = write(&other, &[(7, value)].into()).unwrap());
                let vacuuming = open(&context(vacuum_us), &healthy, "/line", At::Latest).unwrap();
                vacuum(&vacuuming, Keep::Versions(1));
            }
        };
        let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(storage.clone(), hook));
        let stalled = open(&context(0), &hooked, "/line", At::Latest).unwrap();
        assert_eq!(write(&stalled, &[(7, 100)].into()).unwrap(), 2);
        let newest = open(&context(0), &storage, "/line", At::Latest).unwrap();
        assert_eq!(read(&newest).unwrap(), [(7, 3)].into(), "clocks wrong by {store_us} and {vacuum_us} µs");
        let ids: Vec<_> = newest.fragments().unwrap().into_iter().map(|f| f.id).collect();
        assert_eq!(ids.len(), ids.iter().collect::<std::collections::BTreeSet<_>>().len());
    }
}

#[test]
fn no_young_record_and_no_young_file_goes_whatever_the_clock_of_a_vacuum() {
    for (store_us, vacuum_us) in clocks() {
        let storage = store(store_us);
        let array = create(&context(0), &storage, "/line", false);
        (0..20).for_each(|value| _ = write(&array, &[(7, value)].into()).unwrap());
        storage.put("_data/00000000000000000000000000000001.frag", b"of a commit under way").unwrap();
        let vacuuming = open(&context(vacuum_us), &storage, "/line", At::Latest).unwrap();
        let report = vacuum(&vacuuming, Keep::AgeUs(HOUR));
        assert_eq!((report.oldest, report.committed), (1, None), "all versions are of the last hour");
        let report = vacuum(&vacuuming, Keep::Versions(1));
        assert_eq!((report.oldest, report.records.objects, report.data.objects), (21, 0, 0), "{report:?}");
        assert_eq!(report.young.objects, 1);
        assert!((1..=21).all(|version| storage.exists(&log_name(version)).unwrap()));
    }
}

/// The time that a writer wrote in a record says nothing of its age: that of the object does.
#[test]
fn ages_of_versions_are_those_of_their_records_on_the_storage() {
    let clock = Arc::new(SetClock::default());
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new().with_clock(clock.clone()));
    let now_us = SystemClock.now_us();
    clock.0.store(now_us - 10 * DAY, Ordering::Relaxed);
    let array = create(&context(0), &storage, "/line", false);
    for days in (0..10).rev() {
        clock.0.store(now_us - days * DAY, Ordering::Relaxed);
        write(&array, &[(days, days)].into()).unwrap();
    }
    // All were written today, if one asks the writer.
    let plan = VacuumOptions { keep: Keep::AgeUs(3 * DAY), safety_us: DAY, dry_run: true };
    let oldest = || array.vacuum(&plan, &Call::default()).unwrap().oldest;
    assert_eq!(oldest(), 8);
    // A raw copy, or a record that was put back, makes objects young: more is kept.
    let record = storage.read_all(&log_name(5)).unwrap();
    storage.put(&log_name(5), &record).unwrap();
    assert_eq!(oldest(), 4);
    let done = array.vacuum(&VacuumOptions { dry_run: false, ..plan }, &Call::default()).unwrap();
    assert_eq!((done.oldest, done.records.objects), (4, 3));
}

#[test]
fn a_reader_keeps_its_version_whatever_its_clock_shows() {
    for (store_us, vacuum_us) in clocks() {
        for reader_us in [0, 3 * HOUR, -3 * HOUR] {
            let storage = store(store_us);
            let array = create(&context(0), &storage, "/line", false);
            (0..20).for_each(|value| _ = write(&array, &[(value, value)].into()).unwrap());
            let options = Options {
                lease_after_us: 0,
                cache: 0,
                threads: Some(1),
                clock: Arc::new(Wrong(reader_us)),
                ..Options::default()
            };
            let reader = open(&Context::new(&options).unwrap(), &storage, "/line", At::Version(5)).unwrap();
            let expected = read(&reader).unwrap();
            let vacuuming = open(&context(vacuum_us), &storage, "/line", At::Latest).unwrap();
            let report = vacuum(&vacuuming, Keep::Versions(1));
            assert_eq!((report.oldest, report.leases), (5, 0), "{store_us} {vacuum_us} {reader_us}: {report:?}");
            assert_eq!(read(&reader).unwrap(), expected);
        }
    }
}

/// A clock that was set back does not keep a reader from renewing its lease.
#[test]
fn a_lease_is_renewed_after_the_clock_was_set_back() {
    let clock = Arc::new(SetClock::default());
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new().with_clock(clock.clone()));
    clock.0.store(DAY, Ordering::Relaxed);
    let options = Options { lease_after_us: 0, cache: 0, threads: Some(1), clock: clock.clone(), ..Options::default() };
    let array = create(&Context::new(&options).unwrap(), &storage, "/line", false);
    read(&array).unwrap();
    clock.0.store(DAY - 12 * HOUR, Ordering::Relaxed);
    read(&array).unwrap();
    let name = storage.list("_lease").unwrap().pop().unwrap();
    assert_eq!(Lease::decode(&storage.read_all(&name).unwrap()).unwrap().written_us, DAY - 12 * HOUR);
}

/// Where nothing can be written, not even to ask for the time, a dry run says what would go; a vacuum that has no room for the question takes
/// all for younger than it is.
#[test]
fn a_dry_run_needs_no_right_to_write() {
    let storage = store(0);
    let array = create(&context(0), &storage, "/line", false);
    (0..5).for_each(|value| _ = write(&array, &[(7, value)].into()).unwrap());
    let plan = FaultPlan::new();
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan.clone()));
    let reading = open(&context(0), &faulty, "/line", At::Latest).unwrap();
    plan.fail_nth_of(Operation::Now, 1, gridstone::storage::Fault::Error);
    let options = VacuumOptions { keep: Keep::Versions(1), safety_us: DAY, dry_run: true };
    assert_eq!(reading.vacuum(&options, &Call::default()).unwrap().oldest, 6);
    assert!(plan.struck());
    plan.fail_nth_of(Operation::Now, 1, gridstone::storage::Fault::Error);
    let report = reading.vacuum(&VacuumOptions { dry_run: false, ..options }, &Call::default()).unwrap();
    assert_eq!((report.oldest, report.records.objects), (6, 0));
    assert_eq!(array.at(At::Version(3)).unwrap_err().kind(), ErrorKind::SnapshotExpired);
}
