//! Promise: a copy leaves what others make in its place, says so, and takes no more memory for many arrays than for one.

use crate::support::columns::{bytes_of, view};
use crate::support::copy::{HISTORY, WHOLE, at, copied, memory, of_version, vacuum, written};
use crate::support::sorted::{check_same, copies, lived, schema};
use crate::support::store::nothing_is_left;
use crate::support::writer::{context, version_of};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{At, Call, Opened, copy_on, create_array_on, open_on};
use gridstone::schema::{Order, Schema};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage, log_name};
use gridstone_testkit::Dice;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

fn line() -> Schema {
    let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","5999"],"tile":"6000"}],
        "attrs":[{"name":"v","dtype":"int64","filters":"none"}]}"#;
    Schema::from_json(text).unwrap()
}

/// Creates an array, and with it a store where there is none. Gives the version.
fn create(storage: &Arc<dyn Storage>) -> Result<u64> {
    create_array_on(&context(), storage.clone(), "/other", line(), false).map(|array| array.version())
}

/// The store that [`create`] made is as it was then, and there is nothing else.
fn is_untouched(target: &Arc<dyn Storage>, what: &str) {
    let Opened::Array(array) = open_on(&context(), target.clone(), "/other", true, At::Latest).unwrap() else {
        panic!("{what}: a group where an array was created");
    };
    assert_eq!((array.version(), array.history(&Call::default()).unwrap().len()), (1, 1), "{what}");
    nothing_is_left(target, what);
    assert!(target.list("_data").unwrap().is_empty() && target.list("_manifest").unwrap().is_empty(), "{what}");
    let values = bytes_of(0..6_000);
    let data = vec![("v".to_owned(), view(&values))];
    let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
    assert_eq!(array.commit(vec![staged], None).unwrap(), 2, "{what}: it goes on");
}

/// Before each operation of a copy on its target: who was first has the store, the other is told, and nothing of theirs stays.
#[test]
fn who_creates_a_store_while_one_is_copied_there_keeps_it_or_is_refused() {
    let (source, _) = written(12);
    let cut = written(12).0;
    vacuum(&cut, 3);
    for (source, copying, version) in [(&source, WHOLE, 1), (&source, HISTORY, 12), (&cut, HISTORY, version_of(&cut))] {
        let mut counts = [0, 0, 0];
        for n in 0.. {
            let what = format!("history {}, created before operation {n}", copying.history);
            let (target, left) = (memory(), Arc::new(AtomicI64::new(n)));
            let created = Arc::new(Mutex::new(None));
            let (beside, came, count) = (target.clone(), created.clone(), left.clone());
            let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(target.clone(), move |_, _| {
                if count.fetch_sub(1, Ordering::Relaxed) == 0 {
                    *came.lock().unwrap() = Some(create(&beside));
                }
            }));
            let outcome = copied(source, &hooked, &copying);
            let Some(created) = created.lock().unwrap().take() else { break };
            match (created, outcome) {
                (Ok(1), Err(e)) => {
                    assert_eq!(e.kind(), ErrorKind::Exists, "{what}: {e}");
                    is_untouched(&target, &what);
                    counts[0] += 1;
                }
                (Ok(1), Ok(report)) => panic!("{what}: both have made the store, {report:?}"),
                (Ok(later), Ok(_)) => {
                    assert_eq!((later, version_of(&target)), (version + 1, version + 1), "{what}");
                    counts[1] += 1;
                }
                (Err(refused), Ok(_)) => {
                    assert!(refused.message().contains("copy"), "{what}: {refused}");
                    at(version, &of_version(12)).check(&target, &what);
                    counts[2] += 1;
                }
                (created, Err(e)) => panic!("{what}: {created:?} and {e}"),
            }
        }
        assert!(counts[0] > 1 && (counts[2] > 10) == copying.history, "history {}: {counts:?}", copying.history);
    }
}

/// The other way round: who has looked, and found no store, creates one when the copy is complete.
#[test]
fn who_was_about_to_create_a_store_is_told_of_the_copy() {
    for kept in [12, 3] {
        let source = written(12).0;
        if kept < 12 {
            vacuum(&source, kept);
        }
        let newest = version_of(&source);
        for copying in [WHOLE, HISTORY] {
            let what = format!("{kept} versions, history {}", copying.history);
            let (target, done) = (memory(), Arc::new(AtomicBool::new(false)));
            let (from, to, once) = (source.clone(), target.clone(), done.clone());
            let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(target.clone(), move |operation, name| {
                let first = operation == Operation::PutIfAbsent && name == log_name(1);
                if first && !once.swap(true, Ordering::Relaxed) {
                    copied(&from, &to, &copying).unwrap();
                }
            }));
            let version = if copying.history { newest } else { 1 };
            let outcome = create(&hooked);
            assert!(done.load(Ordering::Relaxed), "{what}");
            match outcome {
                // It came beside what was copied.
                Ok(created) => assert_eq!((created, version_of(&target)), (version + 1, version + 1), "{what}"),
                Err(refused) => {
                    assert!([ErrorKind::Exists, ErrorKind::Conflict].contains(&refused.kind()), "{what}: {refused}");
                    at(version, &of_version(12)).check(&target, &what);
                }
            }
            vacuum(&target, 100);
            nothing_is_left(&target, &what);
        }
    }
}

/// Small fragments of an array go into the record of the copy's commit; of sixty arrays they would be three megabytes.
#[test]
fn small_fragments_of_many_arrays_do_not_all_wait_in_memory() {
    let (source, target) = (memory(), memory());
    for number in 0..60i64 {
        let array = create_array_on(&context(), source.clone(), &format!("/a{number}"), line(), false).unwrap();
        let values = bytes_of((0..6_000).map(|x| x * number));
        let data = vec![("v".to_owned(), view(&values))];
        let staged = array.stage_dense(None, &data, Order::Row, &Call::default()).unwrap();
        array.commit(vec![staged], None).unwrap();
    }
    copied(&source, &target, &WHOLE).unwrap();
    let record = target.read_all(&log_name(1)).unwrap().len();
    assert!(record < (1 << 20) + 100_000, "a record of {record} bytes");
    assert!(record > 500_000 && !target.list("_data").unwrap().is_empty(), "a record of {record} bytes");
    crate::support::writer::verify(&target);
}

/// A sorted copy that cannot be read stays behind: nothing rests on it. A pack that cannot be read is an error.
#[test]
fn sorted_copies_that_cannot_be_read_are_left_out() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new().near());
    let array = lived(&storage, schema(true, false, "row"), 80, &mut Dice::new(12));
    let (mut left_out, mut failed, all) = (0, 0, copies(&storage).len());
    for n in 1.. {
        let plan = FaultPlan::new();
        let target: Arc<dyn Storage> = Arc::new(MemoryStorage::new().near());
        let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(storage.clone(), plan.clone()));
        plan.fail_nth_of(Operation::Open, n, Fault::Error);
        match copy_on((&context(), faulty), (&context(), target.clone()), &HISTORY, &Call::default()) {
            _ if !plan.struck() => break,
            Err(_) => failed += 1,
            Ok(_) => {
                left_out += all - copies(&target).len();
                check_same(&storage, &target, array.version(), 12);
            }
        }
    }
    assert!(left_out == all && all >= 3 && failed > 0, "{left_out} of {all} left out, {failed} failed");
}
