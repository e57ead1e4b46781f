//! Checking and repairing whole stores.

use crate::context::Context;
use crate::interrupt;
use gridstone::engine::{self, AffectedCells, LostVersion, RepairOptions, RepairReport, StoreDamage, StoreReport};
use pyo3::prelude::*;
use serde_json::{Value, json};

#[pyfunction]
pub(crate) fn verify_store(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    progress: Option<Py<PyAny>>,
) -> PyResult<String> {
    let found = interrupt::run(py, &context.inner, progress, |call| engine::verify_uri(&context.inner, uri, call))?;
    Ok(checked(&found).to_string())
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
    Ok(repaired(&done).to_string())
}

fn cells(c: &AffectedCells) -> Value {
    json!({"array": c.array, "fragment": c.fragment.map(|id| id.to_string()), "tile": c.tile, "attribute": c.column,
        "domain": c.domain, "cells": c.cells})
}

fn damage(found: &[StoreDamage]) -> Vec<Value> {
    let one = |d: &StoreDamage| {
        let cells: Vec<Value> = d.cells.iter().map(cells).collect();
        json!({"object": d.object, "versions": d.versions, "cells": cells, "message": d.message})
    };
    found.iter().map(one).collect()
}

fn checked(found: &StoreReport) -> Value {
    json!({"oldest": found.oldest, "newest": found.newest, "records": found.records, "manifest": found.manifest,
        "files": found.files, "blocks": found.blocks, "bytes": found.bytes, "leases": found.leases,
        "orphans": {"objects": found.orphans.objects, "bytes": found.orphans.bytes}, "damage": damage(&found.damage)})
}

fn repaired(done: &RepairReport) -> Value {
    let actions: Vec<Value> = done.actions.iter().map(|a| json!({"object": a.object, "what": a.what})).collect();
    let lost = |l: &LostVersion| json!({"version": l.version, "time_us": l.time_us, "message": l.message, "operations": l.operations});
    let lost: Vec<Value> = done.lost.iter().map(lost).collect();
    json!({"damage": damage(&done.damage), "actions": actions, "remaining": damage(&done.remaining), "kept": done.kept,
        "committed": done.committed, "lost": lost})
}
