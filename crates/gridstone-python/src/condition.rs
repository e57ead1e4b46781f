//! Conditions: made of text, of JSON or of parts; what they mean for a schema, the rows that they select.

use crate::array::Array;
use crate::boxes::{Boxes, region};
use crate::buffer::Buffer;
use crate::columns::{Held, views};
use crate::errors::{input, raise};
use crate::interrupt;
use crate::writer::Staged;
use gridstone::engine::{self, Branch, Call, Comparison, Literal};
use gridstone::schema::{Datatype, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyDict, PyFloat, PyInt, PyString};

/// A condition on cells. It never changes.
#[pyclass(frozen, eq, hash, module = "gridstone._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Condition {
    inner: Branch,
}

/// A condition as an argument; the engine keeps it while Python runs.
pub(crate) type GivenCondition<'py> = Bound<'py, Condition>;

/// What the engine takes of a condition that Python gives.
pub(crate) fn branch(given: &GivenCondition<'_>) -> Branch {
    given.get().inner.clone()
}

/// A value beside a column: `(dtype, ticks)` is a time, NaT without ticks.
struct Value(Literal);

impl<'py> FromPyObject<'_, 'py> for Value {
    type Error = PyErr;

    fn extract(given: Borrowed<'_, 'py, PyAny>) -> PyResult<Self> {
        let found = if let Ok(flag) = given.cast::<PyBool>() {
            Literal::Bool(flag.is_true())
        } else if given.is_instance_of::<PyInt>() {
            Literal::Int(given.extract::<i64>().map(i128::from).or_else(|_| given.extract())?)
        } else if let Ok(float) = given.cast::<PyFloat>() {
            Literal::Float(float.value())
        } else if given.is_instance_of::<PyString>() {
            Literal::Text(given.extract()?)
        } else if let Ok(bytes) = given.cast::<PyBytes>() {
            Literal::Bytes(bytes.as_bytes().to_vec())
        } else {
            let (name, ticks): (String, Option<i64>) = given.extract()?;
            time(given.py(), &name, ticks.unwrap_or(i64::MIN))?
        };
        Ok(Self(found))
    }
}

fn time(py: Python<'_>, name: &str, ticks: i64) -> PyResult<Literal> {
    let datatype = Datatype::parse(name).map_err(|e| raise(py, &e))?;
    let units = |count: u32| {
        let units = if ticks == i64::MIN { Some(ticks) } else { ticks.checked_mul(i64::from(count)) };
        let beyond = || {
            input(
                py,
                &format!("a time of {datatype} is beyond 64 bits when single units are counted; give a coarser unit"),
            )
        };
        units.filter(|units| ticks == i64::MIN || *units > i64::MIN).ok_or_else(beyond)
    };
    match datatype {
        Datatype::Datetime(step) => Ok(Literal::Datetime(units(step.count())?, step.unit())),
        Datatype::Timedelta(step) => Ok(Literal::Timedelta(units(step.count())?, step.unit())),
        other => Err(input(py, &format!("{other} is no type of times"))),
    }
}

impl Condition {
    fn leaf(py: Python<'_>, condition: engine::Condition) -> PyResult<Self> {
        Self::of(py, Branch::new(condition))
    }

    fn of(py: Python<'_>, found: gridstone::base::Result<Branch>) -> PyResult<Self> {
        found.map(|inner| Self { inner }).map_err(|e| raise(py, &e))
    }

    fn comparison(py: Python<'_>, sign: &str) -> PyResult<Comparison> {
        Comparison::parse(sign).map_err(|e| raise(py, &e))
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
        Self::leaf(py, if value { engine::Condition::True {} } else { engine::Condition::False {} })
    }

    #[staticmethod]
    fn column(py: Python<'_>, column: String) -> PyResult<Self> {
        Self::leaf(py, engine::Condition::Column { column })
    }

    #[staticmethod]
    fn compare(py: Python<'_>, column: String, sign: &str, value: Value) -> PyResult<Self> {
        let is = Self::comparison(py, sign)?;
        Self::leaf(py, engine::Condition::Compare { is, column, value: value.0 })
    }

    #[staticmethod]
    fn compare_columns(py: Python<'_>, left: String, sign: &str, right: String) -> PyResult<Self> {
        let is = Self::comparison(py, sign)?;
        Self::leaf(py, engine::Condition::CompareColumns { is, left, right })
    }

    #[staticmethod]
    fn among(py: Python<'_>, column: String, values: Vec<Value>) -> PyResult<Self> {
        let values = values.into_iter().map(|value| value.0).collect();
        Self::leaf(py, engine::Condition::In { column, values })
    }

    #[staticmethod]
    fn between(py: Python<'_>, column: String, low: Value, high: Value) -> PyResult<Self> {
        Self::leaf(py, engine::Condition::Between { column, low: low.0, high: high.0 })
    }

    #[staticmethod]
    fn null(py: Python<'_>, column: String) -> PyResult<Self> {
        Self::leaf(py, engine::Condition::IsNull { column })
    }

    #[staticmethod]
    fn not_null(py: Python<'_>, column: String) -> PyResult<Self> {
        Self::leaf(py, engine::Condition::IsNotNull { column })
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
        Ok(listing.map_err(|e| raise(py, &e))?.to_json())
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

/// Stages what deletes the cells in boxes that a condition selects, in a transaction.
#[pyfunction]
#[pyo3(signature = (array, boxes, condition, progress = None))]
pub(crate) fn stage_delete_where(
    py: Python<'_>,
    array: &Array,
    boxes: Option<Boxes>,
    condition: GivenCondition<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Staged> {
    let (region, condition) = (region(py, &array.inner, boxes)?, branch(&condition));
    let work = |call: &engine::Call| array.inner.stage_deletion_where(region.as_ref(), &condition, call);
    interrupt::run(py, array.inner.context(), progress, work).map(Staged::new)
}
