//! Staged fragments and streamed ones.

use crate::columns::{Held, views};
use crate::errors::{input, raise};
use gridstone::engine::{self, ColumnView};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList};
use std::sync::{Arc, Mutex, PoisonError};

/// Written fragments that no commit refers to yet.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Staged {
    inner: Mutex<Option<engine::Staged>>,
    cells: u64,
    bytes: u64,
}

impl Staged {
    pub(crate) fn new(inner: engine::Staged) -> Self {
        let (cells, bytes) = (inner.cells(), inner.bytes());
        Self { inner: Mutex::new(Some(inner)), cells, bytes }
    }

    /// Takes the fragments for a commit; an Input error if that was done before.
    pub(crate) fn take(&self, py: Python<'_>) -> PyResult<engine::Staged> {
        let taken = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| input(py, "these fragments were given to a commit before; write them again"))
    }
}

#[pymethods]
impl Staged {
    #[getter]
    fn cells(&self) -> u64 {
        self.cells
    }

    #[getter]
    fn bytes(&self) -> u64 {
        self.bytes
    }
}

/// The coordinate columns given for the dimensions of `schema`.
pub(crate) fn hold_dims(schema: &Schema, dims: &Bound<'_, PyAny>) -> PyResult<Vec<(String, Held)>> {
    let given: Vec<Bound<'_, PyAny>> = dims.extract()?;
    if given.len() != schema.ndim() {
        let message = format!("coordinates of {} dimensions were given, the array has {}", given.len(), schema.ndim());
        return Err(input(dims.py(), &message));
    }
    let pairs = schema.dims().iter().zip(&given);
    pairs.map(|(dim, column)| Ok((dim.name().to_owned(), Held::new(dim.datatype(), column)?))).collect()
}

/// The attribute columns given by name.
pub(crate) fn hold_attrs(schema: &Schema, attrs: &Bound<'_, PyDict>) -> PyResult<Vec<(String, Held)>> {
    let mut held = Vec::with_capacity(attrs.len());
    for (name, column) in attrs.iter() {
        let name: String = name.extract()?;
        let (_, attr) = schema.attr(&name).map_err(|e| raise(attrs.py(), &e))?;
        held.push((name, Held::new(attr.datatype(), &column)?));
    }
    Ok(held)
}

/// One fragment being streamed in global order.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Writer {
    inner: Mutex<engine::Writer>,
    schema: Arc<Schema>,
    attrs: Vec<String>,
}

impl Writer {
    /// `attrs` are the writer's attributes in the schema's order.
    pub(crate) fn new(inner: engine::Writer, schema: Arc<Schema>, attrs: Vec<String>) -> Self {
        Self { inner: Mutex::new(inner), schema, attrs }
    }

    fn in_order<'v>(&self, py: Python<'_>, given: &[(String, ColumnView<'v>)]) -> PyResult<Vec<ColumnView<'v>>> {
        let find = |name: &String| given.iter().find(|(n, _)| n == name).map(|(_, view)| *view);
        let ordered: Vec<ColumnView<'v>> = self.attrs.iter().filter_map(find).collect();
        if ordered.len() != self.attrs.len() || given.len() != self.attrs.len() {
            return Err(input(py, &format!("every portion needs the writer's attributes: {}", self.attrs.join(", "))));
        }
        Ok(ordered)
    }
}

#[pymethods]
impl Writer {
    fn append(&self, py: Python<'_>, dims: Option<&Bound<'_, PyAny>>, attrs: &Bound<'_, PyDict>) -> PyResult<()> {
        let held_dims = dims.map(|d| hold_dims(&self.schema, d)).transpose()?.unwrap_or_default();
        let held_attrs = hold_attrs(&self.schema, attrs)?;
        let dims: Vec<ColumnView<'_>> = views(py, &held_dims)?.into_iter().map(|(_, view)| view).collect();
        let columns = self.in_order(py, &views(py, &held_attrs)?)?;
        py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).append(&dims, &columns))
            .map_err(|e| raise(py, &e))
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Staged> {
        let staged = py.detach(|| self.inner.lock().unwrap_or_else(PoisonError::into_inner).finish());
        staged.map(Staged::new).map_err(|e| raise(py, &e))
    }

    fn abort(&self) {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner).abort();
    }
}

/// A list of staged fragments, each taken.
pub(crate) fn take_all(list: &Bound<'_, PyAny>) -> PyResult<Vec<engine::Staged>> {
    let given: Vec<Bound<'_, Staged>> =
        list.try_iter()?.map(|s| Ok(s?.cast_into::<Staged>()?)).collect::<PyResult<_>>()?;
    given.iter().map(|s| s.get().take(list.py())).collect()
}

/// Strings as a Python list.
pub(crate) fn texts(py: Python<'_>, all: impl IntoIterator<Item = serde_json::Value>) -> PyResult<Py<PyList>> {
    let texts: Vec<String> = all.into_iter().map(|v| v.to_string()).collect();
    Ok(PyList::new(py, texts)?.unbind())
}
