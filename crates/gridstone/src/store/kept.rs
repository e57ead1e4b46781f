//! Kept files: files in `_data/` beside the fragments of an array, such as indexes that a newer release writes.
//!
//! ```json
//! {"owner":{"fragment":id},"kind":"bloom","files":[{"id":id,"len":700}],"ext":{…}}          or {"data":id}; absent: the array
//! ```
//! An entry belongs to its array, to a fragment of it, or to a data file that has fragments of it. Its files live while a kept
//! version has both owner and entry. An entry has no effect on what is read. This release writes none by itself.

use super::extension::Ext;
use super::node_row::read;
use super::rows::RowMap;
use super::rows::key::{self, NodeRow};
use super::shape::{IdText, Whole};
use crate::base::{Error, FileRef, Id, Result, limits};
use crate::fragment::Description;
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::Arc;

/// What an entry of kept files belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Owner {
    /// The array.
    Array,
    /// A fragment of the array.
    Fragment(Id),
    /// A data file that has a fragment of the array.
    Data(Id),
}

/// A kept file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeptFile {
    /// Its id in `_data/`.
    pub id: Id,
    /// Its length in bytes.
    pub len: u64,
}

/// An entry of kept files.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Kept {
    /// The id of the entry.
    pub entry: Id,
    /// What it belongs to.
    pub owner: Owner,
    /// What the files are, as whoever wrote them calls it.
    pub kind: String,
    /// The files.
    pub files: Vec<KeptFile>,
    /// What a newer release says of it.
    pub ext: Ext,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum OwnerText {
    Fragment(IdText),
    Data(IdText),
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FileText {
    id: IdText,
    len: Whole,
}

/// An entry without its id, as its row has it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct KeptText {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Option<OwnerText>,
    pub(super) kind: String,
    pub(super) files: Vec<FileText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) ext: Ext,
}

impl KeptText {
    pub(super) fn of(kept: &Kept) -> Self {
        let owner = match kept.owner {
            Owner::Array => None,
            Owner::Fragment(id) => Some(OwnerText::Fragment(IdText(id))),
            Owner::Data(id) => Some(OwnerText::Data(IdText(id))),
        };
        let files = kept.files.iter().map(|file| FileText { id: IdText(file.id), len: Whole(file.len) }).collect();
        Self { owner, kind: kept.kind.clone(), files, ext: kept.ext.clone() }
    }

    pub(super) fn read(self, entry: Id) -> Result<Kept> {
        if self.kind.is_empty() || self.kind.len() > limits::NAME_BYTES_MAX {
            return Err(Error::corruption(format!("the kept files {entry} have no kind, or one that is too long")));
        }
        let owner = match self.owner {
            None => Owner::Array,
            Some(OwnerText::Fragment(id)) => Owner::Fragment(id.0),
            Some(OwnerText::Data(id)) => Owner::Data(id.0),
        };
        let files = self.files.into_iter().map(|file| KeptFile { id: file.id.0, len: file.len.0 }).collect();
        Ok(Kept { entry, owner, kind: self.kind, files, ext: self.ext })
    }
}

impl Kept {
    /// Whether its owner is its array, or among these fragments of it.
    pub(super) fn is_of<'a>(&self, mut fragments: impl Iterator<Item = &'a Description>) -> bool {
        match self.owner {
            Owner::Array => true,
            Owner::Fragment(id) => fragments.any(|d| d.id == id),
            Owner::Data(file) => fragments.any(|d| d.location.file == FileRef::Data(file)),
        }
    }

    pub(super) fn encode(&self) -> Result<Bytes> {
        serde_json::to_vec(&KeptText::of(self))
            .map(Bytes::from)
            .map_err(|e| Error::input("the manifest cannot be written as JSON").with_source(e))
    }

    /// The entry in the value of its row.
    pub(super) fn decode(value: &[u8], entry: Id) -> Result<Self> {
        read::<KeptText>(value, &format!("the kept files {entry}"))?.read(entry)
    }
}

/// The entries of an array: those of the manifest root, read when they are needed, and what changed since.
#[derive(Debug, Clone, Default)]
pub(super) struct KeptEntries {
    rows: Option<(RowMap, Id)>,
    /// Entries added or (`None`) released since.
    pub(super) changes: BTreeMap<Id, Option<Arc<Kept>>>,
}

impl KeptEntries {
    /// Those that `rows` have of the array `id`.
    pub(super) fn of(rows: &RowMap, id: Id) -> Self {
        Self { rows: Some((rows.clone(), id)), changes: BTreeMap::new() }
    }

    /// Those of the manifest root.
    pub(super) fn folded(&self) -> Result<BTreeMap<Id, Arc<Kept>>> {
        let mut found = BTreeMap::new();
        let Some((rows, id)) = &self.rows else { return Ok(found) };
        rows.scan(&key::all_kept(*id), &mut |row| {
            if let Some((_, NodeRow::Kept(entry))) = key::read_node(row.key()) {
                found.insert(entry, Arc::new(Kept::decode(&rows.value_of(row)?, entry)?));
            }
            Ok(())
        })?;
        Ok(found)
    }

    /// All of them, whether or not their owners are there.
    pub(super) fn all(&self) -> Result<BTreeMap<Id, Arc<Kept>>> {
        let mut all = self.folded()?;
        for (entry, change) in &self.changes {
            match change {
                Some(kept) => all.insert(*entry, Arc::clone(kept)),
                None => all.remove(entry),
            };
        }
        Ok(all)
    }
}
