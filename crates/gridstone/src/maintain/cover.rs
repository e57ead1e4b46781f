//! Unions of boxes: covers many boxes by few boxes without overlap.
//!
//! 1. A box inside another is dropped.
//! 2. Boxes that touch or overlap along one dimension, and are equal in all others, become one; steps 1 and 2 are
//!    repeated.
//! 3. Boxes that still overlap form a cluster: the larger boxes are kept, and the uncovered parts of the smaller ones
//!    are cut into boxes.

use crate::fragment::FragmentOrder;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::schema::{KeyRange, Subarray};
use std::collections::{BTreeMap, HashMap};

/// The largest number of overlaps of a box. A box with more is not part of a union of few boxes.
const OVERLAPS_MAX: usize = 64;
/// The largest number of boxes that deletions may leave of the inputs of one merge: more are not worth it.
const LEFT_MAX: usize = 256;
/// The largest number of rounds of joining boxes.
const ROUNDS_MAX: usize = 16;

/// A set of connected boxes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cluster {
    /// The indexes of its members among the given boxes, ascending.
    pub(super) members: Vec<usize>,
    /// Their union, disjoint.
    pub(super) boxes: Vec<Subarray>,
}

/// Disjoint sets of indexes.
struct Sets(Vec<usize>);

impl Sets {
    fn new(len: usize) -> Self {
        Self((0..len).collect())
    }

    fn root(&mut self, mut at: usize) -> usize {
        while let Some(next) = self.0.get(at).copied().filter(|next| *next != at) {
            let after = self.0.get(next).copied().unwrap_or(next);
            if let Some(slot) = self.0.get_mut(at) {
                *slot = after;
            }
            at = after;
        }
        at
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        if let Some(slot) = self.0.get_mut(b) {
            *slot = a;
        }
    }
}

/// The clusters of `boxes`. A box that is connected with too many others to form few boxes is in no cluster.
pub(super) fn clusters(boxes: &[&Subarray]) -> Vec<Cluster> {
    let mut sets = Sets::new(boxes.len());
    let mut kept: Vec<(Subarray, usize)> = boxes.iter().enumerate().map(|(i, b)| ((*b).clone(), i)).collect();
    for _ in 0..ROUNDS_MAX {
        let before = kept.len();
        kept = without_covered(kept, &mut sets);
        let ndim = kept.first().map_or(0, |(b, _)| b.ndim());
        for dim in 0..ndim {
            kept = laid_together(kept, dim, &mut sets);
        }
        if kept.len() == before {
            break;
        }
    }
    let entangled = join_overlapping(&kept, &mut sets);
    let mut parts: BTreeMap<usize, Vec<Subarray>> = BTreeMap::new();
    for (bounds, member) in kept {
        parts.entry(sets.root(member)).or_default().push(bounds);
    }
    let mut members: HashMap<usize, Vec<usize>> = HashMap::new();
    (0..boxes.len()).for_each(|i| members.entry(sets.root(i)).or_default().push(i));
    let entangled: Vec<usize> = entangled.into_iter().map(|i| sets.root(i)).collect();
    let cluster = |(root, parts): (usize, Vec<Subarray>)| {
        let members = members.remove(&root)?;
        let boxes = if entangled.contains(&root) { None } else { disjoint(parts, members.len().max(1)) };
        boxes.map(|boxes| Cluster { members, boxes })
    };
    parts.into_iter().filter_map(cluster).collect()
}

/// An item for a box whose age does not matter.
fn item(bounds: &Subarray, place: usize) -> Item<'_> {
    let never = FragmentOrder { version: 0, index: 0 };
    Item { bounds, orders: (never, never), size: bounds.cells(), place }
}

/// The boxes that no other covers; the first of equal ones.
fn without_covered(kept: Vec<(Subarray, usize)>, sets: &mut Sets) -> Vec<(Subarray, usize)> {
    let mut seen: HashMap<Subarray, usize> = HashMap::with_capacity(kept.len());
    let mut distinct = Vec::with_capacity(kept.len());
    for (bounds, member) in kept {
        match seen.get(&bounds) {
            Some(first) => sets.join(*first, member),
            None => {
                seen.insert(bounds.clone(), member);
                distinct.push((bounds, member));
            }
        }
    }
    let index = BoxIndex::new(distinct.iter().map(|(bounds, member)| item(bounds, *member)).collect());
    let mut covered = vec![false; distinct.len()];
    for ((bounds, member), covered) in distinct.iter().zip(&mut covered) {
        let cells = bounds.cells();
        let larger = |s: &crate::fragment::box_index::Summary| s.size_max > cells && s.bounds.covers(bounds);
        let mut by = None;
        *covered = index.any(bounds, larger, |other| {
            let hit = other.size > cells && other.bounds.covers(bounds);
            by = hit.then_some(other.place);
            hit
        });
        if let Some(by) = by {
            sets.join(by, *member);
        }
    }
    distinct.into_iter().zip(covered).filter(|(_, covered)| !covered).map(|(kept, _)| kept).collect()
}

