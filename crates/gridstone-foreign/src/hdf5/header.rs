//! Object headers: the messages that describe an object.
//!
//! ```text
//! version 1   version | - | messages 2 | references 4 | bytes 4 | - 4 | messages
//!             a message: type 2 | bytes 2 | flags | - 3 | body
//! version 2   "OHDR" | version | flags | [times 16] | [attribute limits 4] | bytes of the messages | messages | checksum 4
//!             a message: type | bytes 2 | flags | [creation order 2] | body
//!             a continuation: "OCHK" | messages | checksum 4
//! ```
//!
//! A header may go on elsewhere, in the order of its continuation messages.

use super::checksum::verified;
use super::reader::Reader;
use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::error::{Error, Result};
use std::collections::{HashSet, VecDeque};

/// The types of messages that are read.
pub(super) mod kind {
    pub(in crate::hdf5) const DATASPACE: u16 = 0x01;
    pub(in crate::hdf5) const LINK_INFO: u16 = 0x02;
    pub(in crate::hdf5) const DATATYPE: u16 = 0x03;
    pub(in crate::hdf5) const OLD_FILL: u16 = 0x04;
    pub(in crate::hdf5) const FILL: u16 = 0x05;
    pub(in crate::hdf5) const LINK: u16 = 0x06;
    pub(in crate::hdf5) const EXTERNAL_FILES: u16 = 0x07;
    pub(in crate::hdf5) const LAYOUT: u16 = 0x08;
    pub(in crate::hdf5) const GROUP_INFO: u16 = 0x0a;
    pub(in crate::hdf5) const FILTERS: u16 = 0x0b;
    pub(in crate::hdf5) const ATTRIBUTE: u16 = 0x0c;
    pub(in crate::hdf5) const SHARED_TABLE: u16 = 0x0f;
    pub(in crate::hdf5) const CONTINUATION: u16 = 0x10;
    pub(in crate::hdf5) const SYMBOL_TABLE: u16 = 0x11;
    pub(in crate::hdf5) const DRIVER: u16 = 0x14;
    pub(in crate::hdf5) const ATTRIBUTE_INFO: u16 = 0x15;
}

/// The flag of a message whose body says where the message is.
const SHARED: u8 = 0x02;
/// The flag of a message that a reader must know, or not read the object.
const FAIL_IF_UNKNOWN: u8 = 0x80;
/// The last type of message that the format has.
const KNOWN_MAX: u16 = 0x18;
/// Pieces of a header.
const PIECES_MAX: usize = 4096;

/// A message of an object header.
#[derive(Debug, Clone)]
pub(super) struct Message {
    pub(super) kind: u16,
    /// Whether the body says where the message is.
    pub(super) shared: bool,
    pub(super) body: Vec<u8>,
}

/// The messages of an object.
#[derive(Debug)]
pub(super) struct ObjectHeader {
    pub(super) messages: Vec<Message>,
}

/// How messages are framed.
#[derive(Debug, Clone, Copy)]
enum Framing {
    First,
    Second { with_creation_order: bool },
}

