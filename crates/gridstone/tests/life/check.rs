//! What must hold of a store after any crash.

use super::hand::{Hand, context};
use super::model::{COLUMNS, Cells, Model, Node, ROWS, Size, filled, places, scattered};
use super::{CELLS, GRID, Life};
use crate::writer::numbers;
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, At, Call, Context, Group, Opened, ReadOrder, Strategy, open_on};
use gridstone::storage::Storage;
use gridstone_testkit::values_of;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// What a check found wrong.
pub(crate) type Outcome<T> = Result<T, String>;

fn told<T>(outcome: gridstone::base::Result<T>, what: &str) -> Outcome<T> {
    outcome.map_err(|e| format!("{what}: {:?}: {e}", e.kind()))
}

/// Checks that the store opens at one of `versions`, holds what the life held then, now and at an older version, that
/// every byte of it is sound, that its history is one line, and that it goes on working. Gives the version found.
pub(crate) fn survives(storage: &Arc<dyn Storage>, life: &Life, versions: RangeInclusive<u64>) -> Outcome<u64> {
    let found = version_of(storage)?;
    if !versions.contains(&found) {
        return Err(format!("version {found} is there, one of {versions:?} should be"));
    }
    let model = life.models.get(found as usize).ok_or("a version that the script does not make")?;
    same(storage, At::Latest, model)?;
    let older = found / 2;
    if older > 0 {
        same(storage, At::Version(older), &life.models[older as usize])?;
    }
    verified(storage, model)?;
    goes_on(storage, found, Model::clone(model))?;
    Ok(found)
}

/// The newest version; 0 if there is no store.
fn version_of(storage: &Arc<dyn Storage>) -> Outcome<u64> {
    match open_on(&context(), storage.clone(), "/", false, At::Latest) {
        Ok(Opened::Group(group)) => Ok(group.version()),
        Ok(Opened::Array(_)) => Err("the root is an array, which nobody made".to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
        Err(e) => Err(format!("the store does not open: {e}")),
    }
}

/// Checks that the store holds what the model says, at a version that may have been vacuumed if it is not the newest.
fn same(storage: &Arc<dyn Storage>, at: At, model: &Model) -> Outcome<()> {
    let context = context();
    let mut found = Model::default();
    match open_on(&context, storage.clone(), "/", false, at) {
        Err(e) if e.kind() == ErrorKind::NotFound && model.nodes.is_empty() => return Ok(()),
        Err(e) if e.kind() == ErrorKind::SnapshotExpired && at != At::Latest => return Ok(()),
        Ok(Opened::Group(group)) => collect(&context, storage, at, "/", &group, &mut found)?,
        other => return Err(format!("the root at {at:?}: {other:?}")),
    }
    for path in model.nodes.keys().chain(found.nodes.keys()) {
        let (expected, found) = (model.nodes.get(path), found.nodes.get(path));
        if expected != found {
            return Err(format!("{path} at {at:?} differs: {}", difference(expected, found)));
        }
    }
    Ok(())
}

/// The first difference of two nodes in few words.
fn difference(expected: Option<&Node>, found: Option<&Node>) -> String {
    let (Some(Node::Array { cells: a, notes: m, .. }), Some(Node::Array { cells: b, notes: n, .. })) =
        (expected, found)
    else {
        return format!("{} expected, {} found", kind_of(expected), kind_of(found));
    };
    if m != n {
        return format!("metadata {m:?} expected, {n:?} found");
    }
    let place = a.keys().chain(b.keys()).find(|place| a.get(place) != b.get(place));
    let number = |cells: &Cells| place.and_then(|place| cells.get(place)).map(|value| value.0);
    format!("cell {place:?}: {:?} expected, {:?} found", number(a), number(b))
}

fn kind_of(node: Option<&Node>) -> &'static str {
    match node {
        None => "nothing",
        Some(Node::Group) => "a group",
        Some(Node::Array { .. }) => "an array",
    }
}

