//! What must hold of a store after any crash.

use super::doubled::{TWICE, keyed_cells, keyed_seeds};
use super::hand::{Hand, Sort, objects};
use super::model::{Beside, Cells, EVERYWHERE, Model, Node, Place, Size, Value, filled, places, scattered};
use super::script::{Ground, Life, Script};
use super::{CELLS, GRID};
use crate::support::columns::{as_text, numbers};
use gridstone::base::ErrorKind;
use gridstone::engine::{Array, At, Call, Group, Opened, ReadOrder, Strategy, open_on};
use gridstone_testkit::values_of;
use std::collections::BTreeMap;
use std::ops::RangeInclusive;

/// What a check found wrong.
pub(crate) type Outcome<T> = Result<T, String>;

/// Of a value so many bytes are looked for where they should not be.
const SECRET_BYTES: usize = 16;

pub(super) fn told<T>(outcome: gridstone::base::Result<T>, what: &str) -> Outcome<T> {
    outcome.map_err(|e| format!("{what}: {:?}: {e}", e.kind()))
}

/// A store that is looked at, with the script that was done on it.
struct Look<'a> {
    script: &'a Script,
    ground: &'a Ground,
}

impl Look<'_> {
    fn open(&self, path: &str, at: At) -> gridstone::base::Result<Opened> {
        open_on(&self.script.context(), self.ground.store.clone(), path, false, at)
    }

    fn hand(&self) -> Hand {
        Hand::new(self.script, self.ground)
    }

    /// What an array holds, with the files that are kept beside it.
    fn read(&self, path: &str, array: &Array) -> gridstone::base::Result<Node> {
        let mut node = read(array)?;
        if let Node::Array { parts, .. } = &mut node {
            parts.kept = self.hand().kept_at(path, array.version())?;
        }
        Ok(node)
    }
}

/// Checks that the store opens at one of `versions` after `steps` were acknowledged, holds what the life held then, now and at an older
/// version, that every byte of it is sound, that its history is one line, and that it goes on working. What the script
/// wants done to the store before is done. Gives the version found.
pub(crate) fn survives(ground: &Ground, life: &Life, steps: usize, versions: RangeInclusive<u64>) -> Outcome<u64> {
    if let Some(heal) = life.script.heal {
        heal(ground, life, steps).map_err(|e| format!("before it is looked at: {e}"))?;
    }
    let look = Look { script: &life.script, ground };
    let found = version_of(&life.script, ground)?;
    if !versions.contains(&found) {
        return Err(format!("version {found} is there, one of {versions:?} should be"));
    }
    if life.script.past && found > 0 && found < life.ends[0] {
        return Err(format!("version {found} of a history is there, and not the whole of it"));
    }
    let model = life.models.get(found as usize).ok_or("a version that the script does not make")?;
    look.same(At::Latest, model)?;
    let older = found / 2;
    if older > 0 {
        look.same(At::Version(older), &life.models[older as usize])?;
    }
    look.verified(model)?;
    look.shows_nothing(model)?;
    look.goes_on(found, Model::clone(model))?;
    if life.source.as_ref().is_some_and(|(_, whole)| objects(&ground.source) != *whole) {
        return Err("the store that was copied from has changed".to_owned());
    }
    Ok(found)
}

