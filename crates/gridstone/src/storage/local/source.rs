//! A file with random access.

use super::open_files::OpenFiles;
use super::place::open_object;
use super::streams::read_ahead;
use super::waits::{Waits, tell};
use crate::base::{Ahead, ByteRange, ByteSource, Error, ErrorKind, Pending, Result, limits};
use crate::storage::coalesce::{MERGED_BYTES_MAX, Merged, coalesce};
use crate::storage::names;
use crate::storage::os_error::os_error;
use bytes::Bytes;
use std::alloc::{Layout, alloc_zeroed};
use std::fs::File;
use std::io::ErrorKind as Os;
#[cfg(target_os = "linux")]
use std::io::IoSliceMut;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The alignment of bytes in memory relative to the file, so that data aligned by the format stays aligned.
const ALIGNMENT: usize = 64;

/// A file of a store. It is opened again if the bound on open files has closed it. So a deleted file stays readable for
/// a while only, and then gives a clear error.
#[derive(Debug)]
pub(super) struct LocalSource {
    path: PathBuf,
    len: u64,
    number: u64,
    files: &'static OpenFiles,
    waits: Waits,
}

/// The whole content of a file of at most `bytes_max` bytes; NotFound if there is none.
pub(super) fn read_all(path: &Path, bytes_max: u64) -> Result<Bytes> {
    read_start(path, u64::MAX, bytes_max)
}

/// The first `len` bytes of a file, or all that it has.
pub(super) fn read_start(path: &Path, len: u64, bytes_max: u64) -> Result<Bytes> {
    let (file, metadata) = open_object(path)?;
    let file_len = metadata.len();
    names::check_length(&path.display(), file_len, bytes_max)?;
    read_range((&file, &Waits::default()), path, ByteRange::new(0, file_len.min(len)), file_len)
}

impl LocalSource {
    /// Opens the file; NotFound if there is none.
    pub(super) fn open(path: PathBuf, files: &'static OpenFiles) -> Result<Self> {
        let (file, metadata) = open_object(&path)?;
        let source = Self { path, len: metadata.len(), number: files.number(), files, waits: Waits::default() };
        files.get(source.number, || Ok(file))?;
        Ok(source)
    }

    fn file(&self) -> Result<Arc<File>> {
        self.files.get(self.number, || self.reopened())
    }

    fn reopened(&self) -> Result<File> {
        let (file, metadata) = open_object(&self.path).map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                e.context("this file was deleted while it was in use; open the newest version and read again")
            }
            _ => e,
        })?;
        let len = metadata.len();
        if len == self.len {
            return Ok(file);
        }
        Err(Error::corruption(format!(
            "{} has {len} bytes now, it had {} when it was opened; nothing may change the files of a store",
            self.path.display(),
            self.len
        )))
    }

    fn checked(&self, range: ByteRange) -> Result<()> {
        if range.offset.checked_add(range.len).is_some_and(|end| end <= self.len) {
            return Ok(());
        }
        Err(short(&self.path, range, self.len, Os::UnexpectedEof.into()))
    }

    fn scatter(&self, file: &File, read: Merged, ranges: &[ByteRange], found: &mut [Bytes]) -> Result<()> {
        let bytes = read_range((file, &self.waits), &self.path, read.range, self.len)?;
        for part in read.parts {
            if let (Some(asked), Some(place)) = (ranges.get(part.index), found.get_mut(part.index)) {
                let start = part.start as usize;
                *place = bytes.slice(start..start + asked.len as usize);
            }
        }
        Ok(())
    }
}

fn short(path: &Path, range: ByteRange, len: u64, error: std::io::Error) -> Error {
    Error::corruption(format!(
        "{} is too short: {} bytes wanted at offset {}, its length was {len} when it was opened",
        path.display(),
        range.len,
        range.offset
    ))
    .with_source(error)
}

/// A range inside the file, which had `file_len` bytes when it was opened.
fn read_range(file: (&File, &Waits), path: &Path, range: ByteRange, file_len: u64) -> Result<Bytes> {
    let len = range.len as usize;
    let mut buffer = zeros(len.saturating_add(ALIGNMENT)).ok_or_else(|| {
        Error::budget(format!("no memory for {len} bytes of {}; if they are wanted, read less at once", path.display()))
    })?;
    let lead = (buffer.as_ptr().align_offset(ALIGNMENT) + range.offset as usize % ALIGNMENT) % ALIGNMENT;
    let target = buffer.get_mut(lead..lead + len).unwrap_or_default();
    fill(file, path, range, file_len, target)?;
    Ok(Bytes::from(buffer).slice(lead..lead + len))
}

