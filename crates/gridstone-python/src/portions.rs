//! Reads into buffers of Python, a portion at a time.

use crate::cells::stats_dict;
use crate::columns::Outs;
use crate::errors::input;
use crate::interrupt;
use gridstone::base::{Error, ErrorKind, Result};
use gridstone::engine::{Context, OutColumn, Portions as Inner};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// A column's name and its buffers: values, offsets, validity.
pub(crate) type Given<'py> = (String, Bound<'py, PyAny>, Option<Bound<'py, PyAny>>, Option<Bound<'py, PyAny>>);

/// Which of a column's buffers there are, and where the column stands among dimensions and attributes.
struct Shape {
    name: String,
    place: usize,
    offsets: bool,
    validity: bool,
}

/// Buffers, and which columns they are for.
struct Buffers {
    shapes: Vec<Shape>,
    outs: Outs,
}

impl Buffers {
    /// `names`: those of the dimensions, then of the attributes that are read.
    fn new(py: Python<'_>, names: &[String], given: Vec<Given<'_>>) -> PyResult<Self> {
        let (mut shapes, mut buffers) = (Vec::new(), Vec::new());
        for (name, values, offsets, validity) in given {
            let place = names.iter().position(|n| *n == name);
            let place = place.ok_or_else(|| input(py, &format!("there is no column {name:?}")))?;
            shapes.push(Shape { name, place, offsets: offsets.is_some(), validity: validity.is_some() });
            buffers.push(values);
            buffers.extend(offsets);
            buffers.extend(validity);
        }
        Ok(Self { shapes, outs: Outs::new(py, &buffers)? })
    }

    /// The buffers in their columns' places, of `count` columns.
    fn columns(&mut self, count: usize) -> Result<Vec<Option<OutColumn<'_>>>> {
        let mut columns: Vec<Option<OutColumn<'_>>> = (0..count).map(|_| None).collect();
        let mut slices = self.outs.slices().into_iter();
        let mut next = || slices.next().unwrap_or_default();
        for shape in &self.shapes {
            let values = next();
            let offsets = shape.offsets.then(|| bytemuck::try_cast_slice_mut(next())).transpose();
            let offsets = offsets
                .map_err(|_| Error::input(format!("offsets for {:?} must be aligned 64-bit integers", shape.name)))?;
            let validity = shape.validity.then(&mut next);
            if let Some(slot) = columns.get_mut(shape.place) {
                *slot = Some(OutColumn { name: &shape.name, values, offsets, validity });
            }
        }
        Ok(columns)
    }
}

/// A read that fills its caller's buffers again and again.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Portions {
    context: Context,
    names: Vec<String>,
    inner: Mutex<Option<(Inner, Buffers)>>,
}

impl Portions {
    pub(crate) fn new(
        py: Python<'_>,
        context: Context,
        names: Vec<String>,
        given: Vec<Given<'_>>,
        inner: Inner,
    ) -> PyResult<Self> {
        let buffers = Buffers::new(py, &names, given)?;
        Ok(Self { context, names, inner: Mutex::new(Some((inner, buffers))) })
    }

    fn lock(&self) -> MutexGuard<'_, Option<(Inner, Buffers)>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl Portions {
    /// Fills the buffers, or those given from now on; gives how many cells.
    #[pyo3(signature = (columns = None))]
    fn next(&self, py: Python<'_>, columns: Option<Vec<Given<'_>>>) -> PyResult<usize> {
        let given = columns.map(|columns| Buffers::new(py, &self.names, columns)).transpose()?;
        let taken = self.lock().take();
        let (mut inner, held) = taken.ok_or_else(|| input(py, "this read is used by another thread"))?;
        let mut buffers = given.unwrap_or(held);
        // Whether an error was told by a read that can go on where it was.
        let mut refused = false;
        let outcome = interrupt::run(py, &self.context, None, |call| {
            inner.set_cancel(call.cancel.clone());
            let filled = buffers.columns(self.names.len()).and_then(|mut columns| inner.fill(&mut columns));
            refused = filled.as_ref().is_err_and(|e| matches!(e.kind(), ErrorKind::Budget | ErrorKind::Input));
            filled
        });
        if outcome.is_err() && !refused {
            // Cells may have been given that the caller, who is interrupted, does not know of.
            inner.give_up();
        }
        *self.lock() = Some((inner, buffers));
        outcome
    }

    /// Whether every cell was given.
    #[getter]
    fn complete(&self) -> bool {
        self.lock().as_ref().is_some_and(|(inner, _)| inner.is_complete())
    }

    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<Option<Py<PyDict>>> {
        self.lock().as_ref().map(|(inner, _)| stats_dict(py, &inner.counters())).transpose()
    }
}
