//! A snapshot: the state of a store at one version. It is immutable and shares unchanged parts with the snapshots
//! before and after it.
//!
//! It is the state of a manifest root (or the empty state) plus the records after it. [`Snapshot::follow`] adds one
//! record. [`Snapshot::rest_on`] exchanges the root underneath for a newer one; that changes where fragments are
//! described, not the content.

use super::operation::Recorded;
use super::record::Record;
use super::retained::Retained;
use super::root::{Root, RootArray, RootNode};
use super::root_size;
use super::shape::RootRef;
use super::shelf::Shelf;
use super::state::{ArrayState, GroupState};
use super::tree::{Node, Tree};
use crate::base::{Error, ErrorKind, Id, Result, limits};
use crate::storage::Storage;
use std::collections::HashMap;
use std::sync::Arc;

/// The state of a store at one version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: u64,
    time_us: i64,
    record: Option<u64>,
    store: Id,
    root: Option<RootRef>,
    /// Bytes of that root; 0 without one.
    root_bytes: u64,
    /// The records since the root that were followed.
    since: Vec<Step>,
    /// The root that the last record followed names.
    named: Option<RootRef>,
    /// The commits since the last durable one.
    unsynced: Vec<Unsynced>,
    tree: Tree,
    retained: Arc<Retained>,
}

/// A record that was followed.
#[derive(Debug, Clone, Copy)]
struct Step {
    version: u64,
    bytes: u64,
    /// The bytes by which it makes the next root longer, at most.
    growth: i64,
}

impl Snapshot {
    /// The state before version 1.
    pub(super) fn before_all() -> Self {
        Self {
            version: 0,
            time_us: i64::MIN,
            record: None,
            store: Id([0; 16]),
            root: None,
            root_bytes: 0,
            since: Vec::new(),
            named: None,
            unsynced: Vec::new(),
            tree: Tree::empty(),
            retained: Arc::default(),
        }
    }

    /// The state of `root`, which is known as `reference`; its pages are read from `storage` when needed.
    pub(super) fn of_root(root: Root, reference: RootRef, storage: &Arc<dyn Storage>) -> Result<Self> {
        let mut tree = Tree::empty();
        for node in root.nodes {
            let why = |e: Error| Error::corruption(format!("manifest root {}: {e}", reference.id)).with_source(e);
            tree.insert(node_of(node, storage)).map_err(why)?;
        }
        let (version, time_us, store, retained) = (root.version, root.time_us, root.store, root.retained);
        let root_bytes = root.bytes;
        let (record, root) = (Some(root.record), Some(reference));
        let (since, named, unsynced) = (Vec::new(), None, Vec::new());
        Ok(Self { version, time_us, record, store, root, root_bytes, since, named, unsynced, tree, retained })
    }

    /// The version.
    pub fn version(&self) -> u64 {
        self.version
    }

    /// When it was committed: UTC in microseconds.
    pub fn time_us(&self) -> i64 {
        self.time_us
    }

    /// The store's own id, the same for all its versions.
    pub fn store(&self) -> Id {
        self.store
    }

    /// The manifest root that it is based on.
    pub fn root(&self) -> Option<RootRef> {
        self.root
    }

    /// Tags, the floor, condemned files.
    pub fn retained(&self) -> &Retained {
        &self.retained
    }

    pub(super) fn retained_state(&self) -> Arc<Retained> {
        Arc::clone(&self.retained)
    }

    /// The checksum of its record's line; `None` before version 1.
    pub(super) fn record(&self) -> Option<u64> {
        self.record
    }

    pub(super) fn tree(&self) -> &Tree {
        &self.tree
    }

    /// The version of its root, 0 without one.
    pub fn root_version(&self) -> u64 {
        self.root.map_or(0, |r| r.version)
    }

    /// Whether the next record names a root that no earlier record has named.
    pub(super) fn names_new_root(&self) -> bool {
        self.root.is_some() && self.root != self.named
    }

