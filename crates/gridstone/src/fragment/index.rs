//! The index of one stripe: encoded when the stripe is flushed, decoded and checked when a reader touches it.
//!
//! Every section is a vector of little-endian words (see [`SectionId`]); fields and attributes are the outer index of
//! a section, tiles or blocks the inner one. Decoding checks every length and sum before anything relies on it.

use super::encode::EncodedTile;
use super::format::{CHUNK_BYTES, LARGE_PAGE_BYTES, SectionId};
use super::root::{Field, Role, Root};
use super::{FragmentKind, root::StripeInfo};
use crate::base::{ByteReader, ByteWriter, Error, Result};
use crate::schema::{KeyRange, Subarray};
use crate::tile::{Bound, Statistics, Sum};

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
    let (statistics, texts, count) = encode_statistics(tiles, fields)?;
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

const HAS_MIN: u32 = 1;
const HAS_MAX: u32 = 2;
const EXACT_MIN: u32 = 4;
const EXACT_MAX: u32 = 8;
const SUM_INTEGER: u32 = 16;
const SUM_FLOAT: u32 = 32;
const STATISTICS_BYTES: usize = 64;

/// Per tile 64 bytes: u32 flags | u32 number of the first text | u64 nulls | u64 NaNs | min 8 B | max 8 B | sum 16 B | 0.
fn encode_statistics(tiles: &[EncodedTile], fields: &[Field]) -> Result<(ByteWriter, ByteWriter, u64)> {
    let (mut w, mut texts, mut count) = (ByteWriter::new(), ByteWriter::new(), 0u32);
    for (place, field) in fields.iter().enumerate() {
        for s in tiles.iter().filter_map(|t| t.pages.get(place)?.statistics.as_ref()) {
            let flag = |bound: &Option<Bound>, has: u32, exact: u32| match bound {
                Some(b) => has | if b.exact { exact } else { 0 },
                None => 0,
            };
            let (sum_flag, sum) = match s.sum {
                Sum::None => (0, 0),
                Sum::Integer(n) => (SUM_INTEGER, n as u128),
                Sum::Float(f) => (SUM_FLOAT, u128::from(f.to_bits())),
            };
            w.u32(flag(&s.min, HAS_MIN, EXACT_MIN) | flag(&s.max, HAS_MAX, EXACT_MAX) | sum_flag);
            w.u32(count);
            w.u64(s.null_count);
            w.u64(s.nan_count);
            for bound in [&s.min, &s.max] {
                let bytes = bound.as_ref().map(|b| b.bytes.as_slice()).unwrap_or_default();
                let mut word = [0u8; 8];
                if field.datatype.is_var() {
                    if bound.is_some() {
                        texts.sized(bytes)?;
                        count += 1;
                    }
                } else {
                    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                }
                w.raw(&word);
            }
            w.u128(sum);
            w.u64(0);
        }
    }
    Ok((w, texts, u64::from(count)))
}

/// Where the page of one field of one tile lies.
#[derive(Debug, Clone, Copy)]
pub(super) struct PageEntry {
    pub(super) offset: u64,
    pub(super) len: u64,
    pub(super) pipeline: u32,
    pub(super) first_chunk: u32,
}

/// One block of one field.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockEntry {
    /// Offset in its page.
    pub(super) offset: u64,
    pub(super) len: u32,
    pub(super) crc: u32,
}

/// The decoded index of one stripe. Tiles and blocks are numbered from 0 within it.
#[derive(Debug)]
pub struct Stripe {
    tiles: usize,
    ndim: usize,
    cells: Vec<u64>,
    bounds: Vec<u64>,
    ends: Vec<u64>,
    block_starts: Vec<u32>,
    block_bounds: Vec<u64>,
    block_firsts: Vec<u64>,
    pages: Vec<PageEntry>,
    blocks: Vec<BlockEntry>,
    statistics: Vec<Statistics>,
    chunks: Vec<u32>,
}

