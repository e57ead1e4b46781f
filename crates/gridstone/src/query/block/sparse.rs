//! Blocks of sparse fragments and tombstones: which of them a box touches, and their coordinates.

use super::fetch::{Want, fetch};
use crate::base::{Counters, Error, Id, Result};
use crate::fragment::{Fragment, IndexBox, Keys};
use crate::query::request::{Area, ReadContext};
use crate::schema::{Dimension, KeyRange, Schema, Subarray, key};
use crate::tile::Column;
use std::sync::Arc;

/// A block of a sparse fragment: where it is, and the MBR of its cells.
#[derive(Debug, Clone)]
pub(in crate::query) struct SparseBlock {
    pub(in crate::query) tile: u64,
    /// Counted in its tile.
    pub(in crate::query) block: usize,
    pub(in crate::query) cells: usize,
    pub(in crate::query) bounds: Subarray,
}

impl SparseBlock {
    /// The row in its tile of its first cell.
    pub(in crate::query) fn first_row(&self, fragment: &Fragment) -> usize {
        self.block * fragment.root().block_cells as usize
    }
}

pub(in crate::query) fn broken_index(fragment: &Fragment) -> Error {
    index_not_whole(fragment.description().id)
}

pub(in crate::query) fn index_not_whole(fragment: Id) -> Error {
    Error::corruption(format!("fragment {fragment}: its index is not whole"))
}

