//! Values computed of cells: made of text, of JSON or of parts; the conditions that they make when they are compared.

use crate::condition::Condition;
use crate::errors::{input, raise};
use gridstone::base::Result;
use gridstone::engine::{self, Branch, Comparison, Expression, Literal, Operator, Term, When};
use gridstone::schema::Datatype;
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyFloat, PyInt, PyString};

/// A value computed of cells. It never changes.
#[pyclass(frozen, eq, hash, module = "gridstone._native")]
#[derive(PartialEq, Eq, Hash)]
pub(crate) struct Value {
    inner: Term,
}

/// A literal: `(dtype, ticks)` is a time, NaT without ticks.
pub(crate) struct Given(Literal);

impl<'py> FromPyObject<'_, 'py> for Given {
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
        let beyond =
            || input(py, &format!("{ticks} of {datatype} are beyond 64 bits when they are counted in one unit"));
        units.filter(|units| ticks == i64::MIN || *units > i64::MIN).ok_or_else(beyond)
    };
    match datatype {
        Datatype::Datetime(step) => Ok(Literal::Datetime(units(step.count())?, step.unit())),
        Datatype::Timedelta(step) => Ok(Literal::Timedelta(units(step.count())?, step.unit())),
        other => Err(input(py, &format!("{other} is no type of times"))),
    }
}

impl Value {
    fn of(py: Python<'_>, found: Result<Term>) -> PyResult<Self> {
        found.map(|inner| Self { inner }).map_err(|e| raise(py, &e))
    }

    fn made(py: Python<'_>, expression: Expression) -> PyResult<Self> {
        Self::of(py, Term::new(expression))
    }

    fn tree(&self) -> Expression {
        (*self.inner).clone()
    }
}

fn condition(py: Python<'_>, found: Result<engine::Condition>) -> PyResult<Condition> {
    Condition::of(py, found.and_then(Branch::new))
}

#[pymethods]
impl Value {
    #[new]
    fn new(py: Python<'_>, value: Given, is_column: bool) -> PyResult<Self> {
        match value.0 {
            Literal::Text(column) if is_column => Self::made(py, Expression::Column { column }),
            value => Self::made(py, Expression::Literal { value }),
        }
    }

    #[staticmethod]
    fn parse(py: Python<'_>, text: &str, is_json: bool) -> PyResult<Self> {
        let parse = if is_json { Expression::from_json } else { Expression::parse };
        Self::of(py, py.detach(|| parse(text).map(Term::from)))
    }

    #[staticmethod]
    fn function(py: Python<'_>, name: String, args: Vec<PyRef<'_, Self>>) -> PyResult<Self> {
        let args: Vec<Term> = args.iter().map(|arg| arg.inner.clone()).collect();
        let expression = match (Operator::parse(&name), args.as_slice()) {
            (Ok(Operator::Subtract), [arg]) => Expression::Negate { arg: arg.clone() },
            (Ok(operator), [left, right]) => {
                Expression::Binary { operator, left: left.clone(), right: right.clone() }
            }
            _ => Expression::Function { name, args },
        };
        Self::made(py, expression)
    }

    #[staticmethod]
    #[pyo3(signature = (whens, otherwise))]
    fn case(
        py: Python<'_>,
        whens: Vec<(PyRef<'_, Condition>, Option<PyRef<'_, Self>>)>,
        otherwise: Option<PyRef<'_, Self>>,
    ) -> PyResult<Self> {
        let when = |(when, then): &(PyRef<'_, Condition>, Option<PyRef<'_, Self>>)| When {
            when: when.inner.clone(),
            then: then.as_ref().map(|then| then.inner.clone()),
        };
        let whens: Vec<When> = whens.iter().map(when).collect();
        if whens.is_empty() {
            return Err(input(py, "case takes one condition with its value at least"));
        }
        Self::made(py, Expression::Case { whens, otherwise: otherwise.map(|value| value.inner.clone()) })
    }

    fn cast(&self, py: Python<'_>, to: &str) -> PyResult<Self> {
        Self::of(py, Expression::cast(self.inner.clone(), to).and_then(Term::new))
    }

    fn compare(&self, py: Python<'_>, sign: &str, other: &Self) -> PyResult<Condition> {
        let is = Comparison::parse(sign).map_err(|e| raise(py, &e))?;
        condition(py, engine::Condition::compared(self.tree(), is, other.tree()))
    }

    fn among(&self, py: Python<'_>, values: Vec<Given>) -> PyResult<Condition> {
        let values = values.into_iter().map(|value| value.0).collect();
        condition(py, engine::Condition::among(self.tree(), values))
    }

    fn between(&self, py: Python<'_>, low: &Self, high: &Self) -> PyResult<Condition> {
        condition(py, engine::Condition::ranged(self.tree(), low.tree(), high.tree()))
    }

    fn null(&self, py: Python<'_>, wanted: bool) -> PyResult<Condition> {
        let made = if wanted { engine::Condition::null } else { engine::Condition::not_null };
        condition(py, made(self.tree()))
    }

    fn truth(&self, py: Python<'_>) -> PyResult<Condition> {
        condition(py, engine::Condition::by_itself(self.tree()))
    }

    #[getter]
    fn text(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.to_string())
    }

    fn to_json(&self, py: Python<'_>) -> String {
        py.detach(|| self.inner.to_json())
    }
}
