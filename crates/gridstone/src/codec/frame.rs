//! Filter `for`: frame of reference. Groups of up to 1,024 values, each stored as its smallest value and the
//! differences from it, in as few bits as the largest difference needs.
//!
//! Layout: with W = the element's width in bytes, numbers little-endian,
//!
//! ```text
//! u32              n, the number of values; nothing follows if it is 0
//! W bytes          value 0, as it is
//! then for each group of the values 1 .. n (1,024 values, the last group 1 to 1,024):
//!   u8             bits, 0 to 8 W
//!   W bytes        min, the smallest value of the group (signed elements compare as signed, all others as unsigned)
//!   ceil(m * bits / 8) bytes, m = the number of values in the group: the differences (value - min) mod 2^(8 W);
//!                  difference i has the bits [i * bits, (i + 1) * bits) of the run, where bit p of the run is bit
//!                  p mod 8 of byte floor(p / 8), and the lowest bit of a difference comes first; unused bits are 0
//! ```
//!
//! Value 0 is separate because after `delta` it is the only one that is not a difference: in a group it would force its
//! width on 1,023 others. Floats are packed as bit patterns, which pays where they are equal. A decoder adds modulo
//! 2^(8 W), so it need not know the sign.

use super::filter::{check_whole, front, refused, too_long};
use super::word::{Word, by_width, words, words_mut};
use super::{Filter, Picks};
use crate::base::{ByteReader, Element, ElementKind, Error, Result, wide};
use std::ops::Range;

/// Values per group.
const GROUP: usize = 1_024;
/// How many values are unpacked at a time: every run of so many values ends at a word.
const RUN: usize = 64;
/// If fewer values of a run are wanted, they are unpacked one by one: a dozen and a half take as long as the whole run.
const FEW: usize = 16;
/// The bytes of a run of the widest values, and of a word that begins in its last byte.
const PADDED: usize = RUN * 8 + 8;

/// The filter `for`.
#[derive(Debug, Clone, Copy)]
pub struct Frame;

impl Filter for Frame {
    fn name(&self) -> String {
        "for".into()
    }

    fn accepts(&self, element: Element) -> bool {
        matches!(element.width, 1 | 2 | 4 | 8)
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        // Nine bytes at most per started group of at least 1,024 bytes.
        len + 4 + 9 * (len / GROUP + 1)
    }

    fn decoded_len_max(&self, len: usize) -> usize {
        // A group of values takes more bytes than one value.
        len.saturating_mul(GROUP)
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        check_whole("for", input, element)?;
        let signed = element.kind == ElementKind::Signed;
        by_width!(element, W => encode::<W>(words::<W>(input), signed, out), else Err(refused("for", element)))
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        by_width!(element, W => decode::<W>(input, out), else Err(refused("for", element)))
    }

    fn picks(&self) -> Option<&dyn Picks> {
        Some(self)
    }
}

impl Picks for Frame {
    fn decode_rows(&self, input: &[u8], element: Element, count: usize, rows: &[u32], out: &mut [u8]) -> Result<usize> {
        by_width!(element, W => decode_rows::<W>(input, count, rows, out), else Err(refused("for", element)))
    }
}

fn encode<W: Word>(values: &[W::Bytes], signed: bool, out: &mut Vec<u8>) -> Result<()> {
    let count = u32::try_from(values.len())
        .map_err(|e| Error::input("filter for: a block of more than 2^32 values cannot be stored").with_source(e))?;
    out.extend_from_slice(&count.to_le_bytes());
    let Some((first, rest)) = values.split_first() else { return Ok(()) };
    out.extend_from_slice(bytemuck::bytes_of(first));
    let sign = if signed { W::SIGN } else { W::narrow(0) };
    rest.chunks(GROUP).for_each(|group| encode_group::<W>(group, sign, out));
    Ok(())
}

