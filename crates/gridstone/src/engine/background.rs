//! Consolidation in the background: on request, or when the fragments of an array have become many.
//!
//! It works on one thread of its own at low priority, with the budget and the cache of its context, whatever the number of
//! threads. One goes on per array and process. What it runs into is kept for the next explicit consolidation of the array to tell;
//! readers and writers never see it.

use super::upkeep::{AutoConsolidate, Consolidating, Place, Upkeep};
use super::{Array, Call, ConsolidateReport, Context};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::maintain::Strategy;
use crate::runtime::{Background, CancelFlag, Claims, Pool};
use crate::store::{Snapshot, Store};
use std::collections::BTreeSet;
use std::sync::Arc;

/// The arrays that are being consolidated in the background by this process.
static RUNNING: Claims<Place> = Claims::new();

impl Array {
    /// As [`Array::consolidate`], beside whatever else is done. This handle stays at its version.
    ///
    /// # Errors
    /// Input if the array is not writable, or is being consolidated in the background by this process; Budget if no thread can be
    /// started. What happens later is the outcome of what is given back.
    pub fn consolidate_in_background(&self, strategy: Strategy, target_bytes: u64) -> Result<Consolidating> {
        self.check_writable()?;
        let place = (self.store.place(self.state()?.0.store()), self.id());
        let claim = RUNNING.take(place).ok_or_else(|| {
            Error::input("this array is being consolidated in the background already; wait for that to end, or stop it")
        })?;
        let array = self.with_context(self.context().beside_others()?);
        let work = move |flag: &CancelFlag| {
            let call = Call { cancel: Arc::new(flag.clone()), ..Call::default() };
            let outcome = array.consolidate_claimed(&strategy, target_bytes, &call);
            array.context().upkeep().finished(place, &outcome);
            array.tell_background(&outcome);
            drop(claim);
            outcome
        };
        Background::start("upkeep", work)
    }

    fn consolidate_claimed(&self, strategy: &Strategy, target_bytes: u64, call: &Call) -> Result<ConsolidateReport> {
        self.refresh()?;
        self.consolidate(strategy, target_bytes, false, call)
    }

    /// Called after each commit through the array's context: starts a consolidation if the policy says so.
    pub(super) fn look_after(&self, snapshot: &Arc<Snapshot>) {
        let Some(policy) = self.context().auto_consolidate() else { return };
        let Ok(state) = snapshot.array_by_id(self.id()) else { return };
        let (place, count) = ((self.store.place(snapshot.store()), self.id()), state.count_fragments());
        let Some(mut arrays) = self.context().upkeep().arrays() else { return };
        let memory = arrays.entry(place).or_default();
        let busy = memory.running.as_ref().is_some_and(|running| !running.is_done());
        if busy || count < memory.left.saturating_add(policy.fragments) {
            return;
        }
        memory.tried = count;
        match self.consolidate_in_background(Strategy::Tiered, policy.target_bytes) {
            Ok(running) => memory.running = Some(running),
            // Another one goes on: it does the same.
            Err(e) if e.kind() == ErrorKind::Input => {}
            Err(e) => memory.failure = Some(e.to_string()),
        }
    }

    /// The consolidation that the policy started last, if it goes on.
    pub fn upkeep(&self) -> Option<Consolidating> {
        let place = (self.store.place(self.snapshot().store()), self.id());
        let arrays = self.context().upkeep().arrays()?;
        arrays.get(&place)?.running.clone().filter(|running| !running.is_done())
    }
}

impl Context {
    /// Called after a commit that was not made through one array: as [`Array::look_after`], for each of `arrays`.
    pub(super) fn look_after(&self, store: &Arc<Store>, snapshot: &Arc<Snapshot>, arrays: BTreeSet<Id>) {
        if self.auto.is_none() {
            return;
        }
        for id in arrays {
            Array::new(self.clone(), Arc::clone(store), Arc::clone(snapshot), id, true, false).look_after(snapshot);
        }
    }

    /// This context for work on one thread beside others: no thread of the pool is taken from those who wait.
    fn beside_others(&self) -> Result<Self> {
        Ok(Self { pool: Arc::new(Pool::new(Some(1))?), auto: None, ..self.clone() })
    }

    pub(super) fn upkeep(&self) -> &Upkeep {
        &self.upkeep
    }

    fn auto_consolidate(&self) -> Option<AutoConsolidate> {
        self.auto
    }
}
