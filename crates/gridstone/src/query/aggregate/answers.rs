//! The answer to a question as a stream of batches, groups ascending: out of memory, or out of runs that are merged.
//!
//! Groups come stage by stage in the same order. So the values of a group, in the stages that hold these, are read where the
//! group is: quantiles are found by their ranks among sorted values, and no value is held.

use super::answer::{Answer, ResultColumn};
use super::budget_share::BudgetShare;
use super::columns::views;
use super::gathering::Gathered;
use super::merger::Merger;
use super::ordered::OrderedKeys;
use super::plan::{Outcome, Plan};
use super::quantile::{Pick, Reduction};
use super::stage::Stage;
use super::state::input::{field, nullable_words, strange};
use super::words::{NanPlace, column_of};
use crate::base::{Cancel, Error, NeverCancel, Result};
use crate::query::request::ReadContext;
use crate::schema::Datatype;
use crate::tile::Column;
use std::cmp::Ordering;
use std::sync::Arc;

/// Values of groups that are looked at together.
const VALUES_AT_ONCE: usize = if cfg!(test) { 1 << 10 } else { 1 << 16 };
/// Groups of an answer that are made together where all of them are asked for.
const GROUPS_AT_ONCE: usize = 1 << 18;

/// The groups of a stage, ascending.
#[derive(Debug)]
struct Ascending {
    /// The groups at hand, in their order once that is made, and the first that was not given.
    stage: Stage,
    order: Option<Vec<u32>>,
    at: usize,
    merger: Option<Merger>,
    /// Whether any order will do.
    in_any_order: bool,
}

impl Ascending {
    fn of_memory(stage: Stage) -> Self {
        Self { stage, order: None, at: 0, merger: None, in_any_order: false }
    }

    fn of_runs(form: &Stage, merger: Merger) -> Self {
        Self { stage: form.fresh(), order: Some(Vec::new()), at: 0, merger: Some(merger), in_any_order: false }
    }

    /// The next groups, at most `rows_max`; `None` at the end.
    fn next(&mut self, rows_max: usize, cancel: &dyn Cancel) -> Result<Option<(&Stage, &[u32])>> {
        loop {
            cancel.check()?;
            let order = match self.order.take() {
                Some(order) => order,
                None if self.in_any_order => (0..self.stage.len() as u32).collect(),
                None => self.stage.groups.sorted(cancel)?,
            };
            if self.at < self.order.insert(order).len() {
                break;
            }
            let Some(stage) = self.merger.as_mut().map(Merger::next).transpose()?.flatten() else { return Ok(None) };
            (self.stage, self.order, self.at) = (stage, None, 0);
        }
        let from = self.at;
        let order = self.order.as_deref().unwrap_or_default();
        self.at = from.saturating_add(rows_max).min(order.len());
        Ok(Some((&self.stage, order.get(from..self.at).unwrap_or_default())))
    }

    fn set_cancel(&mut self, cancel: &Arc<dyn Cancel>) {
        self.merger.iter_mut().for_each(|merger| merger.set_cancel(cancel));
    }
}

/// The values of groups, which ascend group by group.
#[derive(Debug)]
struct Values {
    all: Ascending,
    /// The keys of the groups of the values at hand, their words, how often each is there, and the first not yet taken.
    keys: OrderedKeys,
    words: Vec<u64>,
    counts: Vec<u64>,
    at: usize,
}

impl Values {
    fn new(all: Ascending) -> Result<Self> {
        Ok(Self { all, keys: OrderedKeys::new(&[], &[])?, words: Vec::new(), counts: Vec::new(), at: 0 })
    }

    /// Whether there is a value that was not taken.
    fn fill(&mut self, cancel: &dyn Cancel) -> Result<bool> {
        while self.at == self.words.len() {
            let Some((stage, groups)) = self.all.next(VALUES_AT_ONCE, cancel)? else { return Ok(false) };
            let (of_groups, columns) = (stage.groups.keys(), stage.columns(groups)?);
            let keys = of_groups.len().saturating_sub(1);
            self.keys = OrderedKeys::new(of_groups.get(..keys).unwrap_or_default(), &columns)?;
            self.words = groups.iter().map(|group| stage.groups.last_word(*group)).collect();
            self.counts = field(&views(columns.get(of_groups.len()..).unwrap_or_default()), 0)?;
            self.at = 0;
        }
        Ok(true)
    }