    /// The commits since the last durable one, oldest first.
    pub(super) fn unsynced(&self) -> &[Unsynced] {
        &self.unsynced
    }

    /// Whether so many versions, or [`limits::FOLD_BYTES`] of records, came since the root that a fold should spare
    /// later openings from reading them.
    pub(super) fn wants_fold(&self, versions: u64) -> bool {
        let bytes = self.since.iter().map(|step| step.bytes).sum::<u64>();
        self.version - self.root_version() >= versions || bytes >= limits::FOLD_BYTES
    }

    /// The bytes that a root of this version takes, at most.
    pub(super) fn root_bytes(&self) -> u64 {
        self.root_bytes.saturating_add_signed(self.since.iter().map(|step| step.growth).sum())
    }

    /// The node at `path`; NotFound names the path and the version.
    pub fn node(&self, path: &str) -> Result<&Node> {
        super::path::check(path)?;
        self.tree.find(path).ok_or_else(|| {
            Error::not_found(format!("there is no array or group {path} in version {} of the store", self.version))
        })
    }

    /// The node with this id.
    pub fn node_by_id(&self, id: Id) -> Option<&Node> {
        self.tree.get(id)
    }

    /// The array at `path`; NotFound if there is none, or a group.
    pub fn array(&self, path: &str) -> Result<&Arc<ArrayState>> {
        match self.node(path)? {
            Node::Array(array) => Ok(array),
            Node::Group(_) => Err(Error::not_found(format!("{path} is a group, not an array"))),
        }
    }

    /// The array with this id; NotFound if this version has none.
    pub fn array_by_id(&self, id: Id) -> Result<&Arc<ArrayState>> {
        match self.tree.get(id) {
            Some(Node::Array(array)) => Ok(array),
            _ => Err(Error::not_found(format!("version {} has no array with the id {id}", self.version))),
        }
    }

    /// The children of the group at `path`, sorted by name; NotFound if there is no group.
    pub fn children(&self, path: &str) -> Result<Vec<(&str, &Node)>> {
        match self.node(path)? {
            Node::Group(group) => Ok(group
                .children()
                .iter()
                .filter_map(|(name, id)| Some((name.as_str(), self.tree.get(*id)?)))
                .collect()),
            Node::Array(_) => Err(Error::not_found(format!("{path} is an array and has no children"))),
        }
    }

    /// Every node, parents before children.
    pub fn nodes(&self) -> Vec<&Node> {
        self.tree.walk()
    }

    /// Advances by `record`, which was just made for this snapshot. Errors say, in the caller's terms, why it cannot be
    /// done.
    pub(super) fn do_next(&mut self, record: &Record) -> Result<()> {
        let mut growth = 0i64;
        for operation in &record.operations {
            growth += root_size::growth((&self.tree, &self.retained), operation);
            self.tree.apply(operation, record.version)?;
            self.retained.apply(operation, record.version)?;
        }
        self.tree.check_root()?;
        if record.version == 1 {
            self.store = record.commit_id;
        }
        (self.version, self.time_us, self.record) = (record.version, record.time_us, Some(record.xxh3));
        self.since.push(Step { version: record.version, bytes: record.len, growth });
        self.named = record.root;
        match record.durable {
            true => self.unsynced.clear(),
            false => self.unsynced.push(Unsynced { version: record.version, data: record.data().collect() }),
        }
        Ok(())
    }

    /// Applies `operation` as part of `version`, which is not committed, and may never be; the snapshot keeps its
    /// version.
    pub(super) fn provisionally(&mut self, operation: &Recorded, version: u64) -> Result<()> {
        self.tree.apply(operation, version)
    }

