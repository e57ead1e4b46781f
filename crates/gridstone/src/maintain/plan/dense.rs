//! Merges of dense fragments: the union of their boxes becomes few boxes, each a whole dense fragment.
//!
//! 1. Dense fragments with the same attributes are joined into clusters ([`super::super::cover`]). A cluster also takes
//!    what lies wholly inside its boxes and has no other attribute: updates, and dense fragments with fewer attributes.
//! 2. A fragment that touches an older input of a cluster and stands between its inputs breaks it: the inputs before it
//!    and those after it are clustered anew, separately.
//! 3. Tombstones between the inputs are applied. A dense fragment cannot mark a cell as deleted. Unless all attributes
//!    may be null, as in a cell without a value, the merge leaves new tombstones right after its result. A fragment
//!    that is no input, or has fewer attributes, and lies over the old tombstones and under the new ones, breaks the
//!    cluster.
//! 4. A deleted box that stands between the inputs is cut out of the boxes, as long as few boxes result.

use super::super::cover::{Step, clusters, hold, left};
use super::runs::tier;
use super::{FACTOR, FAN_IN, HOLES_MAX, Merge, Part, Run, UPDATED_SHARE, between, part, related};
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::schema::{Schema, Subarray};
use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::sync::Arc;

/// How often a broken cluster is clustered anew.
const DEPTH_MAX: usize = 8;

/// Dense fragments with the same attributes, and what may go into them: indexes in the list of fragments.
#[derive(Debug, Clone)]
struct Candidates {
    whole: Vec<usize>,
    others: Vec<usize>,
}

/// A merge under construction.
#[derive(Debug, Clone)]
struct Draft {
    /// Indexes in the list of fragments, ascending; those that are dense with all attributes are separate.
    whole: Vec<usize>,
    others: Vec<usize>,
    boxes: Vec<Subarray>,
    applied: Vec<usize>,
    /// The fragments that break it.
    breakers: Vec<usize>,
    /// The orders of the inputs.
    orders: (FragmentOrder, FragmentOrder),
}

impl Draft {
    fn inputs(&self) -> Vec<usize> {
        let mut all: Vec<usize> = self.whole.iter().chain(&self.others).copied().collect();
        all.sort_unstable();
        all
    }
}

struct Planner<'a> {
    schema: &'a Schema,
    all: &'a [Arc<Description>],
    /// Whether deleted cells must go even if that makes more fragments.
    purges: bool,
}

/// All possible merges.
pub(super) fn all(schema: &Schema, fragments: &[Arc<Description>]) -> Vec<Merge> {
    let planner = Planner { schema, all: fragments, purges: true };
    planner.merges((0..fragments.len()).collect(), &|_| true).0
}

/// Merges of fragments of which updates have passed a tenth.
pub(super) fn updated(schema: &Schema, fragments: &[Arc<Description>]) -> Vec<Merge> {
    let planner = Planner { schema, all: fragments, purges: false };
    planner.merges((0..fragments.len()).collect(), &|draft| planner.is_updated(draft)).0
}

/// Merges of fragments of which updates have passed a tenth. Then, from the smallest tier on, merges of at least eight
/// fragments of similar size that form few boxes.
pub(super) fn tiers(schema: &Schema, fragments: &[Arc<Description>]) -> Vec<Merge> {
    let planner = Planner { schema, all: fragments, purges: false };
    let dense = fragments.iter().filter(|d| part(d) == Some(Part::Box));
    let levels: BTreeSet<u32> = dense.map(|d| tier(d.location.len)).collect();
    // Overlapping fragments first: removing some of them would keep the rest apart.
    let (mut made, taken) = planner.merges((0..fragments.len()).collect(), &|draft| planner.is_updated(draft));
    let mut left: Vec<usize> = (0..fragments.len()).filter(|place| !taken.contains(place)).collect();
    for level in levels {
        let low = |place: &usize| fragments.get(*place).is_some_and(|d| tier(d.location.len) <= level);
        let candidates = left.iter().copied().filter(low).collect();
        let (merges, taken) = planner.merges(candidates, &|draft| planner.is_grown(draft));
        left.retain(|place| !taken.contains(place));
        made.extend(merges);
    }
    made
}

