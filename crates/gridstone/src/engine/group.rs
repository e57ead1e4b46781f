//! A group at one version of its store.

use crate::array::{Changes, GroupState, Node, Operation, Snapshot, StandardRules, Store};
use crate::base::{Error, Result};
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

    fn state<'s>(&self, snapshot: &'s Snapshot) -> Result<&'s GroupState> {
        match snapshot.node(&self.path)? {
            Node::Group(group) => Ok(group),
            Node::Array(_) => Err(Error::not_found(format!("{} is an array and no group any more", self.path))),
        }
    }

    /// The JSON text of a metadata value.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        Ok(self.state(&self.snapshot)?.metadata().get(key).cloned())
    }

    /// The metadata's keys, sorted.
    pub fn metadata_keys(&self) -> Result<Vec<String>> {
        Ok(self.state(&self.snapshot)?.metadata().keys().cloned().collect())
    }

    /// Sets (JSON text) or removes (`None`) metadata keys of the group as it is now, in one commit; gives the version. This
    /// handle goes on showing its own.
    ///
    /// # Errors
    /// NotFound (the group is gone), Conflict, Storage, Access.
    pub fn set_metadata(&self, changes: Vec<(String, Option<String>)>) -> Result<u64> {
        let newest = self.store.latest()?;
        let node = self.state(&newest)?.id();
        if changes.is_empty() {
            return Ok(newest.version());
        }
        let changes = Changes::new(vec![Operation::SetMetadata { node, changes }]);
        Ok(self.store.commit(&newest, changes, &mut StandardRules)?.version())
    }

    /// Name and kind ("array" or "group") of every child, sorted by name.
    pub fn children(&self) -> Result<Vec<(String, &'static str)>> {
        let children = self.snapshot.children(&self.path)?;
        Ok(children.into_iter().map(|(name, node)| (name.to_owned(), node.kind())).collect())
    }
}
