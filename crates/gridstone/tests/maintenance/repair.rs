//! Promise: whatever object of a store is lost or damaged, the check of the store names that object and no other; what can be
//! made again is made again, and then every kept version reads as before; what is sound is never touched.

use crate::support::line::{Cells, create, read, write};
use crate::support::store::{context, open, options, store_of};
use gridstone::base::ErrorKind;
use gridstone::engine::{
    Array, At, Call, Condition, Context, Keep, Opened, RepairOptions, RepairReport, StoreReport, Strategy,
    VacuumOptions, open_on, repair_on, verify_on,
};
use gridstone::storage::{FLOOR, MemoryStorage, Storage};
use gridstone::store::{Changes, Operation, StandardRules};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const FOLDERS: [&str; 5] = ["_log", "_data", "_manifest", "_lease", "_damaged"];

type Objects = BTreeMap<String, Vec<u8>>;

fn objects(storage: &dyn Storage) -> Objects {
    let names = FOLDERS.iter().flat_map(|folder| storage.list(folder).unwrap());
    names.map(|name| (name.clone(), storage.read_all(&name).unwrap().to_vec())).collect()
}

fn storage_of(objects: &Objects) -> Arc<dyn Storage> {
    let storage = MemoryStorage::new();
    objects.iter().for_each(|(name, bytes)| storage.put(name, bytes).unwrap());
    Arc::new(storage)
}

fn call() -> Call {
    Call::default()
}

fn verified(storage: &Arc<dyn Storage>) -> StoreReport {
    verify_on(&context(4), storage.clone(), &call()).unwrap()
}

fn repaired(storage: &Arc<dyn Storage>, dry_run: bool) -> RepairReport {
    repair_on(&context(4), storage.clone(), RepairOptions { dry_run, cut: false }, &call()).unwrap()
}

fn named(report: &StoreReport) -> BTreeSet<&str> {
    report.damage.iter().map(|d| d.object.as_str()).collect()
}

/// What a version holds: the cells of each array; an error where it cannot be read.
fn seen(
    context: &Context,
    storage: &Arc<dyn Storage>,
    version: u64,
) -> Result<BTreeMap<&'static str, Cells>, ErrorKind> {
    let mut all = BTreeMap::new();
    for path in ["/line", "/grid"] {
        match open_on(context, storage.clone(), path, false, At::Version(version)) {
            Ok(Opened::Array(array)) => drop(all.insert(path, read(&array).map_err(|e| e.kind())?)),
            Ok(Opened::Group(_)) => panic!("{path} is a group"),
            Err(e) if e.message().contains("no array or group") => {}
            Err(e) => return Err(e.kind()),
        }
    }
    Ok(all)
}

type Past = BTreeMap<u64, BTreeMap<&'static str, Cells>>;

fn past(storage: &Arc<dyn Storage>) -> Past {
    let report = verified(storage);
    assert!(report.damage.is_empty(), "{report:?}");
    (report.oldest..=report.newest).map(|v| (v, seen(&context(4), storage, v).unwrap())).collect()
}

fn reads_as_before(storage: &Arc<dyn Storage>, past: &Past, what: &str) {
    for (version, cells) in past {
        assert!(seen(&context(4), storage, *version).as_ref() == Ok(cells), "{what}: version {version}");
    }
}

fn many(from: i64, count: i64, salt: i64) -> Cells {
    (from..from + count).map(|x| (x, (x + salt) * 0x9E37_79B9 + 1)).collect()
}

/// Nineteen versions and more: large and small fragments, a deleted box, a mask, a metadata key, four folds.
fn store() -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let context = context(4);
    let line = create(&context, &storage, "/line", false);
    write(&line, &many(0, 12_000, 1)).unwrap();
    let grid = create(&context, &storage, "/grid", false);
    for step in 0..5 {
        write(&line, &many(step * 900, 40, step)).unwrap();
        grid.refresh().unwrap();
        write(&grid, &many(step * 1_000, 60, 7 * step)).unwrap();
        line.refresh().unwrap();
    }
    let half = Condition::parse("v > 100000000000").unwrap();
    line.delete_where(None, &half, None, &call()).unwrap();
    let gone = line.stage_delete_box(Some(&[("100".to_owned(), "300".to_owned())])).unwrap();
    line.commit(vec![gone], None).unwrap();
    line.set_metadata(vec![("k".to_owned(), Some("1".to_owned()))]).unwrap();
    for step in 0..4 {
        write(&line, &many(step * 500, 30, 11 * step)).unwrap();
    }
    storage
}

