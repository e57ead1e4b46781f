//! The parts of arrays: hidden arrays with labels, metadata of attributes and dimensions, names of dimensions, domains that
//! are open or empty, deletions beyond a domain, fragments that were moved.

use super::world::*;
use crate::base::{ErrorKind, Id, NeverCancel, Result};
use crate::fragment::{Description, Staged};
use crate::schema::{Evolution, KeyRange, Labels, Schema, Subarray};
use crate::storage::Storage;
use crate::store::{
    Changes, Child, Field, Node, Operation, Overlap, Reads, Recorded, Serializable, Snapshot, StandardRules, Store,
};
use std::sync::Arc;

fn commit(store: &Store, base: &Arc<Snapshot>, operations: Vec<Operation>) -> Result<Arc<Snapshot>> {
    store.commit(base, Changes::new(operations), &mut StandardRules)
}

fn kind(result: Result<Arc<Snapshot>>) -> ErrorKind {
    result.unwrap_err().kind()
}

fn create(id: Id, path: &str, schema: &Schema) -> Operation {
    Operation::CreateArray { id, path: path.to_owned(), schema: schema.clone(), ext: None }
}

/// The schema of an array that may have labels.
fn along() -> Schema {
    let text = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"float64"}]}"#;
    Schema::from_json(text).unwrap()
}

fn hide_as(id: Id, owner: Id, name: &str, schema: Schema) -> Operation {
    Operation::CreateHidden { id, owner, name: name.to_owned(), schema, ext: None }
}

fn hide(id: Id, owner: Id, name: &str) -> Operation {
    hide_as(id, owner, name, along())
}

fn labelled(id: Option<Id>) -> Schema {
    let labels = vec![("x".to_owned(), id.map(Labels::Array))];
    schema().evolved(&schema(), &Evolution { labels, ..Evolution::default() }).unwrap()
}

fn both(owner: Id, hidden: Id, lo: i64) -> Vec<Operation> {
    let mut labels = inline(lo, lo + 9);
    labels.description.attrs = vec![0];
    let added = [(owner, inline(lo, lo + 9)), (hidden, labels)];
    added.map(|(array, staged)| Operation::AddFragments { array, fragments: vec![staged] }).to_vec()
}

fn sound(store: &Store) {
    let found = store.inspect(&NeverCancel).unwrap();
    assert!(found.flaws.is_empty(), "{:?}", found.flaws);
}

/// Nothing but its id, or its owner, leads to a hidden array.
fn is_hidden(snapshot: &Snapshot, owner: &str, hidden: Id) {
    let array = snapshot.array(owner).unwrap();
    let child = Child { id: hidden, is_array: true, is_hidden: true };
    assert_eq!(snapshot.hidden_in(&array).unwrap(), [("@x".to_owned(), child)]);
    let found = snapshot.array_by_id(hidden).unwrap();
    assert_eq!((found.owner(), found.name()), (Some(array.id()), "@x"));
    assert_eq!(found.path(), format!("{}/@x", owner.trim_end_matches('/')));
    assert!(snapshot.find(found.path()).unwrap().is_none());
    for group in snapshot.nodes().unwrap() {
        if let Node::Group(group) = group {
            assert!(snapshot.children_of(&group).unwrap().iter().all(|(_, child)| !child.is_hidden));
        }
    }
}

