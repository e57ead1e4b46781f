//! Copies the files that are kept beside an array, with fresh ids.
//!
//! An entry of a fragment goes to the copy of that fragment. One of a data file goes to the data file that holds the copies of
//! all fragments that lay in it. If there is no such file, the array cannot be copied.

use super::copy::in_order;
use crate::base::{ByteRange, ByteSink, Cancel, Entropy, Error, FileRef, Files, Id, Result};
use crate::fragment::{Description, Staged};
use crate::store::{Kept, KeptFile, Owner};
use std::collections::HashSet;
use std::sync::Arc;

/// How many bytes of a file are copied at a time.
const CHUNK_BYTES: u64 = 4 << 20;

/// What kept files are copied with.
pub struct KeptCopier<'a> {
    /// The files to read from.
    pub from: &'a dyn Files,
    /// The files to write to.
    pub to: &'a dyn Files,
    /// The source of ids.
    pub entropy: &'a dyn Entropy,
    /// Checked for every chunk.
    pub cancel: &'a dyn Cancel,
}

impl std::fmt::Debug for KeptCopier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("KeptCopier")
    }
}

impl KeptCopier<'_> {
    /// Copies the files of these entries of an array whose `fragments` became `copies`, as [`super::Copier::copy`] gave them.
    /// Returns the entries of the copy. `written` lists the files that were written, after an error too; the caller deletes
    /// those.
    ///
    /// # Errors
    /// Unsupported (an entry of a data file whose fragments went to several files), Corruption, Storage, Access, Cancelled.
    pub fn copy(
        &self,
        entries: &[Arc<Kept>],
        (fragments, copies): (&[Arc<Description>], &[Staged]),
        written: &mut Vec<Id>,
    ) -> Result<Vec<Kept>> {
        let ordered = in_order(fragments);
        let pairs: Vec<(&Description, &Staged)> = ordered.iter().map(|d| d.as_ref()).zip(copies).collect();
        let mut made = Vec::with_capacity(entries.len());
        for kept in entries {
            let Some(owner) = owner_of(kept, &pairs)? else { continue };
            let mut files = Vec::with_capacity(kept.files.len());
            for file in &kept.files {
                let id = self.entropy.id();
                self.file(*file, id, written).map_err(|e| e.context(format!("the kept files {}", kept.entry)))?;
                files.push(KeptFile { id, len: file.len });
            }
            made.push(Kept { entry: self.entropy.id(), owner, files, ..Kept::clone(kept) });
        }
        Ok(made)
    }

    fn file(&self, file: KeptFile, id: Id, written: &mut Vec<Id>) -> Result<()> {
        let source = self.from.open(FileRef::Data(file.id))?;
        if source.len() != file.len {
            return Err(Error::corruption(format!("file {} has {} bytes, not {}", file.id, source.len(), file.len)));
        }
        let mut sink: Box<dyn ByteSink> = self.to.create(id)?;
        written.push(id);
        let mut at = 0;
        while at < file.len {
            self.cancel.check()?;
            let part = ByteRange::new(at, CHUNK_BYTES.min(file.len - at));
            sink.write(&source.read_one(part)?)?;
            at = part.end();
        }
        sink.finish()
    }
}

/// What the copy of an entry belongs to; `None` if its owner is not among the fragments.
fn owner_of(kept: &Kept, pairs: &[(&Description, &Staged)]) -> Result<Option<Owner>> {
    match kept.owner {
        Owner::Array => Ok(Some(Owner::Array)),
        Owner::Fragment(id) => {
            let pair = pairs.iter().find(|(source, _)| source.id == id);
            Ok(pair.map(|(_, copy)| Owner::Fragment(copy.description.id)))
        }
        Owner::Data(id) => {
            let inside = pairs.iter().filter(|(source, _)| source.location.file == FileRef::Data(id));
            let places: HashSet<Option<Id>> = inside.map(|(_, copy)| file_of(copy)).collect();
            match places.into_iter().collect::<Vec<_>>()[..] {
                [] => Ok(None),
                [Some(file)] => Ok(Some(Owner::Data(file))),
                _ => Err(Error::unsupported(format!(
                    "the files of the kind {:?} that are kept beside the data file {id} cannot be copied: the fragments in it go to \
                     several places. Copy the store with its history",
                    kept.kind
                ))),
            }
        }
    }
}

/// The data file of a copy; `None` if it waits for the record.
fn file_of(copy: &Staged) -> Option<Id> {
    match copy.description.location.file {
        FileRef::Data(file) if copy.body.is_none() => Some(file),
        _ => None,
    }
}
