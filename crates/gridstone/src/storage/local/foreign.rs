//! Local files of other formats: their state is looked at before each read.

use super::entries::micros_utc;
use super::open_files::OPEN_FILES;
use super::place::open_object;
use super::source::LocalSource;
use crate::base::{ByteRange, ByteSource, Error, ErrorKind, ForeignObject, Pending, Result, xxh3};
use crate::storage::foreign::{gone, unchanged};
use crate::storage::os_error::os_error;
use std::fs::Metadata;
use std::io::ErrorKind as Os;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The size in bytes of a file, and when it was last changed, in microseconds since 1970, UTC.
pub(in crate::storage) fn state_of(path: &Path) -> Result<(u64, i64)> {
    let (_, metadata) = open_object(path)?;
    state_of_metadata(path, &metadata)
}

/// What lies in a folder and below.
#[derive(Debug, Default)]
pub(in crate::storage) struct FolderState {
    /// Files, links to files among them.
    pub(in crate::storage) files: u64,
    /// Their bytes.
    pub(in crate::storage) bytes: u64,
    /// When the newest was last changed, in microseconds since 1970, UTC; `None`: there is no file.
    pub(in crate::storage) newest_us: Option<i64>,
    /// The sum of a hash of each file's name, length and time: it tells two states with the same totals apart.
    pub(in crate::storage) mark: u64,
}

/// Folders inside folders: those of an array are fewer than its dimensions.
const FOLDERS_DEEP_MAX: u32 = 64;

/// The files in a folder and below. Links to folders are not followed.
///
/// # Errors
/// Storage, Access: it cannot be read. Unsupported: its folders lie too deep.
pub(in crate::storage) fn state_of_folder(path: &Path) -> Result<FolderState> {
    let mut state = FolderState::default();
    state.add_folder(path, path, 0)?;
    Ok(state)
}

impl FolderState {
    fn add_folder(&mut self, root: &Path, path: &Path, depth: u32) -> Result<()> {
        if depth > FOLDERS_DEEP_MAX {
            return Err(Error::unsupported(format!("{} lies in more than {FOLDERS_DEEP_MAX} folders", path.display())));
        }
        let failed = |e| opening_failed(path, e);
        for entry in std::fs::read_dir(path).map_err(failed)? {
            let entry = entry.map_err(failed)?;
            let (below, kind) = (entry.path(), entry.file_type().map_err(failed)?);
            if kind.is_dir() {
                self.add_folder(root, &below, depth + 1)?;
                continue;
            }
            // A link counts as the file that it leads to, or as itself.
            let metadata = match std::fs::metadata(&below) {
                Ok(metadata) if metadata.is_file() => metadata,
                Err(e) if e.kind() != Os::NotFound => return Err(opening_failed(&below, e)),
                _ => match std::fs::symlink_metadata(&below) {
                    // Removed while the folder was listed.
                    Err(e) if e.kind() == Os::NotFound => continue,
                    found => found.map_err(|e| opening_failed(&below, e))?,
                },
            };
            let (bytes, time_us) = state_of_metadata(&below, &metadata)?;
            self.files += 1;
            self.bytes = self.bytes.saturating_add(bytes);
            self.newest_us = self.newest_us.max(Some(time_us));
            let name = below.strip_prefix(root).unwrap_or(&below).as_os_str().as_encoded_bytes();
            let one = [name, &bytes.to_le_bytes(), &time_us.to_le_bytes()].concat();
            self.mark = self.mark.wrapping_add(xxh3(&one));
        }
        Ok(())
    }
}

/// The error of a file that cannot be opened: NotFound if there is none.
pub(in crate::storage) fn opening_failed(path: &Path, error: std::io::Error) -> Error {
    match error.kind() {
        Os::NotFound | Os::NotADirectory => {
            Error::not_found(format!("there is no file {}", path.display())).with_source(error)
        }
        _ => os_error(format_args!("cannot open {}", path.display()), error),
    }
}

fn state_of_metadata(path: &Path, metadata: &Metadata) -> Result<(u64, i64)> {
    let failed = |e: std::io::Error| Error::storage(format!("cannot look at {}: {e}", path.display())).with_source(e);
    Ok((metadata.len(), micros_utc(metadata.modified().map_err(failed)?)))
}

/// Opens the file at `path`, where links were followed already.
///
/// # Errors
/// SourceChanged: it is not the file that was attached.
pub(in crate::storage) fn open_foreign(path: PathBuf, object: &ForeignObject) -> Result<Arc<dyn ByteSource>> {
    let source = LocalSource::open(path.clone(), &OPEN_FILES).map_err(|e| gone(&object.uri, e))?;
    let file = ForeignFile { source, path, attached: object.clone() };
    file.check()?;
    Ok(Arc::new(file))
}

/// A file that somebody else may change.
#[derive(Debug)]
struct ForeignFile {
    source: LocalSource,
    path: PathBuf,
    attached: ForeignObject,
}

impl ForeignFile {
    /// A SourceChanged error if the file under its name is not what it was.
    fn check(&self) -> Result<()> {
        let metadata =
            std::fs::metadata(&self.path).map_err(|e| gone(&self.attached.uri, opening_failed(&self.path, e)))?;
        let (size, time_us) = state_of_metadata(&self.path, &metadata)?;
        let found = ForeignObject { size: Some(size), time_us: Some(time_us), etag: None, uri: String::new() };
        unchanged(&self.attached, &found)
    }

    /// A read past the end of a file is one of a file that was cut.
    fn changed(&self, error: Error) -> Error {
        if error.kind() != ErrorKind::Corruption {
            return error;
        }
        Error::source_changed(format!("the source {} has changed while it was read", self.attached.uri))
            .with_source(error)
    }
}

impl ByteSource for ForeignFile {
    fn len(&self) -> u64 {
        self.source.len()
    }

    fn submit(&self, ranges: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
        self.check()?;
        self.source.submit(ranges).map_err(|e| self.changed(e))
    }

    fn is_cold(&self) -> bool {
        self.source.is_cold()
    }

    fn prefetch(&self, ranges: &[ByteRange]) {
        self.source.prefetch(ranges);
    }
}
