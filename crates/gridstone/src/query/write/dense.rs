//! Writing a dense box, aligned to the tiles or not, from row- or column-major buffers.

use super::stage::Stage;
use crate::base::limits::{self, BlockCells};
use crate::base::{Error, Result};
use crate::fragment::{Cells, EncodedTile, Field, FragmentKind, FragmentSpec, Packing, Staged, encode_tile};
use crate::query::cells::layout::{for_each_run, move_cells};
use crate::query::request::WriteContext;
use crate::schema::{Attribute, Order, Schema, Subarray};
use crate::tile::{BlockGrid, Column, ColumnView, Strided, TileGrid, Weights, block_cells_with_room, offsets_in};

/// A dense box to be written.
#[derive(Debug)]
pub struct DenseWrite<'a> {
    /// The box.
    pub sub: Subarray,
    /// Attributes by place in the schema, ascending, with all cells of the box.
    pub columns: Vec<(usize, ColumnView<'a>)>,
    /// The layout of every column.
    pub layout: Order,
}

/// Checks that columns suit the attributes named and hold `cells` cells; gives the attributes' permanent numbers.
pub fn check_columns(schema: &Schema, columns: &[(usize, ColumnView<'_>)], cells: u128) -> Result<Vec<u32>> {
    let mut ids = Vec::with_capacity(columns.len());
    for (place, view) in columns {
        let attr = schema.attrs().get(*place).ok_or_else(|| Error::input(format!("no attribute number {place}")))?;
        let named = |what: String| Error::input(format!("attribute {:?}: {what}", attr.name()));
        if view.datatype() != attr.datatype() {
            return Err(named(format!("values of {} were given, it holds {}", view.datatype(), attr.datatype())));
        }
        if view.len() as u128 != cells {
            return Err(named(format!("{} values were given for {cells} cells", view.len())));
        }
        if !attr.nullable()
            && let Some(row) = view.validity().and_then(|v| v.iter().position(|b| *b == 0))
        {
            return Err(named(format!(
                "row {row} is null, but it is not nullable; fill it or make the attribute nullable"
            )));
        }
        check_codes(attr, *view).map_err(|e| named(e.message().to_owned()))?;
        check_lengths(*view).map_err(|e| named(e.message().to_owned()))?;
        ids.push(attr.id());
    }
    if !ids.is_sorted_by(|a, b| a < b) {
        return Err(Error::input("an attribute was given twice"));
    }
    Ok(ids)
}

/// An Input error about the first code that is that of no category; what lies under a null does not matter.
fn check_codes(attr: &Attribute, view: ColumnView<'_>) -> Result<()> {
    let (Some(categories), Some(width)) = (attr.categories(), view.datatype().width()) else { return Ok(()) };
    let code = |cell: &[u8]| cell.iter().rev().fold(0u64, |code, byte| code << 8 | u64::from(*byte));
    let count = categories.len() as u64;
    let stranger = |(row, cell): &(usize, &[u8])| code(cell) >= count && view.is_valid(*row);
    match view.values().chunks_exact(width).enumerate().find(stranger) {
        Some((row, cell)) => Err(Error::input(format!(
            "row {row}: {} is the code of no category, there are {count}; add the category first, or write a code below that",
            code(cell)
        ))),
        None => Ok(()),
    }
}

/// An Input error about the first value that is longer than readers accept.
fn check_lengths(view: ColumnView<'_>) -> Result<()> {
    let most = limits::VALUE_BYTES_MAX;
    if view.values().len() <= most || !view.datatype().is_var() {
        return Ok(());
    }
    match (0..view.len()).find(|row| view.value(*row).len() > most) {
        Some(row) => Err(Error::input(format!(
            "row {row}: the value has {} bytes, one value has at most {most}; cut it into several cells, or store it elsewhere and \
             its name here",
            view.value(row).len()
        ))),
        None => Ok(()),
    }
}

/// The fields of a fragment with these attributes, and how they are packed in a write of `cells` cells.
pub(in crate::query) fn fields_and_packing(
    context: &WriteContext<'_>,
    schema: &Schema,
    kind: FragmentKind,
    ids: &[u32],
    cells: usize,
) -> (Vec<Field>, Packing) {
    let fields = FragmentSpec::fields(schema, kind, ids);
    let coords = if kind == FragmentKind::Dense { 0 } else { schema.ndim() };
    let (mut filters, mut rounding) = (vec![schema.options().coord_filters.clone(); coords], vec![None; coords]);
    if kind != FragmentKind::Tombstones {
        for attr in ids.iter().filter_map(|id| schema.attr_by_id(*id)) {
            filters.push(attr.filters().clone());
            rounding.push(attr.rounding());
        }
    }
    (fields, Packing { filters, rounding, effort: context.effort(cells) })
}

/// Stages a dense box. Errors: Bounds (outside the domain), Input (columns that do not fit), Storage.
pub fn write_dense(context: &WriteContext<'_>, schema: &Schema, write: &DenseWrite<'_>) -> Result<Staged> {
    if schema.sparse() {
        return Err(Error::input("this array is sparse: write cells with coordinates instead of a dense box"));
    }
    schema.check_inside(&write.sub)?;
    if write.columns.is_empty() {
        return Err(Error::input("a write needs at least one attribute"));
    }
    let ids = check_columns(schema, &write.columns, write.sub.cells())?;
    let kind = FragmentKind::Dense;
    let (fields, packing) = fields_and_packing(context, schema, kind, &ids, write.sub.cells() as usize);
    let grid = TileGrid::new(schema, &write.sub)?;
    let source = Strided::packed(&write.sub.shape(), write.layout);
    let context = &with_room(context, schema, write, &source, &grid)?;
    let mut stage = Stage::new(context, schema, kind, ids, &write.sub)?;
    let encode = |tile: u64| encode_one(context, schema, write, &source, &grid, tile, (&fields, &packing));
    let mut done = 0u64;
    let write_tile = |tile: EncodedTile| {
        done += tile.cells;
        stage.push(tile)?;
        context.progress.report(done, write.sub.cells() as u64);
        Ok(())
    };
    context.pool.pipe(0..grid.len(), tiles_ahead(context, write, &grid), context.cancel, encode, write_tile)?;
    stage.finish()
}

/// The context with blocks in which the largest values that are written have room.
fn with_room<'a>(
    context: &WriteContext<'a>,
    schema: &Schema,
    write: &DenseWrite<'_>,
    source: &Strided,
    grid: &TileGrid,
) -> Result<WriteContext<'a>> {
    let (mut blocks, room) = (context.blocks, context.blocks.room_bytes);
    let weights = Weights::of(write.columns.iter().map(|(_, view)| *view));
    if !weights.are_light(blocks.dense, room) {
        let order = schema.options().cell_order;
        for tile in 0..grid.len() {
            context.cancel.check()?;
            let Some(region) = grid.tile_box(tile) else { continue };
            let from = source.at(&offsets_in(&region, &write.sub));
            let rows = rows_of(&region.shape(), &from, order)?;
            let weights: Vec<u64> = rows.iter().map(|row| weights.at(*row as usize)).collect();
            blocks.dense = block_cells_with_room(&weights, (&region.shape(), order), blocks.dense, room);
        }
    }
    Ok(WriteContext { blocks, ..context.clone() })
}

