//! Writing cells: sorted into global order, cut into data tiles of `capacity` cells, encoded in parallel.

use super::WriteContext;
use super::stage::Stage;
use super::write_dense::{check_columns, fields_and_packing};
use crate::base::{Cancel, Error, Result};
use crate::fragment::{Cells, EncodedTile, Field, FragmentKind, Packing, Staged, encode_tile, sampled, sparse_shape};
use crate::schema::{Datatype, Dimension, Schema, key};
use crate::tile::{CellKeys, Column, ColumnView, KeyLayout};
use std::cmp::Ordering;
use std::sync::OnceLock;

/// What to do with several cells at one place within one write, where the array does not allow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedup {
    /// Refuse the write.
    Error,
    /// Keep the first.
    First,
    /// Keep the last.
    Last,
}

impl Dedup {
    /// The rule named "error", "first" or "last".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "error" => Ok(Self::Error),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            other => Err(Error::input(format!("unknown dedup {other:?}; it is \"error\", \"first\" or \"last\""))),
        }
    }
}

/// Cells to be written.
#[derive(Debug)]
pub struct CellWrite<'a> {
    /// A column of coordinates per dimension.
    pub dims: Vec<ColumnView<'a>>,
    /// Attributes by place in the schema, ascending; all of them for a sparse array.
    pub columns: Vec<(usize, ColumnView<'a>)>,
    /// Whether the caller says that the cells are in global order; checked.
    pub sorted: bool,
    /// What to do with duplicates.
    pub dedup: Dedup,
}

/// Stages cells of a sparse array, or single cells of a dense one. `None` if there is no cell.
///
/// # Errors
/// Bounds (a cell outside the domain), Input (types, lengths, NaN, duplicates, missing attributes, not sorted),
/// Storage.
pub fn write_cells(context: &WriteContext<'_>, schema: &Schema, write: &CellWrite<'_>) -> Result<Option<Staged>> {
    let keys = coordinate_keys(context.cancel, schema, &write.dims)?;
    let cells = keys.first().map_or(0, Vec::len);
    let ids = check_columns(schema, &write.columns, cells as u128)?;
    if schema.sparse() && ids.len() != schema.attrs().len() {
        let missing = schema.attrs().iter().filter(|a| !ids.contains(&a.id())).map(|a| a.name());
        return Err(Error::input(format!(
            "cells of a sparse array need every attribute; missing: {}",
            missing.collect::<Vec<_>>().join(", ")
        )));
    }
    if ids.is_empty() {
        return Err(Error::input("a write needs at least one attribute"));
    }
    if cells == 0 {
        return Ok(None);
    }
    let rows = order_rows(context, schema, &keys, write.sorted, write.dedup)?;
    let values: Vec<ColumnView<'_>> = write.columns.iter().map(|(_, v)| *v).collect();
    stage_rows(context, schema, FragmentKind::Sparse, ids, &keys, &values, &rows).map(Some)
}

