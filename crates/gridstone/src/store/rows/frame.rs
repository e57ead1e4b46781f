//! The frame of row pages and of values that are objects of their own.
//!
//! ```text
//! magic    8 bytes: "GSROWS\0\0" a page of rows, "GSVALUE\0" a value
//! version  u32, 1
//! coding   u32: 0 as it is, 1 zstd
//! length   u64: bytes of the content
//! content  coded
//! xxh3     u64 over all before
//! ```
//! An [`ObjectRef`] has the checksum of the content, not of its coding. So an object that is made anew by another
//! release of the compressor matches its references.

use crate::base::{ByteReader, ByteWriter, Error, Id, Result, limits, newer, xxh3};
use bytes::Bytes;

pub(super) const ROWS: &[u8; 8] = b"GSROWS\0\0";
pub(super) const VALUE: &[u8; 8] = b"GSVALUE\0";
const VERSION: u32 = 1;
/// Bytes before the content.
const HEAD: usize = 24;
/// Contents from this size on are compressed.
const COMPRESSED_BYTES_MIN: usize = 512;
const LEVEL: i32 = 3;
/// Bytes of an [`ObjectRef`].
pub(super) const REFERENCE_LEN: usize = 32;

/// A reference to an object in `_manifest/`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) struct ObjectRef {
    pub(in crate::store) id: Id,
    /// The checksum of its content.
    pub(in crate::store) xxh3: u64,
    /// Bytes of its content.
    pub(in crate::store) bytes: u64,
}

impl ObjectRef {
    pub(super) fn encode(self) -> Bytes {
        let mut w = ByteWriter::new();
        w.raw(&self.id.0);
        w.u64(self.xxh3);
        w.u64(self.bytes);
        w.into_bytes().into()
    }

    pub(super) fn decode(bytes: &[u8]) -> Result<Self> {
        if bytes.len() != REFERENCE_LEN {
            return Err(Error::corruption(format!("a reference of {} bytes", bytes.len())));
        }
        let mut r = ByteReader::new(bytes, "a reference");
        Ok(Self { id: r.id()?, xxh3: r.u64()?, bytes: r.u64()? })
    }
}

/// The object with this content.
pub(super) fn encode(magic: &[u8; 8], content: &[u8]) -> Result<Vec<u8>> {
    let bytes_max = if magic == ROWS { limits::ROW_PAGE_BYTES_MAX } else { limits::ROW_VALUE_BYTES_MAX };
    if content.len() > bytes_max {
        return Err(Error::input(format!(
            "a page of the manifest would have {} bytes, at most {bytes_max} are allowed: remove metadata with very long keys or values",
            content.len()
        )));
    }
    let packed = match content.len() >= COMPRESSED_BYTES_MIN {
        true => zstd::bulk::compress(content, LEVEL).ok().filter(|packed| packed.len() < content.len()),
        false => None,
    };
    let mut w = ByteWriter::new();
    w.raw(magic);
    w.u32(VERSION);
    w.u32(u32::from(packed.is_some()));
    w.u64(content.len() as u64);
    w.raw(packed.as_deref().unwrap_or(content));
    let sum = xxh3(w.as_slice());
    w.u64(sum);
    Ok(w.into_bytes())
}

/// The content of the object in `bytes`. Unsupported if a newer release wrote it, Corruption if it is damaged.
pub(super) fn decode(magic: &[u8; 8], bytes: &[u8], bytes_max: usize) -> Result<Bytes> {
    let (body, sum) = bytes.split_last_chunk::<8>().ok_or_else(|| Error::corruption("it is cut"))?;
    let mut r = ByteReader::new(body, "a manifest object");
    if r.take(magic.len())? != magic {
        return Err(Error::corruption("it does not start with its magic"));
    }
    if u64::from_le_bytes(*sum) != xxh3(body) {
        return Err(Error::corruption("its bytes do not match their checksum"));
    }
    let (version, coding) = (r.u32()?, r.u32()?);
    if version != VERSION {
        return Err(newer("it", format!("version {version} of its frame")));
    }
    let length = usize::try_from(r.u64()?).unwrap_or(usize::MAX);
    if length > bytes_max {
        return Err(Error::corruption(format!("it is said to hold {length} bytes, at most {bytes_max} are possible")));
    }
    let coded = body.get(HEAD..).unwrap_or_default();
    let content = match coding {
        0 => coded.to_vec(),
        1 => zstd::bulk::decompress(coded, length)
            .map_err(|e| Error::corruption("its content cannot be decompressed").with_source(e))?,
        other => return Err(newer("it", format!("the coding {other}"))),
    };
    if content.len() != length {
        return Err(Error::corruption(format!("it holds {} bytes, not {length}", content.len())));
    }
    Ok(content.into())
}
