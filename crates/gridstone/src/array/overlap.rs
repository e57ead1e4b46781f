//! What a transaction has both read and written: cells of arrays, metadata keys of nodes.
//!
//! The first committer wins: a transaction whose overlap another commit wrote into meanwhile would undo what it has not seen. What
//! was only read, or only written, is no part of it. What a fragment writes is told by whoever can read fragments.

use super::cell_set::CellSet;
use super::operation::{Changes, Operation, Recorded};
use super::record::Record;
use super::serializable::{Reads, place};
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
    keys: BTreeMap<Id, BTreeSet<String>>,
}

impl Overlap {
    /// What `reads` has of what `changes` write. `add` puts into a set what a fragment of an array writes to the cells that were read, which
    /// are given too; it is asked only about fragments whose boxes were read.
    ///
    /// # Errors
    /// Those of `add`.
    pub fn of(
        reads: &Reads,
        changes: &Changes,
        mut add: impl FnMut(Id, &Staged, &CellSet, &mut CellSet) -> Result<()>,
    ) -> Result<Self> {
        let mut overlap = Self::default();
        let made = |operation: &Operation| match operation {
            Operation::CreateArray { id, .. } | Operation::CreateGroup { id, .. } => Some(*id),
            _ => None,
        };
        // Nobody else can write to what does not exist yet.
        let made: BTreeSet<Id> = changes.operations.iter().filter_map(made).collect();
        for operation in &changes.operations {
            match operation {
                Operation::AddFragments { array: node, .. } | Operation::SetMetadata { node, .. }
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
                    let mut read = read.peekable();
                    if read.peek().is_some() {
                        overlap.keys.entry(*node).or_default().extend(read.cloned());
                    }
                }
                _ => {}
            }
        }
        Ok(overlap)
    }

    /// Whether nothing was both read and written.
    pub fn is_empty(&self) -> bool {
        self.cells.is_empty() && self.keys.is_empty()
    }

    /// A Conflict error if `record`, after which the store is `newest`, wrote into it. `writes` gives what of some cells a fragment of an array
    /// writes; it is asked only about fragments whose boxes have some of them.
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
                    let state = newest.array_by_id(*array)?;
                    for fragment in fragments.iter().filter(|d| mine.touches(&d.bounds)) {
                        if let Some(met) = writes(state, fragment, mine)?.hull() {
                            let place = place(newest, *array, met);
                            return Err(overtaken(record, &format!("wrote to {:?}{place}", state.path())));
                        }
                    }
                }
                Recorded::SetMetadata { node, changes } => {
                    let Some(mine) = self.keys.get(node) else { continue };
                    if let Some((key, _)) = changes.iter().find(|(key, _)| mine.contains(key)) {
                        let path = newest.node_by_id(*node).map_or("an array or group", super::Node::path);
                        return Err(overtaken(record, &format!("set the metadata key {key:?} of {path:?}")));
                    }
                }
                // Merges change no cell. What becomes of nodes and schemas is for the standard rules.
                Recorded::ReplaceFragments { .. }
                | Recorded::AlterArray { .. }
                | Recorded::Remove { .. }
                | Recorded::Move { .. }
                | Recorded::CreateGroup { .. }
                | Recorded::CreateArray { .. }
                | Recorded::Tag { .. }
                | Recorded::Untag { .. }
                | Recorded::Condemn(_) => {}
            }
        }
        Ok(())
    }
}

fn overtaken(record: &Record, what: &str) -> Error {
    Error::conflict(format!(
        "version {}, committed meanwhile, {what}, which this transaction has read and written; nothing was committed, run it again",
        record.version
    ))
}
