//! Reads of the cells that a condition selects.
//!
//! 1. Bounds of values in descriptions: fragments in which no cell can be selected, and that hide none which is, are not opened (`fragments.rs`).
//! 2. Statistics and boxes: tiles and blocks in which no cell can be selected are left out, unless a cell in them hides an
//!    older one that may be (`candidates.rs`, `known.rs`).
//! 3. The condition's attributes, and coordinates where the condition asks for them or rows are merged: which rows survive.
//! 4. The rest of blocks where a row survived.
//!
//! Sparse arrays: where one fragment holds all blocks that are left (`apart.rs`), runs of blocks are taken side by side, each to its end; of
//! coordinates and other attributes the rows that survive alone are decoded, if the filters allow it, and the box is judged on those. Else
//! (`sieve.rs`) rows are merged between steps 3 and 4; a row that is not selected takes part if it may hide an older one.
//! Dense arrays (`dense.rs`): units of blocks, painted with the condition's attributes, then with the others.
//!
//! Invariants: what is given equals a read without a condition of which the rows selected are kept; memory is bounded by
//! batches; the reads without a condition know nothing of this.

mod candidates;
mod dense;
pub(super) mod filter;
mod fragments;
mod known;
mod source;
mod sparse;
mod unmerged;
mod whole_tiles;

pub(super) use dense::{halves, narrowed};
pub(super) use fragments::opened;
pub(super) use known::{Known, of_fill};
pub(super) use source::Source;
pub use whole_tiles::TileAnswers;
pub(super) use whole_tiles::WholeTile;

use super::request::{ReadContext, Request, Target};
use super::select::filter::Filter;
use crate::base::Result;
use crate::condition::Bound;
use crate::tile::Cells;
use std::sync::Arc;

/// Reads the cells of a box that a condition selects, in the order asked for, their coordinates with them; of dense arrays
/// too, where an unwritten cell is what it reads as.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_where(context: &ReadContext, target: &Target, request: &Request, condition: &Bound) -> Result<Cells> {
    let nothing = || Cells::none(&target.schema, &request.attrs);
    let Some(sub) = narrowed(target, request, condition) else { return Ok(nothing()) };
    let request = Request { sub, ..request.clone() };
    dense::check_size(context, target, &request, condition)?;
    let filter = Arc::new(Filter::new(condition, &request));
    let target = fragments::opened(context, target, &request.sub, &filter)?;
    let source = Source::sifted(context, &target, &request, filter)?;
    Ok(source.collect(u64::MAX)?.unwrap_or_else(nothing))
}
