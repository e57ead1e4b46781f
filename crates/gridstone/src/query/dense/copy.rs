//! Cells of a dense array on their way straight into the result: what most reads do with most cells.
//!
//! The cells of an attribute of fixed width without nulls have their places in the result before anything is read. So a
//! block that one dense fragment serves alone is read into a scratch buffer that stays in the processor's cache, checked,
//! decoded, and moved from there to its place in the result: one pass over memory. Neighbouring blocks are read
//! together; of cells that are stored as they are the system itself copies long stretches to their places ([`super::scatter_read`]).
//! Entries of the overlay are put on top; where fragments lie over each other in any other way, the region is
//! painted first (`paint.rs`).

use super::piece::{BlockPart, Stored, pieces};
use super::plan::{CellSource, DensePlan};
use super::result::ResultColumn;
use super::scatter_read::read_straight;
use crate::base::{Counters, Error, Result};
use crate::fragment::{BlockSource, FragmentOrder, Role, TileSource};
use crate::query::block::coalesced::CoalescedReads;
use crate::query::request::ReadContext;
use crate::schema::Subarray;
use crate::tile::{Column, Strided};

impl DensePlan {
    /// Writes the cells of `region`, which lies in one space tile, to the places that `to` gives; gives the number of
    /// overlay entries on top of them, or `None`, and nothing is done, if the cells have to be painted.
    ///
    /// No two calls at the same time may have a cell in common; that is what the units of a plan are for.
    pub(in crate::query) fn deliver(
        &self,
        context: &ReadContext,
        result: &ResultColumn<'_>,
        region: &Subarray,
        to: &Strided,
    ) -> Result<Option<usize>> {
        context.cancel.check()?;
        match self.origin(result.attr, region) {
            CellSource::Nowhere(deleted) => {
                // SAFETY: the cells of the region are this call's own, as promised above.
                unsafe { result.slots.fill(&region.shape(), result.attr.fill(), to) };
                self.put_newer(context, result, (region, to), deleted).map(Some)
            }
            CellSource::One(source) => {
                let counters = &context.counters;
                Counters::add(&counters.cells_scanned, region.cells() as u64);
                let others = self.layers.iter().filter(|p| p.is_dense() && p.touches(region)).count() as u64 - 1;
                Counters::add(&counters.tiles_considered, others + 1);
                Counters::add(&counters.tiles_shadowed, others);
                move_blocks(context, result, source.as_ref(), (region, to))?;
                self.put_newer(context, result, (region, to), Some(source.description().order)).map(Some)
            }
            CellSource::Many => Ok(None),
        }
    }

    /// Puts the overlay's cells of a region that are newer than `order` on top of what was delivered; gives their number.
    fn put_newer(
        &self,
        context: &ReadContext,
        result: &ResultColumn<'_>,
        (region, to): (&Subarray, &Strided),
        order: Option<FragmentOrder>,
    ) -> Result<usize> {
        let mut newer = self.overlay_cells(region, to)?;
        newer.retain(|cell| Some(cell.order) >= order);
        self.put_overlay(context, &newer, result)?;
        Ok(newer.len())
    }

    /// Writes the painted cells of a region, in cell order, to the places that `to` gives; the promise of
    /// [`DensePlan::deliver`] holds here too.
    pub(super) fn move_painted(&self, result: &ResultColumn<'_>, column: &Column, region: &Subarray, to: &Strided) {
        let from = Strided::packed(&region.shape(), self.schema.options().cell_order);
        // SAFETY: as above.
        unsafe { result.slots.move_cells(&region.shape(), result.width(), column.view().values(), &from, to) };
    }
}

/// Moves the cells of a region that one source holds alone.
fn move_blocks(
    context: &ReadContext,
    result: &ResultColumn<'_>,
    source: &dyn TileSource,
    (region, to): (&Subarray, &Strided),
) -> Result<()> {
    let field = source.field(Role::Attribute(result.attr.id())).ok_or_else(|| {
        let id = source.description().id;
        Error::corruption(format!("fragment {id} lacks an attribute it is said to have"))
    })?;
    Counters::add(&context.counters.tiles_read, 1);
    let pieces = pieces(source, field, region, to)?;
    if source.source().scatters() && read_straight(context, result, source, &pieces)? {
        return Ok(());
    }
    let mut near = CoalescedReads::new();
    pieces.into_iter().for_each(|piece| near.push(piece.range, piece));
    near.read(context, source, |piece, bytes, decoded| {
        Counters::add(&context.counters.bytes_decoded, (piece.block_cells * result.width()) as u64);
        move_piece(result, source, &piece, bytes, decoded)
    })
}

fn move_piece(
    result: &ResultColumn<'_>,
    source: &dyn BlockSource,
    piece: &BlockPart,
    bytes: &[u8],
    decoded: &mut Vec<u8>,
) -> Result<()> {
    let (values, from) = match &piece.stored {
        Stored::Chunks(block, chunks) => {
            block.check_chunks(chunks, bytes)?;
            let place = block.place_of(piece.from.start, chunks.start);
            let (skipped, start) = place.ok_or_else(|| Error::corruption("a cell before its chunk"))?;
            (bytes.get(skipped..).unwrap_or_default(), Strided { start, ..piece.from.clone() })
        }
        Stored::Block(block) => {
            decoded.resize(piece.block_cells * result.width(), 0);
            source.decode_into(block, bytes, decoded)?;
            (decoded.as_slice(), piece.from.clone())
        }
    };
    let last = from.place(piece.shape.iter().map(|n| n - 1));
    if last as usize >= values.len() / result.width() {
        return Err(Error::corruption("a block has fewer cells than its place in the array"));
    }
    // SAFETY: the cells of a piece are cells of the region of one call of `deliver`, and of no other piece.
    unsafe { result.slots.move_cells(&piece.shape, result.width(), values, &from, &piece.to) };
    Ok(())
}
