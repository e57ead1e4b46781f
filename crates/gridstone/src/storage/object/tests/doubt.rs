//! Promise: the outcome of a conditional write is never guessed.

use super::*;

fn pair() -> (ObjectStorage, Arc<Plan>) {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    storage.log.set(Log::Alive);
    (storage, plan)
}

#[test]
fn a_write_whose_answer_is_lost_is_found_to_be_ours() {
    for trouble in [Trouble::After, Trouble::Before] {
        let (storage, plan) = pair();
        plan.fail("put", 1, trouble);
        let expected = if trouble == Trouble::After { PutOutcome::Created } else { PutOutcome::CreatedLate };
        assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), expected, "{trouble:?}");
        assert!(plan.struck());
        assert_eq!(
            storage.put_if_absent("_log/1", b"ours").unwrap(),
            PutOutcome::Exists,
            "the same bytes, another writer"
        );
        assert_eq!(storage.read_all("_log/1").unwrap(), "ours");
    }
}

#[test]
fn anothers_object_is_never_taken_for_ours() {
    for trouble in [Trouble::After, Trouble::Before] {
        let (storage, plan) = pair();
        storage.put_if_absent("_log/1", b"same").unwrap();
        plan.fail("put", 1, trouble);
        assert_eq!(storage.put_if_absent("_log/1", b"same").unwrap(), PutOutcome::Exists);
    }
}

/// A proxy repeats a request and returns the second answer: a refusal caused by our own success.
#[test]
fn a_write_that_meets_its_own_success_is_ours() {
    let (storage, plan) = pair();
    plan.fail("put", 1, Trouble::Twice);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), PutOutcome::Created);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), PutOutcome::Exists);
    plan.fail("put", 1, Trouble::Twice);
    assert!(storage.put_if_unchanged("_log/1", Some(b"ours"), b"two").unwrap());
    assert!(!storage.put_if_unchanged("_log/1", Some(b"ours"), b"three").unwrap());
}

#[test]
fn without_marks_or_sight_doubt_is_an_error() {
    let (storage, plan) = pair();
    plan.forget_marks();
    plan.fail("put", 1, Trouble::After);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap_err().kind(), ErrorKind::Storage);
    let (storage, plan) = pair();
    plan.fail("put", 1, Trouble::Dead);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap_err().kind(), ErrorKind::Storage);
}

#[test]
fn a_change_whose_answer_is_lost_is_found_out() {
    for trouble in [Trouble::After, Trouble::Before] {
        let (storage, plan) = pair();
        assert!(storage.put_if_unchanged(FLOOR, None, b"one").unwrap());
        plan.fail("put", 1, trouble);
        assert!(storage.put_if_unchanged(FLOOR, Some(b"one"), b"two").unwrap(), "{trouble:?}");
        assert_eq!(storage.read_all(FLOOR).unwrap(), "two");
        assert!(!storage.put_if_unchanged(FLOOR, Some(b"one"), b"three").unwrap());
    }
}

#[test]
fn a_sink_finds_out_too() {
    for (what, bytes) in [("put", 10), ("complete", sink::PART_BYTES + 1)] {
        let (storage, plan) = pair();
        let mut sink = storage.create("_data/a.frag").unwrap();
        sink.write(&vec![3; bytes]).unwrap();
        plan.fail(what, 1, Trouble::After);
        sink.finish().unwrap();
        assert!(plan.struck());
        assert_eq!(storage.read_all("_data/a.frag").unwrap().len(), bytes);
    }
}

#[test]
fn a_sink_that_did_not_finish_says_so() {
    let (storage, plan) = pair();
    let mut sink = storage.create("_data/a.frag").unwrap();
    sink.write(&vec![3; sink::PART_BYTES + 1]).unwrap();
    plan.fail("complete", 1, Trouble::Before);
    assert_eq!(sink.finish().unwrap_err().kind(), ErrorKind::Storage);
    assert_eq!(plan.seen().last(), Some(&"abort"));
    assert!(!storage.exists("_data/a.frag").unwrap());
}

/// The error of a failed write says whether any of its tries may take effect later. A late one lands here.
#[test]
fn an_error_says_whether_the_write_may_still_happen() {
    use Trouble::{Before, Denied, Late, Refused};
    let cases: [(&[Option<Trouble>], bool); 6] = [
        (&[Some(Denied)], false),
        (&[Some(Late), Some(Denied)], true),
        (&[Some(Late); 4], true),
        (&[Some(Before); 4], true),
        (&[Some(Late), Some(Refused), Some(Refused), Some(Refused)], true),
        (&[Some(Late), Some(Refused), Some(Denied)], true),
    ];
    for (writes, in_doubt) in cases {
        let (storage, plan) = pair();
        plan.write_so(writes);
        let error = storage.put_if_absent("_log/1", b"ours").unwrap_err();
        assert_eq!(error.had_no_effect(), !in_doubt, "{writes:?}: {error}");
        assert_eq!(plan.seen().iter().filter(|what| **what == "put").count(), writes.len());
        plan.land();
        assert!(in_doubt || !storage.exists("_log/1").unwrap(), "{writes:?}: it happened after all");
    }
}

#[test]
fn a_look_settles_what_was_in_doubt() {
    use Trouble::{After, Late, Refused};
    // Its own success, recognized by its mark whatever the later answers are.
    for writes in [&[Some(After)][..], &[Some(Late), Some(After)], &[Some(Late), None]] {
        let (storage, plan) = pair();
        plan.write_so(writes);
        let expected = if writes.len() == 1 { PutOutcome::Created } else { PutOutcome::CreatedLate };
        assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), expected, "{writes:?}");
    }
    // Another writer's object: ours can no longer appear.
    let (storage, plan) = pair();
    storage.put_if_absent("_log/1", b"other").unwrap();
    plan.write_so(&[Some(Late)]);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), PutOutcome::Exists);
    // A first try that is refused is accepted as refused, though the object cannot be read.
    let (storage, plan) = pair();
    plan.write_so(&[Some(Refused)]);
    assert_eq!(storage.put_if_absent("_log/1", b"ours").unwrap(), PutOutcome::Exists);
}

/// A failure before the request is sent has no effect.
#[test]
fn nothing_was_sent_yet() {
    let (bucket, plan) = Faulty::planned();
    let storage = over(bucket);
    plan.fail("get", 1, Trouble::Before);
    assert!(storage.put_if_absent("_log/1", b"ours").unwrap_err().had_no_effect());
    let (storage, plan) = pair();
    plan.refuse_conditions();
    let error = storage.put_if_absent("_log/1", b"ours").unwrap_err();
    assert_eq!((error.kind(), error.had_no_effect()), (ErrorKind::Unsupported, true));
    assert!(storage.put_if_absent(LATEST, &[b' '; 500]).unwrap_err().had_no_effect());
}
