//! The entries of fixed and extensible arrays: where a chunk is.
//!
//! ```text
//! without filters   address
//! with filters      address | stored bytes | filter mask 4
//! ```

use super::reader::Reader;
use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// A stored chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct StoredChunk {
    pub(super) address: u64,
    /// `None`: as long as a chunk without filters.
    pub(super) length: Option<u64>,
    pub(super) filter_mask: u32,
}

/// How long entries are, and whether they are those of filtered chunks.
#[derive(Debug, Clone, Copy)]
pub(super) struct ElementForm {
    /// Bytes of an entry.
    pub(super) bytes: usize,
    /// Bytes of the length of a filtered chunk.
    length_bytes: Option<usize>,
}

impl ElementForm {
    /// The form of entries of `bytes` bytes in an array of type `client`.
    pub(super) fn new(reader: &Reader, client: u8, bytes: u8) -> Result<Self> {
        let (bytes, address) = (usize::from(bytes), usize::from(reader.widths().offset));
        let length_bytes = match (client, bytes.checked_sub(address)) {
            (0, Some(0)) => None,
            (1, Some(spare)) if (5..=12).contains(&spare) => Some(spare - 4),
            _ => {
                return Err(Error::damaged(format!(
                    "an index of chunks of type {client} has entries of {bytes} bytes"
                )));
            }
        };
        Ok(Self { bytes, length_bytes })
    }

    /// The entry at `cursor`; `None` if the chunk was never written.
    pub(super) fn parse(self, cursor: &mut Cursor<'_>) -> Result<Option<StoredChunk>> {
        let address = cursor.address()?;
        let (length, filter_mask) = match self.length_bytes {
            Some(width) => (Some(cursor.uint(width)?), cursor.u32()?),
            None => (None, 0),
        };
        Ok(address.map(|address| StoredChunk { address, length, filter_mask }))
    }
}

/// Whether bit `at` is set, counted from the highest bit of the first byte.
pub(super) fn bit(bits: &[u8], at: u64) -> bool {
    let byte = usize::try_from(at / 8).ok().and_then(|byte| bits.get(byte));
    byte.is_some_and(|byte| byte & (0x80 >> (at % 8)) != 0)
}