    /// Gives each value of the group in a row of `keys` to `f`, with how often it is there.
    fn of_group(
        &mut self,
        (keys, row): (&OrderedKeys, usize),
        cancel: &dyn Cancel,
        mut f: impl FnMut(u64, u64),
    ) -> Result<()> {
        while self.fill(cancel)? {
            match self.keys.compare(self.at, (keys, row)) {
                Ordering::Greater => return Ok(()),
                // Groups of values are groups of the question.
                Ordering::Less => return Err(strange()),
                Ordering::Equal => {}
            }
            if let (Some(word), Some(count)) = (self.words.get(self.at), self.counts.get(self.at)) {
                f(*word, *count);
            }
            self.at += 1;
        }
        Ok(())
    }
}

/// An aggregate of all values: its place among the outcomes, what it is, and the state that counts the values of a group.
type Asked = (usize, Reduction, usize);

/// The answer to a question, batch by batch.
pub struct Answers {
    columns: Vec<ResultColumn>,
    outcomes: Vec<Outcome>,
    groups: Ascending,
    values: Vec<Values>,
    /// Whether to go on.
    cancel: Arc<dyn Cancel>,
    /// The memory that groups take.
    held: Option<BudgetShare>,
}

impl std::fmt::Debug for Answers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answers({} columns)", self.columns.len())
    }
}

impl Answers {
    /// The answer to a planned question. Runs need a context.
    pub(super) fn new(plan: &Plan, gathered: Gathered, context: Option<&ReadContext>) -> Result<Self> {
        let (ascending, held) = match (gathered, context) {
            (Gathered::InMemory(stages, held), _) => {
                (stages.into_all().into_iter().map(Ascending::of_memory).collect(), held)
            }
            (Gathered::InRuns(forms, runs, entropy), Some(context)) => {
                let together = runs.len();
                let merge = |(form, runs)| {
                    let merger = Merger::new(context, entropy.as_ref(), form, runs, together)?;
                    Ok(Ascending::of_runs(form, merger))
                };
                (forms.all().iter().zip(runs).map(merge).collect::<Result<Vec<_>>>()?, None)
            }
            (Gathered::InRuns(..), None) => return Err(strange()),
        };
        let mut ascending = ascending.into_iter();
        let groups = ascending.next().ok_or_else(|| Error::input("a question has a stage"))?;
        let values = ascending.map(Values::new).collect::<Result<_>>()?;
        let cancel =
            context.map_or_else(|| Arc::new(NeverCancel) as Arc<dyn Cancel>, |context| Arc::clone(&context.cancel));
        Ok(Self { columns: plan.columns.clone(), outcomes: plan.outcomes.clone(), groups, values, cancel, held })
    }

    /// Gives the groups in any order: where no values of theirs are looked up, they are not sorted.
    pub fn take_any_order(&mut self) {
        self.groups.in_any_order = self.values.is_empty();
    }

    /// From now on asks `cancel` whether to go on.
    pub fn set_cancel(&mut self, cancel: &Arc<dyn Cancel>) {
        self.groups.set_cancel(cancel);
        self.values.iter_mut().for_each(|values| values.all.set_cancel(cancel));
        self.cancel = Arc::clone(cancel);
    }

    /// Bytes of the budget that its groups take.
    pub fn held_bytes(&self) -> u64 {
        self.held.as_ref().map_or(0, BudgetShare::bytes)
    }

    /// An answer without a group: its columns have the types of those of every batch.
    ///
    /// # Errors
    /// Input: a question without a stage.
    pub fn nothing(&self) -> Result<Answer> {
        let stage = self.groups.stage.fresh();
        let mut columns = stage.groups.columns(&[])?;
        for outcome in &self.outcomes {
            columns.push(match outcome {
                Outcome::State(place) => stage.state(*place).ok_or_else(strange)?.finish(&[])?,
                Outcome::Values(_, reduction, _) => reduced(*reduction, &[])?,
            });
        }
        Ok(Answer { rows: 0, columns: self.columns.iter().cloned().zip(columns).collect() })
    }

