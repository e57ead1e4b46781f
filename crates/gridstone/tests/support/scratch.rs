//! Folders that tests write to and that go away with them.

use gridstone::storage::{DiskCalls, Durability, LocalStorage, Storage};
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// A disk that nobody waits for: where no power cut is played, the syncs themselves can be spared.
#[derive(Debug)]
struct Unsynced;

impl DiskCalls for Unsynced {
    fn sync_file(&self, _: &Path, _: &File) -> io::Result<()> {
        Ok(())
    }

    fn sync_folder(&self, _: &Path, _: &File) -> io::Result<()> {
        Ok(())
    }
}

/// The store in a folder, on such a disk.
pub(crate) fn unsynced(path: impl AsRef<Path>) -> Arc<dyn Storage> {
    Arc::new(LocalStorage::with_calls(path, Durability::Close, Arc::new(Unsynced)).unwrap())
}

/// Copies a folder as `cp -r` does.
pub(crate) fn copy_folder(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy_folder(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

/// A folder of one test; removed when dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// A new folder whose name starts with `name`.
    pub(crate) fn new(name: &str) -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("gridstone-{name}-{}-{number}", std::process::id()));
        std::fs::create_dir_all(&path).unwrap();
        Self(path)
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