/// A copy of the same store after a vacuum, with some versions since.
fn vacuumed() -> Arc<dyn Storage> {
    let storage = store();
    let line = open(&context(4), &storage, "/line", At::Latest).unwrap();
    line.vacuum(&options(Keep::Versions(6)), &call()).unwrap();
    for step in 0..6 {
        write(&line, &many(step * 700, 20, 13 * step)).unwrap();
    }
    storage
}

/// The ways in which an object can be damaged.
fn damages(bytes: &[u8]) -> Vec<(String, Option<Vec<u8>>)> {
    let flipped = |at: usize| {
        let mut bytes = bytes.to_vec();
        bytes[at] ^= 0x10;
        (format!("byte {at} of {} flipped", bytes.len()), Some(bytes))
    };
    let mut found = vec![("deleted".to_owned(), None), ("cut".to_owned(), Some(bytes[..bytes.len() / 2].to_vec()))];
    found.push(("emptied".to_owned(), Some(Vec::new())));
    let places = [0, 9, bytes.len() / 5, bytes.len() / 2, bytes.len() * 4 / 5, bytes.len() - 1];
    found.extend(places.into_iter().filter(|at| *at < bytes.len()).map(flipped));
    found
}

/// Damages every object of a store in every way. Gives how often each folder's were found, and mended.
fn damage_everything(whole: &Arc<dyn Storage>) -> BTreeMap<String, (u32, u32)> {
    let (objects, past) = (objects(whole.as_ref()), past(whole));
    let newest = gridstone::storage::log_name(*past.keys().next_back().unwrap());
    let mut tally: BTreeMap<String, (u32, u32)> = BTreeMap::new();
    for (name, bytes) in &objects {
        for (how, bad) in damages(bytes) {
            let what = format!("{name} {how}");
            let mut damaged = objects.clone();
            match bad {
                Some(bad) => drop(damaged.insert(name.clone(), bad)),
                None => drop(damaged.remove(name)),
            }
            let storage = storage_of(&damaged);
            let report = verified(&storage);
            let lost_end = *name == newest && how == "deleted";
            if report.damage.is_empty() || lost_end && named(&report) == ["_log/latest"].into() {
                // Padding, the hint, or the end of the log, of which at most the hint tells.
                let kept: Past = past
                    .iter()
                    .filter(|(v, _)| !lost_end || **v <= report.newest)
                    .map(|(v, c)| (*v, c.clone()))
                    .collect();
                assert!(!lost_end || kept.len() + 1 == past.len());
                reads_as_before(&storage, &kept, &what);
                continue;
            }
            assert_eq!(named(&report), [name.as_str()].into(), "{what}: {report:?}");
            check_versions(&storage, &past, &report, &what);
            let dry = repaired(&storage, true);
            assert_eq!(self::objects(storage.as_ref()), damaged, "{what}: a dry run writes nothing");
            let done = repaired(&storage, false);
            assert_eq!(dry.actions, done.actions, "{what}");
            let entry = tally.entry(kind(name)).or_default();
            entry.0 += 1;
            let after = self::objects(storage.as_ref());
            for (other, bytes) in damaged.iter().filter(|(other, _)| *other != name && *other != "_log/latest") {
                assert_eq!(after.get(other), Some(bytes), "{what}: {other} was touched");
            }
            if done.remaining.is_empty() {
                entry.1 += 1;
                reads_as_before(&storage, &past, &what);
                assert!(verified(&storage).damage.is_empty(), "{what}");
                let kept: Vec<_> = after.iter().filter(|(n, _)| n.starts_with("_damaged/")).collect();
                assert_eq!(kept.len(), done.kept.len(), "{what}");
                assert!(
                    kept.iter().all(|(_, bytes)| Some(*bytes) == damaged.get(name)),
                    "{what}: what was damaged is kept"
                );
            } else {
                assert_eq!(done.remaining, report.damage, "{what}: {:?}", done.actions);
                assert!(after.get(name) == damaged.get(name), "{what}: what cannot be mended stays");
            }
        }
    }
    tally
}

