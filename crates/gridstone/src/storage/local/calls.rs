//! The calls that change a directory tree, one by one: everything that a power cut can undo or leave half done.
//!
//! A test replaces them, to record in which order files and folders are made durable, or to answer as a broken device
//! does. Reads are not among them.

use super::place::Place;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// The operating system calls of a [`super::LocalStorage`] that change something. Each default is the system's own
/// call; an override calls that of [`SystemCalls`], or answers in its place. Calls for files refuse a folder that is a
/// link.
pub trait DiskCalls: Debug + Send + Sync {
    /// Creates a file that is not there.
    fn create(&self, path: &Path) -> io::Result<File> {
        Place::of(path)?.create()
    }

    /// Appends to a file that was created as `path`; returns how many bytes it took.
    fn write(&self, path: &Path, mut file: &File, bytes: &[u8]) -> io::Result<usize> {
        let _ = path;
        file.write(bytes)
    }

    /// Makes the bytes of a file durable.
    fn sync_file(&self, path: &Path, file: &File) -> io::Result<()> {
        let _ = path;
        file.sync_all()
    }

    /// Makes the names in a folder durable.
    fn sync_folder(&self, path: &Path, folder: &File) -> io::Result<()> {
        let _ = path;
        folder.sync_all()
    }

    /// Closes a file that was written. Some file systems report only now that there was no room for its bytes.
    fn close(&self, path: &Path, file: File) -> io::Result<()> {
        let _ = path;
        // SAFETY: the descriptor was this file's own, and is not used after this.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Adds a name for a file, unless the name is taken.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::of(from)?.link(&Place::of(to)?)
    }

    /// Renames a file, replacing any file of the new name.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::of(from)?.rename(&Place::of(to)?)
    }

    /// Renames a folder within the folder of the store.
    fn rename_folder(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    /// Removes the name of a file.
    fn remove_file(&self, path: &Path) -> io::Result<()> {
        Place::of(path)?.remove()
    }

    /// Makes a folder that is not there.
    fn make_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    /// Removes a folder that is empty.
    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        fs::remove_dir(path)
    }

    /// Removes a folder with everything in it, one entry after the other; removes the name of anything that is no
    /// folder. No link is followed.
    fn remove_all(&self, path: &Path) -> io::Result<()> {
        match fs::symlink_metadata(path)?.is_dir() {
            true => fs::remove_dir_all(path),
            false => fs::remove_file(path),
        }
    }
}

/// The operating system's own calls.
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemCalls;

impl DiskCalls for SystemCalls {}
