//! Deleting the cells that a condition selects: those that the snapshot saw, and no other.
//!
//! - Sparse arrays (`rows`): the rows that hold the selected cells get a mask, one per fragment. Where a place holds one cell
//!   at most, the older rows of that place are masked too, so that a masked row is as if it had never been written. What a transaction
//!   has staged there gets a tombstone besides: it has overwritten what others write there before it is committed.
//! - Dense arrays (`cells`): tombstones at the selected cells, and deletions of boxes that are selected whole, of an order
//!   right after the version seen. What was written since has a greater order and stays. What a transaction has staged has a greater order
//!   too: its own cells are deleted as if by their coordinates.
//!
//! Nothing is deleted before the caller commits what was staged.

mod cells;
mod rows;

use super::request::{ReadContext, Target, WriteContext};
use crate::base::{Progress, Result, Silent};
use crate::condition::Bound;
use crate::fragment::{FragmentOrder, Staged};
use crate::schema::Subarray;
use std::sync::Arc;

/// Cells to be deleted.
#[derive(Debug, Clone)]
pub struct Doomed<'a> {
    /// Where they lie; inside the domain.
    pub sub: Subarray,
    /// What selects them, bound to the array's schema.
    pub condition: &'a Bound,
    /// The version that is looked at.
    pub version: u64,
}

impl Doomed<'_> {
    /// Newer than all that the version holds, older than all that comes later.
    fn order(&self) -> FragmentOrder {
        FragmentOrder::after(self.version)
    }
}

/// Stages what deletes `doomed` from the array at the version that `target` is of; nothing is staged if no cell is selected.
///
/// What was written is in `staged` after an error too: the caller sees to it that the files go.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if there is no memory.
pub fn delete_where(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    doomed: &Doomed<'_>,
    staged: &mut Vec<Staged>,
) -> Result<()> {
    let told = Arc::clone(&read.progress);
    // Cells are told of as they are judged; what reads and writes beneath would tell of each piece from its start to its end.
    let read = ReadContext { progress: Arc::new(Silent), ..read.clone() };
    let write = WriteContext { progress: &Silent, ..write.clone() };
    if target.schema.sparse() {
        rows::mask(&read, &write, target, doomed, staged, told.as_ref())
    } else {
        cells::delete(&read, &write, target, doomed, staged, told.as_ref())
    }
}

/// How many cells were judged.
struct Judged<'a> {
    told: &'a dyn Progress,
    done: u64,
    total: u64,
}

impl<'a> Judged<'a> {
    /// None of `total` at most.
    fn of(total: u64, told: &'a dyn Progress) -> Self {
        Self { told, done: 0, total }
    }

    fn more(&mut self, cells: u64) {
        self.up_to(self.done.saturating_add(cells));
    }

    fn up_to(&mut self, cells: u64) {
        let done = cells.min(self.total);
        if done > self.done {
            self.done = done;
            self.told.report(done, self.total);
        }
    }
}
