//! The index of one stripe, used where it lies: opening it decodes nothing.
//!
//! Sections are vectors of little-endian words, looked at word by word. Lengths, and the boxes and ends of sparse tiles
//! and blocks, are checked when the stripe is opened; what is said of a page when that page is touched.

use super::FragmentKind;
use super::box_runs::BoxRuns;
use super::format::{CHUNK_BYTES, LARGE_PAGE_BYTES, SectionId};
use super::index::expect_len;
use super::root::{Root, StripeInfo};
use crate::base::{Error, Result};
use crate::schema::{KeyRange, Subarray};
use bytes::Bytes;
use std::ops::Range;
use std::sync::OnceLock;

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

/// Keys of a cell, a dimension each, as they lie in the index.
#[derive(Debug, Clone, Copy)]
pub struct Keys<'a>(&'a [[u8; 8]]);

impl<'a> Keys<'a> {
    /// The keys.
    pub fn iter(self) -> impl ExactSizeIterator<Item = u64> + 'a {
        self.0.iter().map(|word| u64::from_le_bytes(*word))
    }
}

/// A box as it lies in the index.
#[derive(Debug, Clone, Copy)]
pub struct IndexBox<'a>(&'a [[u8; 8]]);

impl<'a> IndexBox<'a> {
    /// The box of these words.
    #[cfg(test)]
    pub(super) fn of(words: &'a [[u8; 8]]) -> Self {
        Self(words)
    }

    /// Its ranges, a dimension each.
    pub fn ranges(self) -> impl Iterator<Item = KeyRange> + Clone + 'a {
        let (pairs, _) = self.0.as_chunks::<2>();
        pairs.iter().map(|[lo, hi]| KeyRange { lo: u64::from_le_bytes(*lo), hi: u64::from_le_bytes(*hi) })
    }

    /// Whether it and `sub` have a cell in common.
    pub fn intersects(self, sub: &Subarray) -> bool {
        self.ranges().zip(sub.ranges()).all(|(a, b)| a.lo <= b.hi && b.lo <= a.hi)
    }

    /// Whether the cell with these keys lies inside.
    pub fn contains(self, keys: impl IntoIterator<Item = u64>) -> bool {
        self.ranges().zip(keys).all(|(r, k)| r.contains(k))
    }

    /// The box.
    pub fn to_subarray(self) -> Subarray {
        Subarray::new(self.ranges().collect())
    }

    fn is_inside(self, ranges: impl IntoIterator<Item = KeyRange>) -> bool {
        self.ranges().zip(ranges).all(|(a, b)| b.lo <= a.lo && a.lo <= a.hi && a.hi <= b.hi)
    }
}

/// A section of words of `N` bytes.
#[derive(Debug, Clone, Default)]
struct Words<const N: usize>(Bytes);

impl<const N: usize> Words<N> {
    fn new(bytes: Bytes, count: usize) -> Result<Self> {
        expect_len(&bytes, count, N)?;
        Ok(Self(bytes))
    }

    fn all(&self) -> &[[u8; N]] {
        self.0.as_chunks::<N>().0
    }

    /// `count` words, the `place`-th such run.
    fn run(&self, place: usize, count: usize) -> Option<&[[u8; N]]> {
        let start = place.checked_mul(count)?;
        self.all().get(start..start.checked_add(count)?)
    }
}

impl Words<4> {
    fn get(&self, place: usize) -> Option<u32> {
        self.all().get(place).map(|word| u32::from_le_bytes(*word))
    }
}

impl Words<8> {
    fn get(&self, place: usize) -> Option<u64> {
        self.all().get(place).map(|word| u64::from_le_bytes(*word))
    }
}

/// Where in a page each of its blocks begins, and where the last one ends.
type Offsets = Box<[u64]>;

/// Pages of more blocks than this have the offsets of their blocks added up once and kept.
const ADDED_BLOCKS_MAX: usize = 32;

