//! The folder of an object, held open for one call: no link below the root of a store is followed.
//!
//! An object is `<root>/<folder>/<file>`. The root and the path above it may be links: the user who opens the store
//! chose them. `<folder>` and `<file>` may not be links, since the store's creator chose those. So the folder is opened
//! first, and refused if it is a link; everything else is done relative to its descriptor. A concurrent replacement of
//! the folder changes nothing.
//!
//! Files are opened without blocking, and checked before they are read: a FIFO would block a reader for ever.

use crate::base::{Error, ErrorKind, Result};
use crate::storage::os_error::os_error;
use std::ffi::{CStr, CString, OsStr};
use std::fs::{self, File, FileType, Metadata};
use std::io::{self, ErrorKind as Os};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd, RawFd};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::SystemTime;

/// Enough to find files in a folder, without permission to read it.
#[cfg(target_os = "linux")]
const HELD: i32 = libc::O_PATH;
#[cfg(not(target_os = "linux"))]
const HELD: i32 = libc::O_RDONLY;

/// Permissions of a new file, before the process's mask.
const FILE_MODE: libc::c_uint = 0o666;

/// An open folder, and the name of a file in it.
#[derive(Debug)]
pub(super) struct Place {
    folder: OwnedFd,
    file: CString,
}

impl Place {
    /// The place of `path`; an error if its folder is a link.
    pub(super) fn of(path: &Path) -> io::Result<Self> {
        let (Some(folder), Some(file)) = (path.parent(), path.file_name()) else {
            return Err(Os::InvalidInput.into());
        };
        let folder = opened(libc::AT_FDCWD, &c_text(folder.as_os_str())?, HELD | libc::O_DIRECTORY)?;
        Ok(Self { folder, file: c_text(file)? })
    }

    /// Opens the file for reading, whatever its type.
    fn open(&self) -> io::Result<File> {
        opened(self.folder.as_raw_fd(), &self.file, libc::O_RDONLY | libc::O_NONBLOCK).map(File::from)
    }

    /// Creates the file for writing; AlreadyExists if its name is taken.
    pub(super) fn create(&self) -> io::Result<File> {
        let flags = libc::O_WRONLY | libc::O_CREAT | libc::O_EXCL;
        opened(self.folder.as_raw_fd(), &self.file, flags).map(File::from)
    }

    /// Adds this other name for the file (or link), unless the name is taken.
    pub(super) fn link(&self, to: &Self) -> io::Result<()> {
        let (from_folder, to_folder) = (self.folder.as_raw_fd(), to.folder.as_raw_fd());
        // SAFETY: the descriptors are open and the texts end in a NUL as long as both places are borrowed.
        done(unsafe { libc::linkat(from_folder, self.file.as_ptr(), to_folder, to.file.as_ptr(), 0) })
    }

    /// Renames the file to this other name, replacing any file of that name.
    pub(super) fn rename(&self, to: &Self) -> io::Result<()> {
        let (from_folder, to_folder) = (self.folder.as_raw_fd(), to.folder.as_raw_fd());
        // SAFETY: the descriptors are open and the texts end in a NUL as long as both places are borrowed.
        done(unsafe { libc::renameat(from_folder, self.file.as_ptr(), to_folder, to.file.as_ptr()) })
    }

    /// Removes the name of the file.
    pub(super) fn remove(&self) -> io::Result<()> {
        // SAFETY: the descriptor is open and the text ends in a NUL as long as the place is borrowed.
        done(unsafe { libc::unlinkat(self.folder.as_raw_fd(), self.file.as_ptr(), 0) })
    }
}

fn c_text(text: &OsStr) -> io::Result<CString> {
    CString::new(text.as_bytes()).map_err(|_| Os::InvalidInput.into())
}

/// Opens `name` in `folder`, without following a link.
fn opened(folder: RawFd, name: &CStr, flags: i32) -> io::Result<OwnedFd> {
    loop {
        let flags = flags | libc::O_NOFOLLOW | libc::O_CLOEXEC;
        // SAFETY: `folder` is open, or is the constant for the current folder; `name` ends in a NUL; both are only
        // read.
        let number = unsafe { libc::openat(folder, name.as_ptr(), flags, FILE_MODE) };
        if number >= 0 {
            // SAFETY: the system has just returned this descriptor, and no other value owns it.
            return Ok(unsafe { OwnedFd::from_raw_fd(number) });
        }
        let error = io::Error::last_os_error();
        if error.kind() != Os::Interrupted {
            return Err(error);
        }
    }
}

