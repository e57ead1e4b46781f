//! A file being written, front to back, under its own name.

use super::durable::Disk;
use crate::base::{ByteSink, Result};
use crate::runtime::Owner;
use crate::storage::os_error::os_error;
use std::fs::{self, File};
use std::io::{BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;

/// Gathers small writes; larger ones pass through.
const BUFFER_BYTES: usize = 256 * 1024;

/// A data file that nothing refers to yet.
#[derive(Debug)]
pub(super) struct LocalSink {
    path: PathBuf,
    disk: Arc<Disk>,
    /// Who removes the file if it is given up: a forked child only drops its copy.
    owner: Owner,
    /// Taken when the file is finished or given up.
    writer: Option<BufWriter<File>>,
}

impl LocalSink {
    /// Creates the file; Exists if there is one.
    pub(super) fn create(path: PathBuf, disk: Arc<Disk>) -> Result<Self> {
        let file =
            File::create_new(&path).map_err(|e| os_error(format_args!("cannot create {}", path.display()), e))?;
        let writer = Some(BufWriter::with_capacity(BUFFER_BYTES, file));
        Ok(Self { path, disk, owner: Owner::here(), writer })
    }

    fn complete(&mut self) -> std::io::Result<()> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        writer.flush()?;
        self.disk.sync_bytes(writer.get_ref())
    }
}

impl ByteSink for LocalSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        let Some(writer) = self.writer.as_mut() else { return Ok(()) };
        writer.write_all(bytes).map_err(|e| os_error(format_args!("cannot write {}", self.path.display()), e))
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        self.complete().map_err(|e| os_error(format_args!("cannot write {}", self.path.display()), e))?;
        self.disk.sync_parent(&self.path)?;
        self.writer = None;
        Ok(())
    }
}

impl Drop for LocalSink {
    fn drop(&mut self) {
        if let Some(writer) = self.writer.take() {
            // Without this the buffer would be written to a file that is about to go.
            let _ = writer.into_parts();
            if self.owner.is_here() {
                let _ = fs::remove_file(&self.path);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::Durability;
    use super::*;
    use crate::base::Entropy;
    use crate::runtime::SystemEntropy;

    #[test]
    fn a_forked_child_leaves_its_parents_file() {
        for (owner, stays) in [(Owner::elsewhere(), true), (Owner::here(), false)] {
            let path = std::env::temp_dir().join(format!("gridstone-{}", SystemEntropy.id()));
            let mut sink = LocalSink::create(path.clone(), Arc::new(Disk::new(Durability::Full))).unwrap();
            sink.write(b"of the parent").unwrap();
            drop(LocalSink { owner, path: path.clone(), disk: Arc::clone(&sink.disk), writer: sink.writer.take() });
            assert_eq!(path.exists(), stays);
            let _ = fs::remove_file(&path);
        }
    }
}
