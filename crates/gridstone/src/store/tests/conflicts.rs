//! The table of conflicts in `docs/format/conflicts.md`, pair by pair. Each pair is tried, and the store afterwards is
//! compared with a model that is independent of the engine's tree.

use super::world::*;
use crate::base::{ErrorKind, Id};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Staged};
use crate::schema::{Evolution, KeyRange, Schema};
use crate::store::wording::KNOWN;
use crate::store::{
    Base, Changes, Condemned, DeleteRules, Kept, MergeRules, Node, Operation, Owner, Rebase, Removed, Snapshot,
    StandardRules, Store,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

const PAGE: &str = include_str!("../../../../../docs/format/conflicts.md");

/// A node at a path.
#[derive(Debug, Clone, Default, PartialEq)]
struct Thing {
    /// `None` for a group that was created as a missing parent.
    id: Option<Id>,
    array: bool,
    /// How many schemas an array has had.
    schemas: usize,
    /// The domain of an array along x, where it has grown.
    domain: Option<KeyRange>,
    fragments: BTreeSet<Id>,
    metadata: BTreeMap<String, String>,
    /// Entries of kept files, with the fragments that own them.
    kept: BTreeMap<Id, Option<Id>>,
}

/// A store as a map from paths to nodes.
#[derive(Debug, Clone, Default, PartialEq)]
struct Model(BTreeMap<String, Thing>);

impl Model {
    fn of(snapshot: &Snapshot) -> Self {
        let thing = |node: &Node| {
            let (schemas, domain, fragments) = match node {
                Node::Group(_) => (0, None, BTreeSet::new()),
                Node::Array(array) => {
                    let fragments = array.fragments(None).unwrap().iter().map(|d| d.id).collect();
                    assert_eq!(array.domain(), &array.schema().domain());
                    let domain = array.domain().ranges()[0];
                    let first = schema().domain().ranges()[0];
                    (array.schemas().count() as usize, Some(domain).filter(|d| *d != first), fragments)
                }
            };
            let (id, mut metadata) = (Some(node.id()), node.metadata().all().unwrap().as_ref().clone());
            if let Node::Array(array) = node {
                for (field, all) in array.field_metadata().unwrap() {
                    metadata.extend(all.iter().map(|(key, value)| (field.noted(key), value.clone())));
                }
            }
            let owner = |owner: Owner| if let Owner::Fragment(id) = owner { Some(id) } else { None };
            let kept = match node {
                Node::Group(_) => BTreeMap::new(),
                Node::Array(array) => array.kept().unwrap().iter().map(|k| (k.entry, owner(k.owner))).collect(),
            };
            Thing { id, array: schemas > 0, schemas, domain, fragments, metadata, kept }
        };
        let mut model =
            Self(snapshot.nodes().unwrap().iter().map(|node| (node.path().to_owned(), thing(node))).collect());
        snapshot.bases().all().unwrap().iter().for_each(|(number, base)| model.base(*number, base));
        snapshot.retained().tags().unwrap().iter().for_each(|(name, version)| model.tag(name, *version));
        model
    }

    /// Tags are kept beside the paths.
    fn tag(&mut self, name: &str, version: u64) {
        let metadata = BTreeMap::from([("version".to_owned(), version.to_string())]);
        self.0.insert(format!("tag {name}"), Thing { metadata, ..Thing::default() });
    }

    fn base(&mut self, number: u32, base: &Base) {
        let metadata = BTreeMap::from([("kind".to_owned(), base.kind.clone())]);
        self.0.insert(format!("base {number}"), Thing { metadata, ..Thing::default() });
    }

    fn put(&mut self, path: &str, id: Id, array: bool) {
        for (at, _) in path.match_indices('/').skip(1) {
            self.0.entry(path[..at].to_owned()).or_default();
        }
        let schemas = usize::from(array);
        self.0.insert(path.to_owned(), Thing { id: Some(id), array, schemas, ..Thing::default() });
    }

    fn of_id(&mut self, id: Id) -> &mut Thing {
        self.0.values_mut().find(|thing| thing.id == Some(id)).unwrap()
    }

    fn grow(&mut self, id: Id, range: KeyRange) {
        let first = schema().domain().ranges()[0];
        let domain = &mut self.of_id(id).domain;
        let own = domain.unwrap_or(first);
        *domain = Some(KeyRange::new(own.lo.min(range.lo), own.hi.max(range.hi))).filter(|joined| *joined != first);
    }

    /// Every operation of the log has its line here.
    fn apply(&mut self, operation: &Operation) {
        match operation {
            Operation::CreateGroup { id, path, .. } => self.put(path, *id, false),
            Operation::CreateArray { id, path, .. } => self.put(path, *id, true),
            Operation::CreateHidden { id, owner, name, .. } => {
                let above = self.0.iter().find(|(_, thing)| thing.id == Some(*owner)).unwrap().0.clone();
                self.put(&format!("{above}/{name}"), *id, true);
            }
            Operation::SetFieldMetadata { array, field, changes } => {
                let changes = changes.iter().map(|(key, value)| (field.noted(key), value.clone())).collect();
                self.apply(&Operation::SetMetadata { node: *array, changes });
            }
            Operation::AlterArray { id, schema, .. } => {
                self.of_id(*id).schemas += 1;
                self.grow(*id, schema.domain().ranges()[0]);
            }
            Operation::Grow { array, range, .. } => self.grow(*array, *range),
            Operation::Remove { id } => {
                let path = self.0.iter().find(|(_, thing)| thing.id == Some(*id)).unwrap().0.clone();
                self.0.retain(|p, _| *p != path && !p.starts_with(&format!("{path}/")));
            }
            Operation::Move { id, path, .. } => {
                let from = self.0.iter().find(|(_, thing)| thing.id == Some(*id)).unwrap().0.clone();
                let is_moved = |p: &String| *p == from || p.starts_with(&format!("{from}/"));
                let moved: Vec<String> = self.0.keys().filter(|p| is_moved(p)).cloned().collect();
                for (at, _) in path.match_indices('/').skip(1) {
                    self.0.entry(path[..at].to_owned()).or_default();
                }
                for old in moved {
                    let thing = self.0.remove(&old).unwrap();
                    self.0.insert(format!("{path}{}", &old[from.len()..]), thing);
                }
            }
            Operation::AddFragments { array, fragments } => {
                self.of_id(*array).fragments.extend(fragments.iter().map(|f| f.description.id));
            }
            Operation::ReplaceFragments { array, removed, fragments } => {
                let held = &mut self.of_id(*array).fragments;
                removed.iter().for_each(|r| assert!(held.remove(&r.id)));
                held.extend(fragments.iter().map(|f| f.description.id));
                let is_gone = |owner: &Option<Id>| removed.iter().any(|r| Some(r.id) == *owner);
                self.of_id(*array).kept.retain(|_, owner| !is_gone(owner));
            }
            Operation::Tag { name, version, .. } => self.tag(name, *version),
            Operation::Untag { name, .. } => drop(self.0.remove(&format!("tag {name}"))),
            Operation::Condemn(_) => {}
            Operation::Keep { array, kept, .. } => {
                let owner = if let Owner::Fragment(id) = kept.owner { Some(id) } else { None };
                self.of_id(*array).kept.insert(kept.entry, owner);
            }
            Operation::Release { array, entry } => drop(self.of_id(*array).kept.remove(entry)),
            Operation::SetBase { number, base, .. } => self.base(*number, base.as_ref().unwrap()),
            Operation::SetMetadata { node, changes } => {
                for (key, value) in changes {
                    let held = &mut self.of_id(*node).metadata;
                    match value {
                        Some(text) => held.insert(key.clone(), text.clone()),
                        None => held.remove(key),
                    };
                }
            }
        }
    }

    fn matches(&self, found: &Self) -> bool {
        let same = |(path, thing): (&String, &Thing)| {
            let expected = Thing { id: self.0.get(path).and_then(|known| known.id).and(thing.id), ..thing.clone() };
            self.0.get(path) == Some(&expected)
        };
        self.0.len() == found.0.len() && found.0.iter().all(same)
    }
}

/// Like [`schema`], but sparse.
fn sparse_schema() -> Schema {
    let text = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["0","99999"],"tile":"100"}],
        "attrs":[{"name":"v","dtype":"float64"},{"name":"w","dtype":"int8"}]}"#;
    Schema::from_json(text).unwrap()
}

