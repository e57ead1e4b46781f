//! A group at one version of its store.

use super::address::{At, look_at};
use super::history::{Historian, VersionListing};
use super::sorted_copies::commit_copying;
use super::{Call, Context};
use crate::base::{Error, ErrorKind, Id, Result};
use crate::store::{Changes, Child, GroupState, Node, Operation, Snapshot, StandardRules, Store};
use std::collections::HashSet;
use std::sync::Arc;

/// How often a history is begun anew that vacuums cut while it is read.
const TRIES: usize = 32;

/// A group: named children, which are arrays and groups. A handle means the group, wherever it is moved to, as that of an array does.
/// What it answers is of its version, the path included.
#[derive(Debug, Clone)]
pub struct Group {
    pub(super) context: Context,
    pub(super) store: Arc<Store>,
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) id: Id,
    /// Where it was at that version.
    pub(super) path: String,
}

impl Group {
    /// A group of a snapshot.
    pub(super) fn new(context: &Context, store: Arc<Store>, snapshot: Arc<Snapshot>, group: &GroupState) -> Self {
        Self { context: context.clone(), store, snapshot, id: group.id(), path: group.path().to_owned() }
    }

    pub(super) fn store(&self) -> &Arc<Store> {
        &self.store
    }

    pub(super) fn snapshot(&self) -> &Arc<Snapshot> {
        &self.snapshot
    }

