//! An aggregation under way: cells go into the stages of a plan.

use super::answer::Answer;
use super::answers::Answers;
use super::chunk::{Asked, Chunk};
use super::dense::{DenseCells, DensePart};
use super::gathering::Gathering;
use super::index;
use super::plan::{Plan, Question};
use super::stage::{PartialTable, Stages};
use crate::base::{Cancel, Counters, Entropy, Result};
use crate::query::request::{ReadContext, Request, Target};
use crate::query::scan::Scan;
use crate::query::select::{TileAnswers, WholeTile};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{Cells, Column};
use std::sync::Arc;

/// Rows that a thread takes at once: their values stay in its cache.
const CHUNK_ROWS: usize = 16_384;
/// The share of the budget that groups of dense tiles from the index may take beside the others before they are merged with these.
const WHOLE_SHARE: u64 = 16;
/// Bytes of cells that are read at once, at most.
const BATCH_BYTES_MAX: u64 = 16 << 20;

/// An aggregation under way.
#[derive(Debug)]
pub struct Aggregation {
    asked: Asked,
    gathering: Gathering,
    /// Cells taken so far.
    taken: u64,
    /// Cells of a stream that do not fill a chunk yet. Chunks end at the same cells whatever the batches are, so that the bits of
    /// float sums do not depend on these.
    rest: Option<Cells>,
}

impl Aggregation {
    /// Plans a question to arrays of a schema.
    ///
    /// # Errors
    /// Input: a name, type or number of arguments that does not fit; two columns of one name.
    pub fn new(schema: Arc<Schema>, question: &Question) -> Result<Self> {
        let plan = Plan::new(&schema, question)?;
        let gathering = Gathering::new(plan.stages.fresh());
        let attrs = plan.columns_needed(schema.ndim()).attrs;
        Ok(Self { asked: Asked { schema, plan, attrs }, gathering, taken: 0, rest: None })
    }

    /// From now on groups beyond a share of the memory budget are written to files, whose ids `entropy` gives.
    #[must_use]
    pub fn spilling(mut self, entropy: Arc<dyn Entropy>) -> Self {
        self.gathering.spill(entropy);
        self
    }

    /// The attributes that it looks at, by place.
    pub fn attrs(&self) -> &[usize] {
        &self.asked.attrs
    }

