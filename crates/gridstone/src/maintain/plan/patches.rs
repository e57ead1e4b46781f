//! Small dense fragments that lie scattered, merged as fragments of cells.
//!
//! Many patches here and there over a large dense fragment make no few boxes together, and are not worth writing that again for. As
//! cells with their coordinates they become few like any other updates. What makes few boxes has gone before: this is of what
//! dense merges leave.

use super::{Merge, Run};
use crate::base::Id;
use crate::fragment::{Description, FragmentKind};
use std::collections::{HashMap, HashSet};
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

    /// Those among what `merges` leave, which are fragments of cells in `rest` from here on.
    pub(super) fn found(rest: &mut Run, merges: &[Merge]) -> Self {
        // The results of the merges, which go by the name of an input, are not there yet.
        let taken: HashSet<Id> = merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
        let is_patch = |d: &Description| d.kind == FragmentKind::Dense && d.cells <= CELLS_MAX && d.is_small();
        let mut found = HashMap::new();
        for d in rest.iter_mut().filter(|d| is_patch(d) && !taken.contains(&d.id)) {
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
