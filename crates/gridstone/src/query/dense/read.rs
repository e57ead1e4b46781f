//! Reading dense arrays.
//!
//! 1. Plan: the box is cut into units, each a part of one space tile made of whole blocks.
//! 2. A unit is painted from its oldest fragment to its newest: dense fragments box by box, sparse ones and the overlay
//!    cell by cell. What a newer dense fragment covers wholly is never fetched.
//! 3. Painted units are copied to their place in the result. Units are independent and run in parallel.
//!
//! Attributes of fixed width without nulls need no painting where one fragment stands alone: see `deliver.rs`.

use super::canvas::Canvas;
use super::copy::{Sheet, split};
use super::overlay::OverlayCell;
use super::prefetch::Groups;
use super::readahead::UnitsAhead;
use super::sparse_layer::{PaintedBlock, blocks_in, paint_sparse};
use crate::base::{Counters, Error, Result, limits};
use crate::fragment::{Description, Fragment, FragmentKind, Role};
use crate::query::block::deletions::Deletions;
use crate::query::block::fetch::{Want, fetch};
use crate::query::block::open::open_all;
use crate::query::cells::layout::{ResultLayout, Strided};
use crate::query::cells::shared_result::Slots;
use crate::query::overlay::{LiveCells, LiveOverlay, large_fragments, live_overlay};
use crate::query::request::{ALONE_BYTES_MAX, ReadContext, Request, Target, attrs_of, is_deliverable};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{BlockGrid, Cells, Column, RelativeBox, TileGrid, offsets_in};
use std::borrow::Cow;
use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A fragment that may paint, or a deletion that clears; oldest order first.
pub(in crate::query) struct Painter {
    pub(in crate::query) description: Arc<Description>,
    pub(in crate::query) layer: Layer,
}

/// What a painter paints with.
pub(in crate::query) enum Layer {
    /// A dense fragment and its tiles.
    Dense(Arc<Fragment>, TileGrid),
    /// A sparse fragment, and its blocks that touch the box.
    Sparse(Arc<Fragment>, Vec<PaintedBlock>),
    /// A box that is cleared.
    Deletion,
}

impl Painter {
    fn new(
        context: &ReadContext,
        target: &Target,
        (request, deletions): (&Request, &Deletions),
        fragment: Arc<Fragment>,
    ) -> Result<Self> {
        let description = fragment.description().clone();
        let layer = if description.kind == FragmentKind::Dense {
            let grid = TileGrid::new(&target.schema, &fragment.root().bounds)?;
            Layer::Dense(fragment, grid)
        } else {
            let blocks = blocks_in(context, &fragment, &request.sub, deletions)?;
            Layer::Sparse(fragment, blocks)
        };
        Ok(Self { description, layer })
    }

    pub(in crate::query) fn touches(&self, region: &Subarray) -> bool {
        self.description.bounds.intersects(region)
    }

    /// Whether nothing of `attr` in `region` shows through it: all cells there are painted or cleared.
    pub(in crate::query) fn hides(&self, attr: &Attribute, region: &Subarray) -> bool {
        let all = match self.layer {
            Layer::Dense(..) => self.description.attrs.contains(&attr.id()),
            Layer::Deletion => self.clears(attr),
            Layer::Sparse(..) => false,
        };
        all && self.description.bounds.covers(region)
    }

    /// Whether a deletion is of this attribute: a hole in another one is not.
    pub(super) fn clears(&self, attr: &Attribute) -> bool {
        self.description.attrs.is_empty() || self.description.attrs.contains(&attr.id())
    }

    /// Whether it may have a say in what is in `attr`.
    pub(super) fn concerns(&self, attr: &Attribute) -> bool {
        match self.layer {
            Layer::Dense(..) => self.description.attrs.contains(&attr.id()),
            Layer::Deletion => self.clears(attr),
            Layer::Sparse(..) => true,
        }
    }

    pub(in crate::query) fn is_dense(&self) -> bool {
        matches!(self.layer, Layer::Dense(..))
    }
}

