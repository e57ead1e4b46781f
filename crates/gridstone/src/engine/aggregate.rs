//! Questions to an array: aggregates of the cells of a region that a condition selects, by groups.

use super::answers::{AnswerStream, Ending};
use super::regions::LostPages;
use super::{Array, Call};
use crate::base::{Cancel, CounterSnapshot, Entropy, Error, Result};
use crate::condition::Condition;
use crate::query::{
    Aggregation, Answer, PartialTable, Question, ReadContext, ReadOrder, Reduction, TileAnswers, Where,
};
use crate::runtime::SystemEntropy;
use crate::schema::{Region, Schema};
use std::sync::Arc;

/// Which cells of a box a reduction counts.
#[derive(Debug)]
pub enum Counted<'a> {
    /// All.
    All,
    /// Those that a condition selects.
    Condition(&'a Condition),
    /// Those whose byte is not 0; cells of the box in row order.
    Mask(Vec<u8>),
}

impl Array {
    /// Answers a question to the cells of a region (`None`: the whole domain) that `condition` selects (`None`: all): groups
    /// ascending, their keys and aggregates. Gives what the read did besides. An unwritten cell of a dense array is what it reads
    /// as: fill, or null.
    ///
    /// # Errors
    /// Input (names, types or a condition that do not fit the schema; a sum that does not fit its type), Bounds, Corruption,
    /// Storage, Cancelled.
    pub fn aggregate(
        &self,
        region: Option<&Region>,
        condition: Option<&Condition>,
        question: &Question,
        call: &Call,
    ) -> Result<(Answer, CounterSnapshot)> {
        let mut answers = self.answers(region, condition, question, Ending::default(), call)?;
        let answer = answers.collect()?;
        Ok((answer, answers.counters()))
    }

    /// As [`Array::aggregate`], batch by batch: groups beyond a share of the memory budget are written to files beside the array,
    /// which go with the stream. All cells are read before this returns.
    ///
    /// # Errors
    /// As there; Budget: the store cannot be written to, and the groups take more than the budget.
    pub fn answers(
        &self,
        region: Option<&Region>,
        condition: Option<&Condition>,
        question: &Question,
        ending: Ending,
        call: &Call,
    ) -> Result<AnswerStream> {
        let (aggregation, context) =
            self.aggregated(region, condition, question, Some(Arc::new(SystemEntropy)), call)?;
        let answers = context.explain_missing(aggregation.into_answers(Some(&context)))?;
        let keys: Vec<&str> = question.by.iter().map(|by| by.name.as_str()).collect();
        AnswerStream::new(self.schema()?, context, answers, &keys, ending)
    }

    /// The partial result of a question, as tables that can be sent to another machine and merged in any order.
    ///
    /// # Errors
    /// As [`Array::aggregate`].
    pub fn partial(
        &self,
        region: Option<&Region>,
        condition: Option<&Condition>,
        question: &Question,
        call: &Call,
    ) -> Result<(Vec<PartialTable>, CounterSnapshot)> {
        let (aggregation, context) = self.aggregated(region, condition, question, None, call)?;
        Ok((aggregation.tables(context.cancel.as_ref())?, context.counters.snapshot()))
    }

