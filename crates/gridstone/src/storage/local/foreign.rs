//! Local files of other formats: their state is looked at before each read.

use super::entries::micros_utc;
use super::open_files::OPEN_FILES;
use super::place::open_object;
use super::source::LocalSource;
use crate::base::{ByteRange, ByteSource, Error, ErrorKind, ForeignObject, Pending, Result};
use crate::storage::foreign::{gone, unchanged};
use crate::storage::os_error::os_error;
use std::fs::Metadata;
use std::io::ErrorKind as Os;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// The size in bytes of a file, and when it was last changed, in microseconds since 1970, UTC.
pub(in crate::storage) fn state_of(path: &Path) -> Result<(u64, i64)> {
    let (_, metadata) = open_object(path)?;
    state(path, &metadata)
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

fn state(path: &Path, metadata: &Metadata) -> Result<(u64, i64)> {
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
        let (size, time_us) = state(&self.path, &metadata)?;
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
