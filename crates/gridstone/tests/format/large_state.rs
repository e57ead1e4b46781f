//! Promise: whatever a store holds, opening it, listing a group, committing and folding cost about as much as in a small store; and
//! single keys and values of metadata are bounded.

use crate::support::store::options;
use gridstone::base::{ErrorKind, Id, NeverCancel, Result, Silent};
use gridstone::engine::Keep;
use gridstone::runtime::{SystemClock, SystemEntropy};
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{CountingStorage, MemoryStorage, Operation as Kind, Storage};
use gridstone::store::{Changes, Operation, Snapshot, StandardRules, Store};
use std::sync::Arc;

const SCHEMA: &str = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99"],"tile":"10"}],
    "attrs":[{"name":"v","dtype":"int64"}]}"#;

fn store_in(storage: &Arc<dyn Storage>) -> Store {
    Store::new(storage.clone(), Arc::new(SystemClock), Arc::new(SystemEntropy))
}

fn memory() -> Arc<dyn Storage> {
    Arc::new(MemoryStorage::new())
}

fn fresh(n: u64) -> Id {
    // Ids are random: neighbours are not created together.
    let word = gridstone::base::xxh3(&n.to_le_bytes());
    Id(((u128::from(word) << 64) | u128::from(n)).to_be_bytes())
}

fn schema() -> Schema {
    Schema::from_json(SCHEMA).unwrap()
}

fn array(n: u64, path: String) -> Operation {
    Operation::CreateArray { id: fresh(n), path, schema: schema(), ext: None }
}

fn set(node: Id, key: &str, len: usize) -> Operation {
    let value = (len > 0).then(|| format!("\"{}\"", "x".repeat(len)));
    Operation::SetMetadata { node, changes: vec![(key.to_owned(), value)] }
}

fn commit(store: &Store, operations: Vec<Operation>) -> Result<Arc<Snapshot>> {
    store.commit(&store.latest()?, Changes::new(operations), &mut StandardRules)
}

/// Requests and bytes, read and written.
#[derive(Debug, Clone, Copy)]
struct Cost {
    requests: u64,
    bytes: u64,
}

