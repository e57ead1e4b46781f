//! A commit with a caller's key happens once: whatever is repeated, by whom, after which folds, and however the first
//! try ended.

use super::world::*;
use crate::base::{ErrorKind, Id, NeverCancel, Result, limits};
use crate::storage::{CountingStorage, LATEST, MemoryStorage, PutOutcome, Storage, StrayStorage, log_name};
use crate::store::commit_key::KeyRow;
use crate::store::hint::Hint;
use crate::store::rows::key;
use crate::store::{
    Changes, CommitKey, Committed, Keyed, Operation, Rebase, Record, Removed, Snapshot, StandardRules, Store,
};
use proptest::prelude::*;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

fn key_of(text: &str) -> CommitKey {
    CommitKey::new(text.as_bytes()).unwrap()
}

fn keyed(text: &str, content: u128) -> Option<Keyed> {
    Some(Keyed { key: key_of(text), content })
}

/// Commits a fragment with a key.
fn once(store: &Store, base: &Arc<Snapshot>, array: Id, key: &str, content: u128) -> Result<Committed> {
    store.commit_once(base, add(array, vec![inline(10, 19)]).with_key(keyed(key, content)), &mut StandardRules)
}

/// The rules of a record with the keys of many commits.
struct Many;

impl Rebase for Many {
    fn rebase(&mut self, _: &Record, _: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
        Ok(())
    }

    fn is_of_many(&self) -> bool {
        true
    }
}

/// Commits a record with the keys `from .. to`.
fn many(store: &Store, base: &Arc<Snapshot>, numbers: std::ops::Range<u64>) -> Arc<Snapshot> {
    let keys = numbers.map(|n| Keyed { key: key_of(&format!("key {n}")), content: u128::from(n) }).collect();
    store.commit(base, Changes { keys, ..Changes::default() }, &mut Many).unwrap()
}

fn check_intact(store: &Store) {
    let flaws = store.inspect(&NeverCancel).unwrap().flaws;
    assert!(flaws.is_empty(), "{flaws:?}");
}

#[test]
fn a_repeated_commit_is_the_first_one_in_every_handle_and_after_folds() {
    let storage = memory();
    let (store, one, array) = with_array(storage.clone());
    let first = once(&store, &one, array, "load 7", 1).unwrap();
    assert_eq!((first.version, first.is_repeat), (2, false));
    let mut newest = first.snapshot;
    for rounds in [0, 1, 70, 200] {
        newest = commits(&store, newest, array, rounds);
        let other = store_in(storage.clone());
        let opened = other.latest().unwrap();
        for (store, base) in [(&store, &newest), (&other, &opened), (&other, &one)] {
            let again = once(store, base, array, "load 7", 1).unwrap();
            assert_eq!((again.version, again.is_repeat), (2, true));
        }
        assert_eq!(store.latest().unwrap().version(), newest.version(), "nothing was committed");
        assert_eq!(newest.keyed_commit(&key_of("load 7")).unwrap().unwrap().version, 2);
        assert_eq!(newest.keyed_commit(&key_of("load 8")).unwrap(), None);
    }
    check_intact(&store);
}

#[test]
fn a_key_with_other_content_is_a_conflict_that_says_so() {
    let (store, one, array) = with_array(memory());
    let two = once(&store, &one, array, "load 7", 1).unwrap().snapshot;
    for base in [&one, &two, &commits(&store, Arc::clone(&two), array, 70)] {
        let error = once(&store, base, array, "load 7", 2).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        for said in ["\"load 7\"", "version 2", "what was given then", "what is given now", "Nothing was committed"] {
            assert!(error.message().contains(said), "{said}: {error}");
        }
    }
    assert_eq!(store.latest().unwrap().version(), 72);
}

