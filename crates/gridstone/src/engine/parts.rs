//! The parts of an array besides its cells: hidden arrays, labels, metadata of attributes and dimensions.

use super::Array;
use crate::base::{Error, Id, Result};
use crate::schema::{Dimension, Labels, Schema};
use crate::store::{Changes, Field, Metadata, Operation, Snapshot};
use std::sync::Arc;

impl Array {
    /// The hidden array of this name, which begins with "@": seen, read and written as this handle is.
    ///
    /// # Errors
    /// NotFound; Corruption, Storage.
    pub fn hidden(&self, name: &str) -> Result<Self> {
        self.session().note_nodes(&|reads, base| reads.note_hidden(base, self.id(), name))?;
        let (_, (path, found)) = self.looked_in(|snapshot| {
            let state = snapshot.array_by_id(self.id())?;
            Ok((state.path().to_owned(), snapshot.hidden_in(&state)?))
        })?;
        match found.iter().find(|(known, _)| known == name) {
            Some((_, child)) => Ok(self.with_id(child.id)),
            None => Err(Error::not_found(format!("the array {path} has no hidden array {name:?}"))),
        }
    }

    /// The names of the hidden arrays, sorted.
    ///
    /// # Errors
    /// Corruption, Storage.
    pub fn hidden_names(&self) -> Result<Vec<String>> {
        self.session().note_nodes(&|reads, base| reads.note_all_hidden(base, self.id()))?;
        let look = |snapshot: &Snapshot| snapshot.hidden_in(&*snapshot.array_by_id(self.id())?);
        Ok(self.looked_in(look)?.1.into_iter().map(|(name, _)| name).collect())
    }

    /// The array that the labels of the dimension at a place lie in, hidden or shared; `None` if they lie in none, or in one that is no
    /// more.
    ///
    /// # Errors
    /// Those of a lookup of the array.
    pub fn labels(&self, dimension: usize) -> Result<Option<Self>> {
        let schema = self.schema()?;
        let labels = schema.dims().get(dimension).and_then(Dimension::labels);
        if let Some(id) = labels.and_then(Labels::shared) {
            self.session().note(&mut |reads| reads.note_id(id));
            return self.shared(dimension, id);
        }
        let labels = labels.and_then(Labels::array);
        if let Some(id) = labels {
            self.session().note(&mut |reads| reads.note_id(id));
        }
        Ok(labels.map(|id| self.with_id(id)))
    }

    /// Creates a hidden array of this one, in one commit or in the transaction.
    ///
    /// # Errors
    /// Exists, Input (the name; not writable), Conflict (this array was removed), Storage.
    pub fn create_hidden(&self, id: Id, name: &str, schema: Schema) -> Result<Self> {
        let (owner, schema) = (self.id(), schema.of_new_array());
        let create = Operation::CreateHidden { id, owner, name: name.to_owned(), schema, ext: None };
        self.commit_changes(&self.snapshot(), Changes::new(vec![create]))?;
        Ok(self.with_id(id))
    }

    /// The attribute or dimension of this name.
    ///
    /// # Errors
    /// Input if there is none.
    pub fn field(&self, name: &str) -> Result<Field> {
        let schema = self.schema()?;
        if let Some(place) = schema.coordinates().position(|dim| dim.name() == name) {
            return Ok(Field::Dimension(place as u32));
        }
        schema.attr(name).map(|(_, attr)| Field::Attribute(attr.id()))
    }

    /// The JSON text of a metadata value of an attribute or dimension.
    ///
    /// # Errors
    /// Those of a lookup of the array.
    pub fn field_metadata(&self, field: Field, key: &str) -> Result<Option<String>> {
        self.note_key(Some(&field.noted(key)));
        self.state()?.1.metadata_of(field).get(key)
    }

    /// All metadata of an attribute or dimension.
    ///
    /// # Errors
    /// Those of a lookup of the array.
    pub fn all_field_metadata(&self, field: Field) -> Result<Arc<Metadata>> {
        self.note_key(None);
        self.state()?.1.metadata_of(field).all()
    }

    /// Sets (JSON text) or removes (`None`) metadata keys of an attribute or dimension in one commit; gives the version.
    ///
    /// # Errors
    /// Input (no such attribute or dimension, not writable), Conflict, Storage.
    pub fn set_field_metadata(&self, field: Field, changes: Vec<(String, Option<String>)>) -> Result<u64> {
        if changes.is_empty() {
            return Ok(self.version());
        }
        let operations = vec![Operation::SetFieldMetadata { array: self.id(), field, changes }];
        self.commit_changes(&self.snapshot(), Changes::new(operations))
    }
}
