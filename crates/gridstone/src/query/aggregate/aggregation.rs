//! An aggregation under way: cells go into the stages of a plan.

use super::answer::Answer;
use super::plan::{Outcome, Plan, Question};
use super::quantile::Reduction;
use super::stage::{ChunkValues, PartialTable, Stage, Stages};
use super::state::input::{Positions, nullable_words, strange};
use super::words::{NanPlace, column_of};
use crate::base::{Error, Result};
use crate::condition::{Batch, BoundExpression, Coordinates, Place};
use crate::query::request::ReadContext;
use crate::query::scan::Scan;
use crate::schema::{Datatype, Schema};
use crate::tile::coordinates::axis_keys;
use crate::tile::{Cells, Column, ColumnView};
use std::sync::{Arc, Mutex, PoisonError};

/// Rows that a thread takes at once: their values stay in its cache.
const CHUNK_ROWS: usize = 16_384;
/// Bytes of cells that are read at once, at most.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// An aggregation under way.
#[derive(Debug)]
pub struct Aggregation {
    asked: Asked,
    stages: Stages,
    /// Cells taken so far.
    taken: u64,
}

/// What is asked of chunks of cells.
#[derive(Debug)]
struct Asked {
    schema: Arc<Schema>,
    plan: Plan,
    /// The attributes that cells have, by place.
    attrs: Vec<usize>,
}

impl Aggregation {
    /// Plans a question to arrays of a schema.
    ///
    /// # Errors
    /// Input: a name, type or number of arguments that does not fit; two columns of one name.
    pub fn new(schema: Arc<Schema>, question: &Question) -> Result<Self> {
        let plan = Plan::new(&schema, question)?;
        let stages = plan.stages.fresh();
        let attrs = plan.columns_needed(schema.ndim()).attrs;
        Ok(Self { asked: Asked { schema, plan, attrs }, stages, taken: 0 })
    }

    /// The attributes that it looks at, by place.
    pub fn attrs(&self) -> &[usize] {
        &self.asked.attrs
    }

    /// Takes in all cells of a stream, whose attributes are those of [`Aggregation::attrs`].
    ///
    /// # Errors
    /// Those of the stream; Input: a value that an expression or an aggregate cannot take.
    pub fn take_all(&mut self, context: &ReadContext, scan: &mut Scan) -> Result<()> {
        while let Some(cells) = scan.next_batch()? {
            self.take(context, &cells)?;
            self.check_size(context)?;
        }
        Ok(())
    }

    /// A Budget error if the groups take more memory than there is.
    fn check_size(&self, context: &ReadContext) -> Result<()> {
        let (bytes, limit) = (self.stages.size_bytes(), context.budget.limit_bytes());
        if bytes <= limit {
            return Ok(());
        }
        let groups = self.stages.all().iter().map(|stage| stage.groups.len()).max().unwrap_or(0);
        Err(Error::budget(format!(
            "{groups} groups take {bytes} bytes, beyond the memory budget of {limit}; ask for fewer groups or a smaller box, or give the \
             context more memory"
        )))
    }

    /// Bytes of cells that should be read at once.
    pub fn batch_bytes(context: &ReadContext) -> u64 {
        context.batch_bytes().min(BATCH_BYTES_MAX)
    }

    /// Takes in cells.
    fn take(&mut self, context: &ReadContext, cells: &Cells) -> Result<()> {
        let ranges: Vec<(usize, usize)> =
            (0..cells.count).step_by(CHUNK_ROWS).map(|from| (from, (from + CHUNK_ROWS).min(cells.count))).collect();
        let first = self.taken;
        self.taken += cells.count as u64;
        let asked = &self.asked;
        let take =
            |stages: &mut Stages, range: (usize, usize)| asked.take_chunk(stages, &Chunk::of(cells, range, first));
        let cancel = context.cancel.as_ref();
        if asked.plan.stages.is_ungrouped() {
            let made = context.pool.map(ranges, cancel, |range| {
                let mut stages = asked.plan.stages.fresh();
                take(&mut stages, range).map(|()| stages)
            })?;
            return made.iter().try_for_each(|stages| self.stages.absorb(stages));
        }
        let idle = Mutex::new(vec![std::mem::replace(&mut self.stages, asked.plan.stages.fresh())]);
        let lock = || idle.lock().unwrap_or_else(PoisonError::into_inner);
        let outcome = context.pool.map(ranges, cancel, |range| {
            let held = lock().pop();
            let mut stages = held.unwrap_or_else(|| asked.plan.stages.fresh());
            let outcome = take(&mut stages, range);
            lock().push(stages);
            outcome
        });
        let all = idle.into_inner().unwrap_or_else(PoisonError::into_inner);
        outcome?;
        let mut all = all.into_iter();
        if let Some(first) = all.next() {
            self.stages = first;
        }
        all.try_for_each(|stages| self.stages.absorb(&stages))
    }

    /// What it holds, as tables that can be sent and merged.
    ///
    /// # Errors
    /// Budget.
    pub fn tables(&self) -> Result<Vec<PartialTable>> {
        self.stages.tables()
    }

    /// Takes in tables that another aggregation of the same question gave.
    ///
    /// # Errors
    /// Input: they are of another question.
    pub fn absorb(&mut self, tables: &[PartialTable]) -> Result<()> {
        self.stages.absorb_tables(tables)
    }

