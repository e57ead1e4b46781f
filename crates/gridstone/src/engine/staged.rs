//! Fragments that have been written and that no commit refers to yet.

use super::content::Given;
use crate::base::{FileRef, Files, Id, Result};
use crate::fragment;
use crate::runtime::Owner;
use crate::schema::{KeyRange, Schema};
use crate::storage::{Storage, data_name};
use crate::store::{Committed, Growth};
use std::collections::BTreeMap;
use std::sync::Arc;

/// Written fragments of one array. Dropped without a commit, their files are removed as far as possible.
#[derive(Debug)]
pub struct Staged {
    pub(super) array: Id,
    pub(super) fragments: Vec<fragment::Staged>,
    /// Files that are to be kept beside them.
    pub(super) beside: Vec<Id>,
    /// How far the domain has to reach for them.
    growth: Vec<Growth>,
    storage: Arc<dyn Storage>,
    keep: bool,
    /// What the caller gave, if that matters.
    given: Option<Given>,
    /// The commit with the same key that was done before; there are no fragments then.
    done: Option<Committed>,
    /// Who removes the files: a forked child only drops its copy.
    owner: Owner,
}

impl Staged {
    pub(super) fn new(array: Id, fragments: Vec<fragment::Staged>, storage: Arc<dyn Storage>) -> Self {
        let (beside, growth) = (Vec::new(), Vec::new());
        Self { array, fragments, beside, growth, storage, keep: false, given: None, done: None, owner: Owner::here() }
    }

    /// The same fragments, with what the caller gave for them.
    pub(super) fn with_given(mut self, given: Option<Given>) -> Self {
        self.given = given;
        self
    }

    /// The same fragments, which need the domain `after` where it was `before`.
    pub(super) fn with_growth(mut self, before: &Schema, after: &Schema) -> Self {
        let pairs = before.dims().iter().zip(after.dims()).zip(0u32..);
        let grown = pairs.filter(|((before, after), _)| before.range() != before.range().joined(after.range()));
        self.growth = grown.map(|((_, after), dimension)| Growth { dimension, range: after.range() }).collect();
        self
    }

    /// How far the domain has to reach for these fragments, all of one array.
    pub(super) fn growth<'a>(staged: impl Iterator<Item = &'a Self>) -> Vec<Growth> {
        let mut reached: BTreeMap<u32, KeyRange> = BTreeMap::new();
        for growth in staged.flat_map(|part| &part.growth) {
            let range = reached.entry(growth.dimension).or_insert(growth.range);
            *range = range.joined(growth.range);
        }
        reached.into_iter().map(|(dimension, range)| Growth { dimension, range }).collect()
    }

    /// No fragments: the commit that they would be for was done before.
    pub(super) fn repeating(mut self, done: Committed) -> Self {
        self.done = Some(done);
        self
    }

    /// What the caller gave.
    pub(super) fn given(&self) -> Option<&Given> {
        self.given.as_ref()
    }

    /// The commit that was done before.
    pub(super) fn repeated(&self) -> Option<&Committed> {
        self.done.as_ref()
    }

    /// Whether its commit has a key.
    pub(super) fn has_key(&self) -> bool {
        self.done.is_some() || self.given.as_ref().is_some_and(|given| given.key.is_some())
    }

    /// Cells in them.
    pub fn cells(&self) -> u64 {
        self.fragments.iter().map(|f| f.description.cells).sum()
    }

    /// Bytes they take.
    pub fn bytes(&self) -> u64 {
        self.fragments.iter().map(|f| f.description.location.len).sum()
    }

    /// From now on the files are the store's, or may be.
    pub(super) fn keep_files(&mut self) {
        self.keep = true;
    }
}

impl Drop for Staged {
    fn drop(&mut self) {
        if self.keep || !self.owner.is_here() {
            return;
        }
        for id in &self.beside {
            let _ = self.storage.delete(&data_name(*id));
        }
        for staged in self.fragments.iter().filter(|f| f.body.is_none()) {
            if let FileRef::Data(id) = staged.description.location.file {
                // Best effort: what stays is an orphan that vacuum removes.
                let _ = self.storage.delete(&data_name(id));
            }
        }
    }
}

/// Moves a fragment that waits in memory to its file, which is durable then.
pub(super) fn settle(files: &dyn Files, fragment: &mut fragment::Staged) -> Result<()> {
    if let Some(body) = &fragment.body {
        let mut sink = files.create(fragment.description.id)?;
        sink.write(body)?;
        sink.finish()?;
        fragment.body = None;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Entropy;
    use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, ValueBounds};
    use crate::runtime::SystemEntropy;
    use crate::schema::Subarray;
    use crate::storage::MemoryStorage;

    fn staged(storage: &Arc<dyn Storage>) -> (Staged, String) {
        let id = SystemEntropy.id();
        storage.put(&data_name(id), b"cells").unwrap();
        let description = Description {
            id,
            kind: FragmentKind::Dense,
            order: FragmentOrder { version: 0, index: 0 },
            schema: 0,
            bounds: Subarray::new(vec![KeyRange::new(0, 4)]),
            cells: 5,
            attrs: vec![0],
            location: Location { file: FileRef::Data(id), offset: 0, len: 5 },
            over: None,
            stats: ValueBounds::default(),
            extra: Vec::new(),
            moved: Vec::new(),
        };
        let fragment = fragment::Staged { description, body: None };
        (Staged::new(SystemEntropy.id(), vec![fragment], storage.clone()), data_name(id))
    }

    #[test]
    fn dropped_fragments_leave_no_file_but_a_forked_child_touches_none() {
        let storage: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
        let (mine, name) = staged(&storage);
        drop(mine);
        assert!(!storage.exists(&name).unwrap());
        let (mut copy, name) = staged(&storage);
        copy.owner = Owner::elsewhere();
        drop(copy);
        assert!(storage.exists(&name).unwrap());
    }
}
