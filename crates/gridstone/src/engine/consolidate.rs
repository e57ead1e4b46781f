//! Consolidation of one array: plan, merge, commit, merge by merge.

use super::boxes::{hull_of, parse_box};
use super::claim::Claim;
use super::merge_report::{ConsolidateReport, MergeListing};
use super::{Array, Call, Staged};
use crate::base::{Error, ErrorKind, FileRef, Id, Part, Result, Silent};
use crate::fragment::{self, Description};
use crate::maintain::{
    self, HIDDEN_BYTES_MAX, Merge, Plan, PlanLimits, Strategy, Written, hidden, is_done, merge, plan,
};
use crate::query::{ReadContext, Target, WriteContext};
use crate::schema::{Region, Schema};
use crate::storage::data_name;
use crate::store::{ArrayState, Changes, MergeRules, Operation, Removed, Snapshot};
use std::collections::HashSet;
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

/// Memory that a consolidation takes of its budget, at most, besides small fragments. More makes it no quicker: pages touched for the first
/// time cost more than larger portions save (design note 005).
const MERGE_BYTES_MAX: u64 = 64 << 20;

/// Memory that the small fragments of one merge take decoded, at most, and an eighth of the budget at most: more of them are merged portion
/// by portion, and leave as many fragments.
const INPUT_BYTES_MAX: u64 = 128 << 20;

/// A consolidation that took out so many fragments packs the list of them: its records name each, in 150 bytes, which every opening of
/// the store would decode until the next fold, of thousands for longer than the fragments themselves had taken.
const PACKED_FRAGMENTS: u64 = 400;

/// How often what is hidden is looked for anew because another commit came first.
const UNCOVERINGS: usize = 4;

