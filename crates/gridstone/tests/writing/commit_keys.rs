//! Promise: a call with a commit key, repeated with the same content by whomever, commits once and gives the first
//! version; with other content it is a Conflict.

use crate::support::columns::{bytes_of, view};
use crate::support::gate::Gate;
use crate::support::pair::{cells, memory, one, opened, schema};
use crate::support::scratch::Folder;
use crate::support::writer::{CellMap, context, version_of};
use gridstone::base::{ErrorKind, Result};
use gridstone::engine::{
    Array, Call, CellData, CommitKey, Condition, Dedup, End, Isolation, Keep, MergeChoice, Naming, Span, Staged,
    Transaction, VacuumOptions, commit_receipts_once, create_array, verify_uri,
};
use gridstone::schema::{Attribute, Datatype, Evolution, Order};
use gridstone::storage::{Durability, Fault, FaultPlan, FaultyStorage, LocalStorage, Storage};
use gridstone_testkit::Dice;
use std::collections::BTreeMap;
use std::sync::Arc;

const ALL: ((i64, i64), (i64, i64)) = ((0, 149), (0, 149));

pub(super) fn key(text: &str) -> Option<CommitKey> {
    Some(CommitKey::new(text.as_bytes()).unwrap())
}

pub(super) fn call(text: &str) -> Call {
    Call::default().with_key(key(text))
}

fn columns(cells: &CellMap) -> (Vec<u8>, Vec<u8>, Vec<u8>) {
    let column = |f: fn((&(i64, i64), &i64)) -> i64| bytes_of(cells.iter().map(f));
    (column(|(at, _)| at.0), column(|(at, _)| at.1), column(|(_, v)| *v))
}

pub(super) fn stage(array: &Array, cells: &CellMap, call: &Call) -> Result<Staged> {
    let (y, x, v) = columns(cells);
    let attrs = vec![("v".to_owned(), view(&v))];
    array.stage_cells(CellData { dims: vec![view(&y), view(&x)], attrs, sorted: false, dedup: Dedup::Error }, call)
}

pub(super) fn write(array: &Array, cells: &CellMap, text: &str) -> Result<u64> {
    array.commit(vec![stage(array, cells, &call(text))?], None)
}

pub(super) fn many(count: i64) -> CellMap {
    (0..count).map(|n| ((n / 150, n % 150), 1 + n)).collect()
}

pub(super) fn begin(storage: &Arc<dyn Storage>, text: &str) -> Transaction {
    let begun = Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    begun.with_key(key(text).unwrap(), Naming::Id).unwrap()
}

fn data_files(storage: &Arc<dyn Storage>) -> usize {
    let mut count = 0;
    storage.survey("_data", &mut |_| count += 1).unwrap();
    count
}

fn conflict(outcome: Result<impl std::fmt::Debug>) {
    let error = outcome.unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("commit key"), "{error}");
}

/// A statement in a store, committed with a key.
pub(super) type Statement = Box<dyn Fn(&Arc<dyn Storage>, &str) -> Result<u64>>;

