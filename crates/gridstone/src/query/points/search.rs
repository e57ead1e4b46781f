//! Finding points among the cells of sparse fragments and tombstones.
//!
//! Tiles and blocks are runs of the global order: a block can hold a point only if the point's key lies between those
//! of its first and its last cell, and only if the point lies in its MBR. Only the coordinates of such blocks are read.

use super::list::Points;
use crate::base::{Counters, Result};
use crate::fragment::{Fragment, FragmentKind, IndexBox, Keys, Stripe};
use crate::query::block::sparse::{SparseBlock, broken_index, fetch_coordinates};
use crate::query::request::ReadContext;
use crate::schema::Schema;
use crate::tile::{CellKeys, KeyLayout};
use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

/// A block that may hold some of a run of points.
#[derive(Debug, Clone)]
struct Candidate {
    fragment: Arc<Fragment>,
    at: SparseBlock,
    points: Range<usize>,
}

/// Pairs of a point and a row of a block.
type Matches = Vec<(u32, u32)>;

/// Up to this many points are looked for by comparing coordinates, more of them by sorted keys.
const SCANNED_MAX: usize = 8;

/// The blocks that hold some of the points, in each fragment in global order, and which rows of them do.
pub(super) fn search(
    context: &ReadContext,
    schema: &Schema,
    points: &Points,
    fragments: &[Arc<Fragment>],
) -> Result<Vec<(Arc<Fragment>, SparseBlock, Matches)>> {
    let layout = KeyLayout::new(schema);
    let sparse = fragments.iter().filter(|f| f.description().kind != FragmentKind::Dense);
    let candidates: Vec<Candidate> = context
        .pool
        .map(sparse.collect(), context.cancel.as_ref(), |f| candidates(context, &layout, points, f))?
        .into_iter()
        .flatten()
        .collect();
    // Coordinates and what they are decoded from: four words of each.
    let block_bytes = candidates.iter().map(|c| c.at.cells).max().unwrap_or(1) as u64 * schema.ndim() as u64 * 32;
    let group = usize::try_from(context.batch_bytes() / block_bytes.max(1)).unwrap_or(usize::MAX).max(1);
    let mut found = Vec::new();
    for group in candidates.chunks(group) {
        let held = block_bytes.saturating_mul(group.len() as u64);
        context.budget.take(held);
        let matched = match_group(context, schema, &layout, points, group);
        context.budget.give(held);
        found.extend(matched?.into_iter().filter(|(_, _, matches)| !matches.is_empty()));
    }
    Ok(found)
}

fn match_group(
    context: &ReadContext,
    schema: &Schema,
    layout: &KeyLayout,
    points: &Points,
    group: &[Candidate],
) -> Result<Vec<(Arc<Fragment>, SparseBlock, Matches)>> {
    let blocks: Vec<_> = group.iter().map(|c| (&c.fragment, &c.at)).collect();
    let coords = fetch_coordinates(context, schema, &blocks, true)?;
    let pairs = group.iter().zip(&coords).collect();
    context.pool.map(pairs, context.cancel.as_ref(), |(candidate, coords): (&Candidate, &Vec<Vec<u64>>)| {
        Counters::add(&context.counters.cells_scanned, candidate.at.cells as u64);
        let found = matches(layout, points, candidate.points.clone(), coords);
        Ok((candidate.fragment.clone(), candidate.at.clone(), found))
    })
}

/// Which rows of a block, whose cells stand in global order, are at which of a run of points.
fn matches(layout: &KeyLayout, points: &Points, run: Range<usize>, coords: &[Vec<u64>]) -> Matches {
    let rows = coords.first().map_or(0, Vec::len);
    let mut found = Matches::new();
    if run.len() <= SCANNED_MAX {
        for point in run {
            let mut inside: Vec<u32> = (0..rows as u32).collect();
            for (column, wanted) in coords.iter().zip(points.cell(point)) {
                inside.retain(|row| column.get(*row as usize) == Some(&wanted));
            }
            found.extend(inside.into_iter().map(|row| (point as u32, row)));
        }
        return found;
    }
    let keys = layout.keys(&coords.iter().map(Vec::as_slice).collect::<Vec<_>>());
    let mut next = 0;
    for point in run {
        next = keys.lower_bound(next, &points.keys, point);
        let same = |row: &usize| keys.compare(*row, &points.keys, point) == Ordering::Equal;
        found.extend((next..rows).take_while(same).map(|row| (point as u32, row as u32)));
    }
    found
}

