//! The map of a root: lookups and scans, with pages loaded as they are needed.

use super::frame::{self, ObjectRef};
use super::key;
use super::page::{Child, Entry, Page};
use crate::base::{Error, ErrorKind, Result, limits, xxh3};
use crate::storage::{Storage, manifest_name};
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::Arc;

/// The most pages above each other.
pub(super) const DEPTH_MAX: usize = 32;

/// A row, or an object that one refers to.
#[derive(Debug, Clone, Copy)]
pub(in crate::store) enum Visited<'a> {
    Row(&'a Entry),
    Page(ObjectRef),
    Value(ObjectRef),
}

/// A row, or a page that one refers to and whether it is sound.
#[derive(Debug)]
pub(in crate::store) enum Inspected<'a> {
    Row(&'a Entry),
    /// With the key of the reference.
    Page(&'a Bytes, ObjectRef, Result<()>),
}

/// A page below another one, with the keys that it may have: from `from` on and below `to`.
#[derive(Clone, Copy)]
struct Place<'a> {
    from: &'a Bytes,
    child: &'a Child,
    to: Option<&'a Bytes>,
}

/// The rows of a version.
#[derive(Debug, Clone)]
pub(in crate::store) struct RowMap {
    pub(super) top: Arc<Page>,
    pub(super) storage: Option<Arc<dyn Storage>>,
}

impl RowMap {
    /// The map without rows.
    pub(in crate::store) fn empty() -> Self {
        Self { top: Arc::default(), storage: None }
    }

    /// The map of these rows, sorted by key.
    pub(in crate::store) fn of(rows: Vec<(Bytes, Bytes)>, storage: &Arc<dyn Storage>) -> Self {
        let entries = rows.into_iter().map(|(key, value)| Entry::Value(key, value)).collect();
        Self { top: Arc::new(Page { entries }), storage: Some(Arc::clone(storage)) }
    }

    /// The map whose top page is the object in `bytes`; its content has the checksum `xxh3`.
    pub(in crate::store) fn open(bytes: &[u8], sum: u64, storage: &Arc<dyn Storage>) -> Result<Self> {
        let content = frame::decode(frame::ROWS, bytes, limits::ROW_PAGE_BYTES_MAX)?;
        if xxh3(&content) != sum {
            return Err(Error::corruption("its rows are not those that its line names"));
        }
        Ok(Self { top: Arc::new(Page::decode(&content, &[], None)?), storage: Some(Arc::clone(storage)) })
    }

    /// The same map, which shares the pages that `other` has loaded.
    pub(in crate::store) fn sharing(mut self, other: &Self) -> Self {
        let held: HashMap<_, _> = other
            .top
            .entries
            .iter()
            .filter_map(|entry| match entry {
                Entry::Page(_, child) => Some((child.reference.id, child)),
                _ => None,
            })
            .collect();
        if held.is_empty() {
            return self;
        }
        let shared = |entry: &Entry| match entry {
            Entry::Page(key, child) => {
                let known = held.get(&child.reference.id).filter(|known| known.reference == child.reference);
                Entry::Page(key.clone(), Arc::clone(known.unwrap_or(&child)))
            }
            entry => entry.clone(),
        };
        self.top = Arc::new(Page { entries: self.top.entries.iter().map(shared).collect() });
        self
    }

    /// The value of `key`.
    ///
    /// # Errors
    /// Corruption if a page is missing or damaged, Storage.
    pub(in crate::store) fn get(&self, key: &[u8]) -> Result<Option<Bytes>> {
        self.row(key)?.map(|row| self.value_of(&row)).transpose()
    }

    /// The row of `key`. An object that holds its value is not read.
    ///
    /// # Errors
    /// Those of [`RowMap::get`].
    pub(in crate::store) fn row(&self, key: &[u8]) -> Result<Option<Entry>> {
        self.row_in((&self.top, None), key, 0)
    }

