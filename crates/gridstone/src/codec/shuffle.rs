//! Filter `shuffle`: the elements' first bytes, then their second bytes, and so on, so that a compressor meets the
//! slowly changing high bytes in one run.
//!
//! Layout: with W = the element's width in bytes and N = floor(length / W),
//!
//! ```text
//! stored[b * N + i] = input[i * W + b]        0 <= b < W, 0 <= i < N
//! stored[N * W ..]  = input[N * W ..]         the length mod W bytes left over, as they are
//! ```

use super::Filter;
use super::filter::{front, grow};
use crate::base::{Element, Result};

/// The filter `shuffle`.
#[derive(Debug, Clone, Copy)]
pub struct Shuffle;

impl Filter for Shuffle {
    fn name(&self) -> String {
        "shuffle".into()
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
            _ => out.copy_from_slice(input),
        }
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        let out = front("shuffle", out, input.len())?;
        match element.width {
            2 => join::<2>(input, out),
            4 => join::<4>(input, out),
            8 => join::<8>(input, out),
            _ => out.copy_from_slice(input),
        }
        Ok(input.len())
    }
}

/// Elements that are transposed at a time, through a buffer in registers.
const RUN: usize = 16;

fn split<const W: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, rest) = input.as_chunks::<W>();
    let (planes, tail) = out.split_at_mut(elements.len() * W);
    tail.copy_from_slice(rest);
    for (b, plane) in planes.chunks_exact_mut(elements.len().max(1)).enumerate().take(W) {
        for (byte, element) in plane.iter_mut().zip(elements) {
            *byte = element.get(b).copied().unwrap_or_default();
        }
    }
}

fn join<const W: usize>(input: &[u8], out: &mut [u8]) {
    let (elements, tail) = out.as_chunks_mut::<W>();
    let (planes, rest) = input.split_at(elements.len() * W);
    tail.copy_from_slice(rest);
    let mut planes = planes.chunks_exact(elements.len().max(1));
    let planes: [&[u8]; W] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let (runs, last) = elements.as_chunks_mut::<RUN>();
    for (r, run) in runs.iter_mut().enumerate() {
        let parts: [[u8; RUN]; W] = planes.map(|p| p.as_chunks().0.get(r).copied().unwrap_or_default());
        *run = std::array::from_fn(|i| std::array::from_fn(|b| parts[b][i]));
    }
    let done = runs.len() * RUN;
    for (i, element) in last.iter_mut().enumerate() {
        *element = planes.map(|p| p.get(done + i).copied().unwrap_or_default());
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Shuffle);
    }

    #[test]
    fn exact_bytes() {
        let mut out = vec![];
        Shuffle.encode(&[1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 99], Element::float(4), &mut out).unwrap();
        assert_eq!(out, [1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24, 99]);
    }
}
