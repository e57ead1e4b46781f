//! What threads have seen of the cells: each has stages of its own, which are merged at the end.
//!
//! Where there is one group each item has stages of its own, merged in the order of the items: then the bits of float sums do
//! not depend on the number of threads.

use super::stage::Stages;
use crate::base::{Error, Result};
use crate::query::request::ReadContext;
use std::sync::{Mutex, PoisonError};

/// Stages of threads.
#[derive(Debug)]
pub(super) struct Gathering {
    /// What was merged.
    pub(super) stages: Stages,
    /// The stages of threads that are not at work.
    idle: Vec<Stages>,
}

impl Gathering {
    pub(super) fn new(stages: Stages) -> Self {
        Self { stages, idle: Vec::new() }
    }

    /// Takes items in, side by side.
    pub(super) fn take_each<T: Send>(
        &mut self,
        context: &ReadContext,
        items: Vec<T>,
        take: impl Fn(&mut Stages, T) -> Result<()> + Sync,
    ) -> Result<()> {
        let cancel = context.cancel.as_ref();
        if self.stages.is_ungrouped() {
            let made = context.pool.map(items, cancel, |item| {
                let mut stages = self.stages.fresh();
                take(&mut stages, item).map(|()| stages)
            })?;
            return made.iter().try_for_each(|stages| self.stages.absorb(stages));
        }
        let idle = Mutex::new(std::mem::take(&mut self.idle));
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = context.pool.map(items, cancel, |item| {
            let held = lock().pop();
            let mut stages = held.unwrap_or_else(|| self.stages.fresh());
            let outcome = take(&mut stages, item);
            lock().push(stages);
            outcome
        });
        self.idle = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome.map(drop)
    }

    /// Merges what the threads have seen.
    pub(super) fn settle(&mut self) -> Result<()> {
        let mut idle = std::mem::take(&mut self.idle);
        if self.stages.is_unused()
            && let Some(first) = idle.pop()
        {
            self.stages = first;
        }
        idle.iter().try_for_each(|stages| self.stages.absorb(stages))
    }

    /// A Budget error if the groups take more memory than there is.
    pub(super) fn check_size(&self, context: &ReadContext) -> Result<()> {
        let all = || self.idle.iter().chain([&self.stages]);
        let (bytes, limit) = (all().map(Stages::size_bytes).sum::<u64>(), context.budget.limit_bytes());
        if bytes <= limit {
            return Ok(());
        }
        let groups = all().map(Stages::groups_max).max().unwrap_or(0);
        Err(Error::budget(format!(
            "{groups} groups or more take {bytes} bytes, beyond the memory budget of {limit}; ask for fewer groups or a smaller box, or \
             give the context more memory"
        )))
    }
}
