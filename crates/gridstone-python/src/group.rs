//! Groups.

use crate::array::Array;
use crate::context::Context;
use crate::interrupt;
use crate::retention::options;
use crate::store::handle;
use gridstone::engine;
use gridstone::schema::Schema;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// A group at one version of its store.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Group {
    pub(crate) inner: engine::Group,
}

impl Group {
    fn ask<R: Send>(&self, py: Python<'_>, work: impl FnOnce() -> gridstone::base::Result<R> + Send) -> PyResult<R> {
        interrupt::ask(py, self.inner.context(), &self.inner.uri(), work)
    }
}

#[pymethods]
impl Group {
    #[getter]
    fn uri(&self) -> String {
        self.inner.uri()
    }

    #[getter]
    fn path(&self) -> String {
        self.inner.path().to_owned()
    }

    #[getter]
    fn version(&self) -> u64 {
        self.inner.version()
    }

    /// The id of the key that seals the store, in hexadecimal digits; None if it is not sealed.
    #[getter]
    fn key_id(&self) -> Option<String> {
        self.inner.key_id().map(|id| id.to_string())
    }

    #[getter]
    fn tags(&self, py: Python<'_>) -> PyResult<Vec<(String, u64)>> {
        self.ask(py, || self.inner.tags())
    }

    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn vacuum(
        &self,
        py: Python<'_>,
        context: &Context,
        keep_us: Option<i64>,
        versions: Option<u64>,
        safety_us: i64,
        dry_run: bool,
        progress: Option<Py<PyAny>>,
    ) -> PyResult<String> {
        let options = options(py, keep_us, versions, safety_us, dry_run)?;
        interrupt::run(py, &context.inner, progress, |call| self.inner.vacuum(&options, call))
            .map(|report| report.to_json())
    }

    fn meta_get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        self.ask(py, || self.inner.metadata(key))
    }

    fn meta_keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, || self.inner.metadata_keys())
    }

    fn meta_set(&self, py: Python<'_>, changes: BTreeMap<String, Option<String>>) -> PyResult<u64> {
        interrupt::commit(py, self.inner.context(), || self.inner.set_metadata(changes.into_iter().collect()))
    }

    /// The same group at the newest version of its store, wherever it was moved to.
    fn refreshed(&self, py: Python<'_>, context: &Context) -> PyResult<Self> {
        let inner = interrupt::ask(py, &context.inner, &self.inner.uri(), || self.inner.refreshed())?;
        Ok(Self { inner })
    }

    /// The versions of the store up to this one, or a newer one if it is vacuumed meanwhile; oldest first, each as JSON.
    fn history(&self, py: Python<'_>, context: &Context, pinned: bool) -> PyResult<Vec<String>> {
        let versions = interrupt::run(py, &context.inner, None, |call| self.inner.history(pinned, call))?;
        Ok(versions.iter().map(engine::VersionListing::to_json).collect())
    }

    /// (name, "array" | "group") of each child, sorted by name.
    fn children(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        self.ask(py, || self.inner.children())
    }

    /// (path, "array" | "group") of everything below, each group followed by what is in it.
    fn walk(&self, py: Python<'_>) -> PyResult<Vec<(String, &'static str)>> {
        self.ask(py, || self.inner.walk())
    }

    fn contains(&self, py: Python<'_>, name: &str) -> PyResult<bool> {
        self.ask(py, || self.inner.contains(name))
    }

    /// The array or group called `name`, or at this path below, of this version.
    fn open(&self, py: Python<'_>, name: &str, writable: bool, pinned: bool) -> PyResult<Py<PyAny>> {
        handle(py, self.ask(py, || self.inner.open(name, writable, pinned))?)
    }

    fn create_array(
        &self,
        py: Python<'_>,
        context: &Context,
        name: &str,
        schema_json: &str,
        overwrite: bool,
    ) -> PyResult<Array> {
        let make = || self.inner.create_array(name, Schema::from_json(schema_json)?, overwrite);
        Ok(Array { inner: interrupt::ask(py, &context.inner, &self.inner.uri(), make)? })
    }

    fn create_group(&self, py: Python<'_>, context: &Context, name: &str) -> PyResult<Self> {
        let make = || self.inner.create_group(name);
        Ok(Self { inner: interrupt::ask(py, &context.inner, &self.inner.uri(), make)? })
    }

    #[pyo3(signature = (context, name, message))]
    fn remove(&self, py: Python<'_>, context: &Context, name: &str, message: Option<&str>) -> PyResult<u64> {
        interrupt::ask(py, &context.inner, &self.inner.uri(), || self.inner.remove(name, message))
    }

    #[pyo3(signature = (context, name, target, message))]
    fn move_child(
        &self,
        py: Python<'_>,
        context: &Context,
        name: &str,
        target: &str,
        message: Option<&str>,
    ) -> PyResult<u64> {
        interrupt::ask(py, &context.inner, &self.inner.uri(), || self.inner.move_child(name, target, message))
    }
}
