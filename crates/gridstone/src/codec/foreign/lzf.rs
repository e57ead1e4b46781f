//! Foreign filter `lzf`: HDF5's filter 32000, as h5py writes it. One stream of LibLZF, without its length:
//!
//! ```text
//! until the chunk ends:
//!   u8 c < 32       c + 1 bytes follow as they are
//!   u8 c >= 32      a copy of n + 2 bytes from d + 1 bytes back:
//!                     n = c >> 5; if that is 7, n = 7 + the u8 that follows
//!                     d = (c & 31) << 8 | the u8 that follows
//! ```

use super::filter::{ForeignFilter, compressed_len_max, split};
use super::window::Window;
use crate::base::Result;

const NAME: &str = "lzf";

/// The foreign filter `lzf`.
#[derive(Debug, Clone, Copy)]
pub struct Lzf;

impl ForeignFilter for Lzf {
    fn name(&self) -> String {
        NAME.into()
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        compressed_len_max(len)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let (mut window, mut rest) = (Window::new(NAME, out), input);
        while let Some((control, behind)) = rest.split_first() {
            let control = usize::from(*control);
            if control < 32 {
                let (literals, behind) = split(NAME, behind, control + 1)?;
                window.append(literals)?;
                rest = behind;
                continue;
            }
            let (long, behind) = split(NAME, behind, usize::from(control >> 5 == 7))?;
            let (low, behind) = split(NAME, behind, 1)?;
            let count = (control >> 5) + number(long) + 2;
            window.repeat(((control & 31) << 8 | number(low)) + 1, count)?;
            rest = behind;
        }
        Ok(window.len())
    }
}

/// The only byte, or 0.
fn number(bytes: &[u8]) -> usize {
    bytes.first().copied().map(usize::from).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    /// Literals, a short copy, one with its own byte of length, and a run.
    #[test]
    fn exact_bytes() {
        let stored = [3, b'a', b'b', b'c', b'd', 1 << 5, 3, 0, b'x', 7 << 5, 4, 0];
        let mut out = [0; 40];
        let len = Lzf.decode(&stored, &mut out).unwrap();
        assert_eq!(out[..len], *b"abcdabcxxxxxxxxxxxxxx");
        conformance::check_damage(&Lzf, &stored, len);
    }
}
