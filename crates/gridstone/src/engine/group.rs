//! A group at one version of its store.

use crate::array::{Snapshot, Store};
use crate::base::Result;
use std::sync::Arc;

/// A group: named children, which are arrays and groups.
#[derive(Debug, Clone)]
pub struct Group {
    pub(super) store: Arc<Store>,
    snapshot: Arc<Snapshot>,
    path: String,
}

impl Group {
    pub(super) fn new(store: Arc<Store>, snapshot: Arc<Snapshot>, path: &str) -> Self {
        Self { store, snapshot, path: path.to_owned() }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// The store's URI.
    pub fn uri(&self) -> String {
        self.store.storage().describe()
    }

    /// Its path in the store.
    pub fn path(&self) -> &str {
        &self.path
    }

    /// The store's version that it shows.
    pub fn version(&self) -> u64 {
        self.snapshot.version()
    }

    /// Name and kind ("array" or "group") of every child, sorted by name.
    pub fn children(&self) -> Result<Vec<(String, &'static str)>> {
        let children = self.snapshot.children(&self.path)?;
        Ok(children.into_iter().map(|(name, node)| (name.to_owned(), node.kind())).collect())
    }
}
