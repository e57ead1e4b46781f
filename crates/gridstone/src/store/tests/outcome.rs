//! Outcomes of commits where answers are lost, puts take effect late, and clocks are wrong: no acknowledged commit is
//! lost, and nothing is deleted without proof.

use super::world::*;
use crate::base::{Clock, ErrorKind, FileRef, Id, Notices};
use crate::storage::{
    FLOOR, HookedStorage, MemoryStorage, ObjectStorage, Operation, PutOutcome, Storage, Stray, StrayStorage, data_name,
    log_name,
};
use crate::store::{Changes, Removed, Snapshot, StandardRules, Store};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const STRAYS: [Stray; 6] =
    [Stray::Refused, Stray::Missing, Stray::Rubbish, Stray::Failed, Stray::Unknown, Stray::Newer];

/// A store at version 5 of one array in memory.
struct Scene {
    memory: MemoryStorage,
    snapshot: Arc<Snapshot>,
    array: Id,
}

fn scene() -> Scene {
    let memory = MemoryStorage::new();
    let (store, one, array) = with_array(Arc::new(memory.clone()));
    let snapshot = commits(&store, one, array, 4);
    Scene { memory, snapshot, array }
}

impl Scene {
    /// A store of another process.
    fn other(&self) -> Store {
        store_in(Arc::new(self.memory.clone()))
    }

    /// All acknowledged versions exist, and the log is intact.
    fn check(&self, version: u64) {
        let found = self.other().latest().unwrap();
        assert_eq!((found.version(), found.array("/").unwrap().count_fragments()), (version, version - 1));
        check_bytes(&self.other(), &found, self.array);
        assert_eq!(self.other().history(1, u64::MAX).unwrap().map(Result::unwrap).count() as u64, version);
    }

    /// A store whose reads of `name`, `count` of them from the `from`-th on, are answered by `stray`. Before the first
    /// of them another writer follows our record.
    fn astray(&self, name: String, stray: Stray, (from, count): (u64, u64), followed: bool) -> Store {
        let (seen, other, array) = (AtomicU64::new(0), self.other(), self.array);
        let answer = move |read: &str| {
            if read != name {
                return None;
            }
            let place = seen.fetch_add(1, Ordering::Relaxed);
            if place == from && followed {
                add_one(&other, &other.latest().unwrap(), array).unwrap();
            }
            (from..from + count).contains(&place).then_some(stray)
        };
        store_in(Arc::new(StrayStorage::new(Arc::new(self.memory.clone()), answer, |_| false)))
    }
}

#[test]
fn one_stray_answer_about_the_record_before_makes_no_hole() {
    for followed in [false, true] {
        for stray in STRAYS {
            let scene = scene();
            let store = scene.astray(log_name(5), stray, (0, 1), followed);
            let next = add_one(&store, &scene.snapshot, scene.array).unwrap();
            assert_eq!(next.version(), 6, "{stray:?}");
            scene.check(6 + u64::from(followed));
        }
    }
}

#[test]
fn a_record_before_that_stays_unreadable_leaves_the_outcome_unknown_and_everything_in_its_place() {
    for stray in STRAYS {
        let scene = scene();
        let store = scene.astray(log_name(5), stray, (0, u64::MAX), false);
        let error = add_one(&store, &scene.snapshot, scene.array).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{stray:?}: {error}");
        assert!(error.message().contains("history") && error.message().contains("version 6"), "{error}");
        scene.check(6);
    }
}

#[test]
fn a_record_that_somebody_follows_counts_whatever_the_record_before_seems_to_be() {
    for stray in STRAYS {
        let scene = scene();
        let store = scene.astray(log_name(5), stray, (0, u64::MAX), true);
        assert_eq!(add_one(&store, &scene.snapshot, scene.array).unwrap().version(), 6);
        scene.check(7);
    }
}

#[test]
fn a_floor_that_cannot_be_read_leaves_the_outcome_unknown() {
    for stray in STRAYS.into_iter().filter(|stray| *stray != Stray::Missing) {
        let scene = scene();
        let store = scene.astray(FLOOR.to_owned(), stray, (0, u64::MAX), false);
        let error = add_one(&store, &scene.snapshot, scene.array).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{stray:?}: {error}");
        scene.check(6);
    }
}

