//! Promise: a copy of a history that is copied to again gets what it lacks and nothing else. Wherever that is cut short, the copy is
//! the store as of one of its versions, and the next copy goes on. What it keeps is its own affair.

use crate::support::copy::{HISTORY, WHOLE, at, copied, memory, of_version, vacuum, written};
use crate::support::store::{options, store_of};
use crate::support::writer::{Kind, Write, Writer, context, verify, version_of};
use gridstone::base::{ErrorKind, Key, NeverCancel, Silent};
use gridstone::engine::{At, Call, Context, CopyOptions, Keep, Options, copy_on, verify_on};
use gridstone::maintain::forget;
use gridstone::storage::{DATA, Fault, FaultPlan, FaultyStorage, MANIFEST, Operation, Storage, log_name};
use std::sync::Arc;

/// Nothing of any kept version is damaged or missing.
fn sound(storage: &Arc<dyn Storage>) {
    verify(storage);
    let report = verify_on(&context(), storage.clone(), &Call::default()).unwrap();
    assert!(report.damage.is_empty(), "{report:?}");
}

/// Commits the writes `from ..= to` of the usual life.
fn write(storage: &Arc<dyn Storage>, from: u64, to: u64) {
    let mut writer = Writer::open(storage);
    for number in from..=to {
        writer.commit(&Write::of(number)).unwrap();
    }
}

/// Version `version` of `storage` is what `writes` writes make.
fn shows(storage: &Arc<dyn Storage>, version: u64, writes: u64, what: &str) {
    let alone = memory();
    copied(storage, &alone, &CopyOptions { at: At::Version(version), ..HISTORY }).unwrap();
    at(version, &of_version(writes)).check(&alone, what);
}

fn objects(storage: &Arc<dyn Storage>) -> usize {
    ["_log", "_data", "_manifest"].iter().map(|folder| storage.list(folder).unwrap().len()).sum()
}

#[test]
fn every_version_arrives_once() {
    for step in [1, 7, 40] {
        let (source, target) = (memory(), memory());
        let mut done = 0;
        while done < 140 {
            write(&source, done + 1, done + step);
            done += step;
            let before = objects(&target);
            let report = copied(&source, &target, &HISTORY).unwrap();
            assert_eq!((report.version, report.versions), (done, step));
            // The hint may be new too.
            let made = (objects(&target) - before) as u64;
            assert!((report.objects..=report.objects + 1).contains(&made), "{made} of {report:?}");
            let again = copied(&source, &target, &HISTORY).unwrap();
            assert_eq!((again.version, again.versions, again.objects, again.bytes), (done, 0, 0, 0));
        }
        of_version(done).check(&target, "the newest");
        sound(&target);
        for version in [1, 2, 63, 64, 65, 100, done] {
            shows(&target, version, version, &format!("version {version} of steps of {step}"));
        }
    }
}

/// The source forgets versions between copies, and the copy keeps them.
#[test]
fn what_the_source_forgets_the_copy_keeps() {
    let (source, target) = (memory(), memory());
    let mut done = 0;
    for round in 0..8 {
        write(&source, done + 1, done + 20);
        done += 20;
        copied(&source, &target, &HISTORY).unwrap();
        assert_eq!(version_of(&target), version_of(&source), "round {round}");
        at(version_of(&target), &of_version(done)).check(&target, "the newest");
        sound(&target);
        vacuum(&source, 8);
        sound(&source);
    }
    for version in [1, 7, 19, 20] {
        shows(&target, version, version, &format!("version {version}, which the source has forgotten"));
    }
    // The versions between were forgotten: the copy cannot go on, and stays.
    write(&source, done + 1, done + 20);
    vacuum(&source, 2);
    let (before, refused) = (objects(&target), copied(&source, &target, &HISTORY).unwrap_err());
    assert_eq!(refused.kind(), ErrorKind::SnapshotExpired, "{refused}");
    assert!(refused.message().contains("tag"), "{refused}");
    assert_eq!(objects(&target), before);
    sound(&target);
}

/// A copy forgets versions of its own, and goes on.
#[test]
fn a_copy_forgets_without_a_commit_and_goes_on() {
    let (source, target) = (memory(), memory());
    let mut done = 0;
    for round in 0..10 {
        write(&source, done + 1, done + 23);
        done += 23;
        if round % 3 == 2 {
            vacuum(&source, 30);
        }
        copied(&source, &target, &HISTORY).unwrap();
        let (copy, newest) = (store_of(&target), version_of(&source));
        let report = forget(&copy, &options(Keep::Versions(30)), &NeverCancel, &Silent).unwrap();
        assert_eq!((report.newest, report.committed, version_of(&target)), (newest, None, newest));
        at(newest, &of_version(done)).check(&target, &format!("round {round}"));
        sound(&target);
        if round > 2 {
            assert!(report.oldest + 40 > newest && report.oldest > 1, "{report:?}");
            assert_eq!(copy.at_version(report.oldest - 1).unwrap_err().kind(), ErrorKind::SnapshotExpired);
            copy.at_version(report.oldest).unwrap();
            assert!(!target.exists(&log_name(1)).unwrap());
        }
    }
    let again = forget(&store_of(&target), &options(Keep::Versions(30)), &NeverCancel, &Silent).unwrap();
    assert_eq!((again.oldest, again.data.objects), (again.oldest_before, 0));
}

