//! Lists of boxes as Python gives them.

use crate::errors::raise;
use gridstone::engine::{Array, Span};
use gridstone::schema::Region;
use pyo3::prelude::*;

/// Boxes: per dimension the low and high end as text (None: that of the domain), and whether the high one is left out.
pub(crate) type Boxes = Vec<Vec<(Option<String>, Option<String>, bool)>>;

/// The same for the engine.
pub(crate) fn spans(boxes: Boxes) -> Vec<Vec<Span>> {
    let spans = |one: Vec<_>| one.into_iter().map(|(lo, hi, below)| Span { lo, hi, below }).collect();
    boxes.into_iter().map(spans).collect()
}

/// The region of boxes; None: the whole domain.
pub(crate) fn region(py: Python<'_>, array: &Array, boxes: Option<Boxes>) -> PyResult<Option<Region>> {
    boxes.map(|boxes| array.region(&spans(boxes))).transpose().map_err(|e| raise(py, &e))
}
