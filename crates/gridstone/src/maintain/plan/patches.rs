//! Small dense fragments that lie scattered, merged as fragments of cells.
//!
//! Many patches here and there over a large dense fragment make no few boxes together, and are not worth writing that again for. As
//! cells with their coordinates they become few like any other updates. What makes few boxes has gone before: this is of what
//! dense merges leave.

use super::super::box_index::{BoxIndex, Item};
use super::{Merge, Run};
use crate::base::Id;
use crate::fragment::{Description, FragmentKind};
use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

/// Cells of such a fragment at most: of larger ones reading the coordinates takes longer than opening one fragment more.
const CELLS_MAX: u64 = 1_024;

/// Fragments that count as fragments of cells, as they are.
pub(super) struct Patches(HashMap<Id, Arc<Description>>);

impl Patches {
    /// None.
    pub(super) fn none() -> Self {
        Self(HashMap::new())
    }

    /// Those among what `merges` leave that lie in one larger dense fragment, which are fragments of cells in `rest` from here on. Of
    /// several such fragments the one with most of them is taken: cells that lie in two are a part of neither, and would keep either from
    /// being merged with what lies in it. Where nothing larger lies beneath, patches may still become a box.
    pub(super) fn found(rest: &mut Run, merges: &[Merge]) -> Self {
        // The results of the merges, which go by the name of an input, are not there yet.
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

    /// A merge of cells with its inputs as they are.
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
