//! Foreign filter `shuffle:W`: the elements' first bytes, then their second bytes, and so on. HDF5's filter 2 and the
//! `shuffle` of numcodecs; a record counts as one element.
//!
//! Layout: with N = floor(length / W),
//!
//! ```text
//! stored[b * N + i] = input[i * W + b]        0 <= b < W, 0 <= i < N
//! stored[N * W ..]  = input[N * W ..]         the length mod W bytes left over, as they are
//! ```

use super::filter::ForeignFilter;
use crate::base::{Element, Result};
use crate::codec::filter::{Filter, front};
use crate::codec::shuffle::Shuffle as Fixed;

/// The foreign filter `shuffle`.
#[derive(Debug, Clone, Copy)]
pub struct Shuffle {
    /// The bytes of an element, at least 1.
    pub width: u32,
}

impl ForeignFilter for Shuffle {
    fn name(&self) -> String {
        format!("shuffle:{}", self.width)
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        len
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let mut out = vec![0; input.len()];
        let (planes, count) = (self.width as usize, input.len() / self.width as usize);
        transpose(input, &mut out, count, planes);
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let out = front("shuffle", out, input.len())?;
        unshuffle(self.width as usize, input, out)?;
        Ok(input.len())
    }
}

/// Undoes the shuffle of `input`, elements of `width` bytes, into `out` of the same length.
pub(super) fn unshuffle(width: usize, input: &[u8], out: &mut [u8]) -> Result<()> {
    match width {
        2 | 4 | 8 => Fixed.decode(input, Element::unsigned(width as u8), out).map(drop),
        _ => {
            let count = input.len().checked_div(width).unwrap_or_default();
            transpose(input, out, width, count);
            Ok(())
        }
    }
}

/// Transposes a matrix of bytes with `rows` rows and `columns` columns, and copies what lies behind it.
fn transpose(input: &[u8], out: &mut [u8], rows: usize, columns: usize) {
    let whole = rows.saturating_mul(columns).min(out.len());
    let (out, tail) = out.split_at_mut(whole);
    let (input, rest) = input.split_at(whole.min(input.len()));
    tail.copy_from_slice(rest);
    for (r, row) in input.chunks_exact(columns.max(1)).enumerate() {
        let places = out.get_mut(r..).unwrap_or_default().iter_mut().step_by(rows.max(1));
        places.zip(row).for_each(|(place, byte)| *place = *byte);
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    #[test]
    fn conforms() {
        for width in [1, 2, 3, 4, 8, 20, 1 << 20, u32::MAX] {
            conformance::check(&Shuffle { width });
        }
    }

    #[test]
    fn exact_bytes() {
        let stored = Shuffle { width: 3 }.encode(&[1, 2, 3, 11, 12, 13, 99]).unwrap();
        assert_eq!(stored, [1, 11, 2, 12, 3, 13, 99]);
        assert_eq!(Shuffle { width: 9 }.encode(&[1, 2, 3]).unwrap(), [1, 2, 3]);
    }
}
