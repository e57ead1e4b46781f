//! Questions: aggregates by groups, their partial results, and answers.

use crate::array::Array;
use crate::boxes::{Boxes, region};
use crate::cells::stats_dict;
use crate::columns::{Held, Out, columns, out};
use crate::condition::{GivenCondition, branch};
use crate::errors::{input, raise};
use crate::interrupt;
use crate::labels::{GivenLabels, hold};
use gridstone::base::CounterSnapshot;
use gridstone::engine::{
    self, Aggregate, Answer, AnswerStream, Branch, By, Column, Counted, Ending, Expression, PartialTable, Question,
    Width,
};
use gridstone::schema::{Region, Schema};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyInt};
use std::sync::{Arc, Mutex, PoisonError};

/// A key: its name, its value, and the width of its bins.
type GivenKey<'py> = (String, String, Option<Bound<'py, PyAny>>);

/// An aggregate: its name, and its text.
type GivenAggregate = (String, String);

/// The groups that are left of an answer: a condition on its columns, their order and whether each descends (none: any order
/// will do), and how many.
type GivenEnding<'py> = (Option<GivenCondition<'py>>, Option<Vec<(String, bool)>>, Option<usize>);

/// Columns with their names and types.
type Named = Vec<(String, String, Out)>;

/// An answer: the number of groups, the columns, for each the attribute whose codes it holds, and what was done.
type Answered = (usize, Named, Vec<Option<String>>, Py<PyDict>);

/// A partial result: its tables, each the number of its groups and its columns, and what was done.
type Parted = (Vec<(usize, Named)>, Py<PyDict>);

/// A table of a partial result, as it is given back.
type GivenTable<'py> = (usize, Vec<GivenLabels<'py>>);

fn question(py: Python<'_>, by: Vec<GivenKey<'_>>, aggregates: Vec<GivenAggregate>) -> PyResult<Question> {
    let width = |width: Bound<'_, PyAny>| {
        if width.is_instance_of::<PyInt>() {
            width.extract().map(Width::Whole)
        } else {
            width.extract().map(Width::Float)
        }
    };
    let key = |(name, text, bins): GivenKey<'_>| {
        let value = Expression::parse(&text).map_err(|e| raise(py, &e))?;
        Ok(By { name, value, width: bins.map(width).transpose()? })
    };
    let aggregate = |(name, text): GivenAggregate| {
        let call = engine::AggregateCall::parse(&text).map_err(|e| raise(py, &e))?;
        Ok(Aggregate { name, call, text })
    };
    Ok(Question {
        by: by.into_iter().map(key).collect::<PyResult<_>>()?,
        aggregates: aggregates.into_iter().map(aggregate).collect::<PyResult<_>>()?,
    })
}

fn named(py: Python<'_>, name: String, column: Column) -> PyResult<(String, String, Out)> {
    let dtype = column.datatype().to_string();
    Ok((name, dtype, out(py, column, None)?))
}

fn answered(py: Python<'_>, schema: &Schema, answer: Answer, counters: &CounterSnapshot) -> PyResult<Answered> {
    let attr = |place: usize| schema.attrs().get(place).map(|attr| attr.name().to_owned());
    let (mut found, mut categories) = (Vec::new(), Vec::new());
    for (column, values) in answer.columns {
        categories.push(column.categories.and_then(attr));
        found.push(named(py, column.name, values)?);
    }
    Ok((answer.rows, found, categories, stats_dict(py, counters)?))
}

fn tables_out(py: Python<'_>, tables: Vec<PartialTable>, counters: &CounterSnapshot) -> PyResult<Parted> {
    let mut made = Vec::with_capacity(tables.len());
    for table in tables {
        let columns = table.columns.into_iter().map(|(name, column)| named(py, name, column));
        made.push((table.rows, columns.collect::<PyResult<_>>()?));
    }
    Ok((made, stats_dict(py, counters)?))
}

/// The columns of partial results, held while the engine reads them.
struct HeldParts(Vec<Vec<HeldTable>>);

/// One table: the number of its groups, and its columns.
type HeldTable = (usize, Vec<(String, Held)>);

impl HeldParts {
    fn new(py: Python<'_>, parts: Vec<Vec<GivenTable<'_>>>) -> PyResult<Self> {
        let table = |(rows, columns): GivenTable<'_>| {
            Ok((rows, columns.into_iter().map(|given| hold(py, given)).collect::<PyResult<Vec<_>>>()?))
        };
        let part = |tables: Vec<GivenTable<'_>>| tables.into_iter().map(table).collect::<PyResult<Vec<_>>>();
        parts.into_iter().map(part).collect::<PyResult<_>>().map(Self)
    }

    fn tables(&self, call: &engine::Call) -> gridstone::base::Result<Vec<Vec<PartialTable>>> {
        let table = |(rows, held): &HeldTable| {
            let views = columns(held, call)?;
            let named = held.iter().zip(views).map(|((name, _), view)| (name.clone(), view.copy_range(0, view.len())));
            Ok(PartialTable { rows: *rows, columns: named.collect() })
        };
        self.0.iter().map(|tables| tables.iter().map(table).collect()).collect()
    }
}