/// The index of one stripe. Tiles and blocks are numbered from 0 within it.
#[derive(Debug)]
pub struct Stripe {
    tiles: usize,
    blocks: usize,
    ndim: usize,
    cells: Words<8>,
    bounds: Words<8>,
    ends: Words<8>,
    block_starts: Words<4>,
    block_bounds: Words<8>,
    block_firsts: Words<8>,
    pages: Words<24>,
    entries: Words<8>,
    chunks: Words<4>,
    /// Of pages of many blocks, fields outer; empty if no page has many.
    offsets: Vec<OnceLock<Offsets>>,
    /// Hulls around the MBRs of tiles, and around those of blocks.
    tile_runs: OnceLock<BoxRuns>,
    block_runs: OnceLock<BoxRuns>,
    /// Pages end before this place in the file.
    pages_end: u64,
}

impl Stripe {
    /// Whether a section belongs to what [`Stripe::open`] needs.
    pub(super) fn needs(id: SectionId) -> bool {
        !matches!(id, SectionId::Statistics | SectionId::Texts)
    }

    /// The stripe with these sections, each checked against its checksum by the caller. Corruption if they contradict
    /// each other or the root.
    pub(super) fn open(root: &Root, info: StripeInfo, sections: &[(SectionId, Bytes)]) -> Result<Self> {
        let find = |id: SectionId| sections.iter().find(|(s, _)| *s == id).map(|(_, b)| b.clone()).unwrap_or_default();
        let (ndim, fields) = (root.bounds.ndim(), root.fields.len());
        let too_many = || Error::corruption("a stripe's index claims more than a file can hold");
        let tiles = usize::try_from(info.tiles).map_err(|_| too_many())?;
        let blocks = usize::try_from(info.blocks).map_err(|_| too_many())?;
        let sparse = root.kind != FragmentKind::Dense;
        let times = |n: usize, m: usize| n.checked_mul(m).ok_or_else(too_many);
        let shaped = |n: usize| if sparse { times(n, 2 * ndim) } else { Ok(0) };
        let chunks = find(SectionId::ChunkChecksums);
        let mut stripe = Self {
            tiles,
            blocks,
            ndim,
            cells: Words::new(find(SectionId::TileCells), if sparse { tiles } else { 0 })?,
            bounds: Words::new(find(SectionId::TileBounds), shaped(tiles)?)?,
            ends: Words::new(find(SectionId::TileEnds), shaped(tiles)?)?,
            block_starts: Words::new(find(SectionId::BlockStarts), tiles.checked_add(1).ok_or_else(too_many)?)?,
            block_bounds: Words::new(find(SectionId::BlockBounds), shaped(blocks)?)?,
            block_firsts: Words::new(find(SectionId::BlockFirsts), shaped(blocks)? / 2)?,
            pages: Words::new(find(SectionId::Pages), times(tiles, fields)?)?,
            entries: Words::new(find(SectionId::Blocks), times(blocks, fields)?)?,
            chunks: Words::new(chunks.clone(), chunks.len() / 4)?,
            offsets: Vec::new(),
            tile_runs: OnceLock::new(),
            block_runs: OnceLock::new(),
            pages_end: root.sections.iter().map(|s| s.range.offset).max().unwrap_or(0),
        };
        if stripe.most_blocks()? > ADDED_BLOCKS_MAX {
            stripe.offsets.resize_with(times(tiles, fields)?, OnceLock::new);
        }
        if sparse {
            stripe.check_shapes(root)?;
        }
        Ok(stripe)
    }

    /// The most blocks of a tile. Corruption if the numbers of first blocks do not ascend from 0 to the count of blocks.
    fn most_blocks(&self) -> Result<usize> {
        let wrong = || Error::corruption("a stripe's block table does not fit its tiles");
        let starts = || self.block_starts.all().iter().map(|word| u32::from_le_bytes(*word) as usize);
        if starts().next() != Some(0) || starts().next_back() != Some(self.blocks) {
            return Err(wrong());
        }
        let mut most = 0;
        for (from, to) in starts().zip(starts().skip(1)) {
            most = most.max(to.checked_sub(from).ok_or_else(wrong)?);
        }
        Ok(most)
    }

