//! Durability of commits where the storage defers syncs (`durability="close"`).
//!
//! The bytes of each record are durable before the record gets its name. A plain commit leaves only its own data files
//! and the names of its files unsynced; its record says so (`"durable":false`). All other commits are durable:
//! creations, folds, merges, vacuums. So is each commit to a storage that does not defer syncs.
//!
//! A durable commit first syncs what it depends on, back to the last durable one: data files, then the names of
//! records. So a power cut loses no durable commit, and no commit that a durable one depends on.

use super::log::Log;
use super::operation::{Changes, Operation};
use super::snapshot::Snapshot;
use crate::base::{ErrorKind, FileRef, Id, Result};
use crate::storage::{Storage, data_name, log_name};

/// Whether a commit of `changes` after `newest` is durable although the storage defers syncs.
pub(super) fn is_durable(newest: &Snapshot, changes: &Changes) -> bool {
    let upkeep = |op: &Operation| matches!(op, Operation::ReplaceFragments { .. } | Operation::Condemn(_));
    newest.version() == 0 || newest.names_new_root() || changes.operations.iter().any(upkeep)
}

/// The data files of fragments that `changes` add, and the files that they keep.
fn data_of(changes: &Changes) -> impl Iterator<Item = Id> {
    let fragments = changes.operations.iter().flat_map(|operation| match operation {
        Operation::AddFragments { fragments, .. } | Operation::ReplaceFragments { fragments, .. } => {
            fragments.as_slice()
        }
        _ => &[],
    });
    let kept = changes.operations.iter().flat_map(|operation| match operation {
        Operation::Keep { kept, .. } => kept.files.as_slice(),
        _ => &[],
    });
    let data = fragments.filter_map(|staged| match staged.description.location.file {
        FileRef::Data(id) if staged.body.is_none() => Some(id),
        _ => None,
    });
    data.chain(kept.map(|file| file.id))
}

impl Log {
    /// Makes everything durable that a durable commit of `changes` after `newest` depends on.
    ///
    /// # Errors
    /// Storage or Access; then nothing was committed.
    pub(super) fn make_durable(&self, newest: &Snapshot, changes: &Changes) -> Result<()> {
        let own = data_of(changes).filter(|_| self.storage.defers_sync());
        let before = newest.unsynced().iter().flat_map(|commit| commit.data.iter().copied());
        for id in own.chain(before) {
            sync_if_there(self.storage.as_ref(), &data_name(id))?;
        }
        // The bytes of records are durable already, and names are synced by folder: syncing the last one syncs the
        // others.
        newest.unsynced().last().map_or(Ok(()), |last| sync_if_there(self.storage.as_ref(), &log_name(last.version)))
    }

    /// Makes an object durable that was just written, if the storage has deferred that.
    pub(super) fn sync_deferred(&self, name: &str) -> Result<()> {
        if self.storage.defers_sync() { self.storage.sync(name) } else { Ok(()) }
    }
}

/// A file that a vacuum has removed needs no sync.
fn sync_if_there(storage: &dyn Storage, name: &str) -> Result<()> {
    match storage.sync(name) {
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(()),
        synced => synced,
    }
}
