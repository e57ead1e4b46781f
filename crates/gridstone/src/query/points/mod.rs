//! Reading single cells by their coordinates.
//!
//! 1. The points are sorted into global order, in which the cells of every tile, block and chunk stand together.
//! 2. Plan: for each point and attribute the newest fragment that says something there is found, without reading a
//!    value; what is to be taken from a block is one job (`take`).
//! 3. Jobs are fetched, checked, decoded and gathered in parallel, each block once; then the values are put into the
//!    order asked for.
//!
//! Dense fragments are found by arithmetic (`dense`), cells of sparse ones and tombstones by searching the blocks in
//! whose key range and MBR a point lies (`hits`, `search`).

mod dense;
mod hits;
pub(super) mod list;
mod search;
mod sparse;
mod take;

use super::points::list::Points;
use super::request::{ReadContext, Target};
use crate::base::{Counters, Result};
use crate::fragment::Fragment;
use crate::schema::Attribute;
use crate::tile::Cells;
use std::sync::Arc;

/// The rows of the sparse ones of `fragments` that lie at `points`, dead or alive: fragment, data tile, row in it.
pub(super) fn rows_at(
    context: &ReadContext,
    target: &Target,
    points: &Points,
    fragments: &[Arc<Fragment>],
) -> Result<Vec<(Arc<Fragment>, u64, usize)>> {
    Ok(hits::Hits::find(context, target, points, None, fragments)?.stored().collect())
}

/// Reads the cells at `points`, the attributes at these places of the schema, in the order given. Dense: one row per
/// point, without coordinates. Sparse: the cells that exist, with coordinates; where duplicates are allowed all of a
/// place, in order of writing.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if there are more than 2^32 cells.
pub fn read_points(context: &ReadContext, target: &Target, points: &Points, attrs: &[usize]) -> Result<Cells> {
    let attrs: Vec<&Attribute> = attrs.iter().filter_map(|p| target.schema.attrs().get(*p)).collect();
    Counters::add(&context.counters.fragments_considered, target.fragments.len() as u64);
    Counters::add(&context.counters.cells_scanned, points.len() as u64);
    let cells = if target.schema.sparse() {
        sparse::read(context, target, points, &attrs)?
    } else {
        dense::read(context, target, points, &attrs)?
    };
    Counters::add(&context.counters.cells_returned, cells.count as u64);
    Ok(cells)
}
