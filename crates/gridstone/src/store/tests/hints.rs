//! Promise: a hint only saves requests. Whatever it says, the store opens with the same state; the records in it are
//! used if they are those of the log.

use super::world::*;
use crate::base::{NeverCancel, limits};
use crate::storage::{CountingStorage, FLOOR, LATEST, MemoryStorage, Storage, log_name};
use crate::store::hint::{FAR_HINT_EVERY, Hint, NUMBER_BYTES, number_of};
use crate::store::{Changes, Floor, Operation, Snapshot, StandardRules, Store};
use bytes::Bytes;
use gridstone_testkit::Dice;
use std::sync::Arc;

/// The same objects, in a memory of their own.
fn copied(memory: &MemoryStorage) -> MemoryStorage {
    let copy = MemoryStorage::new();
    for folder in ["_log", "_data", "_manifest"] {
        for name in memory.list(folder).unwrap() {
            copy.put(&name, &memory.read_all(&name).unwrap()).unwrap();
        }
    }
    copy
}

/// The newest version, as another process opens it, and the objects of the log that it reads.
fn opened(memory: &MemoryStorage) -> (Arc<Snapshot>, Vec<String>) {
    let counting = Arc::new(CountingStorage::new(Arc::new(memory.clone())));
    let snapshot = store_in(counting.clone()).latest().unwrap();
    let is_record = |name: &&String| name.starts_with("_log/0") && memory.exists(name).unwrap();
    let read = counting.snapshot().reads.keys().filter(is_record).cloned().collect();
    (snapshot, read)
}

/// A store of so many versions, folded every `fold`, and the hints that it had, the oldest first.
fn grown(memory: &MemoryStorage, versions: u64, fold: u64) -> (Store, Arc<Snapshot>, Vec<Bytes>) {
    let (store, mut last, id) = with_array(Arc::new(memory.clone()));
    let (store, mut hints) = (store.with_fold_versions(fold), Vec::new());
    while last.version() < versions {
        last = add_one(&store, &last, id).unwrap();
        if last.version().is_multiple_of(FAR_HINT_EVERY) {
            hints.extend(memory.read_all(LATEST).ok());
        }
    }
    (store, last, hints)
}

#[test]
fn the_records_of_a_hint_are_not_read_again() {
    for (versions, fold) in [(3, 64), (4, 64), (13, 64), (64, 64), (65, 64), (67, 64), (95, 10)] {
        let memory = MemoryStorage::new();
        let (_, last, _) = grown(&memory, versions, fold);
        let (found, read) = opened(&memory);
        assert_eq!(seen(&found), seen(&last), "{versions}");
        let hint = versions / FAR_HINT_EVERY * FAR_HINT_EVERY;
        let expected: Vec<String> = (hint.max(1)..=versions).map(log_name).collect();
        assert_eq!(read, expected, "{versions}");
        // A writer that opened it so writes the next hint as whole.
        let id = found.array("/").unwrap().id();
        let next = commits(&store_in(Arc::new(memory.clone())).with_fold_versions(fold), found, id, FAR_HINT_EVERY);
        assert_eq!(opened(&memory).1.len() as u64, next.version() % FAR_HINT_EVERY + 1, "{versions}");
    }
}

#[test]
fn a_hint_starts_with_a_number_for_earlier_releases() {
    let memory = MemoryStorage::new();
    let (_, _, hints) = grown(&memory, 9, 64);
    let hint = hints.last().unwrap();
    let number = std::str::from_utf8(&hint[..NUMBER_BYTES]).unwrap();
    assert_eq!((number.trim(), number.len(), number.ends_with('\n')), ("8", 32, true));
    assert_eq!(number_of(hint), 8);
    let near = MemoryStorage::new().near();
    grown(&near, 9, 64);
    assert_eq!(near.read_all(LATEST).unwrap(), "8");
}