#[test]
fn a_put_that_may_still_land_is_of_unknown_outcome_and_its_file_stays() {
    let scene = scene();
    let storage = StrayStorage::new(Arc::new(scene.memory.clone()), |_| None, |name| name.starts_with("_log/"));
    let store = store_in(Arc::new(storage.clone()));
    let changes = add(scene.array, vec![in_file(&scene.memory, 10, 19)]);
    let error = store.commit(&scene.snapshot, changes, &mut StandardRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    scene.check(5);
    assert_eq!(storage.land().unwrap().unwrap(), PutOutcome::Created);
    assert_eq!(storage.land().unwrap().unwrap(), PutOutcome::Exists, "the second try of the same record");
    scene.check(6);
}

#[test]
fn a_slot_that_cannot_be_seen_after_a_put_in_doubt_is_of_unknown_outcome() {
    for stray in STRAYS {
        let scene = scene();
        let late = AtomicBool::new(false);
        let answer = move |read: &str| (read == log_name(6)).then_some(stray);
        let storage = StrayStorage::new(Arc::new(scene.memory.clone()), answer, move |name| {
            name == log_name(6) && !late.swap(true, Ordering::Relaxed)
        });
        let outcome = add_one(&store_in(Arc::new(storage.clone())), &scene.snapshot, scene.array);
        match stray {
            // Put again, and then acknowledged.
            Stray::Missing => assert_eq!(outcome.unwrap().version(), 6),
            _ => assert_eq!(outcome.unwrap_err().kind(), ErrorKind::CommitUnknown, "{stray:?}"),
        }
        storage.land().unwrap().unwrap();
        scene.check(6);
    }
}

/// A put refused because the object exists may be our own, repeated on its way.
#[test]
fn a_record_that_exists_and_is_not_found_is_of_unknown_outcome() {
    let scene = scene();
    add_one(&scene.other(), &scene.snapshot, scene.array).unwrap();
    let answer = |read: &str| (read == log_name(6)).then_some(Stray::Missing);
    let storage = StrayStorage::new(Arc::new(scene.memory.clone()), answer, |_| false);
    let error = add_one(&store_in(Arc::new(storage)), &scene.snapshot, scene.array).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    scene.check(6);
}

#[test]
fn a_put_that_certainly_had_no_effect_is_a_plain_error() {
    let scene = scene();
    let error = {
        let faults = crate::storage::FaultPlan::new();
        faults.fail_nth(1, crate::storage::Fault::Full);
        let faulty = crate::storage::FaultyStorage::new(Arc::new(scene.memory.clone()), faults);
        add_one(&store_in(Arc::new(faulty)), &scene.snapshot, scene.array).unwrap_err()
    };
    assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(28)));
    scene.check(5);
}

/// The store is deleted, and another created there, between our put and our check.
#[test]
fn a_record_in_another_store_is_taken_back() {
    for versions in [0, 3, 5, 9] {
        let scene = scene();
        let (memory, replaced) = (scene.memory.clone(), AtomicBool::new(false));
        let hooked = HookedStorage::new(Arc::new(scene.memory.clone()), move |operation, name| {
            if operation == Operation::PutIfAbsent && name == log_name(6) && !replaced.swap(true, Ordering::Relaxed) {
                memory.remove_everything().unwrap();
                if versions > 0 {
                    let (store, one, array) = with_array(Arc::new(memory.clone()));
                    commits(&store, one, array, versions - 1);
                }
            }
        });
        let error = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::NotFound, "{versions}: {error}");
        match versions {
            0 => assert!(scene.memory.list("_log").unwrap().is_empty()),
            _ => assert_eq!(scene.other().latest().unwrap().version(), versions),
        }
    }
}

/// One writer puts a record and stalls; others commit and vacuum; then it continues. `hours` have passed on the
/// storage's clock.
fn overtaken_after_put(hours: i64, followed: bool) -> (Scene, crate::base::Result<Arc<Snapshot>>) {
    let clock = Arc::new(SetClock::default());
    clock.0.store(1 << 50, Ordering::Relaxed);
    let memory = MemoryStorage::new().with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let (store, one, array) = with_array(Arc::new(memory.clone()));
    let snapshot = commits(&store, one, array, 4);
    let scene = Scene { memory, snapshot, array };
    let (other, array, stalled) = (scene.other(), scene.array, AtomicBool::new(false));
    let hooked = HookedStorage::new(Arc::new(scene.memory.clone()), move |operation, name| {
        // The first read after the put.
        if operation != Operation::ReadAll || name != log_name(5) || stalled.swap(true, Ordering::Relaxed) {
            return;
        }
        let mut newest = other.latest().unwrap();
        assert_eq!(newest.version(), 6);
        if followed {
            newest = commits(&other, newest, array, 3);
        }
        let root = other.rooted(newest.version(), None).unwrap().root().unwrap();
        other.publish_floor(crate::store::Floor { version: newest.version(), root }).unwrap();
        clock.0.fetch_add(hours * 3_600_000_000, Ordering::Relaxed);
        // As a vacuum does: old records below the floor are deleted.
        if hours > 0 {
            for version in 1..newest.version() {
                other.storage().delete(&log_name(version)).unwrap();
            }
        }
    });
    let outcome = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array);
    (scene, outcome)
}

