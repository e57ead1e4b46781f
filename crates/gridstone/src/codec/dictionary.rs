//! Filter `dict`: stores each distinct value once, and for each value its index among them, in as few bits as the
//! largest index needs.
//!
//! Layout: with W = the element's width in bytes, numbers little-endian,
//!
//! ```text
//! u32              n, the number of values; nothing follows if it is 0
//! u32              d, the number of distinct values, 1 to n
//! d * W bytes      those, in the order in which they come first
//! ceil(n * bits / 8) bytes, bits = the bits of d - 1 (0 if d is 1): the places; place i has the bits [i * bits, (i + 1) *
//!                  bits) of the run, the lowest first, bit p of the run being bit p mod 8 of byte floor(p / 8);
//!                  unused bits are 0
//! ```
//!
//! Floats are equal if their bits are.

use super::Filter;
use super::filter::{check_whole, front, refused};
use super::frame::pack;
use super::word::{Word, by_width, words, words_mut};
use crate::base::{ByteReader, Element, Error, Result};
use std::collections::HashMap;

/// The filter `dict`.
#[derive(Debug, Clone, Copy)]
pub struct Dictionary;

impl Filter for Dictionary {
    fn name(&self) -> String {
        "dict".into()
    }

    fn accepts(&self, element: Element) -> bool {
        matches!(element.width, 1 | 2 | 4 | 8)
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        // If all values differ: the values, and indexes of at most as many bits.
        2 * len + 16
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        check_whole("dict", input, element)?;
        by_width!(element, W => encode::<W>(words::<W>(input), out), else Err(refused("dict", element)))
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        by_width!(element, W => decode::<W>(input, out), else Err(refused("dict", element)))
    }
}

/// The number of bits of an index among `distinct` values.
fn bits_of(distinct: usize) -> u32 {
    usize::BITS - distinct.saturating_sub(1).leading_zeros()
}

fn encode<W: Word>(values: &[W::Bytes], out: &mut Vec<u8>) -> Result<()> {
    let count = u32::try_from(values.len())
        .map_err(|e| Error::input("filter dict: a block of more than 2^32 values cannot be stored").with_source(e))?;
    out.extend_from_slice(&count.to_le_bytes());
    if values.is_empty() {
        return Ok(());
    }
    let mut places: HashMap<u64, u32> = HashMap::new();
    let mut distinct: Vec<W::Bytes> = Vec::new();
    let mut indices: Vec<u32> = Vec::with_capacity(values.len());
    for value in values {
        let place = *places.entry(W::load(*value).widen()).or_insert_with(|| {
            distinct.push(*value);
            distinct.len() as u32 - 1
        });
        indices.push(place);
    }
    out.extend_from_slice(&(distinct.len() as u32).to_le_bytes());
    out.extend_from_slice(bytemuck::cast_slice(&distinct));
    let bits = bits_of(distinct.len());
    if bits > 0 {
        pack(indices.into_iter().map(u64::from), bits, out);
    }
    Ok(())
}

fn decode<W: Word>(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let mut reader = ByteReader::new(input, "a block of filter dict");
    let count = reader.u32()? as usize;
    if count == 0 {
        reader.expect_end()?;
        return Ok(0);
    }
    let len = count.saturating_mul(W::SIZE);
    let out = words_mut::<W>(front("dict", out, len)?);
    let distinct = reader.u32()? as usize;
    if distinct == 0 || distinct > count {
        return Err(Error::corruption(format!("filter dict: {distinct} distinct values among {count}")));
    }
    let known = words::<W>(reader.take(distinct.saturating_mul(W::SIZE))?);
    let bits = bits_of(distinct) as usize;
    let packed = reader.take(count.saturating_mul(bits).div_ceil(8))?;
    reader.expect_end()?;
    let mut places = Places { packed, word: 0, held: 0 };
    for slot in out {
        let place = if bits == 0 { 0 } else { places.next(bits as u32) };
        let value = known.get(place as usize);
        *slot =
            *value.ok_or_else(|| Error::corruption(format!("filter dict: place {place} among {distinct} values")))?;
    }
    Ok(len)
}

/// Numbers of a few bits each, read one after the other.
struct Places<'a> {
    packed: &'a [u8],
    word: u64,
    /// How many bits of the word are not read yet.
    held: u32,
}

impl Places<'_> {
    /// The next number, of 1 to 32 bits.
    fn next(&mut self, bits: u32) -> u64 {
        while self.held < bits {
            let (byte, later) = self.packed.split_first().map_or((0, &[][..]), |(byte, later)| (*byte, later));
            self.word |= u64::from(byte) << self.held;
            self.held += 8;
            self.packed = later;
        }
        let number = self.word & ((1 << bits) - 1);
        self.word >>= bits;
        self.held -= bits;
        number
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&Dictionary);
    }

    #[test]
    fn exact_bytes() {
        let input: Vec<u8> = [500i16, -1, 500, 7, -1].iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![];
        Dictionary.encode(&input, Element::signed(2), &mut out).unwrap();
        // Indexes 0, 1, 0, 2, 1 in two bits each.
        assert_eq!(out, [5, 0, 0, 0, 3, 0, 0, 0, 0xf4, 0x01, 0xff, 0xff, 7, 0, 0b1000_0100, 0b01]);
        out.clear();
        Dictionary.encode(&[9, 9, 9], Element::BYTE, &mut out).unwrap();
        assert_eq!(out, [3, 0, 0, 0, 1, 0, 0, 0, 9]);
    }

    #[test]
    fn what_no_writer_gives_is_corruption() {
        let mut out = [0u8; 64];
        let mut refuse = |bytes: &[u8]| {
            let error = Dictionary.decode(bytes, Element::BYTE, &mut out).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{bytes:?}");
        };
        refuse(&[2, 0, 0, 0, 0, 0, 0, 0]);
        refuse(&[2, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0]);
        refuse(&[3, 0, 0, 0, 3, 0, 0, 0, 1, 2, 3, 0b11_1111]);
        refuse(&[65, 0, 0, 0, 1, 0, 0, 0, 1]);
        refuse(&[0, 0, 0, 0, 0]);
        refuse(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff]);
    }
}
