//! Serializable commits: concurrent changes of others are compared with what was read, version by version.

use super::world::*;
use crate::base::{ErrorKind, Id};
use crate::schema::{KeyRange, Subarray};
use crate::storage::{FLOOR, MemoryStorage, Storage, log_name};
use crate::store::{Changes, Floor, Operation, Reads, Removed, Serializable, Snapshot, StandardRules, Store};
use std::sync::Arc;

struct World {
    store: Store,
    base: Arc<Snapshot>,
}

impl World {
    fn new() -> Self {
        let store = store_in(memory());
        let array =
            |path: &str| Operation::CreateArray { id: fresh(), path: path.to_owned(), schema: schema(), ext: None };
        let one = store.create(Changes::new(vec![array("/a"), array("/g/c"), array("/other")])).unwrap();
        let fragments = vec![inline(0, 9), inline(5, 19)];
        let base = store.commit(&one, add(one.array("/a").unwrap().id(), fragments), &mut StandardRules).unwrap();
        Self { store, base }
    }

    fn id(&self, path: &str) -> Id {
        self.base.node(path).unwrap().id()
    }

    fn theirs(&self, operation: Operation) {
        let latest = self.store.latest().unwrap();
        self.store.commit(&latest, Changes::new(vec![operation]), &mut StandardRules).unwrap();
    }

    /// Whether a commit to another array with these reads of the base is accepted.
    fn stands(&self, reads: Reads) -> bool {
        let before = self.store.latest().unwrap().version();
        let changes = add(self.id("/other"), vec![inline(0, 9)]);
        match self.store.commit(&self.base, changes, &mut Serializable::new(reads)) {
            Ok(snapshot) => {
                assert_eq!(snapshot.version(), before + 1);
                true
            }
            Err(e) => {
                assert_eq!(e.kind(), ErrorKind::Conflict, "{e}");
                assert!(e.message().contains("serializable"), "{e}");
                assert_eq!(self.store.latest().unwrap().version(), before);
                false
            }
        }
    }

    fn add(&self, path: &str, lo: i64, hi: i64) -> Operation {
        Operation::AddFragments { array: self.id(path), fragments: vec![inline(lo, hi)] }
    }
}

fn reads(note: impl FnOnce(&mut Reads)) -> Reads {
    let mut reads = Reads::default();
    note(&mut reads);
    reads
}

#[test]
fn boxes_that_were_read_must_not_be_written() {
    for (lo, hi, stands) in [(100, 199, false), (150, 150, false), (0, 99, true), (200, 300, true), (0, 300, false)] {
        let world = World::new();
        world.theirs(world.add("/a", lo, hi));
        let read = |path: &str| reads(|r| r.note_box(world.id(path), &cells(100, 199)));
        assert_eq!(world.stands(read("/a")), stands, "{lo} to {hi}");
        assert!(world.stands(read("/g/c")));
    }
}

/// The message of a conflict uses the user's terms: paths and coordinates, no ids and no keys.
#[test]
fn a_conflict_names_paths_and_coordinates() {
    let told = |theirs: &dyn Fn(&World) -> Operation, note: &dyn Fn(&World, &mut Reads)| {
        let world = World::new();
        world.theirs(theirs(&world));
        let changes = add(world.id("/other"), vec![inline(0, 9)]);
        let mut rules = Serializable::new(reads(|r| note(&world, r)));
        let error = world.store.commit(&world.base, changes, &mut rules).unwrap_err();
        let (text, ids) = (error.to_string(), ["/a", "/g/c"].map(|path| world.id(path).to_string()));
        assert!(!text.contains("0x") && ids.iter().all(|id| !text.contains(id)), "{text}");
        text
    };
    let read = |w: &World, r: &mut Reads| r.note_box(w.id("/a"), &cells(100, 199));
    let text = told(&|w| w.add("/a", 150, 300), &read);
    assert!(text.contains("wrote to \"/a\" at x 150 to 199, where cells were read"), "{text}");
    let text = told(&|w| w.add("/a", 190, 190), &read);
    assert!(text.contains("wrote to \"/a\" at x 190, where"), "{text}");
    let set = |w: &World| Operation::SetMetadata { node: w.id("/g/c"), changes: vec![("unit".to_owned(), None)] };
    let text = told(&set, &|w, r| r.note_key(w.id("/g/c"), None));
    assert!(text.contains("\"unit\" of \"/g/c\""), "{text}");
    let remove = |w: &World| Operation::Remove { id: w.id("/g/c") };
    let text = told(&remove, &|w, r| {
        r.note_node(&w.base, "/g/c").unwrap();
        r.note_box(w.id("/g/c"), &cells(0, 0));
    });
    assert!(text.contains("removed \"/g/c\", which was read"), "{text}");
}