/// Merges of fragments that touch `sub`, and of those that must go with them.
pub(super) fn within(schema: &Schema, fragments: &[Arc<Description>], sub: &Subarray) -> Vec<Merge> {
    let planner = Planner { schema, all: fragments, purges: true };
    let touching = fragments.iter().enumerate().filter(|(_, d)| d.bounds.intersects(sub)).map(|(place, _)| place);
    let mut candidates: BTreeSet<usize> = touching.collect();
    for _ in 0..DEPTH_MAX {
        let breakers = planner.first_breakers(&candidates.iter().copied().collect::<Vec<_>>());
        let before = candidates.len();
        candidates.extend(breakers);
        if candidates.len() == before {
            break;
        }
    }
    planner.merges(candidates.into_iter().collect(), &|_| true).0
}

/// The merge of these fragments, some of them dense, if it is possible.
pub(super) fn of(schema: &Schema, fragments: &[Arc<Description>], inputs: &Run) -> Option<Merge> {
    let planner = Planner { schema, all: fragments, purges: true };
    let wanted: HashSet<_> = inputs.iter().map(|d| d.id).collect();
    let places = fragments.iter().enumerate().filter(|(_, d)| wanted.contains(&d.id)).map(|(place, _)| place);
    let (mut merges, taken) = planner.merges(places.collect(), &|_| true);
    if merges.len() == 1 && taken.len() == inputs.len() { merges.pop() } else { None }
}