    /// Takes in all cells of the stream that `begin` gives, whose attributes are those of [`Aggregation::attrs`], and tiles that need
    /// not be in it.
    ///
    /// # Errors
    /// Those of the stream; Input: a value that an expression or an aggregate cannot take.
    pub fn take_all(
        &mut self,
        context: &ReadContext,
        begin: impl FnOnce(Option<&mut TileAnswers<'_>>) -> Result<Scan>,
    ) -> Result<()> {
        let mut scan = if index::can_answer(&self.asked) {
            let Self { asked, gathering, .. } = self;
            let accept = &mut |tile: &WholeTile| {
                let taken = index::take_tile(asked, &mut gathering.stages, tile)?;
                gathering.make_room(context).map(|()| taken)
            };
            begin(Some(&mut TileAnswers { attrs: &asked.attrs, accept }))?
        } else {
            begin(None)?
        };
        while let Some(cells) = scan.next_batch()? {
            self.take(context, &cells)?;
        }
        self.end(context)
    }

    /// Takes in what waits for more cells: there are no more.
    pub(super) fn end(&mut self, context: &ReadContext) -> Result<()> {
        if let Some(rest) = self.rest.take() {
            self.take_chunks(context, vec![(&rest, 0, rest.count)])?;
        }
        self.gathering.settle(context.cancel.as_ref())
    }

    /// Takes in all cells of a box of a dense array, whose attributes are those of [`Aggregation::attrs`].
    ///
    /// # Errors
    /// Those of a read; Input: a value that an expression or an aggregate cannot take.
    pub fn take_box(&mut self, context: &ReadContext, target: &Target, request: &Request) -> Result<()> {
        let mut cells = DenseCells::new(context, target, request, index::can_answer(&self.asked))?;
        let units_max = context.pool.threads() * 16;
        let mut group = Vec::with_capacity(units_max);
        // Merged at the end: how many units go before a tile depends on the number of threads.
        let mut whole = self.asked.plan.stages.fresh();
        loop {
            let next = cells.next()?;
            let ended = next.is_none();
            match next {
                Some(DensePart::Whole(tile)) if index::take_tile(&self.asked, &mut whole, &tile)? => {
                    Counters::add(&context.counters.tiles_from_index, 1);
                    if whole.size_bytes() > context.budget.limit_bytes() / WHOLE_SHARE {
                        self.take_stages(context, &mut whole)?;
                    }
                }
                Some(DensePart::Whole(tile)) => cells.cut(&tile.bounds),
                Some(DensePart::Unit(region)) => {
                    let first = self.taken;
                    self.taken += region.cells() as u64;
                    group.push((region, first));
                }
                None => {}
            }
            if group.len() == units_max || ended {
                self.take_units(&cells, std::mem::take(&mut group))?;
                self.gathering.make_room(context)?;
            }
            if ended {
                self.gathering.settle(context.cancel.as_ref())?;
                return self.take_stages(context, &mut whole);
            }
        }
    }

    /// Takes in what `stages` hold, which have seen nothing afterwards.
    fn take_stages(&mut self, context: &ReadContext, stages: &mut Stages) -> Result<()> {
        self.gathering.stages.absorb(stages, context.cancel.as_ref())?;
        *stages = stages.fresh();
        self.gathering.make_room(context)
    }

    fn take_units(&mut self, cells: &DenseCells, units: Vec<(Subarray, u64)>) -> Result<()> {
        let schema = &cells.plan.schema;
        let attrs: Vec<&Attribute> = self.asked.attrs.iter().filter_map(|place| schema.attrs().get(*place)).collect();
        let _begun = match cells.plan.is_far() {
            true => Some(cells.plan.begin(&cells.context, units.iter().map(|(region, _)| region).collect(), &attrs)?),
            false => None,
        };
        let asked = &self.asked;
        let take = |stages: &mut Stages, (region, first): (Subarray, u64)| {
            let columns = cells.plan.paint(&cells.context, &region, &attrs)?;
            asked.take_chunk(stages, &Chunk::of_box(&region, columns, first))
        };
        self.gathering.take_each(&cells.context, units, take)
    }

    /// Bytes of cells that should be read at once.
    pub fn batch_bytes(context: &ReadContext) -> u64 {
        context.batch_bytes().min(BATCH_BYTES_MAX)
    }

    /// Takes in cells, in whole chunks; what is left of them waits for the next ones.
    pub(super) fn take(&mut self, context: &ReadContext, cells: &Cells) -> Result<()> {
        let (mut from, mut chunks) = (0, Vec::new());
        let first = match self.rest.take() {
            None => None,
            Some(mut rest) => {
                from = (CHUNK_ROWS - rest.count).min(cells.count);
                rest.append(part(cells, 0, from))?;
                if rest.count < CHUNK_ROWS {
                    self.rest = Some(rest);
                    return Ok(());
                }
                Some(rest)
            }
        };
        chunks.extend(first.as_ref().map(|rest| (rest, 0, rest.count)));
        while from + CHUNK_ROWS <= cells.count {
            chunks.push((cells, from, from + CHUNK_ROWS));
            from += CHUNK_ROWS;
        }
        if from < cells.count {
            self.rest = Some(part(cells, from, cells.count));
        }
        self.take_chunks(context, chunks)
    }

    /// Takes chunks in, side by side.
    fn take_chunks(&mut self, context: &ReadContext, chunks: Vec<(&Cells, usize, usize)>) -> Result<()> {
        let mut numbered = Vec::with_capacity(chunks.len());
        for (cells, from, to) in chunks {
            numbered.push((cells, (from, to), self.taken));
            self.taken += (to - from) as u64;
        }
        let asked = &self.asked;
        let take = |stages: &mut Stages, (cells, range, first): (&Cells, (usize, usize), u64)| {
            asked.take_chunk(stages, &Chunk::of(cells, range, first))
        };
        self.gathering.take_each(context, numbered, take)?;
        self.gathering.make_room(context)
    }

    /// What it holds, as tables that can be sent and merged.
    ///
    /// # Errors
    /// Cancelled.
    pub fn tables(&self, cancel: &dyn Cancel) -> Result<Vec<PartialTable>> {
        self.gathering.stages.tables(cancel)
    }

    /// Takes in tables that another aggregation of the same question gave.
    ///
    /// # Errors
    /// Input: they are of another question; Cancelled.
    pub fn absorb(&mut self, tables: &[PartialTable], cancel: &dyn Cancel) -> Result<()> {
        self.gathering.stages.absorb_tables(tables, cancel)
    }

    /// The answer as a stream of batches, groups ascending. Groups that were written as runs need a context.
    ///
    /// # Errors
    /// Storage, Cancelled.
    pub fn into_answers(self, context: Option<&ReadContext>) -> Result<Answers> {
        Answers::new(&self.asked.plan, self.gathering.into_gathered(context)?, context)
    }

    /// The answer of what was taken in as tables, groups ascending.
    ///
    /// # Errors
    /// Input: a sum that does not fit its type; Cancelled.
    pub fn finish(self, cancel: &Arc<dyn Cancel>) -> Result<Answer> {
        let mut answers = self.into_answers(None)?;
        answers.set_cancel(cancel);
        answers.collect()
    }
}

/// Some of the cells of a batch.
fn part(cells: &Cells, from: usize, to: usize) -> Cells {
    let cut = |columns: &[Column]| columns.iter().map(|column| column.view().copy_range(from, to)).collect();
    Cells { count: to - from, dims: cut(&cells.dims), attrs: cut(&cells.attrs) }
}
