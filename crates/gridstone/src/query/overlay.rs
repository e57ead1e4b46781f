//! Small sparse fragments of an array, decoded once and held: a thousand of them cost a read little more than none.
//!
//! The overlay of an array is kept in the cache and extended with the fragments that a read finds missing; it is never
//! rebuilt. It may hold fragments that a snapshot does not have: every read says which are live for it. The cells of a
//! fragment lie in global order, so a read finds those of its box by binary search, fragment by fragment, and sorts only
//! them: opening an array never sorts what is not asked for.

use super::deletions::Deletions;
use super::masks::{Masks, is_masked};
use super::open::open_all;
use super::sparse_blocks::broken_index;
use super::{ReadContext, Target};
use crate::base::{CacheKey, Counters, Error, Id, Result, limits};
use crate::fragment::{BlockRef, Description, Fragment, FragmentKind, FragmentOrder, Mask, Role};
use crate::schema::{Attribute, Dimension, Extent, KeyRange, Order, Schema, Subarray, key};
use crate::tile::{CellKeys, Column, KeyLayout, unravel};
use bytes::Bytes;
use std::cell::Cell;
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// Coordinates before they are made into keys.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A small fragment: coordinates decoded, attributes decoded when first asked for.
#[derive(Debug)]
pub(super) struct SmallFragment {
    pub(super) fragment: Arc<Fragment>,
    /// Coordinates as ordered keys, a column per dimension.
    pub(super) coords: Vec<Vec<u64>>,
    columns: Vec<OnceLock<Arc<Column>>>,
    /// The first row of each of its tiles.
    tiles: Vec<u32>,
}

/// One cell, or one deleted cell, of a small fragment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The fragment's place in the overlay.
    pub(super) fragment: u32,
    /// The row in that fragment.
    pub(super) row: u32,
}

/// The small fragments of an array.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) fragments: Vec<Arc<SmallFragment>>,
    places: HashMap<Id, u32>,
}

/// The live cells of an overlay in a box, by ascending (key, order, row).
#[derive(Debug)]
pub(super) struct LiveCells {
    pub(super) keys: CellKeys,
    pub(super) entries: Vec<Entry>,
}

/// The overlay and which of its fragments belong to the snapshot being read.
#[derive(Debug)]
pub(super) struct LiveOverlay {
    pub(super) overlay: Arc<Overlay>,
    pub(super) live: Vec<bool>,
    /// The masks over its fragments.
    masks: Masks,
}

/// For each space tile that `sub` touches the keys of its first and last cell in `sub`, in global order; `None` if the
/// tiles are many or without known ends, or keys are long. In one tile the cells of a box lie between those of its corners.
fn tile_ends(schema: &Schema, layout: &KeyLayout, sub: &Subarray) -> Option<Vec<(u128, u128)>> {
    if schema.options().cell_order == Order::Hilbert {
        return None;
    }
    let tiles = |(dim, range): (&Dimension, &KeyRange)| (dim.tile_of(range.lo), dim.tile_of(range.hi));
    let spans: Vec<(u64, u64)> = schema.dims().iter().zip(sub.ranges()).map(tiles).collect();
    let count = spans.iter().fold(1u128, |n, (lo, hi)| n.saturating_mul(u128::from(hi - lo) + 1));
    // Of tiles along a float dimension only the numbers are known, not the first and last coordinate.
    let unknown = |(dim, (lo, hi)): (&Dimension, &(u64, u64))| lo < hi && matches!(dim.extent(), Extent::Length(_));
    if count > TILES_SEARCHED_MAX || schema.dims().iter().zip(&spans).any(unknown) {
        return None;
    }
    let shape: Vec<u64> = spans.iter().map(|(lo, hi)| hi - lo + 1).collect();
    let mut ends = Vec::with_capacity(count as usize);
    for number in 0..count as u64 {
        let tile = unravel(number, &shape, Order::Row);
        let mut corners: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
        for (((dim, range), (lo, _)), offset) in schema.dims().iter().zip(sub.ranges()).zip(&spans).zip(tile) {
            let clipped = dim.tile_range(lo + offset).intersect(*range)?;
            corners.push((clipped.lo, clipped.hi));
        }
        let corner = |dim: usize| corners.get(dim).copied().unwrap_or((0, 0));
        ends.push((layout.key(|d| corner(d).0)?, layout.key(|d| corner(d).1)?));
    }
    // In global order, so that the rows found ascend.
    ends.sort_unstable();
    Some(ends)
}

/// Whether a fragment is one for the overlay.
pub(super) fn is_small(description: &Description) -> bool {
    matches!(description.kind, FragmentKind::Sparse | FragmentKind::Tombstones)
        && description.location.len <= limits::INLINE_BYTES_MAX as u64
}

