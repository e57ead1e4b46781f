//! The overlap of a transaction: cells of arrays and metadata keys of nodes that it has both read and written.
//!
//! A transaction that removes or replaces a node writes over everything it has read of that node and of the nodes
//! below.
//!
//! The first committer wins: if another commit wrote into the overlap meanwhile, the transaction would undo a change
//! that it has not seen. Data that was only read, or only written, is not in the overlap. The caller, which can read
//! fragments, says which cells a fragment writes.

use super::cell_set::CellSet;
use super::operation::{Changes, Operation, Recorded};
use super::record::Record;
use super::serializable::{Keys, Reads, place};
use super::snapshot::Snapshot;
use super::state::ArrayState;
use crate::base::{Error, Id, Result};
use crate::fragment::{Description, Staged};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// What a transaction has both read and written.
#[derive(Debug, Clone, Default)]
pub struct Overlap {
    cells: BTreeMap<Id, CellSet>,
    keys: BTreeMap<Id, Keys>,
    /// The ids of those that were removed.
    removed: BTreeSet<Id>,
}

impl Overlap {
    /// The part of `reads` that `changes`, which lead to `view`, write. `add` adds the cells that a fragment of an
    /// array writes among the given cells that were read. It is called only for fragments whose boxes were read.
    ///
    /// # Errors
    /// Those of `add`.
    pub fn of(
        reads: &Reads,
        changes: &Changes,
        view: &Snapshot,
        mut add: impl FnMut(Id, &Staged, &CellSet, &mut CellSet) -> Result<()>,
    ) -> Result<Self> {
        let made = |operation: &Operation| match operation {
            Operation::CreateArray { id, .. }
            | Operation::CreateHidden { id, .. }
            | Operation::CreateGroup { id, .. } => Some(*id),
            _ => None,
        };
        // No other commit can write to a node that does not exist yet.
        let made: BTreeSet<Id> = changes.operations.iter().filter_map(made).collect();
        let mut overlap =
            Self::of_removed(reads, |node| Ok(!made.contains(&node) && view.node_by_id(node)?.is_none()))?;
        for operation in &changes.operations {
            match operation {
                Operation::AddFragments { array: node, .. }
                | Operation::SetMetadata { node, .. }
                | Operation::SetFieldMetadata { array: node, .. }
                    if made.contains(node) => {}
                Operation::AddFragments { array, fragments } => {
                    let Some(read) = reads.cells_of(*array) else { continue };
                    let mut common = overlap.cells.remove(array).unwrap_or_default();
                    for fragment in fragments.iter().filter(|f| read.touches(&f.description.bounds)) {
                        add(*array, fragment, read, &mut common)?;
                    }
                    if !common.is_empty() {
                        overlap.cells.insert(*array, common);
                    }
                }
                Operation::SetMetadata { node, changes } => {
                    let read = changes.iter().map(|(key, _)| key).filter(|key| reads.has_looked_up(*node, key));
                    read.for_each(|key| overlap.keys.entry(*node).or_default().add(key));
                }
                Operation::SetFieldMetadata { array, field, changes } => {
                    let keys = changes.iter().map(|(key, _)| field.noted(key));
                    let read = keys.filter(|key| reads.has_looked_up(*array, key));
                    read.for_each(|key| overlap.keys.entry(*array).or_default().add(&key));
                }
                _ => {}
            }
        }
        Ok(overlap)
    }

    /// All reads of nodes that are `gone`.
    fn of_removed(reads: &Reads, gone: impl Fn(Id) -> Result<bool>) -> Result<Self> {
        let mut removed = BTreeSet::new();
        for node in reads.nodes_read() {
            if gone(node)? {
                removed.insert(node);
            }
        }
        let cells = removed.iter().filter_map(|node| Some((*node, reads.cells_of(*node)?.clone())));
        let keys = removed.iter().filter_map(|node| Some((*node, reads.keys_of(*node)?.clone())));
        Ok(Self { cells: cells.collect(), keys: keys.collect(), removed })
    }

    /// Whether nothing was both read and written.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.keys.is_empty()
    }

    /// A Conflict error if `record`, after which the store is `newest`, wrote into the overlap. `writes` returns which
    /// of some cells a fragment of an array writes; it is called only for fragments whose boxes have some of them.
    ///
    /// # Errors
    /// Conflict; those of `writes`.
    pub fn check(
        &self,
        record: &Record,
        newest: &Snapshot,
        mut writes: impl FnMut(&ArrayState, &Arc<Description>, &CellSet) -> Result<CellSet>,
    ) -> Result<()> {
        for operation in &record.operations {
            match operation {
                Recorded::AddFragments { array, fragments } => {
                    let Some(mine) = self.cells.get(array) else { continue };
                    // The transaction that wrote to the array has removed it as well.
                    let Some(state) = newest.find_array(*array)? else { continue };
                    for fragment in fragments.iter().filter(|d| mine.touches(&d.bounds)) {
                        if let Some(met) = writes(&state, fragment, mine)?.hull() {
                            let place = place(newest, *array, met);
                            let what = format!("wrote to {:?}{place}", state.path());
                            return Err(self.overtaken(record, *array, &what));
                        }
                    }
                }
                Recorded::SetMetadata { node, changes, .. } => {
                    let Some(mine) = self.keys.get(node) else { continue };
                    if let Some((key, _)) = changes.iter().find(|(key, _)| mine.have(key)) {
                        let found = newest.node_by_id(*node)?;
                        let path = found.as_ref().map_or("an array or group", super::Node::path);
                        let what = format!("set the metadata key {key:?} of {path:?}");
                        return Err(self.overtaken(record, *node, &what));
                    }
                }
                Recorded::SetFieldMetadata { array, field, changes } => {
                    let Some(mine) = self.keys.get(array) else { continue };
                    if let Some((key, _)) = changes.iter().find(|(key, _)| mine.have(&field.noted(key))) {
                        let found = newest.node_by_id(*array)?;
                        let path = found.as_ref().map_or("an array", super::Node::path);
                        let what = format!("set the metadata key {key:?} of {field} of {path:?}");
                        return Err(self.overtaken(record, *array, &what));
                    }
                }
                // Merges change no cell. Changes of nodes and schemas are checked by the standard rules.
                Recorded::ReplaceFragments { .. }
                | Recorded::AlterArray { .. }
                | Recorded::Grow { .. }
                | Recorded::Remove { .. }
                | Recorded::Move { .. }
                | Recorded::CreateGroup { .. }
                | Recorded::CreateArray { .. }
                | Recorded::CreateHidden { .. }
                | Recorded::Tag { .. }
                | Recorded::Untag { .. }
                | Recorded::Keep { .. }
                | Recorded::Release { .. }
                | Recorded::SetBase { .. }
                | Recorded::Condemn(_) => {}
            }
        }
        Ok(())
    }

    fn overtaken(&self, record: &Record, node: Id, what: &str) -> Error {
        let deed = if self.removed.contains(&node) { "read and removed" } else { "read and written" };
        Error::conflict(format!(
            "version {}, committed meanwhile, {what}, which this transaction has {deed}; nothing was committed, run it again",
            record.version
        ))
    }
}
