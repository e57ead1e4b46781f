//! The cells of a dense array that a condition selects, in global order.
//!
//! An unwritten cell is one that reads as fill, or null: the condition may select it.

use super::filter::Filter;
use super::known::{Known, of_fill, verdict_within};
use crate::base::{Cancel, Counters, Error, Progress, Result};
use crate::condition::{Batch, Bound, Verdict};
use crate::fragment::Description;
use crate::query::dense::layer::{Layer, LayerKind};
use crate::query::dense::plan::{CellSource, DensePlan};
use crate::query::dense::prefetch::{BYTES_MAX, UNITS_MAX};
use crate::query::request::{ALONE_BYTES_MAX, ReadContext, Request, Target};
use crate::schema::{Attribute, Datatype, KeyRange, Order, Schema, Subarray};
use crate::tile::coordinates::coordinate_column;
use crate::tile::{Cells, Column, Statistics, Strided};
use std::cmp::Reverse;
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

/// Cells of a unit, about: a block of usual size.
const UNIT_CELLS: u64 = 16_384;

/// A read of a dense array with a condition, under way.
pub(in crate::query) struct FilteredDenseReader {
    context: ReadContext,
    plan: DensePlan,
    /// Where cells may be selected.
    reach: Option<Subarray>,
    filter: Arc<Filter>,
    known: Known,
    /// What the condition's attributes are where nothing was written, by place.
    fills: Vec<(usize, Statistics)>,
    /// Parts of the box that were not looked at, the next one last. Each is one of those that halving its space tiles gives.
    boxes: Vec<Subarray>,
    /// Parts of a space tile to be read, and how many of their cells are selected.
    units: VecDeque<(Subarray, Verdict)>,
    row_bytes: u64,
    done: u64,
}

/// A unit, the values in it that the condition looks at, and its rows that are selected.
struct Selected {
    region: Subarray,
    early: Vec<Column>,
    rows: Vec<u32>,
}

/// What is left of a unit.
struct Part {
    coords: Vec<Vec<u64>>,
    columns: Vec<Column>,
}

/// The part of the box in which `condition` may select a cell of `target`: if no unwritten cell can be, then no more than the
/// box around all fragments. `None`: none can be selected. The whole box of a sparse array, whose blocks tell more.
pub(in crate::query) fn narrowed(target: &Target, request: &Request, condition: &Bound) -> Option<Subarray> {
    let sub = condition.reach(&request.sub)?;
    if target.schema.sparse() || takes_unwritten(target, request, condition) {
        return Some(sub);
    }
    let boxes = target.fragments.iter().filter(|d| d.kind.holds_cells()).filter_map(|d| d.bounds.intersect(&sub));
    boxes.reduce(|a, b| a.union(&b))
}

/// Whether an unwritten cell of the box may be selected.
fn takes_unwritten(target: &Target, request: &Request, condition: &Bound) -> bool {
    let filter = Filter::new(condition, request);
    verdict_within(&filter, &request.sub, &fills(&target.schema, &filter)) != Verdict::None
}

/// A Budget error if unwritten cells, which the condition selects or may select, are too many to be read whole: more than a sort takes, or,
/// as far as it surely selects them, more than the memory budget holds. Several boxes are such a condition.
pub(super) fn check_size(context: &ReadContext, target: &Target, request: &Request, condition: &Bound) -> Result<()> {
    if target.schema.sparse() {
        return Ok(());
    }
    let filter = Filter::new(condition, request);
    let fills = fills(&target.schema, &filter);
    let verdict = verdict_within(&filter, &request.sub, &fills);
    // Of several boxes no more cells than they hold.
    let (cells, asked) = (condition.cells_max(&request.sub), target.schema.describe(&request.sub));
    if verdict != Verdict::None && cells > u128::from(u32::MAX) {
        return Err(Error::budget(format!(
            "the condition may select cells that were never written, and what is asked for of the box {asked} has {cells} cells; ask for a smaller box, \
             add a condition that leaves out the fill, or stream it with scan()"
        )));
    }
    let within =
        |d: &Arc<Description>| d.bounds.intersect(&request.sub).map_or(0, |part| part.cells().min(d.cells.into()));
    let written: u128 = target.fragments.iter().filter(|d| d.kind.holds_cells()).map(within).sum();
    let budget = context.budget.limit_bytes().max(RESULT_BYTES_MIN);
    let width = u128::from(selected_bytes(&target.schema, request).max(1));
    let allowed = written.saturating_add(u128::from(budget) / width);
    if verdict == Verdict::None || cells <= allowed {
        return Ok(());
    }
    let selected = surely_selected(&filter, &request.sub, &fills, allowed, context.cancel.as_ref())?;
    if selected > allowed {
        let bytes = selected.saturating_sub(written).saturating_mul(width);
        return Err(Error::budget(format!(
            "what is asked for of the box {asked} are {selected} cells or more, most of them never written, which take {bytes} bytes or more, \
             beyond the memory budget of {budget}; add a condition that leaves out the fill, ask for a smaller box, stream it with scan(), or give \
             the context more memory"
        )));
    }
    Ok(())
}