/// Like [`inline`], but sparse.
fn sparse(lo: i64, hi: i64) -> Staged {
    let mut staged = inline(lo, hi);
    staged.description.kind = FragmentKind::Sparse;
    staged
}

/// The entry of kept files of A.
const KEPT: Id = Id([0x77; 16]);

fn kept(entry: Id, owner: Owner) -> Kept {
    Kept { entry, owner, kind: "bloom".to_owned(), files: Vec::new(), ext: None }
}

/// A store with a sparse array A of four fragments, and a group G with a dense array C.
struct World {
    store: Store,
    base: Arc<Snapshot>,
}

impl World {
    fn new() -> Self {
        let store = store_in(memory());
        let array = |path: &str, schema: Schema| Operation::CreateArray {
            id: fresh(),
            path: path.to_owned(),
            schema,
            ext: None,
        };
        let one = store.create(Changes::new(vec![array("/A", sparse_schema()), array("/G/C", schema())])).unwrap();
        let id = one.array("/A").unwrap().id();
        let fragments = |of: std::ops::Range<i64>| of.map(|n| sparse(n * 10, n * 10 + 9)).collect();
        let mut changes = add(id, fragments(0..2));
        changes.operations.push(Operation::Keep { array: id, kept: kept(KEPT, Owner::Array), near: None });
        changes.operations.push(Operation::Tag { name: "O".to_owned(), version: 1, replace: false });
        let two = store.commit(&one, changes, &mut StandardRules).unwrap();
        let base = store.commit(&two, add(id, fragments(2..4)), &mut StandardRules).unwrap();
        Self { store, base }
    }

