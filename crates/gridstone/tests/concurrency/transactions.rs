//! Transactions: changes of several arrays in one version, all or nothing; reads inside see what was staged.

use crate::support::columns::{as_text, bytes_of, numbers, view};
use crate::support::pair::{SIDE, begin, cells, memory, one, opened, schema};
use crate::support::writer::{CellMap, commit_cells, context};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{Array, Call, Isolation, ReadOrder, Strategy, Transaction};
use gridstone::schema::Order;
use gridstone::storage::{CountingStorage, Fault, FaultPlan, FaultyStorage, HookedStorage, Operation, Storage};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

const ALL: ((i64, i64), (i64, i64)) = ((0, SIDE - 1), (0, SIDE - 1));

fn write_box(array: &Array, y: (i64, i64), x: (i64, i64), value: i64) -> Result<u64> {
    let values = bytes_of((0..(y.1 - y.0 + 1) * (x.1 - x.0 + 1)).map(|_| value));
    let data = vec![("v".to_owned(), view(&values))];
    let staged = array.stage_dense(Some(&[as_text(y), as_text(x)]), &data, Order::Row, &Call::default())?;
    array.commit(vec![staged], None)
}

fn delete(array: &Array, places: &BTreeSet<(i64, i64)>) -> Result<u64> {
    let (rows, columns) = (bytes_of(places.iter().map(|p| p.0)), bytes_of(places.iter().map(|p| p.1)));
    array.commit(vec![array.stage_delete(&[view(&rows), view(&columns)], &Call::default())?], None)
}

/// Sparse cells that take more than a record holds.
fn many(value: i64) -> CellMap {
    (0..SIDE * SIDE).map(|i| ((i / SIDE, i % SIDE), value + i)).collect()
}

fn data_files(storage: &Arc<dyn Storage>) -> usize {
    storage.list("_data").unwrap().len()
}

#[test]
fn several_arrays_change_in_one_version_or_not_at_all() {
    let storage = memory();
    let transaction = begin(&storage);
    let (dense, sparse) = (transaction.array("/dense").unwrap(), transaction.array("/sparse").unwrap());
    assert_eq!(write_box(&dense, (0, 3), (0, 3), 5).unwrap(), 2, "the version that is read");
    commit_cells(&sparse, &one(1, 1, 7), None).unwrap();
    sparse.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).unwrap();
    let made = transaction.create_array("/new/deep", schema(true), false).unwrap();
    commit_cells(&made, &one(2, 2, 8), None).unwrap();
    let outside = context();
    assert_eq!(opened(&outside, &storage, "/sparse").version(), 2, "nothing is seen before the commit");
    assert_eq!(transaction.version(), None);
    assert_eq!(transaction.commit(Some("all of it".to_owned())).unwrap(), 3);
    assert_eq!((transaction.version(), transaction.is_open()), (Some(3), false));
    let at = |path: &str| opened(&outside, &storage, path);
    assert_eq!((cells(&at("/dense"), ALL).len(), cells(&at("/sparse"), ALL)), (16, one(1, 1, 7)));
    assert_eq!(cells(&at("/new/deep"), ALL), one(2, 2, 8));
    assert_eq!(at("/sparse").metadata("k").unwrap().as_deref(), Some("1"));
    let history = at("/new/deep").history(&Call::default()).unwrap();
    assert_eq!((history.len(), history[0].version, history[0].message.as_deref()), (1, 3, Some("all of it")));

    // One that cannot be: another removed an array meanwhile.
    let transaction = begin(&storage);
    commit_cells(&transaction.array("/dense").unwrap(), &one(9, 9, 9), None).unwrap();
    commit_cells(&transaction.array("/new/deep").unwrap(), &one(9, 9, 9), None).unwrap();
    let other = begin(&storage);
    other.remove("/new").unwrap();
    assert_eq!(other.kind("/new/deep").unwrap(), None);
    other.commit(None).unwrap();
    assert_eq!(transaction.commit(None).unwrap_err().kind(), ErrorKind::Conflict);
    assert_eq!(cells(&at("/dense"), ((9, 9), (9, 9))), CellMap::new());
    assert_eq!((at("/dense").version(), transaction.version()), (4, None));
}

