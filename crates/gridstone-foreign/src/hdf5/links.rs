//! The members of a group.
//!
//! ```text
//! old groups   symbol table message: address of a B-tree of version 1, address of a local heap
//!              "TREE" 0 -> "SNOD" | version | - | entries 2 | each: name | header | cache 4 | - 4 | scratch 16
//! new groups   link messages, or a link info message: address of a fractal heap, address of a B-tree of version 2
//!              a link: version | flags | [type] | [order 8] | [character set] | name bytes | name | what it refers to
//! ```

use super::btree1::BTree1;
use super::btree2::BTree2;
use super::fractal_heap::FractalHeap;
use super::header::{ObjectHeader, kind};
use super::heaps::LocalHeap;
use super::reader::Reader;
use crate::budget::Budget;
use crate::cursor::{Cursor, name_of};
use crate::error::{Error, Result};
use crate::model::Refused;

/// Type of the records of links by name.
const LINKS_BY_NAME: u8 = 5;
/// The symbol table entry is a soft link.
const SOFT_ENTRY: u32 = 2;

/// A member of a group.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Link {
    pub(super) name: String,
    pub(super) order: Option<u64>,
    pub(super) to: LinkTo,
}

/// What a member refers to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LinkTo {
    Object(u64),
    Soft(String),
    External {
        file: String,
        path: String,
    },
    /// A link of a kind that a program defined for itself.
    UserDefined(u8),
}

/// The members of a group, in the order of their creation if it is known, else by name.
#[derive(Debug, Default)]
pub(super) struct Links {
    pub(super) links: Vec<Link>,
    pub(super) refused: Vec<Refused>,
}

impl Links {
    /// Reads the members of the group with `header`.
    pub(super) fn read(reader: &Reader, budget: &Budget, header: &ObjectHeader) -> Self {
        let mut found = Self::default();
        for message in header.all(kind::LINK) {
            found.add(Link::parse(reader.cursor(&message.body, "link")));
        }
        if let Some(message) = header.first(kind::LINK_INFO) {
            let result = found.add_dense(reader, budget, reader.cursor(&message.body, "link info"));
            found.refuse(result);
        }
        if let Some(message) = header.first(kind::SYMBOL_TABLE) {
            let result = found.add_old(reader, budget, reader.cursor(&message.body, "symbol table"));
            found.refuse(result);
        }
        if found.links.iter().all(|link| link.order.is_some()) {
            found.links.sort_by_key(|link| link.order);
        } else {
            found.links.sort_by(|one, other| one.name.cmp(&other.name));
        }
        found
    }

    fn add(&mut self, link: Result<Link>) {
        match link {
            Ok(link) => self.links.push(link),
            Err(error) => self.refuse(Err(error)),
        }
    }

    fn refuse(&mut self, result: Result<()>) {
        if let Err(error) = result {
            self.refused.push(Refused { name: String::new(), reason: error.to_string() });
        }
    }

    fn add_dense(&mut self, reader: &Reader, budget: &Budget, mut info: Cursor<'_>) -> Result<()> {
        info.version(0)?;
        let flags = info.u8()?;
        info.skip(if flags & 1 != 0 { 8 } else { 0 })?;
        let (Some(heap), Some(index)) = (info.address()?, info.address()?) else { return Ok(()) };
        let heap = FractalHeap::read(reader, budget, heap)?;
        let index = BTree2::read(reader, budget, index)?;
        if index.kind != LINKS_BY_NAME || index.record_bytes <= 4 {
            return Err(Error::damaged("the index of a group's links is of another kind"));
        }
        index.for_each_record(reader, budget, &mut |record| {
            let id = record.get(4..).unwrap_or_default();
            let link = heap.object(reader, budget, id);
            self.add(link.and_then(|link| Link::parse(reader.cursor(&link, "link"))));
            Ok(())
        })
    }

    fn add_old(&mut self, reader: &Reader, budget: &Budget, mut message: Cursor<'_>) -> Result<()> {
        let (tree, heap) = (message.defined_address()?, message.defined_address()?);
        let heap = LocalHeap::read(reader, budget, heap)?;
        BTree1::Group.for_each_leaf(reader, budget, tree, &mut |_, node| {
            let result = self.add_node(reader, budget, &heap, node);
            self.refuse(result);
            Ok(())
        })
    }

