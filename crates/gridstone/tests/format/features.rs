//! Promise: features in a schema concern its array alone. An array that this release cannot read is listed, moved, removed, folded,
//! vacuumed and copied with its store; one that it cannot write is read. `ext` objects of schemas and nodes survive.

use super::newer::{line_of, newest, open_for_writing, reword, some, store};
use crate::support::copy::{WHOLE, copied, memory};
use crate::support::line::{create, read, write};
use crate::support::room::{base, commit, entry, ext, id_of, range};
use crate::support::store::{context, open, store_of, vacuum};
use gridstone::base::{Entropy, Error, ErrorKind};
use gridstone::engine::{At, Call, CopyOptions, Keep, Opened, Strategy, move_node_on, open_on, verify_on};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{LATEST, MemoryStorage, Storage, log_name};
use gridstone::store::{Condemned, Field, Node, Operation, Owner, Record};
use std::collections::BTreeSet;
use std::sync::Arc;

type Memory = Arc<dyn Storage>;

/// What this release cannot read: a feature, a type, a key.
const UNREADABLE: &str = r#"{"read":["wavelets"],"folds":7,"dims":[{"name":"x","dtype":"int64","domain":["0","19999"],"tile":"9","halo":3}],"attrs":[{"name":"v","dtype":"quaternion"}],"ext":{"of":"schema"}}"#;
const WITH_EXT: &str = r#"{"sparse":true,"write":WRITE,"ext":{"of":"schema"},
    "dims":[{"name":"x","dtype":"int64","domain":["0","19999"],"tile":"1000","ext":{"of":["x",1]}}],
    "attrs":[{"name":"v","dtype":"int64","ext":{"of":"v"}},{"name":"w","dtype":"int8","ext":{"of":"w"}}]}"#;

fn with_ext(write: &str) -> Schema {
    Schema::from_stored_json(&WITH_EXT.replace("WRITE", write)).unwrap()
}

