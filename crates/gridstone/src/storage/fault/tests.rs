//! Each fault leaves the state that it documents, operation by operation.

use super::*;
use crate::base::ErrorKind;
use crate::storage::{MemoryStorage, PutOutcome, conformance};

fn faulty() -> (MemoryStorage, Arc<FaultPlan>, FaultyStorage) {
    let (memory, plan) = (MemoryStorage::new(), FaultPlan::new());
    let storage = FaultyStorage::new(Arc::new(memory.clone()), plan.clone());
    (memory, plan, storage)
}

/// A file in two writes, then a record that names it: five operations.
fn scenario(storage: &dyn Storage) -> Result<PutOutcome> {
    let mut sink = storage.create("_data/a.frag")?;
    sink.write(b"abcd")?;
    sink.write(b"efgh")?;
    sink.finish()?;
    storage.put_if_absent("_log/1", b"record")
}

fn content(memory: &MemoryStorage, name: &str) -> Option<String> {
    memory.read_all(name).ok().map(|bytes| String::from_utf8(bytes.to_vec()).unwrap())
}

#[test]
fn an_idle_plan_changes_nothing() {
    conformance::check(&|| Arc::new(faulty().2));
}

#[test]
fn a_run_tells_how_many_operations_can_fail() {
    let (_, plan, storage) = faulty();
    scenario(&storage).unwrap();
    use Operation::{Create, Finish, PutIfAbsent, Write};
    assert_eq!(plan.journal(), [Create, Write, Write, Finish, PutIfAbsent]);
    assert_eq!((plan.operations(), plan.struck()), (5, false));
}

/// What each fault at each of the five operations leaves of the file and of the record.
#[test]
fn each_fault_leaves_what_it_says() {
    let (whole, record) = (Some("abcdefgh"), Some("record"));
    let table = [
        (Fault::Error, [(None, None), (None, None), (None, None), (None, None), (whole, None)]),
        (Fault::ErrorAfter, [(None, None), (None, None), (None, None), (whole, None), (whole, record)]),
        (Fault::Torn, [(None, None), (Some("ab"), None), (Some("abcd"), None), (Some("abcd"), None), (whole, None)]),
        (Fault::Full, [(None, None), (None, None), (None, None), (None, None), (whole, None)]),
        (Fault::Kill, [(None, None), (Some(""), None), (Some("abcd"), None), (whole, None), (whole, None)]),
    ];
    for (fault, expected) in table {
        for (n, (file, log)) in (1..).zip(expected) {
            let (memory, plan, storage) = faulty();
            plan.fail_nth(n, fault);
            let error = scenario(&storage).unwrap_err();
            assert!(plan.struck());
            assert_eq!(error.kind(), ErrorKind::Storage, "{error}");
            assert_eq!(content(&memory, "_data/a.frag").as_deref(), file, "{fault:?} at {n}");
            assert_eq!(content(&memory, "_log/1").as_deref(), log, "{fault:?} at {n}");
        }
    }
}

#[test]
fn a_torn_put_leaves_half() {
    let (memory, plan, storage) = faulty();
    plan.fail_nth_of(Operation::PutHint, 2, Fault::Torn);
    storage.put_hint("_log/latest", b"0123").unwrap();
    assert!(storage.exists("_log/latest").unwrap());
    assert!(storage.put_hint("_log/latest", b"4567").is_err());
    assert_eq!(content(&memory, "_log/latest").as_deref(), Some("45"));
    storage.put_hint("_log/latest", b"89").unwrap();
}

#[test]
fn a_full_disk_stays_full_but_can_be_read_and_cleaned() {
    let (_, plan, storage) = faulty();
    scenario(&storage).unwrap();
    plan.fail_nth(1, Fault::Full);
    for _ in 0..2 {
        let error = storage.put("_log/floor", b"1").unwrap_err();
        assert!(error.message().contains("free some space"), "{error}");
        assert_eq!(error.os_error(), Some(28));
        assert_eq!(storage.read_all("_log/1").unwrap(), "record");
    }
    storage.delete("_log/1").unwrap();
    plan.clear();
    storage.put("_log/floor", b"1").unwrap();
}

#[test]
fn a_dead_process_does_nothing_more() {
    let (memory, plan, storage) = faulty();
    scenario(&storage).unwrap();
    let source = storage.open("_data/a.frag").unwrap();
    plan.fail_nth(1, Fault::Kill);
    assert!(source.read_one(crate::base::ByteRange::new(0, 1)).is_err());
    assert!(storage.read_all("_log/1").is_err());
    assert!(storage.delete("_log/1").is_err());
    assert!(storage.remove_everything().is_err());
    assert!(memory.exists("_log/1").unwrap());
}
