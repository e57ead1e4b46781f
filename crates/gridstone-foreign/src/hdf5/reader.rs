//! Reads structures at addresses. Small reads go through a few pages that are held, so that neighbouring structures
//! take one read of the source. Addresses count from the superblock; what lies before it is the user block.

use crate::budget::Budget;
use crate::cursor::{Cursor, Widths};
use crate::error::{Error, Result};
use crate::source::ByteSource;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// Bytes of a page.
const PAGE_BYTES: u64 = 64 << 10;
/// Pages that are held.
const PAGES_MAX: usize = 64;
/// The longest structure that is read.
const STRUCTURE_BYTES_MAX: u64 = 64 << 20;

/// A page that is held.
struct Page {
    number: u64,
    bytes: Arc<[u8]>,
}

/// Access to the bytes of a file.
pub(super) struct Reader {
    source: Arc<dyn ByteSource>,
    /// The most recently used page is the last.
    pages: Mutex<Vec<Page>>,
    base: u64,
    widths: Widths,
}

impl fmt::Debug for Reader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reader").field("base", &self.base).field("widths", &self.widths).finish_non_exhaustive()
    }
}

impl Reader {
    /// A reader of `source`, whose superblock lies at `base`.
    pub(super) fn new(source: Arc<dyn ByteSource>, base: u64, widths: Widths) -> Self {
        Self { source, pages: Mutex::default(), base, widths }
    }

    pub(super) fn widths(&self) -> Widths {
        self.widths
    }

    /// Bytes of the file, the user block included.
    pub(super) fn length(&self) -> u64 {
        self.source.length()
    }

    /// A budget for one walk through the file.
    pub(super) fn budget(&self) -> Budget {
        Budget::of_file(self.length())
    }

    /// A cursor over `bytes` of this file.
    pub(super) fn cursor<'a>(&self, bytes: &'a [u8], what: &'static str) -> Cursor<'a> {
        Cursor::new(bytes, self.widths, what)
    }

    /// The absolute offset of `address`, from which on `length` bytes must lie in the file.
    pub(super) fn offset_of(&self, address: u64, length: u64, what: &str) -> Result<u64> {
        let start = self.base.checked_add(address);
        let end = start.and_then(|start| start.checked_add(length));
        match (start, end) {
            (Some(start), Some(end)) if end <= self.length() => Ok(start),
            _ => Err(Error::damaged(format!(
                "the {what} should have {length} bytes at address {address}, the file ends at byte {}",
                self.length()
            ))),
        }
    }

    /// The `length` bytes of a `what` at `address`.
    pub(super) fn bytes(&self, budget: &Budget, address: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        let start = self.offset_of(address, length, what)?;
        if length > STRUCTURE_BYTES_MAX {
            return Err(Error::limit(format!(
                "the {what} has {length} bytes; at most {STRUCTURE_BYTES_MAX} bytes are read at once"
            )));
        }
        budget.spend(length.max(1))?;
        let mut bytes = vec![0; length as usize];
        if length > PAGE_BYTES {
            self.source.read_at(start, &mut bytes)?;
        } else {
            self.copy_from_pages(start, &mut bytes)?;
        }
        Ok(bytes)
    }

    /// As many as `length` bytes at `address`; fewer at the end of the file.
    pub(super) fn bytes_up_to(&self, budget: &Budget, address: u64, length: u64, what: &str) -> Result<Vec<u8>> {
        let start = self.offset_of(address, 1, what)?;
        self.bytes(budget, address, length.min(self.length().saturating_sub(start)), what)
    }

    fn copy_from_pages(&self, start: u64, into: &mut [u8]) -> Result<()> {
        let mut at = start;
        let mut rest = into;
        while !rest.is_empty() {
            let page = self.page(at / PAGE_BYTES)?;
            let from = (at % PAGE_BYTES) as usize;
            let found = page.get(from..).unwrap_or_default();
            let count = found.len().min(rest.len());
            let (now, later) = rest.split_at_mut(count);
            match found.get(..count) {
                Some(bytes) if count > 0 => now.copy_from_slice(bytes),
                _ => return Err(Error::damaged(format!("the file has become shorter than byte {at}"))),
            }
            at += count as u64;
            rest = later;
        }
        Ok(())
    }

    fn page(&self, number: u64) -> Result<Arc<[u8]>> {
        let mut pages = self.pages.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(at) = pages.iter().rposition(|page| page.number == number) {
            let page = pages.remove(at);
            let bytes = page.bytes.clone();
            pages.push(page);
            return Ok(bytes);
        }
        let start = number * PAGE_BYTES;
        let mut bytes = vec![0; PAGE_BYTES.min(self.length().saturating_sub(start)) as usize];
        self.source.read_at(start, &mut bytes)?;
        let bytes: Arc<[u8]> = bytes.into();
        if pages.len() >= PAGES_MAX {
            pages.remove(0);
        }
        pages.push(Page { number, bytes: bytes.clone() });
        Ok(bytes)
    }
}
