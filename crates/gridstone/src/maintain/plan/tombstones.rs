//! Tombstones in a plan: which ones it applies, which fragments it rewrites because of them, and which ones can be
//! removed.

use super::super::cover::{Step, left};
use super::{HOLES_MAX, Merge, Part, Plan, Strategy, UPDATED_SHARE, between, part};
use crate::base::Id;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::schema::{Schema, Subarray};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The largest number of newer tombstones that are applied to one merge: reading more would be most of the work.
const NEWER_MAX: usize = 1_024;
/// The largest number of pairs of tombstones and merges that are checked when tombstones are swept.
const PAIRS_MAX: usize = 1 << 22;

type All<'a> = &'a [Arc<Description>];

fn item(d: &Description, place: usize) -> Item<'_> {
    // The number of cells in a deleted box is unknown: any number.
    let size = if d.kind == FragmentKind::Deletion { u128::from(u64::MAX) } else { u128::from(d.cells) };
    Item { bounds: &d.bounds, orders: (d.order, d.order), size, place }
}

fn is_tombstone(d: &Description) -> bool {
    part(d) == Some(Part::Clears)
}

/// The plan of `merges`, with the tombstones that they apply and those that can be removed, and merges of single
/// fragments whose cells tombstones delete.
pub(super) fn applied(schema: &Schema, all: All<'_>, mut merges: Vec<Merge>, strategy: &Strategy) -> Plan {
    let clears: Vec<Item<'_>> =
        all.iter().enumerate().filter(|(_, d)| is_tombstone(d)).map(|(p, d)| item(d, p)).collect();
    if clears.is_empty() {
        return Plan { merges, swept: Vec::new() };
    }
    let purges = !matches!(strategy, Strategy::Tiered | Strategy::Updates);
    let index = BoxIndex::new(clears);
    let values =
        BoxIndex::new(all.iter().enumerate().filter(|(_, d)| !is_tombstone(d)).map(|(p, d)| item(d, p)).collect());
    for merge in &mut merges {
        if merge.is_of_cells() {
            apply(all, &index, merge, purges);
        } else if purges {
            cut_out(all, &index, merge);
            erase(all, &index, merge);
        }
    }
    let mut alone = Vec::new();
    if matches!(strategy, Strategy::Tiered | Strategy::All | Strategy::Box(_)) {
        alone = singles(all, &merges, &index, strategy);
        alone.extend(pierced(schema, all, &merges, &index, strategy));
    }
    for merge in merges.iter_mut().chain(&mut alone) {
        merge.retired = retired(all, &values, merge);
    }
    let known: HashSet<Id> = merges.iter().chain(&alone).flat_map(|m| &m.retired).map(|d| d.id).collect();
    let mut swept = swept(all, &merges, &alone);
    let asked: HashSet<Id> = merges.iter().chain(&alone).flat_map(|m| &m.applied).map(|d| d.id).collect();
    let only = matches!(strategy, Strategy::Fragments(_) | Strategy::Box(_));
    swept.retain(|d| !known.contains(&d.id) && (!only || asked.contains(&d.id)));
    let ended: HashSet<Id> = swept.iter().map(|d| d.id).collect();
    for merge in merges.iter_mut().chain(&mut alone) {
        merge.ends_tombstones = merge.applied.iter().any(|d| ended.contains(&d.id));
    }
    if *strategy == Strategy::Tiered {
        // A fragment is rewritten only if that removes a tombstone; else it would be rewritten again and again.
        let goes: HashSet<Id> = swept.iter().map(|d| d.id).chain(known.iter().copied()).collect();
        alone.retain(|m| m.applied.iter().any(|d| goes.contains(&d.id)));
    }
    Plan { merges: merges.into_iter().chain(alone).collect(), swept }
}

/// Adds to a merge of cells the tombstones that touch an older input. Those newer than all inputs are included if
/// `newer` and they are few.
fn apply(all: All<'_>, clears: &BoxIndex<'_>, merge: &mut Merge, newer: bool) {
    let (Some(first), Some(last)) = (merge.inputs.first().map(|d| d.order), merge.inputs.last().map(|d| d.order))
    else {
        return;
    };
    let inputs = BoxIndex::new(merge.inputs.iter().map(|d| item(d, 0)).collect());
    let touches = |d: &Arc<Description>| is_tombstone(d) && inputs.any_older(&d.bounds, d.order);
    merge.applied = between(all, first, last).iter().filter(|d| touches(d)).cloned().collect();
    let Some(hull) = merge.inputs.iter().map(|d| d.bounds.clone()).reduce(|a, b| a.union(&b)).filter(|_| newer) else {
        return;
    };
    let mut found = Vec::new();
    let many = clears.any(
        &hull,
        |s| s.newest > last,
        |item| {
            if item.orders.0 > last {
                found.push(item.place);
            }
            found.len() > NEWER_MAX
        },
    );
    if !many {
        found.sort_unstable();
        merge.applied.extend(found.into_iter().filter_map(|p| all.get(p)).filter(|d| touches(d)).cloned());
    }
}

