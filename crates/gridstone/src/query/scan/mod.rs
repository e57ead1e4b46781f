//! Streams of cells in bounded memory, coordinates included, for sparse and dense arrays alike.
//!
//! - Sparse, global order: a [`SparseReader`] gives batch after batch.
//! - Sparse, row or column order: slabs along the slowest dimension (where that is one coordinate thick,
//!   the next), halved until one should fit a batch, each read and
//!   sorted. A block is read once for every slab that it touches. Where few cells are left they are halved, not the slab.
//! - Dense: pieces that are contiguous in the order asked for, each read as a box.
//! - With a condition dense arrays go the way of sparse ones, through a `filter::Source`.

pub(super) mod buffers;

use super::cells::layout::move_cells;
use super::dense::read::read_dense;
use super::request::{ReadContext, ReadOrder, Request, Target};
use super::select::filter::Filter;
use super::select::{Source, TileAnswers, narrowed, opened};
use super::sparse::SparseReader;
use crate::base::{AlignedBuf, Cancel, Counters, Error, Progress, Result};
use crate::condition::Bound;
use crate::schema::{KeyRange, Order, Schema, Subarray, key};
use crate::tile::coordinates::axis_keys;
use crate::tile::{BlockGrid, Cells, Column, Strided, TileGrid};
use std::sync::Arc;

/// So few cells are looked at one by one to halve them.
const HALVED_CELLS_MAX: u64 = 1 << 18;

enum State {
    SparseReader(Source),
    Slabs(Vec<Subarray>),
    /// Tiles in tile order, the pieces of the current tile, the next piece.
    Tiles {
        grid: TileGrid,
        tile: u64,
        pieces: Option<(Subarray, BlockGrid, u64)>,
    },
    /// The pieces of the whole box, the next piece.
    Box {
        pieces: BlockGrid,
        next: u64,
    },
}

/// A stream of the cells of a box.
pub struct Scan {
    context: ReadContext,
    target: Target,
    request: Request,
    batch_bytes: u64,
    filter: Option<Arc<Filter>>,
    state: State,
}

impl std::fmt::Debug for Scan {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Scan({:?})", self.request.order)
    }
}

impl Scan {
    /// Starts a stream in batches of about `batch_bytes`, and never more than a share of the budget.
    pub fn new(context: ReadContext, target: Target, request: Request, batch_bytes: u64) -> Result<Self> {
        Self::start(context, target, request, batch_bytes, (None, None))
    }

    /// The same but for the cells of tiles that are answered for; of a sparse array, in any order.
    pub fn without(
        context: ReadContext,
        target: Target,
        request: Request,
        batch_bytes: u64,
        answers: &mut TileAnswers<'_>,
    ) -> Result<Self> {
        let mut scan = Self::start(context, target, request, batch_bytes, (None, Some(answers)))?;
        scan.take_whole_tiles(answers)?;
        Ok(scan)
    }

    /// The same of those cells alone that `condition` selects.
    pub fn filtered(
        context: ReadContext,
        target: Target,
        mut request: Request,
        batch_bytes: u64,
        condition: &Bound,
    ) -> Result<Self> {
        let Some(sub) = narrowed(&target, &request, condition) else {
            return Ok(Self::nothing(context, target, request));
        };
        request.sub = sub;
        let filter = Arc::new(Filter::new(condition, &request));
        let target = opened(&context, &target, &request.sub, &filter)?.into_owned();
        Self::start(context, target, request, batch_bytes, (Some(filter), None))
    }

    /// A stream without a cell.
    pub fn nothing(context: ReadContext, target: Target, request: Request) -> Self {
        Self { context, target, request, batch_bytes: 1, filter: None, state: State::Slabs(Vec::new()) }
    }

    fn start(
        context: ReadContext,
        target: Target,
        request: Request,
        batch_bytes: u64,
        (filter, answers): (Option<Arc<Filter>>, Option<&mut TileAnswers<'_>>),
    ) -> Result<Self> {
        let batch_bytes = batch_bytes.clamp(1, context.batch_bytes());
        let schema = &target.schema;
        let cells = (batch_bytes / target.row_bytes()).max(1);
        let state = match (schema.sparse() || filter.is_some(), request.order) {
            (true, ReadOrder::Global | ReadOrder::Any) => {
                State::SparseReader(source(&context, &target, &request, filter.as_ref(), answers)?)
            }
            (true, _) => State::Slabs(vec![request.sub.clone()]),
            (false, ReadOrder::Global | ReadOrder::Any) => {
                State::Tiles { grid: TileGrid::new(schema, &request.sub)?, tile: 0, pieces: None }
            }
            (false, _) if u64::try_from(request.sub.cells()).is_err() => {
                return Err(Error::bounds(format!(
                    "the box {} has {} cells, more than can be numbered; stream smaller boxes, or in global order",
                    schema.describe(&request.sub),
                    request.sub.cells()
                )));
            }
            (false, order) => State::Box { pieces: BlockGrid::new(&request.sub.shape(), plain(order), cells), next: 0 },
        };
        Ok(Self { context, target, request, batch_bytes, filter, state })
    }

    /// Hands tiles whose cells are all given as they are to what answers for them, and gives the cells of those no more that it takes.
    /// To be called before the first batch.
    pub fn take_whole_tiles(&mut self, answers: &mut TileAnswers<'_>) -> Result<()> {
        match &mut self.state {
            State::SparseReader(source) => source.take_whole_tiles(answers),
            State::Slabs(_) | State::Tiles { .. } | State::Box { .. } => Ok(()),
        }
    }

    /// What the stream has done so far.
    pub fn counters(&self) -> &crate::base::Counters {
        &self.context.counters
    }

    /// From now on asks `cancel` whether to go on.
    pub fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        if let State::SparseReader(sweep) = &mut self.state {
            sweep.set_cancel(cancel.clone());
        }
        self.context.cancel = cancel;
    }

