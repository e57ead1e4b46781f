//! Iterates over the files of one folder.

use super::place::is_folder;
use crate::base::Result;
use crate::storage::os_error::os_error;
use std::fs::{self, DirEntry};
use std::io::ErrorKind as Os;
use std::path::Path;
use std::time::{SystemTime, UNIX_EPOCH};

/// Passes every file of `folder` to `visit`, by name, and no other entry; a missing folder has none.
pub(super) fn each(folder: &Path, mut visit: impl FnMut(&str, &DirEntry) -> Result<()>) -> Result<()> {
    let failed = |e| os_error(format_args!("cannot list {}", folder.display()), e);
    if !is_folder(folder)? {
        return Ok(());
    }
    let entries = match fs::read_dir(folder) {
        Err(e) if matches!(e.kind(), Os::NotFound | Os::NotADirectory) => return Ok(()),
        entries => entries.map_err(failed)?,
    };
    for entry in entries {
        let entry = entry.map_err(failed)?;
        // A name that is not UTF-8 is not one of ours.
        let Ok(file) = entry.file_name().into_string() else { continue };
        if entry.file_type().map_err(failed)?.is_file() {
            visit(&file, &entry)?;
        }
    }
    Ok(())
}

/// The length of a file in bytes and when it was last written (UTC, microseconds); `None` if it is gone by now.
pub(super) fn looked_at(entry: &DirEntry) -> Result<Option<(u64, i64)>> {
    let failed = |e| os_error(format_args!("cannot look at {}", entry.path().display()), e);
    let metadata = match entry.metadata() {
        Err(e) if e.kind() == Os::NotFound => return Ok(None),
        metadata => metadata.map_err(failed)?,
    };
    let modified = metadata.modified().map_err(failed)?;
    Ok(Some((metadata.len(), micros_utc(modified))))
}

/// A moment as microseconds since 1970, UTC.
pub(super) fn micros_utc(moment: SystemTime) -> i64 {
    let micros = |d: std::time::Duration| i64::try_from(d.as_micros()).unwrap_or(i64::MAX);
    match moment.duration_since(UNIX_EPOCH) {
        Ok(since) => micros(since),
        Err(before) => -micros(before.duration()),
    }
}
