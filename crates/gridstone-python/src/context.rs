//! The context: budget, threads, cache, durability, keys.

use crate::errors::{input, raise};
use crate::journal;
use crate::keys::Keys;
use gridstone::engine::{self, AutoConsolidate, Durability, Options, StorageOptions};
use pyo3::prelude::*;
use std::collections::HashMap;

/// Memory budget, threads, cache, durability and keys shared by everything opened with it.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Context {
    pub(crate) inner: engine::Context,
}

#[pymethods]
impl Context {
    #[new]
    #[pyo3(signature = (memory_budget, threads, cache, durability, verify, auto_consolidate, keys=None, storage_options=None, sources=None))]
    #[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
    fn new(
        py: Python<'_>,
        memory_budget: u64,
        threads: Option<usize>,
        cache: u64,
        durability: &str,
        verify: &str,
        auto_consolidate: Option<(u64, u64)>,
        keys: Option<&Keys>,
        storage_options: Option<HashMap<String, String>>,
        sources: Option<Vec<String>>,
    ) -> PyResult<Self> {
        let durability = match durability {
            "full" => Durability::Full,
            "close" => Durability::Close,
            other => return Err(input(py, &format!("unknown durability {other:?}; it is \"full\" or \"close\""))),
        };
        // Every block is checked whenever it is decoded, which keeps both promises.
        if !matches!(verify, "once" | "always") {
            return Err(input(py, &format!("unknown verify {verify:?}; it is \"once\" or \"always\"")));
        }
        let key = keys.map(|keys| keys.inner.clone());
        let auto_consolidate =
            auto_consolidate.map(|(fragments, target_bytes)| AutoConsolidate { fragments, target_bytes });
        let storage_options = StorageOptions::new(storage_options.unwrap_or_default()).map_err(|e| raise(py, &e))?;
        let options = Options {
            memory_budget,
            threads,
            cache,
            durability,
            key,
            auto_consolidate,
            storage_options,
            sources,
            events: Some(journal::events()),
            ..Options::default()
        };
        let inner = engine::Context::new(&options).map_err(|e| raise(py, &e))?;
        Ok(Self { inner })
    }

    /// The same context, which may also read files of other formats under these prefixes.
    fn allowing(&self, py: Python<'_>, sources: Vec<String>) -> PyResult<Self> {
        let inner = self.inner.allowing(&sources).map_err(|e| raise(py, &e))?;
        Ok(Self { inner })
    }

    #[getter]
    fn sources(&self) -> Vec<String> {
        self.inner.sources().to_vec()
    }

    #[getter]
    fn threads(&self) -> usize {
        self.inner.threads()
    }

    #[getter]
    fn peak_bytes(&self) -> u64 {
        self.inner.peak_bytes()
    }
}
