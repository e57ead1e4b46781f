//! Promise: a copy of a history that is copied to again gets what it lacks and nothing else. Wherever that is cut short, the copy is
//! the store as of one of its versions, and the next copy goes on. What it keeps is its own affair.

use crate::support::copy::{HISTORY, WHOLE, at, copied, memory, of_version, vacuum, written};
use crate::support::store::{options, store_of};
use crate::support::writer::{Kind, Write, Writer, context, verify, version_of};
use gridstone::base::{ErrorKind, NeverCancel, Silent};
use gridstone::engine::{At, Call, CopyOptions, Keep, verify_on};
use gridstone::maintain::forget;
use gridstone::storage::{Fault, FaultPlan, FaultyStorage, Operation, Storage, log_name};
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