    fn id(&self, path: &str) -> Id {
        self.base.node(path).unwrap().id()
    }

    fn moved(&self, from: &str, to: &str) -> Operation {
        Operation::Move { id: self.id(from), from: from.to_owned(), path: to.to_owned() }
    }

    fn replacement(&self, first: usize) -> Operation {
        let array = self.base.array("/A").unwrap();
        let removed: Vec<Removed> =
            array.fragments(None).unwrap()[first..first + 2].iter().map(|d| Removed::of(d)).collect();
        let mut merged = sparse(0, 39);
        merged.description.order = removed[1].order;
        Operation::ReplaceFragments { array: array.id(), removed, fragments: vec![merged] }
    }

    /// The rules by which a row is committed.
    fn rules(&self, operations: &[Operation]) -> Box<dyn Rebase> {
        match operations {
            [Operation::ReplaceFragments { array, removed, .. }] => {
                Box::new(MergeRules::new(*array, &self.base, [(removed[0].order, removed[1].order)]))
            }
            [Operation::AddFragments { array, fragments }] if fragments[0].description.order.version > 0 => {
                Box::new(DeleteRules { array: *array })
            }
            _ => Box::new(StandardRules),
        }
    }

    /// A delete of every cell of A that version 2 had.
    fn earlier_deletion(&self) -> Operation {
        let mut description = Description::deletion(fresh(), 0, cells(0, 39));
        description.order = FragmentOrder::after(2);
        let fragments = vec![Staged { description, body: None }];
        Operation::AddFragments { array: self.id("/A"), fragments }
    }