impl Stripe {
    /// Decodes the sections of a stripe, each checked against its checksum by the caller, and checks that they agree
    /// with each other and with the root.
    pub(super) fn decode(root: &Root, info: StripeInfo, sections: &[(SectionId, bytes::Bytes)]) -> Result<Self> {
        let find = |id: SectionId| sections.iter().find(|(s, _)| *s == id).map(|(_, b)| b.as_ref()).unwrap_or_default();
        let (ndim, fields) = (root.bounds.ndim(), root.fields.len());
        let too_many = || Error::corruption("a stripe's index claims more than a file can hold");
        let tiles = usize::try_from(info.tiles).map_err(|_| too_many())?;
        let blocks = usize::try_from(info.blocks).map_err(|_| too_many())?;
        let sparse = root.kind != FragmentKind::Dense;
        let times = |n: usize, m: usize| n.checked_mul(m).ok_or_else(too_many);
        let shaped = |n: usize| if sparse { times(n, 2 * ndim) } else { Ok(0) };
        let block_starts = words32(find(SectionId::BlockStarts), tiles.checked_add(1).ok_or_else(too_many)?)?;
        let pages = decode_pages(find(SectionId::Pages), times(tiles, fields)?)?;
        let chunks = find(SectionId::ChunkChecksums);
        let stripe = Self {
            tiles,
            ndim,
            cells: words64(find(SectionId::TileCells), if sparse { tiles } else { 0 })?,
            bounds: words64(find(SectionId::TileBounds), shaped(tiles)?)?,
            ends: words64(find(SectionId::TileEnds), shaped(tiles)?)?,
            block_bounds: words64(find(SectionId::BlockBounds), shaped(blocks)?)?,
            block_firsts: words64(find(SectionId::BlockFirsts), shaped(blocks)? / 2)?,
            blocks: decode_blocks(find(SectionId::Blocks), &block_starts, &pages, blocks, fields)?,
            statistics: decode_statistics(root, info, tiles, find(SectionId::Statistics), find(SectionId::Texts))?,
            chunks: words32(chunks, chunks.len() / 4)?,
            block_starts,
            pages,
        };
        stripe.check_pages(root)?;
        if sparse {
            stripe.check_shapes(root)?;
        }
        Ok(stripe)
    }

    fn check_pages(&self, root: &Root) -> Result<()> {
        let limit = root.sections.iter().map(|s| s.range.offset).max().unwrap_or(0);
        for page in &self.pages {
            let Some(pipeline) = root.pipelines.get(page.pipeline as usize) else {
                return Err(Error::corruption(format!(
                    "a page names pipeline {} of {}",
                    page.pipeline,
                    root.pipelines.len()
                )));
            };
            if page.offset.checked_add(page.len).is_none_or(|end| end > limit) {
                return Err(Error::corruption(format!(
                    "a page lies at {} + {}, past the pages",
                    page.offset, page.len
                )));
            }
            if pipeline == "none" && page.len >= LARGE_PAGE_BYTES {
                let end = u64::from(page.first_chunk) + page.len.div_ceil(CHUNK_BYTES);
                if end > self.chunks.len() as u64 {
                    return Err(Error::corruption("a large page lacks checksums"));
                }
            }
        }
        Ok(())
    }

    fn check_shapes(&self, root: &Root) -> Result<()> {
        let wrong =
            || Error::corruption("the index of a stripe contradicts itself: boxes, cells and blocks do not fit");
        for tile in 0..self.tiles {
            let (from, to) = self.block_span(tile).ok_or_else(wrong)?;
            let cells = self.cells.get(tile).copied().ok_or_else(wrong)?;
            if cells == 0 || cells.div_ceil(u64::from(root.block_cells)) != (to - from) as u64 {
                return Err(wrong());
            }
            let mbr = self.tile_bounds(tile).filter(|mbr| root.bounds.covers(mbr)).ok_or_else(wrong)?;
            let inside = |keys: Option<&[u64]>| keys.is_some_and(|keys| mbr.contains(keys.iter().copied()));
            let (first, last) = self.tile_ends(tile).ok_or_else(wrong)?;
            if !inside(Some(first)) || !inside(Some(last)) {
                return Err(wrong());
            }
            for block in from..to {
                let fits = self.block_bounds(block).is_some_and(|b| mbr.covers(&b)) && inside(self.block_first(block));
                if !fits {
                    return Err(wrong());
                }
            }
        }
        Ok(())
    }

