//! What a vacuum is asked for, and what it reports.

use crate::context::Context;
use crate::errors::input;
use crate::interrupt;
use gridstone::engine::{self, ArrayUsage, Holder, Keep, StoreUsage, Tally, VacuumOptions, VacuumReport};
use pyo3::prelude::*;
use serde_json::{Value, json};

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

fn tally(t: Tally) -> Value {
    json!({"objects": t.objects, "bytes": t.bytes})
}

/// The report as JSON.
pub(crate) fn report(found: VacuumReport) -> String {
    let holder = |h: &Holder| json!({"tag": h.tag, "version": h.version});
    let held_by: Vec<Value> = found.held_by.iter().map(holder).collect();
    json!({"oldest_before": found.oldest_before, "oldest": found.oldest, "newest": found.newest,
        "records": tally(found.records), "data": tally(found.data), "manifest": tally(found.manifest),
        "temporary": tally(found.temporary), "young": tally(found.young), "leases": found.leases,
        "held_by": held_by, "committed": found.committed, "hidden": found.hidden})
    .to_string()
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
    interrupt::run(py, &context.inner, progress, forget).map(report)
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
    Ok((usage(&taken), report(freed)))
}

fn usage(found: &StoreUsage) -> String {
    let array = |a: &ArrayUsage| {
        json!({"path": a.path, "fragments": a.fragments, "cells": a.cells, "data_bytes": a.data_bytes,
            "log_bytes": a.log_bytes, "external": a.external})
    };
    let arrays: Vec<Value> = found.arrays.iter().map(array).collect();
    json!({"version": found.version, "oldest": found.oldest, "arrays": arrays, "live": tally(found.live),
        "older": tally(found.older), "orphans": tally(found.orphans), "manifest": tally(found.manifest),
        "log": tally(found.log), "other": tally(found.other)})
    .to_string()
}
