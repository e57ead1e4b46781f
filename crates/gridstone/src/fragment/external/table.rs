//! The sources, the fields and the pages of an external fragment, as its index sections hold them.
//!
//! ```text
//! section 14, stripe 0: u32 sources | per source: sized URI | u32 flags | u64 size | i64 time | sized etag
//!                       and with flag 8: sized template | u32 shift | u32 axes | per axis u64 chunks
//!     flags: 1 the size is known, 2 the time, 4 the etag, 8 the source is a prefix of objects, one per chunk
//! section 15, per page of the stripe: u64 offset | u64 length | i64 time | u32 source | u32 pipeline | u32 decoded length
//!                       | u32 CRC32C | u32 flags | u32 size of its object, the low bits
//!     source 0xffffffff: this fragment; flags: 1 the checksum is known, 2 the page is one record, which all cells have,
//!     4 the size of its object is known
//! section 16, stripe 0: the fields, a JSON list
//! section 17, per list and tile of the stripe: u32 page, counted in the stripe
//! ```

use super::value::ForeignField;
use crate::base::{ByteRange, ByteReader, ByteWriter, Error, ForeignObject, Result, limits, newer};

/// A file of another format, or a prefix under which its chunks are objects.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignSource {
    /// Where it lies, and its state when it was attached. A prefix has the bytes of all files below, the time of the newest, and their
    /// number as the tag.
    pub object: ForeignObject,
    /// How the keys under a prefix are made.
    pub keys: Option<ChunkKeys>,
}

/// The keys of chunks that are objects of their own. Their offsets in the page table are `chunk << shift | place in the object`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkKeys {
    /// The key of a chunk: `{0}`, `{1}` … stand for its place along each axis.
    pub template: String,
    /// Bits of a place in an object.
    pub shift: u32,
    /// Objects along each axis; their numbers are in row order.
    pub counts: Vec<u64>,
}

/// The source number that stands for the fragment itself.
pub const OWN_SOURCE: u32 = u32::MAX;

/// Bytes of a source that hold encoded records.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ForeignPage {
    /// The source, or [`OWN_SOURCE`].
    pub source: u32,
    /// Where the page begins in it.
    pub offset: u64,
    /// Its length there.
    pub length: u64,
    /// When its object was last changed, in microseconds since 1970; 0 where not known, or where the source says it.
    pub time_us: i64,
    /// The place of its pipeline in the root.
    pub pipeline: u32,
    /// Its length when it is decoded.
    pub decoded: u32,
    /// The CRC32C of its bytes, where known.
    pub crc: Option<u32>,
    /// The low 32 bits of the size of its object under a prefix, where known.
    pub object_size: Option<u32>,
    /// Whether it is one record that stands for all cells of its tile.
    pub is_fill: bool,
}

impl ForeignPage {
    /// The records of a tile in a source, of which no more is known than where they lie, and their length when they are decoded.
    pub fn new(source: u32, range: ByteRange, decoded: u32) -> Self {
        let ByteRange { offset, len: length } = range;
        let (time_us, pipeline, crc, object_size, is_fill) = (0, 0, None, None, false);
        Self { source, offset, length, time_us, pipeline, decoded, crc, object_size, is_fill }
    }
}

const SIZE: u32 = 1;
const TIME: u32 = 2;
const ETAG: u32 = 4;
const KEYS: u32 = 8;
/// The longest tag of a source, in bytes.
const ETAG_BYTES_MAX: usize = 1_024;

impl ChunkKeys {
    /// The key of the object with this number; `None` past the last.
    pub fn key(&self, number: u64) -> Option<String> {
        let (mut rest, mut places) = (number, vec![0; self.counts.len()]);
        for (place, count) in places.iter_mut().zip(&self.counts).rev() {
            *place = rest.checked_rem(*count)?;
            rest /= count;
        }
        if rest > 0 {
            return None;
        }
        let put = |key: String, (axis, place): (usize, &u64)| key.replace(&format!("{{{axis}}}"), &place.to_string());
        Some(places.iter().enumerate().fold(self.template.clone(), put))
    }

