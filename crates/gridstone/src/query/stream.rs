//! A fragment streamed in global order: cells come in any number of portions, memory holds one tile.

use super::WriteContext;
use super::stage::Stage;
use super::write_cells::{columns_of, coordinate_keys, encode_sparse_tile, settled_cells, sparse_cuts};
use super::write_dense::{check_columns, dense_cuts, fields_and_packing};
use crate::base::limits::BlockCells;
use crate::base::{Cancel, Error, Result};
use crate::fragment::{Cells, EncodedTile, Field, FragmentKind, Packing, Staged, encode_tile};
use crate::schema::{Schema, Subarray};
use crate::tile::{CellKeys, Column, ColumnView, KeyLayout, TileGrid};
use std::cmp::Ordering;
use std::sync::Arc;

/// A fragment being streamed. Dense: all cells of a box, tile by tile in tile order, each in cell order. Sparse: cells
/// in ascending global order.
pub struct CellStream {
    schema: Arc<Schema>,
    sub: Subarray,
    grid: Option<TileGrid>,
    tile: u64,
    places: Vec<usize>,
    fields: Vec<Field>,
    packing: Packing,
    /// What `packing` was settled to by a tile, and the cells that this still holds for.
    settled: Option<(Packing, usize)>,
    blocks: BlockCells,
    keys: Vec<Vec<u64>>,
    held: Vec<Column>,
    last: Option<CellKeys>,
    rows: u64,
    stage: Stage,
}

impl std::fmt::Debug for CellStream {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CellStream({} cells)", self.rows)
    }
}

impl CellStream {
    /// Starts a stream of the attributes at `places` (ascending). `sub` is the box of a dense array's stream.
    pub fn new(context: &WriteContext<'_>, schema: Arc<Schema>, sub: Subarray, places: Vec<usize>) -> Result<Self> {
        schema.check_inside(&sub)?;
        if places.is_empty() || (schema.sparse() && places.len() != schema.attrs().len()) {
            return Err(Error::input("a stream needs at least one attribute, of a sparse array every one"));
        }
        let kind = if schema.sparse() { FragmentKind::Sparse } else { FragmentKind::Dense };
        Self::of_kind(context, schema, sub, places, kind)
    }

    /// Starts a stream of cells with coordinates and the attributes at `places`, into a sparse or a dense array.
    pub fn of_cells(context: &WriteContext<'_>, schema: Arc<Schema>, places: Vec<usize>) -> Result<Self> {
        let sub = schema.domain();
        Self::of_kind(context, schema, sub, places, FragmentKind::Sparse)
    }

    fn of_kind(
        context: &WriteContext<'_>,
        schema: Arc<Schema>,
        sub: Subarray,
        places: Vec<usize>,
        kind: FragmentKind,
    ) -> Result<Self> {
        let cells = kind == FragmentKind::Sparse;
        let attrs: Vec<_> = places.iter().filter_map(|p| schema.attrs().get(*p)).collect();
        let ids: Vec<u32> = attrs.iter().map(|a| a.id()).collect();
        let held = attrs.iter().map(|a| Column::empty(a.datatype(), a.nullable())).collect();
        let grid = if cells { None } else { Some(TileGrid::new(&schema, &sub)?) };
        // How many cells will come is not known: they are taken for many.
        let (fields, packing) = fields_and_packing(context, &schema, kind, &ids, usize::MAX);
        let stage = Stage::new(context, &schema, kind, ids, &sub)?;
        let keys = if cells { vec![Vec::new(); schema.ndim()] } else { Vec::new() };
        let blocks = context.blocks;
        Ok(Self {
            schema,
            sub,
            grid,
            tile: 0,
            places,
            fields,
            packing,
            settled: None,
            blocks,
            keys,
            held,
            last: None,
            rows: 0,
            stage,
        })
    }

