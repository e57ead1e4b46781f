//! Foreign filter `crc32c`: the bytes, then their CRC-32C as a little-endian `u32`. The `crc32c` of Zarr version 3.

use super::filter::{ForeignFilter, corrupt};
use crate::base::{Result, crc32c};
use crate::codec::filter::front;

/// The foreign filter `crc32c`.
#[derive(Debug, Clone, Copy)]
pub struct Crc32c;

impl ForeignFilter for Crc32c {
    fn name(&self) -> String {
        "crc32c".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        len.saturating_add(4)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        Ok([input, &crc32c(input).to_le_bytes()].concat())
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (content, stored) = content_and_sum("crc32c", input)?;
        let (found, stored) = (crc32c(content), u32::from_le_bytes(stored));
        if found != stored {
            let message = format!("the checksum of the chunk is {stored:08x}, that of its bytes is {found:08x}");
            return Err(corrupt("crc32c", message));
        }
        front("crc32c", out, content.len())?.copy_from_slice(content);
        Ok(content.len())
    }
}

/// The bytes before the last four, and these.
pub(super) fn content_and_sum<'a>(filter: &str, input: &'a [u8]) -> Result<(&'a [u8], [u8; 4])> {
    let parts = input.split_last_chunk::<4>().map(|(content, sum)| (content, *sum));
    parts.ok_or_else(|| corrupt(filter, format_args!("{} bytes are too few for a checksum of four", input.len())))
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        conformance::check(&Crc32c);
    }

    #[test]
    fn exact_bytes() {
        assert_eq!(Crc32c.encode(b"123456789").unwrap(), b"123456789\x83\x92\x06\xe3");
    }

    #[test]
    fn every_flipped_bit_is_found() {
        conformance::finds_every_flip(&Crc32c);
    }
}
