//! Messages that several objects share: committed datatypes, and the file's table of shared messages.
//!
//! ```text
//! a reference, version 1   version | type | - 6 | unused length | address of an object header
//!              version 2   version | type | address of an object header
//!              version 3   version | type 1 | heap id 8, or version | type 2 | address
//! the table  "SMTB" | per index: version | kind | message types 2 | smallest 4 | limits 4 | messages 2 | index, heap | checksum 4
//! ```

use super::checksum::verified;
use super::fractal_heap::FractalHeap;
use super::header::{Message, ObjectHeader, kind};
use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// The heaps of shared messages, by the types of messages that they hold.
#[derive(Debug, Default)]
pub(super) struct SharedHeaps {
    heaps: Vec<(u16, FractalHeap)>,
}

impl SharedHeaps {
    /// Reads the table that `message`, of the superblock's extension, refers to.
    pub(super) fn read(reader: &Reader, budget: &Budget, message: &Message) -> Result<Self> {
        let mut cursor = reader.cursor(&message.body, "message of shared messages");
        cursor.version(0)?;
        let address = cursor.defined_address()?;
        let count = cursor.u8()?;
        let entry = 14 + 2 * u64::from(reader.widths().offset);
        let bytes = reader.bytes(budget, address, 8 + entry * u64::from(count), "table of shared messages")?;
        let mut cursor = reader.cursor(verified(&bytes, "table of shared messages")?, "table of shared messages");
        cursor.signature(b"SMTB")?;
        let mut heaps = Vec::new();
        for _ in 0..count {
            cursor.skip(2)?;
            let types = cursor.u16()?;
            cursor.skip(10)?;
            cursor.address()?;
            if let Some(heap) = cursor.address()? {
                heaps.push((types, FractalHeap::read(reader, budget, heap)?));
            }
        }
        Ok(Self { heaps })
    }

    /// The body of `message`, wherever it is.
    pub(super) fn resolve(&self, reader: &Reader, budget: &Budget, message: &Message) -> Result<Vec<u8>> {
        if !message.shared {
            return Ok(message.body.clone());
        }
        self.resolve_reference(reader, budget, message.kind, &message.body)
    }

    /// The body that the bytes of `reference` refer to: a message of type `wanted`.
    pub(super) fn resolve_reference(
        &self,
        reader: &Reader,
        budget: &Budget,
        wanted: u16,
        reference: &[u8],
    ) -> Result<Vec<u8>> {
        let mut cursor = reader.cursor(reference, "shared message");
        let (version, place) = (cursor.u8()?, cursor.u8()?);
        match version {
            1 => cursor.skip(6 + usize::from(reader.widths().length))?,
            2 => {}
            3 if place == 1 => return self.heap_object(reader, budget, wanted, cursor.take(8)?),
            3 => {}
            _ => return Err(cursor.unknown_version(version)),
        }
        let header = ObjectHeader::read(reader, budget, cursor.defined_address()?)?;
        match header.first(wanted) {
            Some(found) if !found.shared => Ok(found.body.clone()),
            Some(found) if found.body.starts_with(&[3, 1]) => {
                let id = found.body.get(2..10).unwrap_or_default();
                self.heap_object(reader, budget, wanted, id)
            }
            _ => Err(Error::damaged(format!("a shared message of type {wanted} is not where it should be"))),
        }
    }

    pub(super) fn heap_object(&self, reader: &Reader, budget: &Budget, wanted: u16, id: &[u8]) -> Result<Vec<u8>> {
        let bit = 1u16.checked_shl(u32::from(wanted)).unwrap_or_default();
        let heap = self.heaps.iter().find(|(types, _)| types & bit != 0);
        let (_, heap) =
            heap.ok_or_else(|| Error::damaged(format!("the file has no table of shared messages of type {wanted}")))?;
        heap.object(reader, budget, id)
    }
}

/// What the extension of a superblock says: shared messages, and whether the file was written in parts.
pub(super) fn read_extension(reader: &Reader, budget: &Budget, address: u64) -> Result<SharedHeaps> {
    let header = ObjectHeader::read(reader, budget, address)?;
    if header.first(kind::DRIVER).is_some() {
        return Err(split_file());
    }
    match header.first(kind::SHARED_TABLE) {
        Some(message) => SharedHeaps::read(reader, budget, message),
        None => Ok(SharedHeaps::default()),
    }
}

/// The error for a file that is one of several.
pub(super) fn split_file() -> Error {
    Error::unsupported(
        "the file is one part of an HDF5 file that was written in several parts; join them with h5repart",
    )
}
