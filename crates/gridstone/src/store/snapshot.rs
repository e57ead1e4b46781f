//! A snapshot: the state of a store at one version. It is immutable and shares unchanged parts with the snapshots
//! before and after it.
//!
//! It is the state of a manifest root (or the empty state) plus the records after it. [`Snapshot::follow`] adds one
//! record. [`Snapshot::rested_on`] exchanges the root underneath for a newer one; that changes where fragments are
//! described, not the content. Nodes and pages are read from the root when they are first needed.

use super::bases::Bases;
use super::commit_key::{CommitKey, KeyedCommit};
use super::extension::{Ext, Features};
use super::key_window::KeyWindow;
use super::line::FORMAT;
use super::node_row::Child;
use super::operation::Recorded;
use super::record::Record;
use super::retained::Retained;
use super::root::Root;
use super::rows::RowMap;
use super::shape::RootRef;
use super::shelf::Shelves;
use super::state::{ArrayState, GroupState};
use super::tree::{Node, Tree};
use crate::base::{Error, ErrorKind, Id, Result, limits};
use std::sync::Arc;

/// The state of a store at one version.
#[derive(Debug, Clone)]
pub struct Snapshot {
    version: u64,
    time_us: i64,
    record: Option<u64>,
    store: Id,
    root: Option<RootRef>,
    /// The format of its record, or of its root where no record was followed.
    format: u64,
    /// The records since the root that were followed.
    since: Vec<Arc<Record>>,
    /// The root that the last record followed names.
    named: Option<RootRef>,
    /// The commits since the last durable one.
    unsynced: Vec<Unsynced>,
    features: Features,
    ext: Ext,
    tree: Tree,
    retained: Arc<Retained>,
    bases: Arc<Bases>,
    /// The arrays whose pages of fragments this process wrote for the root.
    folded: Arc<[Id]>,
    /// Operations that were applied and are not committed.
    provisional: Vec<Arc<Recorded>>,
}