impl<'a> Planner<'a> {
    fn at(&self, place: usize) -> Option<&'a Arc<Description>> {
        self.all.get(place)
    }

    fn cells(&self, places: &[usize]) -> u128 {
        places.iter().filter_map(|p| self.at(*p)).map(|d| u128::from(d.cells)).sum()
    }

    /// Whether a tenth of the cells is written more than once.
    fn is_updated(&self, draft: &Draft) -> bool {
        let once: u128 = draft.boxes.iter().map(Subarray::cells).sum();
        let all = self.cells(&draft.whole) + self.cells(&draft.others);
        all.saturating_sub(once).saturating_mul(UPDATED_SHARE) >= once
    }

    /// Whether it has many fragments, none of them far larger than the others together.
    fn is_grown(&self, draft: &Draft) -> bool {
        let bytes = draft.whole.iter().filter_map(|p| self.at(*p)).map(|d| d.location.len);
        let (sum, largest) = bytes.fold((0u64, 0), |(s, l), b| (s + b, l.max(b)));
        draft.whole.len() >= FAN_IN && largest <= (sum - largest).saturating_mul(FACTOR)
    }

    /// The candidates by their attributes, those with the most attributes first. A fragment with fewer may go into one
    /// with more.
    fn by_attrs(&self, candidates: &[usize]) -> Vec<(Vec<u32>, Candidates)> {
        let mut dense: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
        let mut cells: BTreeMap<&[u32], Vec<usize>> = BTreeMap::new();
        for place in candidates {
            let Some(d) = self.at(*place) else { continue };
            match part(d) {
                Some(Part::Box) => dense.entry(&d.attrs).or_default().push(*place),
                Some(Part::Cells) => cells.entry(&d.attrs).or_default().push(*place),
                Some(Part::Clears) | None => {}
            }
        }
        let has = |attrs: &[u32], fewer: &[u32]| fewer.iter().all(|attr| attrs.contains(attr));
        let set = |(attrs, whole): (&&[u32], &Vec<usize>)| {
            let fewer = dense.iter().filter(|(other, _)| *other != attrs).chain(&cells);
            let fewer = fewer.filter(|(other, _)| has(attrs, other));
            let others = fewer.flat_map(|(_, places)| places).copied().collect();
            (attrs.to_vec(), Candidates { whole: whole.clone(), others })
        };
        let mut sets: Vec<_> = dense.iter().map(set).collect();
        sets.sort_by_key(|(attrs, _)| std::cmp::Reverse(attrs.len()));
        sets
    }

    /// The accepted merges of the candidates, and the indexes of their inputs.
    fn merges(&self, candidates: Vec<usize>, accepts: &dyn Fn(&Draft) -> bool) -> (Vec<Merge>, HashSet<usize>) {
        let (mut made, mut taken) = (Vec::new(), HashSet::new());
        for (attrs, mut set) in self.by_attrs(&candidates) {
            set.whole.retain(|place| !taken.contains(place));
            set.others.retain(|place| !taken.contains(place));
            let clearable = self.all_nullable(&attrs);
            let mut waiting = vec![set];
            for _ in 0..DEPTH_MAX {
                let mut drafts: Vec<Draft> = waiting.drain(..).flat_map(|set| self.drafts(set)).collect();
                self.find_breakers(&mut drafts, clearable);
                for draft in drafts {
                    let whole = if draft.breakers.is_empty() { Some(draft.clone()) } else { self.pierced(&draft) };
                    let Some(draft) = whole else {
                        waiting.extend(self.broken(&draft));
                        continue;
                    };
                    if accepts(&draft) {
                        taken.extend(draft.inputs());
                        made.push(self.merge(draft));
                    }
                }
            }
        }
        (made, taken)
    }

    /// The fragments that break the first clusters of the candidates and might be merged with them.
    fn first_breakers(&self, candidates: &[usize]) -> Vec<usize> {
        let mut found = Vec::new();
        for (attrs, set) in self.by_attrs(candidates) {
            let mut drafts = self.drafts(set);
            self.find_breakers(&mut drafts, self.all_nullable(&attrs));
            found.extend(drafts.into_iter().flat_map(|draft| draft.breakers));
        }
        found.retain(|p| self.at(*p).is_some_and(|d| matches!(part(d), Some(Part::Box | Part::Cells))));
        found
    }

    fn all_nullable(&self, attrs: &[u32]) -> bool {
        attrs.iter().all(|id| self.schema.attr_by_id(*id).is_some_and(|attr| attr.nullable()))
    }

    fn merge(&self, draft: Draft) -> Merge {
        let pick = |places: &[usize]| -> Run { places.iter().filter_map(|p| self.at(*p)).cloned().collect() };
        let inputs = pick(&draft.inputs());
        Merge {
            inputs,
            applied: pick(&draft.applied),
            retired: Vec::new(),
            boxes: draft.boxes,
            as_cells: false,
            ends_tombstones: false,
        }
    }

    /// The clusters of the candidates that result in fewer fragments.
    fn drafts(&self, set: Candidates) -> Vec<Draft> {
        let boxes: Vec<&Subarray> = set.whole.iter().filter_map(|p| self.at(*p)).map(|d| &d.bounds).collect();
        let found = clusters(&boxes);
        let outputs = found.iter().enumerate().flat_map(|(number, c)| c.boxes.iter().map(move |b| (number, b)));
        let index = BoxIndex::new(outputs.map(|(number, b)| plain(b, number)).collect());
        let mut others: Vec<Vec<usize>> = vec![Vec::new(); found.len()];
        for place in &set.others {
            let inside = self.at(*place).and_then(|d| cluster_around(&index, &d.bounds));
            if let Some(others) = inside.and_then(|number| others.get_mut(number)) {
                others.push(*place);
            }
        }
        let draft = |(cluster, others): (super::super::cover::Cluster, Vec<usize>)| {
            let whole: Vec<usize> = cluster.members.iter().filter_map(|m| set.whole.get(*m)).copied().collect();
            if whole.len() + others.len() <= cluster.boxes.len() {
                return None;
            }
            let orders = || whole.iter().chain(&others).filter_map(|p| self.at(*p)).map(|d| d.order);
            let orders = orders().min()?..=orders().max()?;
            let (boxes, orders) = (cluster.boxes, (*orders.start(), *orders.end()));
            Some(Draft { whole, others, boxes, applied: Vec::new(), breakers: Vec::new(), orders })
        };
        found.into_iter().zip(others).filter_map(draft).collect()
    }

    /// Finds, for all drafts together, the fragments that stand between their inputs and touch an older one. The drafts
    /// have the same attributes.
    fn find_breakers(&self, drafts: &mut [Draft], clearable: bool) {
        let Some(first) = drafts.first().and_then(|d| self.at(*d.whole.first()?)).cloned() else { return };
        let (Some(lo), Some(hi)) = (drafts.iter().map(|d| d.orders.0).min(), drafts.iter().map(|d| d.orders.1).max())
        else {
            return;
        };
        let mut owners = vec![usize::MAX; self.all.len()];
        let (mut boxes, mut inputs) = (Vec::new(), Vec::new());
        for (number, draft) in drafts.iter().enumerate() {
            boxes.extend(draft.boxes.iter().map(|b| Item { orders: draft.orders, ..plain(b, number) }));
            for place in draft.whole.iter().chain(&draft.others) {
                if let (Some(d), Some(owner)) = (self.at(*place), owners.get_mut(*place)) {
                    *owner = number;
                    inputs.push(Item { orders: (d.order, d.order), ..plain(&d.bounds, number) });
                }
            }
        }
        let (boxes, inputs) = (BoxIndex::new(boxes), BoxIndex::new(inputs));
        let start = self.all.partition_point(|d| d.order <= lo);
        let mut found: Vec<(usize, usize)> = Vec::new();
        for (d, place) in between(self.all, lo, hi).iter().zip(start..) {
            if !related(d, &first) {
                continue;
            }
            let owner = owners.get(place).copied().unwrap_or(usize::MAX);
            let mut seen = HashSet::new();
            boxes.any(
                &d.bounds,
                |s| s.oldest < d.order && s.newest >= d.order,
                |item| {
                    let spans = item.orders.0 < d.order && d.order <= item.orders.1;
                    if spans && item.place != owner && seen.insert(item.place) {
                        let least = item.orders.0;
                        let older = |s: &crate::fragment::box_index::Summary| s.oldest < d.order && s.newest >= least;
                        if inputs.any(&d.bounds, older, |i| i.place == item.place && i.orders.0 < d.order) {
                            found.push((item.place, place));
                        }
                    }
                    false
                },
            );
        }
        let is_left = |place: usize| !clearable && self.at(place).is_some_and(|d| d.kind == FragmentKind::Tombstones);
        let anew: Vec<(usize, usize)> = found.iter().copied().filter(|(_, place)| is_left(*place)).collect();
        let over = self.over_tombstones(drafts, &anew, &boxes, &owners);
        for (number, place) in found {
            let clears = is_left(place) || clearable && self.at(place).is_some_and(|d| part(d) == Some(Part::Clears));
            if let Some(draft) = drafts.get_mut(number) {
                if clears { draft.applied.push(place) } else { draft.breakers.push(place) }
            }
        }
        for (number, place) in over {
            if let Some(draft) = drafts.get_mut(number) {
                draft.breakers.push(place);
            }
        }
    }

    /// Finds what breaks drafts that leave new tombstones (`anew`: the number of the draft, the index of the old
    /// tombstones). That is a fragment over the old tombstones and under the new ones that is not merged, or has fewer
    /// attributes. A fragment after all inputs splits nothing: the old tombstones do instead. `boxes`: those of the
    /// drafts, by number; `owners`: the number of the draft that a fragment is an input of.
    fn over_tombstones(
        &self,
        drafts: &[Draft],
        anew: &[(usize, usize)],
        boxes: &BoxIndex<'_>,
        owners: &[usize],
    ) -> Vec<(usize, usize)> {
        let item = |(number, place): &(usize, usize)| {
            let d = self.at(*place)?;
            Some(Item { orders: (d.order, d.order), ..plain(&d.bounds, *number) })
        };
        let old = BoxIndex::new(anew.iter().filter_map(item).collect());
        let oldest = anew.iter().filter_map(|(_, place)| self.at(*place)).map(|d| d.order).min();
        let newest =
            anew.iter().filter_map(|(number, _)| drafts.get(*number)).map(|draft| draft.orders.1.leftover()).max();
        let (Some(lo), Some(hi)) = (oldest, newest) else { return Vec::new() };
        let (mut found, start) = (Vec::new(), self.all.partition_point(|d| d.order <= lo));
        for (d, place) in between(self.all, lo, hi).iter().zip(start..) {
            let mut reached = BTreeSet::new();
            if matches!(part(d), Some(Part::Box | Part::Cells)) {
                boxes.each(&d.bounds, |item| _ = reached.insert(item.place));
            }
            for number in reached {
                let Some(draft) = drafts.get(number).filter(|draft| d.order <= draft.orders.1.leftover()) else {
                    continue;
                };
                let whole = draft.whole.first().and_then(|p| self.at(*p)).map(|d| &d.attrs);
                let is_merged = owners.get(place) == Some(&number) && whole == Some(&d.attrs);
                let over = |item: &Item<'_>| item.place == number && item.orders.0 < d.order;
                if is_merged || !old.any(&d.bounds, |s| s.oldest < d.order, over) {
                    continue;
                }
                if d.order <= draft.orders.1 {
                    found.push((number, place));
                } else {
                    found.extend(anew.iter().filter(|(n, _)| *n == number));
                }
            }
        }
        found
    }

    /// The draft without the deleted boxes that break it, if nothing else does, no data of an input is lost by that,
    /// and few boxes result.
    fn pierced(&self, draft: &Draft) -> Option<Draft> {
        let holes: Vec<&Arc<Description>> = draft.breakers.iter().map(|p| self.at(*p)).collect::<Option<_>>()?;
        if holes.len() > HOLES_MAX || holes.iter().any(|d| d.kind != FragmentKind::Deletion) {
            return None;
        }
        let mut places: Vec<usize> = draft.whole.iter().chain(&draft.breakers).copied().collect();
        places.sort_unstable();
        let step = |d: &'a Arc<Description>| match d.kind {
            FragmentKind::Deletion => Step::Delete(&d.bounds),
            _ => Step::Write(&d.bounds),
        };
        let boxes = left(places.iter().filter_map(|p| self.at(*p)).map(step))?;
        let inside = |place: &usize| {
            let d = self.at(*place)?;
            let newer = holes.iter().filter(|hole| hole.order > d.order).map(|hole| Step::Delete(&hole.bounds));
            Some(hold(&boxes, &left(std::iter::once(Step::Write(&d.bounds)).chain(newer))?))
        };
        let sides = if self.purges { 2 * self.schema.ndim() } else { 0 };
        let most = draft.whole.len() + draft.others.len() + holes.len() * sides;
        let fits = !boxes.is_empty() && boxes.len() <= most;
        let fits = fits && draft.others.iter().all(|place| inside(place) == Some(true));
        let applied = [draft.applied.as_slice(), &draft.breakers].concat();
        fits.then(|| Draft { boxes, applied, breakers: Vec::new(), ..draft.clone() })
    }

    /// The inputs of a draft, split where something breaks it.
    fn broken(&self, draft: &Draft) -> Vec<Candidates> {
        let mut cuts: Vec<FragmentOrder> = draft.breakers.iter().filter_map(|p| self.at(*p)).map(|d| d.order).collect();
        cuts.sort_unstable();
        let mut parts: BTreeMap<usize, Candidates> = BTreeMap::new();
        let whole = draft.whole.iter().map(|p| (true, *p));
        for (is_whole, place) in whole.chain(draft.others.iter().map(|p| (false, *p))) {
            let Some(d) = self.at(place) else { continue };
            let number = cuts.partition_point(|cut| *cut <= d.order);
            let part = parts.entry(number).or_insert_with(|| Candidates { whole: Vec::new(), others: Vec::new() });
            if is_whole { part.whole.push(place) } else { part.others.push(place) }
        }
        parts.into_values().filter(|part| !part.whole.is_empty()).collect()
    }
}

/// An item for a box whose age does not matter.
fn plain(bounds: &Subarray, place: usize) -> Item<'_> {
    let never = FragmentOrder { version: 0, index: 0 };
    Item { bounds, orders: (never, never), size: 0, place }
}

/// The cluster whose boxes, which are disjoint, cover `bounds` wholly.
fn cluster_around(index: &BoxIndex<'_>, bounds: &Subarray) -> Option<usize> {
    let (mut cells, mut number, mut one) = (0u128, None, true);
    index.each(bounds, |item| {
        cells = cells.saturating_add(item.bounds.intersect(bounds).map_or(0, |common| common.cells()));
        one &= number.is_none_or(|n| n == item.place);
        number = Some(item.place);
    });
    number.filter(|_| one && cells == bounds.cells())
}