/// How often a box is cut while cells are counted that a condition surely selects. Only a read of more cells than the budget holds, if
/// all of its box were selected, is looked at so closely.
const CUTS_MAX: usize = 1 << 14;
/// Of a list of boxes so many are looked at, the largest.
const LISTED_MAX: usize = 1 << 12;

/// What of `sub` is counted, in parts that have no cell in common: some of the boxes that a condition lists, or all of it.
fn counted_parts(condition: &Bound, sub: &Subarray) -> Vec<Subarray> {
    let Some(mut listed) = condition.listed(sub) else { return vec![sub.clone()] };
    listed.sort_by_key(|part| Reverse(part.cells()));
    let mut apart: Vec<Subarray> = Vec::new();
    for part in listed.into_iter().take(LISTED_MAX) {
        if !apart.iter().any(|other| other.intersects(&part)) {
            apart.push(part);
        }
    }
    apart
}

/// How many cells of a box that reads as fill the condition selects, at least: parts of it are halved, the largest first, until it is known of
/// them. Stops where they are more than `enough`, and where they cannot become so.
fn surely_selected(
    filter: &Filter,
    sub: &Subarray,
    fills: &[(usize, Statistics)],
    enough: u128,
    cancel: &dyn Cancel,
) -> Result<u128> {
    let begun = counted_parts(&filter.bound, sub).into_iter().zip(0usize..);
    // By size; numbers tell those of one size apart.
    let mut parts: BTreeMap<(u128, usize), Subarray> = begun.map(|(part, n)| ((part.cells(), n), part)).collect();
    let (mut selected, mut open) = (0u128, parts.keys().fold(0u128, |sum, (cells, _)| sum.saturating_add(*cells)));
    for cut in 0..CUTS_MAX {
        cancel.check()?;
        let Some(((cells, _), part)) = parts.pop_last() else { break };
        match verdict_within(filter, &part, fills) {
            Verdict::Some => {
                let pair = part.halved().into_iter().flat_map(|(low, high)| [low, high]).zip(LISTED_MAX..);
                parts.extend(pair.map(|(half, n)| ((half.cells(), 2 * cut + n), half)));
                continue;
            }
            Verdict::All => selected = selected.saturating_add(cells),
            Verdict::None => {}
        }
        open = open.saturating_sub(cells);
        if selected > enough || selected.saturating_add(open) <= enough {
            break;
        }
    }
    Ok(selected)
}

/// Unwritten cells that take no more than this are given whatever the budget is.
const RESULT_BYTES_MIN: u64 = 64 << 20;

/// Bytes of a selected cell at least: its coordinates and the values asked for.
fn selected_bytes(schema: &Schema, request: &Request) -> u64 {
    let width = |datatype: Datatype| datatype.width().unwrap_or(8) as u64;
    let dims: u64 = schema.dims().iter().map(|d| width(d.datatype())).sum();
    dims + request.attrs.iter().filter_map(|p| schema.attrs().get(*p)).map(|a| width(a.datatype())).sum::<u64>()
}

fn fills(schema: &Schema, filter: &Filter) -> Vec<(usize, Statistics)> {
    let fill = |place: &usize| Some((*place, of_fill(schema.attrs().get(*place)?)?));
    filter.early.iter().filter_map(fill).collect()
}

