//! Faults at every operation of a commit, and of one that folds. The store is at the last acknowledged version or one
//! newer, no change is doubled, and it keeps working.

use super::world::*;
use crate::base::{ErrorKind, Id, Result};
use crate::storage::{Fault, FaultPlan, FaultyStorage, MemoryStorage, Operation, Storage};
use crate::store::{Changes, Snapshot, StandardRules, Store};
use std::sync::Arc;

const FAULTS: [Fault; 5] = [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill];

struct Scene {
    memory: MemoryStorage,
    plan: Arc<FaultPlan>,
    store: Store,
    snapshot: Arc<Snapshot>,
    array: Id,
}

/// A store at version 7 that folds every `fold_versions`, in a storage with injected faults.
fn scene(fold_versions: u64) -> Scene {
    let (memory, plan) = (MemoryStorage::new(), FaultPlan::new());
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(memory.clone()), Arc::clone(&plan)));
    let (store, one, array) = with_array(faulty);
    let store = store.with_fold_versions(fold_versions);
    let snapshot = commits(&store, one, array, 6);
    plan.clear();
    Scene { memory, plan, store, snapshot, array }
}

/// The invariants after `outcome`, whatever the fault was.
fn check(scene: &Scene, outcome: &Result<Arc<Snapshot>>, what: &str) {
    scene.plan.clear();
    let storage: Arc<dyn Storage> = Arc::new(scene.memory.clone());
    let reopened = store_in(Arc::clone(&storage));
    let found = reopened.latest().unwrap();
    match outcome {
        Ok(snapshot) => assert_eq!(seen(&found), seen(snapshot), "{what}"),
        Err(e) if e.kind() == ErrorKind::CommitUnknown => assert!([7, 8].contains(&found.version()), "{what}"),
        Err(e) => assert_eq!(found.version(), 7, "{what}: {e}"),
    }
    let fragments = found.array("/").unwrap().count_fragments();
    assert_eq!(fragments, found.version() - 1, "{what}");
    check_bytes(&reopened, &found, scene.array);
    let next = add_one(&reopened, &found, scene.array).unwrap();
    assert_eq!(next.version(), found.version() + 1);
    let old = add_one(&scene.store, &scene.snapshot, scene.array).unwrap();
    assert_eq!(old.array("/").unwrap().count_fragments(), fragments + 2, "{what}");
}

fn strike_everywhere(fold_versions: u64, expected_operations: std::ops::RangeInclusive<u64>) {
    let dry = scene(fold_versions);
    add_one(&dry.store, &dry.snapshot, dry.array).unwrap();
    let count = dry.plan.operations();
    assert!(expected_operations.contains(&count), "{:?}", dry.plan.journal());
    for fault in FAULTS {
        for n in 1..=count {
            let scene = scene(fold_versions);
            scene.plan.fail_nth(n, fault);
            let outcome = add_one(&scene.store, &scene.snapshot, scene.array);
            assert!(scene.plan.struck());
            check(&scene, &outcome, &format!("{fault:?} at operation {n} of {count}"));
        }
    }
}

#[test]
fn a_fault_anywhere_in_a_commit() {
    // The record, the floor, the hint (of version 8).
    strike_everywhere(64, 4..=4);
}

#[test]
fn a_fault_anywhere_in_a_commit_that_folds() {
    strike_everywhere(7, 18..=40);
    strike_everywhere(1, 10..=40);
}

#[test]
fn a_fault_anywhere_in_a_creation() {
    for fault in FAULTS {
        for n in 1..=6 {
            let (memory, plan) = (MemoryStorage::new(), FaultPlan::new());
            let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(Arc::new(memory.clone()), Arc::clone(&plan)));
            plan.fail_nth(n, fault);
            let outcome = store_in(faulty).create(Changes::default());
            plan.clear();
            let reopened = store_in(Arc::new(memory));
            let there = reopened.exists().unwrap();
            match outcome {
                Ok(_) => assert!(there),
                Err(e) if e.kind() == ErrorKind::CommitUnknown => {}
                Err(e) => assert!(!there, "{fault:?} at {n}: {e}"),
            }
            let again = reopened.create(Changes::default());
            assert_eq!(again.is_err(), there);
            assert_eq!(reopened.latest().unwrap().version(), 1);
        }
    }
}

#[test]
fn an_outcome_in_doubt_is_recognised_as_committed_exactly_once() {
    let scene = scene(64);
    scene.plan.fail_nth_of(Operation::PutIfAbsent, 1, Fault::ErrorAfter);
    let next = add_one(&scene.store, &scene.snapshot, scene.array).unwrap();
    use Operation::{PutHint, PutIfAbsent, ReadAll, Sync};
    assert_eq!(scene.plan.journal(), [PutIfAbsent, ReadAll, Sync, ReadAll, ReadAll, PutHint]);
    assert_eq!(next.version(), 8);
    check(&scene, &Ok(next), "in doubt");
}

#[test]
fn a_commit_whose_durability_cannot_be_had_is_unknown() {
    let scene = scene(64);
    scene.plan.fail_nth_of(Operation::PutIfAbsent, 1, Fault::ErrorAfter);
    // The sync that makes it durable fails together with the process.
    let store = &scene.store;
    let outcome = {
        let plan = Arc::clone(&scene.plan);
        let hooked = crate::storage::HookedStorage::new(Arc::clone(store.storage()), move |operation, _| {
            if operation == Operation::Sync {
                plan.fail_nth(1, Fault::Error);
            }
        });
        add_one(&store_in(Arc::new(hooked)), &scene.snapshot, scene.array)
    };
    assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::CommitUnknown);
    check(&scene, &outcome, "sync failed");
}

#[test]
fn a_slot_that_stays_empty_gives_the_storage_s_own_error() {
    let scene = scene(64);
    scene.plan.fail_nth(1, Fault::Full);
    let error = add_one(&scene.store, &scene.snapshot, scene.array).unwrap_err();
    assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(28)));
    let tries = scene.plan.journal().iter().filter(|o| **o == Operation::PutIfAbsent).count();
    assert_eq!(tries, 3);
    check(&scene, &Err(error), "full");
}

#[test]
fn a_passing_fault_is_overcome() {
    let scene = scene(64);
    scene.plan.fail_nth(1, Fault::Error);
    let next = add_one(&scene.store, &scene.snapshot, scene.array).unwrap();
    check(&scene, &Ok(next), "passing");
    let empty = scene.store.latest().unwrap();
    let same = scene.store.commit(&empty, Changes::default(), &mut StandardRules).unwrap();
    assert_eq!(same.version(), empty.version() + 1);
}
