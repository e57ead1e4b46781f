//! A fragment streamed in global order: cells come in any number of portions. Memory holds the tile that is not full yet, and
//! those of the portion that are being encoded, side by side.
//!
//! The values of the first tile of a box decide how many cells its blocks have. A later tile whose values need far smaller ones
//! becomes a fragment of its own, which lies over cells without a value:
//!
//! ```text
//! over             | tile 2 |
//! the box  | tile 0 | tile 1 | blanks | tile 3 |
//! ```

use super::dense::{check_columns, dense_cuts, fields_and_packing, fitting_cells};
use super::pipelines::{ChoicesAhead, Step, encoded_and_waiting};
use super::stage::Stage;
use super::tiler::{Batch, Cutter, RawTile, TileForm};
use crate::base::limits::BlockCells;
use crate::base::{Cancel, Error, Result};
use crate::fragment::{Cells, EncodedTile, Field, FragmentKind, Packing, Staged, encode_tile};
use crate::query::request::WriteContext;
use crate::runtime::Pool;
use crate::schema::{Attribute, Order, Schema, Subarray};
use crate::tile::coordinates::coordinate_keys;
use crate::tile::{CellKeys, Column, ColumnView, KeyLayout, TileGrid};
use std::cmp::Ordering;
use std::sync::Arc;

/// A fragment being streamed. Dense: all cells of a box, tile by tile in tile order, each in cell order. Sparse: cells
/// in ascending global order.
pub struct CellStream {
    schema: Arc<Schema>,
    sub: Subarray,
    places: Vec<usize>,
    tiles: Tiles,
    last: Option<CellKeys>,
    rows: u64,
    /// Tiles encoded at once, or waiting for it, at most.
    ahead: usize,
    stage: Stage,
    schema_number: u32,
}

/// The tile that is not full yet.
enum Tiles {
    Boxes(Boxes),
    Cells(Cutter<Batch>),
}

/// A tile of a box, its cells, and how many of them a block has.
struct BoxTile {
    region: Subarray,
    columns: Vec<Column>,
    block_cells: u32,
}

/// Blocks of later tiles may be so many times as large as is aimed at before their tile becomes a fragment of its own.
const LATER_ROOM: u64 = 4;

/// Tiles of a box.
struct Boxes {
    grid: TileGrid,
    /// The number of the next tile.
    tile: u64,
    held: Vec<Column>,
    fields: Vec<Field>,
    packing: Packing,
    order: Order,
    blocks: BlockCells,
}