fn collect(
    context: &Context,
    storage: &Arc<dyn Storage>,
    at: At,
    path: &str,
    group: &Group,
    found: &mut Model,
) -> Outcome<()> {
    found.nodes.insert(path.to_owned(), Node::Group);
    for (name, _) in told(group.children(), "children")? {
        let path = format!("{}/{name}", path.trim_end_matches('/'));
        match told(open_on(context, storage.clone(), &path, false, at), &path)? {
            Opened::Group(group) => collect(context, storage, at, &path, &group, found)?,
            Opened::Array(array) => drop(found.nodes.insert(path.clone(), told(read(&array), &path)?)),
        }
    }
    Ok(())
}

/// What an array holds.
pub(crate) fn read(array: &Array) -> gridstone::base::Result<Node> {
    let (found, ..) = array.read(None, None, ReadOrder::Row, &Call::default())?;
    let sparse = array.schema()?.sparse();
    let values = numbers(&found.attrs[0]).into_iter().zip(values_of(found.attrs[1].view()));
    let values = values.map(|(number, bytes)| (number, bytes.unwrap_or_default()));
    let cells: Cells = if sparse {
        numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect()
    } else {
        places(((0, ROWS - 1), (0, COLUMNS - 1))).zip(values).filter(|(_, v)| *v != (0, Vec::new())).collect()
    };
    assert!(!sparse || cells.len() == found.count, "a cell came twice");
    let mut notes = BTreeMap::new();
    for key in array.metadata_keys()? {
        notes.extend(array.metadata(&key)?.map(|value| (key, value)));
    }
    Ok(Node::Array { sparse, cells, notes })
}

/// Checks every stored byte of the newest version, and that history is one line.
fn verified(storage: &Arc<dyn Storage>, model: &Model) -> Outcome<()> {
    let mut hand = Hand::new(storage.clone());
    for (path, _) in model.nodes.iter().filter(|(_, node)| matches!(node, Node::Array { .. })) {
        let report = told(hand.array(path).and_then(|array| array.verify(&Call::default())), "verify")?;
        if !report.damage.is_empty() {
            return Err(format!("{path} is damaged: {:?}", report.damage));
        }
    }
    if model.nodes.is_empty() {
        return Ok(());
    }
    let store = hand.store();
    let mut parent = None;
    for record in told(store.history(1, u64::MAX), "history")? {
        let record = told(record, "history")?;
        if parent.is_some() && record.parent != parent {
            return Err(format!("version {} does not follow the one before it", record.version));
        }
        parent = Some(record.xxh3);
    }
    Ok(())
}

/// Writes to both arrays, small and large, merges them, and checks the outcome.
fn goes_on(storage: &Arc<dyn Storage>, found: u64, mut model: Model) -> Outcome<()> {
    let mut hand = Hand::new(storage.clone());
    let mut versions = Vec::new();
    for (path, sparse) in [(GRID, false), (CELLS, true)] {
        if !model.nodes.contains_key(path) {
            versions.push(told(hand.create(path, sparse, false), "create afterwards")?);
            model.put_array(path, sparse);
        }
    }
    let (area, few) = (((2, 3), (1, 8)), scattered(5, Size::Small, 77));
    let boxed = filled(area, Size::Small, 78);
    versions.push(told(hand.write_boxes(GRID, &[(area, boxed.clone())]), "write a box afterwards")?);
    versions.push(told(hand.write_cells(CELLS, &few), "write cells afterwards")?);
    if !versions.iter().copied().eq(found + 1..=found + versions.len() as u64) {
        return Err(format!("after version {found} commits made {versions:?}"));
    }
    model.cells(GRID).extend(boxed);
    model.cells(CELLS).extend(few);
    for path in [GRID, CELLS] {
        told(hand.consolidate(path, &Strategy::All, 1 << 30), "consolidate afterwards")?;
    }
    same(storage, At::Latest, &model).and_then(|()| verified(storage, &model)).map_err(|e| format!("afterwards: {e}"))
}
