//! The checksum of metadata: `lookup3` of Bob Jenkins (2006, public domain), as the format's specification names it.

use crate::error::{Error, Result};

/// The start of the three words of state.
const SEED: u32 = 0xdead_beef;

/// The checksum of `bytes`.
pub(super) fn lookup3(bytes: &[u8]) -> u32 {
    let start = SEED.wrapping_add(bytes.len() as u32);
    let mut state = [start; 3];
    let mut rest = bytes;
    while rest.len() > 12 {
        let (block, after) = rest.split_at(12);
        add(&mut state, block);
        mix(&mut state);
        rest = after;
    }
    if !rest.is_empty() {
        add(&mut state, rest);
        finish(&mut state);
    }
    state[2]
}

/// Adds up to twelve bytes to the state; missing ones are zero.
fn add(state: &mut [u32; 3], bytes: &[u8]) {
    for (word, part) in state.iter_mut().zip(bytes.chunks(4)) {
        let value = part.iter().rev().fold(0u32, |value, &byte| value << 8 | u32::from(byte));
        *word = word.wrapping_add(value);
    }
}

fn mix(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    for (first, second, third) in [(4, 6, 8), (16, 19, 4)] {
        a = a.wrapping_sub(c) ^ c.rotate_left(first);
        c = c.wrapping_add(b);
        b = b.wrapping_sub(a) ^ a.rotate_left(second);
        a = a.wrapping_add(c);
        c = c.wrapping_sub(b) ^ b.rotate_left(third);
        b = b.wrapping_add(a);
    }
    *state = [a, b, c];
}

fn finish(state: &mut [u32; 3]) {
    let [mut a, mut b, mut c] = *state;
    c = (c ^ b).wrapping_sub(b.rotate_left(14));
    a = (a ^ c).wrapping_sub(c.rotate_left(11));
    b = (b ^ a).wrapping_sub(a.rotate_left(25));
    c = (c ^ b).wrapping_sub(b.rotate_left(16));
    a = (a ^ c).wrapping_sub(c.rotate_left(4));
    b = (b ^ a).wrapping_sub(a.rotate_left(14));
    c = (c ^ b).wrapping_sub(b.rotate_left(24));
    *state = [a, b, c];
}

/// Checks that the last four bytes are the checksum of those before, and gives these. With the feature `fuzzing` any
/// checksum is right, so that changed bytes reach the structures behind it.
pub(super) fn verified<'a>(bytes: &'a [u8], what: &str) -> Result<&'a [u8]> {
    let (body, stored) = bytes
        .split_last_chunk::<4>()
        .ok_or_else(|| Error::damaged(format!("the {what} is too short for its checksum")))?;
    if lookup3(body) != u32::from_le_bytes(*stored) && !cfg!(feature = "fuzzing") {
        return Err(Error::damaged(format!("the checksum of the {what} does not match its bytes")));
    }
    Ok(body)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are those in the comments of the published source.
    #[test]
    fn the_published_values() {
        assert_eq!(lookup3(b""), 0xdead_beef);
        assert_eq!(lookup3(b"Four score and seven years ago"), 0x1777_0551);
    }

    #[test]
    fn a_changed_byte_is_found() {
        let mut bytes = b"some metadata".to_vec();
        bytes.extend_from_slice(&lookup3(b"some metadata").to_le_bytes());
        assert_eq!(verified(&bytes, "test").unwrap(), b"some metadata");
        bytes[3] ^= 1;
        assert!(verified(&bytes, "test").is_err());
    }
}
