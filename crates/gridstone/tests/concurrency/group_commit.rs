//! Group commit: threads that commit tiny writes at the same time need far fewer records, and a lone writer waits for nobody.

use crate::support::gate::Gate;
use crate::support::pair::{cells, memory, one, opened, schema};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, Call, Context, Durability, Isolation, Options, Transaction, create_array};
use gridstone::storage::{CountingStorage, Fault, FaultPlan, FaultyStorage, HookedStorage, Operation, Storage};
use std::collections::BTreeSet;
use std::sync::{Arc, Barrier};
use std::time::Duration;

const THREADS: i64 = 16;
const WRITES: i64 = 20;
const ALL: ((i64, i64), (i64, i64)) = ((0, 39), (0, 39));

/// A storage whose commits take as long as those of a disk.
fn slow(inner: Arc<dyn Storage>) -> Arc<CountingStorage> {
    let slow = HookedStorage::new(inner, |operation, _: &str| {
        if operation == Operation::PutIfAbsent {
            std::thread::sleep(Duration::from_millis(3));
        }
    });
    Arc::new(CountingStorage::new(Arc::new(slow)))
}

/// Each thread writes a row, cell by cell; the versions that they were told.
fn write_rows(array: &Array) -> Vec<u64> {
    std::thread::scope(|scope| {
        let row =
            |y: i64| (0..WRITES).map(|x| commit_cells(array, &one(y, x, 1 + y * 100 + x), None).unwrap()).collect();
        let threads: Vec<_> = (0..THREADS).map(|y| scope.spawn(move || -> Vec<u64> { row(y) })).collect();
        threads.into_iter().flat_map(|t| t.join().unwrap()).collect()
    })
}

fn rows() -> CellMap {
    (0..THREADS).flat_map(|y| (0..WRITES).map(move |x| ((y, x), 1 + y * 100 + x))).collect()
}

#[test]
fn sixteen_threads_share_records() {
    let inner = memory();
    let counting = slow(inner.clone());
    let storage: Arc<dyn Storage> = counting.clone();
    let array = opened(&context(), &storage, "/sparse");
    counting.reset();
    let told = write_rows(&array);
    let records = counting.snapshot().count(Operation::PutIfAbsent);
    let writes = THREADS * WRITES;
    println!("{writes} writes of {THREADS} threads in {records} records");
    assert!(records * 4 <= writes as u64, "{records} records for {writes} writes");
    let found = opened(&context(), &inner, "/sparse");
    assert_eq!(cells(&found, ALL), rows());
    assert_eq!(cells(&array, ALL), rows(), "the handle has moved on to the last version");
    assert_eq!(found.version(), 2 + records, "none of them lost its slot");
    // Each was told the version that has its write, and not the one before.
    let versions: BTreeSet<u64> = told.iter().copied().collect();
    assert_eq!(versions, (3..=found.version()).collect());
    for version in versions {
        let at = found.at(gridstone::engine::At::Version(version)).unwrap();
        assert_eq!(cells(&at, ALL).len(), told.iter().filter(|told| **told <= version).count());
    }
}

#[test]
fn a_lone_writer_makes_a_record_per_write_and_does_nothing_more_than_before() {
    let counting = Arc::new(CountingStorage::new(memory()));
    let storage: Arc<dyn Storage> = counting.clone();
    let array = opened(&context(), &storage, "/sparse");
    counting.reset();
    for n in 0..5 {
        commit_cells(&array, &one(n, n, 1), None).unwrap();
    }
    let counts = counting.snapshot();
    // A put, a look at the record before and one at the floor, and now and then the hint.
    assert_eq!((counts.count(Operation::PutIfAbsent), counts.count(Operation::ReadAll)), (5, 10));
    assert!(counts.total() <= 16, "{counts:?}");
}

#[test]
fn handles_opened_one_by_one_at_a_uri_share_records_too() {
    let folder = crate::support::scratch::Folder::new("group");
    let uri = folder.path().join("store");
    let uri = uri.to_str().unwrap();
    let options = Options { threads: Some(1), durability: Durability::Full, ..Options::default() };
    create_array(&Context::new(&options).unwrap(), uri, "/", schema(true), false).unwrap();
    let barrier = Barrier::new(THREADS as usize);
    std::thread::scope(|scope| {
        for y in 0..THREADS {
            let (barrier, options) = (&barrier, &options);
            scope.spawn(move || {
                let context = Context::new(options).unwrap();
                let found = gridstone::engine::open(&context, uri, "/", true, gridstone::engine::At::Latest).unwrap();
                let gridstone::engine::Opened::Array(array) = found else { panic!("a group") };
                barrier.wait();
                for x in 0..WRITES {
                    commit_cells(&array, &one(y, x, 1 + y * 100 + x), None).unwrap();
                }
            });
        }
    });
    let found = gridstone::engine::open(&context(), uri, "/", false, gridstone::engine::At::Latest).unwrap();
    let gridstone::engine::Opened::Array(array) = found else { panic!("a group") };
    assert_eq!(cells(&array, ALL), rows());
    println!("{} writes in {} versions on a disk", THREADS * WRITES, array.version() - 1);
    assert!(array.version() - 1 < (THREADS * WRITES) as u64 / 2, "{} versions", array.version());
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty());
}

