//! What a consolidation merges: chosen from the descriptions of fragments alone, before anything is read.
//!
//! A merge takes a run of fragments that are neighbours in order. No fragment that is left out has an order between
//! theirs, so the merge is legal wherever they lie: whatever is older stays older than the result, whatever is newer
//! stays newer. Tombstones inside the run are applied to what is older than they, and stay as long as something older
//! is left under them.

use crate::base::{Error, Id, Result};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use std::collections::HashSet;
use std::sync::Arc;

/// Fragments merged at once by `tiered`, at least.
const FAN_IN: usize = 8;
/// How many times larger the fragments of the next tier are.
const FACTOR: u64 = 8;
/// The size of the smallest tier, in bytes.
const TIER_BYTES: u64 = 32 << 10;

/// Which fragments to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Runs of at least eight fragments of similar size, again and again: each cell is rewritten a few times in the life
    /// of an array, and the number of fragments grows with the logarithm of the number of commits.
    Tiered,
    /// All that can be merged.
    All,
    /// These fragments, and no other.
    Fragments(Vec<Id>),
}

/// Limits of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// Bytes of memory that the inputs of one merge may take while they are read, about.
    pub memory_bytes: u64,
    /// Bytes of memory that a decoded cell takes, about.
    pub cell_bytes: u64,
}

/// Fragments that merged ones take the place of.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The fragments whose cells are merged, by ascending order; all have the same attributes.
    pub inputs: Vec<Arc<Description>>,
    /// The tombstones and deletions that are applied to inputs older than they, and the masks over inputs.
    pub applied: Vec<Arc<Description>>,
    /// Those of them that nothing older is left under: they are taken out with the inputs.
    pub retired: Vec<Arc<Description>>,
}

impl Merge {
    /// The order of the result: the greatest of the inputs.
    pub fn order(&self) -> FragmentOrder {
        self.inputs.iter().map(|d| d.order).max().unwrap_or(FragmentOrder { version: 0, index: 0 })
    }

    /// Bytes that are read, at most.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().chain(&self.applied).map(|d| d.location.len).sum()
    }

    /// Cells that are read, at most.
    pub fn cells(&self) -> u64 {
        self.inputs.iter().map(|d| d.cells).sum()
    }
}

