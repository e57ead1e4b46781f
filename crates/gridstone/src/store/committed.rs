//! The outcome of a commit.

use super::snapshot::Snapshot;
use std::sync::Arc;

/// A commit that is done.
#[derive(Debug, Clone)]
pub struct Committed {
    /// The store with it, at its version or a later one.
    pub snapshot: Arc<Snapshot>,
    /// Its version.
    pub version: u64,
    /// Whether it was done before, by a commit with the same key that certainly has other files: those of the changes
    /// belong to no version.
    pub is_repeat: bool,
}

impl Committed {
    pub(super) fn now(snapshot: Arc<Snapshot>) -> Self {
        Self { version: snapshot.version(), snapshot, is_repeat: false }
    }
}
