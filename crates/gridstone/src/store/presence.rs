//! Which fragments a version has already: no fragment is added twice, and none is taken out that is not there.

use super::operation::{Changes, Operation};
use super::snapshot::Snapshot;
use super::state::ArrayState;
use crate::base::{FileRef, Id, Result};
use crate::fragment::Staged;
use std::collections::HashSet;

/// A Conflict error if a fragment that came by data file is in its array already, or one to be removed is not. Ids of
/// inline fragments are checked only against recent versions, when the record is applied: they were made for this one
/// commit and cannot be older.
pub(super) fn check_once(newest: &Snapshot, changes: &Changes) -> Result<()> {
    for operation in &changes.operations {
        let (array, fragments, removed) = match operation {
            Operation::AddFragments { array, fragments } => (array, fragments, &[][..]),
            Operation::ReplaceFragments { array, removed, fragments } => (array, fragments, removed.as_slice()),
            _ => continue,
        };
        let Some(state) = newest.find_array(*array)? else { continue };
        let by_file = |f: &&Staged| f.body.is_none() && f.description.location.file != FileRef::Nowhere;
        check_pages(&state, fragments.iter().filter(by_file))?;
        state.check_masked(changes.added_to(*array))?;
        state.check_present(removed)?;
    }
    Ok(())
}

fn check_pages<'a>(array: &ArrayState, staged: impl Iterator<Item = &'a Staged>) -> Result<()> {
    find_described(array, &staged.collect::<Vec<_>>())?.map_or(Ok(()), |known| Err(array.twice(known)))
}

/// One of these fragments, if the array's pages describe it.
fn find_described(array: &ArrayState, staged: &[&Staged]) -> Result<Option<Id>> {
    let ids: HashSet<Id> = staged.iter().map(|f| f.description.id).collect();
    // A fragment has the same box wherever it is described, so only pages that touch the box can describe it.
    let touched = |bounds: &crate::schema::Subarray| staged.iter().any(|f| f.description.bounds.intersects(bounds));
    for shelf in array.shelves.iter().filter(|s| touched(&s.info().bounds)) {
        if let Some(known) = shelf.load()?.iter().find(|d| ids.contains(&d.id)) {
            return Ok(Some(known.id));
        }
    }
    Ok(None)
}

/// How many of the fragments that `changes` add `newest` contains, and how many there are.
pub(super) fn count_added(newest: &Snapshot, changes: &Changes) -> Result<(usize, usize)> {
    let (mut found, mut all) = (0, 0);
    for operation in &changes.operations {
        let (Operation::AddFragments { array, fragments } | Operation::ReplaceFragments { array, fragments, .. }) =
            operation
        else {
            continue;
        };
        all += fragments.len();
        if let Some(state) = newest.find_array(*array)? {
            found += count_present(&state, fragments)?;
        }
    }
    Ok((found, all))
}

/// How many of these fragments the array contains.
fn count_present(array: &ArrayState, staged: &[Staged]) -> Result<usize> {
    let ids: HashSet<Id> = staged.iter().map(|f| f.description.id).collect();
    let mut present: HashSet<Id> = array.recent().map(|d| d.id).filter(|id| ids.contains(id)).collect();
    let touched = |bounds: &crate::schema::Subarray| staged.iter().any(|f| f.description.bounds.intersects(bounds));
    for shelf in array.shelves.iter().filter(|s| touched(&s.info().bounds)) {
        present.extend(shelf.load()?.iter().map(|d| d.id).filter(|id| ids.contains(id)));
    }
    Ok(present.len())
}
