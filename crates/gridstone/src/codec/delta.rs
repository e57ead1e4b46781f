//! Filter `delta`: the difference of each integer from the one before, wrapping at the element's width.
//!
//! Layout: with w = the element's width in bits and values read as unsigned little-endian integers x0, x1, …,
//!
//! ```text
//! stored:  d0 = x0    d[i] = (x[i] - x[i-1]) mod 2^w        each as w/8 little-endian bytes, nothing else
//! ```
//!
//! Signed and unsigned values are treated alike. The output has the same length and is signed: in sorted or slowly
//! changing values the differences are small and may be negative. Floats are refused.

use super::Filter;
use super::filter::{check_whole, front, grow, refused};
use super::word::{Word, by_width, words, words_mut};
use crate::base::{Element, ElementKind, Error, Result};

/// The filter `delta`.
#[derive(Debug, Clone, Copy)]
pub struct Delta;

impl Filter for Delta {
    fn name(&self) -> String {
        "delta".into()
    }

    fn accepts(&self, element: Element) -> bool {
        element.kind != ElementKind::Float && matches!(element.width, 1 | 2 | 4 | 8)
    }

    fn output(&self, element: Element) -> Element {
        Element::signed(element.width)
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        len
    }

    fn decoded_len_max(&self, len: usize) -> usize {
        len
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        if !self.accepts(element) {
            return Err(refused("delta", element));
        }
        check_whole("delta", input, element)?;
        let out = grow(out, input.len());
        by_width!(element, W => differences::<W>(input, out), else return Err(refused("delta", element)));
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        check_whole("delta", input, element).map_err(|e| Error::corruption(e.message()))?;
        let out = front("delta", out, input.len())?;
        by_width!(element, W => sums::<W>(input, out), else return Err(refused("delta", element)));
        Ok(input.len())
    }
}

fn differences<W: Word>(input: &[u8], out: &mut [u8]) {
    let mut previous = W::narrow(0);
    for (value, slot) in words::<W>(input).iter().zip(words_mut::<W>(out)) {
        let value = W::load(*value);
        *slot = value.minus(previous).store();
        previous = value;
    }
}

fn sums<W: Word>(input: &[u8], out: &mut [u8]) {
    let mut sum = W::narrow(0);
    for (difference, slot) in words::<W>(input).iter().zip(words_mut::<W>(out)) {
        sum = sum.plus(W::load(*difference));
        *slot = sum.store();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Delta);
    }

    #[test]
    fn exact_bytes() {
        let input: Vec<u8> = [10i16, 7, -32768, 32767].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![];
        Delta.encode(&input, Element::signed(2), &mut out).unwrap();
        // 10, -3, -32775 = 32761 mod 2^16, 65535 = -1 mod 2^16
        assert_eq!(out, [10, 0, 0xfd, 0xff, 0xf9, 0x7f, 0xff, 0xff]);
    }
}