/// Cuts the boxes that were deleted since out of a merge of dense fragments, as long as few boxes result.
fn cut_out(all: All<'_>, clears: &BoxIndex<'_>, merge: &mut Merge) {
    let Some(hull) = merge.boxes.iter().cloned().reduce(|a, b| a.union(&b)) else { return };
    let holes = newer_holes(all, clears, (&hull, merge.order()));
    let touching = holes.iter().filter(|d| merge.boxes.iter().any(|b| b.intersects(&d.bounds)));
    let holes: Vec<Arc<Description>> = touching.cloned().collect();
    let steps = merge.boxes.iter().map(Step::Write).chain(holes.iter().map(|d| Step::Delete(&d.bounds)));
    let Some(boxes) = left(steps).filter(|boxes| !holes.is_empty() && is_worth(boxes, merge.boxes.len(), &holes))
    else {
        return;
    };
    merge.boxes = boxes;
    merge.applied.extend(holes);
}

/// Adds to a merge of dense fragments the tombstones that are newer than it. Tombstones that an earlier merge left over
/// its newest input do not suffice alone: the cells that they delete are not stored.
fn erase(all: All<'_>, clears: &BoxIndex<'_>, merge: &mut Merge) {
    let order = merge.order();
    let mut new: Vec<Arc<Description>> = Vec::new();
    for bounds in &merge.boxes {
        new.extend(newer(all, clears, (bounds, order), FragmentKind::Tombstones, NEWER_MAX));
    }
    // The tombstones left over the result replace those, behind all that was committed with its newest input. If
    // something of that commit were newer than the tombstone, it would be deleted.
    let inputs: HashSet<Id> = merge.inputs.iter().map(|d| d.id).collect();
    let is_above = |v: &Arc<Description>| !is_tombstone(v) && !inputs.contains(&v.id);
    new.retain(|d| {
        !between(all, d.order, order.leftover()).iter().any(|v| is_above(v) && v.bounds.intersects(&d.bounds))
    });
    if new.iter().any(|d| d.order != order.leftover()) {
        let mut known: HashSet<Id> = merge.applied.iter().map(|d| d.id).collect();
        merge.applied.extend(new.into_iter().filter(|d| known.insert(d.id)));
    }
}

/// The clearing fragments of this kind that are newer than `order` and touch `bounds`, oldest first; none if there are
/// more than `most`.
fn newer(
    all: All<'_>,
    clears: &BoxIndex<'_>,
    (bounds, order): (&Subarray, FragmentOrder),
    kind: FragmentKind,
    most: usize,
) -> Vec<Arc<Description>> {
    let mut found = Vec::new();
    let many = clears.any(
        bounds,
        |s| s.newest > order,
        |item| {
            if item.orders.0 > order && all.get(item.place).is_some_and(|d| d.kind == kind) {
                found.push(item.place);
            }
            found.len() > most
        },
    );
    found.sort_unstable();
    if many { Vec::new() } else { found.into_iter().filter_map(|place| all.get(place)).cloned().collect() }
}

fn newer_holes(all: All<'_>, clears: &BoxIndex<'_>, at: (&Subarray, FragmentOrder)) -> Vec<Arc<Description>> {
    newer(all, clears, at, FragmentKind::Deletion, HOLES_MAX)
}

/// Whether deletions leave few boxes of `before`: each cuts a box into two along every dimension at most.
fn is_worth(boxes: &[Subarray], before: usize, holes: &[Arc<Description>]) -> bool {
    let sides = holes.first().map_or(0, |d| 2 * d.bounds.ndim());
    boxes.len() <= before + holes.len() * sides
}

/// Merges of single dense fragments: those of which boxes were deleted since, without these boxes, and those of which
/// cells were deleted. They are all such fragments, those of the box, or those that lose a tenth of their cells.
fn pierced(schema: &Schema, all: All<'_>, merges: &[Merge], clears: &BoxIndex<'_>, strategy: &Strategy) -> Vec<Merge> {
    let taken: HashSet<Id> = merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let asked = |d: &Description| match strategy {
        Strategy::Box(sub) => d.bounds.intersects(sub),
        _ => true,
    };
    let mut made = Vec::new();
    for d in all.iter().filter(|d| part(d) == Some(Part::Box) && !taken.contains(&d.id) && asked(d)) {
        let (inputs, retired) = (vec![d.clone()], Vec::new());
        let mut merge = Merge {
            inputs,
            applied: Vec::new(),
            retired,
            boxes: vec![d.bounds.clone()],
            as_cells: false,
            ends_tombstones: false,
        };
        cut_out(all, clears, &mut merge);
        let kept: u128 = merge.boxes.iter().map(Subarray::cells).sum();
        let mut lost = d.bounds.cells().saturating_sub(kept);
        // If the tombstones were only replaced by others, a rewrite happens only where deleted data must be removed.
        if *strategy != Strategy::Tiered || merge.is_clearable(schema) {
            let holes = merge.applied.len();
            erase(all, clears, &mut merge);
            let cells = merge.applied.iter().skip(holes).map(|d| u128::from(d.cells)).sum();
            lost = lost.saturating_add(cells);
        }
        let worth = *strategy != Strategy::Tiered || lost.saturating_mul(UPDATED_SHARE) >= d.bounds.cells();
        if worth && !merge.applied.is_empty() {
            made.push(merge);
        }
    }
    made
}