impl Array {
    /// The strategy that `selection` asks for. Input if there is none of this name, Bounds for a box outside the domain.
    pub fn strategy(&self, selection: &MergeChoice<'_>) -> Result<Strategy> {
        match selection {
            MergeChoice::Named(name) => parse_strategy(name),
            MergeChoice::Fragments(ids) => Ok(Strategy::Fragments(ids.to_vec())),
            MergeChoice::Box(sub) => {
                let schema = self.schema()?;
                let region = parse_box(&schema, Some(sub))?;
                let asked = hull_of(&schema, region.as_ref())?;
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

    /// What `strategy` merges of the fragments of `target`, without what would give as many again.
    fn plan_merges(&self, target: &Target, strategy: &Strategy, target_bytes: u64) -> Result<Plan> {
        let memory_bytes = (self.context().budget.limit_bytes() / 8).min(INPUT_BYTES_MAX);
        let limits = PlanLimits { memory_bytes, cell_bytes: target.row_bytes() };
        let mut plan = plan(&target.schema, &target.fragments, strategy, limits)?;
        if !matches!(strategy, Strategy::Fragments(_)) {
            plan.merges.retain(|merge| !is_done(&target.schema, merge, target_bytes));
        }
        Ok(plan)
    }

    /// Merges fragments as `strategy` says, into fragments of about `target_bytes`; each merge is a commit of its own, so
    /// that stopping loses at most one. `dry_run`: only says what would be done.
    ///
    /// # Errors
    /// Input (not writable; fragments named that cannot be merged), Corruption, Storage, Cancelled.
    ///
    /// ```
    /// use gridstone::engine::{MergeChoice, parse_strategy};
    /// use gridstone::{Attribute, Call, ColumnView, Context, Datatype, Dimension, Options, Order, Schema, SchemaOptions};
    ///
    /// # fn main() -> gridstone::Result<()> {
    /// let context = Context::new(&Options::default())?;
    /// let dim = Dimension::new("i", Datatype::Int64, "0", "99", None)?;
    /// let attr = Attribute::new("v", Datatype::Int32, false, None, "auto")?;
    /// let schema = Schema::new(vec![dim], vec![attr], SchemaOptions::default())?;
    /// let array = gridstone::create_array(&context, "mem://merging", "/", schema, false)?;
    /// let call = Call::default();
    /// for at in 0..5_i64 {
    ///     let part = array.region(&[vec![(at * 20..=at * 20 + 19).into()]])?;
    ///     let values = [at as i32; 20];
    ///     let data = vec![("v".to_owned(), ColumnView::of(&values))];
    ///     array.commit(vec![array.stage_box(Some(&part), &data, Order::Row, &call)?], None)?;
    /// }
    /// let report = array.consolidate(&parse_strategy("all")?, 64 << 20, false, &call)?;
    /// assert_eq!((report.before, report.after), (5, 1));
    /// # Ok(())
    /// # }
    /// ```
    pub fn consolidate(
        &self,
        strategy: &Strategy,
        target_bytes: u64,
        dry_run: bool,
        call: &Call,
    ) -> Result<ConsolidateReport> {
        self.check_outside("fragments cannot be merged")?;
        let before = self.state()?.1.count_fragments();
        let hidden = if dry_run { None } else { self.uncover(strategy)? };
        let (snapshot, state) = self.state()?;
        let mut fragments = self.described(&snapshot, &state, None)?;
        let mut report = ConsolidateReport { before, after: before, ..Default::default() };
        report.merges.extend(hidden);
        if dry_run {
            forecast_hidden(state.schema(), strategy, &mut fragments, &mut report);
        }
        // What is told is how much was merged, not how much each read of it has read.
        let reading = Call { progress: Arc::new(Silent), ..call.clone() };
        let mut context = self.read_context(&snapshot, &reading).with_budget(MERGE_BYTES_MAX);
        let target = Target { array: self.id(), schema: state.schema().clone(), fragments: fragments.clone() };
        let plan = self.plan_merges(&target, strategy, target_bytes)?;
        drop(fragments);
        if dry_run {
            forecast(&plan, &context, &target, target_bytes, &mut report);
            return Ok(report);
        }
        self.check_writable()?;
        let mut merging = Merging::new(self, &snapshot, &plan);
        for (number, merge) in plan.merges.iter().enumerate() {
            call.cancel.check()?;
            let mut listing = listing(merge, &context, &target, target_bytes);
            let done = merging.begin(number, merge).and_then(|()| {
                // No claim on what came before is left.
                context.files = self.read_context(merging.seen(), &reading).files;
                self.merge(&context, merge, &target, target_bytes, (&state, &mut merging), call)
            });
            merging.before += merge.cells_written();
            match done {
                Ok(None) => continue,
                Ok(written) => listing.written = written,
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => {
                    self.tell_given_up(&listing, &e);
                    report.overtaken += 1;
                    if merge.is_of_cells() {
                        continue;
                    }
                    // What was planned after it takes its result for granted.
                    break;
                }
                Err(e) => return Err(e),
            }
            self.tell_merge(&listing, merging.seen());
            report.merges.push(listing);
        }
        if merging.total > 0 {
            call.progress.report(merging.total, merging.total);
        }
        drop(merging);
        if report.overtaken == 0 {
            report.overtaken += u64::from(!self.sweep(&plan)?);
        }
        self.pack_after(strategy, &snapshot, &report)?;
        report.background_failure =
            self.context().upkeep().take_failure((self.store.place(snapshot.store()), self.id()));
        report.counters = context.counters.snapshot();
        report.after = self.state()?.1.count_fragments();
        self.context().upkeep().left((self.store.place(snapshot.store()), self.id()), report.after);
        Ok(report)
    }

    /// Folds the log if that was asked for, or if much of what it tells was merged.
    fn pack_after(&self, strategy: &Strategy, snapshot: &Arc<Snapshot>, report: &ConsolidateReport) -> Result<()> {
        if *strategy == Strategy::Manifest {
            self.pack(snapshot)?;
        } else if report.merges.iter().map(|merge| merge.fragments).sum::<u64>() >= PACKED_FRAGMENTS {
            // The merges are committed; if this fails the next fold does it.
            let _ = self.state().and_then(|(newest, _)| self.pack(&newest));
        }
        Ok(())
    }

    /// Takes out what newer fragments hide, as far as `strategy` asks for it, in a commit of its own; says what it was, if anything.
    fn uncover(&self, strategy: &Strategy) -> Result<Option<MergeListing>> {
        self.check_writable()?;
        for _ in 0..UNCOVERINGS {
            let (snapshot, state) = self.state()?;
            let fragments = self.described(&snapshot, &state, None)?;
            let hidden = hidden_for(state.schema(), strategy, &fragments);
            if hidden.is_empty() {
                return Ok(None);
            }
            let removed = hidden.iter().map(|d| Removed::of(d)).collect();
            let operation = Operation::ReplaceFragments { array: self.id(), removed, fragments: Vec::new() };
            match self.commit_changes(&snapshot, Changes::new(vec![operation])) {
                Ok(_) => return Ok(Some(listing_hidden(&hidden))),
                // Somebody else was at them: what is there now is looked at again.
                Err(e) if e.kind() == ErrorKind::Conflict => self.refresh()?,
                Err(e) => return Err(e),
            };
        }
        Ok(None)
    }

    /// Does and commits one merge; gives the fragments and bytes written, `None` if there was nothing to do.
    fn merge(
        &self,
        read: &ReadContext,
        one: &Merge,
        target: &Target,
        target_bytes: u64,
        (planned, merging): (&ArrayState, &mut Merging<'_>),
        call: &Call,
    ) -> Result<Option<(u64, u64)>> {
        // Of the schema that the plan was made with, whatever became of it meanwhile.
        let whole = self.write_context(planned, call)?;
        let progress = merging.progress(call);
        let write = WriteContext { budget: &read.budget, arena: &read.arena, progress: &progress, ..whole };
        let mut written = Written::default();
        let merged = read.explain_missing(merge(read, &write, target, one, target_bytes, &mut written));
        let merged = self.unless_taken(merged, &written.scratch);
        drop(self.staged(written.scratch));
        // From here on files go with `staged`, unless they are committed.
        let mut staged: Staged = self.staged(written.done);
        let Some(merged) = merged? else { return Ok(None) };
        let changes = Changes::new(merged.operations(self.id()));
        let seen = Arc::clone(merging.seen());
        let outcome = self.commit_outside(&seen, changes, &mut merging.rules);
        if outcome.as_ref().err().is_none_or(|e| e.kind() == ErrorKind::CommitUnknown) {
            staged.keep_files();
        }
        merging.rules.committed(outcome?.snapshot);
        Ok(Some((staged.fragments.len() as u64, staged.bytes())))
    }

    /// An error that comes from a vacuum which took files that a merge had written for itself, no version naming them, as the conflict
    /// that it is: such a merge is given up, and the next consolidation tries again.
    fn unless_taken<T>(&self, outcome: Result<T>, scratch: &[fragment::Staged]) -> Result<T> {
        let is_gone = |staged: &fragment::Staged| match staged.description.location.file {
            FileRef::Data(id) if staged.body.is_none() => {
                self.store.storage().exists(&data_name(id)).map(|there| !there)
            }
            _ => Ok(false),
        };
        match outcome {
            Err(e) if e.may_be_missing() => {
                for staged in scratch {
                    // An error of this question would hide the one that matters.
                    if is_gone(staged).unwrap_or(false) {
                        let words =
                            "a vacuum removed a file that a merge was working with; give it a longer safety age";
                        return Err(Error::conflict(words).with_source(e));
                    }
                }
                Err(e)
            }
            outcome => outcome,
        }
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

/// What the merges of a plan have in common.
struct Merging<'a> {
    array: &'a Array,
    rules: MergeRules,
    /// On what the rules have seen: the merge under way reads that, and what comes after it must be there for the next to look at. A new
    /// one is there before the last one goes.
    claim: Option<Claim>,
    /// Cells that were merged, and those of all merges.
    before: u64,
    total: u64,
}

impl<'a> Merging<'a> {
    fn new(array: &'a Array, planned: &Arc<Snapshot>, plan: &Plan) -> Self {
        let orders = |one: &Merge| (one.inputs.first().map_or(one.order(), |d| d.order), one.order());
        let claim = (!plan.merges.is_empty()).then(|| array.claim(planned));
        let rules = MergeRules::new(array.id(), planned, plan.merges.iter().map(orders));
        Self { array, rules, claim, before: 0, total: plan.merges.iter().map(Merge::cells_written).sum() }
    }

    /// Tells `call` of the merge under way as a part of all of them.
    fn progress<'c>(&self, call: &'c Call) -> Part<'c> {
        Part { whole: call.progress.as_ref(), before: self.before, total: self.total }
    }

    fn seen(&self) -> &Arc<Snapshot> {
        self.rules.seen()
    }

    /// A Conflict error if the merge is known to be in vain.
    fn begin(&mut self, number: usize, one: &Merge) -> Result<()> {
        match &self.claim {
            // During a long merge the claim of what it reads is renewed.
            Some(claim) if claim.version() == self.seen().version() => claim.touch(),
            _ => self.claim = Some(self.array.claim(self.seen())),
        }
        // What is applied may be taken out too.
        let mut used: Vec<_> = one.inputs.iter().chain(&one.applied).chain(&one.retired).collect();
        used.sort_by_key(|d| d.id);
        used.dedup_by_key(|d| d.id);
        match self.rules.begin(number, used.into_iter().map(|d| Removed::of(d)).collect()) {
            Err(e) if e.kind() == ErrorKind::Conflict => Err(e),
            // What else it meets the merge will too, and the commit knows what to do about it.
            _ => Ok(()),
        }
    }
}

/// The fragments that newer ones hide, as far as `strategy` asks for them: not beside those that were named.
fn hidden_for(schema: &Schema, strategy: &Strategy, fragments: &[Arc<Description>]) -> Vec<Arc<Description>> {
    let mut hidden = match strategy {
        Strategy::Fragments(_) | Strategy::Manifest => return Vec::new(),
        _ => hidden(schema, fragments, &mut { HIDDEN_BYTES_MAX }),
    };
    if let Strategy::Box(asked) = strategy {
        // A mask has the box of what it lies over.
        hidden.retain(|d| d.bounds.intersects(asked));
    }
    hidden
}

/// What is said of hidden fragments that were taken out.
fn listing_hidden(hidden: &[Arc<Description>]) -> MergeListing {
    let fragments = hidden.len() as u64;
    MergeListing { kind: "hidden", fragments, cells: 0, bytes: 0, estimate: (0, 0), memory: 0, written: Some((0, 0)) }
}

/// Takes the hidden ones out of `fragments`, and says so in `report`.
fn forecast_hidden(
    schema: &Schema,
    strategy: &Strategy,
    fragments: &mut Vec<Arc<Description>>,
    report: &mut ConsolidateReport,
) {
    let hidden = hidden_for(schema, strategy, fragments);
    if !hidden.is_empty() {
        let gone: HashSet<Id> = hidden.iter().map(|d| d.id).collect();
        fragments.retain(|d| !gone.contains(&d.id));
        report.after = fragments.len() as u64;
        report.merges.push(MergeListing { written: None, ..listing_hidden(&hidden) });
    }
}

/// Puts into `report` what the plan would do.
fn forecast(plan: &Plan, context: &ReadContext, target: &Target, target_bytes: u64, report: &mut ConsolidateReport) {
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
        kind: match merge {
            merge if merge.is_of_tombstones() => "tombstones",
            merge if merge.is_of_cells() => "sparse",
            _ => "dense",
        },
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
