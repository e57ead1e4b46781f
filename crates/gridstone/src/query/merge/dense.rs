//! A box of a dense array written anew as one dense fragment, from the fragments that lie in it: the dense half of a merge.
//!
//! 1. Tile by tile, side by side: the fragments that touch the tile, without those under a newer one that covers it wholly.
//! 2. Where one dense fragment is left, whose tile is the same, that is copied as it is stored.
//! 3. Any other tile is read as a user would read it, and encoded.
//! 4. If the values of a block of it are too large together, all begins anew with smaller blocks: a fragment has blocks of one size.
//! 5. Where a cell was deleted, and not all attributes may be null, the fill stands, and tombstones are written besides.
//!
//! Memory holds the tiles that are under way, the writer's stripe, and tombstones up to an eighth of the budget.

use super::tombstones::{Deleted, Leftover, deletes_cells};
use crate::base::{Counters, Error, Id, Result};
use crate::fragment::{
    Cells, DenseFragment, Description, EncodedTile, Field, Fragment, FragmentKind, Packing, Staged, encode_tile,
};
use crate::query::block::open::open_fragment;
use crate::query::dense::read::read_dense;
use crate::query::overlay::{is_small, live_overlay};
use crate::query::request::{BudgetHold, ReadContext, ReadOrder, Request, Target, WriteContext};
use crate::query::write::dense::{dense_cuts, fields_and_packing, fitting_cells};
use crate::query::write::stage::Stage;
use crate::schema::{Attribute, Order, Subarray};
use crate::tile::{Column, ColumnView, Statistics, TileGrid};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

/// What is written anew.
pub struct Rewrite<'a> {
    /// The array; its fragments do not matter.
    pub target: &'a Target,
    /// The fragments that touch a box, oldest order first.
    pub touching: &'a (dyn Fn(&Subarray) -> Vec<Arc<Description>> + Sync),
    /// The box, in which every cell is in some dense fragment.
    pub sub: Subarray,
    /// The attributes' places in the schema, ascending.
    pub places: Vec<usize>,
}

/// A box written anew.
#[derive(Debug)]
pub struct Rewritten {
    /// The fragment; it has no order yet.
    pub staged: Staged,
    /// Whether it has other values than one of the fragments that it was written from, of which nothing was deleted.
    pub changed: bool,
}

impl std::fmt::Debug for Rewrite<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Rewrite({})", self.sub)
    }
}

/// Decodes the small fragments of `target` once, so that tiles need not do it one by one; says whether there is memory for
/// them.
pub fn preload_small(context: &ReadContext, target: &Target) -> Result<bool> {
    let any = target.fragments.iter().any(|d| is_small(d));
    let attrs: Vec<u32> = target.schema.attrs().iter().map(Attribute::id).collect();
    Ok(live_overlay(context, target, &[target.schema.domain()], &attrs)?.is_some() || !any)
}

/// Writes a box anew. `leftover` gets the tombstones that have to stand over it, which have no order yet; after an error too.
///
/// # Errors
/// Corruption, Storage, Cancelled.
pub fn rewrite_dense(
    read: &ReadContext,
    write: &WriteContext<'_>,
    job: &Rewrite<'_>,
    leftover: &mut Vec<Staged>,
) -> Result<Rewritten> {
    let (mut write, mut buried_tiles) = (write.clone(), 0);
    loop {
        match attempt(read, &write, job, (leftover, &mut buried_tiles))? {
            Attempt::Done(rewritten) => return Ok(*rewritten),
            Attempt::Crowded(block_cells) => write.blocks.dense = block_cells,
        }
    }
}

/// What became of a box written anew with blocks of one size.
enum Attempt {
    Done(Box<Rewritten>),
    /// A tile came whose blocks may have so many cells at most.
    Crowded(u32),
}

/// A tile and the rows of its cells that are deleted although it holds them, or how many cells its blocks may have.
type Made = std::result::Result<(EncodedTile, Vec<usize>), u32>;