    fn check_shapes(&self, root: &Root) -> Result<()> {
        let wrong =
            || Error::corruption("the index of a stripe contradicts itself: boxes, cells and blocks do not fit");
        for tile in 0..self.tiles {
            let (from, to) = self.block_span(tile).ok_or_else(wrong)?;
            let cells = self.tile_cells(tile).ok_or_else(wrong)?;
            if cells == 0 || cells.div_ceil(u64::from(root.block_cells)) != (to - from) as u64 {
                return Err(wrong());
            }
            let mbr = self.tile_bounds(tile).ok_or_else(wrong)?;
            let (first, last) = self.tile_ends(tile).ok_or_else(wrong)?;
            if !mbr.is_inside(root.bounds.ranges().iter().copied())
                || !mbr.contains(first.iter())
                || !mbr.contains(last.iter())
            {
                return Err(wrong());
            }
            for block in from..to {
                let bounds = self.block_bounds(block).ok_or_else(wrong)?;
                let first = self.block_first(block).ok_or_else(wrong)?;
                if !bounds.is_inside(mbr.ranges()) || !mbr.contains(first.iter()) {
                    return Err(wrong());
                }
            }
        }
        Ok(())
    }

    /// The number of tiles.
    pub fn tiles(&self) -> usize {
        self.tiles
    }

    /// The first block of a tile, and one past its last.
    pub fn block_span(&self, tile: usize) -> Option<(usize, usize)> {
        Some((self.block_starts.get(tile)? as usize, self.block_starts.get(tile + 1)? as usize))
    }

    /// Cells of a sparse tile.
    pub fn tile_cells(&self, tile: usize) -> Option<u64> {
        self.cells.get(tile)
    }