impl Boxes {
    /// Takes cells from row `from` on, until a tile is full; gives it, and the row after the last that was taken.
    fn take(&mut self, columns: &[ColumnView<'_>], from: usize) -> Result<(usize, Option<BoxTile>)> {
        let region = self.grid.tile_box(self.tile).ok_or_else(|| Error::input("cells past the end of the box"))?;
        let room = region.cells() as usize - self.held.first().map_or(0, Column::len);
        let to = columns.first().map_or(0, ColumnView::len).min(from + room);
        for (held, view) in self.held.iter_mut().zip(columns) {
            held.append(*view, from, to);
        }
        if to - from < room {
            return Ok((to, None));
        }
        self.tile += 1;
        let empty = self.held.iter().map(|c| Column::empty(c.datatype(), c.view().validity().is_some())).collect();
        let columns: Vec<Column> = std::mem::replace(&mut self.held, empty);
        let fitting = |blocks| fitting_cells(columns.iter().map(Column::view), &region, self.order, blocks);
        let mut block_cells = fitting(self.blocks);
        if self.tile == 1 {
            self.blocks.dense = block_cells;
        } else if block_cells < self.blocks.dense {
            let room_bytes = self.blocks.room_bytes.saturating_mul(LATER_ROOM);
            let spared = fitting(BlockCells { room_bytes, ..self.blocks }) == self.blocks.dense;
            block_cells = if spared { self.blocks.dense } else { block_cells };
        }
        Ok((to, Some(BoxTile { region, columns, block_cells })))
    }
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
        let attrs: Vec<_> = places.iter().filter_map(|p| schema.attrs().get(*p)).collect();
        let ids: Vec<u32> = attrs.iter().map(|a| a.id()).collect();
        // How many cells will come is not known: they are taken for many.
        let (fields, packing) = fields_and_packing(context, &schema, kind, &ids, usize::MAX);
        let width: usize = attrs.iter().map(|a| a.datatype().width().unwrap_or(16)).sum();
        let (tiles, cells) = if schema.sparse() {
            let (block_cells, room_bytes) = (context.blocks.sparse, context.blocks.room_bytes);
            let form = TileForm { fields, packing, block_cells, room_bytes };
            (Tiles::Cells(Cutter::of_cells(&schema, &places, form)), schema.options().capacity)
        } else {
            let grid = TileGrid::new(&schema, &sub)?;
            let cells = grid.tile_box(0).map_or(1, |tile| tile.cells() as u64);
            let held = attrs.iter().map(|a| Column::empty(a.datatype(), a.nullable())).collect();
            let (order, blocks) = (schema.options().cell_order, context.blocks);
            (Tiles::Boxes(Boxes { grid, tile: 0, held, fields, packing, order, blocks }), cells)
        };
        let tile_bytes = cells.saturating_mul((width + 8 * schema.ndim()) as u64).max(1);
        let ahead = (context.budget.limit_bytes() / 8 / tile_bytes).clamp(1, context.pool.threads() as u64 * 3);
        let stage = Stage::new(context, &schema, kind, ids, &sub)?;
        let (ahead, schema_number) = (ahead as usize, context.schema_number);
        Ok(Self { schema, sub, places, tiles, last: None, rows: 0, ahead, stage, schema_number })
    }

    /// Appends cells: coordinates of a sparse array, and attribute columns in the order of the stream's attributes. Whether to go on
    /// is asked once per tile; after an error the stream is of no more use. `over` gets fragments of single tiles that lie over
    /// the streamed one, after an error too.
    pub fn append(
        &mut self,
        context: &WriteContext<'_>,
        (dims, columns): (&[ColumnView<'_>], &[ColumnView<'_>]),
        over: &mut Vec<Staged>,
    ) -> Result<()> {
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
        if self.schema.sparse() {
            self.append_cells((context.pool, context.cancel), dims, columns, cells)?;
        } else {
            self.append_boxes(context, columns, over)?;
        }
        self.rows += cells as u64;
        Ok(())
    }

