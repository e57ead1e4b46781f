//! The rules for a commit whose slot was taken by another one: the changes are checked again, against the state that
//! the other commit left. The table of all pairs is in `docs/format/conflicts.md`.

use super::bases::Base;
use super::field::Field;
use super::kept::Kept;
use super::operation::{Changes, Operation, Recorded, Removed};
use super::record::Record;
use super::snapshot::Snapshot;
use crate::base::{Error, Id, Result};
use crate::fragment::Description;
use crate::schema::Subarray;
use std::sync::Arc;

/// How a commit shares the queue with other commits of its process to the same store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Queueing {
    /// It may share a record with others, if its changes allow that.
    Shared,
    /// It has its own record and waits for its turn, so that no other thread of its process takes its slot. Its rules
    /// are decided quickly.
    InTurn,
    /// It commits without queueing: its rules may take long, and others must not wait for them.
    Apart,
}

/// Decides whether changes still apply after another commit came first, and adapts them.
pub trait Rebase {
    /// Called for every version in between, in order: `lost_to` is its record, `newest` the store with it. May modify
    /// `changes`. A Conflict error gives up the commit.
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()>;

    /// How it shares the queue with other commits of this process.
    fn queueing(&self) -> Queueing {
        Queueing::Apart
    }

    /// Whether [`Rebase::rebase_past_floor`] decides as well as a check of every version in between would. A writer
    /// that is far behind then opens the newest version instead of reading all of them.
    fn newest_suffices(&self) -> bool {
        false
    }

    /// Whether the changes are those of several commits, which share a record and are checked for their keys here.
    fn is_of_many(&self) -> bool {
        false
    }

    /// Called instead if the log was truncated and the versions in between cannot be read. The default gives up, since
    /// their changes are unknown.
    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        let _ = changes;
        Err(Error::snapshot_expired(format!(
            "the log was truncated while this commit was prepared; the store is at version {} now, open it again and repeat",
            newest.version()
        )))
    }
}

/// The standard rules for plain changes: only missing or taken objects conflict.
///
/// - Fragments added: conflict if the array was removed. An array created at its path later has another id.
/// - Masks added: conflict also if a masked fragment was removed and is not added by the same commit.
/// - Fragments replaced: conflict if the array was removed, or if one of the fragments to remove was already removed or
///   masked.
/// - A schema changed: conflict if the array was removed, or its schema changed. Fragments do not conflict with it,
///   whatever schema they were written with.
/// - A domain made to grow: conflict if the array was removed. Domains only grow, so it takes the union.
/// - Metadata set: conflict if the node was removed, or the attribute that it is of was dropped; else the last writer wins,
///   key by key.
/// - A hidden array created: conflict if its owner was removed; an Exists error if its name was taken.
/// - A node removed: conflict if it was removed already.
/// - A node moved: conflict if it was removed, or lies elsewhere by now; an Exists error if its target path is taken.
/// - Files kept: conflict if the array or the fragment or data file beside which they are kept was removed. Files kept no
///   longer: conflict if they were released already.
/// - A base set: conflict if others set it.
/// - A version tagged: an Exists error if the name was taken, unless the tag is to be moved. A tag removed: conflict if
///   it was moved or removed.
/// - Data in a condemned file conflicts under all rules: that is checked where records are applied.
/// - A node created: an Exists error if its path was taken, or if a parent became an array.
#[derive(Debug, Clone, Copy, Default)]
pub struct StandardRules;

