//! The estimated length of a root before it is written is never too small, and is exact once it was written.

use super::world::*;
use crate::base::Id;
use crate::schema::{Attribute, Datatype, Evolution};
use crate::storage::{Storage, manifest_name};
use crate::store::{Changes, Node, Operation, Snapshot, StandardRules, Store};
use std::sync::Arc;

/// Bytes of the root under a snapshot.
fn written(storage: &Arc<dyn Storage>, snapshot: &Snapshot) -> u64 {
    let root = snapshot.root().unwrap();
    storage.read_all(&manifest_name(root.id)).unwrap().len() as u64
}

fn groups(snapshot: &Snapshot) -> Vec<(Id, String)> {
    let nodes = snapshot.nodes().into_iter().filter(|node| node.kind() == "group");
    nodes.map(|node| (node.id(), node.path().to_owned())).collect()
}

/// One change of each kind that makes a root longer or shorter, selected by `number`; `None` if it cannot be done.
fn change(snapshot: &Snapshot, number: u64) -> Option<Operation> {
    let nodes: Vec<&Node> = snapshot.nodes();
    let node = nodes[(number / 11) as usize % nodes.len()];
    let (id, path) = (fresh(), format!("/g{}/a{number}", number % 7));
    Some(match number % 11 {
        0 | 1 => Operation::CreateArray { id, path, schema: schema() },
        2 => Operation::CreateGroup { id, path: format!("/\"g {number}") },
        3..=5 => {
            let value = format!("\"{}\\n\\u0001\"", "x".repeat(number as usize * 37 % 900));
            let value = Some(value).filter(|_| !number.is_multiple_of(4));
            Operation::SetMetadata { node: node.id(), changes: vec![(format!("k\"\\{}", number % 5), value)] }
        }
        6 => Operation::Tag { name: format!("tag \"{number}"), version: snapshot.version(), replace: true },
        7 => match node {
            Node::Array(array) => {
                let schemas = array.schemas();
                let attr = Attribute::new(&format!("n{}", schemas.len()), Datatype::Int16, true, None, "auto").unwrap();
                let step = Evolution { add: vec![attr], ..Evolution::default() };
                let schema = schemas.last().unwrap().evolved(&schemas[0], &step).unwrap();
                Operation::AlterArray { id: array.id(), number: schemas.len() as u32, schema }
            }
            Node::Group(_) => return None,
        },
        8 => {
            let (id, from) = groups(snapshot).into_iter().find(|(_, path)| path != "/")?;
            Operation::Move { id, path: format!("/{}{number}", "m".repeat(90)), from }
        }
        9 if number.is_multiple_of(3) && node.path() != "/" => Operation::Remove { id: node.id() },
        _ => match node {
            Node::Array(array) => {
                let at = (number * 37 % 90_000) as i64;
                Operation::AddFragments { array: array.id(), fragments: vec![inline(at, at + 9)] }
            }
            Node::Group(_) => return None,
        },
    })
}

#[test]
fn a_root_is_never_longer_than_was_foretold() {
    let storage = memory();
    let store: Store = store_in(storage.clone()).with_fold_versions(1_000);
    let mut snapshot = store.create(Changes::new(Vec::new())).unwrap();
    let (mut folds, mut foretold, mut found) = (0, 0u64, 0u64);
    for number in 1..1_500u64 {
        let Some(operation) = change(&snapshot, number) else { continue };
        snapshot = store.commit(&snapshot, Changes::new(vec![operation]), &mut StandardRules).unwrap();
        if number.is_multiple_of(97) {
            let expected = snapshot.root_bytes();
            let opened = store_in(storage.clone()).latest().unwrap();
            assert_eq!(opened.root_bytes(), expected, "who opens the store knows the same");
            snapshot = store.pack(&snapshot).unwrap();
            let bytes = written(&storage, &snapshot);
            assert!(bytes <= expected, "{bytes} bytes, {expected} were foretold");
            assert_eq!(store_in(storage.clone()).latest().unwrap().root_bytes(), bytes);
            (folds, foretold, found) = (folds + 1, foretold + expected, found + bytes);
        }
    }
    assert!(folds > 10 && foretold < 2 * found, "{foretold} foretold, {found} written");
}
