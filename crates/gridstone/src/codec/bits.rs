//! Validity bitmaps: one bit per cell, least significant bit first.
//!
//! Layout: bit `i % 8` of byte `i / 8` is cell i; the bits after the last cell are 0.

use crate::base::{Error, Result};

/// The bitmap of `flags`: cell i is set where `flags[i]` is not 0.
pub fn pack(flags: &[u8]) -> Vec<u8> {
    let pack_byte = |flags: &[u8]| flags.iter().rev().fold(0u8, |byte, flag| (byte << 1) | u8::from(*flag != 0));
    flags.chunks(8).map(pack_byte).collect()
}

/// Writes the first `n` cells of `bitmap` to the front of `out`, one byte (0 or 1) per cell.
///
/// Errors: Corruption if `bitmap` does not have exactly the bytes of `n` cells, or a bit after them is set; Input if
/// `out` is shorter than `n`.
pub fn unpack(bitmap: &[u8], n: usize, out: &mut [u8]) -> Result<()> {
    if bitmap.len() != n.div_ceil(8) {
        let (want, found) = (n.div_ceil(8), bitmap.len());
        return Err(Error::corruption(format!("a bitmap of {n} cells has {want} bytes, found {found}")));
    }
    if let (Some(last), used @ 1..) = (bitmap.last(), n % 8)
        && last >> used != 0
    {
        return Err(Error::corruption(format!("a bitmap of {n} cells has bits set after its last cell")));
    }
    let room = out.len();
    let out =
        out.get_mut(..n).ok_or_else(|| Error::input(format!("{n} cells do not fit into a buffer of {room} bytes")))?;
    for (flags, byte) in out.chunks_mut(8).zip(bitmap) {
        for (k, flag) in flags.iter_mut().enumerate() {
            *flag = (byte >> k) & 1;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn exact_bytes() {
        assert_eq!(pack(&[1, 0, 1, 1, 0, 0, 0, 1, 0, 1]), [0b1000_1101, 0b10]);
        assert_eq!(pack(&[]), [0u8; 0]);
    }

    #[test]
    fn roundtrip_at_every_length() {
        for n in 0..70 {
            let flags: Vec<u8> = (0..n).map(|i| u8::from(i * i % 7 < 3)).collect();
            let mut out = vec![9; n];
            unpack(&pack(&flags), n, &mut out).unwrap();
            assert_eq!(out, flags);
        }
    }

    #[test]
    fn a_wrong_length_and_stray_bits_are_corruption() {
        let kind = |bitmap: &[u8], n| unpack(bitmap, n, &mut [0; 64]).unwrap_err().kind();
        assert_eq!(kind(&[0, 0], 8), ErrorKind::Corruption);
        assert_eq!(kind(&[], 1), ErrorKind::Corruption);
        assert_eq!(kind(&[0b100], 2), ErrorKind::Corruption);
        assert_eq!(unpack(&[1], 1, &mut []).unwrap_err().kind(), ErrorKind::Input);
    }
}
