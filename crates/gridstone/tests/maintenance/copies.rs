//! Promise: a copy holds what was copied, cell for cell, and with its history version for version; wherever it is cut short there
//! is no store, nothing that cannot be cleared away, and the source is as it was.

use crate::support::columns::{bytes_of, view};
use crate::support::copy::{HISTORY, WHOLE, array, at, copied, memory, of_version, vacuum, written};
use crate::support::store::nothing_is_left;
use crate::support::writer::{Kind, Write, Writer, context, verify, version_of};
use gridstone::base::{ErrorKind, Key};
use gridstone::engine::{
    Array, At, Call, CellData, Condition, Context, CopyOptions, Dedup, Opened, Options, ReadOrder, Strategy, copy_on,
    create_array_on, create_group, delete_store, exists, open_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{
    FLOOR, Fault, FaultPlan, FaultyStorage, HookedStorage, MemoryStorage, Operation, Storage, log_name,
};
use gridstone::store::UNFINISHED;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// Small fragments in records and packs, large ones in files, deletes of every kind.
#[test]
fn every_version_of_a_store_is_copied_into_one_commit() {
    let (source, _) = written(70);
    for version in (1..=70).step_by(3) {
        let target = memory();
        let report = copied(&source, &target, &CopyOptions { at: At::Version(version), ..WHOLE }).unwrap();
        assert_eq!((report.source_version, report.version), (version, 1));
        at(1, &of_version(version)).check(&target, &format!("copy of version {version}"));
        verify(&target);
        let mut writer = Writer::open(&target);
        assert_eq!(writer.commit(&Write::new(Kind::WholeBox, version)).unwrap(), 2, "it goes on");
    }
    assert_eq!(version_of(&source), 70);
}

/// All that the fragments of an array can be: of several schemas, masked, deleted by box, by place and by condition, merged.
#[test]
fn masks_deletions_and_old_schemas_are_copied() {
    const TEXT: &str = r#"{"sparse":SPARSE,"capacity":50,"dims":[{"name":"x","dtype":"int64","domain":["0","999"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"int64"},{"name":"w","dtype":"int64"}]}"#;
    let context = context();
    for sparse in ["true", "false"] {
        let source = memory();
        let schema = Schema::from_json(&TEXT.replace("SPARSE", sparse)).unwrap();
        let made = create_array_on(&context, source.clone(), "/a", schema, false).unwrap();
        let call = Call::default();
        let write = |from: i64, count: i64| {
            let places = bytes_of((0..count).map(|i| (from + 7 * i) % 1_000));
            let values = bytes_of((0..count).map(|i| from * 1_000 + i));
            let attrs = ["v", "w"].map(|name| (name.to_owned(), view(&values))).to_vec();
            let dims = vec![view(&places)];
            let staged = made.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Error }, &call);
            made.commit(vec![staged.unwrap()], None).unwrap()
        };
        let delete_where = |text: &str| {
            let condition = Condition::parse(text).unwrap();
            made.delete_where(None, &condition, None, &call).unwrap()
        };
        write(0, 140);
        write(3, 100);
        delete_where("v > 50 and x < 500");
        write(5, 50);
        delete_where("x > 990");
        let one = bytes_of([21, 28]);
        made.commit(vec![made.stage_delete(&[view(&one)], &call).unwrap()], None).unwrap();
        made.consolidate(&Strategy::Updates, 1 << 30, false, &call).unwrap();
        write(9, 120);
        delete_where("w < 30 and x > 100");
        let newest = made.refresh().unwrap();
        for version in 1..=newest {
            let target = memory();
            let options = CopyOptions { path: "/a", target_path: "/b/c", at: At::Version(version), ..WHOLE };
            copied(&source, &target, &options).unwrap();
            let (from, to) =
                (array(&context, &source, "/a", At::Version(version)), array(&context, &target, "/b/c", At::Latest));
            let read = |array: &Array| {
                let (cells, shape, _) = array.read(None, None, ReadOrder::Row, &Call::default()).unwrap();
                let bytes = |c: &gridstone::engine::Column| c.view().values().to_vec();
                let dims: Vec<_> = cells.dims.iter().map(bytes).collect();
                (dims, cells.attrs.iter().map(bytes).collect::<Vec<_>>(), shape)
            };
            assert_eq!(read(&from), read(&to), "sparse {sparse}, version {version}");
            assert!(to.verify(&call).unwrap().damage.is_empty());
            let merged = to.consolidate(&Strategy::All, 1 << 30, false, &call);
            assert!(merged.is_ok() && read(&from) == read(&to), "a copy can be merged");
        }
    }
}

