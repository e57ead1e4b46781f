//! Files of other formats: their trees, attaching what is in them, and their states.

use crate::array::Array;
use crate::errors::raise;
use crate::interrupt;
use crate::writer::{Staged, take_all};
use gridstone::base::Id;
use gridstone::engine;
use gridstone_attach::Attached;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// The state of a source: its URI as the store keeps it, size, time of the last change in microseconds, etag.
type SourceState = (String, Option<u64>, Option<i64>, Option<String>);

/// The tree of a file of HDF5, NetCDF or NumPy, or of a folder of Zarr, as JSON.
#[pyfunction]
pub(crate) fn foreign_tree(py: Python<'_>, path: &str) -> PyResult<String> {
    py.detach(|| gridstone_attach::tree(path)).map_err(|e| raise(py, &e))
}

/// The state of a source now.
#[pyfunction]
pub(crate) fn look_at_source(py: Python<'_>, array: &Array, uri: &str) -> PyResult<SourceState> {
    let found = py.detach(|| array.inner.look_at_source(uri)).map_err(|e| raise(py, &e))?;
    Ok((found.uri, found.size, found.time_us, found.etag))
}

/// Stages cells of files of another format; `spec` is JSON.
#[pyfunction]
#[pyo3(signature = (array, spec, grow = false, progress = None))]
pub(crate) fn stage_external(
    py: Python<'_>,
    array: &Array,
    spec: &str,
    grow: bool,
    progress: Option<Py<PyAny>>,
) -> PyResult<Staged> {
    let attached = Attached::parse(spec).map_err(|e| raise(py, &e))?;
    let work = |call: &engine::Call| gridstone_attach::stage(&array.inner, &attached, &call.clone().growing(grow));
    interrupt::run(py, array.inner.context(), progress, work).map(Staged::new)
}

/// The files of other formats that the cells of an array lie in, each as JSON.
#[pyfunction]
pub(crate) fn foreign_sources(py: Python<'_>, array: &Array) -> PyResult<Vec<String>> {
    let look = |call: &engine::Call| array.inner.sources(call);
    let found = interrupt::run(py, array.inner.context(), None, look)?;
    Ok(found.iter().map(engine::SourceState::to_json).collect())
}

/// The boxes of an array that lie in files of other formats, oldest first: a dict each, positions from the low edge of the domain.
#[pyfunction]
pub(crate) fn attached_boxes<'py>(py: Python<'py>, array: &Array) -> PyResult<Vec<Bound<'py, PyDict>>> {
    let found = interrupt::run(py, array.inner.context(), None, |call| array.inner.attached(call))?;
    let schema = array.inner.schema().map_err(|e| raise(py, &e))?;
    let domain = schema.domain();
    let row = |found: engine::AttachedBox| {
        let lows: Vec<u64> =
            found.bounds.ranges().iter().zip(domain.ranges()).map(|(own, all)| own.lo - all.lo).collect();
        let name = |id: &u32| schema.attrs().iter().find(|attr| attr.id() == *id).map(|attr| attr.name().to_owned());
        let row = PyDict::new(py);
        row.set_item("id", found.id.to_string())?;
        row.set_item("position", lows)?;
        row.set_item("shape", found.bounds.shape())?;
        row.set_item("attrs", found.attrs.iter().map(name).collect::<Vec<_>>())?;
        row.set_item("uris", found.sources.into_iter().map(|source| source.uri).collect::<Vec<_>>())?;
        Ok(row)
    };
    found.into_iter().map(row).collect()
}

/// Puts staged cells of files in the place of attached boxes, whose ids these are; gives the version.
#[pyfunction]
pub(crate) fn replace_attached(
    py: Python<'_>,
    array: &Array,
    staged: &Bound<'_, PyAny>,
    replaced: Vec<String>,
) -> PyResult<u64> {
    let ids: Vec<Id> = replaced.iter().map(|id| Id::given(id)).collect::<Result<_, _>>().map_err(|e| raise(py, &e))?;
    let staged = take_all(&array.inner, staged)?;
    interrupt::commit(py, array.inner.context(), || array.inner.replace_attached(staged, &ids))
}