impl FilteredDenseReader {
    /// Plans the read.
    pub(super) fn new(context: &ReadContext, target: &Target, request: &Request, filter: Arc<Filter>) -> Result<Self> {
        let early = filter.early.iter().filter_map(|place| target.schema.attrs().get(*place)).map(Attribute::id);
        let painted: Vec<u32> = early.chain(request.attr_ids(&target.schema)).collect();
        let plan = DensePlan::painting(context, target, request, &painted)?;
        let fills = fills(&target.schema, &filter);
        let reach = narrowed(target, request, &filter.bound);
        let (boxes, units) = (reach.iter().cloned().collect(), VecDeque::new());
        let (context, known, row_bytes) = (context.clone(), Known::default(), target.row_bytes());
        Ok(Self { context, plan, reach, filter, known, fills, boxes, units, row_bytes, done: 0 })
    }

    pub(super) fn asked(&self) -> (ReadContext, Arc<Schema>, Request) {
        (self.context.clone(), self.plan.schema.clone(), self.plan.request.clone())
    }

    /// The least box known to hold all cells that are selected; `None` if none is.
    pub(super) fn reach(&self) -> Option<Subarray> {
        self.reach.clone()
    }

    /// How many cells may be selected, at most.
    pub(super) fn cells_max(&self) -> u64 {
        let cells = self.reach.as_ref().map_or(0, |reach| self.filter.bound.cells_max(reach));
        u64::try_from(cells).unwrap_or(u64::MAX)
    }