/// What a fold of this process wrote for a root.
#[derive(Debug, Default)]
pub(super) struct Made {
    /// The pages of fragments.
    pub(super) shelves: Shelves,
    /// The arrays that they are of.
    pub(super) arrays: Vec<Id>,
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
            format: FORMAT,
            since: Vec::new(),
            named: None,
            unsynced: Vec::new(),
            features: Features::default(),
            ext: None,
            tree: Tree::empty(),
            retained: Arc::default(),
            bases: Arc::new(Bases::of(&RowMap::empty())),
            folded: Arc::default(),
            provisional: Vec::new(),
        }
    }

    /// The state of `root`, which is known as `reference`; its pages are read when they are needed.
    pub(super) fn of_root(root: Root, reference: RootRef) -> Self {
        Self::of_root_sharing(root, reference, Shelves::new())
    }

    /// Like [`Snapshot::of_root`]; pages of fragments among `shelves` are not read again.
    fn of_root_sharing(root: Root, reference: RootRef, shelves: Shelves) -> Self {
        let retained = Arc::new(Retained::of(&root.rows, root.floor));
        let bases = Arc::new(Bases::of(&root.rows));
        Self {
            version: root.version,
            time_us: root.time_us,
            record: Some(root.record),
            store: root.store,
            root: Some(reference),
            format: root.format,
            since: Vec::new(),
            named: None,
            unsynced: Vec::new(),
            features: root.features,
            ext: root.ext,
            tree: Tree::of_rows(root.rows, root.node, shelves),
            retained,
            bases,
            folded: Arc::default(),
            provisional: Vec::new(),
        }
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

    /// Where files lie that are not in the store itself.
    pub fn bases(&self) -> &Bases {
        &self.bases
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

    /// The records since the root, oldest first.
    pub(super) fn since(&self) -> impl DoubleEndedIterator<Item = &Record> {
        self.since.iter().map(AsRef::as_ref)
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
        let bytes = self.since.iter().map(|record| record.len).sum::<u64>();
        self.version - self.root_version() >= versions || bytes >= limits::FOLD_BYTES
    }

    /// Takes over what `record`, that of its version, says of formats and features. A root of a version may have
    /// another format than the record.
    pub(super) fn agree_with(&mut self, record: &Record) {
        (self.format, self.features) = (record.format, record.features.clone());
    }

    /// The arrays that the fold under this snapshot wrote pages of, if this process folded.
    pub fn folded(&self) -> &[Id] {
        &self.folded
    }

    /// The format of its newest record.
    pub fn format(&self) -> u64 {
        self.format
    }

    /// The last commit keys.
    pub(super) fn keys(&self) -> KeyWindow<'_> {
        KeyWindow { rows: self.tree.rows(), since: &self.since }
    }

    /// The commit that the caller's key `key` was given to, if that is among the last 100,000 keys.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged, Storage.
    pub fn keyed_commit(&self, key: &CommitKey) -> Result<Option<KeyedCommit>> {
        self.keys().find(key)
    }

    /// The features in force.
    pub(super) fn features(&self) -> &Features {
        &self.features
    }

    /// The `ext` of the store.
    pub(super) fn ext(&self) -> &Ext {
        &self.ext
    }

    /// The node at `path`; NotFound names the path and the version.
    ///
    /// # Errors
    /// NotFound; Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn node(&self, path: &str) -> Result<Node> {
        self.find(path)?.ok_or_else(|| {
            Error::not_found(format!("there is no array or group {path} in version {} of the store", self.version))
        })
    }

    /// The node at `path`, if there is one.
    ///
    /// # Errors
    /// Input if that is no path; those of [`Snapshot::node`] but NotFound.
    pub fn find(&self, path: &str) -> Result<Option<Node>> {
        super::path::check(path)?;
        self.tree.find(path)
    }

    /// The node with this id.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn node_by_id(&self, id: Id) -> Result<Option<Node>> {
        self.tree.get(id)
    }

    /// Whether the node with this id was read before, so that it is found without reading.
    pub fn is_at_hand(&self, id: Id) -> bool {
        self.tree.is_known(id)
    }

    /// The array at `path`; NotFound if there is none, or a group; Unsupported if a newer release wrote it so that this one
    /// cannot read it.
    pub fn array(&self, path: &str) -> Result<Arc<ArrayState>> {
        match self.node(path)? {
            Node::Array(array) => array.check_readable().map(|()| array),
            Node::Group(_) => Err(Error::not_found(format!("{path} is a group, not an array"))),
        }
    }

    /// The array with this id, if this version has it.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn find_array(&self, id: Id) -> Result<Option<Arc<ArrayState>>> {
        match self.tree.get(id)? {
            Some(Node::Array(array)) => Ok(Some(array)),
            _ => Ok(None),
        }
    }

    /// The array with this id; NotFound if this version has none, Unsupported as of [`Snapshot::array`].
    pub fn array_by_id(&self, id: Id) -> Result<Arc<ArrayState>> {
        match self.find_array(id)? {
            Some(array) => array.check_readable().map(|()| array),
            None => Err(Error::not_found(format!(
                "the array was removed: version {} of the store does not have it; open what is there now",
                self.version
            ))),
        }
    }

    /// The children of the group at `path`, sorted by name; NotFound if there is no group.
    pub fn children(&self, path: &str) -> Result<Vec<(String, Child)>> {
        match self.node(path)? {
            Node::Group(group) => self.children_of(&group),
            Node::Array(_) => Err(Error::not_found(format!("{path} is an array and has no children"))),
        }
    }

    /// The children of a group of this version, sorted by name.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn children_of(&self, group: &GroupState) -> Result<Vec<(String, Child)>> {
        Ok(self.tree.children(group)?.into_iter().collect())
    }

    /// The hidden arrays of an array of this version, sorted by name.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn hidden_in(&self, array: &ArrayState) -> Result<Vec<(String, Child)>> {
        Ok(self.tree.hidden_in(array)?.into_iter().collect())
    }

    /// Every node, parents before children; a hidden array comes after its owner.
    ///
    /// # Errors
    /// Corruption, Unsupported or Storage if the manifest cannot be read.
    pub fn nodes(&self) -> Result<Vec<Node>> {
        self.tree.walk()
    }

    /// Checks the hidden arrays that an array has labels in.
    ///
    /// # Errors
    /// Conflict, Schema: one is missing, or of a wrong form. Corruption, Unsupported or Storage if the manifest cannot be
    /// read.
    pub(super) fn check_labels(&self, array: Id) -> Result<()> {
        self.tree.check_labels(array)
    }

    /// Advances by `record`, which was just made for this snapshot. Errors say, in the caller's terms, why it cannot be
    /// done.
    pub(super) fn do_next(&mut self, record: Arc<Record>) -> Result<()> {
        for operation in &record.operations {
            self.tree.apply(operation)?;
            self.retained.apply(operation, record.version)?;
            if let Recorded::SetBase { number, base } = operation {
                self.bases.set(*number, base.as_ref());
            }
        }
        for operation in &record.operations {
            if let Recorded::CreateArray { id, .. } | Recorded::AlterArray { id, .. } = operation {
                self.tree.check_labels(*id)?;
            }
        }
        self.tree.check_root()?;
        if record.version == 1 {
            self.store = record.commit_id;
        }
        (self.version, self.time_us, self.record) = (record.version, record.time_us, Some(record.xxh3));
        (self.format, self.features, self.named) = (record.format, record.features.clone(), record.root);
        match record.durable {
            true => self.unsynced.clear(),
            false => self.unsynced.push(Unsynced { version: record.version, data: record.data().collect() }),
        }
        self.since.push(record);
        Ok(())
    }

    /// Applies `operation`, which is not committed, and may never be; the snapshot keeps its version.
    pub(super) fn provisionally(&mut self, operation: Arc<Recorded>) -> Result<()> {
        self.tree.apply(&operation)?;
        self.provisional.push(operation);
        Ok(())
    }

    /// Advances by `record`, found in the log. A Corruption error if it does not follow from this snapshot.
    pub(super) fn follow(&mut self, record: Record) -> Result<()> {
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
        if self.since.last().is_some_and(|before| record.format < before.format) {
            return Err(wrong("it is of an older format".to_owned()));
        }
        if record.version > 1 && record.time_us <= self.time_us {
            return Err(wrong(format!("its time {} is not after {}", record.time_us, self.time_us)));
        }
        let (before, version) = (self.version, record.version);
        self.do_next(Arc::new(record)).map_err(|e| match e.kind() {
            ErrorKind::NotFound
            | ErrorKind::Exists
            | ErrorKind::Conflict
            | ErrorKind::Input
            | ErrorKind::Schema
            | ErrorKind::Bounds => Error::corruption(format!(
                "the log record of version {version} does not follow from version {before}: {e}"
            ))
            .with_source(e),
            _ => e,
        })
    }

    /// The same state based on `root`, which is newer than the root underneath and not newer than the snapshot. Pages
    /// that both roots have stay loaded, and so do the pages `made`.
    ///
    /// # Errors
    /// Corruption if the records since do not follow from that root, or a page is missing or damaged; Storage.
    pub(super) fn rested_on(&self, mut root: Root, reference: RootRef, made: Made) -> Result<Self> {
        let mut shelves = self.tree.known_shelves();
        shelves.extend(made.shelves);
        root.rows = root.rows.sharing(self.tree.rows());
        let mut rested = Self::of_root_sharing(root, reference, shelves);
        for record in self.since.iter().filter(|record| record.version > reference.version) {
            rested.do_next(Arc::clone(record))?;
        }
        for operation in &self.provisional {
            rested.provisionally(Arc::clone(operation))?;
        }
        (rested.named, rested.unsynced) = (self.named, self.unsynced.clone());
        rested.format = self.format;
        rested.folded = made.arrays.into();
        Ok(rested)
    }
}

/// A commit that a power cut may lose, as far as the records say.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Unsynced {
    pub(super) version: u64,
    /// Data files of the fragments that it added.
    pub(super) data: Vec<Id>,
}