/// Writes a box anew with blocks of the size that `write` says. The tombstones over its first `buried_tiles` tiles are written already.
fn attempt(
    read: &ReadContext,
    write: &WriteContext<'_>,
    job: &Rewrite<'_>,
    (leftover, buried_tiles): (&mut Vec<Staged>, &mut u64),
) -> Result<Attempt> {
    let schema = &job.target.schema;
    let attrs = job.places.iter().filter_map(|p| schema.attrs().get(*p));
    let ids: Vec<u32> = attrs.map(|a| a.id()).collect();
    let (fields, packing) = fields_and_packing(write, schema, FragmentKind::Dense, &ids, usize::MAX);
    let grid = TileGrid::new(schema, &job.sub)?;
    let mut stage = Stage::new(write, schema, FragmentKind::Dense, ids.clone(), &job.sub)?;
    let (deleted, changed) = (Deleted::new(schema, &job.places)?, AtomicBool::new(false));
    let (packing, statistics) = (packing.exact(), Mutex::new(None));
    let tiles = Tiles { read, write, job, ids, fields, packing, statistics, deleted, changed };
    let cell_bytes = job.target.cell_bytes();
    let largest = grid.tile_box(0).map_or(1, |tile| tile.cells() as u64).saturating_mul(cell_bytes).max(1);
    let ahead = (read.budget.limit_bytes() / 8 / largest).min(read.pool.threads() as u64 * 2) as usize;
    let encode = |tile: u64| {
        let region = grid.tile_box(tile).ok_or_else(|| Error::bounds("a tile outside the box"))?;
        // Its cells, and the same again encoded.
        let held = BudgetHold::take(&read.budget, (region.cells() as u64).saturating_mul(2 * cell_bytes));
        Ok((tiles.tile(&region)?, region, tile, held))
    };
    let (mut done, mut buried, mut crowded) = (0u64, Leftover::new(read, schema), None);
    let mut put = |(made, region, number, held): (Made, Subarray, u64, BudgetHold<'_>)| {
        // The first tile in order decides, so that it does not matter which thread was first.
        let (tile, deleted) = made.map_err(|block_cells| {
            crowded = Some(block_cells);
            Error::input("smaller blocks are needed")
        })?;
        done += tile.cells;
        stage.push(tile)?;
        drop(held);
        if number >= *buried_tiles {
            buried.add(&region, &deleted);
        }
        if buried.is_full() {
            buried.write(write, leftover)?;
            *buried_tiles = number + 1;
        }
        write.progress.report(done, job.sub.cells() as u64);
        Ok(())
    };
    let ended = if ahead > 0 {
        read.pool.pipe(0..grid.len(), ahead, write.cancel, encode, put)
    } else {
        // One tile is more than fits: it goes before the next comes. Its blocks are read side by side.
        (0..grid.len()).try_for_each(|tile| put(encode(tile)?))
    };
    if let Some(block_cells) = crowded {
        return Ok(Attempt::Crowded(block_cells));
    }
    ended?;
    buried.write(write, leftover)?;
    let rewritten = Rewritten { staged: stage.finish()?, changed: tiles.changed.into_inner() };
    Ok(Attempt::Done(Box::new(rewritten)))
}

/// The statistics of one stripe of one fragment, read together.
pub(super) type StripeStatistics = ((Id, usize), Arc<Vec<Statistics>>);

/// Tiles being made.
struct Tiles<'a> {
    read: &'a ReadContext,
    write: &'a WriteContext<'a>,
    job: &'a Rewrite<'a>,
    ids: Vec<u32>,
    fields: Vec<Field>,
    packing: Packing,
    statistics: Mutex<Option<StripeStatistics>>,
    deleted: Option<Deleted>,
    changed: AtomicBool,
}

