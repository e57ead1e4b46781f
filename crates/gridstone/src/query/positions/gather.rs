//! Chosen cells read block by block and moved to their places.

use super::selection::Positions;
use super::units::{Moves, Unit, Units};
use crate::base::{Counters, Error, Result, limits};
use crate::query::cells::shared_result::SharedResult;
use crate::query::dense::canvas::Canvas;
use crate::query::dense::plan::DensePlan;
use crate::query::dense::result::ResultColumn;
use crate::query::request::{ALONE_BYTES_MAX, ReadContext, ReadOrder, Request, Target, is_deliverable};
use crate::schema::{Attribute, Order, Subarray};
use crate::tile::{Cells, Column, Strided};
use std::cell::Cell;
use std::collections::VecDeque;
use std::sync::Arc;

/// With fewer chosen cells in a block than this they are looked up one by one: a block costs as much as some hundred lookups.
const BLOCK_CELLS_MIN: u64 = 512;
/// Cells of neighbouring blocks that are one unit, about.
const UNIT_CELLS: u64 = 1 << 16;
/// Units that are read together where answers take long, at most.
const FAR_UNITS_MAX: usize = 1_024;

thread_local! {
    /// The cells of a unit's region, before those that were chosen are moved.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// One read by blocks.
struct Gathering<'a> {
    context: &'a ReadContext,
    plan: &'a DensePlan,
    units: &'a Units<'a>,
    order: Order,
    /// Attributes whose cells have their places in the result already.
    results: &'a [ResultColumn<'a>],
    painted: &'a [&'a Attribute],
}

/// Reads the chosen cells by the blocks that hold them; `None`, and nothing is read, if there are too few in each for that.
pub(super) fn by_blocks(
    context: &ReadContext,
    target: &Target,
    positions: &Positions<'_>,
    (hull, attrs): (&Subarray, &[usize]),
    cells: usize,
) -> Result<Option<Cells>> {
    let request = Request::of_box(hull.clone(), attrs.to_vec(), ReadOrder::Row);
    let mut units = Units::new(&target.schema, positions);
    if units.blocks(limits::DENSE_BLOCK_CELLS).saturating_mul(BLOCK_CELLS_MIN) > cells as u64 {
        return Ok(None);
    }
    let plan = DensePlan::new(context, target, &request)?;
    let asked: Vec<&Attribute> = attrs.iter().filter_map(|place| target.schema.attrs().get(*place)).collect();
    let (delivered, painted): (Vec<&Attribute>, Vec<&Attribute>) = asked.iter().partition(|attr| is_deliverable(attr));
    let mut canvases: Vec<Canvas<'_>> = painted.iter().map(|attr| Canvas::new(attr, cells)).collect::<Result<_>>()?;
    let mut buffers = Vec::with_capacity(delivered.len());
    for attr in &delivered {
        buffers.push(context.arena.take_cells(cells, attr.datatype().width().unwrap_or(1))?);
    }
    // A result that does not fit is refused before it is planned.
    units.cut_by_blocks(plan.block_cells(), UNIT_CELLS);
    let lent = delivered.iter().zip(&mut buffers);
    let results: Vec<ResultColumn<'_>> =
        lent.map(|(attr, buf)| ResultColumn { attr, slots: SharedResult::new(buf.as_mut_slice()) }).collect();
    let width: usize = asked.iter().map(|attr| attr.datatype().width().unwrap_or(16)).sum();
    let order = target.schema.options().cell_order;
    let (mut waiting, mut done, mut moved) = (VecDeque::new(), 0u64, 0u64);
    loop {
        let group = next_group(context, &mut units, &mut waiting, plan.is_far())?;
        if group.is_empty() {
            break;
        }
        let gathering = Gathering { context, plan: &plan, units: &units, order, results: &results, painted: &painted };
        let touched: u64 = group.iter().map(|unit| unit.region.cells() as u64).sum();
        for (moves, columns) in gathering.read(group, touched.saturating_mul(width as u64))? {
            moved += moves.count();
            for (canvas, column) in canvases.iter_mut().zip(columns) {
                paint(canvas, &Arc::new(column), &moves);
            }
        }
        done = done.saturating_add(touched);
        context.progress.report(done.min(cells as u64), cells as u64);
    }
    drop(results);
    if moved != cells as u64 {
        // A place that no cell was moved to must not be given: it holds what was in this memory before.
        return Err(Error::corruption(format!("{moved} of {cells} chosen cells were found where the plan has them")));
    }
    context.progress.report(cells as u64, cells as u64);
    Counters::add(&context.counters.cells_returned, cells as u64);
    let mut made = delivered.iter().zip(buffers).map(|(a, b)| Column::new(a.datatype(), b, None, None));
    let mut drawn = canvases.into_iter().map(Canvas::finish);
    let columns = asked.iter().filter_map(|attr| if is_deliverable(attr) { made.next() } else { drawn.next() });
    Ok(Some(Cells { count: cells, dims: Vec::new(), attrs: columns.collect::<Result<_>>()? }))
}