/// What was staged so far, and what a transaction and a plain writer give, are the same after any writes.
#[test]
fn reads_inside_equal_those_after_plain_writes_of_the_same() {
    for seed in 0..12 {
        let (storage, twin) = (memory(), memory());
        let (context, twin_context) = (context(), context());
        let mut random = crate::support::random::Random(seed);
        for (path, first) in [("/dense", 900), ("/sparse", 901)] {
            for (store, context) in [(&storage, &context), (&twin, &twin_context)] {
                commit_cells(&opened(context, store, path), &many(first), None).unwrap();
            }
        }
        let transaction = Transaction::begin_on(&context, storage.clone(), Isolation::Serializable).unwrap();
        for step in 0..25i64 {
            let path = if random.below(2) == 0 { "/dense" } else { "/sparse" };
            let (inside, plain) = (transaction.array(path).unwrap(), opened(&twin_context, &twin, path));
            let place = |random: &mut crate::support::random::Random| random.below(SIDE as u64) as i64;
            let places: BTreeSet<(i64, i64)> = (0..20).map(|_| (place(&mut random), place(&mut random))).collect();
            let some: CellMap = places.iter().map(|at| (*at, 10_000 * (step + 1) + at.0)).collect();
            let (y, x) = (place(&mut random), place(&mut random));
            let kind = random.below(4);
            for array in [&inside, &plain] {
                match kind {
                    0 if path == "/dense" => {
                        write_box(array, (y, (y + 9).min(SIDE - 1)), (x, (x + 5).min(SIDE - 1)), step + 1)
                    }
                    1 => delete(array, &places),
                    2 => array.set_metadata(vec![(format!("k{}", step % 3), Some(step.to_string()))]),
                    3 if step % 5 == 0 => commit_cells(array, &many(step * 1_000_000 + 1), None),
                    _ => commit_cells(array, &some, None),
                }
                .unwrap();
            }
            if step % 3 > 0 {
                let bounds = ((y, SIDE - 1), (0, x));
                assert_eq!(cells(&inside, bounds), cells(&plain, bounds), "seed {seed}, step {step}");
            }
            let (rows, columns) = (bytes_of(places.iter().map(|p| p.0)), bytes_of(places.iter().map(|p| p.1)));
            let points = |array: &Array| {
                let (found, _) = array.points(&[view(&rows), view(&columns)], None, &Call::default()).unwrap();
                numbers(&found.attrs[0])
            };
            assert_eq!(points(&inside), points(&plain), "seed {seed}, step {step}");
            assert_eq!(inside.metadata_keys().unwrap(), plain.metadata_keys().unwrap());
        }
        let before = ["/dense", "/sparse"].map(|path| cells(&transaction.array(path).unwrap(), ALL));
        assert_eq!(before, ["/dense", "/sparse"].map(|path| cells(&opened(&twin_context, &twin, path), ALL)));
        transaction.commit(None).unwrap();
        assert_eq!(before, ["/dense", "/sparse"].map(|path| cells(&opened(&context, &storage, path), ALL)));
        assert_eq!(before, ["/dense", "/sparse"].map(|path| cells(&opened(&twin_context, &storage, path), ALL)));
    }
}

