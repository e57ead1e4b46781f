//! Small fragments as sources of a merge of cells: the live cells of many in one source, sorted, places resolved among themselves.
//!
//! A read takes all of them as they are held for it ([`live_chunk`]). A merge of fragments reads each of them once and whole
//! ([`grouped`]): sorted in groups that fit a core's cache, side by side, so that it has a source per group to compare and not one per
//! fragment. A group's cells come as several chunks, so that memory is given back while the merge goes on.

use crate::base::{Budget, Id, Result};
use crate::fragment::{Description, FragmentOrder};
use crate::query::block::deletions::Deletions;
use crate::query::block::masks::Masks;
use crate::query::cells::chunk::{Chunk, Precedence, Queue};
use crate::query::overlay::{Entry, LiveCells, LiveOverlay, is_small, small_bytes};
use crate::query::request::{ReadContext, Request, Target};
use crate::schema::Schema;
use crate::tile::KeyLayout;
use std::cmp::Ordering;
use std::collections::HashSet;
use std::sync::Arc;

/// Cells of the small fragments of a group, about.
const GROUP_CELLS: u64 = 64 << 10;

/// Cells of a chunk of a group.
const CHUNK_CELLS: usize = 4 << 10;

/// A small fragment of more cells goes into a group only where there is memory for all.
const GROUPED_CELLS_MAX: u64 = 2 << 10;

/// Nor one that takes more than this share of a batch.
const GROUPED_SHARE: u64 = 16;

/// The live entries of the overlay in the box as one chunk.
pub(super) fn live_chunk(
    context: &ReadContext,
    schema: &Schema,
    layout: &KeyLayout,
    (live, deletions): (&LiveOverlay, &Deletions),
    request: &Request,
) -> Result<Option<Chunk>> {
    let kept = live_entries(context, schema, (live, deletions), request)?;
    if kept.is_empty() { Ok(None) } else { chunk_of(context, schema, layout, live, request, &kept).map(Some) }
}

/// What a merge takes in groups, of the fragments of `target`, and the ids of those that it streams: the large ones; and, if there is no memory
/// for all of the small ones, those of them that are larger than what is held of a stream, or of which that is not known.
pub(super) fn split_small(context: &ReadContext, target: &Target) -> (Vec<Arc<Description>>, HashSet<Id>) {
    // They are decoded, and then lie in chunks.
    let fits = small_bytes(context, target).is_some_and(|bytes| bytes <= context.overlay_bytes() / 2);
    let (row_bytes, varied) = (target.row_bytes(), target.has_varied());
    let held = |d: &Description| d.cells.saturating_mul(row_bytes) <= context.batch_bytes() / GROUPED_SHARE;
    let brief = |d: &Description| !varied && d.cells <= GROUPED_CELLS_MAX && held(d);
    let groups = |d: &&Arc<Description>| is_small(d) && (fits || brief(d));
    let (small, streamed): (Vec<_>, Vec<_>) = target.fragments.iter().partition(groups);
    (small.into_iter().cloned().collect(), streamed.into_iter().map(|d| d.id).collect())
}

/// Memory of the budget that the chunks of small fragments take.
#[derive(Debug)]
pub(super) struct Taken(Arc<Budget>, u64);

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.give(self.1);
    }
}

/// The live cells of `small`, fragments of `target` by ascending order, in the box: a queue per group of them, and the memory that they take.
pub(super) fn grouped(
    context: &ReadContext,
    (target, small): (&Target, Vec<Arc<Description>>),
    layout: &KeyLayout,
    deletions: &Deletions,
    request: &Request,
) -> Result<(Vec<Queue>, Taken)> {
    let masks = Masks::load(context, &target.fragments)?;
    let cells = small.iter().map(|d| d.cells).sum::<u64>();
    // The columns, coordinates and keys, and what each cell's fragment is.
    let taken =
        cells.saturating_mul(target.row_bytes() + layout.key_bytes() + size_of::<(FragmentOrder, bool)>() as u64);
    context.budget.take(taken);
    let taken = Taken(Arc::clone(&context.budget), taken);
    let queue = |group: Vec<Arc<Description>>| {
        let schema = &target.schema;
        let group = Target { array: target.array, schema: Arc::clone(schema), fragments: group };
        let live = LiveOverlay::of_all(context, &group, masks.clone())?;
        let kept = live_entries(context, schema, (&live, deletions), request)?;
        let mut queue = Queue::default();
        for cells in kept.chunks(CHUNK_CELLS) {
            queue.push(chunk_of(context, schema, layout, &live, request, cells)?);
        }
        Ok(queue)
    };
    let queues = context.pool.map(groups(small), context.cancel.as_ref(), queue)?;
    Ok((queues, taken))
}

