//! Painting a sparse fragment that is too large for the overlay onto a region of a dense array.

use super::canvas::Canvas;
use crate::base::{Counters, Result};
use crate::fragment::{Fragment, FragmentKind, Role};
use crate::query::block::deletions::Deletions;
use crate::query::block::fetch::{Want, fetch};
use crate::query::block::sparse::{SparseBlock, fetch_coordinates, touched_blocks};
use crate::query::request::{Area, ReadContext};
use crate::schema::{Schema, Subarray};
use crate::tile::Strided;
use std::sync::{Arc, OnceLock};

/// A block of a sparse fragment over a dense array. Several units of a read may touch it: its coordinates are kept for
/// the next one.
#[derive(Debug)]
pub(in crate::query) struct PaintedBlock {
    at: SparseBlock,
    coords: OnceLock<Arc<Vec<Vec<u64>>>>,
}

impl PaintedBlock {
    /// Whether it may have a cell in `region`.
    pub(in crate::query) fn touches(&self, region: &Subarray) -> bool {
        self.at.bounds.intersects(region)
    }
}

/// Whether the coordinates of all of `blocks` fit a batch.
fn coordinates_fit(context: &ReadContext, blocks: &[PaintedBlock]) -> bool {
    let words: usize = blocks.iter().map(|b| b.at.cells * b.at.bounds.ndim()).sum();
    words as u64 * 8 <= context.batch_bytes()
}

/// Paints the cells (or clears the tombstones) of a fragment that lie in `region`; `blocks`: those that touch what is read.
pub(super) fn paint_sparse(
    context: &ReadContext,
    schema: &Schema,
    (fragment, blocks): (&Arc<Fragment>, &[PaintedBlock]),
    region: &Subarray,
    canvases: &mut [Canvas<'_>],
) -> Result<()> {
    let strided = Strided::packed(&region.shape(), schema.options().cell_order);
    for PaintedBlock { at: block, coords } in blocks.iter().filter(|b| b.touches(region)) {
        context.cancel.check()?;
        let coords = match coords.get() {
            Some(held) => held.clone(),
            None => {
                let read = fetch_coordinates(context, schema, &[(fragment, block)], false)?;
                let read = Arc::new(read.into_iter().next().unwrap_or_default());
                if coordinates_fit(context, blocks) { coords.get_or_init(|| read).clone() } else { read }
            }
        };
        let cell = |row: usize| coords.iter().filter_map(move |c| c.get(row).copied());
        let inside = (0..block.cells).filter(|row| region.contains(cell(*row)));
        let places: Vec<(u64, u32)> = inside
            .map(|row| (strided.place(cell(row).zip(region.ranges()).map(|(k, r)| k - r.lo)), row as u32))
            .collect();
        Counters::add(&context.counters.cells_merged, places.len() as u64);
        if places.is_empty() {
            continue;
        }
        for canvas in canvases.iter_mut() {
            if fragment.description().kind == FragmentKind::Tombstones {
                canvas.clear_cells(places.iter().map(|p| p.0));
            } else if let Some(field) = fragment.field(Role::Attribute(canvas.attr().id())) {
                let want = Want {
                    source: fragment.clone(),
                    block: fragment.block(field, block.tile, block.block, block.cells)?,
                };
                for column in fetch(context, &[want], false)? {
                    canvas.paint_cells(&Arc::new(column), places.iter().copied());
                }
            }
        }
    }
    Ok(())
}

/// The blocks of `fragment` that touch a box, but those of which a deletion takes all cells.
pub(in crate::query) fn blocks_in(
    context: &ReadContext,
    fragment: &Fragment,
    region: &Subarray,
    deletions: &Deletions,
) -> Result<Vec<PaintedBlock>> {
    let order = fragment.description().order;
    let mut found = Vec::new();
    touched_blocks(context, fragment, Area::whole(region), |at, _| {
        if !deletions.cover(order, &at.bounds) {
            found.push(PaintedBlock { at, coords: OnceLock::new() });
        }
    })?;
    Ok(found)
}