/// A staged fragment is read with an order that is not the one that it gets. Nothing of that stays in the context's cache.
#[test]
fn what_was_cached_inside_does_not_outlive_the_transaction() {
    for staged_is_large in [false, true] {
        let storage = memory();
        let context = context();
        let transaction = Transaction::begin_on(&context, storage.clone(), Isolation::Snapshot).unwrap();
        let mine = if staged_is_large { many(1) } else { one(5, 5, 1) };
        let place = ((5, 5), (5, 5));
        let inside = transaction.array("/sparse").unwrap();
        commit_cells(&inside, &mine, None).unwrap();
        assert_eq!(cells(&inside, place).len(), 1);
        let outside = opened(&context, &storage, "/sparse");
        for value in [100, 101, 102] {
            commit_cells(&outside, &one(5, 6, value), None).unwrap();
            assert_eq!(cells(&outside, ((5, 5), (5, 6))), one(5, 6, value), "others do not see what is staged");
        }
        assert_eq!(cells(&inside, place), one(5, 5, mine[&(5, 5)]), "nor does the transaction see others");
        assert_eq!(transaction.commit(None).unwrap(), 6);
        outside.refresh().unwrap();
        let beside = mine.get(&(5, 6)).copied().unwrap_or(102);
        let both = CellMap::from([((5, 5), mine[&(5, 5)]), ((5, 6), beside)]);
        assert_eq!(cells(&outside, ((5, 5), (5, 6))), both, "the last commit wins what was only written");
        commit_cells(&outside, &one(5, 5, 103), None).unwrap();
        assert_eq!(cells(&outside, place), one(5, 5, 103));
    }
}

#[test]
fn an_aborted_or_dropped_or_failed_transaction_leaves_no_file() {
    let memory = memory();
    let plan = FaultPlan::new();
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory.clone(), plan.clone()));
    let version = || opened(&context(), &memory, "/sparse").version();
    let write = |transaction: &Transaction| {
        for path in ["/dense", "/sparse"] {
            commit_cells(&transaction.array(path).unwrap(), &big(), None).unwrap();
        }
        assert_eq!(data_files(&memory), 2);
    };
    let transaction = begin(&storage);
    write(&transaction);
    transaction.abort();
    assert_eq!((data_files(&memory), version()), (0, 2));

    let transaction = begin(&storage);
    write(&transaction);
    drop(transaction);
    assert_eq!((data_files(&memory), version()), (0, 2));

    let transaction = begin(&storage);
    write(&transaction);
    for _ in 0..3 {
        plan.fail_nth_of(Operation::PutIfAbsent, 1, Fault::Full);
    }
    assert_eq!(transaction.commit(None).unwrap_err().kind(), ErrorKind::Storage);
    plan.clear();
    assert_eq!((data_files(&memory), version()), (0, 2));

    // Whether this one was committed is not known, so that nothing is deleted.
    let transaction = begin(&storage);
    write(&transaction);
    plan.fail_nth_of(Operation::PutIfAbsent, 1, Fault::Kill);
    assert_eq!(transaction.commit(None).unwrap_err().kind(), ErrorKind::CommitUnknown);
    plan.clear();
    assert_eq!((data_files(&memory), version()), (2, 2));
}

/// Cells that need a file.
fn big() -> CellMap {
    let mut random = crate::support::random::Random(7);
    (0..SIDE * SIDE).map(|i| ((i / SIDE, i % SIDE), random.next() as i64)).collect()
}

#[test]
fn after_its_end_a_transaction_says_so() {
    let storage = memory();
    let end = |how: fn(&Transaction)| {
        let transaction = begin(&storage);
        let array = transaction.array("/sparse").unwrap();
        commit_cells(&array, &one(0, 0, 1), None).unwrap();
        how(&transaction);
        (transaction, array)
    };
    let commit: fn(&Transaction) = |transaction| assert_eq!(transaction.commit(None).unwrap(), 3);
    let ends = [(commit, "was committed"), (Transaction::abort as fn(&Transaction), "was aborted")];
    for (how, what) in ends {
        let (transaction, array) = end(how);
        let call = Call::default();
        let errors = [
            transaction.array("/sparse").unwrap_err(),
            transaction.commit(None).unwrap_err(),
            transaction.remove("/sparse").unwrap_err(),
            transaction.create_group("/x").unwrap_err(),
            transaction.children("/").unwrap_err(),
            array.read(None, None, ReadOrder::Row, &call).unwrap_err(),
            array.metadata("k").unwrap_err(),
            array.set_metadata(vec![("k".to_owned(), None)]).unwrap_err(),
            commit_cells(&array, &one(0, 0, 2), None).unwrap_err(),
        ];
        for error in errors {
            assert_eq!(error.kind(), ErrorKind::Input);
            assert!(error.message().contains(what), "{error}");
        }
        transaction.abort();
    }
    assert_eq!(data_files(&storage), 0);
}