/// As many tiles as keep every thread busy while one is written, within an eighth of the budget with what goes with
/// every page; at least one.
fn tiles_ahead(context: &WriteContext<'_>, write: &DenseWrite<'_>, grid: &TileGrid) -> usize {
    let bytes: u64 = write.columns.iter().map(|(_, v)| v.values().len() as u64).sum();
    let per_tile = bytes / grid.len().max(1) + (write.columns.len() * EncodedTile::PAGE_OVERHEAD_BYTES) as u64;
    (context.budget.limit_bytes() / 8 / per_tile).clamp(1, context.pool.threads() as u64 * 2) as usize
}

fn encode_one(
    context: &WriteContext<'_>,
    schema: &Schema,
    write: &DenseWrite<'_>,
    source: &Strided,
    grid: &TileGrid,
    tile: u64,
    (fields, packing): (&[Field], &Packing),
) -> Result<EncodedTile> {
    let region = grid.tile_box(tile).ok_or_else(|| Error::bounds("a tile outside the box"))?;
    let from = source.at(&offsets_in(&region, &write.sub));
    let order = schema.options().cell_order;
    let given = |(_, view): &(usize, ColumnView<'_>)| cut(context, *view, &region, &from, order).map(Cells::Given);
    let columns = write.columns.iter().map(given).collect::<Result<Vec<_>>>()?;
    encode_tile(fields, packing, columns, &dense_cuts(&region, order, context.blocks.dense), None)
}

/// The boundaries of a dense tile's blocks, of at most `block_cells` cells, in its cells in cell order.
pub(in crate::query) fn dense_cuts(region: &Subarray, order: Order, block_cells: u32) -> Vec<usize> {
    let blocks = BlockGrid::new(&region.shape(), order, u64::from(block_cells));
    let starts = (0..blocks.len()).map(|b| blocks.start(b) as usize);
    starts.chain([region.cells() as usize]).collect()
}

/// Cells of the blocks of a dense tile at most, so that each has room for the values of these columns, which lie in cell order.
pub(in crate::query) fn fitting_cells<'a>(
    columns: impl IntoIterator<Item = ColumnView<'a>>,
    region: &Subarray,
    order: Order,
    blocks: BlockCells,
) -> u32 {
    let weights = Weights::of(columns);
    if weights.are_light(blocks.dense, blocks.room_bytes) {
        return blocks.dense;
    }
    let weights: Vec<u64> = (0..region.cells() as usize).map(|row| weights.at(row)).collect();
    block_cells_with_room(&weights, (&region.shape(), order), blocks.dense, blocks.room_bytes)
}

