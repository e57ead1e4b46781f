//! Unsigned words of 1, 2, 4 and 8 bytes, so that a filter's loop is written once and compiled per width.

use crate::base::wide;
use bytemuck::Pod;

/// An unsigned integer in the form that blocks store: little-endian, unaligned.
pub(super) trait Word: Copy + Ord {
    /// The word's bytes.
    type Bytes: Pod;
    /// Bytes per word.
    const SIZE: usize;
    /// The bit that makes two's complement order unsigned order when flipped.
    const SIGN: Self;
    fn load(bytes: Self::Bytes) -> Self;
    fn store(self) -> Self::Bytes;
    fn plus(self, other: Self) -> Self;
    fn minus(self, other: Self) -> Self;
    fn flip(self, mask: Self) -> Self;
    fn widen(self) -> u64;
    /// The low bits of `wide`.
    fn narrow(wide: u64) -> Self;
    /// The least and the greatest word, each with `mask` flipped; for no words, `mask` twice.
    fn extremes(words: &[Self::Bytes], mask: Self) -> (Self, Self);
}

macro_rules! word {
    ($($t:ty),*) => { $(
        impl Word for $t {
            type Bytes = [u8; size_of::<$t>()];
            const SIZE: usize = size_of::<$t>();
            const SIGN: Self = 1 << (<$t>::BITS - 1);
            #[inline(always)]
            fn load(bytes: Self::Bytes) -> Self {
                <$t>::from_le_bytes(bytes)
            }
            #[inline(always)]
            fn store(self) -> Self::Bytes {
                self.to_le_bytes()
            }
            #[inline(always)]
            fn plus(self, other: Self) -> Self {
                self.wrapping_add(other)
            }
            #[inline(always)]
            fn minus(self, other: Self) -> Self {
                self.wrapping_sub(other)
            }
            #[inline(always)]
            fn flip(self, mask: Self) -> Self {
                self ^ mask
            }
            #[inline(always)]
            fn widen(self) -> u64 {
                u64::from(self)
            }
            #[inline(always)]
            fn narrow(wide: u64) -> Self {
                wide as $t
            }
            fn extremes(words: &[Self::Bytes], mask: Self) -> (Self, Self) {
                wide! { fn found(words: &[[u8; size_of::<$t>()]], mask: $t) -> ($t, $t) { found_any } }
                #[inline(always)]
                fn found_any(words: &[[u8; size_of::<$t>()]], mask: $t) -> ($t, $t) {
                    if words.is_empty() {
                        return (mask, mask);
                    }
                    let flipped = words.iter().map(|word| <$t>::from_le_bytes(*word) ^ mask);
                    flipped.fold((<$t>::MAX, 0), |(low, high), word| (low.min(word), high.max(word)))
                }
                found(words, mask)
            }
        }
    )* };
}
word!(u8, u16, u32, u64);

/// The whole words of `bytes`; the remainder is omitted.
pub(super) fn words<W: Word>(bytes: &[u8]) -> &[W::Bytes] {
    let whole = bytes.len() - bytes.len() % W::SIZE;
    // The cast cannot fail: byte arrays have alignment 1 and the length is a multiple of theirs.
    bytes.get(..whole).and_then(|b| bytemuck::try_cast_slice(b).ok()).unwrap_or_default()
}

/// The whole words of `bytes`, for writing.
pub(super) fn words_mut<W: Word>(bytes: &mut [u8]) -> &mut [W::Bytes] {
    let whole = bytes.len() - bytes.len() % W::SIZE;
    bytes.get_mut(..whole).and_then(|b| bytemuck::try_cast_slice_mut(b).ok()).unwrap_or_default()
}

/// Evaluates `$body` with the type `$w` bound to the word of `$element`'s width, or `$other` for a width that is none.
macro_rules! by_width {
    ($element:expr, $w:ident => $body:expr, else $other:expr) => {
        match $element.width {
            1 => {
                type $w = u8;
                $body
            }
            2 => {
                type $w = u16;
                $body
            }
            4 => {
                type $w = u32;
                $body
            }
            8 => {
                type $w = u64;
                $body
            }
            _ => $other,
        }
    };
}
pub(super) use by_width;
