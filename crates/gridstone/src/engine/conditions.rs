//! Conditions by themselves: what one means for a schema, and which rows of plain columns it selects.

use crate::base::{Error, Result};
use crate::condition::{Batch, Condition, Coordinates, Selection};
use crate::schema::Schema;
use crate::tile::ColumnView;

/// What a condition means for an array.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConditionListing {
    /// The columns that decide it: dimensions, then attributes.
    pub columns: Vec<String>,
    /// The low and high coordinate, as text, that it confines each dimension to; `None` if it selects nothing.
    pub bounds: Option<Vec<(String, String)>>,
    /// Whether it is the same for every cell, and what.
    pub constant: Option<bool>,
}

/// What `condition` means for arrays of `schema`; an Input error names what does not fit.
pub fn check_condition(condition: &Condition, schema: &Schema) -> Result<ConditionListing> {
    let bound = condition.bind(schema)?;
    let needed = bound.columns();
    let dims = schema.coordinates().filter(|dim| dim.axes().any(|axis| needed.dims.contains(&axis)));
    let dims = dims.map(|dim| dim.name().to_owned());
    let attrs = needed.attrs.iter().filter_map(|a| schema.attrs().get(*a)).map(|a| a.name().to_owned());
    let bounds = bound.bounds(schema).map(|sub| schema.ends(&sub));
    Ok(ConditionListing { columns: dims.chain(attrs).collect(), bounds, constant: bound.constant() })
}

/// The rows that `condition` selects from columns by name, which are of the types in `schema` and of one length.
pub fn select_rows(condition: &Condition, schema: &Schema, columns: &[(String, ColumnView<'_>)]) -> Result<Selection> {
    let bound = condition.bind(schema)?;
    let mut batch = Batch::new(columns.first().map_or(0, |(_, view)| view.len()));
    for (name, view) in columns {
        batch = match schema.coordinates().find(|d| d.name() == name) {
            Some(dim) => batch.with_dim(dim.axes().start, Coordinates::Column(*view)),
            None => batch.with_attr(schema.attr(name)?.0, *view),
        };
    }
    let lacking = |name: &&String| !columns.iter().any(|(given, _)| given == *name);
    if let Some(name) = check_condition(condition, schema)?.columns.iter().find(lacking) {
        return Err(Error::input(format!("the condition needs the column {name:?}, which was not given")));
    }
    bound.evaluate(&batch)
}