/// A vector of zeros, if there is memory for it: the length comes from data on disk.
fn zeros(len: usize) -> Option<Vec<u8>> {
    let layout = Layout::array::<u8>(len).ok().filter(|layout| layout.size() > 0)?;
    // SAFETY: the layout has a size.
    let start = unsafe { alloc_zeroed(layout) };
    // SAFETY: `start` was allocated by the global allocator with the layout of `len` bytes, and all of them are zeros.
    (!start.is_null()).then(|| unsafe { Vec::from_raw_parts(start, len, len) })
}

fn fill((file, waits): (&File, &Waits), path: &Path, range: ByteRange, file_len: u64, out: &mut [u8]) -> Result<()> {
    waits.fill(file, range.offset, out).map_err(|e| failed(path, range, file_len, e))
}

fn failed(path: &Path, range: ByteRange, file_len: u64, error: std::io::Error) -> Error {
    match error.kind() {
        Os::UnexpectedEof => short(path, range, file_len, error),
        _ => os_error(format_args!("cannot read {}", path.display()), error),
    }
}

impl Drop for LocalSource {
    fn drop(&mut self) {
        self.files.forget(self.number);
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

    fn read_into(&self, offset: u64, out: &mut [u8]) -> Result<()> {
        let range = ByteRange::new(offset, out.len() as u64);
        self.checked(range)?;
        fill((self.file()?.as_ref(), &self.waits), &self.path, range, self.len, out)
    }

    #[cfg(target_os = "linux")]
    fn scatters(&self) -> bool {
        true
    }

    #[cfg(target_os = "linux")]
    fn read_into_each(&self, offset: u64, outs: &mut [IoSliceMut<'_>]) -> Result<()> {
        let range = ByteRange::new(offset, outs.iter().map(|out| out.len() as u64).sum());
        self.checked(range)?;
        self.waits.fill_each(self.file()?.as_ref(), offset, outs).map_err(|e| failed(&self.path, range, self.len, e))
    }

    fn is_cold(&self) -> bool {
        self.waits.is_cold()
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        // The following read reports what is wrong with the file.
        let Ok(file) = self.file() else { return };
        let inside = |range: &&ByteRange| range.offset.checked_add(range.len).is_some_and(|end| end <= self.len);
        let inside: Vec<ByteRange> = ranges.iter().filter(inside).copied().collect();
        self.waits.prefetch(&inside, || read_ahead(&file), |range| tell(&file, range));
    }
}

/// Ranges inside the file, read when the caller waits for them.
#[derive(Debug)]
struct Reads<'a> {
    source: &'a LocalSource,
    ranges: Vec<ByteRange>,
}

impl Pending for Reads<'_> {
    fn wait(self: Box<Self>) -> Result<Vec<Bytes>> {
        let mut found = vec![Bytes::new(); self.ranges.len()];
        let file = self.source.file()?;
        let reads = coalesce(&self.ranges, limits::GAP_BYTES, MERGED_BYTES_MAX);
        let runs: Vec<ByteRange> = reads.iter().map(|read| read.range).collect();
        let mut ahead = Ahead::default();
        for (at, read) in reads.into_iter().enumerate() {
            if runs.len() > 1 {
                ahead.before(at, &runs, self.source);
            }
            self.source.scatter(&file, read, &self.ranges, &mut found)?;
        }
        Ok(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_there_is_not_is_no_abort() {
        assert_eq!(zeros(70), Some(vec![0; 70]));
        assert_eq!((zeros(usize::MAX), zeros(isize::MAX as usize), zeros(0)), (None, None, None));
    }

    #[test]
    fn ranges_far_apart_are_told_together_before_they_are_read() {
        let path = std::env::temp_dir().join(format!("gridstone-source-{}", std::process::id()));
        let bytes: Vec<u8> = (0..3u32 << 20).map(|n| (n >> 12) as u8).collect();
        std::fs::write(&path, &bytes).unwrap();
        let files = Box::leak(Box::new(OpenFiles::new(4)));
        let source = LocalSource::open(path.clone(), files).unwrap();
        let ranges = [0, 1 << 20, 2 << 20].map(|offset| ByteRange::new(offset, 5_000));
        let read = |ranges: &[ByteRange]| source.submit(ranges).unwrap().wait().unwrap();
        let told_by = |ranges: &[ByteRange]| {
            source.waits.be_waited_for();
            for (range, found) in ranges.iter().zip(read(ranges)) {
                assert_eq!(found, bytes[range.offset as usize..range.end() as usize]);
            }
            source.waits.told()
        };
        assert_eq!(
            (told_by(&ranges), told_by(&ranges[..1])),
            (1, 0),
            "three at once; one alone is read as soon as told"
        );
        std::fs::remove_file(&path).unwrap();
    }
}
