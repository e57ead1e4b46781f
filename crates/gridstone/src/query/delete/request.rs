//! Cells to be deleted, and how many of them were judged.

use crate::base::Progress;
use crate::condition::Bound;
use crate::fragment::FragmentOrder;
use crate::schema::Subarray;

/// Cells to be deleted.
#[derive(Debug, Clone)]
pub struct DeleteRequest<'a> {
    /// Where they lie; inside the domain.
    pub sub: Subarray,
    /// What selects them, bound to the array's schema.
    pub condition: &'a Bound,
    /// The version that is looked at.
    pub version: u64,
}

impl DeleteRequest<'_> {
    /// Newer than all that the version holds, older than all that comes later.
    pub(super) fn order(&self) -> FragmentOrder {
        FragmentOrder::after(self.version)
    }
}

/// How many cells were judged.
pub(super) struct Judged<'a> {
    progress: &'a dyn Progress,
    done: u64,
    total: u64,
}

impl<'a> Judged<'a> {
    /// None of `total` at most.
    pub(super) fn of(total: u64, progress: &'a dyn Progress) -> Self {
        Self { progress, done: 0, total }
    }

    pub(super) fn more(&mut self, cells: u64) {
        self.up_to(self.done.saturating_add(cells));
    }

    pub(super) fn up_to(&mut self, cells: u64) {
        let done = cells.min(self.total);
        if done > self.done {
            self.done = done;
            self.progress.report(done, self.total);
        }
    }
}