/// The cells of `region`, in cell order, from a buffer in which they lie as `from` says.
fn cut(
    context: &WriteContext<'_>,
    view: ColumnView<'_>,
    region: &Subarray,
    from: &Strided,
    order: Order,
) -> Result<Column> {
    let shape = region.shape();
    let cells = region.cells() as usize;
    let to = Strided::packed(&shape, order);
    if let Some(width) = view.datatype().width() {
        // Every byte is written: the region has as many cells as the buffer.
        let mut values = context.arena.take_cells(cells, width)?;
        move_cells(&shape, width, view.values(), from, values.as_mut_slice(), &to);
        let validity = view.validity().map(|theirs| {
            let mut validity = vec![0; cells];
            move_cells(&shape, 1, theirs, from, &mut validity, &to);
            validity
        });
        return Column::new(view.datatype(), values, None, validity);
    }
    Ok(view.gather(&rows_of(&shape, from, order)?))
}

/// The rows of the cells of a box of `shape`, in cell order, in a buffer in which they lie as `from` says.
fn rows_of(shape: &[u64], from: &Strided, order: Order) -> Result<Vec<u32>> {
    let mut rows = vec![0u32; shape.iter().product::<u64>() as usize];
    let mut too_many = false;
    for_each_run(shape, from, &Strided::packed(shape, order), |run| {
        for i in 0..run.len {
            let row = u32::try_from(run.from + i * run.from_step);
            too_many |= row.is_err();
            if let (Some(slot), Ok(row)) = (rows.get_mut((run.to + i * run.to_step) as usize), row) {
                *slot = row;
            }
        }
    });
    if too_many {
        return Err(Error::input("one write holds more than 2^32 variable-length values; write smaller boxes"));
    }
    Ok(rows)
}
