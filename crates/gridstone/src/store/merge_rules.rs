//! What the merges of one plan must know of the commits since: each of those is looked at once, for all merges that are still to come.

use super::conflict::{Rebase, StandardRules};
use super::operation::{Changes, Operation, Recorded, Removed};
use super::record::Record;
use super::snapshot::Snapshot;
use crate::base::{Error, Id, Result};
use crate::fragment::FragmentOrder;
use std::sync::Arc;

/// The rules of merges of one array that were planned together and are committed one after the other: those of [`StandardRules`], and that no delete
/// was added whose order lies between those of a merge's inputs. The result would be newer than that delete, and so bring back what it has
/// deleted.
///
/// They remember how far they have looked. A merge that began with the plan again would look at all that was committed since, once per
/// merge, and as long as it may do so no vacuum must take those versions away.
#[derive(Debug, Clone)]
pub struct MergeRules {
    array: Id,
    merges: Vec<Planned>,
    turn: usize,
    seen: Arc<Snapshot>,
}

/// A merge as its rules see it.
#[derive(Debug, Clone, Copy)]
struct Planned {
    /// The least order of the inputs, and the greatest.
    orders: (FragmentOrder, FragmentOrder),
    /// The version with a delete in between.
    deleted_in: Option<u64>,
}

impl MergeRules {
    /// The rules of merges of `array` that were planned with a look at `planned`; of each the least and the greatest order of its inputs.
    pub fn new(
        array: Id,
        planned: &Arc<Snapshot>,
        orders: impl IntoIterator<Item = (FragmentOrder, FragmentOrder)>,
    ) -> Self {
        let merges = orders.into_iter().map(|orders| Planned { orders, deleted_in: None }).collect();
        Self { array, merges, turn: 0, seen: Arc::clone(planned) }
    }

    /// The version up to which everything was looked at: a merge is committed after it, and nothing older is needed any more.
    pub fn seen(&self) -> &Arc<Snapshot> {
        &self.seen
    }

    /// Turns to the merge with this number, which takes out or applies `used`.
    ///
    /// # Errors
    /// Conflict if what was looked at makes it impossible; those of reading manifest pages.
    pub fn begin(&mut self, turn: usize, used: Vec<Removed>) -> Result<()> {
        self.turn = turn;
        self.check()?;
        let operation = Operation::ReplaceFragments { array: self.array, removed: used, fragments: Vec::new() };
        StandardRules::check(&self.seen, &Changes::new(vec![operation]))
    }

    /// Says that the merge whose turn it is was committed, and that this is the store with it.
    pub fn committed(&mut self, newest: Arc<Snapshot>) {
        self.seen = newest;
    }

    fn check(&self) -> Result<()> {
        match self.merges.get(self.turn).and_then(|merge| merge.deleted_in) {
            None => Ok(()),
            Some(version) => Err(Error::conflict(format!(
                "cells of fragments that were to be merged were deleted in version {version}; nothing was committed"
            ))),
        }
    }

    /// Notes which merges the deletes of `record` forbid.
    fn look(&mut self, record: &Record) {
        for operation in &record.operations {
            let Recorded::AddFragments { array, fragments } = operation else { continue };
            if *array != self.array {
                continue;
            }
            for delete in fragments.iter().filter(|d| d.kind.deletes()) {
                for merge in &mut self.merges {
                    let (first, last) = merge.orders;
                    if first < delete.order && delete.order < last {
                        merge.deleted_in.get_or_insert(record.version);
                    }
                }
            }
        }
    }
}

impl Rebase for MergeRules {
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.look(lost_to);
        // Of an array that is gone nothing is to be merged: whoever asks next is told so again.
        if newest.node_by_id(self.array).is_some() {
            self.seen = Arc::clone(newest);
        }
        self.check()?;
        StandardRules::check(newest, changes)
    }
}
