//! Extensible arrays: the entries of chunks of datasets that grow along one axis.
//!
//! The first entries lie in the index block. The others lie in data blocks, which belong to super blocks: super block
//! `n` has 2^(n/2) data blocks of 2^((n+1)/2) times the smallest size. The index block knows the data blocks of the
//! first super blocks, and the addresses of the other super blocks. Large data blocks are cut into pages.
//!
//! ```text
//! header       "EAHD" | version | type | entry bytes | bits of the count | in index block | smallest data block |
//!              pointers | bits of a page | statistics 6 | index block | checksum 4
//! index block  "EAIB" | version | type | header | entries | data blocks | super blocks | checksum 4
//! super block  "EASB" | version | type | header | offset | pages in use | data blocks | checksum 4
//! data block   "EADB" | version | type | header | offset | entries | checksum 4
//!    paged     "EADB" | version | type | header | offset | checksum 4 | pages: entries | checksum 4
//! ```

use super::checksum::verified;
use super::element::{ElementForm, StoredChunk, bit};
use super::reader::Reader;
use crate::budget::Budget;
use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// What is called with the number of each entry and its chunk.
type ElementFn<'f> = &'f mut dyn FnMut(u64, StoredChunk) -> Result<()>;

/// The header, and what is computed from it.
#[derive(Debug)]
struct ExtensibleArray {
    form: ElementForm,
    count_bits: u8,
    in_index_block: u8,
    smallest: u8,
    pointers: u8,
    page_bits: u8,
    index_block: Option<u64>,
}

/// The data blocks of a super block.
#[derive(Debug, Clone, Copy)]
struct SuperBlock {
    /// The number of data blocks.
    blocks: u64,
    /// Entries of each.
    entries: u64,
    /// The number of the first entry.
    first: u64,
}

/// A data block: its place, its entries, and the bits of its pages in use.
struct DataBlock<'a> {
    address: u64,
    first: u64,
    entries: u64,
    pages: &'a [u8],
    first_page: u64,
}

/// Calls `f` with the number of each entry and its chunk.
pub(super) fn for_each_element(reader: &Reader, budget: &Budget, address: u64, f: ElementFn<'_>) -> Result<()> {
    let array = ExtensibleArray::read(reader, budget, address)?;
    match array.index_block {
        Some(block) => array.read_index_block(reader, budget, block, f),
        None => Ok(()),
    }
}

impl ExtensibleArray {
    fn read(reader: &Reader, budget: &Budget, address: u64) -> Result<Self> {
        let widths = reader.widths();
        let length = 16 + 6 * u64::from(widths.length) + u64::from(widths.offset);
        let bytes = reader.bytes(budget, address, length, "extensible array")?;
        let mut cursor = reader.cursor(verified(&bytes, "extensible array")?, "extensible array");
        cursor.signature(b"EAHD")?;
        cursor.version(0)?;
        let client = cursor.u8()?;
        let form = ElementForm::new(reader, client, cursor.u8()?)?;
        let (count_bits, in_index_block, smallest) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
        let (pointers, page_bits) = (cursor.u8()?, cursor.u8()?);
        for _ in 0..6 {
            cursor.length()?;
        }
        let index_block = cursor.address()?;
        let sound = count_bits <= 63
            && smallest.is_power_of_two()
            && pointers.is_power_of_two()
            && smallest.ilog2() <= u32::from(count_bits)
            && page_bits <= 20;
        if !sound {
            return Err(Error::damaged("the header of an extensible array has impossible sizes"));
        }
        Ok(Self { form, count_bits, in_index_block, smallest, pointers, page_bits, index_block })
    }

    fn super_blocks(&self) -> u32 {
        1 + u32::from(self.count_bits) - self.smallest.ilog2()
    }

    /// Super blocks whose data blocks the index block knows.
    fn direct_super_blocks(&self) -> u32 {
        (2 * self.pointers.ilog2()).min(self.super_blocks())
    }

    fn super_block(&self, number: u32) -> Option<SuperBlock> {
        let first = (0..number).try_fold(u64::from(self.in_index_block), |first, number| {
            first.checked_add(self.blocks_of(number)?.checked_mul(self.entries_of(number)?)?)
        });
        Some(SuperBlock { blocks: self.blocks_of(number)?, entries: self.entries_of(number)?, first: first? })
    }

    fn blocks_of(&self, number: u32) -> Option<u64> {
        1u64.checked_shl(number / 2)
    }

    fn entries_of(&self, number: u32) -> Option<u64> {
        1u64.checked_shl(number.div_ceil(2))?.checked_mul(u64::from(self.smallest))
    }

    fn sound_super_block(&self, number: u32) -> Result<SuperBlock> {
        self.super_block(number).ok_or_else(|| Error::damaged("an extensible array has more entries than 2^64"))
    }

    /// Bytes of the number of a block's first entry.
    fn offset_bytes(&self) -> u64 {
        u64::from(self.count_bits).div_ceil(8)
    }

