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
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Fragment, FragmentOrder};
use crate::query::block::sparse::Unit;
use crate::query::sparse::SparseReader;
use crate::schema::Subarray;
use std::cell::OnceCell;
use std::collections::HashSet;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// What a block is read for.
#[derive(Debug, Clone, Copy)]
pub(super) struct BlockRole {
    /// How many of its rows are selected, as far as statistics tell.
    pub(super) verdict: Verdict,
    /// Whether a row of it that is not selected may hide an older one that is.
    pub(super) hides: bool,
}

/// Leaves those blocks of a planned read out that do not matter; gives the duties of the others.
pub(super) fn assign(sweep: &mut SparseReader, filter: &Filter) -> Result<Vec<BlockRole>> {
    let verdicts = verdicts(sweep, filter)?;
    let (mut duties, mut rows) = (Vec::with_capacity(verdicts.len()), Vec::with_capacity(verdicts.len()));
    {
        let hidden = Hidden::new(sweep, &verdicts);
        let queues = hidden.index();
        for ((row, unit), verdict) in (0u32..).zip(&sweep.units).zip(verdicts) {
            let may_hide = sweep.is_tombstones(unit) || !sweep.schema.options().duplicates;
            let hides = may_hide && hidden.by(sweep, unit, &queues);
            if hides || verdict != Verdict::None {
                duties.push(BlockRole { verdict, hides });
                rows.push(row);
            }
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
    sweep.keep_units(rows);
    let pruned = before - tiles(&sweep.units);
    sweep.context.counters.tiles_read.fetch_sub(pruned, Relaxed);
    Counters::add(&sweep.context.counters.tiles_pruned, pruned);
}

/// So many nodes of an index of boxes are looked at for one block, less than a millisecond, before it is taken for granted that it hides
/// others. Among blocks that are disjoint about twenty are.
const STEPS_MAX: usize = 1 << 12;

/// The blocks of a fragment in which rows may be selected.
struct Blocks<'s> {
    order: FragmentOrder,
    /// Around them all.
    hull: Subarray,
    boxes: Vec<&'s Subarray>,
    /// Made when something newer meets the hull.
    index: OnceCell<BoxIndex<'s>>,
}

impl<'s> Blocks<'s> {
    fn index(&self) -> &BoxIndex<'s> {
        let item = |bounds: &&'s Subarray| Item { bounds, orders: (self.order, self.order), size: 0, place: 0 };
        self.index.get_or_init(|| BoxIndex::new(self.boxes.iter().map(item).collect()))
    }
}

/// The places where rows may be selected.
struct Hidden<'s> {
    /// Per fragment that has some.
    queues: Vec<Blocks<'s>>,
    /// The least order of the overlay's rows, and their box.
    overlay: Option<(FragmentOrder, Subarray)>,
}

impl<'s> Hidden<'s> {
    fn new(sweep: &'s SparseReader, verdicts: &[Verdict]) -> Self {
        let mut queues: Vec<Vec<&Subarray>> = vec![Vec::new(); sweep.fragments.len()];
        for (unit, _) in sweep.units.iter().zip(verdicts).filter(|(_, verdict)| **verdict != Verdict::None) {
            queues.get_mut(unit.queue).into_iter().for_each(|boxes| boxes.push(&unit.at.bounds));
        }
        let blocks = |(fragment, boxes): (&Arc<Fragment>, Vec<&'s Subarray>)| {
            let hull = boxes.iter().copied().cloned().reduce(|a, b| a.union(&b))?;
            Some(Blocks { order: fragment.description().order, hull, boxes, index: OnceCell::new() })
        };
        let queues = sweep.fragments.iter().zip(queues).filter_map(blocks).collect();
        Self { queues, overlay: sweep.overlay_reach() }
    }

    /// The hulls of the fragments' blocks.
    fn index(&self) -> BoxIndex<'_> {
        let items = self.queues.iter().enumerate();
        let items = items.map(|(place, b)| Item { bounds: &b.hull, orders: (b.order, b.order), size: 0, place });
        BoxIndex::new(items.collect())
    }

    /// Whether rows of `unit` may hide older ones; `queues` is [`Hidden::index`].
    fn by(&self, sweep: &SparseReader, unit: &Unit, queues: &BoxIndex<'_>) -> bool {
        let Some(order) = sweep.fragments.get(unit.queue).map(|f| f.description().order) else { return true };
        let bounds = &unit.at.bounds;
        if self.overlay.as_ref().is_some_and(|(least, reach)| *least < order && reach.intersects(bounds)) {
            return true;
        }
        let meets =
            |blocks: &Blocks<'_>| blocks.index().any_within(STEPS_MAX, bounds, |_| true, |_| true).unwrap_or(true);
        let hit = |item: &Item<'_>| item.orders.0 < order && self.queues.get(item.place).is_some_and(meets);
        queues.any_within(STEPS_MAX, bounds, |s| s.oldest < order, hit).unwrap_or(true)
    }
}
