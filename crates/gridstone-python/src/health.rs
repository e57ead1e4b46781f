//! Checking and repairing whole stores.

use crate::context::Context;
use crate::interrupt;
use gridstone::engine::{self, RepairOptions};
use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn verify_store(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let found = interrupt::run(py, &context.inner, progress, |call| engine::verify_uri(&context.inner, uri, call))?;
    Ok(found.to_json())
}

#[pyfunction]
pub(crate) fn repair(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    dry_run: bool,
    cut: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let done = interrupt::run(py, &context.inner, progress, |call| {
        engine::repair(&context.inner, uri, RepairOptions { dry_run, cut }, call)
    })?;
    Ok(done.to_json())
}