    /// How many objects there may be; `None` beyond 64 bits with their offsets.
    pub(super) fn span(&self) -> Option<u64> {
        let objects = self.counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count))?;
        let shifted = objects.checked_shl(self.shift)?;
        (self.shift < 64 && shifted >> self.shift == objects).then_some(shifted)
    }
}

pub(super) fn encode_sources(sources: &[ForeignSource]) -> Result<Vec<u8>> {
    let mut w = ByteWriter::new();
    w.u32(sources.len() as u32);
    for ForeignSource { object, keys } in sources {
        let flag = |known: bool, bit: u32| if known { bit } else { 0 };
        w.sized(object.uri.as_bytes())?;
        w.u32(
            flag(object.size.is_some(), SIZE)
                | flag(object.time_us.is_some(), TIME)
                | flag(object.etag.is_some(), ETAG)
                | flag(keys.is_some(), KEYS),
        );
        w.u64(object.size.unwrap_or(0));
        w.i64(object.time_us.unwrap_or(0));
        let etag = object.etag.as_deref().unwrap_or_default();
        if etag.len() > ETAG_BYTES_MAX {
            return Err(Error::input(format!("{} has a tag of {} bytes", object.uri, etag.len())));
        }
        w.sized(etag.as_bytes())?;
        if let Some(keys) = keys {
            w.sized(keys.template.as_bytes())?;
            w.u32(keys.shift);
            w.u32(keys.counts.len() as u32);
            keys.counts.iter().for_each(|count| w.u64(*count));
        }
    }
    Ok(w.into_bytes())
}

pub(super) fn decode_sources(bytes: &[u8]) -> Result<Vec<ForeignSource>> {
    const WHAT: &str = "the sources of an external fragment";
    let mut r = ByteReader::new(bytes, WHAT);
    let count = r.count(28)?;
    let mut sources = Vec::with_capacity(count);
    for _ in 0..count {
        let uri = r.string()?.to_owned();
        let flags = r.u32()?;
        if flags & !(SIZE | TIME | ETAG | KEYS) != 0 {
            return Err(newer(WHAT, format!("the flags {flags:#x}")));
        }
        let has = |bit: u32| flags & bit != 0;
        let (size, time, etag) = (r.u64()?, r.i64()?, r.string()?.to_owned());
        let keys = if has(KEYS) {
            let (template, shift) = (r.string()?.to_owned(), r.u32()?);
            let axes = r.count(8)?;
            let counts: Vec<u64> = (0..axes).map(|_| r.u64()).collect::<Result<_>>()?;
            if counts.contains(&0) || axes > limits::DIMENSIONS_MAX {
                return Err(Error::corruption(format!("{WHAT} have keys over {counts:?} chunks")));
            }
            Some(ChunkKeys { template, shift, counts })
        } else {
            None
        };
        let object = ForeignObject {
            uri,
            size: has(SIZE).then_some(size),
            time_us: has(TIME).then_some(time),
            etag: has(ETAG).then_some(etag),
        };
        sources.push(ForeignSource { object, keys });
    }
    r.expect_end()?;
    Ok(sources)
}

/// Bytes of a page in section 15.
pub(super) const PAGE_BYTES: usize = 48;
const CHECKED: u32 = 1;
const FILL: u32 = 2;
const SIZED: u32 = 4;

pub(super) fn encode_page(page: &ForeignPage, w: &mut ByteWriter) {
    w.u64(page.offset);
    w.u64(page.length);
    w.i64(page.time_us);
    w.u32(page.source);
    w.u32(page.pipeline);
    w.u32(page.decoded);
    w.u32(page.crc.unwrap_or(0));
    let flag = |set: bool, bit: u32| if set { bit } else { 0 };
    let size = page.object_size;
    w.u32(flag(page.crc.is_some(), CHECKED) | flag(page.is_fill, FILL) | flag(size.is_some(), SIZED));
    w.u32(size.unwrap_or(0));
}

