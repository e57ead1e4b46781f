//! Promise: a hint costs its writer nothing.

use super::*;
use crate::storage::conformance::waited;

/// Waits until `done`.
fn eventually(what: &str, done: impl Fn() -> bool) {
    assert!((0..4_000).any(|_| done() || waited()), "{what}");
}

/// No caller waits while the first hint is in flight; of those that come meanwhile, the newest is written after the
/// first.
#[test]
fn a_hint_is_not_waited_for_and_no_older_one_follows() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    plan.hold(true);
    for version in [8, 16, 24, 32] {
        storage.put_hint(LATEST, version.to_string().as_bytes()).unwrap();
    }
    eventually("the first is sent", || plan.seen() == ["put"]);
    plan.hold(false);
    eventually("the newest is written", || storage.read_all(LATEST).is_ok_and(|hint| hint == "32"));
    assert_eq!(plan.seen().iter().filter(|what| **what == "put").count(), 2);
    storage.put_hint(LATEST, b"40").unwrap();
    eventually("and a later one", || storage.read_all(LATEST).is_ok_and(|hint| hint == "40"));
}

/// It is sent by the client that sends once, and its failure is ignored.
#[test]
fn a_hint_that_is_refused_costs_one_request() {
    let ((patient, asked), (once, sent)) = (Faulty::planned(), Faulty::planned());
    let storage = ObjectStorage::over("s3://box/a", "a", patient, once).unwrap();
    sent.write_so(&[Some(Trouble::Denied), Some(Trouble::Before)]);
    for n in 1..=2 {
        storage.put_hint(LATEST, b"8").unwrap();
        eventually("it is sent", || sent.seen().len() == n);
    }
    assert!((0..60).all(|_| !waited()));
    assert_eq!((sent.seen(), asked.seen()), (vec!["put"; 2], vec![]));
}
