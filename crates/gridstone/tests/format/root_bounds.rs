//! Promise: nothing that is committed makes what every opening reads grow beyond a bound; and whatever has grown can be made smaller.

use crate::support::line::{create, write};
use crate::support::store::{open, options};
use gridstone::base::{ErrorKind, Id, NeverCancel, Result, Silent};
use gridstone::engine::{At, Keep};
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::Schema;
use gridstone::storage::{MemoryStorage, Storage};
use gridstone::store::{Changes, Operation, Snapshot, StandardRules, Store};
use std::sync::Arc;

const SCHEMA: &str = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

fn store_in(storage: &Arc<dyn Storage>, bytes_max: u64) -> Store {
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    store.with_fold_versions(8).with_root_bytes_max(bytes_max)
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn set(node: Id, key: &str, len: usize) -> Operation {
    let value = (len > 0).then(|| format!("\"{}\"", "x".repeat(len)));
    Operation::SetMetadata { node, changes: vec![(key.to_owned(), value)] }
}

fn commit(store: &Store, operations: Vec<Operation>) -> Result<Arc<Snapshot>> {
    store.commit(&store.latest()?, Changes::new(operations), &mut StandardRules)
}

fn objects(storage: &Arc<dyn Storage>) -> usize {
    ["_log", "_data", "_manifest"].iter().map(|folder| storage.list(folder).unwrap().len()).sum()
}

#[test]
fn metadata_are_refused_beyond_the_bound_before_anything_is_written() {
    let (storage, bytes_max) = (memory(), 20_000);
    let store = store_in(&storage, bytes_max);
    let root = store.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    let refused = (0..100).find(|n| match commit(&store, vec![set(root, &n.to_string(), 1_000)]) {
        Ok(_) => false,
        Err(e) => {
            assert_eq!(e.kind(), ErrorKind::Input);
            for words in ["metadata takes 0.0 MB", "Delete metadata", "in an array", "Nothing was written"] {
                assert!(e.message().contains(words), "{e}");
            }
            true
        }
    });
    assert!(matches!(refused, Some(17..=19)), "{refused:?}");
    let before = objects(&storage);
    // In every way that it may grow, also where others come to the same together.
    let id = |n: u64| Id((u128::from(n) + (1 << 100)).to_be_bytes());
    let long = |n: u64| format!("/{}{n}", "x".repeat(200));
    let arrays = (0..10).map(|n| Operation::CreateArray {
        id: id(n),
        path: long(n),
        schema: Schema::from_json(SCHEMA).unwrap(),
    });
    let groups = (0..10).map(|n| Operation::CreateGroup { id: id(n), path: long(n) });
    let tags = (0..10).map(|n| Operation::Tag { name: long(n), version: 1, replace: false });
    let twice = vec![set(root, "0", 1), set(root, "0", 3_000)];
    for operations in [arrays.collect(), groups.collect(), tags.collect(), twice] {
        assert_eq!(commit(&store, operations).unwrap_err().kind(), ErrorKind::Input);
    }
    assert_eq!(objects(&storage), before);
    // What keeps the size or makes it smaller goes, and makes room.
    commit(&store, vec![set(root, "0", 1_000)]).unwrap();
    commit(&store, vec![set(root, "0", 3_000), set(root, "1", 0), set(root, "2", 0), set(root, "3", 0)]).unwrap();
    assert!(commit(&store, vec![set(root, "1", 3_000)]).is_err());
    commit(&store, vec![set(root, "0", 0)]).unwrap();
    commit(&store, vec![set(root, "1", 3_000)]).unwrap();
}

#[test]
fn arrays_that_are_removed_make_room() {
    let storage = memory();
    let store = store_in(&storage, 20_000);
    store.create(Changes::new(Vec::new())).unwrap();
    let fresh = |n: u64| Id((u128::from(n) + (1 << 90)).to_be_bytes());
    let make = |n: u64, path: &str| Operation::CreateArray {
        id: fresh(n),
        path: path.to_owned(),
        schema: Schema::from_json(SCHEMA).unwrap(),
    };
    let most = (0..100).find(|n| commit(&store, vec![make(*n, &format!("/g/{n}"))]).is_err()).unwrap();
    assert!(most > 20, "{most}");
    // Overwriting one takes no more than there is, again and again.
    for n in 100..120 {
        let old = store.latest().unwrap().node("/g/0").unwrap().id();
        commit(&store, vec![Operation::Remove { id: old }, make(n, "/g/0")]).unwrap();
    }
    let group = store.latest().unwrap().node("/g").unwrap().id();
    commit(&store, vec![Operation::Remove { id: group }]).unwrap();
    commit(&store, vec![make(200, "/g/0")]).unwrap();
}

/// A tag that names another version, and a node with an equal or shorter path, take no more than they did.
#[test]
fn what_keeps_the_size_is_never_refused() {
    let storage = memory();
    let old = store_in(&storage, u64::MAX);
    let root = old.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    let id = |n: u64| Id((u128::from(n) + (1 << 90)).to_be_bytes());
    let group = |n: u64, path: &str| Operation::CreateGroup { id: id(n), path: path.to_owned() };
    let tag = |name: &str, version| Operation::Tag { name: name.to_owned(), version, replace: true };
    commit(&old, vec![group(0, "/above"), tag("named", 1)]).unwrap();
    let below: Vec<_> = (1..50).map(|n| group(n, &format!("/above/{n}"))).collect();
    commit(&old, below).unwrap();
    commit(&old, vec![set(root, "k", 30_000)]).unwrap();
    let store = store_in(&storage, 20_000);
    let moved = |n, from: &str, path: &str| Operation::Move { id: id(n), from: from.to_owned(), path: path.to_owned() };
    commit(&store, vec![tag("named", 2)]).unwrap();
    commit(&store, vec![moved(0, "/above", "/below")]).unwrap();
    commit(&store, vec![moved(0, "/below", "/b")]).unwrap();
    commit(&store, vec![moved(3, "/b/3", "/3")]).unwrap();
    for more in [tag("other", 2), moved(0, "/b", "/bb"), moved(3, "/3", "/a/3")] {
        assert_eq!(commit(&store, vec![more]).unwrap_err().kind(), ErrorKind::Input);
    }
    // Of a root that lies folded it is the same.
    store.pack(&store.latest().unwrap()).unwrap();
    commit(&store, vec![tag("named", 3)]).unwrap();
    commit(&store, vec![moved(0, "/b", "/c")]).unwrap();
    assert!(commit(&store, vec![moved(0, "/c", "/bb")]).is_err());
}

/// A store as code made it that knew no bound.
#[test]
fn a_store_beyond_the_bound_can_be_mended() {
    let storage = memory();
    let array = create(&crate::support::store::context(8), &storage, "/line", false);
    let old = store_in(&storage, u64::MAX);
    let root = old.latest().unwrap().node("/").unwrap().id();
    (0..40).for_each(|n| drop(commit(&old, vec![set(root, &n.to_string(), 1_000)]).unwrap()));
    let store = store_in(&storage, 20_000);
    assert!(commit(&store, vec![set(root, "new", 10)]).is_err());
    // Cells are written, what is there is kept, replaced and removed, the list is packed, versions are forgotten.
    array.refresh().unwrap();
    write(&array, &[(1, 1)].into()).unwrap();
    commit(&store, vec![set(root, "0", 900)]).unwrap();
    store.pack(&store.latest().unwrap()).unwrap();
    (1..15).for_each(|n| drop(commit(&store, vec![set(root, &n.to_string(), 0)]).unwrap()));
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    assert!(commit(&store, vec![set(root, "new", 10)]).is_err(), "25 are left");
    (15..30).for_each(|n| drop(commit(&store, vec![set(root, &n.to_string(), 0)]).unwrap()));
    commit(&store, vec![set(root, "new", 10)]).unwrap();
    let newest = open(&crate::support::store::context(8), &storage, "/line", At::Latest).unwrap();
    assert_eq!(crate::support::line::read(&newest).unwrap(), [(1, 1)].into());
}

#[test]
fn single_keys_and_values_are_bounded() {
    let store = store_in(&memory(), u64::MAX);
    let root = store.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    for operation in [set(root, &"k".repeat((1 << 16) + 1), 1), set(root, "k", (64 << 20) + 1)] {
        let error = commit(&store, vec![operation]).unwrap_err();
        assert!(error.kind() == ErrorKind::Input && error.message().contains("in an array"), "{error}");
    }
    commit(&store, vec![set(root, &"k".repeat(1 << 16), 1), set(root, "k", 1 << 20)]).unwrap();
}

/// The real sizes: 280 MB of metadata, of which code before could read and fold nothing any more.
#[test]
fn nearly_three_hundred_megabytes_of_metadata_can_be_mended() {
    if std::env::var_os("GRIDSTONE_TEST_DEEP").is_none() {
        return;
    }
    let storage = memory();
    let old = store_in(&storage, u64::MAX);
    let root = old.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    let time = std::time::Instant::now();
    (0..5).for_each(|n| drop(commit(&old, vec![set(root, &n.to_string(), 56_000_000)]).unwrap()));
    println!("written: {:?}", time.elapsed());
    let store = Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy));
    store.pack(&store.latest().unwrap()).unwrap();
    println!("packed: {:?}", time.elapsed());
    let refused = commit(&store, vec![set(root, "new", 10)]).unwrap_err();
    assert!(refused.message().contains("metadata takes 280.0 MB"), "{refused}");
    println!("refused: {:?}", time.elapsed());
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    println!("vacuumed: {:?}", time.elapsed());
    commit(&store, vec![set(root, "0", 0)]).unwrap();
    commit(&store, vec![set(root, "1", 0)]).unwrap();
    store.pack(&store.latest().unwrap()).unwrap();
    println!("packed anew: {:?}", time.elapsed());
    commit(&store, vec![set(root, "new", 10)]).unwrap();
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    println!("vacuumed anew: {:?}", time.elapsed());
}

/// Schemas count, each of their versions in full.
#[test]
fn schemas_are_refused_beyond_the_bound() {
    use gridstone::schema::{Attribute, Datatype, Evolution};
    let storage = memory();
    let store = store_in(&storage, 20_000);
    store.create(Changes::new(Vec::new())).unwrap();
    let id = Id((1u128 << 90).to_be_bytes());
    let first = Schema::from_json(SCHEMA).unwrap();
    commit(&store, vec![Operation::CreateArray { id, path: "/a".to_owned(), schema: first.clone() }]).unwrap();
    let mut last = first.clone();
    let refused = (1..100).find(|n| {
        let attr = Attribute::new(&format!("n{n}"), Datatype::Int16, true, None, "auto").unwrap();
        let step = Evolution { add: vec![attr], ..Evolution::default() };
        last = last.evolved(&first, &step).unwrap();
        match commit(&store, vec![Operation::AlterArray { id, number: *n, schema: last.clone() }]) {
            Ok(_) => false,
            Err(e) => {
                assert!(e.kind() == ErrorKind::Input && e.message().contains("Nothing was written"), "{e}");
                true
            }
        }
    });
    assert!(matches!(refused, Some(5..100)), "{refused:?}");
}
