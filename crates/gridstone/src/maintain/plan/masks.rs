//! Masks in a plan: masks over the inputs of a merge are applied by it, and single masked fragments are rewritten.

use super::{Merge, Part, Plan, Strategy, UPDATED_SHARE, part};
use crate::base::Id;
use crate::fragment::{Description, FragmentKind};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

type Over<'a> = HashMap<Id, Vec<&'a Arc<Description>>>;

/// The fragments without masks, and the masks.
pub(super) fn apart(fragments: &[Arc<Description>]) -> (Vec<Arc<Description>>, Vec<Arc<Description>>) {
    fragments.iter().cloned().partition(|d| d.kind != FragmentKind::Mask)
}

/// The plan with every mask over an input of a merge, and with merges of single masked fragments. These are all masked
/// fragments, those of the box, or those with a tenth of their cells masked.
pub(super) fn applied(
    fragments: &[Arc<Description>],
    masks: &[Arc<Description>],
    mut plan: Plan,
    strategy: &Strategy,
) -> Plan {
    let mut over: Over<'_> = HashMap::new();
    for mask in masks {
        if let Some(id) = mask.over {
            over.entry(id).or_default().push(mask);
        }
    }
    if over.is_empty() {
        return plan;
    }
    let taken: HashSet<Id> = plan.merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let asked = |d: &Description| match strategy {
        Strategy::All => true,
        Strategy::Box(sub) => d.bounds.intersects(sub),
        Strategy::Tiered => {
            let masked = over.get(&d.id).into_iter().flatten().fold(0u64, |sum, m| sum.saturating_add(m.cells));
            u128::from(masked).saturating_mul(UPDATED_SHARE) >= u128::from(d.cells)
        }
        Strategy::Updates | Strategy::Fragments(_) | Strategy::Manifest => false,
    };
    let single = |d: &&Arc<Description>| {
        part(d) == Some(Part::Cells) && over.contains_key(&d.id) && !taken.contains(&d.id) && asked(d)
    };
    let alone = fragments.iter().filter(single).map(|d| Merge {
        inputs: vec![d.clone()],
        applied: Vec::new(),
        retired: Vec::new(),
        boxes: Vec::new(),
        as_cells: false,
        ends_tombstones: false,
    });
    plan.merges.extend(alone);
    for merge in &mut plan.merges {
        let found = merge.inputs.iter().filter_map(|d| over.get(&d.id)).flatten();
        let found: Vec<Arc<Description>> = found.map(|mask| Arc::clone(mask)).collect();
        merge.applied.extend(found.iter().cloned());
        merge.retired.extend(found);
    }
    plan
}
