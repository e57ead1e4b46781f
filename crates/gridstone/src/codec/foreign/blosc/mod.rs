//! Foreign filter `blosc`: one chunk of Blosc 1. HDF5's filter 32001 and the `blosc` of Zarr and numcodecs.
//!
//! ```text
//! u8       2, the version of the format; all numbers are little-endian
//! u8       the version of the compressor's format, not looked at
//! u8       flags: bit 0 shuffle, 1 raw, 2 bitshuffle, 3 zero, 4 not split, 5 to 7 the compressor:
//!            0 BloscLZ, 1 LZ4, 2 Snappy, 3 zlib, 4 Zstandard
//! u8       W, the bytes of an element, at least 1
//! u32      the number of decoded bytes
//! u32      B, the decoded bytes of a block; the last block has what is left
//! u32      the bytes of the chunk, these 16 included
//! ```
//!
//! A raw chunk has its content behind, as it is. Otherwise a `u32` for each block follows, the place of its first stream
//! counted from the start of the chunk. A block is split into W streams of equal length if bit 4 is not set, W <= 16, B / W
//! >= 128, and it has all B bytes. Otherwise it is one stream:
//!
//! ```text
//! u32      the bytes that follow
//! bytes    compressed; as many bytes as the stream has decoded are these bytes as they are
//! ```
//!
//! The streams of a block, joined, are its bytes in the order of the filter `shuffle` (if W > 1) or `bitshuffle`, of the
//! whole block. With `bitshuffle`, a block whose floor(length / W) is no multiple of 8 is left as it is.
//!
//! Not read, and reported as Unsupported: Snappy, which the writers do not build in by default, and Blosc 2.

pub mod lz;

use super::bitshuffle::unshuffle_bits;
use super::deflate::with_decompressor;
use super::filter::{ForeignFilter, compressed_len_max, corrupt};
use super::shuffle::unshuffle;
use crate::base::{ByteReader, Element, Error, Result};
use crate::codec::filter::{Filter, front};
use crate::codec::{lz4::Lz4, zstd::Zstd};

const NAME: &str = "blosc";
const HEADER_BYTES: usize = 16;

/// The version of the format of Blosc 1.
const VERSION: u8 = 2;

/// The most streams of a block, and the fewest elements of one that is split.
const STREAMS_MAX: usize = 16;
const SPLIT_ELEMENTS_MIN: usize = 128;

/// The foreign filter `blosc`.
#[derive(Debug, Clone, Copy)]
pub struct Blosc;

impl ForeignFilter for Blosc {
    fn name(&self) -> String {
        NAME.into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let header = Header::read(input)?;
        let out = front(NAME, out, header.len)?;
        if header.raw {
            decode_raw(input, out)?;
        } else if !out.is_empty() {
            Chunk { input, header, taken: 0 }.decode(out)?;
        }
        Ok(header.len)
    }
}

fn decode_raw(input: &[u8], out: &mut [u8]) -> Result<()> {
    let content = input.get(HEADER_BYTES..).unwrap_or_default();
    if content.len() != out.len() {
        let message = format!("{} raw bytes, the header says {}", content.len(), out.len());
        return Err(corrupt(NAME, message));
    }
    out.copy_from_slice(content);
    Ok(())
}

#[derive(Debug, Clone, Copy)]
enum Compressor {
    BloscLz,
    Lz4,
    Zlib,
    Zstd,
}

/// The order of the bytes of a block.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    Plain,
    Bytes,
    Bits,
}

/// The header, checked against itself and the length of the chunk.
#[derive(Debug, Clone, Copy)]
struct Header {
    len: usize,
    block_len: usize,
    width: usize,
    order: Order,
    compressor: Compressor,
    raw: bool,
    split: bool,
}

impl Header {
    fn read(input: &[u8]) -> Result<Self> {
        let mut reader = ByteReader::new(input, "a blosc chunk");
        let [version, _, flags, width] = [reader.u8()?, reader.u8()?, reader.u8()?, reader.u8()?];
        let [len, block_len, stored_len] = [reader.u32()?, reader.u32()?, reader.u32()?].map(|number| number as usize);
        if version != VERSION || flags & 8 != 0 {
            return Err(Error::unsupported(format!(
                "filter blosc: the chunk is of version {version}, flags {flags:#04x}; Blosc 1 of version {VERSION} is read"
            )));
        }
        if stored_len != input.len() || width == 0 || (block_len == 0 && len > 0) {
            let found = input.len();
            let message = format!(
                "the header says {stored_len} bytes, blocks of {block_len}, elements of {width}; the chunk has {found} bytes"
            );
            return Err(corrupt(NAME, message));
        }
        let order = match flags {
            _ if flags & 1 != 0 && width > 1 => Order::Bytes,
            _ if flags & 1 == 0 && flags & 4 != 0 => Order::Bits,
            _ => Order::Plain,
        };
        let (raw, split, width) = (flags & 2 != 0, flags & 16 == 0, usize::from(width));
        let compressor = match flags >> 5 {
            0 => Compressor::BloscLz,
            1 => Compressor::Lz4,
            3 => Compressor::Zlib,
            4 => Compressor::Zstd,
            // A raw chunk needs none.
            _ if raw => Compressor::BloscLz,
            2 => return Err(Error::unsupported("filter blosc: the chunk is compressed by Snappy, which is not read")),
            other => return Err(corrupt(NAME, format_args!("a compressor of number {other}"))),
        };
        Ok(Self { len, block_len, width, order, compressor, raw, split })
    }