/// CoalescedReads, of about [`GROUP_CELLS`] cells together.
fn groups(small: Vec<Arc<Description>>) -> Vec<Vec<Arc<Description>>> {
    let mut groups: Vec<Vec<Arc<Description>>> = Vec::new();
    let mut cells = u64::MAX;
    for description in small {
        cells = cells.saturating_add(description.cells);
        if cells > GROUP_CELLS {
            groups.push(Vec::new());
            cells = description.cells;
        }
        groups.last_mut().into_iter().for_each(|group| group.push(Arc::clone(&description)));
    }
    groups
}

/// The live entries in the box in global order, places resolved among themselves: without duplicates the newest entry of a place stays, with
/// them all cells newer than the newest tombstone, and that tombstone.
fn live_entries(
    context: &ReadContext,
    schema: &Schema,
    (live, deletions): (&LiveOverlay, &Deletions),
    request: &Request,
) -> Result<Vec<Entry>> {
    let LiveCells { keys, entries } = live.cells_in(context, schema, request.area())?;
    let mut kept: Vec<Entry> = Vec::new();
    let mut group: Vec<Entry> = Vec::new();
    let mut group_row = 0;
    for (row, entry) in entries.iter().enumerate() {
        if !deletions.is_empty() && live.source(*entry).is_some_and(|held| held.is_deleted(entry.row, deletions)) {
            continue;
        }
        if !group.is_empty() && keys.compare(row, &keys, group_row) != Ordering::Equal {
            resolve_group(live, schema, &mut group, &mut kept);
        }
        group_row = row;
        group.push(*entry);
    }
    resolve_group(live, schema, &mut group, &mut kept);
    live.count(context, kept.len());
    Ok(kept)
}

/// A chunk of entries, which are in global order.
fn chunk_of(
    context: &ReadContext,
    schema: &Schema,
    layout: &KeyLayout,
    live: &LiveOverlay,
    request: &Request,
    entries: &[Entry],
) -> Result<Chunk> {
    let coordinate = |d: usize| {
        let cell = |e: &Entry| live.source(*e)?.coordinate(d, e.row);
        entries.iter().filter_map(cell).collect::<Vec<u64>>()
    };
    let coords: Vec<Vec<u64>> = (0..schema.ndim()).map(coordinate).collect();
    let refs: Vec<&[u64]> = coords.iter().map(Vec::as_slice).collect();
    let standing = |e: &Entry| live.source(*e).map(|held| (held.order(e.row), held.is_tombstone()));
    let standing = entries.iter().filter_map(standing).collect();
    let cells: Vec<(u32, u32)> = entries.iter().map(|e| (e.source, e.row)).collect();
    let attrs = request.attrs.iter().filter_map(|p| schema.attrs().get(*p));
    let columns = attrs.map(|attr| live.column(context, attr, &cells)).collect::<Result<_>>()?;
    Ok(Chunk { keys: layout.keys(&refs), coords, columns, standing: Precedence::Rows(standing), sifted: None })
}

/// Keeps what matters of the entries of one place, which come oldest first.
fn resolve_group(live: &LiveOverlay, schema: &Schema, group: &mut Vec<Entry>, kept: &mut Vec<Entry>) {
    let is_tombstone = |e: &Entry| live.source(*e).is_some_and(|held| held.is_tombstone());
    let from = if schema.options().duplicates {
        group.iter().rposition(is_tombstone).unwrap_or(0)
    } else {
        group.len().saturating_sub(1)
    };
    kept.extend(group.drain(..).skip(from));
}