/// The overlay over the small fragments of `target`, `None` if there is none or they pass a quarter of the budget.
pub(super) fn live_overlay(context: &ReadContext, target: &Target) -> Result<Option<LiveOverlay>> {
    let small: Vec<&Arc<Description>> = target.fragments.iter().filter(|d| is_small(d)).collect();
    let width = target.row_bytes();
    let bytes = |d: &Description| d.cells.saturating_mul(width).saturating_add(d.location.len);
    let needed = small.iter().fold(0u64, |sum, d| sum.saturating_add(bytes(d)));
    if small.is_empty() || needed > context.overlay_bytes() {
        return Ok(None);
    }
    let key = CacheKey { store: context.store, what: "overlay", id: target.array, version: 0 };
    let held = context.cache.get(&key).and_then(|held| held.downcast::<Overlay>().ok());
    let missing: Vec<Arc<Description>> = small
        .iter()
        .filter(|d| held.as_ref().is_none_or(|o| !o.places.contains_key(&d.id)))
        .map(|d| (*d).clone())
        .collect();
    let overlay = match held {
        Some(overlay) if missing.is_empty() => overlay,
        held => {
            let held_bytes: u64 = held.iter().flat_map(|o| &o.fragments).map(|f| bytes(f.fragment.description())).sum();
            let base = held.filter(|_| held_bytes + needed <= context.overlay_bytes());
            let missing = if base.is_some() { missing } else { small.iter().map(|d| (*d).clone()).collect() };
            let overlay = Arc::new(Overlay::extend(base.as_deref(), load(context, target, missing)?));
            context.cache.put(
                key,
                overlay.clone(),
                overlay.fragments.iter().map(|f| bytes(f.fragment.description())).sum(),
            );
            overlay
        }
    };
    let mut live = vec![false; overlay.fragments.len()];
    for place in small.iter().filter_map(|d| overlay.places.get(&d.id)) {
        if let Some(flag) = live.get_mut(*place as usize) {
            *flag = true;
        }
    }
    Ok(Some(LiveOverlay { overlay, live, masks: Masks::load(context, &target.fragments)? }))
}

fn load(context: &ReadContext, target: &Target, missing: Vec<Arc<Description>>) -> Result<Vec<Arc<SmallFragment>>> {
    let fragments = open_all(context, &target.schema, missing)?;
    context.pool.map(fragments, context.cancel.as_ref(), |fragment| {
        SmallFragment::load(context, &target.schema, fragment).map(Arc::new)
    })
}

impl SmallFragment {
    fn load(context: &ReadContext, schema: &Schema, fragment: Arc<Fragment>) -> Result<Self> {
        let mut coords = Vec::with_capacity(schema.ndim());
        for (dim, number) in schema.dims().iter().zip(0u32..) {
            coords.push(read_keys(context, &fragment, number, dim)?);
        }
        let columns = fragment.description().attrs.iter().map(|_| OnceLock::new()).collect();
        let tiles = tile_starts(&fragment)?;
        Ok(Self { fragment, coords, columns, tiles })
    }

    /// How many cells it holds.
    pub(super) fn len(&self) -> usize {
        self.coords.first().map_or(0, Vec::len)
    }