#[test]
fn a_record_that_others_followed_before_the_floor_passed_it_was_committed() {
    let (scene, outcome) = overtaken_after_put(0, true);
    outcome.unwrap();
    assert_eq!(scene.other().latest().unwrap().array("/").unwrap().count_fragments(), 8);
}

#[test]
fn a_record_whose_follower_is_gone_is_not_committed_twice() {
    let (scene, outcome) = overtaken_after_put(2, true);
    let error = outcome.unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    assert_eq!(scene.other().latest().unwrap().array("/").unwrap().count_fragments(), 8);
}

/// A vacuum that keeps the newest version: the floor is raised to it, and old records below it are deleted.
fn forget(store: &Store, newest: &Snapshot) {
    let root = store.rooted(newest.version(), None).unwrap().root().unwrap();
    store.publish_floor(crate::store::Floor { version: newest.version(), root }).unwrap();
    (1..newest.version()).for_each(|version| store.storage().delete(&log_name(version)).unwrap());
}

/// The first put took effect and its answer was lost. The record was followed and forgotten before the second put,
/// which finds the slot free.
#[test]
fn a_record_put_twice_is_not_committed_twice() {
    let clock = Arc::new(SetClock::default());
    let memory = MemoryStorage::new().with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let (store, one, array) = with_array(Arc::new(memory.clone()));
    let scene = Scene { snapshot: commits(&store, one, array, 4), memory, array };
    let (other, stalled, late) = (scene.other(), AtomicBool::new(false), AtomicBool::new(false));
    let storage = StrayStorage::new(
        Arc::new(scene.memory.clone()),
        |_| None,
        move |name| name == log_name(6) && !late.swap(true, Ordering::Relaxed),
    );
    let landing = storage.clone();
    let hooked = HookedStorage::new(Arc::new(storage), move |operation, name| {
        if operation != Operation::ReadAll || name != log_name(6) || stalled.swap(true, Ordering::Relaxed) {
            return;
        }
        landing.land().unwrap().unwrap();
        let newest = commits(&other, other.latest().unwrap(), array, 3);
        forget(&other, &newest);
        clock.0.fetch_add(2 * 3_600_000_000, Ordering::Relaxed);
        // The hidden fragment was removed.
        let state = newest.array_by_id(array).unwrap();
        let removed = state.fragments(None).unwrap().iter().map(|d| Removed::of(d)).collect();
        let replaced = crate::store::Operation::ReplaceFragments { array, removed, fragments: Vec::new() };
        other.commit(&newest, Changes::new(vec![replaced]), &mut StandardRules).unwrap();
    });
    let error = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    let newest = scene.other().latest().unwrap();
    assert_eq!((newest.version(), newest.array("/").unwrap().count_fragments()), (10, 0));
}

