//! Merging fragments: the read that a user would do over them, into new fragments, which take their place.
//!
//! - Cells stream from a sweep of the inputs in global order into fragments of about the target size. Where several inputs
//!   have a cell the newest one stays, or all where the array allows duplicates; tombstones have done their work.
//! - Boxes are written tile by tile, cut along tiles into fragments of about the target size.
//!
//! Tiles that one input holds alone are copied as they are stored. Nothing is visible before the caller commits the replacement.

use super::box_index::{BoxIndex, Item};
use super::plan::Merge;
use crate::array::{Operation, Removed};
use crate::base::{Error, Id, Result};
use crate::fragment::{Description, FragmentKind, Staged};
use crate::query::{
    CellStream, Cells, Piece, ReadContext, ReadOrder, Request, Rewrite, Sweeper, Target, WriteContext, rewrite_dense,
    warm,
};
use crate::schema::{Extent, KeyRange, Schema, Subarray};
use crate::tile::Column;
use std::sync::Arc;

/// Merged fragments that nothing refers to yet.
#[derive(Debug)]
pub struct Merged {
    /// What they take the place of.
    pub removed: Vec<Removed>,
    /// They, all of the greatest order of those; none if every cell is deleted.
    pub fragments: Vec<Staged>,
    /// Tombstones newer than they that have done their work.
    pub retired: Vec<Removed>,
}

impl Merged {
    /// The operations that put them in place.
    pub fn operations(&self, array: Id) -> Vec<Operation> {
        let replace = |removed: &Vec<Removed>, fragments: Vec<Staged>| Operation::ReplaceFragments {
            array,
            removed: removed.clone(),
            fragments,
        };
        let retire = (!self.retired.is_empty()).then(|| replace(&self.retired, Vec::new()));
        std::iter::once(replace(&self.removed, self.fragments.clone())).chain(retire).collect()
    }
}

/// Does `merge` for the array that `target` is of (its fragments do not matter); fragments are cut at about `target_bytes`.
/// `None` if it is a single fragment of which nothing is deleted, so that nothing is to be done.
///
/// What is written is in `done` after an error too: the caller sees to it that the files go.
pub fn merge(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    target_bytes: u64,
    done: &mut Vec<Staged>,
) -> Result<Option<Merged>> {
    let cells_max = (target_bytes / merge.bytes_per_cell()).max(1);
    if merge.boxes.is_empty() {
        merge_cells(read, write, target, merge, cells_max, done)?;
    } else {
        merge_boxes(read, write, target, merge, cells_max, done)?;
    }
    let written: u64 = done.iter().map(|staged| staged.description.cells).sum();
    if merge.inputs.len() == 1 && written == merge.cells() && merge.retired.is_empty() {
        return Ok(None);
    }
    let order = merge.order();
    done.iter_mut().for_each(|staged| staged.description.order = order);
    // A mask goes with what it lies over, in one step.
    let (newer, older): (Vec<_>, Vec<_>) =
        merge.retired.iter().partition(|d| d.order > order && d.kind != FragmentKind::Mask);
    let removed = merge.inputs.iter().chain(older).map(|d| Removed::of(d)).collect();
    let retired = newer.into_iter().map(|d| Removed::of(d)).collect();
    Ok(Some(Merged { removed, fragments: done.clone(), retired }))
}

/// Bytes of memory that a merge takes, about: the tiles under way, or a batch of cells; what was decoded once; a stripe.
pub fn memory_bytes(merge: &Merge, context: &ReadContext, target: &Target) -> u64 {
    let (limit, row) = (context.budget.limit_bytes(), target.row_bytes());
    let small = sources(merge).iter().filter(|d| d.kind != FragmentKind::Dense).map(|d| d.cells * row).sum::<u64>();
    let stripe = merge.bytes_written().min(limit / 4);
    let work = if merge.boxes.is_empty() {
        merge.cells().saturating_mul(row).min(limit / 8)
    } else {
        let dims = target.schema.dims().iter();
        let tile = dims.map(|d| match d.extent() {
            Extent::Cells(n) => u128::from(n),
            _ => d.range().count(),
        });
        let cells =
            u64::try_from(tile.fold(1u128, u128::saturating_mul)).unwrap_or(u64::MAX).min(merge.cells_written());
        cells.saturating_mul(2 * row).saturating_mul(context.pool.threads() as u64 + 1)
    };
    work.saturating_add(small.min(limit / 4)).saturating_add(stripe)
}

/// Everything a merge reads, oldest order first.
fn sources(merge: &Merge) -> Vec<Arc<Description>> {
    let mut fragments: Vec<Arc<Description>> = merge.inputs.iter().chain(&merge.applied).cloned().collect();
    fragments.sort_by_key(|d| d.order);
    fragments
}

fn merge_cells(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    cells_max: u64,
    done: &mut Vec<Staged>,
) -> Result<()> {
    let schema = &target.schema;
    let attrs = merge.inputs.first().map(|d| d.attrs.as_slice()).unwrap_or_default();
    let places = places_of(schema, attrs)?;
    let inputs = Target { fragments: sources(merge), ..target.clone() };
    let request = Request { sub: schema.domain(), attrs: places.clone(), order: ReadOrder::Global };
    let stream = CellStream::of_cells(write, schema.clone(), places.clone())?;
    let mut pieces = Sweeper::new(read, &inputs, &request, &stream)?;
    let mut out = Output { write, schema, places, cells_max, open: Some((stream, 0, None)), done };
    while let Some(piece) = pieces.next_piece()? {
        write.cancel.check()?;
        out.append(piece)?;
    }
    out.close()
}

