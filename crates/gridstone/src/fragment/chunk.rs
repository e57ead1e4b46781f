//! Single cells of a block that is stored raw in a large page, read by the chunks that hold them.
//!
//! A large raw page has a checksum per chunk of 4 KiB, so a cell costs the reading and checking of one chunk instead of
//! its whole block. Only fixed-width cells without nulls lie where arithmetic finds them.

use super::format::CHUNK_BYTES;
use super::reader::{bad_checksum, named};
use super::stripe::{PageEntry, Stripe};
use super::{Fragment, Role};
use crate::base::{ByteRange, Error, Id, Result, crc32c, crc32c_append};
use std::ops::Range;
use std::sync::Arc;

/// A block whose cells can be read one by one. Chunks are counted in its page.
#[derive(Debug, Clone)]
pub struct ChunkedBlock {
    stripe: Arc<Stripe>,
    page: PageEntry,
    start: u64,
    width: u64,
    cells: u64,
    /// Where the page begins in the fragment's source.
    offset: u64,
    /// What errors name.
    fragment: Id,
    role: Role,
    tile: u64,
}

impl Fragment {
    /// Block number `block` of tile number `tile` of a field, which holds `cells` cells, if its cells can be read one
    /// by one; else `None`, and [`Fragment::block`] gives the whole.
    pub fn chunked_block(&self, field: usize, tile: u64, block: usize, cells: usize) -> Result<Option<ChunkedBlock>> {
        let Some(described) = self.root().fields.get(field) else { return Ok(None) };
        let Some(width) = described.datatype.width().filter(|_| !described.nullable) else { return Ok(None) };
        let (stripe, page, entry) = self.entries(field, tile, block)?;
        if !self.is_chunked(page) {
            return Ok(None);
        }
        if u128::from(entry.len) != width as u128 * cells as u128 {
            let error = Error::corruption(format!("{cells} cells of {width} bytes lie in {} bytes", entry.len));
            return Err(self.named(error, field, tile));
        }
        let (start, width, cells) = (entry.offset, width as u64, cells as u64);
        let (offset, role) = (self.at(ByteRange::new(page.offset, page.len)).offset, described.role);
        let fragment = self.description().id;
        Ok(Some(ChunkedBlock { stripe, page, start, width, cells, offset, fragment, role, tile }))
    }
}

impl ChunkedBlock {
    /// Where the bytes of `chunks` lie in the fragment's source.
    pub fn chunk_range(&self, chunks: &Range<u64>) -> ByteRange {
        let from = chunks.start * CHUNK_BYTES;
        let to = (chunks.end * CHUNK_BYTES).min(self.page.len);
        ByteRange::new(self.offset.saturating_add(from), to.saturating_sub(from))
    }

    /// Whether both lie in one page of one fragment, so that their chunks are counted alike.
    pub fn shares_page(&self, other: &Self) -> bool {
        self.offset == other.offset && self.fragment == other.fragment
    }

    fn checksum(&self, chunk: u64) -> Option<u32> {
        self.stripe.chunk_checksum(self.page.first_chunk as usize + chunk as usize)
    }

    fn named(&self, error: Error) -> Error {
        named(error, self.fragment, self.tile, Some(self.role))
    }

    /// Checks the bytes fetched for `chunks`. A Corruption error names fragment, tile and attribute.
    pub fn check_chunks(&self, chunks: &Range<u64>, bytes: &[u8]) -> Result<()> {
        let expected = self.chunk_range(chunks).len;
        if bytes.len() as u64 != expected {
            return Err(self.named(Error::corruption(format!("{} bytes were read, {expected} wanted", bytes.len()))));
        }
        let mut pairs = bytes.chunks(CHUNK_BYTES as usize).zip(chunks.clone());
        if pairs.all(|(chunk, number)| self.checksum(number) == Some(crc32c(chunk))) {
            return Ok(());
        }
        Err(self.named(bad_checksum()))
    }

    /// As [`ChunkedBlock::check_chunks`], of bytes that lie in several places: `parts`, one after the other.
    pub fn check_scattered<'b>(&self, chunks: &Range<u64>, parts: impl Iterator<Item = &'b [u8]>) -> Result<()> {
        let whole = CHUNK_BYTES as usize;
        let is_right = |number: u64, sum: u32| self.checksum(number) == Some(sum);
        let (mut number, mut sum, mut room, mut right) = (chunks.start, 0, whole, true);
        for mut part in parts {
            while !part.is_empty() {
                let (now, later) = part.split_at(part.len().min(room));
                (sum, room, part) = (crc32c_append(sum, now), room - now.len(), later);
                if room == 0 {
                    right &= is_right(number, sum);
                    (number, sum, room) = (number + 1, 0, whole);
                }
            }
        }
        if room < whole {
            right &= is_right(number, sum);
            number += 1;
        }
        if right && number == chunks.end {
            return Ok(());
        }
        Err(self.named(bad_checksum()))
    }

    /// Where cell `cell` of the block begins, in bytes of its page; `None` past its end.
    pub fn byte_of(&self, cell: u64) -> Option<u64> {
        (cell < self.cells).then(|| self.start + cell * self.width)
    }

    /// Bytes of a cell.
    pub fn width(&self) -> usize {
        self.width as usize
    }

    /// The chunks that hold cell `cell` of the block; none past its end.
    pub fn chunks_of(&self, cell: u32) -> Range<u64> {
        if u64::from(cell) >= self.cells {
            return 0..0;
        }
        let from = self.start + u64::from(cell) * self.width;
        from / CHUNK_BYTES..(from + self.width).div_ceil(CHUNK_BYTES)
    }

    /// Where cell `cell` of the block is in the bytes of a run of chunks that starts with chunk `first`: the bytes to be
    /// skipped, the end of a cell that begins before them, and its number among the cells that follow. `None` if it begins
    /// before them itself.
    pub fn place_of(&self, cell: u64, first: u64) -> Option<(usize, u64)> {
        let bytes = (self.start + cell * self.width).checked_sub(first * CHUNK_BYTES)?;
        Some(((bytes % self.width) as usize, bytes / self.width))
    }

    /// The bytes of cell `cell` in those of a run of chunks that starts with chunk `first`; `None` past the end of
    /// either.
    pub fn value<'b>(&self, cell: u32, first: u64, bytes: &'b [u8]) -> Option<&'b [u8]> {
        if u64::from(cell) >= self.cells {
            return None;
        }
        let from = (self.start + u64::from(cell) * self.width).checked_sub(first * CHUNK_BYTES)? as usize;
        bytes.get(from..from + self.width as usize)
    }
}