/// A read of a dense array, planned.
pub(in crate::query) struct DensePlan {
    pub(in crate::query) schema: Arc<Schema>,
    pub(in crate::query) request: Request,
    pub(in crate::query) painters: Vec<Painter>,
    /// The overlay, and its live cells in the box.
    pub(in crate::query) overlay: Option<(LiveOverlay, LiveCells)>,
    /// Cells of the largest blocks of the dense fragments.
    block_cells: u64,
}

/// The most cells of a unit.
const UNIT_CELLS_MAX: u64 = 1 << 19;

/// Part of one space tile.
pub(in crate::query) struct Unit {
    pub(in crate::query) tile: u64,
    pub(in crate::query) region: Subarray,
    /// The device was told of it.
    pub(in crate::query) told: AtomicBool,
}

impl Unit {
    pub(in crate::query) fn new(tile: u64, region: Subarray) -> Self {
        Self { tile, region, told: AtomicBool::new(false) }
    }
}

/// Part of a space tile, found in a fragment.
pub(in crate::query) struct Located<'p> {
    pub(in crate::query) fragment: &'p Arc<Fragment>,
    pub(in crate::query) tile: u64,
    pub(in crate::query) tile_box: Subarray,
    pub(in crate::query) blocks: BlockGrid,
    /// The part, relative to the tile.
    pub(in crate::query) wanted: RelativeBox,
}

/// Reads a box whole; every column has the box's cells in the layout asked for.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_dense(context: &ReadContext, target: &Target, request: &Request) -> Result<Cells> {
    let schema = target.schema.clone();
    let count = cell_count(&schema, request)?;
    let (delivered, painted) = split(&schema, request);
    let attr = |place: &usize| request.attrs.get(*place).and_then(|p| schema.attrs().get(*p));
    let mut canvases: Vec<Canvas<'_>> =
        painted.iter().filter_map(attr).map(|a| Canvas::new(a, count)).collect::<Result<_>>()?;
    let mut buffers = Vec::with_capacity(delivered.len());
    for attr in delivered.iter().filter_map(attr) {
        buffers.push(context.arena.take_cells(count, attr.datatype().width().unwrap_or(1))?);
    }
    let targets = delivered.iter().filter_map(attr).zip(&mut buffers);
    let sheets: Vec<Sheet<'_>> =
        targets.map(|(attr, buf)| Sheet { attr, slots: Slots::new(buf.as_mut_slice()) }).collect();
    fill_dense(context, target, request, &sheets, &mut canvases)?;
    let made = delivered.iter().filter_map(attr).zip(buffers).map(|(a, b)| Column::new(a.datatype(), b, None, None));
    let (mut made, mut drawn) = (made, canvases.into_iter().map(Canvas::finish));
    let columns =
        (0..request.attrs.len()).filter_map(|p| if painted.contains(&p) { drawn.next() } else { made.next() });
    Ok(Cells { count, dims: Vec::new(), attrs: columns.collect::<Result<_>>()? })
}

/// As [`read_dense`], into buffers of the caller: one per attribute asked for, each as long as the box's cells. Only for
/// attributes of fixed width without nulls (none made of booleans); Input otherwise.
pub fn read_dense_into(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    outs: &mut [&mut [u8]],
) -> Result<()> {
    let schema = target.schema.clone();
    let count = cell_count(&schema, request)?;
    let mut sheets = Vec::with_capacity(outs.len());
    if outs.len() != request.attrs.len() {
        return Err(Error::input(format!("{} buffers were given for {} attributes", outs.len(), request.attrs.len())));
    }
    for (attr, out) in attrs_of(&schema, request).zip(outs.iter_mut()) {
        let width = attr.datatype().width().filter(|_| is_deliverable(attr));
        if width.and_then(|w| w.checked_mul(count)) != Some(out.len()) {
            return Err(Error::input(format!(
                "a buffer of {} bytes cannot take {count} cells of attribute {:?}, a {}",
                out.len(),
                attr.name(),
                attr.datatype()
            )));
        }
        sheets.push(Sheet { attr, slots: Slots::new(out) });
    }
    fill_dense(context, target, request, &sheets, &mut [])
}

