//! Promise: what was written stays readable. The committed vectors read as `expect.json` says, and the code still
//! makes the very same bytes, so that no change of the format goes unseen.
#![expect(clippy::unwrap_used, reason = "helpers of tests")]

#[path = "../../examples/make_vectors/case.rs"]
pub(crate) mod case;
#[path = "../../examples/make_vectors/cases/mod.rs"]
pub(crate) mod cases;
#[path = "../../examples/make_vectors/model.rs"]
mod model;
#[path = "../../examples/make_vectors/newer.rs"]
mod newer;
#[path = "../../examples/make_vectors/parts.rs"]
mod parts;
#[path = "../../examples/make_vectors/value.rs"]
mod value;
#[path = "../../examples/make_vectors/world.rs"]
mod world;

use gridstone::base::{ErrorKind, Key, Keys};
use gridstone::engine::{
    Array, At, Call, Column, Context, Field, Opened, Options, ReadOrder, Span, create_group_on, open_on, upgrade_on,
    verify_on,
};
use gridstone::schema::Schema;
use gridstone::storage::{Durability, Fault, FaultPlan, FaultyStorage, LocalStorage, MemoryStorage, Storage};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The vectors of a format.
pub(crate) fn folder(format: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../vectors").join(format)
}

pub(crate) fn json(path: &Path) -> Value {
    serde_json::from_slice(&fs::read(path).unwrap()).unwrap()
}

pub(crate) fn context_of(expect: &Value) -> Context {
    let key = expect["key"].as_str().map(|key| Arc::new(Key::parse(key).unwrap()) as Arc<dyn Keys>);
    Context::new(&Options { threads: Some(1), key, ..Options::default() }).unwrap()
}

/// The store on `storage` reads as `expect` says, at every version.
pub(crate) fn check_store(storage: &Arc<dyn Storage>, expect: &Value) {
    let context = context_of(expect);
    if expect["versions"].as_array().unwrap().is_empty() {
        let opened = open_on(&context, storage.clone(), "/", false, At::Latest);
        assert_eq!(opened.unwrap_err().kind(), ErrorKind::NotFound, "{}", expect["case"]);
    }
    for version in expect["versions"].as_array().unwrap() {
        let number = version["version"].as_u64().unwrap();
        for node in version["nodes"].as_array().unwrap() {
            let path = node["path"].as_str().unwrap();
            let where_ = format!("{} version {number} {path}", expect["case"]);
            let (owner, name) = match node["hidden"] == true {
                true => path.rsplit_once('/').map(|(owner, name)| (owner, Some(name))).unwrap(),
                false => (path, None),
            };
            match open_on(&context, storage.clone(), owner, false, At::Version(number)).unwrap() {
                Opened::Group(_) => assert_eq!(node["kind"], "group", "{where_}"),
                Opened::Array(array) => {
                    let array = if let Some(name) = name { array.hidden(name).unwrap() } else { array };
                    check_array(&array, node, version, &where_);
                }
            }
        }
    }
}

fn stored(schema: &Schema) -> Value {
    serde_json::from_str(&schema.to_stored_json()).unwrap()
}

/// The metadata of all attributes and dimensions that have some, as `expect.json` holds it.
fn fields_of(array: &Array) -> Vec<Value> {
    let schema = array.schema().unwrap();
    let attrs = schema.attrs().iter().map(|attr| ("attr", attr.id(), Field::Attribute(attr.id())));
    let dims = (0..schema.coordinates().count() as u32).map(|place| ("dim", place, Field::Dimension(place)));
    let told = attrs.chain(dims).map(|(sort, number, field)| (sort, number, array.all_field_metadata(field).unwrap()));
    let told = told.filter(|(_, _, metadata)| !metadata.is_empty());
    told.map(|(sort, number, metadata)| serde_json::json!({sort: number, "metadata": *metadata})).collect()
}

