//! The statistics sections of a stripe: encoded with its index, decoded only for those who ask.

use super::encode::EncodedTile;
use super::index::expect_len;
use super::root::{Field, Role, Root, StripeInfo};
use crate::base::{ByteReader, ByteWriter, Error, Result};
use crate::schema::Sorting;
use crate::tile::{Bound, Statistics, Sum};

const HAS_MIN: u32 = 1;
const HAS_MAX: u32 = 2;
const EXACT_MIN: u32 = 4;
const EXACT_MAX: u32 = 8;
const SUM_INTEGER: u32 = 16;
const SUM_FLOAT: u32 = 32;
const STATISTICS_BYTES: usize = 64;

/// Per tile 64 bytes: u32 flags | u32 number of the first text | u64 nulls | u64 NaNs | min 8 B | max 8 B | sum 16 B | 0.
pub(super) fn encode(tiles: &[EncodedTile], fields: &[Field]) -> Result<(ByteWriter, ByteWriter, u64)> {
    let (mut w, mut texts, mut count) = (ByteWriter::new(), ByteWriter::new(), 0u32);
    for (place, field) in fields.iter().enumerate() {
        for s in tiles.iter().filter_map(|t| t.pages.get(place)?.statistics.as_ref()) {
            let flag = |bound: &Option<Bound>, has: u32, exact: u32| match bound {
                Some(b) => has | if b.exact { exact } else { 0 },
                None => 0,
            };
            let (sum_flag, sum) = match s.sum {
                Sum::None => (0, 0),
                Sum::Integer(n) => (SUM_INTEGER, n as u128),
                Sum::Float(f) => (SUM_FLOAT, u128::from(f.to_bits())),
            };
            w.u32(flag(&s.min, HAS_MIN, EXACT_MIN) | flag(&s.max, HAS_MAX, EXACT_MAX) | sum_flag);
            w.u32(count);
            w.u64(s.null_count);
            w.u64(s.nan_count);
            for bound in [&s.min, &s.max] {
                let bytes = bound.as_ref().map(|b| b.bytes.as_slice()).unwrap_or_default();
                let mut word = [0u8; 8];
                if field.datatype.sorting() == Sorting::Bytes {
                    if bound.is_some() {
                        texts.sized(bytes)?;
                        count += 1;
                    }
                } else {
                    word.iter_mut().zip(bytes).for_each(|(to, from)| *to = *from);
                }
                w.raw(&word);
            }
            w.u128(sum);
            w.u64(0);
        }
    }
    Ok((w, texts, u64::from(count)))
}

/// The statistics of a stripe, those of one attribute after those of another. Corruption if sections and root contradict
/// each other.
pub(super) fn decode(root: &Root, info: StripeInfo, bytes: &[u8], texts: &[u8]) -> Result<Vec<Statistics>> {
    let attrs: Vec<&Field> = root.fields.iter().filter(|f| matches!(f.role, Role::Attribute(_))).collect();
    let tiles = info.tiles as usize;
    let too_many = || Error::corruption("a stripe's index claims more statistics than a file can hold");
    expect_len(bytes, attrs.len().checked_mul(tiles).ok_or_else(too_many)?, STATISTICS_BYTES)?;
    let mut texts = ByteReader::new(texts, "the texts of statistics");
    let mut r = ByteReader::new(bytes, "the statistics");
    let mut statistics = Vec::with_capacity(attrs.len() * tiles);
    let mut seen = 0u64;
    for field in attrs {
        for _ in 0..tiles {
            let flags = r.u32()?;
            if u64::from(r.u32()?) != seen {
                return Err(Error::corruption("a tile's statistics point at the wrong text"));
            }
            let (null_count, nan_count) = (r.u64()?, r.u64()?);
            let mut bound = |has: u32, exact: u32| -> Result<Option<Bound>> {
                let word = r.take(8)?;
                if flags & has == 0 {
                    return Ok(None);
                }
                let bytes = match field.datatype.sorting() {
                    Sorting::Keys => word.get(..field.datatype.element().size()).unwrap_or_default().to_vec(),
                    Sorting::Bytes => {
                        seen += 1;
                        texts.sized()?.to_vec()
                    }
                    Sorting::None => {
                        return Err(Error::corruption(format!("statistics bound values of {}", field.datatype)));
                    }
                };
                Ok(Some(Bound { bytes, exact: flags & exact != 0 }))
            };
            let (min, max) = (bound(HAS_MIN, EXACT_MIN)?, bound(HAS_MAX, EXACT_MAX)?);
            let raw = r.u128()?;
            r.u64()?;
            let sum = match flags & (SUM_INTEGER | SUM_FLOAT) {
                SUM_INTEGER => Sum::Integer(raw as i128),
                SUM_FLOAT => Sum::Float(f64::from_bits(raw as u64)),
                _ => Sum::None,
            };
            statistics.push(Statistics { null_count, nan_count, min, max, sum });
        }
    }
    texts.expect_end()?;
    if seen != info.texts {
        return Err(Error::corruption("a stripe's texts are not as many as its statistics say"));
    }
    Ok(statistics)
}
