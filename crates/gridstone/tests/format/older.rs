//! Promise: stores of the older format are repaired as far as their bytes allow, whatever is lost of them. What a repair puts back has the
//! form that their writers understand, or the store is upgraded. An upgrade and a vacuum may meet other writers and may stop anywhere.

use super::vectors::{cases, check_array, check_store, context_of, folder, gs0_cases, json, loaded};
use gridstone::base::{ErrorKind, xxh3};
use gridstone::engine::{
    Array, At, Call, Context, Keep, Opened, RepairAction, RepairOptions, RepairReport, VacuumOptions, create_group_on,
    open_on, repair_on, upgrade_on, verify_on,
};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::storage::{
    FLOOR, Fault, FaultPlan, FaultyStorage, HookedStorage, MANIFEST, MemoryStorage, Operation, Storage, log_name,
};
use gridstone::store::Store;
use serde_json::Value;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

const REPAIR: RepairOptions = RepairOptions { dry_run: false, cut: false };

type Memory = Arc<dyn Storage>;

fn shared(memory: &MemoryStorage) -> Memory {
    Arc::new(memory.clone())
}

pub(crate) fn case(name: &str) -> PathBuf {
    folder("gs0").join(name)
}

fn last(expect: &Value) -> &Value {
    expect["versions"].as_array().unwrap().last().unwrap()
}

fn number(version: &Value) -> u64 {
    version["version"].as_u64().unwrap()
}

/// An array of the newest version, if there is one.
pub(crate) fn an_array(context: &Context, storage: &Memory, expect: &Value) -> Option<Array> {
    let nodes = last(expect)["nodes"].as_array().unwrap();
    let path = nodes.iter().find(|node| node["kind"] == "array")?["path"].as_str().unwrap();
    match open_on(context, storage.clone(), path, true, At::Latest).unwrap() {
        Opened::Array(array) => Some(array),
        Opened::Group(_) => panic!("{path} is an array"),
    }
}

/// The newest version, whatever its number, has what the last one of `expect` had.
pub(crate) fn newest_is_the_last(context: &Context, storage: &Memory, expect: &Value) {
    for node in last(expect)["nodes"].as_array().unwrap() {
        let path = node["path"].as_str().unwrap();
        if let Opened::Array(array) = open_on(context, storage.clone(), path, false, At::Latest).unwrap() {
            let mut version = last(expect).clone();
            version["time_us"] = array.time_us().into();
            check_array(&array, node, &version, path);
        }
    }
}

/// What the repair did is what it says, and what it could not mend is as before.
fn check_repaired(context: &Context, storage: &Memory, expect: &Value, report: &RepairReport, what: &str) {
    let is_newest = |(lo, hi): &(u64, u64)| (*lo..=*hi).contains(&number(last(expect)));
    if report.remaining.is_empty() {
        check_store(storage, expect);
    }
    match report.committed {
        Some(version) => {
            assert_eq!(version, number(last(expect)) + 1, "{what}");
            assert!(
                report.actions.iter().any(|action| action.what.contains("upgrades the store")),
                "{what}: {report:?}"
            );
            newest_is_the_last(context, storage, expect);
            create_group_on(context, storage.clone(), "/after-the-repair").map(drop).unwrap_or_else(|e| {
                assert_eq!(e.kind(), ErrorKind::Exists, "{what}: the root is an array: {e}");
            });
        }
        None if report.remaining.iter().flat_map(|damage| &damage.versions).any(is_newest) => {}
        None => {
            let refused = create_group_on(context, storage.clone(), "/after-the-repair").unwrap_err();
            assert_eq!(refused.kind(), ErrorKind::Unsupported, "{what}: not upgraded unless it must be: {refused}");
            upgrade_on(context, storage.clone()).unwrap();
            newest_is_the_last(context, storage, expect);
        }
    }
}