    fn mask(&self) -> Operation {
        let array = self.base.array("/A").unwrap();
        let over = array.fragments(None).unwrap()[1].clone();
        let mut mask = inline(10, 19);
        let told = &mut mask.description;
        (told.kind, told.cells, told.attrs, told.over) = (FragmentKind::Mask, 1, Vec::new(), Some(over.id));
        Operation::AddFragments { array: array.id(), fragments: vec![mask] }
    }

    /// The operations of the row of this name. `value` is the metadata value that they write.
    fn operations(&self, name: &str, value: &str) -> Vec<Operation> {
        let group = |path: &str| Operation::CreateGroup { id: fresh(), path: path.to_owned(), ext: None };
        let array =
            |path: &str| Operation::CreateArray { id: fresh(), path: path.to_owned(), schema: schema(), ext: None };
        let remove = |path: &str| Operation::Remove { id: self.id(path) };
        let fragment =
            |path: &str, staged: Staged| Operation::AddFragments { array: self.id(path), fragments: vec![staged] };
        let metadata = |path: &str| Operation::SetMetadata {
            node: self.id(path),
            changes: vec![("k".to_owned(), Some(value.to_owned())), (format!("k{value}"), Some("1".to_owned()))],
        };
        match name {
            "create_group P" => vec![group("/P")],
            "create_group P/q/r" => vec![group("/P/q/r")],
            "create_array P" => vec![array("/P")],
            "create_array G/n" => vec![array("/G/n")],
            "remove A" => vec![remove("/A")],
            "remove G" => vec![remove("/G")],
            "add_fragments A" => vec![fragment("/A", sparse(5, 15))],
            "tag N" => vec![Operation::Tag { name: "N".to_owned(), version: 1, replace: false }],
            "untag O" => vec![Operation::Untag { name: "O".to_owned(), version: 1 }],
            "condemn" => {
                let (data, manifest) = (vec![fresh()], vec![fresh()]);
                vec![Operation::Condemn(Condemned { floor: None, data, manifest, forget: Vec::new() })]
            }
            "add_fragments A, a deletion" => {
                let description = Description::deletion(fresh(), 0, inline(5, 15).description.bounds);
                let fragments = vec![Staged { description, body: None }];
                vec![Operation::AddFragments { array: self.id("/A"), fragments }]
            }
            "add_fragments A, a mask over f1" => vec![self.mask()],
            "add_fragments A, a deletion as of before f2" => vec![self.earlier_deletion()],
            "alter_array A" | "alter_array C" => {
                let (path, schema) = if name == "alter_array A" { ("/A", sparse_schema()) } else { ("/G/C", schema()) };
                let domains = vec![("x".to_owned(), "0".to_owned(), format!("2{value}0000"))];
                let next = schema.evolved(&schema, &Evolution { domains, ..Evolution::default() }).unwrap();
                vec![Operation::AlterArray { id: self.id(path), number: 1, schema: next }]
            }
            "grow A" => {
                let range =
                    cells(if value == "1" { -7 } else { 5 }, if value == "1" { 50 } else { 200_007 }).ranges()[0];
                vec![Operation::Grow { array: self.id("/A"), dimension: 0, range }]
            }
            "add_fragments C" => vec![fragment("/G/C", inline(5, 15))],
            "replace_fragments f0 f1" => vec![self.replacement(0)],
            "replace_fragments f1 f2" => vec![self.replacement(1)],
            "replace_fragments f2 f3" => vec![self.replacement(2)],
            "set_metadata A" => vec![metadata("/A")],
            "set_metadata G" => vec![metadata("/G")],
            "keep beside f1" => {
                let array = self.base.array("/A").unwrap();
                let owner = array.fragments(None).unwrap()[1].clone();
                let near = Some(owner.bounds.clone());
                vec![Operation::Keep { array: array.id(), kept: kept(fresh(), Owner::Fragment(owner.id)), near }]
            }
            "keep beside A" => {
                vec![Operation::Keep { array: self.id("/A"), kept: kept(fresh(), Owner::Array), near: None }]
            }
            "release beside A" => vec![Operation::Release { array: self.id("/A"), entry: KEPT }],
            "set_base 1" => {
                let base = Base { kind: "store".to_owned(), places: Vec::new(), ext: None };
                vec![Operation::SetBase { number: 1, base: Some(Arc::new(base)), before: None }]
            }
            "move A P" => vec![self.moved("/A", "/P")],
            "move G P/g" => vec![self.moved("/G", "/P/g")],
            "remove A, create_array A" => vec![remove("/A"), array("/A")],
            other => panic!("the table has a row {other:?}, of which this test does not know how to do it"),
        }
    }
}

