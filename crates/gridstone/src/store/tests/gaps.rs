//! Records that are missing in the middle of the log: a search for the end finds the gap, and no commit goes into it.

use super::world::*;
use crate::base::{ErrorKind, Result};
use crate::storage::{CountingStorage, LATEST, MemoryStorage, Operation, Storage, log_name};
use crate::store::Changes;
use crate::store::hint::FAR_HINT_EVERY;
use std::fmt::Debug;
use std::sync::Arc;

/// A storage in which probes cost nothing.
fn near() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new().near())
}

/// The error names the record that is missing and what to do.
fn assert_gap<T: Debug>(outcome: Result<T>, missing: u64, what: &str) {
    let error = outcome.expect_err(what);
    assert_eq!(error.kind(), ErrorKind::Corruption, "{what}: {error}");
    for word in [log_name(missing).as_str(), "gridstone repair"] {
        assert!(error.message().contains(word), "{what}: {word:?} is not in: {error}");
    }
}

/// For every length of the log and every record but the last: no reader takes the version before the missing record for
/// the newest, with the hint and without.
#[test]
fn one_missing_record_is_found_wherever_the_log_is() {
    let memory = MemoryStorage::new();
    let storage: Arc<dyn Storage> = Arc::new(memory.clone());
    let (store, mut last, id) = with_array(Arc::clone(&storage));
    for newest in 2..=41u64 {
        last = add_one(&store, &last, id).unwrap();
        for missing in 1..newest {
            let kept = memory.read_all(&log_name(missing)).unwrap();
            memory.delete(&log_name(missing)).unwrap();
            let hint = memory.read_all(LATEST).ok();
            let opened = store_in(Arc::clone(&storage)).latest();
            match missing < newest / FAR_HINT_EVERY * FAR_HINT_EVERY {
                // The hint has its line, so that nothing needs it.
                true => assert_eq!(seen(&opened.unwrap()), seen(&last), "{missing} of {newest}"),
                false => assert_gap(opened, missing, &format!("{missing} of {newest}")),
            }
            assert_gap(
                store_in(Arc::clone(&storage)).at_version(missing),
                missing,
                &format!("{missing} of {newest}, named"),
            );
            memory.delete(LATEST).unwrap();
            assert_gap(store_in(Arc::clone(&storage)).latest(), missing, &format!("{missing} of {newest}, no hint"));
            hint.iter().for_each(|hint| memory.put_hint(LATEST, hint).unwrap());
            memory.put(&log_name(missing), &kept).unwrap();
        }
        assert_eq!(store_in(Arc::clone(&storage)).latest().unwrap().version(), newest);
    }
}

/// Where probes cost nothing, every gap shorter than the hint's distance is found; elsewhere finding the end costs one
/// probe more.
#[test]
fn several_missing_records_are_found_where_looking_is_free() {
    let near = near();
    let (store, one, id) = with_array(Arc::clone(&near));
    let mut last = commits(&store, one, id, 15);
    for newest in 17..=31u64 {
        last = add_one(&store, &last, id).unwrap();
        for first in 2..newest {
            for count in 1..=(newest - first).min(6) {
                let gap = first..first + count;
                let kept: Vec<_> = gap.clone().map(|v| near.read_all(&log_name(v)).unwrap()).collect();
                gap.clone().for_each(|v| near.delete(&log_name(v)).unwrap());
                assert_gap(store_in(Arc::clone(&near)).latest(), first, &format!("{gap:?} of {newest}"));
                gap.zip(kept).for_each(|(v, bytes)| near.put(&log_name(v), &bytes).unwrap());
            }
        }
    }
    assert_eq!(store_in(Arc::clone(&near)).latest().unwrap().version(), last.version());
}

#[test]
fn nobody_commits_into_a_gap() {
    let near = near();
    let (store, one, id) = with_array(Arc::clone(&near));
    let four = commits(&store, one, id, 3);
    let seven = commits(&store, four.clone(), id, 3);
    let kept = near.read_all(&log_name(5)).unwrap();
    near.delete(&log_name(5)).unwrap();
    // The store of a process that has only seen version 4.
    let other = store_in(Arc::clone(&near));
    assert_gap(add_one(&other, &four, id), 5, "a commit");
    assert_gap(other.refresh(&four), 5, "a refresh");
    assert!(!near.exists(&log_name(5)).unwrap(), "nothing was written");
    // A snapshot past the gap does not need the record.
    assert_eq!(store.refresh(&seven).unwrap().version(), 7);
    near.put(&log_name(5), &kept).unwrap();
    assert_eq!(add_one(&other, &four, id).unwrap().version(), 8);
}

