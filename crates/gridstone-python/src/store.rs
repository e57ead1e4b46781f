//! Creating, opening and deleting.

use crate::array::Array;
use crate::context::Context;
use crate::errors::{input, raise};
use crate::group::Group;
use crate::interrupt::ask;
use gridstone::engine::{self, At, CommitKey, Naming, Opened};
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
    let make = || engine::create_array(&context.inner, uri, path, Schema::from_json(schema_json)?, overwrite);
    Ok(Array { inner: ask(py, &context.inner, uri, make)? })
}

#[pyfunction]
pub(crate) fn create_group(py: Python<'_>, context: &Context, uri: &str, path: &str) -> PyResult<Group> {
    Ok(Group { inner: ask(py, &context.inner, uri, || engine::create_group(&context.inner, uri, path))? })
}

/// A commit key, and whether it is that of a load, which is named by its path.
pub(crate) type GivenKey = (Vec<u8>, bool);

/// How the content of a commit names its array.
pub(crate) fn naming(is_load: bool) -> Naming {
    if is_load { Naming::Path } else { Naming::Id }
}

/// The commit key of these bytes.
pub(crate) fn commit_key_of(py: Python<'_>, bytes: Option<Vec<u8>>) -> PyResult<Option<CommitKey>> {
    bytes.map(|bytes| CommitKey::new(&bytes).map_err(|e| raise(py, &e))).transpose()
}

/// A version by its number or by its tag.
#[derive(FromPyObject)]
pub(crate) enum Version {
    Number(u64),
    Tag(String),
}

impl Version {
    /// The number, and the tag.
    pub(crate) fn parts(version: Option<Self>) -> (Option<u64>, Option<String>) {
        match version {
            None => (None, None),
            Some(Self::Number(number)) => (Some(number), None),
            Some(Self::Tag(name)) => (None, Some(name)),
        }
    }
}

#[pyfunction]
pub(crate) fn tag(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    name: &str,
    version: Option<u64>,
    replace: bool,
) -> PyResult<u64> {
    ask(py, &context.inner, uri, || engine::tag(&context.inner, uri, name, version, replace))
}

#[pyfunction]
pub(crate) fn untag(py: Python<'_>, context: &Context, uri: &str, name: &str) -> PyResult<u64> {
    ask(py, &context.inner, uri, || engine::untag(&context.inner, uri, name))
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
    version: Option<Version>,
    timestamp_us: Option<i64>,
) -> PyResult<Py<PyAny>> {
    let (number, tag) = Version::parts(version);
    let at = at(py, number, timestamp_us)?;
    let opened = ask(py, &context.inner, uri, || match tag {
        Some(tag) => engine::open_tagged(&context.inner, uri, path, &tag),
        None => engine::open(&context.inner, uri, path, writable, at),
    });
    handle(py, opened?)
}

/// What was opened as Python has it.
pub(crate) fn handle(py: Python<'_>, opened: Opened) -> PyResult<Py<PyAny>> {
    match opened {
        Opened::Array(inner) => Ok(Py::new(py, Array { inner })?.into_any()),
        Opened::Group(inner) => Ok(Py::new(py, Group { inner })?.into_any()),
    }
}

#[pyfunction]
pub(crate) fn exists(py: Python<'_>, context: &Context, uri: &str) -> PyResult<bool> {
    ask(py, &context.inner, uri, || engine::exists(&context.inner, uri))
}

#[pyfunction]
pub(crate) fn delete_store(py: Python<'_>, context: &Context, uri: &str) -> PyResult<()> {
    ask(py, &context.inner, uri, || engine::delete_store(&context.inner, uri))
}

#[pyfunction]
pub(crate) fn check_schema(py: Python<'_>, schema_json: &str) -> PyResult<String> {
    Schema::from_json(schema_json).map(|s| s.to_json()).map_err(|e| raise(py, &e))
}
