//! Foreign filter `lz4h5`: HDF5's filter 32004.
//!
//! ```text
//! u64      the number of decoded bytes; all numbers are big-endian
//! u32      the decoded bytes of a block; the last block has what is left
//! then for each block:
//!   u32      the bytes that follow
//!   bytes    one LZ4 block; as many bytes as the block has decoded are these bytes as they are
//! ```

use super::filter::{ForeignFilter, big_u32, compressed_len_max, corrupt, expect_end, split};
use super::lz4::decode_block;
use crate::base::{Element, Result};
use crate::codec::filter::{Filter, front};
use crate::codec::lz4::Lz4 as Block;

const NAME: &str = "lz4h5";

/// The decoded bytes of a block that is written.
const BLOCK_BYTES: usize = 1 << 20;

/// The foreign filter `lz4h5`; it writes blocks of 1 MiB.
#[derive(Debug, Clone, Copy)]
pub struct Lz4h5;

impl ForeignFilter for Lz4h5 {
    fn name(&self) -> String {
        NAME.into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let block_len = input.len().clamp(1, BLOCK_BYTES);
        let mut out = (input.len() as u64).to_be_bytes().to_vec();
        out.extend_from_slice(&(block_len as u32).to_be_bytes());
        for block in input.chunks(block_len) {
            let mut stored = Vec::new();
            Block.encode(block, Element::BYTE, &mut stored)?;
            let stored = if stored.len() < block.len() { stored.as_slice() } else { block };
            out.extend_from_slice(&(stored.len() as u32).to_be_bytes());
            out.extend_from_slice(stored);
        }
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (len, rest) = split(NAME, input, 8)?;
        let len = len.iter().fold(0u64, |number, byte| number << 8 | u64::from(*byte));
        let out = front(NAME, out, usize::try_from(len).unwrap_or(usize::MAX))?;
        let (block_len, mut rest) = big_u32(NAME, rest)?;
        if block_len == 0 && !out.is_empty() {
            return Err(corrupt(NAME, "its blocks have 0 bytes"));
        }
        for block in out.chunks_mut(block_len.max(1)) {
            let (stored_len, behind) = big_u32(NAME, rest)?;
            let (stored, behind) = split(NAME, behind, stored_len)?;
            match stored.len() == block.len() {
                true => block.copy_from_slice(stored),
                false => decode_block(NAME, stored, block)?,
            }
            rest = behind;
        }
        expect_end(NAME, rest)?;
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn conforms() {
        conformance::check(&Lz4h5);
    }

    #[test]
    fn a_length_of_any_size_is_checked() {
        let mut stored = Lz4h5.encode(&[3; 100]).unwrap();
        for at in 0..8 {
            let old = std::mem::replace(&mut stored[at], 0xff);
            assert_eq!(Lz4h5.decode(&stored, &mut [0; 200]).unwrap_err().kind(), ErrorKind::Corruption);
            stored[at] = old;
        }
        stored[8..12].fill(0);
        assert!(Lz4h5.decode(&stored, &mut [0; 200]).unwrap_err().message().contains("0 bytes"));
    }
}
