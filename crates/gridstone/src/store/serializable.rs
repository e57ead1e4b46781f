//! Serializable isolation: a commit applies only if nothing that was read for it has changed since.
//!
//! The reads remembered are the cells read of each array (mostly boxes), the metadata keys, the paths looked up, the
//! groups listed, and the hidden arrays looked up and listed by their owners. Every version between the snapshot that was read and the commit's own is compared with them,
//! whichever slot the commit wins. A version that cannot be read any more is an error, never skipped. A merge changes
//! no cell, so it never conflicts.

use super::cell_set::CellSet;
use super::conflict::{Queueing, Rebase, StandardRules};
use super::operation::{Changes, Recorded};
use super::record::Record;
use super::snapshot::Snapshot;
use crate::base::{Error, ErrorKind, Id, Result};
use crate::schema::Subarray;
use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;

/// The largest number of metadata keys remembered for one node. Beyond that all its keys count as read.
const KEYS_MAX: usize = 4_096;

/// Metadata keys of one node.
#[derive(Debug, Clone)]
pub(super) enum Keys {
    /// All that it has, and will have.
    All,
    /// These.
    Some(BTreeSet<String>),
}

impl Default for Keys {
    fn default() -> Self {
        Self::Some(BTreeSet::new())
    }
}

impl Keys {
    /// Whether `key` is among them.
    pub(super) fn have(&self, key: &str) -> bool {
        match self {
            Self::All => true,
            Self::Some(keys) => keys.contains(key),
        }
    }

    /// Adds `key`. Beyond the maximum, the set becomes all keys.
    pub(super) fn add(&mut self, key: &str) {
        match self {
            Self::Some(keys) if keys.len() < KEYS_MAX => {
                keys.insert(key.to_owned());
            }
            _ => *self = Self::All,
        }
    }
}

/// The reads of a transaction.
#[derive(Debug, Clone, Default)]
pub struct Reads {
    cells: HashMap<Id, CellSet>,
    /// Metadata keys by node.
    keys: HashMap<Id, Keys>,
    /// The node found at each path.
    nodes: BTreeMap<String, Option<Id>>,
    /// The children found in each group.
    listings: BTreeMap<String, Vec<(String, Id)>>,
    /// The hidden array found by its owner and name.
    hidden: BTreeMap<(Id, String), Option<Id>>,
    /// The hidden arrays found in each array.
    hidden_listings: BTreeMap<Id, Vec<(String, Id)>>,
    /// Arrays found by their ids, in labels.
    by_id: BTreeSet<Id>,
}

impl Reads {
    /// Notes that cells of `array` in `sub` were read.
    pub fn note_box(&mut self, array: Id, sub: &Subarray) {
        let read = self.cells.entry(array).or_default();
        if !read.covers(sub) {
            read.add_box(sub.clone());
        }
    }

    /// Notes that single cells of `array`, which lie in `bounds`, were read.
    pub fn note_cells(&mut self, array: Id, bounds: &Subarray, cells: impl ExactSizeIterator<Item = Vec<u64>>) {
        let read = self.cells.entry(array).or_default();
        if cells.len() > read.room() {
            self.note_box(array, bounds);
        } else {
            cells.for_each(|cell| read.add_cell(&cell));
        }
    }

    /// Notes that a metadata key of `node` was looked up, or (`None`) all keys.
    pub fn note_key(&mut self, node: Id, key: Option<&str>) {
        let keys = self.keys.entry(node).or_default();
        match key {
            Some(key) => keys.add(key),
            None => *keys = Keys::All,
        }
    }

    /// The cells read of an array, if any.
    pub fn cells_of(&self, array: Id) -> Option<&CellSet> {
        self.cells.get(&array)
    }

    /// The metadata keys of a node that were looked up, if any.
    pub(super) fn keys_of(&self, node: Id) -> Option<&Keys> {
        self.keys.get(&node)
    }

