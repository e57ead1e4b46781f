//! Reading dense arrays.
//!
//! 1. Plan: the box is cut into units, each a part of one space tile made of whole blocks.
//! 2. A unit is painted from its oldest fragment to its newest: dense fragments box by box, sparse ones and the overlay
//!    cell by cell. What a newer dense fragment covers wholly is never fetched.
//! 3. Painted units are copied to their place in the result. Units are independent and run in parallel.

use super::canvas::Canvas;
use super::fetch::{Want, fetch};
use super::layout::{ResultLayout, Strided};
use super::open::open_all;
use super::overlay::{LiveOverlay, is_small, live_overlay};
use super::sparse_painter::paint_sparse;
use super::{Cells, ReadContext, Request, Target};
use crate::base::{Counters, Error, Result, limits};
use crate::fragment::{Fragment, FragmentKind, FragmentOrder, Role};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{BlockGrid, Column, RelativeBox, TileGrid, offsets_in};
use std::sync::Arc;

/// A fragment that may paint, oldest order first.
pub(super) struct Painter {
    pub(super) fragment: Arc<Fragment>,
    grid: Option<TileGrid>,
}

/// A read of a dense array, planned.
pub(super) struct DensePlan {
    pub(super) schema: Arc<Schema>,
    pub(super) request: Request,
    pub(super) painters: Vec<Painter>,
    pub(super) overlay: Option<LiveOverlay>,
}

/// Part of one space tile.
struct Unit {
    tile: u64,
    region: Subarray,
}

/// Reads a box whole; every column has the box's cells in the layout asked for.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_dense(context: &ReadContext, target: &Target, request: &Request) -> Result<Cells> {
    let schema = target.schema.clone();
    let count = usize::try_from(request.sub.cells()).map_err(|e| {
        let asked = request.sub.describe(schema.dims());
        Error::budget(format!(
            "the box {asked} has {} cells; ask for a smaller one, or stream it with scan()",
            request.sub.cells()
        ))
        .with_source(e)
    })?;
    let mut canvases: Vec<Canvas<'_>> =
        attrs_of(&schema, request).map(|a| Canvas::new(a, count)).collect::<Result<_>>()?;
    let plan = DensePlan::new(context, target, request)?;
    let row_bytes = target.row_bytes();
    let layout = ResultLayout::new(&schema, &request.sub, request.order)?;
    let mut units = plan.units(context, row_bytes)?.peekable();
    let mut done = 0u64;
    while units.peek().is_some() {
        let group: Vec<Unit> = units.by_ref().take(context.pool.threads() * 4).collect();
        let held: u64 = group.iter().map(|u| u.region.cells() as u64 * row_bytes).sum();
        context.budget.take(held);
        let painted = context.pool.map(group, context.cancel.as_ref(), |unit| {
            let columns = plan.paint(context, &unit.region)?;
            Ok((unit, columns))
        });
        context.budget.give(held);
        for (unit, columns) in painted? {
            let shape = unit.region.shape();
            let from = Strided::packed(&shape, schema.options().cell_order);
            let to = layout.place(&unit.region, unit.tile);
            for (canvas, column) in canvases.iter_mut().zip(columns) {
                canvas.paint_box(&Arc::new(column), &shape, &from, &to);
            }
            done += unit.region.cells() as u64;
        }
        context.progress.report(done, count as u64);
    }
    Counters::add(&context.counters.cells_returned, count as u64);
    Ok(Cells { count, dims: Vec::new(), attrs: canvases.into_iter().map(Canvas::finish).collect::<Result<_>>()? })
}

/// The attributes asked for.
pub(super) fn attrs_of<'a>(schema: &'a Schema, request: &'a Request) -> impl Iterator<Item = &'a Attribute> {
    request.attrs.iter().filter_map(|p| schema.attrs().get(*p))
}

impl DensePlan {
    pub(super) fn new(context: &ReadContext, target: &Target, request: &Request) -> Result<Self> {
        Counters::add(&context.counters.fragments_considered, target.fragments.len() as u64);
        let overlay = live_overlay(context, target)?;
        let inside = target.fragments.iter().filter(|d| d.bounds.intersects(&request.sub));
        let large: Vec<_> = inside.filter(|d| overlay.is_none() || !is_small(d)).cloned().collect();
        let fragments = open_all(context, &target.schema, large)?;
        let painter = |fragment: Arc<Fragment>| {
            let dense = fragment.description().kind == FragmentKind::Dense;
            let grid = dense.then(|| TileGrid::new(&target.schema, &fragment.root().bounds)).transpose()?;
            Ok(Painter { fragment, grid })
        };
        let painters = fragments.into_iter().map(painter).collect::<Result<_>>()?;
        Ok(Self { schema: target.schema.clone(), request: request.clone(), painters, overlay })
    }