#[test]
fn a_history_is_copied_version_for_version_whatever_was_vacuumed() {
    for (versions, kept) in [(9, 9), (80, 80), (80, 40), (140, 3), (70, 1)] {
        let (source, model) = written(versions);
        if kept < versions {
            vacuum(&source, kept);
        }
        let newest = version_of(&source);
        let target = memory();
        let report = copied(&source, &target, &HISTORY).unwrap();
        assert_eq!((report.source_version, report.version), (newest, newest));
        at(newest, &model).check(&target, "the newest version");
        let context = context();
        let oldest = if kept < versions { versions - kept + 1 } else { 1 };
        for version in [1, 2, oldest - 1, oldest, oldest + 1, versions] {
            let open =
                |storage: &Arc<dyn Storage>| open_on(&context, storage.clone(), "/", false, At::Version(version));
            match (open(&source), open(&target)) {
                (Ok(Opened::Group(a)), Ok(Opened::Group(b))) => {
                    assert_eq!(a.children().unwrap(), b.children().unwrap())
                }
                (a, b) => assert_eq!(a.map(drop).unwrap_err().kind(), b.map(drop).unwrap_err().kind(), "{version}"),
            }
        }
        let history = |storage: &Arc<dyn Storage>| {
            let versions = array(&context, storage, "/dense", At::Latest).history(&Call::default()).unwrap();
            versions.into_iter().map(|v| (v.version, v.time_us, v.message, v.commit_id)).collect::<Vec<_>>()
        };
        assert_eq!(history(&source), history(&target));
        nothing_is_left(&target, "a copied history");
        let mut writer = Writer::open(&target);
        assert_eq!(writer.commit(&Write::new(Kind::ManyCells, 5)).unwrap(), newest + 1, "it goes on");
        let again = copied(&source, &target, &HISTORY).unwrap_err();
        assert_eq!(again.kind(), ErrorKind::Conflict, "it has a commit of its own: {again}");
    }
}

#[test]
fn histories_end_at_the_version_that_is_asked_for() {
    let (source, _) = written(75);
    for version in [1, 2, 64, 66] {
        let target = memory();
        let report = copied(&source, &target, &CopyOptions { at: At::Version(version), ..HISTORY }).unwrap();
        assert_eq!(report.version, version);
        of_version(version).check(&target, "a part of the history");
    }
}

fn keyed(byte: u8) -> Context {
    let key = Arc::new(Key::from_slice(&[byte; 32]).unwrap());
    Context::new(&Options { threads: Some(2), key: Some(key), ..Options::default() }).unwrap()
}

#[test]
fn plain_stores_are_sealed_and_sealed_ones_opened_or_sealed_anew() {
    let (plain, model) = written(66);
    vacuum(&plain, 30);
    for options in [WHOLE, HISTORY] {
        let [one, two, out] = [memory(), memory(), memory()];
        let between = |from: (&Context, &Arc<dyn Storage>), to: (&Context, &Arc<dyn Storage>)| {
            copy_on((from.0, from.1.clone()), (to.0, to.1.clone()), &options, &Call::default()).unwrap()
        };
        between((&context(), &plain), (&keyed(1), &one));
        between((&keyed(1), &one), (&keyed(2), &two));
        let report = between((&keyed(2), &two), (&context(), &out));
        at(report.version, &model).check(&out, "through two keys");
        for (sealed, wrong) in [(&one, keyed(2)), (&two, keyed(1)), (&two, context())] {
            let refused = open_on(&wrong, sealed.clone(), "/", false, At::Latest).map(drop).unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Access);
        }
    }
}

