//! Foreign filter `gzip`: one or several gzip members (RFC 1952), one behind the other. The `gzip` of Zarr and numcodecs.
//! Zeros behind the last member are ignored, as Python's `gzip` does.
//!
//! The library decodes a member and does not say where it ends. The end is searched: a member ends by the CRC-32 and the
//! length of its content, and behind these eight bytes lies another member, zeros, or nothing.

use super::deflate::with_decompressor;
use super::filter::{ForeignFilter, compressed_len_max, corrupt};
use crate::base::{Element, Result};
use crate::codec::filter::Filter;
use crate::codec::gzip::Gzip as OneMember;

/// The fewest bytes of a member: a header of 10, an empty block of 2, and 8 at its end.
const MEMBER_BYTES_MIN: usize = 20;

/// The foreign filter `gzip`; it writes one member of level 6.
#[derive(Debug, Clone, Copy)]
pub struct Gzip;

impl ForeignFilter for Gzip {
    fn name(&self) -> String {
        "gzip".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        OneMember { level: 6 }.encode(input, Element::BYTE, &mut out)?;
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut rest, mut written) = (input, 0);
        loop {
            let room = out.get_mut(written..).unwrap_or_default();
            let len = with_decompressor("gzip", |decompressor| decompressor.gzip_decompress(rest, room))?;
            rest = behind(rest, room.get(..len).unwrap_or_default())?;
            written += len;
            if rest.is_empty() {
                return Ok(written);
            }
        }
    }
}

/// What lies behind the first member of `bytes`, whose content is `content`; empty if that is only zeros.
fn behind<'a>(bytes: &'a [u8], content: &[u8]) -> Result<&'a [u8]> {
    let mut end = [0; 8];
    let (sum, len) = end.split_at_mut(4);
    sum.copy_from_slice(&libdeflater::crc32(content).to_le_bytes());
    len.copy_from_slice(&(content.len() as u32).to_le_bytes());
    let ends = bytes.windows(8).enumerate().skip(MEMBER_BYTES_MIN - 8).filter(|(_, window)| **window == end);
    let rests = ends.filter_map(|(at, _)| bytes.get(at + 8..));
    let mut rests = rests.filter(|rest| rest.is_empty() || rest.starts_with(&[0x1f, 0x8b]) || rest.starts_with(&[0]));
    let rest = rests.next().ok_or_else(|| corrupt("gzip", "the chunk goes on behind a member"))?;
    match rest.first() {
        Some(0) if rest.iter().all(|byte| *byte == 0) => Ok(&[]),
        Some(0) => Err(corrupt("gzip", "what lies behind a member is neither another one nor zeros")),
        _ => Ok(rest),
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn conforms() {
        conformance::check(&Gzip);
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn members_are_joined() {
        let parts: [&[u8]; 4] = [b"abc", b"", &[7; 5_000], b"z"];
        let mut stored: Vec<u8> = parts.iter().flat_map(|part| Gzip.encode(part).unwrap()).collect();
        let mut out = [1; 5_010];
        for _ in 0..2 {
            assert_eq!(Gzip.decode(&stored, &mut out).unwrap(), 5_004);
            assert_eq!(out[..5_004], parts.concat());
            stored.extend([0; 9]);
        }
        stored.push(1);
        assert_eq!(Gzip.decode(&stored, &mut out).unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(Gzip.decode(&stored[..30], &mut out).unwrap_err().kind(), ErrorKind::Corruption);
        assert_eq!(Gzip.decode(&[], &mut out).unwrap_err().kind(), ErrorKind::Corruption);
    }
}