#[test]
fn the_engine_reads_every_vector() {
    // It registers the filter of a user's own that one of them was written with.
    cases::all().unwrap();
    for (format, count) in [("gs0", 43), ("gs1", cases::all().unwrap().len())] {
        let mut seen = 0;
        for case in fs::read_dir(folder(format)).unwrap() {
            let case = case.unwrap().path();
            let expect = json(&case.join("expect.json"));
            let storage: Arc<dyn Storage> = Arc::new(LocalStorage::new(case.join("store"), Durability::Full).unwrap());
            check_store(&storage, &expect);
            seen += 1;
        }
        assert_eq!(seen, count, "{format}");
    }
}

/// A store of GS0 in memory.
pub(crate) fn loaded(case: &Path) -> MemoryStorage {
    let (memory, store) = (MemoryStorage::new(), case.join("store"));
    let mut names = Vec::new();
    list(&store, &store, &mut names);
    for name in names {
        memory.put(&name, &fs::read(store.join(&name)).unwrap()).unwrap();
    }
    memory
}

pub(crate) fn gs0_cases() -> Vec<PathBuf> {
    let cases = fs::read_dir(folder("gs0")).unwrap().map(|case| case.unwrap().path());
    let mut found: Vec<PathBuf> =
        cases.filter(|case| !json(&case.join("expect.json"))["versions"].as_array().unwrap().is_empty()).collect();
    found.sort();
    found
}

/// A store of the older format is read, refuses writes, is upgraded without a change, and then written.
#[test]
fn every_older_store_is_upgraded_and_written() {
    cases::all().unwrap();
    for case in gs0_cases() {
        let (expect, memory) = (json(&case.join("expect.json")), loaded(&case));
        let (storage, context): (Arc<dyn Storage>, _) = (Arc::new(memory.clone()), context_of(&expect));
        let create = |path: &str| create_group_on(&context, storage.clone(), path);
        let refused = create("/after").unwrap_err();
        assert_eq!(refused.kind(), ErrorKind::Unsupported, "{case:?}: {refused}");
        assert!(refused.message().contains("gridstone upgrade"), "{refused}");
        let data = storage.list("_data").unwrap();
        let newest = expect["versions"].as_array().unwrap().last().unwrap()["version"].as_u64().unwrap();
        let upgraded = upgrade_on(&context, storage.clone()).unwrap();
        assert!(upgraded > newest, "{case:?}");
        assert_eq!(upgrade_on(&context, storage.clone()).unwrap(), upgraded, "{case:?}: once is enough");
        assert!(storage.list("_data").unwrap().len() <= data.len() + 1, "{case:?}: a pack at most");
        check_store(&storage, &expect);
        assert_eq!(verify_on(&context, storage.clone(), &Call::default()).unwrap().damage, Vec::new(), "{case:?}");
        if let Ok(group) = create("/after") {
            assert_eq!(group.version(), upgraded + 1);
        }
        check_store(&storage, &expect);
    }
}

/// An upgrade that stops at any operation of the storage leaves a store that reads the same, of either format, and can
/// be upgraded.
#[test]
fn an_upgrade_may_stop_anywhere() {
    cases::all().unwrap();
    for case in gs0_cases() {
        let expect = json(&case.join("expect.json"));
        let context = context_of(&expect);
        for fault in [Fault::Error, Fault::ErrorAfter, Fault::Torn, Fault::Kill] {
            for step in 1.. {
                let (memory, plan) = (loaded(&case), FaultPlan::new());
                let failing: Arc<dyn Storage> =
                    Arc::new(FaultyStorage::new(Arc::new(memory.clone()), Arc::clone(&plan)));
                plan.fail_nth(step, fault);
                let outcome = upgrade_on(&context, failing);
                if !plan.struck() {
                    outcome.unwrap();
                    assert!(step > 3, "{case:?}");
                    break;
                }
                let storage: Arc<dyn Storage> = Arc::new(memory);
                check_store(&storage, &expect);
                upgrade_on(&context, storage.clone()).unwrap();
                check_store(&storage, &expect);
            }
        }
    }
}

