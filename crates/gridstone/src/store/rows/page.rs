//! A page of rows: values and references to further pages, by ascending key.
//!
//! ```text
//! row   u32 key length · u32 value length · u32 flags · key · value
//! ```
//! Flags: 1, the value is a reference to a page, which has the rows from here to the next key; 2, the value is a
//! reference to an object that holds it. A row with another flag is Unsupported, unless the highest one is set: such a row is
//! passed over, and kept. If flag 2 is set as well, its value begins with a reference to an object, which is kept with it.

use super::frame::{self, ObjectRef, REFERENCE_LEN};
use crate::base::{ByteReader, ByteWriter, Error, Result, limits, newer, xxh3};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

const IS_PAGE: u32 = 1;
const IS_LARGE: u32 = 2;
const IS_SKIPPED: u32 = 1 << 31;
/// Bytes of a row without its key and value.
const ROW_LEN: usize = 12;
/// The share of a JSON object's bytes that counts.
const JSON_SHARE: usize = 4;

/// A row.
#[derive(Debug, Clone)]
pub(in crate::store) enum Entry {
    /// A value.
    Value(Bytes, Bytes),
    /// A value that is an object of its own.
    Large(Bytes, ObjectRef),
    /// A page, whose rows start at this key.
    Page(Bytes, Arc<Child>),
    /// What a newer release wrote, with its flags, to be passed over.
    Skipped(Bytes, u32, Bytes),
}

/// A page below another one, loaded when it is first needed.
#[derive(Debug)]
pub(in crate::store) struct Child {
    pub(in crate::store) reference: ObjectRef,
    pub(super) loaded: OnceLock<Arc<Page>>,
}

impl Child {
    pub(super) fn new(reference: ObjectRef) -> Self {
        Self { reference, loaded: OnceLock::new() }
    }
}

/// Rows in ascending order of their keys.
#[derive(Debug, Default)]
pub(in crate::store) struct Page {
    pub(in crate::store) entries: Vec<Entry>,
}

impl Entry {
    pub(in crate::store) fn key(&self) -> &Bytes {
        match self {
            Self::Value(key, _) | Self::Large(key, _) | Self::Page(key, _) | Self::Skipped(key, ..) => key,
        }
    }

    /// The object that holds its value, or that begins it.
    pub(in crate::store) fn value_object(&self) -> Option<ObjectRef> {
        match self {
            Self::Large(_, reference) => Some(*reference),
            Self::Skipped(_, flags, value) if flags & IS_LARGE != 0 => {
                ObjectRef::decode(value.get(..REFERENCE_LEN)?).ok()
            }
            _ => None,
        }
    }

    /// About as many bytes as the row takes in a compressed page. JSON objects of nodes are much alike; ids and
    /// checksums are not.
    pub(super) fn weight(&self) -> usize {
        let value = match self {
            Self::Value(_, value) if value.starts_with(b"{") => value.len() / JSON_SHARE,
            Self::Value(_, value) | Self::Skipped(_, _, value) => value.len(),
            Self::Large(..) | Self::Page(..) => REFERENCE_LEN,
        };
        ROW_LEN + self.key().len() + value
    }

    fn stored(&self) -> (u32, Bytes) {
        match self {
            Self::Value(_, value) => (0, value.clone()),
            Self::Large(_, reference) => (IS_LARGE, reference.encode()),
            Self::Page(_, child) => (IS_PAGE, child.reference.encode()),
            Self::Skipped(_, flags, value) => (*flags, value.clone()),
        }
    }
}

fn out_of_order() -> Error {
    Error::corruption("rows are out of order")
}

/// The weight of these rows.
pub(super) fn weight_of(entries: &[Entry]) -> usize {
    entries.iter().map(Entry::weight).sum()
}

impl Page {
    /// The content of a page of `entries`.
    pub(super) fn encode(entries: &[Entry]) -> Vec<u8> {
        let mut w = ByteWriter::new();
        for entry in entries {
            let (flags, value) = entry.stored();
            w.u32(entry.key().len() as u32);
            w.u32(value.len() as u32);
            w.u32(flags);
            w.raw(entry.key());
            w.raw(&value);
        }
        w.into_bytes()
    }

