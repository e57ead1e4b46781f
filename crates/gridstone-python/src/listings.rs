//! Listings, as Python gets them: versions, tiles, damage.

use crate::buffer::Buffer;
use crate::columns::{Out, out};
use crate::errors::raise;
use gridstone::base::AlignedBuf;
use gridstone::engine::{self, Change, TileListing, VerifyReport, VersionListing};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyDict;
use serde_json::{Value, json};

fn operation_json(change: &Change) -> Value {
    let mut told = json!({"op": change.name, "count": change.count});
    if let Some(tag) = &change.tag {
        told["tag"] = json!(tag);
    }
    if let Some(cells) = &change.cells {
        told["fragments"] = json!(cells.fragments);
        told["cells"] = json!(cells.cells);
        told["bytes"] = json!(cells.bytes);
        told["deleted_cells"] = json!(cells.deleted_cells);
        told["deleted_boxes"] = json!(cells.deleted_boxes);
        told["removed"] = json!(cells.removed);
        told["removed_cells"] = if cells.unknown == 0 { json!(cells.removed_cells) } else { Value::Null };
        told["removed_bytes"] = if cells.unknown == 0 { json!(cells.removed_bytes) } else { Value::Null };
    }
    told
}

/// A version of a store, for Python's `history.version_of`.
pub(crate) fn version_json(version: &VersionListing) -> Value {
    let operations: Vec<_> = version.operations.iter().map(operation_json).collect();
    json!({"version": version.version, "time_us": version.time_us, "message": version.message, "operations": operations,
        "commit_id": version.commit_id.to_string(), "tags": version.tags})
}

/// Tiles as columns.
pub(crate) fn tiles_dict(py: Python<'_>, schema: &Schema, tiles: &[TileListing]) -> PyResult<Py<PyDict>> {
    let made = PyDict::new(py);
    let words = |f: fn(&TileListing) -> u64| Buffer::from(tiles.iter().map(f).collect::<Vec<u64>>());
    let numbers: Vec<u8> = tiles.iter().flat_map(|t| t.fragment.to_le_bytes()).collect();
    made.set_item("fragment", Py::new(py, Buffer::from(AlignedBuf::from_slice(&numbers)))?)?;
    made.set_item("cells", Py::new(py, words(|t| t.cells))?)?;
    for (name, low) in [("lo", true), ("hi", false)] {
        let columns = engine::tile_ends(schema, tiles, low).map_err(|e| raise(py, &e))?;
        let columns: Vec<Out> = columns.into_iter().map(|column| out(py, column, None)).collect::<PyResult<_>>()?;
        made.set_item(name, columns)?;
    }
    Ok(made.unbind())
}

/// What a check of an array has found, as JSON.
pub(crate) fn checked_json(report: &VerifyReport) -> String {
    let damage: Vec<_> = report
        .damage
        .iter()
        .map(|d| {
            json!({"fragment": d.fragment.to_string(), "tile": d.tile, "attribute": d.column, "domain": d.domain,
            "cells": d.cells, "message": d.message})
        })
        .collect();
    json!({"fragments": report.fragments, "tiles": report.tiles, "blocks": report.blocks, "bytes": report.bytes,
        "damage": damage})
    .to_string()
}
