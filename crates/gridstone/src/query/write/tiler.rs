//! Cells that come in global order cut into data tiles, which are encoded side by side.
//!
//! A cutter holds either cells or, in a merge, where they are: which rows of which loaded chunks. Those are gathered where the tile is
//! encoded, so that whoever cuts moves no values.
//!
//! Filters are chosen anew every so many cells, from a sample of the first tile of them: a step of its own
//! ([`super::pipelines`]). Whoever comes to one of those tiles before it is done chooses; since all have the same sample, it
//! does not matter who.

use super::cells::{columns_of, encode_sparse_tile, settled_cells, sparse_cuts};
use super::pipelines::Settles;
use crate::base::Result;
use crate::fragment::{EncodedTile, Field, FragmentKind, FragmentOrder, Packing, sampled};
use crate::query::cells::chunk::{Chunk, Precedence};
use crate::query::cells::merged_rows::Stretches;
use crate::query::request::{Request, Target};
use crate::schema::Schema;
use crate::tile::{Column, ColumnView, KeyLayout, Weights, cells_with_room};
use std::collections::HashSet;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

/// Cells in global order: coordinates as ordered keys, a column per dimension, and a column per attribute.
#[derive(Debug, Clone)]
pub(in crate::query) struct Batch {
    pub(in crate::query) keys: Vec<Vec<u64>>,
    pub(in crate::query) columns: Vec<Column>,
}

/// Cells in global order, not yet gathered.
#[derive(Debug, Clone)]
pub(in crate::query) struct Merged {
    stretches: Stretches,
    wanted: Arc<(Arc<Schema>, Request)>,
}

/// What tiles are cut from.
pub(in crate::query) trait Uncut: Sized {
    /// How many cells there are.
    fn len(&self) -> usize;

    /// None, of the same kind, in whose place `cells` more will come.
    fn none(&self, cells: usize) -> Self;

    /// Those in some spans, which ascend and do not overlap.
    fn spans(&self, spans: &[(usize, usize)]) -> Self;

    /// The cells themselves.
    fn gathered(self) -> Result<Batch>;
}

impl Uncut for Batch {
    fn len(&self) -> usize {
        self.keys.first().map_or(0, Vec::len)
    }

    fn none(&self, cells: usize) -> Self {
        let empty = |c: &Column| Column::empty(c.datatype(), c.view().validity().is_some());
        let keys = self.keys.iter().map(|_| Vec::with_capacity(cells)).collect();
        Self { keys, columns: self.columns.iter().map(empty).collect() }
    }

    fn spans(&self, spans: &[(usize, usize)]) -> Self {
        let mut all = self.none(0);
        for (from, to) in spans.iter().copied() {
            let keys = all.keys.iter_mut().zip(&self.keys);
            keys.for_each(|(all, keys)| all.extend_from_slice(keys.get(from..to).unwrap_or_default()));
            all.columns.iter_mut().zip(&self.columns).for_each(|(all, column)| all.append(column.view(), from, to));
        }
        all
    }

    fn gathered(self) -> Result<Batch> {
        Ok(self)
    }
}

/// Rows that a tile keeps in memory for each of its cells, at most: of chunks most of whose rows were overwritten few are its own, and those
/// are gathered at once.
const KEPT_ROWS: usize = 4;

impl Merged {
    /// The same cells in a chunk of their own.
    fn compact(self) -> Result<Self> {
        let wanted = Arc::clone(&self.wanted);
        let (schema, none) = (&wanted.0, FragmentOrder { version: 0, index: 0 });
        let Batch { keys: coords, columns } = self.gathered()?;
        let keys = KeyLayout::new(schema).keys(&vec![&[][..]; schema.ndim()]);
        let standing = Precedence::Fragment(none, FragmentKind::Sparse);
        let chunk = Arc::new(Chunk { keys, coords, columns, standing, sifted: None });
        Ok(Self { stretches: Stretches::whole(vec![chunk]), wanted })
    }
}

impl Uncut for Merged {
    fn len(&self) -> usize {
        self.stretches.cells()
    }

    fn none(&self, _: usize) -> Self {
        Self { stretches: Stretches::default(), wanted: Arc::clone(&self.wanted) }
    }

    fn spans(&self, spans: &[(usize, usize)]) -> Self {
        let (mut all, mut rest, mut at) = (self.none(0), self.stretches.clone(), 0);
        for (from, to) in spans.iter().copied() {
            drop(rest.split_front(from - at));
            all.stretches.take_from(&mut rest, to - from);
            at = to;
        }
        all
    }

    fn gathered(self) -> Result<Batch> {
        let (schema, request) = self.wanted.as_ref();
        let columns = self.stretches.attribute_columns(schema, request)?;
        Ok(Batch { keys: self.stretches.coordinate_keys(schema.ndim()), columns })
    }
}

