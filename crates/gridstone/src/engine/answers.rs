//! Answers to questions, batch by batch: the groups that a condition on them leaves, in the order asked for, so many at most.

use super::conditions::select_rows;
use crate::base::{Cancel, CounterSnapshot, Error, Progress, Result};
use crate::condition::{Branch, Condition};
use crate::query::{Answer, Answers, BudgetShare, ReadContext, ResultColumn};
use crate::schema::{Attribute, Schema, SchemaOptions};
use crate::tile::Column;
use std::ops::RangeInclusive;
use std::sync::Arc;

/// Groups of a batch.
const BATCH_ROWS: RangeInclusive<u64> = 1_024..=65_536;
/// Groups by which those that are kept for an order may pass their number before they are sorted.
const KEPT_BEYOND: usize = 65_536;

/// Which groups of an answer are given, and in which order. By default all of them, ascending by their keys.
#[derive(Debug, Clone, Default)]
pub struct Ending {
    /// Whether any order will do.
    pub in_any_order: bool,
    /// A condition on the columns of the answer.
    pub having: Option<Branch>,
    /// Columns of the answer, each with whether it descends; those that are equal there ascend by their keys.
    pub order: Vec<(String, bool)>,
    /// So many groups at most.
    pub limit: Option<usize>,
}

/// The answer to a question as a stream of batches.
#[derive(Debug)]
pub struct AnswerStream {
    schema: Arc<Schema>,
    context: ReadContext,
    answers: Answers,
    ending: Ending,
    /// Groups in another order than that of their keys, and how many of them were given.
    sorted: Option<(Answer, usize)>,
    /// The memory that they take, and took while they were sorted.
    share: BudgetShare,
    /// Whether they are to be sorted before the first is given.
    sorts: bool,
    /// Groups that may still be given.
    left: usize,
    batch_rows: usize,
}

impl AnswerStream {
    /// The answer to a question to an array of a schema, whose keys have these names.
    pub(super) fn new(
        schema: Arc<Schema>,
        context: ReadContext,
        mut answers: Answers,
        keys: &[&str],
        ending: Ending,
    ) -> Result<Self> {
        let nothing = answers.nothing()?;
        let width = nothing.columns.len().max(1) as u64 * 16;
        let batch_rows = context.budget.limit_bytes() / 64 / width;
        let batch_rows = batch_rows.clamp(*BATCH_ROWS.start(), *BATCH_ROWS.end()) as usize;
        // A name that does not fit is an error before anything is read.
        Answer::ordered(vec![nothing], &ending.order, None, context.cancel.as_ref())?;
        if let Some(having) = &ending.having {
            select_groups(&schema, answers.nothing()?, having)?;
        }
        let by_keys = ending.order.iter().zip(keys).all(|((name, descends), key)| name == key && !descends);
        let sorts = !by_keys || ending.order.len() > keys.len();
        if ending.in_any_order {
            answers.take_any_order();
        }
        let left = ending.limit.unwrap_or(usize::MAX);
        let share = BudgetShare::new(&context.budget);
        Ok(Self { schema, context, answers, ending, sorted: None, share, sorts, left, batch_rows })
    }

    /// The schema of the array.
    pub fn schema(&self) -> &Arc<Schema> {
        &self.schema
    }

    /// What was done so far.
    pub fn counters(&self) -> CounterSnapshot {
        self.context.counters.snapshot()
    }

    /// From now on asks `cancel` whether to go on.
    pub fn set_cancel(&mut self, cancel: &Arc<dyn Cancel>) {
        self.answers.set_cancel(cancel);
        self.context.cancel = Arc::clone(cancel);
    }

