//! Sorted runs of one stage, merged by blocks.
//!
//! A block of each run is held. The least of the last keys of those blocks that others follow is the cut: what lies up to it has
//! been read of every run. It goes into one stage, as partial results do, and the next groups are all greater.
//!
//! More runs than there is memory for blocks of are merged into fewer ones first.

use super::budget_share::BudgetShare;
use super::run::{Run, RunReader, RunWriter, block_bytes};
use super::stage::Stage;
use crate::base::{Cancel, Entropy, Result};
use crate::query::request::ReadContext;
use std::sync::Arc;

/// Blocks of groups that are merged into one stage before it is given.
const BLOCKS_AT_ONCE: u64 = 4;

/// A merge of runs under way.
#[derive(Debug)]
pub(super) struct Merger {
    context: ReadContext,
    /// A stage of the same kind, without a group.
    form: Stage,
    readers: Vec<RunReader>,
    held: BudgetShare,
}

impl Merger {
    /// The merge of runs of stages like `form`; at most a block of each of `together` such merges is in memory at once.
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub(super) fn new(
        context: &ReadContext,
        entropy: &dyn Entropy,
        form: &Stage,
        mut runs: Vec<Run>,
        together: usize,
    ) -> Result<Self> {
        let room = context.budget.limit_bytes() / 8 / block_bytes(context);
        let runs_max = (room as usize / together.max(1)).max(2);
        while runs.len() > runs_max {
            // The smallest ones, and no more than brings the number down.
            runs.sort_by_key(|run| std::cmp::Reverse(run.rows()));
            let fewer = (runs.len() - runs_max + 1).min(runs_max);
            let smallest = runs.split_off(runs.len() - fewer);
            runs.push(Self::of(context, form, smallest).into_run(entropy)?);
        }
        Ok(Self::of(context, form, runs))
    }

    fn of(context: &ReadContext, form: &Stage, runs: Vec<Run>) -> Self {
        let readers = runs.into_iter().map(RunReader::new).collect();
        Self { context: context.clone(), form: form.fresh(), readers, held: BudgetShare::new(&context.budget) }
    }

    /// All groups as one run.
    fn into_run(mut self, entropy: &dyn Entropy) -> Result<Run> {
        let context = self.context.clone();
        let mut writer = RunWriter::new(&context, entropy)?;
        while let Some(stage) = self.next()? {
            writer.push(&stage)?;
        }
        let run = writer.end_run();
        writer.finish().map(|()| run)
    }

    /// From now on asks `cancel` whether to go on.
    pub(super) fn set_cancel(&mut self, cancel: &Arc<dyn Cancel>) {
        self.context.cancel = Arc::clone(cancel);
    }

    /// The next groups, whose keys are greater than those of all before; `None` at the end.
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub(super) fn next(&mut self) -> Result<Option<Stage>> {
        let (mut stage, mut is_empty) = (self.form.fresh(), true);
        let enough = block_bytes(&self.context) * BLOCKS_AT_ONCE;
        while is_empty || stage.size_bytes() < enough {
            self.context.cancel.check()?;
            self.load()?;
            self.held.set(stage.size_bytes() + self.readers.iter().map(RunReader::size_bytes).sum::<u64>());
            if self.readers.is_empty() {
                break;
            }
            let cut = self.readers.iter().filter(|reader| reader.has_more()).min_by(|a, b| a.compare_last(b));
            let ends: Vec<usize> = self.readers.iter().map(|reader| reader.end_at(cut)).collect();
            for (reader, end) in self.readers.iter_mut().zip(ends) {
                self.context.cancel.check()?;
                reader.take(end, &mut stage)?;
            }
            is_empty = false;
        }
        Ok((!is_empty).then_some(stage))
    }

    /// Reads the next blocks of those runs whose block was taken; runs at their end go, and with the last one its file.
    fn load(&mut self) -> Result<()> {
        self.readers.retain(|reader| !reader.is_drained() || reader.has_more());
        let drained: Vec<&mut RunReader> = self.readers.iter_mut().filter(|reader| reader.is_drained()).collect();
        let (context, form) = (&self.context, &self.form);
        context.pool.map(drained, context.cancel.as_ref(), |reader| reader.load(context, form)).map(drop)
    }
}