/// Every operation on the target fails in every way, for both kinds of copies.
#[test]
fn a_copy_that_is_cut_short_leaves_no_store() {
    let (source, model) = written(12);
    vacuum(&source, 9);
    let newest = version_of(&source);
    for (copying, version) in [(WHOLE, 1), (HISTORY, newest)] {
        let count = FaultPlan::new();
        let counting: Arc<dyn Storage> = Arc::new(FaultyStorage::new(memory(), count.clone()));
        copied(&source, &counting, &copying).unwrap();
        for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill] {
            for n in 1..=count.operations() {
                let what = format!("history {}, {fault:?} at operation {n}", copying.history);
                let (target, plan) = (memory(), FaultPlan::new());
                plan.fail_nth(n, fault);
                let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(target.clone(), plan.clone()));
                let outcome = copied(&source, &faulty, &copying);
                assert!(plan.struck(), "{what}");
                match (version_of(&target), &outcome) {
                    (0, Ok(_)) => panic!("{what}: success is told, and there is no store"),
                    (0, Err(e)) => {
                        // The dead cannot look whether their commit happened.
                        assert!(e.kind() != ErrorKind::CommitUnknown || fault == Fault::Kill, "{what}");
                        if copying.history {
                            let listed: usize =
                                ["_log", "_data", "_manifest"].iter().map(|f| target.list(f).unwrap().len()).sum();
                            assert!(listed == 0 || fault != Fault::Error || n > 1, "{what}: {listed} objects stay");
                            target.remove_everything().unwrap();
                        }
                        copied(&source, &target, &copying).unwrap();
                    }
                    // It took effect before it failed, or only the hint failed.
                    _ => {}
                }
                at(version, &model).check(&target, &what);
                vacuum(&target, 100);
                nothing_is_left(&target, &what);
            }
        }
    }
    assert_eq!(version_of(&source), newest);
}

#[test]
fn nobody_creates_a_store_beside_the_beginning_of_a_copy() {
    let (source, _) = written(12);
    let (target, plan) = (memory(), FaultPlan::new());
    plan.fail_nth_of(Operation::PutIfAbsent, 7, Fault::Kill);
    let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(target.clone(), plan));
    copied(&source, &faulty, &HISTORY).unwrap_err();
    assert!(target.exists(FLOOR).unwrap() && !target.list("_log").unwrap().is_empty());
    let schema = Schema::from_json(
        r#"{"dims":[{"name":"x","dtype":"int8","domain":["0","9"],"tile":"5"}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
    );
    let refused = create_array_on(&context(), target.clone(), "/", schema.unwrap(), false).unwrap_err();
    assert!(refused.message().contains("copy"), "{refused}");
    assert!(copied(&source, &target, &WHOLE).unwrap_err().message().contains("copy"));
    let again = copied(&source, &target, &HISTORY).unwrap_err();
    assert!(again.kind() == ErrorKind::Exists && again.message().contains("copy"), "{again}");
    target.remove_everything().unwrap();
    copied(&source, &target, &HISTORY).unwrap();
}

/// A vacuum of the source at every operation on the target: the copy is whole, or there is none.
#[test]
fn a_vacuum_of_the_source_meanwhile_expires_the_copy_or_not_at_all() {
    let mut outcomes = [0, 0];
    for n in 0..40 {
        for copying in [CopyOptions { at: At::Version(9), ..WHOLE }, HISTORY] {
            let (source, _) = written(12);
            let target = memory();
            let (left, done) = (Arc::new(std::sync::atomic::AtomicI64::new(n)), Arc::new(AtomicBool::new(false)));
            let (vacuumed, passed) = (source.clone(), done.clone());
            let hooked: Arc<dyn Storage> = Arc::new(HookedStorage::new(target.clone(), move |_, _| {
                if left.fetch_sub(1, Ordering::Relaxed) == 0 {
                    vacuum(&vacuumed, 1);
                    passed.store(true, Ordering::Relaxed);
                }
            }));
            let outcome = copied(&source, &hooked, &copying);
            match outcome {
                Ok(report) if copying.history => of_version(12).check(&target, &format!("{report:?}")),
                Ok(report) => at(1, &of_version(9)).check(&target, &format!("{report:?}")),
                Err(e) => {
                    assert_eq!(e.kind(), ErrorKind::SnapshotExpired, "{e}");
                    assert!(!copying.history, "its lease holds the versions: {e}");
                    assert_eq!(version_of(&target), 0);
                    outcomes[0] += 1;
                }
            }
            outcomes[1] += usize::from(done.load(Ordering::Relaxed));
        }
    }
    assert!(outcomes[0] > 0 && outcomes[1] > 20, "{outcomes:?}");
}

