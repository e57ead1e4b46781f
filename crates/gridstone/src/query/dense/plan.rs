//! The plan of a dense read: its layers by order, its units, and where the cells of a region come from.

use super::layer::{Layer, LayerKind};
use crate::base::{Counters, Result, limits};
use crate::fragment::{Description, FragmentKind, FragmentOrder, TileSource};
use crate::query::block::deletions::Deletions;
use crate::query::block::open::open_all;
use crate::query::overlay::{LiveCells, LiveOverlay, large_fragments, live_overlay};
use crate::query::request::{ReadContext, Request, Target};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{BlockGrid, RelativeBox, TileGrid, offsets_in};
use std::borrow::Cow;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

/// A read of a dense array, planned.
pub(in crate::query) struct DensePlan {
    pub(in crate::query) schema: Arc<Schema>,
    pub(in crate::query) request: Request,
    pub(in crate::query) layers: Vec<Layer>,
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
    /// Whether the device was asked for it.
    pub(in crate::query) told: AtomicBool,
}

impl Unit {
    pub(in crate::query) fn new(tile: u64, region: Subarray) -> Self {
        Self { tile, region, told: AtomicBool::new(false) }
    }
}

/// Where the cells of a region come from.
pub(in crate::query) enum CellSource<'p> {
    /// Nothing was ever written there, or all of it deleted with this order: only newer entries of the overlay are left.
    Nowhere(Option<FragmentOrder>),
    /// One dense source, newer than all others there but for entries of the overlay.
    One(&'p Arc<dyn TileSource>),
    /// Several sources.
    Many,
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
        let mut layers: Vec<Layer> =
            fragments.map(|f| Layer::new(context, target, (request, &deletions), f)).collect::<Result<_>>()?;
        let clearing = |d: &Arc<Description>| Layer { description: d.clone(), kind: LayerKind::Deletion };
        layers.extend(deletions.all().iter().map(clearing));
        // A hole comes just before the fragment that has the order after the damaged one's.
        layers.sort_by_key(|p| (p.description.order, !matches!(p.kind, LayerKind::Deletion)));
        let cells_of = |p: &Layer| match &p.kind {
            LayerKind::Dense(source) => Some(source.block_cells()),
            LayerKind::Sparse(..) | LayerKind::Deletion => None,
        };
        let block_cells = layers.iter().filter_map(cells_of).max().unwrap_or(limits::DENSE_BLOCK_CELLS);
        let cells = |live: LiveOverlay| {
            let cells = live.cells_in(context, &target.schema, request.area())?;
            Ok((live, cells))
        };
        let overlay = overlay.map(cells).transpose()?;
        Ok(Self { schema: target.schema.clone(), request: request.clone(), layers, overlay, block_cells })
    }

    pub(super) fn touched_cells(&self) -> u64 {
        touched_cells(&self.schema, &self.request.sub, self.block_cells)
    }

    /// Cuts the box into units: per space tile, groups of whole blocks that fit a thread's share of a batch. With
    /// fragments of several block sizes they are whole blocks of the largest; any cut would do, but would decode the
    /// blocks that it goes through twice.
    pub(super) fn units(&self, context: &ReadContext, row_bytes: u64) -> Result<impl Iterator<Item = Unit> + use<>> {
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

    /// Cells of the largest blocks of the dense fragments.
    pub(in crate::query) fn block_cells(&self) -> u64 {
        self.block_cells
    }

    /// The parts of `region`, which lies in one space tile, in cell order: each of whole blocks, about `cells` of them at
    /// least.
    pub(in crate::query) fn parts(&self, region: &Subarray, cells: u64) -> Vec<Subarray> {
        let times = (cells / self.block_cells).max(1);
        parts_of(&self.schema, &self.schema.domain(), region, (self.block_cells, times))
    }

    /// Whether a newer dense fragment with this attribute, or a deletion, covers `part` wholly.
    pub(super) fn shadowed(&self, place: usize, attr: &Attribute, part: &Subarray) -> bool {
        self.layers.iter().skip(place + 1).any(|newer| newer.hides(attr, part))
    }

    /// Where the cells of a region come from; entries of the overlay aside.
    pub(in crate::query) fn origin(&self, attr: &Attribute, region: &Subarray) -> CellSource<'_> {
        let holds = |p: &&Layer| p.touches(region) && p.concerns(attr);
        let Some(newest) = self.layers.iter().rfind(holds) else { return CellSource::Nowhere(None) };
        match &newest.kind {
            _ if !newest.hides(attr, region) => CellSource::Many,
            LayerKind::Dense(source) => CellSource::One(source),
            LayerKind::Deletion => CellSource::Nowhere(Some(newest.description.order)),
            LayerKind::Sparse(..) => CellSource::Many,
        }
    }

    /// Whether a device was waited for lately.
    pub(in crate::query) fn is_cold(&self) -> bool {
        let slow = |p: &Layer| matches!(&p.kind, LayerKind::Dense(source) if source.source().is_cold());
        self.layers.iter().any(slow)
    }

    /// Whether the answer to a request takes long.
    pub(in crate::query) fn is_far(&self) -> bool {
        let far = |p: &Layer| matches!(&p.kind, LayerKind::Dense(source) if source.source().remote_gap().is_some());
        self.layers.iter().any(far)
    }
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
    let part = |group: u64| groups.block_box(group).intersect(&wanted).map(|b| b.within(&full));
    groups.touched_by(&wanted).into_iter().filter_map(part).collect()
}