/// Each kind of statement, with content that `variant` changes.
fn statements(variant: i64) -> BTreeMap<&'static str, Statement> {
    let span = |lo: i64, hi: i64| Span { lo: Some(End::Int(lo.into())), hi: Some(End::Int(hi.into())), below: false };
    let mut all: BTreeMap<&'static str, Statement> = BTreeMap::new();
    all.insert(
        "box",
        Box::new(move |storage, text| {
            let array = opened(&context(), storage, "/dense");
            let values = bytes_of([1, 2 + variant, 3, 4]);
            let sub = [("0".to_owned(), "1".to_owned()), ("0".to_owned(), "1".to_owned())];
            let data = vec![("v".to_owned(), view(&values))];
            array.commit(vec![array.stage_dense(Some(&sub), &data, Order::Row, &call(text))?], None)
        }),
    );
    all.insert(
        "cells",
        Box::new(move |storage, text| write(&opened(&context(), storage, "/sparse"), &one(1, 2, 3 + variant), text)),
    );
    all.insert(
        "many cells",
        Box::new(move |storage, text| write(&opened(&context(), storage, "/sparse"), &many(20_000 + variant), text)),
    );
    all.insert(
        "delete cells",
        Box::new(move |storage, text| {
            let array = opened(&context(), storage, "/sparse");
            let (y, x) = (bytes_of([1]), bytes_of([2 + variant]));
            array.commit(vec![array.stage_delete(&[view(&y), view(&x)], &call(text))?], None)
        }),
    );
    all.insert(
        "delete box",
        Box::new(move |storage, text| {
            let array = opened(&context(), storage, "/sparse");
            let region = array.region(&[vec![span(3, 4 + variant), span(5, 5)]]).unwrap();
            array.commit(vec![array.stage_deletion(&region, &call(text))?], None)
        }),
    );
    all.insert(
        "delete where",
        Box::new(move |storage, text| {
            let condition = Condition::parse(&format!("v > {}", 100 + variant)).unwrap();
            opened(&context(), storage, "/sparse").delete_where(None, &condition, None, &call(text))
        }),
    );
    all.insert(
        "stream",
        Box::new(move |storage, text| {
            let array = opened(&context(), storage, "/sparse");
            let mut writer = array.unsorted_writer(None, Dedup::Error)?.with_key(key(text).unwrap(), Naming::Id)?;
            let (y, x, v) = columns(&many(300 + variant));
            writer.append(&Call::default(), &[view(&y), view(&x)], &[view(&v)])?;
            array.commit(vec![writer.finish(&Call::default())?], None)
        }),
    );
    all
}

#[test]
fn each_kind_of_statement_is_done_once() {
    let (same, other) = (statements(0), statements(1));
    for (name, statement) in &same {
        let storage = memory();
        write(&opened(&context(), &storage, "/sparse"), &many(500), "filled").unwrap();
        let first = statement(&storage, "k").unwrap_or_else(|e| panic!("{name}: {e}"));
        let (newest, files) = (version_of(&storage), data_files(&storage));
        assert_eq!(first, newest, "{name}");
        // Others write meanwhile, and fold.
        for rounds in [0, 1, 70] {
            let array = opened(&context(), &storage, "/dense");
            for n in 0..rounds {
                write(&array, &one(9, 9, n), &format!("other {rounds} {n}")).unwrap();
            }
            let before = version_of(&storage);
            assert_eq!(statement(&storage, "k").unwrap(), first, "{name}");
            conflict(other[name](&storage, "k"));
            for (another, different) in same.iter().filter(|(another, _)| another != &name) {
                let refused = different(&storage, "k").unwrap_err();
                assert_eq!(refused.kind(), ErrorKind::Conflict, "{another} after {name}: {refused}");
            }
            assert_eq!(version_of(&storage), before, "{name}: nothing was committed");
        }
        assert!(data_files(&storage) <= files + 3, "{name}: what was staged in vain is gone");
    }
}

#[test]
fn a_handle_that_is_behind_moves_on_and_leaves_no_file() {
    let storage = memory();
    let (ours, theirs) = (opened(&context(), &storage, "/sparse"), opened(&context(), &storage, "/sparse"));
    // Staged by both before either commits.
    let staged = [&ours, &theirs].map(|array| stage(array, &many(20_000), &call("load")).unwrap());
    assert_eq!(data_files(&storage), 2);
    let [first, second] = staged;
    assert_eq!(theirs.commit(vec![second], None).unwrap(), 3);
    assert_eq!(ours.commit(vec![first], None).unwrap(), 3);
    assert_eq!((ours.version(), data_files(&storage)), (3, 1));
    assert_eq!(cells(&ours, ALL), many(20_000));
    // Now that it is known, nothing is staged.
    let again = stage(&theirs, &many(20_000), &call("load")).unwrap();
    assert_eq!((again.cells(), data_files(&storage)), (0, 1));
    assert_eq!(theirs.commit(vec![again], None).unwrap(), 3);
}

