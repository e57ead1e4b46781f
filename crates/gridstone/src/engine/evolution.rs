//! Changing the schema of an array: its domain, its attributes.

use super::Array;
use crate::base::Result;
use crate::schema::{Evolution, Schema};
use crate::store::{Changes, Operation};
use std::sync::Arc;

impl Array {
    /// The schema at the version of this handle and its number in the array's history, unless that is `number`, or the array
    /// was removed in the transaction that the handle is a part of. An ended transaction still tells.
    pub fn schema_since(&self, number: Option<u32>) -> Option<(u32, Arc<Schema>)> {
        let snapshot = self.snapshot();
        let state = snapshot.array_by_id(self.id()).ok()?;
        let found = state.schemas().count().checked_sub(1)?;
        (number != Some(found)).then(|| (found, Arc::clone(state.schema())))
    }

    /// Changes the schema as `evolution` says, in one version, moves to it and gives it; the present version if that changes
    /// nothing. What was written before is read through the new schema: cells of older fragments have the fill, or null, in
    /// attributes that were added. In a transaction the change is staged, and what is written there afterwards has the new schema.
    ///
    /// # Errors
    /// Schema (it cannot change so), Input (not writable), Conflict (another commit changed the schema since the version of this
    /// handle; refresh and look), Storage.
    pub fn alter(&self, evolution: &Evolution, message: Option<String>) -> Result<u64> {
        self.check_writable()?;
        let (snapshot, state) = self.state()?;
        let schema = state.schema();
        let first = state.schemas().get(0)?.unwrap_or_else(|| Arc::clone(schema));
        let next = schema.evolved(&first, evolution)?;
        if next == **schema {
            return Ok(snapshot.version());
        }
        let number = state.schemas().count();
        let operations = vec![Operation::AlterArray { id: self.id(), number, schema: next }];
        self.commit_changes(&snapshot, Changes::new(operations).with_message(message))
    }
}
