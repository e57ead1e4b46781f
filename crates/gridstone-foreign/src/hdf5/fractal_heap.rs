//! Fractal heaps, which hold the links and attributes of objects that have many, and shared messages.
//!
//! Managed objects lie in direct blocks. These stand in a table of `width` columns: rows 0 and 1 have blocks of the
//! first size, and each row after them has blocks of twice the size. Rows whose blocks would be too large hold
//! indirect blocks, each a table of its own. An object's offset counts through all blocks of the table.
//!
//! ```text
//! header    "FRHP" | ... | checksum 4
//! direct    "FHDB" | version | heap | offset | [checksum 4] | objects
//! indirect  "FHIB" | version | heap | offset | addresses of blocks | checksum 4
//! id        type in bits 4 and 5 | managed: offset, length; huge: key or place; tiny: the object
//! ```

use super::btree2::{BTree2, width_of};
use super::checksum::verified;
use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// Tables inside tables. Sizes double from row to row, so that sound heaps stay far below.
const DEPTH_MAX: u32 = 16;

/// The header of a heap.
#[derive(Debug)]
pub(super) struct FractalHeap {
    id_length: u16,
    object_bytes_max: u32,
    huge_index: Option<u64>,
    width: u16,
    first_block: u64,
    direct_block_max: u64,
    /// Bits of an offset in the heap.
    offset_bits: u16,
    root: Option<u64>,
    /// Rows of the root if it is an indirect block; 0 if it is a direct one.
    root_rows: u16,
}

/// A block of the table, and the heap's offset of its first byte.
struct Place {
    address: u64,
    start: u64,
    length: u64,
}

