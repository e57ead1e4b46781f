//! The steps of which durable changes of a directory tree are made.

use super::Durability;
use crate::base::{Entropy, Error, Result};
use crate::runtime::SystemEntropy;
use crate::storage::PutOutcome;
use crate::storage::os_error::os_error;
use std::fs::{self, File};
use std::io::{self, ErrorKind as Os, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};

/// What `link` answers on filesystems without hard links: EPERM by POSIX; ENOSYS, ENOTSUP and EOPNOTSUPP from
/// network and user-space filesystems.
#[cfg(target_os = "linux")]
const NO_LINKS: [i32; 3] = [1, 38, 95];
#[cfg(not(target_os = "linux"))]
const NO_LINKS: [i32; 4] = [1, 45, 78, 102];

/// Whether something has this path.
pub(super) fn there(path: &Path) -> Result<bool> {
    path.try_exists().map_err(|e| os_error(format_args!("cannot look for {}", path.display()), e))
}

/// Makes `path` and the folders above it, and makes those that were missing durable.
pub(super) fn make_path(path: &Path, durability: Durability) -> Result<()> {
    let mut missing = Vec::new();
    for folder in path.ancestors() {
        if there(folder)? {
            break;
        }
        missing.push(folder);
    }
    for folder in missing.into_iter().rev() {
        make_folder(folder)?;
        sync_parent(folder, durability)?;
    }
    Ok(())
}

/// Makes one folder, unless it is there.
pub(super) fn make_folder(path: &Path) -> Result<()> {
    match fs::create_dir(path) {
        Err(e) if e.kind() == Os::AlreadyExists && path.is_dir() => Ok(()),
        Err(e) if e.kind() == Os::AlreadyExists => {
            Err(os_error(format_args!("cannot make the folder {}", path.display()), Os::NotADirectory.into()))
        }
        made => made.map_err(|e| os_error(format_args!("cannot make the folder {}", path.display()), e)),
    }
}

/// Makes the names in a folder durable.
pub(super) fn sync_folder(path: &Path, durability: Durability) -> Result<()> {
    if durability == Durability::Close {
        return Ok(());
    }
    match File::open(path).and_then(|folder| folder.sync_all()) {
        // What filesystems answer that cannot fsync a folder: they order such changes themselves, or nobody can.
        Err(e) if matches!(e.kind(), Os::InvalidInput | Os::Unsupported) => Ok(()),
        synced => synced.map_err(|e| os_error(format_args!("cannot make {} durable", path.display()), e)),
    }
}

/// Makes the name of `path` durable.
pub(super) fn sync_parent(path: &Path, durability: Durability) -> Result<()> {
    path.parent().map_or(Ok(()), |folder| sync_folder(folder, durability))
}

/// Makes the content of an existing file durable.
pub(super) fn sync_file(path: &Path, durability: Durability) -> Result<()> {
    let failed = |e| os_error(format_args!("cannot make {} durable", path.display()), e);
    let file = File::open(path).map_err(failed)?;
    if durability == Durability::Full { file.sync_all().map_err(failed) } else { Ok(()) }
}

/// A file under a temporary name, which goes away with this value unless it was renamed.
#[derive(Debug)]
pub(super) struct Temporary {
    path: Option<PathBuf>,
}

impl Temporary {
    /// Writes `bytes` beside `target`, durably if `durability` asks for it.
    pub(super) fn write(target: &Path, bytes: &[u8], durability: Durability) -> Result<Self> {
        let path = temporary_path(target);
        let failed = |e| os_error(format_args!("cannot write {}", target.display()), e);
        let mut file = File::create_new(&path).map_err(failed)?;
        let temporary = Self { path: Some(path) };
        file.write_all(bytes).map_err(failed)?;
        if durability == Durability::Full {
            file.sync_all().map_err(failed)?;
        }
        Ok(temporary)
    }

    /// Gives the file the name `target`, unless something has it; the temporary name goes either way.
    pub(super) fn link(self, target: &Path) -> Result<PutOutcome> {
        match self.path.as_deref().map_or(Ok(()), |path| fs::hard_link(path, target)) {
            Ok(()) => Ok(PutOutcome::Created),
            Err(e) if e.kind() == Os::AlreadyExists => Ok(PutOutcome::Exists),
            Err(e) => Err(link_error(target, e)),
        }
    }

    /// Gives the file the name `target`, in place of what has it.
    pub(super) fn rename(mut self, target: &Path) -> Result<()> {
        let Some(path) = self.path.as_deref() else { return Ok(()) };
        fs::rename(path, target).map_err(|e| os_error(format_args!("cannot write {}", target.display()), e))?;
        self.path = None;
        Ok(())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            // What cannot be removed now is invisible, and goes with the store.
            let _ = fs::remove_file(path);
        }
    }
}

/// A path beside `target` that no other process (of any machine that shares the folder) uses.
fn temporary_path(target: &Path) -> PathBuf {
    static COUNT: AtomicU64 = AtomicU64::new(0);
    let count = COUNT.fetch_add(1, Ordering::Relaxed);
    target.with_file_name(format!(".tmp-{}-{count}-{}", std::process::id(), SystemEntropy.id()))
}

fn link_error(target: &Path, error: io::Error) -> Error {
    if !error.raw_os_error().is_some_and(|number| NO_LINKS.contains(&number)) {
        return os_error(format_args!("cannot create {}", target.display()), error);
    }
    Error::unsupported(format!(
        "cannot create {}: this filesystem has no hard links ({error}), so that two writers could not be kept apart; \
         keep the store on another filesystem, or write it in one process with single_writer=True",
        target.display()
    ))
    .with_source(error)
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
            assert!(error.message().contains("hard links"));
        }
        let full = link_error(Path::new("/s/_log/1"), io::Error::from_raw_os_error(28));
        assert_eq!(full.kind(), ErrorKind::Storage);
    }
}
