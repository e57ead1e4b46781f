//! Reading sparse arrays.
//!
//! 1. Plan: the blocks whose MBR touches the box, in ascending order of their first cell.
//! 2. Load blocks in that order until a batch is full: coordinates first, values only where a row lies in the box.
//! 3. Merge what lies before the first cell of the next block that is not loaded: nothing that comes later can reach
//!    before it. Where nothing has to be merged, nothing is ([`self::unmerged`]).

pub(super) mod lone_tiles;
mod small_fragments;
mod unmerged;

use self::lone_tiles::{LoneTile, NoTaker, Surroundings, TileTaker};
use self::small_fragments::{Taken, grouped, live_chunk, split_small};
use super::block::deletions::{Deletions, clear_inside};
use super::block::fetch::{Want, fetch};
use super::block::masks::{self, Masks};
use super::block::open::open_all;
use super::block::sparse::{fetch_coordinates, for_each_block, outside_dimension, touched_blocks_but};
use super::cells::chunk::{Chunk, Precedence, Queue};
use super::cells::k_way_merge::{Frontier, merge};
use super::cells::merged_rows::Stretches;
use super::overlay::{is_small, live_overlay};
use super::request::{ReadContext, ReadOrder, Request, Target};
use crate::base::{Cancel, Counters, Error, Progress, Result};
use crate::fragment::{Description, Fragment, FragmentKind, FragmentOrder, IndexBox, Role};
use crate::query::block::sparse::Unit;
use crate::query::overlay::large_fragments;
use crate::schema::{KeyRange, Order, Schema, Subarray};
use crate::tile::coordinates::axis_keys;
use crate::tile::{CellKeys, Cells, Column, KeyLayout};
use std::cmp::Ordering;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A read of a sparse array under way.
pub(super) struct SparseReader {
    pub(super) context: ReadContext,
    pub(super) schema: Arc<Schema>,
    pub(super) request: Request,
    pub(super) layout: KeyLayout,
    pub(super) fragments: Vec<Arc<Fragment>>,
    pub(super) deletions: Deletions,
    pub(super) masks: Masks,
    pub(super) units: Vec<Unit>,
    pub(super) firsts: CellKeys,
    next: usize,
    /// Of the fragments, and then of those that are small.
    pub(super) queues: Vec<Queue>,
    /// Memory that the latter take.
    _taken: Option<Taken>,
    /// What was merged and waits for [`SparseReader::next_part`].
    merged: Stretches,
    /// Bytes that a decoded row takes, about, and whether that is but a guess.
    pub(super) row_bytes: (u64, bool),
    returned: u64,
    pub(super) total: u64,
    /// Whether each tile whose cells are read as they are was given to what answers for tiles.
    pub(super) has_asked: bool,
}

/// The blocks of a plan, and the keys of their first cells, a column per dimension.
type PlannedBlocks = (Vec<Unit>, Vec<Vec<u64>>);

/// Reads the cells of a box whole, in the order asked for.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_sparse(context: &ReadContext, target: &Target, request: &Request) -> Result<Cells> {
    let cells = SparseReader::new(context, target, request)?.collect(u64::MAX)?;
    Ok(cells.unwrap_or_else(|| Cells::none(&target.schema, &request.attrs)))
}

/// Sorts cells by their coordinates alone; duplicates stay in order of writing.
pub(super) fn sort_cells(context: &ReadContext, schema: &Schema, cells: Cells, order: Order) -> Result<Cells> {
    let cancel = context.cancel.as_ref();
    if u32::try_from(cells.count).is_err() {
        return Err(Error::budget("more than 2^32 cells cannot be sorted at once; stream them with scan()"));
    }
    let keys = axis_keys(schema, &cells.dims)?;
    let refs: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
    let order = KeyLayout::by_coordinates(schema, order).keys(&refs);
    if order.first_step(Ordering::Less, cancel)?.is_none() {
        return Ok(cells);
    }
    let (_, rows) = order.sort(context.pool.as_ref(), cancel)?;
    let gather = |columns: &[Column]| columns.iter().map(|c| c.view().gather(&rows)).collect();
    Ok(Cells { count: cells.count, dims: gather(&cells.dims), attrs: gather(&cells.attrs) })
}

