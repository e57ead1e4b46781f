//! Parts of blocks on their way to the result: what is read of each, and where its cells lie before and after.

use super::plan::{DensePlan, TilePart};
use crate::base::{ByteRange, Result};
use crate::fragment::{BlockRef, ChunkedBlock, Fragment, Role};
use crate::query::cells::layout::Strided;
use crate::schema::{Attribute, Subarray};
use crate::tile::TileGrid;
use std::ops::Range;
use std::sync::Arc;

/// A block, or the chunks of it that hold wanted cells, on its way to the result.
pub(in crate::query) struct BlockPart {
    pub(super) range: ByteRange,
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

    pub(super) fn piece(&self, at: &TilePart<'_>, field: usize, block: u64, to: &Strided) -> Result<Option<BlockPart>> {
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
        Ok(Some(BlockPart { range, stored, from, shape: common.shape, to, block_cells: cells }))
    }
}
