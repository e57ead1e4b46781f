//! The files that versions name: what a vacuum must keep, and what it may delete. Sets of ids; pages are read one at a
//! time.

use super::handle::Store;
use super::kept::{Kept, Owner};
use super::log::Log;
use super::node_row::decode_page;
use super::operation::{Condemned, Recorded};
use super::record::Record;
use super::rows::key::{self, NodeRow};
use super::rows::{RowMap, Visited};
use super::shape::RootRef;
use super::shelf::Shelf;
use super::snapshot::Snapshot;
use super::tree::Node;
use crate::base::{FileRef, Id, Result};
use crate::fragment::Description;
use std::collections::HashSet;
use std::sync::Arc;

/// Data files and manifest objects by id.
#[derive(Debug, Clone, Default)]
pub struct Names {
    data: HashSet<Id>,
    /// The names that sorted copies of fragments in the data files would have, whether or not they exist.
    copies: HashSet<Id>,
    /// Files on other bases. Such a base may be this store under another address.
    elsewhere: HashSet<Id>,
    manifest: HashSet<Id>,
}

impl Names {
    /// The data files that are named, in no order.
    pub fn data(&self) -> impl Iterator<Item = Id> {
        self.data.iter().copied()
    }

    /// The names that sorted copies of fragments in these data files would have, in no order. They need not exist.
    pub fn copies(&self) -> impl Iterator<Item = Id> {
        self.copies.iter().copied()
    }

    /// The manifest roots and pages that are named, in no order.
    pub fn manifest(&self) -> impl Iterator<Item = Id> {
        self.manifest.iter().copied()
    }

    /// Whether the data file is named, here or on another base, or is a sorted copy of fragments in one that is.
    pub fn has_data(&self, id: Id) -> bool {
        self.data.contains(&id) || self.copies.contains(&id) || self.elsewhere.contains(&id)
    }

    /// Whether the manifest root or page is named.
    pub fn has_manifest(&self, id: Id) -> bool {
        self.manifest.contains(&id)
    }

    /// Adds the files that `snapshot` names: its root, its pages, the data files of its fragments, and kept files.
    ///
    /// # Errors
    /// Corruption if a page is missing or damaged, Storage.
    pub fn add_snapshot(&mut self, store: &Store, snapshot: &Snapshot) -> Result<()> {
        self.manifest.extend(snapshot.root().map(|r| r.id));
        let tree = snapshot.tree();
        let (mut gone, mut released): (HashSet<Id>, HashSet<Id>) = (HashSet::new(), HashSet::new());
        for (id, node) in tree.changed() {
            if let Some(Node::Array(array)) = node {
                gone.extend(array.gone.keys());
                for (entry, kept) in &array.kept.changes {
                    match kept {
                        Some(kept) => self.add_kept(kept),
                        None => _ = released.insert(*entry),
                    }
                }
                self.add_fragments(id, array.recent());
            }
        }
        let removes = tree.changed().any(|(_, node)| node.is_none());
        let lives = |array: Id| Ok(!removes || tree.get(array)?.is_some());
        self.add_rows(&store.log, tree.rows(), &lives, &|kept| !released.contains(&kept.entry), &gone)
    }

    /// Adds the files that `record` names: the data files of fragments that it adds, and the roots that it names, with
    /// their pages and data files. Roots of versions below `from` are omitted: no version from there on reads them.
    ///
    /// # Errors
    /// Corruption if a root or page is missing or damaged, Storage.
    pub fn add_record(&mut self, store: &Store, record: &Record, from: u64) -> Result<()> {
        let mut roots = vec![record.root];
        for operation in &record.operations {
            match operation {
                Recorded::AddFragments { array, fragments } | Recorded::ReplaceFragments { array, fragments, .. } => {
                    self.add_fragments(*array, fragments);
                }
                Recorded::Keep { kept, .. } => self.add_kept(kept),
                Recorded::Condemn(Condemned { floor, .. }) => roots.push(*floor),
                _ => {}
            }
        }
        roots.into_iter().flatten().filter(|r| r.version >= from).try_for_each(|r| self.add_root(&store.log, r))
    }

    fn add_root(&mut self, log: &Log, reference: RootRef) -> Result<()> {
        if !self.manifest.insert(reference.id) {
            return Ok(());
        }
        self.add_rows(log, &log.root(reference)?.rows, &|_| Ok(true), &|_| true, &HashSet::new())
    }

    /// Adds the objects of `rows`, and the data files of the fragments of arrays that exist, except for fragments that
    /// are `gone`; and the files that are kept beside what exists, of entries that are `held`. Pages are read one at a time, and
    /// dropped again. What is kept beside a data file counts as long as its row is there.
    fn add_rows(
        &mut self,
        log: &Log,
        rows: &RowMap,
        lives: &dyn Fn(Id) -> Result<bool>,
        held: &dyn Fn(&Kept) -> bool,
        gone: &HashSet<Id>,
    ) -> Result<()> {
        rows.walk(&mut |visited| match visited {
            Visited::Page(reference) | Visited::Value(reference) => Ok(self.manifest.insert(reference.id)),
            Visited::Row(row) => {
                if let Some((array, NodeRow::Kept(entry))) = key::read_node(row.key())
                    && lives(array)?
                {
                    let kept = Kept::decode(&rows.value_of(row)?, entry)?;
                    let is_gone = matches!(kept.owner, Owner::Fragment(id) if gone.contains(&id));
                    if !is_gone && held(&kept) {
                        self.add_kept(&kept);
                    }
                }
                if let Some((array, NodeRow::Page(page))) = key::read_node(row.key())
                    && lives(array)?
                    && self.manifest.insert(page)
                {
                    let page = Shelf::new(decode_page(page, &rows.value_of(row)?)?, Arc::clone(&log.storage));
                    self.add_fragments(array, page.load()?.iter().filter(|d| !gone.contains(&d.id)));
                }
                Ok(true)
            }
        })
    }

    fn add_kept(&mut self, kept: &Kept) {
        self.data.extend(kept.files.iter().map(|file| file.id));
    }

    fn add_fragments<'a>(&mut self, array: Id, fragments: impl IntoIterator<Item = &'a Arc<Description>>) {
        for d in fragments {
            if let FileRef::OnBase(_, file) = d.location.file {
                self.elsewhere.insert(file);
            }
            if let FileRef::Data(file) = d.location.file {
                self.data.insert(file);
                self.copies.extend((file != d.id).then(|| file.beside(array)));
            }
        }
    }
}