#[test]
fn a_change_in_any_version_between_is_found_not_only_in_the_last() {
    for place in 0..5 {
        let world = World::new();
        for n in 0..5 {
            let at = if n == place { 100 } else { 1_000 };
            world.theirs(world.add("/a", at, at + 9));
        }
        assert!(!world.stands(reads(|r| r.note_box(world.id("/a"), &cells(105, 105)))));
        assert!(world.stands(reads(|r| r.note_box(world.id("/a"), &cells(500, 505)))));
    }
}

#[test]
fn more_boxes_than_are_remembered_are_safe() {
    let world = World::new();
    let many = reads(|r| (0..3_000).for_each(|n| r.note_box(world.id("/a"), &cells(n * 10, n * 10))));
    world.theirs(world.add("/a", 50_000, 50_009));
    assert!(world.stands(many.clone()));
    world.theirs(world.add("/a", 10, 10));
    assert!(!world.stands(many));
}

#[test]
fn merges_never_conflict() {
    let world = World::new();
    let array = world.base.array("/a").unwrap();
    let removed: Vec<Removed> = array.fragments(None).unwrap().iter().map(|d| Removed::of(d)).collect();
    let mut merged = inline(0, 19);
    merged.description.order = removed[1].order;
    world.theirs(Operation::ReplaceFragments { array: array.id(), removed, fragments: vec![merged] });
    assert!(world.stands(reads(|r| r.note_box(array.id(), &schema().domain()))));
}

#[test]
fn metadata_keys_that_were_read_must_not_be_set() {
    let world = World::new();
    let set = |key: &str| Operation::SetMetadata { node: world.id("/a"), changes: vec![(key.to_owned(), None)] };
    world.theirs(set("unit"));
    let read = |path: &str, key: Option<&str>| reads(|r| r.note_key(world.id(path), key));
    assert!(!world.stands(read("/a", Some("unit"))));
    assert!(!world.stands(read("/a", None)));
    assert!(world.stands(read("/a", Some("title"))));
    assert!(world.stands(read("/g/c", Some("unit"))));
    let mut both = read("/a", None);
    both.note_key(world.id("/a"), Some("title"));
    assert!(!world.stands(both), "who has read all keys has read each");
}

#[test]
fn nodes_that_were_looked_up_must_stay_as_they_were() {
    let looked = |world: &World, path: &str| reads(|r| r.note_node(&world.base, path).unwrap());
    let world = World::new();
    world.theirs(Operation::CreateGroup { id: fresh(), path: "/g/new/deep".to_owned(), ext: None });
    for (path, stands) in [("/g/new/deep", false), ("/g/new", false), ("/g", true), ("/g/c", true), ("/x", true)] {
        assert_eq!(world.stands(looked(&world, path)), stands, "{path}");
    }
    let world = World::new();
    world.theirs(Operation::Remove { id: world.id("/g") });
    for (path, stands) in [("/g", false), ("/g/c", false), ("/g/d", true), ("/a", true)] {
        assert_eq!(world.stands(looked(&world, path)), stands, "{path}");
    }
    let world = World::new();
    world.theirs(Operation::Remove { id: world.id("/g/c") });
    assert!(!world.stands(reads(|r| r.note_box(world.id("/g/c"), &cells(0, 0)))));
    // Created and removed again: a version in between had it.
    let world = World::new();
    let id = fresh();
    world.theirs(Operation::CreateGroup { id, path: "/short".to_owned(), ext: None });
    world.theirs(Operation::Remove { id });
    assert!(!world.stands(looked(&world, "/short")));
}

#[test]
fn groups_that_were_listed_must_keep_their_children() {
    let listed = |world: &World, path: &str| reads(|r| r.note_listing(&world.base, path).unwrap());
    let world = World::new();
    world.theirs(Operation::CreateGroup { id: fresh(), path: "/g/new".to_owned(), ext: None });
    assert!(!world.stands(listed(&world, "/g")));
    assert!(world.stands(listed(&world, "/")));
    world.theirs(Operation::CreateGroup { id: fresh(), path: "/top".to_owned(), ext: None });
    assert!(!world.stands(listed(&world, "/")));
}

#[test]
fn what_cannot_be_read_any_more_is_never_passed_over() {
    let memory = MemoryStorage::new();
    let (store, one, id) = with_array(Arc::new(memory.clone()));
    let store = store.with_fold_versions(10);
    let five = commits(&store, one, id, 4);
    commits(&store, five.clone(), id, 30);
    let root = store.record(21).unwrap().root.unwrap();
    memory.put(FLOOR, &Floor { version: 20, root }.encode().unwrap()).unwrap();
    (1..20).for_each(|v| memory.delete(&log_name(v)).unwrap());
    let nothing_near = reads(|r| r.note_box(id, &Subarray::new(vec![KeyRange::new(0, 0)])));
    for rules in [Reads::default(), nothing_near] {
        let outcome = store.commit(&five, add(id, vec![inline(0, 9)]), &mut Serializable::new(rules));
        assert_eq!(outcome.unwrap_err().kind(), ErrorKind::SnapshotExpired);
    }
    assert_eq!(store.latest().unwrap().version(), 35);
}
