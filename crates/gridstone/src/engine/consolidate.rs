//! Consolidation of one array: plan, merge, commit, merge by merge.

use super::{Array, Call, Staged};
use crate::array::Changes;
use crate::base::{Error, ErrorKind, Result};
use crate::maintain::{Merge, PlanLimits, Strategy, merge_cells, plan};
use crate::query::{ReadOrder, Target};

/// A merge that is planned, or was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeListing {
    /// Fragments that are taken out, tombstones among them.
    pub fragments: u64,
    /// Cells read, at most.
    pub cells: u64,
    /// Bytes read, at most.
    pub bytes: u64,
    /// Fragments and bytes written; `None` while it is but planned.
    pub written: Option<(u64, u64)>,
}

/// What a consolidation did, or would do.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ConsolidateReport {
    /// The merges, in the order they were done in.
    pub merges: Vec<MergeListing>,
    /// Merges given up because another commit took out what they were to merge.
    pub overtaken: u64,
    /// Fragments of the array before.
    pub before: u64,
    /// Fragments of the array after it.
    pub after: u64,
}

impl Array {
    /// Merges fragments as `strategy` says, into fragments of about `target_bytes`; each merge is a commit of its own, so
    /// that stopping loses at most one. `dry_run`: only says what would be done.
    ///
    /// # Errors
    /// Input (not writable; fragments named that cannot be merged), Corruption, Storage, Cancelled.
    pub fn consolidate(
        &self,
        strategy: &Strategy,
        target_bytes: u64,
        dry_run: bool,
        call: &Call,
    ) -> Result<ConsolidateReport> {
        self.check_outside("fragments cannot be merged")?;
        let (snapshot, state) = self.state()?;
        let fragments = self.described(&snapshot, &state, None)?;
        let (context, target, _) = self.plan(None, None, ReadOrder::Global, call)?;
        let limits = PlanLimits { memory_bytes: context.budget.limit_bytes() / 8, cell_bytes: target.row_bytes() };
        let merges = plan(&fragments, strategy, limits)?;
        let mut report =
            ConsolidateReport { before: fragments.len() as u64, after: fragments.len() as u64, ..Default::default() };
        for merge in &merges {
            call.cancel.check()?;
            let taken = (merge.inputs.len() + merge.retired.len()) as u64;
            let mut listing =
                MergeListing { fragments: taken, cells: merge.cells(), bytes: merge.bytes(), written: None };
            if dry_run {
                report.after = report.after + 1 - taken;
                report.merges.push(listing);
                continue;
            }
            match self.merge(merge, &target, target_bytes, call) {
                Ok(written) => {
                    listing.written = Some(written);
                    report.merges.push(listing);
                }
                Err(e) if e.kind() == ErrorKind::Conflict => report.overtaken += 1,
                Err(e) => return Err(e),
            }
        }
        if !dry_run {
            report.after = self.state()?.1.count_fragments();
        }
        Ok(report)
    }

    /// Does and commits one merge; gives the fragments and bytes written.
    fn merge(&self, merge: &Merge, target: &Target, target_bytes: u64, call: &Call) -> Result<(u64, u64)> {
        let (snapshot, state) = self.state()?;
        let read = self.read_context(&snapshot, call);
        let write = self.write_context(&state, call)?;
        let mut done = Vec::new();
        let merged = merge_cells(&read, &write, target, merge, target_bytes, &mut done);
        // From here on files go with `staged`, unless they are committed.
        let mut staged: Staged = self.staged(done);
        let merged = merged?;
        let changes = Changes::new(vec![merged.operation(self.id())]);
        let outcome = self.commit_changes(&snapshot, changes);
        if outcome.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::CommitUnknown) {
            staged.keep_files();
        }
        outcome?;
        Ok((staged.fragments.len() as u64, staged.bytes()))
    }
}

/// The strategy named "tiered" or "all".
pub fn parse_strategy(name: &str) -> Result<Strategy> {
    match name {
        "tiered" => Ok(Strategy::Tiered),
        "all" => Ok(Strategy::All),
        other => Err(Error::input(format!("unknown strategy {other:?}; a strategy is \"tiered\" or \"all\""))),
    }
}
