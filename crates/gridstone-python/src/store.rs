//! Creating, opening and deleting.

use crate::array::Array;
use crate::context::Context;
use crate::errors::{input, raise};
use crate::group::Group;
use gridstone::engine::{self, At, Opened};
use gridstone::schema::Schema;
use pyo3::prelude::*;

#[pyfunction]
pub(crate) fn create_array(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    path: &str,
    schema_json: &str,
    overwrite: bool,
) -> PyResult<Array> {
    let made =
        py.detach(|| engine::create_array(&context.inner, uri, path, Schema::from_json(schema_json)?, overwrite));
    Ok(Array { inner: made.map_err(|e| raise(py, &e))? })
}

#[pyfunction]
pub(crate) fn create_group(py: Python<'_>, context: &Context, uri: &str, path: &str) -> PyResult<Group> {
    let made = py.detach(|| engine::create_group(&context.inner, uri, path));
    Ok(Group { inner: made.map_err(|e| raise(py, &e))? })
}

/// Which version two optional arguments name.
pub(crate) fn at(py: Python<'_>, version: Option<u64>, timestamp_us: Option<i64>) -> PyResult<At> {
    match (version, timestamp_us) {
        (None, None) => Ok(At::Latest),
        (Some(version), None) => Ok(At::Version(version)),
        (None, Some(time_us)) => Ok(At::Time(time_us)),
        (Some(_), Some(_)) => Err(input(py, "give a version or a timestamp, not both")),
    }
}

#[pyfunction]
#[pyo3(signature = (context, uri, path, writable, version, timestamp_us))]
pub(crate) fn open(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    path: &str,
    writable: bool,
    version: Option<u64>,
    timestamp_us: Option<i64>,
) -> PyResult<Py<PyAny>> {
    let at = at(py, version, timestamp_us)?;
    let opened = py.detach(|| engine::open(&context.inner, uri, path, writable, at)).map_err(|e| raise(py, &e))?;
    match opened {
        Opened::Array(inner) => Ok(Py::new(py, Array { inner })?.into_any()),
        Opened::Group(inner) => Ok(Py::new(py, Group { inner })?.into_any()),
    }
}

#[pyfunction]
pub(crate) fn exists(py: Python<'_>, uri: &str) -> PyResult<bool> {
    py.detach(|| engine::exists(uri)).map_err(|e| raise(py, &e))
}

#[pyfunction]
pub(crate) fn delete_store(py: Python<'_>, context: &Context, uri: &str) -> PyResult<()> {
    py.detach(|| engine::delete_store(&context.inner, uri)).map_err(|e| raise(py, &e))
}

#[pyfunction]
pub(crate) fn check_schema(py: Python<'_>, schema_json: &str) -> PyResult<String> {
    Schema::from_json(schema_json).map(|s| s.to_json()).map_err(|e| raise(py, &e))
}
