//! Consolidation of one array: plan, merge, commit, merge by merge.

use super::boxes::parse_hull;
use super::claim::Claim;
use super::{Array, Call, Staged};
use crate::array::{Changes, MergeRules, Operation, Removed, Snapshot};
use crate::base::{CounterSnapshot, Error, ErrorKind, Id, Result};
use crate::maintain::{self, Merge, Plan, PlanLimits, Strategy, Written, merge, plan};
use crate::query::{ReadContext, Target, WriteContext};
use crate::schema::Region;
use std::sync::Arc;

/// Which fragments are merged, as a user says it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MergeChoice<'a> {
    /// By a named strategy: "tiered", "all", "updates", "manifest".
    Named(&'a str),
    /// All that touches a box, low and high of every dimension as text, inclusive.
    Box(&'a [(String, String)]),
    /// All that touches the box around a region.
    Within(&'a Region),
    /// These fragments.
    Fragments(&'a [Id]),
}

/// A merge that is planned, or was done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MergeListing {
    /// "dense": boxes become dense fragments; "sparse": cells become fragments of cells.
    pub kind: &'static str,
    /// Fragments that are taken out, tombstones among them.
    pub fragments: u64,
    /// Cells read, at most.
    pub cells: u64,
    /// Bytes read, at most.
    pub bytes: u64,
    /// Fragments and bytes that will be written, about.
    pub estimate: (u64, u64),
    /// Bytes of memory that it takes, about.
    pub memory: u64,
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
    /// What the last consolidation of this array in the background failed with, told once.
    pub background_failure: Option<String>,
    /// What the reads of all merges did.
    pub counters: CounterSnapshot,
}

/// Memory that a consolidation takes of its budget, at most. More makes it no quicker: pages touched for the first time cost more than
/// larger portions save (design note 005).
const MERGE_BYTES_MAX: u64 = 64 << 20;

/// Memory that the small fragments of one merge take, at most, and an eighth of the budget at most: more of them are merged portion by
/// portion.
const INPUT_BYTES_MAX: u64 = 32 << 20;

impl Array {
    /// The strategy that `selection` asks for. Input if there is none of this name, Bounds for a box outside the domain.
    pub fn strategy(&self, selection: &MergeChoice<'_>) -> Result<Strategy> {
        match selection {
            MergeChoice::Named(name) => parse_strategy(name),
            MergeChoice::Fragments(ids) => Ok(Strategy::Fragments(ids.to_vec())),
            MergeChoice::Box(sub) => {
                let schema = self.schema()?;
                let asked = parse_hull(&schema, Some(sub))?;
                schema.check_inside(&asked)?;
                Ok(Strategy::Box(asked))
            }
            MergeChoice::Within(region) => {
                let nothing = || Error::input("the box is empty: there is nothing in it to merge");
                let hull = region.hull().ok_or_else(nothing)?;
                self.schema()?.check_inside(hull)?;
                Ok(Strategy::Box(hull.clone()))
            }
        }
    }

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
        let context = self.read_context(&snapshot, call).within(MERGE_BYTES_MAX);
        let target = Target { array: self.id(), schema: state.schema()?.clone(), fragments: fragments.clone() };
        let memory_bytes = (self.context().budget.limit_bytes() / 8).min(INPUT_BYTES_MAX);
        let limits = PlanLimits { memory_bytes, cell_bytes: target.row_bytes() };
        let plan = plan(&target.schema, &fragments, strategy, limits)?;
        let before = fragments.len() as u64;
        let mut report = ConsolidateReport { before, after: before, ..Default::default() };
        drop(fragments);
        if dry_run {
            foresee(&plan, &context, &target, target_bytes, &mut report);
            return Ok(report);
        }
        self.check_writable()?;
        // Each merge looks at all that came since the plan: no vacuum is to take that away between them. During a long one the claim
        // of what it reads is renewed.
        let claim = (!plan.merges.is_empty()).then(|| self.claim(&snapshot));
        for merge in &plan.merges {
            call.cancel.check()?;
            claim.iter().for_each(Claim::touch);
            let mut listing = listing(merge, &context, &target, target_bytes);
            match self.merge((&context, &snapshot), merge, &target, target_bytes, call) {
                Ok(None) => continue,
                Ok(written) => listing.written = written,
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => {
                    report.overtaken += 1;
                    if merge.is_of_cells() {
                        continue;
                    }
                    // What was planned after it takes its result for granted.
                    break;
                }
                Err(e) => return Err(e),
            }
            report.merges.push(listing);
        }
        if report.overtaken == 0 {
            report.overtaken += u64::from(!self.sweep(&plan)?);
        }
        if *strategy == Strategy::Manifest {
            self.pack(&snapshot)?;
        }
        report.background_failure = self.context().upkeep().take_failure(snapshot.store(), self.id());
        report.counters = context.counters.snapshot();
        report.after = self.state()?.1.count_fragments();
        self.context().upkeep().left(snapshot.store(), self.id(), report.after);
        Ok(report)
    }

    /// Does and commits one merge; gives the fragments and bytes written, `None` if there was nothing to do.
    fn merge(
        &self,
        (read, planned): (&ReadContext, &Arc<Snapshot>),
        one: &Merge,
        target: &Target,
        target_bytes: u64,
        call: &Call,
    ) -> Result<Option<(u64, u64)>> {
        // Of the schema that the plan was made with, whatever became of it meanwhile.
        let whole = self.write_context(planned.array_by_id(self.id())?, call)?;
        let write = WriteContext { budget: &read.budget, arena: &read.arena, ..whole };
        let mut written = Written::default();
        let merged = read.explained(merge(read, &write, target, one, target_bytes, &mut written));
        drop(self.staged(written.scratch));
        // From here on files go with `staged`, unless they are committed.
        let mut staged: Staged = self.staged(written.done);
        let Some(merged) = merged? else { return Ok(None) };
        let changes = Changes::new(merged.operations(self.id()));
        // All that others did since the plan was made is looked at, also what an earlier merge of it has passed.
        let (last, first) = (one.order(), one.inputs.first().map_or(one.order(), |d| d.order));
        let outcome = self.commit_by(planned, changes, &mut MergeRules { array: self.id(), first, last });
        if outcome.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::CommitUnknown) {
            staged.keep_files();
        }
        outcome?;
        Ok(Some((staged.fragments.len() as u64, staged.bytes())))
    }

    /// Takes out the tombstones that nothing is left under; says whether they were there.
    fn sweep(&self, plan: &Plan) -> Result<bool> {
        if plan.swept.is_empty() {
            return Ok(true);
        }
        let removed = plan.swept.iter().map(|d| Removed::of(d)).collect();
        let operation = Operation::ReplaceFragments { array: self.id(), removed, fragments: Vec::new() };
        match self.commit_changes(&self.state()?.0, Changes::new(vec![operation])) {
            Ok(_) => Ok(true),
            Err(e) if e.kind() == ErrorKind::Conflict => Ok(false),
            Err(e) => Err(e),
        }
    }
}