#[test]
fn a_key_is_no_part_of_several_writes_or_of_receipts() {
    let storage = memory();
    let array = opened(&context(), &storage, "/sparse");
    let two =
        || vec![stage(&array, &one(1, 1, 1), &call("k")).unwrap(), stage(&array, &one(1, 2, 1), &call("k")).unwrap()];
    assert_eq!(array.commit(two(), None).unwrap_err().kind(), ErrorKind::Input);
    assert_eq!(array.receipt(two()).unwrap_err().kind(), ErrorKind::Input);
    let inside = begin(&storage, "t").array("/sparse").unwrap();
    let refused = stage(&inside, &one(1, 1, 1), &call("k")).unwrap_err();
    assert!(refused.message().contains("when it begins"), "{refused}");
}

/// Neither the order of columns, nor the layout, nor the pieces of a stream count; the order of cells does.
#[test]
fn the_content_is_what_was_given_and_not_how() {
    let storage = memory();
    let dense = opened(&context(), &storage, "/dense");
    let sub = [("0".to_owned(), "1".to_owned()), ("0".to_owned(), "2".to_owned())];
    let lay = |values: [i64; 6], layout: Order| {
        let bytes = bytes_of(values);
        let data = vec![("v".to_owned(), view(&bytes))];
        let staged = dense.stage_dense(Some(&sub), &data, layout, &call("layout"))?;
        dense.commit(vec![staged], None)
    };
    assert_eq!(lay([1, 2, 3, 4, 5, 6], Order::Row).unwrap(), 3);
    assert_eq!(lay([1, 4, 2, 5, 3, 6], Order::Col).unwrap(), 3);
    conflict(lay([1, 2, 3, 4, 5, 6], Order::Col));

    let sparse = opened(&context(), &storage, "/sparse");
    let stream = |piece: usize, cells: &CellMap| {
        let mut writer = sparse.unsorted_writer(None, Dedup::Error)?.with_key(key("stream").unwrap(), Naming::Id)?;
        let all: Vec<_> = cells.iter().map(|(at, v)| (*at, *v)).collect();
        for part in all.chunks(piece) {
            let (y, x, v) = columns(&part.iter().copied().collect());
            writer.append(&Call::default(), &[view(&y), view(&x)], &[view(&v)])?;
        }
        sparse.commit(vec![writer.finish(&Call::default())?], None)
    };
    let first = stream(1_000, &many(5_000)).unwrap();
    for piece in [1, 7, 4_999, 5_000] {
        assert_eq!(stream(piece, &many(5_000)).unwrap(), first);
    }
    conflict(stream(1_000, &many(4_999)));
}

#[test]
fn an_unknown_outcome_is_settled_by_trying_again() {
    let inner = memory();
    let plan = FaultPlan::new();
    let storage: Arc<dyn Storage> = Arc::new(FaultyStorage::new(inner.clone(), plan.clone()));
    // Faults at every operation of the first try, with and without effect; the second try has none.
    let (mut version, mut unknown) = (version_of(&inner), 0);
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Kill] {
        for nth in 1.. {
            let (text, wrote) = (format!("{fault:?} {nth}"), many(2_000));
            let array = opened(&context(), &storage, "/sparse");
            plan.fail_nth(nth, fault);
            let outcome = write(&array, &wrote, &text);
            let struck = plan.struck();
            plan.clear();
            unknown += u64::from(outcome.as_ref().is_err_and(|e| e.kind() == ErrorKind::CommitUnknown));
            let again = write(&opened(&context(), &inner, "/sparse"), &wrote, &text).unwrap();
            version += 1;
            assert_eq!((again, version_of(&inner)), (version, version), "{text}: {outcome:?}");
            assert!(outcome.is_err() || outcome.unwrap() == version);
            if !struck {
                break;
            }
        }
    }
    assert!(unknown > 0, "no outcome was unknown");
}

