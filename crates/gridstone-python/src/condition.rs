//! Conditions: text, JSON, what they mean for a schema, the rows that they select.

use crate::buffer::Buffer;
use crate::columns::{Held, views};
use crate::errors::{input, raise};
use gridstone::engine::{self, Call, Condition};
use gridstone::schema::Schema;
use pyo3::prelude::*;
use pyo3::types::PyDict;

#[pyfunction]
pub(crate) fn parse_condition(py: Python<'_>, text: &str) -> PyResult<String> {
    py.detach(|| Condition::parse(text).map(|c| c.to_json())).map_err(|e| raise(py, &e))
}

#[pyfunction]
pub(crate) fn print_condition(py: Python<'_>, condition_json: &str) -> PyResult<String> {
    py.detach(|| Condition::from_json(condition_json).map(|c| c.to_string())).map_err(|e| raise(py, &e))
}

#[pyfunction]
pub(crate) fn check_condition(py: Python<'_>, condition_json: &str, schema_json: &str) -> PyResult<String> {
    let listing =
        py.detach(|| engine::check_condition(&Condition::from_json(condition_json)?, &Schema::from_json(schema_json)?));
    let l = listing.map_err(|e| raise(py, &e))?;
    Ok(serde_json::json!({"columns": l.columns, "box": l.bounds, "constant": l.constant}).to_string())
}

#[pyfunction]
pub(crate) fn select_rows(
    py: Python<'_>,
    condition_json: &str,
    schema_json: &str,
    columns: &Bound<'_, PyDict>,
) -> PyResult<Buffer> {
    let schema = Schema::from_json(schema_json).map_err(|e| raise(py, &e))?;
    let hold = |(name, given): (Bound<'_, PyAny>, Bound<'_, PyAny>)| {
        let name: String = name.extract()?;
        let dim = schema.coordinates().find(|d| d.name() == name).map(|d| d.datatype());
        let attr = schema.attrs().iter().find(|a| a.name() == name).map(|a| a.datatype());
        let datatype = dim.or(attr).ok_or_else(|| input(py, &format!("the schema has no column {name:?}")))?;
        Ok((name, Held::new(datatype, &given)?))
    };
    let held = columns.iter().map(hold).collect::<PyResult<Vec<_>>>()?;
    let found = py.detach(|| {
        let condition = Condition::from_json(condition_json)?;
        engine::select_rows(&condition, &schema, &views(&held, &Call::default())?)
    });
    let found = found.map_err(|e| raise(py, &e))?;
    Ok(Buffer::from((0..found.len()).map(|row| u8::from(found.contains(row))).collect::<Vec<u8>>()))
}
