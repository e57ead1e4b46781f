//! Questions: aggregates of cells by groups, at once or in batches; reductions along dimensions; counts.

use crate::array::{ArrayObject, gridstone_array};
use crate::call::{Asked, gridstone_call};
use crate::handle::{Exclusive, Object, get, gridstone_handle, insert};
use crate::memory::{OptionStruct, Out, list, optional_text, options, slice, text, texts};
use crate::read::condition_of;
use crate::region::{gridstone_region, region_of};
use crate::result::{ResultObject, gridstone_result};
use crate::status::{Failure, Outcome, gridstone_status, guarded};
use crate::text::{gridstone_text, text_handle};
use gridstone::base::Silent;
use gridstone::engine::{
    Aggregate, AggregateCall, AnswerStream, Array, Branch, By, Condition, Counted, Ending, Expression, Question, Width,
};
use gridstone::schema::{Region, Schema};
use std::ffi::c_char;
use std::sync::Arc;

/// An answer that is given in batches.
pub type gridstone_answers = gridstone_handle;

/// What cells are grouped by.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_group_key {
    /// `sizeof(gridstone_group_key)`
    pub size: usize,
    /// the name of the column in the answer, or NULL: the expression
    pub name: *const c_char,
    /// the name of an attribute or a dimension, or an expression, as "abs(lat)"
    pub expression: *const c_char,
    /// the width of bins, a whole number; 0: no such bins. A bin begins at a multiple of its width
    pub bin: u64,
    /// the width of bins, any number above 0; 0: no such bins
    pub bin_width: f64,
    /// the length of bins of times, as "1h", "1D" or "1M"; NULL: no such bins
    pub period: *const c_char,
}

// SAFETY: it begins with its size; zeros are the usual values.
unsafe impl OptionStruct for gridstone_group_key {
    const NAME: &'static str = "gridstone_group_key";
}

/// An aggregate.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_aggregate {
    /// `sizeof(gridstone_aggregate)`
    pub size: usize,
    /// the name of the column in the answer, or NULL: the text
    pub name: *const c_char,
    /// what it computes, as "count(*)", "mean(sog * 1.852)", "quantile(sog, 0.9)"
    pub text: *const c_char,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_aggregate {
    const NAME: &'static str = "gridstone_aggregate";
}

/// A question to the cells of an array: aggregates by groups.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct gridstone_question {
    /// `sizeof(gridstone_question)`
    pub size: usize,
    /// the cells, or 0: the whole domain
    pub region: gridstone_region,
    /// a condition on cells, or NULL: every cell
    pub condition: *const c_char,
    /// what cells are grouped by, or NULL: one group
    pub keys: *const gridstone_group_key,
    /// structs in `keys`
    pub key_count: usize,
    /// the aggregates of each group
    pub aggregates: *const gridstone_aggregate,
    /// structs in `aggregates`
    pub aggregate_count: usize,
    /// a condition on the columns of the answer, or NULL: every group
    pub having: *const c_char,
    /// names of columns of the answer, each with " desc" behind it or without, or NULL: groups ascend by their keys
    pub order: *const *const c_char,
    /// texts in `order`
    pub order_count: usize,
    /// so many groups at most; 0: all
    pub limit: u64,
    /// not 0: groups come in any order, which is quickest; `order` is NULL then
    pub any_order: u32,
    /// 0
    pub reserved: u32,
}

// SAFETY: as above.
unsafe impl OptionStruct for gridstone_question {
    const NAME: &'static str = "gridstone_question";

    fn reserved(&self) -> u32 {
        self.reserved
    }
}

/// A name as expressions have it: in quotes, since some words are no names without them.
fn quoted(name: &str) -> String {
    format!("\"{}\"", name.replace('"', "\"\""))
}

/// A name that was given in quotes, without them.
fn unquoted(name: &str) -> String {
    let inner = name.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
    match inner.filter(|inner| !inner.is_empty() && !inner.replace("\"\"", "").contains('"')) {
        Some(inner) => inner.replace("\"\"", "\""),
        None => name.to_owned(),
    }
}

