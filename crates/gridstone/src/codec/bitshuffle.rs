//! Filter `bitshuffle`: the elements' lowest bits, then their second bits, and so on.
//!
//! Layout: with W = the element's width in bytes, G = floor(floor(length / W) / 8) groups of eight elements,
//!
//! ```text
//! stored[(8 * b + k) * G + g], bit j  =  input[(8 * g + j) * W + b], bit k
//!                                        0 <= b < W, 0 <= k < 8, 0 <= g < G, 0 <= j < 8; bit 0 is the lowest
//! stored[8 * G * W ..]  =  input[8 * G * W ..]      fewer than eight elements and a part of one, as they are
//! ```

use super::Filter;
use super::filter::{front, grow};
use crate::base::{Element, Result};

/// The filter `bitshuffle`.
#[derive(Debug, Clone, Copy)]
pub struct Bitshuffle;

impl Filter for Bitshuffle {
    fn name(&self) -> String {
        "bitshuffle".into()
    }

    fn accepts(&self, element: Element) -> bool {
        matches!(element.width, 1 | 2 | 4 | 8)
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        len
    }

    fn decoded_len_max(&self, len: usize) -> usize {
        len
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        let out = grow(out, input.len());
        match element.width {
            2 => split::<2>(input, out),
            4 => split::<4>(input, out),
            8 => split::<8>(input, out),
            _ => split::<1>(input, out),
        }
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        let out = front("bitshuffle", out, input.len())?;
        match element.width {
            2 => join::<2>(input, out),
            4 => join::<4>(input, out),
            8 => join::<8>(input, out),
            _ => join::<1>(input, out),
        }
        Ok(input.len())
    }
}

/// Transposes an 8 x 8 matrix of bits: bit k of byte j becomes bit j of byte k (Hacker's Delight, 7-3).
#[inline(always)]
pub(super) fn transpose(x: u64) -> u64 {
    let swap = |x: u64, shift: u32, mask: u64| {
        let t = (x ^ (x >> shift)) & mask;
        x ^ t ^ (t << shift)
    };
    let x = swap(x, 7, 0x00aa_00aa_00aa_00aa);
    let x = swap(x, 14, 0x0000_cccc_0000_cccc);
    swap(x, 28, 0x0000_0000_f0f0_f0f0)
}

fn split<const W: usize>(input: &[u8], out: &mut [u8]) {
    let groups = input.as_chunks::<W>().0.as_chunks::<8>().0;
    let (planes, tail) = out.split_at_mut(groups.len() * 8 * W);
    tail.copy_from_slice(input.get(planes.len()..).unwrap_or_default());
    // With no group there is no plane, and a chunk length of 0 would panic.
    for (b, planes) in planes.chunks_exact_mut((groups.len() * 8).max(1)).enumerate().take(W) {
        let mut planes = planes.chunks_exact_mut(groups.len());
        let mut planes: [&mut [u8]; 8] = std::array::from_fn(|_| planes.next().unwrap_or_default());
        for (g, group) in groups.iter().enumerate() {
            let column = group.map(|element| element.get(b).copied().unwrap_or_default());
            let rows = transpose(u64::from_le_bytes(column)).to_le_bytes();
            for (plane, row) in planes.iter_mut().zip(rows) {
                if let Some(byte) = plane.get_mut(g) {
                    *byte = row;
                }
            }
        }
    }
}

fn join<const W: usize>(input: &[u8], out: &mut [u8]) {
    let groups = out.as_chunks_mut::<W>().0.as_chunks_mut::<8>().0;
    let (planes, rest) = input.split_at(groups.len() * 8 * W);
    for (b, planes) in planes.chunks_exact((groups.len() * 8).max(1)).enumerate().take(W) {
        let mut planes = planes.chunks_exact(groups.len());
        let planes: [&[u8]; 8] = std::array::from_fn(|_| planes.next().unwrap_or_default());
        for (g, group) in groups.iter_mut().enumerate() {
            let rows = planes.map(|plane| plane.get(g).copied().unwrap_or_default());
            let column = transpose(u64::from_le_bytes(rows)).to_le_bytes();
            for (element, byte) in group.iter_mut().zip(column) {
                if let Some(slot) = element.get_mut(b) {
                    *slot = byte;
                }
            }
        }
    }
    let (_, tail) = out.split_at_mut(input.len() - rest.len());
    tail.copy_from_slice(rest);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Bitshuffle);
    }

    #[test]
    fn exact_bytes() {
        // Eight 16-bit elements 0x0100 + i, one left over, one stray byte.
        let input: Vec<u8> = (0..9u8).flat_map(|i| [i, 1]).chain([77]).collect();
        let mut out = vec![];
        Bitshuffle.encode(&input, Element::unsigned(2), &mut out).unwrap();
        assert_eq!(out, [0xaa, 0xcc, 0xf0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0, 8, 1, 77]);
    }
}