    /// The nodes whose cells or metadata keys were read; a node may come twice.
    pub(super) fn nodes_read(&self) -> impl Iterator<Item = Id> + '_ {
        self.cells.keys().chain(self.keys.keys()).copied()
    }

    /// Whether a metadata key of a node was looked up.
    pub fn has_looked_up(&self, node: Id, key: &str) -> bool {
        self.keys.get(&node).is_some_and(|keys| keys.have(key))
    }

    /// Notes that the node at `path` in `base` was looked up.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read; nothing is noted then.
    pub fn note_node(&mut self, base: &Snapshot, path: &str) -> Result<()> {
        if !self.nodes.contains_key(path) {
            self.nodes.insert(path.to_owned(), node_at(base, path)?);
        }
        Ok(())
    }

    /// Notes that the children of the group at `path` in `base` were listed.
    ///
    /// # Errors
    /// Those of [`Reads::note_node`].
    pub fn note_listing(&mut self, base: &Snapshot, path: &str) -> Result<()> {
        if !self.listings.contains_key(path) {
            self.listings.insert(path.to_owned(), listing_of(base, path)?);
        }
        Ok(())
    }

    /// Notes that the hidden array `name` of `owner` was looked up in `base`.
    ///
    /// # Errors
    /// Those of [`Reads::note_node`].
    pub fn note_hidden(&mut self, base: &Snapshot, owner: Id, name: &str) -> Result<()> {
        let place = (owner, name.to_owned());
        if let Entry::Vacant(vacant) = self.hidden.entry(place) {
            let found = hidden_of(base, owner)?.into_iter().find(|(known, _)| known == name);
            vacant.insert(found.map(|(_, id)| id));
        }
        Ok(())
    }

    /// Notes that the hidden arrays of `owner` in `base` were listed.
    ///
    /// # Errors
    /// Those of [`Reads::note_node`].
    pub fn note_all_hidden(&mut self, base: &Snapshot, owner: Id) -> Result<()> {
        if let Entry::Vacant(vacant) = self.hidden_listings.entry(owner) {
            vacant.insert(hidden_of(base, owner)?);
        }
        Ok(())
    }

    /// Notes that an array was found by its id.
    pub fn note_id(&mut self, array: Id) {
        self.by_id.insert(array);
    }

    /// Whether an array was looked at, which includes its schema.
    fn has_looked_at(&self, array: Id) -> bool {
        let is_it = |found: &Option<Id>| *found == Some(array);
        let found = self.nodes.values().chain(self.hidden.values());
        self.cells.contains_key(&array) || self.by_id.contains(&array) || found.into_iter().any(is_it)
    }

    /// A Conflict error if `record`, after which the store is `newest`, changed something that was read.
    fn check(&self, record: &Record, newest: &Snapshot) -> Result<()> {
        let version = record.version;
        for operation in &record.operations {
            self.check_operation(operation, newest).map_err(|what| overtaken(version, &what))?;
        }
        for (path, id) in &self.nodes {
            if node_at(newest, path)? != *id {
                return Err(overtaken(version, &format!("changed what lies at {path}, which was looked up")));
            }
        }
        for (path, found) in &self.listings {
            if listing_of(newest, path)? != *found {
                return Err(overtaken(version, &format!("changed the children of {path}, which were listed")));
            }
        }
        self.check_hidden(version, newest)
    }

    /// A Conflict error if a hidden array that was looked up is another one now, or none.
    fn check_hidden(&self, version: u64, newest: &Snapshot) -> Result<()> {
        for ((owner, name), id) in &self.hidden {
            let found = hidden_of(newest, *owner)?.into_iter().find(|(known, _)| known == name);
            if found.map(|(_, id)| id) != *id {
                let owner = self.named(*owner, newest);
                return Err(overtaken(
                    version,
                    &format!("changed the hidden array {name:?} of {owner}, which was looked up"),
                ));
            }
        }
        for (owner, found) in &self.hidden_listings {
            if hidden_of(newest, *owner)? != *found {
                let owner = self.named(*owner, newest);
                return Err(overtaken(version, &format!("changed the hidden arrays of {owner}, which were listed")));
            }
        }
        Ok(())
    }

    /// Err: what it changed. Every operation has its line here; nodes that come and go are found by their paths.
    fn check_operation(&self, operation: &Recorded, newest: &Snapshot) -> std::result::Result<(), String> {
        match operation {
            Recorded::AddFragments { array, fragments } => {
                match fragments.iter().find_map(|d| self.read_of(*array, &d.bounds)) {
                    Some(met) => Err(format!(
                        "wrote to {}{}, where cells were read",
                        self.named(*array, newest),
                        place(newest, *array, &met)
                    )),
                    None => Ok(()),
                }
            }
            Recorded::SetMetadata { node, changes, .. } => {
                match changes.iter().find(|(key, _)| self.has_looked_up(*node, key)) {
                    Some((key, _)) => {
                        Err(format!("set the metadata key {key:?} of {}, which was read", self.named(*node, newest)))
                    }
                    None => Ok(()),
                }
            }
            Recorded::SetFieldMetadata { array, field, changes } => {
                match changes.iter().find(|(key, _)| self.has_looked_up(*array, &field.noted(key))) {
                    Some((key, _)) => Err(format!(
                        "set the metadata key {key:?} of {field} of {}, which was read",
                        self.named(*array, newest)
                    )),
                    None => Ok(()),
                }
            }
            Recorded::AlterArray { id, .. } => {
                if self.has_looked_at(*id) {
                    return Err(format!("changed the schema of {}, which was looked at", self.named(*id, newest)));
                }
                Ok(())
            }
            Recorded::Remove { id } => {
                if self.cells.contains_key(id) || self.keys.contains_key(id) || self.by_id.contains(id) {
                    return Err(format!("removed {}, which was read", self.named(*id, newest)));
                }
                Ok(())
            }
            // A read up to an end of the domain has noted all beyond it: only cells there conflict.
            Recorded::Grow { .. }
            | Recorded::ReplaceFragments { .. }
            | Recorded::Move { .. }
            | Recorded::CreateGroup { .. }
            | Recorded::CreateArray { .. }
            | Recorded::CreateHidden { .. }
            | Recorded::Tag { .. }
            | Recorded::Untag { .. }
            | Recorded::Keep { .. }
            | Recorded::Release { .. }
            | Recorded::SetBase { .. }
            | Recorded::Condemn(_) => Ok(()),
        }
    }

    /// A box around the cells read in `bounds`.
    fn read_of(&self, array: Id, bounds: &Subarray) -> Option<Subarray> {
        self.cells.get(&array)?.found_in(bounds)
    }

    /// The path of a node: in `newest` or, if it was removed, the path at which it was looked up.
    fn named(&self, id: Id, newest: &Snapshot) -> String {
        let looked_up = || self.nodes.iter().find(|(_, found)| **found == Some(id)).map(|(path, _)| path.as_str());
        let node = newest.node_by_id(id).ok().flatten();
        let path = node.as_ref().map(super::Node::path).or_else(looked_up);
        path.map_or_else(|| "an array or group".to_owned(), |path| format!("{path:?}"))
    }
}