/// A key of groups.
///
/// # Safety
/// The contract of the header.
unsafe fn key(schema: &Schema, given: &gridstone_group_key) -> Outcome<By> {
    // SAFETY: passed on.
    let (name, expression, period) = unsafe {
        (
            optional_text(given.name, "gridstone_group_key.name")?,
            text(given.expression, "gridstone_group_key.expression")?,
            optional_text(given.period, "gridstone_group_key.period")?,
        )
    };
    let has_width = given.bin_width != 0.0;
    if usize::from(given.bin != 0) + usize::from(has_width) + usize::from(period.is_some()) > 1 {
        return Err(Failure::input(format!("the key {expression:?} has several widths of bins; give one of them")));
    }
    let is_column = schema.coordinates().any(|dim| dim.name() == expression)
        || schema.attrs().iter().any(|attr| attr.name() == expression);
    let mut value = if is_column { quoted(expression) } else { expression.to_owned() };
    if let Some(period) = period {
        value = format!("period({value}, '{}')", period.replace('\'', "''"));
    }
    let width = match given.bin {
        0 if has_width => Some(Width::Float(given.bin_width)),
        0 => None,
        bin => Some(Width::Whole(bin)),
    };
    Ok(By { name: name.unwrap_or(expression).to_owned(), value: Expression::parse(&value)?, width })
}

/// Aggregates.
///
/// # Safety
/// The contract of the header.
unsafe fn aggregates(first: *const gridstone_aggregate, count: usize) -> Outcome<Vec<Aggregate>> {
    // SAFETY: passed on.
    let given = unsafe { list(first, count) }?;
    let aggregate = |one: &gridstone_aggregate| {
        // SAFETY: passed on.
        let (name, text) = unsafe {
            (optional_text(one.name, "gridstone_aggregate.name")?, text(one.text, "gridstone_aggregate.text")?)
        };
        let call = AggregateCall::parse(text)?;
        Ok(Aggregate { name: name.unwrap_or(text).to_owned(), call, text: text.to_owned() })
    };
    given.iter().map(aggregate).collect()
}

/// A column of an answer, and whether groups descend by it.
fn ordering(text: &str) -> (String, bool) {
    match text.rsplit_once(' ') {
        Some((name, way)) if !name.trim().is_empty() && way.eq_ignore_ascii_case("desc") => {
            (unquoted(name.trim()), true)
        }
        Some((name, way)) if !name.trim().is_empty() && way.eq_ignore_ascii_case("asc") => {
            (unquoted(name.trim()), false)
        }
        _ => (unquoted(text), false),
    }
}

/// A question of a caller, checked.
struct Asking {
    region: Option<Arc<Region>>,
    condition: Option<Condition>,
    question: Question,
    ending: Ending,
}

impl Asking {
    /// What an option struct asks of an array.
    ///
    /// # Safety
    /// The contract of the header.
    unsafe fn new(array: &Array, schema: &Schema, given: *const gridstone_question) -> Outcome<Self> {
        // SAFETY: passed on.
        let given = unsafe { options(given) }?.ok_or_else(|| Failure::input("question is a null pointer"))?;
        // SAFETY: passed on.
        let (condition, keys, aggregates, having, order) = unsafe {
            (
                optional_text(given.condition, "condition")?.map(condition_of).transpose()?,
                list(given.keys, given.key_count)?,
                aggregates(given.aggregates, given.aggregate_count)?,
                optional_text(given.having, "having")?.map(condition_of).transpose()?,
                texts(given.order, given.order_count, "order")?,
            )
        };
        if given.any_order != 0 && !order.is_empty() {
            return Err(Failure::input("the question has an order, and any order will do; give one of them"));
        }
        // SAFETY: passed on.
        let by = keys.iter().map(|one| unsafe { key(schema, one) }).collect::<Outcome<_>>()?;
        let limit = (given.limit != 0).then(|| usize::try_from(given.limit).unwrap_or(usize::MAX));
        Ok(Self {
            region: region_of(array, given.region)?,
            condition,
            question: Question { by, aggregates },
            ending: Ending {
                in_any_order: given.any_order != 0,
                having: having.map(Branch::new).transpose()?,
                order: order.into_iter().map(ordering).collect(),
                limit,
            },
        })
    }

