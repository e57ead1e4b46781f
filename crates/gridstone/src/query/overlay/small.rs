//! A small fragment that is held decoded.

use super::values::Values;
use crate::base::{Counters, Error, Result};
use crate::fragment::{BlockRef, Fragment, Role};
use crate::query::block::sparse::broken_index;
use crate::query::request::ReadContext;
use crate::schema::{Dimension, Schema, Subarray, key};
use crate::tile::{Column, KeyLayout};
use bytes::Bytes;
use std::cell::Cell;
use std::cmp::Ordering;
use std::sync::{Arc, OnceLock};

thread_local! {
    /// Coordinates before they are made into keys.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// A small fragment: coordinates decoded, attributes decoded when first asked for.
#[derive(Debug)]
pub(in crate::query) struct SmallFragment {
    pub(super) fragment: Arc<Fragment>,
    /// Coordinates as ordered keys, a column per dimension.
    pub(super) coords: Vec<Vec<u64>>,
    columns: Vec<OnceLock<Arc<Column>>>,
    /// The first row of each of its tiles.
    tiles: Vec<u32>,
}

impl SmallFragment {
    pub(super) fn load(context: &ReadContext, schema: &Schema, fragment: Arc<Fragment>) -> Result<Self> {
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

    /// The coordinates of all rows along a dimension.
    pub(super) fn coordinates(&self, dim: usize) -> &[u64] {
        self.coords.get(dim).map_or(&[], Vec::as_slice)
    }

    pub(super) fn coordinate(&self, dim: usize, row: u32) -> Option<u64> {
        self.coordinates(dim).get(row as usize).copied()
    }

    /// The rows whose keys lie from `first` to `last`. Keys are made for the few cells that the search looks at.
    pub(super) fn rows_between(&self, layout: &KeyLayout, first: u128, last: u128) -> impl Iterator<Item = u32> {
        let key = move |row: u32| layout.key(|d| self.coordinate(d, row).unwrap_or(0)).unwrap_or(0);
        let (mut from, mut to) = (0, self.len() as u32);
        while from < to {
            let middle = from + (to - from) / 2;
            if key(middle) < first { from = middle + 1 } else { to = middle }
        }
        (from..self.len() as u32).take_while(move |row| key(*row) <= last)
    }

    /// The rows at the cell of this box and this word, which is compared first.
    pub(super) fn rows_at(&self, layout: &KeyLayout, (cell, word): (&Subarray, u128)) -> impl Iterator<Item = u32> {
        let place = move |row: u32| {
            let coordinate = |dim: usize| self.coordinate(dim, row).unwrap_or(0);
            let by_cell = || (0..).zip(cell.ranges()).map(|(dim, range)| coordinate(dim).cmp(&range.lo));
            let tie = || if layout.is_tied() { by_cell().find(|order| order.is_ne()) } else { None };
            layout.key(coordinate).unwrap_or(0).cmp(&word).then_with(|| tie().unwrap_or(Ordering::Equal))
        };
        let (mut from, mut to) = (0, self.len() as u32);
        while from < to {
            let middle = from + (to - from) / 2;
            if place(middle).is_lt() { from = middle + 1 } else { to = middle }
        }
        (from..self.len() as u32).take_while(move |row| place(*row).is_eq())
    }

    /// The tile of a row, and the row in it.
    pub(super) fn place(&self, row: u32) -> (u64, usize) {
        let tile = self.tiles.partition_point(|first| *first <= row).saturating_sub(1);
        let first = self.tiles.get(tile).copied().unwrap_or(0);
        (tile as u64, (row - first) as usize)
    }

    /// The values of the attribute with this permanent number, `None` if the fragment has none of it.
    pub(super) fn values(&self, context: &ReadContext, attr: u32) -> Result<Option<Values>> {
        let Some(place) = self.fragment.description().attrs.iter().position(|a| *a == attr) else { return Ok(None) };
        let Some(slot) = self.columns.get(place) else { return Ok(None) };
        let column = match slot.get() {
            Some(column) => column.clone(),
            None => {
                let column = Arc::new(read_column(context, &self.fragment, attr)?);
                slot.get_or_init(|| column).clone()
            }
        };
        Ok(Some(Values { column, picked: false }))
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
