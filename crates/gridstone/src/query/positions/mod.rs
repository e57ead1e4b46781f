//! Room `positions`: the cells of an array at chosen positions: with steps, in lists per dimension, point by point.
//!
//! A dense array:
//!
//! 1. Few cells per block are looked up one by one ([`super::points`]): each block is read once, and of an uncompressed one the chunks that are needed.
//! 2. Else the blocks that hold chosen cells are the units of work ([`units`]), each read as a dense box around its cells, from any number of
//!    fragments, and what was chosen is moved to its place in the result. Where most blocks hold some, those between them may be read too; else no other.
//!
//! A sparse array is read in boxes, and rows between chosen positions are left out ([`sparse`]).

mod axis;
mod gather;
mod mask;
mod selection;
mod sparse;
mod units;

pub use axis::AxisPositions;
pub use mask::Mask;
pub use selection::{Chosen, Positions};
pub use sparse::SparsePositions;

use super::points::list::Points;
use super::points::read_points;
use super::request::{ReadContext, Target};
use crate::base::{Error, Result};
use crate::tile::Cells;
use gather::by_blocks;

/// Cells looked up at once, which bounds the memory of their coordinates.
const LOOKUPS_MAX: u64 = 1 << 22;

/// Reads the cells of a dense array that `positions` choose, the attributes at these places of the schema, in row order of the selection's shape.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_positions(
    context: &ReadContext,
    target: &Target,
    positions: &Positions<'_>,
    attrs: &[usize],
) -> Result<Cells> {
    let Some(hull) = positions.hull(&target.schema) else {
        return Ok(Cells { dims: Vec::new(), ..Cells::none(&target.schema, attrs) });
    };
    let cells = usize::try_from(positions.cells()).map_err(|e| {
        Error::budget(format!("{} cells were chosen; choose fewer at once", positions.cells())).with_source(e)
    })?;
    check_fits(context, target, attrs, cells)?;
    match by_blocks(context, target, positions, (&hull, attrs), cells)? {
        Some(found) => Ok(found),
        None => one_by_one(context, target, positions, attrs),
    }
}

/// A Budget error if there is no memory for the result, before anything is planned or read.
fn check_fits(context: &ReadContext, target: &Target, attrs: &[usize], cells: usize) -> Result<()> {
    for attr in attrs.iter().filter_map(|place| target.schema.attrs().get(*place)) {
        let buffer = context.arena.take_cells(cells, attr.datatype().width().unwrap_or(8))?;
        context.arena.give(buffer);
    }
    Ok(())
}

fn one_by_one(context: &ReadContext, target: &Target, positions: &Positions<'_>, attrs: &[usize]) -> Result<Cells> {
    let cells = u64::try_from(positions.cells()).unwrap_or(u64::MAX);
    let mut found: Option<Cells> = None;
    for from in (0..cells).step_by(LOOKUPS_MAX as usize) {
        context.cancel.check()?;
        let keys = positions.keys(&target.schema, from..cells.min(from.saturating_add(LOOKUPS_MAX)));
        let points = Points::of_keys(context, &target.schema, keys)?;
        let some = read_points(context, target, &points, attrs)?;
        match &mut found {
            None => found = Some(some),
            Some(all) => all.append(some)?,
        }
    }
    Ok(found.unwrap_or_else(|| Cells { dims: Vec::new(), ..Cells::none(&target.schema, attrs) }))
}