#[test]
fn hidden_arrays_go_where_their_owner_goes() {
    let storage = memory();
    let store = store_in(Arc::clone(&storage)).with_fold_versions(3);
    let (owner, hidden) = (fresh(), fresh());
    let mut operations = vec![create(owner, "/g/a", &labelled(Some(hidden))), hide(hidden, owner, "@x")];
    operations.extend(both(owner, hidden, 0));
    let mut snapshot = store.create(Changes::new(operations)).unwrap();
    let mut past = vec![seen(&snapshot)];
    let group = snapshot.node("/g").unwrap().id();
    for step in 0..20 {
        let path = if step % 2 == 0 { "/h/b" } else { "/g/a" };
        let operations = match step % 4 {
            0 | 2 => both(owner, hidden, step * 50),
            1 => {
                let from = snapshot.node_by_id(owner).unwrap().unwrap().path().to_owned();
                vec![Operation::Move { id: owner, from, path: format!("{path}{step}") }]
            }
            _ => {
                let from = snapshot.node_by_id(group).unwrap().unwrap().path().to_owned();
                vec![Operation::Move { id: group, from, path: format!("/g{step}") }]
            }
        };
        snapshot = commit(&store, &snapshot, operations).unwrap();
        past.push(seen(&snapshot));
        let path = snapshot.node_by_id(owner).unwrap().unwrap().path().to_owned();
        is_hidden(&snapshot, &path, hidden);
        let reopened = store_in(Arc::clone(&storage)).latest().unwrap();
        // By its id, before anything above it is known.
        assert_eq!(reopened.array_by_id(hidden).unwrap().path(), format!("{path}/@x"));
        is_hidden(&reopened, &path, hidden);
        assert_eq!(seen(&reopened), seen(&snapshot));
    }
    assert!(snapshot.root().is_some());
    for (version, then) in (1..).zip(&past) {
        let opened = store_in(Arc::clone(&storage)).at_version(version).unwrap();
        assert_eq!(&seen(&opened), then, "version {version}");
        check_bytes(&store, &opened, hidden);
    }
    sound(&store);
    // Removed with its owner, and gone in the rows after the next fold.
    let last = store_in(Arc::clone(&storage)).with_fold_versions(1);
    let removed = commit(&last, &snapshot, vec![Operation::Remove { id: owner }]).unwrap();
    assert!(removed.node_by_id(hidden).unwrap().is_none() && removed.array_by_id(owner).is_err());
    let folded = commit(&last, &removed, vec![create(owner, "/again", &schema())]).unwrap();
    assert!(folded.hidden_in(&folded.array("/again").unwrap()).unwrap().is_empty());
    sound(&last);
    assert!(snapshot.node_by_id(hidden).unwrap().is_some());
}

#[test]
fn a_group_takes_hidden_arrays_of_its_arrays_along() {
    let storage = memory();
    let store = store_in(Arc::clone(&storage)).with_fold_versions(1);
    let (owner, hidden) = (fresh(), fresh());
    let operations = vec![create(owner, "/g/a", &schema()), hide(hidden, owner, "@x")];
    let one = store.create(Changes::new(operations)).unwrap();
    let two = commit(&store, &one, both(owner, hidden, 0)).unwrap();
    let group = two.node("/g").unwrap().id();
    let three = commit(&store, &two, vec![Operation::Remove { id: group }]).unwrap();
    let four = commit(&store, &three, vec![create(fresh(), "/b", &schema())]).unwrap();
    let five = commit(&store, &four, vec![create(fresh(), "/c", &schema())]).unwrap();
    assert_eq!(five.nodes().unwrap().len(), 3);
    assert!(store_in(storage).latest().unwrap().node_by_id(hidden).unwrap().is_none());
    sound(&store);
}

#[test]
fn an_array_at_the_top_hides_arrays_as_well() {
    let storage = memory();
    let (store, one, owner) = with_array(Arc::clone(&storage));
    let (store, hidden) = (store.with_fold_versions(1), fresh());
    let two = commit(&store, &one, vec![hide(hidden, owner, "@x")]).unwrap();
    let three = commit(&store, &two, both(owner, hidden, 0)).unwrap();
    for snapshot in [&two, &three, &store_in(Arc::clone(&storage)).latest().unwrap()] {
        is_hidden(snapshot, "/", hidden);
    }
    // The path is looked up before the array above it is known.
    assert!(store_in(Arc::clone(&storage)).latest().unwrap().find("/@x").unwrap().is_none());
    sound(&store);
    let again = vec![Operation::Remove { id: owner }, create(fresh(), "/", &schema())];
    let four = commit(&store, &three, again).unwrap();
    assert!(four.node_by_id(hidden).unwrap().is_none());
}

