//! The header of a sealed object, and the positions of its segments.
//!
//! ```text
//! 0   8   "GRIDSEAL"
//! 8   4   u32 version, 0
//! 12  1   u8  cipher, 1: AES-256-GCM
//! 13  1   u8  log2 of the plain bytes of a segment, 12 ..= 20
//! 14  2   0
//! 16  16  key id
//! 32  32  salt
//! 64  8   u64 xxh3 of bytes 8 ..< 64
//! 72      segments, each with a tag of 16 bytes; all but the last are full; an empty object has an empty one
//! ```
//!
//! The checksum distinguishes damage from a wrong key and from an object that is not sealed; it protects nothing. Bytes
//! 8 ..< 32, the salt and the name are bound by the key of the object.

use super::cipher::TAG_BYTES;
use crate::base::{ByteReader, ByteWriter, Error, KeyId, Result, xxh3};

/// The length of a header.
pub(super) const HEADER_BYTES: usize = 72;
/// Log2 of the plain bytes of the segments written: four chunks of 4 KiB of a raw page, or a small block. A tag and a
/// cipher start per 16 KiB cost a thousandth of the space and about a fiftieth of the time.
pub(super) const SEGMENT_LOG2: u8 = 14;
/// The largest number of segments of an object: far below what AES-GCM allows under one key.
pub(super) const SEGMENTS_MAX: u64 = 1 << 32;

const MAGIC: &[u8; 8] = b"GRIDSEAL";
const VERSION: u32 = 0;
const CIPHER: u8 = 1;

/// The start of a sealed object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Header {
    pub(super) segment_log2: u8,
    pub(super) key: KeyId,
    pub(super) salt: [u8; 32],
}

/// The kind of an object by its first bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Looks {
    /// A sealed object, whole or damaged.
    Sealed,
    /// The beginning of a sealed object, too short to be one; or no bytes at all.
    Cut,
    /// Something else.
    Other,
}

/// The kind of an object whose first [`HEADER_BYTES`], or all bytes, are `head`. A header with damaged magic is
/// recognized by its checksum.
pub(super) fn looks(head: &[u8]) -> Looks {
    let magic = head.iter().zip(MAGIC).all(|(a, b)| a == b);
    match head.get(..HEADER_BYTES) {
        Some(head) if magic || fits(head) => Looks::Sealed,
        None if magic => Looks::Cut,
        _ => Looks::Other,
    }
}

/// Whether the checksum of a header matches.
fn fits(head: &[u8]) -> bool {
    head.get(8..64).map(|bytes| xxh3(bytes).to_le_bytes()).as_ref().map(|sum| sum.as_slice())
        == head.get(64..HEADER_BYTES)
}

impl Header {
    /// Its bytes.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut out = ByteWriter::new();
        out.raw(MAGIC);
        out.raw(&self.bound());
        out.raw(&self.salt);
        let sum = xxh3(out.as_slice().get(8..).unwrap_or_default());
        out.u64(sum);
        out.into_bytes()
    }

    /// The bytes between magic and salt.
    pub(super) fn bound(&self) -> [u8; 24] {
        let mut bound = [0; 24];
        let (fixed, id) = bound.split_at_mut(8);
        fixed.copy_from_slice(
            &(u64::from(VERSION) | u64::from(CIPHER) << 32 | u64::from(self.segment_log2) << 40).to_le_bytes(),
        );
        id.copy_from_slice(&self.key.0);
        bound
    }

    /// Decodes what [`Header::encode`] wrote, from the first bytes of the object `what`. Unsupported if a newer
    /// Gridstone wrote it; Corruption if the bytes are damaged.
    pub(super) fn decode(head: &[u8], what: &str) -> Result<Self> {
        let damaged =
            |why: &str| Error::corruption(format!("the header of the sealed object {what} is damaged: {why}"));
        let head = head.get(..HEADER_BYTES).ok_or_else(|| damaged("it ends early"))?;
        if !fits(head) {
            return Err(damaged("its checksum differs"));
        }
        if head.get(..8) != Some(MAGIC) {
            return Err(damaged("its first bytes differ"));
        }
        let mut reader = ByteReader::new(head.get(8..).unwrap_or_default(), "a sealed object");
        let (version, cipher, segment_log2, reserved) = (reader.u32()?, reader.u8()?, reader.u8()?, reader.u16()?);
        if version != VERSION || cipher != CIPHER || reserved != 0 || !(12..=20).contains(&segment_log2) {
            return Err(Error::unsupported(format!(
                "{what} is sealed in a way (version {version}, cipher {cipher}, segments of 2^{segment_log2} bytes) that this \
                 version of Gridstone does not know; use a newer one"
            )));
        }
        let (mut key, mut salt) = ([0; 16], [0; 32]);
        key.copy_from_slice(reader.take(16)?);
        salt.copy_from_slice(reader.take(32)?);
        Ok(Self { segment_log2, key: KeyId(key), salt })
    }

    /// Plain bytes of a full segment.
    pub(super) fn segment_bytes(&self) -> usize {
        1 << self.segment_log2
    }
}

/// The positions of the segments of an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Segments {
    /// Plain bytes of a full one.
    pub(super) size: u64,
    /// How many there are, at least one.
    pub(super) count: u64,
    /// Plain bytes of the object.
    pub(super) plain_len: u64,
}

impl Segments {
    /// The segments of an object of `sealed_len` bytes; Corruption if no object has that length.
    pub(super) fn new(header: &Header, sealed_len: u64, what: &str) -> Result<Self> {
        let (size, tag) = (header.segment_bytes() as u64, TAG_BYTES as u64);
        let body = sealed_len.checked_sub(HEADER_BYTES as u64).filter(|body| *body >= tag);
        let count = body.map(|body| body.div_ceil(size + tag)).filter(|count| *count <= SEGMENTS_MAX);
        let segments = body.zip(count).and_then(|(body, count)| {
            let last = body - (count - 1) * (size + tag);
            (last > tag || (last == tag && count == 1)).then(|| Self { size, count, plain_len: body - count * tag })
        });
        segments.ok_or_else(|| {
            Error::corruption(format!("{what} has {sealed_len} bytes, which no sealed object has: it was cut or grew"))
        })
    }

    /// The segments of an object whose end is unknown: none is the last.
    pub(super) fn endless(header: &Header) -> Self {
        Self { size: header.segment_bytes() as u64, count: u64::MAX, plain_len: u64::MAX }
    }

    /// The plain length of segment `number`.
    pub(super) fn len_of(&self, number: u64) -> usize {
        self.plain_len.saturating_sub(number * self.size).min(self.size) as usize
    }

    /// Whether `number` is the last.
    pub(super) fn is_last(&self, number: u64) -> bool {
        number + 1 == self.count
    }

    /// The offset in the object of the sealed bytes of a full segment `number`.
    pub(super) fn sealed_start(&self, number: u64) -> u64 {
        HEADER_BYTES as u64 + number * (self.size + TAG_BYTES as u64)
    }
}