/// Every object of the manifest and the floor, lost or damaged, one by one.
#[test]
fn every_older_store_is_repaired() {
    cases::all().unwrap();
    let (mut mended, mut upgraded, mut left) = (0, 0, 0);
    for case in gs0_cases() {
        let expect = json(&case.join("expect.json"));
        let context = context_of(&expect);
        let whole = loaded(&case);
        let names =
            whole.list(MANIFEST).unwrap().into_iter().chain(whole.exists(FLOOR).unwrap().then(|| FLOOR.to_owned()));
        for name in names {
            for bad in [None, Some(0), Some(40)] {
                let (memory, what) = (loaded(&case), format!("{case:?}: {name}, {bad:?}"));
                let bytes = memory.read_all(&name).unwrap();
                match bad {
                    None => memory.delete(&name).unwrap(),
                    Some(at) => {
                        let mut bytes = bytes.to_vec();
                        bytes[at] ^= 0x10;
                        memory.put(&name, &bytes).unwrap();
                    }
                }
                let storage = shared(&memory);
                let found = verify_on(&context, storage.clone(), &Call::default()).unwrap();
                if found.damage.is_empty() {
                    // No kept version names it.
                    check_store(&storage, &expect);
                    continue;
                }
                // Without the floor what it says is missing instead.
                assert!(name == FLOOR || found.damage.iter().any(|damage| damage.object == name), "{what}: {found:?}");
                let report = repair_on(&context, storage.clone(), REPAIR, &Call::default()).unwrap();
                check_repaired(&context, &storage, &expect, &report, &what);
                mended += usize::from(report.remaining.is_empty());
                upgraded += usize::from(report.committed.is_some());
                if report.committed.is_none() && !report.remaining.is_empty() {
                    assert!(whole.exists(FLOOR).unwrap(), "{what}: {report:?}");
                    left += 1;
                }
                // Without records below it nothing says what it was.
                let is_put = |action: &RepairAction| action.object == FLOOR && action.what.starts_with("put back");
                let is_back = report.actions.iter().any(is_put);
                if name == FLOOR && is_back && expect["key"].is_null() {
                    assert_eq!(memory.read_all(FLOOR).unwrap(), bytes, "{what}: in the form that its writers know");
                }
            }
        }
    }
    println!("{mended} mended, {upgraded} upgraded, {left} left, since a vacuum has taken what they were made from");
    assert!(mended > 9 && upgraded > 5, "{mended} mended, {upgraded} upgraded");
}

/// All roots and pages at once: a state made of the records alone.
#[test]
fn an_older_store_without_its_manifest_is_repaired() {
    cases::all().unwrap();
    let mut repaired = 0;
    for case in gs0_cases() {
        let (expect, memory) = (json(&case.join("expect.json")), loaded(&case));
        let (storage, context) = (shared(&memory), context_of(&expect));
        let names = memory.list(MANIFEST).unwrap();
        if names.is_empty() || memory.exists(FLOOR).unwrap() || !memory.exists(&log_name(1)).unwrap() {
            continue;
        }
        names.iter().for_each(|name| memory.delete(name).unwrap());
        let dry = repair_on(&context, storage.clone(), RepairOptions { dry_run: true, ..REPAIR }, &Call::default());
        let report = repair_on(&context, storage.clone(), REPAIR, &Call::default()).unwrap();
        assert_eq!(dry.unwrap().actions, report.actions);
        assert!(report.committed.is_some(), "{case:?}: {report:?}");
        check_repaired(&context, &storage, &expect, &report, &format!("{case:?}"));
        repaired += 1;
    }
    assert!(repaired > 2, "{repaired}");
}

pub(crate) fn vacuum(array: &Array) -> gridstone::base::Result<gridstone::engine::VacuumReport> {
    let options = VacuumOptions { keep: Keep::Versions(1), safety_us: 0, dry_run: false };
    array.vacuum(&options, &Call::default())
}

/// A vacuum of an upgraded log above a floor of GS0, stopped at any operation of the storage.
#[test]
fn a_vacuum_of_an_older_floor_may_stop_anywhere() {
    cases::all().unwrap();
    let case = case("vacuumed");
    let expect = json(&case.join("expect.json"));
    let context = context_of(&expect);
    let upgraded = || {
        let memory = loaded(&case);
        assert!(memory.read_all(FLOOR).unwrap().starts_with(b"{\"gs\":0,"));
        upgrade_on(&context, shared(&memory)).unwrap();
        check_store(&shared(&memory), &expect);
        memory
    };
    for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Kill] {
        for step in 1.. {
            let (memory, plan) = (upgraded(), FaultPlan::new());
            let failing: Memory = Arc::new(FaultyStorage::new(shared(&memory), Arc::clone(&plan)));
            let array = an_array(&context, &failing, &expect).unwrap();
            plan.fail_nth(step, fault);
            let outcome = vacuum(&array);
            let storage = shared(&memory);
            let what = format!("{fault:?} at {step}");
            newest_is_the_last(&context, &storage, &expect);
            assert_eq!(verify_on(&context, storage.clone(), &Call::default()).unwrap().damage, Vec::new(), "{what}");
            let report = vacuum(&an_array(&context, &storage, &expect).unwrap()).unwrap();
            let is_new = memory.read_all(FLOOR).unwrap().starts_with(b"{\"gs\":1,");
            assert!(is_new || report.oldest == report.oldest_before, "{what}: {report:?}");
            newest_is_the_last(&context, &storage, &expect);
            assert_eq!(verify_on(&context, storage, &Call::default()).unwrap().damage, Vec::new(), "{what}");
            if !plan.struck() {
                outcome.unwrap();
                assert!(step > 3, "{what}");
                break;
            }
        }
    }
}