#[test]
fn a_transaction_run_again_reads_the_same_and_commits_once() {
    let storage = memory();
    let run = |text: &str, add: i64| -> Result<u64> {
        let tx = begin(&storage, text);
        let counter = tx.array("/dense")?;
        let read = cells(&counter, ((0, 0), (0, 0))).get(&(0, 0)).copied().unwrap_or(0);
        counter.commit(vec![stage(&counter, &one(0, 0, read + add), &Call::default())?], None)?;
        counter.set_metadata(vec![("runs".to_owned(), Some(format!("{}", read + add)))])?;
        tx.array("/sparse")?.delete_where(None, &Condition::parse("v > 3").unwrap(), None, &Call::default())?;
        let path = format!("/made {text}");
        let made = tx.create_array(&path, schema(true), false)?;
        made.commit(vec![stage(&made, &one(1, 1, add), &Call::default())?], None)?;
        tx.create_group("/groups/of")?;
        tx.commit(Some("a run".to_owned()))
    };
    write(&opened(&context(), &storage, "/sparse"), &many(9), "cells").unwrap();
    for n in 0..3u64 {
        let text = format!("run {n}");
        let first = run(&text, 5).unwrap();
        assert_eq!(first, 4 + n);
        (0..3).for_each(|_| assert_eq!(run(&text, 5).unwrap(), first));
        conflict(run(&text, 6));
    }
    assert_eq!(run("run 0", 5).unwrap(), 4, "after others");
    assert_eq!(version_of(&storage), 6);
    assert_eq!(cells(&opened(&context(), &storage, "/dense"), ALL), one(0, 0, 15));
    assert_eq!(cells(&opened(&context(), &storage, "/sparse"), ALL), many(3));
    assert_eq!(cells(&opened(&context(), &storage, "/made run 2"), ALL), one(1, 1, 5));
    let late = begin(&storage, "late");
    late.create_group("/g").unwrap();
    assert_eq!(late.with_key(key("k").unwrap(), Naming::Id).unwrap_err().kind(), ErrorKind::Input);
}

/// Statements about several arrays may come in any order, as threads stage them; within an array their order counts.
#[test]
fn statements_of_a_transaction_count_in_their_order_within_an_array() {
    let storage = memory();
    let run = |order: &[(&str, i64)]| -> Result<u64> {
        let tx = begin(&storage, "k");
        for (path, value) in order {
            let array = tx.array(path)?;
            array.commit(vec![stage(&array, &one(1, 1, *value), &Call::default())?], None)?;
        }
        tx.commit(None)
    };
    let first = run(&[("/dense", 1), ("/sparse", 2), ("/dense", 3)]).unwrap();
    assert_eq!(run(&[("/dense", 1), ("/dense", 3), ("/sparse", 2)]).unwrap(), first);
    assert_eq!(run(&[("/sparse", 2), ("/dense", 1), ("/dense", 3)]).unwrap(), first);
    conflict(run(&[("/sparse", 2), ("/dense", 3), ("/dense", 1)]));
    conflict(run(&[("/sparse", 2), ("/dense", 1)]));
    conflict(run(&[]));
}