/// The number of dimensions whose coordinates a message shows.
const DIMENSIONS_TOLD: usize = 4;

/// The position of a box of an array, in coordinates; empty if its schema is unknown.
pub(super) fn place(newest: &Snapshot, array: Id, bounds: &Subarray) -> String {
    let Ok(array) = newest.array_by_id(array) else { return String::new() };
    let schema = array.schema();
    let ends = schema.coordinates().zip(schema.ends(bounds));
    let told = ends.map(|(dim, (lo, hi))| match lo == hi {
        true => format!("{} {lo}", dim.name()),
        false => format!("{} {lo} to {hi}", dim.name()),
    });
    let more = if schema.coordinates().count() > DIMENSIONS_TOLD { ", …" } else { "" };
    format!(" at {}{more}", told.take(DIMENSIONS_TOLD).collect::<Vec<_>>().join(", "))
}

/// The node at `path`; `None` also if that is no path.
fn node_at(snapshot: &Snapshot, path: &str) -> Result<Option<Id>> {
    match snapshot.find(path) {
        Err(e) if e.kind() == ErrorKind::Input => Ok(None),
        found => Ok(found?.map(|node| node.id())),
    }
}

/// The children at `path`; none if there is no group.
fn listing_of(snapshot: &Snapshot, path: &str) -> Result<Vec<(String, Id)>> {
    match snapshot.children(path) {
        Err(e) if matches!(e.kind(), ErrorKind::Input | ErrorKind::NotFound) => Ok(Vec::new()),
        children => Ok(children?.into_iter().map(|(name, child)| (name, child.id)).collect()),
    }
}

/// The hidden arrays of the array with this id; none if it is not there.
fn hidden_of(snapshot: &Snapshot, owner: Id) -> Result<Vec<(String, Id)>> {
    let Some(array) = snapshot.find_array(owner)? else { return Ok(Vec::new()) };
    Ok(snapshot.hidden_in(&array)?.into_iter().map(|(name, child)| (name, child.id)).collect())
}

fn overtaken(version: u64, what: &str) -> Error {
    Error::conflict(format!(
        "version {version}, committed meanwhile, {what} by this serializable transaction; nothing was committed, run it again"
    ))
}

/// The rules of a serializable commit: those of [`StandardRules`], and that nothing read has changed.
#[derive(Debug)]
pub struct Serializable {
    reads: Reads,
}

impl Serializable {
    /// The rules of a commit based on `reads`, all from the snapshot that it is committed after.
    pub fn new(reads: Reads) -> Self {
        Self { reads }
    }
}

impl Rebase for Serializable {
    fn queueing(&self) -> Queueing {
        Queueing::InTurn
    }

    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.reads.check(lost_to, newest)?;
        StandardRules.rebase(lost_to, newest, changes)
    }
}
