//! The attributes of an object: where they are, and how they are framed.
//!
//! ```text
//! version 1   version | - | bytes of name, type, shape 2 each | name, type, shape, padded to 8 each | value
//! version 2   version | flags | bytes of name, type, shape 2 each | name | type | shape | value
//! version 3   as 2, with the character set before the name
//! ```
//!
//! Many or large attributes lie in a fractal heap, which the attribute info message names.

use super::btree2::BTree2;
use super::dataspace::Dataspace;
use super::datatype::Datatype;
use super::fractal_heap::FractalHeap;
use super::header::{ObjectHeader, kind};
use super::reader::Reader;
use super::shared::SharedHeaps;
use crate::budget::Budget;
use crate::cursor::{Cursor, name_of};
use crate::error::{Error, Result};
use crate::model::Refused;

/// Type of the records of attributes by name.
const ATTRIBUTES_BY_NAME: u8 = 8;
/// Bytes of an identifier in these records.
const HEAP_ID_BYTES: usize = 8;
const TYPE_IS_SHARED: u8 = 0x01;
const SHAPE_IS_SHARED: u8 = 0x02;
const RECORD_IS_SHARED: u8 = 0x02;

/// An attribute with the bytes of its value.
#[derive(Debug)]
pub(super) struct StoredAttribute {
    pub(super) name: String,
    pub(super) datatype: Datatype,
    pub(super) space: Dataspace,
    pub(super) value: Vec<u8>,
}

/// The attributes of an object.
#[derive(Debug, Default)]
pub(super) struct StoredAttributes {
    pub(super) found: Vec<StoredAttribute>,
    pub(super) refused: Vec<Refused>,
}

/// What is needed to read the attributes of an object.
#[derive(Clone, Copy)]
pub(super) struct Access<'a> {
    pub(super) reader: &'a Reader,
    pub(super) budget: &'a Budget,
    pub(super) shared: &'a SharedHeaps,
}

impl StoredAttributes {
    /// Reads the attributes of the object with `header`.
    pub(super) fn read(access: Access<'_>, header: &ObjectHeader) -> Self {
        let mut attributes = Self::default();
        for message in header.all(kind::ATTRIBUTE) {
            let body = access.shared.resolve(access.reader, access.budget, message);
            attributes.add(access, body);
        }
        if let Some(message) = header.first(kind::ATTRIBUTE_INFO) {
            let info = access.reader.cursor(&message.body, "attribute info");
            if let Err(error) = attributes.add_dense(access, info) {
                attributes.refused.push(Refused { name: String::new(), reason: error.to_string() });
            }
        }
        attributes.found.sort_by(|one, other| one.name.cmp(&other.name));
        attributes
    }

    /// The attribute called `name`.
    pub(super) fn get(&self, name: &str) -> Option<&StoredAttribute> {
        self.found.iter().find(|attribute| attribute.name == name)
    }

    fn add(&mut self, access: Access<'_>, body: Result<Vec<u8>>) {
        match body.and_then(|body| parse_named(access, &body)) {
            Ok((_, Ok(attribute))) => self.found.push(attribute),
            Ok((name, Err(error))) => self.refused.push(Refused { name, reason: error.to_string() }),
            Err(error) => self.refused.push(Refused { name: String::new(), reason: error.to_string() }),
        }
    }

    fn add_dense(&mut self, access: Access<'_>, mut info: Cursor<'_>) -> Result<()> {
        info.version(0)?;
        let flags = info.u8()?;
        info.skip(if flags & 1 != 0 { 2 } else { 0 })?;
        let (Some(heap), Some(index)) = (info.address()?, info.address()?) else { return Ok(()) };
        let Access { reader, budget, shared } = access;
        let heap = FractalHeap::read(reader, budget, heap)?;
        let index = BTree2::read(reader, budget, index)?;
        if index.kind != ATTRIBUTES_BY_NAME || usize::from(index.record_bytes) <= HEAP_ID_BYTES {
            return Err(Error::damaged("the index of an object's attributes is of another kind"));
        }
        index.for_each_record(reader, budget, &mut |record| {
            let id = record.get(..HEAP_ID_BYTES).unwrap_or_default();
            let is_shared = record.get(HEAP_ID_BYTES).is_some_and(|flags| flags & RECORD_IS_SHARED != 0);
            let body = match is_shared {
                true => shared.heap_object(reader, budget, kind::ATTRIBUTE, id),
                false => heap.object(reader, budget, id),
            };
            self.add(access, body);
            Ok(())
        })
    }
}

/// The lengths of an attribute's parts.
struct Parts {
    version: u8,
    flags: u8,
    datatype: usize,
    space: usize,
}

/// The name of an attribute, and the attribute if the rest can be read.
fn parse_named(access: Access<'_>, body: &[u8]) -> Result<(String, Result<StoredAttribute>)> {
    let mut cursor = access.reader.cursor(body, "attribute");
    let (version, flags) = (cursor.u8()?, cursor.u8()?);
    if !(1..=3).contains(&version) {
        return Err(cursor.unknown_version(version));
    }
    let (name, datatype, space) = (cursor.u16()?, cursor.u16()?, cursor.u16()?);
    cursor.skip(if version == 3 { 1 } else { 0 })?;
    let parts = Parts { version, flags, datatype: usize::from(datatype), space: usize::from(space) };
    let name = part(&mut cursor, version, usize::from(name))?;
    let end = name.iter().position(|&byte| byte == 0).unwrap_or(name.len());
    let name = name_of(name.get(..end).unwrap_or_default())?;
    let attribute = parse_rest(access, &mut cursor, &name, &parts);
    Ok((name, attribute))
}

fn parse_rest(access: Access<'_>, cursor: &mut Cursor<'_>, name: &str, parts: &Parts) -> Result<StoredAttribute> {
    let Access { reader, budget, shared } = access;
    let has = |flag: u8| parts.version > 1 && parts.flags & flag != 0;
    let resolve = |bytes: &[u8], wanted: u16, flag: u8| match has(flag) {
        true => shared.resolve_reference(reader, budget, wanted, bytes),
        false => Ok(bytes.to_vec()),
    };
    let datatype = resolve(part(cursor, parts.version, parts.datatype)?, kind::DATATYPE, TYPE_IS_SHARED)?;
    let space = resolve(part(cursor, parts.version, parts.space)?, kind::DATASPACE, SHAPE_IS_SHARED)?;
    let datatype = Datatype::parse(&mut reader.cursor(&datatype, "datatype"))?;
    let space = Dataspace::parse(reader.cursor(&space, "dataspace"))?;
    let length = space.cells()?.checked_mul(u64::from(datatype.size));
    let length = length.and_then(|length| usize::try_from(length).ok());
    let length = length.ok_or_else(|| Error::limit("the value of the attribute is larger than memory"))?;
    let value = cursor.take(length)?.to_vec();
    Ok(StoredAttribute { name: name.to_owned(), datatype, space, value })
}

/// The next part of `length` bytes; in the first version it is padded to eight bytes.
fn part<'a>(cursor: &mut Cursor<'a>, version: u8, length: usize) -> Result<&'a [u8]> {
    let padded = if version == 1 { length.next_multiple_of(8) } else { length };
    cursor.take(padded).map(|bytes| bytes.get(..length).unwrap_or_default())
}
