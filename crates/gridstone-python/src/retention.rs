//! What a vacuum is asked for, and what it reports.

use crate::errors::input;
use gridstone::engine::{Holder, Keep, Tally, VacuumOptions, VacuumReport};
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

/// The report as JSON.
pub(crate) fn report(found: VacuumReport) -> String {
    let tally = |t: Tally| json!({"objects": t.objects, "bytes": t.bytes});
    let holder = |h: &Holder| json!({"tag": h.tag, "version": h.version});
    let held_by: Vec<Value> = found.held_by.iter().map(holder).collect();
    json!({"oldest_before": found.oldest_before, "oldest": found.oldest, "newest": found.newest,
        "records": tally(found.records), "data": tally(found.data), "manifest": tally(found.manifest),
        "temporary": tally(found.temporary), "young": tally(found.young), "leases": found.leases,
        "held_by": held_by, "committed": found.committed, "hidden": found.hidden})
    .to_string()
}
