//! The policy of consolidations that nobody asks for, and what it remembers of each array.

use super::merge_report::ConsolidateReport;
use crate::base::{ErrorKind, Id, Result};
use crate::runtime::{Background, PerProcess};
use crate::store::Operation;
use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// When arrays are consolidated without being asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AutoConsolidate {
    /// So many fragments more than after the last time.
    pub fragments: u64,
    /// Bytes of a merged fragment, about.
    pub target_bytes: u64,
}

impl Default for AutoConsolidate {
    fn default() -> Self {
        Self { fragments: 64, target_bytes: 512 << 20 }
    }
}

/// A consolidation that goes on beside.
pub type Consolidating = Background<ConsolidateReport>;

/// A store where it lies, and an array in it.
pub(super) type Place = (Id, Id);

/// What the policy of a context remembers of an array.
#[derive(Debug, Default)]
pub(super) struct Memory {
    /// Fragments that the last consolidation left, or that it failed on.
    pub(super) left: u64,
    /// Fragments that there were when the last one was started.
    pub(super) tried: u64,
    pub(super) running: Option<Consolidating>,
    pub(super) failure: Option<String>,
}

/// The policy of a context, and what it remembers. A forked child begins anew.
#[derive(Debug, Default)]
pub(super) struct Upkeep {
    arrays: PerProcess<Mutex<HashMap<Place, Memory>>>,
}

impl Upkeep {
    pub(super) fn arrays(&self) -> Option<MutexGuard<'_, HashMap<Place, Memory>>> {
        let arrays = self.arrays.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        Some(arrays.lock().unwrap_or_else(PoisonError::into_inner))
    }

    pub(super) fn finished(&self, place: Place, report: &Result<ConsolidateReport>) {
        let Some(mut arrays) = self.arrays() else { return };
        let memory = arrays.entry(place).or_default();
        match report {
            Ok(report) => memory.left = report.after,
            Err(e) if e.kind() == ErrorKind::Cancelled => {}
            Err(e) => {
                // The next commit would run into it again.
                memory.left = memory.left.max(memory.tried);
                memory.failure = Some(e.to_string());
            }
        }
    }

    /// A consolidation that was asked for left so many fragments: fewer than the last one, or than it failed on, the policy is to
    /// know of.
    pub(super) fn left(&self, place: Place, fragments: u64) {
        if let Some(memory) = self.arrays().as_mut().and_then(|arrays| arrays.get_mut(&place)) {
            memory.left = memory.left.min(fragments);
        }
    }

    /// What the last consolidation in the background failed with, told once.
    pub(super) fn take_failure(&self, place: Place) -> Option<String> {
        self.arrays()?.get_mut(&place)?.failure.take()
    }
}

/// The arrays to which these operations add fragments.
pub(super) fn grown(operations: &[Operation]) -> BTreeSet<Id> {
    let array = |operation: &Operation| match operation {
        Operation::AddFragments { array, .. } => Some(*array),
        _ => None,
    };
    operations.iter().filter_map(array).collect()
}