fn done(answer: libc::c_int) -> io::Result<()> {
    if answer == 0 { Ok(()) } else { Err(io::Error::last_os_error()) }
}

/// The file of an object and its metadata.
///
/// # Errors
/// NotFound if the name does not exist, Corruption if it is not a file, Access, Storage.
pub(super) fn open_object(path: &Path) -> Result<(File, Metadata)> {
    let failed = |e: io::Error| match refused("cannot open", path, e) {
        // A part of the path is a file, so nothing has that path.
        e if e.kind() == ErrorKind::Storage && e.os_error() == Some(libc::ENOTDIR) => {
            Error::not_found(format!("cannot open {}: a file is where a folder should be", path.display()))
                .with_source(e)
        }
        e => e,
    };
    let file = Place::of(path).and_then(|place| place.open()).map_err(failed)?;
    let metadata = file.metadata().map_err(failed)?;
    if !metadata.is_file() {
        return Err(not_a_file(path, metadata.file_type()));
    }
    Ok((file, metadata))
}

/// Opens a folder of a store to list, lock or fsync it; an error if it is a link.
pub(super) fn open_folder(path: &Path) -> io::Result<File> {
    let flags = libc::O_DIRECTORY | libc::O_NOFOLLOW;
    File::options().read(true).custom_flags(flags).open(path)
}

/// What tells a folder from others that have the same path at other times: its numbers, and when it was made, since numbers are
/// given again. Empty where there is none.
pub(super) fn folder_id(path: &Path) -> String {
    let Ok(found) = fs::metadata(path) else { return String::new() };
    let made = found.created().ok().and_then(|made| made.duration_since(SystemTime::UNIX_EPOCH).ok());
    format!("{} {} {}", found.dev(), found.ino(), made.map_or(0, |made| made.as_nanos()))
}

/// Whether the name of an object is taken, by a file or not; Corruption if its folder is a link.
pub(super) fn is_taken(path: &Path) -> Result<bool> {
    Ok(is_folder(path.parent().unwrap_or(path))? && has_name(path)?)
}

/// Whether this is a folder of a store; Corruption if it is a link.
pub(super) fn is_folder(path: &Path) -> Result<bool> {
    let kind = kind_of(path)?;
    match kind.filter(FileType::is_symlink) {
        Some(_) => Err(linked_folder(path)),
        None => Ok(kind.is_some_and(|kind| kind.is_dir())),
    }
}

/// Whether anything has this path, even a link to nowhere.
pub(super) fn has_name(path: &Path) -> Result<bool> {
    kind_of(path).map(|kind| kind.is_some())
}

fn kind_of(path: &Path) -> Result<Option<FileType>> {
    match fs::symlink_metadata(path) {
        Ok(metadata) => Ok(Some(metadata.file_type())),
        Err(e) if matches!(e.kind(), Os::NotFound | Os::NotADirectory) => Ok(None),
        Err(e) => Err(os_error(format_args!("cannot look for {}", path.display()), e)),
    }
}

/// The error of a call for an object ("cannot write"): the entry is no file, or the system's error.
pub(super) fn refused(asked: &str, path: &Path, error: io::Error) -> Error {
    let of = |path: &Path| kind_of(path).ok().flatten();
    if let Some(folder) = path.parent()
        && matches!(error.raw_os_error(), Some(libc::ENOTDIR | libc::ELOOP))
        && of(folder).is_some_and(|kind| kind.is_symlink())
    {
        return linked_folder(folder).with_source(error);
    }
    // The errors of opening a socket, a device without a driver, or a link.
    let odd = matches!(error.raw_os_error(), Some(libc::ELOOP | libc::ENXIO | libc::ENODEV | libc::EOPNOTSUPP));
    match of(path).filter(|kind| odd && !kind.is_file()) {
        Some(kind) => not_a_file(path, kind).with_source(error),
        None => os_error(format_args!("{asked} {}", path.display()), error),
    }
}

fn linked_folder(path: &Path) -> Error {
    Error::corruption(format!(
        "{} is a link, not a folder: no link within a store is followed; put the folder itself in its place",
        path.display()
    ))
}

fn not_a_file(path: &Path, found: FileType) -> Error {
    Error::corruption(format!(
        "{} is {}, not a file: the engine has not put it there, and does not read it; take it away",
        path.display(),
        noun(found)
    ))
}

fn noun(found: FileType) -> &'static str {
    match found {
        found if found.is_symlink() => "a link",
        found if found.is_dir() => "a folder",
        found if found.is_fifo() => "a FIFO",
        found if found.is_socket() => "a socket",
        _ => "a device",
    }
}
