//! Promise: nothing that a newer release wrote is stripped. The store has `ext` objects everywhere, features of its arrays, unknown rows
//! and parts of descriptions, kept files of unknown kinds, and bases. This release writes, merges, folds, vacuums, copies and repairs
//! it, in any order. All of it is there afterwards, byte for byte.

use super::newer::{open_for_writing, rerow, reword, root_of, some, store};
use crate::support::copy::{WHOLE, copied, memory};
use crate::support::line::{read, write};
use crate::support::manifest::{Root, Row, framed};
use crate::support::room::{base, commit, entry, ext, far_fragment, id_of, marked_deletion};
use crate::support::store::{context, store_of, vacuum};
use gridstone::base::{Entropy, FileRef, xxh3};
use gridstone::engine::{
    Call, CopyOptions, Keep, RepairOptions, Strategy as Merging, move_node_on, repair_on, verify_on,
};
use gridstone::runtime::SystemEntropy;
use gridstone::schema::{Attribute, Datatype, Evolution, Schema};
use gridstone::storage::{LATEST, MANIFEST, Storage, data_name, log_name};
use gridstone::store::{Changes, CommitKey, Field, Keyed, Node, Operation, Owner, StandardRules};
use proptest::prelude::*;
use std::collections::BTreeMap;
use std::sync::Arc;

type Memory = Arc<dyn Storage>;

const UNREADABLE: &str = r#"{"read":["wavelets"],"dims":[{"name":"x","dtype":"int64","domain":["0","9"],"halo":1}],"attrs":[{"dtype":"quaternion"}],"more":{}}"#;
const WITH_EXT: &str = r#"{"sparse":true,"write":["wavelets"],"ext":{"of":"schema"},
    "dims":[{"name":"x","dtype":"int64","domain":["0","19999"],"ext":{"of":["x",1]}}],
    "attrs":[{"name":"v","dtype":"int64","ext":{"of":"v"}}]}"#;

/// An object that a row refers to which is to be passed over.
const OBJECT: u8 = 0xee;

/// All that a newer release left in the newest version.
type Found = BTreeMap<String, String>;

fn found(storage: &Memory) -> Found {
    let store = store_of(storage);
    let newest = store.latest().unwrap();
    let mut found = Found::new();
    for node in newest.nodes().unwrap() {
        let Node::Array(array) = &node else { continue };
        let of = array.path().trim_start_matches('/').trim_start_matches("moved_").to_owned();
        found.insert(format!("ext of {of}"), format!("{:?}", array.ext()));
        let schema = array.schema();
        if schema.is_beyond_gs0() {
            found.insert(format!("schema of {of}"), schema.to_stored_json());
        }
        for d in array.fragments(None).unwrap().iter().filter(|d| !d.extra.is_empty()) {
            let place = matches!(d.location.file, FileRef::OnBase(..)).then_some(d.location);
            found.insert(format!("fragment {} of {of}", d.id), format!("{:?} {:?} {place:?}", d.extra, d.moved));
        }
        if array.is_hidden() || !array.field_metadata().unwrap().is_empty() {
            found.insert(
                format!("fields of {of}"),
                format!("{:?} {:?}", array.owner(), array.field_metadata().unwrap()),
            );
        }
        for kept in array.kept().unwrap() {
            let files: Vec<_> = kept.files.iter().map(|f| storage.read_all(&data_name(f.id)).unwrap()).collect();
            found.insert(format!("kept {}", kept.entry), format!("{kept:?} {files:?}"));
        }
    }
    for (number, base) in newest.bases().all().unwrap() {
        found.insert(format!("base {number}"), format!("{base:?}"));
    }
    let root = Root::of(&storage.read_all(&format!("{MANIFEST}/{}", newest.root().unwrap().id)).unwrap());
    let line: serde_json::Value = serde_json::from_str(&root.line).unwrap();
    found.insert("ext of the store".to_owned(), line["ext"].to_string());
    let unknown = |row: &&Row| {
        let is_kept = [b"Q", b"T", b"K"].iter().any(|tag| row.key.starts_with(*tag));
        // That byte belongs to a random id in the row of a condemned file.
        let of_array = row.key.get(17) == Some(&9) && !row.key.starts_with(b"C");
        row.flags >> 31 == 1 || is_kept || of_array
    };
    for row in root.rows.iter().filter(unknown) {
        let (key, value) = (row.key.escape_ascii(), row.value.escape_ascii());
        found.insert(format!("row {key}"), format!("{} {value}", row.flags));
        if row.flags & 2 == 2 {
            let object = storage.read_all(&format!("{MANIFEST}/{}", format!("{OBJECT:02x}").repeat(16))).unwrap();
            found.insert("object".to_owned(), format!("{object:?}"));
        }
    }
    let branch = storage.list("_branch").unwrap_or_default();
    found.insert("branch".to_owned(), format!("{branch:?}"));
    found
}