/// The choice of filters that some tiles share.
#[derive(Debug)]
pub(in crate::query) struct Settling<C> {
    /// The cells that stand for all of theirs, until it is made, and the cuts between their blocks.
    sample: Mutex<Option<C>>,
    cuts: Vec<usize>,
    packing: OnceLock<Packing>,
}

impl<C: Uncut> Settling<C> {
    /// To be made from the cells of a tile.
    fn of(cells: &C, block_cells: u32) -> Self {
        let spans = sampled(&sparse_cuts(cells.len(), block_cells));
        let mut cuts = vec![0];
        spans.iter().for_each(|(from, to)| cuts.push(cuts.last().copied().unwrap_or(0) + to - from));
        Self { sample: Mutex::new(Some(cells.spans(&spans))), cuts, packing: OnceLock::new() }
    }

    fn take_sample(&self) -> Option<C> {
        self.sample.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The cells of one data tile, to be encoded.
#[derive(Debug)]
pub(in crate::query) struct RawTile<C> {
    cells: C,
    settling: Arc<Settling<C>>,
    /// Whether it is the first that needs this choice.
    settles: bool,
    kept_bytes: u64,
}

impl<C: Uncut> RawTile<C> {
    /// How many cells it holds.
    pub(in crate::query) fn len(&self) -> usize {
        self.cells.len()
    }

    /// Bytes of memory that it alone keeps of what was loaded.
    pub(in crate::query) fn kept_bytes(&self) -> u64 {
        self.kept_bytes
    }
}

impl<C> Settles for RawTile<C> {
    type Choice = Arc<Settling<C>>;

    fn choice(&self) -> Option<Arc<Settling<C>>> {
        self.settles.then(|| Arc::clone(&self.settling))
    }
}

/// How tiles of cells are encoded.
#[derive(Debug, Clone)]
pub(in crate::query) struct TileForm {
    pub(in crate::query) fields: Vec<Field>,
    pub(in crate::query) packing: Packing,
    pub(in crate::query) block_cells: u32,
    /// Bytes of variable length that a block holds besides its largest cell, at most.
    pub(in crate::query) room_bytes: u64,
}

impl TileForm {
    /// Makes a choice, if it is not made.
    pub(in crate::query) fn settle<'a, C: Uncut>(&self, settling: &'a Settling<C>) -> &'a Packing {
        settling.packing.get_or_init(|| {
            let sample = settling.take_sample().map(Uncut::gathered);
            match sample.and_then(|sample| self.columns(sample.ok()?).ok()) {
                Some((_, sample)) => self.packing.settled(&sample, &settling.cuts),
                // What is wrong with the cells is said where they are encoded.
                None => self.packing.clone(),
            }
        })
    }

    /// Encodes one tile.
    pub(in crate::query) fn encode<C: Uncut>(&self, tile: RawTile<C>) -> Result<EncodedTile> {
        let packing = self.settle(&tile.settling);
        let (keys, columns) = self.columns(tile.cells.gathered()?)?;
        encode_sparse_tile((&self.fields, packing), self.block_cells, &keys, columns)
    }

    /// The coordinates as keys, and all columns.
    fn columns(&self, Batch { keys, columns }: Batch) -> Result<(Vec<Vec<u64>>, Vec<Column>)> {
        let columns = columns_of(&self.fields, &keys, columns)?;
        Ok((keys, columns))
    }
}

/// Cuts tiles of `capacity` cells.
#[derive(Debug)]
pub(in crate::query) struct Cutter<C> {
    form: TileForm,
    capacity: usize,
    held: C,
    /// How the next tiles are packed, and for how many cells more.
    settled: Option<(Arc<Settling<C>>, usize)>,
    /// Bytes of loaded chunks that only the held cells keep.
    kept_bytes: u64,
}

impl Cutter<Batch> {
    /// Without a cell yet; the attributes at `places` of `schema` come.
    pub(in crate::query) fn of_cells(schema: &Schema, places: &[usize], form: TileForm) -> Self {
        let attrs = places.iter().filter_map(|p| schema.attrs().get(*p));
        let columns = attrs.map(|a| Column::empty(a.datatype(), a.nullable())).collect();
        Self::new(schema, Batch { keys: vec![Vec::new(); schema.ndim()], columns }, form)
    }