fn cell_count(schema: &Schema, request: &Request) -> Result<usize> {
    usize::try_from(request.sub.cells()).map_err(|e| {
        let asked = request.sub.describe(schema.dims());
        Error::budget(format!(
            "the box {asked} has {} cells; ask for a smaller one, or stream it with scan()",
            request.sub.cells()
        ))
        .with_source(e)
    })
}

/// Delivers the cells of each sheet's attribute, and paints each canvas, one per other attribute asked for.
fn fill_dense(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    sheets: &[Sheet<'_>],
    canvases: &mut [Canvas<'_>],
) -> Result<()> {
    let plan = DensePlan::new(context, target, request)?;
    let (count, row_bytes) = (request.sub.cells() as u64, target.row_bytes());
    let layout = ResultLayout::new(&plan.schema, &request.sub, request.order)?;
    let painted: Vec<&Attribute> = canvases.iter().map(Canvas::attr).collect();
    let width: usize = attrs_of(&plan.schema, request).map(|a| a.datatype().width().unwrap_or(16)).sum();
    let alone = plan.touched_cells().saturating_mul(width as u64) <= ALONE_BYTES_MAX;
    let units = plan.units(context, row_bytes)?;
    let (painted, mut done) = (painted.as_slice(), 0u64);
    let (plan, layout, looked) = (&plan, &layout, VecDeque::new());
    let mut groups = Groups { context, plan, sheets, painted, layout, row_bytes, units, looked };
    let mut group = groups.next_group()?;
    while !group.units.is_empty() {
        let next = groups.next_group()?;
        let cells: u64 = group.units.iter().map(|u| u.region.cells() as u64).sum();
        let held = if painted.is_empty() { 0 } else { cells * row_bytes };
        let ahead = plan.is_waited_for().then(|| UnitsAhead::new(&group.units, &next.units, width as u64));
        let tell = |unit: &Unit| plan.foresee(sheets, &unit.region, &layout.place(&unit.region, unit.tile));
        context.budget.take(held);
        let fill = |(at, unit): (usize, &Unit)| {
            ahead.iter().try_for_each(|ahead| ahead.before(at, tell))?;
            let to = layout.place(&unit.region, unit.tile);
            Ok((to.clone(), plan.fill_unit(context, &unit.region, &to, sheets, painted)?))
        };
        let filled = if alone {
            group.units.iter().enumerate().map(fill).collect()
        } else {
            context.pool.map(group.units.iter().enumerate().collect(), context.cancel.as_ref(), fill)
        };
        context.budget.give(held);
        for (unit, (to, columns)) in group.units.iter().zip(filled?) {
            let shape = unit.region.shape();
            let from = Strided::packed(&shape, plan.schema.options().cell_order);
            for (canvas, column) in canvases.iter_mut().zip(columns) {
                canvas.paint_box(&Arc::new(column), &shape, &from, &to);
            }
        }
        done += cells;
        context.progress.report(done, count);
        group = next;
    }
    Counters::add(&context.counters.cells_returned, count);
    Ok(())
}

/// The target without what is older than a dense fragment that holds these attributes of the whole box: none of it needs to be opened.
fn uncovered<'t>(target: &'t Target, sub: &Subarray, attrs: &[u32]) -> Cow<'t, Target> {
    let covers = |d: &Arc<Description>| {
        d.kind == FragmentKind::Dense && d.bounds.covers(sub) && attrs.iter().all(|id| d.attrs.contains(id))
    };
    match target.fragments.iter().rposition(covers) {
        None | Some(0) => Cow::Borrowed(target),
        Some(newest) => {
            let fragments = target.fragments.iter().skip(newest).cloned().collect();
            Cow::Owned(Target { array: target.array, schema: Arc::clone(&target.schema), fragments })
        }
    }
}

impl DensePlan {
    pub(in crate::query) fn new(context: &ReadContext, target: &Target, request: &Request) -> Result<Self> {
        Self::painting(context, target, request, &request.attr_ids(&target.schema))
    }