/// The merges of `strategy` over all `fragments` of an array, by ascending order. They have no fragment in common, and each is
/// legal after those before it. Input if fragments that were named cannot be merged.
pub fn plan(fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Result<Vec<Merge>> {
    let runs = match strategy {
        Strategy::Tiered => neighbours(fragments).into_iter().flat_map(|run| tiers(run, limits)).collect(),
        Strategy::All => neighbours(fragments).into_iter().flat_map(|run| portions(run, limits)).collect(),
        Strategy::Fragments(ids) => vec![named(fragments, ids)?],
    };
    Ok(runs.into_iter().filter(|run| run.len() > 1).map(|run| merge(fragments, run)).collect())
}

type Run = Vec<Arc<Description>>;

/// Fragments of cells with the same attributes that only tombstones stand between.
fn neighbours(fragments: &[Arc<Description>]) -> Vec<Run> {
    let mut runs: Vec<Run> = Vec::new();
    let mut open = false;
    for fragment in fragments {
        match fragment.kind {
            FragmentKind::Tombstones | FragmentKind::Deletion | FragmentKind::Mask => {}
            FragmentKind::Dense => open = false,
            FragmentKind::Sparse => {
                let last = runs.last_mut().filter(|run| open && run.iter().all(|d| d.attrs == fragment.attrs));
                match last {
                    Some(run) => run.push(fragment.clone()),
                    None => runs.push(vec![fragment.clone()]),
                }
                open = true;
            }
        }
    }
    runs
}

/// Bytes of memory that a fragment takes while it is merged.
fn weight(fragment: &Description, limits: PlanLimits) -> u64 {
    fragment.cells.saturating_mul(limits.cell_bytes).saturating_add(fragment.location.len)
}

/// A run cut into portions that fit into memory. A fragment that is larger than that is streamed, so it may go with others,
/// but not many.
fn portions(run: Run, limits: PlanLimits) -> Vec<Run> {
    let mut portions: Vec<Run> = Vec::new();
    let mut held = u64::MAX;
    for fragment in run {
        let needed = weight(&fragment, limits).min(limits.memory_bytes / FAN_IN as u64);
        held = held.saturating_add(needed);
        if held > limits.memory_bytes {
            portions.push(Vec::new());
            held = needed;
        }
        if let Some(portion) = portions.last_mut() {
            portion.push(fragment);
        }
    }
    portions
}

/// The tier of a size in bytes.
fn tier(bytes: u64) -> u32 {
    (bytes / TIER_BYTES).checked_ilog(FACTOR).map_or(0, |tier| tier + 1)
}

/// Groups of neighbours of which [`FAN_IN`] or more lie in the same tier or below, from the smallest tier on; the groups of a
/// tier count as one fragment in the next.
fn tiers(run: Run, limits: PlanLimits) -> Vec<Run> {
    let bytes = |group: &Run| group.iter().map(|d| d.location.len).sum::<u64>();
    let mut groups: Vec<Run> = run.into_iter().map(|d| vec![d]).collect();
    let highest = groups.iter().map(|group| tier(bytes(group))).max().unwrap_or(0);
    for level in 0..=highest {
        let mut next: Vec<Run> = Vec::with_capacity(groups.len());
        for stretch in groups.chunk_by(|a, b| (tier(bytes(a)) <= level) == (tier(bytes(b)) <= level)) {
            let low = stretch.first().is_some_and(|group| tier(bytes(group)) <= level);
            let (sum, largest) = stretch.iter().map(bytes).fold((0, 0), |(s, l), b| (s + b, l.max(b)));
            // A large one is not written again for the sake of a few small ones.
            if low && stretch.len() >= FAN_IN && largest <= (sum - largest) * FACTOR {
                next.extend(portions(stretch.concat(), limits));
            } else {
                next.extend(stretch.iter().cloned());
            }
        }
        groups = next;
    }
    groups
}

/// The fragments with these ids, which must be neighbours.
fn named(fragments: &[Arc<Description>], ids: &[Id]) -> Result<Run> {
    let wanted: HashSet<Id> = ids.iter().copied().collect();
    if let Some(missing) = ids.iter().find(|id| fragments.iter().all(|d| d.id != **id)) {
        return Err(Error::input(format!("the array has no fragment {missing}; look at its list of fragments")));
    }
    let run = neighbours(fragments).into_iter().find_map(|run| {
        let first = run.iter().position(|d| wanted.contains(&d.id))?;
        run.get(first..first + wanted.len())
            .filter(|part| part.iter().all(|d| wanted.contains(&d.id)))
            .map(<[_]>::to_vec)
    });
    run.ok_or_else(|| {
        Error::input(
            "these fragments cannot be merged: they must hold cells with the same attributes, and no other fragment may \
             stand between them in order",
        )
    })
}

fn merge(fragments: &[Arc<Description>], inputs: Run) -> Merge {
    let (first, last) = (inputs.first().map(|d| d.order), inputs.last().map(|d| d.order));
    let taken: HashSet<Id> = inputs.iter().map(|d| d.id).collect();
    let within = |d: &&Arc<Description>| Some(d.order) >= first && Some(d.order) <= last;
    let tombstones = fragments.iter().filter(within).filter(|d| d.kind.deletes());
    let touches =
        |d: &&Arc<Description>| inputs.iter().any(|input| input.order < d.order && input.bounds.intersects(&d.bounds));
    let masks: Vec<Arc<Description>> =
        fragments.iter().filter(|d| d.over.is_some_and(|over| taken.contains(&over))).cloned().collect();
    let mut applied: Vec<Arc<Description>> = tombstones.filter(touches).cloned().collect();
    let needed = |d: &Arc<Description>| {
        let older =
            |other: &&Arc<Description>| other.order < d.order && other.kind.holds_cells() && !taken.contains(&other.id);
        fragments.iter().filter(older).any(|other| other.bounds.intersects(&d.bounds))
    };
    let mut retired: Vec<Arc<Description>> = applied.iter().filter(|d| !needed(d)).cloned().collect();
    applied.extend(masks.iter().cloned());
    retired.extend(masks);
    Merge { inputs, applied, retired }
}

#[cfg(test)]
mod tests {
    use super::{Strategy, *};
    use crate::base::FileRef;
    use crate::fragment::Location;
    use crate::schema::{KeyRange, Subarray};
    use proptest::prelude::*;

    const LIMITS: PlanLimits = PlanLimits { memory_bytes: 1 << 30, cell_bytes: 100 };

    fn fragment(number: u64, kind: FragmentKind, range: (u64, u64), len: u64) -> Arc<Description> {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        Arc::new(Description {
            id: Id(id),
            kind,
            order: FragmentOrder { version: number, index: 0 },
            schema: 0,
            bounds: Subarray::new(vec![KeyRange::new(range.0, range.1)]),
            cells: len / 10 + 1,
            attrs: if kind == FragmentKind::Tombstones { Vec::new() } else { vec![0] },
            location: Location { file: FileRef::Data(Id(id)), offset: 0, len },
            over: None,
        })
    }

    fn small(number: u64) -> Arc<Description> {
        fragment(number, FragmentKind::Sparse, (0, 9), 1_000)
    }

    fn orders(merge: &Merge) -> Vec<u64> {
        merge.inputs.iter().map(|d| d.order.version).collect()
    }

    #[test]
    fn tiers_merge_eight_of_a_size_and_leave_the_large_alone() {
        let mut fragments = vec![fragment(1, FragmentKind::Sparse, (0, 9), 100 << 20)];
        fragments.extend((2..9).map(small));
        assert!(plan(&fragments, &Strategy::Tiered, LIMITS).unwrap().is_empty(), "seven are too few");
        fragments.push(small(9));
        let merges = plan(&fragments, &Strategy::Tiered, LIMITS).unwrap();
        assert_eq!(merges.iter().map(orders).collect::<Vec<_>>(), [(2..10).collect::<Vec<u64>>()]);
        assert_eq!(merges[0].order().version, 9);
        let all = plan(&fragments, &Strategy::All, LIMITS).unwrap();
        assert_eq!(orders(&all[0]), (1..10).collect::<Vec<u64>>());
    }

    #[test]
    fn a_dense_fragment_stands_between_updates() {
        let mut fragments: Vec<_> = (1..9).map(small).collect();
        fragments.push(fragment(9, FragmentKind::Dense, (0, 9), 50));
        fragments.extend((10..18).map(small));
        let merges = plan(&fragments, &Strategy::All, LIMITS).unwrap();
        assert_eq!(merges.len(), 2);
        let across = [fragments[7].id, fragments[9].id];
        assert!(plan(&fragments, &Strategy::Fragments(across.to_vec()), LIMITS).is_err());
        let side_by_side = [fragments[10].id, fragments[9].id];
        assert_eq!(
            orders(&plan(&fragments, &Strategy::Fragments(side_by_side.to_vec()), LIMITS).unwrap()[0]),
            [10, 11]
        );
    }

    #[test]
    fn tombstones_stay_while_something_older_lies_under_them() {
        let tombstones = |n, range| fragment(n, FragmentKind::Tombstones, range, 10);
        let fragments = [
            fragment(1, FragmentKind::Sparse, (50, 60), 10),
            fragment(2, FragmentKind::Sparse, (0, 9), 10),
            tombstones(3, (3, 3)),
            tombstones(4, (55, 55)),
            tombstones(5, (5, 55)),
            fragment(6, FragmentKind::Sparse, (0, 9), 10),
            tombstones(7, (3, 3)),
        ];
        let ids = vec![fragments[1].id, fragments[5].id];
        let merges = plan(&fragments, &Strategy::Fragments(ids), LIMITS).unwrap();
        let versions = |all: &[Arc<Description>]| all.iter().map(|d| d.order.version).collect::<Vec<_>>();
        assert_eq!(versions(&merges[0].applied), [3, 5]);
        assert_eq!(versions(&merges[0].retired), [3]);
    }

    proptest! {
        #[test]
        fn merges_are_disjoint_runs_of_neighbours_that_fit(
            kinds in proptest::collection::vec(0u8..10, 1..120),
            sizes in proptest::collection::vec(1u64..5_000_000, 120),
            memory in 1_000u64..20_000_000, tiered in any::<bool>()) {
            let kind = |k: u8| [FragmentKind::Dense, FragmentKind::Tombstones].get(k as usize).copied().unwrap_or(FragmentKind::Sparse);
            let fragments: Vec<_> = (1..).zip(kinds.iter().zip(&sizes))
                .map(|(n, (k, size))| fragment(n, kind(*k), (n % 7, n % 7 + 3), *size)).collect();
            let limits = PlanLimits { memory_bytes: memory, cell_bytes: 1 };
            let strategy = if tiered { Strategy::Tiered } else { Strategy::All };
            let mut seen = HashSet::new();
            for merge in plan(&fragments, &strategy, limits).unwrap() {
                prop_assert!(merge.inputs.len() > 1);
                prop_assert!(merge.inputs.iter().all(|d| d.kind == FragmentKind::Sparse && seen.insert(d.id)));
                let (first, last) = (merge.inputs[0].order, merge.order());
                let taken: HashSet<Id> = merge.inputs.iter().map(|d| d.id).collect();
                let between = fragments.iter().filter(|d| d.order > first && d.order < last);
                prop_assert!(between.filter(|d| d.kind != FragmentKind::Tombstones).all(|d| taken.contains(&d.id)));
                let held: u64 = merge.inputs.iter().map(|d| weight(d, limits).min(memory / FAN_IN as u64)).sum();
                prop_assert!(held <= memory);
            }
        }
    }
}