/// Joins boxes that are equal in all dimensions but `dim`, and touch or overlap there.
fn laid_together(mut kept: Vec<(Subarray, usize)>, dim: usize, sets: &mut Sets) -> Vec<(Subarray, usize)> {
    let along = |b: &Subarray| b.ranges().get(dim).copied().unwrap_or(KeyRange { lo: 0, hi: 0 });
    let others = |b: &Subarray| -> Vec<(u64, u64)> {
        b.ranges().iter().enumerate().filter(|(d, _)| *d != dim).map(|(_, r)| (r.lo, r.hi)).collect()
    };
    kept.sort_by_cached_key(|(b, member)| (others(b), along(b).lo, *member));
    let mut made: Vec<(Subarray, usize)> = Vec::with_capacity(kept.len());
    for (bounds, member) in kept {
        let meets =
            |last: &Subarray| along(&bounds).lo <= along(last).hi.saturating_add(1) && others(last) == others(&bounds);
        match made.last_mut().filter(|(last, _)| meets(last)) {
            Some((last, first)) => {
                *last = last.union(&bounds);
                sets.join(*first, member);
            }
            None => made.push((bounds, member)),
        }
    }
    made
}

/// Joins the sets of boxes that overlap; returns a member of every cluster that is too entangled.
fn join_overlapping(kept: &[(Subarray, usize)], sets: &mut Sets) -> Vec<usize> {
    let index = BoxIndex::new(kept.iter().map(|(bounds, member)| item(bounds, *member)).collect());
    let mut entangled = Vec::new();
    for (bounds, member) in kept {
        let mut met = 0;
        let many = index.any(
            bounds,
            |_| true,
            |other| {
                sets.join(other.place, *member);
                met += 1;
                met > OVERLAPS_MAX
            },
        );
        if many {
            entangled.push(*member);
        }
    }
    entangled
}

/// The union of `parts` as disjoint boxes; `None` if these would be more than `most`.
fn disjoint(mut parts: Vec<Subarray>, most: usize) -> Option<Vec<Subarray>> {
    if parts.len() == 1 {
        return Some(parts);
    }
    if parts.len() > OVERLAPS_MAX * 4 {
        return None;
    }
    parts.sort_by_cached_key(|b| (std::cmp::Reverse(b.cells()), b.ranges().iter().map(|r| r.lo).collect::<Vec<_>>()));
    let mut made: Vec<Subarray> = Vec::new();
    for part in parts {
        let mut rest = vec![part];
        for other in &made {
            rest = rest.into_iter().flat_map(|piece| minus(piece, other)).collect();
        }
        made.extend(rest);
        if made.len() > most.saturating_mul(2).max(8) {
            return None;
        }
    }
    let mut nothing = Sets::new(made.len());
    let mut kept: Vec<(Subarray, usize)> = made.into_iter().zip(0..).collect();
    for dim in 0..kept.first().map_or(0, |(b, _)| b.ndim()) {
        kept = laid_together(kept, dim, &mut nothing);
    }
    (kept.len() <= most).then(|| kept.into_iter().map(|(b, _)| b).collect())
}

/// A box that is written or deleted.
#[derive(Debug, Clone, Copy)]
pub(super) enum Step<'a> {
    Write(&'a Subarray),
    Delete(&'a Subarray),
}

/// The boxes that remain after `steps`, oldest first, as disjoint boxes; `None` if these would be more than
/// [`LEFT_MAX`].
pub(super) fn left<'a>(steps: impl IntoIterator<Item = Step<'a>>) -> Option<Vec<Subarray>> {
    let mut left: Vec<Subarray> = Vec::new();
    for step in steps {
        match step {
            Step::Delete(hole) => left = left.into_iter().flat_map(|piece| minus(piece, hole)).collect(),
            // The older boxes stay whole: a patch inside them adds nothing.
            Step::Write(bounds) => {
                let mut rest = vec![bounds.clone()];
                for older in &left {
                    rest = rest.into_iter().flat_map(|piece| minus(piece, older)).collect();
                }
                left.extend(rest);
            }
        }
        if left.len() > LEFT_MAX {
            return None;
        }
    }
    let mut nothing = Sets::new(left.len());
    let mut kept: Vec<(Subarray, usize)> = left.into_iter().zip(0..).collect();
    for dim in 0..kept.first().map_or(0, |(b, _)| b.ndim()) {
        kept = laid_together(kept, dim, &mut nothing);
    }
    Some(kept.into_iter().map(|(bounds, _)| bounds).collect())
}