/// A handle that was at a later version finds the gap, wherever the store is.
#[test]
fn what_a_handle_has_seen_is_looked_for() {
    let memory = MemoryStorage::new();
    let (store, one, id) = with_array(Arc::new(memory.clone()));
    let four = commits(&store, one, id, 3);
    commits(&store, four.clone(), id, 3);
    memory.delete(&log_name(5)).unwrap();
    assert_gap(store.refresh(&four), 5, "a refresh");
    assert_gap(add_one(&store, &four, id), 5, "a commit");
    // Without the later records there is no proof: they may never have existed.
    [6, 7].iter().for_each(|version| memory.delete(&log_name(*version)).unwrap());
    assert_eq!(store_in(Arc::new(memory)).latest().unwrap().version(), 4);
}

/// A lookup by time, or of one record, in a log with a gap reports the gap, not a missing version.
#[test]
fn a_missing_record_is_not_a_version_that_never_was() {
    let memory = MemoryStorage::new();
    let (store, one, id) = with_array(Arc::new(memory.clone()));
    let seven = commits(&store, one, id, 6);
    let times: Vec<i64> = (1..=7).map(|version| store.record(version).unwrap().time_us).collect();
    memory.delete(&log_name(4)).unwrap();
    for store in [store, store_in(Arc::new(memory))] {
        assert_eq!(store.record(5).unwrap().version, 5);
        assert_eq!(store.record(4).unwrap_err().kind(), ErrorKind::Corruption);
        for version in [0, 8] {
            assert_eq!(store.record(version).unwrap_err().kind(), ErrorKind::NotFound, "{version}");
        }
        let error = store.version_at(times[4]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.message().contains("version 4"), "{error}");
        assert_eq!(store.at_time(times[4]).unwrap_err().kind(), ErrorKind::Corruption);
    }
    assert_eq!(seven.version(), 7);
}

#[test]
fn no_store_is_created_over_what_is_left_of_one() {
    let memory = MemoryStorage::new();
    let (store, one, id) = with_array(Arc::new(memory.clone()));
    commits(&store, one, id, 2);
    memory.delete(&log_name(1)).unwrap();
    let store = store_in(Arc::new(memory.clone()));
    assert_gap(store.create(Changes::default()), 1, "a creation");
    assert_gap(store.latest(), 1, "an open");
    (2..=3).for_each(|version| memory.delete(&log_name(version)).unwrap());
    assert_eq!(store.latest().unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(store.create(Changes::default()).unwrap().version(), 1);
}

/// The hint is at most seven versions behind. Finding the end takes no more probes than galloping from a step of one
/// did.
#[test]
fn finding_the_end_takes_few_probes() {
    let counting = Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new())));
    let (store, mut last, id) = with_array(counting.clone());
    let mut found = Vec::new();
    for newest in 2..=40u64 {
        last = add_one(&store, &last, id).unwrap();
        counting.reset();
        assert_eq!(store_in(counting.clone()).log.newest(0).unwrap(), Some(newest));
        let counts = counting.snapshot();
        assert_eq!((counts.count(Operation::List), counts.count(Operation::Survey)), (0, 0));
        found.push(counts.count(Operation::Exists));
    }
    // Galloping from a step of one took 2, 4, 4, 6, 6, 6, 6, 8 from a hint.
    let hinted = &found[6..];
    assert!(hinted.iter().all(|probes| *probes <= 5), "{found:?}");
    let (ours, theirs) = (hinted[..32].iter().sum::<u64>(), 4 * (2 + 4 + 4 + 6 + 6 + 6 + 6 + 8));
    assert!(ours < theirs, "{ours} probes instead of {theirs}");
    assert!(found[..6].iter().sum::<u64>() <= 4 + 4 + 6 + 6 + 6 + 6 + 1, "{found:?}");
}

/// Where a probe is a request, none is made for the end alone. A young log is listed. In an older one, ten records are
/// read from the hint on, with the floor before and after; the other reads are those that the version needs.
#[test]
fn opening_reads_what_it_looks_at() {
    let counting = Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new())));
    let (store, mut last, id) = with_array(counting.clone());
    for newest in 2..=40u64 {
        last = add_one(&store, &last, id).unwrap();
        counting.reset();
        assert_eq!(store_in(counting.clone()).latest().unwrap().version(), newest);
        let counts = counting.snapshot();
        let hinted = newest >= FAR_HINT_EVERY;
        let (listed, read) = if hinted { (0, 2 + FAR_HINT_EVERY + 2 + 1) } else { (1, 2 + newest) };
        assert_eq!((counts.count(Operation::List), counts.count(Operation::ReadAll)), (listed, read), "{newest}");
        assert_eq!(counts.total(), listed + read, "{newest}: {:?}", counts.operations);
    }
}