    fn box_at(words: &[u64], ndim: usize, place: usize) -> Option<Subarray> {
        let run = words.get(place * 2 * ndim..(place + 1) * 2 * ndim)?;
        let (pairs, _) = run.as_chunks::<2>();
        pairs
            .iter()
            .map(|[lo, hi]| (lo <= hi).then(|| KeyRange::new(*lo, *hi)))
            .collect::<Option<Vec<_>>>()
            .map(Subarray::new)
    }

    /// The number of tiles.
    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// The first block of a tile, and one past its last.
    pub fn block_span(&self, tile: usize) -> Option<(usize, usize)> {
        Some((*self.block_starts.get(tile)? as usize, *self.block_starts.get(tile + 1)? as usize))
    }

    /// Cells of a sparse tile.
    pub fn tile_cells(&self, tile: usize) -> Option<u64> {
        self.cells.get(tile).copied()
    }

    /// The MBR of a sparse tile.
    pub fn tile_bounds(&self, tile: usize) -> Option<Subarray> {
        Self::box_at(&self.bounds, self.ndim, tile)
    }

    /// The bounding coordinates of a sparse tile: the keys of its first and of its last cell in global order.
    pub fn tile_ends(&self, tile: usize) -> Option<(&[u64], &[u64])> {
        let run = self.ends.get(tile * 2 * self.ndim..(tile + 1) * 2 * self.ndim)?;
        run.split_at_checked(self.ndim)
    }

    /// The MBR of a sparse block.
    pub fn block_bounds(&self, block: usize) -> Option<Subarray> {
        Self::box_at(&self.block_bounds, self.ndim, block)
    }

    /// The keys of the first cell of a sparse block.
    pub fn block_first(&self, block: usize) -> Option<&[u64]> {
        self.block_firsts.get(block * self.ndim..(block + 1) * self.ndim)
    }

    /// The statistics of attribute number `attr` (counted among the fragment's attributes) in a tile.
    pub fn statistics(&self, attr: usize, tile: usize) -> Option<&Statistics> {
        self.statistics.get(attr * self.tiles + tile)
    }

    pub(super) fn page(&self, field: usize, tile: usize) -> Option<PageEntry> {
        self.pages.get(field * self.tiles + tile).copied()
    }

    pub(super) fn block(&self, field: usize, block: usize) -> Option<BlockEntry> {
        let blocks = *self.block_starts.last()? as usize;
        self.blocks.get(field * blocks + block).copied()
    }

    pub(super) fn chunk_checksum(&self, number: usize) -> Option<u32> {
        self.chunks.get(number).copied()
    }

    /// Bytes of memory it takes, about.
    pub fn size_bytes(&self) -> u64 {
        let words =
            self.cells.len() + self.bounds.len() + self.ends.len() + self.block_bounds.len() + self.block_firsts.len();
        (words * 8
            + self.block_starts.len() * 4
            + self.pages.len() * 24
            + self.blocks.len() * 16
            + self.statistics.len() * 160
            + self.chunks.len() * 4) as u64
    }
}

fn expect_len(bytes: &[u8], count: usize, width: usize) -> Result<()> {
    if count.checked_mul(width) == Some(bytes.len()) {
        return Ok(());
    }
    Err(Error::corruption(format!("an index section has {} bytes, expected {count} items of {width}", bytes.len())))
}

fn words64(bytes: &[u8], count: usize) -> Result<Vec<u64>> {
    expect_len(bytes, count, 8)?;
    Ok(bytes.as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect())
}

fn words32(bytes: &[u8], count: usize) -> Result<Vec<u32>> {
    expect_len(bytes, count, 4)?;
    Ok(bytes.as_chunks::<4>().0.iter().map(|w| u32::from_le_bytes(*w)).collect())
}

