//! Sequences of schemas: what the log accepts and refuses, through folds, at older versions, in one commit.

use super::world::*;
use crate::base::{ErrorKind, Id, NeverCancel};
use crate::fragment::Staged;
use crate::schema::{Attribute, Datatype, Evolution, Schema};
use crate::store::{Changes, Operation, Reads, Record, Removed, Serializable, Snapshot, StandardRules, Store, record};
use std::sync::Arc;

fn text(name: &str) -> String {
    name.to_owned()
}

fn added(name: &str) -> Evolution {
    let attr = Attribute::new(name, Datatype::Int16, true, None, "auto").unwrap();
    Evolution { add: vec![attr], ..Evolution::default() }
}

fn dropped(name: &str) -> Evolution {
    Evolution { drop: vec![text(name)], ..Evolution::default() }
}

/// The operation that makes this change after `snapshot`.
fn alter(snapshot: &Snapshot, id: Id, evolution: &Evolution) -> Operation {
    let schemas = snapshot.array_by_id(id).unwrap().schemas().all().unwrap();
    let next = schemas.last().unwrap().evolved(&schemas[0], evolution).unwrap();
    Operation::AlterArray { id, number: schemas.len() as u32, schema: next }
}

fn altered(store: &Store, base: &Arc<Snapshot>, id: Id, evolution: &Evolution) -> Arc<Snapshot> {
    let changes = Changes::new(vec![alter(base, id, evolution)]);
    store.commit(base, changes, &mut StandardRules).unwrap()
}

fn of_schema(schema: u32, attrs: &[u32], lo: i64) -> Staged {
    let mut staged = inline(lo, lo + 9);
    (staged.description.schema, staged.description.attrs) = (schema, attrs.to_vec());
    staged
}

fn schemas(snapshot: &Snapshot, id: Id) -> Vec<Schema> {
    snapshot.array_by_id(id).unwrap().schemas().all().unwrap().iter().map(|s| Schema::clone(s)).collect()
}

#[test]
fn schemas_outlive_folds_and_every_version_has_its_own() {
    let (store, mut snapshot, id) = with_array(memory());
    let store = store.with_fold_versions(4);
    let mut known = vec![schemas(&snapshot, id)];
    for number in 0..30 {
        let evolution = match number % 3 {
            0 => added(&format!("n{number}")),
            1 => Evolution { rename: vec![(text("v"), format!("v{number}"))], ..Evolution::default() },
            _ => Evolution {
                rename: vec![(format!("v{}", number - 1), text("v"))],
                ..dropped(&format!("n{}", number - 2))
            },
        };
        snapshot = altered(&store, &snapshot, id, &evolution);
        known.push(schemas(&snapshot, id));
    }
    assert_eq!(schemas(&snapshot, id).len(), 31);
    assert_eq!(schemas(&snapshot, id)[30].next_id(), 12, "ten attributes came and went");
    for (version, expected) in (1..).zip(&known) {
        assert_eq!(&schemas(&store.at_version(version).unwrap(), id), expected, "version {version}");
    }
    let found = store.inspect(&NeverCancel).unwrap();
    assert!(found.flaws.is_empty(), "{:?}", found.flaws);
    assert_eq!((found.arrays[&id].number, &*found.arrays[&id].schema), (30, &known[30][30]));
}

#[test]
fn fragments_of_any_schema_that_was_stand_and_no_other() {
    let (store, one, id) = with_array(memory());
    let two = altered(&store, &one, id, &added("q"));
    let three = altered(&store, &two, id, &dropped("v"));
    // A writer that has not seen the changes adds and removes fragments as before, whatever the slot.
    for (base, fragment) in
        [(&one, of_schema(0, &[0, 1], 0)), (&two, of_schema(1, &[0, 2], 5)), (&three, of_schema(2, &[1], 9))]
    {
        store.commit(base, add(id, vec![fragment]), &mut StandardRules).unwrap();
    }
    let newest = store.latest().unwrap();
    let fragments = newest.array_by_id(id).unwrap().fragments(None).unwrap();
    let mut merged = of_schema(0, &[0], 0);
    merged.description.order = fragments[1].order;
    let removed = fragments[..2].iter().map(|d| Removed::of(d)).collect();
    let replace = Operation::ReplaceFragments { array: id, removed, fragments: vec![merged] };
    store.commit(&newest, Changes::new(vec![replace]), &mut StandardRules).unwrap();
    for (schema, attrs, word) in
        [(3, &[1][..], "schema 3"), (2, &[0], "attribute number 0"), (0, &[2], "attribute number 2")]
    {
        let error = store.commit(&newest, add(id, vec![of_schema(schema, attrs, 0)]), &mut StandardRules).unwrap_err();
        assert!(error.message().contains(word), "{error}");
    }
    let mut outside = of_schema(2, &[1], 0);
    outside.description.bounds = cells(0, 100_000);
    let error = store.commit(&newest, add(id, vec![outside]), &mut StandardRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Bounds, "{error}");
}

