//! Listings of tiles, as Python gets them.

use crate::buffer::Buffer;
use crate::columns::{Out, out};
use crate::errors::raise;
use gridstone::base::AlignedBuf;
use gridstone::engine::{self, TileListing};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyDict;

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
