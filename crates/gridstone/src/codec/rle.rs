//! Filter `rle`: stores runs of equal values as their length and the value.
//!
//! Layout: with W = the element's width in bytes, numbers little-endian,
//!
//! ```text
//! for each run, until the values end:
//!   length    how many values it has, at least 1, as LEB128: seven bits a byte, the lowest first, the highest bit of a
//!             byte says that another follows; at most 10 bytes, none of them needless
//!   W bytes   the value
//! ```
//!
//! A writer makes each run as long as possible; a reader accepts any. Floats are equal if their bits are.

use super::Filter;
use super::filter::{check_whole, refused, too_long};
use super::word::{Word, by_width, words, words_mut};
use crate::base::{ByteReader, Element, Error, Result};

/// The filter `rle`.
#[derive(Debug, Clone, Copy)]
pub struct RunLength;

impl Filter for RunLength {
    fn name(&self) -> String {
        "rle".into()
    }

    fn accepts(&self, element: Element) -> bool {
        matches!(element.width, 1 | 2 | 4 | 8)
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        // A length takes no more bytes than its run has values.
        2 * len
    }

    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()> {
        check_whole("rle", input, element)?;
        by_width!(element, W => encode::<W>(words::<W>(input), out), else return Err(refused("rle", element)));
        Ok(())
    }

    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize> {
        by_width!(element, W => decode::<W>(input, out), else Err(refused("rle", element)))
    }
}

fn encode<W: Word>(values: &[W::Bytes], out: &mut Vec<u8>) {
    let same = |a: &W::Bytes, b: &W::Bytes| W::load(*a) == W::load(*b);
    for run in values.chunk_by(same) {
        let mut length = run.len() as u64;
        while length >= 0x80 {
            out.push(length as u8 | 0x80);
            length >>= 7;
        }
        out.push(length as u8);
        out.extend_from_slice(run.first().map_or(&[], bytemuck::bytes_of));
    }
}

fn decode<W: Word>(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let room = out.len() / W::SIZE;
    let slots = words_mut::<W>(out);
    let mut reader = ByteReader::new(input, "a block of filter rle");
    let mut done = 0usize;
    while reader.remaining() > 0 {
        let length = usize::try_from(run_length(&mut reader)?).unwrap_or(usize::MAX);
        let value: W::Bytes = bytemuck::pod_read_unaligned(reader.take(W::SIZE)?);
        let end = done.saturating_add(length);
        let run =
            slots.get_mut(done..end).ok_or_else(|| too_long("rle", end.saturating_mul(W::SIZE), room * W::SIZE))?;
        run.fill(value);
        done = end;
    }
    Ok(done * W::SIZE)
}

fn run_length(reader: &mut ByteReader<'_>) -> Result<u64> {
    let mut length = 0u64;
    for shift in (0..u64::BITS).step_by(7) {
        let byte = reader.u8()?;
        let bits = u64::from(byte & 0x7f);
        if bits << shift >> shift != bits {
            break;
        }
        length |= bits << shift;
        if byte & 0x80 == 0 {
            let needless = shift > 0 && byte == 0;
            if length == 0 || needless {
                break;
            }
            return Ok(length);
        }
    }
    Err(Error::corruption("filter rle: a run without a length that a writer would give it"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;
    use crate::codec::conformance;

    #[test]
    fn conforms() {
        conformance::check(&RunLength);
    }

    #[test]
    fn exact_bytes() {
        let values = [vec![7u16; 300], vec![0x0102], vec![7; 2]].concat();
        let input: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        let mut out = vec![];
        RunLength.encode(&input, Element::unsigned(2), &mut out).unwrap();
        assert_eq!(out, [0xac, 0x02, 7, 0, 1, 2, 1, 2, 7, 0]);
    }

    #[test]
    fn lengths_that_no_writer_gives_are_corruption() {
        let mut out = [0u8; 64];
        let mut refuse = |bytes: &[u8]| {
            let error = RunLength.decode(bytes, Element::BYTE, &mut out).unwrap_err();
            assert_eq!(error.kind(), ErrorKind::Corruption, "{bytes:?}");
        };
        refuse(&[0, 5]);
        refuse(&[0x81, 0, 5]);
        refuse(&[65, 5]);
        refuse(&[0xff; 12]);
        refuse(&[0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01, 5]);
        refuse(&[3]);
    }
}