#[test]
fn no_fragment_gets_the_id_of_one_that_was_taken_out() {
    let storage = memory();
    let (store, one, id) = with_array(Arc::clone(&storage));
    let two = store.commit(&one, add(id, vec![inline(0, 9), inline(10, 19)]), &mut StandardRules).unwrap();
    let fragments = two.array_by_id(id).unwrap().fragments(None).unwrap();
    let removed: Vec<Removed> = fragments.iter().map(|d| Removed::of(d)).collect();
    let mut merged = inline(0, 19);
    merged.description.order = fragments[1].order;
    let replace = |staged: &crate::fragment::Staged| {
        let (array, removed, fragments) = (id, removed.clone(), vec![staged.clone()]);
        Changes::new(vec![Operation::ReplaceFragments { array, removed, fragments }])
    };
    let mut again = merged.clone();
    again.description.id = fragments[0].id;
    let error = store.commit(&two, replace(&again), &mut StandardRules).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("taken out"), "{error}");
    let three = store.commit(&two, replace(&merged), &mut StandardRules).unwrap();
    let mut late = inline(0, 9);
    late.description.id = fragments[0].id;
    let error = store.commit(&three, add(id, vec![late]), &mut StandardRules).unwrap_err();
    assert!(error.kind() == ErrorKind::Conflict && error.message().contains("taken out"), "{error}");
    // In a record of another writer it is damage.
    let record = store.record(3).unwrap();
    let head = record::Head {
        durable: true,
        commit_id: record.commit_id,
        version: 3,
        parent: record.parent,
        read_version: 2,
        time_us: record.time_us,
        root: None,
        message: None,
        features: Default::default(),
        keys: Vec::new(),
    };
    let bytes = record::encode(head, &replace(&again).operations).unwrap();
    storage.put(&crate::storage::log_name(3), &bytes).unwrap();
    storage.delete(crate::storage::LATEST).unwrap();
    let error = store_in(storage).at_version(3).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
}

#[test]
fn changes_made_from_one_schema_conflict_and_those_of_one_commit_follow() {
    let (store, one, id) = with_array(memory());
    let second = schema().evolved(&schema(), &added("a")).unwrap();
    let third = second.evolved(&schema(), &added("b")).unwrap();
    let operations = [(1, second), (2, third)].map(|(number, schema)| Operation::AlterArray { id, number, schema });
    let operations = operations.to_vec();
    let two = store.commit(&one, Changes::new(operations), &mut StandardRules).unwrap();
    assert_eq!((two.version(), schemas(&two, id).len()), (2, 3));
    for base in [&one, &two] {
        let late = Operation::AlterArray { id, number: 1, schema: schemas(&two, id).remove(1) };
        let error = store.commit(base, Changes::new(vec![late]), &mut StandardRules).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Conflict);
        assert!(error.message().contains("3 schemas by now"), "{error}");
    }
    // Created and changed in one commit.
    let path = text("/x");
    let (store, base) = (store_in(memory()), fresh());
    let next = schema().evolved(&schema(), &dropped("w")).unwrap();
    let create = Operation::CreateArray { id: base, path: path.clone(), schema: schema(), ext: None };
    let changes = vec![create, Operation::AlterArray { id: base, number: 1, schema: next }];
    assert_eq!(schemas(&store.create(Changes::new(changes)).unwrap(), base)[1].attrs().len(), 1);
}

#[test]
fn a_record_whose_schema_does_not_follow_is_damage() {
    let (store, one, id) = with_array(memory());
    let two = altered(&store, &one, id, &added("a"));
    let record = store.record(2).unwrap();
    let other = Schema::from_json(&schema().to_json().replace("\"100\"", "\"50\"")).unwrap();
    let from = |number: u32, schema: Schema| {
        let head = record::Head {
            durable: true,
            commit_id: record.commit_id,
            version: 2,
            parent: record.parent,
            read_version: 1,
            time_us: record.time_us,
            root: None,
            message: None,
            features: Default::default(),
            keys: Vec::new(),
        };
        let bytes = record::encode(head, &[Operation::AlterArray { id, number, schema }]).unwrap();
        let mut snapshot = Snapshot::clone(&one);
        snapshot.follow(Record::decode(&bytes, 2).unwrap()).map(|()| snapshot.version())
    };
    assert_eq!(from(1, schemas(&two, id).remove(1)).unwrap(), 2);
    for (number, schema, word) in [
        (2, schemas(&two, id).remove(1), "1 schemas by now"),
        (0, schemas(&two, id).remove(1), "1 schemas by now"),
        (1, other, "tile extent"),
    ] {
        let error = from(number, schema).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption, "{error}");
        assert!(error.to_string().contains(word), "{error}");
    }
}

#[test]
fn who_looked_at_an_array_conflicts_with_a_change_of_its_schema() {
    let store = store_in(memory());
    let array = |path: &str| Operation::CreateArray { id: fresh(), path: path.to_owned(), schema: schema(), ext: None };
    let base = store.create(Changes::new(vec![array("/a"), array("/b")])).unwrap();
    let id = |path: &str| base.node(path).unwrap().id();
    altered(&store, &base, id("/a"), &added("q"));
    let mut looked = Reads::default();
    looked.note_node(&base, "/a").unwrap();
    let mut read = Reads::default();
    read.note_box(id("/a"), &cells(0, 0));
    let mut elsewhere = Reads::default();
    elsewhere.note_node(&base, "/b").unwrap();
    for (reads, stands) in [(looked, false), (read, false), (elsewhere, true)] {
        let outcome = store.commit(&base, add(id("/b"), vec![inline(0, 9)]), &mut Serializable::new(reads));
        match outcome {
            Ok(_) => assert!(stands),
            Err(e) => assert!(!stands && e.message().contains("changed the schema"), "{e}"),
        }
    }
}
