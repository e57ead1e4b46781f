//! An index of boxes: a tree, built once, that finds those which touch a given box.
//!
//! Items are split at the median of their low corners, one dimension after the other and then of their orders, down to
//! a handful. A node has the smallest box around its items, and the range of their orders. So a query for something
//! older or larger skips whole branches.

use crate::fragment::FragmentOrder;
use crate::schema::Subarray;

/// The largest number of items in a leaf.
const LEAF_ITEMS: usize = 8;

/// A box with the properties that queries test.
#[derive(Debug, Clone)]
pub(super) struct Item<'a> {
    pub(super) bounds: &'a Subarray,
    /// The least and the greatest order of its content.
    pub(super) orders: (FragmentOrder, FragmentOrder),
    /// Its size, in a unit that the caller chooses.
    pub(super) size: u128,
    /// The caller's index of it.
    pub(super) place: usize,
}

/// The common properties of the items of a node.
#[derive(Debug)]
pub(super) struct Summary {
    pub(super) bounds: Subarray,
    pub(super) oldest: FragmentOrder,
    pub(super) newest: FragmentOrder,
    pub(super) size_max: u128,
}

#[derive(Debug)]
struct Node {
    summary: Summary,
    items: (usize, usize),
    children: Option<(usize, usize)>,
}

/// A tree of boxes.
#[derive(Debug)]
pub(super) struct BoxIndex<'a> {
    items: Vec<Item<'a>>,
    nodes: Vec<Node>,
}

impl<'a> BoxIndex<'a> {
    pub(super) fn new(mut items: Vec<Item<'a>>) -> Self {
        let mut nodes = Vec::with_capacity(2 * items.len() / LEAF_ITEMS + 1);
        let len = items.len();
        build(&mut items, (0, len), 0, &mut nodes);
        Self { items, nodes }
    }

    /// Whether an item that touches `sub` is a `hit`; branches that fail `passes` are skipped.
    pub(super) fn any(
        &self,
        sub: &Subarray,
        passes: impl Fn(&Summary) -> bool,
        mut hit: impl FnMut(&Item<'a>) -> bool,
    ) -> bool {
        let mut waiting: Vec<usize> = if self.items.is_empty() { Vec::new() } else { vec![self.nodes.len() - 1] };
        while let Some(node) = waiting.pop().and_then(|at| self.nodes.get(at)) {
            count_step();
            if !node.summary.bounds.intersects(sub) || !passes(&node.summary) {
                continue;
            }
            if let Some((low, high)) = node.children {
                waiting.extend([low, high]);
                continue;
            }
            let items = self.items.get(node.items.0..node.items.1).unwrap_or_default();
            if items.iter().any(|item| item.bounds.intersects(sub) && hit(item)) {
                return true;
            }
        }
        false
    }

    /// Calls `each` with every item that touches `sub`.
    pub(super) fn each(&self, sub: &Subarray, mut each: impl FnMut(&Item<'a>)) {
        self.any(
            sub,
            |_| true,
            |item| {
                count_step();
                each(item);
                false
            },
        );
    }

    /// Whether an item that touches `sub` is older than `order`.
    pub(super) fn any_older(&self, sub: &Subarray, order: FragmentOrder) -> bool {
        self.any(sub, |s| s.oldest < order, |item| item.orders.0 < order)
    }
}

/// Builds the node over `items[from..to]`, behind its children; returns its index.
fn build(all: &mut [Item<'_>], (from, to): (usize, usize), depth: usize, nodes: &mut Vec<Node>) -> usize {
    let Some(items) = all.get_mut(from..to) else { return 0 };
    let Some(summary) = items.iter().map(summary_of).reduce(joined) else { return 0 };
    let mut children = None;
    if items.len() > LEAF_ITEMS {
        // The order comes after the last dimension.
        let (dim, middle) = (depth % (summary.bounds.ndim() + 1), items.len() / 2);
        let order = |item: &Item<'_>| (item.orders.0.version, u64::from(item.orders.0.index));
        let low = |item: &Item<'_>| item.bounds.ranges().get(dim).map_or_else(|| order(item), |r| (r.lo, r.hi));
        items.select_nth_unstable_by_key(middle, low);
        let low = build(all, (from, from + middle), depth + 1, nodes);
        children = Some((low, build(all, (from + middle, to), depth + 1, nodes)));
    }
    nodes.push(Node { summary, items: (from, to), children });
    nodes.len() - 1
}

fn summary_of(item: &Item<'_>) -> Summary {
    count_step();
    Summary { bounds: item.bounds.clone(), oldest: item.orders.0, newest: item.orders.1, size_max: item.size }
}

fn joined(a: Summary, b: Summary) -> Summary {
    Summary {
        bounds: a.bounds.union(&b.bounds),
        oldest: a.oldest.min(b.oldest),
        newest: a.newest.max(b.newest),
        size_max: a.size_max.max(b.size_max),
    }
}

#[cfg(test)]
thread_local! {
    /// How many nodes and items were visited on this thread.
    pub(super) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn count_step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::KeyRange;
    use proptest::prelude::*;

    fn order(version: u64) -> FragmentOrder {
        FragmentOrder { version, index: 0 }
    }

    proptest! {
        #[test]
        fn it_finds_what_a_look_at_all_finds(
            corners in proptest::collection::vec((0u64..60, 0u64..9, 0u64..60, 0u64..30), 0..70),
            asked in (0u64..60, 0u64..20, 0u64..60, 0u64..20), age in 0u64..70) {
            let made = |(x, w, y, h): (u64, u64, u64, u64)| Subarray::new(vec![KeyRange::new(x, x + w), KeyRange::new(y, y + h)]);
            let boxes: Vec<Subarray> = corners.iter().copied().map(made).collect();
            let items = boxes.iter().enumerate();
            let items = items.map(|(place, bounds)| Item { bounds, orders: (order(place as u64), order(place as u64)), size: 0, place });
            let index = BoxIndex::new(items.collect());
            let asked = made(asked);
            let mut found = Vec::new();
            index.each(&asked, |item| found.push(item.place));
            found.sort_unstable();
            let expected: Vec<usize> = (0..boxes.len()).filter(|i| boxes[*i].intersects(&asked)).collect();
            prop_assert_eq!(index.any_older(&asked, order(age)), expected.iter().any(|i| (*i as u64) < age));
            prop_assert_eq!(found, expected);
        }
    }
}
