//! Results of a dense read, one per attribute: those whose cells have their places before anything is read, and the others.

use crate::query::cells::shared_result::SharedResult;
use crate::query::request::{Request, is_deliverable};
use crate::schema::{Attribute, Schema};

/// The result of one attribute.
pub(in crate::query) struct ResultColumn<'a> {
    pub(in crate::query) attr: &'a Attribute,
    pub(in crate::query) slots: SharedResult<'a>,
}

impl ResultColumn<'_> {
    pub(in crate::query) fn width(&self) -> usize {
        self.attr.datatype().width().unwrap_or(1)
    }
}

/// The attributes asked for, those that can be delivered apart from those that are painted: places among those asked.
pub(in crate::query) fn split(schema: &Schema, request: &Request) -> (Vec<usize>, Vec<usize>) {
    let deliverable =
        |place: &usize| request.attrs.get(*place).and_then(|p| schema.attrs().get(*p)).is_some_and(is_deliverable);
    (0..request.attrs.len()).partition(deliverable)
}
