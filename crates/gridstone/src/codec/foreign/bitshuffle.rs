//! Foreign filter `bitshuffle:W[:B][:lz4|:zstd]`: HDF5's filter 32008, on elements of W bytes. A chunk consists of blocks
//! of B elements, a multiple of 8. Without B it is what fits into 8,192 bytes, at least 128.
//!
//! The n = floor(length / W) elements make floor(n / B) blocks, and one of the rest without its last n mod 8. In a block
//! of 8 G elements:
//!
//! ```text
//! shuffled[(8 * b + k) * G + g], bit j  =  block[(8 * g + j) * W + b], bit k
//!                                          0 <= b < W, 0 <= k < 8, 0 <= g < G, 0 <= j < 8; bit 0 is the lowest
//! ```
//!
//! Without a compressor the shuffled blocks follow each other, then what is left over, as it is. With one:
//!
//! ```text
//! u64      the number of decoded bytes, a multiple of W; all numbers are big-endian
//! u32      the decoded bytes of a block, W * B; the name's B does not matter
//! then for each block:
//!   u32      the bytes that follow
//!   bytes    the shuffled block as one LZ4 block or one Zstandard frame
//! bytes    the last n mod 8 elements, as they are
//! ```

use super::filter::{ForeignFilter, big_u32, corrupt, expect_end, split};
use super::lz4::decode_block;
use super::zstd::Zstd;
use crate::base::{Element, Error, Result};
use crate::codec::bitshuffle::{Bitshuffle as Fixed, transpose};
use crate::codec::filter::{Filter, front};
use crate::codec::lz4::Lz4;

const NAME: &str = "bitshuffle";

/// The bytes of a block whose length is not chosen.
const BLOCK_BYTES: usize = 8_192;

/// Its fewest elements.
const BLOCK_ELEMENTS_MIN: usize = 128;

/// What follows the shuffle of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Compression {
    /// One LZ4 block.
    Lz4,
    /// One Zstandard frame.
    Zstd,
}

/// The foreign filter `bitshuffle`.
#[derive(Debug, Clone, Copy)]
pub struct Bitshuffle {
    width: usize,
    block: Option<usize>,
    compression: Option<Compression>,
}

impl Bitshuffle {
    /// The filter for elements of `width` bytes, in blocks of `block` elements.
    ///
    /// Errors: Schema if `block` is no multiple of 8, or a block takes 4 GiB.
    pub(super) fn new(width: u32, block: Option<u32>, compression: Option<Compression>) -> Result<Self> {
        let (width, block) = (width as usize, block.map(|block| block as usize));
        let made = Self { width, block, compression };
        if !made.block_elements().is_multiple_of(8) {
            let message = format!("filter bitshuffle needs blocks of a multiple of 8 elements, found {block:?}");
            return Err(Error::schema(message));
        }
        if made.block_bytes() > u32::MAX as usize {
            return Err(Error::schema(format!("a block of filter bitshuffle takes {} bytes", made.block_bytes())));
        }
        Ok(made)
    }

    fn block_elements(&self) -> usize {
        let fitting = BLOCK_BYTES.checked_div(self.width).unwrap_or_default() / 8 * 8;
        self.block.unwrap_or(fitting.max(BLOCK_ELEMENTS_MIN))
    }

    fn block_bytes(&self) -> usize {
        self.block_elements().saturating_mul(self.width)
    }

    /// The decoded bytes of a chunk's blocks; what follows is stored as it is.
    fn whole(&self, len: usize) -> usize {
        len / (8 * self.width) * (8 * self.width)
    }

    fn decode_compressed(&self, compression: Compression, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (len, rest) = split(NAME, input, 8)?;
        let len = len.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let out = front(NAME, out, usize::try_from(len).unwrap_or(usize::MAX))?;
        let (block_bytes, mut rest) = big_u32(NAME, rest)?;
        if block_bytes == 0 || !block_bytes.is_multiple_of(8 * self.width) || !out.len().is_multiple_of(self.width) {
            let (len, width) = (out.len(), self.width);
            let message = format!("blocks of {block_bytes} bytes in a chunk of {len} do not fit elements of {width}");
            return Err(corrupt(NAME, message));
        }
        let (blocks, tail) = out.split_at_mut(self.whole(out.len()));
        let mut shuffled = vec![0; block_bytes.min(blocks.len())];
        for block in blocks.chunks_mut(block_bytes) {
            let (stored_len, behind) = big_u32(NAME, rest)?;
            let (stored, behind) = split(NAME, behind, stored_len)?;
            let room = shuffled.get_mut(..block.len()).unwrap_or_default();
            decompress(compression, stored, room)?;
            unshuffle_bits(self.width, room, block)?;
            rest = behind;
        }
        let (left, behind) = split(NAME, rest, tail.len())?;
        tail.copy_from_slice(left);
        expect_end(NAME, behind)?;
        Ok(out.len())
    }

    fn encode_compressed(&self, compression: Compression, input: &[u8]) -> Result<Vec<u8>> {
        if !input.len().is_multiple_of(self.width) {
            let (len, width) = (input.len(), self.width);
            return Err(Error::input(format!("filter bitshuffle needs whole elements of {width} bytes, found {len}")));
        }
        let mut out = (input.len() as u64).to_be_bytes().to_vec();
        out.extend_from_slice(&(self.block_bytes() as u32).to_be_bytes());
        let (blocks, tail) = input.split_at(self.whole(input.len()));
        for block in blocks.chunks(self.block_bytes()) {
            let shuffled = shuffle_bits(self.width, block)?;
            let mut stored = Vec::new();
            match compression {
                Compression::Lz4 => Lz4.encode(&shuffled, Element::BYTE, &mut stored)?,
                Compression::Zstd => stored = Zstd.encode(&shuffled)?,
            }
            out.extend_from_slice(&(stored.len() as u32).to_be_bytes());
            out.extend_from_slice(&stored);
        }
        out.extend_from_slice(tail);
        Ok(out)
    }
}