/// The units that are read next, side by side.
fn next_group(
    context: &ReadContext,
    units: &mut Units<'_>,
    waiting: &mut VecDeque<Unit>,
    far: bool,
) -> Result<Vec<Unit>> {
    let cells_max = context.batch_bytes() / 8;
    let units_max = if far { FAR_UNITS_MAX } else { context.pool.threads() * 16 };
    let (mut group, mut cells) = (Vec::new(), 0u64);
    while group.len() < units_max && cells < cells_max {
        if waiting.is_empty() {
            context.cancel.check()?;
            let Some(tile) = units.next_tile() else { break };
            waiting.extend(tile);
            continue;
        }
        let Some(unit) = waiting.pop_front() else { break };
        cells = cells.saturating_add(unit.region.cells() as u64);
        group.push(unit);
    }
    Ok(group)
}

impl Gathering<'_> {
    /// Moves what is chosen of each unit; gives the columns of painted attributes with their moves.
    fn read(&self, group: Vec<Unit>, bytes: u64) -> Result<Vec<(Moves, Vec<Column>)>> {
        let attrs: Vec<&Attribute> = self.results.iter().map(|r| r.attr).chain(self.painted.iter().copied()).collect();
        let _begun = match self.plan.is_far() {
            true => Some(self.plan.begin(self.context, group.iter().map(|unit| &unit.region).collect(), &attrs)?),
            false => None,
        };
        self.context.budget.take(bytes);
        let read = |unit: Unit| self.fill(&unit);
        let found = match bytes <= ALONE_BYTES_MAX {
            true => group.into_iter().map(read).collect(),
            false => self.context.pool.map(group, self.context.cancel.as_ref(), read),
        };
        self.context.budget.give(bytes);
        found
    }

    fn fill(&self, unit: &Unit) -> Result<(Moves, Vec<Column>)> {
        let moves = self.units.moves(unit, self.order);
        let mut left = Vec::new();
        for result in self.results {
            if !self.deliver(unit, result, &moves)? {
                left.push(result);
            }
        }
        let attrs: Vec<&Attribute> = left.iter().map(|r| r.attr).chain(self.painted.iter().copied()).collect();
        if attrs.is_empty() {
            return Ok((moves, Vec::new()));
        }
        let mut columns = self.plan.paint(self.context, &unit.region, &attrs)?;
        let rest = columns.split_off(left.len());
        for (result, column) in left.iter().zip(&columns) {
            gather(result, column.view().values(), &moves);
        }
        Ok((moves, rest))
    }

    /// Moves the chosen cells of one attribute, if one fragment holds them all; `false` if they have to be painted.
    fn deliver(&self, unit: &Unit, result: &ResultColumn<'_>, moves: &Moves) -> Result<bool> {
        let mut scratch = SCRATCH.take();
        scratch.resize(unit.region.cells() as usize * result.width(), 0);
        let lent = ResultColumn { attr: result.attr, slots: SharedResult::new(&mut scratch) };
        let packed = Strided::packed(&unit.region.shape(), self.order);
        let delivered = self.plan.deliver(self.context, &lent, &unit.region, &packed);
        let delivered = delivered.map(|put| put.is_some());
        if matches!(delivered, Ok(true)) {
            gather(result, &scratch, moves);
        }
        SCRATCH.set(scratch);
        delivered
    }
}

/// Moves the chosen ones of a region's cells to the result.
fn gather(result: &ResultColumn<'_>, values: &[u8], moves: &Moves) {
    // SAFETY: each place of the result belongs to one cell of one unit, and a unit is read by one thread.
    moves.each(|row, place, steps| unsafe { result.slots.move_steps(result.width(), values, (row, place), steps) });
}

fn paint(canvas: &mut Canvas<'_>, column: &Arc<Column>, moves: &Moves) {
    let mut places = Vec::new();
    moves.each(|row, place, steps| {
        places.extend(steps.iter().map(|(on, to)| (place + to, (row + on) as u32)));
    });
    canvas.paint_cells(column, places.into_iter());
}
