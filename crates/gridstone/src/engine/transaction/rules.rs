//! The rules of a transaction's commit.

use super::{Isolation, Shared, Transaction};
use crate::base::{Id, Result};
use crate::engine::Call;
use crate::engine::claim::Claim;
use crate::engine::first_committer::{FirstCommitterWins, overlap};
use crate::engine::session::settled;
use crate::query::ReadContext;
use crate::store::{Changes, DeleteRules, Queueing, Reads, Rebase, Record, Serializable, Snapshot, StandardRules};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The rules of a transaction in which cells were deleted of the order of its base.
struct DeletingRules {
    inner: Box<dyn Rebase>,
    deletes: Vec<DeleteRules>,
}

impl Rebase for DeletingRules {
    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        for rules in &mut self.deletes {
            rules.rebase(lost_to, newest, changes)?;
        }
        self.inner.rebase(lost_to, newest, changes)
    }
}

/// The standard rules of a commit with a key, which shares no record: repeated, the transaction begins on the version that its record says
/// it had read.
struct OwnRecord;

impl Rebase for OwnRecord {
    fn queueing(&self) -> Queueing {
        Queueing::InTurn
    }

    fn newest_suffices(&self) -> bool {
        StandardRules.newest_suffices()
    }

    fn rebase(&mut self, lost_to: &Record, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        StandardRules.rebase(lost_to, newest, changes)
    }

    fn rebase_past_floor(&mut self, newest: &Arc<Snapshot>, changes: &mut Changes) -> Result<()> {
        StandardRules.rebase_past_floor(newest, changes)
    }
}

impl Transaction {
    /// The rules of a commit of `changes`, which `view` shows, under a claim on the base.
    pub(super) fn rules(
        &self,
        reads: Reads,
        changes: &Changes,
        view: &Arc<Snapshot>,
        claim: &Arc<Claim>,
        deletes: BTreeSet<Id>,
    ) -> Result<Box<dyn Rebase>> {
        let Shared { context, store, base, isolation, .. } = self.shared.as_ref();
        let rules: Box<dyn Rebase> = match isolation {
            Isolation::Serializable => Box::new(Serializable::new(reads)),
            Isolation::Snapshot => {
                let reading = |array| {
                    let (files, cache) = self.reading_under(claim.clone(), array);
                    ReadContext { cache, ..context.read_context(store.place(base.store()), files, &Call::default()) }
                };
                let look = |view: &Snapshot| overlap(&reads, changes, view, base.version(), &reading);
                match settled(self, view, look)?.1 {
                    nothing if nothing.is_empty() && changes.keys.is_empty() => Box::new(StandardRules),
                    nothing if nothing.is_empty() => Box::new(OwnRecord),
                    both => Box::new(FirstCommitterWins::new(context.clone(), store.clone(), both)),
                }
            }
        };
        if deletes.is_empty() {
            return Ok(rules);
        }
        let deletes = deletes.into_iter().map(|array| DeleteRules { array }).collect();
        Ok(Box::new(DeletingRules { inner: rules, deletes }))
    }
}