/// What is decoded of a damaged hint is all of its tail or nothing, and never another one.
#[test]
fn a_damaged_hint_has_no_tail() {
    let memory = MemoryStorage::new();
    let (_, _, hints) = grown(&memory, 8, 64);
    let whole = Hint::decode(&hints[1]);
    assert_eq!((whole.version, whole.tail.len(), whole.damaged), (8, 8, false));
    let check = |bytes: &[u8], what: &str| {
        let hint = Hint::decode(bytes);
        assert!(hint.tail.is_empty() || hint.tail == whole.tail, "{what}");
    };
    for cut in 0..hints[1].len() {
        check(&hints[1][..cut], &format!("cut at {cut}"));
    }
    for bit in 0..hints[1].len() * 8 {
        let mut bad = hints[1].to_vec();
        bad[bit / 8] ^= 1 << (bit % 8);
        check(&bad, &format!("bit {bit}"));
    }
    // The last lines alone are a tail too, lines that are left out in the middle or put twice are none.
    let lines: Vec<&Bytes> = whole.tail.iter().map(|record| record.head.as_ref().unwrap()).collect();
    let of = |lines: &[&Bytes]| {
        let number = format!("{:<31}\n", 8).into_bytes();
        Hint::decode(&[number, lines.iter().flat_map(|line| line.iter().copied()).collect()].concat()).tail.len()
    };
    assert_eq!(of(&lines[5..]), 3);
    assert_eq!(of(&[lines[5], lines[7]]), 0);
    assert_eq!(of(&[lines[6], lines[7], lines[7]]), 0);
    assert_eq!(of(&lines[..7]), 0);
}

#[test]
fn a_damaged_hint_opens_the_same_state() {
    for (versions, fold) in [(5, 64), (23, 10)] {
        let memory = MemoryStorage::new();
        let (_, last, hints) = grown(&memory, versions, fold);
        let (hint, expected, mut dice) = (hints.last().unwrap(), seen(&last), Dice::new(11));
        let check = |bytes: &[u8], what: &str| {
            memory.put_hint(LATEST, bytes).unwrap();
            let found = store_in(Arc::new(memory.clone())).latest().unwrap_or_else(|e| panic!("{what}: {e}"));
            assert_eq!(seen(&found), expected, "{what}");
        };
        for cut in 0..hint.len() {
            check(&hint[..cut], &format!("{versions}: cut at {cut}"));
        }
        for at in 0..hint.len() {
            let mut bad = hint.to_vec();
            bad[at] ^= 1 << dice.below(8);
            check(&bad, &format!("{versions}: byte {at}"));
        }
        for round in 0..300 {
            let mut bad = hint.to_vec();
            let (from, to) = (dice.below(bad.len()), dice.below(bad.len()));
            match round % 3 {
                0 => drop(bad.drain(from.min(to)..from.max(to))),
                1 => bad.extend_from_within(from.min(to)..from.max(to)),
                _ => bad[from.min(to)..from.max(to)].fill(b"0\n {"[round % 4]),
            }
            check(&bad, &format!("{versions}: round {round}"));
        }
    }
}

/// Hints of the same store, of one that went on otherwise, and of others.
#[test]
fn a_hint_of_another_history_opens_the_same_state() {
    let memory = MemoryStorage::new();
    let (store, base, older) = grown(&memory, 70, 64);
    let fork = copied(&memory);
    let id = base.array("/").unwrap().id();
    let last = commits(&store, base.clone(), id, 5);
    let mut hints = older;
    let mut forked = base;
    for _ in 0..70 {
        let forking = store_in(Arc::new(fork.clone()));
        forked = add_one(&forking, &forked, id).unwrap();
        hints.push(fork.read_all(LATEST).unwrap());
    }
    for versions in [8, 75, 76, 140] {
        let other = MemoryStorage::new();
        hints.extend(grown(&other, versions, 64).2);
    }
    let expected = seen(&last);
    for hint in &hints {
        memory.put_hint(LATEST, hint).unwrap();
        let what = number_of(hint);
        assert_eq!(seen(&opened(&memory).0), expected, "{what}");
    }
    // As it was at each version that the hints are of: none is ahead of the records that follow it.
    for version in (65..=75).rev() {
        let expected = seen(&store_in(Arc::new(memory.clone())).at_version(version).unwrap());
        for hint in &hints {
            memory.put_hint(LATEST, hint).unwrap();
            assert_eq!(seen(&opened(&memory).0), expected, "{} at {version}", number_of(hint));
        }
        memory.delete(&log_name(version)).unwrap();
    }
}

