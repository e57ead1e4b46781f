//! Copies the fragments of an array at one version into another store, as they are stored: nothing is decoded.
//!
//! 1. Every fragment gets a fresh id, including tombstones, deletions and masks; their relative order is kept.
//! 2. A large fragment becomes a data file of its own. Small ones are collected: into packs, or, if there are few, into
//!    the record of the commit that will name them.
//! 3. The caller commits all of them as one addition. Later additions in one commit have the greater order, so a read
//!    of the copy returns what a read of the source does.
//!
//! Memory holds a few megabytes for each thread, and the descriptions.

use crate::base::{ByteRange, ByteSource, Cancel, Entropy, Error, ErrorKind, FileRef, Files, Id, Progress, Result};
use crate::fragment::{
    Description, FragmentKind, FragmentOrder, HEADER_BYTES, Location, Staged, renamed_header, renamed_mask,
};
use crate::runtime::Pool;
use bytes::Bytes;
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of a large fragment are copied at a time.
const CHUNK_BYTES: u64 = 4 << 20;

/// The approximate size of a pack in bytes.
const PACK_BYTES: u64 = 16 << 20;

/// The total size in bytes of small fragments that may wait in memory for the record.
const BODIES_BYTES_MAX: u64 = 1 << 20;

/// The alignment in bytes of fragments in a pack.
const PACK_ALIGNMENT: u64 = 64;

/// The resources of a copy.
pub struct Copier<'a> {
    /// The threads that copy.
    pub pool: &'a Pool,
    /// The files to read fragments from.
    pub from: Arc<dyn Files>,
    /// The files to write them to.
    pub to: Arc<dyn Files>,
    /// The source of ids.
    pub entropy: &'a dyn Entropy,
    /// Checked for every chunk.
    pub cancel: &'a dyn Cancel,
    /// Receives the number of bytes copied.
    pub progress: &'a dyn Progress,
    /// Bytes copied so far, by all copies of one call.
    pub done_bytes: &'a AtomicU64,
    /// Bytes that all of them will copy.
    pub total_bytes: u64,
    /// Bytes of the fragments of all copies that wait in memory for the record.
    pub bodies_bytes: &'a AtomicU64,
}

/// Copies of some fragments with their indexes in the list, each with the description of what was written.
type Finished = Mutex<Vec<(usize, Staged)>>;

/// A fragment to copy: its index in the list, its description, and that of its copy.
struct Item<'a> {
    place: usize,
    source: &'a Description,
    copy: Description,
    /// For a mask: the ids of the fragment that it lies over, and of that fragment's copy.
    over: Option<(Id, Id)>,
}

/// What a thread copies at a time.
enum Job<'a> {
    File(Box<Item<'a>>),
    Pack(Vec<Item<'a>>),
    Bodies(Vec<Item<'a>>),
}

impl std::fmt::Debug for Copier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Copier")
    }
}

