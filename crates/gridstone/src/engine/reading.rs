//! The files of a store as one snapshot's reader sees them: a vacuum may have moved or removed some meanwhile.

use super::claim::Claim;
use crate::base::{ByteRange, ByteSink, ByteSource, Error, ErrorKind, FileRef, Files, Id, Result, Sources};
use crate::store::{Snapshot, Store};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// Where the fragments of an array lie now.
type Places = HashMap<Id, (FileRef, ByteRange)>;

/// Files for the reads of one snapshot of an array.
#[derive(Debug)]
pub(super) struct SnapshotFiles {
    pub(super) files: Arc<dyn Files>,
    pub(super) store: Arc<Store>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) array: Id,
    pub(super) claim: Arc<Claim>,
    /// Filled when a file is found missing.
    pub(super) moved: OnceLock<Places>,
}

impl SnapshotFiles {
    fn places(&self) -> Result<Places> {
        // Who asks may know them by the places that they had in an earlier version, as a consolidation does.
        let settled = self.store.resettled(&self.snapshot)?.unwrap_or_else(|| Arc::clone(&self.snapshot));
        let look = |snapshot: &Snapshot| snapshot.array_by_id(self.array)?.fragments(None);
        let (_, fragments) = self.store.settling(&settled, look)?;
        let place = |d: &crate::fragment::Location| (d.file, ByteRange::new(d.offset, d.len));
        Ok(fragments.iter().map(|d| (d.id, place(&d.location))).collect())
    }
}

impl Files for SnapshotFiles {
    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>> {
        self.claim.touch();
        match file {
            FileRef::OnBase(base, id) => Err(self.snapshot.bases().unreadable(base, id)),
            file => self.files.open(file),
        }
    }

    fn sources(&self) -> Option<Arc<dyn Sources>> {
        self.files.sources()
    }

    fn moved(&self, fragment: Id) -> Result<Option<(FileRef, ByteRange)>> {
        if self.moved.get().is_none() {
            let _ = self.moved.set(self.places()?);
        }
        Ok(self.moved.get().and_then(|places| places.get(&fragment)).copied())
    }

    fn explain(&self, error: Error) -> Error {
        if !error.may_be_missing() {
            return error;
        }
        match self.store.resettled(&self.snapshot) {
            Err(expired) if expired.kind() == ErrorKind::SnapshotExpired => expired.with_source(error),
            _ => error,
        }
    }

    fn is_near(&self) -> bool {
        self.files.is_near()
    }

    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>> {
        self.files.create(id)
    }

    fn remove(&self, id: Id) -> Result<()> {
        self.files.remove(id)
    }
}