/// A domain that grows is a statement like another: how far, and along which dimension.
#[test]
fn growth_and_changes_of_the_schema_in_a_transaction_count() {
    let storage = memory();
    let run = |grows: &[(&str, &str)], added: Option<&str>| -> Result<u64> {
        let tx = begin(&storage, "k");
        let array = tx.array("/sparse")?;
        let domains = grows.iter().map(|(dim, end)| ((*dim).to_owned(), "0".to_owned(), (*end).to_owned())).collect();
        array.alter(&Evolution { domains, ..Evolution::default() }, None)?;
        array.commit(vec![stage(&array, &one(155, 1, 1), &Call::default())?], None)?;
        let add = added.map(|name| Attribute::new(name, Datatype::Int64, true, None, "auto").unwrap());
        array.alter(&Evolution { add: add.into_iter().collect(), ..Evolution::default() }, None)?;
        tx.commit(None)
    };
    let first = run(&[("y", "159"), ("x", "169")], None).unwrap();
    assert_eq!(first, 3);
    for _ in 0..2 {
        assert_eq!(run(&[("y", "159"), ("x", "169")], None).unwrap(), first);
    }
    conflict(run(&[("y", "159"), ("x", "168")], None));
    conflict(run(&[("y", "169"), ("x", "159")], None));
    conflict(run(&[("y", "159")], None));
    conflict(run(&[("y", "159"), ("x", "169")], Some("w")));
    assert_eq!(
        (version_of(&storage), cells(&opened(&context(), &storage, "/sparse"), ((0, 159), (0, 169)))),
        (3, one(155, 1, 1))
    );
}

#[test]
fn receipts_are_committed_once_by_their_key() {
    let folder = Folder::new("keyed-receipts");
    let uri = folder.path().to_string_lossy().into_owned();
    let array = create_array(&context(), &uri, "/", schema(true), false).unwrap();
    let receipt =
        |value: i64| array.receipt(vec![stage(&array, &one(1, 1, value), &Call::default()).unwrap()]).unwrap();
    let (a, b) = (receipt(1), receipt(2));
    let commit = |receipts: &[_], text: &str| commit_receipts_once(&context(), &uri, receipts, None, key(text));
    assert_eq!(commit(&[a.clone(), b.clone()], "both").unwrap(), 2);
    assert_eq!(commit(&[a.clone(), b.clone()], "both").unwrap(), 2);
    conflict(commit(&[b.clone(), a.clone()], "both"));
    conflict(commit(std::slice::from_ref(&a), "both"));
    let error = commit(&[a, b], "again").unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("committed already"), "{error}");
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(&uri, Durability::Close).unwrap());
    assert_eq!(version_of_array(&storage), 2);
}

fn version_of_array(storage: &Arc<dyn Storage>) -> u64 {
    opened(&context(), storage, "/").version()
}

#[test]
fn a_load_that_created_its_array_appends_nothing_when_it_is_repeated() {
    let storage = memory();
    let load = |array: &Array| {
        let mut writer = array.unsorted_writer(None, Dedup::Error)?;
        if !array.in_transaction() {
            writer = writer.with_key(key("load").unwrap(), Naming::Path)?;
        }
        let (y, x, v) = columns(&many(50));
        writer.append(&Call::default(), &[view(&y), view(&x)], &[view(&v)])?;
        array.commit(vec![writer.finish(&Call::default())?], None)
    };
    let begun = || Transaction::begin_on(&context(), storage.clone(), Isolation::Snapshot).unwrap();
    for overwrite in [false, true, true] {
        let tx = begun().with_key(key("load").unwrap(), Naming::Path).unwrap();
        load(&tx.create_array("/new", schema(true), overwrite).unwrap()).unwrap();
        assert_eq!(tx.commit(None).unwrap(), 3);
    }
    assert_eq!(load(&opened(&context(), &storage, "/new")).unwrap(), 3);
    conflict(load(&opened(&context(), &storage, "/sparse")));
    assert_eq!(version_of(&storage), 3);
}

