//! An open file that is read at any place.

use crate::base::{ByteRange, ByteSource, Error, ErrorKind, Pending, Result};
use crate::storage::coalesce::{GAP_BYTES, MERGED_BYTES_MAX, Merged, coalesce};
use crate::storage::os_error::os_error;
use bytes::Bytes;
use std::fs::File;
use std::io::ErrorKind as Os;
use std::os::unix::fs::FileExt;
use std::path::PathBuf;

/// Bytes lie in memory at the same remainder of this as in the file, so that what the format aligns stays aligned.
const ALIGNMENT: usize = 64;

/// A file of a store. Holding it open keeps the bytes readable when the name is deleted.
#[derive(Debug)]
pub(super) struct LocalSource {
    path: PathBuf,
    file: File,
    len: u64,
}

impl LocalSource {
    /// Opens the file; NotFound if there is none.
    pub(super) fn open(path: PathBuf) -> Result<Self> {
        let failed = |e| os_error(format_args!("cannot open {}", path.display()), e);
        let file = File::open(&path).map_err(failed)?;
        let metadata = file.metadata().map_err(failed)?;
        if !metadata.is_file() {
            return Err(Error::not_found(format!("cannot open {}: it is not a file", path.display())));
        }
        Ok(Self { len: metadata.len(), path, file })
    }

    fn checked(&self, range: ByteRange) -> Result<()> {
        if range.offset.checked_add(range.len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(self.short(range, Os::UnexpectedEof.into()))
    }

    fn short(&self, range: ByteRange, error: std::io::Error) -> Error {
        Error::new(
            ErrorKind::Corruption,
            format!(
                "{} is too short: {} bytes wanted at offset {}, its length was {} when it was opened",
                self.path.display(),
                range.len,
                range.offset,
                self.len
            ),
        )
        .with_source(error)
    }

    fn read_merged(&self, range: ByteRange) -> Result<Bytes> {
        let len = range.len as usize;
        let mut buffer = vec![0; len + ALIGNMENT];
        let lead = (buffer.as_ptr().align_offset(ALIGNMENT) + range.offset as usize % ALIGNMENT) % ALIGNMENT;
        let target = buffer.get_mut(lead..lead + len).unwrap_or_default();
        self.file.read_exact_at(target, range.offset).map_err(|e| match e.kind() {
            Os::UnexpectedEof => self.short(range, e),
            _ => os_error(format_args!("cannot read {}", self.path.display()), e),
        })?;
        Ok(Bytes::from(buffer).slice(lead..lead + len))
    }

    fn scatter(&self, read: Merged, ranges: &[ByteRange], found: &mut [Bytes]) -> Result<()> {
        let bytes = self.read_merged(read.range)?;
        for part in read.parts {
            if let (Some(asked), Some(place)) = (ranges.get(part.index), found.get_mut(part.index)) {
                let start = part.start as usize;
                *place = bytes.slice(start..start + asked.len as usize);
            }
        }
        Ok(())
    }
}

impl ByteSource for LocalSource {
    fn len(&self) -> u64 {
        self.len
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        ranges.iter().try_for_each(|range| self.checked(*range))?;
        Ok(Box::new(Reads { source: self, ranges: ranges.to_vec() }))
    }
}

/// Ranges that lie inside the file, to be read by whoever waits for them.
#[derive(Debug)]
struct Reads<'a> {
    source: &'a LocalSource,
    ranges: Vec<ByteRange>,
}

impl Pending for Reads<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let mut found = vec![Bytes::new(); self.ranges.len()];
        for read in coalesce(&self.ranges, GAP_BYTES, MERGED_BYTES_MAX) {
            self.source.scatter(read, &self.ranges, &mut found)?;
        }
        Ok(found)
    }
}
