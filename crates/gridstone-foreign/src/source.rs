//! Where the bytes of a foreign file come from.

use crate::error::{Error, Result};
use std::fs::File;
use std::path::Path;

/// Bytes that are read at any offset.
pub trait ByteSource: Send + Sync {
    /// The number of bytes.
    fn length(&self) -> u64;

    /// Fills `into` with the bytes from `offset` on. Fails if the source has fewer.
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()>;
}

/// A file of the local file system.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    length: u64,
}

impl FileSource {
    /// Opens the file at `path`.
    pub fn open(path: &Path) -> Result<Self> {
        let failed = |error| Error::io(&format!("cannot open {}", path.display()), error);
        let file = File::open(path).map_err(failed)?;
        let length = file.metadata().map_err(failed)?.len();
        Ok(Self { file, length })
    }
}

impl ByteSource for FileSource {
    fn length(&self) -> u64 {
        self.length
    }

    #[cfg(unix)]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        use std::os::unix::fs::FileExt;
        self.file.read_exact_at(into, offset).map_err(|error| failed(offset, into.len(), error))
    }

    #[cfg(windows)]
    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        use std::os::windows::fs::FileExt;
        let mut done = 0;
        while let Some(rest) = into.get_mut(done..).filter(|rest| !rest.is_empty()) {
            let read = self.file.seek_read(rest, offset + done as u64).map_err(|error| failed(offset, done, error))?;
            if read == 0 {
                return Err(failed(offset, done, std::io::ErrorKind::UnexpectedEof.into()));
            }
            done += read;
        }
        Ok(())
    }
}

fn failed(offset: u64, length: usize, error: std::io::Error) -> Error {
    Error::io(&format!("cannot read {length} bytes at byte {offset}"), error)
}

impl ByteSource for Vec<u8> {
    fn length(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, into: &mut [u8]) -> Result<()> {
        let found = usize::try_from(offset).ok().and_then(|start| self.get(start..start.checked_add(into.len())?));
        match found {
            Some(bytes) => into.copy_from_slice(bytes),
            None => return Err(failed(offset, into.len(), std::io::ErrorKind::UnexpectedEof.into())),
        }
        Ok(())
    }
}
