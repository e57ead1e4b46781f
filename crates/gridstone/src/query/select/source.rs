//! Where a stream's cells come from: the merge of fragments, as they are or as a condition takes them.

use super::dense::FilteredDenseReader;
use super::filter::Filter;
use super::known::Known;
use super::sparse::FilteredSparseReader;
use super::whole_tiles::{EarlyTiles, TileAnswers, take_whole_tiles};
use crate::base::{Cancel, Counters, Progress, Result};
use crate::query::request::{ReadContext, ReadOrder, Request, Target};
use crate::query::sparse::{SparseReader, sort_cells};
use crate::schema::{Order, Schema, Subarray};
use crate::tile::Cells;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Cells in global order, coordinates included.
pub(in crate::query) enum Source {
    /// All of a sparse array.
    Plain(Box<SparseReader>),
    /// Those of a sparse array that a condition selects.
    Sparse(Box<FilteredSparseReader>),
    /// Those of a dense one.
    Dense(Box<FilteredDenseReader>),
}

impl Source {
    /// All of a sparse array but those of tiles that are answered for.
    pub(in crate::query) fn plain(
        context: &ReadContext,
        target: &Target,
        request: &Request,
        answers: Option<&mut TileAnswers<'_>>,
    ) -> Result<Self> {
        let Some(answers) = answers else {
            return SparseReader::new(context, target, request).map(|sweep| Self::Plain(Box::new(sweep)));
        };
        let mut early = EarlyTiles { schema: &target.schema, answers, known: Known::default(), taken: 0 };
        let sweep = SparseReader::without(context, target, request, Some(&mut early))?;
        Counters::add(&context.counters.tiles_from_index, early.taken);
        Ok(Self::Plain(Box::new(sweep)))
    }

    /// Those that `filter` selects.
    pub(in crate::query) fn sifted(
        context: &ReadContext,
        target: &Target,
        request: &Request,
        filter: Arc<Filter>,
    ) -> Result<Self> {
        match target.schema.sparse() {
            true => FilteredSparseReader::new(context, target, request, filter).map(|s| Self::Sparse(Box::new(s))),
            false => FilteredDenseReader::new(context, target, request, filter).map(|s| Self::Dense(Box::new(s))),
        }
    }

    /// Hands the whole tiles of a sparse array to what answers for them, and reads those no more that it takes. To be called before
    /// the first batch.
    pub(in crate::query) fn take_whole_tiles(&mut self, answers: &mut TileAnswers<'_>) -> Result<()> {
        match self {
            Self::Plain(sweep) => take_whole_tiles(sweep, None, answers),
            Self::Sparse(sieve) => sieve.take_whole_tiles(answers),
            Self::Dense(_) => Ok(()),
        }
    }

    /// From now on asks `cancel` whether to go on.
    pub(in crate::query) fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        match self {
            Self::Plain(sweep) => sweep.set_cancel(cancel),
            Self::Sparse(sieve) => sieve.set_cancel(cancel),
            Self::Dense(sieve) => sieve.set_cancel(cancel),
        }
    }

    /// From now on reports to `progress`.
    pub(in crate::query) fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        match self {
            Self::Plain(sweep) => sweep.set_progress(progress),
            Self::Sparse(sieve) => sieve.set_progress(progress),
            Self::Dense(sieve) => sieve.set_progress(progress),
        }
    }

    /// The next cells, of about `bytes` of blocks; `None` at the end.
    pub(in crate::query) fn next(&mut self, bytes: u64) -> Result<Option<Cells>> {
        match self {
            Self::Plain(sweep) => sweep.next(bytes),
            Self::Sparse(sieve) => sieve.next(bytes),
            Self::Dense(sieve) => sieve.next(bytes),
        }
    }

    /// As [`SparseReader::reach`].
    pub(in crate::query) fn reach(&self) -> Option<Subarray> {
        match self {
            Self::Plain(sweep) => sweep.reach(),
            Self::Sparse(sieve) => sieve.sweep().reach(),
            Self::Dense(sieve) => sieve.reach(),
        }
    }

    /// As [`SparseReader::estimate`], before the condition.
    pub(in crate::query) fn estimate(&self, dim: usize) -> u64 {
        match self {
            Self::Plain(sweep) => sweep.estimate(dim),
            Self::Sparse(sieve) => sieve.sweep().estimate(dim),
            Self::Dense(sieve) => sieve.cells_max(),
        }
    }

    /// The cells of all blocks and entries that the box touches, before the condition.
    pub(in crate::query) fn cells_near(&self) -> u64 {
        match self {
            Self::Plain(sweep) => sweep.cells_near(),
            Self::Sparse(sieve) => sieve.sweep().cells_near(),
            Self::Dense(sieve) => sieve.cells_max(),
        }
    }

    /// All cells in the order asked for; `None`, found out early, if they are more than `cells_max`.
    pub(in crate::query) fn collect(self, cells_max: u64) -> Result<Option<Cells>> {
        match self {
            Self::Plain(sweep) => sweep.collect(cells_max),
            sifted => sifted.collect_sifted(cells_max),
        }
    }

    fn collect_sifted(mut self, cells_max: u64) -> Result<Option<Cells>> {
        let (context, schema, request) = self.asked();
        let mut all = Cells::none(&schema, &request.attrs);
        while let Some(batch) = self.next(context.batch_bytes())? {
            all.append(batch)?;
            if all.count as u64 > cells_max {
                context.counters.cells_returned.fetch_sub(all.count as u64, Relaxed);
                return Ok(None);
            }
        }
        match request.order {
            ReadOrder::Row => sort_cells(&context, &schema, all, Order::Row).map(Some),
            ReadOrder::Col => sort_cells(&context, &schema, all, Order::Col).map(Some),
            ReadOrder::Global | ReadOrder::Any => Ok(Some(all)),
        }
    }

    fn asked(&self) -> (ReadContext, Arc<Schema>, Request) {
        let of = |sweep: &SparseReader| (sweep.context.clone(), sweep.schema.clone(), sweep.request.clone());
        match self {
            Self::Plain(sweep) => of(sweep),
            Self::Sparse(sieve) => of(sieve.sweep()),
            Self::Dense(sieve) => sieve.asked(),
        }
    }
}
