//! Vacuums, and what a store takes.

use crate::engine::{ArrayUsage, Holder, StoreUsage, Tally, VacuumReport};
use serde_json::{Value, json};

fn tally(found: Tally) -> Value {
    json!({"objects": found.objects, "bytes": found.bytes})
}

impl VacuumReport {
    /// The report as a JSON object on one line. A tally is an object: `objects`, a count, and `bytes`, their size.
    ///
    /// | key | value |
    /// |---|---|
    /// | `oldest_before`, `oldest` | the oldest version before, and the oldest that stays |
    /// | `newest` | the newest version, as [`VacuumReport::newest`] has it |
    /// | `records`, `data`, `manifest`, `temporary` | tallies of what was deleted: log records, data files, roots and pages, temporary files |
    /// | `young` | a tally of files kept that no version names and that are not old enough |
    /// | `leases` | expired leases deleted |
    /// | `held_by` | tags and leases that keep older versions: objects of `tag` and `version`; a null tag: a reader's lease |
    /// | `committed` | the version in which files were condemned; null: there were no new ones |
    /// | `hidden` | fragments of the newest version that newer ones hid, removed before |
    pub fn to_json(&self) -> String {
        let held_by: Vec<Value> = self.held_by.iter().map(holder).collect();
        json!({"oldest_before": self.oldest_before, "oldest": self.oldest, "newest": self.newest,
            "records": tally(self.records), "data": tally(self.data), "manifest": tally(self.manifest),
            "temporary": tally(self.temporary), "young": tally(self.young), "leases": self.leases, "held_by": held_by,
            "committed": self.committed, "hidden": self.hidden})
        .to_string()
    }
}

fn holder(found: &Holder) -> Value {
    json!({"tag": found.tag, "version": found.version})
}

impl StoreUsage {
    /// What the store takes as a JSON object on one line. A tally is an object: `objects`, a count, and `bytes`, their size.
    ///
    /// | key | value |
    /// |---|---|
    /// | `version`, `oldest` | the newest version, and the oldest that is kept |
    /// | `arrays` | the arrays of the newest version, by path; an object each, as below |
    /// | `live`, `older`, `orphans` | tallies of data files: the newest version names them, only older ones do, or none does |
    /// | `manifest` | a tally of roots and pages |
    /// | `log` | a tally of log records, the floor and the hint |
    /// | `other` | a tally of leases, temporary files, and copies of damaged objects |
    ///
    /// | key of an array | value |
    /// |---|---|
    /// | `path` | its path |
    /// | `fragments`, `cells` | its fragments, and the cells in them, overwritten and deleted ones included |
    /// | `data_bytes`, `log_bytes` | bytes of them in data files, and in log records |
    /// | `external` | how many of them only describe files outside of the store |
    pub fn to_json(&self) -> String {
        let arrays: Vec<Value> = self.arrays.iter().map(array).collect();
        json!({"version": self.version, "oldest": self.oldest, "arrays": arrays, "live": tally(self.live),
            "older": tally(self.older), "orphans": tally(self.orphans), "manifest": tally(self.manifest),
            "log": tally(self.log), "other": tally(self.other)})
        .to_string()
    }
}

fn array(found: &ArrayUsage) -> Value {
    let ArrayUsage { path, fragments, cells, data_bytes, log_bytes, external } = found;
    json!({"path": path, "fragments": fragments, "cells": cells, "data_bytes": data_bytes, "log_bytes": log_bytes,
        "external": external})
}