#[test]
fn parts_are_copied_beside_others_and_over_them() {
    let (source, model) = written(20);
    let (context, target) = (context(), memory());
    copied(&source, &target, &CopyOptions { path: "/dense", target_path: "/x/dense", ..WHOLE }).unwrap();
    copied(&source, &target, &CopyOptions { path: "/", target_path: "/y", ..WHOLE }).unwrap();
    let listed = |path: &str| match open_on(&context, target.clone(), path, false, At::Latest).unwrap() {
        Opened::Group(group) => group.children().unwrap().into_iter().map(|(name, _)| name).collect::<Vec<_>>(),
        Opened::Array(_) => panic!("{path} is an array"),
    };
    assert_eq!(
        (listed("/"), listed("/y")),
        (vec!["x".to_owned(), "y".to_owned()], vec!["dense".to_owned(), "sparse".to_owned()])
    );
    let taken = CopyOptions { path: "/sparse", target_path: "/y", ..WHOLE };
    assert_eq!(copied(&source, &target, &taken).unwrap_err().kind(), ErrorKind::Exists);
    copied(&source, &target, &CopyOptions { overwrite: true, ..taken }).unwrap();
    assert_eq!(array(&context, &target, "/y", At::Latest).version(), 3);
    copied(&source, &target, &CopyOptions { overwrite: true, ..WHOLE }).unwrap();
    at(4, &model).check(&target, "over the root");
    // Within one store: beside itself, and not into itself.
    let within = |path: &'static str, target_path: &'static str| {
        copied(&target, &target, &CopyOptions { path, target_path, overwrite: true, ..WHOLE })
    };
    within("/dense", "/twin").unwrap();
    for (path, to) in [("/dense", "/dense"), ("/", "/all"), ("/dense", "/"), ("/dense", "/dense/x")] {
        assert_eq!(within(path, to).unwrap_err().kind(), ErrorKind::Input, "{path} to {to}");
    }
    verify(&target);
    let nothing = copied(&source, &target, &CopyOptions { path: "/none", target_path: "/n", ..WHOLE });
    assert_eq!(nothing.unwrap_err().kind(), ErrorKind::NotFound);
    let part = copied(&source, &memory(), &CopyOptions { path: "/dense", ..HISTORY });
    assert_eq!(part.unwrap_err().kind(), ErrorKind::Input);
}

/// A history whose log has a gap cannot be copied, and the versions beside the gap can be opened: each is told which record is missing.
#[test]
fn a_record_that_is_missing_is_named() {
    let (source, _) = written(20);
    for missing in [3, 12] {
        let kept = source.read_all(&log_name(missing)).unwrap();
        source.delete(&log_name(missing)).unwrap();
        let target = memory();
        let history = CopyOptions { at: At::Version(18), ..HISTORY };
        let named = open_on(&context(), source.clone(), "/", false, At::Version(missing)).map(drop).unwrap_err();
        for error in [named, copied(&source, &target, &history).unwrap_err()] {
            assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
            for word in [log_name(missing).as_str(), "gridstone repair"] {
                assert!(error.message().contains(word), "{word:?} is not in: {error}");
            }
        }
        assert_eq!(version_of(&target), 0);
        source.put(&log_name(missing), &kept).unwrap();
    }
}

#[test]
fn a_copy_that_is_stopped_or_finds_damage_commits_nothing() {
    let (source, _) = written(20);
    let target = memory();
    let flag = gridstone::engine::CancelFlag::new();
    flag.cancel();
    let call = Call { cancel: Arc::new(flag), ..Call::default() };
    for options in [WHOLE, HISTORY] {
        let stopped = copy_on((&context(), source.clone()), (&context(), target.clone()), &options, &call).unwrap_err();
        assert_eq!(stopped.kind(), ErrorKind::Cancelled);
        assert_eq!(version_of(&target), 0);
    }
    let name = source.list("_data").unwrap()[0].clone();
    let mut bytes = source.read_all(&name).unwrap().to_vec();
    bytes[40] ^= 1;
    source.put(&name, &bytes).unwrap();
    assert_eq!(copied(&source, &target, &WHOLE).unwrap_err().kind(), ErrorKind::Corruption);
    assert_eq!((version_of(&target), target.list("_data").unwrap().len()), (0, 0));
}

#[test]
fn the_beginning_of_a_copy_is_no_store_and_can_be_deleted() {
    let (context, uri) = (context(), "mem://copies-beginning");
    let place = MemoryStorage::named("copies-beginning");
    assert!(!exists(&context, uri).unwrap());
    place.put(FLOOR, UNFINISHED).unwrap();
    place.put("_log/00000000000000000001", b"a record").unwrap();
    assert!(!exists(&context, uri).unwrap());
    assert!(create_group(&context, uri, "/g").is_err());
    delete_store(&context, uri).unwrap();
    assert_eq!(delete_store(&context, uri).unwrap_err().kind(), ErrorKind::NotFound);
    create_group(&context, uri, "/g").unwrap();
    assert!(exists(&context, uri).unwrap());
    delete_store(&context, uri).unwrap();
}