#[test]
fn a_hint_with_forgotten_records_opens_the_same_state() {
    let memory = MemoryStorage::new();
    let (store, last, hints) = grown(&memory, 34, 10);
    let root = store.record(21).unwrap().root.unwrap();
    memory.put(FLOOR, &Floor { version: 20, root }.encode().unwrap()).unwrap();
    for gone in [0, 1] {
        (1..20 * gone).for_each(|v| memory.delete(&log_name(v)).unwrap());
        for hint in &hints {
            memory.put_hint(LATEST, hint).unwrap();
            assert_eq!(seen(&opened(&memory).0), seen(&last), "{}", number_of(hint));
        }
    }
}

/// Hints of writers that end at once may be lost. The records that came since are read, and those of the hint are not.
#[test]
fn a_hint_that_is_behind_still_serves() {
    let memory = MemoryStorage::new();
    let (_, last, hints) = grown(&memory, 63, 64);
    for hint in &hints {
        memory.put_hint(LATEST, hint).unwrap();
        let (found, read) = opened(&memory);
        assert_eq!(seen(&found), seen(&last));
        assert_eq!(read, (number_of(hint)..=63).map(log_name).collect::<Vec<_>>());
    }
}

/// A hint holds the last lines that there is room for, and the records before are read.
#[test]
fn a_hint_is_bounded() {
    for (bytes, held) in [(20_000, 12), (limits::HINT_LINE_BYTES_MAX, 0)] {
        let memory = MemoryStorage::new();
        let (store, mut last, id) = with_array(Arc::new(memory.clone()));
        let mut dice = Dice::new(3);
        while last.version() < 20 {
            let text: String = (0..bytes).map(|_| char::from(b'a' + dice.below(26) as u8)).collect();
            let changes = vec![(format!("k{}", last.version()), Some(format!("\"{text}\"")))];
            let changes = Changes::new(vec![Operation::SetMetadata { node: id, changes }]);
            last = store.commit(&last, changes, &mut StandardRules).unwrap();
        }
        let hint = memory.read_all(LATEST).unwrap();
        assert!(hint.len() <= limits::HINT_BYTES_MAX);
        assert_eq!(Hint::decode(&hint).tail.len(), held, "{bytes}");
        let (found, read) = opened(&memory);
        assert_eq!(seen(&found), seen(&last));
        assert_eq!(read.len(), if held == 0 { 20 } else { 20 - held + 1 }, "{read:?}");
    }
}

#[test]
fn an_inspection_finds_a_damaged_tail() {
    let memory = MemoryStorage::new();
    let (store, base, hints) = grown(&memory, 12, 64);
    let flawed = |bytes: &[u8]| {
        memory.put_hint(LATEST, bytes).unwrap();
        let found = store.inspect(&NeverCancel).unwrap();
        assert!(found.flaws.iter().all(|flaw| flaw.object == LATEST), "{:?}", found.flaws);
        found.flaws.first().map(|flaw| flaw.message.clone()).unwrap_or_default()
    };
    hints.iter().for_each(|hint| assert_eq!(flawed(hint), ""));
    assert_eq!(flawed(b"12"), "");
    let mut bad = hints[2].to_vec();
    bad[100] ^= 1;
    assert!(flawed(&bad).contains("records in the hint are damaged"));
    bad.truncate(90);
    assert!(flawed(&bad).contains("records in the hint are damaged"));
    assert!(flawed(b"").contains("number"));
    let fork = MemoryStorage::new();
    let (.., others) = grown(&fork, 12, 64);
    assert!(flawed(&others[2]).contains("another record of version 1 "));
    store.renew_hint(&base);
    assert_eq!(memory.read_all(LATEST).unwrap(), hints[2]);
}
