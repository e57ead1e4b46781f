//! Foreign filter `deflate`: one zlib stream (RFC 1950: two bytes, DEFLATE, Adler-32). HDF5's filter 1 and the `zlib` of
//! numcodecs. Bytes behind the stream are ignored, as HDF5 and zlib do; the Adler-32 is checked.

use super::filter::{ForeignFilter, compressed_len_max};
use crate::base::{Error, Result};
use crate::codec::filter::append_with;
use libdeflater::{CompressionLvl, Compressor, DecompressionError, Decompressor};
use std::cell::RefCell;

/// The foreign filter `deflate`; it writes level 6.
#[derive(Debug, Clone, Copy)]
pub struct Deflate;

thread_local! {
    static DECOMPRESSOR: RefCell<Option<Decompressor>> = const { RefCell::new(None) };
}

impl ForeignFilter for Deflate {
    fn name(&self) -> String {
        "deflate".into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let (mut out, mut compressor) = (Vec::new(), Compressor::new(CompressionLvl::default()));
        let most = compressor.zlib_compress_bound(input.len());
        append_with(&mut out, most, |room| {
            let failed = |e| Error::input("filter deflate could not compress a chunk").with_source(e);
            compressor.zlib_compress(input, room).map_err(failed)
        })?;
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        with_decompressor("deflate", |decompressor| decompressor.zlib_decompress(input, out))
    }
}

/// What `work` returns of the thread's decompressor; a Corruption error of `filter` where it fails.
pub(super) fn with_decompressor(
    filter: &str,
    work: impl FnOnce(&mut Decompressor) -> std::result::Result<usize, DecompressionError>,
) -> Result<usize> {
    DECOMPRESSOR
        .with_borrow_mut(|held| work(held.get_or_insert_with(Decompressor::new)))
        .map_err(|e| Error::corruption(format!("filter {filter} could not decompress a chunk")).with_source(e))
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn conforms() {
        conformance::check(&Deflate);
    }
}