    /// What it was opened with.
    pub fn context(&self) -> &Context {
        &self.context
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

    pub(super) fn state(&self, snapshot: &Snapshot) -> Result<Arc<GroupState>> {
        match snapshot.node_by_id(self.id)? {
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
        let newest = self.store.refresh(&self.snapshot)?;
        let (newest, group) = self.store.settling_newest(newest, |newest| self.state(newest))?;
        Ok(Self::new(&self.context, self.store.clone(), newest, &group))
    }

    /// What `look` finds in the group's state. If a vacuum has taken away what that rests on, the same version is opened anew.
    fn looked<T>(&self, look: impl Fn(&Snapshot, &GroupState) -> Result<T>) -> Result<T> {
        Ok(self.looked_in(look)?.1)
    }

    /// The same, and the snapshot in which it was found.
    pub(super) fn looked_in<T>(
        &self,
        look: impl Fn(&Snapshot, &GroupState) -> Result<T>,
    ) -> Result<(Arc<Snapshot>, T)> {
        self.store.settling(&self.snapshot, |snapshot| look(snapshot, &*self.state(snapshot)?))
    }

    /// The JSON text of a metadata value.
    ///
    /// # Errors
    /// NotFound (the group is gone), SnapshotExpired (this version has been vacuumed), Corruption, Storage.
    pub fn metadata(&self, key: &str) -> Result<Option<String>> {
        self.looked(|_, group| group.metadata().get(key))
    }

    /// The metadata's keys, sorted.
    ///
    /// # Errors
    /// NotFound (the group is gone), SnapshotExpired (this version has been vacuumed), Corruption, Storage.
    pub fn metadata_keys(&self) -> Result<Vec<String>> {
        self.looked(|_, group| Ok(group.metadata().all()?.keys().cloned().collect()))
    }

    /// Sets (JSON text) or removes (`None`) metadata keys of the group as it is now, in one commit; gives the version. This
    /// handle goes on showing its own.
    ///
    /// # Errors
    /// NotFound (the group is gone), Conflict, Storage, Access.
    pub fn set_metadata(&self, changes: Vec<(String, Option<String>)>) -> Result<u64> {
        let (newest, group) = look_at(&self.store, At::Latest, |newest| self.state(newest))?;
        let node = group.id();
        if changes.is_empty() {
            return Ok(newest.version());
        }
        let changes = Changes::new(vec![Operation::SetMetadata { node, changes }]);
        Ok(commit_copying(&self.context, &self.store, &newest, changes, &mut StandardRules)?.version())
    }

    /// The versions of the store up to this one, oldest first, with all that each did, in this group or elsewhere. Where a vacuum takes
    /// this version away meanwhile, those up to the newest, unless the handle is `pinned`.
    ///
    /// # Errors
    /// SnapshotExpired (this version has been vacuumed), Corruption, Storage, Cancelled.
    pub fn history(&self, pinned: bool, call: &Call) -> Result<Vec<VersionListing>> {
        let mut snapshot = self.snapshot.clone();
        for _ in 0..TRIES {
            match self.listed(&snapshot, call) {
                // A vacuum took the oldest of them away meanwhile, or this one as well.
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                    if self.store.floor()?.is_none_or(|floor| floor.version <= snapshot.version()) {
                        continue;
                    }
                    if pinned {
                        break;
                    }
                    snapshot = self.store.refresh(&snapshot)?;
                }
                Ok(versions) if versions.last().is_none_or(|last| last.version != snapshot.version()) => {
                    // It took this one as well.
                    if pinned {
                        break;
                    }
                    snapshot = self.store.refresh(&snapshot)?;
                }
                outcome => return outcome,
            }
        }
        Err(Error::snapshot_expired(format!(
            "version {} of {} has been vacuumed while its history was read; refresh, or open another version",
            snapshot.version(),
            self.uri()
        )))
    }

    fn listed(&self, snapshot: &Arc<Snapshot>, call: &Call) -> Result<Vec<VersionListing>> {
        let (_, tags) = self.store.settling(snapshot, |snapshot| snapshot.retained().tags())?;
        let (mut historian, mut versions) = (Historian::new(&self.store, tags), Vec::new());
        for record in self.store.history(1, snapshot.version())? {
            call.cancel.check()?;
            versions.push(historian.version(&record?, None));
        }
        Ok(versions)
    }

    /// Name and kind ("array" or "group") of every child, sorted by name.
    ///
    /// # Errors
    /// NotFound (the group is gone), SnapshotExpired (this version has been vacuumed), Corruption, Storage.
    pub fn children(&self) -> Result<Vec<(String, &'static str)>> {
        let children = self.looked(|snapshot, group| snapshot.children_of(group))?;
        Ok(children.into_iter().map(|(name, child)| (name, child.kind())).collect())
    }

    /// Path and kind of everything below, each group followed by what is in it, sorted by name.
    ///
    /// # Errors
    /// NotFound (the group is gone), SnapshotExpired (this version has been vacuumed), Corruption, Storage.
    pub fn walk(&self) -> Result<Vec<(String, &'static str)>> {
        self.looked(walk_below)
    }

    /// Whether something is called `name` here, or lies at this path below.
    ///
    /// # Errors
    /// NotFound (the group is gone), Corruption, Storage.
    pub fn contains(&self, name: &str) -> Result<bool> {
        match self.looked(|snapshot, group| snapshot.find(&below(group.path(), name))) {
            Err(e) if e.kind() == ErrorKind::Input => Ok(false),
            found => Ok(found?.is_some()),
        }
    }
}

/// Path and kind of everything below a group, depth first.
fn walk_below(snapshot: &Snapshot, group: &GroupState) -> Result<Vec<(String, &'static str)>> {
    let (mut found, mut seen) = (Vec::new(), HashSet::from([group.id()]));
    let children = |path: &str, group: &GroupState| -> Result<Vec<(String, Child)>> {
        let children = snapshot.children_of(group)?.into_iter().rev();
        Ok(children.map(|(name, child)| (below(path, &name), child)).collect())
    };
    let mut waiting = children(group.path(), group)?;
    while let Some((path, child)) = waiting.pop() {
        if !seen.insert(child.id) {
            return Err(Error::corruption(format!("what lies at {path} lies in two groups")));
        }
        if !child.is_array
            && let Some(Node::Group(group)) = snapshot.node_by_id(child.id)?
        {
            waiting.extend(children(&path, &group)?);
        }
        found.push((path, child.kind()));
    }
    Ok(found)
}

/// The path of `name` in the group at `path`.
pub(super) fn below(path: &str, name: &str) -> String {
    format!("{}/{}", path.trim_end_matches('/'), name.trim_matches('/'))
}