#[test]
fn what_hidden_arrays_cannot_be_is_refused() {
    let store = store_in(memory());
    let (owner, hidden, other) = (fresh(), fresh(), fresh());
    let operations = vec![create(owner, "/a", &schema()), hide(hidden, owner, "@x"), create(other, "/b", &schema())];
    let one = store.create(Changes::new(operations)).unwrap();
    for name in ["x", "", "@a/b", "@a\0", "@\u{1b}", &format!("@{}", "y".repeat(255))] {
        assert_eq!(kind(commit(&store, &one, vec![hide(fresh(), owner, name)])), ErrorKind::Input, "{name:?}");
    }
    assert_eq!(kind(commit(&store, &one, vec![hide(fresh(), hidden, "@y")])), ErrorKind::Input);
    assert_eq!(kind(commit(&store, &one, vec![hide(fresh(), owner, "@x")])), ErrorKind::Exists);
    assert_eq!(kind(commit(&store, &one, vec![hide(other, owner, "@y")])), ErrorKind::Exists);
    assert_eq!(kind(commit(&store, &one, vec![hide(fresh(), one.node("/").unwrap().id(), "@y")])), ErrorKind::Conflict);
    let moved = Operation::Move { id: hidden, from: "/a/@x".to_owned(), path: "/c".to_owned() };
    assert_eq!(kind(commit(&store, &one, vec![moved])), ErrorKind::Input);
    // Labels lie in a hidden array of the same array, of one dimension.
    let alter = |id: Id, schema: Schema| Operation::AlterArray { id, number: 1, schema };
    assert_eq!(kind(commit(&store, &one, vec![alter(other, labelled(Some(hidden)))])), ErrorKind::Conflict);
    assert_eq!(kind(commit(&store, &one, vec![alter(owner, labelled(Some(other)))])), ErrorKind::Conflict);
    assert_eq!(kind(commit(&store, &one, vec![alter(owner, labelled(Some(fresh())))])), ErrorKind::Conflict);
    let two = commit(&store, &one, vec![alter(owner, labelled(Some(hidden)))]).unwrap();
    assert_eq!(kind(commit(&store, &two, vec![Operation::Remove { id: hidden }])), ErrorKind::Conflict);
    let bare = Operation::AlterArray { id: owner, number: 2, schema: labelled(None) };
    let three = commit(&store, &two, vec![bare, Operation::Remove { id: hidden }]).unwrap();
    assert!(three.node_by_id(hidden).unwrap().is_none() && two.node_by_id(hidden).unwrap().is_some());
}

#[test]
fn conflicts_over_hidden_arrays_and_their_labels() {
    let store = store_in(memory());
    let (owner, hidden) = (fresh(), fresh());
    let operations = vec![create(owner, "/a", &schema()), hide(hidden, owner, "@x")];
    let base = store.create(Changes::new(operations)).unwrap();
    commit(&store, &base, vec![hide(fresh(), owner, "@n")]).unwrap();
    assert_eq!(kind(commit(&store, &base, vec![hide(fresh(), owner, "@n")])), ErrorKind::Exists);
    commit(&store, &base, vec![hide(fresh(), owner, "@m")]).unwrap();
    let alter = Operation::AlterArray { id: owner, number: 1, schema: labelled(Some(hidden)) };
    commit(&store, &base, vec![alter.clone()]).unwrap();
    assert_eq!(kind(commit(&store, &base, vec![Operation::Remove { id: hidden }])), ErrorKind::Conflict);
    // The other way round the labels are gone.
    let store = store_in(memory());
    let operations = vec![create(owner, "/a", &schema()), hide(hidden, owner, "@x")];
    let base = store.create(Changes::new(operations)).unwrap();
    commit(&store, &base, vec![Operation::Remove { id: hidden }]).unwrap();
    assert_eq!(kind(commit(&store, &base, vec![alter])), ErrorKind::Conflict);
    let late = both(owner, hidden, 0).split_off(1);
    assert_eq!(kind(commit(&store, &base, late)), ErrorKind::Conflict);
    let newest = store.latest().unwrap();
    commit(&store, &newest, vec![Operation::Remove { id: owner }]).unwrap();
    assert_eq!(kind(commit(&store, &newest, vec![hide(fresh(), owner, "@z")])), ErrorKind::Conflict);
}