    /// The same where these attributes (permanent numbers) may be painted.
    pub(in crate::query) fn painting(
        context: &ReadContext,
        target: &Target,
        request: &Request,
        attrs: &[u32],
    ) -> Result<Self> {
        Counters::add(&context.counters.fragments_considered, target.fragments.len() as u64);
        let target = &uncovered(target, &request.sub, attrs);
        let overlay = live_overlay(context, target, std::slice::from_ref(&request.sub), attrs)?;
        let deletions = Deletions::of(&target.fragments, &request.sub);
        let large = large_fragments(target, overlay.is_some(), |d| deletions.leave(d, &request.sub));
        let fragments = open_all(context, &target.schema, large)?.into_iter();
        let mut painters: Vec<Painter> =
            fragments.map(|f| Painter::new(context, target, (request, &deletions), f)).collect::<Result<_>>()?;
        let clearing = |d: &Arc<Description>| Painter { description: d.clone(), layer: Layer::Deletion };
        painters.extend(deletions.all().iter().map(clearing));
        // A hole comes just before the fragment that has the order after the damaged one's.
        painters.sort_by_key(|p| (p.description.order, !matches!(p.layer, Layer::Deletion)));
        let cells_of = |p: &Painter| match &p.layer {
            Layer::Dense(fragment, _) => Some(u64::from(fragment.root().block_cells)),
            Layer::Sparse(..) | Layer::Deletion => None,
        };
        let block_cells = painters.iter().filter_map(cells_of).max().unwrap_or(limits::DENSE_BLOCK_CELLS);
        let cells = |live: LiveOverlay| {
            let cells = live.cells_in(context, &target.schema, &request.sub)?;
            Ok((live, cells))
        };
        let overlay = overlay.map(cells).transpose()?;
        Ok(Self { schema: target.schema.clone(), request: request.clone(), painters, overlay, block_cells })
    }

