//! A fragment, or a mask, under another id: what a copy needs, since ids are permanent and a copy is another fragment.
//!
//! An id is named in the first bytes only, under a checksum of their own: all the rest is copied as it is stored.

use super::format::{FRAME_BYTES, decode_header};
use crate::base::{Error, Id, Result, xxh3};

/// Bytes at the start of a fragment that name its id.
pub const HEADER_BYTES: usize = FRAME_BYTES as usize;

/// Where the id lies in a header, and where its checksum.
const HEADER_ID: std::ops::Range<usize> = 32..48;
const HEADER_SUM: std::ops::Range<usize> = 56..64;

/// Where the id of the fragment that it lies over is in a mask.
const MASK_OVER: std::ops::Range<usize> = 16..32;

/// The header of a fragment ([`HEADER_BYTES`] long) that says `from`, saying `to`.
///
/// # Errors
/// Corruption if it is no header of that fragment, Unsupported if it needs features that are unknown.
pub fn renamed_header(header: &[u8], from: Id, to: Id) -> Result<Vec<u8>> {
    let named = |e: Error| e.context(format!("fragment {from}"));
    let mut bytes = header.to_vec();
    if bytes.len() != HEADER_BYTES {
        return Err(named(Error::corruption(format!("{} bytes are no header", bytes.len()))));
    }
    let (found, _) = decode_header(header).map_err(named)?;
    if found != from {
        return Err(named(Error::corruption(format!("its header says that it is fragment {found}"))));
    }
    put(&mut bytes, HEADER_ID, &to.0);
    let sum = xxh3(bytes.get(..HEADER_SUM.start).unwrap_or_default());
    put(&mut bytes, HEADER_SUM, &sum.to_le_bytes());
    Ok(bytes)
}

/// The bytes of a mask over the fragment `from`, saying that it lies over `to`.
///
/// # Errors
/// Corruption if they are not what was written.
pub fn renamed_mask(mask: &[u8], from: Id, to: Id) -> Result<Vec<u8>> {
    let wrong = |why: &str| Err(Error::corruption(format!("the mask over fragment {from}: {why}")));
    let Some((content, sum)) = mask.split_last_chunk::<8>() else { return wrong("it is cut") };
    if u64::from_le_bytes(*sum) != xxh3(content) {
        return wrong("its bytes do not match their checksum");
    }
    if content.get(MASK_OVER) != Some(&from.0[..]) {
        return wrong("it lies over another one");
    }
    let mut bytes = content.to_vec();
    put(&mut bytes, MASK_OVER, &to.0);
    let sum = xxh3(&bytes);
    bytes.extend_from_slice(&sum.to_le_bytes());
    Ok(bytes)
}

fn put(bytes: &mut [u8], at: std::ops::Range<usize>, value: &[u8]) {
    if let Some(place) = bytes.get_mut(at) {
        place.copy_from_slice(value);
    }
}

#[cfg(test)]
mod tests {
    use super::super::Mask;
    use super::super::format::encode_header;
    use super::*;

    const FROM: Id = Id([7; 16]);
    const TO: Id = Id([9; 16]);

    #[test]
    fn a_header_says_another_id_and_nothing_else() {
        let header = encode_header(FROM, 0);
        assert_eq!(renamed_header(&header, FROM, TO).unwrap(), encode_header(TO, 0));
        assert!(renamed_header(&header, TO, FROM).is_err() && renamed_header(&header[..63], FROM, TO).is_err());
        for at in 0..header.len() {
            let mut bad = header.clone();
            bad[at] ^= 4;
            assert!(renamed_header(&bad, FROM, TO).is_err(), "byte {at}");
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn a_mask_lies_over_another_fragment_and_deletes_the_same_rows() {
        let mut mask = Mask::default();
        [(3, 0), (3, 63), (9, 99)].into_iter().for_each(|(tile, row)| mask.add(tile, 100, row));
        let bytes = mask.encode(FROM).unwrap();
        let renamed = renamed_mask(&bytes, FROM, TO).unwrap();
        assert_eq!(Mask::decode(&renamed, TO, 3, 300).unwrap(), mask);
        assert!(Mask::decode(&renamed, FROM, 3, 300).is_err() && renamed_mask(&bytes, TO, FROM).is_err());
        for at in 0..bytes.len() {
            let mut bad = bytes.clone();
            bad[at] ^= 4;
            assert!(renamed_mask(&bad, FROM, TO).is_err() && renamed_mask(&bytes[..at], FROM, TO).is_err());
        }
    }
}