    pub(super) fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        self.context.cancel = cancel;
    }

    pub(super) fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.context.progress = progress;
    }

    /// The next cells, those of units of about `bytes`; `None` at the end.
    pub(super) fn next(&mut self, bytes: u64) -> Result<Option<Cells>> {
        loop {
            let group = self.group(bytes)?;
            if group.is_empty() {
                return Ok(None);
            }
            let cells: u64 = group.iter().map(|(region, _)| region.cells() as u64).sum();
            let held = cells.saturating_mul(self.row_bytes);
            self.context.budget.take(held);
            let parts = if self.plan.is_far() { self.sift_far(group) } else { self.sift_near(group, held) };
            self.context.budget.give(held);
            let found = self.cells_of(&parts?)?;
            self.done += cells;
            let total = u64::try_from(self.plan.request.sub.cells()).unwrap_or(u64::MAX);
            self.context.progress.report(self.done, total);
            Counters::add(&self.context.counters.cells_returned, found.count as u64);
            if found.count > 0 {
                return Ok(Some(found));
            }
        }
    }

    /// What is selected in each unit, one after the other on each thread.
    fn sift_near(&self, group: Vec<(Subarray, Verdict)>, held: u64) -> Result<Vec<Part>> {
        let sift = |(region, verdict): (Subarray, Verdict)| {
            self.select(region, verdict)?.map(|selected| self.complete(selected)).transpose()
        };
        let parts: Result<Vec<Option<Part>>> = match held <= ALONE_BYTES_MAX {
            true => group.into_iter().map(sift).collect(),
            false => self.context.pool.map(group, self.context.cancel.as_ref(), sift),
        };
        Ok(parts?.into_iter().flatten().collect())
    }

    /// The same where answers take long: what the condition looks at is asked for of all units together, and so are the other values of those
    /// in which it selects a cell.
    fn sift_far(&self, group: Vec<(Subarray, Verdict)>) -> Result<Vec<Part>> {
        let (pool, cancel) = (&self.context.pool, self.context.cancel.as_ref());
        let judged = group.iter().filter(|(_, verdict)| self.needs_early(*verdict)).map(|(region, _)| region).collect();
        let begun = self.plan.begin(&self.context, judged, &self.attrs(&self.filter.early))?;
        let selected = pool.map(group, cancel, |(region, verdict)| self.select(region, verdict))?;
        drop(begun);
        let selected: Vec<Selected> = selected.into_iter().flatten().collect();
        let regions = selected.iter().map(|one| &one.region).collect();
        let _begun = self.plan.begin(&self.context, regions, &self.attrs(&self.filter.late))?;
        pool.map(selected, cancel, |one| self.complete(one))
    }

    /// The next units, of about `bytes`; at least one while there is one.
    fn group(&mut self, bytes: u64) -> Result<Vec<(Subarray, Verdict)>> {
        let (bytes, units_max) = match self.plan.is_far() {
            true => (bytes.min(BYTES_MAX), UNITS_MAX),
            false => (bytes, self.context.pool.threads() * 16),
        };
        let cells_max = (bytes / self.row_bytes.max(1)).max(1);
        let (mut group, mut cells) = (Vec::new(), 0);
        while cells < cells_max && group.len() < units_max {
            while self.units.is_empty() {
                self.context.cancel.check()?;
                let Some(next) = self.boxes.pop() else { return Ok(group) };
                self.look_at(next)?;
            }
            let Some(unit) = self.units.pop_front() else { break };
            cells += unit.0.cells() as u64;
            if cells > cells_max && !group.is_empty() {
                self.units.push_front(unit);
                break;
            }
            group.push(unit);
        }
        Ok(group)
    }

    /// Halves a box of several space tiles, leaves out one in which nothing can be selected, makes units of a tile.
    fn look_at(&mut self, region: Subarray) -> Result<()> {
        if verdict_within(&self.filter, &region, &[]) == Verdict::None {
            return Ok(());
        }
        if verdict_within(&self.filter, &region, &self.fills) == Verdict::None && !self.is_written(&region) {
            return Ok(());
        }
        if let Some((low, high)) = halves(&self.plan.schema, &region) {
            self.boxes.push(high);
            self.boxes.push(low);
            return Ok(());
        }
        let verdict = self.verdict(&region)?;
        if verdict == Verdict::None {
            Counters::add(&self.context.counters.tiles_pruned, 1);
            return Ok(());
        }
        for part in self.plan.parts(&region, UNIT_CELLS) {
            self.context.cancel.check()?;
            let verdict = if verdict == Verdict::Some { self.verdict(&part)? } else { verdict };
            if verdict != Verdict::None {
                self.units.push_back((part, verdict));
            }
        }
        Ok(())
    }

    /// Whether something may have been written in a box.
    fn is_written(&self, region: &Subarray) -> bool {
        let writes = |layer: &Layer| match &layer.kind {
            LayerKind::Dense(_) => layer.touches(region),
            LayerKind::Sparse(_, blocks) => blocks.iter().any(|block| block.touches(region)),
            LayerKind::Deletion => false,
        };
        let overlaid = self.plan.overlay.as_ref().is_some_and(|(live, _)| !live.is_empty_in(region));
        overlaid || self.plan.layers.iter().any(writes)
    }

    /// How many cells of a box in one space tile are selected, as far as is known without reading them.
    fn verdict(&mut self, region: &Subarray) -> Result<Verdict> {
        let schema = self.plan.schema.clone();
        let mut found = Vec::with_capacity(self.filter.early.len());
        for place in &self.filter.early {
            let Some(attr) = schema.attrs().get(*place) else { continue };
            let statistics = match self.plan.origin(attr, region) {
                CellSource::Nowhere(_) => of_fill(attr),
                CellSource::One(source) => self.known.of_region(source.as_ref(), attr.id(), region)?,
                CellSource::Many => None,
            };
            found.extend(statistics.map(|statistics| (*place, statistics)));
        }
        let verdict = verdict_within(&self.filter, region, &found);
        if verdict == Verdict::Some || found.is_empty() {
            return Ok(verdict);
        }
        let packed = Strided::packed(&region.shape(), schema.options().cell_order);
        let overlaid = !self.plan.overlay_cells(region, &packed)?.is_empty();
        Ok(if overlaid { Verdict::Some } else { verdict })
    }

    fn attrs(&self, places: &[usize]) -> Vec<&Attribute> {
        places.iter().filter_map(|place| self.plan.schema.attrs().get(*place)).collect()
    }

    /// Whether the values that the condition looks at are read: to judge, or since they are asked for.
    fn needs_early(&self, verdict: Verdict) -> bool {
        verdict == Verdict::Some || (0..self.filter.early.len()).any(|place| self.filter.gives(place))
    }

    /// Which cells of a unit are selected; `None`: none is.
    fn select(&self, region: Subarray, verdict: Verdict) -> Result<Option<Selected>> {
        let early = self.attrs(if self.needs_early(verdict) { &self.filter.early } else { &[] });
        let early = if early.is_empty() { Vec::new() } else { self.plan.paint(&self.context, &region, &early)? };
        let count = region.cells() as usize;
        let rows: Vec<u32> = if verdict == Verdict::Some {
            let mut batch = Batch::new(count).with_box(&region, self.plan.schema.options().cell_order);
            for (place, column) in self.filter.early.iter().zip(&early) {
                batch = batch.with_attr(*place, column.view());
            }
            self.filter.bound.evaluate(&batch)?.rows().map(|row| row as u32).collect()
        } else {
            (0..count as u32).collect()
        };
        if rows.is_empty() {
            Counters::add(&self.context.counters.blocks_rejected, 1);
            return Ok(None);
        }
        Ok(Some(Selected { region, early, rows }))
    }

    /// The cells that are selected.
    fn complete(&self, Selected { region, early, rows }: Selected) -> Result<Part> {
        let (count, late) = (region.cells() as usize, self.attrs(&self.filter.late));
        let late = if late.is_empty() { Vec::new() } else { self.plan.paint(&self.context, &region, &late)? };
        let picked = |column: &Column| if rows.len() == count { column.clone() } else { column.view().gather(&rows) };
        let early = |place: usize| early.get(place).map_or_else(|| Column::empty(Datatype::UInt8, false), picked);
        let columns = self.filter.arranged(early, late.iter().map(picked).collect());
        Ok(Part { coords: coordinates(&region, self.plan.schema.options().cell_order, &rows), columns })
    }

    fn cells_of(&self, parts: &[Part]) -> Result<Cells> {
        let schema = &self.plan.schema;
        let mut dims = Vec::with_capacity(schema.ndim());
        for (d, dim) in schema.dims().iter().enumerate() {
            let keys: Vec<u64> = parts.iter().filter_map(|p| p.coords.get(d)).flatten().copied().collect();
            dims.push(coordinate_column(dim.datatype(), &keys)?);
        }
        let mut attrs = Vec::with_capacity(self.filter.values.len());
        for (place, attr) in self.plan.request.attrs.iter().filter_map(|p| schema.attrs().get(*p)).enumerate() {
            let mut all = Column::empty(attr.datatype(), attr.nullable());
            for column in parts.iter().filter_map(|part| part.columns.get(place)) {
                all.append(column.view(), 0, column.len());
            }
            attrs.push(all);
        }
        let count = parts.iter().filter_map(|part| part.coords.first()).map(Vec::len).sum();
        Ok(Cells { count, dims, attrs })
    }
}

