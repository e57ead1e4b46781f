//! What a vacuum is asked for, and what it reports.

use crate::context::Context;
use crate::errors::input;
use crate::interrupt;
use gridstone::engine::{self, Keep, VacuumOptions};
use pyo3::prelude::*;

pub(crate) fn options(
    py: Python<'_>,
    keep_us: Option<i64>,
    versions: Option<u64>,
    safety_us: i64,
    dry_run: bool,
) -> PyResult<VacuumOptions> {
    let keep = match (keep_us, versions) {
        (Some(age), None) => Keep::AgeUs(age),
        (None, Some(count)) => Keep::Versions(count),
        _ => return Err(input(py, "give an age or a number of versions, not both")),
    };
    Ok(VacuumOptions { keep, safety_us, dry_run })
}

/// Forgets old versions of the copy of a history; gives a report as that of a vacuum.
#[pyfunction]
#[pyo3(signature = (context, uri, keep_us, versions, safety_us, progress))]
pub(crate) fn forget_copied(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    keep_us: Option<i64>,
    versions: Option<u64>,
    safety_us: i64,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let options = options(py, keep_us, versions, safety_us, false)?;
    let forget = |call: &engine::Call| engine::forget_copied(&context.inner, uri, &options, call);
    interrupt::run(py, &context.inner, progress, forget).map(|report| report.to_json())
}

/// What a store takes, and what a vacuum would free, as two JSON texts.
#[pyfunction]
#[pyo3(signature = (context, uri, keep_us, versions, safety_us))]
pub(crate) fn store_usage(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    keep_us: Option<i64>,
    versions: Option<u64>,
    safety_us: i64,
) -> PyResult<(String, String)> {
    let options = options(py, keep_us, versions, safety_us, true)?;
    let look = |call: &engine::Call| engine::store_usage(&context.inner, uri, &options, call);
    let (taken, freed) = interrupt::run(py, &context.inner, None, look)?;
    Ok((taken.to_json(), freed.to_json()))
}
