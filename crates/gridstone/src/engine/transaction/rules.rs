//! The rules of a transaction's commit.

use super::{Isolation, Shared, Transaction};
use crate::base::{Id, Result};
use crate::engine::Call;
use crate::engine::claim::Claim;
use crate::engine::first_committer::{FirstCommitterWins, overlap};
use crate::engine::session::settled;
use crate::query::ReadContext;
use crate::store::{Changes, DeleteRules, Reads, Rebase, Record, Serializable, Snapshot, StandardRules};
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
                    ReadContext { cache, ..context.read_context(base.store(), files, &Call::default()) }
                };
                let look = |view: &Snapshot| overlap(&reads, changes, view, base.version(), &reading);
                match settled(self, view, look)?.1 {
                    // One with a key shares no record: repeated, it begins on the version that it had read.
                    nothing if nothing.is_empty() && changes.keys.is_empty() => Box::new(StandardRules),
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