    /// Cuts the box into units: per space tile, groups of whole blocks that fit a thread's share of a batch.
    fn units(&self, context: &ReadContext, row_bytes: u64) -> Result<impl Iterator<Item = Unit> + use<>> {
        let order = self.schema.options().cell_order;
        let (whole, box_grid) = (self.schema.domain(), TileGrid::new(&self.schema, &self.request.sub)?);
        let tiles = box_grid.len();
        let share = context.batch_bytes() / row_bytes / context.pool.threads() as u64 / 4;
        let times = (share.min(1 << 20) / limits::DENSE_BLOCK_CELLS).max(1);
        let schema = self.schema.clone();
        let units = move |tile: u64| {
            let region = box_grid.tile_box(tile);
            let full = region.as_ref().and_then(|_| full_tile(&schema, &whole, &box_grid.coords(tile)));
            let (Some(region), Some(full)) = (region, full) else { return Vec::new() };
            let groups = BlockGrid::coarse(&full.shape(), order, limits::DENSE_BLOCK_CELLS, times);
            let wanted = RelativeBox { origin: offsets_in(&region, &full), shape: region.shape() };
            let part = |group: u64| groups.block_box(group).intersect(&wanted).map(|b| absolute(&b, &full));
            let parts = groups.touched_by(&wanted).into_iter().filter_map(part);
            parts.map(|region| Unit { tile, region }).collect()
        };
        Ok((0..tiles).flat_map(units))
    }

    /// The cells of `region`, in cell order, a column per attribute asked for.
    pub(super) fn paint(&self, context: &ReadContext, region: &Subarray) -> Result<Vec<Column>> {
        let cells = region.cells() as usize;
        Counters::add(&context.counters.cells_scanned, cells as u64);
        let attrs: Vec<&Attribute> = attrs_of(&self.schema, &self.request).collect();
        let mut canvases: Vec<Canvas<'_>> = attrs.iter().map(|a| Canvas::new(a, cells)).collect::<Result<_>>()?;
        let mut overlay = self.overlay_cells(region)?;
        let alone = overlay.is_empty()
            && self.painters.iter().filter(|p| p.fragment.root().bounds.intersects(region)).count() == 1;
        for (place, painter) in self.painters.iter().enumerate() {
            context.cancel.check()?;
            if !painter.fragment.root().bounds.intersects(region) {
                continue;
            }
            let order = painter.fragment.description().order;
            let older = overlay.partition_point(|cell| cell.order < order);
            let rest = overlay.split_off(older);
            self.paint_overlay(context, &overlay, &mut canvases)?;
            overlay = rest;
            match &painter.grid {
                Some(grid) => self.paint_dense(context, (place, grid), region, &attrs, &mut canvases, alone)?,
                None => paint_sparse(context, self, painter, region, &mut canvases)?,
            }
        }
        self.paint_overlay(context, &overlay, &mut canvases)?;
        canvases.into_iter().map(Canvas::finish).collect()
    }

    /// Whether a newer dense fragment with this attribute covers `part` wholly.
    fn shadowed(&self, place: usize, attr: &Attribute, part: &Subarray) -> bool {
        self.painters.iter().skip(place + 1).any(|newer| {
            let description = newer.fragment.description();
            newer.grid.is_some() && description.attrs.contains(&attr.id()) && description.bounds.covers(part)
        })
    }

