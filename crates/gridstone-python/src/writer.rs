//! Staged fragments and streamed ones.

use crate::columns::{Held, columns, views};
use crate::errors::{input, raise};
use crate::interrupt;
use crate::store::{GivenKey, naming};
use gridstone::base::{Error, Result};
use gridstone::engine::{self, ColumnView};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

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

    /// Held for moments, and never while Python runs: who waits for it may hold the GIL.
    fn lock(&self) -> MutexGuard<'_, Option<engine::Staged>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
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
    let count = schema.coordinates().count();
    if given.len() != count {
        let message = format!("coordinates of {} dimensions were given, the array has {count}", given.len());
        return Err(input(dims.py(), &message));
    }
    let pairs = schema.coordinates().zip(&given);
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
    context: engine::Context,
    shared: Mutex<Shared>,
    schema: Arc<Schema>,
    attrs: Vec<String>,
}

/// What the threads share that use one writer.
struct Shared {
    /// Taken out by the call that works with it: a thread that waited for another one's call would stop all of Python
    /// if it held the GIL.
    writer: Option<engine::Writer>,
    /// The end of it; a call that is working with it then gives nothing.
    aborted: bool,
}

impl Writer {
    /// `attrs` are the writer's attributes in the schema's order.
    pub(crate) fn new(
        context: engine::Context,
        inner: engine::Writer,
        schema: Arc<Schema>,
        attrs: Vec<String>,
    ) -> Self {
        Self { context, shared: Mutex::new(Shared { writer: Some(inner), aborted: false }), schema, attrs }
    }

    /// Held for moments, and never while Python runs: who waits for it may hold the GIL.
    fn lock(&self) -> MutexGuard<'_, Shared> {
        self.shared.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What `work` gives, with the writer to itself.
    fn run<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&mut engine::Writer, &engine::Call) -> Result<R> + Send,
    ) -> PyResult<R> {
        let mut writer = self.take().map_err(|e| raise(py, &e))?;
        let outcome = interrupt::run(py, &self.context, None, |call| work(&mut writer, call));
        let Some(writer) = self.put_back(writer) else { return outcome };
        let made = outcome?;
        py.detach(|| drop((writer, made)));
        Err(raise(py, &aborted()))
    }

    fn take(&self) -> Result<engine::Writer> {
        let mut shared = self.lock();
        let busy =
            || Error::input("another thread is using this writer: wait for its call to end, or abort the writer");
        let missing = if shared.aborted { aborted } else { busy };
        shared.writer.take().ok_or_else(missing)
    }

    /// Gives the writer back to the caller if it was aborted meanwhile.
    fn put_back(&self, writer: engine::Writer) -> Option<engine::Writer> {
        let mut shared = self.lock();
        if shared.aborted {
            return Some(writer);
        }
        shared.writer = Some(writer);
        None
    }

    fn in_order<'v>(&self, given: &[(String, ColumnView<'v>)]) -> Result<Vec<ColumnView<'v>>> {
        let find = |name: &String| given.iter().find(|(n, _)| n == name).map(|(_, view)| *view);
        let ordered: Vec<ColumnView<'v>> = self.attrs.iter().filter_map(find).collect();
        if ordered.len() != self.attrs.len() || given.len() != self.attrs.len() {
            return Err(Error::input(format!(
                "every portion needs the writer's attributes: {}",
                self.attrs.join(", ")
            )));
        }
        Ok(ordered)
    }
}

#[pymethods]
impl Writer {
    fn append(&self, py: Python<'_>, dims: Option<&Bound<'_, PyAny>>, attrs: &Bound<'_, PyDict>) -> PyResult<()> {
        let held_dims = dims.map(|d| hold_dims(&self.schema, d)).transpose()?.unwrap_or_default();
        let held_attrs = hold_attrs(&self.schema, attrs)?;
        self.run(py, |writer, call| {
            let (dims, attrs) = (columns(&held_dims, call)?, self.in_order(&views(&held_attrs, call)?)?);
            writer.append(call, &dims, &attrs)
        })
    }

    fn finish(&self, py: Python<'_>) -> PyResult<Staged> {
        self.run(py, engine::Writer::finish).map(Staged::new)
    }

    fn abort(&self, py: Python<'_>) {
        let writer = {
            let mut shared = self.lock();
            shared.aborted = true;
            shared.writer.take()
        };
        // What is left of its file goes with it.
        py.detach(|| drop(writer));
    }
}

fn aborted() -> Error {
    Error::input("this writer was aborted, and what it wrote is gone; start another")
}

/// The writer, for a commit with the key if one was given.
pub(crate) fn with_key(writer: engine::Writer, key: Option<GivenKey>) -> Result<engine::Writer> {
    match key {
        Some((bytes, is_load)) => writer.with_key(engine::CommitKey::new(&bytes)?, naming(is_load)),
        None => Ok(writer),
    }
}

/// A list of staged fragments, each taken for a commit to `array`; or none of them, if one cannot be. The GIL is held
/// from the check to the end, so that no other thread takes one in between.
pub(crate) fn take_all(array: &engine::Array, list: &Bound<'_, PyAny>) -> PyResult<Vec<engine::Staged>> {
    let (py, mut seen) = (list.py(), HashSet::new());
    let used = || input(py, "these fragments were given to a commit before; write them again");
    let given: Vec<Bound<'_, Staged>> =
        list.try_iter()?.map(|s| Ok(s?.cast_into::<Staged>()?)).collect::<PyResult<_>>()?;
    for staged in &given {
        let checked = {
            let held = staged.get().lock();
            held.as_ref().filter(|_| seen.insert(staged.as_ptr())).map(|fragments| array.check_commit(fragments))
        };
        checked.ok_or_else(used)?.map_err(|e| raise(py, &e))?;
    }
    let take = |staged: &Bound<'_, Staged>| staged.get().lock().take();
    given.iter().map(|staged| take(staged).ok_or_else(used)).collect()
}
