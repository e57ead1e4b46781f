//! Cells of a dense array on their way straight into the result: what most reads do with most cells.
//!
//! The cells of an attribute of fixed width without nulls have their places in the result before anything is read. So a
//! block that one dense fragment serves alone is read into a scratch buffer that stays in the processor's cache, checked,
//! decoded, and moved from there to its place in the result: one pass over memory. Neighbouring blocks are read
//! together; of cells that are stored as they are the system itself copies long stretches to their places ([`super::scatter_read`]).
//! Entries of the overlay are put on top; where fragments lie over each other in any other way, the region is
//! painted first (`dense.rs`).

use super::read::{DensePlan, Layer, Located, Painter};
use super::scatter_read::read_straight;
use crate::base::{ByteRange, Counters, Error, Result};
use crate::fragment::{BlockRef, ChunkedBlock, Fragment, FragmentOrder, Role};
use crate::query::block::coalesced::Neighbours;
use crate::query::cells::layout::Strided;
use crate::query::cells::shared_result::Slots;
use crate::query::request::{ReadContext, Request, is_deliverable};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{BlockGrid, Column, RelativeBox, TileGrid, offsets_in};
use std::ops::Range;
use std::sync::Arc;

/// The result of one attribute.
pub(in crate::query) struct Sheet<'a> {
    pub(in crate::query) attr: &'a Attribute,
    pub(in crate::query) slots: Slots<'a>,
}

impl Sheet<'_> {
    pub(in crate::query) fn width(&self) -> usize {
        self.attr.datatype().width().unwrap_or(1)
    }
}

/// The attributes asked for, those that can be delivered apart from those that are painted: places among those asked.
pub(in crate::query) fn split(schema: &Schema, request: &Request) -> (Vec<usize>, Vec<usize>) {
    let deliverable =
        |place: &usize| request.attrs.get(*place).and_then(|p| schema.attrs().get(*p)).is_some_and(is_deliverable);
    (0..request.attrs.len()).partition(deliverable)
}

/// Where the cells of a region come from.
pub(in crate::query) enum Origin<'p> {
    /// Nothing was ever written there, or all of it deleted with this order: only newer entries of the overlay are left.
    Nowhere(Option<FragmentOrder>),
    /// One dense fragment, newer than all others there but for entries of the overlay.
    One(&'p Arc<Fragment>, &'p TileGrid),
    /// Several fragments.
    Many,
}

/// A block, or the chunks of it that hold wanted cells, on its way to the result.
pub(in crate::query) struct Piece {
    range: ByteRange,
    pub(in crate::query) stored: Stored,
    /// Where the wanted cells lie in the block.
    pub(in crate::query) from: Strided,
    pub(in crate::query) shape: Vec<u64>,
    pub(in crate::query) to: Strided,
    pub(in crate::query) block_cells: usize,
}

pub(in crate::query) enum Stored {
    Chunks(ChunkedBlock, Range<u64>),
    Block(BlockRef),
}

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

    /// Where the cells of a region come from; entries of the overlay aside.
    pub(in crate::query) fn origin(&self, attr: &Attribute, region: &Subarray) -> Origin<'_> {
        let holds = |p: &&Painter| p.touches(region) && p.concerns(attr);
        let Some(newest) = self.painters.iter().rfind(holds) else { return Origin::Nowhere(None) };
        match &newest.layer {
            _ if !newest.hides(attr, region) => Origin::Many,
            Layer::Dense(fragment, grid) => Origin::One(fragment, grid),
            Layer::Deletion => Origin::Nowhere(Some(newest.description.order)),
            Layer::Sparse(..) => Origin::Many,
        }
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

    /// Whether a device was waited for lately.
    pub(in crate::query) fn is_waited_for(&self) -> bool {
        let slow = |p: &Painter| matches!(&p.layer, Layer::Dense(fragment, _) if fragment.source().is_waited_for());
        self.painters.iter().any(slow)
    }

    /// Tells the device, if it is waited for, what will be read of a region.
    pub(super) fn foresee(&self, sheets: &[Sheet<'_>], region: &Subarray, to: &Strided) -> Result<()> {
        for sheet in sheets {
            let Origin::One(fragment, grid) = self.origin(sheet.attr, region) else { continue };
            if !fragment.source().is_waited_for() {
                continue;
            }
            fragment.source().foresee(&self.piece_ranges(sheet.attr, (fragment, grid), region, to)?);
        }
        Ok(())
    }

    /// What is read of a fragment to deliver the cells of a region.
    pub(super) fn piece_ranges(
        &self,
        attr: &Attribute,
        (fragment, grid): (&Arc<Fragment>, &TileGrid),
        region: &Subarray,
        to: &Strided,
    ) -> Result<Vec<ByteRange>> {
        let Some(field) = fragment.field(Role::Attribute(attr.id())) else { return Ok(Vec::new()) };
        let at = self.locate(fragment, grid, region)?;
        let pieces = at.blocks.touched_by(&at.wanted).into_iter().map(|block| self.piece(&at, field, block, to));
        pieces.filter_map(|piece| piece.map(|found| Some(found?.range)).transpose()).collect()
    }

    /// The part of the fragment's tile that holds `part`, which lies in its box and in one space tile.
    pub(in crate::query) fn locate<'p>(
        &self,
        fragment: &'p Arc<Fragment>,
        grid: &TileGrid,
        part: &Subarray,
    ) -> Result<Located<'p>> {
        let wrong =
            || Error::corruption(format!("fragment {}: its tiles do not fit its box", fragment.description().id));
        let coords: Vec<u64> = self.schema.dims().iter().zip(part.ranges()).map(|(d, r)| d.tile_of(r.lo)).collect();
        let tile = grid.index_of(&coords).ok_or_else(wrong)?;
        let tile_box = grid.tile_box(tile).ok_or_else(wrong)?;
        let order = self.schema.options().cell_order;
        let blocks = BlockGrid::new(&tile_box.shape(), order, u64::from(fragment.root().block_cells));
        if blocks.len() != fragment.tile_blocks(tile)? as u64 {
            return Err(wrong());
        }
        let wanted = RelativeBox { origin: offsets_in(part, &tile_box), shape: part.shape() };
        Ok(Located { fragment, tile, tile_box, blocks, wanted })
    }

    fn piece(&self, at: &Located<'_>, field: usize, block: u64, to: &Strided) -> Result<Option<Piece>> {
        let block_box = at.blocks.block_box(block);
        let Some(common) = block_box.intersect(&at.wanted) else { return Ok(None) };
        let cells = block_box.cells() as usize;
        let minus = |a: &[u64], b: &[u64]| a.iter().zip(b).map(|(a, b)| a - b).collect::<Vec<u64>>();
        let from = Strided::packed(&block_box.shape, self.schema.options().cell_order)
            .at(&minus(&common.origin, &block_box.origin));
        let last = from.place(common.shape.iter().map(|n| n - 1));
        let chunked = at.fragment.chunked_block(field, at.tile, block as usize, cells)?;
        let (range, stored) = match chunked {
            Some(chunked) => {
                let chunks = chunked.chunks_of(from.start as u32).start..chunked.chunks_of(last as u32).end;
                (at.fragment.chunk_range(&chunked, &chunks), Stored::Chunks(chunked, chunks))
            }
            None => {
                let block = at.fragment.block(field, at.tile, block as usize, cells)?;
                (block.range, Stored::Block(block))
            }
        };
        let to = to.at(&minus(&common.origin, &at.wanted.origin));
        Ok(Some(Piece { range, stored, from, shape: common.shape, to, block_cells: cells }))
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