#[test]
fn labels_lie_along_their_dimension_in_one_attribute() {
    let store = store_in(memory());
    let (owner, hidden) = (fresh(), fresh());
    let one = store.create(Changes::new(vec![create(owner, "/a", &schema())])).unwrap();
    let alter = |id: Id, schema: Schema| Operation::AlterArray { id, number: 1, schema };
    let plane = r#"{"dims":[{"name":"x","dtype":"int64","domain":["0","9"]},{"name":"y","dtype":"int64","domain":["0","9"]}],
        "attrs":[{"name":"v","dtype":"int8"}]}"#;
    let other = along().to_json().replace("int64", "int32");
    let sparse = along().to_json().replace("\"sparse\":false", "\"sparse\":true");
    // Which of two attributes has the labels could not be told after the dimension got another name.
    let two = schema().to_json().replace("\"w\"", "\"x0\"");
    let named = schema().to_json().replace("\"name\":\"x\"", "\"name\":\"y\"").replace("\"w\"", "\"x\"");
    for text in [plane, &other, &sparse, &two, &named] {
        let held = hide_as(hidden, owner, "@x", Schema::from_json(text).unwrap());
        let error = commit(&store, &one, vec![held, alter(owner, labelled(Some(hidden)))]).unwrap_err();
        assert!(error.kind() == ErrorKind::Schema && error.message().contains("labels of dimension \"x\""), "{error}");
    }
    let operations = vec![hide(hidden, owner, "@x"), alter(owner, labelled(Some(hidden)))];
    let labelled = commit(&store, &one, operations).unwrap();
    let more = crate::schema::Attribute::new("w", crate::schema::Datatype::Int8, false, None, "auto").unwrap();
    let more = Evolution { add: vec![more], ..Evolution::default() };
    let altered = alter(hidden, along().evolved(&along(), &more).unwrap());
    let error = commit(&store, &labelled, vec![altered]).unwrap_err();
    assert!(error.kind() == ErrorKind::Schema && error.message().contains("it needs one"), "{error}");
    let renamed = Evolution { rename: vec![("v".to_owned(), "lat".to_owned())], ..Evolution::default() };
    commit(&store, &labelled, vec![alter(hidden, along().evolved(&along(), &renamed).unwrap())]).unwrap();
}

#[test]
fn a_serializable_commit_loses_to_one_that_changes_the_hidden_arrays_it_looked_up() {
    let looked = |note: &dyn Fn(&mut Reads, &Snapshot, Id, Id) -> Result<()>, theirs: &dyn Fn(Id, Id) -> Operation| {
        let store = store_in(memory());
        let (owner, hidden, other) = (fresh(), fresh(), fresh());
        let operations =
            vec![create(owner, "/a", &schema()), hide(hidden, owner, "@x"), create(other, "/b", &schema())];
        let base = store.create(Changes::new(operations)).unwrap();
        let mut reads = Reads::default();
        note(&mut reads, &base, owner, hidden).unwrap();
        commit(&store, &base, vec![theirs(owner, hidden)]).unwrap();
        let outcome = store.commit(&base, add(other, vec![inline(0, 9)]), &mut Serializable::new(reads));
        outcome.map(drop).map_err(|e| {
            assert!(e.kind() == ErrorKind::Conflict && !e.message().contains(&owner.to_string()), "{e}");
            e.message().to_owned()
        })
    };
    let creates = |owner: Id, _: Id| hide(fresh(), owner, "@y");
    let removes = |_: Id, hidden: Id| Operation::Remove { id: hidden };
    let alters = |_: Id, hidden: Id| {
        let renamed = Evolution { rename: vec![("v".to_owned(), "lat".to_owned())], ..Evolution::default() };
        Operation::AlterArray { id: hidden, number: 1, schema: along().evolved(&along(), &renamed).unwrap() }
    };
    let writes = |owner: Id, _: Id| Operation::AddFragments { array: owner, fragments: vec![inline(0, 9)] };
    let x = |r: &mut Reads, s: &Snapshot, owner: Id, _: Id| r.note_hidden(s, owner, "@x");
    let y = |r: &mut Reads, s: &Snapshot, owner: Id, _: Id| r.note_hidden(s, owner, "@y");
    let all = |r: &mut Reads, s: &Snapshot, owner: Id, _: Id| r.note_all_hidden(s, owner);
    let labels = |r: &mut Reads, _: &Snapshot, _: Id, hidden: Id| {
        r.note_id(hidden);
        Ok(())
    };
    assert!(looked(&y, &creates).unwrap_err().contains("the hidden array \"@y\" of \"/a\""));
    assert!(looked(&all, &creates).unwrap_err().contains("the hidden arrays of \"/a\", which were listed"));
    assert!(looked(&x, &creates).is_ok() && looked(&labels, &creates).is_ok());
    for (note, stands) in [(&x as &dyn Fn(&mut Reads, &Snapshot, Id, Id) -> Result<()>, false), (&y, true)] {
        assert_eq!((looked(note, &removes).is_ok(), looked(note, &alters).is_ok()), (stands, stands));
        assert!(looked(note, &writes).is_ok());
    }
    assert!(looked(&all, &removes).is_err() && looked(&all, &alters).is_ok());
    assert!(looked(&labels, &removes).is_err() && looked(&labels, &alters).is_err());
}