    /// The MBR of a sparse tile.
    pub fn tile_bounds(&self, tile: usize) -> Option<IndexBox<'_>> {
        self.bounds.run(tile, 2 * self.ndim).map(IndexBox)
    }

    /// The bounding coordinates of a sparse tile: the keys of its first and of its last cell in global order.
    pub fn tile_ends(&self, tile: usize) -> Option<(Keys<'_>, Keys<'_>)> {
        let (first, last) = self.ends.run(tile, 2 * self.ndim)?.split_at_checked(self.ndim)?;
        Some((Keys(first), Keys(last)))
    }

    /// The MBR of a sparse block.
    pub fn block_bounds(&self, block: usize) -> Option<IndexBox<'_>> {
        self.block_bounds.run(block, 2 * self.ndim).map(IndexBox)
    }

    /// The sparse tiles whose MBRs may pass `touches`, which whatever is in them passes then; in runs.
    pub fn tiles_near(&self, touches: &dyn Fn(&[KeyRange]) -> bool) -> Vec<Range<usize>> {
        let of = || BoxRuns::new(self.ndim, (0..self.tiles).filter_map(|tile| self.tile_bounds(tile)));
        near(0..self.tiles, &self.tile_runs, of, touches)
    }

    /// The blocks of a sparse tile whose MBRs may.
    pub fn blocks_near(&self, tile: usize, touches: &dyn Fn(&[KeyRange]) -> bool) -> Option<Vec<Range<usize>>> {
        let (from, to) = self.block_span(tile)?;
        let of = || BoxRuns::new(self.ndim, (0..self.blocks).filter_map(|block| self.block_bounds(block)));
        Some(near(from..to, &self.block_runs, of, touches))
    }

    /// The keys of the first cell of a sparse block.
    pub fn block_first(&self, block: usize) -> Option<Keys<'_>> {
        self.block_firsts.run(block, self.ndim).map(Keys)
    }

    /// Where the page of a field of a tile lies; `None` if there is no such tile. Corruption if it cannot lie there.
    pub(super) fn page(&self, root: &Root, field: usize, tile: usize) -> Result<Option<PageEntry>> {
        let Some(word) = self.pages.all().get(field * self.tiles + tile) else { return Ok(None) };
        let (halves, _) = word.as_chunks::<4>();
        let half = |place: usize| halves.get(place).map_or(0, |half| u32::from_le_bytes(*half));
        let long = |place: usize| u64::from(half(place)) | u64::from(half(place + 1)) << 32;
        let page = PageEntry { offset: long(0), len: long(2), pipeline: half(4), first_chunk: half(5) };
        let Some(pipeline) = root.pipelines.get(page.pipeline as usize) else {
            let count = root.pipelines.len();
            return Err(Error::corruption(format!("a page names pipeline {} of {count}", page.pipeline)));
        };
        if page.offset.checked_add(page.len).is_none_or(|end| end > self.pages_end) {
            let at = format!("{} + {}", page.offset, page.len);
            return Err(Error::corruption(format!("a page lies at {at}, past the pages")));
        }
        if pipeline == "none" && page.len >= LARGE_PAGE_BYTES {
            let end = u64::from(page.first_chunk) + page.len.div_ceil(CHUNK_BYTES);
            if end > self.chunks.all().len() as u64 {
                return Err(Error::corruption("a large page lacks checksums"));
            }
        }
        Ok(Some(page))
    }

    /// Block number `block`, counted in the tile, of a page; `None` if the tile has fewer. Corruption if the page is not
    /// exactly its blocks.
    pub(super) fn block(&self, page: PageEntry, field: usize, tile: usize, block: usize) -> Result<Option<BlockEntry>> {
        let Some(entries) = self.block_span(tile).and_then(|(from, to)| {
            let start = field.checked_mul(self.blocks)?;
            self.entries.all().get(start + from..start + to)
        }) else {
            return Ok(None);
        };
        let split = |word: &[u8; 8]| {
            let word = u64::from_le_bytes(*word);
            (word as u32, (word >> 32) as u32)
        };
        let Some((len, crc)) = entries.get(block).map(split) else { return Ok(None) };
        let lens = || entries.iter().map(|word| u64::from(split(word).0));
        let whole = |sum: u64| {
            let wrong = || Error::corruption("a stripe's block table does not fit its pages");
            if sum == page.len { Ok(()) } else { Err(wrong()) }
        };
        let slot = self.offsets.get(field * self.tiles + tile).filter(|_| entries.len() > ADDED_BLOCKS_MAX);
        let offset = match slot {
            None => {
                whole(lens().sum())?;
                lens().take(block).sum()
            }
            Some(slot) => {
                let added = || {
                    let ends = lens().scan(0u64, |sum, len| {
                        *sum += len;
                        Some(*sum)
                    });
                    std::iter::once(0).chain(ends).collect::<Offsets>()
                };
                let offsets = slot.get_or_init(added);
                whole(offsets.last().copied().unwrap_or(0))?;
                offsets.get(block).copied().unwrap_or(0)
            }
        };
        Ok(Some(BlockEntry { offset, len, crc }))
    }

    pub(super) fn chunk_checksum(&self, number: usize) -> Option<u32> {
        self.chunks.get(number)
    }
}

/// The boxes `within` these that may pass `touches`; all of them if they are few. Their hulls are made at the first call that needs them.
fn near(
    within: Range<usize>,
    held: &OnceLock<BoxRuns>,
    make: impl FnOnce() -> BoxRuns,
    touches: &dyn Fn(&[KeyRange]) -> bool,
) -> Vec<Range<usize>> {
    match within.len() {
        0..=BoxRuns::FEW => vec![within],
        _ => held.get_or_init(make).near(within, touches),
    }
}
