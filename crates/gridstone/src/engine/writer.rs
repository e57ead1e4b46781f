//! One fragment being streamed in global order.

use super::{Array, Call, Staged};
use crate::base::{Error, Result};
use crate::query::CellStream;
use crate::tile::ColumnView;

/// A fragment being streamed; nothing is visible before its [`Staged`] is committed.
#[derive(Debug)]
pub struct Writer {
    array: Array,
    stream: Option<CellStream>,
}

impl Writer {
    pub(super) fn new(array: Array, stream: CellStream) -> Self {
        Self { array, stream: Some(stream) }
    }

    /// Appends cells: attribute columns in the writer's order; coordinates for a sparse array. After an error, or when
    /// it was stopped, the writer is closed and what it wrote is gone.
    pub fn append(&mut self, call: &Call, dims: &[ColumnView<'_>], columns: &[ColumnView<'_>]) -> Result<()> {
        let stream = self.stream.as_mut().ok_or_else(closed)?;
        let outcome = stream.append((&self.array.context().pool, call.cancel.as_ref()), dims, columns);
        if outcome.is_err() {
            self.stream = None;
        }
        outcome
    }

    /// Ends the fragment.
    pub fn finish(&mut self, call: &Call) -> Result<Staged> {
        let staged = self.stream.take().ok_or_else(closed)?.finish(call.cancel.as_ref())?;
        Ok(self.array.staged(staged.into_iter().collect()))
    }

    /// Drops what was written.
    pub fn abort(&mut self) {
        self.stream = None;
    }
}

fn closed() -> Error {
    Error::input("this writer is closed: it was finished, aborted, or an append failed; start another")
}