    /// The rows in `content`, all with keys from `from` on and below `to`.
    ///
    /// # Errors
    /// Corruption if rows are cut or out of order; Unsupported if a newer release wrote them.
    pub(super) fn decode(content: &Bytes, from: &[u8], to: Option<&[u8]>) -> Result<Self> {
        let mut r = ByteReader::new(content, "a page of rows");
        let (mut entries, mut at) = (Vec::<Entry>::new(), 0usize);
        while at < content.len() {
            let (key_len, value_len, flags) = (r.u32()? as usize, r.u32()? as usize, r.u32()?);
            r.take(key_len)?;
            r.take(value_len)?;
            let start = at + ROW_LEN;
            let (key, value) =
                (content.slice(start..start + key_len), content.slice(start + key_len..start + key_len + value_len));
            at = start + key_len + value_len;
            if entries.last().is_some_and(|before| before.key() >= &key) {
                return Err(out_of_order());
            }
            entries.push(match flags {
                0 => Entry::Value(key, value),
                IS_LARGE => Entry::Large(key, ObjectRef::decode(&value)?),
                IS_PAGE => Entry::Page(key, Arc::new(Child::new(ObjectRef::decode(&value)?))),
                other if other & IS_SKIPPED != 0 && other & IS_PAGE == 0 => {
                    if other & IS_LARGE != 0 && value.len() < REFERENCE_LEN {
                        return Err(Error::corruption("a row is too short for the reference in it"));
                    }
                    Entry::Skipped(key, other, value)
                }
                other => return Err(newer("a row", format!("the flags {other:#x}"))),
            });
        }
        let page = Self { entries };
        page.check_place(from, to)?;
        Ok(page)
    }

    /// A Corruption error unless all its keys lie from `from` on and below `to`.
    pub(super) fn check_place(&self, from: &[u8], to: Option<&[u8]>) -> Result<()> {
        let is_below = |key: &Bytes| to.is_none_or(|to| &key[..] < to);
        match (self.entries.first().map(Entry::key), self.entries.last().map(Entry::key)) {
            (Some(first), Some(last)) if &first[..] < from || !is_below(last) => Err(out_of_order()),
            _ => Ok(()),
        }
    }

    /// The key after that in the place `at`; `end` is that of the rows of this page.
    pub(super) fn key_after<'a>(&'a self, at: usize, end: Option<&'a Bytes>) -> Option<&'a Bytes> {
        self.entries.get(at + 1).map(Entry::key).or(end)
    }

    /// The last row whose key is not above `key`, and the key of the row after it.
    pub(super) fn at(&self, key: &[u8]) -> Option<(&Entry, Option<&Bytes>)> {
        let after = self.entries.partition_point(|entry| &entry.key()[..] <= key);
        let entry = self.entries.get(after.checked_sub(1)?)?;
        Some((entry, self.entries.get(after).map(Entry::key)))
    }
}

/// An object of the manifest that is read by itself, with the checksum by which it is named.
#[derive(Debug)]
pub(in crate::store) enum Stored {
    /// A page of rows.
    Rows(u64, Vec<Entry>),
    /// A value.
    Value(u64),
}

/// The page of rows or the value in `bytes`, if these are intact.
pub(in crate::store) fn stored(bytes: &[u8]) -> Option<Stored> {
    if let Ok(content) = frame::decode(frame::ROWS, bytes, limits::ROW_PAGE_BYTES_MAX) {
        return Some(Stored::Rows(xxh3(&content), Page::decode(&content, &[], None).ok()?.entries));
    }
    let content = frame::decode(frame::VALUE, bytes, limits::ROW_VALUE_BYTES_MAX).ok()?;
    Some(Stored::Value(xxh3(&content)))
}

/// Whether the value in `bytes`, which is an object of its own, is the same when it is encoded and decoded again.
#[cfg(feature = "fuzzing")]
pub(in crate::store) fn value_survives(bytes: &[u8]) -> Result<bool> {
    let content = frame::decode(frame::VALUE, bytes, limits::ROW_VALUE_BYTES_MAX)?;
    let framed = frame::encode(frame::VALUE, &content)?;
    Ok(frame::decode(frame::VALUE, &framed, limits::ROW_VALUE_BYTES_MAX)? == content)
}

/// Whether the page of rows in `bytes`, encoded and decoded again, is the same.
#[cfg(feature = "fuzzing")]
pub(in crate::store) fn page_survives(bytes: &[u8]) -> Result<bool> {
    let content = frame::decode(frame::ROWS, bytes, limits::ROW_PAGE_BYTES_MAX)?;
    let page = Page::decode(&content, &[], None)?;
    let again = Page::encode(&page.entries);
    let framed = frame::encode(frame::ROWS, &again)?;
    Ok(again[..] == content[..] && frame::decode(frame::ROWS, &framed, limits::ROW_PAGE_BYTES_MAX)? == content)
}
