//! Conditions: made of text, of JSON or of parts; what they mean for a schema, the rows that they select.

use crate::buffer::Buffer;
use crate::columns::{Held, views};
use crate::errors::{input, raise};
use gridstone::engine::{self, Branch, Call};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyDict;

/// A condition on cells. It never changes.
#[pyclass(frozen, eq, hash, module = "gridstone._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    pub(crate) inner: Branch,
}

/// A condition as an argument; the engine keeps it while Python runs.
pub(crate) type GivenCondition<'py> = Bound<'py, Condition>;

/// What the engine takes of a condition that Python gives.
pub(crate) fn branch(given: &GivenCondition<'_>) -> Branch {
    given.get().inner.clone()
}

impl Condition {
    pub(crate) fn of(py: Python<'_>, found: gridstone::base::Result<Branch>) -> PyResult<Self> {
        found.map(|inner| Self { inner }).map_err(|e| raise(py, &e))
    }
}

#[pymethods]
impl Condition {
    #[staticmethod]
    fn from_json(py: Python<'_>, text: &str) -> PyResult<Self> {
        let found = py.detach(|| engine::Condition::from_json(text).map(Branch::from));
        Self::of(py, found)
    }

    #[staticmethod]
    fn constant(py: Python<'_>, value: bool) -> PyResult<Self> {
        Self::of(py, Branch::new(if value { engine::Condition::True {} } else { engine::Condition::False {} }))
    }

    fn negated(&self, py: Python<'_>) -> PyResult<Self> {
        Self::of(py, self.inner.negated())
    }

    fn both(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::of(py, self.inner.and(&other.inner))
    }

    fn either(&self, py: Python<'_>, other: &Self) -> PyResult<Self> {
        Self::of(py, self.inner.or(&other.inner))
    }

    #[getter]
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.to_string())
    }

    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.to_json())
    }

    fn check(&self, py: Python<'_>, schema_json: &str) -> PyResult<String> {
        let listing = py.detach(|| engine::check_condition(&self.inner, &Schema::from_json(schema_json)?));
        let l = listing.map_err(|e| raise(py, &e))?;
        Ok(serde_json::json!({"columns": l.columns, "box": l.bounds, "constant": l.constant}).to_string())
    }

    fn select_rows(&self, py: Python<'_>, schema_json: &str, columns: &Bound<'_, PyDict>) -> PyResult<Buffer> {
        let schema = Schema::from_json(schema_json).map_err(|e| raise(py, &e))?;
        let hold = |(name, given): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
            let name: String = name.extract()?;
            let dim = schema.coordinates().find(|d| d.name() == name).map(|d| d.datatype());
            let attr = schema.attrs().iter().find(|a| a.name() == name).map(|a| a.datatype());
            let datatype = dim.or(attr).ok_or_else(|| input(py, &format!("the schema has no column {name:?}")))?;
            Ok((name, Held::new(datatype, &given)?))
        };
        let held = columns.iter().map(hold).collect::<PyResult<Vec<_>>>()?;
        let found = py.detach(|| engine::select_rows(&self.inner, &schema, &views(&held, &Call::default())?));
        let found = found.map_err(|e| raise(py, &e))?;
        Ok(Buffer::from((0..found.len()).map(|row| u8::from(found.contains(row))).collect::<Vec<u8>>()))
    }
}

#[pyfunction]
pub(crate) fn parse_condition(py: Python<'_>, text: &str) -> PyResult<Condition> {
    Condition::of(py, py.detach(|| engine::Condition::parse(text).map(Branch::from)))
}

#[pyfunction]
pub(crate) fn check_condition(py: Python<'_>, condition_json: &str, schema_json: &str) -> PyResult<String> {
    Condition::from_json(py, condition_json)?.check(py, schema_json)
}

#[pyfunction]
pub(crate) fn select_rows(
    py: Python<'_>,
    condition_json: &str,
    schema_json: &str,
    columns: &Bound<'_, PyDict>,
) -> PyResult<Buffer> {
    Condition::from_json(py, condition_json)?.select_rows(py, schema_json, columns)
}