impl ObjectHeader {
    /// Reads the header at `address`.
    pub(super) fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let prefix = reader.bytes_up_to(budget, address, 48, "object header")?;
        let mut header = Self { messages: Vec::new() };
        let mut pieces = VecDeque::new();
        let framing = if prefix.starts_with(b"OHDR") {
            header.first_piece_of_version_2(reader, budget, address, &prefix)?
        } else {
            header.first_piece_of_version_1(reader, budget, address, &prefix)?
        };
        header.find_continuations(reader, 0, &mut pieces)?;
        let mut seen = HashSet::new();
        while let Some((place, length)) = pieces.pop_front() {
            if !seen.insert(place) || seen.len() > PIECES_MAX {
                return Err(Error::damaged("the object header continues in a circle"));
            }
            let from = header.messages.len();
            let bytes = reader.bytes(budget, place, length, "object header")?;
            header.add_piece(reader, &bytes, framing)?;
            header.find_continuations(reader, from, &mut pieces)?;
        }
        Ok(header)
    }

    /// The first message of `kind`.
    pub(super) fn first(&self, kind: u16) -> Option<&Message> {
        self.messages.iter().find(|message| message.kind == kind)
    }

    /// All messages of `kind`.
    pub(super) fn all(&self, kind: u16) -> impl Iterator<Item = &Message> {
        self.messages.iter().filter(move |message| message.kind == kind)
    }

    fn first_piece_of_version_1(
        &mut self,
        reader: &Reader,
        budget: &Budget,
        address: u64,
        prefix: &[u8],
    ) -> Result<Framing> {
        let mut cursor = reader.cursor(prefix, "object header");
        cursor.version(1)?;
        cursor.skip(7)?;
        let length = u64::from(cursor.u32()?);
        let bytes = reader.bytes(budget, address.saturating_add(16), length, "object header")?;
        self.add_messages(reader, &bytes, Framing::First)?;
        Ok(Framing::First)
    }

    fn first_piece_of_version_2(
        &mut self,
        reader: &Reader,
        budget: &Budget,
        address: u64,
        prefix: &[u8],
    ) -> Result<Framing> {
        let mut cursor = reader.cursor(prefix, "object header");
        cursor.signature(b"OHDR")?;
        cursor.version(2)?;
        let flags = cursor.u8()?;
        cursor.skip(if flags & 0x20 != 0 { 16 } else { 0 })?;
        cursor.skip(if flags & 0x10 != 0 { 4 } else { 0 })?;
        let length = cursor.uint(1 << (flags & 3))?;
        let start = cursor.position() as u64;
        let whole = length.checked_add(start + 4).ok_or_else(|| Error::damaged("the object header has no end"))?;
        let bytes = reader.bytes(budget, address, whole, "object header")?;
        let messages = verified(&bytes, "object header")?.get(start as usize..).unwrap_or_default();
        let framing = Framing::Second { with_creation_order: flags & 0x04 != 0 };
        self.add_messages(reader, messages, framing)?;
        Ok(framing)
    }

    /// Adds the messages of a continuation.
    fn add_piece(&mut self, reader: &Reader, bytes: &[u8], framing: Framing) -> Result<()> {
        match framing {
            Framing::First => self.add_messages(reader, bytes, framing),
            Framing::Second { .. } => {
                let body = verified(bytes, "object header's continuation")?;
                let mut cursor = reader.cursor(body, "object header's continuation");
                cursor.signature(b"OCHK")?;
                self.add_messages(reader, cursor.rest(), framing)
            }
        }
    }

    fn add_messages(&mut self, reader: &Reader, bytes: &[u8], framing: Framing) -> Result<()> {
        let mut cursor = reader.cursor(bytes, "object header");
        let prefix = match framing {
            Framing::First => 8,
            Framing::Second { with_creation_order } => 4 + if with_creation_order { 2 } else { 0 },
        };
        while cursor.remaining() >= prefix {
            let (kind, length, flags);
            if let Framing::First = framing {
                (kind, length, flags) = (cursor.u16()?, cursor.u16()?, cursor.u8()?);
                cursor.skip(3)?;
            } else {
                (kind, length, flags) = (u16::from(cursor.u8()?), cursor.u16()?, cursor.u8()?);
                cursor.skip(prefix - 4)?;
            }
            let body = cursor.take(usize::from(length))?;
            if kind > KNOWN_MAX && flags & FAIL_IF_UNKNOWN != 0 {
                return Err(Error::unsupported(format!(
                    "the object has a message of type {kind} that a reader must know"
                )));
            }
            if kind != 0 {
                self.messages.push(Message { kind, shared: flags & SHARED != 0, body: body.to_vec() });
            }
        }
        Ok(())
    }

    fn find_continuations(&self, reader: &Reader, from: usize, into: &mut VecDeque<(u64, u64)>) -> Result<()> {
        let added = self.messages.get(from..).unwrap_or_default();
        for message in added.iter().filter(|message| message.kind == kind::CONTINUATION) {
            let mut cursor: Cursor<'_> = reader.cursor(&message.body, "continuation of an object header");
            into.push_back((cursor.defined_address()?, cursor.length()?));
        }
        Ok(())
    }
}