    /// Writes the cells of a unit to its sheets; gives the columns of the `painted` attributes.
    fn fill_unit(
        &self,
        context: &ReadContext,
        region: &Subarray,
        to: &Strided,
        sheets: &[Sheet<'_>],
        painted: &[&Attribute],
    ) -> Result<Vec<Column>> {
        let (mut left, mut entries) = (Vec::new(), 0);
        for sheet in sheets {
            match self.deliver(context, sheet, region, to)? {
                Some(put) => entries = put.max(entries),
                None => left.push(sheet),
            }
        }
        let attrs: Vec<&Attribute> = left.iter().map(|s| s.attr).chain(painted.iter().copied()).collect();
        if attrs.is_empty() {
            // An entry counts once, on however many attributes it was put. Painting counts all those of the region.
            Counters::add(&context.counters.overlay_entries, entries as u64);
            return Ok(Vec::new());
        }
        let mut columns = self.paint(context, region, &attrs)?;
        let rest = columns.split_off(left.len());
        for (sheet, column) in left.iter().zip(&columns) {
            self.move_painted(sheet, column, region, to);
        }
        Ok(rest)
    }

    fn touched_cells(&self) -> u64 {
        touched_cells(&self.schema, &self.request.sub, self.block_cells)
    }

    /// Cuts the box into units: per space tile, groups of whole blocks that fit a thread's share of a batch. With
    /// fragments of several block sizes they are whole blocks of the largest; any cut would do, but would decode the
    /// blocks that it goes through twice.
    fn units(&self, context: &ReadContext, row_bytes: u64) -> Result<impl Iterator<Item = Unit> + use<>> {
        let (whole, box_grid) = (self.schema.domain(), TileGrid::new(&self.schema, &self.request.sub)?);
        let tiles = box_grid.len();
        let threads = context.pool.threads() as u64;
        let share = context.batch_bytes() / row_bytes / threads / 4;
        // Several units per thread, so that all end at about the same time.
        let share = share.min(UNIT_CELLS_MAX).min(self.touched_cells() / (threads * 4));
        let block_cells = self.block_cells;
        let times = (share / block_cells).max(1);
        let schema = self.schema.clone();
        let units = move |tile: u64| {
            let Some(region) = box_grid.tile_box(tile) else { return Vec::new() };
            let parts = parts_of(&schema, &whole, &region, (block_cells, times));
            parts.into_iter().map(|region| Unit::new(tile, region)).collect()
        };
        Ok((0..tiles).flat_map(units))
    }

    /// The parts of `region`, which lies in one space tile, in cell order: each of whole blocks, about `cells` of them at
    /// least.
    pub(in crate::query) fn parts(&self, region: &Subarray, cells: u64) -> Vec<Subarray> {
        let times = (cells / self.block_cells).max(1);
        parts_of(&self.schema, &self.schema.domain(), region, (self.block_cells, times))
    }

    /// The cells of `region`, in cell order, a column per attribute.
    pub(in crate::query) fn paint(
        &self,
        context: &ReadContext,
        region: &Subarray,
        attrs: &[&Attribute],
    ) -> Result<Vec<Column>> {
        let cells = region.cells() as usize;
        Counters::add(&context.counters.cells_scanned, cells as u64);
        let mut canvases: Vec<Canvas<'_>> = attrs.iter().map(|a| Canvas::new(a, cells)).collect::<Result<_>>()?;
        let packed = Strided::packed(&region.shape(), self.schema.options().cell_order);
        let mut overlay = self.overlay_cells(region, &packed)?;
        overlay.sort_unstable_by_key(OverlayCell::age);
        let alone = overlay.is_empty() && self.painters.iter().filter(|p| p.touches(region)).count() == 1;
        for (place, painter) in self.painters.iter().enumerate() {
            context.cancel.check()?;
            if !painter.touches(region) {
                continue;
            }
            let order = painter.description.order;
            let older = overlay.partition_point(|cell| cell.order < order);
            let rest = overlay.split_off(older);
            self.paint_overlay(context, &overlay, &mut canvases)?;
            overlay = rest;
            match &painter.layer {
                Layer::Dense(fragment, grid) => {
                    self.paint_dense(context, (place, fragment, grid), region, &mut canvases, alone)?;
                }
                Layer::Sparse(fragment, blocks) => {
                    paint_sparse(context, self, (fragment, blocks), region, &mut canvases)?;
                }
                Layer::Deletion => clear_box(painter, region, &packed, &mut canvases),
            }
        }
        self.paint_overlay(context, &overlay, &mut canvases)?;
        canvases.into_iter().map(Canvas::finish).collect()
    }

    /// Whether a newer dense fragment with this attribute, or a deletion, covers `part` wholly.
    pub(super) fn shadowed(&self, place: usize, attr: &Attribute, part: &Subarray) -> bool {
        self.painters.iter().skip(place + 1).any(|newer| newer.hides(attr, part))
    }

    fn paint_dense(
        &self,
        context: &ReadContext,
        (place, fragment, grid): (usize, &Arc<Fragment>, &TileGrid),
        region: &Subarray,
        canvases: &mut [Canvas<'_>],
        alone: bool,
    ) -> Result<()> {
        let Some(part) = region.intersect(&fragment.root().bounds) else { return Ok(()) };
        Counters::add(&context.counters.tiles_considered, 1);
        let mut held =
            canvases.iter().map(Canvas::attr).filter(|a| fragment.description().attrs.contains(&a.id())).peekable();
        let some = held.peek().is_some();
        // Nothing of it is asked for: not its index either, which may be damaged.
        if held.all(|attr| self.shadowed(place, attr, &part)) {
            Counters::add(&context.counters.tiles_shadowed, u64::from(some));
            return Ok(());
        }
        let Located { fragment, tile, tile_box, blocks, wanted } = self.locate(fragment, grid, &part)?;
        let order = self.schema.options().cell_order;
        let (mut wants, mut targets, mut shadowed) = (Vec::new(), Vec::new(), false);
        for block in blocks.touched_by(&wanted) {
            let Some(common) = blocks.block_box(block).intersect(&wanted) else { continue };
            let cells = absolute(&common, &tile_box);
            for (number, canvas) in canvases.iter().enumerate() {
                let attr = canvas.attr();
                let Some(field) = fragment.field(Role::Attribute(attr.id())) else { continue };
                if self.shadowed(place, attr, &cells) {
                    shadowed = true;
                    continue;
                }
                let count = blocks.cells(block) as usize;
                wants.push(Want {
                    fragment: fragment.clone(),
                    block: fragment.block(field, tile, block as usize, count)?,
                });
                targets.push((number, block, cells.clone()));
            }
        }
        Counters::add(&context.counters.tiles_read, u64::from(!wants.is_empty()));
        Counters::add(&context.counters.tiles_shadowed, u64::from(shadowed && wants.is_empty()));
        Counters::add(&context.counters.blocks_alone, if alone { wants.len() as u64 } else { 0 });
        let to = Strided::packed(&region.shape(), order);
        for (column, (canvas, block, cells)) in fetch(context, &wants, false)?.into_iter().zip(targets) {
            let block_box = blocks.block_box(block);
            let inner =
                offsets_in(&cells, &tile_box).iter().zip(&block_box.origin).map(|(a, b)| a - b).collect::<Vec<u64>>();
            let from = Strided::packed(&block_box.shape, order).at(&inner);
            if let Some(canvas) = canvases.get_mut(canvas) {
                canvas.paint_box(&Arc::new(column), &cells.shape(), &from, &to.at(&offsets_in(&cells, region)));
            }
        }
        Ok(())
    }
}

/// Makes the cells of `region`, laid out as `packed`, unwritten where they lie in the box of `deletion`.
fn clear_box(deletion: &Painter, region: &Subarray, packed: &Strided, canvases: &mut [Canvas<'_>]) {
    let Some(part) = deletion.description.bounds.intersect(region) else { return };
    let (shape, to) = (part.shape(), packed.at(&offsets_in(&part, region)));
    let cleared = canvases.iter_mut().filter(|canvas| deletion.clears(canvas.attr()));
    cleared.for_each(|canvas| canvas.clear_box(&shape, &to));
}

/// How many cells the blocks (of at most `block_cells`) of a dense array hold that a box touches, about: what a read has
/// to decode, however few it gives.
pub fn touched_cells(schema: &Schema, sub: &Subarray, block_cells: u64) -> u64 {
    let dims = schema.dims();
    let coords: Vec<u64> = dims.iter().zip(sub.ranges()).map(|(d, r)| d.tile_of(r.lo)).collect();
    let Some(tile) = full_tile(schema, &schema.domain(), &coords) else { return 0 };
    let blocks = BlockGrid::new(&tile.shape(), schema.options().cell_order, block_cells);
    let sides = sub.ranges().iter().zip(tile.ranges()).zip(blocks.block_shape());
    sides.fold(1u64, |cells, ((range, tile), side)| {
        let (lo, hi) = ((range.lo - tile.lo) / side, (range.hi - tile.lo) / side);
        cells.saturating_mul((hi - lo).saturating_add(1).saturating_mul(*side))
    })
}

/// The space tile at `coords`, clipped to the domain only.
fn full_tile(schema: &Schema, domain: &Subarray, coords: &[u64]) -> Option<Subarray> {
    let whole = schema.dims().iter().zip(coords).map(|(d, t)| d.tile_range(*t)).collect();
    Subarray::new(whole).intersect(domain)
}

/// The parts of a box in one space tile: groups of `times` blocks of `block_cells` cells, as far as they lie in it.
fn parts_of(schema: &Schema, domain: &Subarray, region: &Subarray, (block_cells, times): (u64, u64)) -> Vec<Subarray> {
    let coords: Vec<u64> = schema.dims().iter().zip(region.ranges()).map(|(d, r)| d.tile_of(r.lo)).collect();
    let Some(full) = full_tile(schema, domain, &coords) else { return Vec::new() };
    let groups = BlockGrid::coarse(&full.shape(), schema.options().cell_order, block_cells, times);
    let wanted = RelativeBox { origin: offsets_in(region, &full), shape: region.shape() };
    let part = |group: u64| groups.block_box(group).intersect(&wanted).map(|b| absolute(&b, &full));
    groups.touched_by(&wanted).into_iter().filter_map(part).collect()
}

/// A box given relative to the low corner of `outer`.
pub(in crate::query) fn absolute(inner: &RelativeBox, outer: &Subarray) -> Subarray {
    let ranges = inner.origin.iter().zip(&inner.shape).zip(outer.ranges());
    Subarray::new(ranges.map(|((o, n), r)| crate::schema::KeyRange::new(r.lo + o, r.lo + o + (n - 1))).collect())
}
