//! The files that versions name: what a vacuum must keep, and what it may delete. Sets of ids; pages are read one at a
//! time.

use super::handle::Store;
use super::log::Log;
use super::operation::{Condemned, Recorded};
use super::record::Record;
use super::root::Root;
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

    /// Whether the data file is named, or is a sorted copy of fragments in one that is.
    pub fn has_data(&self, id: Id) -> bool {
        self.data.contains(&id) || self.copies.contains(&id)
    }

    /// Whether the manifest root or page is named.
    pub fn has_manifest(&self, id: Id) -> bool {
        self.manifest.contains(&id)
    }

    /// Adds the files that `snapshot` names: its root, its pages, and the data files of its fragments.
    ///
    /// # Errors
    /// Corruption if a page is missing or damaged, Storage.
    pub fn add_snapshot(&mut self, store: &Store, snapshot: &Snapshot) -> Result<()> {
        self.manifest.extend(snapshot.root().map(|r| r.id));
        for node in snapshot.nodes() {
            let Node::Array(array) = node else { continue };
            for shelf in &array.shelves {
                let page = Shelf::new(shelf.info().clone(), Arc::clone(&store.log.storage));
                if self.manifest.insert(page.info().id) {
                    self.add_fragments(array.id(), page.load()?.iter().filter(|d| array.has(d.id)));
                }
            }
            self.add_fragments(array.id(), array.recent());
        }
        Ok(())
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
        let Root { nodes, .. } = log.root(reference)?;
        for (id, array) in nodes.into_iter().filter_map(|node| Some((node.id, node.array?))) {
            for page in array.pages {
                self.add_page(id, &Shelf::new(page, Arc::clone(&log.storage)))?;
            }
        }
        Ok(())
    }

    /// Reads the page and drops it again.
    fn add_page(&mut self, array: Id, page: &Shelf) -> Result<()> {
        if self.manifest.insert(page.info().id) {
            self.add_fragments(array, page.load()?.iter());
        }
        Ok(())
    }

    fn add_fragments<'a>(&mut self, array: Id, fragments: impl IntoIterator<Item = &'a Arc<Description>>) {
        for d in fragments {
            if let FileRef::Data(file) = d.location.file {
                self.data.insert(file);
                self.copies.extend((file != d.id).then(|| file.beside(array)));
            }
        }
    }
}