fn kind(name: &str) -> String {
    match name {
        "_log/floor" | "_log/latest" => name.to_owned(),
        _ => name.split('/').next().unwrap().to_owned(),
    }
}

/// Versions that the report does not name read as before.
fn check_versions(storage: &Arc<dyn Storage>, past: &Past, report: &StoreReport, what: &str) {
    let lost =
        |version: u64| report.damage.iter().flat_map(|d| &d.versions).any(|(lo, hi)| (*lo..=*hi).contains(&version));
    for (version, cells) in past {
        let read = seen(&context(4), storage, *version);
        assert!(lost(*version) || read.as_ref() == Ok(cells), "{what}: version {version} is not named: {report:?}");
        assert!(read.as_ref().map_or(true, |read| read == cells), "{what}: version {version} reads otherwise");
    }
}

#[test]
fn every_damage_is_named_and_the_manifest_made_again() {
    let storage = store();
    let tally = damage_everything(&storage);
    let of = |kind: &str| tally.get(kind).copied().unwrap_or_default();
    let (found, mended) = of("_manifest");
    assert!(found > 60 && mended == found, "every root and page comes back: {tally:?}");
    let (found, mended) = of("_data");
    assert!(
        mended > 20 && mended < found,
        "packs come back, fragments written to files of their own do not: {tally:?}"
    );
    let (found, mended) = of("_log");
    assert!(found > 100 && mended > 10 && mended < found, "fragments in records come back from packs: {tally:?}");
    assert!(of("_log/latest").0 > 0 && of("_log/latest").0 == of("_log/latest").1, "{tally:?}");
}

#[test]
fn a_vacuumed_store_is_checked_from_its_floor_on() {
    let storage = vacuumed();
    let oldest = verified(&storage).oldest;
    assert!(oldest > 1);
    let tally = damage_everything(&storage);
    let (found, mended) = tally["_log/floor"];
    assert!(found >= 9 && mended == found, "the floor comes back: {tally:?}");
    let (found, mended) = tally["_manifest"];
    assert!(mended > 0 && mended < found, "roots before the floor's own are gone, and it with them: {tally:?}");
}

#[test]
fn a_new_root_is_named_where_the_old_one_cannot_be_made_again() {
    let whole = store();
    let (past, mut damaged) = (past(&whole), objects(whole.as_ref()));
    let root = store_of(&whole).latest().unwrap().root().unwrap();
    // The newest root and all pages: nothing tells any more what the pages were called.
    damaged.retain(|name, _| !name.starts_with("_manifest/"));
    let storage = storage_of(&damaged);
    assert!(named(&verified(&storage)).contains(gridstone::storage::manifest_name(root.id).as_str()));
    let newest = *past.keys().next_back().unwrap();
    let report = repaired(&storage, false);
    assert_eq!(report.committed, Some(newest + 1), "{report:?}");
    assert!(seen(&context(4), &storage, newest + 1).unwrap() == past[&newest]);
    for version in 1..4 {
        assert!(seen(&context(4), &storage, version).unwrap() == past[&version], "versions before the first root");
    }
    let array = open(&context(4), &storage, "/line", At::Latest).unwrap();
    write(&array, &many(3, 3, 3)).unwrap();
}

#[test]
fn the_cells_that_a_damage_affects_are_told() {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let array: Array = create(&context(4), &storage, "/line", false);
    write(&array, &many(2_000, 10_000, 1)).unwrap();
    let name = storage.list("_data").unwrap().remove(0);
    let whole = storage.read_all(&name).unwrap().to_vec();
    for (at, tiles) in [(whole.len() / 3, true), (whole.len() - 5, false)] {
        let mut bad = whole.clone();
        bad[at] ^= 1;
        storage.put(&name, &bad).unwrap();
        let one = open(&context(4), &storage, "/line", At::Latest).unwrap().verify(&call()).unwrap();
        let all = verified(&storage);
        let (damage, cells) = (&one.damage[0], &all.damage[0].cells[0]);
        assert_eq!((all.damage[0].object.as_str(), cells.array.as_str()), (name.as_str(), "/line"));
        assert_eq!((&cells.domain, cells.cells), (&damage.domain, damage.cells));
        let (lo, hi): (i64, i64) = (damage.domain[0].0.parse().unwrap(), damage.domain[0].1.parse().unwrap());
        if tiles {
            let tile = damage.tile.unwrap() as i64;
            assert_eq!((lo, hi, damage.cells), (2_000 + 500 * tile, 2_499 + 500 * tile, 500));
        } else {
            assert_eq!((damage.tile, lo, hi, damage.cells), (None, 2_000, 11_999, 10_000), "the whole fragment");
        }
    }
}

