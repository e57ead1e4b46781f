//! The history of an array's schemas, read from the manifest as they are needed.

use super::rows::{RowMap, key};
use super::wording::schema_in;
use crate::base::{Error, Id, Result};
use crate::schema::Schema;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

/// All schemas that an array ever had, by their numbers. The older ones are read when they are first needed.
#[derive(Debug, Clone)]
pub struct Schemas {
    folded: Option<Arc<FoldedSchemas>>,
    pub(super) added: Vec<Arc<Schema>>,
}

/// The schemas in the manifest root.
#[derive(Debug)]
struct FoldedSchemas {
    rows: RowMap,
    array: Id,
    count: u32,
    loaded: Mutex<HashMap<u32, Arc<Schema>>>,
}

impl Schemas {
    /// A history that begins with `first`.
    pub(super) fn new(first: Arc<Schema>) -> Self {
        Self { folded: None, added: vec![first] }
    }

    /// The first `count` schemas of an array, which `rows` have.
    pub(super) fn of(rows: &RowMap, array: Id, count: u32) -> Self {
        let folded = FoldedSchemas { rows: rows.clone(), array, count, loaded: Mutex::default() };
        Self { folded: Some(Arc::new(folded)), added: Vec::new() }
    }

    /// How many of them are in the manifest root.
    pub(super) fn count_folded(&self) -> u32 {
        self.folded.as_ref().map_or(0, |folded| folded.count)
    }

    /// How many there are.
    pub fn count(&self) -> u32 {
        self.count_folded() + self.added.len() as u32
    }

    /// The schema with this number, if there is one.
    ///
    /// # Errors
    /// Corruption if it is missing or damaged, Unsupported if a newer release wrote it, Storage.
    pub fn get(&self, number: u32) -> Result<Option<Arc<Schema>>> {
        let found = self.stored(number)?;
        found.as_ref().map_or(Ok(()), |schema| schema.check_readable(format_args!("schema {number} of an array")))?;
        Ok(found)
    }

    /// The schema with this number, whether or not this release can read it.
    ///
    /// # Errors
    /// Those of [`Schemas::get`] but for unknown features.
    pub(super) fn stored(&self, number: u32) -> Result<Option<Arc<Schema>>> {
        let Some(folded) = self.folded.as_ref().filter(|folded| number < folded.count) else {
            return Ok(self.added.get((number - self.count_folded()) as usize).cloned());
        };
        if let Some(known) = folded.loaded.lock().unwrap_or_else(PoisonError::into_inner).get(&number) {
            return Ok(Some(Arc::clone(known)));
        }
        let text = folded.rows.get(&key::schema(folded.array, number))?.ok_or_else(|| {
            Error::corruption(format!("schema {number} of the array with the id {} is missing", folded.array))
        })?;
        let schema = schema_in(&text)?;
        folded.loaded.lock().unwrap_or_else(PoisonError::into_inner).insert(number, Arc::clone(&schema));
        Ok(Some(schema))
    }

    /// All of them, in order.
    ///
    /// # Errors
    /// Those of [`Schemas::get`].
    pub fn all(&self) -> Result<Vec<Arc<Schema>>> {
        (0..self.count()).filter_map(|number| self.get(number).transpose()).collect()
    }

    /// All of them, in order, whether or not this release can read them.
    ///
    /// # Errors
    /// Those of [`Schemas::get`] but for unknown features.
    pub(super) fn all_stored(&self) -> Result<Vec<Arc<Schema>>> {
        (0..self.count()).filter_map(|number| self.stored(number).transpose()).collect()
    }
}