/// Merges of the single sparse fragments that newer tombstones touch: all of them, those of the box, or those of which
/// tombstones may delete a tenth of the cells.
fn singles(all: All<'_>, merges: &[Merge], clears: &BoxIndex<'_>, strategy: &Strategy) -> Vec<Merge> {
    let taken: HashSet<Id> = merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let asked = |d: &Description| match strategy {
        Strategy::Box(sub) => d.bounds.intersects(sub),
        _ => true,
    };
    let single = |d: &&Arc<Description>| part(d) == Some(Part::Cells) && !taken.contains(&d.id) && asked(d);
    let mut made = Vec::new();
    for d in all.iter().filter(single) {
        let (mut found, mut cells) = (Vec::new(), 0u128);
        let many = clears.any(
            &d.bounds,
            |s| s.newest > d.order,
            |item| {
                if item.orders.0 > d.order {
                    found.push(item.place);
                    cells += item.size;
                }
                found.len() > NEWER_MAX
            },
        );
        let worth = *strategy != Strategy::Tiered || cells.saturating_mul(UPDATED_SHARE) >= u128::from(d.cells);
        if !many && !found.is_empty() && worth {
            found.sort_unstable();
            let applied = found.into_iter().filter_map(|p| all.get(p)).cloned().collect();
            let (inputs, retired) = (vec![d.clone()], Vec::new());
            made.push(Merge { inputs, applied, retired, boxes: Vec::new(), as_cells: false, ends_tombstones: false });
        }
    }
    made
}

/// The tombstones that a merge applies and that have nothing older left under them.
fn retired(all: All<'_>, values: &BoxIndex<'_>, merge: &Merge) -> Vec<Arc<Description>> {
    let (Some(first), Some(last)) = (merge.inputs.first().map(|d| d.order), merge.inputs.last().map(|d| d.order))
    else {
        return Vec::new();
    };
    if merge.applied.is_empty() {
        return Vec::new();
    }
    let taken: HashSet<Id> = merge.inputs.iter().map(|d| d.id).collect();
    // Omitted although they stand between: few, or none.
    let left = between(all, first, last).iter().filter(|d| !is_tombstone(d) && !taken.contains(&d.id));
    let twins = all.iter().skip(all.partition_point(|d| d.order < first)).take_while(|d| d.order == first);
    let left = left.chain(twins.filter(|d| !is_tombstone(d) && !taken.contains(&d.id)));
    let left = BoxIndex::new(left.map(|d| item(d, 0)).collect());
    let under = |d: &Arc<Description>| {
        let later = |order: FragmentOrder| last < order && order < d.order;
        values.any_older(&d.bounds, first.min(d.order))
            || left.any_older(&d.bounds, d.order)
            || last < d.order
                && values.any(&d.bounds, |s| s.newest > last && s.oldest < d.order, |item| later(item.orders.0))
    };
    merge.applied.iter().filter(|d| !under(d)).cloned().collect()
}

/// The tombstones that have nothing older left under them once all merges are done: everything older that they touch is
/// the input of a merge that applies them.
fn swept(all: All<'_>, merges: &[Merge], alone: &[Merge]) -> Vec<Arc<Description>> {
    let planned: Vec<&Merge> = merges.iter().chain(alone).collect();
    let taken: HashSet<Id> = planned.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let left = all.iter().filter(|d| !is_tombstone(d) && !taken.contains(&d.id));
    let left = BoxIndex::new(left.map(|d| item(d, 0)).collect());
    let inputs: Vec<BoxIndex<'_>> =
        planned.iter().map(|m| BoxIndex::new(m.inputs.iter().map(|d| item(d, 0)).collect())).collect();
    let mut applied: HashMap<Id, HashSet<usize>> = HashMap::new();
    for (number, merge) in planned.iter().enumerate() {
        for d in &merge.applied {
            applied.entry(d.id).or_default().insert(number);
        }
    }
    let free: Vec<&Arc<Description>> =
        all.iter().filter(|d| is_tombstone(d) && !left.any_older(&d.bounds, d.order)).collect();
    if free.len().saturating_mul(planned.len()) > PAIRS_MAX {
        return Vec::new();
    }
    let none = HashSet::new();
    let cleansed = |d: &&Arc<Description>| {
        let by = applied.get(&d.id).unwrap_or(&none);
        inputs.iter().enumerate().all(|(number, index)| by.contains(&number) || !index.any_older(&d.bounds, d.order))
    };
    free.into_iter().filter(cleansed).cloned().collect()
}
