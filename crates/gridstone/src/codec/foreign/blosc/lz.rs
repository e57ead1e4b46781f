//! The compressor BloscLZ, a child of FastLZ: literal bytes, and copies of what lies before.
//!
//! ```text
//! until the stream ends:
//!   u8 c < 32       c + 1 bytes follow as they are; of the first c of a stream only the low 5 bits count
//!   u8 c >= 32      a copy of n + 2 bytes from d + 1 bytes back:
//!                     n = c >> 5; if that is 7, n = 7 + the u8 that follow, up to and with the first that is not 255
//!                     d = (c & 31) << 8 | the u8 that follows
//!                     if that is 31 << 8 | 255, d = 8,191 + the big-endian u16 that follows
//! ```
//!
//! A stream ends with literal bytes.

use crate::base::Result;
use crate::codec::foreign::filter::split;
use crate::codec::foreign::window::Window;

/// What its errors name: the filter that the user knows.
const NAME: &str = "blosc";

/// The distance that says that a longer one follows.
const FAR: usize = 0x1fff;

/// Decodes `input` into the front of `out`; returns the number of bytes written.
pub(super) fn decode(input: &[u8], out: &mut [u8]) -> Result<usize> {
    let (mut window, mut rest, mut mask) = (Window::new(NAME, out), input, 31);
    while let Some((control, behind)) = rest.split_first() {
        let control = usize::from(control & mask);
        mask = 0xff;
        rest = match control {
            0..32 => {
                let (literals, behind) = split(NAME, behind, control + 1)?;
                window.append(literals)?;
                behind
            }
            _ => copy(control, behind, &mut window)?,
        };
    }
    Ok(window.len())
}

/// Appends the copy that `control` begins; returns what lies behind it.
fn copy<'a>(control: usize, bytes: &'a [u8], window: &mut Window<'_>) -> Result<&'a [u8]> {
    let (mut count, mut rest) = ((control >> 5) + 2, bytes);
    let mut goes_on = control >> 5 == 7;
    while goes_on {
        let byte;
        (byte, rest) = number(rest)?;
        count += byte;
        goes_on = byte == 255;
    }
    let (low, behind) = number(rest)?;
    let (mut distance, mut rest) = ((control & 31) << 8 | low, behind);
    if distance == FAR {
        let (high, behind) = number(rest)?;
        let (low, behind) = number(behind)?;
        (distance, rest) = (FAR + (high << 8 | low), behind);
    }
    window.repeat(distance + 1, count)?;
    Ok(rest)
}

fn number(bytes: &[u8]) -> Result<(usize, &[u8])> {
    let (byte, rest) = split(NAME, bytes, 1)?;
    Ok((byte.first().copied().unwrap_or_default().into(), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first control byte is one of literals whatever its high bits, then copies of each length of distance.
    #[test]
    fn exact_bytes() {
        let far = [&[0x20 | 1, b'a', b'b'][..], &[7 << 5, 255, 255, 0, 1], &[7 << 5, 255, 200, 255]].concat();
        let mut out = vec![0; 2_000];
        let copied = 7 + 2 + 255 + 255;
        let stream = [&far[..8], &[0, b'z']].concat();
        assert_eq!(decode(&stream, &mut out).unwrap(), 2 + copied + 1);
        assert_eq!(&out[..4], b"abab");
        assert_eq!(out[1 + copied + 1], b'z');
        // From 255 + 1 bytes back, 7 + 2 + 255 + 200 bytes.
        assert_eq!(decode(&far, &mut out).unwrap(), 2 + copied + 7 + 2 + 255 + 200);
        assert!(decode(&far, &mut out[..500]).is_err());
    }

    #[test]
    fn a_long_distance_follows() {
        let mut stream: Vec<u8> = Vec::new();
        for n in 0..300u16 {
            stream.push(31);
            stream.extend((0..32).map(|i| (n * 32 + i).wrapping_mul(7) as u8 ^ (n >> 2) as u8));
        }
        stream.extend([3 << 5 | 31, 255, 1, 0, 0, b'!']);
        let mut out = vec![0; 10_000];
        let len = decode(&stream, &mut out).unwrap();
        assert_eq!(len, 9_600 + 5 + 1);
        let from = 9_600 - (8_191 + 256 + 1);
        assert_eq!(out[9_600..9_605], out[from..from + 5]);
        stream[9_900 + 2] = 200;
        assert!(decode(&stream, &mut out).is_err());
    }
}
