//! Merges fragments: reads their cells as a user would, and writes them into new fragments, which replace them.
//!
//! - Cells stream from the inputs in global order into fragments of about the target size. Where several inputs have a
//!   cell, the newest one is kept, or all where the array allows duplicates; tombstones are applied.
//! - Boxes are written tile by tile, cut along tiles into fragments of about the target size. Where they have a deleted
//!   cell whose attributes cannot be null, tombstones are left over them.
//! - Fragments of tombstones become one.
//!
//! Tiles that only one input has are copied as they are stored. Nothing is visible before the caller commits the
//! replacement.

use super::plan::{Merge, attrs_seen, has_dropped};
use crate::base::{Error, Id, Part, Result, Silent};
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind, Staged};
use crate::query::{
    ReadContext, Rewrite, RewriteCells, Target, WriteContext, dense_as_cells, merge_in_passes, merge_tombstones,
    preload_small, rewrite_cells, rewrite_dense,
};
use crate::schema::{Extent, KeyRange, Schema, Subarray};
use crate::store::{Operation, Removed};
use std::sync::Arc;

/// Merged fragments that are not referenced yet.
#[derive(Debug)]
pub struct Merged {
    /// The fragments that they replace.
    pub removed: Vec<Removed>,
    /// The merged fragments, all of the greatest order of those removed, and tombstones left over them; none if every
    /// cell is deleted.
    pub fragments: Vec<Staged>,
    /// Newer tombstones that have been applied and are not needed any more.
    pub retired: Vec<Removed>,
}

impl Merged {
    /// The operations that commit the replacement.
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

/// The result of a merge.
#[derive(Debug, Default)]
pub struct Written {
    /// The merged fragments, and tombstones left over them.
    pub done: Vec<Staged>,
    /// Whether a box has other values than before.
    changed: bool,
    /// Fragments that only the merge itself reads; their files are deleted when it has ended.
    pub scratch: Vec<Staged>,
}

/// Runs `merge` on the array of `target` (its fragments do not matter); fragments are cut at about `target_bytes`.
/// `None` if there is nothing to do: the input is a single fragment of the store's own, and nothing of it is deleted or dropped.
///
/// `written` lists what was written after an error too; the caller deletes those files.
pub fn merge(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    target_bytes: u64,
    written: &mut Written,
) -> Result<Option<Merged>> {
    let cells_max = cells_max(merge, target_bytes);
    if merge.is_of_tombstones() {
        written.done.extend(merge_tombstones(read, write, &target.schema, &merge.inputs)?);
    } else if merge.is_of_cells() {
        merge_cells(read, write, target, merge, cells_max, written)?;
    } else {
        merge_boxes(read, write, target, merge, cells_max, written)?;
    }
    let changed = written.changed;
    let done = &mut written.done;
    let is_left = |d: &Description| !merge.is_of_tombstones() && d.kind == FragmentKind::Tombstones;
    let cells: u64 = done.iter().map(|staged| &staged.description).filter(|d| !is_left(d)).map(|d| d.cells).sum();
    let alike = !changed && !merge.inputs.iter().any(|d| has_dropped(&target.schema, d));
    // A value that was the fill before it was deleted changes nothing, but the tombstone goes: the one left over must come.
    let buries = merge.ends_tombstones && done.iter().any(|staged| is_left(&staged.description));
    let comes_home = merge.inputs.iter().any(|d| d.is_external());
    let is_same = merge.inputs.len() == 1 && cells == merge.cells() && merge.retired.is_empty() && alike;
    if is_same && !buries && !comes_home {
        return Ok(None);
    }
    let order = merge.order();
    for description in done.iter_mut().map(|staged| &mut staged.description) {
        description.order = if is_left(description) { order.leftover() } else { order };
    }
    // A mask is removed together with the fragment that it lies over, in one step.
    let (newer, older): (Vec<_>, Vec<_>) =
        merge.retired.iter().partition(|d| d.order > order && d.kind != FragmentKind::Mask);
    let removed = merge.inputs.iter().chain(older).map(|d| Removed::of(d)).collect();
    let retired = newer.into_iter().map(|d| Removed::of(d)).collect();
    Ok(Some(Merged { removed, fragments: done.clone(), retired }))
}

/// Whether a merge would return no fewer fragments than it takes: they are the parts of an earlier merge, and nothing
/// was written or deleted there since.
pub fn is_done(schema: &Schema, merge: &Merge, target_bytes: u64) -> bool {
    let (inputs, cells_max) = (&merge.inputs, cells_max(merge, target_bytes));
    let siblings = inputs.len() > 1 && inputs.iter().all(|d| d.order == merge.order() && !has_dropped(schema, d));
    let comes_home = inputs.iter().any(|d| d.is_external());
    if !siblings || comes_home || !merge.applied.is_empty() || merge.as_cells || merge.is_of_tombstones() {
        return false;
    }
    let made = match merge.is_of_cells() {
        true => usize::try_from(merge.cells().div_ceil(cells_max)).unwrap_or(usize::MAX),
        false => merge.boxes.iter().map(|bounds| parts(schema, bounds, cells_max).len()).sum(),
    };
    made >= inputs.len()
}

/// The number of cells in a fragment of about this many bytes.
fn cells_max(merge: &Merge, target_bytes: u64) -> u64 {
    (target_bytes / merge.bytes_per_cell()).max(1)
}

/// The approximate memory in bytes that a merge takes: the tiles in progress, or a batch of cells; data decoded once; a
/// stripe.
pub fn memory_bytes(merge: &Merge, context: &ReadContext, target: &Target) -> u64 {
    let (limit, row) = (context.budget.limit_bytes(), target.row_bytes());
    let small = sources(merge)
        .iter()
        .filter(|d| merge.as_cells || d.kind != FragmentKind::Dense)
        .map(|d| d.cells * row)
        .sum::<u64>();
    let stripe = merge.bytes_written().min(limit / 4);
    let work = if merge.is_of_cells() {
        merge.cells().saturating_mul(row).min(limit / 8)
    } else {
        let dims = target.schema.dims().iter();
        let tile = dims.map(|d| match d.extent() {
            Extent::Cells(n) => u128::from(n),
            _ => d.range().count(),
        });
        let cells =
            u64::try_from(tile.fold(1u128, u128::saturating_mul)).unwrap_or(u64::MAX).min(merge.cells_written());
        cells.saturating_mul(2 * target.cell_bytes()).saturating_mul(context.pool.threads() as u64 + 1)
    };
    work.saturating_add(small.min(limit / 4)).saturating_add(stripe)
}

/// All fragments that a merge reads, oldest order first.
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
    written: &mut Written,
) -> Result<()> {
    let schema = &target.schema;
    let attrs = merge.inputs.first().map(|d| attrs_seen(schema, d)).unwrap_or_default();
    let places = places_of(schema, &attrs)?;
    let mut fragments = sources(merge);
    let apart;
    let mut read = read;
    if merge.as_cells {
        // As in a merge of boxes.
        apart = read.with_private_cache();
        read = &apart;
        let silent = WriteContext { progress: &Silent, ..write.clone() };
        fragments = dense_as_cells(read, &silent, target, &places, &fragments, &mut written.scratch)?;
    }
    let inputs = Target { fragments, ..target.clone() };
    rewrite_cells(read, write, &RewriteCells { target: &inputs, places, cells_max }, &mut written.done)
}