    fn stream(&self, array: &Array, call: &gridstone::engine::Call) -> gridstone::base::Result<AnswerStream> {
        let (region, condition) = (self.region.as_deref(), self.condition.as_ref());
        array.answers(region, condition, &self.question, self.ending.clone(), call)
    }
}

/// Answers a question: a row for each group, its keys first, then the aggregates. Nulls are left out of aggregates, and are a group of
/// their own as keys.
///
/// @param array the array.
/// @param question the question.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_BUDGET`: the answer does not fit into the memory budget: take it in batches, or with a limit.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_aggregate(
    array: gridstone_array,
    question: *const gridstone_question,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, what) =
            unsafe { (Out::new(result, "result")?, Asked::new(call)?, Asking::new(&array.0, &schema, question)?) };
        let (answer, stream) = asked.run(|call| {
            let mut stream = what.stream(&array.0, call)?;
            Ok((stream.collect()?, stream))
        })?;
        out.put(ResultObject::of_answer(stream.schema(), answer, None, stream.counters())?.into_handle()?);
        Ok(())
    })
}

/// An answer in batches.
pub(crate) struct AnswersObject(pub(crate) Exclusive<AnswerStream>);

impl Object for AnswersObject {
    const NAME: &'static str = "a stream of answers";
}

/// Answers a question in batches, in bounded memory. All cells are read before this returns.
///
/// @param array the array.
/// @param question the question.
/// @param call what goes with the call, or NULL.
/// @param answers where the handle goes; free it with `gridstone_free`, also before the end. One thread at a time may use it.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_answers_create(
    array: gridstone_array,
    question: *const gridstone_question,
    call: *const gridstone_call,
    answers: *mut gridstone_answers,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, what) =
            unsafe { (Out::new(answers, "answers")?, Asked::new(call)?, Asking::new(&array.0, &schema, question)?) };
        let stream = asked.run(|call| what.stream(&array.0, call))?;
        out.put(insert(AnswersObject(Exclusive::new(stream)))?);
        Ok(())
    })
}

/// The next groups of an answer.
///
/// @param answers the answers.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes, to be freed with `gridstone_free`; 0 after the last group.
///
/// After an error the answer is over, as it is not known which groups were given.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_answers_next(
    answers: gridstone_answers,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let answers = get::<AnswersObject>(answers)?;
        // SAFETY: the contract of the header.
        let (out, asked) = unsafe { (Out::new(result, "result")?, Asked::new(call)?) };
        let mut held = answers.0.held(AnswersObject::NAME)?;
        let outcome = match held.as_mut() {
            None => Err(Failure::input("the stream of answers was moved, or an error has ended it; ask again")),
            Some(stream) => {
                stream.set_cancel(&asked.call.cancel);
                stream.set_progress(Arc::clone(&asked.call.progress));
                let batch = asked.run(|_| stream.next_batch());
                stream.set_progress(Arc::new(Silent));
                batch.map(|batch| (batch, stream.schema().clone(), stream.counters()))
            }
        };
        if outcome.is_err() {
            *held = None;
        }
        drop(held);
        let (batch, schema, counters) = outcome?;
        out.put(match batch {
            None => 0,
            Some(batch) => ResultObject::of_answer(&schema, batch, None, counters)?.into_handle()?,
        });
        Ok(())
    })
}

/// What was done for an answer so far, as JSON: names of counters and their values. Free the text.
///
/// @param answers the answers.
/// @param counters where the handle of the text goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_answers_counters(
    answers: gridstone_answers,
    counters: *mut gridstone_text,
) -> gridstone_status {
    guarded(|| {
        // SAFETY: the contract of the header.
        let out = unsafe { Out::new(counters, "counters") }?;
        let answers = get::<AnswersObject>(answers)?;
        let found = answers.0.with(AnswersObject::NAME, |stream| Ok(stream.counters()))?;
        out.put(text_handle(found.to_json())?);
        Ok(())
    })
}