/// Whether `boxes`, which are disjoint, contain all cells of `pieces`, which are disjoint too.
pub(super) fn hold(boxes: &[Subarray], pieces: &[Subarray]) -> bool {
    pieces.iter().all(|piece| {
        let common = boxes.iter().filter_map(|b| b.intersect(piece)).map(|common| common.cells());
        common.fold(0u128, u128::saturating_add) == piece.cells()
    })
}

/// The part of `piece` outside `hole`, as disjoint boxes.
pub(super) fn minus(piece: Subarray, hole: &Subarray) -> Vec<Subarray> {
    let Some(common) = piece.intersect(hole) else { return vec![piece] };
    let mut made = Vec::new();
    let mut ranges = piece.ranges().to_vec();
    for (dim, inner) in common.ranges().iter().enumerate() {
        let Some(whole) = ranges.get(dim).copied() else { break };
        let sides = [
            (whole.lo < inner.lo).then(|| KeyRange::new(whole.lo, inner.lo - 1)),
            (inner.hi < whole.hi).then(|| KeyRange::new(inner.hi + 1, whole.hi)),
        ];
        for side in sides.into_iter().flatten() {
            let mut cut = ranges.clone();
            if let Some(slot) = cut.get_mut(dim) {
                *slot = side;
            }
            made.push(Subarray::new(cut));
        }
        if let Some(slot) = ranges.get_mut(dim) {
            *slot = *inner;
        }
    }
    made
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn rect(x: (u64, u64), y: (u64, u64)) -> Subarray {
        Subarray::new(vec![KeyRange::new(x.0, x.1), KeyRange::new(y.0, y.1)])
    }

    fn cells(boxes: &[Subarray]) -> Vec<(u64, u64)> {
        let one = |b: &Subarray| {
            let (x, y) = (b.ranges()[0], b.ranges()[1]);
            (x.lo..=x.hi).flat_map(move |i| (y.lo..=y.hi).map(move |j| (i, j))).collect::<Vec<_>>()
        };
        boxes.iter().flat_map(one).collect()
    }

    #[test]
    fn slabs_and_patches_become_one_box() {
        let base = rect((0, 99), (0, 99));
        let patches: Vec<Subarray> = (0..50).map(|i| rect((i, i + 3), (2 * i, 2 * i))).collect();
        let slabs: Vec<Subarray> = (0..9).map(|i| rect((100 + i * 10, 109 + i * 10), (0, 99))).collect();
        let all: Vec<&Subarray> = slabs.iter().chain([&base]).chain(&patches).collect();
        let found = clusters(&all);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].boxes.as_slice(), found[0].members.len()), (&[rect((0, 189), (0, 99))][..], 60));
    }

    #[test]
    fn what_overlaps_askew_is_cut() {
        let (a, b, far) = (rect((0, 9), (0, 9)), rect((5, 14), (5, 14)), rect((50, 51), (0, 0)));
        // Two boxes would become three, which is no gain. A third member inside makes it no worse.
        assert_eq!(clusters(&[&a, &b, &far]), [Cluster { members: vec![2], boxes: vec![far.clone()] }]);
        let inner = rect((6, 7), (6, 7));
        assert!(clusters(&[&a, &b]).is_empty());
        let boxes = &clusters(&[&a, &b, &inner])[0].boxes;
        assert_eq!((boxes.len(), cells(boxes).len()), (3, 175));
    }

    proptest! {
        #[test]
        fn unions_are_exact_and_disjoint(
            corners in proptest::collection::vec((0u64..20, 0u64..6, 0u64..20, 0u64..6), 1..30)) {
            let boxes: Vec<Subarray> = corners.iter().map(|(x, w, y, h)| rect((*x, x + w), (*y, y + h))).collect();
            let refs: Vec<&Subarray> = boxes.iter().collect();
            let (mut taken, mut painted) = (HashSet::new(), HashSet::new());
            for cluster in clusters(&refs) {
                let made = cells(&cluster.boxes);
                let distinct: HashSet<_> = made.iter().copied().collect();
                prop_assert_eq!(distinct.len(), made.len(), "boxes overlap");
                let theirs: Vec<Subarray> = cluster.members.iter().map(|m| boxes[*m].clone()).collect();
                prop_assert_eq!(&distinct, &cells(&theirs).into_iter().collect::<HashSet<_>>());
                prop_assert!(distinct.iter().all(|cell| painted.insert(*cell)), "clusters overlap");
                prop_assert!(cluster.members.iter().all(|m| taken.insert(*m)));
                prop_assert!(cluster.boxes.len() <= cluster.members.len());
            }
        }
    }
}
