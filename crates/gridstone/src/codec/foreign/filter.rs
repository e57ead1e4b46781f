//! The trait of the filters of foreign chunks, and the checks that they share.

use crate::base::{Error, Result};
use std::fmt::Debug;

/// A reversible transformation of bytes, with parameters of its own.
pub(super) trait ForeignFilter: Send + Sync + Debug {
    /// The canonical name with its parameters: `"shuffle:4"`.
    fn name(&self) -> String;

    /// An Unsupported error if the filter is missing, so that nothing can be decoded with it.
    fn check_available(&self) -> Result<()> {
        Ok(())
    }

    /// Whether a program decodes it, rather than this crate: that may take long.
    fn is_user_defined(&self) -> bool {
        false
    }

    /// The largest number of bytes that a writer makes of `len` bytes. It is the room of an intermediate result.
    fn encoded_len_max(&self, len: usize) -> usize;

    /// The encoded form of `input`.
    ///
    /// Errors: Unsupported by a filter that only decodes, Input if `input` is of a length that the filter cannot take.
    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let _ = input;
        Err(Error::unsupported(format!("filter {} is decoded, and not written; choose another filter", self.name())))
    }

    /// Decodes all of `input` into the front of `out` and returns the number of bytes written.
    ///
    /// Errors: Corruption if `input` is malformed or holds more than `out.len()` bytes, Unsupported if it is of a
    /// variant that is not read; `out` is then unspecified.
    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize>;
}

/// The room for what a compressor makes of `len` bytes: an eighth and 4,096 bytes more. It covers the compressors here,
/// which frame what they cannot compress.
pub(super) fn compressed_len_max(len: usize) -> usize {
    len.saturating_add(len / 8).saturating_add(4_096)
}

/// A Corruption error of the filter `filter`.
pub(super) fn corrupt(filter: &str, what: impl std::fmt::Display) -> Error {
    Error::corruption(format!("filter {filter}: {what}"))
}

/// The big-endian number in the first four of `bytes`, and the bytes behind it.
pub(super) fn big_u32<'a>(filter: &str, bytes: &'a [u8]) -> Result<(usize, &'a [u8])> {
    match bytes.split_first_chunk::<4>() {
        Some((number, rest)) => Ok((u32::from_be_bytes(*number) as usize, rest)),
        None => Err(cut_short(filter)),
    }
}

/// The first `len` of `bytes`, and those behind them.
pub(super) fn split<'a>(filter: &str, bytes: &'a [u8], len: usize) -> Result<(&'a [u8], &'a [u8])> {
    bytes.split_at_checked(len).ok_or_else(|| cut_short(filter))
}

/// A Corruption error unless all bytes of a chunk are taken.
pub(super) fn expect_end(filter: &str, rest: &[u8]) -> Result<()> {
    if rest.is_empty() {
        return Ok(());
    }
    Err(corrupt(filter, format_args!("{} bytes are left behind the end of the chunk's content", rest.len())))
}

fn cut_short(filter: &str) -> Error {
    corrupt(filter, "the chunk ends before its content does")
}
