//! Parts of blocks on their way to the result: what is read of each, and where its cells lie before and after.

use crate::base::{ByteRange, Result};
use crate::fragment::{BlockRef, ChunkedBlock, Role, StoredPart, TileSource};
use crate::schema::{Attribute, Subarray};
use crate::tile::{Strided, offsets_in};
use std::ops::Range;

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

/// What is read of a source to deliver the cells of a region.
pub(super) fn piece_ranges(
    attr: &Attribute,
    source: &dyn TileSource,
    region: &Subarray,
    to: &Strided,
) -> Result<Vec<ByteRange>> {
    let Some(field) = source.field(Role::Attribute(attr.id())) else { return Ok(Vec::new()) };
    Ok(pieces(source, field, region, to)?.into_iter().map(|piece| piece.range).collect())
}

/// The parts of a source's blocks that hold the cells of `region`, which go to the places that `to` gives.
pub(super) fn pieces(source: &dyn TileSource, field: usize, region: &Subarray, to: &Strided) -> Result<Vec<BlockPart>> {
    let parts = source.parts(region)?.into_iter();
    parts
        .map(|part| {
            let to = to.at(&offsets_in(&part.region, region));
            piece(source, field, part, to)
        })
        .collect()
}

fn piece(source: &dyn TileSource, field: usize, part: StoredPart, to: Strided) -> Result<BlockPart> {
    let StoredPart { block, region, from } = part;
    let shape = region.shape();
    let last = from.place(shape.iter().map(|n| n - 1));
    let (range, stored) = match source.chunked_block(field, block)? {
        Some(chunked) => {
            let chunks = chunked.chunks_of(from.start as u32).start..chunked.chunks_of(last as u32).end;
            (chunked.chunk_range(&chunks), Stored::Chunks(chunked, chunks))
        }
        None => {
            let found = source.block(field, block)?;
            (found.range, Stored::Block(found))
        }
    };
    Ok(BlockPart { range, stored, from, shape, to, block_cells: block.cells })
}
