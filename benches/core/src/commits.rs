//! One small commit, to memory and to a folder.

use super::case::{Case, Work, work};
use super::cloud::empty;
use super::input::scattered;
use super::world::{Rows, holds};
use gridstone::base::{Error, Result};
use gridstone::engine::{At, Durability};
use gridstone::storage::{LocalStorage, MemoryStorage, Storage};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

/// Ten cells, after `earlier` commits of as many.
pub(crate) fn to_memory(earlier: u32) -> Case {
    Case::once(format!("commit/memory/after-{earlier}"), 0, move || commit(Arc::new(MemoryStorage::new()), earlier, ()))
}

/// Ten cells to the folder of temporary files, without fsync.
pub(crate) fn to_folder() -> Case {
    Case::once("commit/folder", 0, || {
        let folder = Folder::new()?;
        commit(Arc::new(LocalStorage::new(folder.path(), Durability::Close)?), 1, folder)
    })
}

/// `held` lives as long as the work.
fn commit(storage: Arc<dyn Storage>, earlier: u32, held: impl Sized + 'static) -> Result<Box<dyn Work>> {
    let array = empty(storage)?;
    let rows = |n: u32| Rows::new(&scattered(10 * n..10 * n + 10), |x, y| x + y);
    for number in 0..earlier {
        rows(number)?.write(&array)?;
    }
    let (written, again, added) = (array.clone(), rows(earlier)?, rows(earlier)?);
    work(
        move || added.write(&written),
        move |version| {
            let _ = &held;
            let array = array.at(At::Version(u64::from(earlier) + 2))?;
            Ok(*version == array.version() && holds(&again.read(&array)?, &again.values()))
        },
    )
}

/// A folder that is removed at the end.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Result<Self> {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let name = format!("gridstone-bench-{}-{}", std::process::id(), NUMBER.fetch_add(1, Ordering::Relaxed));
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir(&path)
            .map_err(|e| Error::storage(format!("{} cannot be made", path.display())).with_source(e))?;
        Ok(Self(path))
    }

    fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Best effort: the rest is among temporary files.
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