#[test]
fn what_makes_no_sense_inside_is_refused_and_the_transaction_goes_on() {
    let storage = memory();
    let transaction = begin(&storage);
    let array = transaction.array("/sparse").unwrap();
    let kind = |outcome: Result<()>| outcome.unwrap_err().kind();
    assert_eq!(kind(array.refresh().map(drop)), ErrorKind::Input);
    let merged = array.consolidate(&Strategy::All, 1 << 20, false, &Call::default());
    assert_eq!(kind(merged.map(drop)), ErrorKind::Input);
    assert_eq!(kind(commit_cells(&array, &one(0, 0, 1), Some("no".to_owned())).map(drop)), ErrorKind::Input);
    assert_eq!(kind(array.receipt(Vec::new()).map(drop)), ErrorKind::Input);
    assert_eq!(kind(transaction.create_array("/sparse", schema(true), false).map(drop)), ErrorKind::Exists);
    assert_eq!(kind(transaction.create_array("/sparse/x", schema(true), false).map(drop)), ErrorKind::Exists);
    assert_eq!(kind(transaction.remove("/absent")), ErrorKind::NotFound);
    assert_eq!(kind(transaction.remove("/")), ErrorKind::Input);
    assert_eq!(kind(transaction.array("/absent").map(drop)), ErrorKind::NotFound);
    assert_eq!(kind(array.set_metadata(vec![("k".to_owned(), Some("{".to_owned()))]).map(drop)), ErrorKind::Input);
    assert_eq!(transaction.commit(None).unwrap(), 2, "nothing was staged: nothing is committed");
    assert_eq!(opened(&context(), &storage, "/sparse").version(), 2);
}

#[test]
fn nodes_come_and_go_inside() {
    let storage = memory();
    let transaction = begin(&storage);
    let old = transaction.array("/sparse").unwrap();
    commit_cells(&old, &big(), None).unwrap();
    let new = transaction.create_array("/sparse", schema(true), true).unwrap();
    assert!(old.read(None, None, ReadOrder::Row, &Call::default()).is_err(), "it was replaced");
    commit_cells(&new, &one(1, 1, 1), None).unwrap();
    transaction.create_group("/g").unwrap();
    transaction.create_group("/g").unwrap();
    transaction.create_array("/g/gone", schema(false), false).unwrap();
    transaction.remove("/g/gone").unwrap();
    let names = |path: &str| transaction.children(path).unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>();
    assert_eq!((names("/"), names("/g")), (vec!["dense".into(), "g".into(), "sparse".into()], Vec::<String>::new()));
    assert_eq!([transaction.kind("/g").unwrap(), transaction.kind("/g/gone").unwrap()], [Some("group"), None]);
    // Groups that were made on the way can be removed and replaced as well.
    transaction.create_array("/p/q/r", schema(true), false).unwrap();
    transaction.remove("/p/q").unwrap();
    transaction.create_array("/s/t", schema(true), false).unwrap();
    transaction.create_array("/s", schema(true), true).unwrap();
    transaction.commit(None).unwrap();
    let found = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    let kinds = ["/p", "/p/q", "/s", "/s/t"].map(|path| found.kind(path).unwrap());
    assert_eq!(kinds, [Some("group"), None, Some("array"), None]);
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), one(1, 1, 1));
    assert_eq!(data_files(&storage), 0, "the file of the array that was replaced is gone");
}

#[test]
fn threads_stage_side_by_side() {
    let storage = memory();
    let transaction = begin(&storage);
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let transaction = &transaction;
            scope.spawn(move || {
                let array = transaction.array("/sparse").unwrap();
                for n in 0..SIDE {
                    commit_cells(&array, &one(thread, n, 1 + thread * 100 + n), None).unwrap();
                    assert_eq!(cells(&array, ((thread, thread), (0, SIDE - 1))).len() as i64, n + 1);
                }
            });
        }
    });
    assert_eq!(transaction.commit(None).unwrap(), 3);
    let expected: CellMap = (0..8).flat_map(|t| (0..SIDE).map(move |n| ((t, n), 1 + t * 100 + n))).collect();
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), expected);
}

