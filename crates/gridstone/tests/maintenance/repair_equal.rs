//! Promise: objects of the manifest that hold the same come back as what they were, each under its own id: equal values of one version,
//! and values and pages of rows that become again what they were before.

use crate::support::line::{create, write};
use crate::support::manifest::Root;
use crate::support::store::{context, open, store_of};
use gridstone::engine::{Array, At, Call, RepairOptions, repair_on, verify_on};
use gridstone::storage::{MANIFEST, MemoryStorage, Storage, manifest_name};
use std::collections::BTreeMap;
use std::sync::Arc;

type Objects = BTreeMap<String, Vec<u8>>;

fn objects(storage: &Arc<dyn Storage>) -> Objects {
    let names = ["_log", "_data", MANIFEST].iter().flat_map(|folder| storage.list(folder).unwrap());
    names.map(|name| (name.clone(), storage.read_all(&name).unwrap().to_vec())).collect()
}

fn without(objects: &Objects, lost: impl Fn(&str) -> bool) -> Arc<dyn Storage> {
    let storage = MemoryStorage::new();
    for (name, bytes) in objects.iter().filter(|(name, _)| !lost(name)) {
        storage.put(name, bytes).unwrap();
    }
    Arc::new(storage)
}

/// A text that hardly compresses.
fn text(len: usize, salt: u64) -> String {
    let word = |n: u64| format!("{:016x}", gridstone::base::xxh3(&(n + 1_000 * salt).to_le_bytes()));
    format!("\"{}\"", (0..len as u64 / 16).map(word).collect::<String>())
}

fn set(array: &Array, storage: &Arc<dyn Storage>, pairs: &[(String, String)]) {
    array.set_metadata(pairs.iter().map(|(key, text)| (key.clone(), Some(text.clone()))).collect()).unwrap();
    store_of(storage).pack(&store_of(storage).latest().unwrap()).unwrap();
    array.refresh().unwrap();
}

/// Versions with a root each. `rows` of metadata make pages of rows.
fn store(rows: u64) -> Arc<dyn Storage> {
    let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
    let line = create(&context(64), &storage, "/line", false);
    write(&line, &(0..50).map(|x| (x, x + 1)).collect()).unwrap();
    let of =
        |keys: &[&str], salt: u64| keys.iter().map(|key| ((*key).to_owned(), text(20_000, salt))).collect::<Vec<_>>();
    let small = |n: u64, salt: u64| (format!("m{n:03}"), text(4_000, 100 + salt));
    set(&line, &storage, &of(&["a", "b", "z"], 1));
    set(&line, &storage, &(0..rows).map(|n| small(n, n)).collect::<Vec<_>>());
    for salt in [7_000, 30, 7_000, 30] {
        set(&line, &storage, &[small(30, salt)]);
    }
    for salt in [2, 1, 2, 1] {
        set(&line, &storage, &of(&["a", "z"], salt));
    }
    set(&line, &storage, &of(&["c", "d", "e", "x", "y"], 3));
    storage
}

fn roots(storage: &Arc<dyn Storage>) -> Vec<String> {
    let names = storage.list(MANIFEST).unwrap();
    names.into_iter().filter(|name| storage.read_all(name).unwrap().starts_with(b"{")).collect()
}

fn starting(storage: &Arc<dyn Storage>, magic: &[u8]) -> Vec<String> {
    let names = storage.list(MANIFEST).unwrap();
    names.into_iter().filter(|name| storage.read_all(name).unwrap().starts_with(magic)).collect()
}

fn come_back(storage: &Arc<dyn Storage>, whole: &Objects, what: &str) {
    let options = RepairOptions { dry_run: false, cut: false };
    let report = repair_on(&context(64), storage.clone(), options, &Call::default()).unwrap();
    assert!(report.remaining.is_empty() && report.committed.is_none(), "{what}: {report:?}");
    let (after, differs) = (objects(storage), |name: &&String| !name.starts_with("_log/latest"));
    assert!(after.keys().filter(differs).eq(whole.keys().filter(differs)), "{what}");
    for (name, bytes) in whole.iter().filter(|(name, _)| differs(name)) {
        assert!(after[name] == *bytes, "{what}: {name} is another one");
    }
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new(), "{what}");
}

#[test]
fn equal_values_and_pages_come_back_each_as_what_it_was() {
    for (rows, pages) in [(0, 0), (60, 4)] {
        let storage = store(rows);
        let (whole, values) = (objects(&storage), starting(&storage, b"GSVALUE\0"));
        let mut contents: Vec<&Vec<u8>> = values.iter().map(|name| &whole[name]).collect();
        contents.sort();
        contents.dedup();
        assert!(values.len() > 12 && contents.len() == 3, "{} values, {} different", values.len(), contents.len());
        let of_rows = starting(&storage, b"GSROWS\0\0");
        assert!(of_rows.len() >= pages, "{}", of_rows.len());
        if rows > 0 {
            let mut contents: Vec<&Vec<u8>> = of_rows.iter().map(|name| &whole[name]).collect();
            contents.sort();
            contents.dedup();
            assert!(contents.len() < of_rows.len(), "no page became again what it was");
        }
        for lost in whole.keys().filter(|name| name.starts_with(MANIFEST)) {
            come_back(&without(&whole, |name| name == lost), &whole, &format!("{rows} rows: {lost}"));
        }
        come_back(&without(&whole, |name| values.iter().any(|lost| lost == name)), &whole, "all values");
        come_back(&without(&whole, |name| of_rows.iter().any(|lost| lost == name)), &whole, "all pages of rows");
    }
}

/// The newest root and a value that only it names: the value's id is lost, and what it held is not.
#[test]
fn a_value_whose_id_is_lost_is_written_anew() {
    let storage = store(0);
    let whole = objects(&storage);
    let newest = store_of(&storage).latest().unwrap().root().unwrap();
    let older = without(&whole, |name| name == manifest_name(newest.id));
    let unnamed = |name: &str| {
        let id = name.rsplit('/').next().unwrap();
        let bytes: Vec<u8> = (0..16).map(|at| u8::from_str_radix(&id[2 * at..2 * at + 2], 16).unwrap()).collect();
        let names = |root: &String| Root::of(&whole[root]).rows.iter().any(|row| row.value.starts_with(&bytes));
        whole[name].starts_with(b"GSVALUE\0") && !roots(&older).iter().any(names)
    };
    let lost = whole.keys().find(|name| name.starts_with(MANIFEST) && unnamed(name)).unwrap().clone();
    let storage = without(&whole, |name| name == lost || name == manifest_name(newest.id));
    let options = RepairOptions { dry_run: false, cut: false };
    let report = repair_on(&context(64), storage.clone(), options, &Call::default()).unwrap();
    assert!(report.committed.is_some(), "{report:?}");
    let array = open(&context(64), &storage, "/line", At::Latest).unwrap();
    for (key, salt) in [("a", 1), ("b", 1), ("c", 3), ("e", 3), ("y", 3), ("z", 1)] {
        assert_eq!(array.metadata(key).unwrap(), Some(text(20_000, salt)), "{key}");
    }
}
