//! What a merge of fragments of cells reads: their cells in global order, and between them tiles as they are stored.
//!
//! A data tile into which no other fragment, tombstone or overlay entry reaches between its bounding coordinates is taken out of the sweep
//! and handed over whole, in its place. Small tiles are not: a merge would leave as many as it found.

use super::dense::{StripeStatistics, copied_tile};
use crate::base::Result;
use crate::fragment::{EncodedTile, Fragment, FragmentKind};
use crate::query::block::masks::touch;
use crate::query::cells::chunk::Queue;
use crate::query::cells::merged_rows::Stretches;
use crate::query::request::{ReadContext, Request, Target};
use crate::query::sparse::SparseReader;
use crate::query::write::tiler::TileForm;
use crate::tile::{CellKeys, KeyLayout};
use std::cmp::Ordering;
use std::collections::{HashSet, VecDeque};
use std::sync::{Arc, Mutex};

/// What comes next in global order.
#[derive(Debug)]
pub(in crate::query) enum Piece {
    /// Cells.
    Cells(Stretches),
    /// A tile as it is stored.
    Tile(Box<EncodedTile>),
}

impl Piece {
    /// How many cells it holds.
    pub(in crate::query) fn cells(&self) -> u64 {
        match self {
            Self::Cells(cells) => cells.cells() as u64,
            Self::Tile(tile) => tile.cells,
        }
    }
}

/// A tile that nothing else reaches into.
struct Apart {
    fragment: Arc<Fragment>,
    tile: u64,
    cells: u64,
    /// The place of its first cell among `firsts`.
    row: usize,
}

/// More than this is not read at once: what is read goes on to be encoded while the next is merged.
const BATCH_BYTES_MAX: u64 = 4 << 20;

/// The cells that sparse fragments hold, of a sparse array or over a dense one, in global order.
pub(super) struct Sweeper {
    sweep: SparseReader,
    batch_bytes: u64,
    apart: VecDeque<Apart>,
    /// The keys of the first cells of all tiles.
    firsts: CellKeys,
    /// Cells read and not given yet: they, their keys, how many were given.
    held: Option<(Stretches, CellKeys, usize)>,
    statistics: Mutex<Option<StripeStatistics>>,
}

impl std::fmt::Debug for Sweeper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Sweeper({} bytes at a time, {} tiles apart)", self.batch_bytes, self.apart.len())
    }
}

/// All tiles of a sweep's fragments: whose, which, how many cells, and the keys of its first and last.
struct Tiles {
    of: Vec<(usize, u64, u64)>,
    firsts: CellKeys,
    lasts: CellKeys,
}

fn tiles_of(sweep: &SparseReader) -> Result<Tiles> {
    let ndim = sweep.schema.ndim();
    let (mut of, mut firsts, mut lasts) = (Vec::new(), vec![Vec::new(); ndim], vec![Vec::new(); ndim]);
    for (queue, fragment) in sweep.fragments.iter().enumerate() {
        for number in 0..fragment.stripes() {
            sweep.context.cancel.check()?;
            let stripe = fragment.stripe(number)?;
            for local in 0..stripe.tiles() {
                let wrong = || crate::query::block::sparse::broken_index(fragment);
                let (first, last) = stripe.tile_ends(local).ok_or_else(wrong)?;
                firsts.iter_mut().zip(first.iter()).for_each(|(column, k)| column.push(k));
                lasts.iter_mut().zip(last.iter()).for_each(|(column, k)| column.push(k));
                let cells = stripe.tile_cells(local).ok_or_else(wrong)?;
                of.push((queue, fragment.first_tile(number) + local as u64, cells));
            }
        }
    }
    let keys = |columns: &[Vec<u64>]| sweep.layout.keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>());
    Ok(Tiles { of, firsts: keys(&firsts), lasts: keys(&lasts) })
}

impl Sweeper {
    /// Starts at the first cell of `target`, which has no dense fragment; `form` is how the cells will be written.
    pub(in crate::query) fn new(
        context: &ReadContext,
        target: &Target,
        request: &Request,
        form: &TileForm,
    ) -> Result<Self> {
        let mut sweep = SparseReader::of_merge(context, target, request)?;
        let tiles = tiles_of(&sweep)?;
        let attrs = request.attrs.iter().filter_map(|p| target.schema.attrs().get(*p)).map(|a| a.id());
        let attrs: Vec<u32> = attrs.collect();
        let capacity = target.schema.options().capacity;
        let fits = |fragment: &Fragment, cells: u64| {
            let root = fragment.root();
            fragment.description().kind == FragmentKind::Sparse
                && fragment.description().attrs == attrs
                && root.fields == form.fields
                && root.block_cells == form.block_cells
                && cells.saturating_mul(2) >= capacity
                && cells <= capacity
        };
        let rows = rows_apart(&sweep, &tiles)?;
        let mut apart = VecDeque::new();
        for row in rows {
            let Some((queue, tile, cells)) = tiles.of.get(row).copied() else { continue };
            let whole = |f: &&Arc<Fragment>| fits(f, cells) && loses_nothing(&sweep, f, tile, cells);
            if let Some(fragment) = sweep.fragments.get(queue).filter(whole).cloned() {
                apart.push_back(Apart { fragment, tile, cells, row });
            }
        }
        let taken: HashSet<(usize, u64)> =
            apart.iter().filter_map(|a| tiles.of.get(a.row)).map(|(queue, tile, _)| (*queue, *tile)).collect();
        without(&mut sweep, &taken);
        let batch_bytes = context.batch_bytes().min(BATCH_BYTES_MAX);
        Ok(Self { sweep, batch_bytes, apart, firsts: tiles.firsts, held: None, statistics: Mutex::new(None) })
    }

