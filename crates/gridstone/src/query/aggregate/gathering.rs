//! What threads have seen of the cells: each has stages of its own, which are merged at the end.
//!
//! Where there is one group each item has a first stage of its own, merged in the order of the items: then the bits of float sums
//! do not depend on the number of threads.
//!
//! When the stages of all threads pass their share of the memory budget, each is written as sorted runs, one per stage, and
//! begins anew. In a store that cannot be written to they stay, as far as the budget allows.

use super::budget_share::BudgetShare;
use super::run::{Run, RunWriter};
use super::stage::Stages;
use crate::base::{Budget, Cancel, Entropy, Error, ErrorKind, Result};
use crate::query::request::ReadContext;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

/// The share of the budget that groups may take before they are written as runs: a quarter, as tables double when they grow.
const SHARE: u64 = 4;
/// Bytes of the budget per slot of groups that are addressed: a sixteenth of it, of four bytes each, over all threads.
const SLOTS_SHARE: u64 = 64;

/// Stages of threads.
#[derive(Debug)]
pub(super) struct Gathering {
    /// What was merged.
    pub(super) stages: Stages,
    /// The stages of threads that are not at work.
    idle: Vec<Stages>,
    /// What gives ids to files of runs; `None`: groups stay in memory.
    entropy: Option<Arc<dyn Entropy>>,
    /// Why no runs can be written, if the store has refused the first ones.
    refusal: Option<Error>,
    /// The runs of each stage.
    runs: Vec<Vec<Run>>,
    held: Option<BudgetShare>,
}

/// What was seen of all cells.
pub(super) enum Gathered {
    InMemory(Stages, Option<BudgetShare>),
    /// Stages without a group, the runs of each, and what gives ids to files.
    InRuns(Stages, Vec<Vec<Run>>, Arc<dyn Entropy>),
}

impl Gathering {
    pub(super) fn new(stages: Stages) -> Self {
        Self { stages, idle: Vec::new(), entropy: None, refusal: None, runs: Vec::new(), held: None }
    }

    /// From now on groups beyond their share of the memory go to files, whose ids `entropy` gives.
    pub(super) fn spill(&mut self, entropy: Arc<dyn Entropy>) {
        self.entropy = Some(entropy);
    }

    /// Takes items in, side by side.
    pub(super) fn take_each<T: Send>(
        &mut self,
        context: &ReadContext,
        items: Vec<T>,
        take: impl Fn(&mut Stages, T) -> Result<()> + Sync,
    ) -> Result<()> {
        let cancel = context.cancel.as_ref();
        self.stages.limit_slots(context.budget.limit_bytes() / SLOTS_SHARE / context.pool.threads().max(1) as u64);
        let in_order = self.stages.begins_with_one();
        let idle = Mutex::new(std::mem::take(&mut self.idle));
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = context.pool.map(items, cancel, |item| {
            let held = lock().pop();
            let mut stages = held.unwrap_or_else(|| self.stages.fresh());
            let outcome = stages.make_room(cancel).and_then(|()| take(&mut stages, item));
            // One group is merged in the order of the items, so that its bits do not depend on threads.
            let first = if in_order { stages.take_first() } else { None };
            lock().push(stages);
            outcome.map(|()| first)
        });
        self.idle = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome?.iter().flatten().try_for_each(|first| self.stages.absorb_first(first, cancel))
    }

    /// Merges what the threads have seen, unless runs were written.
    ///
    /// # Errors
    /// Cancelled.
    pub(super) fn settle(&mut self, cancel: &dyn Cancel) -> Result<()> {
        if !self.runs.is_empty() {
            return Ok(());
        }
        let mut idle = std::mem::take(&mut self.idle);
        if self.stages.is_unused()
            && let Some(first) = idle.pop()
        {
            self.stages = first;
        }
        idle.iter().try_for_each(|stages| self.stages.absorb(stages, cancel))
    }

    fn size_bytes(&self) -> u64 {
        self.idle.iter().chain([&self.stages]).map(Stages::size_bytes).sum()
    }