#[test]
fn wherever_it_is_cut_short_the_copy_is_one_of_its_versions() {
    for forgets in [false, true] {
        let (source, base) = (memory(), memory());
        write(&source, 1, 60);
        copied(&source, &base, &HISTORY).unwrap();
        write(&source, 61, 70);
        if forgets {
            vacuum(&source, 20);
        }
        let newest = version_of(&source);
        let another = || {
            let target = memory();
            copied(&base, &target, &HISTORY).unwrap();
            target
        };
        let count = FaultPlan::new();
        let counting: Arc<dyn Storage> = Arc::new(FaultyStorage::new(another(), count.clone()));
        copied(&source, &counting, &HISTORY).unwrap();
        for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Full, Fault::Kill] {
            for (n, operation) in (1..).zip(count.journal()) {
                // The floor is replaced in one step.
                if matches!((operation, fault), (Operation::Put, Fault::Torn)) {
                    continue;
                }
                let what = format!("{fault:?} at operation {n}, forgets {forgets}");
                let (target, plan) = (another(), FaultPlan::new());
                plan.fail_nth(n, fault);
                let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(target.clone(), plan.clone()));
                let outcome = copied(&source, &faulty, &HISTORY);
                assert!(plan.struck(), "{what}");
                let version = version_of(&target);
                assert!((60..=newest).contains(&version), "{what}: {version}");
                assert!(outcome.is_err() || version == newest, "{what}: {outcome:?}");
                at(version, &of_version(version.min(70))).check(&target, &what);
                let rest = copied(&source, &target, &HISTORY).unwrap();
                assert_eq!((rest.version, rest.versions), (newest, newest - version), "{what}");
                at(newest, &of_version(70)).check(&target, &what);
                sound(&target);
                shows(&target, 33, 33, &what);
            }
        }
    }
}

#[test]
fn another_history_is_never_overwritten() {
    let (source, _) = written(30);
    let refused = |from: &Arc<dyn Storage>, to: &Arc<dyn Storage>, kind: ErrorKind, word: &str| {
        let before = objects(to);
        let error = copied(from, to, &HISTORY).unwrap_err();
        assert!(error.kind() == kind && error.message().contains(word), "{error}");
        assert_eq!(objects(to), before);
    };
    let (other, _) = written(10);
    refused(&source, &other, ErrorKind::Exists, "another store");
    let plain = memory();
    copied(&source, &plain, &WHOLE).unwrap();
    refused(&source, &plain, ErrorKind::Exists, "another store");
    refused(&source, &source, ErrorKind::Input, "itself");
    // A commit of the copy's own, where the source has gone on, and where it has not.
    let target = memory();
    copied(&source, &target, &CopyOptions { at: At::Version(20), ..HISTORY }).unwrap();
    Writer::open(&target).commit(&Write::new(Kind::ManyCells, 5)).unwrap();
    refused(&source, &target, ErrorKind::Conflict, "different commits");
    let target = memory();
    copied(&source, &target, &HISTORY).unwrap();
    Writer::open(&target).commit(&Write::new(Kind::ManyCells, 5)).unwrap();
    refused(&source, &target, ErrorKind::Conflict, "goes on to version 31");
    // The copy is ahead of what was restored from an older one.
    let (whole, restored) = (memory(), memory());
    copied(&source, &whole, &HISTORY).unwrap();
    copied(&whole, &restored, &CopyOptions { at: At::Version(12), ..HISTORY }).unwrap();
    refused(&restored, &whole, ErrorKind::Conflict, "goes on to version 30");
    copied(&whole, &restored, &HISTORY).unwrap();
    of_version(30).check(&restored, "brought up to date from the backup");
    // A version that the copy passed long ago is there.
    let report = copied(&source, &whole, &CopyOptions { at: At::Version(7), ..HISTORY }).unwrap();
    assert_eq!((report.version, report.versions), (30, 0));
}

/// The objects in folders of data.
fn files(storage: &Arc<dyn Storage>) -> Vec<String> {
    [DATA, MANIFEST].iter().flat_map(|folder| storage.list(folder).unwrap()).collect()
}

/// What becomes of an object of a copy.
#[derive(Debug, Clone, Copy)]
enum Loss {
    Gone,
    Cut,
    Grown,
}

impl Loss {
    const ALL: [Self; 3] = [Self::Gone, Self::Cut, Self::Grown];

