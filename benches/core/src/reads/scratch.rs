//! Temporary files for the benchmarks: a folder that is removed at the end, and dropping files from memory.

use super::failed;
use gridstone::base::{Error, Result};
use std::fs::File;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// A folder that is removed at the end.
#[derive(Debug)]
pub(super) struct Folder(PathBuf);

impl Folder {
    pub(super) fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("gridstone-reads-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path).map_err(|e| failed("making a folder for temporary files", e))?;
        Ok(Self(path))
    }

    pub(super) fn path(&self) -> &Path {
        &self.0
    }

    /// Drops the pages of all files in it from memory.
    ///
    /// # Errors
    /// Storage if one cannot be read; Unsupported if the system keeps them.
    pub(super) fn drop_pages(&self) -> Result<()> {
        let mut folders = vec![self.0.clone()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).map_err(|e| failed("listing a folder", e))? {
                let path = entry.map_err(|e| failed("listing a folder", e))?.path();
                if path.is_dir() {
                    folders.push(path);
                } else {
                    drop_pages(&File::open(path).map_err(|e| failed("opening a file", e))?)?;
                }
            }
        }
        Ok(())
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: the rest is among temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Drops the pages of `file` from memory. Dirty pages are written first, since only clean pages are dropped.
///
/// # Errors
/// Storage if the system refuses; Unsupported if it keeps them.
pub(super) fn drop_pages(file: &File) -> Result<()> {
    file.sync_all().map_err(|e| failed("fsync", e))?;
    // The system keeps pages that are in use at the moment.
    for _ in 0..TRIES {
        // SAFETY: the descriptor is open as long as `file` is borrowed; no memory is handed over.
        let refused = unsafe { libc::posix_fadvise(file.as_raw_fd(), 0, 0, libc::POSIX_FADV_DONTNEED) };
        if refused != 0 {
            return Err(failed("dropping pages", std::io::Error::from_raw_os_error(refused)));
        }
        if !is_held(file).map_err(|e| failed("looking for pages in memory", e))? {
            return Ok(());
        }
        std::thread::sleep(Duration::from_millis(5));
    }
    Err(Error::unsupported(
        "the pages of files stay in memory here, so that nothing is ever cold; set TMPDIR to a folder on a device",
    ))
}

const TRIES: usize = 100;
const PAGE_BYTES_MIN: usize = 4 << 10;

/// Whether a page of the file is in memory. It is tested by a mapping: a read that does not wait would start to fetch
/// what it misses.
fn is_held(file: &File) -> std::io::Result<bool> {
    let len = file.metadata()?.len() as usize;
    if len == 0 { Ok(false) } else { Map::new(file, len)?.is_held() }
}

/// A file mapped into memory.
pub(super) struct Map {
    at: *mut libc::c_void,
    len: usize,
}

impl Map {
    pub(super) fn new(file: &File, len: usize) -> std::io::Result<Self> {
        // SAFETY: a new mapping at an address that the system chooses, of an open descriptor.
        let at =
            unsafe { libc::mmap(std::ptr::null_mut(), len, libc::PROT_READ, libc::MAP_SHARED, file.as_raw_fd(), 0) };
        if at == libc::MAP_FAILED { Err(std::io::Error::last_os_error()) } else { Ok(Self { at, len }) }
    }

    pub(super) fn bytes(&self) -> &[u8] {
        // SAFETY: `at` maps `len` bytes until `self` is dropped. The file is in a folder of this process, which neither
        // writes to it nor shortens it after creation.
        unsafe { std::slice::from_raw_parts(self.at.cast(), self.len) }
    }

    /// Whether any of its pages is in memory.
    fn is_held(&self) -> std::io::Result<bool> {
        let mut pages = vec![0u8; self.len.div_ceil(PAGE_BYTES_MIN)];
        // SAFETY: `at` maps `len` bytes; `pages` has a byte for each page of them, whatever the length of a page.
        if unsafe { libc::mincore(self.at, self.len, pages.as_mut_ptr()) } != 0 {
            return Err(std::io::Error::last_os_error());
        }
        Ok(pages.iter().any(|page| page & 1 == 1))
    }
}

impl Drop for Map {
    fn drop(&mut self) {
        // SAFETY: `at` and `len` are those of the mapping; nothing borrowed from `self` is left.
        unsafe { libc::munmap(self.at, self.len) };
    }
}