    /// From now on reports to `progress`.
    pub fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        if let State::SparseReader(sweep) = &mut self.state {
            sweep.set_progress(progress.clone());
        }
        self.context.progress = progress;
    }

    /// The next batch; `None` at the end.
    pub fn next_batch(&mut self) -> Result<Option<Cells>> {
        let batch = if self.filter.is_some() { self.full_batch() } else { self.batch() };
        self.context.explain_missing(batch)
    }

    /// As many cells as make a batch: a condition may leave few of each portion.
    fn full_batch(&mut self) -> Result<Option<Cells>> {
        let mut all: Option<Cells> = None;
        while all.as_ref().is_none_or(|all| all.count == 0 || all.size_bytes() < self.batch_bytes / 2) {
            let Some(cells) = self.batch()? else { break };
            match &mut all {
                Some(all) => all.append(cells)?,
                None => all = Some(cells),
            }
        }
        Ok(all.filter(|all| all.count > 0))
    }

    fn batch(&mut self) -> Result<Option<Cells>> {
        self.context.cancel.check()?;
        if let State::SparseReader(sweep) = &mut self.state {
            return sweep.next(self.batch_bytes);
        }
        if matches!(self.state, State::Slabs(_)) {
            return self.next_slab();
        }
        let Some(piece) = self.next_piece() else { return Ok(None) };
        self.read_piece(&piece).map(Some)
    }

    /// Reads the next slab that fits a batch. One that was guessed too small is given up and halved.
    fn next_slab(&mut self) -> Result<Option<Cells>> {
        let cells_max = (self.batch_bytes / self.target.row_bytes()).max(1);
        loop {
            let State::Slabs(slabs) = &mut self.state else { return Ok(None) };
            let Some(slab) = slabs.pop() else { return Ok(None) };
            let request = Request { sub: slab.clone(), ..self.request.clone() };
            let sweep = source(&self.context, &within(&self.target, &slab), &request, self.filter.as_ref(), None)?;
            // What the cells reach is halved, not the slab: a few cells in a wide domain would take a step per bit.
            let Some(reach) = sweep.reach() else { continue };
            // Slower dimensions are one coordinate thick already, so halves follow each other in the order asked for.
            let thick = |d: &usize| reach.ranges().get(*d).is_some_and(|r| r.lo < r.hi);
            let slowest = self.target.schema.slowest_first(plain(self.request.order)).into_iter().find(thick);
            let estimate = sweep.estimate(slowest.unwrap_or(0));
            let limit = if slowest.is_some() { cells_max.saturating_mul(2) } else { u64::MAX };
            let cells_near = sweep.cells_near();
            let cells = if estimate <= limit { sweep.collect(limit)? } else { None };
            match (cells, slowest) {
                (Some(cells), _) if cells.count > 0 => return Ok(Some(cells)),
                (Some(_), _) | (None, None) => {}
                (None, Some(dim)) => {
                    let halves = self.halves(&reach, dim, cells_near)?;
                    if let State::Slabs(slabs) = &mut self.state {
                        // The lower one comes next.
                        slabs.extend(halves.into_iter().rev());
                    }
                }
            }
        }
    }

    /// Both halves of what cells reach, along one dimension; `cells_near` is how many there are at most. Few cells of a sparse array are halved themselves: texts and
    /// far-off coordinates take a step for each of their bits else, in each of which what lies there is read.
    fn halves(&self, reach: &Subarray, dim: usize, cells_near: u64) -> Result<Vec<Subarray>> {
        let schema = &self.target.schema;
        let few = |cells: u64| {
            cells <= HALVED_CELLS_MAX && cells.saturating_mul(8 * schema.ndim() as u64) <= self.context.batch_bytes()
        };
        let blindly = || Ok(halve(reach, dim).into_iter().flat_map(|(low, high)| [low, high]).collect());
        if !schema.sparse() || !few(cells_near) {
            return blindly();
        }
        // What is read to cut is not what is given.
        let context = ReadContext { counters: Arc::new(Counters::default()), ..self.context.clone() };
        let request =
            Request { sub: reach.clone(), attrs: Vec::new(), order: ReadOrder::Global, ..self.request.clone() };
        let sweep = SparseReader::new(&context, &within(&self.target, reach), &request)?;
        // Of a read with a condition the blocks that it rules out were not counted.
        let cells = if few(sweep.cells_near()) { sweep.collect(u64::MAX)? } else { None };
        let Some(cells) = cells else { return blindly() };
        let mut along = axis_keys(schema, &cells.dims)?.into_iter().nth(dim).unwrap_or_default();
        along.sort_unstable();
        let (Some(first), Some(last)) = (along.first().copied(), along.last().copied()) else { return Ok(Vec::new()) };
        let part = |lo: u64, hi: u64| with(reach, dim, KeyRange::new(lo, hi));
        // The least coordinate of the upper half. Cells with one coordinate stay together.
        let second = along.iter().copied().find(|key| *key > first);
        let middle = along.get(along.len() / 2).copied().unwrap_or(last);
        Ok(match second.map(|second| middle.max(second)) {
            Some(cut) => vec![part(first, cut - 1), part(cut, last)],
            None => vec![part(first, last)],
        })
    }

    /// The next box of a dense stream.
    fn next_piece(&mut self) -> Option<Subarray> {
        let cells = (self.batch_bytes / self.target.row_bytes()).max(1);
        let order = self.target.schema.options().cell_order;
        match &mut self.state {
            State::Box { pieces, next } => {
                *next += 1;
                (*next <= pieces.len()).then(|| pieces.block_box(*next - 1).within(&self.request.sub))
            }
            State::Tiles { grid, tile, pieces } => loop {
                if let Some((region, blocks, next)) = pieces {
                    *next += 1;
                    if *next <= blocks.len() {
                        return Some(blocks.block_box(*next - 1).within(region));
                    }
                }
                if *tile >= grid.len() {
                    return None;
                }
                let region = grid.tile_box(*tile)?;
                *tile += 1;
                let blocks = BlockGrid::new(&region.shape(), order, cells);
                *pieces = Some((region, blocks, 0));
            },
            State::SparseReader(_) | State::Slabs(_) => None,
        }
    }

    fn read_piece(&self, piece: &Subarray) -> Result<Cells> {
        let schema = &self.target.schema;
        let order = match self.request.order {
            ReadOrder::Row => Order::Row,
            ReadOrder::Col => Order::Col,
            ReadOrder::Global | ReadOrder::Any => schema.options().cell_order,
        };
        let read_order = if order == Order::Row { ReadOrder::Row } else { ReadOrder::Col };
        let request = Request { sub: piece.clone(), order: read_order, ..self.request.clone() };
        let mut cells = read_dense(&self.context, &within(&self.target, piece), &request)?;
        cells.dims = coordinates(schema, piece, order)?;
        Ok(cells)
    }
}

