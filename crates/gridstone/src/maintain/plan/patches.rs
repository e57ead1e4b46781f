//! Small scattered dense fragments, merged as sparse fragments.
//!
//! Many patches scattered over a large dense fragment do not form few boxes, and do not justify rewriting that
//! fragment. As cells with their coordinates they are merged like any other updates. Patches that form few boxes were
//! merged before: this module handles what the dense merges leave.

use super::{Merge, Run};
use crate::base::Id;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// The largest number of cells of a patch: with more, reading the coordinates takes longer than opening another
/// fragment.
const CELLS_MAX: u64 = 1_024;

/// Dense fragments that are treated as sparse ones, in their original form.
pub(super) struct Patches(HashMap<Id, Arc<Description>>);

impl Patches {
    /// No patches.
    pub(super) fn none() -> Self {
        Self(HashMap::new())
    }

    /// Finds the patches among the fragments that `merges` leave: those in one larger dense fragment. They are treated
    /// as sparse fragments in `rest` from here on. Among several such larger fragments the one with most patches is
    /// chosen: cells that lie in two belong to neither, and would keep either from being merged with its patches. Where
    /// nothing larger lies beneath, patches may still become a box.
    pub(super) fn found(rest: &mut Run, merges: &[Merge]) -> Self {
        // The results of the merges, which have the id of an input, do not exist yet.
        let taken: HashSet<Id> = merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
        let is_patch = |d: &Description| d.cells <= CELLS_MAX && d.is_small();
        let grounds = rest.iter().enumerate().filter(|(_, d)| d.kind == FragmentKind::Dense && !is_patch(d));
        let items = grounds.map(|(place, d)| Item { bounds: &d.bounds, orders: (d.order, d.order), size: 0, place });
        let grounds = BoxIndex::new(items.collect());
        let under = |d: &Description| {
            let mut ground = None;
            grounds.any(
                &d.bounds,
                |_| true,
                |item| {
                    ground = item.bounds.covers(&d.bounds).then_some(item.place);
                    ground.is_some()
                },
            );
            ground
        };
        let mut on: BTreeMap<usize, Vec<usize>> = BTreeMap::new();
        for (place, d) in rest.iter().enumerate() {
            if d.kind == FragmentKind::Dense && is_patch(d) && !taken.contains(&d.id) {
                under(d).into_iter().for_each(|ground| on.entry(ground).or_default().push(place));
            }
        }
        let most = on.into_values().max_by_key(Vec::len).unwrap_or_default();
        let mut found = HashMap::new();
        for place in most {
            let Some(d) = rest.get_mut(place) else { continue };
            let cells = Arc::new(Description { kind: FragmentKind::Sparse, ..Description::clone(d) });
            found.insert(d.id, std::mem::replace(d, cells));
        }
        Self(found)
    }

    /// A merge of cells with its inputs in their original form.
    pub(super) fn restored(&self, mut merge: Merge) -> Merge {
        for d in &mut merge.inputs {
            if let Some(patch) = self.0.get(&d.id) {
                *d = Arc::clone(patch);
                merge.as_cells = true;
            }
        }
        merge
    }
}