impl SparseReader {
    /// Plans the read.
    pub(super) fn new(context: &ReadContext, target: &Target, request: &Request) -> Result<Self> {
        Self::without(context, target, request, None)
    }

    /// Plans the read but for tiles that `taker` answers for.
    pub(super) fn without(
        context: &ReadContext,
        target: &Target,
        request: &Request,
        taker: Option<&mut dyn TileTaker>,
    ) -> Result<Self> {
        let overlay =
            live_overlay(context, target, std::slice::from_ref(&request.sub), &request.attr_ids(&target.schema))?;
        let held = overlay.is_some();
        let streams = |d: &Description| !held || !is_small(d);
        Self::over(context, (target, &streams), request, taker, |layout, deletions| {
            let Some(overlay) = overlay else { return Ok((Vec::new(), None)) };
            let mut queue = Queue::default();
            if let Some(chunk) = live_chunk(context, &target.schema, layout, (&overlay, deletions), request)? {
                queue.push(chunk);
            }
            Ok((vec![queue], None))
        })
    }

    /// Plans a read for a merge of fragments, which looks at each of them once.
    pub(super) fn of_merge(context: &ReadContext, target: &Target, request: &Request) -> Result<Self> {
        let (small, streamed) = split_small(context, target);
        let streams = |d: &Description| streamed.contains(&d.id);
        Self::over(context, (target, &streams), request, None, |layout, deletions| {
            let (queues, taken) = grouped(context, (target, small), layout, deletions, request)?;
            Ok((queues, Some(taken)))
        })
    }

    /// Plans a read. The fragments that it `streams` are opened one by one, the others come in queues as `small` gives them.
    fn over(
        context: &ReadContext,
        (target, streams): (&Target, &dyn Fn(&Description) -> bool),
        request: &Request,
        taker: Option<&mut dyn TileTaker>,
        small: impl FnOnce(&KeyLayout, &Deletions) -> Result<(Vec<Queue>, Option<Taken>)>,
    ) -> Result<Self> {
        Counters::add(&context.counters.fragments_considered, target.fragments.len() as u64);
        let deletions = Deletions::of(&target.fragments, &request.sub);
        let large = large_fragments(target, false, |d| streams(d) && deletions.leave(d, &request.sub));
        let fragments = open_all(context, &target.schema, large)?;
        let layout = KeyLayout::new(&target.schema);
        let masks = Masks::load(context, &target.fragments)?;
        let surroundings = Surroundings::new(target, request, &deletions, &masks);
        let has_asked = taker.is_some() && surroundings.is_empty_but(&fragments);
        let (units, starts) = Self::blocks(context, &fragments, &surroundings, taker)?;
        let refs: Vec<&[u64]> = starts.iter().map(Vec::as_slice).collect();
        let keys = layout.keys(&refs);
        let (firsts, order) = keys.sort(context.pool.as_ref(), context.cancel.as_ref())?;
        let units: Vec<Unit> = order.iter().filter_map(|i| units.get(*i as usize).cloned()).collect();
        let total = units.iter().map(|u| u.at.cells as u64).sum();
        let mut queues: Vec<Queue> = fragments.iter().map(|_| Queue::default()).collect();
        let (small, taken) = small(&layout, &deletions)?;
        queues.extend(small);
        let schema = target.schema.clone();
        Ok(Self {
            context: context.clone(),
            schema,
            request: request.clone(),
            layout,
            fragments,
            deletions,
            masks,
            units,
            firsts,
            next: 0,
            queues,
            _taken: taken,
            merged: Stretches::default(),
            row_bytes: (target.row_bytes(), target.has_varied()),
            returned: 0,
            total,
            has_asked,
        })
    }