fn decode_pages(bytes: &[u8], count: usize) -> Result<Vec<PageEntry>> {
    expect_len(bytes, count, 24)?;
    let mut r = ByteReader::new(bytes, "the page table");
    (0..count)
        .map(|_| Ok(PageEntry { offset: r.u64()?, len: r.u64()?, pipeline: r.u32()?, first_chunk: r.u32()? }))
        .collect()
}

/// Blocks with their offsets in their pages; checks that each page is exactly its blocks.
fn decode_blocks(
    bytes: &[u8],
    starts: &[u32],
    pages: &[PageEntry],
    blocks: usize,
    fields: usize,
) -> Result<Vec<BlockEntry>> {
    let wrong = || Error::corruption("a stripe's block table does not fit its pages");
    let total = blocks.checked_mul(fields).ok_or_else(wrong)?;
    expect_len(bytes, total, 8)?;
    if starts.first() != Some(&0) || starts.last().map(|n| *n as usize) != Some(blocks) || !starts.is_sorted() {
        return Err(wrong());
    }
    let mut r = ByteReader::new(bytes, "the block table");
    let mut entries = Vec::with_capacity(total);
    let mut pages = pages.iter();
    for _ in 0..fields {
        for span in starts.windows(2) {
            let [from, to] = *span else { return Err(wrong()) };
            let mut offset = 0u64;
            for _ in from..to {
                let (len, crc) = (r.u32()?, r.u32()?);
                entries.push(BlockEntry { offset, len, crc });
                offset += u64::from(len);
            }
            if pages.next().map(|p| p.len) != Some(offset) {
                return Err(wrong());
            }
        }
    }
    Ok(entries)
}

fn decode_statistics(
    root: &Root,
    info: StripeInfo,
    tiles: usize,
    bytes: &[u8],
    texts: &[u8],
) -> Result<Vec<Statistics>> {
    let attrs: Vec<&Field> = root.fields.iter().filter(|f| matches!(f.role, Role::Attribute(_))).collect();
    let too_many = || Error::corruption("a stripe's index claims more statistics than a file can hold");
    expect_len(bytes, attrs.len().checked_mul(tiles).ok_or_else(too_many)?, STATISTICS_BYTES)?;
    let mut texts = ByteReader::new(texts, "the texts of statistics");
    let mut r = ByteReader::new(bytes, "the statistics");
    let mut statistics = Vec::with_capacity(attrs.len() * tiles);
    let mut seen = 0u64;
    for field in attrs {
        for _ in 0..tiles {
            let flags = r.u32()?;
            if u64::from(r.u32()?) != seen {
                return Err(Error::corruption("a tile's statistics point at the wrong text"));
            }
            let (null_count, nan_count) = (r.u64()?, r.u64()?);
            let mut bound = |has: u32, exact: u32| -> Result<Option<Bound>> {
                let word = r.take(8)?;
                if flags & has == 0 {
                    return Ok(None);
                }
                let bytes = match field.datatype.width() {
                    Some(width) => word.get(..width).unwrap_or_default().to_vec(),
                    None => {
                        seen += 1;
                        texts.sized()?.to_vec()
                    }
                };
                Ok(Some(Bound { bytes, exact: flags & exact != 0 }))
            };
            let (min, max) = (bound(HAS_MIN, EXACT_MIN)?, bound(HAS_MAX, EXACT_MAX)?);
            let raw = r.u128()?;
            r.u64()?;
            let sum = match flags & (SUM_INTEGER | SUM_FLOAT) {
                SUM_INTEGER => Sum::Integer(raw as i128),
                SUM_FLOAT => Sum::Float(f64::from_bits(raw as u64)),
                _ => Sum::None,
            };
            statistics.push(Statistics { null_count, nan_count, min, max, sum });
        }
    }
    texts.expect_end()?;
    if seen != info.texts {
        return Err(Error::corruption("a stripe's texts are not as many as its statistics say"));
    }
    Ok(statistics)
}
