//! Filter `lz4`: one LZ4 block (the raw block format, no frame). Its decoded length is not stored: the caller knows it.

use super::Filter;
use super::filter::append_with;
use crate::base::{Element, Error, Result};

/// The filter `lz4`.
#[derive(Debug, Clone, Copy)]
pub struct Lz4;

impl Filter for Lz4 {
    fn name(&self) -> String {
        "lz4".into()
    }

    fn accepts(&self, _element: Element) -> bool {
        true
    }

    fn output(&self, _element: Element) -> Element {
        Element::BYTE
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        lz4_flex::block::get_maximum_output_size(len)
    }

    fn decoded_len_max(&self, len: usize) -> usize {
        // A byte more lengthens a match by 255.
        len.saturating_mul(255)
    }

    fn encode(&self, input: &[u8], _element: Element, out: &mut Vec<u8>) -> Result<()> {
        append_with(out, self.encoded_len_max(input.len()), |room| {
            lz4_flex::block::compress_into(input, room)
                .map_err(|e| Error::input("filter lz4 could not compress a block").with_source(e))
        })
    }

    fn decode(&self, input: &[u8], _element: Element, out: &mut [u8]) -> Result<usize> {
        lz4_flex::block::decompress_into(input, out)
            .map_err(|e| Error::corruption("filter lz4 could not decompress a block").with_source(e))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conforms() {
        crate::codec::conformance::check(&Lz4);
    }
}