    /// The blocks that the request touches, but for those of tiles that `taker` answers for.
    fn blocks(
        context: &ReadContext,
        fragments: &[Arc<Fragment>],
        surroundings: &Surroundings<'_>,
        taker: Option<&mut dyn TileTaker>,
    ) -> Result<PlannedBlocks> {
        let (request, deletions) = (surroundings.request, surroundings.deletions);
        let asks = taker.is_some();
        let mut none = NoTaker;
        let taker = taker.unwrap_or(&mut none);
        let mut units = Vec::new();
        let mut starts: Vec<Vec<u64>> = vec![Vec::new(); request.sub.ranges().len()];
        for (queue, fragment) in fragments.iter().enumerate() {
            let description = fragment.description();
            let (order, asks) = (description.order, asks && surroundings.may_be_alone(description));
            let lone = |bounds: IndexBox<'_>| if asks { surroundings.lone(description, bounds) } else { None };
            let takes = |tile, bounds: IndexBox<'_>, cells| match lone(bounds) {
                Some(bounds) => taker.takes(LoneTile { fragment, tile, bounds, cells }),
                None => Ok(false),
            };
            touched_blocks_but(context, fragment, request.area(), takes, |at, first| {
                if deletions.cover(order, &at.bounds) {
                    return;
                }
                starts.iter_mut().zip(first.iter()).for_each(|(column, k)| column.push(k));
                units.push(Unit { queue, at });
            })?;
        }
        Ok((units, starts))
    }

    /// Leaves all blocks out of the plan but those at `rows`, which ascend. To be called before the first batch.
    pub(super) fn keep_units(&mut self, rows: &[u32]) {
        self.firsts = self.firsts.pick(rows);
        self.units = rows.iter().filter_map(|row| self.units.get(*row as usize).cloned()).collect();
        self.total = self.units.iter().map(|u| u.at.cells as u64).sum();
    }

    /// The least box around what small fragments hold, tombstones included; `None` if they hold nothing. To be asked before the
    /// first batch.
    pub(super) fn small_reach(&self) -> Option<Subarray> {
        let range = |keys: &Vec<u64>| Some(KeyRange::new(*keys.iter().min()?, *keys.iter().max()?));
        let chunk =
            |queue: &Queue| queue.head()?.0.coords.iter().map(range).collect::<Option<Vec<_>>>().map(Subarray::new);
        self.queues.iter().filter_map(chunk).reduce(|a, b| a.union(&b))
    }

    /// From now on asks `cancel` whether to go on.
    pub(super) fn set_cancel(&mut self, cancel: Arc<dyn Cancel>) {
        self.context.cancel = cancel;
    }

    /// From now on reports to `progress`.
    pub(super) fn set_progress(&mut self, progress: Arc<dyn Progress>) {
        self.context.progress = progress;
    }

    /// The least box known to hold all cells that will be read; `None` if there is none. To be asked before the first
    /// batch.
    pub(super) fn reach(&self) -> Option<Subarray> {
        let range = |keys: &Vec<u64>| Some(KeyRange::new(*keys.iter().min()?, *keys.iter().max()?));
        let chunk =
            |queue: &Queue| queue.head()?.0.coords.iter().map(range).collect::<Option<Vec<_>>>().map(Subarray::new);
        let blocks = self.units.iter().filter_map(|u| u.at.bounds.intersect(&self.request.sub));
        blocks.chain(self.queues.iter().filter_map(chunk)).reduce(|a, b| a.union(&b))
    }

    /// The least order of the overlay's cells, and a box that holds them all; `None` if there is none. To be asked before the
    /// first batch.
    pub(super) fn overlay_reach(&self) -> Option<(FragmentOrder, Subarray)> {
        let (chunk, _) = self.queues.iter().find_map(Queue::head)?;
        let range = |keys: &Vec<u64>| Some(KeyRange::new(*keys.iter().min()?, *keys.iter().max()?));
        let reach = chunk.coords.iter().map(range).collect::<Option<Vec<_>>>()?;
        let least = (0..chunk.len()).filter(|row| !chunk.is_tombstone(*row)).map(|row| chunk.order(row)).min()?;
        Some((least, Subarray::new(reach)))
    }

    /// About how many cells lie in the box: those of a block as far as its MBR reaches into the box along `dim`.
    pub(super) fn estimate(&self, dim: usize) -> u64 {
        let blocks: f64 =
            self.units.iter().map(|u| u.at.cells as f64 * share(&u.at.bounds, &self.request.sub, dim)).sum();
        blocks as u64 + self.queues.iter().filter_map(Queue::head).map(|(c, _)| c.len() as u64).sum::<u64>()
    }

    /// The cells of all blocks and entries that the box touches. To be asked before the first batch.
    pub(super) fn cells_near(&self) -> u64 {
        self.total + self.queues.iter().filter_map(Queue::head).map(|(c, _)| c.len() as u64).sum::<u64>()
    }

    /// All cells in the order asked for; `None`, found out early, if they are more than `cells_max`.
    pub(super) fn collect(mut self, cells_max: u64) -> Result<Option<Cells>> {
        let found = if self.stands_apart() { self.collect_apart(cells_max)? } else { self.collect_merged(cells_max)? };
        let Some(all) = found else { return Ok(None) };
        match self.request.order {
            ReadOrder::Row => sort_cells(&self.context, &self.schema, all, Order::Row).map(Some),
            ReadOrder::Col => sort_cells(&self.context, &self.schema, all, Order::Col).map(Some),
            ReadOrder::Global | ReadOrder::Any => Ok(Some(all)),
        }
    }

    fn collect_merged(&mut self, cells_max: u64) -> Result<Option<Cells>> {
        let mut all = Cells::none(&self.schema, &self.request.attrs);
        while let Some(batch) = self.next(self.context.batch_bytes())? {
            if (all.count as u64).saturating_add(batch.count as u64) > cells_max {
                self.context.counters.cells_returned.fetch_sub(self.returned, Relaxed);
                return Ok(None);
            }
            all.append(batch)?;
        }
        Ok(Some(all))
    }

    /// The next cells in global order, about `bytes` of them, `None` at the end.
    pub(super) fn next(&mut self, bytes: u64) -> Result<Option<Cells>> {
        let Some(found) = self.next_stretches(bytes)? else { return Ok(None) };
        found.to_cells(&self.schema, &self.request).map(Some)
    }

    /// The same not yet gathered, and never more: what is merged beyond that waits.
    pub(super) fn next_part(&mut self, bytes: u64) -> Result<Option<Stretches>> {
        if self.merged.is_empty() {
            let Some(found) = self.next_stretches(bytes)? else { return Ok(None) };
            self.merged = found;
        }
        let room = (bytes / self.row_bytes.0.max(1)).max(1) as usize;
        Ok(Some(self.merged.split_front(room)))
    }

    /// The stretches of loaded blocks that the next cells lie in.
    fn next_stretches(&mut self, bytes: u64) -> Result<Option<Stretches>> {
        loop {
            self.context.cancel.check()?;
            self.load(bytes)?;
            let frontier = Frontier { keys: &self.firsts, row: self.next };
            let more = self.next < self.units.len();
            // A source that stands alone has its cells in order: nothing needs to wait for what it holds later.
            let wait = more && self.queues.len() > 1;
            let duplicates = self.schema.options().duplicates;
            let (found, tied) = merge(&mut self.queues, wait.then_some(&frontier), duplicates);
            Counters::add(&self.context.counters.cells_merged, tied);
            if found.is_empty() && more {
                continue;
            }
            if found.is_empty() {
                return Ok(None);
            }
            let count = found.cells() as u64;
            Counters::add(&self.context.counters.cells_returned, count);
            self.returned += count;
            self.context.progress.report(self.returned, self.total.max(self.returned));
            return Ok(Some(found));
        }
    }

    /// Loads the next blocks, about `bytes` of them, at least one while there is one. Where values vary in length they
    /// are loaded few at a time, until they really take so much.
    fn load(&mut self, bytes: u64) -> Result<()> {
        let mut room = bytes;
        loop {
            let group = self.next_group(room);
            if group.is_empty() {
                return Ok(());
            }
            let taken = self.load_group(&group)?;
            if !self.row_bytes.1 || taken >= room {
                return Ok(());
            }
            room -= taken;
        }
    }

    /// How many blocks are not loaded yet.
    pub(super) fn units_left(&self) -> usize {
        self.units.len() - self.next
    }

    /// The next blocks that should take at most `room` bytes, at least one while there is one.
    pub(super) fn next_group(&mut self, room: u64) -> Vec<Unit> {
        let start = self.next;
        let count_max = if self.row_bytes.1 { self.context.pool.threads() * 16 } else { usize::MAX };
        let mut rows = room / self.row_bytes.0.max(1);
        while let Some(unit) = self.units.get(self.next) {
            if self.next > start && ((unit.at.cells as u64) > rows || self.next - start >= count_max) {
                break;
            }
            rows = rows.saturating_sub(unit.at.cells as u64);
            self.next += 1;
        }
        self.units.get(start..self.next).unwrap_or_default().to_vec()
    }

    /// Loads blocks into their queues; gives the bytes they take.
    fn load_group(&mut self, units: &[Unit]) -> Result<u64> {
        let held = units.iter().map(|u| u.at.cells as u64).sum::<u64>().saturating_mul(self.row_bytes.0);
        self.context.budget.take(held);
        let loaded = self.load_units(units);
        self.context.budget.give(held);
        let mut taken = 0;
        for (unit, chunk) in units.iter().zip(loaded?) {
            if let (Some(chunk), Some(queue)) = (chunk, self.queues.get_mut(unit.queue)) {
                taken += chunk.size_bytes();
                queue.push(chunk);
            }
        }
        Ok(taken)
    }

    /// One chunk per unit, `None` where no row lies in the box.
    fn load_units(&self, units: &[Unit]) -> Result<Vec<Option<Chunk>>> {
        let blocks = units.iter().map(|u| Ok((self.fragment(u)?, &u.at))).collect::<Result<Vec<_>>>()?;
        let coords = fetch_coordinates(&self.context, &self.schema, &blocks, true)?;
        let mut rows: Vec<Option<Vec<u32>>> = Vec::with_capacity(units.len());
        let mut wants = Vec::new();
        for (unit, coords) in units.iter().zip(&coords) {
            Counters::add(&self.context.counters.cells_scanned, unit.at.cells as u64);
            let inside = self.rows_inside(unit, coords);
            let wanted = inside.as_ref().is_none_or(|rows| !rows.is_empty());
            if wanted {
                self.want_values(unit, &mut wants)?;
            }
            rows.push(inside);
        }
        let mut values = fetch(&self.context, &wants, true)?.into_iter();
        let mut found = Vec::with_capacity(units.len());
        for ((unit, coords), rows) in units.iter().zip(coords).zip(rows) {
            let none = rows.as_ref().is_some_and(Vec::is_empty);
            let columns = if none { Vec::new() } else { self.columns(unit, &mut values)? };
            found.push((unit, (coords, columns), rows));
        }
        for_each_block(&self.context, found, true, |(unit, (coords, columns), rows)| {
            let some = !rows.as_ref().is_some_and(Vec::is_empty);
            Ok(some.then(|| self.chunk(unit, coords, columns, rows)))
        })
    }

    fn chunk(&self, unit: &Unit, coords: Vec<Vec<u64>>, columns: Vec<Column>, rows: Option<Vec<u32>>) -> Chunk {
        let (coords, columns) = match rows {
            None => (coords, columns),
            Some(rows) => {
                let pick = |c: &Vec<u64>| rows.iter().filter_map(|r| c.get(*r as usize).copied()).collect();
                (coords.iter().map(pick).collect(), columns.iter().map(|c| c.view().gather(&rows)).collect())
            }
        };
        let alone = self.queues.len() == 1;
        let refs: Vec<&[u64]> = coords.iter().map(|c| if alone { &[] } else { c.as_slice() }).collect();
        let description = self.fragments.get(unit.queue).map(|f| f.description().clone());
        let order = description.as_ref().map_or(FragmentOrder { version: 0, index: 0 }, |d| d.order);
        let kind = description.map_or(FragmentKind::Sparse, |d| d.kind);
        let standing = Precedence::Fragment(order, kind);
        Chunk { keys: self.layout.keys(&refs), coords, columns, standing, sifted: None }
    }

    /// Whether all rows of a block are wanted: they lie in the box, and none is masked or may lie in a box deleted since.
    pub(super) fn takes_all(&self, unit: &Unit) -> bool {
        let Some(fragment) = self.fragments.get(unit.queue) else { return true };
        let masks = self.masks.over(fragment.description().id);
        self.request.area().covers(&unit.at.bounds)
            && !self.deletions.touch(fragment.description().order, &unit.at.bounds)
            && !masks::touch(masks, unit.at.tile, unit.at.first_row(fragment), unit.at.cells)
    }

    /// The rows of a block that lie in the box and are not in a box deleted since, `None` if all are wanted.
    pub(super) fn rows_inside(&self, unit: &Unit, coords: &[Vec<u64>]) -> Option<Vec<u32>> {
        let fragment = self.fragments.get(unit.queue)?;
        if self.takes_all(unit) {
            return None;
        }
        let deleted = self.deletions.newer(fragment.description().order, &unit.at.bounds);
        let masks = self.masks.over(fragment.description().id);
        let mut wanted = vec![true; unit.at.cells];
        self.request.area().clear_outside(coords, &mut wanted);
        clear_inside(deleted, coords, &mut wanted);
        masks::clear(masks, unit.at.tile, unit.at.first_row(fragment), &mut wanted);
        Some(wanted.iter().zip(0u32..).filter(|(flag, _)| **flag).map(|(_, row)| row).collect())
    }

    /// As [`SparseReader::rows_inside`], of coordinates as they are stored, along the dimensions that decide, of a block that no deleted box
    /// touches. Corruption if one of them lies outside the block's MBR.
    pub(super) fn rows_placed(&self, unit: &Unit, coords: &[Option<&Column>]) -> Result<Vec<u32>> {
        let (fragment, at) = (self.fragment(unit)?, &unit.at);
        let mut wanted = vec![true; at.cells];
        let area = self.request.area();
        if let Some(place) = area.clear_stored(&self.schema, &at.bounds, (coords, 0), &mut wanted)? {
            return Err(outside_dimension(&self.schema, fragment, at.tile, place));
        }
        masks::clear(self.masks.over(fragment.description().id), at.tile, at.first_row(fragment), &mut wanted);
        Ok(wanted.iter().zip(0u32..).filter(|(flag, _)| **flag).map(|(_, row)| row).collect())
    }

    /// Whether a deleted box touches a block that is older than it.
    pub(super) fn is_cut(&self, unit: &Unit) -> bool {
        let order = self.fragments.get(unit.queue).map(|f| f.description().order);
        order.is_some_and(|order| self.deletions.touch(order, &unit.at.bounds))
    }

    /// Whether a block's rows delete.
    pub(super) fn is_tombstones(&self, unit: &Unit) -> bool {
        self.fragments.get(unit.queue).is_some_and(|f| f.description().kind == FragmentKind::Tombstones)
    }

    /// The fragment of a block.
    pub(super) fn fragment(&self, unit: &Unit) -> Result<&Arc<Fragment>> {
        self.fragments.get(unit.queue).ok_or_else(|| Error::corruption("a block of a fragment that is not open"))
    }

    fn want_values(&self, unit: &Unit, wants: &mut Vec<Want>) -> Result<()> {
        if self.is_tombstones(unit) {
            return Ok(());
        }
        let fragment = self.fragment(unit)?;
        for attr in self.request.attrs.iter().filter_map(|p| self.schema.attrs().get(*p)) {
            let Some(field) = fragment.field(Role::Attribute(attr.id())) else { continue };
            let block = fragment.block(field, unit.at.tile, unit.at.block, unit.at.cells)?;
            wants.push(Want { source: fragment.clone(), block });
        }
        Ok(())
    }

    /// The values of a block: those fetched for it, and blank ones of the attributes that came after its fragment.
    fn columns(&self, unit: &Unit, fetched: &mut impl Iterator<Item = Column>) -> Result<Vec<Column>> {
        if self.is_tombstones(unit) {
            return Ok(Vec::new());
        }
        let fragment = self.fragment(unit)?;
        let mut columns = Vec::with_capacity(self.request.attrs.len());
        for attr in self.request.attrs.iter().filter_map(|p| self.schema.attrs().get(*p)) {
            columns.extend(match fragment.field(Role::Attribute(attr.id())) {
                Some(_) => fetched.next(),
                None => Some(Column::blanks(attr, unit.at.cells)?),
            });
        }
        Ok(columns)
    }
}

/// The share of the extent of `bounds` along `dim` that lies in `sub`.
fn share(bounds: &Subarray, sub: &Subarray, dim: usize) -> f64 {
    let (Some(all), Some(wanted)) = (bounds.ranges().get(dim), sub.ranges().get(dim)) else { return 1.0 };
    all.intersect(*wanted).map_or(0.0, |common| common.count() as f64 / all.count() as f64)
}