/// The record of an empty commit of GS0 after the newest version.
fn empty_commit(memory: &MemoryStorage) -> (u64, Vec<u8>) {
    let store = Store::new(shared(memory), Arc::new(SystemClock), Arc::new(SystemEntropy));
    let newest = store.latest().unwrap();
    let (version, next) = (newest.version(), newest.version() + 1);
    let before = memory.read_all(&log_name(version)).unwrap();
    let end = before.iter().position(|byte| *byte == b'\n').unwrap();
    let parent = xxh3(&before[..end]);
    let fields: Value = serde_json::from_slice(&before[..end]).unwrap();
    let (id, time, root) = (format!("{next:032x}"), newest.time_us() + 1, &fields["root"]);
    let line = format!(
        "{{\"gs\":0,\"commit_id\":\"{id}\",\"version\":{next},\"parent\":\"{parent:016x}\",\"read_version\":{version},\"time_us\":{time},\
         \"root\":{root},\"message\":null,\"ops\":[]}}"
    );
    let line = format!("{line:<width$}", width = (line.len() + 18).next_multiple_of(64) - 18);
    (next, format!("{line}\n{:016x}\n", xxh3(line.as_bytes())).into_bytes())
}

/// Writers of GS0 take the slot of the upgrade, once and several times.
#[test]
fn an_upgrade_lets_commits_of_the_older_format_go_first() {
    cases::all().unwrap();
    for case in gs0_cases() {
        let expect = json(&case.join("expect.json"));
        if !expect["key"].is_null() {
            continue;
        }
        let context = context_of(&expect);
        for commits in [1, 3] {
            let memory = loaded(&case);
            let (behind, left) = (memory.clone(), AtomicUsize::new(commits));
            let racing: Memory = Arc::new(HookedStorage::new(shared(&memory), move |operation, name| {
                let is_slot = operation == Operation::PutIfAbsent && name.starts_with("_log/0");
                let takes = |n: usize| n.checked_sub(1);
                if is_slot && left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, takes).is_ok() {
                    let (version, bytes) = empty_commit(&behind);
                    behind.put(&log_name(version), &bytes).unwrap();
                }
            }));
            let upgraded = upgrade_on(&context, racing).unwrap();
            let storage = shared(&memory);
            assert_eq!(upgraded, number(last(&expect)) + commits as u64 + 1, "{case:?}");
            check_store(&storage, &expect);
            newest_is_the_last(&context, &storage, &expect);
            let starts = |version: u64| memory.read_all(&log_name(version)).unwrap()[..8].to_vec();
            assert!(starts(upgraded - 1) == b"{\"gs\":0," && starts(upgraded) == b"{\"gs\":1,", "{case:?}");
            assert_eq!(verify_on(&context, storage.clone(), &Call::default()).unwrap().damage, Vec::new(), "{case:?}");
            // A record of GS0 after the upgrade is none of this log.
            let (version, bytes) = empty_commit(&memory);
            memory.put(&log_name(version), &bytes).unwrap();
            let refused = open_on(&context, storage.clone(), "/", false, At::Latest).unwrap_err();
            assert!(refused.kind() == ErrorKind::Corruption && refused.message().contains("older format"), "{refused}");
        }
    }
}

/// Another process upgrades the store, commits and vacuums while the upgrade puts its record: the log begins behind it.
#[test]
fn an_upgrade_that_a_vacuum_passes_finds_the_store_upgraded() {
    cases::all().unwrap();
    let mut passed = 0;
    for case in gs0_cases() {
        let expect = json(&case.join("expect.json"));
        let context = context_of(&expect);
        let memory = loaded(&case);
        if an_array(&context, &shared(&memory), &expect).is_none() || !expect["key"].is_null() {
            continue;
        }
        let (behind, first, at) = (shared(&memory), AtomicUsize::new(1), context.clone());
        let told = expect.clone();
        let racing: Memory = Arc::new(HookedStorage::new(shared(&memory), move |operation, name| {
            let is_slot = operation == Operation::PutIfAbsent && name.starts_with("_log/0");
            if is_slot && first.swap(0, Ordering::Relaxed) == 1 {
                upgrade_on(&at, behind.clone()).unwrap();
                let array = an_array(&at, &behind, &told).unwrap();
                for n in 0..3 {
                    array.set_metadata(vec![("rounds".to_owned(), Some(n.to_string()))]).unwrap();
                }
                vacuum(&array).unwrap();
            }
        }));
        let upgraded = upgrade_on(&context, racing).unwrap_or_else(|e| panic!("{case:?}: {e}"));
        let storage = shared(&memory);
        let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
        assert_eq!(upgraded, store.latest().unwrap().version(), "{case:?}");
        assert!(upgraded > number(last(&expect)) + 3, "{case:?}: nothing was taken back");
        assert_eq!(verify_on(&context, storage, &Call::default()).unwrap().damage, Vec::new(), "{case:?}");
        passed += 1;
    }
    assert!(passed > 2, "{passed}");
}
