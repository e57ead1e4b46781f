//! Transactions, and commits of receipts.

use crate::array::Array;
use crate::context::Context;
use crate::errors::raise;
use crate::interrupt::{self, ask};
use crate::store::{GivenKey, commit_key_of, naming};
use gridstone::base::Id;
use gridstone::engine::{self, CommitKey, Isolation, Receipt};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// Changes of any number of arrays that become one version, or none.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Transaction {
    inner: engine::Transaction,
}

#[pymethods]
impl Transaction {
    #[new]
    #[pyo3(signature = (context, uri, isolation, commit_key = None))]
    fn new(
        py: Python<'_>,
        context: &Context,
        uri: &str,
        isolation: &str,
        commit_key: Option<GivenKey>,
    ) -> PyResult<Self> {
        let begin = || {
            let begun = engine::Transaction::begin(&context.inner, uri, Isolation::parse(isolation)?)?;
            match commit_key {
                Some((bytes, is_load)) => begun.with_key(CommitKey::new(&bytes)?, naming(is_load)),
                None => Ok(begun),
            }
        };
        Ok(Self { inner: ask(py, &context.inner, uri, begin)? })
    }

    #[getter]
    fn uri(&self) -> String {
        self.inner.uri()
    }

    #[getter]
    fn base_version(&self) -> u64 {
        self.inner.base_version()
    }

    #[getter]
    fn version(&self, py: Python<'_>) -> Option<u64> {
        py.detach(|| self.inner.version())
    }

    #[getter]
    fn is_open(&self, py: Python<'_>) -> bool {
        py.detach(|| self.inner.is_open())
    }

    fn array(&self, py: Python<'_>, path: &str) -> PyResult<Array> {
        let inner = py.detach(|| self.inner.array(path)).map_err(|e| raise(py, &e))?;
        Ok(Array { inner })
    }

    fn kind(&self, py: Python<'_>, path: &str) -> PyResult<Option<&'static str>> {
        py.detach(|| self.inner.kind(path)).map_err(|e| raise(py, &e))
    }

    fn children(&self, py: Python<'_>, path: &str) -> PyResult<Vec<(String, &'static str)>> {
        py.detach(|| self.inner.children(path)).map_err(|e| raise(py, &e))
    }

    #[pyo3(signature = (path, schema_json, overwrite, id = None))]
    fn create_array(
        &self,
        py: Python<'_>,
        path: &str,
        schema_json: &str,
        overwrite: bool,
        id: Option<&str>,
    ) -> PyResult<Array> {
        let made = py.detach(|| {
            let schema = Schema::from_json(schema_json)?;
            match id {
                Some(id) => self.inner.create_array_as(Id::given(id)?, path, schema, overwrite),
                None => self.inner.create_array(path, schema, overwrite),
            }
        });
        Ok(Array { inner: made.map_err(|e| raise(py, &e))? })
    }

    fn add_receipts(&self, py: Python<'_>, receipts: Vec<String>) -> PyResult<()> {
        ask(py, self.inner.context(), &self.inner.uri(), || {
            let receipts = receipts.iter().map(|text| Receipt::from_json(text)).collect::<Result<Vec<_>, _>>()?;
            self.inner.add_receipts(&receipts)
        })
    }

    fn meta_get(&self, py: Python<'_>, path: &str, key: &str) -> PyResult<Option<String>> {
        let found = py.detach(|| self.inner.metadata(path)).map_err(|e| raise(py, &e))?;
        Ok(found.get(key).cloned())
    }

    fn meta_keys(&self, py: Python<'_>, path: &str) -> PyResult<Vec<String>> {
        let found = py.detach(|| self.inner.metadata(path)).map_err(|e| raise(py, &e))?;
        Ok(found.keys().cloned().collect())
    }

    fn meta_set(&self, py: Python<'_>, path: &str, changes: BTreeMap<String, Option<String>>) -> PyResult<()> {
        let changes: Vec<_> = changes.into_iter().collect();
        py.detach(|| self.inner.set_metadata(path, &changes)).map_err(|e| raise(py, &e))
    }

    fn create_group(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| self.inner.create_group(path)).map_err(|e| raise(py, &e))
    }

    fn remove(&self, py: Python<'_>, path: &str) -> PyResult<()> {
        py.detach(|| self.inner.remove(path)).map_err(|e| raise(py, &e))
    }

    fn move_node(&self, py: Python<'_>, path: &str, target_path: &str) -> PyResult<()> {
        py.detach(|| self.inner.move_node(path, target_path)).map_err(|e| raise(py, &e))
    }

    #[pyo3(signature = (message))]
    fn commit(&self, py: Python<'_>, message: Option<String>) -> PyResult<u64> {
        interrupt::commit(py, self.inner.context(), || self.inner.commit(message))
    }

    fn abort(&self, py: Python<'_>) {
        py.detach(|| self.inner.abort());
    }
}

#[pyfunction]
#[pyo3(signature = (context, uri, receipts, message, commit_key = None))]
pub(crate) fn commit_receipts(
    py: Python<'_>,
    context: &Context,
    uri: &str,
    receipts: Vec<String>,
    message: Option<String>,
    commit_key: Option<Vec<u8>>,
) -> PyResult<u64> {
    let key = commit_key_of(py, commit_key)?;
    let commit = || {
        let receipts = receipts.iter().map(|text| Receipt::from_json(text)).collect::<Result<Vec<_>, _>>()?;
        engine::commit_receipts_once(&context.inner, uri, &receipts, message, key)
    };
    interrupt::commit(py, &context.inner, commit)
}

/// What a receipt says for people: its JSON made anew, and the cells and bytes of its fragments.
#[pyfunction]
pub(crate) fn check_receipt(py: Python<'_>, text: &str) -> PyResult<(String, u64, u64)> {
    let receipt = Receipt::from_json(text).map_err(|e| raise(py, &e))?;
    let text = receipt.to_json().map_err(|e| raise(py, &e))?;
    Ok((text, receipt.cells(), receipt.bytes()))
}