    /// Appends cells: attribute columns in the order of the stream's attributes, coordinates for a sparse array. `cancel`
    /// is asked once per tile; after an error the stream is of no more use.
    pub fn append(&mut self, cancel: &dyn Cancel, dims: &[ColumnView<'_>], columns: &[ColumnView<'_>]) -> Result<()> {
        let cells = columns.first().map_or(0, ColumnView::len);
        let placed: Vec<(usize, ColumnView<'_>)> = self.places.iter().copied().zip(columns.iter().copied()).collect();
        if columns.len() != self.places.len() {
            return Err(Error::input(format!(
                "{} columns were given, the stream has {}",
                columns.len(),
                self.places.len()
            )));
        }
        check_columns(&self.schema, &placed, cells as u128)?;
        if self.grid.is_some() {
            self.append_dense(cancel, columns, cells)
        } else {
            self.append_sparse(cancel, dims, columns, cells)
        }
    }

    fn append_dense(&mut self, cancel: &dyn Cancel, columns: &[ColumnView<'_>], cells: usize) -> Result<()> {
        if u128::from(self.rows) + cells as u128 > self.sub.cells() {
            return Err(Error::input(format!(
                "{} cells were appended, the box {} holds {}",
                u128::from(self.rows) + cells as u128,
                self.sub.describe(self.schema.dims()),
                self.sub.cells()
            )));
        }
        let mut from = 0;
        while from < cells {
            cancel.check()?;
            let region = self.grid.as_ref().and_then(|g| g.tile_box(self.tile));
            let region = region.ok_or_else(|| Error::input("cells past the end of the box"))?;
            let room = region.cells() as usize - self.held_cells();
            let to = (from + room).min(cells);
            for (held, view) in self.held.iter_mut().zip(columns) {
                held.append(*view, from, to);
            }
            if to - from == room {
                cancel.check()?;
                self.flush_dense(&region)?;
            }
            from = to;
        }
        self.rows += cells as u64;
        Ok(())
    }

    fn held_cells(&self) -> usize {
        self.held.first().map_or(0, Column::len)
    }

    fn take_held(&mut self) -> Vec<Column> {
        let empty = self.held.iter().map(|c| Column::empty(c.datatype(), c.view().validity().is_some())).collect();
        std::mem::replace(&mut self.held, empty)
    }

    fn flush_dense(&mut self, region: &Subarray) -> Result<()> {
        let held = self.take_held().into_iter().map(Cells::Given).collect();
        let cuts = dense_cuts(region, self.schema.options().cell_order, self.blocks.dense);
        self.stage.push(encode_tile(&self.fields, &self.packing, held, &cuts, None)?)?;
        self.tile += 1;
        Ok(())
    }

    fn append_sparse(
        &mut self,
        cancel: &dyn Cancel,
        dims: &[ColumnView<'_>],
        columns: &[ColumnView<'_>],
        cells: usize,
    ) -> Result<()> {
        let keys = coordinate_keys(cancel, &self.schema, dims)?;
        if keys.first().map_or(0, Vec::len) != cells {
            return Err(Error::input(format!(
                "{} coordinates were given for {cells} cells",
                keys.first().map_or(0, Vec::len)
            )));
        }
        if cells == 0 {
            return Ok(());
        }
        self.check_order(&keys, cells)?;
        let capacity = self.schema.options().capacity as usize;
        let mut from = 0;
        while from < cells {
            cancel.check()?;
            let to = (from + capacity - self.held_cells()).min(cells);
            for (held, key) in self.keys.iter_mut().zip(&keys) {
                held.extend_from_slice(key.get(from..to).unwrap_or_default());
            }
            for (held, view) in self.held.iter_mut().zip(columns) {
                held.append(*view, from, to);
            }
            if self.held_cells() == capacity {
                cancel.check()?;
                self.flush_sparse()?;
            }
            from = to;
        }
        self.rows += cells as u64;
        Ok(())
    }

    /// Cells must ascend within a portion and from one to the next; equal places need an array with duplicates.
    fn check_order(&mut self, keys: &[Vec<u64>], cells: usize) -> Result<()> {
        let layout = KeyLayout::new(&self.schema);
        let refs: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
        let order = layout.keys(&refs);
        let bad = |found: Ordering| {
            found == Ordering::Less || (found == Ordering::Equal && !self.schema.options().duplicates)
        };
        let inside = (1..cells).find(|i| bad(order.compare(*i, &order, i - 1)));
        let across = self.last.as_ref().is_some_and(|last| bad(order.compare(0, last, 0)));
        if across || inside.is_some() {
            let row = self.rows + if across { 0 } else { inside.unwrap_or(0) as u64 };
            return Err(Error::input(format!(
                "row {row} does not follow the row before it in global order; sort the cells, or use write_cells"
            )));
        }
        let end: Vec<[u64; 1]> = keys.iter().map(|k| [k.last().copied().unwrap_or(0)]).collect();
        let end: Vec<&[u64]> = end.iter().map(<[u64; 1]>::as_slice).collect();
        self.last = Some(layout.keys(&end));
        Ok(())
    }

    fn flush_sparse(&mut self) -> Result<()> {
        let held = self.take_held();
        let keys: Vec<Vec<u64>> = self.keys.iter_mut().map(std::mem::take).collect();
        let columns = columns_of(&self.fields, &keys, held)?;
        let (packing, cells_left) = match self.settled.take().filter(|(_, cells_left)| *cells_left > 0) {
            Some(settled) => settled,
            None => {
                let cuts = sparse_cuts(columns.first().map_or(0, Column::len), self.blocks.sparse);
                (self.packing.settled(&columns, &cuts), settled_cells(self.schema.options().capacity as usize))
            }
        };
        let tile = encode_sparse_tile((&self.fields, &packing), self.blocks.sparse, &keys, columns)?;
        self.settled = Some((packing, cells_left.saturating_sub(tile.cells as usize)));
        self.stage.push(tile)
    }

    /// Adds a tile of cells as it is stored elsewhere. It comes after all cells so far, in a stream of cells with these fields.
    pub(super) fn push_tile(&mut self, tile: EncodedTile) -> Result<()> {
        if self.held_cells() > 0 {
            self.flush_sparse()?;
        }
        let Some(shape) = &tile.shape else { return Err(Error::input("a dense tile in a stream of cells")) };
        let end: Vec<[u64; 1]> = shape.ends.1.iter().map(|k| [*k]).collect();
        let end: Vec<&[u64]> = end.iter().map(<[u64; 1]>::as_slice).collect();
        self.last = Some(KeyLayout::new(&self.schema).keys(&end));
        self.rows += tile.cells;
        self.stage.push(tile)
    }

    /// What a tile must have to be put into this stream as it is: its fields, and the cells of its blocks.
    pub(super) fn tile_form(&self) -> (&[Field], u32) {
        (&self.fields, self.blocks.sparse)
    }

    /// Ends the stream; an Input error if a dense box is not complete. `None` if no cell was appended.
    pub fn finish(mut self, cancel: &dyn Cancel) -> Result<Option<Staged>> {
        if self.grid.is_some() && u128::from(self.rows) != self.sub.cells() {
            return Err(Error::input(format!(
                "{} of the {} cells of the box {} were appended; nothing was written",
                self.rows,
                self.sub.cells(),
                self.sub.describe(self.schema.dims())
            )));
        }
        cancel.check()?;
        if self.rows == 0 {
            return Ok(None);
        }
        cancel.check()?;
        if self.grid.is_none() && self.held_cells() > 0 {
            self.flush_sparse()?;
        }
        self.stage.finish().map(Some)
    }
}