impl Copier<'_> {
    /// Copies `fragments`, in ascending order, and returns the copies in the order in which they must be added.
    ///
    /// `written` lists what was written after an error too; the caller deletes those files.
    ///
    /// # Errors
    /// Corruption (a fragment does not match its description), Storage, Access, Cancelled; SnapshotExpired if the
    /// source's files report it.
    pub fn copy(&self, fragments: &[Arc<Description>], written: &mut Vec<Staged>) -> Result<()> {
        let finished = Finished::default();
        let outcome = self.pool.map(self.jobs(fragments)?, self.cancel, |job| self.run(job, &finished));
        let mut made = finished.into_inner().unwrap_or_else(PoisonError::into_inner);
        made.sort_by_key(|(place, _)| *place);
        written.extend(made.into_iter().map(|(_, staged)| staged));
        outcome.map(drop).map_err(|e| self.from.explain(e))
    }

    fn jobs<'d>(&self, fragments: &'d [Arc<Description>]) -> Result<Vec<Job<'d>>> {
        let (mut jobs, mut small, mut small_bytes) = (Vec::new(), Vec::new(), 0u64);
        for item in self.items(fragments)? {
            if !item.source.is_small() {
                jobs.push(Job::File(Box::new(item)));
            } else {
                small_bytes = small_bytes.saturating_add(item.source.location.len);
                small.push(item);
            }
        }
        if self.bodies_bytes.fetch_add(small_bytes, Ordering::Relaxed).saturating_add(small_bytes) <= BODIES_BYTES_MAX {
            jobs.push(Job::Bodies(small));
            return Ok(jobs);
        }
        self.bodies_bytes.fetch_sub(small_bytes, Ordering::Relaxed);
        let (mut pack, mut bytes) = (Vec::new(), 0u64);
        for item in small {
            bytes = bytes.saturating_add(item.source.location.len);
            pack.push(item);
            if bytes >= PACK_BYTES {
                (jobs, bytes) = (with(jobs, Job::Pack(std::mem::take(&mut pack))), 0);
            }
        }
        Ok(with(jobs, Job::Pack(pack)))
    }

    /// The fragments with the ids of their copies.
    fn items<'d>(&self, fragments: &'d [Arc<Description>]) -> Result<Vec<Item<'d>>> {
        let ordered = in_order(fragments);
        let ids: HashMap<Id, Id> = ordered.iter().map(|d| (d.id, self.entropy.id())).collect();
        let mut items = Vec::with_capacity(ordered.len());
        let folder = self.folder_of_sources();
        for (place, source) in ordered.into_iter().enumerate() {
            let id = |of: &Id| {
                ids.get(of).copied().ok_or_else(|| {
                    Error::corruption(format!("mask {} lies over fragment {of}, which is not there", source.id))
                })
            };
            let over = source.over.as_ref().map(|over| Ok::<_, Error>((*over, id(over)?))).transpose()?;
            let mut copy = Description {
                id: id(&source.id)?,
                order: FragmentOrder { version: 0, index: 0 },
                over: over.map(|(_, to)| to),
                ..Description::clone(source)
            };
            if let Some(folder) = &folder {
                copy.count_sources_from(folder)?;
            }
            items.push(Item { place, source, copy, over });
        }
        Ok(items)
    }

    /// The folder that paths of foreign sources count from, if copies of external fragments have to say it: their store lies elsewhere.
    fn folder_of_sources(&self) -> Option<String> {
        let of = |files: &dyn Files| files.sources().and_then(|sources| sources.folder());
        let from = of(self.from.as_ref())?;
        (of(self.to.as_ref()).as_ref() != Some(&from)).then_some(from)
    }

    fn run(&self, job: Job<'_>, finished: &Finished) -> Result<()> {
        match job {
            Job::File(item) => self.file(*item, finished),
            Job::Pack(items) => self.pack(items, finished),
            Job::Bodies(items) => items.into_iter().try_for_each(|item| self.body(item, finished)),
        }
    }

    fn file(&self, item: Item<'_>, finished: &Finished) -> Result<()> {
        let Location { file, offset, len } = item.source.location;
        let source = self.from.open(file)?;
        let mut sink = self.to.create(item.copy.id)?;
        if item.over.is_some() {
            sink.write(&self.small(source.as_ref(), ByteRange::new(offset, len), &item)?)?;
            self.count(len);
        } else {
            let head = source.read_one(ByteRange::new(offset, HEADER_BYTES as u64))?;
            sink.write(&renamed_header(&head, item.source.id, item.copy.id)?)?;
            let (mut at, end) = (offset + HEADER_BYTES as u64, offset.saturating_add(len));
            self.count(HEADER_BYTES as u64);
            while at < end {
                self.cancel.check()?;
                let part = ByteRange::new(at, CHUNK_BYTES.min(end - at));
                sink.write(&source.read_one(part)?)?;
                self.count(part.len);
                at = part.end();
            }
        }
        sink.finish()?;
        let location = Location { file: FileRef::Data(item.copy.id), offset: 0, len };
        put(finished, item.place, Description { location, ..item.copy }, None);
        Ok(())
    }

    fn pack(&self, items: Vec<Item<'_>>, finished: &Finished) -> Result<()> {
        let pack = self.entropy.id();
        let mut sink: Option<Box<dyn crate::base::ByteSink>> = None;
        let (mut end, mut made) = (0u64, Vec::with_capacity(items.len()));
        for item in items {
            let Some(bytes) = self.bytes(&item)? else {
                made.push((item.place, item.copy));
                continue;
            };
            let sink = match &mut sink {
                Some(sink) => sink,
                none => none.insert(self.to.create(pack)?),
            };
            let offset = end.next_multiple_of(PACK_ALIGNMENT);
            sink.write([0; PACK_ALIGNMENT as usize].get(..(offset - end) as usize).unwrap_or_default())?;
            sink.write(&bytes)?;
            end = offset + bytes.len() as u64;
            let location = Location { file: FileRef::Data(pack), offset, len: bytes.len() as u64 };
            made.push((item.place, Description { location, ..item.copy }));
        }
        sink.map_or(Ok(()), |sink| sink.finish())?;
        made.into_iter().for_each(|(place, copy)| put(finished, place, copy, None));
        Ok(())
    }

    fn body(&self, item: Item<'_>, finished: &Finished) -> Result<()> {
        self.cancel.check()?;
        let bytes = self.bytes(&item)?.map(Bytes::from);
        put(finished, item.place, item.copy, bytes);
        Ok(())
    }

    /// The bytes of a small fragment under its new id; `None` for a deletion, which has none. They are read from its
    /// current location.
    fn bytes(&self, item: &Item<'_>) -> Result<Option<Vec<u8>>> {
        self.cancel.check()?;
        let Location { file, offset, len } = item.source.location;
        if item.source.kind == FragmentKind::Deletion {
            return Ok(None);
        }
        let read = |file: FileRef, range: ByteRange| self.small(self.from.open(file)?.as_ref(), range, item);
        let found = read(file, ByteRange::new(offset, len)).or_else(|e| match self.from.moved(item.source.id) {
            Ok(Some((file, range))) if e.kind() == ErrorKind::NotFound => read(file, range),
            _ => Err(e),
        })?;
        self.count(len);
        Ok(Some(found))
    }

    fn small(&self, source: &dyn ByteSource, range: ByteRange, item: &Item<'_>) -> Result<Vec<u8>> {
        let bytes = source.read_one(range)?;
        if let Some((from, to)) = item.over {
            return renamed_mask(&bytes, from, to);
        }
        let (head, rest) = bytes.split_at_checked(HEADER_BYTES).ok_or_else(|| {
            Error::corruption(format!("fragment {}: {} bytes are too few", item.source.id, bytes.len()))
        })?;
        let mut renamed = renamed_header(head, item.source.id, item.copy.id)?;
        renamed.extend_from_slice(rest);
        Ok(renamed)
    }

    fn count(&self, bytes: u64) {
        let done = self.done_bytes.fetch_add(bytes, Ordering::Relaxed).saturating_add(bytes);
        self.progress.report(done.min(self.total_bytes), self.total_bytes);
    }
}

/// These fragments in the order in which their copies are added. Within one order deletions come first: they delete only
/// what is older.
pub(super) fn in_order(fragments: &[Arc<Description>]) -> Vec<&Arc<Description>> {
    let mut ordered: Vec<&Arc<Description>> = fragments.iter().collect();
    ordered.sort_by_key(|d| (d.order, !d.kind.deletes()));
    ordered
}

fn with<T>(mut list: Vec<T>, last: T) -> Vec<T> {
    list.push(last);
    list
}

fn put(finished: &Finished, place: usize, description: Description, body: Option<Bytes>) {
    finished.lock().unwrap_or_else(PoisonError::into_inner).push((place, Staged { description, body }));
}