impl Tiles<'_> {
    /// The tile of this box.
    fn tile(&self, region: &Subarray) -> Result<Made> {
        let schema = &self.job.target.schema;
        let mut fragments = (self.job.touching)(region);
        let covers = |d: &Arc<Description>| {
            d.kind == FragmentKind::Dense && d.bounds.covers(region) && self.ids.iter().all(|id| d.attrs.contains(id))
        };
        if let Some(newest) = fragments.iter().rposition(covers) {
            fragments.drain(..newest);
        }
        let mut target = Target { fragments, ..self.job.target.clone() };
        let rows = match &self.deleted {
            Some(deleted) if deletes_cells(&target.fragments) => deleted.rows(self.read, &target, region)?,
            _ => Vec::new(),
        };
        if self.deleted.is_some() && rows.is_empty() {
            target.fragments.retain(|d| d.kind != FragmentKind::Tombstones);
        }
        if let [alone] = target.fragments.as_slice()
            && let Some(tile) = self.copied(alone, region)?
        {
            return Ok(Ok((tile, rows)));
        }
        let columns = self.columns(&target, region)?;
        let (order, blocks) = (schema.options().cell_order, self.write.blocks);
        let fitting = fitting_cells(columns.iter().map(Column::view), region, order, blocks);
        if fitting < blocks.dense {
            return Ok(Err(fitting));
        }
        if !self.changed.load(Ordering::Relaxed) {
            target.fragments.retain(|d| d.kind != FragmentKind::Tombstones);
            let alone = matches!(target.fragments.as_slice(), [_]);
            let same =
                alone && self.columns(&target, region)?.iter().zip(&columns).all(|(a, b)| same(a.view(), b.view()));
            self.changed.fetch_or(!same, Ordering::Relaxed);
        }
        let cuts = dense_cuts(region, order, blocks.dense);
        let columns = columns.into_iter().map(Cells::Given).collect();
        Ok(Ok((encode_tile(&self.fields, &self.packing, columns, &cuts, None)?, rows)))
    }

    /// The values of the attributes in a box, laid out in the array's cell order.
    fn columns(&self, target: &Target, region: &Subarray) -> Result<Vec<Column>> {
        let order = if target.schema.options().cell_order == Order::Row { ReadOrder::Row } else { ReadOrder::Col };
        let request = Request::of_box(region.clone(), self.job.places.clone(), order);
        Ok(read_dense(self.read, target, &request)?.attrs)
    }

    /// The tile as it is stored in a fragment, if it is the same there.
    fn copied(&self, description: &Arc<Description>, region: &Subarray) -> Result<Option<EncodedTile>> {
        if description.attrs != self.ids || !description.bounds.covers(region) {
            return Ok(None);
        }
        let schema = &self.job.target.schema;
        if description.is_external() {
            return Ok(None);
        }
        let fragment = open_fragment(self.read, schema, description)?;
        let alike = fragment.root().block_cells == self.write.blocks.dense && fragment.root().fields == self.fields;
        let same = DenseFragment::new(fragment.clone(), schema)?.tile_of(region).filter(|_| alike);
        let Some(number) = same else { return Ok(None) };
        copied_tile(self.read, &fragment, (number, region.cells() as u64), &self.statistics).map(Some)
    }
}

/// Whether two columns of one length hold the same bytes.
fn same(a: ColumnView<'_>, b: ColumnView<'_>) -> bool {
    a.values() == b.values() && a.offsets() == b.offsets() && a.validity() == b.validity()
}

/// Tile number `tile`, of `cells` cells, as it is stored in `fragment`. `held`: the statistics last used.
pub(super) fn copied_tile(
    context: &ReadContext,
    fragment: &Fragment,
    (tile, cells): (u64, u64),
    held: &Mutex<Option<StripeStatistics>>,
) -> Result<EncodedTile> {
    context.cancel.check()?;
    let stripe = fragment.stripe_of(tile).map_or(0, |(stripe, _)| stripe);
    let key = (fragment.description().id, stripe);
    let known = held.lock().unwrap_or_else(PoisonError::into_inner).clone().filter(|(k, _)| *k == key);
    let statistics = match known {
        Some((_, statistics)) => statistics,
        None => {
            let read = Arc::new(fragment.statistics(stripe)?);
            *held.lock().unwrap_or_else(PoisonError::into_inner) = Some((key, read.clone()));
            read
        }
    };
    let ranges = fragment.page_ranges(tile)?;
    let pages = fragment.source().read(&ranges)?;
    Counters::add(&context.counters.requests, 1);
    Counters::add(&context.counters.bytes_fetched, ranges.iter().map(|r| r.len).sum());
    Counters::add(&context.counters.tiles_copied, 1);
    fragment.encoded_tile(tile, cells, pages, &statistics)
}