    /// Reduces a box of a dense array (`None`: the whole domain) along axes: those in `kept` remain. Gives the box's sides along
    /// these, a column per aggregate, its values in row order, and what the read did.
    ///
    /// # Errors
    /// As [`Array::aggregate`]; Unsupported: a sparse array; Input: a mask that has not a byte for each cell.
    pub fn reduce(
        &self,
        region: Option<&Region>,
        cells: Counted<'_>,
        question: &Question,
        kept: &[usize],
        call: &Call,
    ) -> Result<(Vec<u64>, Answer, CounterSnapshot)> {
        let (context, target, mut request) = self.plan(region, None, ReadOrder::Row, call)?;
        let schema = Arc::clone(&target.schema);
        if schema.sparse() {
            return Err(Error::unsupported(
                "only dense arrays are reduced along axes; ask a sparse one with aggregate()",
            ));
        }
        let whole = request.sub.cells();
        let cells = match cells {
            Counted::All => Where::All,
            Counted::Condition(condition) => Where::Condition(condition.bind(&schema)?),
            Counted::Mask(mask) if mask.len() as u128 == whole => Where::Mask(mask),
            Counted::Mask(mask) => {
                return Err(Error::input(format!("a mask of {} cells was given for a box of {whole}", mask.len())));
            }
        };
        let reduction = Reduction::new(schema, question, kept.to_vec(), cells)?;
        request.attrs = reduction.attrs().to_vec();
        let shape: Vec<u64> = kept.iter().filter_map(|axis| request.sub.shape().get(*axis).copied()).collect();
        let columns = match whole {
            0 => reduction.of_nothing(shape.iter().product())?,
            _ => context.explain_missing(reduction.of_box(&context, &target, &request))?,
        };
        let rows = columns.first().map_or(0, |(_, column)| column.len());
        Ok((shape, Answer { rows, columns }, context.counters.snapshot()))
    }

    fn aggregated(
        &self,
        region: Option<&Region>,
        condition: Option<&Condition>,
        question: &Question,
        entropy: Option<Arc<dyn Entropy>>,
        call: &Call,
    ) -> Result<(Aggregation, ReadContext)> {
        let mut planned = self.plan_region(region, None, condition, ReadOrder::Any, LostPages::Refused, call)?;
        let mut aggregation = Aggregation::new(Arc::clone(&planned.target.schema), question)?;
        if let Some(entropy) = entropy {
            aggregation = aggregation.spilling(entropy);
        }
        planned.request.attrs = aggregation.attrs().to_vec();
        let context = planned.context.clone();
        if planned.any && planned.unfiltered && !planned.target.schema.sparse() {
            context.explain_missing(aggregation.take_box(&context, &planned.target, &planned.request))?;
            return Ok((aggregation, context));
        }
        let begin =
            |answers: Option<&mut TileAnswers<'_>>| planned.scan_without(Aggregation::batch_bytes(&context), answers);
        context.explain_missing(aggregation.take_all(&context, begin))?;
        Ok((aggregation, context))
    }
}

/// Merges partial results of one question to arrays of a schema.
///
/// # Errors
/// Input: they are of another question; Cancelled.
pub fn merge_partials(
    schema: Arc<Schema>,
    question: &Question,
    parts: &[Vec<PartialTable>],
    call: &Call,
) -> Result<Vec<PartialTable>> {
    let cancel = call.cancel.as_ref();
    merged(schema, question, parts, cancel)?.tables(cancel)
}

/// The results of a reduction of no cell, at so many places along the axes in `kept`.
///
/// # Errors
/// Input: names or types that do not fit the schema; Budget: too many places.
pub fn reduction_of_nothing(schema: Arc<Schema>, question: &Question, kept: Vec<usize>, places: u64) -> Result<Answer> {
    let columns = Reduction::new(schema, question, kept, Where::All)?.of_nothing(places)?;
    let rows = columns.first().map_or(0, |(_, column)| column.len());
    Ok(Answer { rows, columns })
}

/// The answer that partial results of one question give together.
///
/// # Errors
/// Input: they are of another question; a sum that does not fit its type; Cancelled.
pub fn finish_partials(
    schema: Arc<Schema>,
    question: &Question,
    parts: &[Vec<PartialTable>],
    call: &Call,
) -> Result<Answer> {
    merged(schema, question, parts, call.cancel.as_ref())?.finish(&call.cancel)
}

fn merged(
    schema: Arc<Schema>,
    question: &Question,
    parts: &[Vec<PartialTable>],
    cancel: &dyn Cancel,
) -> Result<Aggregation> {
    let mut aggregation = Aggregation::new(schema, question)?;
    parts.iter().try_for_each(|tables| aggregation.absorb(tables, cancel))?;
    Ok(aggregation)
}
