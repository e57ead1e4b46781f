//! A condition, and what it means for the attributes of a read.

use crate::base::Result;
use crate::condition::{Batch, Bound, Coordinates, Selection};
use crate::query::request::Request;
use crate::tile::Column;

/// Where the values of an attribute asked for come from.
#[derive(Debug, Clone, Copy)]
pub(super) enum Value {
    /// The condition needs it too: its place among those.
    Early(usize),
    /// It is read where a cell survived.
    Late,
}

/// A condition, and what it means for the attributes of a read.
#[derive(Debug)]
pub(in crate::query) struct Filter {
    pub(super) bound: Bound,
    /// The dimensions that it looks at, by place.
    pub(super) dims: Vec<usize>,
    /// The attributes that it looks at, by place.
    pub(super) early: Vec<usize>,
    /// Those asked for besides, in the order asked for.
    pub(super) late: Vec<usize>,
    pub(super) values: Vec<Value>,
}

impl Filter {
    pub(in crate::query) fn new(bound: &Bound, request: &Request) -> Self {
        let needed = bound.columns();
        let value = |place: &usize| needed.attrs.iter().position(|p| p == place).map_or(Value::Late, Value::Early);
        let late = request.attrs.iter().filter(|place| !needed.attrs.contains(place)).copied().collect();
        let values = request.attrs.iter().map(value).collect();
        Self { bound: bound.clone(), dims: needed.dims, early: needed.attrs, late, values }
    }

    /// The rows that are selected. `coords` are needed only where the condition looks at dimensions.
    pub(super) fn select(&self, rows: usize, coords: &[Vec<u64>], early: &[Column]) -> Result<Selection> {
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
    pub(super) fn gives(&self, place: usize) -> bool {
        self.values.iter().any(|value| matches!(value, Value::Early(p) if *p == place))
    }

    /// The columns in the order asked for; `early` gives those of the condition's attributes.
    pub(super) fn arranged(&self, early: impl Fn(usize) -> Column, late: Vec<Column>) -> Vec<Column> {
        let mut late = late.into_iter();
        let column = |value: &Value| match value {
            Value::Early(place) => Some(early(*place)),
            Value::Late => late.next(),
        };
        self.values.iter().filter_map(column).collect()
    }
}