fn make(storage: &Memory, path: &str, schema: Schema) {
    let (id, ext) = (SystemEntropy.id(), ext(r#"{"of":"node"}"#));
    commit(storage, vec![Operation::CreateArray { id, path: path.to_owned(), schema, ext }]).unwrap();
}

fn is_unknown(error: &Error, feature: &str) {
    assert_eq!(error.kind(), ErrorKind::Unsupported, "{error}");
    assert!(error.message().contains(feature) && error.message().contains("use a newer Gridstone"), "{error}");
}

fn fold(storage: &Memory) {
    let store = store_of(storage);
    store.pack(&store.latest().unwrap()).unwrap();
}

/// The newest schema of an array as it is stored.
fn stored(storage: &Memory, path: &str) -> String {
    match store_of(storage).latest().unwrap().node(path).unwrap() {
        Node::Array(array) => array.schema().to_stored_json(),
        Node::Group(_) => panic!("{path} is a group"),
    }
}

#[test]
fn an_array_with_an_unknown_feature_is_kept_as_it_is() {
    let storage = store();
    make(&storage, "/far", Schema::from_stored_json(UNREADABLE).unwrap());
    let check = |storage: &Memory, path: &str, what: &str| {
        is_unknown(&open(&context(64), storage, path, At::Latest).unwrap_err(), "\"wavelets\"");
        is_unknown(&store_of(storage).latest().unwrap().array(path).unwrap_err(), "\"wavelets\"");
        assert_eq!(stored(storage, path), UNREADABLE, "{what}");
        match open_on(&context(64), storage.clone(), "/", false, At::Latest).unwrap() {
            Opened::Group(group) => {
                let children = group.children().unwrap();
                assert!(children.iter().any(|(name, ..)| *name == path[1..]), "{what}: {children:?}");
                is_unknown(&group.open(&path[1..], false, false).unwrap_err(), "\"wavelets\"");
            }
            Opened::Array(_) => panic!("a group was made"),
        }
        let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
        assert_eq!(report.damage, Vec::new(), "{what}");
        assert!(report.unchecked.len() == 1 && report.unchecked[0].contains("/far"), "{what}: {report:?}");
        assert!(read(&newest(storage).unwrap()).unwrap().len() >= 40, "{what}");
    };
    check(&storage, "/far", "committed");
    fold(&storage);
    check(&storage, "/far", "folded");
    // What lies beside it goes on, and so does what needs no schema.
    write(&open_for_writing(&storage), &some(300)).unwrap();
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    open_for_writing(&storage).consolidate(&Strategy::All, 1 << 20, false, &Call::default()).unwrap();
    move_node_on(&context(64), storage.clone(), "/far", "/farther", None).unwrap();
    check(&storage, "/farther", "moved");
    let grow = Operation::Grow { array: id_of(&storage, "/farther"), dimension: 0, range: range(-5, 5).ranges()[0] };
    is_unknown(&commit(&storage, vec![grow]).unwrap_err(), "\"wavelets\"");
    for path in ["/", "/farther"] {
        let target = memory();
        is_unknown(&copied(&storage, &target, &CopyOptions { path, ..WHOLE }).unwrap_err(), "\"wavelets\"");
        assert!(target.list("_data").unwrap().is_empty());
    }
    let target = memory();
    copied(&storage, &target, &CopyOptions { history: true, ..WHOLE }).unwrap();
    check(&target, "/farther", "copied with the history");
    commit(&storage, vec![Operation::Remove { id: id_of(&storage, "/farther") }]).unwrap();
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    assert!(store_of(&storage).latest().unwrap().find("/farther").unwrap().is_none());
}

#[test]
fn a_newer_release_goes_on_with_an_array_that_this_one_cannot_read() {
    // Its records are replayed, folded and rebuilt here: schemas, growth, fragments, kept files.
    let storage: Memory = Arc::new(MemoryStorage::new());
    write(&create(&context(64), &storage, "/line", false), &some(10)).unwrap();
    write(&open_for_writing(&storage), &some(300)).unwrap();
    let features = |line: &str| line.replace("\"sparse\":true", "\"read\":[\"wavelets\"],\"sparse\":7");
    reword(&storage, &log_name(1), features);
    storage.delete("_log/latest").unwrap();
    let newest = store_of(&storage).latest().unwrap();
    let Node::Array(array) = newest.node("/line").unwrap() else { panic!("it is an array") };
    assert_eq!((array.count_fragments(), array.domain()), (2, &range(0, 19_999)));
    fold(&storage);
    let folded = store_of(&storage).latest().unwrap();
    let Node::Array(array) = folded.node("/line").unwrap() else { panic!("it is an array") };
    assert_eq!((array.count_fragments(), array.domain()), (2, &range(0, 19_999)));
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
}

/// Each operation may have an `ext`: readers take no notice of it.
#[test]
fn an_ext_of_any_operation_is_ignored() {
    let storage = store();
    let newest = store_of(&storage).latest().unwrap();
    let (line, grid) = (newest.node("/line").unwrap().id(), newest.node("/grid").unwrap().id());
    let commit = |operations: Vec<Operation>| commit(&storage, operations).unwrap();
    let range = range(0, 20_009).ranges()[0];
    let kept = entry(&storage, Owner::Array, "kept");
    let (entry, none) = (kept.entry, Vec::new());
    let schema = (**newest.array("/line").unwrap().schema()).clone();
    commit(vec![Operation::Grow { array: line, dimension: 0, range }]);
    commit(vec![Operation::AlterArray { id: line, number: 1, schema }]);
    commit(vec![Operation::Tag { name: "tag".to_owned(), version: 7, replace: false }]);
    commit(vec![Operation::Untag { name: "tag".to_owned(), version: 7 }]);
    commit(vec![Operation::Keep { array: line, kept, near: None }]);
    commit(vec![Operation::Release { array: line, entry }]);
    commit(vec![Operation::SetBase { number: 3, base: Some(Arc::new(base("b"))), before: None }]);
    commit(vec![Operation::SetMetadata { node: grid, changes: vec![("k".to_owned(), Some("1".to_owned()))] }]);
    let field = Field::Attribute(0);
    commit(vec![Operation::SetFieldMetadata { array: line, field, changes: vec![("k".to_owned(), None)] }]);
    let condemned = Condemned { floor: None, data: none.clone(), manifest: none.clone(), forget: none };
    commit(vec![Operation::Condemn(condemned)]);
    let merge = Strategy::All;
    open_for_writing(&storage).consolidate(&merge, 1 << 20, false, &Call::default()).unwrap();
    move_node_on(&context(64), storage.clone(), "/grid", "/moved", None).unwrap();
    commit(vec![Operation::Remove { id: grid }]);
    let last = store_of(&storage).latest().unwrap().version();
    let nodes = |version: u64| {
        let nodes = store_of(&storage).at_version(version).unwrap().nodes().unwrap();
        nodes.iter().map(|node| format!("{} {}", node.path(), node.kind())).collect::<Vec<_>>()
    };
    let before: Vec<_> = (1..=last).map(nodes).collect();
    let mut seen = BTreeSet::new();
    for version in (1..=last).filter(|version| *version != 7) {
        let operation = line_of(&storage, &log_name(version)).split_once("{\"op\":\"").unwrap().1.to_owned();
        let name = operation.split('"').next().unwrap().to_owned();
        let (from, to) = (format!("\"op\":\"{name}\""), format!("\"op\":\"{name}\",\"ext\":{{\"a\":[1]}}"));
        reword(&storage, &log_name(version), |line| line.replacen(&from, &to, 1));
        seen.insert(name);
    }
    storage.delete(LATEST).unwrap();
    assert_eq!(seen.len(), 14, "all but the one that creates a group: {seen:?}");
    assert_eq!((1..=last).map(nodes).collect::<Vec<_>>(), before);
    let store = store_of(&storage);
    store.pack(&store.latest().unwrap()).unwrap();
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
    assert_eq!(read(&open_for_writing(&storage)).unwrap().len(), 40);
    // What is no object is no ext.
    reword(&storage, &log_name(last), |line| line.replacen("\"ext\":{\"a\":[1]}", "\"ext\":7", 1));
    assert_eq!(store_of(&storage).record(last).unwrap_err().kind(), ErrorKind::Corruption);
}

#[test]
fn hidden_arrays_of_an_array_with_an_unknown_feature_of_writers_neither_come_nor_go() {
    let storage = store();
    let (id, along) = (
        SystemEntropy.id(),
        r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
    );
    make(&storage, "/far", with_ext("[]"));
    let (owner, schema) = (id_of(&storage, "/far"), Schema::from_json(along).unwrap());
    let hide = |id, name: &str| Operation::CreateHidden {
        id,
        owner,
        name: name.to_owned(),
        schema: schema.clone(),
        ext: None,
    };
    commit(&storage, vec![hide(id, "@x")]).unwrap();
    let altered = Operation::AlterArray { id: owner, number: 1, schema: with_ext("[\"wavelets\"]") };
    commit(&storage, vec![altered]).unwrap();
    is_unknown(&commit(&storage, vec![hide(SystemEntropy.id(), "@y")]).unwrap_err(), "\"wavelets\"");
    is_unknown(&commit(&storage, vec![Operation::Remove { id }]).unwrap_err(), "\"wavelets\"");
    let newest = store_of(&storage).latest().unwrap();
    assert_eq!(newest.hidden_in(&newest.array_by_id(owner).unwrap()).unwrap().len(), 1);
    move_node_on(&context(64), storage.clone(), "/far", "/moved", None).unwrap();
    commit(&storage, vec![Operation::Remove { id: owner }]).unwrap();
    assert!(store_of(&storage).latest().unwrap().node_by_id(id).unwrap().is_none());
}

#[test]
fn an_array_with_an_unknown_feature_of_writers_is_read() {
    let storage = store();
    make(&storage, "/far", with_ext("[\"wavelets\"]"));
    fold(&storage);
    let array = open(&context(64), &storage, "/far", At::Latest).unwrap();
    assert!(read(&array).unwrap().is_empty());
    let id = id_of(&storage, "/far");
    let next =
        with_ext("[]").evolved(&with_ext("[]"), &Evolution { nullable: vec!["v".to_owned()], ..Default::default() });
    let kept = entry(&storage, Owner::Array, "content");
    for operation in [
        Operation::Grow { array: id, dimension: 0, range: range(0, 20_000).ranges()[0] },
        Operation::AlterArray { id, number: 1, schema: next.unwrap() },
        Operation::SetMetadata { node: id, changes: vec![("k".to_owned(), Some("1".to_owned()))] },
        Operation::Keep { array: id, kept, near: None },
    ] {
        is_unknown(&commit(&storage, vec![operation]).unwrap_err(), "\"wavelets\"");
    }
    let evolution = Evolution { drop: vec!["w".to_owned()], ..Evolution::default() };
    is_unknown(&array.alter(&evolution, None).unwrap_err(), "\"wavelets\"");
    copied(&storage, &memory(), &CopyOptions { path: "/far", ..WHOLE }).unwrap();
    move_node_on(&context(64), storage.clone(), "/far", "/farther", None).unwrap();
    commit(&storage, vec![Operation::Remove { id }]).unwrap();
}

#[test]
fn ext_of_schemas_and_nodes_survives_changes_folds_and_copies() {
    let storage = store();
    make(&storage, "/far", with_ext("[]"));
    let check = |storage: &Memory, what: &str, attrs: [Option<&str>; 2]| {
        let schema: serde_json::Value = serde_json::from_str(&stored(storage, "/far")).unwrap();
        assert_eq!(schema["ext"]["of"], "schema", "{what}");
        assert_eq!(schema["dims"][0]["ext"]["of"], serde_json::json!(["x", 1]), "{what}");
        let found = [0, 1].map(|at| schema["attrs"][at]["ext"]["of"].as_str());
        assert_eq!(found, attrs, "{what}: {schema}");
        let Node::Array(array) = store_of(storage).latest().unwrap().node("/far").unwrap() else { panic!("an array") };
        assert_eq!(array.ext(), &ext(r#"{"of":"node"}"#), "{what}");
    };
    check(&storage, "made", [Some("v"), Some("w")]);
    fold(&storage);
    check(&storage, "folded", [Some("v"), Some("w")]);
    let array = open(&context(64), &storage, "/far", At::Latest).unwrap();
    let added = Attribute::new("z", Datatype::Int8, true, None, "auto").unwrap();
    let evolution = Evolution {
        drop: vec!["v".to_owned()],
        rename: vec![("w".to_owned(), "v".to_owned())],
        add: vec![added],
        domains: vec![("x".to_owned(), "-7".to_owned(), "30000".to_owned())],
        ..Evolution::default()
    };
    array.alter(&evolution, None).unwrap();
    check(&storage, "changed", [Some("w"), None]);
    vacuum(&array, Keep::Versions(1)).unwrap();
    check(&storage, "vacuumed", [Some("w"), None]);
    for (options, what) in [(WHOLE, "copied"), (CopyOptions { history: true, ..WHOLE }, "copied with its history")] {
        let target = memory();
        copied(&storage, &target, &options).unwrap();
        check(&target, what, [Some("w"), None]);
        fold(&target);
        check(&target, what, [Some("w"), None]);
    }
    let named = "\"read\", \"write\" and \"ext\" are written by the store";
    let error = Schema::from_json(&stored(&storage, "/far").replace("\"id\":1,", "")).unwrap_err();
    assert!(error.message().contains("given by the store") || error.message().contains(named), "{error}");
}

#[test]
fn records_of_the_first_form_have_none_of_it() {
    let storage: Memory = Arc::new(MemoryStorage::new());
    write(&create(&context(64), &storage, "/line", false), &some(10)).unwrap();
    let as_first = |version: u64, from: &str, to: &str| {
        let bytes = storage.read_all(&log_name(version)).unwrap();
        let end = bytes.iter().position(|b| *b == b'\n').unwrap();
        let mut line = String::from_utf8(bytes[..end].to_vec()).unwrap();
        // The first form has no bounds of values either.
        if let Some((before, rest)) = line.split_once(",\"stats\":\"") {
            line = format!("{before}{}", rest.split_once('"').unwrap().1);
        }
        let edited = line.replacen("{\"gs\":1,", "{\"gs\":0,", 1).replacen(from, to, 1);
        let edited =
            format!("{:<width$}", edited.trim_end(), width = (edited.trim_end().len() + 18).next_multiple_of(64) - 18);
        let mut file = format!("{edited}\n{:016x}\n", gridstone::base::xxh3(edited.as_bytes())).into_bytes();
        file.extend_from_slice(&bytes[end + 18..]);
        Record::decode(&file, version)
    };
    as_first(1, "\"path\"", "\"path\"").unwrap();
    as_first(2, "\"cells\"", "\"cells\"").unwrap();
    for (version, from, to) in [
        (1, "\"path\":\"/line\"", "\"path\":\"/line\",\"ext\":{}"),
        (1, "\"sparse\":true", "\"sparse\":true,\"ext\":{}"),
        (1, "\"sparse\":true", "\"sparse\":true,\"write\":[\"a\"]"),
        (1, "\"dtype\":\"int64\"", "\"dtype\":\"int64\",\"ext\":{}"),
        (2, "\"cells\":20", "\"cells\":20,\"ext\":{}"),
        (2, "\"cells\":20", "\"cells\":20,\"parts\":[[20,\"00\"]]"),
        (2, "\"cells\":20", "\"cells\":20,\"stats\":\"00\""),
        (2, "\"cells\":20", "\"cells\":20,\"moved\":[1]"),
        (2, "\"ops\":[", "\"ops\":[{\"op\":\"set_base\",\"number\":1,\"base\":null},"),
    ] {
        let error = as_first(version, from, to).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Unsupported, "{to}: {error}");
    }
}
