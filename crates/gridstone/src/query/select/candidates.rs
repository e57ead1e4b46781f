//! Which blocks of sparse fragments a read with a condition looks at.
//!
//! A block in which no row can be selected is left out, unless it may hide an older row that is. Where a place holds one cell
//! at most, the newest row decides, also one that the condition does not select: so such a block stays, with its coordinates
//! alone, if an older block that may have a selected row reaches into its MBR. Tombstones stay for the same reason. Where
//! duplicates are allowed only tombstones hide.

use super::filter::Filter;
use super::known::Known;
use crate::base::{Counters, Result};
use crate::condition::Verdict;
use crate::fragment::FragmentOrder;
use crate::query::block::sparse::Unit;
use crate::query::sparse::SparseReader;
use crate::schema::Subarray;
use std::collections::HashSet;
use std::sync::atomic::Ordering::Relaxed;

/// What a block is read for.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRole {
    /// How many of its rows are selected, as far as statistics tell.
    pub(super) verdict: Verdict,
    /// Whether a row of it that is not selected may hide an older one that is.
    pub(super) hides: bool,
}

/// Pairs of blocks looked at before it is taken for granted that a block hides others: a few milliseconds.
const PAIRS_MAX: usize = 1 << 18;

/// Leaves those blocks of a planned read out that do not matter; gives the duties of the others.
pub(super) fn assign(sweep: &mut SparseReader, filter: &Filter) -> Result<Vec<BlockRole>> {
    let verdicts = verdicts(sweep, filter)?;
    let hidden = Hidden::new(sweep, &verdicts);
    let mut pairs = 0;
    let (mut duties, mut rows) = (Vec::with_capacity(verdicts.len()), Vec::with_capacity(verdicts.len()));
    for ((row, unit), verdict) in (0u32..).zip(&sweep.units).zip(verdicts) {
        let hides =
            (sweep.is_tombstones(unit) || !sweep.schema.options().duplicates) && hidden.by(sweep, unit, &mut pairs);
        if hides || verdict != Verdict::None {
            duties.push(BlockRole { verdict, hides });
            rows.push(row);
        }
    }
    if rows.len() < sweep.units.len() {
        keep(sweep, &rows);
    }
    Ok(duties)
}

fn verdicts(sweep: &SparseReader, filter: &Filter) -> Result<Vec<Verdict>> {
    let mut known = Known::default();
    // What is said of a tile goes for each of its blocks, which most often follow each other, unless it matters where they lie.
    let (alike, mut last) = (filter.dims.is_empty(), None);
    let one = |unit: &Unit| {
        if sweep.is_tombstones(unit) {
            return Ok(Verdict::None);
        }
        let tile = (unit.queue, unit.at.tile);
        if let Some((of, verdict)) = last
            && alike
            && of == tile
        {
            return Ok(verdict);
        }
        sweep.context.cancel.check()?;
        let verdict = known.verdict(filter, &sweep.schema, (sweep.fragment(unit)?, &unit.at), &sweep.request.sub)?;
        last = Some((tile, verdict));
        Ok(verdict)
    };
    sweep.units.iter().map(one).collect()
}

/// Keeps the units in `rows`, ascending, and counts what goes.
fn keep(sweep: &mut SparseReader, rows: &[u32]) {
    let tiles = |units: &[Unit]| units.iter().map(|u| (u.queue, u.at.tile)).collect::<HashSet<_>>().len() as u64;
    let before = tiles(&sweep.units);
    sweep.firsts = sweep.firsts.pick(rows);
    sweep.units = rows.iter().filter_map(|row| sweep.units.get(*row as usize).cloned()).collect();
    sweep.total = sweep.units.iter().map(|u| u.at.cells as u64).sum();
    let pruned = before - tiles(&sweep.units);
    sweep.context.counters.tiles_read.fetch_sub(pruned, Relaxed);
    Counters::add(&sweep.context.counters.tiles_pruned, pruned);
}

/// The places where rows may be selected, by the order of their fragments.
struct Hidden<'s> {
    /// Per queue: the order, the box of all, and the boxes of its blocks.
    queues: Vec<(FragmentOrder, Subarray, Vec<&'s Subarray>)>,
    /// The least order of the overlay's rows, and their box.
    overlay: Option<(FragmentOrder, Subarray)>,
}

impl<'s> Hidden<'s> {
    fn new(sweep: &'s SparseReader, verdicts: &[Verdict]) -> Self {
        let mut queues: Vec<(FragmentOrder, Option<Subarray>, Vec<&Subarray>)> =
            sweep.fragments.iter().map(|f| (f.description().order, None, Vec::new())).collect();
        for (unit, _) in sweep.units.iter().zip(verdicts).filter(|(_, verdict)| **verdict != Verdict::None) {
            if let Some((_, all, boxes)) = queues.get_mut(unit.queue) {
                *all = Some(all.take().map_or_else(|| unit.at.bounds.clone(), |all| all.union(&unit.at.bounds)));
                boxes.push(&unit.at.bounds);
            }
        }
        let queues = queues.into_iter().filter_map(|(order, all, boxes)| Some((order, all?, boxes))).collect();
        Self { queues, overlay: sweep.overlay_reach() }
    }

    /// Whether rows of `unit` may hide older ones. Past [`PAIRS_MAX`] pairs, counted in `pairs`, that is assumed.
    fn by(&self, sweep: &SparseReader, unit: &Unit, pairs: &mut usize) -> bool {
        let Some(order) = sweep.fragments.get(unit.queue).map(|f| f.description().order) else { return true };
        let bounds = &unit.at.bounds;
        if self.overlay.as_ref().is_some_and(|(least, reach)| *least < order && reach.intersects(bounds)) {
            return true;
        }
        self.queues.iter().filter(|(older, all, _)| *older < order && all.intersects(bounds)).any(|(_, _, boxes)| {
            *pairs += boxes.len();
            *pairs > PAIRS_MAX || boxes.iter().any(|b| b.intersects(bounds))
        })
    }
}
