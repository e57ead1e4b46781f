//! Foreign filter `zstd`: Zstandard frames (RFC 8878), with or without their content size and checksum, and skippable
//! frames. HDF5's filter 32015 and the `zstd` of Zarr and numcodecs.

use super::filter::{ForeignFilter, compressed_len_max};
use crate::base::{Element, Result};
use crate::codec::filter::Filter;
use crate::codec::zstd::Zstd as OneFrame;

const FRAME: OneFrame = OneFrame { level: 3 };

/// The foreign filter `zstd`; it writes one frame of level 3.
#[derive(Debug, Clone, Copy)]
pub(super) struct Zstd;

impl ForeignFilter for Zstd {
    fn name(&self) -> String {
        "zstd".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let mut out = Vec::new();
        FRAME.encode(input, Element::BYTE, &mut out)?;
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        FRAME.decode(input, Element::BYTE, out)
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn conforms() {
        conformance::check(&Zstd);
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn frames_are_joined() {
        let skippable = [0x50, 0x2a, 0x4d, 0x18, 2, 0, 0, 0, 9, 9];
        let stored = [Zstd.encode(b"abc").unwrap(), skippable.to_vec(), Zstd.encode(b"de").unwrap()].concat();
        let mut out = [0; 8];
        assert_eq!(Zstd.decode(&stored, &mut out).unwrap(), 5);
        assert_eq!(&out[..5], b"abcde");
    }
}
