//! Merges of sparse fragments: runs of neighbours in order, which are legal wherever they lie.

use super::{FACTOR, FAN_IN, Merge, Part, PlanLimits, Run, TIER_BYTES, between, of_cells, part, related};
use crate::base::Id;
use crate::fragment::Description;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::schema::Subarray;
use std::collections::HashSet;
use std::sync::Arc;

/// A fragment is small beside one that has this many times its bytes.
const SMALL_SHARE: u128 = 100;

/// The largest number of rounds that search for what must go with the fragments of a box.
const ROUNDS_MAX: usize = 8;

/// Sparse fragments with the same attributes that have only tombstones between them.
pub(super) fn neighbours(fragments: &[Arc<Description>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for fragment in fragments {
        match part(fragment) {
            Some(Part::Clears) => {}
            Some(Part::Box) | None => open = false,
            Some(Part::Cells) => {
                let same = |run: &&mut Run| open && run.last().is_some_and(|d| d.attrs == fragment.attrs);
                match runs.last_mut().filter(same) {
                    Some(run) => run.push(fragment.clone()),
                    None => runs.push(vec![fragment.clone()]),
                }
                open = true;
            }
        }
    }
    runs
}

/// The memory in bytes that a fragment takes while it is merged. A fragment larger than a share is streamed, so it may
/// be merged with a few others.
pub(super) fn weight(fragment: &Description, limits: PlanLimits) -> u64 {
    let whole = fragment.cells.saturating_mul(limits.cell_bytes).saturating_add(fragment.location.len);
    whole.min(limits.memory_bytes / FAN_IN as u64)
}

/// Splits a run into portions that fit into memory. The outputs of an earlier merge, which share an order, are not
/// separated where something older goes with the first of them.
pub(super) fn portions(run: Run, limits: PlanLimits) -> Vec<Run> {
    let mut portions: Vec<Run> = Vec::new();
    let mut held = u64::MAX;
    for siblings in run.chunk_by(|a, b| a.order == b.order) {
        let needed = siblings.iter().fold(0u64, |sum, d| sum.saturating_add(weight(d, limits)));
        if held.saturating_add(needed) <= limits.memory_bytes {
            held += needed;
            if let Some(portion) = portions.last_mut() {
                portion.extend_from_slice(siblings);
            }
            continue;
        }
        held = u64::MAX;
        for fragment in siblings {
            let needed = weight(fragment, limits);
            if held.saturating_add(needed) > limits.memory_bytes {
                portions.push(Vec::new());
                held = 0;
            }
            held += needed;
            if let Some(portion) = portions.last_mut() {
                portion.push(fragment.clone());
            }
        }
    }
    portions
}

/// The tier of a size in bytes.
pub(super) fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES).checked_ilog(FACTOR).map_or(0, |tier| tier + 1)
}

/// Groups of neighbours of which [`FAN_IN`] or more are in the same tier or below, from the smallest tier on; the
/// groups of a tier count as one fragment in the next.
pub(super) fn tiers(run: Run, limits: PlanLimits) -> Vec<Run> {
    tiers_of(run.chunk_by(|a, b| a.order == b.order).map(<[_]>::to_vec).collect(), limits)
}

/// Like [`tiers`], for fragments that are in groups already.
pub(super) fn tiers_of(groups: Vec<Run>, limits: PlanLimits) -> Vec<Run> {
    let sum = |group: &Run| group.iter().map(|d| d.location.len).sum::<u64>();
    let sized = |group: Run| (sum(&group), group);
    let mut groups: Vec<(u64, Run)> = groups.into_iter().map(sized).collect();
    let highest = groups.iter().map(|(bytes, _)| tier(*bytes)).max().unwrap_or(0);
    for level in 0..=highest {
        let mut next: Vec<(u64, Run)> = Vec::with_capacity(groups.len());
        for stretch in groups.chunk_by(|a, b| (tier(a.0) <= level) == (tier(b.0) <= level)) {
            let low = stretch.first().is_some_and(|(bytes, _)| tier(*bytes) <= level);
            let (sum, largest) = stretch.iter().fold((0, 0), |(s, l), (b, _)| (s + b, l.max(*b)));
            // A large fragment is not rewritten because of a few small ones.
            if low && stretch.len() >= FAN_IN && largest <= (sum - largest) * FACTOR {
                let all = stretch.iter().flat_map(|(_, group)| group).cloned().collect();
                next.extend(portions(all, limits).into_iter().map(sized));
            } else {
                next.extend(stretch.iter().cloned());
            }
        }
        groups = next;
    }
    groups.into_iter().map(|(_, group)| group).collect()
}

