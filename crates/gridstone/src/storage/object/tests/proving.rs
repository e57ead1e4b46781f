//! Promise: before a process commits to a place it has proved that conditional writes are exclusive there.

use super::*;

const PROOF: [&str; 4] = ["put", "put", "head", "delete"];

#[test]
fn it_is_proved_once_per_process_and_store() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket.clone());
    let id = SystemEntropy.id();
    // Each waits for the other.
    plan.gather_writes(2);
    storage.prove_exclusive(id).unwrap();
    assert_eq!(plan.seen(), PROOF);
    plan.clear();
    storage.prove_exclusive(id).unwrap();
    over(bucket.clone()).prove_exclusive(id).unwrap();
    assert!(plan.seen().is_empty(), "another handle of this process knows it");
    over(bucket).prove_exclusive(SystemEntropy.id()).unwrap();
    assert_eq!(plan.seen(), PROOF, "of another store nothing is known");
}

/// The creation of a store proves it for the first commit, and for later handles.
#[test]
fn creating_a_store_and_committing_to_it_takes_one_proof() {
    let (bucket, plan) = Faulty::planned();
    let (storage, id) = (over(bucket.clone()), SystemEntropy.id());
    storage.prepare().unwrap();
    assert_eq!(plan.seen(), ["get", "put", "put", "head", "delete"]);
    plan.clear();
    // Each handle gets the bucket's time, also the one that dates the first record.
    let about_now = |told: Option<i64>| (told.unwrap() - SystemClock.now_us()).abs() < 60_000_000;
    assert!(about_now(storage.prove_exclusive(Id([0; 16])).unwrap()));
    assert!(about_now(storage.prove_exclusive(id).unwrap()));
    assert_eq!(storage.prove_exclusive(id).unwrap(), None, "it was told");
    assert!(about_now(over(bucket).prove_exclusive(id).unwrap()));
    assert!(plan.seen().is_empty());
}

/// A raw copy of a store in a place where both of two commits would be acknowledged.
#[test]
fn where_both_are_taken_nothing_is_committed() {
    let (bucket, plan) = Faulty::planned();
    plan.ignore_conditions();
    let storage = over(bucket);
    let id = SystemEntropy.id();
    for _ in 0..2 {
        let error = storage.prove_exclusive(id).unwrap_err();
        assert_eq!((error.kind(), error.had_no_effect()), (ErrorKind::Unsupported, true));
    }
    assert_eq!(storage.sweep("_log", i64::MAX, false).unwrap(), Swept::default(), "nothing is left");
}

#[test]
fn lost_answers_are_asked_for_again() {
    use Trouble::{After, Before, Denied, Refused};
    for writes in
        [[Some(Before), None], [None, Some(After)], [Some(After), Some(After)], [Some(Refused), Some(Refused)]]
    {
        let (bucket, plan) = Faulty::planned();
        plan.write_so(&writes);
        over(bucket).prove_exclusive(SystemEntropy.id()).unwrap();
        assert_eq!(plan.seen(), [PROOF, PROOF].concat(), "{writes:?}");
    }
    for (trouble, kind, puts) in
        [(Before, ErrorKind::Storage, 6), (Denied, ErrorKind::Access, 2), (Refused, ErrorKind::Unsupported, 6)]
    {
        let (bucket, plan) = Faulty::planned();
        plan.write_so(&[Some(trouble); 6]);
        let error = over(bucket).prove_exclusive(SystemEntropy.id()).unwrap_err();
        assert_eq!((error.kind(), error.had_no_effect()), (kind, true), "{error}");
        assert_eq!(plan.seen().iter().filter(|what| **what == "put").count(), puts);
    }
}