fn encode_group<W: Word>(group: &[W::Bytes], sign: W, out: &mut Vec<u8>) {
    let ordered = || group.iter().map(|value| W::load(*value).flip(sign));
    let (min, max) = W::extremes(group, sign);
    let bits = u64::BITS - max.minus(min).widen().leading_zeros();
    out.push(bits as u8);
    out.extend_from_slice(bytemuck::bytes_of(&min.flip(sign).store()));
    if bits > 0 {
        pack(ordered().map(|value| value.minus(min).widen()), bits, out);
    }
}

/// Appends the low `bits` (1 to 64) of each value; the other bits must be 0.
pub(super) fn pack(values: impl Iterator<Item = u64>, bits: u32, out: &mut Vec<u8>) {
    let (mut word, mut used) = (0u64, 0u32);
    for value in values {
        word |= value << used;
        used += bits;
        if used >= u64::BITS {
            out.extend_from_slice(&word.to_le_bytes());
            used -= u64::BITS;
            // The rest: the value's upper `used` bits. A shift by 64 means that none is left.
            word = value.checked_shr(bits - used).unwrap_or(0);
        }
    }
    out.extend(word.to_le_bytes().iter().take(used.div_ceil(8) as usize));
}

fn decode<W: Word>(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut reader = ByteReader::new(input, "a block of filter for");
    let len = (reader.u32()? as usize).saturating_mul(W::SIZE);
    let out = words_mut::<W>(front("for", out, len)?);
    if let Some((first, rest)) = out.split_first_mut() {
        *first = word::<W>(&mut reader)?.store();
        for group in rest.chunks_mut(GROUP) {
            decode_group::<W>(&mut reader, group)?;
        }
    }
    reader.expect_end()?;
    Ok(len)
}

/// Decodes only the values `rows` of a block that should have `count`; returns the number of bytes of all of them.
fn decode_rows<W: Word>(input: &[u8], count: usize, rows: &[u32], out: &mut [u8]) -> Result<usize> {
    let mut reader = ByteReader::new(input, "a block of filter for");
    let held = reader.u32()? as usize;
    let len = held.saturating_mul(W::SIZE);
    if held > count {
        return Err(too_long("for", len, count.saturating_mul(W::SIZE)));
    }
    if held > 0 {
        let first = word::<W>(&mut reader)?.store();
        let (firsts, mut rows) = rows.split_at(rows.partition_point(|row| *row == 0));
        let (to, mut slots) = split_words::<W>(words_mut::<W>(out), firsts.len());
        to.fill(first);
        // Every group is checked, so that damage anywhere is refused.
        for from in (1..held).step_by(GROUP) {
            let group = from..held.min(from + GROUP);
            let (here, later) = rows.split_at(rows.partition_point(|row| (*row as usize) < group.end));
            let (to, behind) = split_words::<W>(slots, here.len());
            decode_group_rows::<W>(&mut reader, group, here, to)?;
            (rows, slots) = (later, behind);
        }
    }
    reader.expect_end()?;
    Ok(len)
}

/// The first `count` words, or as many as there are, and the rest.
fn split_words<W: Word>(words: &mut [W::Bytes], count: usize) -> (&mut [W::Bytes], &mut [W::Bytes]) {
    words.split_at_mut(count.min(words.len()))
}

/// Decodes the values `rows` among those numbered `group`.
fn decode_group_rows<W: Word>(
    reader: &mut ByteReader<'_>,
    group: Range<usize>,
    rows: &[u32],
    out: &mut [W::Bytes],
) -> Result<()> {
    let (bits, min, packed) = open_group::<W>(reader, group.len())?;
    let place = |row: &u32| *row as usize - group.start;
    let mut slots = out.iter_mut();
    for wanted in rows.chunk_by(|a, b| place(a) / RUN == place(b) / RUN) {
        let run = wanted.first().map_or(0, |row| place(row) / RUN);
        if wanted.len() < FEW {
            for (row, slot) in wanted.iter().zip(&mut slots) {
                *slot = min.plus(W::narrow(unpack_one(packed, place(row), bits))).store();
            }
            continue;
        }
        let differences = unpack_run(packed.get(run * RUN * bits / 8..).unwrap_or_default(), bits);
        for (row, slot) in wanted.iter().zip(&mut slots) {
            let difference = differences.get(place(row) % RUN).copied().unwrap_or(0);
            *slot = min.plus(W::narrow(difference)).store();
        }
    }
    Ok(())
}

