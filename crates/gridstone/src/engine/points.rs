//! Reading single cells of an array by their coordinates.

use super::{Array, Call};
use crate::base::{CounterSnapshot, Result};
use crate::query::{Points, ReadOrder, Request, Target, read_points};
use crate::tile::{Cells, ColumnView};

impl Array {
    /// Reads the cells at these coordinates, a column per dimension in its own type; gives the cells and what the read
    /// did. A dense array gives one row per point, without coordinates; a sparse one the cells that exist, with theirs.
    /// Both in the order of the points, which may be any and may repeat.
    ///
    /// # Errors
    /// Bounds (a point outside the domain, named by its row), Input (types, lengths, NaN, null, unknown attributes),
    /// Corruption, Storage, Cancelled.
    pub fn points(
        &self,
        dims: &[ColumnView<'_>],
        attrs: Option<&[String]>,
        call: &Call,
    ) -> Result<(Cells, CounterSnapshot)> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema().clone();
        let attrs = Request::new(&schema, None, attrs, ReadOrder::Row)?.attrs;
        let context = self.read_context(&snapshot, call);
        let points = Points::new(&context, &schema, dims)?;
        let fragments = match points.bounds() {
            Some(bounds) => {
                self.note_cells(&bounds, &points);
                self.described(&snapshot, &state, Some(&bounds))?
            }
            None => Vec::new(),
        };
        let target = Target { array: self.id(), schema, fragments };
        let cells = context.explain_missing(read_points(&context, &target, &points, &attrs))?;
        Ok((cells, context.counters.snapshot()))
    }
}