impl StandardRules {
    /// A Conflict error if `changes` do not apply after `newest`.
    pub fn check(newest: &Snapshot, changes: &Changes) -> Result<()> {
        let (mut created, mut altered): (Vec<Id>, Vec<Id>) = (Vec::new(), Vec::new());
        let mut moves: Vec<(&str, &str)> = Vec::new();
        for operation in &changes.operations {
            let needed = match operation {
                Operation::CreateGroup { id, .. } | Operation::CreateArray { id, .. } => {
                    created.push(*id);
                    continue;
                }
                Operation::CreateHidden { id, owner, .. } => {
                    created.push(*id);
                    *owner
                }
                Operation::Remove { id } | Operation::AlterArray { id, .. } | Operation::Move { id, .. } => *id,
                Operation::AddFragments { array, .. }
                | Operation::ReplaceFragments { array, .. }
                | Operation::Grow { array, .. }
                | Operation::Keep { array, .. }
                | Operation::Release { array, .. }
                | Operation::SetFieldMetadata { array, .. } => *array,
                Operation::SetMetadata { node, .. } => *node,
                Operation::SetBase { number, before, .. } => {
                    check_base(newest, *number, before.as_deref())?;
                    continue;
                }
                Operation::Untag { name, version } => {
                    check_tag(newest, name, *version)?;
                    continue;
                }
                Operation::Tag { .. } | Operation::Condemn(_) => continue,
            };
            if newest.node_by_id(needed)?.is_none() && !created.contains(&needed) {
                return Err(Error::conflict(format!(
                    "the array or group that this changes was removed by another commit, at the latest in version {}; \
                     nothing was committed",
                    newest.version()
                )));
            }
            match operation {
                Operation::ReplaceFragments { array, removed, .. } => {
                    newest.array_by_id(*array)?.check_present(removed)?;
                }
                Operation::AddFragments { array, .. } if !created.contains(array) => {
                    newest.array_by_id(*array)?.check_masked(changes.added_to(*array))?;
                }
                Operation::Move { id, from, path } => {
                    check_place(newest, *id, &before(from, &moves))?;
                    moves.push((from, path));
                }
                Operation::SetFieldMetadata { array, field, .. }
                    if !created.contains(array) && !altered.contains(array) =>
                {
                    check_field(newest, *array, *field)?;
                }
                // A later change of the same commit follows the earlier one.
                Operation::AlterArray { id, number, .. } if !created.contains(id) && !altered.contains(id) => {
                    newest.array_by_id(*id)?.check_alter(*number)?;
                    altered.push(*id);
                }
                Operation::Keep { array, kept, near } => {
                    check_kept(newest, *array, (kept, near.as_ref()), changes)?;
                }
                Operation::Release { array, entry } => newest.array_by_id(*array)?.check_entry(*entry)?,
                _ => {}
            }
        }
        Ok(())
    }
}

/// A Conflict error unless the array has the attribute or dimension.
fn check_field(newest: &Snapshot, array: Id, field: Field) -> Result<()> {
    let found = newest.array_by_id(array)?;
    if found.has_field(field) {
        return Ok(());
    }
    Err(Error::conflict(format!(
        "the {field} of the array {}, which metadata was set of, was dropped by another commit; nothing was committed",
        found.path()
    )))
}

/// A Conflict error unless the base is what it is expected to be.
fn check_base(newest: &Snapshot, number: u32, before: Option<&Base>) -> Result<()> {
    if newest.bases().get(number)?.as_deref() == before {
        return Ok(());
    }
    Err(Error::conflict(format!("another commit changed what base {number} is; nothing was committed")))
}

/// A Conflict error unless the owner of `kept` is there, or comes with the same changes.
fn check_kept(newest: &Snapshot, array: Id, (kept, near): (&Kept, Option<&Subarray>), changes: &Changes) -> Result<()> {
    match newest.find_array(array)? {
        Some(state) if !kept.is_of(changes.added_to(array)) => state.check_owner(kept, near),
        _ => Ok(()),
    }
}

/// The path, before `moves`, of the node that is at `path` after them.
fn before(path: &str, moves: &[(&str, &str)]) -> String {
    moves.iter().rev().fold(path.to_owned(), |path, (from, to)| match path.strip_prefix(to) {
        Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{from}{rest}"),
        _ => path,
    })
}

/// A Conflict error unless the node is still at `from`.
fn check_place(newest: &Snapshot, id: Id, from: &str) -> Result<()> {
    match newest.node_by_id(id)? {
        Some(node) if node.path() != from => Err(Error::conflict(format!(
            "what was to be moved from {from} lies at {} now: another commit moved it; nothing was committed",
            node.path()
        ))),
        _ => Ok(()),
    }
}

