//! Local heaps, which hold names, and global heaps, which hold values of variable length.
//!
//! ```text
//! local    "HEAP" | version | - 3 | bytes | free list | address of the bytes
//! global   "GCOL" | version | - 3 | bytes of all, padded to 16 bytes | objects
//!          an object: index 2 | references 2 | - 4 | bytes, padded to 16 bytes | body, padded to 8 bytes
//! ```

use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};
use std::collections::HashMap;
use std::sync::Mutex;

/// Bytes in front of the objects of a collection, and in front of the body of an object.
const PREFIX_BYTES: usize = 16;

/// The names of a group of the old form.
#[derive(Debug)]
pub(super) struct LocalHeap {
    bytes: Vec<u8>,
}

impl LocalHeap {
    pub(super) fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let widths = reader.widths();
        let length = 8 + 2 * u64::from(widths.length) + u64::from(widths.offset);
        let bytes = reader.bytes(budget, address, length, "local heap")?;
        let mut cursor = reader.cursor(&bytes, "local heap");
        cursor.signature(b"HEAP")?;
        cursor.version(0)?;
        cursor.skip(3)?;
        let (length, _free) = (cursor.length()?, cursor.length()?);
        let bytes = reader.bytes(budget, cursor.defined_address()?, length, "local heap")?;
        Ok(Self { bytes })
    }

    /// The text at `offset`, without the zero that ends it.
    pub(super) fn text(&self, offset: u64) -> Result<&[u8]> {
        let found = usize::try_from(offset).ok().and_then(|offset| self.bytes.get(offset..));
        let found = found.ok_or_else(|| Error::damaged(format!("a name lies at byte {offset} behind its heap")))?;
        let end = found.iter().position(|&byte| byte == 0).unwrap_or(found.len());
        Ok(found.get(..end).unwrap_or_default())
    }
}

/// A collection of values of variable length.
#[derive(Debug)]
struct Collection {
    bytes: Vec<u8>,
    /// Where the body of each object starts, and how long it is.
    objects: HashMap<u16, (usize, usize)>,
}

/// The collection that was read last, since values of one attribute lie together.
#[derive(Debug, Default)]
pub(super) struct GlobalHeaps {
    last: Mutex<Option<(u64, Collection)>>,
}

impl GlobalHeaps {
    /// The object `index` of the collection at `address`.
    pub(super) fn object(&self, reader: &Reader, budget: &Budget, address: u64, index: u16) -> Result<Vec<u8>> {
        let mut last = self.last.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        if last.as_ref().is_none_or(|(held, _)| *held != address) {
            *last = Some((address, Collection::read(reader, budget, address)?));
        }
        let found = last.as_ref().and_then(|(_, collection)| {
            let &(start, length) = collection.objects.get(&index)?;
            collection.bytes.get(start..start.checked_add(length)?)
        });
        let found = found
            .ok_or_else(|| Error::damaged(format!("the global heap at address {address} has no object {index}")))?;
        budget.spend(found.len() as u64)?;
        Ok(found.to_vec())
    }
}

impl Collection {
    fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let prefix = reader.bytes(budget, address, 8 + u64::from(reader.widths().length), "global heap")?;
        let mut cursor = reader.cursor(&prefix, "global heap");
        cursor.signature(b"GCOL")?;
        cursor.version(1)?;
        cursor.skip(3)?;
        let length = cursor.length()?;
        let bytes = reader.bytes(budget, address, length, "global heap")?;
        let mut objects = HashMap::new();
        let mut cursor = reader.cursor(&bytes, "global heap");
        cursor.skip(PREFIX_BYTES)?;
        while cursor.remaining() >= PREFIX_BYTES {
            let index = cursor.u16()?;
            cursor.skip(6)?;
            let length = cursor.length()? as usize;
            cursor.skip(8 - usize::from(reader.widths().length))?;
            if index == 0 {
                break;
            }
            objects.insert(index, (cursor.position(), length));
            let padded = length.checked_next_multiple_of(8).unwrap_or(usize::MAX);
            cursor.skip(padded.min(cursor.remaining().max(length)))?;
        }
        Ok(Self { bytes, objects })
    }
}