type Work<'a> = Box<dyn FnOnce() -> Result<u64> + Send + 'a>;

/// Does `works` at once, while a first commit is held up: they form one group, as far as they may. What each came to.
fn together(gate: &Gate, first: Work<'_>, works: Vec<Work<'_>>) -> Vec<Result<u64>> {
    gate.shut();
    std::thread::scope(|scope| {
        let first = scope.spawn(first);
        gate.wait_for_somebody();
        let threads: Vec<_> = works
            .into_iter()
            .map(|work| {
                let thread = scope.spawn(work);
                // In line one after the other.
                std::thread::sleep(Duration::from_millis(15));
                thread
            })
            .collect();
        gate.open();
        first.join().unwrap().unwrap();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    })
}

#[test]
fn one_that_makes_no_sense_fails_alone_with_its_own_error() {
    let inner = memory();
    let (gate, storage) = Gate::over(inner.clone());
    let array = opened(&context(), &storage, "/sparse");
    let write = |n: i64| -> Work<'_> {
        let array = array.clone();
        Box::new(move || commit_cells(&array, &one(n, n, n), None))
    };
    let bad: Work<'_> = Box::new(|| array.set_metadata(vec![("k".to_owned(), Some("{".to_owned()))]));
    let outcomes = together(&gate, write(1), vec![write(2), bad, write(3), write(4)]);
    let kinds: Vec<_> = outcomes.iter().map(|o| o.as_ref().map_err(gridstone::base::Error::kind).err()).collect();
    assert_eq!(kinds, [None, Some(ErrorKind::Input), None, None]);
    let expected: CellMap = (1..5).map(|n| ((n, n), n)).collect();
    assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL), expected);
}

#[test]
fn a_member_whose_array_was_removed_leaves_the_group() {
    let inner = memory();
    let (gate, storage) = Gate::over(inner.clone());
    // Transactions begun from one another share a queue.
    let begun = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let writing = |path: &str, n: i64| {
        let transaction = begun.again().unwrap();
        commit_cells(&transaction.array(path).unwrap(), &one(n, n, n), None).unwrap();
        transaction
    };
    let (first, others) = (writing("/sparse", 1), [writing("/dense", 2), writing("/sparse", 3), writing("/sparse", 4)]);
    gate.shut();
    let outcomes = std::thread::scope(|scope| {
        let first = scope.spawn(move || first.commit(None));
        gate.wait_for_somebody();
        let remover = Transaction::begin_on(&context(), inner.clone(), Isolation::Snapshot).unwrap();
        remover.remove("/dense").unwrap();
        remover.commit(None).unwrap();
        let threads = others.map(|transaction| {
            let thread = scope.spawn(move || transaction.commit(None));
            std::thread::sleep(Duration::from_millis(15));
            thread
        });
        gate.open();
        first.join().unwrap().unwrap();
        threads.map(|thread| thread.join().unwrap())
    });
    let error = outcomes[0].as_ref().unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
    assert!(error.message().contains("removed"), "{error}");
    assert_eq!(outcomes[1].as_ref().unwrap(), outcomes[2].as_ref().unwrap(), "the others share a record");
    assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL).len(), 3);
}

#[test]
fn commits_with_a_message_and_serializable_ones_have_records_of_their_own() {
    let inner = memory();
    let (gate, storage) = Gate::over(inner.clone());
    let array = opened(&context(), &storage, "/sparse");
    let write = |n: i64, message: Option<&'static str>| -> Work<'_> {
        let array = array.clone();
        Box::new(move || commit_cells(&array, &one(n, n, n), message.map(str::to_owned)))
    };
    let works = vec![write(2, None), write(3, None), write(4, Some("mine")), write(5, None), write(6, None)];
    let versions: Vec<u64> = together(&gate, write(1, None), works).into_iter().map(Result::unwrap).collect();
    assert_eq!(versions, [4, 4, 5, 6, 6], "who came together, up to the one with a message, and after it");
    let history = opened(&context(), &inner, "/sparse").history(&Call::default()).unwrap();
    let messages: Vec<Option<&str>> = history.iter().map(|v| v.message.as_deref()).collect();
    assert_eq!(messages, [None, None, None, Some("mine"), None]);
}

