//! Applies changes to a map: writes the pages that change, and names all others again.
//!
//! 1. Changes go down to the pages that hold their keys. A page without a change stays as it is.
//! 2. A page that became small is dissolved: its rows go to the page above. One that became large is cut evenly.
//! 3. Rows of the top page go to pages of their own when it is large: first runs of values, then all rows.
//! 4. A large value becomes an object of its own.
//! 5. A range of keys may be cut out: pages that lie in it are left out unread.
//!
//! The result depends on the map and the changes alone, except for the ids of objects.

use super::frame::{self, ObjectRef};
use super::map::{DEPTH_MAX, RowMap, too_deep};
use super::page::{Child, Entry, Page, weight_of};
use crate::base::{Id, Result, xxh3};
use crate::storage::Storage;
use bytes::Bytes;
use std::iter::Peekable;
use std::ops::Range;
use std::slice::Iter;
use std::sync::Arc;

/// The weight of rows that a page is cut to.
const PAGE_WEIGHT: usize = 64 << 10;
/// A heavier page is cut.
const PAGE_WEIGHT_MAX: usize = 96 << 10;
/// A lighter page is dissolved.
const PAGE_WEIGHT_MIN: usize = 16 << 10;
/// A heavier top page gives rows to pages.
const TOP_WEIGHT_MAX: usize = 64 << 10;
/// A lighter run of values stays in the top page.
const RUN_WEIGHT_MIN: usize = 8 << 10;
/// A page that is cut has at least as many rows, whatever they weigh, so that pages of long keys do not lie deep.
const PAGE_ROWS_MIN: usize = 8;
/// A larger value is an object of its own.
const VALUE_BYTES_MAX: usize = 16 << 10;

/// A row that changes: its new value, or `None` if it goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::store) struct Change {
    pub(in crate::store) key: Bytes,
    pub(in crate::store) value: Option<Bytes>,
}

/// What an object of the manifest holds, and of what.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(in crate::store) enum Role {
    /// A page of fragments.
    Fragments,
    /// A page of rows; the key of its reference.
    Rows(Bytes),
    /// The value of the row with this key.
    Value(Bytes),
}

/// Receives objects.
pub(in crate::store) trait Press {
    /// Takes an object of these bytes, whose name in references is the checksum `xxh3`, and returns its id. The object
    /// exists on return.
    fn object(&mut self, role: Role, bytes: &[u8], xxh3: u64) -> Result<Id>;
}

/// The object of the top page, and the checksum of its content.
pub(in crate::store) fn top_of(map: &RowMap) -> Result<(Vec<u8>, u64)> {
    let content = Page::encode(&map.top.entries);
    Ok((frame::encode(frame::ROWS, &content)?, xxh3(&content)))
}

impl RowMap {
    /// The map after `changes`, which are sorted by their keys, without the rows of `cut`; no key is there twice, and none
    /// in `cut`. Its pages are in `storage`.
    ///
    /// # Errors
    /// Those of `press`; Corruption if a page is missing or damaged, Storage.
    pub(in crate::store) fn update(
        &self,
        changes: &[Change],
        cut: Option<&Range<Bytes>>,
        storage: &Arc<dyn Storage>,
        press: &mut dyn Press,
    ) -> Result<Self> {
        let mut update = Update { map: self, cut, press };
        let mut rows = update.merged((&self.top, 0), &mut changes.iter().peekable(), None)?;
        if weight_of(&rows) > TOP_WEIGHT_MAX {
            rows = update.runs_packed(rows)?;
        }
        while weight_of(&rows) > TOP_WEIGHT_MAX && rows.len() > PAGE_ROWS_MIN {
            rows = update.packed(rows, None)?;
        }
        Ok(Self { top: Arc::new(Page { entries: rows }), storage: Some(Arc::clone(storage)) })
    }
}

struct Update<'a> {
    map: &'a RowMap,
    cut: Option<&'a Range<Bytes>>,
    press: &'a mut dyn Press,
}

/// How much of a page lies in the range that is cut out.
enum Share {
    All,
    Some,
    Nothing,
}

