//! A store in a directory of a local or network filesystem. It relies on POSIX: `link` and `rename` are atomic, and a
//! deleted file stays readable through open descriptors.
//!
//! Every object but a sink's is written under a temporary name (with a leading dot, which no object's name has), then
//! linked or renamed to its own. A process that dies in between leaves the temporary file, which is never listed, never
//! opened, and is removed with the store. The temporary name is removed before the folder is fsynced, so that one fsync
//! settles both names.
//!
//! The content of the folder is not trusted: no link below the root is followed, and only a regular file is an object
//! ([`place`]).

mod calls;
mod durable;
mod entries;
mod foreign;
mod open_files;
mod place;
mod sink;
mod source;
mod streams;
mod waits;

use super::os_error::os_error;
use super::{Listed, PutOutcome, Storage, Swept, names};
use crate::base::{ByteSink, ByteSource, Error, ErrorKind, Id, Result};
use bytes::Bytes;
pub use calls::{DiskCalls, SystemCalls};
pub(super) use foreign::{open_foreign, opening_failed, state_of, state_of_folder};
use std::io::ErrorKind as Os;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The failures that a write survives once it has returned success.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power failure: files and folders are fsynced, in the order in which they refer to each other.
    #[default]
    Full,
    /// The death of the process, and in part that of the machine. The bytes of records are fsynced before they get
    /// their names; names and data files are left to the system. After a power failure the last commits may be missing.
    /// For data that can be made again.
    Close,
}

/// A store in a directory.
#[derive(Debug, Clone)]
pub struct LocalStorage {
    root: PathBuf,
    disk: Arc<durable::Disk>,
    files: &'static open_files::OpenFiles,
}

impl LocalStorage {
    /// The store in the directory `root`, which need not exist yet. A relative path is resolved against the current
    /// directory now.
    ///
    /// # Errors
    /// Input if the path is empty or holds a NUL byte.
    pub fn new(root: impl AsRef<Path>, durability: Durability) -> Result<Self> {
        Self::with_calls(root, durability, Arc::new(SystemCalls))
    }

    /// The store in the directory `root`, changed only through `calls`; see [`LocalStorage::new`].
    ///
    /// # Errors
    /// Those of [`LocalStorage::new`].
    pub fn with_calls(root: impl AsRef<Path>, durability: Durability, calls: Arc<dyn DiskCalls>) -> Result<Self> {
        let root = root.as_ref();
        if root.as_os_str().as_encoded_bytes().contains(&0) {
            return Err(Error::input(format!("the path {root:?} holds a NUL byte; give one without")));
        }
        let bad = |e| Error::input(format!("{root:?} cannot be the path of a store: {e}")).with_source(e);
        let root = std::path::absolute(root).map_err(bad)?;
        Ok(Self { root, disk: Arc::new(durable::Disk::new(durability, calls)), files: &open_files::OPEN_FILES })
    }

    fn folder(&self, name: &str) -> Result<PathBuf> {
        Ok(self.root.join(names::checked(name)?))
    }

    /// The path of an object, which lies in a folder of the store; NotFound for a name that no object has.
    fn path(&self, name: &str) -> Result<PathBuf> {
        let path = self.root.join(names::checked(name)?);
        match name.split('/').count() {
            2 => Ok(path),
            _ => Err(Error::not_found(format!(
                "{} cannot be there: an object lies in a folder of the store",
                path.display()
            ))),
        }
    }

    /// Writes the object beside its path, unless the path is taken.
    fn written(&self, path: &Path, bytes: &[u8]) -> Result<Option<durable::Temporary>> {
        // The link decides; this check only saves the loser of a past race the fsync of a temporary file.
        if place::is_taken(path)? {
            return Ok(None);
        }
        self.disk.trusted(path)?;
        durable::Temporary::write(path, bytes, Durability::Full, &self.disk).map(Some)
    }

    /// Links an object that cannot be copied into the folder of damaged objects.
    fn linked_aside(&self, name: &str) -> Result<String> {
        let path = self.path(name)?;
        for aside in names::asides(name) {
            let to = self.path(&aside)?;
            match self.disk.calls().link(&path, &to) {
                Ok(()) => return self.disk.sync_parent(&to).map(|()| aside),
                Err(e) if e.kind() == Os::AlreadyExists => {}
                Err(e) => return Err(place::refused("cannot set aside", &path, e)),
            }
        }
        Err(names::too_many_asides(name))
    }

    /// Creates the root and the folder of the log, where a link is tried before anything else is written.
    fn make_log(&self) -> Result<()> {
        let (log, fresh) = (self.root.join(names::LOG), !durable::there(&self.root)?);
        self.disk.make_path(&self.root)?;
        self.disk.make_folder(&log)?;
        self.disk.try_link(&log).inspect_err(|_| {
            // Entries that another process has created meanwhile stay, since only empty folders are removed.
            let _ = self.disk.calls().remove_folder(&log);
            if fresh {
                let _ = self.disk.calls().remove_folder(&self.root);
            }
        })
    }

    fn removed(&self, folder: &str) -> Result<()> {
        let path = self.root.join(folder);
        match self.disk.calls().remove_all(&path) {
            Err(e) if !matches!(e.kind(), Os::NotFound | Os::NotADirectory) => {
                Err(os_error(format_args!("cannot delete {}", path.display()), e))
            }
            _ => Ok(()),
        }
    }

