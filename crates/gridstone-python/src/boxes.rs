//! Boxes as Python gives them: ends are ints, floats or texts.

use crate::interrupt::look;
use gridstone::engine::{Array, End, Span};
use gridstone::schema::Region;
use pyo3::prelude::*;
use pyo3::types::{PyFloat, PyInt};

/// A coordinate at an end of a box.
pub(crate) struct Coordinate(End);

impl<'py> FromPyObject<'_, 'py> for Coordinate {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        if given.is_instance_of::<PyInt>() {
            let wide = |_| given.extract::<i128>().map(End::Int);
            // An integer beyond 128 bits keeps its digits, for the message that refuses it.
            let digits = |_| Ok::<_, PyErr>(End::Text(given.str()?.to_string()));
            return given.extract::<i64>().map(|value| End::Int(value.into())).or_else(wide).or_else(digits).map(Self);
        }
        if let Ok(float) = given.cast::<PyFloat>() {
            return Ok(Self(End::Float(float.value())));
        }
        given.extract().map(End::Text).map(Self)
    }
}

/// One box: per dimension its low and high end, both included (None: that of the domain).
pub(crate) type Sides = Vec<(Option<Coordinate>, Option<Coordinate>)>;

/// Boxes: per dimension the low and high end (None: that of the domain), and whether the high one is left out.
pub(crate) type Boxes = Vec<Vec<(Option<Coordinate>, Option<Coordinate>, bool)>>;

/// The region of one box; None: the whole domain.
pub(crate) fn box_region(py: Python<'_>, array: &Array, sides: Option<Sides>) -> PyResult<Option<Region>> {
    let Some(sides) = sides else { return Ok(None) };
    let spans = [side_spans(sides)];
    look(py, array, || array.region(&spans).map(Some))
}

/// The region of boxes; None: the whole domain.
pub(crate) fn region(py: Python<'_>, array: &Array, boxes: Option<Boxes>) -> PyResult<Option<Region>> {
    let Some(boxes) = boxes else { return Ok(None) };
    let spans = spans(boxes);
    look(py, array, || array.region(&spans).map(Some))
}

/// One box for the engine.
pub(crate) fn side_spans(sides: Sides) -> Vec<Span> {
    let end = |given: Option<Coordinate>| given.map(|coordinate| coordinate.0);
    sides.into_iter().map(|(lo, hi)| Span { lo: end(lo), hi: end(hi), below: false }).collect()
}

/// Boxes for the engine.
pub(crate) fn spans(boxes: Boxes) -> Vec<Vec<Span>> {
    let end = |given: Option<Coordinate>| given.map(|coordinate| coordinate.0);
    let spans = |one: Vec<_>| one.into_iter().map(|(lo, hi, below)| Span { lo: end(lo), hi: end(hi), below }).collect();
    boxes.into_iter().map(spans).collect()
}