fn merge_boxes(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    merge: &Merge,
    cells_max: u64,
    written: &mut Written,
) -> Result<()> {
    let most = merge.inputs.iter().map(|d| attrs_seen(&target.schema, d)).max_by_key(Vec::len);
    let places = places_of(&target.schema, &most.unwrap_or_default())?;
    let mut fragments = sources(merge);
    let apart;
    let mut read = read;
    if !preload_small(read, &Target { fragments: fragments.clone(), ..target.clone() })? {
        // These files are deleted afterwards, so no shared cache may hold any of their content.
        apart = read.with_private_cache();
        read = &apart;
        // Progress counts the boxes below.
        let silent = WriteContext { progress: &Silent, ..write.clone() };
        fragments = merge_in_passes(read, &silent, target, fragments, &mut written.scratch)?;
        preload_small(read, &Target { fragments: fragments.clone(), ..target.clone() })?;
    }
    let items = fragments.iter().enumerate();
    let items = items.map(|(place, d)| Item { bounds: &d.bounds, orders: (d.order, d.order), size: 0, place });
    let index = BoxIndex::new(items.collect());
    let touching = |sub: &Subarray| {
        let mut found = Vec::new();
        index.each(sub, |item| found.push(item.place));
        found.sort_unstable();
        found.into_iter().filter_map(|place| fragments.get(place)).cloned().collect()
    };
    let (mut before, total) = (0, merge.cells_written());
    for bounds in &merge.boxes {
        for sub in parts(&target.schema, bounds, cells_max) {
            let (cells, progress) = (sub.cells() as u64, Part { whole: write.progress, before, total });
            let write = WriteContext { progress: &progress, ..write.clone() };
            let job = Rewrite { target, touching: &touching, sub, places: places.clone() };
            let made = rewrite_dense(read, &write, &job, &mut written.done)?;
            written.changed |= made.changed;
            written.done.push(made.staged);
            before += cells;
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

/// Both halves of a box, cut at a tile boundary across the slowest dimension that has one.
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

/// The indexes in the schema of attributes.
fn places_of(schema: &Schema, ids: &[u32]) -> Result<Vec<usize>> {
    let place = |id: &u32| schema.attrs().iter().position(|a| a.id() == *id);
    let places: Vec<usize> = ids.iter().filter_map(place).collect();
    if places.len() == ids.len() { Ok(places) } else { Err(Error::corruption("fragments of unknown attributes")) }
}