    fn append_boxes(
        &mut self,
        context: &WriteContext<'_>,
        columns: &[ColumnView<'_>],
        over: &mut Vec<Staged>,
    ) -> Result<()> {
        let cells = columns.first().map_or(0, ColumnView::len);
        if u128::from(self.rows) + cells as u128 > self.sub.cells() {
            return Err(Error::input(format!(
                "{} cells were appended, the box {} holds {}",
                u128::from(self.rows) + cells as u128,
                self.schema.describe(&self.sub),
                self.sub.cells()
            )));
        }
        let write = WriteContext { schema_number: self.schema_number, inline: false, ..context.clone() };
        let Self { schema, places, tiles, stage, .. } = self;
        let Tiles::Boxes(boxes) = tiles else { return Ok(()) };
        let (fields, packing, order) = (boxes.fields.clone(), boxes.packing.clone(), boxes.order);
        let (mut from, mut first) = (0, boxes.tile == 0);
        let full = std::iter::from_fn(|| full_tile(cells, &mut from, |from| boxes.take(columns, from)));
        let encode = |tile: Result<BoxTile>| {
            let BoxTile { region, columns, block_cells } = tile?;
            let cuts = dense_cuts(&region, order, block_cells);
            let columns = columns.into_iter().map(Cells::Given).collect();
            Ok((encode_tile(&fields, &packing, columns, &cuts, None)?, region, block_cells))
        };
        let put = |(tile, region, block_cells): (EncodedTile, Subarray, u32)| {
            if std::mem::take(&mut first) {
                stage.set_block_cells(block_cells);
            }
            if block_cells == stage.block_cells() {
                return stage.push(tile);
            }
            let attrs: Vec<&Attribute> = places.iter().filter_map(|place| schema.attrs().get(*place)).collect();
            let blanks = attrs.iter().map(|attr| Column::blanks(attr, tile.cells as usize).map(Cells::Given));
            let cuts = dense_cuts(&region, order, stage.block_cells());
            stage.push(encode_tile(&fields, &packing, blanks.collect::<Result<_>>()?, &cuts, None)?)?;
            over.push(alone(&write, schema, &attrs, (tile, region, block_cells))?);
            Ok(())
        };
        context.pool.pipe(full, self.ahead, context.cancel, encode, put)
    }

    fn append_cells(
        &mut self,
        (pool, cancel): (&Pool, &dyn Cancel),
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
        let Tiles::Cells(cutter) = &mut self.tiles else { return Ok(()) };
        let form = cutter.form().clone();
        let mut from = 0;
        let full = std::iter::from_fn(|| full_tile(cells, &mut from, |from| Ok(cutter.take(&keys, columns, from))));
        let (encoded, waiting) = encoded_and_waiting(self.ahead, pool.threads());
        let steps = ChoicesAhead::new(full, waiting);
        let put = |tile: Option<EncodedTile>| tile.map_or(Ok(()), |tile| self.stage.push(tile));
        let take = |step: Result<Step<RawTile<Batch>>>| {
            step?.done(|choice| _ = form.settle(&choice), |tile| form.encode(tile))
        };
        pool.pipe(steps, encoded, cancel, take, put)
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

    /// Ends the stream; an Input error if a dense box is not complete. `None` if no cell was appended.
    pub fn finish(mut self, cancel: &dyn Cancel) -> Result<Option<Staged>> {
        if !self.schema.sparse() && u128::from(self.rows) != self.sub.cells() {
            return Err(Error::input(format!(
                "{} of the {} cells of the box {} were appended; nothing was written",
                self.rows,
                self.sub.cells(),
                self.schema.describe(&self.sub)
            )));
        }
        cancel.check()?;
        if self.rows == 0 {
            return Ok(None);
        }
        if let Tiles::Cells(cutter) = &mut self.tiles
            && let Some(rest) = cutter.rest()
        {
            self.stage.push(cutter.form().encode(rest)?)?;
        }
        self.stage.finish().map(Some)
    }
}

/// A fragment of one tile of a box, whose blocks have so many cells at most.
fn alone(
    context: &WriteContext<'_>,
    schema: &Schema,
    attrs: &[&Attribute],
    (tile, region, block_cells): (EncodedTile, Subarray, u32),
) -> Result<Staged> {
    let context = WriteContext { blocks: BlockCells { dense: block_cells, ..context.blocks }, ..context.clone() };
    let ids = attrs.iter().map(|attr| attr.id()).collect();
    let mut stage = Stage::new(&context, schema, FragmentKind::Dense, ids, &region)?;
    stage.push(tile)?;
    stage.finish()
}

/// The next full tile of `cells` rows, taken from row `from` on; `None` when no more is full.
fn full_tile<T>(
    cells: usize,
    from: &mut usize,
    mut take: impl FnMut(usize) -> Result<(usize, Option<T>)>,
) -> Option<Result<T>> {
    while *from < cells {
        match take(*from) {
            Ok((to, tile)) => {
                *from = to;
                if let Some(tile) = tile {
                    return Some(Ok(tile));
                }
            }
            Err(e) => {
                *from = cells;
                return Some(Err(e));
            }
        }
    }
    None
}