/// Puts into `report` what the plan would do.
fn foresee(plan: &Plan, context: &ReadContext, target: &Target, target_bytes: u64, report: &mut ConsolidateReport) {
    for merge in &plan.merges {
        let listing = listing(merge, context, target, target_bytes);
        report.after = (report.after + listing.estimate.0).saturating_sub(listing.fragments);
        report.merges.push(listing);
    }
    report.after = report.after.saturating_sub(plan.swept.len() as u64);
}

fn listing(merge: &Merge, context: &ReadContext, target: &Target, target_bytes: u64) -> MergeListing {
    let bytes = merge.bytes_written();
    let least = merge.boxes.len().max(1) as u64;
    MergeListing {
        kind: if merge.is_of_cells() { "sparse" } else { "dense" },
        fragments: (merge.inputs.len() + merge.retired.len()) as u64,
        cells: merge.cells(),
        bytes: merge.bytes(),
        estimate: ((bytes / target_bytes.max(1)).max(least), bytes),
        memory: maintain::memory_bytes(merge, context, target),
        written: None,
    }
}

/// The strategy of this name, of those that need no more than a name.
pub fn parse_strategy(name: &str) -> Result<Strategy> {
    match name {
        "tiered" => Ok(Strategy::Tiered),
        "all" => Ok(Strategy::All),
        "updates" => Ok(Strategy::Updates),
        "manifest" => Ok(Strategy::Manifest),
        other => Err(Error::input(format!(
            "unknown strategy {other:?}; a strategy is \"tiered\", \"all\", \"updates\" or \"manifest\""
        ))),
    }
}
