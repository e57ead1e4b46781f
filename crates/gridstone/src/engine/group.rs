//! A group at one version of its store.

use super::listing::VersionListing;
use super::sorted_copies::commit_copying;
use super::{Call, Context};
use crate::array::{Changes, GroupState, Node, Operation, Snapshot, StandardRules, Store};
use crate::base::{Error, Id, Result};
use std::sync::Arc;

/// A group: named children, which are arrays and groups. A handle means the group, wherever it is moved to, as that of an array does.
#[derive(Debug, Clone)]
pub struct Group {
    context: Context,
    pub(super) store: Arc<Store>,
    snapshot: Arc<Snapshot>,
    id: Id,
    /// Where it was at that version.
    path: String,
}

impl Group {
    /// The group at `path` of a snapshot; NotFound if there is none.
    pub(super) fn at(context: &Context, store: Arc<Store>, snapshot: Arc<Snapshot>, path: &str) -> Result<Self> {
        let id = match snapshot.node(path)? {
            Node::Group(group) => group.id(),
            Node::Array(_) => return Err(Error::not_found(format!("{path} is an array, not a group"))),
        };
        Ok(Self { context: context.clone(), store, snapshot, id, path: path.to_owned() })
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
        match snapshot.node_by_id(self.id) {
            Some(Node::Group(group)) => Ok(group),
            _ => Err(Error::not_found(format!(
                "the group that lay at {} in version {} is not there any more in version {} of {}: it was removed, or replaced; open what is there now",
                self.path,
                self.version(),
                snapshot.version(),
                self.uri()
            ))),
        }
    }

    /// The same group at the newest version, where it may lie elsewhere.
    ///
    /// # Errors
    /// NotFound (it was removed), Corruption, Storage.
    pub fn refreshed(&self) -> Result<Self> {
        let snapshot = self.store.refresh(&self.snapshot)?;
        let path = self.state(&snapshot)?.path().to_owned();
        Ok(Self { context: self.context.clone(), store: self.store.clone(), snapshot, id: self.id, path })
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
        Ok(commit_copying(&self.context, &self.store, &newest, changes, &mut StandardRules)?.version())
    }

    /// The versions of the store up to this one, oldest first, with all that each did, in this group or elsewhere.
    ///
    /// # Errors
    /// Corruption, Storage, Cancelled.
    pub fn history(&self, call: &Call) -> Result<Vec<VersionListing>> {
        let mut versions = Vec::new();
        for record in self.store.history(1, self.version())? {
            call.cancel.check()?;
            versions.push(VersionListing::of(&record?, None, self.snapshot.retained().tags()));
        }
        Ok(versions)
    }

    /// Name and kind ("array" or "group") of every child, sorted by name.
    pub fn children(&self) -> Result<Vec<(String, &'static str)>> {
        let children = self.snapshot.children(&self.path)?;
        Ok(children.into_iter().map(|(name, node)| (name.to_owned(), node.kind())).collect())
    }
}
