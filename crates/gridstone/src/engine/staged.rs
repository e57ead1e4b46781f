//! Fragments that have been written and that no commit refers to yet.

use crate::base::{FileRef, Id};
use crate::fragment;
use crate::storage::{Storage, data_name};
use std::sync::Arc;

/// Written fragments of one array. Dropped without a commit, their files are removed as far as possible.
#[derive(Debug)]
pub struct Staged {
    pub(super) array: Id,
    pub(super) fragments: Vec<fragment::Staged>,
    storage: Arc<dyn Storage>,
    keep: bool,
}

impl Staged {
    pub(super) fn new(array: Id, fragments: Vec<fragment::Staged>, storage: Arc<dyn Storage>) -> Self {
        Self { array, fragments, storage, keep: false }
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
        if self.keep {
            return;
        }
        for staged in self.fragments.iter().filter(|f| f.body.is_none()) {
            if let FileRef::Data(id) = staged.description.location.file {
                // Best effort: what stays is an orphan that vacuum removes.
                let _ = self.storage.delete(&data_name(id));
            }
        }
    }
}
