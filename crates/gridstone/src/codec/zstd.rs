//! Filter `zstd:LEVEL`: one Zstandard frame (RFC 8878) with its content size, without checksum or dictionary.
//!
//! Levels 1 to 22, default 3. Contexts are kept per thread: creating one costs more than a block.

use super::Filter;
use super::filter::append_with;
use crate::base::{Element, Error, Result};
use ::zstd::bulk::{Compressor, Decompressor};
use std::cell::RefCell;

/// The filter `zstd`.
#[derive(Debug, Clone, Copy)]
pub struct Zstd {
    /// 1 (fastest) to 22 (smallest).
    pub level: u8,
}

thread_local! {
    static COMPRESSOR: RefCell<Option<Compressor<'static>>> = const { RefCell::new(None) };
    static DECOMPRESSOR: RefCell<Option<Decompressor<'static>>> = const { RefCell::new(None) };
}

impl Filter for Zstd {
    fn name(&self) -> String {
        format!("zstd:{}", self.level)
    }

    fn accepts(&self, _element: Element) -> bool {
        true
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        ::zstd::compress_bound(len)
    }

    fn decoded_len_max(&self, len: usize) -> usize {
        // A block of four bytes may decode to 128 KiB, and no block to more.
        (len / 4 + 1).saturating_mul(128 << 10)
    }

    fn encode(&self, input: &[u8], _element: Element, out: &mut Vec<u8>) -> Result<()> {
        let failed = |e| Error::input("filter zstd could not compress a block").with_source(e);
        COMPRESSOR.with_borrow_mut(|held| {
            let compressor = match held {
                Some(compressor) => compressor,
                None => held.insert(Compressor::new(self.level.into()).map_err(failed)?),
            };
            compressor.set_compression_level(self.level.into()).map_err(failed)?;
            append_with(out, self.encoded_len_max(input.len()), |room| {
                compressor.compress_to_buffer(input, room).map_err(failed)
            })
        })
    }

    fn decode(&self, input: &[u8], _element: Element, out: &mut [u8]) -> Result<usize> {
        let failed = |e| Error::corruption("filter zstd could not decompress a block").with_source(e);
        DECOMPRESSOR.with_borrow_mut(|held| {
            let decompressor = match held {
                Some(decompressor) => decompressor,
                None => held.insert(Decompressor::new().map_err(failed)?),
            };
            decompressor.decompress_to_buffer(input, out).map_err(failed)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn conforms() {
        crate::codec::conformance::check(&Zstd { level: 3 });
    }
}