pub(crate) fn check_array(array: &Array, node: &Value, version: &Value, place: &str) {
    assert_eq!(node["kind"], "array", "{place}");
    assert_eq!(array.time_us(), version["time_us"].as_i64().unwrap(), "{place}");
    let schema = array.schema().unwrap();
    assert_eq!(stored(&schema), node["schema"], "{place}");
    assert_eq!(fields_of(array), node["fields"].as_array().cloned().unwrap_or_default(), "{place}");
    let keys = array.metadata_keys().unwrap();
    let metadata: BTreeMap<String, String> =
        keys.iter().map(|k| (k.clone(), array.metadata(k).unwrap().unwrap())).collect();
    assert_eq!(serde_json::to_value(metadata).unwrap(), node["metadata"], "{place}");
    for read in node["reads"].as_array().unwrap() {
        // Along texts all is read; so is all of an array without a cell, and of one without a dimension.
        let sub: Option<Vec<Option<(String, String)>>> = serde_json::from_value(read["box"].clone()).unwrap();
        let sub = sub.filter(|_| !schema.is_scalar());
        let (cells, shape) = if schema.sparse() {
            let open = Span { lo: None, hi: None, below: false };
            let span =
                |ends: &Option<(String, String)>| ends.as_ref().map_or(open.clone(), |(lo, hi)| Span::between(lo, hi));
            let region = sub.as_ref().map(|sub| array.region(&[sub.iter().map(span).collect()]).unwrap());
            let found = array.read_region(region.as_ref(), None, None, ReadOrder::Global, &Call::default());
            (found.unwrap().0, None)
        } else {
            let sub: Option<Vec<(String, String)>> = sub.clone().map(|sub| sub.into_iter().flatten().collect());
            let (cells, shape, _) = array.read(sub.as_deref(), None, ReadOrder::Row, &Call::default()).unwrap();
            (cells, shape)
        };
        assert_eq!(shape.is_some(), !schema.sparse(), "{place} {sub:?}");
        let places: Option<u64> = shape.map(|shape| shape.iter().product());
        assert!(places.is_none_or(|places| places == cells.count as u64), "{place} {sub:?}");
        assert_eq!(cells.count as u64, read["cells"].as_u64().unwrap(), "{place} {sub:?}");
        for (dim, column) in schema.coordinates().zip(&cells.dims) {
            let found = value::column(column.datatype(), &cells_of(column));
            assert_eq!(found, read["columns"][dim.name()], "{place} {sub:?} {}", dim.name());
        }
        for (attr, column) in schema.attrs().iter().zip(&cells.attrs) {
            let found = value::of_attr(attr, &cells_of(column));
            assert_eq!(found, read["columns"][attr.name()], "{place} {sub:?} {}", attr.name());
        }
    }
    assert!(array.verify(&Call::default()).unwrap().damage.is_empty(), "{place}");
}

fn cells_of(column: &Column) -> Vec<value::Cell> {
    let view = column.view();
    (0..view.len()).map(|row| view.is_valid(row).then(|| view.value(row).to_vec())).collect()
}

/// Fails on any change of what is written. If the change is meant: a spec page, a row in the history table of
/// `docs/format/README.md`, and `cargo run --release -p gridstone --example make_vectors -- vectors/gs1`.
#[test]
fn the_vectors_are_made_again_byte_for_byte() {
    for case in cases::all().unwrap() {
        let root = folder("gs1").join(case.name);
        let made = case.files().unwrap();
        let mut there = Vec::new();
        list(&root, &root, &mut there);
        assert_eq!(there, made.keys().cloned().collect::<Vec<_>>(), "{}: the files of the vector", case.name);
        for (name, bytes) in made {
            let committed = fs::read(root.join(&name)).unwrap();
            let first = committed.iter().zip(&bytes).position(|(a, b)| a != b);
            let differs = committed != bytes;
            assert!(
                !differs,
                "{}/{name}: {} bytes, now {}, first difference at {first:?}",
                case.name,
                committed.len(),
                bytes.len()
            );
        }
    }
}

fn list(root: &Path, folder: &Path, found: &mut Vec<String>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            list(root, &path, found);
        } else {
            found.push(path.strip_prefix(root).unwrap().to_str().unwrap().replace('\\', "/"));
        }
    }
    found.sort();
}
