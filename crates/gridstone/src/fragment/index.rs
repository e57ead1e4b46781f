//! The index sections of a stripe, encoded when it is flushed.
//!
//! Every section is a vector of little-endian words (see [`SectionId`]); fields and attributes are the outer index of
//! a section, tiles or blocks the inner one.

use super::encode::EncodedTile;
use super::format::SectionId;
use super::root::Field;
use super::statistics;
use crate::base::{ByteWriter, Error, Result};
use crate::schema::Subarray;

/// The sections of a stripe that is being flushed.
pub(super) struct IndexSections {
    pub(super) sections: Vec<(SectionId, Vec<u8>)>,
    pub(super) texts: u64,
}

/// Encodes the index of `tiles`; `pages` and `chunks` were written as the pages were.
pub(super) fn encode(
    tiles: &[EncodedTile],
    fields: &[Field],
    pages: ByteWriter,
    chunks: ByteWriter,
) -> Result<IndexSections> {
    let mut sections = Vec::new();
    if tiles.iter().all(|t| t.shape.is_some()) {
        sections.extend(encode_shapes(tiles));
    }
    let mut starts = ByteWriter::new();
    let mut next = 0u32;
    starts.u32(0);
    for tile in tiles {
        next += tile.blocks;
        starts.u32(next);
    }
    let mut blocks = ByteWriter::new();
    for field in 0..fields.len() {
        for page in tiles.iter().filter_map(|t| t.pages.get(field)) {
            for (len, crc) in &page.blocks {
                blocks.u32(*len);
                blocks.u32(*crc);
            }
        }
    }
    let (statistics, texts, count) = statistics::encode(tiles, fields)?;
    sections.push((SectionId::BlockStarts, starts.into_bytes()));
    sections.push((SectionId::Pages, pages.into_bytes()));
    sections.push((SectionId::Blocks, blocks.into_bytes()));
    for (id, writer) in
        [(SectionId::Statistics, statistics), (SectionId::Texts, texts), (SectionId::ChunkChecksums, chunks)]
    {
        if !writer.is_empty() {
            sections.push((id, writer.into_bytes()));
        }
    }
    Ok(IndexSections { sections, texts: count })
}

fn encode_shapes(tiles: &[EncodedTile]) -> Vec<(SectionId, Vec<u8>)> {
    let [mut cells, mut bounds, mut ends, mut block_bounds, mut firsts] = std::array::from_fn(|_| ByteWriter::new());
    let put_box = |w: &mut ByteWriter, sub: &Subarray| {
        for range in sub.ranges() {
            w.u64(range.lo);
            w.u64(range.hi);
        }
    };
    for tile in tiles {
        let Some(shape) = &tile.shape else { continue };
        cells.u64(tile.cells);
        put_box(&mut bounds, &shape.mbr);
        shape.ends.0.iter().chain(&shape.ends.1).for_each(|k| ends.u64(*k));
        shape.block_mbrs.iter().for_each(|mbr| put_box(&mut block_bounds, mbr));
        shape.block_firsts.iter().flatten().for_each(|k| firsts.u64(*k));
    }
    vec![
        (SectionId::TileCells, cells.into_bytes()),
        (SectionId::TileBounds, bounds.into_bytes()),
        (SectionId::TileEnds, ends.into_bytes()),
        (SectionId::BlockBounds, block_bounds.into_bytes()),
        (SectionId::BlockFirsts, firsts.into_bytes()),
    ]
}

/// Corruption unless `bytes` are `count` items of `width` bytes.
pub(super) fn expect_len(bytes: &[u8], count: usize, width: usize) -> Result<()> {
    if count.checked_mul(width) == Some(bytes.len()) {
        return Ok(());
    }
    Err(Error::corruption(format!("an index section has {} bytes, expected {count} items of {width}", bytes.len())))
}
