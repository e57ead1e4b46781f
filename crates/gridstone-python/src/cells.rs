//! What reads and scans give.

use crate::columns::{self, Out};
use crate::errors::input;
use crate::interrupt;
use gridstone::base::CounterSnapshot;
use gridstone::engine::{self, Arena};
use pyo3::prelude::*;
use pyo3::types::PyDict;
use std::sync::{Arc, Mutex, PoisonError};

/// The outcome of a read, or one batch of a scan.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Cells {
    count: usize,
    shape: Option<Vec<u64>>,
    dims: Py<PyDict>,
    attrs: Py<PyDict>,
    stats: CounterSnapshot,
    damage: Vec<String>,
}

/// Names of the columns that a read gives.
pub(crate) struct Names {
    pub(crate) dims: Vec<String>,
    pub(crate) attrs: Vec<String>,
}

fn dict<'n>(
    py: Python<'_>,
    names: impl Iterator<Item = &'n String>,
    columns: Vec<engine::Column>,
    home: Option<&Arc<Arena>>,
) -> PyResult<Py<PyDict>> {
    let made = PyDict::new(py);
    for (name, column) in names.zip(columns) {
        let column: Out = columns::out(py, column, home)?;
        made.set_item(name, column)?;
    }
    Ok(made.unbind())
}

impl Cells {
    pub(crate) fn new(
        py: Python<'_>,
        names: &Names,
        cells: engine::Cells,
        shape: Option<Vec<u64>>,
        stats: CounterSnapshot,
        home: Option<&Arc<Arena>>,
    ) -> PyResult<Self> {
        let dims = dict(py, names.dims.iter(), cells.dims, home)?;
        let attrs = dict(py, names.attrs.iter(), cells.attrs, home)?;
        Ok(Self { count: cells.count, shape, dims, attrs, stats, damage: Vec::new() })
    }

    /// The same with what was left out.
    pub(crate) fn with_damage(self, skipped: &[engine::SkippedCells]) -> Self {
        Self { damage: skipped.iter().map(engine::SkippedCells::to_json).collect(), ..self }
    }
}

#[pymethods]
impl Cells {
    #[getter]
    fn count(&self) -> usize {
        self.count
    }

    #[getter]
    fn shape(&self) -> Option<Vec<u64>> {
        self.shape.clone()
    }

    #[getter]
    fn dims(&self, py: Python<'_>) -> Py<PyDict> {
        self.dims.clone_ref(py)
    }

    #[getter]
    fn attrs(&self, py: Python<'_>) -> Py<PyDict> {
        self.attrs.clone_ref(py)
    }

    #[getter]
    fn stats(&self, py: Python<'_>) -> PyResult<Py<PyDict>> {
        stats_dict(py, &self.stats)
    }

    /// What was left out because it is damaged, each a JSON object.
    #[getter]
    fn damage(&self) -> Vec<String> {
        self.damage.clone()
    }
}

/// Counters by name.
pub(crate) fn stats_dict(py: Python<'_>, stats: &CounterSnapshot) -> PyResult<Py<PyDict>> {
    let made = PyDict::new(py);
    for (name, value) in stats.entries() {
        made.set_item(name, value)?;
    }
    Ok(made.unbind())
}

/// A stream of cells in bounded memory.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Scan {
    context: engine::Context,
    names: Names,
    inner: Mutex<Option<engine::Scan>>,
    damage: Vec<String>,
}

impl Scan {
    pub(crate) fn new(context: engine::Context, names: Names, inner: engine::Scan) -> Self {
        Self { context, names, inner: Mutex::new(Some(inner)), damage: Vec::new() }
    }

    /// The same with what is left out.
    pub(crate) fn with_damage(self, skipped: &[engine::SkippedCells]) -> Self {
        Self { damage: skipped.iter().map(engine::SkippedCells::to_json).collect(), ..self }
    }
}

#[pymethods]
impl Scan {
    /// What is left out because it is damaged, each a JSON object.
    #[getter]
    fn damage(&self) -> Vec<String> {
        self.damage.clone()
    }

    /// The next batch, None at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Cells>> {
        let taken = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut scan =
            taken.ok_or_else(|| input(py, "this stream is being read by another thread, or an error ended it"))?;
        let (scan, batch) = interrupt::run(py, &self.context, None, move |call| {
            scan.set_cancel(call.cancel.clone());
            let batch = scan.next_batch()?;
            Ok((scan, batch))
        })?;
        let stats = scan.counters().snapshot();
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(scan);
        batch.map(|cells| Cells::new(py, &self.names, cells, None, stats, None)).transpose()
    }
}
