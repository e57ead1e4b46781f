//! The history of an array, or of a store, as users see it: what each version did, in fragments, cells and bytes.

use crate::base::Id;
use crate::fragment::{Description, FragmentKind};
use crate::store::{Record, Recorded, Removed, Store};
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

/// What one operation of a version did.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Change {
    /// Its name.
    pub name: &'static str,
    /// Fragments added, metadata keys changed, 1 otherwise.
    pub count: u64,
    /// The tag that it gave or took away.
    pub tag: Option<String>,
    /// What it added and removed, if it is about fragments.
    pub cells: Option<CellChange>,
}

/// The fragments that an operation added and removed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CellChange {
    /// Fragments added.
    pub fragments: u64,
    /// Cells in them.
    pub cells: u64,
    /// Cells that they delete.
    pub deleted_cells: u64,
    /// Boxes that they delete.
    pub deleted_boxes: u64,
    /// Bytes of them.
    pub bytes: u64,
    /// Fragments removed.
    pub removed: u64,
    /// Cells in these.
    pub removed_cells: u64,
    /// Bytes of these.
    pub removed_bytes: u64,
    /// Fragments removed whose cells and bytes are not known: a vacuum forgot the versions that added them meanwhile.
    pub unknown: u64,
}

impl CellChange {
    fn add(&mut self, d: &Description) {
        self.fragments += 1;
        self.bytes += d.location.len;
        match d.kind {
            FragmentKind::Deletion => self.deleted_boxes += 1,
            kind if kind.holds_cells() => self.cells += d.cells,
            _ => self.deleted_cells += d.cells,
        }
    }
}

/// A version of a store, as the history of one array, or of the store, tells it.
#[derive(Debug, Clone)]
pub struct VersionListing {
    /// The version.
    pub version: u64,
    /// When: UTC in microseconds.
    pub time_us: i64,
    /// The writer's line.
    pub message: Option<String>,
    /// The commit's random id.
    pub commit_id: Id,
    /// What it did, in order.
    pub operations: Vec<Change>,
    /// The tags that name it, sorted.
    pub tags: Vec<String>,
}

/// Lists versions one after the other, oldest first, and remembers what the fragments of those before took.
pub(super) struct Historian<'a> {
    store: &'a Store,
    tags: BTreeMap<String, u64>,
    /// Cells and bytes of the fragments seen.
    sizes: HashMap<Id, (u64, u64)>,
    /// Whether the fragments of the oldest version were looked at.
    knows_oldest: bool,
}

impl<'a> Historian<'a> {
    pub(super) fn new(store: &'a Store, tags: BTreeMap<String, u64>) -> Self {
        Self { store, tags, sizes: HashMap::new(), knows_oldest: false }
    }

    /// What the next version did to `node`; `None`: all that it did.
    pub(super) fn version(&mut self, record: &Record, node: Option<Id>) -> VersionListing {
        let mine = record.operations.iter().filter(|op| node.is_none() || op.node() == node);
        let operations = mine.map(|op| self.change(op)).collect();
        let named = self.tags.iter().filter(|(_, version)| **version == record.version);
        VersionListing {
            version: record.version,
            time_us: record.time_us,
            message: record.message.clone(),
            commit_id: record.commit_id,
            operations,
            tags: named.map(|(name, _)| name.clone()).collect(),
        }
    }

    fn change(&mut self, operation: &Recorded) -> Change {
        let (mut count, mut tag, mut cells) = (1, None, None);
        match operation {
            Recorded::AddFragments { fragments, .. } => {
                count = fragments.len() as u64;
                cells = Some(self.cells(&[], fragments));
            }
            Recorded::ReplaceFragments { removed, fragments, .. } => {
                count = fragments.len() as u64;
                cells = Some(self.cells(removed, fragments));
            }
            Recorded::SetMetadata { changes, .. } | Recorded::SetFieldMetadata { changes, .. } => {
                count = changes.len() as u64;
            }
            Recorded::Tag { name, .. } | Recorded::Untag { name } => tag = Some(name.clone()),
            _ => {}
        }
        Change { name: operation.name(), count, tag, cells }
    }

    fn cells(&mut self, removed: &[Removed], fragments: &[Arc<Description>]) -> CellChange {
        let mut change = CellChange { removed: removed.len() as u64, ..CellChange::default() };
        for gone in removed {
            match self.taken(gone.id) {
                Some((cells, bytes)) => {
                    change.removed_cells += cells;
                    change.removed_bytes += bytes;
                }
                None => change.unknown += 1,
            }
        }
        for d in fragments {
            change.add(d);
            self.see(d);
        }
        change
    }

    fn see(&mut self, d: &Description) {
        let cells = if d.kind.holds_cells() { d.cells } else { 0 };
        self.sizes.insert(d.id, (cells, d.location.len));
    }

    /// What a fragment took that is gone now.
    fn taken(&mut self, id: Id) -> Option<(u64, u64)> {
        if !self.knows_oldest && !self.sizes.contains_key(&id) {
            self.knows_oldest = true;
            // Best effort: a vacuum may take that version away meanwhile.
            let _ = self.see_oldest();
        }
        self.sizes.remove(&id)
    }

    fn see_oldest(&mut self) -> crate::base::Result<()> {
        let Some(floor) = self.store.floor()? else { return Ok(()) };
        for node in self.store.at_version(floor.version)?.nodes()? {
            if let crate::store::Node::Array(array) = node {
                self.store.fragments_of(&array)?.iter().for_each(|d| self.see(d));
            }
        }
        Ok(())
    }
}