/// Value number `place` of those packed with `bits` bits; bytes missing in `packed` count as 0.
#[inline(always)]
fn unpack_one(packed: &[u8], place: usize, bits: usize) -> u64 {
    let (at, shift) = (place * bits / 8, place * bits % 8);
    let rest = packed.get(at..).unwrap_or_default();
    let word = rest.first_chunk().map_or_else(
        || rest.iter().rev().fold(0, |word, byte| word << 8 | u64::from(*byte)),
        |word| u64::from_le_bytes(*word),
    );
    let ninth = if shift + bits > 64 { rest.get(8).map_or(0, |b| u64::from(*b) << (64 - shift)) } else { 0 };
    (word >> shift | ninth) & u64::MAX.checked_shr((64 - bits) as u32).unwrap_or(0)
}

/// Bits per value, least value and packed differences of a group of `len` values.
fn open_group<'a, W: Word>(reader: &mut ByteReader<'a>, len: usize) -> Result<(usize, W, &'a [u8])> {
    let bits = usize::from(reader.u8()?);
    if bits > 8 * W::SIZE {
        return Err(Error::corruption(format!("filter for: {bits} bits per value of {} bytes", W::SIZE)));
    }
    let min = word::<W>(reader)?;
    Ok((bits, min, reader.take((len * bits).div_ceil(8))?))
}

fn decode_group<W: Word>(reader: &mut ByteReader<'_>, group: &mut [W::Bytes]) -> Result<()> {
    let (bits, min, mut packed) = open_group::<W>(reader, group.len())?;
    for run in group.chunks_mut(RUN) {
        for (slot, difference) in run.iter_mut().zip(unpack_run(packed, bits)) {
            *slot = min.plus(W::narrow(difference)).store();
        }
        packed = packed.get(RUN * bits / 8..).unwrap_or_default();
    }
    Ok(())
}

fn word<W: Word>(reader: &mut ByteReader<'_>) -> Result<W> {
    let bytes = reader.take(W::SIZE)?;
    words::<W>(bytes).first().map(|b| W::load(*b)).ok_or_else(|| Error::corruption("filter for: a value is cut off"))
}

wide! {
    /// Unpacks the first 64 values of `bits` bits; bytes missing in `packed` count as 0.
    fn unpack_run(packed: &[u8], bits: usize) -> [u64; RUN] { unpack_run_any }
}

#[inline(always)]
fn unpack_run_any(packed: &[u8], bits: usize) -> [u64; RUN] {
    macro_rules! by_bits {
        ($($b:literal)*) => { match bits { $($b => unpack_values::<$b>(packed),)* _ => [0; RUN] } };
    }
    by_bits!(1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31 32 33 34 35 36 37 38
        39 40 41 42 43 44 45 46 47 48 49 50 51 52 53 54 55 56 57 58 59 60 61 62 63 64)
}