impl FractalHeap {
    /// Reads the header at `address`.
    pub(super) fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let widths = reader.widths();
        let length = 26 + 12 * u64::from(widths.length) + 3 * u64::from(widths.offset);
        let prefix = reader.bytes_up_to(budget, address, length, "fractal heap")?;
        let mut cursor = reader.cursor(&prefix, "fractal heap");
        cursor.signature(b"FRHP")?;
        cursor.version(0)?;
        let id_length = cursor.u16()?;
        if cursor.u16()? != 0 {
            return Err(Error::unsupported("a fractal heap has filters, which are not read"));
        }
        verified(&prefix, "fractal heap")?;
        cursor.u8()?;
        let object_bytes_max = cursor.u32()?;
        cursor.length()?;
        let huge_index = cursor.address()?;
        cursor.length()?;
        cursor.address()?;
        for _ in 0..8 {
            cursor.length()?;
        }
        let width = cursor.u16()?;
        let (first_block, direct_block_max) = (cursor.length()?, cursor.length()?);
        let offset_bits = cursor.u16()?;
        cursor.u16()?;
        let (root, root_rows) = (cursor.address()?, cursor.u16()?);
        let sound = width.is_power_of_two()
            && first_block.is_power_of_two()
            && direct_block_max.is_power_of_two()
            && first_block <= direct_block_max
            && (1..=64).contains(&offset_bits);
        if !sound {
            return Err(Error::damaged("the table of a fractal heap has impossible sizes"));
        }
        Ok(Self {
            id_length,
            object_bytes_max,
            huge_index,
            width,
            first_block,
            direct_block_max,
            offset_bits,
            root,
            root_rows,
        })
    }

    /// The object with the identifier `id`.
    pub(super) fn object(&self, reader: &Reader, budget: &Budget, id: &[u8]) -> Result<Vec<u8>> {
        let first = id.first().copied().unwrap_or_default();
        match first >> 4 & 3 {
            0 => self.managed_object(reader, budget, id),
            1 => self.huge_object(reader, budget, id),
            2 => self.tiny_object(id),
            _ => Err(Error::damaged("a fractal heap has an identifier of no known kind")),
        }
    }

    fn managed_object(&self, reader: &Reader, budget: &Budget, id: &[u8]) -> Result<Vec<u8>> {
        let length_bytes = bytes_for(self.direct_block_max.ilog2()).min(width_of(u64::from(self.object_bytes_max)));
        let mut cursor = reader.cursor(id, "identifier of a fractal heap");
        cursor.skip(1)?;
        let offset = cursor.uint(bytes_for(u32::from(self.offset_bits)))?;
        let length = cursor.uint(length_bytes)?;
        let block = self.block_of(reader, budget, offset)?;
        let at = offset - block.start;
        if at.checked_add(length).is_none_or(|end| end > block.length) {
            return Err(Error::damaged("an object of a fractal heap goes past its block"));
        }
        reader.bytes(budget, block.address.saturating_add(at), length, "object of a fractal heap")
    }

    /// The direct block that holds the byte `offset` of the heap.
    fn block_of(&self, reader: &Reader, budget: &Budget, offset: u64) -> Result<Place> {
        let root = self.root.ok_or_else(|| Error::damaged("a fractal heap without blocks has an object"))?;
        let mut place = Place { address: root, start: 0, length: self.first_block };
        let mut rows = self.root_rows;
        let mut depth = 0;
        while rows > 0 {
            depth += 1;
            if depth > DEPTH_MAX {
                return Err(Error::damaged("a fractal heap refers to itself"));
            }
            (place, rows) = self.child_of(reader, budget, &place, rows, offset)?;
        }
        if offset < place.start || offset - place.start >= place.length {
            return Err(Error::damaged("an object of a fractal heap lies outside its blocks"));
        }
        Ok(place)
    }

    /// The child of the indirect block at `block` that holds `offset`, and its rows; 0 if it is a direct block.
    fn child_of(
        &self,
        reader: &Reader,
        budget: &Budget,
        block: &Place,
        rows: u16,
        offset: u64,
    ) -> Result<(Place, u16)> {
        let impossible = || Error::damaged("an object of a fractal heap lies outside its blocks");
        let within = offset.checked_sub(block.start).ok_or_else(impossible)?;
        let row_bytes = self.first_block.checked_mul(u64::from(self.width)).ok_or_else(impossible)?;
        let row = if within < row_bytes { 0 } else { (within / row_bytes).ilog2() + 1 };
        let size = self.block_size(row).ok_or_else(impossible)?;
        let row_start = if row == 0 { 0 } else { row_bytes.checked_shl(row - 1).ok_or_else(impossible)? };
        let column = (within - row_start) / size;
        if row >= u32::from(rows) {
            return Err(impossible());
        }
        let entry = u64::from(row) * u64::from(self.width) + column;
        let address = self.entry_of(reader, budget, block.address, rows, entry)?;
        let start = block.start.checked_add(row_start + column * size).ok_or_else(impossible)?;
        let child = Place { address, start, length: size };
        let rows = if row < self.direct_rows() { 0 } else { (size.ilog2() + 1).saturating_sub(row_bytes.ilog2()) };
        Ok((child, rows as u16))
    }

    /// The address of the child `entry` of an indirect block. Its checksum is verified.
    fn entry_of(&self, reader: &Reader, budget: &Budget, address: u64, rows: u16, entry: u64) -> Result<u64> {
        let prefix = 5 + u64::from(reader.widths().offset) + bytes_for(u32::from(self.offset_bits)) as u64;
        let entries = u64::from(rows) * u64::from(self.width);
        let length = prefix + entries * u64::from(reader.widths().offset) + 4;
        let bytes = reader.bytes(budget, address, length, "block of a fractal heap")?;
        let body = verified(&bytes, "block of a fractal heap")?;
        let mut cursor = reader.cursor(body, "block of a fractal heap");
        cursor.signature(b"FHIB")?;
        cursor.version(0)?;
        cursor.skip((prefix - 5 + entry * u64::from(reader.widths().offset)) as usize)?;
        cursor.defined_address()
    }

    fn block_size(&self, row: u32) -> Option<u64> {
        self.first_block.checked_mul(1u64.checked_shl(row.saturating_sub(1))?)
    }

    /// Rows whose blocks are direct.
    fn direct_rows(&self) -> u32 {
        self.direct_block_max.ilog2() - self.first_block.ilog2() + 2
    }

    fn huge_object(&self, reader: &Reader, budget: &Budget, id: &[u8]) -> Result<Vec<u8>> {
        let widths = reader.widths();
        let mut cursor = reader.cursor(id, "identifier of a fractal heap");
        cursor.skip(1)?;
        if usize::from(self.id_length) > usize::from(widths.offset) + usize::from(widths.length) {
            let (address, length) = (cursor.defined_address()?, cursor.length()?);
            return reader.bytes(budget, address, length, "object of a fractal heap");
        }
        let key = cursor.uint(usize::from(self.id_length.saturating_sub(1)).min(8))?;
        let index = self.huge_index.ok_or_else(|| Error::damaged("a fractal heap has no index of large objects"))?;
        let mut found = None;
        BTree2::read(reader, budget, index)?.for_each_record(reader, budget, &mut |record| {
            let mut cursor = reader.cursor(record, "record of a large object");
            let (address, length) = (cursor.defined_address()?, cursor.length()?);
            if cursor.length()? == key {
                found = Some((address, length));
            }
            Ok(())
        })?;
        let (address, length) =
            found.ok_or_else(|| Error::damaged("a large object is not in the index of its fractal heap"))?;
        reader.bytes(budget, address, length, "object of a fractal heap")
    }

    fn tiny_object(&self, id: &[u8]) -> Result<Vec<u8>> {
        let long = self.id_length > 18;
        let first = usize::from(id.first().copied().unwrap_or_default() & 0x0f);
        let second = usize::from(id.get(1).copied().unwrap_or_default());
        let (start, length) = if long { (2, (first << 8 | second) + 1) } else { (1, first + 1) };
        let found = id.get(start..start + length);
        found.map(<[u8]>::to_vec).ok_or_else(|| Error::damaged("an object is longer than its identifier"))
    }
}

/// Bytes that hold `bits` bits.
fn bytes_for(bits: u32) -> usize {
    bits.div_ceil(8) as usize
}
