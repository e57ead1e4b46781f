//! The trait of all filters, and the checks that they share.

use crate::base::{Element, Error, Result};
use std::fmt::Debug;

/// A reversible transformation of bytes.
pub trait Filter: Send + Sync + Debug {
    /// The canonical name with its level, as [`super::Pipeline::parse`] reads it: `"zstd:3"`.
    fn name(&self) -> String;

    /// Whether the filter can encode values of `element`.
    fn accepts(&self, element: Element) -> bool;

    /// The element of what `encode` writes for values of `element`.
    fn output(&self, element: Element) -> Element;

    /// The largest number of bytes `encode` makes of `len` bytes.
    fn encoded_len_max(&self, len: usize) -> usize;

    /// The largest number of bytes that any `len` encoded bytes decode to. A length found on disk is checked against it
    /// before memory is allocated. A filter whose encoding has no bound keeps this default.
    fn decoded_len_max(&self, len: usize) -> usize {
        let _ = len;
        usize::MAX
    }

    /// An Unsupported error if the filter is missing, so that nothing can be encoded or decoded with it.
    fn check_available(&self) -> Result<()> {
        Ok(())
    }

    /// Appends the encoded form of `input` to `out`.
    ///
    /// Errors: Input if `input` must hold whole elements and does not, Schema if `element` is not accepted. After an
    /// error, `out` holds its old bytes and any number more.
    fn encode(&self, input: &[u8], element: Element, out: &mut Vec<u8>) -> Result<()>;

    /// Decodes all of `input` into the front of `out` and returns the number of bytes written.
    ///
    /// `element` is the one that `encode` was given. Errors: Corruption if `input` is malformed or holds more than
    /// `out.len()` bytes; `out` is then unspecified.
    fn decode(&self, input: &[u8], element: Element, out: &mut [u8]) -> Result<usize>;

    /// The way to decode single elements, if the filter has one that is shorter than decoding everything.
    fn picks(&self) -> Option<&dyn Picks> {
        None
    }
}

/// A filter that decodes some elements without the others.
pub trait Picks {
    /// Decodes from `input`, which should have `count` elements, only those in `rows` (ascending), side by side into
    /// `out`, which has room for them. Returns the number of bytes that [`Filter::decode`] would write, and refuses
    /// what that refuses given room for `count`.
    fn decode_rows(&self, input: &[u8], element: Element, count: usize, rows: &[u32], out: &mut [u8]) -> Result<usize>;
}

/// An Input error unless `input` holds whole elements.
pub(super) fn check_whole(filter: &str, input: &[u8], element: Element) -> Result<()> {
    if element.size() != 0 && input.len().is_multiple_of(element.size()) {
        return Ok(());
    }
    Err(Error::input(format!(
        "filter {filter} needs whole elements of {} bytes, found {} bytes",
        element.width,
        input.len()
    )))
}

/// The Schema error of a filter that does not accept `element`.
pub(super) fn refused(filter: &str, element: Element) -> Error {
    let (kind, width) = (element.kind, element.width);
    Error::schema(format!("filter {filter} does not accept {kind} values of {width} bytes; choose another filter"))
}

/// The Corruption error of a block whose content exceeds its buffer.
pub(super) fn too_long(filter: &str, needed: usize, room: usize) -> Error {
    Error::corruption(format!("filter {filter}: the block holds {needed} bytes or more, at most {room} were expected"))
}

/// The first `len` bytes of `out`; a Corruption error if it is shorter.
pub(super) fn front<'a>(filter: &str, out: &'a mut [u8], len: usize) -> Result<&'a mut [u8]> {
    let room = out.len();
    out.get_mut(..len).ok_or_else(|| too_long(filter, len, room))
}

/// Grows `out` by `len` zero bytes and returns them.
pub(super) fn grow(out: &mut Vec<u8>, len: usize) -> &mut [u8] {
    let start = out.len();
    out.resize(start + len, 0);
    out.get_mut(start..).unwrap_or_default()
}

/// Lets `write` fill up to `len_max` bytes appended to `out`, and keeps as many as it returns.
pub(super) fn append_with(
    out: &mut Vec<u8>,
    len_max: usize,
    write: impl FnOnce(&mut [u8]) -> Result<usize>,
) -> Result<()> {
    let start = out.len();
    let written = write(grow(out, len_max))?;
    out.truncate(start + written);
    Ok(())
}