fn merge_boxes(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    cells_max: u64,
    done: &mut Vec<Staged>,
) -> Result<()> {
    let most = merge.inputs.iter().max_by_key(|d| d.attrs.len());
    let places = places_of(&target.schema, most.map(|d| d.attrs.as_slice()).unwrap_or_default())?;
    let fragments = sources(merge);
    let items = fragments.iter().enumerate();
    let items = items.map(|(place, d)| Item { bounds: &d.bounds, orders: (d.order, d.order), size: 0, place });
    let index = BoxIndex::new(items.collect());
    let touching = |sub: &Subarray| {
        let mut found = Vec::new();
        index.each(sub, |item| found.push(item.place));
        found.sort_unstable();
        found.into_iter().filter_map(|place| fragments.get(place)).cloned().collect()
    };
    warm(read, &Target { fragments: fragments.clone(), ..target.clone() })?;
    for bounds in &merge.boxes {
        for sub in parts(&target.schema, bounds, cells_max) {
            let job = Rewrite { target, touching: &touching, sub, places: places.clone() };
            done.push(rewrite_dense(read, write, &job)?);
        }
    }
    Ok(())
}

/// A box cut along tiles, the slowest dimension first, into boxes of at most `cells_max` cells, or one tile.
fn parts(schema: &Schema, bounds: &Subarray, cells_max: u64) -> Vec<Subarray> {
    let (mut waiting, mut made) = (vec![bounds.clone()], Vec::new());
    while let Some(sub) = waiting.pop() {
        let halves = if sub.cells() > u128::from(cells_max) { halves(schema, &sub) } else { None };
        match halves {
            Some((low, high)) => waiting.extend([high, low]),
            None => made.push(sub),
        }
    }
    made
}

/// Both halves of a box, cut at a border of tiles across the slowest dimension that has one.
fn halves(schema: &Schema, sub: &Subarray) -> Option<(Subarray, Subarray)> {
    schema.options().tile_order.slowest_first(sub.ndim()).find_map(|number| {
        let (dim, range) = (schema.dims().get(number)?, *sub.ranges().get(number)?);
        let (first, last) = (dim.tile_of(range.lo), dim.tile_of(range.hi));
        let border = dim.tile_range(first + (last - first).div_ceil(2)).lo;
        let with = |range: KeyRange| {
            let ranges = sub.ranges().iter().enumerate();
            Subarray::new(ranges.map(|(n, r)| if n == number { range } else { *r }).collect())
        };
        let cut = first < last && border > range.lo;
        cut.then(|| (with(KeyRange::new(range.lo, border - 1)), with(KeyRange::new(border, range.hi))))
    })
}

/// The places in the schema of attributes.
fn places_of(schema: &Schema, ids: &[u32]) -> Result<Vec<usize>> {
    let place = |id: &u32| schema.attrs().iter().position(|a| a.id() == *id);
    let places: Vec<usize> = ids.iter().filter_map(place).collect();
    if places.len() == ids.len() { Ok(places) } else { Err(Error::corruption("fragments of unknown attributes")) }
}

/// Fragments being written one after the other.
struct Output<'a> {
    write: &'a WriteContext<'a>,
    schema: &'a Arc<Schema>,
    places: Vec<usize>,
    cells_max: u64,
    /// The stream, its cells, and the last of them if more at its place may come.
    open: Option<(CellStream, u64, Option<Cells>)>,
    done: &'a mut Vec<Staged>,
}

impl Output<'_> {
    fn append(&mut self, piece: Piece) -> Result<()> {
        // Cells at one place stay in one fragment: those of two fragments of one order would stand in no order.
        if let Some((_, count, last)) = &self.open
            && *count >= self.cells_max
            && !continues(last.as_ref(), &piece)
        {
            self.close()?;
        }
        let (mut stream, count) = match self.open.take() {
            Some((stream, count, _)) => (stream, count),
            None => (CellStream::of_cells(self.write, self.schema.clone(), self.places.clone())?, 0),
        };
        let (cells, last) = (piece.cells(), last_of(&piece));
        piece.append_to(&mut stream, self.write.cancel)?;
        self.open = Some((stream, count + cells, last));
        Ok(())
    }

    fn close(&mut self) -> Result<()> {
        if let Some((stream, ..)) = self.open.take() {
            self.done.extend(stream.finish(self.write.cancel)?);
        }
        Ok(())
    }
}

/// The coordinates of the last cell of a batch; a tile that is copied has no cell in common with what follows.
fn last_of(piece: &Piece) -> Option<Cells> {
    let Piece::Cells(batch) = piece else { return None };
    let row = batch.count.saturating_sub(1);
    let dims = batch.dims.iter().map(|c| c.view().copy_range(row, batch.count)).collect();
    Some(Cells { count: batch.count - row, dims, attrs: Vec::new() })
}

/// Whether a piece begins at the place where the one before ended.
fn continues(last: Option<&Cells>, piece: &Piece) -> bool {
    let (Some(last), Piece::Cells(batch)) = (last, piece) else { return false };
    let first = |c: &Column| c.view().copy_range(0, batch.count.min(1));
    last.dims.iter().zip(&batch.dims).all(|(a, b)| a.view().values() == first(b).view().values())
}
