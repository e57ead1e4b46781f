//! The traits for reading and writing bytes. Only the `storage` floor implements them for real devices.
//!
//! A source is a completion queue: a caller submits ranges, continues its work, then waits for their bytes.

use super::{Error, ForeignObject, Id, Result};
use bytes::Bytes;
use std::io::IoSliceMut;
use std::sync::Arc;

/// A range of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// Its start, in bytes from the start of the source.
    pub offset: u64,
    /// Its length in bytes.
    pub len: u64,
}

impl ByteRange {
    /// The range of `len` bytes at `offset`.
    pub fn new(offset: u64, len: u64) -> Self {
        Self { offset, len }
    }

    /// One past the last byte; saturating, since ranges may come from disk.
    pub fn end(self) -> u64 {
        self.offset.saturating_add(self.len)
    }
}

/// Submitted reads, to wait for.
pub trait Pending: Send {
    /// Blocks until all ranges have arrived; returns one `Bytes` per submitted range, in that order and of its exact
    /// length.
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>>;
}

/// Reads that have completed.
#[derive(Debug)]
pub struct Ready(pub Vec<Bytes>);

impl Pending for Ready {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        Ok(self.0)
    }
}

/// Reads started ahead of the callers that need their bytes. Dropping it gives them up.
pub trait Begun: Send + Sync + std::fmt::Debug {}

/// Immutable bytes with random access.
pub trait ByteSource: Send + Sync + std::fmt::Debug {
    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts to read `ranges`. A range past the end is a Corruption error (here or in `wait`), never short bytes.
    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>>;

    /// Reads `ranges` and waits for them.
    fn read(&self, ranges: &[ByteRange]) -> Result<Vec<Bytes>> {
        self.submit(ranges)?.wait()
    }

    /// Fills `out` with the bytes from `offset` on, without an allocation where the source can.
    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let bytes = self.read_one(ByteRange::new(offset, out.len() as u64))?;
        if bytes.len() != out.len() {
            return Err(Error::storage("a source gave fewer bytes than were asked of it"));
        }
        out.copy_from_slice(&bytes);
        Ok(())
    }

    /// Whether [`ByteSource::read_into_each`] takes at most one call of the operating system, and copies nothing twice.
    fn scatters(&self) -> bool {
        false
    }

    /// Fills `outs`, one after the other, with the bytes from `offset` on. The slices' contents are unspecified
    /// afterwards.
    fn read_into_each(&self, offset: u64, outs: &mut [IoSliceMut<'_>]) -> Result<()> {
        let mut offset = offset;
        for out in outs {
            self.read_into(offset, out)?;
            offset += out.len() as u64;
        }
        Ok(())
    }

    /// Whether a recent read waited for a device, so that prefetching is worthwhile.
    fn is_cold(&self) -> bool {
        false
    }

    /// Announces that `ranges` will be read soon, in this order; a source that is cold starts to fetch those that it
    /// has.
    fn prefetch(&self, ranges: &[ByteRange]) {
        let _ = ranges;
    }

    /// `Some` if a request has such a latency that many ranges should be submitted together. Ranges no further apart
    /// than this many bytes are then fetched together with the gap.
    fn remote_gap(&self) -> Option<u64> {
        None
    }

    /// Starts to fetch `ranges`, which will be read soon, if requests have a high latency ([`ByteSource::remote_gap`]);
    /// nearby ranges together. As long as the result is held, reads of these ranges wait for the requests in flight
    /// instead of sending new ones. Errors are reported to those reads.
    fn begin(&self, ranges: &[ByteRange]) -> Option<Arc<dyn Begun>> {
        let _ = ranges;
        None
    }

    /// Reads one range and waits for it.
    fn read_one(&self, range: ByteRange) -> Result<Bytes> {
        self.read(&[range])?.pop().ok_or_else(|| Error::storage("a source answered one range with none"))
    }
}

/// A file being written, front to back.
pub trait ByteSink: Send {
    /// Appends `bytes`.
    fn write(&mut self, bytes: &[u8]) -> Result<()>;

    /// Makes the bytes and the file's name durable (as far as the storage's durability setting requires) and closes it.
    /// If it is dropped without `finish`, the file is removed as far as possible.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// The object of a store that holds some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileRef {
    /// The data file (one fragment, or a pack of small ones) of this id.
    Data(Id),
    /// The log record of this version, whose body holds inline fragments.
    Log(u64),
    /// No file: the reference itself has all the content.
    Nowhere,
    /// The data file of this id on another base than the own store, by the base's number.
    OnBase(u32, Id),
}

/// Files of other formats that a store refers to.
pub trait Sources: Send + Sync + std::fmt::Debug {
    /// Opens an object for reading, as it was when it was attached.
    ///
    /// # Errors
    /// SourceChanged: it is gone or has changed. Access: the store's context does not allow it.
    fn open(&self, object: &ForeignObject) -> Result<Arc<dyn ByteSource>>;

    /// The folder that paths of objects count from, or its URL; `None` if there is none.
    fn folder(&self) -> Option<String> {
        None
    }

    /// Opens an object under the prefix of a source.
    ///
    /// # Errors
    /// As [`Sources::open`]; an Access error names the prefix, if that is not allowed.
    fn open_under(&self, prefix: &ForeignObject, object: &ForeignObject) -> Result<Arc<dyn ByteSource>>;

    /// A SourceChanged error if what lies under a prefix is not what was attached.
    ///
    /// # Errors
    /// As [`Sources::open`].
    fn check_prefix(&self, prefix: &ForeignObject) -> Result<()>;
}

/// A store's files, by id and never by path.
pub trait Files: Send + Sync + std::fmt::Debug {
    /// Opens the file for reading; NotFound if it does not exist.
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>>;

    /// The current location of a fragment's bytes, if its former file is gone and they were moved to another; `None` if
    /// they were not moved.
    fn moved(&self, fragment: Id) -> Result<Option<(FileRef, ByteRange)>> {
        let _ = fragment;
        Ok(None)
    }

    /// What opens the files of other formats that fragments refer to; `None` if there is nothing that could.
    fn sources(&self) -> Option<Arc<dyn Sources>> {
        None
    }

    /// Explains `error`, met while files were read, to the reader: the files may be gone for a reason that is known
    /// here.
    fn explain(&self, error: Error) -> Error {
        error
    }

    /// Whether a lookup of a file costs next to nothing: a system call, not a request.
    fn is_near(&self) -> bool;

    /// Creates the data file `id`; Exists if it exists.
    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>>;

    /// Removes the data file `id`, which only the caller knows of.
    fn remove(&self, id: Id) -> Result<()>;
}

/// A source whose bytes are in memory.
#[derive(Debug, Clone)]
pub struct MemorySource(pub Bytes);

impl ByteSource for MemorySource {
    fn len(&self) -> u64 {
        self.0.len() as u64
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        let slice = |r: &ByteRange| {
            if r.offset.checked_add(r.len).is_none_or(|end| end > self.len()) {
                return Err(Error::corruption(format!(
                    "a read of {} bytes at offset {} passes the end of {} bytes",
                    r.len,
                    r.offset,
                    self.len()
                )));
            }
            Ok(self.0.slice(r.offset as usize..r.end() as usize))
        };
        Ok(Box::new(Ready(ranges.iter().map(slice).collect::<Result<_>>()?)))
    }
}