/// Threads of one process share records: each key is committed once, whoever brings it.
#[test]
fn commits_with_one_key_that_meet_in_a_shared_record_are_one() {
    for round in 0..20 {
        let inner = memory();
        let (gate, storage) = Gate::over(inner.clone());
        let array = opened(&context(), &storage, "/sparse");
        gate.shut();
        let told: Vec<(i64, Result<u64>)> = std::thread::scope(|scope| {
            let array = &array;
            let first = scope.spawn(move || (-1, write(array, &one(0, 0, 1), "first")));
            gate.wait_for_somebody();
            // Three threads for each of four keys, one of which brings other content for the last key.
            let threads: Vec<_> = (0..12)
                .map(|n| {
                    scope.spawn(move || {
                        (n % 4, write(array, &one(1, n % 4, 1 + i64::from(n == 11)), &format!("k{}", n % 4)))
                    })
                })
                .collect();
            std::thread::sleep(std::time::Duration::from_millis(if round == 0 { 200 } else { 20 }));
            gate.open();
            threads.into_iter().chain([first]).map(|t| t.join().unwrap()).collect()
        });
        let mut versions: BTreeMap<i64, Vec<u64>> = BTreeMap::new();
        let mut conflicts = 0;
        for (n, outcome) in told {
            match outcome {
                Ok(version) => versions.entry(n).or_default().push(version),
                Err(e) => {
                    assert!(n == 3 && e.kind() == ErrorKind::Conflict, "{e}");
                    conflicts += 1;
                }
            }
        }
        assert!(conflicts == 1 || conflicts == 2, "either content of the last key came first: {conflicts}");
        for (n, told) in &versions {
            assert!(told.iter().all(|version| version == &told[0]), "key {n}: {told:?}");
        }
        let found = opened(&context(), &inner, "/sparse");
        assert_eq!(found.fragments().unwrap().len(), 5, "one commit for each key");
        assert_eq!(cells(&found, ALL).len(), 5);
    }
}

#[test]
fn keys_survive_a_vacuum_and_a_copy_of_the_history() {
    let folder = Folder::new("kept-keys");
    let uri = folder.path().join("store").to_string_lossy().into_owned();
    let array = create_array(&context(), &uri, "/", schema(true), false).unwrap();
    let first = write(&array, &one(1, 1, 1), "kept").unwrap();
    for n in 0..150 {
        write(&array, &one(2, n % 150, n), &format!("n {n}")).unwrap();
    }
    array.consolidate(&array.strategy(&MergeChoice::Named("all")).unwrap(), 1 << 20, false, &Call::default()).unwrap();
    let options = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
    array.vacuum(&options, &Call::default()).unwrap();
    let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(&uri, Durability::Close).unwrap());
    let again = opened(&context(), &storage, "/");
    assert_eq!(write(&again, &one(1, 1, 1), "kept").unwrap(), first);
    conflict(write(&again, &one(1, 1, 2), "kept"));
    assert_eq!(write(&again, &one(2, 149, 149), "n 149").unwrap(), first + 150);
    let report = verify_uri(&context(), &uri, &Call::default());
    assert!(report.is_ok(), "{report:?}");
}

/// Two handles that interleave, each behind now and then, against a model.
#[test]
fn keys_in_two_processes_do_what_a_model_says() {
    for seed in 0..8 {
        let (storage, mut dice) = (memory(), Dice::new(seed));
        let mut handles = [opened(&context(), &storage, "/sparse"), opened(&context(), &storage, "/sparse")];
        let (mut model, mut version) = (BTreeMap::<u64, (i64, u64)>::new(), 2u64);
        for _ in 0..150 {
            let (place, text, content) = (dice.below(2), dice.below(12) as u64, dice.below(2) as i64);
            if dice.below(10) == 0 {
                handles[place] = opened(&context(), &storage, "/sparse");
            }
            let done = write(&handles[place], &one(3, text as i64, content), &format!("k{text}"));
            match model.get(&text) {
                Some((known, first)) if *known == content => assert_eq!(done.unwrap(), *first),
                Some(_) => conflict(done),
                None => {
                    version += 1;
                    assert_eq!(done.unwrap(), version);
                    model.insert(text, (content, version));
                }
            }
            assert_eq!(version_of(&storage), version);
        }
    }
}