/// Answers a question to the cells of boxes that a condition selects; groups ascend by their keys, or come in the order given.
#[pyfunction]
#[pyo3(signature = (array, boxes, condition, by, aggregates, ending, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
pub(crate) fn aggregate(
    py: Python<'_>,
    array: &Array,
    boxes: Option<Boxes>,
    condition: Option<GivenCondition<'_>>,
    by: Vec<GivenKey<'_>>,
    aggregates: Vec<GivenAggregate>,
    ending: GivenEnding<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answered> {
    let asked = GivenQuestion::new(py, array, boxes, condition.as_ref(), (by, aggregates), ending)?;
    let context = array.inner.context();
    let (stream, answer) = interrupt::read(py, context, &array.inner.uri(), progress, |call| {
        let mut stream = asked.stream(array, call)?;
        let answer = stream.collect()?;
        Ok((stream, answer))
    })?;
    answered(py, stream.schema(), answer, &stream.counters())
}

/// The same as a stream of batches. All cells are read before it returns.
#[pyfunction]
#[pyo3(signature = (array, boxes, condition, by, aggregates, ending, progress = None))]
#[expect(clippy::too_many_arguments, reason = "they are Python's, by position")]
pub(crate) fn answers(
    py: Python<'_>,
    array: &Array,
    boxes: Option<Boxes>,
    condition: Option<GivenCondition<'_>>,
    by: Vec<GivenKey<'_>>,
    aggregates: Vec<GivenAggregate>,
    ending: GivenEnding<'_>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Answers> {
    let asked = GivenQuestion::new(py, array, boxes, condition.as_ref(), (by, aggregates), ending)?;
    let context = array.inner.context();
    let stream = interrupt::read(py, context, &array.inner.uri(), progress, |call| asked.stream(array, call))?;
    Ok(Answers { context: context.clone(), inner: Mutex::new(Some(stream)) })
}

/// A question to an array, and which groups of the answer are given.
struct GivenQuestion {
    region: Option<Region>,
    condition: Option<Branch>,
    question: Question,
    ending: Ending,
}

impl GivenQuestion {
    fn new(
        py: Python<'_>,
        array: &Array,
        boxes: Option<Boxes>,
        condition: Option<&GivenCondition<'_>>,
        (by, aggregates): (Vec<GivenKey<'_>>, Vec<GivenAggregate>),
        (having, order, limit): GivenEnding<'_>,
    ) -> PyResult<Self> {
        Ok(Self {
            region: region(py, &array.inner, boxes)?,
            condition: condition.map(branch),
            question: question(py, by, aggregates)?,
            ending: Ending {
                in_any_order: order.is_none(),
                having: having.as_ref().map(branch),
                order: order.unwrap_or_default(),
                limit,
            },
        })
    }

    fn stream(&self, array: &Array, call: &engine::Call) -> gridstone::base::Result<AnswerStream> {
        let (region, condition) = (self.region.as_ref(), self.condition.as_deref());
        array.inner.answers(region, condition, &self.question, self.ending.clone(), call)
    }
}

/// The answer to a question, batch by batch.
#[pyclass(frozen, module = "gridstone._native")]
pub(crate) struct Answers {
    context: engine::Context,
    inner: Mutex<Option<AnswerStream>>,
}

impl Answers {
    fn taken(&self, py: Python<'_>) -> PyResult<AnswerStream> {
        let taken = self.inner.lock().unwrap_or_else(PoisonError::into_inner).take();
        taken.ok_or_else(|| input(py, "this stream is being read by another thread, or an error ended it"))
    }

    fn put_back(&self, stream: AnswerStream) {
        *self.inner.lock().unwrap_or_else(PoisonError::into_inner) = Some(stream);
    }
}

#[pymethods]
impl Answers {
    /// A batch without a group, and whether values of each column may be null.
    fn nothing(&self, py: Python<'_>) -> PyResult<(Answered, Vec<bool>)> {
        let stream = self.taken(py)?;
        let (nothing, schema, counters) = (stream.nothing(), stream.schema().clone(), stream.counters());
        self.put_back(stream);
        let nothing = nothing.map_err(|e| raise(py, &e))?;
        let nullable = nothing.columns.iter().map(|(column, _)| column.nullable).collect();
        Ok((answered(py, &schema, nothing, &counters)?, nullable))
    }

    /// The next batch, None at the end.
    fn next(&self, py: Python<'_>) -> PyResult<Option<Answered>> {
        let mut stream = self.taken(py)?;
        let (stream, batch) = interrupt::run(py, &self.context, None, move |call| {
            stream.set_cancel(&call.cancel);
            let batch = stream.next_batch()?;
            Ok((stream, batch))
        })?;
        let (schema, counters) = (stream.schema().clone(), stream.counters());
        self.put_back(stream);
        batch.map(|answer| answered(py, &schema, answer, &counters)).transpose()
    }
}

/// The cells that a reduction counts: those that a condition selects, or those whose byte in a mask is not 0.
type GivenCells<'py> = (Option<GivenCondition<'py>>, Option<Vec<u8>>);

/// A reduction: the sides of the box along the axes that remain, and an answer whose rows are their places in row order.
type Reduced = (Vec<u64>, Named, Vec<Option<String>>, Py<PyDict>);

/// Reduces a box of a dense array along all axes but those in `kept`.
#[pyfunction]
#[pyo3(signature = (array, boxes, cells, aggregates, kept, progress = None))]
pub(crate) fn reduce(
    py: Python<'_>,
    array: &Array,
    boxes: Option<Boxes>,
    cells: GivenCells<'_>,
    aggregates: Vec<GivenAggregate>,
    kept: Vec<usize>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Reduced> {
    let asked = question(py, Vec::new(), aggregates)?;
    let (condition, mask) = (cells.0.as_ref().map(branch), cells.1);
    let region = region(py, &array.inner, boxes)?;
    let (schema, shape, answer, counters) =
        interrupt::read(py, array.inner.context(), &array.inner.uri(), progress, |call| {
            let cells = match (&condition, &mask) {
                (Some(condition), _) => Counted::Condition(condition),
                (None, Some(mask)) => Counted::Mask(mask.clone()),
                (None, None) => Counted::All,
            };
            let schema = array.inner.schema()?;
            let (shape, answer, counters) = array.inner.reduce(region.as_ref(), cells, &asked, &kept, call)?;
            Ok((schema, shape, answer, counters))
        })?;
    let (_, columns, categories, stats) = answered(py, &schema, answer, &counters)?;
    Ok((shape, columns, categories, stats))
}

/// The partial result of a question.
#[pyfunction]
#[pyo3(signature = (array, boxes, condition, by, aggregates, progress = None))]
pub(crate) fn partial(
    py: Python<'_>,
    array: &Array,
    boxes: Option<Boxes>,
    condition: Option<GivenCondition<'_>>,
    by: Vec<GivenKey<'_>>,
    aggregates: Vec<GivenAggregate>,
    progress: Option<Py<PyAny>>,
) -> PyResult<Parted> {
    let (asked, condition) = (question(py, by, aggregates)?, condition.as_ref().map(branch));
    let region = region(py, &array.inner, boxes)?;
    let (tables, counters) = interrupt::read(py, array.inner.context(), &array.inner.uri(), progress, |call| {
        array.inner.partial(region.as_ref(), condition.as_deref(), &asked, call)
    })?;
    tables_out(py, tables, &counters)
}

/// Merges partial results of one question to arrays of a schema.
#[pyfunction]
pub(crate) fn merge_partials(
    py: Python<'_>,
    schema_json: &str,
    by: Vec<GivenKey<'_>>,
    aggregates: Vec<GivenAggregate>,
    parts: Vec<Vec<GivenTable<'_>>>,
) -> PyResult<Parted> {
    let (asked, held) = (question(py, by, aggregates)?, HeldParts::new(py, parts)?);
    let merged = interrupt::alone(py, |call| {
        let schema = Arc::new(Schema::from_json(schema_json)?);
        engine::merge_partials(schema, &asked, &held.tables(call)?, call)
    })?;
    tables_out(py, merged, &CounterSnapshot::default())
}

/// The results of a reduction of no cell, at so many places along the axes that remain.
#[pyfunction]
pub(crate) fn reduce_nothing(
    py: Python<'_>,
    schema_json: &str,
    aggregates: Vec<GivenAggregate>,
    kept: Vec<usize>,
    places: u64,
) -> PyResult<Answered> {
    let asked = question(py, Vec::new(), aggregates)?;
    let schema = Arc::new(Schema::from_json(schema_json).map_err(|e| raise(py, &e))?);
    let answer = engine::reduction_of_nothing(Arc::clone(&schema), &asked, kept, places).map_err(|e| raise(py, &e))?;
    answered(py, &schema, answer, &CounterSnapshot::default())
}

/// The answer that partial results of one question give together.
#[pyfunction]
pub(crate) fn finish_partials(
    py: Python<'_>,
    schema_json: &str,
    by: Vec<GivenKey<'_>>,
    aggregates: Vec<GivenAggregate>,
    parts: Vec<Vec<GivenTable<'_>>>,
) -> PyResult<Answered> {
    let (asked, held) = (question(py, by, aggregates)?, HeldParts::new(py, parts)?);
    let (schema, answer) = interrupt::alone(py, |call| {
        let schema = Arc::new(Schema::from_json(schema_json)?);
        let answer = engine::finish_partials(Arc::clone(&schema), &asked, &held.tables(call)?, call)?;
        Ok((schema, answer))
    })?;
    answered(py, &schema, answer, &CounterSnapshot::default())
}