/// The rules of a change are not asked about a commit that is this one: they would refuse it.
#[test]
fn a_repeated_commit_that_lost_its_slot_is_done_before_its_rules_are_asked() {
    for between in [0, 5, 300] {
        let storage = memory();
        let (store, one, array) = with_array(storage.clone());
        let base = add_one(&store, &one, array).unwrap();
        let removed = Removed::of(&base.array_by_id(array).unwrap().fragments(None).unwrap()[0]);
        let replace = || {
            let operation =
                Operation::ReplaceFragments { array, removed: vec![removed.clone()], fragments: Vec::new() };
            Changes::new(vec![operation])
        };
        let first = store.commit_once(&base, replace().with_key(keyed("merge", 3)), &mut StandardRules).unwrap();
        commits(&store, first.snapshot, array, between);
        let other = store_in(storage.clone());
        let again = other.commit_once(&base, replace().with_key(keyed("merge", 3)), &mut StandardRules).unwrap();
        assert_eq!((again.version, again.is_repeat), (3, true), "{between}");
        let plain = other.commit(&base, replace(), &mut StandardRules).unwrap_err();
        assert_eq!(plain.kind(), ErrorKind::Conflict);
        let error = other.commit(&base, replace().with_key(keyed("merge", 4)), &mut StandardRules).unwrap_err();
        assert!(error.message().contains("commit key"), "{error}");
    }
}

#[test]
fn a_commit_of_unknown_outcome_is_repeated_safely_whether_it_landed_or_not() {
    for lands in [false, true] {
        let memory = MemoryStorage::new();
        let (_, one, array) = with_array(Arc::new(memory.clone()));
        let stray = StrayStorage::new(Arc::new(memory.clone()), |_| None, |name| name.starts_with("_log/"));
        let error = once(&store_in(Arc::new(stray.clone())), &one, array, "k", 1).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::CommitUnknown);
        if lands {
            assert_eq!(stray.land().unwrap().unwrap(), PutOutcome::Created);
        }
        let again = once(&store_in(Arc::new(memory.clone())), &one, array, "k", 1).unwrap();
        assert_eq!((again.version, again.is_repeat), (2, lands));
        // What lands late finds its slot taken.
        while let Some(late) = stray.land() {
            assert_eq!(late.unwrap(), PutOutcome::Exists);
        }
        let newest = store_in(Arc::new(memory.clone())).latest().unwrap();
        assert_eq!((newest.version(), newest.array_by_id(array).unwrap().count_fragments()), (2, 1));
    }
}

