//! An object with random access.
//!
//! Opening requests the object's end; the answer also includes the length. Most opened objects are read there next.
//! Ranges are requested concurrently, nearby ones together.

use super::ahead::{ReadAhead, ReadsAhead};
use super::client::{Client, Found};
use crate::base::{Begun, ByteRange, ByteSource, Error, Pending, Result};
use crate::runtime::{Asked, Owner};
use crate::storage::coalesce::{Merged, coalesce};
use bytes::Bytes;
use object_store::{Error as Store, GetOptions, GetRange};
use std::sync::{Arc, Mutex, PoisonError};

/// How many bytes of an object's end the opening reads: a fragment's reader needs them first, and a small record is
/// contained.
pub(super) const TAIL_BYTES: u64 = 64 * 1024;

/// Ranges no further apart than this are requested together. A request takes some 20 ms before its first byte, in which
/// 1 to 2 MB would arrive. But requests run concurrently, and where bytes cost money, those of the gap do too.
pub(super) const GAP_BYTES: u64 = 512 * 1024;

/// The largest length of a merged range: longer ones arrive sooner as several concurrent requests.
const MERGED_BYTES_MAX: u64 = 8 << 20;

/// An object of a store.
#[derive(Debug)]
pub(super) struct ObjectSource {
    client: Arc<Client>,
    name: String,
    len: u64,
    tag: Option<String>,
    tail: Mutex<Option<Tail>>,
    ahead: ReadsAhead,
}

/// The last bytes of an object.
#[derive(Debug, Clone)]
struct Tail {
    start: u64,
    bytes: Bytes,
}

impl Tail {
    fn part(&self, range: ByteRange) -> Option<Bytes> {
        let from = range.offset.checked_sub(self.start)? as usize;
        let to = from.checked_add(usize::try_from(range.len).ok()?)?;
        (to <= self.bytes.len()).then(|| self.bytes.slice(from..to))
    }
}

fn deleted(error: Error) -> Error {
    error.context("this object was deleted while it was in use; open the newest version and read again")
}

impl ObjectSource {
    /// Opens the object; NotFound if there is none.
    pub(super) fn open(client: Arc<Client>, name: &str) -> Result<Self> {
        let path = client.path(name);
        let options = GetOptions { range: Some(GetRange::Suffix(TAIL_BYTES)), ..GetOptions::default() };
        let answer = client
            .start(|stores| async move { super::client::fetched(stores.patient.as_ref(), &path, options).await })?
            .wait_or_cancel()?;
        let found = match answer {
            Ok(found) => found,
            Err(e) if has_no_end(&e) => Self::end_of(&client, name, e)?,
            Err(e) => return Err(client.error("cannot open", name, e)),
        };
        Ok(Self::of(client, name, found))
    }

    /// The end of an object in a store that does not serve suffix ranges (`refusal`): its length is requested first.
    fn end_of(client: &Client, name: &str, refusal: Store) -> Result<Found> {
        let absent =
            || Error::not_found(format!("cannot open {}: no such object", client.named(name))).with_source(refusal);
        let head = client.head(name)?.ok_or_else(absent)?;
        if head.meta.size == 0 {
            return Ok(head);
        }
        let range = head.meta.size.saturating_sub(TAIL_BYTES)..head.meta.size;
        let if_match = head.meta.e_tag;
        client.get(name, GetOptions { range: Some(GetRange::Bounded(range)), if_match, ..GetOptions::default() })
    }

    fn of(client: Arc<Client>, name: &str, found: Found) -> Self {
        let tail = Tail { start: found.start, bytes: found.bytes };
        let whole = tail.start + tail.bytes.len() as u64 == found.meta.size;
        let tail = Mutex::new(whole.then_some(tail));
        let ahead = ReadsAhead::default();
        Self { client, name: name.to_owned(), len: found.meta.size, tag: found.meta.e_tag, tail, ahead }
    }

