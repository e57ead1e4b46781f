//! The metadata of a node, or of a field of an array, read from the manifest when it is first needed.

use super::field::Field;
use super::rows::key::NodeRow;
use super::rows::{RowMap, key};
use crate::base::{Error, Id, Result};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, OnceLock};

/// Metadata of a node: JSON texts by key.
pub type Metadata = BTreeMap<String, String>;

/// The metadata of a node or field: that of the manifest root, read when it is first needed, and what changed since.
#[derive(Debug, Clone, Default)]
pub struct NodeMetadata {
    /// The rows of the root, and what the keys of its own begin with.
    rows: Option<(RowMap, Bytes)>,
    loaded: Arc<OnceLock<Arc<Metadata>>>,
    pub(super) changes: Arc<BTreeMap<String, Option<String>>>,
}

impl NodeMetadata {
    /// The metadata that `rows` have of node `id`.
    pub(super) fn of(rows: &RowMap, id: Id) -> Self {
        Self { rows: Some((rows.clone(), key::all_metadata(id))), ..Self::default() }
    }

    /// The metadata of a field of array `id`, by the rows that have that of the array.
    pub(super) fn of_field(&self, id: Id, field: Field) -> Self {
        let rows = self.rows.as_ref().map(|(rows, _)| (rows.clone(), key::field_metadata(id, field)));
        Self { rows, ..Self::default() }
    }

    /// The fields of array `id` that have metadata in the rows.
    pub(super) fn folded_fields(&self, id: Id) -> Result<BTreeSet<Field>> {
        let mut found = BTreeSet::new();
        if let Some((rows, _)) = &self.rows {
            rows.scan(&key::all_field_metadata(id), &mut |row| {
                if let Some((_, NodeRow::FieldMetadata(field, _))) = key::read_node(row.key()) {
                    found.insert(field);
                }
                Ok(())
            })?;
        }
        Ok(found)
    }

    /// The JSON text of `key`.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged, Storage.
    pub fn get(&self, key: &str) -> Result<Option<String>> {
        if let Some(changed) = self.changes.get(key) {
            return Ok(changed.clone());
        }
        match (&self.rows, self.loaded.get()) {
            (_, Some(all)) => Ok(all.get(key).cloned()),
            (Some((rows, prefix)), None) => {
                rows.get(&[prefix, key.as_bytes()].concat())?.map(|text| text_of(&text)).transpose()
            }
            (None, None) => Ok(None),
        }
    }

    /// All of it.
    ///
    /// # Errors
    /// Those of [`NodeMetadata::get`].
    pub fn all(&self) -> Result<Arc<Metadata>> {
        let folded = match (&self.rows, self.loaded.get()) {
            (_, Some(all)) => Arc::clone(all),
            (None, None) => Arc::default(),
            (Some((rows, prefix)), None) => {
                let mut all = Metadata::new();
                rows.scan(prefix, &mut |row| {
                    let name = text_of(row.key().get(prefix.len()..).unwrap_or_default())?;
                    all.insert(name, text_of(&rows.value_of(row)?)?);
                    Ok(())
                })?;
                Arc::clone(self.loaded.get_or_init(|| Arc::new(all)))
            }
        };
        if self.changes.is_empty() {
            return Ok(folded);
        }
        let mut all = Metadata::clone(&folded);
        for (key, value) in self.changes.iter() {
            match value {
                Some(text) => all.insert(key.clone(), text.clone()),
                None => all.remove(key),
            };
        }
        Ok(Arc::new(all))
    }

    pub(super) fn set(&mut self, changes: &[(String, Option<String>)]) {
        Arc::make_mut(&mut self.changes).extend(changes.iter().cloned());
    }
}

fn text_of(bytes: &[u8]) -> Result<String> {
    let text = std::str::from_utf8(bytes).map_err(|e| Error::corruption("metadata is not UTF-8").with_source(e))?;
    Ok(text.to_owned())
}
