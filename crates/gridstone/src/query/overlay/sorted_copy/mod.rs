//! The sorted copy of a pack, as reads use it: blocks are fetched and decoded where a box touches them, and kept.

pub(in crate::query) mod format;
pub(in crate::query) mod write;

use self::format::{Header, MEMBER, Member};
use super::values::{Live, Values};
use crate::base::{ByteRange, ByteSource, Counters, ErrorKind, FileRef, Id, Result};
use crate::fragment::{BlockRef, Fragment, FragmentOrder, IndexBox, Role, Stripe};
use crate::query::block::sparse::broken_index;
use crate::query::request::ReadContext;
use crate::schema::{Attribute, Schema, Subarray, key};
use crate::tile::{Column, KeyLayout};
use std::sync::{Arc, OnceLock};

/// Where a block is.
#[derive(Debug, Clone, Copy)]
struct Block {
    tile: u64,
    /// Counted in its tile.
    number: usize,
    first_row: u32,
    cells: usize,
}

/// Where the cells of a block are, and of which member each is.
#[derive(Debug)]
struct Placed {
    /// Ordered keys, a column per dimension.
    coords: Vec<Vec<u64>>,
    members: Vec<u16>,
}

/// A sorted copy that is open.
#[derive(Debug)]
pub(in crate::query) struct SortedCopy {
    pack: Id,
    fragment: Arc<Fragment>,
    /// Its only one.
    stripe: Arc<Stripe>,
    members: Vec<Member>,
    attrs: Vec<u32>,
    ndim: usize,
    blocks: Vec<Block>,
    /// By block.
    placed: Vec<OnceLock<Placed>>,
    /// By block, then by place among `attrs`.
    columns: Vec<OnceLock<Arc<Column>>>,
    len: u32,
}

/// The precedence of what there is not.
const LEAST_ORDER: FragmentOrder = FragmentOrder { version: 0, index: 0 };

/// What became of looking for a copy.
pub(super) enum Found {
    Copy(Box<SortedCopy>),
    /// There is none to be used, and will be none.
    Never,
    /// This read cannot use it; another may.
    NotNow,
}

/// A field of a block that is to be read.
struct Wanted {
    block: usize,
    /// The place of the attribute; `None`: a dimension or the members.
    attr: Option<usize>,
    at: BlockRef,
}

impl SortedCopy {
    /// The sorted copy of `pack` for this array. What is wrong with one that cannot be used is nothing to a reader, who has the
    /// fragments.
    pub(super) fn open(context: &ReadContext, schema: &Schema, array: Id, pack: Id) -> Found {
        let source = match context.files.open(FileRef::Data(pack.beside(array))) {
            Ok(source) => source,
            Err(e) if e.kind() == ErrorKind::NotFound => return Found::Never,
            Err(_) => return Found::NotNow,
        };
        Counters::add(&context.counters.fragments_touched, 1);
        match Header::read(source.as_ref()) {
            Ok((header, offset)) if header.pack == pack && header.array == array => {
                Self::of(source, header, offset, schema).map_or(Found::NotNow, |copy| Found::Copy(Box::new(copy)))
            }
            Err(e) if e.kind() != ErrorKind::Corruption => Found::NotNow,
            _ => Found::Never,
        }
    }

    /// `None` if it does not fit the schema: one older than it may be.
    fn of(source: Arc<dyn ByteSource>, header: Header, offset: u64, schema: &Schema) -> Option<Self> {
        if header.bounds.ndim() != schema.ndim() {
            return None;
        }
        let fragment = Arc::new(Fragment::open(source, Arc::new(header.described(offset)), schema).ok()?);
        let stripe = if fragment.stripes() == 1 { fragment.stripe(0).ok()? } else { return None };
        let (blocks, len) = blocks(&fragment, &stripe)?;
        let slots = |count: usize| std::iter::repeat_with(OnceLock::new).take(count).collect();
        let columns = std::iter::repeat_with(OnceLock::new).take(blocks.len() * header.attrs.len()).collect();
        let (ndim, placed) = (schema.ndim(), slots(blocks.len()));
        let Header { pack, members, attrs, .. } = header;
        Some(Self { pack, fragment, stripe, members, attrs, ndim, blocks, placed, columns, len })
    }

    pub(super) fn pack(&self) -> Id {
        self.pack
    }

    pub(super) fn fragment(&self) -> &Arc<Fragment> {
        &self.fragment
    }

