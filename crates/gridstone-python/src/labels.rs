//! Labels of dimensions, and metadata of attributes and dimensions.

use crate::array::Array;
use crate::columns::{Held, columns};
use crate::errors::raise;
use crate::interrupt;
use gridstone::engine::{self, Listed};
use gridstone::schema::{Datatype, Evolution};
use pyo3::prelude::*;
use std::collections::BTreeMap;

/// The name of a dimension, the type of its labels, and the column of them.
pub(crate) type GivenLabels<'py> = (String, String, Bound<'py, PyAny>);

/// Takes hold of the column.
pub(crate) fn hold(py: Python<'_>, (name, dtype, column): GivenLabels<'_>) -> PyResult<(String, Held)> {
    let datatype = Datatype::parse(&dtype).map_err(|e| raise(py, &e))?;
    Ok((name, Held::new(datatype, &column)?))
}

/// The hidden array that the labels of the dimension at a place lie in.
#[pyfunction]
pub(crate) fn labels_of(py: Python<'_>, array: &Array, place: usize) -> PyResult<Option<Array>> {
    let found = interrupt::look(py, &array.inner, || array.inner.labels(place))?;
    Ok(found.map(|inner| Array { inner }))
}

/// Changes the schema, and lists labels of dimensions, in one commit; gives its version.
#[pyfunction]
#[pyo3(signature = (array, evolution_json, listed, message))]
pub(crate) fn alter_labelled(
    py: Python<'_>,
    array: &Array,
    evolution_json: &str,
    listed: Vec<GivenLabels<'_>>,
    message: Option<String>,
) -> PyResult<u64> {
    let held = listed.into_iter().map(|given| hold(py, given)).collect::<PyResult<Vec<_>>>()?;
    interrupt::run(py, array.inner.context(), None, |call| {
        let named = held.iter().zip(columns(&held, call)?);
        let listed: Vec<_> = named.map(|((name, _), values)| Listed { dimension: name.clone(), values }).collect();
        array.inner.alter_labelled(&Evolution::from_json(evolution_json)?, &listed, message, call)
    })
}

/// An attribute or dimension of an array, by its name: what has metadata.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Field {
    array: Py<Array>,
    name: String,
}

impl Field {
    fn ask<R: Send>(
        &self,
        py: Python<'_>,
        work: impl FnOnce(&engine::Array, engine::Field) -> gridstone::base::Result<R> + Send,
    ) -> PyResult<R> {
        let inner = &self.array.get().inner;
        interrupt::ask(py, inner.context(), &inner.uri(), || work(inner, inner.field(&self.name)?))
    }
}

#[pymethods]
impl Field {
    #[new]
    fn new(array: Py<Array>, name: String) -> Self {
        Self { array, name }
    }

    fn meta_get(&self, py: Python<'_>, key: &str) -> PyResult<Option<String>> {
        self.ask(py, |array, field| array.field_metadata(field, key))
    }

    fn meta_keys(&self, py: Python<'_>) -> PyResult<Vec<String>> {
        self.ask(py, |array, field| Ok(array.all_field_metadata(field)?.keys().cloned().collect()))
    }

    fn meta_set(&self, py: Python<'_>, changes: BTreeMap<String, Option<String>>) -> PyResult<u64> {
        let inner = &self.array.get().inner;
        interrupt::commit(py, inner.context(), || {
            inner.set_field_metadata(inner.field(&self.name)?, changes.into_iter().collect())
        })
    }
}

/// The id of the array at `path` that the labels of a dimension can lie in, which others may share.
#[pyfunction]
pub(crate) fn shared_labels(py: Python<'_>, array: &Array, dimension: &str, path: &str) -> PyResult<String> {
    Ok(interrupt::look(py, &array.inner, || array.inner.shared_labels(dimension, path))?.to_string())
}