    fn paint_dense(
        &self,
        context: &ReadContext,
        (place, grid): (usize, &TileGrid),
        region: &Subarray,
        attrs: &[&Attribute],
        canvases: &mut [Canvas<'_>],
        alone: bool,
    ) -> Result<()> {
        let Some(fragment) = self.painters.get(place).map(|p| &p.fragment) else { return Ok(()) };
        let wrong =
            || Error::corruption(format!("fragment {}: its tiles do not fit its box", fragment.description().id));
        let Some(part) = region.intersect(&fragment.root().bounds) else { return Ok(()) };
        Counters::add(&context.counters.tiles_considered, 1);
        let coords: Vec<u64> = self.schema.dims().iter().zip(part.ranges()).map(|(d, r)| d.tile_of(r.lo)).collect();
        let tile = grid.index_of(&coords).ok_or_else(wrong)?;
        let tile_box = grid.tile_box(tile).ok_or_else(wrong)?;
        let order = self.schema.options().cell_order;
        let blocks = BlockGrid::new(&tile_box.shape(), order, u64::from(fragment.root().block_cells));
        if blocks.len() != fragment.tile_blocks(tile)? as u64 {
            return Err(wrong());
        }
        let wanted = RelativeBox { origin: offsets_in(&part, &tile_box), shape: part.shape() };
        let (mut wants, mut targets, mut shadowed) = (Vec::new(), Vec::new(), false);
        for block in blocks.touched_by(&wanted) {
            let Some(common) = blocks.block_box(block).intersect(&wanted) else { continue };
            let cells = absolute(&common, &tile_box);
            for (canvas, attr) in attrs.iter().enumerate() {
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
                targets.push((canvas, block, cells.clone()));
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

    /// The live overlay entries in `region`, oldest order first.
    fn overlay_cells(&self, region: &Subarray) -> Result<Vec<OverlayCell>> {
        let Some(live) = &self.overlay else { return Ok(Vec::new()) };
        let layout = crate::tile::KeyLayout::new(&self.schema);
        let corner = |pick: fn(&crate::schema::KeyRange) -> u64| {
            let corner: Vec<[u64; 1]> = region.ranges().iter().map(|r| [pick(r)]).collect();
            layout.keys(&corner.iter().map(<[u64; 1]>::as_slice).collect::<Vec<_>>())
        };
        // A region lies in one space tile, where a box's first and last cells in global order are its corners.
        let (first, last) = (corner(|r| r.lo), corner(|r| r.hi));
        let keys = &live.overlay.keys;
        let from = keys.lower_bound(0, &first, 0);
        let strided = Strided::packed(&region.shape(), self.schema.options().cell_order);
        let mut found = Vec::new();
        for row in from..keys.len() {
            if keys.compare(row, &last, 0) == std::cmp::Ordering::Greater {
                break;
            }
            let Some(entry) = live.overlay.entries.get(row) else { break };
            let Some(small) = live.fragment(*entry) else { continue };
            let cell: Vec<u64> = small.coords.iter().filter_map(|c| c.get(entry.row as usize).copied()).collect();
            if region.contains(cell.iter().copied()) {
                let offset = cell.iter().zip(region.ranges()).map(|(k, r)| k - r.lo);
                found.push(OverlayCell {
                    order: small.order(),
                    place: strided.place(offset),
                    fragment: entry.fragment,
                    row: entry.row,
                });
            }
        }
        found.sort_unstable_by_key(|c| (c.order, c.fragment, c.row));
        Ok(found)
    }

    /// Paints overlay cells, which come in ascending order.
    fn paint_overlay(&self, context: &ReadContext, cells: &[OverlayCell], canvases: &mut [Canvas<'_>]) -> Result<()> {
        let Some(live) = &self.overlay else { return Ok(()) };
        live.count(context, cells.len());
        for run in cells.chunk_by(|a, b| a.fragment == b.fragment) {
            let Some(small) = run.first().and_then(|c| live.overlay.fragments.get(c.fragment as usize)) else {
                continue;
            };
            for (canvas, attr) in canvases.iter_mut().zip(attrs_of(&self.schema, &self.request)) {
                if small.is_tombstone() {
                    canvas.clear_cells(run.iter().map(|c| c.place));
                } else if let Some(column) = small.column(context, attr.id())? {
                    canvas.paint_cells(&column, run.iter().map(|c| (c.place, c.row)));
                }
            }
        }
        Ok(())
    }
}

/// An overlay entry that falls on a region.
struct OverlayCell {
    order: FragmentOrder,
    place: u64,
    fragment: u32,
    row: u32,
}

/// The space tile at `coords`, clipped to the domain only.
fn full_tile(schema: &Schema, domain: &Subarray, coords: &[u64]) -> Option<Subarray> {
    let whole = schema.dims().iter().zip(coords).map(|(d, t)| d.tile_range(*t)).collect();
    Subarray::new(whole).intersect(domain)
}

/// A box given relative to the low corner of `outer`.
pub(super) fn absolute(inner: &RelativeBox, outer: &Subarray) -> Subarray {
    let ranges = inner.origin.iter().zip(&inner.shape).zip(outer.ranges());
    Subarray::new(ranges.map(|((o, n), r)| crate::schema::KeyRange::new(r.lo + o, r.lo + o + (n - 1))).collect())
}
