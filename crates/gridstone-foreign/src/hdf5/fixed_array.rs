//! Fixed arrays: the entries of chunks of datasets whose axes are all bounded.
//!
//! ```text
//! header      "FAHD" | version | type | entry bytes | bits of a page | entries | address | checksum 4
//! data block  "FADB" | version | type | header | entries | checksum 4
//!    paged    "FADB" | version | type | header | pages in use | checksum 4 | pages: entries | checksum 4
//! ```

use super::checksum::verified;
use super::element::{ElementForm, StoredChunk, bit};
use super::reader::Reader;
use crate::budget::Budget;
use crate::error::{Error, Result};

/// Bits of the number of entries in a page.
const PAGE_BITS_MAX: u8 = 20;

/// Calls `f` with the number of each entry and its chunk.
pub(super) fn for_each_element(
    reader: &Reader,
    budget: &Budget,
    address: u64,
    f: &mut dyn FnMut(u64, StoredChunk) -> Result<()>,
) -> Result<()> {
    let widths = reader.widths();
    let length = 12 + u64::from(widths.length) + u64::from(widths.offset);
    let bytes = reader.bytes(budget, address, length, "fixed array")?;
    let mut cursor = reader.cursor(verified(&bytes, "fixed array")?, "fixed array");
    cursor.signature(b"FAHD")?;
    cursor.version(0)?;
    let client = cursor.u8()?;
    let form = ElementForm::new(reader, client, cursor.u8()?)?;
    let page_bits = cursor.u8()?;
    let count = cursor.length()?;
    let Some(block) = cursor.address()? else { return Ok(()) };
    if page_bits > PAGE_BITS_MAX {
        return Err(Error::damaged(format!("a fixed array has pages of 2^{page_bits} entries")));
    }
    let page = 1u64 << page_bits;
    let prefix = 6 + u64::from(widths.offset);
    if count <= page {
        let bytes = reader.bytes(budget, block, prefix + count * form.bytes as u64 + 4, "fixed array")?;
        return read_entries(reader, verified(&bytes, "fixed array")?, Part { form, prefix, first: 0 }, f);
    }
    let pages = count.div_ceil(page);
    let prefix_whole = prefix + pages.div_ceil(8) + 4;
    let bytes = reader.bytes(budget, block, prefix_whole, "fixed array")?;
    let bits = verified(&bytes, "fixed array")?.get(prefix as usize..).unwrap_or_default();
    let page_bytes = page * form.bytes as u64 + 4;
    for number in (0..pages).filter(|&number| bit(bits, number)) {
        let first = number * page;
        let length = (count - first).min(page) * form.bytes as u64 + 4;
        let at = number.checked_mul(page_bytes).and_then(|at| at.checked_add(prefix_whole)?.checked_add(block));
        let at = at.ok_or_else(|| Error::damaged("a page of a fixed array lies behind all files"))?;
        let bytes = reader.bytes(budget, at, length, "page of a fixed array")?;
        read_entries(reader, verified(&bytes, "page of a fixed array")?, Part { form, prefix: 0, first }, f)?;
    }
    Ok(())
}

/// A part of an array: the bytes before its entries, and the number of the first.
struct Part {
    form: ElementForm,
    prefix: u64,
    first: u64,
}

fn read_entries(
    reader: &Reader,
    bytes: &[u8],
    part: Part,
    f: &mut dyn FnMut(u64, StoredChunk) -> Result<()>,
) -> Result<()> {
    let mut cursor = reader.cursor(bytes, "fixed array");
    if part.prefix > 0 {
        cursor.signature(b"FADB")?;
        cursor.skip(part.prefix as usize - 4)?;
    }
    let mut number = part.first;
    while cursor.remaining() >= part.form.bytes {
        if let Some(chunk) = part.form.parse(&mut cursor)? {
            f(number, chunk)?;
        }
        number += 1;
    }
    Ok(())
}
