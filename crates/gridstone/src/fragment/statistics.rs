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
    let attrs = attributes(root, info, bytes)?;
    let mut entries = Entries::new(bytes, texts);
    let mut statistics = Vec::with_capacity(attrs.len() * info.tiles as usize);
    for field in attrs {
        for _ in 0..info.tiles {
            statistics.push(entries.next(field)?);
        }
    }
    entries.texts.expect_end()?;
    if entries.seen != info.texts {
        return Err(Error::corruption("a stripe's texts are not as many as its statistics say"));
    }
    Ok(statistics)
}

/// Those of one attribute, one per tile; `None` if the fragment has none of it.
pub(super) fn decode_one(
    root: &Root,
    info: StripeInfo,
    (bytes, texts): (&[u8], &[u8]),
    attr: u32,
) -> Result<Option<Vec<Statistics>>> {
    let attrs = attributes(root, info, bytes)?;
    let Some(place) = attrs.iter().position(|f| f.role == Role::Attribute(attr)) else { return Ok(None) };
    let Some(field) = attrs.get(place) else { return Ok(None) };
    let mut entries = Entries::new(bytes, texts);
    entries.skip(place * info.tiles as usize, info.texts)?;
    (0..info.tiles).map(|_| entries.next(field)).collect::<Result<_>>().map(Some)
}

/// The attributes that a stripe has statistics of, whose section is as long as they need.
fn attributes<'r>(root: &'r Root, info: StripeInfo, bytes: &[u8]) -> Result<Vec<&'r Field>> {
    let attrs: Vec<&Field> = root.fields.iter().filter(|f| matches!(f.role, Role::Attribute(_))).collect();
    let too_many = || Error::corruption("a stripe's index claims more statistics than a file can hold");
    expect_len(bytes, attrs.len().checked_mul(info.tiles as usize).ok_or_else(too_many)?, STATISTICS_BYTES)?;
    Ok(attrs)
}

/// Statistics one after the other, and their texts.
struct Entries<'a> {
    bytes: ByteReader<'a>,
    texts: ByteReader<'a>,
    /// Texts read.
    seen: u64,
}

impl<'a> Entries<'a> {
    fn new(bytes: &'a [u8], texts: &'a [u8]) -> Self {
        let (bytes, texts) =
            (ByteReader::new(bytes, "the statistics"), ByteReader::new(texts, "the texts of statistics"));
        Self { bytes, texts, seen: 0 }
    }

    /// Passes over the first `count`, in a stripe of `texts` texts.
    fn skip(&mut self, count: usize, texts: u64) -> Result<()> {
        self.bytes.take(count * STATISTICS_BYTES)?;
        if self.bytes.remaining() < STATISTICS_BYTES {
            return Ok(());
        }
        let mut ahead = self.bytes.clone();
        ahead.u32()?;
        let first = u64::from(ahead.u32()?);
        if first > texts {
            return Err(Error::corruption("a tile's statistics point at a text that is not there"));
        }
        while self.seen < first {
            self.texts.sized()?;
            self.seen += 1;
        }
        Ok(())
    }

    fn next(&mut self, field: &Field) -> Result<Statistics> {
        let flags = self.bytes.u32()?;
        if u64::from(self.bytes.u32()?) != self.seen {
            return Err(Error::corruption("a tile's statistics point at the wrong text"));
        }
        let (null_count, nan_count) = (self.bytes.u64()?, self.bytes.u64()?);
        let mut bound = |has: u32, exact: u32| -> Result<Option<Bound>> {
            let word = self.bytes.take(8)?;
            if flags & has == 0 {
                return Ok(None);
            }
            let bytes = match field.datatype.sorting() {
                Sorting::Keys => word.get(..field.datatype.element().size()).unwrap_or_default().to_vec(),
                Sorting::Bytes => {
                    self.seen += 1;
                    self.texts.sized()?.to_vec()
                }
                Sorting::None => {
                    return Err(Error::corruption(format!("statistics bound values of {}", field.datatype)));
                }
            };
            Ok(Some(Bound { bytes, exact: flags & exact != 0 }))
        };
        let (min, max) = (bound(HAS_MIN, EXACT_MIN)?, bound(HAS_MAX, EXACT_MAX)?);
        let raw = self.bytes.u128()?;
        self.bytes.u64()?;
        let sum = match flags & (SUM_INTEGER | SUM_FLOAT) {
            SUM_INTEGER => Sum::Integer(raw as i128),
            SUM_FLOAT => Sum::Float(f64::from_bits(raw as u64)),
            _ => Sum::None,
        };
        Ok(Statistics { null_count, nan_count, min, max, sum })
    }
}