    /// The answer, groups ascending.
    ///
    /// # Errors
    /// Input: a sum that does not fit its type.
    pub fn finish(&self) -> Result<Answer> {
        let Some(first) = self.stages.all().first() else { return Err(Error::input("a question has a stage")) };
        let order = first.groups.sorted();
        let mut columns = first.groups.columns(&order)?;
        for outcome in &self.asked.plan.outcomes {
            columns.push(match outcome {
                Outcome::State(place) => {
                    first.state(*place).map(|state| state.finish(&order)).unwrap_or_else(|| Err(strange()))?
                }
                Outcome::Values(stage, reduction) => self.reduced(first, &order, (*stage, *reduction))?,
            });
        }
        Ok(Answer { rows: order.len(), columns: self.asked.plan.columns.iter().cloned().zip(columns).collect() })
    }

    /// What all values of each group become.
    fn reduced(&self, first: &Stage, order: &[u32], (stage, reduction): (usize, Reduction)) -> Result<Column> {
        let stage = self.stages.all().get(stage).ok_or_else(strange)?;
        let values = stage.groups.sorted();
        let counts = stage.state(0).ok_or_else(strange)?.finish(&values)?;
        let counts: Vec<u64> =
            counts.view().values().as_chunks::<8>().0.iter().map(|w| u64::from_le_bytes(*w)).collect();
        let runs = stage.runs(first, order, &values)?;
        match reduction {
            Reduction::Count => nullable_words(Datatype::Int64, runs.iter().map(|run| Some(run.len() as u64))),
            Reduction::Quantile(distribution) => {
                let word = |place: usize| values.get(place).map(|group| stage.groups.last_word(*group));
                let of = |run: &std::ops::Range<usize>| {
                    let weighted: Vec<(u64, u64)> =
                        run.clone().filter_map(|place| Some((word(place)?, *counts.get(place)?))).collect();
                    distribution.of(&weighted)
                };
                column_of(distribution.result(), NanPlace::Last, runs.iter().map(of))
            }
        }
    }
}

impl Asked {
    fn take_chunk(&self, stages: &mut Stages, chunk: &Chunk<'_>) -> Result<()> {
        let batch = chunk.batch(&self.schema, &self.attrs);
        let sources: Vec<Held<'_>> =
            self.plan.sources.iter().map(|source| self.value(source, chunk, &batch)).collect::<Result<_>>()?;
        let axes = if self.plan.asks_places { chunk.axis_keys(&self.schema)? } else { Vec::new() };
        stages.take(&ChunkValues {
            rows: chunk.rows,
            sources: sources.iter().map(Held::view).collect(),
            positions: Positions { axes: &axes, first: chunk.first },
        })
    }

    fn value<'c>(&self, source: &BoundExpression, chunk: &'c Chunk<'_>, batch: &Batch<'_>) -> Result<Held<'c>> {
        let column = match source.plain() {
            Some(Place::Attr(place)) => {
                self.attrs.iter().position(|attr| *attr == place).and_then(|at| chunk.attrs.get(at))
            }
            Some(Place::Dim(axis) | Place::Text { axis, .. }) => {
                self.schema.coordinates().position(|dim| dim.axes().start == axis).and_then(|at| chunk.dims.get(at))
            }
            None => None,
        };
        match column {
            Some(column) => Ok(Held::View(column.view())),
            None => source.evaluate(batch).map(Held::Own),
        }
    }
}

/// A column, or one that was made.
#[derive(Debug)]
enum Held<'a> {
    View(ColumnView<'a>),
    Own(Column),
}

impl Held<'_> {
    fn view(&self) -> ColumnView<'_> {
        match self {
            Self::View(view) => *view,
            Self::Own(column) => column.view(),
        }
    }
}

/// Some of the cells of a batch.
struct Chunk<'a> {
    rows: usize,
    /// The number of its first cell.
    first: u64,
    dims: Vec<Held<'a>>,
    attrs: Vec<Held<'a>>,
}

impl<'a> Chunk<'a> {
    fn of(cells: &'a Cells, (from, to): (usize, usize), first: u64) -> Self {
        let part = |column: &'a Column| match column.view().part(from, to) {
            Some(view) => Held::View(view),
            None => Held::Own(column.view().copy_range(from, to)),
        };
        let (dims, attrs) = (cells.dims.iter().map(part).collect(), cells.attrs.iter().map(part).collect());
        Self { rows: to - from, first: first + from as u64, dims, attrs }
    }

    fn batch<'c>(&'c self, schema: &Schema, attrs: &[usize]) -> Batch<'c> {
        let mut batch = Batch::new(self.rows);
        for (dim, column) in schema.coordinates().zip(&self.dims) {
            batch = batch.with_dim(dim.axes().start, Coordinates::Column(column.view()));
        }
        for (place, column) in attrs.iter().zip(&self.attrs) {
            batch = batch.with_attr(*place, column.view());
        }
        batch
    }

    fn axis_keys(&self, schema: &Schema) -> Result<Vec<Vec<u64>>> {
        let dims: Vec<Column> = self.dims.iter().map(|dim| dim.view().copy_range(0, self.rows)).collect();
        axis_keys(schema, &dims)
    }
}
