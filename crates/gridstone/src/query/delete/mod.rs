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
pub(super) mod request;
mod rows;

use super::delete::request::DeleteRequest;
use super::request::{ReadContext, Target, WriteContext};
use crate::base::{Result, Silent};
use crate::fragment::Staged;
use std::sync::Arc;

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
    request: &DeleteRequest<'_>,
    staged: &mut Vec<Staged>,
) -> Result<()> {
    let progress = Arc::clone(&read.progress);
    // Cells are told of as they are judged; what reads and writes beneath would tell of each piece from its start to its end.
    let read = ReadContext { progress: Arc::new(Silent), ..read.clone() };
    let write = WriteContext { progress: &Silent, ..write.clone() };
    if target.schema.sparse() {
        rows::mask(&read, &write, target, request, staged, progress.as_ref())
    } else {
        cells::delete(&read, &write, target, request, staged, progress.as_ref())
    }
}