/// Calls `found` with every block whose MBR touches `area`, in the fragment's order, and the keys of its first cell.
pub(in crate::query) fn touched_blocks(
    context: &ReadContext,
    fragment: &Fragment,
    area: Area<'_>,
    found: impl FnMut(SparseBlock, Keys<'_>),
) -> Result<()> {
    touched_blocks_but(context, fragment, area, |_, _, _| Ok(false), found)
}

/// The same but for the blocks of tiles that `takes` takes, which is given the number, the MBR and the cells of each.
pub(in crate::query) fn touched_blocks_but(
    context: &ReadContext,
    fragment: &Fragment,
    area: Area<'_>,
    mut takes: impl FnMut(u64, IndexBox<'_>, u64) -> Result<bool>,
    mut found: impl FnMut(SparseBlock, Keys<'_>),
) -> Result<()> {
    let wrong = || broken_index(fragment);
    let near = |hull: &[KeyRange]| area.touches(hull.iter().copied());
    for number in 0..fragment.stripes() {
        context.cancel.check()?;
        let stripe = fragment.stripe(number)?;
        Counters::add(&context.counters.tiles_considered, stripe.tiles() as u64);
        for local in stripe.tiles_near(&near).into_iter().flatten() {
            let bounds = stripe.tile_bounds(local).ok_or_else(wrong)?;
            if !area.touches(bounds.ranges()) {
                continue;
            }
            let tile = fragment.first_tile(number) + local as u64;
            let tile_cells = stripe.tile_cells(local).ok_or_else(wrong)?;
            if takes(tile, bounds, tile_cells)? {
                continue;
            }
            let (from, _) = stripe.block_span(local).ok_or_else(wrong)?;
            let mut touched = false;
            for block in stripe.blocks_near(local, &near).ok_or_else(wrong)?.into_iter().flatten() {
                let bounds = stripe.block_bounds(block).ok_or_else(wrong)?;
                if area.touches(bounds.ranges()) {
                    touched = true;
                    let first = stripe.block_first(block).ok_or_else(wrong)?;
                    let (block, bounds) = (block - from, bounds.to_subarray());
                    let cells = fragment.sparse_block_cells(tile_cells, block);
                    found(SparseBlock { tile, block, cells, bounds }, first);
                }
            }
            Counters::add(&context.counters.tiles_read, u64::from(touched));
        }
    }
    Ok(())
}

/// The columns of coordinates of some blocks, to be fetched: for each block one per dimension.
pub(super) fn want_coordinates<'a>(
    schema: &Schema,
    blocks: impl IntoIterator<Item = (&'a Arc<Fragment>, &'a SparseBlock)>,
) -> Result<Vec<Want>> {
    let mut wants = Vec::new();
    for (fragment, at) in blocks {
        for field in 0..schema.ndim() {
            let block = fragment.block(field, at.tile, at.block, at.cells)?;
            wants.push(Want { source: fragment.clone(), block });
        }
    }
    Ok(wants)
}

/// The coordinates of blocks as they are stored, a column per dimension that is flagged, of one block after the other.
pub(in crate::query) fn fetch_some<'a>(
    context: &ReadContext,
    blocks: impl Iterator<Item = (&'a Arc<Fragment>, &'a SparseBlock, &'a [bool])>,
    parallel: bool,
) -> Result<Vec<Column>> {
    let mut wants = Vec::new();
    for (fragment, at, flags) in blocks {
        for (field, _) in flags.iter().enumerate().filter(|(_, flag)| **flag) {
            let block = fragment.block(field, at.tile, at.block, at.cells)?;
            wants.push(Want { source: fragment.clone(), block });
        }
    }
    fetch(context, &wants, parallel)
}

/// The coordinates of blocks as they are stored, a column per dimension; whether they lie in their blocks' MBRs is not looked at.
fn fetch_places(
    context: &ReadContext,
    schema: &Schema,
    blocks: &[(&Arc<Fragment>, &SparseBlock)],
    parallel: bool,
) -> Result<Vec<Vec<Column>>> {
    let mut columns = fetch(context, &want_coordinates(schema, blocks.iter().copied())?, parallel)?.into_iter();
    Ok(blocks.iter().map(|_| columns.by_ref().take(schema.ndim()).collect()).collect())
}

/// Work of a microsecond or two for each block goes to other threads from so many blocks on: waking one takes longer than some of them.
const SHARED_BLOCKS: usize = 16;

/// What `one` makes of each block, in their order; by several threads where there are many and the caller says so
/// (`parallel`), as those do not that are one of several themselves and wait for nothing.
pub(in crate::query) fn for_each_block<T: Send, R: Send>(
    context: &ReadContext,
    blocks: Vec<T>,
    parallel: bool,
    one: impl Fn(T) -> Result<R> + Sync,
) -> Result<Vec<R>> {
    if parallel && blocks.len() >= SHARED_BLOCKS {
        return context.pool.map(blocks, context.cancel.as_ref(), one);
    }
    blocks.into_iter().map(one).collect()
}

/// The coordinates of blocks as ordered keys, a column per dimension. Corruption if one lies outside its block's MBR, and
/// so perhaps outside the domain.
pub(in crate::query) fn fetch_coordinates(
    context: &ReadContext,
    schema: &Schema,
    blocks: &[(&Arc<Fragment>, &SparseBlock)],
    parallel: bool,
) -> Result<Vec<Vec<Vec<u64>>>> {
    let columns = fetch_places(context, schema, blocks, parallel)?;
    for_each_block(context, blocks.iter().zip(columns).collect(), parallel, |(block, columns)| {
        keys_of_block(schema, *block, &columns)
    })
}

fn keys_of_block(
    schema: &Schema,
    (fragment, at): (&Arc<Fragment>, &SparseBlock),
    columns: &[Column],
) -> Result<Vec<Vec<u64>>> {
    let axes = columns.iter().zip(schema.dims()).zip(at.bounds.ranges());
    axes.map(|((column, dim), range)| {
        let keys = key::encode(dim.datatype(), column.view().values()).ok();
        let keys = keys.filter(|keys| keys.iter().fold(true, |inside, k| inside & range.contains(*k)));
        keys.ok_or_else(|| outside_bounds(fragment, at.tile, dim))
    })
    .collect()
}

/// What is said of a block whose coordinates do not lie in its MBR.
pub fn outside_bounds(fragment: &Fragment, tile: u64, dim: &Dimension) -> Error {
    let (id, name) = (fragment.description().id, dim.name());
    Error::corruption(format!("fragment {id}, tile {tile}: a coordinate of {name:?} lies outside its block's MBR"))
}

/// The same of the dimension at a place of the schema.
pub(in crate::query) fn outside_dimension(schema: &Schema, fragment: &Fragment, tile: u64, place: usize) -> Error {
    schema.dims().get(place).map_or_else(|| broken_index(fragment), |dim| outside_bounds(fragment, tile, dim))
}

/// A block to be read, and the queue its cells go to.
#[derive(Debug, Clone)]
pub(in crate::query) struct Unit {
    pub(in crate::query) queue: usize,
    pub(in crate::query) at: SparseBlock,
}