/// A Conflict error unless the tag still names `version`.
fn check_tag(newest: &Snapshot, name: &str, version: u64) -> Result<()> {
    match newest.retained().tag(name)? {
        Some(named) if named == version => Ok(()),
        found => Err(Error::conflict(format!(
            "the tag {name:?} named version {version} and names {} now: another commit changed it; nothing was committed",
            found.map_or_else(|| "none".to_owned(), |v| format!("version {v}"))
        ))),
    }
}

impl Rebase for StandardRules {
    fn queueing(&self) -> Queueing {
        Queueing::Shared
    }

    /// Ids never come back, so a fragment that the newest version still has was present in all versions in between.
    fn newest_suffices(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        Self::check(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        Self::check(newest, changes)
    }
}

/// The rules of a delete whose order is that of an earlier version. In addition to [`StandardRules`], nothing that it
/// deletes may have been merged since with newer data. A merged fragment has the order of its newest input, so the
/// delete would be older than the cells it deletes. If the merged fragment is still older than the delete, the delete
/// applies as before.
#[derive(Debug, Clone, Copy)]
pub struct DeleteRules {
    /// The array.
    pub array: Id,
}

impl DeleteRules {
    /// A Conflict error if `record` merged data that one of `deletes` reaches with something newer.
    pub(super) fn check<'a>(
        &self,
        record: &Record,
        deletes: impl Iterator<Item = &'a Description> + Clone,
    ) -> Result<()> {
        let merges = |op: &Recorded| match op {
            Recorded::ReplaceFragments { array, removed, fragments } if *array == self.array => {
                deletes.clone().any(|delete| {
                    let reached = |r: &Removed| r.order < delete.order && r.bounds.intersects(&delete.bounds);
                    removed.iter().any(reached) && fragments.iter().any(|d| d.order > delete.order)
                })
            }
            _ => false,
        };
        if record.operations.iter().any(merges) {
            return Err(Error::conflict(format!(
                "fragments whose cells were to be deleted were merged with newer ones in version {}; nothing was committed",
                record.version
            )));
        }
        Ok(())
    }
}

impl Rebase for DeleteRules {
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        self.check(lost_to, changes.added_to(self.array).filter(|d| d.kind.deletes() && d.order.version > 0))?;
        StandardRules::check(newest, changes)
    }
}

/// The rules for removing fragments that newer ones hide. What is hidden stays hidden, since merges keep what hides it. So
/// fragments that were merged or masked meanwhile are left out, and the others are removed nevertheless: writers that
/// never pause cannot overtake the removal for ever.
#[derive(Debug, Clone, Copy)]
pub struct HiddenRules;

impl HiddenRules {
    fn leave_out(newest: &Snapshot, changes: &mut Changes) -> Result<()> {
        let mut kept = Vec::new();
        for operation in std::mem::take(&mut changes.operations) {
            let Operation::ReplaceFragments { array, removed, fragments } = operation else {
                return Err(Error::input("a removal of hidden fragments does nothing else"));
            };
            let Some(state) = newest.find_array(array)? else { continue };
            let removed = state.present_among(&removed)?;
            if !removed.is_empty() {
                kept.push(Operation::ReplaceFragments { array, removed, fragments });
            }
        }
        changes.operations = kept;
        match changes.operations.is_empty() {
            true => Err(Error::conflict("all hidden fragments were merged, masked or removed by other commits")),
            false => Ok(()),
        }
    }
}

impl Rebase for HiddenRules {
    fn newest_suffices(&self) -> bool {
        true
    }

    fn rebase(&mut self, _lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        Self::leave_out(newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        Self::leave_out(newest, changes)
    }
}

/// The rules of the first commit: there is nothing to rebase on.
#[derive(Debug, Clone, Copy)]
pub(super) struct MustBeFirst;

impl Rebase for MustBeFirst {
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, _changes: &mut Changes) -> Result<()> {
        let _ = lost_to;
        Err(Error::exists(format!("another writer just created this store; it is at version {}", newest.version())))
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, _changes: &mut Changes) -> Result<()> {
        Err(Error::exists(format!("there is a store here already, at version {}", newest.version())))
    }
}