/// Others have committed one of two receipts before the floor passed: the second is absent, and is not reported as
/// present.
#[test]
fn half_a_commit_below_the_floor_is_no_commit() {
    let scene = scene();
    let fragments = [10, 50].map(|lo| in_file(&scene.memory, lo, lo + 9));
    let (other, array, first) = (scene.other(), scene.array, fragments[0].clone());
    let stalled = AtomicBool::new(false);
    let hooked = HookedStorage::new(Arc::new(scene.memory.clone()), move |operation, name| {
        if operation != Operation::PutIfAbsent || name != log_name(6) || stalled.swap(true, Ordering::Relaxed) {
            return;
        }
        let worked = add(array, vec![first.clone()]);
        let newest = other.commit(&other.latest().unwrap(), worked, &mut StandardRules).unwrap();
        forget(&other, &commits(&other, newest, array, 2));
    });
    let both = add(scene.array, fragments.to_vec());
    let error = store_in(Arc::new(hooked)).commit(&scene.snapshot, both, &mut StandardRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    let FileRef::Data(second) = fragments[1].description.location.file else { panic!("it has no file") };
    assert!(scene.memory.exists(&data_name(second)).unwrap());
}

/// A bucket whose store is being deleted shows neither its log nor its floor.
#[test]
fn a_commit_into_a_bucket_whose_store_is_being_deleted_is_told_so() {
    let bucket: Arc<dyn object_store::ObjectStore> = Arc::new(object_store::memory::InMemory::new());
    let over = || ObjectStorage::over("s3://box/a", "a", bucket.clone(), bucket.clone()).unwrap();
    let (store, one, array) = with_array(Arc::new(over()));
    let snapshot = commits(&store, one, array, 4);
    let (deleting, gone) = (over(), AtomicBool::new(false));
    let hooked = HookedStorage::new(Arc::new(over()), move |operation, name| {
        if operation == Operation::PutIfAbsent && name == log_name(6) && !gone.swap(true, Ordering::Relaxed) {
            deleting.put(FLOOR, b"gridstone: this store is being deleted\n").unwrap();
        }
    });
    let stalled = store_in(Arc::new(hooked));
    stalled.latest().unwrap();
    let error = add_one(&stalled, &snapshot, array).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
}

#[test]
fn at_the_end_of_time_a_commit_is_refused() {
    let clock = Arc::new(SetClock::default());
    clock.0.store(i64::MAX, Ordering::Relaxed);
    let memory = MemoryStorage::new();
    let store = Store::new(Arc::new(memory.clone()), Arc::clone(&clock) as Arc<dyn Clock>, Arc::new(Counting));
    let newest = store.create(Changes::default()).unwrap();
    let error = store.commit(&newest, Changes::default(), &mut StandardRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
    assert_eq!(store_in(Arc::new(memory)).latest().unwrap().version(), 1);
}

#[test]
fn no_clock_stops_commits_and_a_wrong_one_is_noticed_once() {
    let clock = Arc::new(SetClock::default());
    let memory = MemoryStorage::new();
    let hour = 3_600_000_000;
    clock.0.store(100 * hour, Ordering::Relaxed);
    let notices = Arc::new(Notices::default());
    let store = |shown: &Arc<SetClock>| {
        Store::new(Arc::new(memory.clone()), Arc::clone(shown) as Arc<dyn Clock>, Arc::new(Counting))
            .with_notices(Arc::clone(&notices))
    };
    let ahead = store(&clock).create(Changes::default()).unwrap();
    clock.0.store(hour, Ordering::Relaxed);
    let behind = store(&clock);
    let mut newest = ahead;
    for _ in 0..3 {
        let next = behind.commit(&newest, Changes::default(), &mut StandardRules).unwrap();
        assert_eq!(next.time_us(), newest.time_us() + 1);
        newest = next;
    }
    let told = notices.take();
    assert!(told.len() == 1 && told[0].contains("dated 4 days ahead of this machine's clock"), "{told:?}");
}

/// Like [`overtaken_after_put`], but only the record of the next version is gone (`gone`), or is reported missing; ours
/// and later ones exist.
fn next_is_missed(hours: i64, gone: bool) -> (Scene, crate::base::Result<Arc<Snapshot>>) {
    let clock = Arc::new(SetClock::default());
    clock.0.store(1 << 50, Ordering::Relaxed);
    let memory = MemoryStorage::new().with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
    let (store, one, array) = with_array(Arc::new(memory.clone()));
    let snapshot = commits(&store, one, array, 4);
    let scene = Scene { memory, snapshot, array };
    let (other, stalled, passed) = (scene.other(), AtomicBool::new(false), Arc::new(AtomicBool::new(false)));
    let astray = Arc::clone(&passed);
    let answer =
        move |name: &str| (!gone && name == log_name(7) && astray.load(Ordering::Relaxed)).then_some(Stray::Missing);
    let network = StrayStorage::new(Arc::new(scene.memory.clone()), answer, |_| false);
    let hooked = HookedStorage::new(Arc::new(network), move |operation, name| {
        if operation != Operation::ReadAll || name != log_name(5) || stalled.swap(true, Ordering::Relaxed) {
            return;
        }
        let newest = commits(&other, other.latest().unwrap(), array, 3);
        let root = other.rooted(newest.version(), None).unwrap().root().unwrap();
        other.publish_floor(crate::store::Floor { version: newest.version(), root }).unwrap();
        clock.0.fetch_add(hours * 3_600_000_000, Ordering::Relaxed);
        if gone {
            // A vacuum is under way, and has not reached our record yet.
            other.storage().delete(&log_name(7)).unwrap();
        }
        passed.store(true, Ordering::Relaxed);
    });
    let outcome = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array);
    (scene, outcome)
}

#[test]
fn a_follower_that_a_vacuum_may_have_taken_proves_nothing() {
    let (scene, outcome) = next_is_missed(2, true);
    let error = outcome.map(|next| next.version()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    assert!(scene.memory.exists(&log_name(6)).unwrap());
    assert_eq!(scene.other().latest().unwrap().array("/").unwrap().count_fragments(), 8);
}

#[test]
fn a_follower_that_is_listed_is_there_whatever_a_read_says() {
    let (scene, outcome) = next_is_missed(0, false);
    let error = outcome.map(|next| next.version()).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    assert!(scene.memory.exists(&log_name(6)).unwrap());
}

/// From the put on every read of another record than ours reports that it does not exist.
#[test]
fn where_all_seems_to_be_gone_a_listing_tells_otherwise() {
    let scene = scene();
    let put = Arc::new(AtomicBool::new(false));
    let astray = Arc::clone(&put);
    let answer = move |name: &str| (name != log_name(6) && astray.load(Ordering::Relaxed)).then_some(Stray::Missing);
    let network = StrayStorage::new(Arc::new(scene.memory.clone()), answer, |_| false);
    let hooked = HookedStorage::new(Arc::new(network), move |operation, name| {
        put.fetch_or(operation == Operation::PutIfAbsent && name == log_name(6), Ordering::Relaxed);
    });
    let error = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::CommitUnknown, "{error}");
    scene.check(6);
}

/// The other store has been vacuumed: its first record is gone, and its floor shows that it is another store.
#[test]
fn a_record_in_another_store_that_was_vacuumed_is_taken_back() {
    let scene = scene();
    let (memory, replaced) = (scene.memory.clone(), AtomicBool::new(false));
    let hooked = HookedStorage::new(Arc::new(scene.memory.clone()), move |operation, name| {
        if operation == Operation::PutIfAbsent && name == log_name(6) && !replaced.swap(true, Ordering::Relaxed) {
            memory.remove_everything().unwrap();
            let (store, one, array) = with_array(Arc::new(memory.clone()));
            let newest = commits(&store, one, array, 3);
            forget(&store, &newest);
        }
    });
    let error = add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::NotFound, "{error}");
    assert!(!scene.memory.exists(&log_name(6)).unwrap());
    assert_eq!(scene.other().latest().unwrap().version(), 4);
}