    fn happen(self, storage: &Arc<dyn Storage>, name: &str) {
        let mut bytes = storage.read_start(name, u64::MAX).unwrap().to_vec();
        storage.delete(name).unwrap();
        match self {
            Self::Gone => return,
            Self::Cut => bytes.truncate(bytes.len() / 2),
            Self::Grown => bytes.push(0),
        }
        let mut sink = storage.create(name).unwrap();
        sink.write(&bytes).unwrap();
        sink.finish().unwrap();
    }
}

/// A context that seals.
fn sealing() -> Context {
    let key = Arc::new(Key::from_slice(&[7; 32]).unwrap());
    Context::new(&Options { threads: Some(2), key: Some(key), ..Options::default() }).unwrap()
}

/// Whatever the newest version needs, and the copy has lost or has cut: the next copy brings it, beside new versions and where there are
/// none.
#[test]
fn what_a_copy_has_lost_comes_again() {
    let source = memory();
    write(&source, 1, 66);
    for (seals, grows) in [(false, false), (false, true), (true, false)] {
        let target = memory();
        let contexts = (context(), if seals { sealing() } else { context() });
        let sent = || {
            let (from, to) = ((&contexts.0, source.clone()), (&contexts.1, target.clone()));
            copy_on(from, to, &HISTORY, &Call::default()).unwrap()
        };
        let checked = |what: &str| {
            let (out, newest) = (memory(), version_of(&source));
            copy_on((&contexts.1, target.clone()), (&context(), out.clone()), &WHOLE, &Call::default()).unwrap();
            at(1, &of_version(newest)).check(&out, what);
        };
        sent();
        let mut mended = 0;
        for name in files(&target) {
            for loss in Loss::ALL {
                let what = format!("{name} {loss:?}, seals {seals}");
                let newest = version_of(&source);
                let before = target.read_start(&name, u64::MAX).unwrap();
                loss.happen(&target, &name);
                if grows {
                    write(&source, newest + 1, newest + 1);
                }
                let report = sent();
                assert_eq!(report.versions, u64::from(grows), "{what}");
                checked(&what);
                let brought =
                    target.exists(&name).unwrap() && target.read_start(&name, u64::MAX).unwrap().len() == before.len();
                // What only older versions need is not looked for.
                if !brought {
                    target.delete(&name).unwrap();
                    let mut sink = target.create(&name).unwrap();
                    sink.write(&before).unwrap();
                    sink.finish().unwrap();
                    continue;
                }
                mended += 1;
                assert!(grows || (report.objects == 1 && report.bytes > 0), "{what}: {report:?}");
                let again = sent();
                assert_eq!((again.versions, again.objects, again.bytes), (0, 0, 0), "{what}");
            }
        }
        println!("{mended} of {} losses mended", 3 * files(&target).len());
        assert!(mended >= 12, "{mended}");
    }
}

/// All at once, and wherever that is cut short.
#[test]
fn a_copy_that_lost_all_its_files_is_whole_again() {
    let source = memory();
    write(&source, 1, 75);
    let robbed = || {
        let target = memory();
        copied(&source, &target, &HISTORY).unwrap();
        for name in files(&target) {
            target.delete(&name).unwrap();
        }
        target
    };
    let (count, target) = (FaultPlan::new(), robbed());
    let counting: Arc<dyn Storage> = Arc::new(FaultyStorage::new(target.clone(), count.clone()));
    let report = copied(&source, &counting, &HISTORY).unwrap();
    assert!(report.versions == 0 && report.objects > 3 && report.bytes > 100_000, "{report:?}");
    of_version(75).check(&target, "all was lost");
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Kill] {
        for n in (1..=count.journal().len() as u64).step_by(2) {
            let (target, plan) = (robbed(), FaultPlan::new());
            plan.fail_nth(n, fault);
            let faulty: Arc<dyn Storage> = Arc::new(FaultyStorage::new(target.clone(), plan.clone()));
            let _ = copied(&source, &faulty, &HISTORY);
            assert!(plan.struck(), "{fault:?} at operation {n}");
            copied(&source, &target, &HISTORY).unwrap();
            of_version(75).check(&target, &format!("{fault:?} at operation {n}"));
        }
    }
}

/// The copy is sound, and the source has lost its files or has them cut: nothing of the copy is replaced.
#[test]
fn what_the_source_has_lost_stays_in_the_copy() {
    for loss in [Loss::Gone, Loss::Cut] {
        let (source, target) = (memory(), memory());
        write(&source, 1, 66);
        copied(&source, &target, &HISTORY).unwrap();
        for name in source.list(DATA).unwrap() {
            loss.happen(&source, &name);
        }
        let report = copied(&source, &target, &HISTORY).unwrap();
        assert_eq!((report.versions, report.objects, report.bytes), (0, 0, 0), "{loss:?}");
        of_version(66).check(&target, "the sound copy of a damaged source");
        sound(&target);
    }
}