fn set(array: Id, field: Field, key: &str, text: Option<&str>) -> Operation {
    Operation::SetFieldMetadata { array, field, changes: vec![(key.to_owned(), text.map(str::to_owned))] }
}

#[test]
fn metadata_of_attributes_and_dimensions_lives_with_them() {
    let storage = memory();
    let (store, mut snapshot, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(3);
    let mut past = vec![seen(&snapshot)];
    let fields = [Field::Attribute(0), Field::Attribute(1), Field::Dimension(0)];
    for step in 0..30 {
        let field = fields[step % 3];
        let text = (step % 7 > 0).then(|| step.to_string());
        snapshot = commit(&store, &snapshot, vec![set(id, field, &format!("k{}", step % 4), text.as_deref())]).unwrap();
        past.push(seen(&snapshot));
        assert_eq!(seen(&store_in(Arc::clone(&storage)).latest().unwrap()), seen(&snapshot));
    }
    let array = snapshot.array_by_id(id).unwrap();
    assert_eq!(array.metadata_of(fields[0]).get("k3").unwrap().as_deref(), Some("27"));
    assert!(
        array.metadata().all().unwrap().is_empty() && array.metadata_of(Field::Attribute(9)).all().unwrap().is_empty()
    );
    // A dropped attribute takes its metadata along, in memory and in the rows; its number does not come back.
    let dropped = Evolution { drop: vec!["w".to_owned()], ..Evolution::default() };
    let next = schema().evolved(&schema(), &dropped).unwrap();
    snapshot = commit(&store, &snapshot, vec![Operation::AlterArray { id, number: 1, schema: next }]).unwrap();
    past.push(seen(&snapshot));
    let known = |s: &Snapshot| s.array_by_id(id).unwrap().field_metadata().unwrap().into_keys().collect::<Vec<_>>();
    assert_eq!(known(&snapshot), [fields[0], fields[2]]);
    snapshot = commits(&store, snapshot, id, 4);
    let folded = store_in(Arc::clone(&storage)).latest().unwrap();
    assert_eq!((known(&folded), folded.root_version() > 32), (vec![fields[0], fields[2]], true));
    let array = folded.array_by_id(id).unwrap();
    assert!(array.metadata_of(fields[1]).all().unwrap().is_empty(), "no row is left");
    assert_eq!(kind(commit(&store, &snapshot, vec![set(id, fields[1], "k", None)])), ErrorKind::Input);
    assert_eq!(kind(commit(&store, &snapshot, vec![set(id, Field::Dimension(1), "k", None)])), ErrorKind::Input);
    assert_eq!(kind(commit(&store, &snapshot, vec![set(id, fields[0], "k", Some("{"))])), ErrorKind::Input);
    for (version, then) in (1..).zip(&past) {
        assert_eq!(&seen(&store_in(Arc::clone(&storage)).at_version(version).unwrap()), then, "version {version}");
    }
    sound(&store);
}

#[test]
fn conflicts_over_metadata_of_attributes_and_dimensions() {
    let (store, base, id) = with_array(memory());
    let (v, w) = (Field::Attribute(0), Field::Attribute(1));
    let both = |a: &str, b: &str| vec![set(id, v, "a", Some(a)), set(id, v, b, Some(b))];
    commit(&store, &base, both("1", "2")).unwrap();
    let three = commit(&store, &base, both("3", "4")).unwrap();
    let all = three.array_by_id(id).unwrap().metadata_of(v).all().unwrap();
    assert_eq!(format!("{all:?}"), r#"{"2": "2", "4": "4", "a": "3"}"#);
    // Readers of the key lose, and those of another field, or of the array's key of that name, do not.
    let note = |key: &str| {
        let mut reads = Reads::default();
        reads.note_key(id, Some(key));
        reads
    };
    for (reads, stands) in
        [(note(&v.noted("a")), false), (note(&w.noted("a")), true), (note("a"), true), (note(&v.noted("2")), false)]
    {
        let outcome = store.commit(&base, add(id, vec![inline(0, 9)]), &mut Serializable::new(reads.clone()));
        assert_eq!(outcome.is_ok(), stands, "{outcome:?}");
        let ours = Changes::new(vec![set(id, v, "a", Some("5")), set(id, w, "a", Some("5"))]);
        let overlap = Overlap::of(&reads, &ours, &base, |_, _, _, _| Ok(())).unwrap();
        let record = store.record(2).unwrap();
        let checked = overlap.check(&record, &three, |_, _, _| unreachable!());
        assert_eq!(checked.is_err(), reads.has_looked_up(id, &v.noted("a")), "{checked:?}");
    }
    // An attribute that others dropped meanwhile.
    let newest = store.latest().unwrap();
    let dropped = Evolution { drop: vec!["w".to_owned()], ..Evolution::default() };
    let next = schema().evolved(&schema(), &dropped).unwrap();
    commit(&store, &newest, vec![Operation::AlterArray { id, number: 1, schema: next }]).unwrap();
    assert_eq!(kind(commit(&store, &newest, vec![set(id, w, "a", None)])), ErrorKind::Conflict);
    commit(&store, &newest, vec![set(id, v, "a", None)]).unwrap();
}

#[test]
fn dimensions_get_other_names() {
    let storage = memory();
    let (store, one, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(1);
    let two = commit(&store, &one, add(id, vec![inline(0, 9)]).operations).unwrap();
    let renamed = Evolution { rename: vec![("x".to_owned(), "lon".to_owned())], ..Evolution::default() };
    let next = schema().evolved(&schema(), &renamed).unwrap();
    let three = commit(&store, &two, vec![Operation::AlterArray { id, number: 1, schema: next }]).unwrap();
    let four = commits(&store, three, id, 2);
    let name = |version: u64| {
        let snapshot = store_in(Arc::clone(&storage)).at_version(version).unwrap();
        snapshot.array_by_id(id).unwrap().schema().dims()[0].name().to_owned()
    };
    assert_eq!((name(2), name(3), name(four.version())), ("x".to_owned(), "lon".to_owned(), "lon".to_owned()));
    sound(&store);
}

fn endless(domain: &str) -> Schema {
    let text = schema().to_json().replace(r#"["0","99999"]"#, domain);
    Schema::from_stored_json(&text).unwrap()
}

#[test]
fn a_domain_begins_empty_and_grows() {
    let storage = memory();
    let store = store_in(Arc::clone(&storage)).with_fold_versions(2);
    let id = fresh();
    let one = store.create(Changes::new(vec![create(id, "/a", &endless("[]"))])).unwrap();
    let domain = |s: &Snapshot| s.array_by_id(id).unwrap().schema().domain().ranges()[0];
    assert_eq!(domain(&one), KeyRange::EMPTY);
    let error = store.commit(&one, add(id, vec![inline(0, 9)]), &mut StandardRules).unwrap_err();
    assert!(error.kind() == ErrorKind::Bounds && error.message().contains("no coordinate along"), "{error}");
    // Through folds it stays empty.
    let mut snapshot = one;
    for n in 0..5 {
        snapshot = commit(&store, &snapshot, vec![create(fresh(), &format!("/b{n}"), &schema())]).unwrap();
        let reopened = store_in(Arc::clone(&storage)).latest().unwrap();
        assert_eq!((domain(&snapshot), domain(&reopened)), (KeyRange::EMPTY, KeyRange::EMPTY));
        assert_eq!(seen(&reopened), seen(&snapshot));
    }
    sound(&store);
    let grow = |lo: i64, hi: i64| Operation::Grow { array: id, dimension: 0, range: cells(lo, hi).ranges()[0] };
    // Two that grow it take the union, whatever lies between.
    commit(&store, &snapshot, vec![grow(-20, -11)]).unwrap();
    let grown =
        commit(&store, &snapshot, vec![grow(30, 30), add(id, vec![inline(30, 30)]).operations.remove(0)]).unwrap();
    assert_eq!(domain(&grown), cells(-20, 30).ranges()[0]);
    let last = commits(&store, grown, id, 0);
    let reopened = store_in(Arc::clone(&storage)).latest().unwrap();
    assert_eq!((domain(&reopened), seen(&reopened)), (domain(&last), seen(&last)));
    let state = reopened.array_by_id(id).unwrap();
    let dim = &state.schema().dims()[0];
    assert_eq!((dim.tiles(), dim.tile_range(0)), (2, cells(-20, -1).ranges()[0]), "tiles are counted from 0");
    assert_eq!(state.schemas().get(0).unwrap().unwrap().domain().ranges()[0], KeyRange::EMPTY);
    sound(&store);
}

#[test]
fn a_domain_with_an_open_end_begins_empty_and_reaches_to_its_closed_end() {
    let storage = memory();
    let store = store_in(Arc::clone(&storage)).with_fold_versions(2);
    let (high, low, both) = (fresh(), fresh(), fresh());
    let of = |id, path: &str, domain: &str| create(id, path, &endless(domain));
    let operations =
        vec![of(high, "/high", r#"["7",null]"#), of(low, "/low", r#"[null,"7"]"#), of(both, "/both", "[null,null]")];
    let one = store.create(Changes::new(operations)).unwrap();
    let begun = [(high, [false, true]), (low, [true, false]), (both, [true, true])];
    for (id, open) in begun {
        let state = one.array_by_id(id).unwrap();
        assert_eq!((state.domain().ranges()[0], state.schema().dims()[0].open()), (KeyRange::EMPTY, open));
    }
    let expected = [
        (high, cells(7, 9).ranges()[0], [false, true]),
        (low, cells(-3, 7).ranges()[0], [true, false]),
        (both, cells(i64::MAX - 9, i64::MAX).ranges()[0], [true, true]),
    ];
    let grow = |array, lo, hi| Operation::Grow { array, dimension: 0, range: cells(lo, hi).ranges()[0] };
    let far = Operation::AddFragments { array: both, fragments: vec![inline(i64::MAX - 9, i64::MAX)] };
    let operations = vec![grow(high, 8, 9), grow(low, -3, -1), grow(both, i64::MAX - 9, i64::MAX), far];
    let two = commit(&store, &one, operations).unwrap();
    let three = commit(&store, &two, vec![create(fresh(), "/x", &schema())]).unwrap();
    let four = commit(&store, &three, vec![create(fresh(), "/y", &schema())]).unwrap();
    for snapshot in [&two, &four, &store_in(Arc::clone(&storage)).latest().unwrap()] {
        for (id, range, open) in expected {
            let state = snapshot.array_by_id(id).unwrap();
            assert_eq!((state.domain().ranges()[0], state.schema().dims()[0].open()), (range, open));
        }
    }
    // An open end stays open; a closed one may become open.
    let closed = Operation::AlterArray { id: high, number: 1, schema: schema() };
    assert_eq!(kind(commit(&store, &four, vec![closed])), ErrorKind::Schema);
    let opened = endless("[null,null]").evolved(&endless("[null,null]"), &Evolution::default()).unwrap();
    let five = commit(&store, &four, vec![Operation::AlterArray { id: low, number: 1, schema: opened }]).unwrap();
    let state = five.array_by_id(low).unwrap();
    assert_eq!((state.domain().ranges()[0], state.schema().dims()[0].open()), (cells(-3, 7).ranges()[0], [true; 2]));
    sound(&store);
}

#[test]
fn a_deletion_may_reach_beyond_the_domain() {
    let storage = memory();
    let (store, one, id) = with_array(Arc::clone(&storage));
    let store = store.with_fold_versions(1);
    let delete = |bounds: Subarray| {
        let description = Description::deletion(fresh(), 0, bounds);
        add(id, vec![Staged { description, body: None }]).operations
    };
    let two = commit(&store, &one, delete(cells(-50, 1_000_000))).unwrap();
    let three = commit(&store, &two, delete(Subarray::new(vec![KeyRange::new(0, u64::MAX)]))).unwrap();
    let flat = Subarray::new(vec![KeyRange::new(0, 1); 2]);
    assert_eq!(kind(commit(&store, &three, delete(flat))), ErrorKind::Bounds);
    let four = commits(&store, three, id, 2);
    assert_eq!(seen(&store_in(Arc::clone(&storage)).latest().unwrap()), seen(&four));
    sound(&store);
}

#[test]
fn a_description_says_that_a_fragment_was_moved() {
    let (store, one, id) = with_array(memory());
    let moved = |by: Vec<i64>, kind: crate::fragment::FragmentKind| {
        let mut staged = inline(300, 309);
        (staged.description.moved, staged.description.kind) = (by, kind);
        add(id, vec![staged]).operations
    };
    use crate::fragment::FragmentKind::{Dense, Sparse};
    let two = commit(&store, &one, moved(vec![-3], Dense)).unwrap();
    let described = |s: &Snapshot| s.array_by_id(id).unwrap().fragments(None).unwrap()[0].moved.clone();
    assert_eq!((described(&two), described(&store.latest().unwrap())), (vec![-3], vec![-3]));
    let far = commit(&store, &two, moved(vec![1 << 60], Dense)).unwrap();
    let record = store.record(far.version()).unwrap();
    let Recorded::AddFragments { fragments, .. } = &record.operations[0] else { panic!("fragments were added") };
    assert_eq!(fragments[0].moved, [1 << 60]);
    store.pack(&far).unwrap();
    let folded = store_in(Arc::clone(store.storage())).latest().unwrap();
    assert!(folded.root_version() > 0);
    let fragments = folded.array_by_id(id).unwrap().fragments(None).unwrap();
    assert_eq!(fragments.iter().map(|d| d.moved.clone()).collect::<Vec<_>>(), [vec![-3], vec![1 << 60]]);
    for (by, kind_of) in [(vec![1, 2], Dense), (vec![1], Sparse)] {
        assert_eq!(kind(commit(&store, &far, moved(by, kind_of))), ErrorKind::Input);
    }
}

#[test]
fn a_line_that_contradicts_itself_is_damage() {
    let (store, one, id) = with_array(memory());
    let hidden = fresh();
    let two = commit(&store, &one, vec![hide(hidden, id, "@x"), set(id, Field::Attribute(0), "k", Some("1"))]).unwrap();
    let storage: &Arc<dyn Storage> = store.storage();
    let name = crate::storage::log_name(two.version());
    let bytes = storage.read_all(&name).unwrap();
    let line = std::str::from_utf8(&bytes).unwrap().split('\n').next().unwrap();
    let owner = format!(r#""owner":"{id}","#);
    assert!(line.contains(&owner) && line.contains(r#""attr":0,"#), "{line}");
    for (from, to) in [
        (owner.as_str(), ""),
        (owner.as_str(), &format!(r#"{owner}"path":"/x","#)),
        (r#""name":"@x","#, ""),
        (r#""name":"@x","#, r#""name":"x","#),
        (r#""attr":0,"#, r#""attr":0,"dim":0,"#),
        (r#""attr":0,"#, r#""attr":2,"#),
    ] {
        let line = line.replace(from, to);
        let line = format!("{}{}", line.trim_end(), " ".repeat(63));
        let line = &line[..(line.len() + 18).div_euclid(64) * 64 - 18];
        let file = format!("{line}\n{:016x}\n", crate::base::xxh3(line.as_bytes()));
        let decoded = crate::store::Record::decode(file.as_bytes(), two.version());
        let outcome = decoded.and_then(|record| Snapshot::clone(&one).follow(record));
        assert_eq!(outcome.map_err(|e| e.kind()), Err(ErrorKind::Corruption), "{from} {to}");
    }
}
