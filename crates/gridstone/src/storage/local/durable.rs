//! The steps of durable changes of a directory tree.

use super::Durability;
use super::calls::DiskCalls;
use super::place::{is_folder, open_folder, open_object, refused};
use crate::base::{Entropy, Error, Result};
use crate::runtime::SystemEntropy;
use crate::storage::PutOutcome;
use crate::storage::os_error::os_error;
use std::fs::File;
use std::io::{self, ErrorKind as Os, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

/// The errors of `link` on filesystems without hard links: EPERM by POSIX; ENOSYS, ENOTSUP and EOPNOTSUPP from network
/// and user-space filesystems.
#[cfg(target_os = "linux")]
const NO_LINKS: [i32; 3] = [1, 38, 95];
#[cfg(not(target_os = "linux"))]
const NO_LINKS: [i32; 4] = [1, 45, 78, 102];

/// The prefix of the names of temporary files.
pub(super) const TEMPORARY: &str = ".tmp-";

/// The disk as seen by durable changes, and what is remembered of its answers.
///
/// A failed fsync is reported once: the pages count as clean afterwards, and the next fsync succeeds although data are
/// lost. So after a failed fsync this value reports nothing as durable, and writes nothing more.
#[derive(Debug)]
pub(super) struct Disk {
    durability: Durability,
    failed: AtomicBool,
    time_told: AtomicBool,
    calls: Arc<dyn DiskCalls>,
}

impl Disk {
    /// A disk that is changed by `calls`.
    pub(super) fn new(durability: Durability, calls: Arc<dyn DiskCalls>) -> Self {
        Self { durability, failed: AtomicBool::new(false), time_told: AtomicBool::new(false), calls }
    }

    /// Whether names, and bytes that are in no record, are left to the system until a sync is requested.
    pub(super) fn defers(&self) -> bool {
        self.durability == Durability::Close
    }

    /// The time by which the filesystem of `folder` dates files: UTC, in microseconds.
    pub(super) fn now_us(&self, folder: &Path) -> Result<i64> {
        let failed = |e| os_error(format_args!("cannot ask {} for its time", folder.display()), e);
        let path = temporary_path(&folder.join("time"));
        let file = DiskFile::create(&path, self).map_err(|e| refused("cannot write", &path, e))?;
        let _gone = Temporary { path: Some(path), calls: Arc::clone(&self.calls) };
        let modified = file.file.metadata().and_then(|metadata| metadata.modified()).map_err(failed)?;
        Ok(super::entries::micros_utc(modified))
    }

    /// Like [`Disk::now_us`] on the first call; `None` on later calls, and if the time is unknown.
    pub(super) fn first_time_us(&self, folder: &Path) -> Option<i64> {
        if self.time_told.swap(true, Ordering::Relaxed) { None } else { self.now_us(folder).ok() }
    }

    /// The calls that change it.
    pub(super) fn calls(&self) -> &dyn DiskCalls {
        self.calls.as_ref()
    }

    /// A Storage error if an fsync has failed before.
    pub(super) fn trusted(&self, path: &Path) -> Result<()> {
        if !self.failed.load(Ordering::Relaxed) {
            return Ok(());
        }
        Err(Error::storage(format!(
            "{} cannot be made durable: an fsync in this store failed before, and what was lost then is not known; check the \
             device, then open the store again",
            path.display()
        )))
    }

    /// Makes the bytes of a file durable that is not referenced yet. A failure makes only that file unusable.
    pub(super) fn sync_bytes(&self, file: &DiskFile) -> io::Result<()> {
        self.calls.sync_file(&file.path, &file.file)
    }

    /// Asks the device to start writing bytes that a later fsync will wait for. This is advice: a failure shows in that
    /// fsync.
    #[cfg(target_os = "linux")]
    pub(super) fn start_writeback(&self, file: &DiskFile, offset: u64, len: u64) {
        use std::os::fd::AsRawFd;
        if !self.defers() {
            // SAFETY: the descriptor is open as long as `file` is borrowed; the call touches no memory of ours.
            unsafe {
                libc::sync_file_range(file.file.as_raw_fd(), offset as i64, len as i64, libc::SYNC_FILE_RANGE_WRITE);
            }
        }
    }

    /// Elsewhere the fsync does all the work.
    #[cfg(not(target_os = "linux"))]
    pub(super) fn start_writeback(&self, _file: &DiskFile, _offset: u64, _len: u64) {}

    /// Makes the names in the root of a store, or in a folder above it, durable.
    pub(super) fn sync_root(&self, path: &Path) -> Result<()> {
        self.sync_names(path, File::open(path))
    }

    /// Makes the names in a folder of a store durable.
    pub(super) fn sync_folder(&self, path: &Path) -> Result<()> {
        self.sync_names(path, open_folder(path))
    }

    fn sync_names(&self, path: &Path, opened: io::Result<File>) -> Result<()> {
        self.trusted(path)?;
        let failed = |e| os_error(format_args!("cannot make {} durable", path.display()), e);
        match self.calls.sync_folder(path, &opened.map_err(failed)?) {
            // The errors of filesystems that cannot fsync a folder: they order such changes themselves, or have no way
            // to.
            Err(e) if matches!(e.kind(), Os::InvalidInput | Os::Unsupported) => Ok(()),
            Err(e) => Err(self.distrusted(failed(e))),
            Ok(()) => Ok(()),
        }
    }

    /// Makes the name of an object durable.
    pub(super) fn sync_parent(&self, path: &Path) -> Result<()> {
        path.parent().map_or(Ok(()), |folder| self.sync_folder(folder))
    }

    /// Makes the content of an existing file durable.
    pub(super) fn sync_file(&self, path: &Path) -> Result<()> {
        self.trusted(path)?;
        let (file, _) = open_object(path)?;
        let failed = |e| os_error(format_args!("cannot make {} durable", path.display()), e);
        self.calls.sync_file(path, &file).map_err(|e| self.distrusted(failed(e)))
    }

    fn distrusted(&self, error: Error) -> Error {
        self.failed.store(true, Ordering::Relaxed);
        error
    }

    /// Creates `path` and the folders above it, and makes those that were missing durable.
    pub(super) fn make_path(&self, path: &Path) -> Result<()> {
        let mut missing = Vec::new();
        for folder in path.ancestors() {
            if there(folder)? {
                break;
            }
            missing.push(folder);
        }
        for folder in missing.into_iter().rev() {
            self.make_missing(folder, |folder| Ok(folder.is_dir()))?;
            folder.parent().map_or(Ok(()), |above| self.sync_root(above))?;
        }
        Ok(())
    }

    /// Creates a folder of a store, unless it exists; an Input error if a file is in its place, Corruption if a link
    /// is.
    pub(super) fn make_folder(&self, path: &Path) -> Result<()> {
        self.make_missing(path, is_folder)
    }

    fn make_missing(&self, path: &Path, is_folder: impl FnOnce(&Path) -> Result<bool>) -> Result<()> {
        match self.calls.make_folder(path) {
            Err(e) if e.kind() == Os::AlreadyExists && is_folder(path)? => Ok(()),
            Err(e) if matches!(e.kind(), Os::AlreadyExists | Os::NotADirectory) => Err(Error::input(format!(
                "cannot make the folder {}: a file is where a folder should be; move it, or use another path",
                path.display()
            ))
            .with_source(e)),
            made => made.map_err(|e| os_error(format_args!("cannot make the folder {}", path.display()), e)),
        }
    }

    /// Deletes a file, if it exists.
    pub(super) fn remove(&self, path: &Path) -> Result<()> {
        match self.calls.remove_file(path) {
            Err(e) if e.kind() != Os::NotFound => Err(refused("cannot delete", path, e)),
            _ => Ok(()),
        }
    }

    /// An Unsupported error if `folder` is on a filesystem without hard links. Leaves nothing there.
    pub(super) fn try_link(&self, folder: &Path) -> Result<()> {
        let [from, to] = ["from", "to"].map(|end| folder.join(end));
        let trial = Temporary { path: Some(temporary_path(&to)), calls: Arc::clone(&self.calls) };
        let temporary = Temporary::write(&from, b"", Durability::Close, self)?;
        temporary.link(trial.path.as_deref().unwrap_or(&to)).map(drop)
    }
}

/// The exclusive turn to change a folder's file by its content, across processes. The kernel releases it when its
/// holder dies, so no file can stay locked.
#[derive(Debug)]
pub(super) struct Turn {
    _folder: File,
}

impl Turn {
    /// Waits for the turn. A filesystem without `flock` has none, and does not serialize two simultaneous changes of
    /// the same file.
    pub(super) fn take(folder: &Path) -> Result<Self> {
        use std::os::fd::AsRawFd;
        let failed = |e| os_error(format_args!("cannot wait for a turn in {}", folder.display()), e);
        let opened = open_folder(folder).map_err(failed)?;
        loop {
            // SAFETY: the descriptor is open as long as `opened` lives; the call touches no memory of ours.
            if unsafe { libc::flock(opened.as_raw_fd(), libc::LOCK_EX) } == 0 {
                return Ok(Self { _folder: opened });
            }
            match io::Error::last_os_error() {
                e if e.kind() == Os::Interrupted => {}
                e if e.raw_os_error().is_some_and(|number| NO_LINKS.contains(&number)) => {
                    return Ok(Self { _folder: opened });
                }
                e => return Err(failed(e)),
            }
        }
    }
}

/// Whether anything has this path; links are followed, as they are above a store.
pub(super) fn there(path: &Path) -> Result<bool> {
    match path.try_exists() {
        // A part of the path is a file, so nothing has that path.
        Err(e) if e.kind() == Os::NotADirectory => Ok(false),
        found => found.map_err(|e| os_error(format_args!("cannot look for {}", path.display()), e)),
    }
}

/// A file that is being written, front to back.
#[derive(Debug)]
pub(super) struct DiskFile {
    file: File,
    path: PathBuf,
    calls: Arc<dyn DiskCalls>,
}

impl DiskFile {
    /// Creates the file; an error of the kind AlreadyExists if there is one.
    pub(super) fn create(path: &Path, disk: &Disk) -> io::Result<Self> {
        Ok(Self { file: disk.calls.create(path)?, path: path.to_owned(), calls: Arc::clone(&disk.calls) })
    }

    /// Closes the file. Only when this succeeds do its bytes count as written.
    pub(super) fn close(self) -> io::Result<()> {
        self.calls.close(&self.path, self.file)
    }
}

impl Write for DiskFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.calls.write(&self.path, &self.file, bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A file under a temporary name, which is removed with this value unless it was renamed.
#[derive(Debug)]
pub(super) struct Temporary {
    path: Option<PathBuf>,
    calls: Arc<dyn DiskCalls>,
}

impl Temporary {
    /// Writes `bytes` beside `target`, durably if `durability` requires it. After an error `target` does not exist.
    pub(super) fn write(target: &Path, bytes: &[u8], durability: Durability, disk: &Disk) -> Result<Self> {
        let path = temporary_path(target);
        let failed = |e| refused("cannot write", target, e).without_effect();
        let mut file = DiskFile::create(&path, disk).map_err(failed)?;
        let temporary = Self { path: Some(path), calls: Arc::clone(&disk.calls) };
        file.write_all(bytes).map_err(failed)?;
        if durability == Durability::Full {
            disk.sync_bytes(&file).map_err(failed)?;
        }
        file.close().map_err(failed)?;
        Ok(temporary)
    }

    /// Gives the file the name `target`, unless it is taken; removes the temporary name in both cases.
    pub(super) fn link(self, target: &Path) -> Result<PutOutcome> {
        match self.path.as_deref().map_or(Ok(()), |path| self.calls.link(path, target)) {
            Ok(()) => Ok(PutOutcome::Created),
            Err(e) if e.kind() == Os::AlreadyExists => Ok(PutOutcome::Exists),
            Err(e) => Err(link_error(target, e)),
        }
    }

    /// Gives the file the name `target`, replacing any file of that name.
    pub(super) fn rename(mut self, target: &Path) -> Result<()> {
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        self.calls.rename(path, target).map_err(|e| refused("cannot write", target, e))?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // A file that cannot be removed now is invisible, and is removed with the store.
            let _ = self.calls.remove_file(path);
        }
    }
}

/// A path beside `target` that no other process uses, on any machine that shares the folder.
fn temporary_path(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    target.with_file_name(format!("{TEMPORARY}{}-{count}-{}", std::process::id(), SystemEntropy.id()))
}

/// The errors of `link` that mean it did nothing. After any other error it may have been done.
const NOT_LINKED: [i32; 12] = [
    libc::EACCES,
    libc::EDQUOT,
    libc::ELOOP,
    libc::EMFILE,
    libc::EMLINK,
    libc::ENAMETOOLONG,
    libc::ENFILE,
    libc::ENOENT,
    libc::ENOSPC,
    libc::ENOTDIR,
    libc::EROFS,
    libc::EXDEV,
];

fn link_error(target: &Path, error: io::Error) -> Error {
    let is_one_of = |numbers: &[i32]| error.raw_os_error().is_some_and(|number| numbers.contains(&number));
    if !is_one_of(&NO_LINKS) {
        let certain = is_one_of(&NOT_LINKED);
        let error = refused("cannot create", target, error);
        return if certain { error.without_effect() } else { error };
    }
    Error::unsupported(format!(
        "cannot create {}: this filesystem has no hard links ({error}), so that two writers could not be kept apart; \
         put the store on a local filesystem and copy it here when it is complete: it can be read here",
        target.display()
    ))
    .with_source(error)
    .without_effect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ErrorKind;

    #[test]
    fn a_filesystem_without_links_is_told_from_a_broken_one() {
        for number in NO_LINKS {
            let error = link_error(Path::new("/s/_log/1"), io::Error::from_raw_os_error(number));
            assert_eq!((error.kind(), error.os_error()), (ErrorKind::Unsupported, Some(number)));
            assert!(error.message().contains("hard links") && error.message().contains("local filesystem"));
        }
        let full = link_error(Path::new("/s/_log/1"), io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::Storage);
    }
}
