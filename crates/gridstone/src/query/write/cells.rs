//! Writing cells: sorted into global order, cut into data tiles of `capacity` cells, encoded in parallel.

use super::dense::{check_columns, fields_and_packing};
use super::order::{Dedup, OrderedCells};
use super::pipelines::{ChoicesAhead, Settles, Step};
use super::stage::Stage;
use crate::base::{Error, Result};
use crate::fragment::{Cells, EncodedTile, Field, FragmentKind, Packing, Staged, encode_tile, sampled, sparse_shape};
use crate::query::request::{BudgetHold, WriteContext};
use crate::schema::Schema;
use crate::tile::coordinates::{coordinate_column, coordinate_keys};
use crate::tile::{Column, ColumnView, KeyLayout, Weights, cells_with_room};
use std::ops::Range;
use std::sync::OnceLock;

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
    let _held = BudgetHold::take(context.budget, sorting_bytes(schema, write.cells()));
    stage_cells(context, schema, write, 0)
}

/// Bytes of memory that so many cells take while they are sorted, besides themselves: coordinates as keys, and keys of cells with
/// their rows, twice.
pub fn sorting_bytes(schema: &Schema, cells: u64) -> u64 {
    let key = KeyLayout::new(schema).key_bytes();
    cells.saturating_mul(8 * schema.ndim() as u64 + 2 * (key + 4))
}

impl CellWrite<'_> {
    /// How many cells there are.
    pub fn cells(&self) -> u64 {
        self.dims.first().map_or(0, |dim| dim.len() as u64)
    }
}

/// As [`write_cells`], where the caller has taken the memory. `first_row`: the number of the first of these cells among all that are written,
/// for errors.
pub(in crate::query) fn stage_cells(
    context: &WriteContext<'_>,
    schema: &Schema,
    write: &CellWrite<'_>,
    first_row: u64,
) -> Result<Option<Staged>> {
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
    let ordered = OrderedCells::new(context, schema, (keys, first_row), write.sorted, write.dedup)?;
    let values: Vec<ColumnView<'_>> = write.columns.iter().map(|(_, v)| *v).collect();
    stage_ordered(context, schema, FragmentKind::Sparse, ids, &values, &ordered).map(Some)
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
    let ordered = OrderedCells::new(context, schema, (keys, 0), false, Dedup::First)?;
    stage_ordered(context, schema, FragmentKind::Tombstones, Vec::new(), &[], &ordered).map(Some)
}

fn stage_ordered(
    context: &WriteContext<'_>,
    schema: &Schema,
    kind: FragmentKind,
    ids: Vec<u32>,
    values: &[ColumnView<'_>],
    ordered: &OrderedCells,
) -> Result<Staged> {
    let cells = ordered.rows().len();
    let (fields, packing) = fields_and_packing(context, schema, kind, &ids, cells);
    let mut stage = Stage::new(context, schema, kind, ids, &schema.domain())?;
    let capacity = (schema.options().capacity as usize).max(1);
    let gather = |rows: &[u32]| values.iter().map(|v| v.gather(rows)).collect::<Vec<Column>>();
    let weights = Weights::of(values.iter().copied());
    let (block_cells, room) = (context.blocks.sparse, context.blocks.room_bytes);
    let weights = (!weights.are_light(block_cells, room)).then_some(weights);
    // Where a tile that begins at a place ends, if a block would hold too much before it is full.
    let fits = |places: Range<usize>| match &weights {
        None => places.len(),
        Some(weights) => {
            let rows = ordered.rows().get(places).unwrap_or_default();
            cells_with_room([], rows.iter().map(|row| weights.at(*row as usize)), (0, block_cells), room)
        }
    };
    let groups: Vec<Group> =
        runs(0..cells, settled_cells(capacity)).map(|places| Group { places, settled: OnceLock::new() }).collect();
    let settle = |group: &Range<usize>| {
        let (keys, rows, cuts) = sample_of(ordered, group, context.blocks.sparse);
        match columns_of(&fields, &keys, gather(&rows)) {
            Ok(sample) => packing.settled(&sample, &cuts),
            // What is wrong with the cells is said where they are encoded.
            Err(_) => packing.clone(),
        }
    };
    let encode = |Tile { places, group }: Tile<'_>| {
        // A tile that is alone chooses for itself, from its own cells.
        let packing =
            if group.places == places { &packing } else { group.settled.get_or_init(|| settle(&group.places)) };
        let rows = ordered.rows().get(places.clone()).unwrap_or_default();
        let keys = ordered.coordinates(places);
        let columns = columns_of(&fields, &keys, gather(rows))?;
        encode_sparse_tile((&fields, packing), context.blocks.sparse, &keys, columns)
    };
    let mut done = 0u64;
    let write_tile = |tile: Option<EncodedTile>| {
        let Some(tile) = tile else { return Ok(()) };
        done += tile.cells;
        stage.push(tile)?;
        context.progress.report(done, cells as u64);
        Ok(())
    };
    // The next choice is made while the tiles of one are encoded: all cells are here.
    let steps = ChoicesAhead::new(tiles_of(&groups, capacity, fits).map(Ok), settled_cells(capacity) / capacity);
    let take = |step: Result<Step<Tile<'_>>>| {
        step?.done(|group| _ = group.settled.get_or_init(|| settle(&group.places)), encode)
    };
    context.pool.pipe(steps, context.pool.threads() * 4, context.cancel, take, write_tile)?;
    stage.finish()
}