    /// From now on reports to `progress`.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.context.progress = progress;
    }

    /// An answer without a group: its columns have the types of those of every batch.
    ///
    /// # Errors
    /// Input: a question without a stage.
    pub fn nothing(&self) -> Result<Answer> {
        self.answers.nothing()
    }

    /// The next groups, of which there is one at least; `None` at the end.
    ///
    /// # Errors
    /// Input: a sum that does not fit its type; Budget: groups that are to be sorted pass the memory budget; Corruption, Storage,
    /// Cancelled.
    pub fn next_batch(&mut self) -> Result<Option<Answer>> {
        let batch = self.batch(self.batch_rows);
        self.context.explain_missing(batch)
    }

    /// All groups that are left, as one answer.
    ///
    /// # Errors
    /// As [`AnswerStream::next_batch`]; Budget: the answer passes the memory budget.
    pub fn collect(&mut self) -> Result<Answer> {
        let collected = self.collected();
        self.context.explain_missing(collected)
    }

    fn collected(&mut self) -> Result<Answer> {
        let Some(mut all) = self.batch(usize::MAX)? else { return self.nothing() };
        self.check_size(&all)?;
        while let Some(more) = self.batch(usize::MAX)? {
            self.context.cancel.check()?;
            all.append(more);
            self.check_size(&all)?;
        }
        Ok(all)
    }

    fn check_size(&self, answer: &Answer) -> Result<()> {
        let (bytes, limit) = (answer.size_bytes(), self.context.budget.limit_bytes());
        if bytes <= limit {
            return Ok(());
        }
        Err(Error::budget(format!(
            "the answer has {} groups or more, which take {bytes} bytes, beyond the memory budget of {limit}; take it batch by batch \
             (stream=True), write it into an array (to=), ask for fewer groups (limit=, having=), or give the context more memory",
            answer.rows
        )))
    }

    fn batch(&mut self, rows_max: usize) -> Result<Option<Answer>> {
        if self.left == 0 {
            return Ok(None);
        }
        let found = if self.sorts { self.next_sorted(rows_max)? } else { self.next_selected(rows_max)? };
        let found = found.map(|answer| if answer.rows > self.left { answer.part(0, self.left) } else { answer });
        self.left -= found.as_ref().map_or(0, |answer| answer.rows);
        Ok(found)
    }

    /// The next groups in the order of their keys that the condition leaves.
    fn next_selected(&mut self, rows_max: usize) -> Result<Option<Answer>> {
        while let Some(answer) = self.answers.next_batch(rows_max)? {
            self.context.cancel.check()?;
            let answer = match &self.ending.having {
                Some(having) => select_groups(&self.schema, answer, having)?,
                None => answer,
            };
            if answer.rows > 0 {
                return Ok(Some(answer));
            }
        }
        Ok(None)
    }

    /// The next groups in the order that was asked for.
    fn next_sorted(&mut self, rows_max: usize) -> Result<Option<Answer>> {
        let (all, given) = match self.sorted.take() {
            Some(sorted) => sorted,
            None => (self.sort()?, 0),
        };
        if given >= all.rows {
            return Ok(None);
        }
        if given == 0 && rows_max >= all.rows {
            self.sorted = Some((self.nothing()?, 0));
            self.share.set(0);
            return Ok(Some(all));
        }
        let part = all.part(given, rows_max);
        let given = given + part.rows;
        self.sorted = Some((all, given));
        Ok(Some(part))
    }

    /// All groups in the order that was asked for; with a limit no more than that many are kept meanwhile.
    fn sort(&mut self) -> Result<Answer> {
        let (mut kept, mut rows, limit) = (Vec::new(), 0, self.ending.limit);
        let kept_max = limit.map_or(usize::MAX, |limit| limit.saturating_add(limit.max(KEPT_BEYOND)));
        while let Some(more) = self.next_selected(self.batch_rows)? {
            rows += more.rows;
            kept.push(more);
            let sorting = self.reserve(&kept, rows)?;
            if rows > kept_max {
                let first = self.ordered(std::mem::take(&mut kept), sorting)?;
                rows = first.rows;
                kept.push(first);
            }
        }
        if kept.is_empty() {
            return self.nothing();
        }
        let sorting = self.reserve(&kept, rows)?;
        self.ordered(kept, sorting)
    }

    /// Holds the memory that groups take, and gives that which their order takes besides.
    ///
    /// # Errors
    /// Budget: there is not so much.
    fn reserve(&mut self, kept: &[Answer], rows: usize) -> Result<u64> {
        let (mut bytes, mut largest) = (0, 0);
        for place in 0..kept.first().map_or(0, |batch| batch.columns.len()) {
            let column: u64 = kept.iter().filter_map(|batch| batch.column_bytes().nth(place)).sum();
            (bytes, largest) = (bytes + column, column.max(largest));
        }
        let sorting = Answer::order_bytes(rows, self.ending.order.len(), largest);
        let (others, limit) = (self.answers.held_bytes(), self.context.budget.limit_bytes());
        self.share.set(bytes);
        if bytes + sorting + others <= limit {
            return Ok(sorting);
        }
        Err(Error::budget(format!(
            "{rows} groups or more are to be sorted, which takes {} bytes beside the {others} of what they are made of, beyond the memory \
             budget of {limit}; ask for the first ones (limit=), leave order= out for the order of the keys, or give the context more \
             memory",
            bytes + sorting
        )))
    }

    /// Batches in the order that was asked for, which takes so many bytes.
    fn ordered(&mut self, batches: Vec<Answer>, bytes: u64) -> Result<Answer> {
        self.share.set(self.share.bytes() + bytes);
        let cancel = self.context.cancel.as_ref();
        let ordered = Answer::ordered(batches, &self.ending.order, self.ending.limit, cancel);
        self.share.set(ordered.as_ref().map_or(0, Answer::size_bytes));
        ordered
    }
}

/// Those groups of an answer that `condition` selects, by the names of its columns.
///
/// # Errors
/// Input: a condition that does not fit the columns.
pub fn select_groups(asked: &Schema, answer: Answer, condition: &Condition) -> Result<Answer> {
    let attr = |(named, values): &(ResultColumn, Column)| {
        let asked = named.categories.and_then(|place| asked.attrs().get(place));
        match asked.and_then(|attr| Some((attr, attr.categories()?))) {
            Some((attr, categories)) => {
                let codes = (categories.clone(), Some(attr.datatype()));
                Attribute::enumerated(&named.name, codes, true, None, "auto")
            }
            None => Attribute::new(&named.name, values.datatype(), true, None, "auto"),
        }
    };
    let attrs = answer.columns.iter().map(attr).collect::<Result<Vec<_>>>()?;
    let schema = Schema::of_scalar(attrs, SchemaOptions::default())?;
    let columns: Vec<_> = answer.columns.iter().map(|(named, values)| (named.name.clone(), values.view())).collect();
    let rows: Vec<u32> = select_rows(condition, &schema, &columns)?.rows().map(|row| row as u32).collect();
    Ok(answer.of_rows(&rows))
}