/// Rows that this release does not know, one of them with an object of a form of its own.
fn unknown_rows(storage: &Memory) -> Vec<Row> {
    let line = id_of(storage, "/line").0;
    let object = [OBJECT; 16];
    storage.put(&format!("{MANIFEST}/{}", format!("{OBJECT:02x}").repeat(16)), b"a form of its own").unwrap();
    let reference = [&object[..], &7u64.to_le_bytes(), &9u64.to_le_bytes(), b"more"].concat();
    // A value of an unknown coding, under an unknown tag.
    let mut coded = framed(b"GSVALUE\0", b"content");
    coded[12] = 77;
    let end = coded.len() - 8;
    let sum = xxh3(&coded[..end]);
    coded[end..].copy_from_slice(&sum.to_le_bytes());
    storage.put(&format!("{MANIFEST}/{}", "dd".repeat(16)), &coded).unwrap();
    let large = [&[0xdd; 16][..], &xxh3(b"content").to_le_bytes(), &7u64.to_le_bytes()].concat();
    vec![
        Row { key: b"Q and more".to_vec(), flags: 0, value: vec![1, 2, 3] },
        Row { key: b"Q coded".to_vec(), flags: 2, value: large },
        Row { key: [b"I", &line[..], &[9, 9]].concat(), flags: 0, value: vec![4; 40] },
        Row { key: [b"I", &line[..], &[9, 10]].concat(), flags: 1 << 31 | 1 << 9, value: vec![5; 20] },
        Row { key: b"T skipped".to_vec(), flags: 1 << 31 | 2, value: reference },
    ]
}

