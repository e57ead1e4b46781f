//! The rule of a transaction that has written what it has read: the first committer wins.

use super::{Call, Context};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::fragment::Description;
use crate::query::{Footprint, ReadContext};
use crate::store::{
    ArrayState, CellSet, Changes, Overlap, Queueing, Reads, Rebase, Record, Snapshot, StandardRules, Store,
};
use std::collections::HashMap;
use std::sync::Arc;

/// The rules of [`StandardRules`], and that no version in between wrote into what the transaction has both read and written.
pub(super) struct FirstCommitterWins {
    context: Context,
    store: Arc<Store>,
    overlap: Overlap,
}

impl FirstCommitterWins {
    pub(super) fn new(context: Context, store: Arc<Store>, overlap: Overlap) -> Self {
        Self { context, store, overlap }
    }
}

impl Rebase for FirstCommitterWins {
    /// What was written in between is looked up in files.
    fn queueing(&self) -> Queueing {
        Queueing::Apart
    }

    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        StandardRules.rebase(lost_to, newest, changes)?;
        let context = self.context.read_context(self.store.place(newest.store()), self.store.files(), &Call::default());
        self.overlap.check(lost_to, newest, |state, fragment, mine| {
            let mut found = CellSet::default();
            if mine.covers(&fragment.bounds) {
                found.add_common(mine, &fragment.bounds);
                return Ok(found);
            }
            let under = below(state, fragment)?;
            let footprint = Footprint { schema: state.schema(), fragment, under: under.as_ref() };
            footprint.add_to(&context, mine, &mut found).map_err(|e| lost(lost_to.version, e))?;
            Ok(found)
        })
    }
}

/// The fragment that a mask lies over.
fn below(state: &ArrayState, mask: &Description) -> Result<Option<Arc<Description>>> {
    let Some(over) = mask.over else { return Ok(None) };
    Ok(state.find(over, &mask.bounds)?.map(Arc::new))
}

/// What it means that a version in between cannot be read.
fn lost(version: u64, error: Error) -> Error {
    if error.kind() != ErrorKind::NotFound {
        return error;
    }
    Error::snapshot_expired(format!(
        "version {version}, committed meanwhile, cannot be read any more, since what it wrote was merged and vacuumed; whether this \
         transaction stands is not known. Nothing was committed, run it again"
    ))
    .with_source(error)
}

/// What of its `changes`, seen in `view` over version `base`, a transaction has read. `context` is of the reads of an array.
///
/// # Errors
/// Corruption, Storage, Access.
pub(super) fn overlap(
    reads: &Reads,
    changes: &Changes,
    view: &Snapshot,
    base: u64,
    context: &impl Fn(Id) -> ReadContext,
) -> Result<Overlap> {
    // What deletes by a condition has the order of the base.
    let staged = |state: &ArrayState| state.at_hand(base.saturating_sub(1)).into_iter().map(|d| (d.id, d)).collect();
    let mut known: HashMap<Id, HashMap<Id, Arc<Description>>> = HashMap::new();
    Overlap::of(reads, changes, view, |array, fragment, read, common| {
        let (bounds, state) = (&fragment.description.bounds, view.array_by_id(array)?);
        let staged = known.entry(array).or_insert_with(|| staged(&state));
        let told = match staged.get(&fragment.description.id) {
            Some(fragment) => {
                let under = fragment.over.and_then(|over| staged.get(&over).cloned());
                let under = if under.is_some() { under } else { below(&state, fragment)? };
                let footprint = Footprint { schema: state.schema(), fragment, under: under.as_ref() };
                footprint.add_to(&context(array), read, common).map(|()| true)
            }
            None => Ok(false),
        };
        match told {
            Err(e) if !e.may_be_missing() => Err(e),
            Ok(true) => Ok(()),
            // What cannot be told stands for its whole box.
            Err(_) | Ok(false) => {
                common.add_common(read, bounds);
                Ok(())
            }
        }
    })
}
