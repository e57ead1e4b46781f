//! A file being written, front to back, under its own name.

use super::{Durability, durable};
use crate::base::{ByteSink, Result};
use crate::storage::os_error::os_error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;

/// Gathers small writes; larger ones pass through.
const BUFFER_BYTES: usize = 256 * 1024;

/// A data file that nothing refers to yet.
#[derive(Debug)]
pub(super) struct LocalSink {
    path: PathBuf,
    durability: Durability,
    /// Taken when the file is finished or given up.
    writer: Option<BufWriter<File>>,
}

impl LocalSink {
    /// Creates the file; Exists if there is one.
    pub(super) fn create(path: PathBuf, durability: Durability) -> Result<Self> {
        let file =
            File::create_new(&path).map_err(|e| os_error(format_args!("cannot create {}", path.display()), e))?;
        Ok(Self { path, durability, writer: Some(BufWriter::with_capacity(BUFFER_BYTES, file)) })
    }

    fn complete(&mut self) -> std::io::Result<()> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        writer.flush()?;
        if self.durability == Durability::Full { writer.get_ref().sync_all() } else { Ok(()) }
    }
}

impl ByteSink for LocalSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        writer.write_all(bytes).map_err(|e| os_error(format_args!("cannot write {}", self.path.display()), e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.complete().map_err(|e| os_error(format_args!("cannot write {}", self.path.display()), e))?;
        durable::sync_parent(&self.path, self.durability)?;
        self.writer = None;
        Ok(())
    }
}

impl Drop for LocalSink {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Without this the buffer would be written to a file that is about to go.
            let _ = writer.into_parts();
            let _ = fs::remove_file(&self.path);
        }
    }
}