/// A store with what the bits of `with` say.
fn written_by_newer(with: u32) -> Memory {
    let storage = store();
    let is = |bit: u32| with >> bit & 1 == 1;
    let put = |operation: Operation| _ = commit(&storage, vec![operation]).unwrap();
    if is(0) {
        let root = root_of(&storage);
        reword(&storage, &root, |line| line.replacen("{\"gs\":1,", "{\"gs\":1,\"ext\":{\"of\":\"store\"},", 1));
    }
    if is(1) {
        let rows = unknown_rows(&storage);
        rerow(&storage, &root_of(&storage), |all| {
            all.extend(rows.clone());
            all.sort_by(|a, b| a.key.cmp(&b.key));
        });
    }
    for (bit, path, schema) in [(2, "/unreadable", UNREADABLE), (3, "/unwritable", WITH_EXT)] {
        if is(bit) {
            let (schema, ext) = (Schema::from_stored_json(schema).unwrap(), ext(r#"{"of":"node"}"#));
            put(Operation::CreateArray { id: SystemEntropy.id(), path: path.to_owned(), schema, ext });
        }
    }
    let (line, grid) = (id_of(&storage, "/line"), id_of(&storage, "/grid"));
    if is(4) {
        put(Operation::AddFragments { array: grid, fragments: vec![marked_deletion(7_000, 7_050)] });
    }
    if is(5) {
        put(Operation::SetBase { number: 3, base: Some(Arc::new(base("of a newer kind"))), before: None });
        put(Operation::AddFragments { array: grid, fragments: vec![far_fragment(3, (1_000, 1_099))] });
    }
    if is(6) {
        put(Operation::Keep { array: line, kept: entry(&storage, Owner::Array, "beside the line"), near: None });
        let newest = store_of(&storage).latest().unwrap();
        let owner = newest.array("/grid").unwrap().fragments(None).unwrap()[0].clone();
        let kept = entry(&storage, Owner::Fragment(owner.id), "beside a fragment of the grid");
        put(Operation::Keep { array: grid, kept, near: Some(owner.bounds.clone()) });
        let FileRef::Data(file) = owner.location.file else { panic!("the root's fragments lie in a pack") };
        let kept = entry(&storage, Owner::Data(file), "beside a file of the grid");
        put(Operation::Keep { array: grid, kept, near: Some(owner.bounds.clone()) });
    }
    if is(7) {
        let (tag, version) = ("of newer", store_of(&storage).latest().unwrap().version());
        let changes = vec![("told".to_owned(), Some("1".to_owned()))];
        put(Operation::Tag { name: tag.to_owned(), version, replace: false });
        put(Operation::SetMetadata { node: line, changes });
        for (place, field) in [(1, "\"name\":\"of newer\""), (2, "\"op\":\"set_metadata\"")] {
            let marked = format!("{field},\"ext\":{{\"of\":\"operation {place}\"}}");
            reword(&storage, &log_name(version + place), |line| line.replacen(field, &marked, 1));
        }
        storage.delete(LATEST).unwrap();
    }
    if is(8) {
        let text =
            r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]}],"attrs":[{"name":"v","dtype":"int8"}]}"#;
        let (id, name, schema) = (SystemEntropy.id(), "@x".to_owned(), Schema::from_json(text).unwrap());
        put(Operation::CreateHidden { id, owner: grid, name, schema, ext: ext(r#"{"of":"hidden"}"#) });
        let changes = vec![("unit".to_owned(), Some("\"m\"".to_owned()))];
        put(Operation::SetFieldMetadata { array: id, field: Field::Dimension(0), changes: changes.clone() });
        put(Operation::SetFieldMetadata { array: grid, field: Field::Attribute(0), changes });
    }
    if is(9) {
        let keyed = Keyed { key: CommitKey::new(b"a job").unwrap(), content: 7 };
        let (store, changes) = (store_of(&storage), vec![("job".to_owned(), Some("1".to_owned()))]);
        let changes = Changes::new(vec![Operation::SetMetadata { node: grid, changes }]).with_key(Some(keyed));
        store.commit_once(&store.latest().unwrap(), changes, &mut StandardRules).unwrap();
    }
    // Rows are looked at in a root.
    let store = store_of(&storage);
    store.pack(&store.latest().unwrap()).unwrap();
    storage
}

/// The version of the root that a newer release wrote to.
const FIRST_ROOT: u64 = 6;

/// Takes the newest root away, and repairs the store. What a newer release put into a root itself comes from an earlier one, so the
/// first root and the floor's stay.
fn repaired(storage: &Memory) {
    let store = store_of(storage);
    let newest = store.latest().unwrap();
    let floor = store.floor().unwrap().map_or(FIRST_ROOT, |floor| floor.version);
    // A vacuum leaves a root of its own for a version with a tag, and repairs go by the log's.
    let is_tagged = floor > FIRST_ROOT && !newest.retained().tags().unwrap().is_empty();
    if newest.root_version() <= floor || is_tagged {
        return;
    }
    storage.delete(&format!("{MANIFEST}/{}", newest.root().unwrap().id)).unwrap();
    let options = RepairOptions { dry_run: false, cut: false };
    let report = repair_on(&context(64), storage.clone(), options, &Call::default()).unwrap();
    assert!(report.remaining.is_empty(), "{report:?}");
}

fn act(storage: &mut Memory, action: u8, number: i64) {
    let line = || open_for_writing(storage);
    match action {
        0 => _ = write(&line(), &some(20 * number)).unwrap(),
        1 => {
            let store = store_of(storage);
            _ = store.pack(&store.latest().unwrap()).unwrap();
        }
        2 => _ = vacuum(&line(), Keep::Versions(1)).unwrap(),
        3 => _ = line().consolidate(&Merging::All, 1 << 20, false, &Call::default()).unwrap(),
        4 => {
            let added = Attribute::new(&format!("a{number}"), Datatype::Int8, true, None, "auto").unwrap();
            let name = added.name().to_owned();
            line().alter(&Evolution { add: vec![added], ..Evolution::default() }, None).unwrap();
            // The writer gives the attributes that were there before.
            line().alter(&Evolution { drop: vec![name], ..Evolution::default() }, None).unwrap();
        }
        5 => {
            for name in ["unreadable", "unwritable"] {
                let (from, to) = (format!("/{name}"), format!("/moved_{name}"));
                let there = store_of(storage).latest().unwrap().find(&from).unwrap().is_some();
                let (from, to) = if there { (from, to) } else { (to, from) };
                if store_of(storage).latest().unwrap().find(&from).unwrap().is_some() {
                    move_node_on(&context(64), storage.clone(), &from, &to, None).unwrap();
                }
            }
        }
        6 => {
            let target = memory();
            copied(storage, &target, &CopyOptions { history: true, ..WHOLE }).unwrap();
            *storage = target;
        }
        _ => repaired(storage),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, failure_persistence: None, ..ProptestConfig::default() })]
    #[test]
    fn nothing_that_a_newer_release_wrote_is_stripped(
        with in 0u32..1024, actions in proptest::collection::vec(0u8..8, 1..10)) {
        let mut storage = written_by_newer(with);
        let before = found(&storage);
        for (number, action) in (1..).zip(&actions) {
            act(&mut storage, *action, number);
            prop_assert_eq!(found(&storage), before.clone(), "after {:?}", &actions[..number as usize]);
        }
        let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
        prop_assert_eq!(report.damage, Vec::new());
        prop_assert!(read(&open_for_writing(&storage)).unwrap().len() >= 40);
    }
}