impl Update<'_> {
    /// How much is cut out of the keys from `from` on and below `to`.
    fn share(&self, from: &Bytes, to: Option<&Bytes>) -> Share {
        match self.cut {
            Some(cut) if cut.start <= *from && to.is_some_and(|to| *to <= cut.end) => Share::All,
            Some(cut) if *from < cut.end && to.is_none_or(|to| *to > cut.start) => Share::Some,
            _ => Share::Nothing,
        }
    }

    /// The rows of `page`, so deep below the top page, after the next of `changes`, those with keys below `to`.
    fn merged(
        &mut self,
        (page, depth): (&Page, usize),
        changes: &mut Peekable<Iter<'_, Change>>,
        to: Option<&Bytes>,
    ) -> Result<Vec<Entry>> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let mut rows = Vec::with_capacity(page.entries.len());
        for (at, entry) in page.entries.iter().enumerate() {
            let key = entry.key();
            while let Some(change) = changes.next_if(|change| change.key < *key) {
                self.put(change, &mut rows)?;
            }
            let next = page.key_after(at, to);
            match entry {
                Entry::Page(key, child) => {
                    let below = changes.peek().is_some_and(|change| next.is_none_or(|next| change.key < *next));
                    match self.share(key, next) {
                        Share::All if !below => continue,
                        Share::Nothing if !below => {
                            rows.push(entry.clone());
                            continue;
                        }
                        _ => {}
                    }
                    let loaded = self.map.load(child, key, next)?;
                    let merged = self.merged((&loaded, depth + 1), changes, next)?;
                    rows.extend(self.repacked(merged, key)?);
                }
                Entry::Value(..) | Entry::Large(..) | Entry::Skipped(..) => {
                    match changes.next_if(|change| change.key == *key) {
                        Some(change) => self.put(change, &mut rows)?,
                        None if self.cut.is_some_and(|cut| cut.contains(key)) => {}
                        None => rows.push(self.settled(entry)?),
                    }
                }
            }
        }
        while let Some(change) = changes.next_if(|change| to.is_none_or(|to| change.key < *to)) {
            self.put(change, &mut rows)?;
        }
        Ok(rows)
    }

    fn put(&mut self, change: &Change, rows: &mut Vec<Entry>) -> Result<()> {
        if let Some(value) = &change.value {
            rows.push(self.settled(&Entry::Value(change.key.clone(), value.clone()))?);
        }
        Ok(())
    }

    /// The row with its value in an object of its own, if that is large.
    fn settled(&mut self, entry: &Entry) -> Result<Entry> {
        match entry {
            Entry::Value(key, value) if value.len() > VALUE_BYTES_MAX => {
                let reference = self.object(Role::Value(key.clone()), frame::VALUE, value)?;
                Ok(Entry::Large(key.clone(), reference))
            }
            entry => Ok(entry.clone()),
        }
    }

    fn object(&mut self, role: Role, magic: &[u8; 8], content: &[u8]) -> Result<ObjectRef> {
        let sum = xxh3(content);
        let id = self.press.object(role, &frame::encode(magic, content)?, sum)?;
        Ok(ObjectRef { id, xxh3: sum, bytes: content.len() as u64 })
    }

    /// What the page above holds instead of a page that has these rows now; `from` is the key of its reference.
    fn repacked(&mut self, rows: Vec<Entry>, from: &Bytes) -> Result<Vec<Entry>> {
        match weight_of(&rows) {
            0..PAGE_WEIGHT_MIN => Ok(rows),
            PAGE_WEIGHT_MIN..=PAGE_WEIGHT_MAX => Ok(vec![self.page(rows, from.clone())?]),
            _ => self.packed(rows, Some(from)),
        }
    }

    /// The same rows, with every long run of values in pages.
    fn runs_packed(&mut self, rows: Vec<Entry>) -> Result<Vec<Entry>> {
        let (mut packed, mut run) = (Vec::new(), Vec::new());
        for entry in rows {
            if let Entry::Page(..) = entry {
                self.end_run(&mut run, &mut packed)?;
                packed.push(entry);
            } else {
                run.push(entry);
            }
        }
        self.end_run(&mut run, &mut packed)?;
        Ok(packed)
    }

    fn end_run(&mut self, run: &mut Vec<Entry>, packed: &mut Vec<Entry>) -> Result<()> {
        let run = std::mem::take(run);
        if weight_of(&run) < RUN_WEIGHT_MIN {
            packed.extend(run);
        } else {
            packed.extend(self.packed(run, None)?);
        }
        Ok(())
    }

    /// References to pages that hold these rows, about evenly. The first has the key `from`, else that of its first
    /// row.
    fn packed(&mut self, rows: Vec<Entry>, from: Option<&Bytes>) -> Result<Vec<Entry>> {
        let total = weight_of(&rows);
        let share = total.div_ceil(total.div_ceil(PAGE_WEIGHT).max(1));
        let (mut pages, mut part, mut weight) = (Vec::new(), Vec::<Entry>::new(), 0);
        let mut start = from.cloned();
        for entry in rows {
            if weight >= share && part.len() >= PAGE_ROWS_MIN {
                let next = part.last().map(|last| start_after(last, entry.key()));
                pages.push(self.part(&mut part, start)?);
                (start, weight) = (next, 0);
            }
            weight += entry.weight();
            part.push(entry);
        }
        if !part.is_empty() {
            pages.push(self.part(&mut part, start)?);
        }
        Ok(pages)
    }

    fn part(&mut self, part: &mut Vec<Entry>, start: Option<Bytes>) -> Result<Entry> {
        let first = part.first().map(|entry| entry.key().clone());
        self.page(std::mem::take(part), start.or(first).unwrap_or_default())
    }

    fn page(&mut self, entries: Vec<Entry>, key: Bytes) -> Result<Entry> {
        let content = Page::encode(&entries);
        let reference = self.object(Role::Rows(key.clone()), frame::ROWS, &content)?;
        let child = Child::new(reference);
        let _ = child.loaded.set(Arc::new(Page { entries }));
        Ok(Entry::Page(key, Arc::new(child)))
    }
}

/// A key for the page whose first row is `first`, which comes after `last`. A page has rows above its own key.
fn start_after(last: &Entry, first: &Bytes) -> Bytes {
    match last {
        Entry::Page(..) => first.clone(),
        Entry::Value(..) | Entry::Large(..) | Entry::Skipped(..) => between(last.key(), first),
    }
}

/// The shortest key that is above `before` and not above `first`, which is greater.
fn between(before: &[u8], first: &Bytes) -> Bytes {
    let same = before.iter().zip(first.iter()).take_while(|(a, b)| a == b).count();
    first.slice(..first.len().min(same + 1))
}