    /// The streams of a block of `len` bytes.
    fn streams(&self, len: usize) -> usize {
        let splits = self.split && self.width <= STREAMS_MAX && len / self.width >= SPLIT_ELEMENTS_MIN;
        if splits && len == self.block_len { self.width } else { 1 }
    }
}

/// A chunk while it is decoded.
struct Chunk<'a> {
    input: &'a [u8],
    header: Header,
    /// The bytes of the streams so far. Streams do not overlap, so that a chunk takes no more time than its bytes.
    taken: usize,
}

impl Chunk<'_> {
    fn decode(mut self, out: &mut [u8]) -> Result<()> {
        let order = self.header.order;
        let scratch_len = if order == Order::Plain { 0 } else { self.header.block_len.min(out.len()) };
        let mut scratch = vec![0; scratch_len];
        let mut starts = ByteReader::new(self.input, "the places of the blocks of a blosc chunk");
        starts.take(HEADER_BYTES)?;
        for block in out.chunks_mut(self.header.block_len) {
            let start = starts.u32()? as usize;
            let shuffled = scratch.get_mut(..block.len()).unwrap_or_default();
            match order {
                Order::Plain => self.decode_block(start, block)?,
                Order::Bytes => {
                    self.decode_block(start, shuffled)?;
                    unshuffle(self.header.width, shuffled, block)?;
                }
                Order::Bits => {
                    self.decode_block(start, shuffled)?;
                    match (block.len() / self.header.width).is_multiple_of(8) {
                        true => unshuffle_bits(self.header.width, shuffled, block)?,
                        false => block.copy_from_slice(shuffled),
                    }
                }
            }
        }
        Ok(())
    }

    fn decode_block(&mut self, start: usize, block: &mut [u8]) -> Result<()> {
        let streams = self.header.streams(block.len());
        if !block.len().is_multiple_of(streams) {
            let message = format!("blocks of {} bytes, split into {streams}", block.len());
            return Err(corrupt(NAME, message));
        }
        let mut reader = ByteReader::new(self.input, "a block of a blosc chunk");
        reader.take(start)?;
        for part in block.chunks_mut(block.len() / streams) {
            let len = reader.u32()? as usize;
            let stored = reader.take(len)?;
            self.taken += stored.len() + 4;
            if self.taken > self.input.len() {
                return Err(corrupt(NAME, "streams of the chunk overlap"));
            }
            match stored.len() == part.len() {
                true => part.copy_from_slice(stored),
                false => self.decompress(stored, part)?,
            }
        }
        Ok(())
    }

    fn decompress(&self, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let len = out.len();
        let found = match self.header.compressor {
            Compressor::BloscLz => lz::decode(stored, out)?,
            Compressor::Lz4 => Lz4.decode(stored, Element::BYTE, out)?,
            Compressor::Zlib => with_decompressor(NAME, |decompressor| decompressor.zlib_decompress(stored, out))?,
            Compressor::Zstd => Zstd { level: 1 }.decode(stored, Element::BYTE, out)?,
        };
        if found == len {
            return Ok(());
        }
        Err(corrupt(NAME, format_args!("a stream holds {found} bytes, {len} were expected")))
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use crate::base::ErrorKind;

    fn header(flags: u8, width: u8, len: u32, block_len: u32) -> Vec<u8> {
        [&[2, 1, flags, width][..], &len.to_le_bytes(), &block_len.to_le_bytes(), &[0; 4]].concat()
    }

    fn with_len(mut chunk: Vec<u8>) -> Vec<u8> {
        let len = chunk.len() as u32;
        chunk[12..16].copy_from_slice(&len.to_le_bytes());
        chunk
    }

    #[test]
    fn raw_chunks_are_not_shuffled() {
        let chunk = with_len([header(0b0110_0011, 4, 8, 8), (0..8).collect()].concat());
        let mut out = [0; 9];
        assert_eq!(Blosc.decode(&chunk, &mut out).unwrap(), 8);
        assert_eq!(out[..8], [0, 1, 2, 3, 4, 5, 6, 7]);
        conformance::check_damage(&Blosc, &chunk, 8);
        assert_eq!(Blosc.decode(&with_len(header(0, 1, 0, 0)), &mut []).unwrap(), 0);
    }

    #[test]
    fn other_variants_are_named() {
        for (chunk, part) in [
            (header(0b0100_0000, 1, 8, 8), "Snappy"),
            (header(0b0000_1000, 1, 8, 8), "Blosc 1"),
            ([vec![5], header(0, 1, 8, 8)[1..].to_vec()].concat(), "version 5"),
        ] {
            let error = Blosc.decode(&with_len(chunk), &mut [0; 8]).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Unsupported);
            assert!(error.message().contains(part), "{error}");
        }
    }

    /// Blocks that all name one long stream would take time far beyond the length of the chunk.
    #[test]
    fn streams_that_overlap_are_refused() {
        let place = (HEADER_BYTES as u32 + 4 * 20).to_le_bytes();
        let chunk = [header(0b0011_0000, 1, 40, 2), place.repeat(20), vec![2, 0, 0, 0, 7, 7]].concat();
        let error = Blosc.decode(&with_len(chunk), &mut [0; 40]).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::Corruption);
        assert!(error.message().contains("overlap"), "{error}");
    }
}
