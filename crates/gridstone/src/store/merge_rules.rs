//! Shared rules of the merges of one plan: each commit since is checked once, for all merges that are still to come.

use super::conflict::{Rebase, StandardRules};
use super::operation::{Changes, Operation, Recorded, Removed};
use super::record::Record;
use super::snapshot::Snapshot;
use crate::base::{Error, Id, Result};
use crate::fragment::FragmentOrder;
use std::sync::Arc;

/// The rules of merges of one array that were planned together and are committed one after the other. In addition to
/// [`StandardRules`], no delete may have been added whose order lies between those of a merge's inputs. The result
/// would be newer than that delete, and so restore the cells that it deleted.
///
/// The rules remember the version up to which they have checked. If each merge began again at the plan, it would check
/// all commits since, once per merge, and no vacuum might remove those versions meanwhile.
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
    /// The least and the greatest order of its inputs.
    orders: (FragmentOrder, FragmentOrder),
    /// The version with a delete in between.
    deleted_in: Option<u64>,
}

impl MergeRules {
    /// The rules of merges of `array` that were planned against `planned`; for each the least and the greatest order of
    /// its inputs.
    pub fn new(
        array: Id,
        planned: &Arc<Snapshot>,
        orders: impl IntoIterator<Item = (FragmentOrder, FragmentOrder)>,
    ) -> Self {
        let merges = orders.into_iter().map(|orders| Planned { orders, deleted_in: None }).collect();
        Self { array, merges, turn: 0, seen: Arc::clone(planned) }
    }

    /// The version up to which all commits were checked. A merge is committed after it, and older versions are not
    /// needed any more.
    pub fn seen(&self) -> &Arc<Snapshot> {
        &self.seen
    }

    /// Selects the merge with this number, which removes or applies `used`.
    ///
    /// # Errors
    /// Conflict if a commit checked before makes it impossible; those of reading manifest pages.
    pub fn begin(&mut self, turn: usize, used: Vec<Removed>) -> Result<()> {
        self.turn = turn;
        self.check()?;
        let operation = Operation::ReplaceFragments { array: self.array, removed: used, fragments: Vec::new() };
        StandardRules::check(&self.seen, &Changes::new(vec![operation]))
    }

    /// Notes that the current merge was committed, and that `newest` is the store with it.
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
        // Nothing can be merged in an array that was removed: each later check fails again.
        if newest.node_by_id(self.array)?.is_some() {
            self.seen = Arc::clone(newest);
        }
        self.check()?;
        StandardRules::check(newest, changes)
    }
}