#[test]
fn a_record_with_a_damaged_key_is_damage() {
    let memory = MemoryStorage::new();
    let (store, one, array) = with_array(Arc::new(memory.clone()));
    once(&store, &one, array, "k", 1).unwrap();
    let bytes = memory.read_all(&log_name(2)).unwrap();
    let text = String::from_utf8_lossy(&bytes);
    assert!(text.contains(r#""keys":[{"key":"6b","content":"00000000000000000000000000000001"}],"ops""#), "{text}");
}

/// An opening that takes records from the hint instead of the log knows their keys.
#[test]
fn keys_of_records_in_a_hint_are_known() {
    let memory = MemoryStorage::new();
    let (store, mut newest, array) = with_array(Arc::new(memory.clone()));
    for n in 2..=8u64 {
        newest = once(&store, &newest, array, &format!("k{n}"), u128::from(n)).unwrap().snapshot;
    }
    let hint = Hint::decode(&memory.read_all(LATEST).unwrap());
    let keys: Vec<&Keyed> = hint.tail.iter().flat_map(|record| &record.keys).collect();
    let all: Vec<Keyed> = (2..=8u64).filter_map(|n| keyed(&format!("k{n}"), u128::from(n))).collect();
    assert_eq!((hint.version, keys), (8, all.iter().collect()));
    let counting = Arc::new(CountingStorage::new(Arc::new(memory.clone())));
    let opened = store_in(counting.clone()).latest().unwrap();
    assert!(!counting.snapshot().reads.contains_key(&log_name(5)));
    let found = opened.keyed_commit(&key_of("k5")).unwrap().unwrap();
    assert_eq!((found.version, found.content), (5, 5));
    let again = once(&store_in(Arc::new(memory)), &opened, array, "k5", 5).unwrap();
    assert_eq!((again.version, again.is_repeat), (5, true));
}

/// The numbers of keys in rows, with their epochs.
fn rows_of(snapshot: &Snapshot) -> Vec<(u64, u64)> {
    let mut found = Vec::new();
    let rows = snapshot.tree().rows();
    rows.scan(b"K", &mut |row| {
        if let Some(key::CommitKeyRow::Key(epoch, _)) = key::read_commit_key(row.key()) {
            found.push((epoch, KeyRow::decode(&rows.value_of(row)?)?.number));
        }
        Ok(())
    })
    .unwrap();
    found
}

#[test]
fn the_last_100_000_keys_are_kept_and_older_ones_forgotten() {
    const EACH: u64 = 1_000;
    let storage = memory();
    let (store, one, _) = with_array(storage.clone());
    let store = store.with_fold_versions(8);
    let mut newest = one;
    for n in 0..130 {
        newest = many(&store, &newest, n * EACH..(n + 1) * EACH);
        let (next, opened) = ((n + 1) * EACH, store_in(storage.clone()));
        let opened = if n % 16 == 5 { opened.latest().unwrap() } else { Arc::clone(&newest) };
        let first = next.saturating_sub(limits::COMMIT_KEYS_KEPT);
        let known = |number: u64| opened.keyed_commit(&key_of(&format!("key {number}"))).unwrap();
        for number in [first, first + 1, next / 2 + first / 2, next - 1] {
            let found = known(number).unwrap_or_else(|| panic!("{number} of {next}"));
            assert_eq!((found.content, found.version), (u128::from(number), number / EACH + 2));
        }
        for number in [first.checked_sub(1), Some(0), Some(next)].into_iter().flatten() {
            assert_eq!(known(number).is_some(), (first..next).contains(&number), "{number} of {next}");
        }
    }
    // Whole epochs go: those that have no number that is kept at the last fold.
    let folded = newest.root_version().saturating_sub(1) * EACH;
    let first = (folded - limits::COMMIT_KEYS_KEPT) / limits::COMMIT_KEYS_PER_EPOCH;
    let rows = rows_of(&newest);
    assert!(first > 0 && rows.iter().all(|(epoch, number)| *epoch == number / 8_192 && *epoch >= first));
    assert_eq!(rows.len() as u64, folded - first * limits::COMMIT_KEYS_PER_EPOCH);
    // A forgotten key is a new one.
    let again =
        store.commit_once(&newest, Changes::default().with_key(keyed("key 7", 70)), &mut StandardRules).unwrap();
    assert_eq!((again.version, again.is_repeat), (132, false));
    let packed = store.pack(&many(&store, &again.snapshot, 130_000..130_001)).unwrap();
    assert_eq!(packed.keyed_commit(&key_of("key 7")).unwrap().unwrap().content, 70);
    check_intact(&store);
}

/// A fold touches the pages of one epoch, and cuts the oldest ones out without reading their middle.
#[test]
fn a_fold_reads_and_writes_the_pages_of_the_newest_epoch() {
    use crate::storage::{MANIFEST, Operation as Op};
    let inner = memory();
    let (store, one, _) = with_array(inner.clone());
    let mut newest = store.pack(&many(&store, &one, 0..limits::COMMIT_KEYS_KEPT)).unwrap();
    let pages = |storage: &Arc<dyn Storage>| {
        let mut found = HashSet::new();
        storage
            .survey(MANIFEST, &mut |listed| {
                found.insert(listed.name.clone());
            })
            .unwrap();
        found
    };
    for _ in 0..2 {
        let counting = Arc::new(CountingStorage::new(inner.clone()));
        let counted: Arc<dyn Storage> = counting.clone();
        let store = store_in(counted.clone());
        let next = limits::COMMIT_KEYS_KEPT + (newest.version() - 3) * 10_000;
        let opened = many(&store, &store.latest().unwrap(), next..next + 10_000);
        let before = pages(&counted);
        counting.reset();
        newest = store.pack(&opened).unwrap();
        let reads = counting.snapshot().count(Op::ReadAll);
        let written = pages(&counted).difference(&before).count() as u64;
        // 10,000 keys reach into two or three epochs of about 12 pages each; all 14 epochs have about 160.
        assert!(reads < 50 && written < 50, "{reads} {written}");
    }
    let first = rows_of(&newest).first().unwrap().0;
    assert!(first >= 1, "{first}");
    check_intact(&store);
}

/// What a model of the store knows of a key: its content and its version.
type Model = HashMap<u8, (u128, u64)>;

#[derive(Debug, Clone)]
enum Step {
    /// A commit with a key, through one of two handles, which may be behind.
    Keyed {
        handle: usize,
        key: u8,
        content: u128,
    },
    Plain {
        handle: usize,
    },
    Refresh {
        handle: usize,
    },
    Reopen {
        handle: usize,
    },
    Pack,
}

fn a_step() -> impl Strategy<Value = Step> {
    let handle = 0usize..2;
    prop_oneof![
        8 => (handle.clone(), 0u8..6, 0u128..2).prop_map(|(handle, key, content)| Step::Keyed { handle, key, content }),
        3 => handle.clone().prop_map(|handle| Step::Plain { handle }),
        2 => handle.clone().prop_map(|handle| Step::Refresh { handle }),
        1 => handle.prop_map(|handle| Step::Reopen { handle }),
        1 => Just(Step::Pack),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(120))]
    #[test]
    fn keys_do_what_a_model_says(steps in prop::collection::vec(a_step(), 1..60), folds in 1u64..6) {
        let storage = memory();
        let (_, one, array) = with_array(storage.clone());
        let open = || store_in(storage.clone()).with_fold_versions(folds);
        let mut handles = [(open(), Arc::clone(&one)), (open(), one)];
        let (mut model, mut version) = (Model::new(), 1);
        for step in steps {
            match step {
                Step::Keyed { handle, key, content } => {
                    let (store, base) = &mut handles[handle];
                    let done = once(store, base, array, &format!("k{key}"), content);
                    match model.get(&key) {
                        Some((known, _)) if *known != content => {
                            prop_assert_eq!(done.unwrap_err().kind(), ErrorKind::Conflict);
                        }
                        Some((_, first)) => {
                            let done = done.unwrap();
                            prop_assert_eq!((done.version, done.is_repeat), (*first, true));
                            *base = done.snapshot;
                        }
                        None => {
                            let done = done.unwrap();
                            version += 1;
                            prop_assert_eq!((done.version, done.is_repeat), (version, false));
                            model.insert(key, (content, version));
                            *base = done.snapshot;
                        }
                    }
                }
                Step::Plain { handle } => {
                    let (store, base) = &mut handles[handle];
                    *base = add_one(store, base, array).unwrap();
                    version += 1;
                    prop_assert_eq!(base.version(), version);
                }
                Step::Refresh { handle } => handles[handle].1 = handles[handle].0.refresh(&handles[handle].1).unwrap(),
                Step::Reopen { handle } => {
                    let store = open();
                    handles[handle] = (open(), store.latest().unwrap());
                }
                Step::Pack => {
                    let (store, base) = &mut handles[0];
                    *base = store.latest().unwrap();
                    let packed = store.pack(base).unwrap();
                    version = packed.version();
                    *base = packed;
                }
            }
        }
        let newest = open().latest().unwrap();
        prop_assert_eq!(newest.version(), version);
        for key in 0u8..6 {
            let found = newest.keyed_commit(&key_of(&format!("k{key}"))).unwrap();
            prop_assert_eq!(found.map(|commit| (commit.content, commit.version)), model.get(&key).copied());
        }
        check_intact(&open());
    }
}