impl ForeignFilter for Bitshuffle {
    fn name(&self) -> String {
        let block = self.block.map(|block| format!(":{block}")).unwrap_or_default();
        let compression = match self.compression {
            None => "",
            Some(Compression::Lz4) => ":lz4",
            Some(Compression::Zstd) => ":zstd",
        };
        format!("bitshuffle:{}{block}{compression}", self.width)
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        if self.compression.is_none() {
            return len;
        }
        // A block takes its length, a 200th and 64 bytes more in either compressor.
        let blocks = len.checked_div(self.block_bytes()).unwrap_or_default().saturating_add(1);
        len.saturating_add(len / 200).saturating_add(blocks.saturating_mul(68)).saturating_add(12)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        if let Some(compression) = self.compression {
            return self.encode_compressed(compression, input);
        }
        let (blocks, tail) = input.split_at(self.whole(input.len()));
        let mut out = Vec::with_capacity(input.len());
        for block in blocks.chunks(self.block_bytes()) {
            out.extend_from_slice(&shuffle_bits(self.width, block)?);
        }
        out.extend_from_slice(tail);
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        if let Some(compression) = self.compression {
            return self.decode_compressed(compression, input, out);
        }
        let out = front(NAME, out, input.len())?;
        let whole = self.whole(input.len());
        let ((blocks, tail), (stored, rest)) = (out.split_at_mut(whole), input.split_at(whole));
        let bytes = self.block_bytes();
        blocks
            .chunks_mut(bytes)
            .zip(stored.chunks(bytes))
            .try_for_each(|(block, stored)| unshuffle_bits(self.width, stored, block))?;
        tail.copy_from_slice(rest);
        Ok(input.len())
    }
}

fn decompress(compression: Compression, stored: &[u8], out: &mut [u8]) -> Result<()> {
    match compression {
        Compression::Lz4 => decode_block(NAME, stored, out),
        Compression::Zstd => match Zstd.decode(stored, out)? {
            len if len == out.len() => Ok(()),
            len => Err(corrupt(NAME, format_args!("a block holds {len} bytes, {} were expected", out.len()))),
        },
    }
}

/// Undoes [`shuffle_bits`] of `input`, elements of `width` bytes, into `out` of the same length. What is no whole group
/// of eight elements is copied.
pub(super) fn unshuffle_bits(width: usize, input: &[u8], out: &mut [u8]) -> Result<()> {
    if let 1 | 2 | 4 | 8 = width {
        return Fixed.decode(input, Element::unsigned(width as u8), out).map(drop);
    }
    let groups = input.len().checked_div(8 * width).unwrap_or_default();
    let whole = groups * 8 * width;
    for (place, row) in (0..8 * width).zip(input.chunks_exact(groups.max(1))) {
        let (byte, bit) = (place / 8, place % 8);
        // The bits of a row are those of one bit of an element, eight elements to a byte.
        for (group, bits) in out.chunks_exact_mut(8 * width).zip(row) {
            let elements = group.get_mut(byte..).unwrap_or_default().iter_mut().step_by(width);
            elements.enumerate().for_each(|(j, to)| {
                *to = if bit == 0 { 0 } else { *to } | (bits >> j & 1) << bit;
            });
        }
    }
    let tail = out.get_mut(whole..).unwrap_or_default();
    tail.copy_from_slice(input.get(whole..).unwrap_or_default());
    Ok(())
}

/// The bits of `block`, elements of `width` bytes, in the order of the layout.
fn shuffle_bits(width: usize, block: &[u8]) -> Result<Vec<u8>> {
    let mut out = Vec::with_capacity(block.len());
    if let 1 | 2 | 4 | 8 = width {
        Fixed.encode(block, Element::unsigned(width as u8), &mut out)?;
        return Ok(out);
    }
    out.resize(block.len(), 0);
    let groups = block.len().checked_div(8 * width).unwrap_or_default();
    for (g, group) in block.chunks_exact(8 * width).enumerate() {
        for byte in 0..width {
            let mut column = [0; 8];
            let elements = group.get(byte..).unwrap_or_default().iter().step_by(width);
            column.iter_mut().zip(elements).for_each(|(to, from)| *to = *from);
            let rows = transpose(u64::from_le_bytes(column)).to_le_bytes();
            let places = out.get_mut(8 * byte * groups + g..).unwrap_or_default().iter_mut().step_by(groups.max(1));
            places.zip(rows).for_each(|(to, row)| *to = row);
        }
    }
    Ok(out)
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        for (width, block) in [(1, None), (2, Some(8)), (3, None), (4, Some(64)), (8, None), (20, Some(16))] {
            conformance::check(&Bitshuffle::new(width, block, None).unwrap());
            conformance::check(&Bitshuffle::new(width, block, Some(Compression::Lz4)).unwrap());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn conforms_with_zstd() {
        for (width, block) in [(1, None), (4, Some(128)), (20, None)] {
            conformance::check(&Bitshuffle::new(width, block, Some(Compression::Zstd)).unwrap());
        }
    }

    #[test]
    fn lengths_of_blocks_are_those_of_the_library() {
        for (width, elements) in [(1, 8_192), (2, 4_096), (3, 2_728), (8, 1_024), (20, 408), (100, 128), (9_000, 128)] {
            assert_eq!(Bitshuffle::new(width, None, None).unwrap().block_elements(), elements);
        }
        assert!(Bitshuffle::new(4, Some(12), None).unwrap_err().message().contains("multiple of 8"));
        assert!(Bitshuffle::new(u32::MAX, None, None).is_err());
    }
}
