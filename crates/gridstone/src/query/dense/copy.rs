//! Cells of a dense array on their way straight into the result: what most reads do with most cells.
//!
//! The cells of an attribute of fixed width without nulls have their places in the result before anything is read. So a
//! block that one dense fragment serves alone is read into a scratch buffer that stays in the processor's cache, checked,
//! decoded, and moved from there to its place in the result: one pass over memory. Neighbouring blocks are read
//! together; of cells that are stored as they are the system itself copies long stretches to their places ([`super::scatter_read`]).
//! Entries of the overlay are put on top; where fragments lie over each other in any other way, the region is
//! painted first (`dense.rs`).

use super::piece::{Piece, Stored};
use super::plan::{DensePlan, Located, Origin};
use super::result::Sheet;
use super::scatter_read::read_straight;
use crate::base::{Counters, Error, Result};
use crate::fragment::{Fragment, FragmentOrder, Role};
use crate::query::block::coalesced::Neighbours;
use crate::query::cells::layout::Strided;
use crate::query::request::ReadContext;
use crate::schema::Subarray;
use crate::tile::Column;

impl DensePlan {
    /// Writes the cells of `region`, which lies in one space tile, to the places that `to` gives; gives the number of
    /// overlay entries on top of them, or `None`, and nothing is done, if the cells have to be painted.
    ///
    /// No two calls at the same time may have a cell in common; that is what the units of a plan are for.
    pub(in crate::query) fn deliver(
        &self,
        context: &ReadContext,
        sheet: &Sheet<'_>,
        region: &Subarray,
        to: &Strided,
    ) -> Result<Option<usize>> {
        context.cancel.check()?;
        match self.origin(sheet.attr, region) {
            Origin::Nowhere(deleted) => {
                // SAFETY: the cells of the region are this call's own, as promised above.
                unsafe { sheet.slots.fill(&region.shape(), sheet.attr.fill(), to) };
                self.put_newer(context, sheet, (region, to), deleted).map(Some)
            }
            Origin::One(fragment, grid) => {
                let counters = &context.counters;
                Counters::add(&counters.cells_scanned, region.cells() as u64);
                let others = self.painters.iter().filter(|p| p.is_dense() && p.touches(region)).count() as u64 - 1;
                Counters::add(&counters.tiles_considered, others + 1);
                Counters::add(&counters.tiles_shadowed, others);
                self.move_blocks(context, sheet, &self.locate(fragment, grid, region)?, to)?;
                self.put_newer(context, sheet, (region, to), Some(fragment.description().order)).map(Some)
            }
            Origin::Many => Ok(None),
        }
    }

    /// Puts the overlay's cells of a region that are newer than `order` on top of what was delivered; gives their number.
    fn put_newer(
        &self,
        context: &ReadContext,
        sheet: &Sheet<'_>,
        (region, to): (&Subarray, &Strided),
        order: Option<FragmentOrder>,
    ) -> Result<usize> {
        let mut newer = self.overlay_cells(region, to)?;
        newer.retain(|cell| Some(cell.order) >= order);
        self.put_overlay(context, &newer, sheet)?;
        Ok(newer.len())
    }

    /// Writes the painted cells of a region, in cell order, to the places that `to` gives; the promise of
    /// [`DensePlan::deliver`] holds here too.
    pub(super) fn move_painted(&self, sheet: &Sheet<'_>, column: &Column, region: &Subarray, to: &Strided) {
        let from = Strided::packed(&region.shape(), self.schema.options().cell_order);
        // SAFETY: as above.
        unsafe { sheet.slots.move_cells(&region.shape(), sheet.width(), column.view().values(), &from, to) };
    }

    fn move_blocks(&self, context: &ReadContext, sheet: &Sheet<'_>, at: &Located<'_>, to: &Strided) -> Result<()> {
        let field = at.fragment.promised_field(Role::Attribute(sheet.attr.id()))?;
        Counters::add(&context.counters.tiles_read, 1);
        let pieces = at.blocks.touched_by(&at.wanted).into_iter().map(|block| self.piece(at, field, block, to));
        let pieces: Vec<Piece> = pieces.filter_map(Result::transpose).collect::<Result<_>>()?;
        if at.fragment.source().scatters() && read_straight(context, sheet, at.fragment, &pieces)? {
            return Ok(());
        }
        let mut near = Neighbours::new();
        pieces.into_iter().for_each(|piece| near.push(piece.range, piece));
        near.read(context, at.fragment, |piece, bytes, decoded| {
            Counters::add(&context.counters.bytes_decoded, (piece.block_cells * sheet.width()) as u64);
            move_piece(sheet, at.fragment, &piece, bytes, decoded)
        })
    }
}

fn move_piece(
    sheet: &Sheet<'_>,
    fragment: &Fragment,
    piece: &Piece,
    bytes: &[u8],
    decoded: &mut Vec<u8>,
) -> Result<()> {
    let (values, from) = match &piece.stored {
        Stored::Chunks(block, chunks) => {
            fragment.check_chunks(block, chunks, bytes)?;
            let place = block.place_of(piece.from.start, chunks.start);
            let (skipped, start) = place.ok_or_else(|| Error::corruption("a cell before its chunk"))?;
            (bytes.get(skipped..).unwrap_or_default(), Strided { start, ..piece.from.clone() })
        }
        Stored::Block(block) => {
            decoded.resize(piece.block_cells * sheet.width(), 0);
            fragment.decode_into(block, bytes, decoded)?;
            (decoded.as_slice(), piece.from.clone())
        }
    };
    let last = from.place(piece.shape.iter().map(|n| n - 1));
    if last as usize >= values.len() / sheet.width() {
        return Err(Error::corruption("a block has fewer cells than its place in the array"));
    }
    // SAFETY: the cells of a piece are cells of the region of one call of `deliver`, and of no other piece.
    unsafe { sheet.slots.move_cells(&piece.shape, sheet.width(), values, &from, &piece.to) };
    Ok(())
}