/// The property's store with all of it, so that every kind is there at least once.
#[test]
fn all_of_it_at_once_survives_everything_once() {
    let mut storage = written_by_newer(1023);
    let before = found(&storage);
    assert!(before.len() >= 21 && before.values().filter(|text| text.contains("of")).count() >= 10, "{before:#?}");
    for word in ["operation 1", "operation 2", "hidden", "[-2]"] {
        assert!(before.values().any(|text| text.contains(word)), "{word}: {before:#?}");
    }
    for (number, action) in (1..).zip([0, 1, 0, 7, 4, 5, 2, 0, 3, 1, 6, 2, 7, 0, 1, 0, 7]) {
        act(&mut storage, action, number);
        assert_eq!(found(&storage), before, "after {number} actions");
    }
    assert_eq!(verify_on(&context(64), storage.clone(), &Call::default()).unwrap().damage, Vec::new());
}

/// What this release cannot know of, and must not touch.
#[test]
fn the_names_of_branches_are_left_alone() {
    let storage = store();
    let names = ["_branch/00000000000000000001", "_branch/a/b"];
    names.iter().for_each(|name| storage.put(name, b"of a branch").unwrap());
    vacuum(&open_for_writing(&storage), Keep::Versions(1)).unwrap();
    let report = verify_on(&context(64), storage.clone(), &Call::default()).unwrap();
    assert_eq!((report.damage, report.orphans.objects), (Vec::new(), 0));
    assert!(names.iter().all(|name| storage.read_all(name).unwrap()[..] == b"of a branch"[..]));
}
