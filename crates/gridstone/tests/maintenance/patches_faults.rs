//! Promise: a merge of patches that fails, or whose own files are taken away, changes nothing that is read and leaves no file behind; the
//! next one does it.

use crate::support::dense::{BOTH, read, schema, write_box};
use gridstone::engine::{
    Array, At, Call, Context, Keep, Opened, Options, Strategy, VacuumOptions, create_array_on, open_on, verify_on,
};
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

const SIDE: i64 = 300;

fn context() -> Context {
    // Of so small a budget patches become cells group by group. Nothing is folded: what a fold leaves is not looked at here.
    let options =
        Options { threads: Some(2), memory_budget: 1 << 20, cache: 0, fold_versions: 100_000, ..Options::default() };
    Context::new(&options).unwrap()
}

fn opened(storage: &Arc<dyn Storage>) -> Array {
    match open_on(&context(), storage.clone(), "/", true, At::Latest).unwrap() {
        Opened::Array(array) => array,
        Opened::Group(_) => panic!("a group where an array was created"),
    }
}

/// A store with a base and scattered patches of it.
fn patched() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create_array_on(&context(), storage.clone(), "/", schema(SIDE, 100, false), false).unwrap();
    write_box(&array, ((0, SIDE - 1), (0, SIDE - 1)), &BOTH, 0);
    for n in 1..=60 {
        let (i, j) = (n * 379 % (SIDE - 31), n * 617 % (SIDE - 31));
        write_box(&array, ((i, i + 11), (j, j + 9)), &BOTH, n);
    }
    storage
}

fn copied(storage: &Arc<dyn Storage>) -> Arc<dyn Storage> {
    let copy = MemoryStorage::new();
    for folder in ["_log", "_data", "_manifest"] {
        for name in storage.list(folder).unwrap() {
            copy.put(&name, &storage.read_all(&name).unwrap()).unwrap();
        }
    }
    Arc::new(copy)
}

fn merged(array: &Array) -> gridstone::base::Result<(usize, u64)> {
    let report = array.consolidate(&Strategy::Updates, 1 << 30, false, &Call::default())?;
    Ok((report.merges.len(), report.overtaken))
}

fn files(storage: &Arc<dyn Storage>) -> BTreeSet<String> {
    storage.list("_data").unwrap().into_iter().collect()
}

#[test]
fn whatever_fails_nothing_is_left() {
    let (base, mut struck_in) = (patched(), BTreeSet::new());
    let expected = read(&opened(&base));
    for (first, fault) in [(1, Fault::Error), (2, Fault::Full)] {
        for n in (first..).step_by(2) {
            let (plan, memory) = (FaultPlan::new(), copied(&base));
            let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory.clone(), plan.clone()));
            let array = opened(&faulty);
            let before = plan.operations();
            plan.fail_nth(n, fault);
            let outcome = merged(&array);
            let struck = plan.struck().then(|| plan.journal()[(before + n - 1) as usize]);
            plan.clear();
            drop(array);
            let Some(operation) = struck else {
                assert!(outcome.unwrap().0 > 0);
                break;
            };
            struck_in.insert(format!("{operation:?}"));
            let told = format!("{fault:?} of operation {n}, {operation:?}: {outcome:?}");
            let again = opened(&memory);
            assert!(read(&again) == expected, "{told}");
            let report = verify_on(&context(), memory.clone(), &Call::default()).unwrap();
            assert!(report.damage.is_empty(), "{told}: {report:?}");
            // What cannot be deleted is left for a vacuum.
            if operation != Operation::Delete {
                assert_eq!(report.orphans.objects, 0, "{told}: {:?}", files(&memory));
            }
            if outcome.is_err() {
                assert!(merged(&again).unwrap().0 > 0, "{told}: not done again");
                assert!(read(&again) == expected, "{told}, done again");
            }
        }
    }
    for operation in ["Create", "Write", "Finish", "Read"] {
        assert!(struck_in.contains(operation), "{struck_in:?}");
    }
}

/// A vacuum without a safety age takes what no version names, the files that a merge works with among it.
#[test]
fn a_merge_whose_files_are_taken_is_given_up() {
    let base = patched();
    let (expected, known) = (read(&opened(&base)), files(&base));
    let mut given_up = 0;
    // Before which look at a file of its own it happens.
    for at in 0.. {
        let memory = copied(&base);
        let (looks, taken) = (AtomicU64::new(0), Arc::new(AtomicBool::new(false)));
        let (below, struck, known) = (memory.clone(), taken.clone(), known.clone());
        let hook = move |operation, name: &str| {
            let own = name.starts_with("_data/") && !known.contains(name);
            if own && operation == Operation::Open && looks.fetch_add(1, Ordering::SeqCst) == at {
                struck.store(true, Ordering::SeqCst);
                let options = VacuumOptions { keep: Keep::Versions(1_000), safety_us: 0, dry_run: false };
                opened(&below).vacuum(&options, &Call::default()).unwrap();
            }
        };
        let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(memory.clone(), hook));
        let array = opened(&hooked);
        let (merges, overtaken) = merged(&array).unwrap();
        assert!(read(&opened(&memory)) == expected, "before look {at}");
        if !taken.load(Ordering::SeqCst) {
            assert!(at > 0 && merges > 0 && overtaken == 0);
            break;
        }
        given_up += overtaken;
        assert!(overtaken == 1 || merges > 0, "before look {at}: neither done nor given up");
        let again = opened(&memory);
        let done = merged(&again).unwrap();
        assert!(merges > 0 || done.0 > 0, "before look {at}: not done again");
        assert!(read(&again) == expected, "before look {at}, done again");
        assert!(verify_on(&context(), memory.clone(), &Call::default()).unwrap().damage.is_empty());
    }
    assert!(given_up > 0);
}