    /// The fragments whose cells it has, by number.
    pub(super) fn members(&self) -> &[Member] {
        &self.members
    }

    pub(super) fn len(&self) -> usize {
        self.len as usize
    }

    pub(super) fn has(&self, attr: u32) -> bool {
        self.attrs.contains(&attr)
    }

    /// The block of a row, and the row in it.
    fn block_of(&self, row: u32) -> Option<(usize, usize)> {
        let at = self.blocks.partition_point(|block| block.first_row <= row).checked_sub(1)?;
        Some((at, (row - self.blocks.get(at)?.first_row) as usize))
    }

    /// Where the cells of a row's block are, and the row in it.
    fn placed_row(&self, row: u32) -> Option<(&Placed, usize)> {
        let (at, row) = self.block_of(row)?;
        Some((self.placed.get(at)?.get()?, row))
    }

    fn order_in(&self, placed: &Placed, row: usize) -> Option<FragmentOrder> {
        Some(self.members.get(*placed.members.get(row)? as usize)?.order)
    }

    pub(super) fn order(&self, row: u32) -> FragmentOrder {
        self.placed_row(row).and_then(|(placed, row)| self.order_in(placed, row)).unwrap_or(LEAST_ORDER)
    }

    /// A row's precedence; its coordinates go into `cell`, which is empty.
    pub(super) fn look(&self, row: u32, cell: &mut Vec<u64>) -> FragmentOrder {
        let Some((placed, row)) = self.placed_row(row) else { return LEAST_ORDER };
        cell.extend(placed.coords.iter().filter_map(|coords| coords.get(row)));
        self.order_in(placed, row).unwrap_or(LEAST_ORDER)
    }

    /// The coordinates of `rows`, which ascend, along a dimension.
    pub(super) fn coordinates(&self, dim: usize, rows: &[u32]) -> Vec<u64> {
        let mut found = Vec::with_capacity(rows.len());
        let mut rest = rows;
        while let Some(at) = rest.first().and_then(|row| self.block_of(*row)).map(|(at, _)| at) {
            let span = self.rows(at);
            let (here, later) = rest.split_at(rest.partition_point(|row| *row < span.end).max(1));
            let coords = self.placed.get(at).and_then(OnceLock::get).and_then(|placed| placed.coords.get(dim));
            found.extend(here.iter().filter_map(|row| coords?.get((row - span.start) as usize).copied()));
            rest = later;
        }
        found
    }

    pub(super) fn coordinate(&self, dim: usize, row: u32) -> Option<u64> {
        let (placed, row) = self.placed_row(row)?;
        placed.coords.get(dim)?.get(row).copied()
    }