    /// The next groups, at most `rows_max`; `None` at the end.
    ///
    /// # Errors
    /// Input: a sum that does not fit its type; Cancelled; of groups in runs also Corruption, Storage.
    pub fn next_batch(&mut self, rows_max: usize) -> Result<Option<Answer>> {
        let Self { columns: named, outcomes, groups, values, cancel, .. } = self;
        let cancel = cancel.as_ref();
        let rows_max = rows_max.clamp(1, GROUPS_AT_ONCE);
        let Some((stage, order)) = groups.next(rows_max, cancel)? else { return Ok(None) };
        let mut columns = stage.groups.columns(order)?;
        let keys = columns.len();
        let mut found: Vec<Option<Column>> = outcomes.iter().map(|_| None).collect();
        for (place, outcome) in outcomes.iter().enumerate() {
            if let (Outcome::State(state), Some(slot)) = (outcome, found.get_mut(place)) {
                cancel.check()?;
                *slot = Some(stage.state(*state).ok_or_else(strange)?.finish(order)?);
            }
        }
        for (number, values) in values.iter_mut().enumerate() {
            let asked: Vec<Asked> = asked_of(outcomes, number + 1);
            let ordered = OrderedKeys::new(stage.groups.keys(), columns.get(..keys).unwrap_or_default())?;
            for (place, column) in reduce(&asked, (stage, order), &ordered, (values, cancel))? {
                found.get_mut(place).into_iter().for_each(|slot| *slot = Some(column.clone()));
            }
        }
        columns.extend(found.into_iter().flatten());
        Ok(Some(Answer { rows: order.len(), columns: named.iter().cloned().zip(columns).collect() }))
    }

    /// All groups that are left.
    ///
    /// # Errors
    /// As [`Answers::next_batch`].
    pub fn collect(mut self) -> Result<Answer> {
        let Some(mut all) = self.next_batch(usize::MAX)? else { return self.nothing() };
        while let Some(more) = self.next_batch(usize::MAX)? {
            all.append(more);
        }
        Ok(all)
    }
}

/// What is asked of all values in a stage.
fn asked_of(outcomes: &[Outcome], stage: usize) -> Vec<Asked> {
    let asked = |(place, outcome): (usize, &Outcome)| match outcome {
        Outcome::Values(of, reduction, count) if *of == stage => Some((place, *reduction, *count)),
        Outcome::Values(..) | Outcome::State(_) => None,
    };
    outcomes.iter().enumerate().filter_map(asked).collect()
}

/// What all values of each group become; gives the places of aggregates and their columns.
fn reduce(
    asked: &[Asked],
    (stage, order): (&Stage, &[u32]),
    keys: &OrderedKeys,
    (values, cancel): (&mut Values, &dyn Cancel),
) -> Result<Vec<(usize, Column)>> {
    let count = |(_, _, state): &Asked| {
        let fields = stage.state(*state).ok_or_else(strange)?.fields(order)?;
        field(&views(&fields), 0)
    };
    let counts = asked.iter().map(count).collect::<Result<Vec<_>>>()?;
    let mut found: Vec<Vec<Option<u64>>> = asked.iter().map(|_| Vec::with_capacity(order.len())).collect();
    let mut picks: Vec<Option<Pick>> = Vec::with_capacity(asked.len());
    for row in 0..order.len() {
        let mut different = 0;
        picks.clear();
        picks.extend(asked.iter().zip(&counts).map(|((_, reduction, _), counts)| match reduction {
            Reduction::Count => None,
            Reduction::Quantile(distribution) => Some(Pick::new(*distribution, counts.get(row).copied().unwrap_or(0))),
        }));
        values.of_group((keys, row), cancel, |word, times| {
            different += 1;
            picks.iter_mut().flatten().for_each(|pick| pick.take(word, times));
        })?;
        for (found, pick) in found.iter_mut().zip(&picks) {
            found.push(pick.as_ref().map_or(Some(different), Pick::word));
        }
    }
    let column =
        |((place, reduction, _), found): (&Asked, &Vec<Option<u64>>)| Ok((*place, reduced(*reduction, found)?));
    asked.iter().zip(&found).map(column).collect()
}

/// The column of results of an aggregate of all values.
fn reduced(reduction: Reduction, words: &[Option<u64>]) -> Result<Column> {
    match reduction {
        Reduction::Count => nullable_words(Datatype::Int64, words.iter().copied()),
        Reduction::Quantile(distribution) => column_of(distribution.result(), NanPlace::Last, words.iter().copied()),
    }
}