pub(super) fn decode_page(bytes: &[u8]) -> Result<ForeignPage> {
    const WHAT: &str = "a page of an external fragment";
    let mut r = ByteReader::new(bytes, WHAT);
    let (offset, length, time_us) = (r.u64()?, r.u64()?, r.i64()?);
    let (source, pipeline, decoded, crc, flags, size) = (r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?, r.u32()?);
    if flags & !(CHECKED | FILL | SIZED) != 0 {
        return Err(newer(WHAT, format!("the flags {flags:#x}")));
    }
    if decoded as usize > limits::BLOCK_BYTES_MAX || length > limits::BLOCK_BYTES_MAX as u64 * 2 {
        return Err(Error::corruption(format!("{WHAT} has {length} bytes, {decoded} when decoded")));
    }
    let crc = (flags & CHECKED != 0).then_some(crc);
    let object_size = (flags & SIZED != 0).then_some(size);
    Ok(ForeignPage { source, offset, length, time_us, pipeline, decoded, crc, object_size, is_fill: flags & FILL != 0 })
}

pub(super) fn encode_fields(fields: &[ForeignField]) -> Result<Vec<u8>> {
    serde_json::to_vec(fields).map_err(|e| Error::input("foreign fields that JSON cannot hold").with_source(e))
}

pub(super) fn decode_fields(bytes: &[u8]) -> Result<Vec<ForeignField>> {
    serde_json::from_slice(bytes).map_err(|e| {
        Error::unsupported(
            "an external fragment decodes its values in a way that this version does not know; use a newer Gridstone",
        )
        .with_source(e)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    fn sources() -> Vec<ForeignSource> {
        let file = ForeignObject { uri: "run_1.h5".into(), size: Some(7), time_us: Some(-3), etag: None };
        let prefix = ForeignObject { uri: "s3://b/z".into(), size: None, time_us: None, etag: Some("\"e\"".into()) };
        let keys = ChunkKeys { template: "c/{0}/{1}".into(), shift: 32, counts: vec![2, 3] };
        vec![ForeignSource { object: file, keys: None }, ForeignSource { object: prefix, keys: Some(keys) }]
    }

    #[test]
    fn sources_and_pages_survive() {
        let bytes = encode_sources(&sources()).unwrap();
        assert_eq!(decode_sources(&bytes).unwrap(), sources());
        for len in 0..bytes.len() {
            assert_eq!(decode_sources(&bytes[..len]).unwrap_err().kind(), ErrorKind::Corruption);
        }
        let page = ForeignPage {
            source: 1,
            offset: 1 << 40,
            length: 9,
            time_us: -1,
            pipeline: 2,
            decoded: 80,
            crc: Some(0),
            object_size: Some(7),
            is_fill: true,
        };
        let mut w = ByteWriter::new();
        encode_page(&page, &mut w);
        assert_eq!((w.len(), decode_page(w.as_slice()).unwrap()), (PAGE_BYTES, page));
        let mut unknown = w.as_slice().to_vec();
        unknown[40] |= 8;
        assert_eq!(decode_page(&unknown).unwrap_err().kind(), ErrorKind::Unsupported);
        let mut huge = w.as_slice().to_vec();
        huge[32..36].copy_from_slice(&u32::MAX.to_le_bytes());
        assert_eq!(decode_page(&huge).unwrap_err().kind(), ErrorKind::Corruption);
    }

    #[test]
    fn keys_count_through_their_axes() {
        let keys = ChunkKeys { template: "{1}-{0}".into(), shift: 32, counts: vec![2, 3] };
        let all: Vec<_> = (0..7).map(|n| keys.key(n)).collect();
        let expected = ["0-0", "1-0", "2-0", "0-1", "1-1", "2-1"].map(|k| Some(k.to_owned()));
        assert_eq!((&all[..6], &all[6]), (&expected[..], &None));
        assert_eq!((keys.span(), ChunkKeys { shift: 62, ..keys }.span()), (Some(6 << 32), None));
    }

    #[test]
    fn a_step_that_is_not_known_is_refused() {
        let text = br#"[{"attr":0,"list":0,"offset":0,"step":4,"value":{"kind":"int","width":4,"count":1},"steps":[{"step":"guess"}]}]"#;
        assert_eq!(decode_fields(text).unwrap_err().kind(), ErrorKind::Unsupported);
        assert_eq!(decode_fields(b"[]").unwrap(), []);
    }
}
