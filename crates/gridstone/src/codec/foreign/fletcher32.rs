//! Foreign filter `fletcher32`: the bytes, then their checksum. HDF5's filter 3 and the `fletcher32` of numcodecs.
//!
//! ```text
//! bytes    the content, as big-endian words of two bytes; behind an odd length the last word's low byte is 0
//! u32      sum2 << 16 | sum1, little-endian
//! ```
//!
//! `sum1` is the sum of the words, `sum2` the sum of all values of `sum1`, both modulo 65,535; a multiple of 65,535 other
//! than 0 is 65,535. Files of HDF5 before 1.6.3 have the two bytes of each half swapped, which is accepted.
//!
//! Source: J. G. Fletcher, "An arithmetic checksum for serial transmissions", 1982.

use super::crc32c::content_and_sum;
use super::filter::{ForeignFilter, corrupt};
use crate::base::Result;
use crate::codec::filter::front;

/// As many words as 64 bits hold the sums of, with the sums before them.
const RUN_BYTES: usize = 2 << 16;

/// The foreign filter `fletcher32`.
#[derive(Debug, Clone, Copy)]
pub struct Fletcher32;

impl ForeignFilter for Fletcher32 {
    fn name(&self) -> String {
        "fletcher32".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        len.saturating_add(4)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        Ok([input, &checksum(input).to_le_bytes()].concat())
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (content, stored) = content_and_sum("fletcher32", input)?;
        let [a, b, c, d] = checksum(content).to_le_bytes();
        if stored != [a, b, c, d] && stored != [b, a, d, c] {
            let (found, stored) = (u32::from_le_bytes([a, b, c, d]), u32::from_le_bytes(stored));
            let message = format!("the checksum of the chunk is {stored:08x}, that of its bytes is {found:08x}");
            return Err(corrupt("fletcher32", message));
        }
        front("fletcher32", out, content.len())?.copy_from_slice(content);
        Ok(content.len())
    }
}

fn checksum(bytes: &[u8]) -> u32 {
    let (mut sum1, mut sum2) = (0u64, 0u64);
    for run in bytes.chunks(RUN_BYTES) {
        let (words, odd) = run.as_chunks::<2>();
        let last = odd.first().map(|byte| [*byte, 0]);
        for word in words.iter().chain(&last) {
            sum1 += u64::from(u16::from_be_bytes(*word));
            sum2 += sum1;
        }
        (sum1, sum2) = (fold(sum1), fold(sum2));
    }
    (sum2 << 16 | sum1) as u32
}

/// The number modulo 65,535; 65,535 for a multiple of it other than 0.
fn fold(sum: u64) -> u64 {
    match sum {
        0 => 0,
        _ => (sum - 1) % 0xffff + 1,
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        conformance::check(&Fletcher32);
    }

    #[test]
    fn exact_sums() {
        for (bytes, sum) in [
            (&b""[..], 0),
            (&[0, 0, 0], 0),
            (&[1], 0x0100_0100),
            (&[0xff, 0xff], 0xffff_ffff),
            (&[0xff, 0xff, 0, 1], 0x0001_0001),
            (b"abcde", 0x4ff0_29c7),
        ] {
            assert_eq!(checksum(bytes), sum, "{bytes:?}: {:08x}", checksum(bytes));
        }
    }

    #[test]
    fn swapped_bytes_are_accepted() {
        let mut stored = Fletcher32.encode(b"some words").unwrap();
        let at = stored.len() - 4;
        stored[at..at + 2].reverse();
        stored[at + 2..].reverse();
        assert_eq!(Fletcher32.decode(&stored, &mut [0; 10]).unwrap(), 10);
    }

    #[test]
    fn every_flipped_bit_is_found() {
        conformance::finds_every_flip(&Fletcher32);
    }

    /// Sums of the largest words do not overflow, and folding at any place gives the same.
    #[test]
    fn long_inputs_have_their_sum() {
        let bytes = vec![0xff; if cfg!(miri) { 3_000 } else { 3 * RUN_BYTES + 7 }];
        let (mut sum1, mut sum2) = (0u64, 0u64);
        for word in bytes.chunks(2) {
            sum1 = fold(sum1 + 256 * u64::from(word[0]) + u64::from(word.get(1).copied().unwrap_or(0)));
            sum2 = fold(sum2 + sum1);
        }
        assert_eq!(u64::from(checksum(&bytes)), sum2 << 16 | sum1);
    }
}