    /// Advances by `record`, found in the log. A Corruption error if it does not follow from this snapshot.
    pub(super) fn follow(&mut self, record: &Record) -> Result<()> {
        let wrong = |why: String| {
            Error::corruption(format!(
                "the log record of version {} does not follow from version {}: {why}",
                record.version, self.version
            ))
        };
        if record.version.checked_sub(1) != Some(self.version) {
            return Err(wrong("it is not the next".to_owned()));
        }
        if record.parent != self.record {
            return Err(wrong("it names another record as its parent; the log was mixed with another one".to_owned()));
        }
        if record.version > 1 && record.time_us <= self.time_us {
            return Err(wrong(format!("its time {} is not after {}", record.time_us, self.time_us)));
        }
        let before = self.version;
        self.do_next(record).map_err(|e| match e.kind() {
            ErrorKind::Unsupported | ErrorKind::Corruption => e,
            _ => Error::corruption(format!(
                "the log record of version {} does not follow from version {before}: {e}",
                record.version
            ))
            .with_source(e),
        })
    }

    /// The same state based on `root`, which is newer than the root underneath and not newer than the snapshot. Pages
    /// that both roots have stay loaded.
    pub(super) fn rest_on(&mut self, root: &Root, reference: RootRef, made: &Shelves, storage: &Arc<dyn Storage>) {
        let folded: HashMap<Id, &RootArray> =
            root.nodes.iter().filter_map(|node| Some((node.id, node.array.as_ref()?))).collect();
        let touched = |array: &ArrayState| {
            !array.recent.is_empty() || !array.gone.is_empty() || !same_pages(array, folded.get(&array.id).copied())
        };
        let arrays: Vec<Id> = self
            .tree
            .walk()
            .into_iter()
            .filter_map(|node| match node {
                Node::Array(array) if touched(array) => Some(array.id),
                _ => None,
            })
            .collect();
        for id in arrays {
            if let Some(Node::Array(array)) = self.tree.get_mut(id) {
                let array = Arc::make_mut(array);
                array.recent.retain(|batch| batch.version > root.version);
                Arc::make_mut(&mut array.gone).retain(|_, gone| gone.version > root.version);
                array.shelves = shelves_of(array, folded.get(&id).copied(), made, storage);
            }
        }
        (self.root, self.root_bytes) = (Some(reference), root.bytes);
        self.since.retain(|step| step.version > reference.version);
    }
}

/// Loaded pages, by id.
pub(super) type Shelves = HashMap<Id, Arc<Shelf>>;

fn same_pages(array: &ArrayState, folded: Option<&RootArray>) -> bool {
    let pages = folded.map_or(&[][..], |f| f.pages.as_slice());
    array.shelves.len() == pages.len() && array.shelves.iter().zip(pages).all(|(shelf, page)| shelf.info() == page)
}

fn shelves_of(
    array: &ArrayState,
    folded: Option<&RootArray>,
    made: &Shelves,
    storage: &Arc<dyn Storage>,
) -> Vec<Arc<Shelf>> {
    let held: HashMap<Id, &Arc<Shelf>> = array.shelves.iter().map(|s| (s.info().id, s)).collect();
    let shelf = |page: &super::page::PageInfo| {
        let known = held.get(&page.id).copied().or_else(|| made.get(&page.id)).filter(|s| s.info() == page);
        known.cloned().unwrap_or_else(|| Arc::new(Shelf::new(page.clone(), Arc::clone(storage))))
    };
    folded.map_or_else(Vec::new, |f| f.pages.iter().map(shelf).collect())
}

fn node_of(node: RootNode, storage: &Arc<dyn Storage>) -> Node {
    let metadata = node.metadata;
    match node.array {
        None => Node::Group(Arc::new(GroupState { metadata, ..GroupState::new(node.id, &node.path) })),
        Some(array) => {
            let shelf = |page| Arc::new(Shelf::new(page, Arc::clone(storage)));
            Node::Array(Arc::new(ArrayState {
                id: node.id,
                path: node.path.as_str().into(),
                schemas: array.schemas,
                metadata,
                shelves: array.pages.into_iter().map(shelf).collect(),
                recent: Vec::new(),
                gone: Arc::default(),
            }))
        }
    }
}

/// A commit that a power cut may lose, as far as the records say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsynced {
    pub(super) version: u64,
    /// Data files of the fragments that it added.
    pub(super) data: Vec<Id>,
}