    fn add_node(&mut self, reader: &Reader, budget: &Budget, heap: &LocalHeap, address: u64) -> Result<()> {
        let prefix = reader.bytes(budget, address, 8, "symbol table node")?;
        let mut cursor = reader.cursor(&prefix, "symbol table node");
        cursor.signature(b"SNOD")?;
        cursor.version(1)?;
        cursor.skip(1)?;
        let count = cursor.u16()?;
        let entry = 24 + u64::from(reader.widths().length) + u64::from(reader.widths().offset);
        let length = entry * u64::from(count);
        let bytes = reader.bytes(budget, address.saturating_add(8), length, "symbol table node")?;
        let mut cursor = reader.cursor(&bytes, "symbol table node");
        for _ in 0..count {
            let link = old_entry(reader, budget, heap, cursor.take(entry as usize)?);
            self.add(link);
        }
        Ok(())
    }
}

fn old_entry(reader: &Reader, budget: &Budget, heap: &LocalHeap, entry: &[u8]) -> Result<Link> {
    let mut cursor = reader.cursor(entry, "symbol table entry");
    let name = cursor.length()?;
    let object = cursor.address()?;
    let cache = cursor.u32()?;
    cursor.skip(4)?;
    // Entries may share a text of the heap, so that each use counts.
    let text = |offset: u64| {
        let found = heap.text(offset)?;
        budget.spend(found.len() as u64)?;
        name_of(found)
    };
    let name = text(name)?;
    let to = match object {
        _ if cache == SOFT_ENTRY => LinkTo::Soft(text(u64::from(cursor.u32()?))?),
        Some(address) => LinkTo::Object(address),
        None => return Err(Error::damaged(format!("the member {name:?} has no address"))),
    };
    Ok(Link { name, order: None, to })
}

impl Link {
    fn parse(mut cursor: Cursor<'_>) -> Result<Self> {
        cursor.version(1)?;
        let flags = cursor.u8()?;
        let link_type = if flags & 0x08 != 0 { cursor.u8()? } else { 0 };
        let order = if flags & 0x04 != 0 { Some(cursor.u64()?) } else { None };
        cursor.skip(if flags & 0x10 != 0 { 1 } else { 0 })?;
        let length = cursor.uint(1 << (flags & 3))?;
        let length = usize::try_from(length).map_err(|_| Error::damaged("the name of a link has no end"))?;
        let name = name_of(cursor.take(length)?)?;
        let to = match link_type {
            0 => LinkTo::Object(cursor.defined_address()?),
            1 => {
                let length = cursor.u16()?;
                LinkTo::Soft(name_of(cursor.take(usize::from(length))?)?)
            }
            64 => {
                let length = cursor.u16()?;
                let value = cursor.take(usize::from(length))?;
                let mut value = cursor.over(value, "external link");
                value.skip(1)?;
                LinkTo::External { file: name_of(value.until_zero()?)?, path: name_of(value.until_zero()?)? }
            }
            other => LinkTo::UserDefined(other),
        };
        Ok(Self { name, order, to })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::cursor::Widths;

    #[test]
    fn links_of_each_kind() {
        let parse = |bytes: &[u8]| Link::parse(Cursor::new(bytes, Widths { offset: 4, length: 4 }, "link"));
        let hard = parse(b"\x01\x04\x07\0\0\0\0\0\0\0\x01a\x10\0\0\0").unwrap();
        assert_eq!(hard, Link { name: "a".into(), order: Some(7), to: LinkTo::Object(16) });
        let soft = parse(b"\x01\x08\x01\x01b\x02\0/a").unwrap();
        assert_eq!(soft.to, LinkTo::Soft("/a".into()));
        let external = parse(b"\x01\x08\x40\x01c\x08\0\0f.h5\0/\0").unwrap();
        assert_eq!(external.to, LinkTo::External { file: "f.h5".into(), path: "/".into() });
        assert_eq!(parse(b"\x01\x08\x80\x01d\0\0").unwrap().to, LinkTo::UserDefined(128));
        assert!(parse(b"\x01\x03\xff\xff\xff\xff\xff\xff\xff\xffx").is_err());
    }
}
