//! Reads of the cells that a condition selects.
//!
//! 1. Statistics and boxes: tiles and blocks in which no cell can be selected are left out, unless a cell in them hides an
//!    older one that may be (`candidates.rs`, `known.rs`).
//! 2. The condition's attributes, and coordinates where the condition asks for them or rows are merged: which rows survive.
//! 3. The rest of blocks where a row survived.
//!
//! Sparse arrays: where one fragment holds all blocks that are left (`apart.rs`), runs of blocks are taken side by side, each to its end; of
//! coordinates and other attributes the rows that survive alone are decoded, if the filters allow it, and the box is judged on those. Else
//! (`sieve.rs`) rows are merged between steps 2 and 3; a row that is not selected takes part if it may hide an older one.
//! Dense arrays (`dense.rs`): units of blocks, painted with the condition's attributes, then with the others.
//!
//! Invariants: what is given equals a read without a condition of which the rows selected are kept; memory is bounded by
//! batches; the reads without a condition know nothing of this.

mod candidates;
mod dense;
mod known;
mod source;
mod sparse;
mod unmerged;

pub(super) use dense::narrowed;
pub(super) use source::Source;

use super::request::{ReadContext, Request, Target};
use crate::base::Result;
use crate::condition::{Batch, Bound, Coordinates, Selection};
use crate::tile::{Cells, Column};
use std::sync::Arc;

/// Where the values of an attribute asked for come from.
#[derive(Debug, Clone, Copy)]
enum Value {
    /// The condition needs it too: its place among those.
    Early(usize),
    /// It is read where a cell survived.
    Late,
}

/// A condition, and what it means for the attributes of a read.
#[derive(Debug)]
pub(super) struct Filter {
    bound: Bound,
    /// The dimensions that it looks at, by place.
    dims: Vec<usize>,
    /// The attributes that it looks at, by place.
    early: Vec<usize>,
    /// Those asked for besides, in the order asked for.
    late: Vec<usize>,
    values: Vec<Value>,
}

impl Filter {
    pub(super) fn new(bound: &Bound, request: &Request) -> Self {
        let needed = bound.columns();
        let value = |place: &usize| needed.attrs.iter().position(|p| p == place).map_or(Value::Late, Value::Early);
        let late = request.attrs.iter().filter(|place| !needed.attrs.contains(place)).copied().collect();
        let values = request.attrs.iter().map(value).collect();
        Self { bound: bound.clone(), dims: needed.dims, early: needed.attrs, late, values }
    }

    /// The rows that are selected. `coords` are needed only where the condition looks at dimensions.
    fn select(&self, rows: usize, coords: &[Vec<u64>], early: &[Column]) -> Result<Selection> {
        let mut batch = Batch::new(rows);
        for (dim, keys) in coords.iter().enumerate() {
            batch = batch.with_dim(dim, Coordinates::Keys(keys));
        }
        for (place, column) in self.early.iter().zip(early) {
            batch = batch.with_attr(*place, column.view());
        }
        self.bound.evaluate(&batch)
    }

    /// Whether the attribute at `place` among the condition's is asked for too.
    fn gives(&self, place: usize) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Early(p) if *p == place))
    }

    /// The columns in the order asked for; `early` gives those of the condition's attributes.
    fn arranged(&self, early: impl Fn(usize) -> Column, late: Vec<Column>) -> Vec<Column> {
        let mut late = late.into_iter();
        let column = |value: &Value| match value {
            Value::Early(place) => Some(early(*place)),
            Value::Late => late.next(),
        };
        self.values.iter().filter_map(column).collect()
    }
}

/// Reads the cells of a box that a condition selects, in the order asked for, their coordinates with them; of dense arrays
/// too, where an unwritten cell is what it reads as.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_where(context: &ReadContext, target: &Target, request: &Request, condition: &Bound) -> Result<Cells> {
    let nothing = || Cells::none(&target.schema, &request.attrs);
    let Some(sub) = narrowed(target, request, condition) else { return Ok(nothing()) };
    let request = Request { sub, ..request.clone() };
    dense::check_size(context, target, &request, condition)?;
    let source = Source::sifted(context, target, &request, Arc::new(Filter::new(condition, &request)))?;
    Ok(source.collect(u64::MAX)?.unwrap_or_else(nothing))
}
