//! Merges fragments of tombstones: a run of them without values in between becomes one.
//!
//! A delete by coordinates leaves one such fragment, a delete by condition in a dense array several. Over data that may
//! not be rewritten because of them, they stay. A merged fragment has the order of the newest: nothing with values lies
//! over an older one and under that.

use super::runs::{portions, tiers_of};
use super::{FAN_IN, Merge, Part, PlanLimits, Run, Strategy, of_cells, part};
use crate::base::Id;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind};
use std::collections::HashSet;
use std::sync::Arc;

/// The merges of tombstones among `all`, except those in `gone`, which are removed without a merge.
pub(super) fn merges(
    all: &[Arc<Description>],
    gone: &HashSet<Id>,
    strategy: &Strategy,
    limits: PlanLimits,
) -> Vec<Merge> {
    let asked = |d: &Description| match strategy {
        Strategy::Box(sub) => d.bounds.intersects(sub),
        Strategy::Fragments(ids) => ids.contains(&d.id),
        Strategy::Tiered | Strategy::All | Strategy::Updates | Strategy::Manifest => true,
    };
    let runs = runs(all, |d| is_light(d, limits) && !gone.contains(&d.id) && asked(d));
    let chosen: Vec<Run> = match strategy {
        Strategy::Tiered | Strategy::Updates => {
            let alone = |run: Run| run.into_iter().map(|d| vec![d]).collect();
            runs.into_iter().flat_map(|run| tiers_of(alone(run), limits)).collect()
        }
        _ => runs.into_iter().flat_map(|run| portions(run, limits)).collect(),
    };
    chosen.into_iter().filter(|run| run.len() > 1).map(of_cells).collect()
}

/// The merges of these fragments of tombstones, each with as many as fit into memory, if nothing stands between them.
pub(super) fn of(all: &[Arc<Description>], inputs: &Run, limits: PlanLimits) -> Option<Vec<Merge>> {
    let wanted: HashSet<Id> = inputs.iter().map(|d| d.id).collect();
    let mut runs = runs(all, |d| wanted.contains(&d.id));
    let mut run = runs.pop().filter(|_| runs.is_empty())?;
    run.retain(|d| is_light(d, limits));
    Some(portions(run, limits).into_iter().filter(|run| run.len() > 1).map(of_cells).collect())
}

/// Whether many of them fit into the memory of a merge, which holds all its inputs.
fn is_light(d: &Description, limits: PlanLimits) -> bool {
    let whole = d.cells.saturating_mul(limits.cell_bytes).saturating_add(d.location.len);
    whole <= limits.memory_bytes / FAN_IN as u64
}

/// Those that `takes` accepts, split where something with values touches an older one of them.
fn runs(all: &[Arc<Description>], takes: impl Fn(&Description) -> bool) -> Vec<Run> {
    let is_taken = |d: &&Arc<Description>| d.kind == FragmentKind::Tombstones && takes(d);
    let items = all.iter().filter(is_taken);
    let items = items.map(|d| Item { bounds: &d.bounds, orders: (d.order, d.order), size: 0, place: 0 });
    let taken = BoxIndex::new(items.collect());
    let (mut runs, mut open): (Vec<Run>, Run) = (Vec::new(), Vec::new());
    for d in all {
        if is_taken(&d) {
            open.push(Arc::clone(d));
        } else if !open.is_empty()
            && matches!(part(d), Some(Part::Box | Part::Cells))
            && taken.any_older(&d.bounds, d.order)
        {
            runs.push(std::mem::take(&mut open));
        }
    }
    runs.push(open);
    runs.retain(|run| !run.is_empty());
    runs
}
