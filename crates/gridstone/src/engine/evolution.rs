//! Changing the schema of an array: its domain, its attributes.

use super::Array;
use crate::base::Result;
use crate::schema::{Dimension, Evolution, Schema};
use crate::store::{ArrayState, Changes, Operation, Snapshot};
use std::sync::Arc;

impl Array {
    /// The schema at the version of this handle, with a stamp that every other schema or domain of the array has another of.
    /// `None` if the stamp is `known`, or the array was removed in the transaction that the handle is a part of. An ended
    /// transaction still tells.
    ///
    /// # Errors
    /// SnapshotExpired, Corruption, Storage.
    pub fn schema_since(&self, known: Option<u64>) -> Result<Option<(u64, Arc<Schema>)>> {
        let (_, state) = self.looked_in(|snapshot| snapshot.find_array(self.id()))?;
        let Some(state) = state else { return Ok(None) };
        let stamp = state.stamp();
        Ok((known != Some(stamp)).then(|| (stamp, Arc::clone(state.schema()))))
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
        self.session().check_open()?;
        let (snapshot, (state, first)) = self.looked_in(|snapshot| self.state_and_first(snapshot))?;
        let operations = self.evolved(&state, &first, evolution)?;
        if operations.is_empty() {
            return Ok(snapshot.version());
        }
        self.commit_changes(&snapshot, Changes::new(operations).with_message(message))
    }

    /// The array in a version, and its first schema.
    ///
    /// # Errors
    /// Those of a lookup.
    pub(super) fn state_and_first(&self, snapshot: &Snapshot) -> Result<(Arc<ArrayState>, Arc<Schema>)> {
        let state = snapshot.array_by_id(self.id())?;
        let first = state.schemas().get(0)?.unwrap_or_else(|| Arc::clone(state.schema()));
        Ok((state, first))
    }

    /// The operations that make the schema of `state` what `evolution` says.
    pub(super) fn evolved(&self, state: &ArrayState, first: &Schema, evolution: &Evolution) -> Result<Vec<Operation>> {
        let schema = state.schema();
        let next = schema.evolved(first, evolution)?;
        let grown =
            next.dims().iter().zip(schema.dims()).zip(0u32..).filter(|((new, old), _)| new.range() != old.range());
        let grow = |((new, _), dimension): ((&Dimension, _), u32)| Operation::Grow {
            array: self.id(),
            dimension,
            range: new.range(),
        };
        let mut operations: Vec<Operation> = grown.map(grow).collect();
        if next != schema.reaching(&next.domain()) {
            operations.push(Operation::AlterArray { id: self.id(), number: state.schemas().count(), schema: next });
        }
        Ok(operations)
    }
}
