//! The calls that change a directory tree, one by one: all that a power cut can undo or leave half done.
//!
//! A test puts itself in their place, to note in which order files and folders are made durable, or to answer as a
//! broken device does. Reading is not among them.

use super::place::Place;
use std::fmt::Debug;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::fd::IntoRawFd;
use std::path::Path;

/// What a [`super::LocalStorage`] asks of the operating system when it changes something. Each call does what the
/// system's own does; who overrides one calls that of [`SystemCalls`], or answers in its place. Calls for files refuse a folder
/// that is a link.
pub trait DiskCalls: Debug + Send + Sync {
    /// Creates a file that is not there.
    fn create(&self, path: &Path) -> io::Result<File> {
        Place::of(path)?.create()
    }

    /// Appends to a file that was created as `path`; gives how many bytes it took.
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

    /// Closes a file that was written. Some file systems say only now that its bytes found no room.
    fn close(&self, path: &Path, file: File) -> io::Result<()> {
        let _ = path;
        // SAFETY: the descriptor was this file's own, and nobody uses it after this.
        match unsafe { libc::close(file.into_raw_fd()) } {
            0 => Ok(()),
            _ => Err(io::Error::last_os_error()),
        }
    }

    /// Gives a file another name beside its own, unless something has it.
    fn link(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::of(from)?.link(&Place::of(to)?)
    }

    /// Gives a file another name, in place of what has it.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        Place::of(from)?.rename(&Place::of(to)?)
    }

    /// Gives a folder another name in the folder of the store.
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

    /// Removes a folder with all that is in it, one by one; of what is no folder its name. No link is followed.
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