/// Checks what is promised where names and data files are left to the system, after a power cut: the store opens at a version that the
/// life had, of `0 ..= newest`, or says what is missing; and what is read is what was written, or an error. Gives the version found.
pub(crate) fn tells(ground: &Ground, life: &Life, newest: u64) -> Outcome<Option<u64>> {
    let look = Look { script: &life.script, ground };
    let lost = |kind: ErrorKind| matches!(kind, ErrorKind::Corruption | ErrorKind::NotFound);
    let found = match look.open("/", At::Latest) {
        Ok(Opened::Group(group)) => group.version(),
        Ok(Opened::Array(_)) => return Err("the root is an array, which nobody made".to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => return Ok(Some(0)),
        Err(e) if lost(e.kind()) => return Ok(None),
        Err(e) => return Err(format!("the store does not open: {:?}: {e}", e.kind())),
    };
    if found > newest {
        return Err(format!("version {found} is there, one of 0 to {newest} should be"));
    }
    let model = life.models.get(found as usize).ok_or("a version that the script does not make")?;
    for (path, expected) in model.nodes.iter().filter(|(_, node)| **node != Node::Group) {
        let opened = match look.open(path, At::Version(found)) {
            Ok(Opened::Array(array)) => look.read(path, &array),
            Ok(Opened::Group(_)) => return Err(format!("{path} is a group")),
            Err(e) => Err(e),
        };
        match opened {
            Ok(node) if node == *expected => {}
            Ok(node) => return Err(format!("{path} differs: {}", difference(Some(expected), Some(&node)))),
            Err(e) if lost(e.kind()) => {}
            Err(e) => return Err(format!("{path} cannot be read: {:?}: {e}", e.kind())),
        }
    }
    Ok(Some(found))
}

/// The newest version; 0 if there is no store.
pub(super) fn version_of(script: &Script, ground: &Ground) -> Outcome<u64> {
    match (Look { script, ground }).open("/", At::Latest) {
        Ok(Opened::Group(group)) => Ok(group.version()),
        Ok(Opened::Array(_)) => Err("the root is an array, which nobody made".to_owned()),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(0),
        Err(e) => Err(format!("the store does not open: {e}")),
    }
}

impl Look<'_> {
    /// Checks that the store holds what the model says, at a version that may have been vacuumed if it is not the newest.
    fn same(&self, at: At, model: &Model) -> Outcome<()> {
        let mut found = Model::default();
        match self.open("/", at) {
            Err(e) if e.kind() == ErrorKind::NotFound && model.nodes.is_empty() => return Ok(()),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired && at != At::Latest => return Ok(()),
            Err(e) if e.kind() == ErrorKind::Corruption && at != At::Latest && self.script.damages => return Ok(()),
            Ok(Opened::Group(group)) => self.collect(at, "/", &group, &mut found)?,
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

    fn collect(&self, at: At, path: &str, group: &Group, found: &mut Model) -> Outcome<()> {
        found.nodes.insert(path.to_owned(), Node::Group);
        for (name, _) in told(group.children(), "children")? {
            let path = format!("{}/{name}", path.trim_end_matches('/'));
            match told(self.open(&path, at), &path)? {
                Opened::Group(group) => self.collect(at, &path, &group, found)?,
                Opened::Array(array) => drop(found.nodes.insert(path.clone(), told(self.read(&path, &array), &path)?)),
            }
        }
        Ok(())
    }

    /// Checks every stored byte of the newest version, and that history is one line.
    fn verified(&self, model: &Model) -> Outcome<()> {
        let mut hand = self.hand();
        for (path, _) in model.nodes.iter().filter(|(_, node)| **node != Node::Group) {
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

    /// Checks that no object of a sealed store holds the bytes of a cell as they are.
    fn shows_nothing(&self, model: &Model) -> Outcome<()> {
        if self.script.keys.is_none() {
            return Ok(());
        }
        let arrays = model
            .nodes
            .values()
            .filter_map(|node| if let Node::Array { cells, .. } = node { Some(cells) } else { None });
        let secrets: Vec<&[u8]> =
            arrays.flat_map(|cells| cells.values().filter_map(|value| value.1.get(..SECRET_BYTES)).take(4)).collect();
        for (name, bytes) in objects(&self.ground.store) {
            if bytes.windows(SECRET_BYTES).any(|window| secrets.contains(&window)) {
                return Err(format!("{name} shows a cell of a sealed store"));
            }
        }
        Ok(())
    }

    /// Writes to both arrays and to those with doubled cells, small and large, merges them, and checks the outcome.
    fn goes_on(&self, found: u64, mut model: Model) -> Outcome<()> {
        let (mut hand, mut versions) = (self.hand(), Vec::new());
        for (path, sort) in [(GRID, Sort::Dense), (CELLS, Sort::Sparse)] {
            if !model.nodes.contains_key(path) {
                versions.push(told(hand.create(path, sort, false), "create afterwards")?);
                model.put_array(path, sort);
            }
        }
        let (area, few) = (((2, 3), (1, 8)), scattered(5, Size::Small, 77));
        let boxed = filled(area, Size::Small, 78);
        versions.push(told(hand.write_boxes(GRID, &[(area, boxed.clone())]), "write a box afterwards")?);
        versions.push(told(hand.write_cells(CELLS, &few), "write cells afterwards")?);
        let is_doubled = |node: &Node| matches!(node, Node::Doubled(_));
        let doubled: Vec<String> =
            model.nodes.iter().filter(|(_, node)| is_doubled(node)).map(|(path, _)| path.clone()).collect();
        for path in &doubled {
            versions.push(told(hand.write_cells(path, &few), "double cells afterwards")?);
            model.double(path, few.clone());
        }
        if model.nodes.contains_key(TWICE) {
            versions.extend(retried(&mut hand, &mut model)?);
        }
        if !versions.iter().copied().eq(found + 1..=found + versions.len() as u64) {
            return Err(format!("after version {found} commits made {versions:?}"));
        }
        model.cells(GRID).extend(boxed);
        model.cells(CELLS).extend(few);
        for path in [GRID, CELLS].into_iter().chain(doubled.iter().map(String::as_str)) {
            told(hand.consolidate(path, &Strategy::All, 1 << 30), "consolidate afterwards")?;
        }
        model.parts(GRID).kept.retain(|(beside, _)| *beside == Beside::Array);
        self.same(At::Latest, &model).and_then(|()| self.verified(&model)).map_err(|e| format!("afterwards: {e}"))
    }
}

/// Repeats the commits with keys: those that were done make no version, the others are done now. Gives the versions of these.
fn retried(hand: &mut Hand, model: &mut Model) -> Outcome<Vec<u64>> {
    let mut versions = Vec::new();
    for seed in keyed_seeds() {
        let before = told(hand.array(TWICE).and_then(Array::refresh), "refresh before a retry")?;
        let version = told(hand.write_keyed(seed), "repeat a commit with a key")?;
        if model.keyed.insert(seed) {
            model.double(TWICE, keyed_cells(seed));
            versions.push(version);
        } else if version > before {
            return Err(format!("the commit with the key of seed {seed} was done again, in version {version}"));
        }
    }
    Ok(versions)
}

/// The first difference of two nodes in few words.
fn difference(expected: Option<&Node>, found: Option<&Node>) -> String {
    if let (Some(Node::Doubled(a)), Some(Node::Doubled(b))) = (expected, found) {
        let at = (0..a.len().max(b.len())).find(|at| a.get(*at) != b.get(*at)).unwrap_or_default();
        let told = |cells: &Vec<(Place, Value)>| cells.get(at).map(|(place, value)| (*place, value.0));
        return format!(
            "{} cells expected, {} found, of the first that differ {:?} and {:?}",
            a.len(),
            b.len(),
            told(a),
            told(b)
        );
    }
    let (
        Some(Node::Array { cells: a, notes: m, parts: p, .. }),
        Some(Node::Array { cells: b, notes: n, parts: q, .. }),
    ) = (expected, found)
    else {
        return format!("{} expected, {} found", kind_of(expected), kind_of(found));
    };
    if m != n {
        return format!("metadata {m:?} expected, {n:?} found");
    }
    if p != q {
        return format!("{} expected, {} found", p.told(), q.told());
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
        Some(Node::Doubled(_)) => "an array with doubled cells",
    }
}

/// What an array holds, but for the files that are kept beside it.
pub(crate) fn read(array: &Array) -> gridstone::base::Result<Node> {
    let (sparse, cells) = (array.schema()?.sparse(), cells_of(array)?);
    if array.schema()?.options().duplicates {
        return Ok(Node::Doubled(cells));
    }
    let count = cells.len();
    let cells: Cells = cells.into_iter().filter(|(_, v)| sparse || *v != (0, Vec::new())).collect();
    assert!(!sparse || cells.len() == count, "a cell came twice");
    let mut notes = BTreeMap::new();
    for key in array.metadata_keys()? {
        notes.extend(array.metadata(&key)?.map(|value| (key, value)));
    }
    Ok(Node::Array { sparse, cells, notes, parts: super::parts::read(array, cells_of)? })
}

/// The cells of an array, sorted; of a dense one all that its first domain has.
fn cells_of(array: &Array) -> gridstone::base::Result<Vec<(Place, Value)>> {
    let sparse = array.schema()?.sparse();
    // A domain may have grown, and no script writes beyond its first one.
    let everywhere = [as_text(EVERYWHERE.0), as_text(EVERYWHERE.1)];
    let read_box = (!sparse).then_some(&everywhere[..]);
    let (found, ..) = array.read(read_box, None, ReadOrder::Row, &Call::default())?;
    let values = numbers(&found.attrs[0]).into_iter().zip(values_of(found.attrs[1].view()));
    let values = values.map(|(number, bytes)| (number, bytes.unwrap_or_default()));
    let mut cells: Vec<(Place, Value)> = if sparse {
        numbers(&found.dims[0]).into_iter().zip(numbers(&found.dims[1])).zip(values).collect()
    } else {
        places(EVERYWHERE).zip(values).collect()
    };
    cells.sort();
    Ok(cells)
}
