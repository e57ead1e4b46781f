//! The traits through which bytes come and go. Only the `storage` floor implements them for real devices.
//!
//! A source is a completion queue: ranges are submitted, work goes on, then their bytes are waited for.

use super::{Error, Id, Result};
use bytes::Bytes;
use std::io::IoSliceMut;
use std::sync::Arc;

/// A run of bytes in a file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct ByteRange {
    /// Where it starts, in bytes from the start of the source.
    pub offset: u64,
    /// How long it is, in bytes.
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

/// Submitted reads that can be waited for.
pub trait Pending: Send {
    /// Blocks until all ranges are there; one `Bytes` per range submitted, in that order and of its exact length.
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>>;
}

/// Reads that are there already.
#[derive(Debug)]
pub struct Ready(pub Vec<Bytes>);

impl Pending for Ready {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        Ok(self.0)
    }
}

/// Reads that were begun ahead of whoever needs their bytes; dropped, they are given up.
pub trait Begun: Send + Sync + std::fmt::Debug {}

/// An immutable run of bytes that can be read at any place.
pub trait ByteSource: Send + Sync + std::fmt::Debug {
    /// The length in bytes.
    fn len(&self) -> u64;

    /// Whether there is no byte.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Starts reading `ranges`. A range past the end is a Corruption error (here or in `wait`), never short bytes.
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

    /// Whether [`ByteSource::read_into_each`] takes no more than one call of the operating system, and copies nothing twice.
    fn scatters(&self) -> bool {
        false
    }

    /// Fills `outs`, one after the other, with the bytes from `offset` on. What they are afterwards is of no use.
    fn read_into_each(&self, offset: u64, outs: &mut [IoSliceMut<'_>]) -> Result<()> {
        let mut offset = offset;
        for out in outs {
            self.read_into(offset, out)?;
            offset += out.len() as u64;
        }
        Ok(())
    }

    /// Whether a device was waited for lately, so that telling what comes next is worth its while.
    fn is_cold(&self) -> bool {
        false
    }

    /// Tells that `ranges` will be read soon, in this order: a source that is waited for begins to fetch what of them it has.
    fn prefetch(&self, ranges: &[ByteRange]) {
        let _ = ranges;
    }

    /// `Some` if the answer to a request takes so long that many ranges should be submitted together: ranges no further apart
    /// than so many bytes are then fetched with what lies between them.
    fn remote_gap(&self) -> Option<u64> {
        None
    }

    /// Begins to fetch `ranges`, which will be read soon, if the answer to a request takes long ([`ByteSource::remote_gap`]); ranges near
    /// each other together. As long as what is returned is held, who reads of them waits for what is under way, and does not ask again. What goes
    /// wrong is told to him.
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

    /// Makes the bytes and the file's name durable (as far as the storage's durability setting asks) and closes
    /// it. Dropped without `finish`, the file is removed as far as possible.
    fn finish(self: Box<Self>) -> Result<()>;
}

/// Which object of a store holds some bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FileRef {
    /// The data file (one fragment, or a pack of small ones) of this id.
    Data(Id),
    /// The log record of this version, whose body holds inline fragments.
    Log(u64),
    /// None: what there is to say is said where it is referred to.
    Nowhere,
}

/// A store's files, by identity and never by path.
pub trait Files: Send + Sync + std::fmt::Debug {
    /// Opens the file for reading; NotFound if it is not there.
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>>;

    /// Where the bytes of a fragment lie now, if the file that it was in is gone and they were moved to another; `None` if
    /// they were not.
    fn moved(&self, fragment: Id) -> Result<Option<(FileRef, ByteRange)>> {
        let _ = fragment;
        Ok(None)
    }

    /// What `error`, met while files were read, means to who reads: the files may be gone for a reason that is known here.
    fn explain(&self, error: Error) -> Error {
        error
    }

    /// Whether a look for a file costs next to nothing, a system call and not a request.
    fn is_near(&self) -> bool;

    /// Creates the data file `id`; Exists if it is there.
    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>>;
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