/// The rows of the page: each name and its outcomes, by column.
fn table() -> Vec<(String, Vec<String>)> {
    let rows =
        PAGE.lines().skip_while(|line| !line.starts_with("| ours")).skip(2).take_while(|line| line.starts_with("| "));
    let row = |(number, line): (usize, &str)| {
        let mut parts = line.trim_matches('|').split(" | ").map(|part| part.trim().to_owned());
        let head = parts.next().unwrap();
        let (n, name) = head.split_once(' ').unwrap();
        assert_eq!(n, number.to_string(), "rows are numbered");
        (name.trim_matches('`').to_owned(), parts.collect())
    };
    (1..).zip(rows).map(row).collect()
}

#[test]
fn every_operation_of_the_log_has_a_row_and_a_column() {
    let table = table();
    for known in KNOWN {
        let rows = table.iter().filter(|(name, _)| name.split([' ', ',']).any(|word| word == known));
        assert!(rows.count() > 0, "docs/format/conflicts.md has no row for the operation {known}");
    }
    let mut done = BTreeSet::new();
    for (name, outcomes) in &table {
        assert_eq!(outcomes.len(), table.len(), "row {name} has a column for each row");
        let world = World::new();
        let changes = Changes::new(world.operations(name, "1"));
        let made = world.store.commit(&world.base, changes, &mut StandardRules).unwrap();
        let record = world.store.record(made.version()).unwrap();
        done.extend(record.operations.iter().map(crate::store::Recorded::name));
    }
    assert_eq!(done, KNOWN.into_iter().collect(), "the rows do every operation");
}

#[test]
fn every_pair_comes_out_as_the_table_says() {
    let table = table();
    let mut tried = 0;
    for (ours, outcomes) in &table {
        for ((theirs, _), expected) in table.iter().zip(outcomes) {
            let world = World::new();
            let (ours_ops, theirs_ops) = (world.operations(ours, "1"), world.operations(theirs, "2"));
            let mut model = Model::of(&world.base);
            world.store.commit(&world.base, Changes::new(theirs_ops.clone()), &mut StandardRules).unwrap();
            theirs_ops.iter().for_each(|op| model.apply(op));
            let mut rules = world.rules(&ours_ops);
            let outcome = world.store.commit(&world.base, Changes::new(ours_ops.clone()), rules.as_mut());
            let pair = format!("{ours} after {theirs}");
            match (expected.as_str(), outcome) {
                ("+", Ok(snapshot)) => {
                    assert_eq!(snapshot.version(), 5, "{pair}");
                    ours_ops.iter().for_each(|op| model.apply(op));
                }
                ("C", Err(e)) => assert_eq!(e.kind(), ErrorKind::Conflict, "{pair}: {e}"),
                ("E", Err(e)) => assert_eq!(e.kind(), ErrorKind::Exists, "{pair}: {e}"),
                (expected, outcome) => panic!("{pair}: {expected} expected, found {outcome:?}"),
            }
            let found = Model::of(&world.store.latest().unwrap());
            assert!(model.matches(&found), "{pair}: expected {model:#?}\nfound {found:#?}");
            tried += 1;
        }
    }
    assert_eq!(tried, table.len() * table.len());
}
