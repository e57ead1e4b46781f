//! The removal of hidden fragments beside commits that merge, mask or remove them.

use super::world::*;
use crate::base::{ErrorKind, Id};
use crate::fragment::FragmentKind;
use crate::store::{Changes, HiddenRules, MergeRules, Operation, Removed, Snapshot, StandardRules, Store};
use std::sync::Arc;

/// A store with an array of six fragments, each over the same cells; its id, and the snapshot.
fn world() -> (Store, Arc<Snapshot>, Id) {
    let (store, base, array) = with_array(memory());
    let snapshot = store.commit(&base, add(array, (0..6).map(|_| inline(0, 9)).collect()), &mut StandardRules).unwrap();
    (store, snapshot, array)
}

fn removed(snapshot: &Snapshot, array: Id, places: &[usize]) -> Vec<Removed> {
    let fragments = snapshot.array_by_id(array).unwrap().fragments(None).unwrap();
    places.iter().map(|place| Removed::of(&fragments[*place])).collect()
}

fn removal(snapshot: &Snapshot, array: Id, places: &[usize]) -> Changes {
    let removed = removed(snapshot, array, places);
    Changes::new(vec![Operation::ReplaceFragments { array, removed, fragments: Vec::new() }])
}

fn ids(snapshot: &Snapshot, array: Id) -> Vec<Id> {
    snapshot.array_by_id(array).unwrap().fragments(None).unwrap().iter().map(|d| d.id).collect()
}

#[test]
fn what_was_merged_meanwhile_is_left_out() {
    let (store, base, array) = world();
    let gone = removed(&base, array, &[1, 2]);
    let mut merged = inline(0, 9);
    merged.description.order = gone[1].order;
    let mut rules = MergeRules::new(array, &base, [(gone[0].order, gone[1].order)]);
    let merge = Operation::ReplaceFragments { array, removed: gone, fragments: vec![merged.clone()] };
    store.commit(&base, Changes::new(vec![merge]), &mut rules).unwrap();
    // All or nothing of it would be a conflict, again and again while others merge.
    let refused = store.commit(&base, removal(&base, array, &[0, 1, 3]), &mut StandardRules).unwrap_err();
    assert_eq!(refused.kind(), ErrorKind::Conflict);
    let found = store.commit(&base, removal(&base, array, &[0, 1, 3]), &mut HiddenRules).unwrap();
    let before = ids(&base, array);
    assert_eq!(ids(&found, array), [merged.description.id, before[4], before[5]]);
}

#[test]
fn what_was_masked_meanwhile_stays() {
    let sparse = |mut staged: crate::fragment::Staged| {
        staged.description.kind = FragmentKind::Sparse;
        staged
    };
    let store = store_in(memory());
    let array = fresh();
    let text = schema().to_json().replacen("\"sparse\":false", "\"sparse\":true", 1);
    let schema = crate::schema::Schema::from_json(&text).unwrap();
    let one = store
        .create(Changes::new(vec![Operation::CreateArray { id: array, path: "/".to_owned(), schema, ext: None }]))
        .unwrap();
    let fragments = (0..3).map(|_| sparse(inline(0, 9))).collect();
    let base = store.commit(&one, add(array, fragments), &mut StandardRules).unwrap();
    let before = ids(&base, array);
    let mut mask = inline(0, 9);
    let told = &mut mask.description;
    (told.kind, told.cells, told.attrs, told.over) = (FragmentKind::Mask, 1, Vec::new(), Some(before[0]));
    store.commit(&base, add(array, vec![mask.clone()]), &mut StandardRules).unwrap();
    let found = store.commit(&base, removal(&base, array, &[0, 1]), &mut HiddenRules).unwrap();
    assert_eq!(ids(&found, array), [before[0], before[2], mask.description.id]);
    // With nothing left to remove there is no version.
    let error = store.commit(&base, removal(&base, array, &[0]), &mut HiddenRules).unwrap_err();
    assert_eq!((error.kind(), store.latest().unwrap().version()), (ErrorKind::Conflict, found.version()));
}

#[test]
fn an_array_that_was_removed_meanwhile_is_left_out() {
    let (store, base, array) = world();
    let other = fresh();
    let group = store.commit(&base, Changes::new(Vec::new()), &mut StandardRules).unwrap();
    assert_eq!(ids(&group, array), ids(&base, array));
    let overwrite = vec![
        Operation::Remove { id: array },
        Operation::CreateArray { id: other, path: "/".to_owned(), schema: schema(), ext: None },
    ];
    store.commit(&base, Changes::new(overwrite), &mut StandardRules).unwrap();
    let error = store.commit(&base, removal(&base, array, &[0, 1]), &mut HiddenRules).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::Conflict);
}