    /// What comes next; `None` at the end.
    pub(in crate::query) fn next_piece(&mut self) -> Result<Option<Piece>> {
        if self.held.is_none()
            && let Some(cells) = self.sweep.next_part(self.batch_bytes)?
        {
            if self.apart.is_empty() {
                return Ok(Some(Piece::Cells(cells)));
            }
            let keys = keys_of(&self.sweep.layout, self.sweep.schema.ndim(), &cells);
            self.held = Some((cells, keys, 0));
        }
        let Some((cells, keys, from)) = &mut self.held else { return self.next_tile() };
        let to = self.apart.front().map_or(keys.len(), |apart| keys.lower_bound(*from, &self.firsts, apart.row));
        if to == *from {
            return self.next_tile();
        }
        let piece = cells.split_front(to - *from);
        *from = to;
        if to == keys.len() {
            self.held = None;
        }
        Ok(Some(Piece::Cells(piece)))
    }

    fn next_tile(&mut self) -> Result<Option<Piece>> {
        let Some(apart) = self.apart.pop_front() else { return Ok(None) };
        let at = (apart.tile, apart.cells);
        copied_tile(&self.sweep.context, &apart.fragment, at, &self.statistics)
            .map(|tile| Some(Piece::Tile(Box::new(tile))))
    }
}

/// Whether no cell of a tile is masked or lies in a box deleted since.
fn loses_nothing(sweep: &SparseReader, fragment: &Fragment, tile: u64, cells: u64) -> bool {
    let description = fragment.description();
    if touch(sweep.masks.over(description.id), tile, 0, cells as usize) {
        return false;
    }
    let bounds = fragment.stripe_of(tile).and_then(|(stripe, local)| {
        let stripe = fragment.stripe(stripe).ok()?;
        stripe.tile_bounds(local).map(|bounds| bounds.to_subarray())
    });
    bounds.is_some_and(|bounds| !sweep.deletions.touch(description.order, &bounds))
}

/// The rows of the tiles that no other tile, and no entry of the overlay, reaches into, in global order.
fn rows_apart(sweep: &SparseReader, tiles: &Tiles) -> Result<Vec<usize>> {
    let (pool, cancel) = (sweep.context.pool.as_ref(), sweep.context.cancel.as_ref());
    let (_, order) = tiles.firsts.clone().sort(pool, cancel)?;
    // Of a group of small fragments all chunks are there from the beginning.
    let small = || sweep.queues.iter().skip(sweep.fragments.len()).flat_map(Queue::chunks);
    let mut found = Vec::new();
    let mut reach: Option<usize> = None;
    for (place, row) in order.iter().enumerate() {
        let row = *row as usize;
        let before = reach.is_none_or(|r| tiles.lasts.compare(r, &tiles.firsts, row) == Ordering::Less);
        let next = order.get(place + 1).map(|next| *next as usize);
        let after = next.is_none_or(|n| tiles.lasts.compare(row, &tiles.firsts, n) == Ordering::Less);
        if before && after && !small().any(|chunk| has_between(&chunk.keys, tiles, row)) {
            found.push(row);
        }
        if reach.is_none_or(|r| tiles.lasts.compare(r, &tiles.lasts, row) == Ordering::Less) {
            reach = Some(row);
        }
    }
    Ok(found)
}

/// Whether one of `keys`, which ascend, lies between the first and the last cell of a tile.
fn has_between(keys: &CellKeys, tiles: &Tiles, row: usize) -> bool {
    let Some(last) = keys.len().checked_sub(1) else { return false };
    // Most lie wholly before or behind.
    if keys.compare(0, &tiles.lasts, row) == Ordering::Greater
        || keys.compare(last, &tiles.firsts, row) == Ordering::Less
    {
        return false;
    }
    let at = keys.lower_bound(0, &tiles.firsts, row);
    keys.compare(at, &tiles.lasts, row) != Ordering::Greater
}

/// Takes the blocks of tiles out of a sweep that has not begun.
fn without(sweep: &mut SparseReader, taken: &HashSet<(usize, u64)>) {
    if taken.is_empty() {
        return;
    }
    let stays = |unit: &crate::query::block::sparse::Unit| !taken.contains(&(unit.queue, unit.at.tile));
    let rows: Vec<u32> = sweep.units.iter().zip(0u32..).filter(|(u, _)| stays(u)).map(|(_, row)| row).collect();
    sweep.firsts = sweep.firsts.pick(&rows);
    sweep.units.retain(stays);
}

/// The keys of cells.
fn keys_of(layout: &KeyLayout, ndim: usize, cells: &Stretches) -> CellKeys {
    layout.keys(&cells.coordinate_keys(ndim).iter().map(Vec::as_slice).collect::<Vec<_>>())
}