/// The coordinates, as keys, of rows of a box in cell order.
fn coordinates(region: &Subarray, order: Order, rows: &[u32]) -> Vec<Vec<u64>> {
    let shape = region.shape();
    let dims = region.ranges().iter().zip(&shape).zip(order.strides(&shape));
    let keys = |((range, count), stride): ((&KeyRange, &u64), u64)| {
        rows.iter().map(|row| range.lo + u64::from(*row) / stride % count).collect()
    };
    dims.map(keys).collect()
}

/// A box cut in two between space tiles, along the slowest dimension of the tile order that it has several of: all of the
/// first comes before all of the second in global order. `None` if it lies in one tile.
pub(in crate::query) fn halves(schema: &Schema, region: &Subarray) -> Option<(Subarray, Subarray)> {
    let span = |d: usize| {
        let (dim, range) = (schema.dims().get(d)?, region.ranges().get(d)?);
        Some((dim.tile_of(range.lo), dim.tile_of(range.hi)))
    };
    let order = schema.options().tile_order;
    let dim = order.slowest_first(schema.ndim()).find(|d| span(*d).is_some_and(|(lo, hi)| lo < hi))?;
    let (lo, hi) = span(dim)?;
    let last = schema.dims().get(dim)?.tile_range(lo + (hi - lo) / 2).hi;
    let with = |cut: fn(KeyRange, u64) -> KeyRange| {
        let ranges = region.ranges().iter().enumerate();
        Subarray::new(ranges.map(|(d, range)| if d == dim { cut(*range, last) } else { *range }).collect())
    };
    Some((with(|range, last| KeyRange::new(range.lo, last)), with(|range, last| KeyRange::new(last + 1, range.hi))))
}