    /// The bytes of `range`, if the end read at the opening holds them. For a longer object the end is given out once,
    /// so that sources which stay open do not keep it.
    fn tail_part(&self, range: ByteRange) -> Option<Bytes> {
        // In the child of a fork the lock may be held by a thread that does not exist there.
        let mut tail = match self.tail.try_lock() {
            Ok(tail) => tail,
            Err(std::sync::TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            Err(std::sync::TryLockError::WouldBlock) => return None,
        };
        let found = tail.as_ref()?.part(range)?;
        if range.len > 0 && tail.as_ref().is_some_and(|tail| tail.start > 0) {
            *tail = None;
        }
        Some(found)
    }

    /// Whether the end read at the opening holds a range; it is kept.
    fn has_in_tail(&self, range: ByteRange) -> bool {
        let tail = self.tail.try_lock().ok();
        tail.is_some_and(|tail| tail.as_ref().is_some_and(|tail| tail.part(range).is_some()))
    }

    fn checked(&self, range: ByteRange) -> Result<()> {
        if range.offset.checked_add(range.len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(Error::corruption(format!(
            "{} is too short: {} bytes wanted at offset {}, its length was {} when it was opened",
            self.client.named(&self.name),
            range.len,
            range.offset,
            self.len
        )))
    }

    fn start(&self, read: Merged) -> Result<Read> {
        let range = read.range.offset..read.range.end();
        let answer = self.client.start_range(&self.name, range, self.tag.clone())?;
        Ok(Read { read, answer })
    }

    /// The bytes of a range, ignoring reads started before.
    fn read_anew(&self, range: ByteRange) -> Result<Bytes> {
        let Read { read, answer } = self.start(Merged { range, parts: Vec::new() })?;
        self.received(read.range, answer.wait())
    }

    fn failed(&self, error: Store) -> Error {
        match error {
            Store::NotFound { .. } => deleted(self.client.error("cannot read", &self.name, error)),
            // For a request with a tag, some stores answer that the tag differs if the object does not exist.
            Store::Precondition { .. } | Store::NotModified { .. } => match self.client.head(&self.name) {
                Ok(None) => deleted(
                    Error::not_found(format!("cannot read {}: no such object", self.client.named(&self.name)))
                        .with_source(error),
                ),
                _ => Error::corruption(format!(
                    "{} was replaced after it was opened; nothing may change the objects of a store",
                    self.client.named(&self.name)
                ))
                .with_source(error),
            },
            error => self.client.error("cannot read", &self.name, error),
        }
    }

    /// The bytes of a read, if they belong to the object that was opened.
    fn received(&self, range: ByteRange, answer: Result<object_store::Result<Found>>) -> Result<Bytes> {
        let found = answer?.map_err(|e| self.failed(e))?;
        if found.bytes.len() as u64 == range.len && found.start == range.offset && found.meta.size == self.len {
            return Ok(found.bytes);
        }
        Err(Error::corruption(format!(
            "{} has {} bytes now, it had {} when it was opened, and gave {} of {} bytes wanted at offset {}; nothing may change \
             the objects of a store",
            self.client.named(&self.name),
            found.meta.size,
            self.len,
            found.bytes.len(),
            range.len,
            range.offset
        )))
    }
}

/// Whether the store does not return the end of an object: for an empty one, or never (Azure).
pub(super) fn has_no_end(error: &Store) -> bool {
    let text = error.to_string();
    matches!(error, Store::NotSupported { .. } | Store::NotImplemented { .. })
        || ["416", "InvalidRange", "range"].iter().any(|part| text.contains(part))
            && matches!(error, Store::Generic { .. })
}

impl ByteSource for ObjectSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        ranges.iter().try_for_each(|range| self.checked(*range))?;
        let mut found = vec![Bytes::new(); ranges.len()];
        let (mut missing, mut begun) = (ranges.to_vec(), Vec::new());
        for (index, (range, place)) in missing.iter_mut().zip(&mut found).enumerate() {
            if let Some(bytes) = self.tail_part(*range) {
                *place = bytes;
            } else if let Some(reads) = self.ahead.holding(*range) {
                begun.push((index, *range, reads));
            } else {
                continue;
            }
            // A range that needs no request has length 0 in the plan.
            range.len = 0;
        }
        let plan = coalesce(&missing, GAP_BYTES, MERGED_BYTES_MAX);
        let reads = plan.into_iter().map(|read| self.start(read)).collect::<Result<_>>()?;
        Ok(Box::new(Reads { source: self, owner: Owner::here(), ranges: missing, found, reads, begun }))
    }

    fn begin(&self, ranges: &[ByteRange]) -> Option<Arc<dyn Begun>> {
        let wanted = |range: &&ByteRange| range.end() <= self.len && !self.has_in_tail(**range);
        let wanted: Vec<ByteRange> = ranges.iter().filter(wanted).copied().collect();
        let plan = coalesce(&wanted, GAP_BYTES, MERGED_BYTES_MAX);
        // A request that cannot be sent is sent again, and fails, when the bytes are needed.
        let started = plan.into_iter().filter_map(|read| self.start(read).ok());
        self.ahead.hold(started.map(|Read { read, answer }| (read.range, answer)).collect())
    }

    fn remote_gap(&self) -> Option<u64> {
        Some(GAP_BYTES)
    }
}

/// A request in flight.
struct Read {
    read: Merged,
    answer: Asked<object_store::Result<Found>>,
}

/// Submitted ranges.
struct Reads<'a> {
    source: &'a ObjectSource,
    owner: Owner,
    ranges: Vec<ByteRange>,
    found: Vec<Bytes>,
    reads: Vec<Read>,
    /// Indexes of requested ranges, the ranges, and the reads started before that hold them.
    begun: Vec<(usize, ByteRange, Vec<Arc<ReadAhead>>)>,
}

impl Reads<'_> {
    /// The bytes of a range that was started before; requested anew if that read was lost, or belongs to the parent
    /// process.
    fn begun_bytes(&self, range: ByteRange, reads: &[Arc<ReadAhead>]) -> Result<Bytes> {
        let (mut at, mut found) = (range.offset, Vec::with_capacity(reads.len()));
        for read in reads {
            let received = |answer| self.source.received(read.range(), answer);
            let bytes = if self.owner.is_here() { read.bytes(received)? } else { None };
            let Some(bytes) = bytes else { return self.source.read_anew(range) };
            let (start, end) = (at - read.range().offset, range.end().min(read.range().end()) - read.range().offset);
            found.push(bytes.slice(start as usize..end as usize));
            at = read.range().end();
        }
        Ok(match found.as_slice() {
            [one] => one.clone(),
            parts => parts.concat().into(),
        })
    }
}

impl Pending for Reads<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let ahead: Vec<(usize, Bytes)> = (self.begun.iter())
            .map(|(index, range, reads)| Ok((*index, self.begun_bytes(*range, reads)?)))
            .collect::<Result<_>>()?;
        let Self { source, owner, ranges, mut found, reads, .. } = *self;
        for (index, bytes) in ahead {
            if let Some(place) = found.get_mut(index) {
                *place = bytes;
            }
        }
        for Read { read, answer } in reads {
            // The parent's thread does not answer its child.
            let answer = if owner.is_here() { answer } else { source.start(read.clone())?.answer };
            let bytes = source.received(read.range, answer.wait())?;
            for part in read.parts {
                if let (Some(asked), Some(place)) = (ranges.get(part.index), found.get_mut(part.index)) {
                    let start = part.start as usize;
                    *place = bytes.slice(start..start + asked.len as usize);
                }
            }
        }
        Ok(found)
    }
}