fn source(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    filter: Option<&Arc<Filter>>,
    answers: Option<&mut TileAnswers<'_>>,
) -> Result<Source> {
    match filter {
        None => Source::plain(context, target, request, answers),
        Some(filter) => Source::sifted(context, target, request, filter.clone()),
    }
}

fn plain(order: ReadOrder) -> Order {
    if order == ReadOrder::Col { Order::Col } else { Order::Row }
}

/// The fragments that touch `sub` only.
fn within(target: &Target, sub: &Subarray) -> Target {
    let fragments = target.fragments.iter().filter(|d| d.bounds.intersects(sub)).cloned().collect();
    Target { fragments, ..target.clone() }
}

/// Both halves of a box along one dimension, `None` if it is one coordinate thick there.
fn halve(sub: &Subarray, dim: usize) -> Option<(Subarray, Subarray)> {
    let range = *sub.ranges().get(dim)?;
    let middle = range.lo + (range.hi - range.lo) / 2;
    let part = |lo: u64, hi: u64| with(sub, dim, KeyRange::new(lo, hi));
    (range.lo < range.hi).then(|| (part(range.lo, middle), part(middle + 1, range.hi)))
}

/// A box with another range along one dimension.
fn with(sub: &Subarray, dim: usize, range: KeyRange) -> Subarray {
    let mut ranges = sub.ranges().to_vec();
    if let Some(slot) = ranges.get_mut(dim) {
        *slot = range;
    }
    Subarray::new(ranges)
}

/// The coordinates of all cells of a box in `order`, a column per dimension.
fn coordinates(schema: &Schema, sub: &Subarray, order: Order) -> Result<Vec<Column>> {
    let shape = sub.shape();
    let cells = sub.cells() as usize;
    let mut columns = Vec::with_capacity(shape.len());
    for (d, (dim, range)) in schema.dims().iter().zip(sub.ranges()).enumerate() {
        let mut values = Vec::new();
        key::decode(dim.datatype(), range.lo..=range.hi, &mut values);
        let width = dim.datatype().width().unwrap_or(8);
        let mut all = AlignedBuf::zeroed(cells * width);
        let strides = (0..shape.len()).map(|other| u64::from(other == d)).collect();
        let to = Strided::packed(&shape, order);
        move_cells(&shape, width, &values, &Strided { start: 0, strides }, all.as_mut_slice(), &to);
        columns.push(Column::new(dim.datatype(), all, None, None)?);
    }
    Ok(columns)
}
