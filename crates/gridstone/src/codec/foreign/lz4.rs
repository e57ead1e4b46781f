//! Foreign filter `lz4`, as numcodecs writes it:
//!
//! ```text
//! u32      the number of decoded bytes, little-endian
//! bytes    one LZ4 block
//! ```

use super::filter::{ForeignFilter, compressed_len_max, corrupt};
use crate::base::{ByteReader, Element, Error, Result};
use crate::codec::filter::{Filter, front};
use crate::codec::lz4::Lz4 as Block;

/// The foreign filter `lz4`.
#[derive(Debug, Clone, Copy)]
pub struct Lz4;

impl ForeignFilter for Lz4 {
    fn name(&self) -> String {
        "lz4".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let len = i32::try_from(input.len()).map_err(|_| {
            Error::input(format!(
                "filter lz4 takes less than 2 GiB, found {} bytes; choose smaller chunks",
                input.len()
            ))
        })?;
        let mut out = len.to_le_bytes().to_vec();
        Block.encode(input, Element::BYTE, &mut out)?;
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let mut reader = ByteReader::new(input, "an lz4 chunk");
        let len = reader.u32()? as usize;
        let out = front("lz4", out, len)?;
        decode_block("lz4", reader.take(reader.remaining())?, out)?;
        Ok(len)
    }
}

/// Decodes one LZ4 block into all of `out`.
pub(super) fn decode_block(filter: &str, block: &[u8], out: &mut [u8]) -> Result<()> {
    let found = Block.decode(block, Element::BYTE, out)?;
    if found == out.len() {
        return Ok(());
    }
    Err(corrupt(filter, format_args!("a block holds {found} bytes, {} were expected", out.len())))
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        conformance::check(&Lz4);
    }
}