    fn read_index_block(&self, reader: &Reader, budget: &Budget, address: u64, f: ElementFn<'_>) -> Result<()> {
        let pointer = u64::from(reader.widths().offset);
        let direct = self.direct_super_blocks();
        let data_blocks: u64 = (0..direct).filter_map(|number| self.blocks_of(number)).sum();
        let others = u64::from(self.super_blocks() - direct);
        let entries = u64::from(self.in_index_block) * self.form.bytes as u64;
        let length = 6 + pointer + entries + (data_blocks + others) * pointer + 4;
        let bytes = reader.bytes(budget, address, length, "index block")?;
        let mut cursor = reader.cursor(verified(&bytes, "index block")?, "index block");
        cursor.signature(b"EAIB")?;
        cursor.skip(2 + pointer as usize)?;
        for number in 0..u64::from(self.in_index_block) {
            if let Some(chunk) = self.form.parse(&mut cursor)? {
                f(number, chunk)?;
            }
        }
        for number in 0..direct {
            let block = self.sound_super_block(number)?;
            self.read_data_blocks(reader, budget, &mut cursor, block, &[], f)?;
        }
        for number in direct..self.super_blocks() {
            if let Some(address) = cursor.address()? {
                self.read_super_block(reader, budget, address, self.sound_super_block(number)?, f)?;
            }
        }
        Ok(())
    }

    fn read_super_block(
        &self,
        reader: &Reader,
        budget: &Budget,
        address: u64,
        block: SuperBlock,
        f: ElementFn<'_>,
    ) -> Result<()> {
        let pointer = u64::from(reader.widths().offset);
        let page_bytes = self.pages_of(block.entries).div_ceil(8).saturating_mul(block.blocks);
        let prefix = 6 + pointer + self.offset_bytes();
        let length = block.blocks.saturating_mul(pointer).saturating_add(page_bytes).saturating_add(prefix + 4);
        let bytes = reader.bytes(budget, address, length, "super block")?;
        let mut cursor = reader.cursor(verified(&bytes, "super block")?, "super block");
        cursor.signature(b"EASB")?;
        cursor.skip(prefix as usize - 4)?;
        let pages = cursor.take(page_bytes as usize)?;
        self.read_data_blocks(reader, budget, &mut cursor, block, pages, f)
    }

    /// Reads the data blocks whose addresses are at `cursor`.
    fn read_data_blocks(
        &self,
        reader: &Reader,
        budget: &Budget,
        cursor: &mut Cursor<'_>,
        block: SuperBlock,
        pages: &[u8],
        f: ElementFn<'_>,
    ) -> Result<()> {
        for number in 0..block.blocks {
            let Some(address) = cursor.address()? else { continue };
            let data = DataBlock {
                address,
                first: block.first + number * block.entries,
                entries: block.entries,
                pages,
                first_page: number * self.pages_of(block.entries),
            };
            self.read_data_block(reader, budget, &data, f)?;
        }
        Ok(())
    }

    /// The pages of a data block with `entries` entries; 0 if it is not paged.
    fn pages_of(&self, entries: u64) -> u64 {
        if entries > 1 << self.page_bits { entries >> self.page_bits } else { 0 }
    }

    fn read_data_block(&self, reader: &Reader, budget: &Budget, block: &DataBlock<'_>, f: ElementFn<'_>) -> Result<()> {
        let prefix = 6 + u64::from(reader.widths().offset) + self.offset_bytes();
        let pages = self.pages_of(block.entries);
        let entry = self.form.bytes as u64;
        if pages == 0 {
            let length = block.entries.saturating_mul(entry).saturating_add(prefix + 4);
            let bytes = reader.bytes(budget, block.address, length, "data block")?;
            let mut cursor = reader.cursor(verified(&bytes, "data block")?, "data block");
            cursor.signature(b"EADB")?;
            cursor.skip(prefix as usize - 4)?;
            return self.read_entries(&mut cursor, block.first, f);
        }
        let bytes = reader.bytes(budget, block.address, prefix + 4, "data block")?;
        reader.cursor(verified(&bytes, "data block")?, "data block").signature(b"EADB")?;
        let page_bytes = (entry << self.page_bits) + 4;
        for page in (0..pages).filter(|page| bit(block.pages, block.first_page + page)) {
            let at = page.checked_mul(page_bytes).and_then(|at| at.checked_add(prefix + 4)?.checked_add(block.address));
            let at = at.ok_or_else(|| Error::damaged("a page of an extensible array lies behind all files"))?;
            let bytes = reader.bytes(budget, at, page_bytes, "page of a data block")?;
            let body = verified(&bytes, "page of a data block")?;
            let mut cursor = reader.cursor(body, "page of a data block");
            self.read_entries(&mut cursor, block.first + (page << self.page_bits), f)?;
        }
        Ok(())
    }

    fn read_entries(&self, cursor: &mut Cursor<'_>, first: u64, f: ElementFn<'_>) -> Result<()> {
        let mut number = first;
        while cursor.remaining() >= self.form.bytes {
            if let Some(chunk) = self.form.parse(cursor)? {
                f(number, chunk)?;
            }
            number += 1;
        }
        Ok(())
    }
}