    /// The keys of `rows` in global order.
    pub(super) fn keys(&self, layout: &KeyLayout, rows: &[u32]) -> CellKeys {
        let pick = |column: &Vec<u64>| rows.iter().filter_map(|r| column.get(*r as usize).copied()).collect();
        let coords: Vec<Vec<u64>> = self.coords.iter().map(pick).collect();
        layout.keys(&coords.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// The rows whose cells lie in `sub`. `ends`: see [`tile_ends`].
    fn rows_in(&self, sub: &Subarray, layout: &KeyLayout, ends: Option<&[(u128, u128)]>) -> Vec<u32> {
        let all = 0..self.len() as u32;
        if sub.covers(&self.fragment.description().bounds) {
            return all.collect();
        }
        let coordinate = |dim: usize, row: u32| self.coords.get(dim).and_then(|c| c.get(row as usize)).copied();
        let inside = |row: &u32| sub.contains((0..self.coords.len()).filter_map(|d| coordinate(d, *row)));
        let Some(ends) = ends else { return all.filter(inside).collect() };
        ends.iter().flat_map(|(first, last)| self.rows_between(layout, *first, *last)).filter(inside).collect()
    }

    /// The rows whose keys lie from `first` to `last`. Keys are made for the few cells that the search looks at.
    pub(super) fn rows_between(&self, layout: &KeyLayout, first: u128, last: u128) -> impl Iterator<Item = u32> {
        let coordinate = |dim: usize, row: u32| self.coords.get(dim).and_then(|c| c.get(row as usize)).copied();
        let key = move |row: u32| layout.key(|d| coordinate(d, row).unwrap_or(0)).unwrap_or(0);
        let (mut from, mut to) = (0, self.len() as u32);
        while from < to {
            let middle = from + (to - from) / 2;
            if key(middle) < first { from = middle + 1 } else { to = middle }
        }
        (from..self.len() as u32).take_while(move |row| key(*row) <= last)
    }

    /// Its precedence.
    pub(super) fn order(&self) -> FragmentOrder {
        self.fragment.description().order
    }

    /// Whether the cell of a row lies in a box deleted since.
    pub(super) fn is_deleted(&self, row: u32, deletions: &Deletions) -> bool {
        deletions.take(self.order(), self.coords.iter().filter_map(move |c| c.get(row as usize).copied()))
    }

    /// Whether one of `masks` deletes a row.
    pub(super) fn is_masked(&self, row: u32, masks: &[Arc<Mask>]) -> bool {
        let tile = self.tiles.partition_point(|first| *first <= row).saturating_sub(1);
        let first = self.tiles.get(tile).copied().unwrap_or(0);
        is_masked(masks, tile as u64, (row - first) as usize)
    }

    /// Whether its rows delete.
    pub(super) fn is_tombstone(&self) -> bool {
        self.fragment.description().kind == FragmentKind::Tombstones
    }

    /// The values of the attribute with this permanent number, `None` if the fragment has none of it.
    pub(super) fn column(&self, context: &ReadContext, attr: u32) -> Result<Option<Arc<Column>>> {
        let Some(place) = self.fragment.description().attrs.iter().position(|a| *a == attr) else { return Ok(None) };
        let Some(slot) = self.columns.get(place) else { return Ok(None) };
        if let Some(column) = slot.get() {
            return Ok(Some(column.clone()));
        }
        let column = Arc::new(read_column(context, &self.fragment, attr)?);
        Ok(Some(slot.get_or_init(|| column).clone()))
    }
}

/// The first row of each tile of a fragment.
fn tile_starts(fragment: &Fragment) -> Result<Vec<u32>> {
    let wrong = || broken_index(fragment);
    let (mut starts, mut cells) = (Vec::new(), 0);
    for stripe in 0..fragment.stripes() {
        let index = fragment.stripe(stripe)?;
        for local in 0..index.tiles() {
            starts.push(u32::try_from(cells).map_err(|_| wrong())?);
            cells += index.tile_cells(local).ok_or_else(wrong)?;
        }
    }
    Ok(starts)
}

/// Calls `each` with every block of one field of a small fragment, in its order, and the bytes it is stored in. These lie
/// in memory: a small fragment is fetched whole when it is opened.
fn for_each_block(
    context: &ReadContext,
    fragment: &Fragment,
    role: Role,
    mut each: impl FnMut(BlockRef, &Bytes) -> Result<()>,
) -> Result<()> {
    let wrong = || broken_index(fragment);
    let field = fragment.field(role).ok_or_else(wrong)?;
    let mut cells = 0;
    for stripe in 0..fragment.stripes() {
        let index = fragment.stripe(stripe)?;
        for local in 0..index.tiles() {
            let tile = fragment.first_tile(stripe) + local as u64;
            let (tile_cells, (from, to)) = index.tile_cells(local).zip(index.block_span(local)).ok_or_else(wrong)?;
            for block in 0..to - from {
                let block = fragment.block(field, tile, block, fragment.sparse_block_cells(tile_cells, block))?;
                let bytes = fragment.source().read_one(block.range)?;
                Counters::add(&context.counters.requests, 1);
                Counters::add(&context.counters.bytes_fetched, block.range.len);
                Counters::add(&context.counters.blocks_decoded, 1);
                cells += block.cells() as u64;
                each(block, &bytes)?;
            }
        }
    }
    if cells == fragment.root().cells { Ok(()) } else { Err(wrong()) }
}

/// The coordinates of a small fragment along one dimension, as ordered keys.
fn read_keys(context: &ReadContext, fragment: &Fragment, number: u32, dim: &Dimension) -> Result<Vec<u64>> {
    let impossible = || Error::corruption(format!("fragment {}: impossible coordinates", fragment.description().id));
    let width = dim.datatype().width().ok_or_else(impossible)?;
    let mut keys = Vec::with_capacity(fragment.root().cells as usize);
    let mut scratch = SCRATCH.take();
    let read = for_each_block(context, fragment, Role::Dimension(number), |block, bytes| {
        scratch.resize(block.cells() * width, 0);
        fragment.decode_into(&block, bytes, &mut scratch)?;
        Counters::add(&context.counters.bytes_decoded, scratch.len() as u64);
        if !key::within(dim.datatype(), &scratch, dim.range()) {
            return Err(impossible());
        }
        key::encode_into(dim.datatype(), &scratch, &mut keys)
    });
    SCRATCH.set(scratch);
    read.map(|()| keys)
}

/// The values of one attribute of a small fragment.
fn read_column(context: &ReadContext, fragment: &Fragment, attr: u32) -> Result<Column> {
    let mut all: Option<Column> = None;
    for_each_block(context, fragment, Role::Attribute(attr), |block, bytes| {
        let column = fragment.decode(&block, bytes)?;
        Counters::add(&context.counters.bytes_decoded, column.size_bytes() as u64);
        match &mut all {
            None => all = Some(column),
            Some(all) => all.append(column.view(), 0, column.len()),
        }
        Ok(())
    })?;
    all.ok_or_else(|| broken_index(fragment))
}

impl Overlay {
    /// `base` with more fragments.
    fn extend(base: Option<&Self>, more: Vec<Arc<SmallFragment>>) -> Self {
        let mut fragments = base.map(|b| b.fragments.clone()).unwrap_or_default();
        fragments.extend(more);
        let places = fragments.iter().zip(0u32..).map(|(f, place)| (f.fragment.description().id, place)).collect();
        Self { fragments, places }
    }
}

/// A box over more space tiles than this is looked for cell by cell.
const TILES_SEARCHED_MAX: u128 = 16;

impl LiveOverlay {
    /// The fragment of an entry, if it is live.
    pub(super) fn fragment(&self, entry: Entry) -> Option<&Arc<SmallFragment>> {
        let live = self.live.get(entry.fragment as usize).copied().unwrap_or(false);
        if live { self.overlay.fragments.get(entry.fragment as usize) } else { None }
    }

    /// The live fragments that may hold a cell of `sub`, oldest order first, with their places in the overlay.
    pub(super) fn fragments(&self, sub: &Subarray) -> Vec<(u32, &Arc<SmallFragment>)> {
        let all = self.overlay.fragments.iter().zip(&self.live).zip(0u32..);
        let touching = all.filter(|((f, live), _)| **live && f.fragment.description().bounds.intersects(sub));
        let mut found: Vec<_> = touching.map(|((f, _), place)| (place, f)).collect();
        found.sort_by_key(|(_, f)| f.order());
        found
    }

    /// The live cells in `sub`.
    pub(super) fn cells_in(&self, context: &ReadContext, schema: &Schema, sub: &Subarray) -> Result<LiveCells> {
        let layout = KeyLayout::new(schema);
        let ends = tile_ends(schema, &layout, sub);
        let none: Vec<&[u64]> = vec![&[]; schema.ndim()];
        let (mut keys, mut entries) = (layout.keys(&none), Vec::new());
        for (fragment, small) in self.fragments(sub) {
            context.cancel.check()?;
            let mut rows = small.rows_in(sub, &layout, ends.as_deref());
            let masks = self.masks.over(small.fragment.description().id);
            if !masks.is_empty() {
                rows.retain(|row| !small.is_masked(*row, masks));
            }
            if !rows.is_empty() {
                keys.append(&small.keys(&layout, &rows));
            }
            entries.extend(rows.into_iter().map(|row| Entry { fragment, row }));
        }
        // Oldest first, so that cells of one place stay in order of their age.
        let (keys, sorted) = keys.sort(context.pool.as_ref(), context.cancel.as_ref())?;
        let entries = sorted.iter().filter_map(|at| entries.get(*at as usize).copied()).collect();
        Ok(LiveCells { keys, entries })
    }

    /// The values of an attribute at cells, each the place of a fragment and a row of it.
    pub(super) fn column(&self, context: &ReadContext, attr: &Attribute, cells: &[(u32, u32)]) -> Result<Column> {
        let mut found: Vec<Option<Arc<Column>>> = vec![None; self.overlay.fragments.len()];
        let mut asked = vec![false; found.len()];
        for place in cells.iter().map(|(fragment, _)| *fragment as usize) {
            if let (Some(slot), Some(asked @ false), Some(small)) =
                (found.get_mut(place), asked.get_mut(place), self.overlay.fragments.get(place))
            {
                *asked = true;
                *slot = small.column(context, attr.id())?;
            }
        }
        let views: Vec<_> = found.iter().map(|column| column.as_ref().map(|c| c.view())).collect();
        Ok(Column::gathered(&views, cells, Column::blank(attr).view()))
    }

    /// Counts the entries that a read applied.
    pub(super) fn count(&self, context: &ReadContext, entries: usize) {
        Counters::add(&context.counters.overlay_entries, entries as u64);
    }
}