/// The first put is late: it takes effect, others follow it, and a vacuum deletes their records. So the second put
/// creates the record anew, below the floor.
#[test]
fn what_counted_before_the_floor_passed_it_is_not_committed_again() {
    for filed in [false, true] {
        let clock = Arc::new(SetClock::default());
        clock.0.store(1 << 50, Ordering::Relaxed);
        let memory = MemoryStorage::new().with_clock(Arc::clone(&clock) as Arc<dyn Clock>);
        let (store, one, array) = with_array(Arc::new(memory.clone()));
        let snapshot = commits(&store, one, array, 4);
        let scene = Scene { memory, snapshot, array };
        let (late, stalled, other) = (AtomicBool::new(false), AtomicBool::new(false), scene.other());
        let is_late = move |name: &str| name == log_name(6) && !late.swap(true, Ordering::Relaxed);
        let network = StrayStorage::new(Arc::new(scene.memory.clone()), |_| None, is_late);
        let lands = network.clone();
        let hooked = HookedStorage::new(Arc::new(network), move |operation, name| {
            if operation != Operation::ReadAll || name != log_name(6) || stalled.swap(true, Ordering::Relaxed) {
                return;
            }
            assert_eq!(lands.land().unwrap().unwrap(), PutOutcome::Created);
            let newest = commits(&other, other.latest().unwrap(), array, 3);
            forget(&other, &newest);
            clock.0.fetch_add(2 * 3_600_000_000, Ordering::Relaxed);
        });
        let fragment = if filed { in_file(&scene.memory, 70, 79) } else { inline(70, 79) };
        let store = store_in(Arc::new(hooked));
        match store.commit(&scene.snapshot, add(array, vec![fragment]), &mut StandardRules) {
            Ok(next) => assert_eq!(next.version(), 9),
            Err(e) => assert_eq!(e.kind(), ErrorKind::CommitUnknown, "{e}"),
        }
        let newest = scene.other().latest().unwrap();
        assert_eq!((newest.version(), newest.array("/").unwrap().count_fragments()), (9, 8), "filed {filed}");
    }
}

#[test]
fn one_commit_does_not_add_a_fragment_twice() {
    let scene = scene();
    let (one, mut two) = (inline(70, 79), inline(80, 89));
    two.description.id = one.description.id;
    let changes = add(scene.array, vec![one, two]);
    let error = scene.other().commit(&scene.snapshot, changes, &mut StandardRules).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("twice"), "{error}");
    scene.check(5);
}
