//! The files that are kept beside an array, in its state: which of them live, and what a fold writes of them.

use super::kept::{Kept, Owner};
use super::state::ArrayState;
use crate::base::{Error, FileRef, Id, Result};
use crate::schema::Subarray;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

impl ArrayState {
    /// Keeps files beside the array. A Conflict error if their owner was removed since the manifest root, or the entry is
    /// there.
    pub(super) fn keep(&mut self, kept: &Arc<Kept>) -> Result<()> {
        if let Owner::Fragment(id) = kept.owner
            && !self.has(id)
        {
            return Err(self.owner_is_gone(id));
        }
        if self.kept.changes.insert(kept.entry, Some(Arc::clone(kept))).is_some() {
            return Err(Error::conflict(format!(
                "the kept files {} of array {} are there already",
                kept.entry, self.path
            )));
        }
        Ok(())
    }

    /// Keeps the files of an entry no longer.
    pub(super) fn release(&mut self, entry: Id) {
        self.kept.changes.insert(entry, None);
    }

    fn owner_is_gone(&self, id: Id) -> Error {
        Error::conflict(format!(
            "{id} of array {}, beside which files were to be kept, was merged or removed by another commit; nothing was committed",
            self.path
        ))
    }

    /// A Conflict error unless the owner of `kept` is there. Loads the manifest pages that `near` touches.
    pub(super) fn check_owner(&self, kept: &Kept, near: Option<&Subarray>) -> Result<()> {
        let id = match kept.owner {
            Owner::Array => return Ok(()),
            Owner::Fragment(id) | Owner::Data(id) => id,
        };
        if kept.is_of(self.fragments(near)?.iter().map(AsRef::as_ref)) {
            return Ok(());
        }
        Err(self.owner_is_gone(id))
    }

    /// A Conflict error unless it has these kept files.
    pub(super) fn check_entry(&self, entry: Id) -> Result<()> {
        if self.kept()?.iter().any(|kept| kept.entry == entry) {
            return Ok(());
        }
        Err(Error::conflict(format!(
            "the files {entry} are not kept beside array {}: another commit released them, or removed their owner; nothing was \
             committed",
            self.path
        )))
    }

    /// The entries of kept files whose owners are there, by their ids. Loads all pages of fragments if an entry belongs to a
    /// data file, and fragments were removed since the manifest root.
    ///
    /// # Errors
    /// Corruption if a page is missing or damaged, Unsupported if a newer release wrote it, Storage.
    pub fn kept(&self) -> Result<Vec<Arc<Kept>>> {
        let all = self.kept.all()?;
        let named = |file: Id| -> Result<bool> {
            if self.gone.is_empty() {
                return Ok(true);
            }
            Ok(self.fragments(None)?.iter().any(|d| d.location.file == FileRef::Data(file)))
        };
        let mut live = Vec::new();
        for kept in all.into_values() {
            let lives = match kept.owner {
                Owner::Array => true,
                Owner::Fragment(id) => self.has(id),
                Owner::Data(file) => named(file)?,
            };
            live.extend(lives.then_some(kept));
        }
        Ok(live)
    }

    /// The entries of kept files that differ from those of the manifest root; `None`: it goes, or its owner is gone.
    pub(super) fn changed_kept(&self) -> Result<BTreeMap<Id, Option<Arc<Kept>>>> {
        if self.kept.changes.is_empty() && self.gone.is_empty() {
            return Ok(BTreeMap::new());
        }
        let live: HashMap<Id, Arc<Kept>> = self.kept()?.into_iter().map(|kept| (kept.entry, kept)).collect();
        let folded = self.kept.folded()?;
        let left = folded.keys().chain(self.kept.changes.keys()).filter(|entry| !live.contains_key(entry));
        let mut changed: BTreeMap<_, _> = left.map(|entry| (*entry, None)).collect();
        let added = live.into_iter().filter(|(entry, _)| self.kept.changes.contains_key(entry));
        changed.extend(added.map(|(entry, kept)| (entry, Some(kept))));
        Ok(changed)
    }
}
