//! Promise: a consolidation of many merges looks at each commit of others once, whatever comes between its merges, lets vacuums follow it,
//! and forgets none of what it has seen.

use crate::support::line::{Cells, create, read, write};
use crate::support::store::{context, options, store_of};
use gridstone::base::Result;
use gridstone::engine::{Array, At, Call, Condition, Keep, Strategy, commit_receipts_on};
use gridstone::storage::{CountingStorage, HookedStorage, MemoryStorage, Operation, Storage};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// Runs of small fragments, each between large ones that are left as they are.
const RUNS: i64 = 6;
const SMALL: i64 = 8;
/// Writes of others while each merge is committed.
const OTHERS: i64 = 12;

fn updates(array: &Array) -> Result<gridstone::engine::ConsolidateReport> {
    array.consolidate(&Strategy::Updates, 1 << 30, false, &Call::default())
}

/// A run of small fragments at the places from `first` on, every other of which is `-1`.
fn run(array: &Array, first: i64, cells: &mut Cells) {
    for x in first..first + SMALL {
        let small = Cells::from([(x, if x % 2 == 0 { x + 1 } else { -1 })]);
        write(array, &small).unwrap();
        cells.extend(small);
    }
}

/// More than a small fragment may be.
fn large(array: &Array, value: i64, cells: &mut Cells) {
    let large: Cells = (5_000..18_000).map(|x| (x, x + value)).collect();
    write(array, &large).unwrap();
    cells.extend(large);
}

/// A storage whose every other record is preceded by `others`: the slot is theirs, the next one free again.
fn beside(storage: &Arc<dyn Storage>, others: impl Fn(u64) + Send + Sync + 'static) -> Arc<dyn Storage> {
    let (puts, within) = (AtomicU64::new(0), AtomicBool::new(false));
    Arc::new(HookedStorage::new(storage.clone(), move |operation, name: &str| {
        if operation != Operation::PutIfAbsent || !name.starts_with("_log/") || within.load(Ordering::SeqCst) {
            return;
        }
        let put = puts.fetch_add(1, Ordering::SeqCst);
        if put % 2 == 0 {
            within.store(true, Ordering::SeqCst);
            others(put / 2);
            within.store(false, Ordering::SeqCst);
        }
    }))
}

#[test]
fn each_commit_is_looked_at_once_and_vacuums_follow() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create(&context(4), &memory, "/line", false);
    let mut cells = Cells::new();
    for number in 0..RUNS {
        run(&array, 100 * number, &mut cells);
        large(&array, number, &mut cells);
    }
    let (planned, floor) = (array.version(), Arc::new(AtomicU64::new(0)));
    let (other, store, risen) = (array, store_of(&memory), floor.clone());
    let busy = beside(&memory, move |round| {
        for number in 0..OTHERS {
            write(&other, &Cells::from([(19_000 + number, round as i64)])).unwrap();
        }
        other.vacuum(&options(Keep::Versions(1)), &Call::default()).unwrap();
        risen.store(store.floor().unwrap().map_or(0, |f| f.version), Ordering::SeqCst);
    });
    let counting = Arc::new(CountingStorage::new(busy));
    let storage: Arc<dyn Storage> = counting.clone();
    let merger = crate::support::store::open(&context(4), &storage, "/line", At::Latest).unwrap();
    counting.reset();
    let report = updates(&merger).unwrap();
    assert_eq!((report.merges.len() as i64, report.overtaken), (RUNS, 0), "{report:?}");
    let floor = floor.load(Ordering::SeqCst);
    assert!(floor > planned + (OTHERS * (RUNS - 2)) as u64, "planned at version {planned}, floor at {floor}");
    // A slot is read when it was lost, then with all that came after it, and where a root is opened anew.
    let reads = counting.snapshot().reads;
    let most = reads.iter().filter(|(name, _)| name.starts_with("_log/0")).max_by_key(|(_, count)| **count);
    assert!(most.is_some_and(|(_, count)| *count <= 4), "{most:?}");
    cells.extend((0..OTHERS).map(|number| (19_000 + number, RUNS - 1)));
    let newest = crate::support::store::open(&context(4), &memory, "/line", At::Latest).unwrap();
    assert_eq!(read(&newest).unwrap(), cells);
}

/// A delete of the order of an earlier version comes while an earlier merge is committed, and lies between the inputs of a later one.
#[test]
fn a_delete_that_an_earlier_merge_has_passed_forbids_a_later_one() {
    let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array = create(&context(4), &memory, "/grid", false);
    let mut cells = Cells::new();
    run(&array, 0, &mut cells);
    large(&array, 0, &mut cells);
    run(&array, 1_000, &mut cells);
    cells.retain(|_, v| *v >= 0);
    let receipt = array.receipt_where(None, &Condition::parse("v < 0").unwrap(), &Call::default()).unwrap();
    let after: Cells = (1_000 + SMALL..1_000 + 2 * SMALL).map(|x| (x, -2)).collect();
    for (x, v) in &after {
        write(&array, &Cells::from([(*x, *v)])).unwrap();
    }
    cells.extend(after);
    let late = memory.clone();
    let busy = beside(&memory, move |round| {
        if round == 0 {
            commit_receipts_on(&context(4), late.clone(), std::slice::from_ref(&receipt), None).unwrap();
        }
    });
    let merger = crate::support::store::open(&context(4), &busy, "/grid", At::Latest).unwrap();
    let report = updates(&merger).unwrap();
    assert!(report.overtaken > 0, "{report:?}");
    let newest = || crate::support::store::open(&context(4), &memory, "/grid", At::Latest).unwrap();
    assert_eq!(read(&newest()).unwrap(), cells);
    updates(&newest()).unwrap();
    assert_eq!(read(&newest()).unwrap(), cells);
}