    /// Writes the groups as runs if they take more than their share of the memory.
    ///
    /// # Errors
    /// Budget: they may not be written, and take more than there is; Storage, Cancelled.
    pub(super) fn make_room(&mut self, context: &ReadContext) -> Result<()> {
        let (bytes, limit) = (self.size_bytes(), context.budget.limit_bytes());
        self.hold(&context.budget, bytes);
        if self.entropy.is_some() && self.refusal.is_none() && !self.stages.is_ungrouped() && bytes > limit / SHARE {
            self.write_runs(context, false)?;
        }
        let bytes = self.size_bytes();
        if bytes <= limit { Ok(()) } else { Err(self.too_many(bytes, limit)) }
    }

    /// The error for groups that take more than the budget has, and may not be written.
    fn too_many(&mut self, bytes: u64, limit: u64) -> Error {
        let groups = self.idle.iter().chain([&self.stages]).map(Stages::groups_max).max().unwrap_or(0);
        let found = format!("{groups} groups or more take {bytes} bytes, beyond the memory budget of {limit}");
        let advice = "ask for fewer groups or a smaller box, or give the context more memory";
        match self.refusal.take() {
            None => Error::budget(format!("{found}; {advice}")),
            Some(refusal) => Error::budget(format!(
                "{found}, and the store cannot be written to, where groups beyond memory go; {advice}, or ask a copy of the store \
                 that can be written to"
            ))
            .with_source(refusal),
        }
    }

    fn hold(&mut self, budget: &Arc<Budget>, bytes: u64) {
        self.held.get_or_insert_with(|| BudgetShare::new(budget)).set(bytes);
    }

    /// Writes all groups as runs: those of each thread as runs of their own. One group stays in memory until the cells have
    /// `ended`, since it is added to in the order of the items. If the store refuses the first runs, all groups stay.
    fn write_runs(&mut self, context: &ReadContext, ended: bool) -> Result<()> {
        let Some(entropy) = self.entropy.clone() else { return Ok(()) };
        let fresh = self.stages.fresh();
        let kept = if !ended && self.stages.begins_with_one() { self.stages.take_first() } else { None };
        let all: Vec<&Stages> = self.idle.iter().chain([&self.stages]).filter(|stages| !stages.is_unused()).collect();
        let written = context.pool.map(all, context.cancel.as_ref(), |stages| {
            let mut writer = RunWriter::new(context, entropy.as_ref())?;
            let mut runs = Vec::with_capacity(stages.all().len());
            for stage in stages.all() {
                writer.push(stage)?;
                runs.push(writer.end_run());
            }
            writer.finish().map(|()| runs)
        });
        match written {
            Err(error) if self.runs.is_empty() && is_refusal(&error) => self.refusal = Some(error),
            written => {
                self.idle.clear();
                self.stages = fresh;
                self.runs.resize_with(self.stages.all().len(), Vec::new);
                for runs in written? {
                    self.runs.iter_mut().zip(runs).for_each(|(all, run)| all.push(run));
                }
            }
        }
        kept.iter().try_for_each(|first| self.stages.absorb_first(first, context.cancel.as_ref()))?;
        self.hold(&context.budget, self.size_bytes());
        Ok(())
    }

    /// What was seen of all cells.
    ///
    /// # Errors
    /// Storage, Cancelled.
    pub(super) fn into_gathered(mut self, context: Option<&ReadContext>) -> Result<Gathered> {
        let Some(context) = context.filter(|_| !self.runs.is_empty()) else {
            return Ok(Gathered::InMemory(self.stages, self.held));
        };
        self.write_runs(context, true)?;
        let Some(entropy) = self.entropy else { return Ok(Gathered::InMemory(self.stages, self.held)) };
        Ok(Gathered::InRuns(self.stages, self.runs, entropy))
    }
}

/// Whether an error says that a store cannot be written to, and not that a write failed.
fn is_refusal(error: &Error) -> bool {
    let read_only =
        io::Error::from_raw_os_error(error.os_error().unwrap_or(0)).kind() == io::ErrorKind::ReadOnlyFilesystem;
    read_only || matches!(error.kind(), ErrorKind::Access | ErrorKind::Unsupported)
}
