//! The overlay's cells on top of a region of a dense array: painted where they lie between other fragments, put straight into the
//! result where all that is left of them is the newest of each place.

use super::canvas::Canvas;
use super::plan::DensePlan;
use super::result::ResultColumn;
use crate::base::Result;
use crate::fragment::FragmentOrder;
use crate::query::overlay::{HeldRows, LiveOverlay};
use crate::query::request::ReadContext;
use crate::schema::{KeyRange, Subarray};
use crate::tile::{KeyLayout, Strided};
use std::cmp::Ordering;

/// An overlay entry that falls on a region.
#[derive(Debug, Clone, Copy)]
pub(in crate::query) struct OverlayCell {
    pub(in crate::query) order: FragmentOrder,
    place: u64,
    source: u32,
    row: u32,
}

impl OverlayCell {
    /// What entries are painted by.
    pub(in crate::query) fn age(&self) -> impl Ord + use<> {
        (self.order, self.source, self.row)
    }
}

impl DensePlan {
    /// The live overlay entries in `region`, which lies in one space tile, with their places as `to` gives them: in global order,
    /// those of one cell oldest first.
    pub(in crate::query) fn overlay_cells(&self, region: &Subarray, to: &Strided) -> Result<Vec<OverlayCell>> {
        let Some((live, cells)) = &self.overlay else { return Ok(Vec::new()) };
        let layout = KeyLayout::new(&self.schema);
        let corner = |pick: fn(&KeyRange) -> u64| {
            let corner: Vec<[u64; 1]> = region.ranges().iter().map(|r| [pick(r)]).collect();
            layout.keys(&corner.iter().map(<[u64; 1]>::as_slice).collect::<Vec<_>>())
        };
        // In a space tile a box's first and last cells in global order are its corners.
        let (first, last) = (corner(|r| r.lo), corner(|r| r.hi));
        let keys = &cells.keys;
        let from = keys.lower_bound(0, &first, 0);
        let (mut found, mut cell) = (Vec::new(), Vec::with_capacity(region.ndim()));
        for row in from..keys.len() {
            if keys.compare(row, &last, 0) == Ordering::Greater {
                break;
            }
            let Some(entry) = cells.entries.get(row) else { break };
            let Some(held) = live.source(*entry) else { continue };
            let order = held.look(entry.row, &mut cell);
            if region.contains(cell.iter().copied()) {
                let offset = cell.iter().zip(region.ranges()).map(|(k, r)| k - r.lo);
                found.push(OverlayCell { order, place: to.place(offset), source: entry.source, row: entry.row });
            }
        }
        Ok(found)
    }

    /// Paints overlay cells, which come by ascending [age](OverlayCell::age).
    pub(super) fn paint_overlay(
        &self,
        context: &ReadContext,
        cells: &[OverlayCell],
        canvases: &mut [Canvas<'_>],
    ) -> Result<()> {
        let Some((live, _)) = &self.overlay else { return Ok(()) };
        live.count(context, cells.len());
        for run in cells.chunk_by(|a, b| a.source == b.source) {
            let Some(held) = source_of(live, run) else { continue };
            let rows: Vec<u32> = run.iter().map(|c| c.row).collect();
            for canvas in canvases.iter_mut() {
                if held.is_tombstone() {
                    canvas.clear_cells(run.iter().map(|c| c.place));
                } else if let Some(values) = held.values(context, canvas.attr(), &rows)? {
                    let row = |(n, c): (usize, &OverlayCell)| (c.place, values.at(n, c.row));
                    canvas.paint_cells(&values.column, run.iter().enumerate().map(row));
                }
            }
        }
        Ok(())
    }

    /// Puts overlay cells, which come as [`DensePlan::overlay_cells`] gives them, on top of what was delivered. They are not counted
    /// here, where one attribute is seen.
    pub(super) fn put_overlay(
        &self,
        context: &ReadContext,
        cells: &[OverlayCell],
        result: &ResultColumn<'_>,
    ) -> Result<()> {
        let Some((live, _)) = &self.overlay else { return Ok(()) };
        for run in newest_by_source(live, cells, result.attr.id()).chunk_by(|a, b| a.source == b.source) {
            let Some(held) = source_of(live, run) else { continue };
            let rows: Vec<u32> = run.iter().map(|c| c.row).collect();
            let values = held.values(context, result.attr, &rows)?;
            for (n, cell) in run.iter().enumerate() {
                let value = values
                    .as_ref()
                    .map_or(result.attr.fill(), |values| values.column.view().value(values.at(n, cell.row) as usize));
                // SAFETY: the cell lies in the region of one call of `deliver`, which alone writes there.
                unsafe { result.slots.put(cell.place, value) };
            }
        }
        Ok(())
    }
}

fn source_of<'a>(live: &'a LiveOverlay, run: &[OverlayCell]) -> Option<&'a HeldRows> {
    Some(live.sources().get(run.first()?.source as usize)?.as_ref())
}

/// Of each place the newest of `cells` that says something of the attribute: has a value of it, or deletes. By source; those of
/// a source in global order.
///
/// With one entry left for a place it is the same which source is put first, so many entries are not sorted: they are dealt to
/// their sources in one pass.
fn newest_by_source(live: &LiveOverlay, cells: &[OverlayCell], attr: u32) -> Vec<OverlayCell> {
    // CoalescedReads often have one source.
    let mut known = None;
    let mut speaks = |cell: &OverlayCell| {
        let (_, speaks) = *known.filter(|(source, _)| *source == cell.source).get_or_insert_with(|| {
            let held = live.sources().get(cell.source as usize);
            (cell.source, held.is_some_and(|held| held.is_tombstone() || held.has(attr)))
        });
        known = Some((cell.source, speaks));
        speaks
    };
    let places = cells.chunk_by(|a, b| a.place == b.place);
    let newest = places.filter_map(|place| place.iter().rev().find(|cell| speaks(cell)).copied());
    let mut newest: Vec<OverlayCell> = newest.collect();
    let (least, most) = newest.iter().fold((u32::MAX, 0), |(lo, hi), c| (lo.min(c.source), hi.max(c.source)));
    let sources = most.saturating_sub(least) as usize + 1;
    if sources > newest.len() {
        // Few entries of many sources.
        newest.sort_by_key(|c| c.source);
        return newest;
    }
    let mut starts = vec![0usize; sources + 1];
    for cell in &newest {
        if let Some(count) = starts.get_mut((cell.source - least) as usize + 1) {
            *count += 1;
        }
    }
    starts.iter_mut().fold(0, |sum, start| {
        *start += sum;
        *start
    });
    let mut dealt = newest.clone();
    for cell in newest {
        let Some(start) = starts.get_mut((cell.source - least) as usize) else { continue };
        if let Some(slot) = dealt.get_mut(*start) {
            *slot = cell;
        }
        *start += 1;
    }
    dealt
}