#[test]
fn small_writes_wait_in_memory_and_make_one_object() {
    let counting = Arc::new(CountingStorage::new(memory()));
    let storage: Arc<dyn Storage> = counting.clone();
    let transaction = begin(&storage);
    let array = transaction.array("/sparse").unwrap();
    counting.reset();
    for n in 0..20 {
        commit_cells(&array, &one(n, n, n + 1), None).unwrap();
    }
    assert_eq!(cells(&array, ALL).len(), 20);
    assert_eq!(counting.snapshot().total(), 0, "{:?}", counting.snapshot());
    transaction.commit(None).unwrap();
    let counts = counting.snapshot();
    assert_eq!((counts.count(Operation::PutIfAbsent), counts.count(Operation::Create)), (1, 0));
}

#[test]
fn small_writes_beyond_some_megabytes_go_to_files() {
    let storage = memory();
    let transaction = begin(&storage);
    let array = transaction.array("/sparse").unwrap();
    let mut random = crate::support::random::Random(11);
    let mut expected = CellMap::new();
    for n in 0..130 {
        let some: CellMap = (0..3_000)
            .map(|i| ((i / SIDE + n, i % SIDE), random.next() as i64))
            .filter(|(at, _)| at.0 < SIDE)
            .collect();
        commit_cells(&array, &some, None).unwrap();
        expected.extend(some);
    }
    let files = data_files(&storage);
    assert!(files > 0 && files < 80, "{files} files");
    assert_eq!(cells(&array, ALL), expected);
    transaction.commit(None).unwrap();
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), expected);
    let record = storage.read_all("_log/00000000000000000003").unwrap();
    assert!(record.len() < 9 << 20, "{} bytes", record.len());
    assert_eq!(data_files(&storage), files);
}

/// A snapshot does not move while others commit, and a commit that loses its slot is tried again.
#[test]
fn others_that_commit_meanwhile_do_not_matter_unless_they_make_it_impossible() {
    let inner = memory();
    let armed = Arc::new(AtomicBool::new(false));
    let (trigger, behind) = (armed.clone(), inner.clone());
    // Just before the transaction takes its slot, another takes it.
    let storage: Arc<dyn Storage> = Arc::new(HookedStorage::new(inner.clone(), move |operation, _: &str| {
        if operation == Operation::PutIfAbsent && trigger.swap(false, Ordering::SeqCst) {
            commit_cells(&opened(&context(), &behind, "/sparse"), &one(3, 3, 33), None).unwrap();
        }
    }));
    for isolation in [Isolation::Snapshot, Isolation::Serializable] {
        let transaction = Transaction::begin_on(&context(), storage.clone(), isolation).unwrap();
        let array = transaction.array("/sparse").unwrap();
        // What was only written matters to nobody, what was read to a serializable transaction.
        let looked_at = if isolation == Isolation::Snapshot { ((4, 4), (4, 4)) } else { ((3, 3), (3, 3)) };
        let before = cells(&array, looked_at);
        commit_cells(&array, &one(3, 3, 44), None).unwrap();
        armed.store(true, Ordering::SeqCst);
        match (isolation, transaction.commit(None)) {
            (Isolation::Snapshot, Ok(version)) => {
                assert_eq!((version, before), (4, CellMap::new()));
                assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL), one(3, 3, 44));
            }
            (Isolation::Serializable, Err(e)) => {
                assert_eq!((e.kind(), before), (ErrorKind::Conflict, one(3, 3, 44)));
                assert_eq!(cells(&opened(&context(), &inner, "/sparse"), ALL), one(3, 3, 33));
            }
            (_, outcome) => panic!("{isolation:?}: {outcome:?}"),
        }
    }
}