/// Compiled once per number of bits, so that every shift is a constant. A value is taken from the eight bytes that it
/// begins in, and the ninth if it reaches there. The last run of a group, which has too few bytes behind it, is
/// unpacked from a copy.
#[inline(always)]
fn unpack_values<const BITS: usize>(packed: &[u8]) -> [u64; RUN] {
    let len = RUN / 8 * BITS + 8;
    let mut copy = [0u8; PADDED];
    let bytes = match packed.get(..len) {
        Some(bytes) => bytes,
        None => {
            copy.iter_mut().zip(packed).for_each(|(to, from)| *to = *from);
            copy.get(..len).unwrap_or_default()
        }
    };
    std::array::from_fn(|i| {
        let (at, shift) = (i * BITS / 8, i * BITS % 8);
        let word = bytes.get(at..at + 8).and_then(|w| w.first_chunk()).map_or(0, |w| u64::from_le_bytes(*w));
        let ninth = || bytes.get(at + 8).map_or(0, |b| u64::from(*b));
        let value = if shift + BITS > 64 { word >> shift | ninth() << (64 - shift) } else { word >> shift };
        value & (u64::MAX >> (64 - BITS))
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codec::conformance;
    use proptest::prelude::*;

    #[test]
    fn conforms() {
        conformance::check(&Frame);
    }

    #[test]
    fn exact_bytes() {
        let input: Vec<u8> = [1000i16, -2, 3, -1, 5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![];
        Frame.encode(&input, Element::signed(2), &mut out).unwrap();
        // 5 values; 1000; 3 bits; -2; the differences 0, 5, 1, 7 = 0b111_001_101_000
        assert_eq!(out, [5, 0, 0, 0, 0xe8, 3, 3, 0xfe, 0xff, 0b0110_1000, 0b1110]);
    }

    #[test]
    fn equal_values_take_no_bits() {
        let mut out = vec![];
        Frame.encode(&[7; 8 * 1025], Element::float(8), &mut out).unwrap();
        assert_eq!(out.len(), 4 + 8 + 1 + 8);
    }

    #[test]
    fn every_number_of_bits_and_the_full_range() {
        let counts: &[u64] = if cfg!(miri) { &[1, 65] } else { &[1, 2, 63, 64, 65, 1024, 1025, 1026, 3000] };
        for bits in (0..=64).step_by(if cfg!(miri) { 8 } else { 1 }) {
            for n in counts.iter().copied() {
                let mask = u64::MAX.checked_shr(64 - bits).unwrap_or(0);
                let value = |i: u64| i.wrapping_mul(0x9e37_79b9_7f4a_7c15).rotate_left(17) & mask;
                let input: Vec<u8> = (0..n).flat_map(|i| value(i).to_le_bytes()).collect();
                for element in [Element::unsigned(8), Element::signed(8)] {
                    conformance::roundtrip(&Frame, &input, element);
                }
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(if cfg!(miri) { 2 } else { 256 }))]
        #[test]
        fn values_found_are_those_decoded(
            values in prop::collection::vec(any::<u64>(), 1..2_200),
            (bits, width, share) in (0u32..=64, 0u32..4, 1u32..80),
            seed in any::<u32>(),
        ) {
            let element = Element::unsigned(1 << width);
            let mask = u64::MAX.checked_shr(64 - bits.min(8 << width)).unwrap_or(0);
            let input: Vec<u8> =
                values.iter().flat_map(|v| (v & mask).to_le_bytes().into_iter().take(element.size())).collect();
            let mut stored = vec![];
            Frame.encode(&input, element, &mut stored).unwrap();
            let chosen = |row: &u32| (row ^ seed).wrapping_mul(0x9e37_79b9).rotate_left(13).is_multiple_of(share);
            let rows: Vec<u32> = (0..values.len() as u32).filter(chosen).collect();
            let mut found = vec![0; rows.len() * element.size()];
            let len = Frame.decode_rows(&stored, element, values.len(), &rows, &mut found).unwrap();
            let size = element.size();
            let wanted: Vec<u8> = rows.iter().flat_map(|row| input[*row as usize * size..][..size].to_vec()).collect();
            prop_assert_eq!(len, input.len());
            prop_assert_eq!(found, wanted);
        }
    }

    #[test]
    fn more_bits_than_the_width_are_refused() {
        let block = [2, 0, 0, 0, 7, 9, 0, 0, 0];
        let error = Frame.decode(&block, Element::BYTE, &mut [0; 2]).unwrap_err();
        assert!(error.message().contains("9 bits"), "{error}");
    }
}