/// What four calls cost in the store: opening an array, listing a level, a commit, and the fold of that commit.
fn costs(memory: &Arc<dyn Storage>) -> [(&'static str, Cost); 4] {
    let storage = Arc::new(CountingStorage::new(memory.clone()));
    let counted: Arc<dyn Storage> = storage.clone();
    let counts = || {
        let counts = storage.snapshot();
        storage.reset();
        // A bucket gets an object in one request.
        let parts = counts.count(Kind::Write) + counts.count(Kind::Finish);
        Cost { requests: counts.total() - parts, bytes: counts.bytes_read + counts.bytes_written }
    };
    let store = store_in(&counted);
    let id = store.latest().unwrap().array("/group/1").unwrap().id();
    let opening = counts();
    store_in(&counted).latest().unwrap().children("/few").unwrap();
    let listing = counts();
    let store = store_in(&counted);
    let newest = store.latest().unwrap();
    newest.array_by_id(id).unwrap();
    counts();
    let next = store.commit(&newest, Changes::new(vec![set(id, "unit", 3)]), &mut StandardRules).unwrap();
    let committing = counts();
    store.pack(&next).unwrap();
    let folding = counts();
    [("open", opening), ("list", listing), ("commit", committing), ("fold", folding)]
}

/// A store with `count` arrays in one group, folded.
fn with_arrays(count: u64) -> Arc<dyn Storage> {
    let storage = memory();
    let store = store_in(&storage);
    let few = (0..5).map(|n| array(n, format!("/few/{n}")));
    store.create(Changes::new(few.collect())).unwrap();
    // As many versions, whatever the count.
    let share = count.div_ceil(20);
    for from in (0..20).map(|part| part * share) {
        let to = (from + share).min(count);
        let arrays = (from..to).map(|n| array(n + 10, format!("/group/{n}")));
        commit(&store, arrays.collect()).unwrap();
    }
    // The search for the newest version reads the starts of the last records; here they are small.
    for n in 0..20 {
        commit(&store, vec![set(fresh(1), "n", n)]).unwrap();
    }
    store.pack(&store.latest().unwrap()).unwrap();
    storage
}

/// The same store after one more commit, folded.
fn with(storage: Arc<dyn Storage>, operations: Vec<Operation>) -> Arc<dyn Storage> {
    commit(&store_in(&storage), operations).unwrap();
    store_in(&storage).pack(&store_in(&storage).latest().unwrap()).unwrap();
    storage
}

fn check_alike(what: &str, small: [(&'static str, Cost); 4], large: [(&'static str, Cost); 4]) {
    for ((call, small), (_, large)) in small.into_iter().zip(large) {
        println!("{what}: {call} {small:?} {large:?}");
        assert!(large.requests <= small.requests + 3, "{what}: {call} {small:?} {large:?}");
        assert!(large.bytes <= small.bytes + (128 << 10), "{what}: {call} {small:?} {large:?}");
    }
}

#[test]
fn a_hundred_thousand_arrays_cost_about_as_much_as_ten() {
    check_alike("arrays", costs(&with_arrays(10)), costs(&with_arrays(100_000)));
}

#[test]
fn a_thousand_schemas_ten_thousand_keys_and_a_thousand_tags_cost_about_as_much_as_none() {
    let small = costs(&with(with_arrays(10), Vec::new()));
    let tag = |n: u64| Operation::Tag { name: format!("release {n}"), version: 1, replace: false };
    let tags = (0..1_000).map(tag).collect();
    let keys = (0..10_000).map(|n| (format!("key {n}"), Some(format!("\"the value of {n}\"")))).collect();
    // The id of /group/1.
    let id = fresh(11);
    let (first, mut last) = (schema(), schema());
    let alters = (1..=1_000u32).map(|number| {
        let attr = Attribute::new(&format!("n{}", number % 2), Datatype::Int16, true, None, "auto").unwrap();
        let drop = if number > 1 { vec![format!("n{}", (number + 1) % 2)] } else { Vec::new() };
        last = last.evolved(&first, &Evolution { add: vec![attr], drop, ..Evolution::default() }).unwrap();
        Operation::AlterArray { id, number, schema: last.clone() }
    });
    let alters = alters.collect();
    let keys = vec![Operation::SetMetadata { node: id, changes: keys }];
    for (what, operations) in [("tags", tags), ("keys", keys), ("schemas", alters)] {
        check_alike(what, small, costs(&with(with_arrays(10), operations)));
    }
}

/// The audit's case: metadata of 280 MB, after which nothing could be written any more.
#[test]
fn metadata_of_any_size_is_written_folded_and_removed() {
    let deep = std::env::var_os("GRIDSTONE_TEST_DEEP").is_some();
    let storage = memory();
    let store = store_in(&storage);
    let root = store.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    let bytes = if deep { 56_000_000 } else { 2_000_000 };
    for n in 0..5 {
        commit(&store, vec![set(root, &n.to_string(), bytes)]).unwrap();
    }
    store.pack(&store.latest().unwrap()).unwrap();
    let counting = Arc::new(CountingStorage::new(storage.clone()));
    let counted: Arc<dyn Storage> = counting.clone();
    let opened = store_in(&counted).latest().unwrap();
    // The starts of seven records, and the root.
    // The starts of records that a root stands behind, of 64 KiB each, and the root.
    assert!(counting.snapshot().bytes_read < 300_000, "{:?}", counting.snapshot());
    assert_eq!(opened.node("/").unwrap().metadata().get("3").unwrap().unwrap().len(), bytes + 2);
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    commit(&store, (0..4).map(|n| set(root, &n.to_string(), 0)).collect()).unwrap();
    gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    let left: usize = storage.list("_manifest").unwrap().len();
    assert!(left <= 4, "{left}: the root, what it names, and the root before");
    assert_eq!(store.latest().unwrap().node("/").unwrap().metadata().all().unwrap().len(), 1);
}

#[test]
fn single_keys_and_values_are_bounded() {
    let store = store_in(&memory());
    let root = store.create(Changes::new(Vec::new())).unwrap().node("/").unwrap().id();
    for operation in [set(root, &"k".repeat((1 << 16) + 1), 1), set(root, "k", (64 << 20) + 1)] {
        let error = commit(&store, vec![operation]).unwrap_err();
        assert!(error.kind() == ErrorKind::Input && error.message().contains("in an array"), "{error}");
    }
    commit(&store, vec![set(root, &"k".repeat(1 << 16), 1), set(root, "k", 1 << 20)]).unwrap();
    store.pack(&store.latest().unwrap()).unwrap();
    assert_eq!(store.latest().unwrap().node("/").unwrap().metadata().all().unwrap().len(), 2);
}

/// The rows of what lay below a removed group go with it; what was moved out before stays.
#[test]
fn a_removed_group_leaves_no_rows() {
    let storage = with_arrays(3_000);
    let store = store_in(&storage);
    let newest = store.latest().unwrap();
    let (group, kept) = (newest.node("/group").unwrap().id(), newest.node("/group/7").unwrap().id());
    let operations = vec![
        Operation::Move { id: kept, from: "/group/7".to_owned(), path: "/few/kept".to_owned() },
        Operation::Remove { id: group },
    ];
    let next = commit(&store, operations).unwrap();
    store.pack(&next).unwrap();
    for snapshot in [store.latest().unwrap(), store_in(&storage).latest().unwrap()] {
        assert_eq!(snapshot.nodes().unwrap().len(), 2 + 5 + 1);
        assert_eq!(snapshot.array("/few/kept").unwrap().id(), kept);
    }
    let report = gridstone::maintain::vacuum(&store, &options(Keep::Versions(1)), &NeverCancel, &Silent).unwrap();
    assert!(report.manifest.objects > 5, "{report:?}");
    let left: u64 =
        storage.list("_manifest").unwrap().iter().map(|name| storage.read_all(name).unwrap().len() as u64).sum();
    assert!(left < 20_000, "{left}");
}
