//! Filter `shuffle`: the elements' first bytes, then their second bytes, and so on, so that a compressor meets the
//! slowly changing high bytes in one run.
//!
//! Layout: with W = the element's width in bytes and N = floor(length / W),
//!
//! ```text
//! stored[b * N + i] = input[i * W + b]        0 <= b < W, 0 <= i < N
//! stored[N * W ..]  = input[N * W ..]         the length mod W bytes left over, as they are
//! ```

use super::filter::{front, grow, too_long};
use super::{Filter, Picks};
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
            2 => split(input, out, |element, b| (u16::from_le_bytes(element) >> (8 * b)) as u8),
            4 => split(input, out, |element, b| (u32::from_le_bytes(element) >> (8 * b)) as u8),
            8 => split(input, out, |element, b| (u64::from_le_bytes(element) >> (8 * b)) as u8),
            _ => out.copy_from_slice(input),
        }
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        let out = front("shuffle", out, input.len())?;
        match element.width {
            2 => join::<2>(input, out, join_bytes),
            4 => join::<4>(input, out, join_bytes),
            8 => join(input, out, join_halves),
            _ => out.copy_from_slice(input),
        }
        Ok(input.len())
    }

    fn picks(&self) -> Option<&dyn Picks> {
        Some(self)
    }
}

impl Picks for Shuffle {
    fn decode_rows(&self, input: &[u8], element: Element, count: usize, rows: &[u32], out: &mut [u8]) -> Result<usize> {
        let room = count.saturating_mul(element.size());
        if input.len() > room {
            return Err(too_long("shuffle", input.len(), room));
        }
        match element.width {
            2 => pick::<2>(input, rows, out),
            4 => pick::<4>(input, rows, out),
            8 => pick::<8>(input, rows, out),
            _ => pick::<1>(input, rows, out),
        }
        Ok(input.len())
    }
}

/// The elements `rows`, each collected from its bytes in the planes.
fn pick<const W: usize>(input: &[u8], rows: &[u32], out: &mut [u8]) {
    let count = input.len() / W;
    let mut planes = input.chunks_exact(count.max(1));
    let planes: [&[u8]; W] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    for (element, row) in out.as_chunks_mut::<W>().0.iter_mut().zip(rows) {
        *element = planes.map(|plane| plane.get(*row as usize).copied().unwrap_or(0));
    }
}

/// How many elements are transposed at a time, in words in registers. Vector instructions yield a byte of every word,
/// or a word of every byte; they do not yield a byte every few bytes.
const RUN: usize = 16;

/// `byte` returns a byte of an element, by its index.
fn split<const W: usize>(input: &[u8], out: &mut [u8], byte: impl Fn([u8; W], usize) -> u8) {
    let (elements, rest) = input.as_chunks::<W>();
    let (planes, tail) = out.split_at_mut(elements.len() * W);
    tail.copy_from_slice(rest);
    let mut planes = planes.chunks_exact_mut(elements.len().max(1));
    let mut planes: [&mut [u8]; W] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let (runs, last) = elements.as_chunks::<RUN>();
    for (r, run) in runs.iter().enumerate() {
        for (b, plane) in planes.iter_mut().enumerate() {
            if let Some(part) = plane.as_chunks_mut::<RUN>().0.get_mut(r) {
                part.iter_mut().zip(run).for_each(|(to, element)| *to = byte(*element, b));
            }
        }
    }
    let done = runs.len() * RUN;
    for (b, plane) in planes.iter_mut().enumerate() {
        let end = plane.get_mut(done..).unwrap_or_default();
        end.iter_mut().zip(last).for_each(|(place, element)| *place = byte(*element, b));
    }
}

/// `fill` makes the elements of a run, by its number, from the planes.
fn join<const W: usize>(input: &[u8], out: &mut [u8], fill: impl Fn(&[&[u8]; W], usize, &mut [[u8; W]; RUN])) {
    let (elements, tail) = out.as_chunks_mut::<W>();
    let (planes, rest) = input.split_at(elements.len() * W);
    tail.copy_from_slice(rest);
    let mut planes = planes.chunks_exact(elements.len().max(1));
    let planes: [&[u8]; W] = std::array::from_fn(|_| planes.next().unwrap_or_default());
    let (runs, last) = elements.as_chunks_mut::<RUN>();
    for (r, run) in runs.iter_mut().enumerate() {
        fill(&planes, r, run);
    }
    let done = runs.len() * RUN;
    for (i, element) in last.iter_mut().enumerate() {
        *element = planes.map(|p| p.get(done + i).copied().unwrap_or_default());
    }
}

/// A run of a plane.
fn part(plane: &[u8], run: usize) -> [u8; RUN] {
    plane.as_chunks().0.get(run).copied().unwrap_or_default()
}

/// Elements byte by byte.
fn join_bytes<const W: usize>(planes: &[&[u8]; W], number: usize, run: &mut [[u8; W]; RUN]) {
    let parts = planes.map(|plane| part(plane, number));
    *run = std::array::from_fn(|i| std::array::from_fn(|b| parts[b][i]));
}

/// Elements of eight bytes as two words of four.
fn join_halves(planes: &[&[u8]; 8], number: usize, run: &mut [[u8; 8]; RUN]) {
    let (low, high) = planes.split_at(4);
    let (low, high) = (words(low, number), words(high, number));
    for ((element, low), high) in run.iter_mut().zip(low).zip(high) {
        *element = (u64::from(low) | u64::from(high) << 32).to_le_bytes();
    }
}

fn words(planes: &[&[u8]], number: usize) -> [u32; RUN] {
    let mut words = [0u32; RUN];
    for (b, plane) in planes.iter().enumerate() {
        words.iter_mut().zip(part(plane, number)).for_each(|(word, byte)| *word |= u32::from(byte) << (8 * b));
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Shuffle);
    }

    /// Every byte has the position of the layout, for every width, also at the ends of runs and for lengths that are no
    /// multiple of them.
    #[test]
    fn bytes_lie_where_the_layout_says() {
        for (element, width) in [(Element::float(2), 2), (Element::float(4), 4), (Element::float(8), 8)] {
            for len in (0..20 * width).chain([33 * width - 1, 64 * width + 3]) {
                let input: Vec<u8> = (0..len).map(|i| (i * 37 % 251) as u8).collect();
                let (mut stored, mut back) = (vec![], vec![0; len]);
                Shuffle.encode(&input, element, &mut stored).unwrap();
                let count = len / width;
                for (i, b) in (0..count).flat_map(|i| (0..width).map(move |b| (i, b))) {
                    assert_eq!(stored[b * count + i], input[i * width + b], "{width} {len} {i} {b}");
                }
                assert_eq!(stored[count * width..], input[count * width..]);
                Shuffle.decode(&stored, element, &mut back).unwrap();
                assert_eq!(back, input, "{width} {len}");
            }
        }
    }

    #[test]
    fn exact_bytes() {
        let mut out = vec![];
        Shuffle.encode(&[1, 2, 3, 4, 11, 12, 13, 14, 21, 22, 23, 24, 99], Element::float(4), &mut out).unwrap();
        assert_eq!(out, [1, 11, 21, 2, 12, 22, 3, 13, 23, 4, 14, 24, 99]);
    }
}