/// The blocks of a fragment that may hold some of the points.
fn candidates(
    context: &ReadContext,
    layout: &KeyLayout,
    points: &Points,
    fragment: &Arc<Fragment>,
) -> Result<Vec<Candidate>> {
    let wrong = || broken_index(fragment);
    let mut found = Vec::new();
    for number in 0..fragment.stripes() {
        context.cancel.check()?;
        let stripe = fragment.stripe(number)?;
        Counters::add(&context.counters.tiles_considered, stripe.tiles() as u64);
        let ends = |local| stripe.tile_ends(local).ok_or_else(wrong);
        let tiles = 0..stripe.tiles();
        let firsts = keys_of(layout, tiles.clone().map(|t| ends(t).map(|e| e.0)))?;
        let lasts = keys_of(layout, tiles.clone().map(|t| ends(t).map(|e| e.1)))?;
        for (local, run) in tiles.zip(spans(points, 0..points.len(), &firsts, &lasts).ok_or_else(wrong)?) {
            if !run.is_empty() && reaches(points, &run, stripe.tile_bounds(local).ok_or_else(wrong)?) {
                let before = found.len();
                let tile = fragment.first_tile(number) + local as u64;
                add_blocks(layout, points, (fragment, &stripe, tile, local), run, &mut found)?;
                Counters::add(&context.counters.tiles_read, u64::from(found.len() > before));
            }
        }
    }
    Ok(found)
}

/// Adds the blocks of one tile that may hold some of `run`.
fn add_blocks(
    layout: &KeyLayout,
    points: &Points,
    (fragment, stripe, tile, local): (&Arc<Fragment>, &Stripe, u64, usize),
    run: Range<usize>,
    found: &mut Vec<Candidate>,
) -> Result<()> {
    let wrong = || broken_index(fragment);
    let (from, to) = stripe.block_span(local).ok_or_else(wrong)?;
    let (count, last) = (stripe.tile_cells(local).ok_or_else(wrong)?, stripe.tile_ends(local).ok_or_else(wrong)?.1);
    let first = |block| stripe.block_first(block).ok_or_else(wrong);
    let firsts = keys_of(layout, (from..to).map(first))?;
    // A block ends at the latest where the next begins.
    let lasts = keys_of(layout, (from + 1..to).map(first).chain([Ok(last)]))?;
    for (block, points_in) in (from..to).zip(spans(points, run, &firsts, &lasts).ok_or_else(wrong)?) {
        let bounds = stripe.block_bounds(block).ok_or_else(wrong)?;
        if reaches(points, &points_in, bounds) {
            let cells = fragment.sparse_block_cells(count, block - from);
            let at = SparseBlock { tile, block: block - from, cells, bounds: bounds.to_subarray() };
            found.push(Candidate { fragment: fragment.clone(), at, points: points_in });
        }
    }
    Ok(())
}

/// The keys of cells given one by one.
fn keys_of<'s>(layout: &KeyLayout, cells: impl Iterator<Item = Result<Keys<'s>>>) -> Result<CellKeys> {
    let mut columns: Vec<Vec<u64>> = Vec::new();
    for cell in cells {
        let cell = cell?.iter();
        columns.resize_with(cell.len(), Vec::new);
        columns.iter_mut().zip(cell).for_each(|(column, k)| column.push(k));
    }
    Ok(layout.keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>()))
}

/// Which of `run` lie, in global order, between the first and the last cell of each of several stretches; `None` if the
/// stretches are not in order.
fn spans(points: &Points, run: Range<usize>, firsts: &CellKeys, lasts: &CellKeys) -> Option<Vec<Range<usize>>> {
    let in_order = |keys: &CellKeys| (1..keys.len()).all(|at| keys.compare(at - 1, keys, at) != Ordering::Greater);
    if !in_order(firsts) || !in_order(lasts) {
        return None;
    }
    let mut from = run.start;
    let mut found = Vec::with_capacity(firsts.len());
    for stretch in 0..firsts.len() {
        from = points.keys.lower_bound(from, firsts, stretch).min(run.end);
        let before = points.keys.lower_bound(from, lasts, stretch).min(run.end);
        let at_last = |point: &usize| points.keys.compare(*point, lasts, stretch) == Ordering::Equal;
        found.push(from..before + (before..run.end).take_while(at_last).count());
    }
    Some(found)
}

/// Whether one of `run` lies in the box.
fn reaches(points: &Points, run: &Range<usize>, bounds: IndexBox<'_>) -> bool {
    run.clone().any(|point| bounds.contains(points.cell(point)))
}
