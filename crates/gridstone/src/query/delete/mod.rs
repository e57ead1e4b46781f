//! Deleting the cells that a condition selects: those that the snapshot saw, and no other.
//!
//! - Sparse arrays (`rows`): the rows that hold the selected cells get a mask, one per fragment. Where a place holds one cell
//!   at most, the older rows of that place are masked too, so that a masked row is as if it had never been written.
//! - Dense arrays (`cells`): tombstones at the selected cells, and deletions of boxes that are selected whole, of an order
//!   right after the version seen. What was written since has a greater order and stays. What a transaction has staged has a greater order
//!   too: its own cells are deleted as if by their coordinates.
//!
//! Nothing is deleted before the caller commits what was staged.

mod cells;
mod rows;

use super::condition::Bound;
use super::{ReadContext, Target, WriteContext};
use crate::base::Result;
use crate::fragment::{FragmentOrder, Staged};
use crate::schema::Subarray;

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
    if target.schema.sparse() {
        rows::mask(read, write, target, doomed, staged)
    } else {
        cells::delete(read, write, target, doomed, staged)
    }
}