    /// Takes cells from row `from` on, until a tile is full; gives it, and the row after the last that was taken.
    pub(in crate::query) fn take(
        &mut self,
        keys: &[Vec<u64>],
        columns: &[ColumnView<'_>],
        from: usize,
    ) -> (usize, Option<RawTile<Batch>>) {
        let rows = keys.first().map_or(0, Vec::len);
        let full = rows.min(from + self.capacity - self.held.len());
        let to = self.fitting(columns, from, full);
        for (held, key) in self.held.keys.iter_mut().zip(keys) {
            held.extend_from_slice(key.get(from..to).unwrap_or_default());
        }
        for (held, view) in self.held.columns.iter_mut().zip(columns) {
            held.append(*view, from, to);
        }
        (to, if to < full { self.rest() } else { self.full() })
    }

    /// The row before `to` from which on the block that is being filled has no room.
    fn fitting(&self, columns: &[ColumnView<'_>], from: usize, to: usize) -> usize {
        let (held, weights) =
            (Weights::of(self.held.columns.iter().map(Column::view)), Weights::of(columns.iter().copied()));
        let (first, room) = (self.held.len(), self.form.room_bytes);
        let begun = first - first % (self.form.block_cells as usize).max(1);
        if held.span(begun, first) + weights.span(from, to) <= room {
            return to;
        }
        let before = (begun..first).map(|row| held.at(row));
        from + cells_with_room(before, (from..to).map(|row| weights.at(row)), (first, self.form.block_cells), room)
    }
}

impl Cutter<Merged> {
    /// Without a cell yet; those that a merge of `target` finds for `request` come.
    pub(in crate::query) fn of_merged(target: &Target, request: &Request, form: TileForm) -> Self {
        let wanted = Arc::new((Arc::clone(&target.schema), request.clone()));
        Self::new(&target.schema, Merged { stretches: Stretches::default(), wanted }, form)
    }

    /// Takes cells from the front of `cells` until a tile is full; gives it.
    ///
    /// # Errors
    /// Those of gathering cells.
    pub(in crate::query) fn take(&mut self, cells: &mut Stretches) -> Result<Option<RawTile<Merged>>> {
        let present: HashSet<*const Chunk> = cells.chunks().iter().map(Arc::as_ptr).collect();
        let full = (self.capacity - self.held.len()).min(cells.cells());
        let taken = self.fitting(cells, full);
        self.held.stretches.take_from(cells, taken);
        // The sweep has those of the present cells anyway.
        let gone = |held: &Merged| -> (usize, u64) {
            let gone = held.stretches.chunks().iter().filter(|chunk| !present.contains(&Arc::as_ptr(chunk)));
            gone.fold((0, 0), |(rows, bytes), chunk| (rows + chunk.len(), bytes + chunk.size_bytes()))
        };
        let (rows, bytes) = gone(&self.held);
        self.kept_bytes = bytes;
        if rows > self.capacity.saturating_mul(KEPT_ROWS) {
            let none = self.held.none(0);
            self.held = std::mem::replace(&mut self.held, none).compact()?;
            self.kept_bytes = gone(&self.held).1;
        }
        Ok(if taken < full { self.rest() } else { self.full() })
    }

    /// How many of the first `most` of `cells` the tile takes before the block that is being filled has no room.
    fn fitting(&self, cells: &Stretches, most: usize) -> usize {
        let (first, room) = (self.held.len(), self.form.room_bytes);
        let held = &self.held.stretches;
        if held.var_bytes() + cells.var_bytes() <= room {
            return most;
        }
        let begun = first - first % (self.form.block_cells as usize).max(1);
        let before = held.weights().skip(begun);
        cells_with_room(before, cells.weights().take(most), (first, self.form.block_cells), room)
    }
}

impl<C: Uncut> Cutter<C> {
    fn new(schema: &Schema, held: C, form: TileForm) -> Self {
        Self { form, capacity: schema.options().capacity as usize, held, settled: None, kept_bytes: 0 }
    }

    /// How its tiles are to be encoded.
    pub(in crate::query) fn form(&self) -> &TileForm {
        &self.form
    }

    fn full(&mut self) -> Option<RawTile<C>> {
        if self.held.len() == self.capacity { self.rest() } else { None }
    }

    /// The cells that do not fill a tile, as one; `None` if there are none.
    pub(in crate::query) fn rest(&mut self) -> Option<RawTile<C>> {
        if self.held.len() == 0 {
            return None;
        }
        let next = self.held.none(self.held.len());
        let cells = std::mem::replace(&mut self.held, next);
        let settled = self.settled.take().filter(|(_, left)| *left > 0);
        let settles = settled.is_none();
        let (settling, left) = settled
            .unwrap_or_else(|| (Arc::new(Settling::of(&cells, self.form.block_cells)), settled_cells(self.capacity)));
        self.settled = Some((Arc::clone(&settling), left.saturating_sub(cells.len())));
        Some(RawTile { cells, settling, settles, kept_bytes: std::mem::take(&mut self.kept_bytes) })
    }
}