/// Places in global order whose tiles share a choice of filters.
struct Group {
    places: Range<usize>,
    settled: OnceLock<Packing>,
}

/// The places of a tile, and the group that it belongs to.
struct Tile<'a> {
    places: Range<usize>,
    group: &'a Group,
}

impl<'a> Settles for Tile<'a> {
    type Choice = &'a Group;

    fn choice(&self) -> Option<&'a Group> {
        let (places, all) = (&self.places, &self.group.places);
        (places.start == all.start && places != all).then_some(self.group)
    }
}

/// Tiles of `capacity` places, or as many of those as fit.
fn tiles_of(groups: &[Group], capacity: usize, fits: impl Fn(Range<usize>) -> usize) -> impl Iterator<Item = Tile<'_>> {
    let mut rest = groups.iter().map(|group| (group, group.places.clone()));
    let mut current = rest.next();
    std::iter::from_fn(move || {
        let (group, places) = current.as_mut()?;
        let (group, from) = (*group, places.start);
        let cells = fits(from..places.end.min(from + capacity)).max(1);
        places.start = places.end.min(from + cells);
        let tile = Tile { places: from..places.start, group };
        if places.start >= places.end {
            current = rest.next();
        }
        Some(tile)
    })
}

/// The runs of `len` places that `places` is cut into.
fn runs(places: Range<usize>, len: usize) -> impl Iterator<Item = Range<usize>> {
    let end = places.end;
    places.step_by(len).map(move |from| from..(from + len).min(end))
}

/// Filters are chosen anew after so many cells: trying all candidates takes as long as encoding many times the sample.
const SETTLED_CELLS: usize = 80_000;

/// Cells of the tiles that share a choice of filters: whole tiles, at least one.
pub(super) fn settled_cells(capacity: usize) -> usize {
    (SETTLED_CELLS / capacity.max(1)).max(1).saturating_mul(capacity.max(1))
}

/// The cells that stand for a run of them: coordinates, rows, and the cuts between their blocks.
fn sample_of(ordered: &OrderedCells, places: &Range<usize>, block_cells: u32) -> (Vec<Vec<u64>>, Vec<u32>, Vec<usize>) {
    let (mut keys, mut rows, mut ends): (Vec<Vec<u64>>, Vec<u32>, _) = (Vec::new(), Vec::new(), vec![0]);
    for (from, to) in sampled(&sparse_cuts(places.len(), block_cells)) {
        let block = places.start + from..places.start + to;
        let some = ordered.coordinates(block.clone());
        keys.resize(some.len(), Vec::new());
        keys.iter_mut().zip(some).for_each(|(all, some)| all.extend(some));
        rows.extend_from_slice(ordered.rows().get(block).unwrap_or_default());
        ends.push(rows.len());
    }
    (keys, rows, ends)
}

/// The columns of a fragment with these fields: coordinates, then attributes. Coordinates are stored as their keys say, so
/// that -0.0 is stored as +0.0.
pub(in crate::query) fn columns_of(fields: &[Field], keys: &[Vec<u64>], attrs: Vec<Column>) -> Result<Vec<Column>> {
    let coordinates = fields.iter().zip(keys).map(|(f, k)| coordinate_column(f.datatype, k));
    coordinates.chain(attrs.into_iter().map(Ok)).collect()
}

/// Encodes one sparse data tile, in blocks of `block_cells` cells, from its cells in global order: coordinate keys, and
/// all its columns.
pub(in crate::query) fn encode_sparse_tile(
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;
    use crate::query::cells::keys::order_keys;
    use crate::runtime::Pool;
    use crate::schema::{Datatype, key};
    use crate::tile::coordinates::{PORTION, encode_polled};
    use std::cmp::Ordering;

    const DIMS: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"float32","domain":["0","1e9"],"tile":"7"},
        {"name":"y","dtype":"uint32","domain":["0","4000000000"],"tile":"1000"}],"attrs":[{"name":"v","dtype":"int8"}]}"#;

    #[test]
    fn portions_make_no_difference() {
        let schema = Schema::from_json(DIMS).unwrap();
        for count in [0, 1, PORTION as u32, 2 * PORTION as u32 + 5] {
            let x: Vec<u8> = (0..count).flat_map(|i| ((i % 977) as f32).to_le_bytes()).collect();
            let y: Vec<u8> = (0..count).flat_map(|i| i.wrapping_mul(48_271).to_le_bytes()).collect();
            let keys = [
                encode_polled(&NeverCancel, Datatype::Float32, &x).unwrap(),
                encode_polled(&NeverCancel, Datatype::UInt32, &y).unwrap(),
            ];
            assert_eq!(keys[0], key::encode(Datatype::Float32, &x).unwrap());
            let whole = KeyLayout::new(&schema).keys(&[&keys[0], &keys[1]]);
            for threads in [1, 2, 3] {
                let pool = Pool::new(Some(threads)).unwrap();
                let order = order_keys(&pool, &NeverCancel, &schema, &keys).unwrap();
                assert_eq!(order.len(), count as usize);
                assert!((0..order.len()).all(|i| order.compare(i, &whole, i) == Ordering::Equal));
            }
        }
    }
}
