//! The metadata of the attributes and dimensions of an array.

use super::field::Field;
use super::node_metadata::{Metadata, NodeMetadata};
use super::state::ArrayState;
use crate::base::{Error, Result};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

impl ArrayState {
    /// Whether the schema has the field.
    pub fn has_field(&self, field: Field) -> bool {
        match field {
            Field::Attribute(number) => self.schema().attr_by_id(number).is_some(),
            Field::Dimension(place) => self.schema().coordinates().nth(place as usize).is_some(),
        }
    }

    /// An Input error unless the schema has the field.
    pub(super) fn check_field(&self, field: Field) -> Result<()> {
        match self.has_field(field) {
            true => Ok(()),
            false => Err(Error::input(format!("array {} has no {field} that could have metadata", self.path()))),
        }
    }

    /// The metadata of an attribute or dimension; none of one that the schema does not have, or not any more.
    pub fn metadata_of(&self, field: Field) -> NodeMetadata {
        if !self.has_field(field) {
            return NodeMetadata::default();
        }
        self.fields.get(&field).cloned().unwrap_or_else(|| self.metadata.of_field(self.id, field))
    }

    /// The metadata of all attributes and dimensions that have some.
    ///
    /// # Errors
    /// Corruption if a page of the manifest is missing or damaged, Storage.
    pub fn field_metadata(&self) -> Result<BTreeMap<Field, Arc<Metadata>>> {
        let mut known: BTreeSet<Field> = self.fields.keys().copied().collect();
        known.extend(self.metadata.folded_fields(self.id)?);
        let mut found = BTreeMap::new();
        for field in known.into_iter().filter(|field| self.has_field(*field)) {
            let all = self.metadata_of(field).all()?;
            if !all.is_empty() {
                found.insert(field, all);
            }
        }
        Ok(found)
    }

    /// Sets metadata of an attribute or dimension.
    pub(super) fn set_field(&mut self, field: Field, changes: &[(String, Option<String>)]) -> Result<()> {
        self.check_field(field)?;
        let mut metadata = self.metadata_of(field);
        metadata.set(changes);
        Arc::make_mut(&mut self.fields).insert(field, metadata);
        Ok(())
    }

    /// Forgets the metadata of attributes that are no more.
    pub(super) fn forget_fields(&mut self) {
        let gone: Vec<Field> = self.fields.keys().copied().filter(|field| !self.has_field(*field)).collect();
        if !gone.is_empty() {
            let fields = Arc::make_mut(&mut self.fields);
            gone.iter().for_each(|field| drop(fields.remove(field)));
        }
    }
}
