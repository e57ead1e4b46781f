//! Copies between stores, moves within one, and upgrades.

use crate::context::Context;
use crate::interrupt;
use crate::store::{Version, at};
use gridstone::engine::{self, CopyOptions};
use pyo3::prelude::*;

/// Gives a report as JSON.
#[pyfunction]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
#[pyo3(signature = (context, source, path, version, target_context, target, target_path, history, overwrite, progress))]
pub(crate) fn copy(
    py: Python<'_>,
    context: &Context,
    source: &str,
    path: &str,
    version: Option<Version>,
    target_context: &Context,
    target: &str,
    target_path: &str,
    history: bool,
    overwrite: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let (number, tag) = Version::parts(version);
    let options = CopyOptions { path, target_path, at: at(py, number, None)?, tag: tag.as_deref(), history, overwrite };
    let (from, to) = ((&context.inner, source), (&target_context.inner, target));
    let done = interrupt::run(py, &context.inner, progress, |call| engine::copy(from, to, &options, call))?;
    Ok(done.to_json())
}

#[pyfunction]
#[pyo3(signature = (context, uri, path, target_path, message))]
pub(crate) fn move_node(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    path: &str,
    target_path: &str,
    message: Option<String>,
) -> PyResult<u64> {
    interrupt::commit(py, &context.inner, || engine::move_node(&context.inner, uri, path, target_path, message))
}

#[pyfunction]
pub(crate) fn upgrade(py: Python<'_>, context: &Context, uri: &str) -> PyResult<u64> {
    interrupt::commit(py, &context.inner, || engine::upgrade(&context.inner, uri))
}