#[test]
fn if_the_outcome_is_unknown_all_of_the_group_are_told_so() {
    let inner = memory();
    let plan = FaultPlan::new();
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(inner.clone(), plan.clone()));
    let (gate, storage) = Gate::over(faulty);
    let array = opened(&context(), &storage, "/sparse");
    let write = |n: i64| -> Work<'_> {
        let array = array.clone();
        Box::new(move || commit_cells(&array, &one(n, n, n), None))
    };
    // The second record, that of the group, is the last thing that the storage does.
    plan.fail_nth_of(Operation::PutIfAbsent, 2, Fault::Kill);
    let outcomes = together(&gate, write(1), vec![write(2), write(3), write(4)]);
    for outcome in &outcomes {
        assert_eq!(outcome.as_ref().unwrap_err().kind(), ErrorKind::CommitUnknown, "{outcome:?}");
    }
    plan.clear();
    assert_eq!(commit_cells(&array, &one(9, 9, 9), None).unwrap(), 4, "the line goes on");
}

#[test]
fn if_the_disk_is_full_each_has_its_own_error_and_nothing_happened() {
    let inner = memory();
    let plan = FaultPlan::new();
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(inner.clone(), plan.clone()));
    let (gate, storage) = Gate::over(faulty);
    let array = opened(&context(), &storage, "/sparse");
    let write = |n: i64| -> Work<'_> {
        let array = array.clone();
        Box::new(move || commit_cells(&array, &one(n, n, n), None))
    };
    plan.fail_nth_of(Operation::PutIfAbsent, 2, Fault::Full);
    let outcomes = together(&gate, write(1), vec![write(2), write(3), write(4)]);
    for outcome in &outcomes {
        let error = outcome.as_ref().unwrap_err();
        assert_eq!((error.kind(), error.os_error()), (ErrorKind::Storage, Some(28)), "{error}");
    }
    plan.clear();
    assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL), one(1, 1, 1));
    assert_eq!(commit_cells(&array, &one(9, 9, 9), None).unwrap(), 4);
}

#[test]
fn if_the_leader_panics_nobody_is_left_waiting() {
    let inner: Arc<dyn Storage> = memory();
    let puts = Arc::new(std::sync::atomic::AtomicU64::new(0));
    let count = puts.clone();
    let panicking: Arc<dyn Storage> = Arc::new(HookedStorage::new(inner.clone(), move |operation, _: &str| {
        if operation == Operation::PutIfAbsent && count.fetch_add(1, std::sync::atomic::Ordering::SeqCst) == 1 {
            panic!("the storage is broken, as the test wants it");
        }
    }));
    let (gate, storage) = Gate::over(panicking);
    let array = opened(&context(), &storage, "/sparse");
    gate.shut();
    let outcomes: Vec<_> = std::thread::scope(|scope| {
        let write = |n: i64| {
            let array = array.clone();
            let thread = scope.spawn(move || commit_cells(&array, &one(n, n, n), None));
            std::thread::sleep(Duration::from_millis(15));
            thread
        };
        let first = write(1);
        gate.wait_for_somebody();
        let threads: Vec<_> = (2..6).map(write).collect();
        gate.open();
        first.join().unwrap().unwrap();
        threads.into_iter().map(std::thread::ScopedJoinHandle::join).collect()
    });
    assert_eq!(outcomes.iter().filter(|o| o.is_err()).count(), 1, "the leader's thread ends by its panic");
    for told in outcomes.iter().flatten() {
        assert_eq!(told.as_ref().unwrap_err().kind(), ErrorKind::CommitUnknown);
    }
    assert_eq!(commit_cells(&array, &one(9, 9, 9), None).unwrap(), 4, "the line goes on");
    assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL).len(), 2);
}

#[test]
fn a_group_ends_where_its_record_would_be_large() {
    let inner: Arc<dyn Storage> = memory();
    let (gate, storage) = Gate::over(inner.clone());
    let array = opened(&context(), &storage, "/sparse");
    let mut random = crate::support::random::Random(3);
    // About 50 KiB each, and over 20 of them: more than the megabyte that a shared record may have.
    let some: CellMap = (0..1_600).map(|i| ((i / 40, i % 40), random.next() as i64)).collect();
    let write = || -> Work<'_> {
        let (array, some) = (array.clone(), some.clone());
        Box::new(move || commit_cells(&array, &some, None))
    };
    let works: Vec<Work<'_>> = (0..90).map(|_| write()).collect();
    let versions: BTreeSet<u64> = together(&gate, write(), works).into_iter().map(Result::unwrap).collect();
    assert!(versions.len() > 1 && versions.len() < 20, "{versions:?}");
    for name in inner.list("_log").unwrap() {
        assert!(inner.read_all(&name).unwrap().len() < (1 << 20) + (256 << 10), "{name}");
    }
}