/// The adjacent small fragments of each run. A fragment is small if it fits into a record, or has a hundredth of the
/// bytes of one that it touches.
pub(super) fn small(all: &[Arc<Description>], runs: Vec<Run>, limits: PlanLimits) -> Vec<Run> {
    let held = all.iter().filter(|d| part(d) != Some(Part::Clears)).enumerate();
    let items = held.map(|(place, d)| Item {
        bounds: &d.bounds,
        orders: (d.order, d.order),
        size: u128::from(d.location.len),
        place,
    });
    let index = BoxIndex::new(items.collect());
    let is_small = |d: &Arc<Description>| {
        let large = u128::from(d.location.len) * SMALL_SHARE;
        d.is_small() || index.any(&d.bounds, |s| s.size_max >= large, |other| other.size >= large)
    };
    let mut made = Vec::new();
    for run in runs {
        let marked: Vec<(bool, Arc<Description>)> = run.into_iter().map(|d| (is_small(&d), d)).collect();
        for stretch in marked.chunk_by(|a, b| a.0 == b.0) {
            if stretch.first().is_some_and(|(small, _)| *small) {
                made.extend(portions(stretch.iter().map(|(_, d)| d.clone()).collect(), limits));
            }
        }
    }
    made
}

/// The fragments of a run that touch `sub`, and those that must go with them: newer ones, up to the last of them, that
/// touch them.
pub(super) fn within(run: Run, sub: &Subarray, limits: PlanLimits) -> Vec<Run> {
    let mut taken: Vec<bool> = run.iter().map(|d| d.bounds.intersects(sub)).collect();
    for round in 0.. {
        let inputs: Vec<Item<'_>> = run.iter().zip(&taken).filter(|(_, t)| **t).map(|(d, _)| item(d, 0)).collect();
        let Some(last) = inputs.iter().map(|item| item.orders.1).max() else { return Vec::new() };
        let index = BoxIndex::new(inputs);
        let mut grew = false;
        // A fragment leads to another again and again: all in between are neighbours, and so legal.
        let all = round == ROUNDS_MAX;
        for (d, taken) in run.iter().zip(&mut taken) {
            if !*taken && d.order <= last && (all || index.any_older(&d.bounds, d.order)) {
                (*taken, grew) = (true, true);
            }
        }
        if !grew {
            break;
        }
    }
    portions(run.into_iter().zip(taken).filter(|(_, t)| *t).map(|(d, _)| d).collect(), limits)
}

fn item(d: &Description, place: usize) -> Item<'_> {
    Item { bounds: &d.bounds, orders: (d.order, d.order), size: u128::from(d.location.len), place }
}

/// Whether `inputs`, which ascend, can be merged without everything else of `all`.
fn is_legal(all: &[Arc<Description>], inputs: &[Arc<Description>]) -> bool {
    let (Some(first), Some(last)) = (inputs.first(), inputs.last()) else { return false };
    let taken: HashSet<Id> = inputs.iter().map(|d| d.id).collect();
    let index = BoxIndex::new(inputs.iter().map(|d| item(d, 0)).collect());
    between(all, first.order, last.order)
        .iter()
        .filter(|d| part(d) != Some(Part::Clears) && !taken.contains(&d.id) && related(d, first))
        .all(|d| !index.any_older(&d.bounds, d.order))
}

/// The run, or the rest of it if outputs of an earlier merge, which share its last order, were separated where that
/// matters.
pub(super) fn untied(mut run: Run, all: &[Arc<Description>]) -> Option<Run> {
    let last = run.last()?.order;
    let siblings = |list: &[Arc<Description>]| list.iter().rev().take_while(|d| d.order == last).count();
    let tied = all.get(..all.partition_point(|d| d.order <= last)).unwrap_or_default();
    if siblings(tied) > siblings(&run) && !is_legal(all, &run) {
        run.retain(|d| d.order != last);
    }
    (run.len() > 1).then_some(run)
}

/// The merge of these sparse fragments, if it is legal.
pub(super) fn of(all: &[Arc<Description>], inputs: Run) -> Option<Merge> {
    let first = inputs.first()?;
    let alike = inputs.iter().all(|d| part(d) == Some(Part::Cells) && d.attrs == first.attrs);
    let legal = alike && is_legal(all, &inputs);
    legal.then(|| of_cells(inputs))
}
