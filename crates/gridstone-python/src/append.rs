//! Appending blocks to dense arrays.

use crate::array::Array;
use crate::columns::{columns, views};
use crate::errors::raise;
use crate::interrupt;
use crate::labels::{GivenLabels, hold};
use crate::store::commit_key_of;
use crate::writer::hold_attrs;
use gridstone::engine::{self, Appended};
use gridstone::schema::Order;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// Appends a block of `count` coordinates along an axis in one commit, and gives its version.
#[pyfunction]
#[pyo3(signature = (array, place, attrs, layout, message, progress = None, commit_key = None, labels = None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
pub(crate) fn append_block(
    py: Python<'_>,
    array: &Array,
    place: (usize, u64),
    attrs: &Bound<'_, PyDict>,
    layout: &str,
    message: Option<&str>,
    progress: Option<Py<PyAny>>,
    commit_key: Option<Vec<u8>>,
    labels: Option<GivenLabels<'_>>,
) -> PyResult<u64> {
    let key = commit_key_of(py, commit_key)?;
    let layout = Order::parse(layout).map_err(|e| raise(py, &e))?;
    let schema = interrupt::look(py, &array.inner, || array.inner.schema())?;
    let held = hold_attrs(schema.as_ref(), attrs)?;
    let (axis, count) = place;
    let held_labels = labels.map(|given| hold(py, given)).transpose()?;
    let work = |call: &engine::Call| {
        let labels = columns(held_labels.as_slice(), call)?.first().copied();
        let block = Appended { axis, count, data: views(&held, call)?, layout, labels };
        array.inner.append(&block, message, &call.with_key(key.clone()))
    };
    interrupt::run(py, array.inner.context(), progress, work)
}