    /// Whether the log, or the rest of one that was being deleted, has the name [`names::REMOVED`] now.
    fn log_set_aside(&self) -> Result<bool> {
        let (log, aside) = (self.root.join(names::LOG), self.root.join(names::REMOVED));
        if !place::has_name(&log)? {
            return place::has_name(&aside);
        }
        self.removed(names::REMOVED)?;
        let renamed = self.disk.calls().rename_folder(&log, &aside);
        renamed.map_err(|e| os_error(format_args!("cannot delete {}", log.display()), e))?;
        self.disk.sync_root(&self.root)?;
        Ok(true)
    }
}

impl Storage for LocalStorage {
    fn describe(&self) -> String {
        self.root.display().to_string()
    }

    /// The path, and which folder of a log lies there: a store that is restored there later has another one.
    fn place(&self) -> String {
        format!("{} {}", self.describe(), place::folder_id(&self.root.join(names::LOG)))
    }

    fn is_near(&self) -> bool {
        true
    }

    fn defers_sync(&self) -> bool {
        self.disk.defers()
    }

    fn now_us(&self) -> Result<i64> {
        self.disk.now_us(&self.root.join(names::LOG))
    }

    /// A link is exclusive. The filesystem's time is returned once: it may be another machine's.
    fn prove_exclusive(&self, _id: Id) -> Result<Option<i64>> {
        Ok(self.disk.first_time_us(&self.root.join(names::LOG)))
    }

    fn prepare(&self) -> Result<()> {
        if !place::is_folder(&self.root.join(names::LOG))? {
            self.make_log()?;
        }
        for folder in [names::LOG, names::DATA, names::MANIFEST] {
            let path = self.root.join(folder);
            self.disk.make_folder(&path)?;
            self.disk.sync_folder(&path)?;
        }
        // No reader relies on a lease after a power failure.
        self.disk.make_folder(&self.root.join(names::LEASE))?;
        self.disk.sync_root(&self.root)
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        Ok(Arc::new(source::LocalSource::open(self.path(name)?, self.files)?))
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        source::read_all(&self.path(name)?, names::bytes_max(name))
    }

    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        source::read_start(&self.path(name)?, len, names::bytes_max(name))
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let path = self.path(name)?;
        self.disk.trusted(&path)?;
        Ok(Box::new(sink::LocalSink::create(path, Arc::clone(&self.disk))?))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        let path = self.path(name).map_err(Error::without_effect)?;
        let Some(temporary) = self.written(&path, bytes).map_err(Error::without_effect)? else {
            return Ok(PutOutcome::Exists);
        };
        let outcome = temporary.link(&path)?;
        if outcome == PutOutcome::Created && !self.disk.defers() {
            self.disk.sync_parent(&path)?;
        }
        Ok(outcome)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name)?;
        self.disk.trusted(&path)?;
        durable::Temporary::write(&path, bytes, Durability::Full, &self.disk)?.rename(&path)?;
        self.disk.sync_parent(&path)
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let path = self.path(name)?;
        durable::Temporary::write(&path, bytes, Durability::Close, &self.disk)?.rename(&path)
    }

    fn sync(&self, name: &str) -> Result<()> {
        let path = self.path(name)?;
        self.disk.sync_file(&path)?;
        self.disk.sync_parent(&path)
    }

    fn set_aside(&self, name: &str) -> Result<String> {
        self.disk.make_folder(&self.root.join(names::DAMAGED))?;
        self.disk.sync_root(&self.root)?;
        match names::copy_aside(self, name) {
            // Not a file, or longer than any object is.
            Err(e) if matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Budget) => self.linked_aside(name),
            kept => kept,
        }
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.disk.remove(&self.path(name)?)
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut found = Vec::new();
        entries::each(&self.folder(folder)?, |file, _| {
            if !file.starts_with('.') {
                found.push(format!("{folder}/{file}"));
            }
            Ok(())
        })?;
        found.sort();
        Ok(found)
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        entries::each(&self.folder(folder)?, |file, entry| {
            if !file.starts_with('.')
                && let Some((bytes, modified_us)) = entries::looked_at(entry)?
            {
                visit(Listed { name: format!("{folder}/{file}"), bytes, modified_us });
            }
            Ok(())
        })
    }

    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept> {
        let mut swept = Swept::default();
        entries::each(&self.folder(folder)?, |file, entry| {
            let old = if file.starts_with(durable::TEMPORARY) { entries::looked_at(entry)? } else { None };
            if let Some((bytes, _)) = old.filter(|(_, modified_us)| *modified_us < before_us) {
                swept = Swept { files: swept.files + 1, bytes: swept.bytes + bytes };
                if delete {
                    self.disk.remove(&entry.path())?;
                }
            }
            Ok(())
        })?;
        Ok(swept)
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        let path = self.path(name)?;
        let _turn = path.parent().map(durable::Turn::take).transpose()?;
        let found = match source::read_all(&path, names::bytes_max(name)) {
            Err(e) if e.kind() == ErrorKind::NotFound => None,
            found => Some(found?),
        };
        if found.as_deref() != expected {
            return Ok(false);
        }
        self.put(name, bytes).map(|()| true)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        match self.path(name) {
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(false),
            path => place::is_taken(&path?),
        }
    }

    fn remove_everything(&self) -> Result<()> {
        if !self.log_set_aside()? {
            return Ok(());
        }
        // The set-aside log goes last: while it exists, a later call knows that this was a store.
        for folder in [names::DATA, names::MANIFEST, names::LEASE, names::DAMAGED, names::REMOVED] {
            self.removed(folder)?;
        }
        // The store is gone; a root that has other entries, or must stay for another reason, stays.
        let _ = self.disk.calls().remove_folder(&self.root);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