/// Stages the deletion of the cells at these coordinates. `None` if there is none.
pub fn write_tombstones(
    context: &WriteContext<'_>,
    schema: &Schema,
    dims: &[ColumnView<'_>],
) -> Result<Option<Staged>> {
    let keys = coordinate_keys(context.cancel, schema, dims)?;
    if keys.first().is_none_or(Vec::is_empty) {
        return Ok(None);
    }
    let (order, rows) = order_keys(context.cancel, schema, &keys)?.sort(context.pool, context.cancel)?;
    let rows = keep_one(context.cancel, &order, &rows, Dedup::First)?;
    stage_rows(context, schema, FragmentKind::Tombstones, Vec::new(), &keys, &[], &rows).map(Some)
}

/// The coordinates as ordered keys, checked: one column per dimension of the right type and equal length, no null, no
/// NaN, inside the domain.
pub(super) fn coordinate_keys(cancel: &dyn Cancel, schema: &Schema, dims: &[ColumnView<'_>]) -> Result<Vec<Vec<u64>>> {
    if dims.len() != schema.ndim() {
        return Err(Error::input(format!(
            "coordinates of {} dimensions were given, the array has {}",
            dims.len(),
            schema.ndim()
        )));
    }
    let cells = dims.first().map_or(0, ColumnView::len);
    if u32::try_from(cells).is_err() {
        return Err(Error::input(format!("{cells} cells in one write are too many; write at most 2^32 - 1 at once")));
    }
    let mut all = Vec::with_capacity(dims.len());
    for (dim, view) in schema.dims().iter().zip(dims) {
        cancel.check()?;
        let named = |what: String| Error::input(format!("dimension {:?}: {what}", dim.name()));
        if view.datatype() != dim.datatype() {
            return Err(named(format!("coordinates of {} were given, it has {}", view.datatype(), dim.datatype())));
        }
        if view.len() != cells {
            return Err(named(format!("{} coordinates were given, other dimensions have {cells}", view.len())));
        }
        if let Some(row) = view.validity().and_then(|v| v.iter().position(|b| *b == 0)) {
            return Err(named(format!("row {row}: a null is no coordinate; drop such rows or fill them")));
        }
        let keys = encode_polled(cancel, dim.datatype(), view.values())
            .map_err(|e| e.context(format!("dimension {:?}", dim.name())))?;
        check_domain(cancel, dim, &keys)?;
        all.push(keys);
    }
    Ok(all)
}

fn check_domain(cancel: &dyn Cancel, dim: &Dimension, keys: &[u64]) -> Result<()> {
    let range = dim.range();
    for (number, portion) in keys.chunks(PORTION).enumerate() {
        cancel.check()?;
        // All are compared, without a branch per cell; the row is looked for when there is one.
        if portion.iter().fold(true, |inside, k| inside & range.contains(*k)) {
            continue;
        }
        let at = portion.iter().position(|k| !range.contains(*k)).unwrap_or(0);
        let (lo, hi, _) = dim.texts();
        let found = portion.get(at).map(|k| dim.text(*k)).unwrap_or_default();
        return Err(Error::bounds(format!(
            "row {}: coordinate {found} of dimension {:?} is outside its domain ({lo}, {hi})",
            number * PORTION + at,
            dim.name()
        )));
    }
    Ok(())
}

/// Rows handled between two questions whether to go on: a few milliseconds of work.
const PORTION: usize = 1 << 18;

/// [`key::encode`], asking between portions whether to go on.
fn encode_polled(cancel: &dyn Cancel, datatype: Datatype, values: &[u8]) -> Result<Vec<u64>> {
    let width = datatype.width().unwrap_or(1);
    let mut keys = Vec::with_capacity(values.len() / width);
    for portion in values.chunks(PORTION * width) {
        cancel.check()?;
        match key::encode(datatype, portion) {
            Ok(some) => keys.extend_from_slice(&some),
            // Once more over everything, for the number of the row.
            Err(_) => return key::encode(datatype, values),
        }
    }
    Ok(keys)
}

/// The cells' keys in global order, asking between portions whether to go on.
pub(super) fn order_keys(cancel: &dyn Cancel, schema: &Schema, keys: &[Vec<u64>]) -> Result<CellKeys> {
    let layout = KeyLayout::new(schema);
    let cells = keys.first().map_or(0, Vec::len);
    let portion = |from: usize| {
        let run = |column: &Vec<u64>| column.get(from..(from + PORTION).min(cells)).unwrap_or_default().to_vec();
        let columns: Vec<Vec<u64>> = keys.iter().map(run).collect();
        layout.keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
    };
    let mut order = portion(0);
    for from in (PORTION..cells).step_by(PORTION) {
        cancel.check()?;
        order.append(&portion(from));
    }
    Ok(order)
}

/// The rows to be written, in global order, duplicates treated as asked.
fn order_rows(
    context: &WriteContext<'_>,
    schema: &Schema,
    keys: &[Vec<u64>],
    sorted: bool,
    dedup: Dedup,
) -> Result<Vec<u32>> {
    let cancel = context.cancel;
    let order = order_keys(cancel, schema, keys)?;
    if sorted && let Some(row) = order.first_step(Ordering::Less, cancel)? {
        return Err(Error::input(format!(
            "row {row} comes before row {} in global order, but sorted=True was given; sort the cells or leave it out",
            row - 1
        )));
    }
    let (order, rows) = order.sort(context.pool, cancel)?;
    match dedup {
        Dedup::Error if schema.options().duplicates => Ok(rows),
        Dedup::Error => match order.first_step(Ordering::Equal, cancel)? {
            None => Ok(rows),
            Some(at) => Err(same_cell(schema, keys, rows.get(at - 1..=at).unwrap_or_default())),
        },
        Dedup::First | Dedup::Last => keep_one(cancel, &order, &rows, dedup),
    }
}

/// The error for two rows of one cell, which come in row order.
fn same_cell(schema: &Schema, keys: &[Vec<u64>], rows: &[u32]) -> Error {
    let at = |place: usize| rows.get(place).copied().unwrap_or(0);
    let cell = schema
        .dims()
        .iter()
        .zip(keys)
        .map(|(d, k)| format!("{}={}", d.name(), k.get(at(0) as usize).map(|k| d.text(*k)).unwrap_or_default()));
    Error::input(format!(
        "rows {} and {} are the same cell ({}); drop one, pass dedup=\"first\" or \"last\", or let the array allow \
         duplicates",
        at(0),
        at(1),
        cell.collect::<Vec<_>>().join(", ")
    ))
}

/// Of the rows of each cell, which stand together in row order, the first or the last. `order`: their keys.
fn keep_one(cancel: &dyn Cancel, order: &CellKeys, rows: &[u32], dedup: Dedup) -> Result<Vec<u32>> {
    let same = |a: usize| a + 1 < rows.len() && order.compare(a, order, a + 1) == Ordering::Equal;
    let mut kept: Vec<u32> = Vec::with_capacity(rows.len());
    for (portion, from) in rows.chunks(PORTION).zip((0..).step_by(PORTION)) {
        cancel.check()?;
        let keep = |at: usize| if dedup == Dedup::Last { !same(at) } else { at == 0 || !same(at - 1) };
        kept.extend(portion.iter().zip(from..).filter(|(_, at)| keep(*at)).map(|(row, _)| *row));
    }
    Ok(kept)
}

fn stage_rows(
    context: &WriteContext<'_>,
    schema: &Schema,
    kind: FragmentKind,
    ids: Vec<u32>,
    keys: &[Vec<u64>],
    values: &[ColumnView<'_>],
    rows: &[u32],
) -> Result<Staged> {
    let (fields, packing) = fields_and_packing(context, schema, kind, &ids, rows.len());
    let mut stage = Stage::new(context, schema, kind, ids, &schema.domain())?;
    let capacity = schema.options().capacity as usize;
    let pick = |rows: &[u32]| -> Vec<Vec<u64>> {
        keys.iter().map(|k| rows.iter().filter_map(|r| k.get(*r as usize).copied()).collect()).collect()
    };
    let gather = |rows: &[u32]| values.iter().map(|v| v.gather(rows)).collect::<Vec<Column>>();
    let groups: Vec<(&[u32], OnceLock<Packing>)> =
        rows.chunks(settled_cells(capacity)).map(|group| (group, OnceLock::new())).collect();
    let settle = |group: &[u32]| {
        let (rows, cuts) = sample_of(group, context.blocks.sparse);
        match columns_of(&fields, &pick(&rows), gather(&rows)) {
            Ok(sample) => packing.settled(&sample, &cuts),
            // What is wrong with the cells is said where they are encoded.
            Err(_) => packing.clone(),
        }
    };
    let tiles =
        groups.iter().flat_map(|(group, settled)| group.chunks(capacity).map(move |tile| (tile, *group, settled)));
    let encode = |(tile, group, settled): (&[u32], &[u32], &OnceLock<Packing>)| {
        // A tile that is alone chooses for itself, from its own cells.
        let alone = group.len() == tile.len();
        let packing = if alone { &packing } else { settled.get_or_init(|| settle(group)) };
        let keys = pick(tile);
        let columns = columns_of(&fields, &keys, gather(tile))?;
        encode_sparse_tile((&fields, packing), context.blocks.sparse, &keys, columns)
    };
    let mut done = 0u64;
    let write_tile = |tile: EncodedTile| {
        done += tile.cells;
        stage.push(tile)?;
        context.progress.report(done, rows.len() as u64);
        Ok(())
    };
    context.pool.pipe(tiles, context.pool.threads() * 4, context.cancel, encode, write_tile)?;
    stage.finish()
}

/// Filters are chosen anew after so many cells: trying all candidates takes as long as encoding many times the sample.
const SETTLED_CELLS: usize = 80_000;

/// Cells of the tiles that share a choice of filters: whole tiles, at least one.
pub(super) fn settled_cells(capacity: usize) -> usize {
    (SETTLED_CELLS / capacity.max(1)).max(1).saturating_mul(capacity.max(1))
}

/// The rows that stand for a run of them, and the cuts between their blocks.
fn sample_of(rows: &[u32], block_cells: u32) -> (Vec<u32>, Vec<usize>) {
    let (mut sample, mut ends) = (Vec::new(), vec![0]);
    for (from, to) in sampled(&sparse_cuts(rows.len(), block_cells)) {
        sample.extend_from_slice(rows.get(from..to).unwrap_or_default());
        ends.push(sample.len());
    }
    (sample, ends)
}

/// The columns of a fragment with these fields: coordinates, then attributes. Coordinates are stored as their keys say, so
/// that -0.0 is stored as +0.0.
pub(super) fn columns_of(fields: &[Field], keys: &[Vec<u64>], attrs: Vec<Column>) -> Result<Vec<Column>> {
    let coordinates = fields.iter().zip(keys).map(|(f, k)| coordinate_column(f.datatype, k));
    coordinates.chain(attrs.into_iter().map(Ok)).collect()
}

/// Encodes one sparse data tile, in blocks of `block_cells` cells, from its cells in global order: coordinate keys, and
/// all its columns.
pub(super) fn encode_sparse_tile(
    (fields, packing): (&[Field], &Packing),
    block_cells: u32,
    keys: &[Vec<u64>],
    columns: Vec<Column>,
) -> Result<EncodedTile> {
    let cuts = sparse_cuts(keys.first().map_or(0, Vec::len), block_cells);
    let refs: Vec<&[u64]> = keys.iter().map(Vec::as_slice).collect();
    let shape = sparse_shape(&refs, &cuts);
    encode_tile(fields, packing, columns.into_iter().map(Cells::Given).collect(), &cuts, Some(shape))
}

/// The block boundaries of a sparse tile.
pub(super) fn sparse_cuts(cells: usize, block_cells: u32) -> Vec<usize> {
    (0..cells).step_by(block_cells.max(1) as usize).chain([cells]).collect()
}

/// The column of values of these ordered keys.
pub(super) fn coordinate_column(datatype: crate::schema::Datatype, keys: &[u64]) -> Result<Column> {
    let mut values = Vec::with_capacity(keys.len() * datatype.width().unwrap_or(8));
    key::decode(datatype, keys.iter().copied(), &mut values);
    Column::new(datatype, crate::base::AlignedBuf::from_slice(&values), None, None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;

    const DIMS: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"float32","domain":["0","1e9"],"tile":"7"},
        {"name":"y","dtype":"uint32","domain":["0","4000000000"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int8"}]}"#;

    #[test]
    fn portions_make_no_difference() {
        let schema = Schema::from_json(DIMS).unwrap();
        let count = 2 * PORTION as u32 + 5;
        let x: Vec<u8> = (0..count).flat_map(|i| ((i % 977) as f32).to_le_bytes()).collect();
        let y: Vec<u8> = (0..count).flat_map(|i| i.wrapping_mul(48_271).to_le_bytes()).collect();
        let keys = [
            encode_polled(&NeverCancel, Datatype::Float32, &x).unwrap(),
            encode_polled(&NeverCancel, Datatype::UInt32, &y).unwrap(),
        ];
        assert_eq!(keys[0], key::encode(Datatype::Float32, &x).unwrap());
        let order = order_keys(&NeverCancel, &schema, &keys).unwrap();
        let whole = KeyLayout::new(&schema).keys(&[&keys[0], &keys[1]]);
        assert_eq!(order.len(), count as usize);
        assert!((0..order.len()).all(|i| order.compare(i, &whole, i) == Ordering::Equal));
    }

    #[test]
    fn a_late_nan_is_named_by_its_row() {
        let mut values: Vec<u8> = vec![0; (PORTION + 9) * 4];
        values[(PORTION + 3) * 4..][..4].copy_from_slice(&f32::NAN.to_le_bytes());
        let error = encode_polled(&NeverCancel, Datatype::Float32, &values).unwrap_err();
        assert!(error.message().contains(&format!("row {}", PORTION + 3)), "{error}");
    }
}