    fn bounds(&self, at: usize) -> Option<IndexBox<'_>> {
        self.stripe.block_bounds(at)
    }

    fn touches(&self, at: usize, sub: &Subarray) -> bool {
        self.bounds(at).is_some_and(|bounds| bounds.intersects(sub))
    }

    /// The blocks that may have a cell in one of `boxes`.
    fn touched(&self, boxes: &[Subarray]) -> Vec<usize> {
        (0..self.blocks.len()).filter(|at| boxes.iter().any(|sub| self.touches(*at, sub))).collect()
    }

    /// Reads what the blocks that touch one of `boxes` say of these attributes, as far as that was not read before: after it nothing
    /// that is asked about cells of these boxes fails.
    pub(super) fn prepare(&self, context: &ReadContext, boxes: &[Subarray], attrs: &[u32]) -> Result<()> {
        let places = self.attrs.iter().enumerate().filter(|(_, attr)| attrs.contains(attr)).map(|(place, _)| place);
        self.read(context, &self.touched(boxes), &places.collect::<Vec<_>>())
    }

    fn slot(&self, at: usize, attr: usize) -> Option<&OnceLock<Arc<Column>>> {
        self.columns.get(at * self.attrs.len() + attr)
    }

    /// Reads what is not known of these blocks: where their cells are, and the attributes at these places.
    fn read(&self, context: &ReadContext, blocks: &[usize], attrs: &[usize]) -> Result<()> {
        let unread = |at: &usize| self.placed.get(*at).is_some_and(|placed| placed.get().is_none());
        let unplaced: Vec<usize> = blocks.iter().copied().filter(unread).collect();
        let mut wanted = Vec::new();
        // Field by field, as pages lie.
        for role in (0..self.ndim as u32).map(Role::Dimension).chain([Role::Attribute(MEMBER)]) {
            for block in &unplaced {
                wanted.push(Wanted { block: *block, attr: None, at: self.at(role, *block)? });
            }
        }
        for (place, attr) in attrs.iter().filter_map(|place| Some((*place, *self.attrs.get(*place)?))) {
            let unread = |at: &&usize| self.slot(**at, place).is_some_and(|slot| slot.get().is_none());
            for block in blocks.iter().filter(unread) {
                wanted.push(Wanted { block: *block, attr: Some(place), at: self.at(Role::Attribute(attr), *block)? });
            }
        }
        if wanted.is_empty() {
            return Ok(());
        }
        let mut decoded = self.decoded(context, &wanted)?;
        let values = decoded.split_off(unplaced.len() * (self.ndim + 1));
        for (n, block) in unplaced.iter().enumerate() {
            let fields: Vec<&Column> = decoded.iter().skip(n).step_by(unplaced.len()).collect();
            let placed = self.place(*block, &fields)?;
            // Another thread may have been as quick.
            let _ = self.placed.get(*block).map(|slot| slot.set(placed));
        }
        for (w, column) in wanted.iter().filter(|w| w.attr.is_some()).zip(values) {
            let _ = w.attr.and_then(|attr| self.slot(w.block, attr)).map(|slot| slot.set(Arc::new(column)));
        }
        Ok(())
    }

    fn decoded(&self, context: &ReadContext, wanted: &[Wanted]) -> Result<Vec<Column>> {
        context.cancel.check()?;
        let ranges: Vec<ByteRange> = wanted.iter().map(|w| w.at.range).collect();
        let found = self.fragment.source().read(&ranges)?;
        Counters::add(&context.counters.requests, 1);
        Counters::add(&context.counters.bytes_fetched, ranges.iter().map(|r| r.len).sum());
        Counters::add(&context.counters.blocks_decoded, wanted.len() as u64);
        let decode = |(w, bytes): (&Wanted, &bytes::Bytes)| {
            let column = self.fragment.decode(&w.at, bytes)?;
            Counters::add(&context.counters.bytes_decoded, column.size_bytes() as u64);
            Ok(column)
        };
        wanted.iter().zip(&found).map(decode).collect()
    }

    fn at(&self, role: Role, at: usize) -> Result<BlockRef> {
        let block = self.blocks.get(at).ok_or_else(|| broken_index(&self.fragment))?;
        self.fragment.block(self.fragment.promised_field(role)?, block.tile, block.number, block.cells)
    }

    /// What the fields of a block say: coordinates, then members.
    fn place(&self, at: usize, fields: &[&Column]) -> Result<Placed> {
        let wrong = || broken_index(&self.fragment);
        let (cells, bounds) = self.blocks.get(at).map(|b| b.cells).zip(self.bounds(at)).ok_or_else(wrong)?;
        let (members, dims) = fields.split_last().ok_or_else(wrong)?;
        let (pairs, _) = members.view().values().as_chunks::<2>();
        let members: Vec<u16> = pairs.iter().map(|pair| u16::from_le_bytes(*pair)).collect();
        if members.len() != cells || members.iter().any(|member| *member as usize >= self.members.len()) {
            return Err(wrong());
        }
        let mut coords = Vec::with_capacity(dims.len());
        for (column, range) in dims.iter().zip(bounds.ranges()) {
            let keys = key::encode(column.view().datatype(), column.view().values())?;
            if keys.len() != cells || !keys.iter().fold(true, |inside, k| inside & range.contains(*k)) {
                return Err(wrong());
            }
            coords.push(keys);
        }
        Ok(Placed { coords, members })
    }

    /// Where the cells of a block are, read now if it was not.
    fn placed(&self, context: &ReadContext, at: usize) -> Result<&Placed> {
        let wrong = || broken_index(&self.fragment);
        let slot = self.placed.get(at).ok_or_else(wrong)?;
        if slot.get().is_none() {
            self.read(context, &[at], &[])?;
        }
        slot.get().ok_or_else(wrong)
    }

    /// Its live rows in `sub`, ascending.
    pub(super) fn rows_in(&self, context: &ReadContext, sub: &Subarray, live: &Live) -> Result<Vec<u32>> {
        let mut rows = Vec::new();
        for at in self.touched(std::slice::from_ref(sub)) {
            let placed = self.placed(context, at)?;
            let whole = self.bounds(at).is_some_and(|bounds| sub.covers(&bounds.to_subarray()));
            let cell = |row: usize| placed.coords.iter().filter_map(move |c| c.get(row).copied());
            let wanted = |row: &usize| placed.is_live(*row, live) && (whole || sub.contains(cell(*row)));
            rows.extend(self.rows(at).enumerate().filter(|(row, _)| wanted(row)).map(|(_, row)| row));
        }
        Ok(rows)
    }

    /// Its live rows at the cell with these coordinates and this key, ascending. Members of a later version may lie beyond `domain`,
    /// which `layout` is of: keys tell nothing of those, so that blocks are found by their boxes then.
    pub(super) fn rows_at(
        &self,
        context: &ReadContext,
        (layout, domain): (&KeyLayout, &Subarray),
        (cell, key): (&Subarray, u128),
        live: &Live,
    ) -> Result<Vec<u32>> {
        let first = |at: usize| {
            let keys = self.stripe.block_first(at)?;
            layout.key(|dim| keys.iter().nth(dim).unwrap_or(0))
        };
        let is_ordered = domain.covers(&self.fragment.description().bounds);
        let mut from = 0;
        let mut to = if is_ordered { self.blocks.len() } else { 0 };
        while from < to {
            let middle = from + (to - from) / 2;
            if first(middle).unwrap_or(0) < key { from = middle + 1 } else { to = middle }
        }
        let mut rows = Vec::new();
        // The cell may be the last of the block before the first that begins with it.
        let near =
            (from.saturating_sub(1)..self.blocks.len()).take_while(|at| !is_ordered || first(*at).unwrap_or(0) <= key);
        for at in near.filter(|at| self.touches(*at, cell)) {
            let placed = self.placed(context, at)?;
            // Other cells may have the same word.
            let is_it = |row: usize| cell.contains(placed.coords.iter().filter_map(|c| c.get(row).copied()));
            let wanted = |row: usize| placed.is_live(row, live) && is_it(row);
            rows.extend(self.rows(at).enumerate().filter(|(row, _)| wanted(*row)).map(|(_, row)| row));
        }
        Ok(rows)
    }

    /// The rows of a block.
    fn rows(&self, at: usize) -> std::ops::Range<u32> {
        self.blocks.get(at).map_or(0..0, |block| block.first_row..block.first_row + block.cells as u32)
    }

    /// The values of an attribute at `rows`, `None` if it has none of it.
    pub(super) fn values(&self, context: &ReadContext, attr: &Attribute, rows: &[u32]) -> Result<Option<Values>> {
        let wrong = || broken_index(&self.fragment);
        let Some(place) = self.attrs.iter().position(|a| *a == attr.id()) else { return Ok(None) };
        let (mut blocks, mut cells): (Vec<usize>, Vec<(u32, u32)>) = (Vec::new(), Vec::with_capacity(rows.len()));
        for row in rows {
            let (at, row) = self.block_of(*row).ok_or_else(wrong)?;
            if blocks.last() != Some(&at) {
                blocks.push(at);
            }
            cells.push((blocks.len() as u32 - 1, row as u32));
        }
        let mut unread = blocks.clone();
        unread.sort_unstable();
        unread.dedup();
        self.read(context, &unread, &[place])?;
        let held = blocks.iter().map(|at| self.slot(*at, place).and_then(OnceLock::get));
        let views: Vec<_> = held.map(|column| column.map(|column| column.view())).collect();
        let column = Column::gathered(&views, &cells, Column::blank(attr).view());
        Ok(Some(Values { column: Arc::new(column), picked: true }))
    }
}

impl Placed {
    fn is_live(&self, row: usize, live: &Live) -> bool {
        match live {
            Live::None => false,
            Live::All => true,
            Live::Members(flags) => self.members.get(row).is_some_and(|m| flags.get(*m as usize) == Some(&true)),
        }
    }
}

/// The blocks of a copy in order, and how many cells they hold; `None` if its index does not say so.
fn blocks(fragment: &Fragment, stripe: &Stripe) -> Option<(Vec<Block>, u32)> {
    let (mut blocks, mut rows) = (Vec::new(), 0u32);
    for tile in 0..stripe.tiles() {
        let (tile_cells, (from, to)) = (stripe.tile_cells(tile)?, stripe.block_span(tile)?);
        for number in 0..to - from {
            let cells = fragment.sparse_block_cells(tile_cells, number);
            blocks.push(Block { tile: tile as u64, number, first_row: rows, cells });
            rows = rows.checked_add(u32::try_from(cells).ok()?)?;
        }
    }
    (u64::from(rows) == fragment.root().cells).then_some((blocks, rows))
}