    /// The row of `key` in a page with the end of its rows.
    fn row_in(&self, (page, end): (&Page, Option<&Bytes>), key: &[u8], depth: usize) -> Result<Option<Entry>> {
        match page.at(key) {
            Some((Entry::Page(from, child), next)) => {
                if depth == DEPTH_MAX {
                    return Err(too_deep());
                }
                let to = next.or(end);
                let below = self.load(child, from, to)?;
                self.row_in((&below, to), key, depth + 1)
            }
            Some((Entry::Skipped(..), _)) | None => Ok(None),
            Some((row, _)) => Ok((row.key() == key).then(|| row.clone())),
        }
    }

    /// The values of `keys`. Pages that are not loaded are requested together, a level at a time.
    ///
    /// # Errors
    /// Those of [`RowMap::get`].
    pub(in crate::store) fn get_each(&self, keys: &[Bytes]) -> Result<Vec<Option<Bytes>>> {
        let mut found = vec![None; keys.len()];
        // Each with the place of its key, and with the end of its rows.
        let mut waiting: Vec<(usize, Arc<Page>, Option<Bytes>)> =
            (0..keys.len()).map(|at| (at, Arc::clone(&self.top), None)).collect();
        for _ in 0..=DEPTH_MAX {
            let mut below: Vec<(usize, Place<'_>)> = Vec::new();
            for (at, page, end) in &waiting {
                let key = keys.get(*at);
                match key.and_then(|key| page.at(key)) {
                    Some((Entry::Page(from, child), next)) => {
                        below.push((*at, Place { from, child, to: next.or(end.as_ref()) }));
                    }
                    Some((Entry::Skipped(..), _)) => {}
                    Some((entry, _)) if Some(entry.key()) == key => {
                        if let Some(slot) = found.get_mut(*at) {
                            *slot = Some(self.value_of(entry)?);
                        }
                    }
                    _ => {}
                }
            }
            let mut wanted: Vec<Place<'_>> = below.iter().map(|(_, place)| *place).collect();
            wanted.dedup_by_key(|place| place.child.reference.id);
            self.load_places(wanted)?;
            let load = |(at, place): (usize, Place<'_>)| {
                Ok((at, self.load(place.child, place.from, place.to)?, place.to.cloned()))
            };
            let next = below.into_iter().map(load).collect::<Result<Vec<_>>>()?;
            if next.is_empty() {
                return Ok(found);
            }
            waiting = next;
        }
        Err(too_deep())
    }

    /// Passes every row whose key starts with `prefix` to `visit`, in ascending order of their keys. Pages that are not
    /// loaded are requested together, a level at a time. Objects of large values are not read.
    ///
    /// # Errors
    /// Those of `visit`; Corruption if a page is missing or damaged, Storage.
    pub(in crate::store) fn scan(&self, prefix: &[u8], visit: &mut dyn FnMut(&Entry) -> Result<()>) -> Result<()> {
        self.scan_all(prefix, &mut |entry| match entry {
            Entry::Skipped(..) => Ok(()),
            entry => visit(entry),
        })
    }

    /// As [`RowMap::scan`], with rows that are to be passed over.
    ///
    /// # Errors
    /// Those of [`RowMap::scan`].
    pub(in crate::store) fn scan_all(&self, prefix: &[u8], visit: &mut dyn FnMut(&Entry) -> Result<()>) -> Result<()> {
        let to = key::after(prefix);
        self.scan_page((&self.top, None), (prefix, to.as_deref()), 0, visit)
    }

    /// Scans a page with the end of its rows.
    fn scan_page(
        &self,
        (page, page_end): (&Page, Option<&Bytes>),
        range: (&[u8], Option<&[u8]>),
        depth: usize,
        visit: &mut dyn FnMut(&Entry) -> Result<()>,
    ) -> Result<()> {
        let (from, to) = range;
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        let first = page.entries.partition_point(|entry| &entry.key()[..] <= from).saturating_sub(1);
        let rows = page.entries.get(first..).unwrap_or_default();
        let inside = |entry: &&Entry| to.is_none_or(|to| &entry.key()[..] < to);
        let end = first + rows.iter().take_while(inside).count();
        self.load_all((page, page_end), first..end)?;
        for (at, entry) in page.entries.iter().enumerate().take(end).skip(first) {
            match entry {
                Entry::Page(key, child) => {
                    let next = page.key_after(at, page_end);
                    let below = self.load(child, key, next)?;
                    self.scan_page((&below, next), range, depth + 1, visit)?;
                }
                entry if &entry.key()[..] >= from => visit(entry)?,
                _ => {}
            }
        }
        Ok(())
    }

    /// Loads the pages in these places of a page with the end of its rows, unless they are loaded.
    fn load_all(&self, (page, page_end): (&Page, Option<&Bytes>), places: std::ops::Range<usize>) -> Result<()> {
        let mut wanted = Vec::new();
        for at in places {
            if let Some(Entry::Page(key, child)) = page.entries.get(at) {
                wanted.push(Place { from: key, child, to: page.key_after(at, page_end) });
            }
        }
        self.load_places(wanted)
    }

    /// Loads the pages that are not loaded, together if they are several.
    fn load_places(&self, mut wanted: Vec<Place<'_>>) -> Result<()> {
        wanted.retain(|place| place.child.loaded.get().is_none());
        let Some(storage) = self.storage.as_ref().filter(|_| wanted.len() > 1) else { return Ok(()) };
        let names: Vec<String> = wanted.iter().map(|place| manifest_name(place.child.reference.id)).collect();
        let mut next = wanted.into_iter();
        storage.read_each(&names, &mut |_, bytes| {
            let Some(Place { from, child, to }) = next.next() else { return Ok(()) };
            let page = decoded(child, bytes, from, to)?;
            let _ = child.loaded.set(page);
            Ok(())
        })
    }

    /// The page `child`, whose keys lie from `from` on and below `to`. It may have been loaded for another map.
    pub(super) fn load(&self, child: &Child, from: &Bytes, to: Option<&Bytes>) -> Result<Arc<Page>> {
        if let Some(page) = child.loaded.get() {
            let placed = page.check_place(from, to.map(|to| &to[..]));
            return placed.map(|()| Arc::clone(page)).map_err(|e| named(child.reference.id, "manifest page", e));
        }
        let page = decoded(child, self.storage()?.read_all(&manifest_name(child.reference.id)), from, to)?;
        Ok(Arc::clone(child.loaded.get_or_init(|| page)))
    }

    /// Where its pages are.
    pub(in crate::store) fn storage(&self) -> Result<&Arc<dyn Storage>> {
        self.storage.as_ref().ok_or_else(|| Error::corruption("a map without storage has a page"))
    }

    /// The value that is an object of its own.
    pub(in crate::store) fn value(&self, reference: ObjectRef) -> Result<Bytes> {
        value_in(self.storage()?.read_all(&manifest_name(reference.id)), reference)
    }

    /// The value of a row.
    pub(in crate::store) fn value_of(&self, entry: &Entry) -> Result<Bytes> {
        match entry {
            Entry::Value(_, value) => Ok(value.clone()),
            Entry::Large(_, reference) => self.value(*reference),
            Entry::Page(..) | Entry::Skipped(..) => {
                Err(Error::corruption("a reference, or what is to be passed over, where a value is expected"))
            }
        }
    }

    /// Passes every row, and before it the object that it refers to, to `visit`. A page is looked into if `visit` returns
    /// true for it; it is read and dropped again.
    ///
    /// # Errors
    /// Those of `visit`; Corruption if a page is missing or damaged, Storage.
    pub(in crate::store) fn walk(&self, visit: &mut dyn FnMut(Visited<'_>) -> Result<bool>) -> Result<()> {
        self.walk_page((&self.top, None), 0, visit)
    }

    fn walk_page(
        &self,
        (page, end): (&Page, Option<&Bytes>),
        depth: usize,
        visit: &mut dyn FnMut(Visited<'_>) -> Result<bool>,
    ) -> Result<()> {
        if depth > DEPTH_MAX {
            return Err(too_deep());
        }
        for (at, entry) in page.entries.iter().enumerate() {
            match entry {
                Entry::Value(..) => {
                    visit(Visited::Row(entry))?;
                }
                Entry::Large(..) | Entry::Skipped(..) => {
                    if let Some(reference) = entry.value_object() {
                        visit(Visited::Value(reference))?;
                    }
                    if let Entry::Large(..) = entry {
                        visit(Visited::Row(entry))?;
                    }
                }
                Entry::Page(key, child) => {
                    if visit(Visited::Page(child.reference))? {
                        let to = page.key_after(at, end);
                        let apart = Child::new(child.reference);
                        let below = self.load(child.loaded.get().map_or(&apart, |_| child), key, to)?;
                        self.walk_page((&below, to), depth + 1, visit)?;
                    }
                }
            }
        }
        Ok(())
    }
}

impl RowMap {
    /// Like [`RowMap::walk`], through all pages, also around damaged ones. Pages stay loaded.
    ///
    /// # Errors
    /// Those of `visit`; errors of pages are passed to it.
    pub(in crate::store) fn inspect(&self, visit: &mut dyn FnMut(Inspected<'_>) -> Result<()>) -> Result<()> {
        self.inspect_page((&self.top, None), 0, visit)
    }

    fn inspect_page(
        &self,
        (page, end): (&Page, Option<&Bytes>),
        depth: usize,
        visit: &mut dyn FnMut(Inspected<'_>) -> Result<()>,
    ) -> Result<()> {
        for (at, entry) in page.entries.iter().enumerate() {
            match entry {
                Entry::Value(..) | Entry::Large(..) | Entry::Skipped(..) => visit(Inspected::Row(entry))?,
                Entry::Page(key, child) => {
                    let next = page.key_after(at, end);
                    let below = if depth < DEPTH_MAX { self.load(child, key, next) } else { Err(too_deep()) };
                    match below {
                        Ok(below) => {
                            visit(Inspected::Page(key, child.reference, Ok(())))?;
                            self.inspect_page((&below, next), depth + 1, visit)?;
                        }
                        Err(error) => visit(Inspected::Page(key, child.reference, Err(error)))?,
                    }
                }
            }
        }
        Ok(())
    }
}

pub(super) fn too_deep() -> Error {
    Error::corruption(format!("pages of rows lie more than {DEPTH_MAX} deep"))
}

fn named(id: crate::base::Id, what: &str, e: Error) -> Error {
    match e.kind() {
        ErrorKind::NotFound => {
            Error::corruption(format!("{what} {id}, which a manifest root names, is missing")).with_source(e)
        }
        _ => e.context(format!("{what} {id}")),
    }
}

fn decoded(child: &Child, bytes: Result<Bytes>, from: &[u8], to: Option<&Bytes>) -> Result<Arc<Page>> {
    let reference = child.reference;
    let read = bytes.and_then(|bytes| {
        let content = frame::decode(frame::ROWS, &bytes, limits::ROW_PAGE_BYTES_MAX)?;
        checked(&content, reference)?;
        Page::decode(&content, from, to.map(|to| &to[..]))
    });
    read.map(Arc::new).map_err(|e| named(reference.id, "manifest page", e))
}

fn value_in(bytes: Result<Bytes>, reference: ObjectRef) -> Result<Bytes> {
    let read = bytes.and_then(|bytes| {
        let content = frame::decode(frame::VALUE, &bytes, limits::ROW_VALUE_BYTES_MAX)?;
        checked(&content, reference)?;
        Ok(content)
    });
    read.map_err(|e| named(reference.id, "manifest value", e))
}

fn checked(content: &Bytes, reference: ObjectRef) -> Result<()> {
    if content.len() as u64 == reference.bytes && xxh3(content) == reference.xxh3 {
        return Ok(());
    }
    Err(Error::corruption("it is not the object that is named: its checksum or length differs"))
}