#[test]
fn what_nobody_names_is_counted_and_no_damage() {
    let storage = store();
    let before = verified(&storage);
    storage.put(&format!("_data/{}.frag", "ab".repeat(16)), b"left").unwrap();
    storage.put(&format!("_manifest/{}", "cd".repeat(16)), b"over").unwrap();
    storage.put(&format!("_lease/{}", "ef".repeat(16)), b"no lease").unwrap();
    let after = verified(&storage);
    assert_eq!(after.orphans.objects, before.orphans.objects + 2);
    assert_eq!(named(&after), [format!("_lease/{}", "ef".repeat(16)).as_str()].into());
    assert!(repaired(&storage, false).actions.is_empty());
}

#[test]
fn a_repair_of_a_sound_store_does_nothing_and_of_none_says_so() {
    let storage = store();
    let before = objects(storage.as_ref());
    let report = repaired(&storage, false);
    assert!(report.actions.is_empty() && report.damage.is_empty() && objects(storage.as_ref()) == before);
    let nothing: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    assert_eq!(
        repair_on(&context(4), nothing, RepairOptions { dry_run: false, cut: false }, &call()).unwrap_err().kind(),
        ErrorKind::NotFound
    );
}

#[test]
fn a_record_of_another_history_is_named() {
    let (storage, other) = (store(), store());
    let name = gridstone::storage::log_name(10);
    storage.put(&name, &other.read_all(&name).unwrap()).unwrap();
    let report = verified(&storage);
    assert!(named(&report).contains(name.as_str()), "{report:?}");
    let store = store_of(&storage);
    let newest = store.latest().unwrap();
    store.commit(&newest, Changes::new(Vec::<Operation>::new()), &mut StandardRules).unwrap();
}

/// Two vacuums that left the records below their floors, because they were young. Whatever becomes of the floor, it comes back as the
/// second one decided it: what lies below is gone in part.
#[test]
fn a_floor_above_young_records_comes_back() {
    let storage = store();
    let line = open(&context(4), &storage, "/line", At::Latest).unwrap();
    for keep in [9, 2] {
        let day = VacuumOptions { safety_us: 86_400_000_000, ..options(Keep::Versions(keep)) };
        let report = line.vacuum(&day, &call()).unwrap();
        assert!(report.oldest > report.oldest_before && report.records.objects == 0, "{report:?}");
        write(&line, &many(700, 20, 13)).unwrap();
        line.consolidate(&Strategy::All, 1 << 20, false, &call()).unwrap();
    }
    let (whole, floor) = (objects(storage.as_ref()), store_of(&storage).floor().unwrap().unwrap());
    assert!(whole.contains_key("_log/00000000000000000001") && floor.version > 9);
    let kept: Vec<_> = (floor.version..=line.version()).collect();
    for (how, bad) in damages(&whole[FLOOR]) {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        for (name, bytes) in whole.iter().filter(|(name, _)| *name != FLOOR) {
            storage.put(name, bytes).unwrap();
        }
        if let Some(bad) = &bad {
            storage.put(FLOOR, bad).unwrap();
        }
        assert!(named(&verified(&storage)).contains(FLOOR), "{how}");
        repaired(&storage, false);
        let report = verified(&storage);
        assert!(report.damage.is_empty() && report.oldest == floor.version, "{how}: {report:?}");
        for version in &kept {
            read(&open(&context(4), &storage, "/line", At::Version(*version)).unwrap()).unwrap();
        }
        let array = open(&context(4), &storage, "/line", At::Latest).unwrap();
        array.vacuum(&options(Keep::Versions(1)), &call()).unwrap();
        assert!(store_of(&storage).floor().unwrap().unwrap().version >= floor.version, "{how}");
        assert!(verified(&storage).damage.is_empty(), "{how}");
    }
}