/// Reduces a box of a dense array along all dimensions but those that remain: a row for each place along these, in row order of the shape
/// that `gridstone_result_shape` gives, and a column for each aggregate.
///
/// @param array a dense array.
/// @param region one box, or 0: the whole domain.
/// @param condition a condition on cells, or NULL: every cell.
/// @param aggregates_given what is computed.
/// @param aggregate_count how many.
/// @param kept the dimensions that remain, by their number from 0, ascending; or NULL: none.
/// @param kept_count how many.
/// @param call what goes with the call, or NULL.
/// @param result where the handle goes; free it with `gridstone_free`.
///
/// `GRIDSTONE_ERROR_UNSUPPORTED`: the array is sparse.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_reduce(
    array: gridstone_array,
    region: gridstone_region,
    condition: *const c_char,
    aggregates_given: *const gridstone_aggregate,
    aggregate_count: usize,
    kept: *const u64,
    kept_count: usize,
    call: *const gridstone_call,
    result: *mut gridstone_result,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        let schema = array.0.schema()?;
        // SAFETY: the contract of the header.
        let (out, asked, condition, aggregates, kept) = unsafe {
            (
                Out::new(result, "result")?,
                Asked::new(call)?,
                optional_text(condition, "condition")?.map(condition_of).transpose()?,
                aggregates(aggregates_given, aggregate_count)?,
                slice(kept, kept_count, "kept")?,
            )
        };
        let kept = checked_axes(&schema, kept)?;
        let (region, question) = (region_of(&array.0, region)?, Question { by: Vec::new(), aggregates });
        let (shape, answer, counters) = asked.run(|call| {
            let cells = condition.as_ref().map_or(Counted::All, Counted::Condition);
            array.0.reduce(region.as_deref(), cells, &question, &kept, call)
        })?;
        out.put(ResultObject::of_answer(&schema, answer, Some(shape), counters)?.into_handle()?);
        Ok(())
    })
}

/// Numbers of dimensions, which ascend.
fn checked_axes(schema: &Schema, kept: &[u64]) -> Outcome<Vec<usize>> {
    let ndim = schema.ndim();
    let ascends = kept.windows(2).all(|pair| matches!(pair, [a, b] if a < b));
    let axes: Vec<usize> = kept.iter().filter_map(|axis| usize::try_from(*axis).ok()).collect();
    match ascends && axes.len() == kept.len() && axes.iter().all(|axis| *axis < ndim) {
        true => Ok(axes),
        false => Err(Failure::input(format!(
            "kept is {kept:?}; the array has {ndim} dimensions, counted from 0: give some of them, ascending"
        ))),
    }
}

/// Counts cells; of a dense array also those that were not written, which are what they read as.
///
/// @param array the array.
/// @param region the cells, or 0: the whole domain.
/// @param condition a condition on cells, or NULL: every cell.
/// @param call what goes with the call, or NULL.
/// @param cells where the number goes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn gridstone_array_count(
    array: gridstone_array,
    region: gridstone_region,
    condition: *const c_char,
    call: *const gridstone_call,
    cells: *mut u64,
) -> gridstone_status {
    guarded(|| {
        let array = get::<ArrayObject>(array)?;
        // SAFETY: the contract of the header.
        let (out, asked, condition) = unsafe {
            let condition = optional_text(condition, "condition")?.map(condition_of).transpose()?;
            (Out::new(cells, "cells")?, Asked::new(call)?, condition)
        };
        let (region, question) = (region_of(&array.0, region)?, Question::parse(&[], &["count(*)"])?);
        let (answer, _) =
            asked.run(|call| array.0.aggregate(region.as_deref(), condition.as_ref(), &question, call))?;
        let counted = answer.columns.first().map(|(_, column)| column.numbers::<i64>()).transpose()?;
        let counted = counted.and_then(|numbers| numbers.first().copied()).unwrap_or(0);
        out.put(counted.unsigned_abs());
        Ok(())
    })
}
