//! An index of boxes: a tree, built once, that finds those which touch a given box.
//!
//! ```text
//! items   a b c d e f g h | i j k l m n o p      sorted into halves, those into halves, down to a handful
//! nodes        0          |       1              each with the smallest box around its items, and the range of their orders
//!                     2                          the root, behind its children
//! ```
//!
//! Items are split at the median of their low corners, along the dimension that parts them best; where none parts them, boxes that lie
//! over each other, at the median of their orders. So a query for something older or larger skips whole branches. Built in `n log n` steps;
//! a query of boxes that are disjoint, or nearly so, takes about `log n`.

use super::FragmentOrder;
use crate::schema::{KeyRange, Subarray};

/// The largest number of items in a leaf.
const LEAF_ITEMS: usize = 8;

/// A box with the properties that queries test.
#[derive(Debug, Clone)]
pub(crate) struct Item<'a> {
    /// The box.
    pub(crate) bounds: &'a Subarray,
    /// The least and the greatest order of its content.
    pub(crate) orders: (FragmentOrder, FragmentOrder),
    /// Its size, in a unit that the caller chooses.
    pub(crate) size: u128,
    /// The caller's index of it.
    pub(crate) place: usize,
}

/// The common properties of the items of a node.
#[derive(Debug)]
pub(crate) struct Summary {
    /// The smallest box around them.
    pub(crate) bounds: Subarray,
    /// The least order of their content.
    pub(crate) oldest: FragmentOrder,
    /// The greatest.
    pub(crate) newest: FragmentOrder,
    /// The greatest size.
    pub(crate) size_max: u128,
}

#[derive(Debug)]
struct Node {
    summary: Summary,
    items: (usize, usize),
    children: Option<(usize, usize)>,
}

/// A tree of boxes.
#[derive(Debug)]
pub(crate) struct BoxIndex<'a> {
    items: Vec<Item<'a>>,
    nodes: Vec<Node>,
}

impl<'a> BoxIndex<'a> {
    /// The index of `items`, all with the same number of dimensions.
    pub(crate) fn new(mut items: Vec<Item<'a>>) -> Self {
        let mut nodes = Vec::with_capacity(4 * items.len() / LEAF_ITEMS + 1);
        build(&mut items, 0, &mut nodes);
        Self { items, nodes }
    }

    /// Whether an item that touches `sub` is a `hit`; branches that fail `passes` are skipped.
    pub(crate) fn any(
        &self,
        sub: &Subarray,
        passes: impl Fn(&Summary) -> bool,
        hit: impl FnMut(&Item<'a>) -> bool,
    ) -> bool {
        self.any_within(usize::MAX, sub, passes, hit) == Some(true)
    }

    /// The same; `None` if that is not known after a look at `steps_max` nodes.
    pub(crate) fn any_within(
        &self,
        steps_max: usize,
        sub: &Subarray,
        passes: impl Fn(&Summary) -> bool,
        mut hit: impl FnMut(&Item<'a>) -> bool,
    ) -> Option<bool> {
        let mut waiting: Vec<usize> = self.nodes.len().checked_sub(1).into_iter().collect();
        let mut steps = 0;
        while let Some(node) = waiting.pop().and_then(|at| self.nodes.get(at)) {
            count_step();
            steps += 1;
            if steps > steps_max {
                return None;
            }
            if !node.summary.bounds.intersects(sub) || !passes(&node.summary) {
                continue;
            }
            if let Some((low, high)) = node.children {
                waiting.extend([low, high]);
                continue;
            }
            let items = self.items.get(node.items.0..node.items.1).unwrap_or_default();
            if items.iter().any(|item| item.bounds.intersects(sub) && hit(item)) {
                return Some(true);
            }
        }
        Some(false)
    }

    /// Calls `each` with every item that touches `sub`.
    pub(crate) fn each(&self, sub: &Subarray, mut each: impl FnMut(&Item<'a>)) {
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
    pub(crate) fn any_older(&self, sub: &Subarray, order: FragmentOrder) -> bool {
        self.any(sub, |s| s.oldest < order, |item| item.orders.0 < order)
    }
}

/// Builds the node over `items`, the first of which is number `from` of all, behind its children; returns its number.
fn build(items: &mut [Item<'_>], from: usize, nodes: &mut Vec<Node>) -> usize {
    let (len, mut children) = (items.len(), None);
    if len > LEAF_ITEMS {
        let middle = split(items);
        let (low, high) = items.split_at_mut(middle);
        let low = build(low, from, nodes);
        children = Some((low, build(high, from + middle, nodes)));
    }
    let summary = match children.and_then(|(low, high)| Some((nodes.get(low)?, nodes.get(high)?))) {
        Some((low, high)) => Some(joined(&low.summary, &high.summary)),
        None => summary_of(items),
    };
    if let Some(summary) = summary {
        nodes.push(Node { summary, items: (from, from + len), children });
    }
    nodes.len().saturating_sub(1)
}

/// Sorts `items` into two halves; gives the number of the second one's first item.
///
/// Along each dimension the half with the low corners is tried, and how many of its boxes reach into the other half. The dimension with
/// the fewest of those is taken, if they are less than half of it.
fn split(items: &mut [Item<'_>]) -> usize {
    let middle = items.len() / 2;
    let dims = items.first().map_or(0, |item| item.bounds.ndim());
    let (mut best, mut stands) = (None, None);
    for dim in 0..dims {
        let reach = halved(items, middle, dim);
        stands = Some(dim);
        if reach < best.map_or(middle.div_ceil(2), |(least, _)| least) {
            best = Some((reach, dim));
        }
        if reach == 0 {
            break;
        }
    }
    match best {
        Some((_, dim)) if stands == Some(dim) => {}
        Some((_, dim)) => {
            halved(items, middle, dim);
        }
        None => {
            items.select_nth_unstable_by_key(middle, |item| item.orders.0);
        }
    }
    middle
}

/// Puts the `middle` items of the lowest corners along `dim` first; gives how many of them reach to one of the others.
fn halved(items: &mut [Item<'_>], middle: usize, dim: usize) -> usize {
    let range = |item: &Item<'_>| item.bounds.ranges().get(dim).copied().unwrap_or(KeyRange::EMPTY);
    let corner = |item: &Item<'_>| (range(item).lo, range(item).hi);
    let (low, first, _) = items.select_nth_unstable_by_key(middle, corner);
    let end = range(first).lo;
    low.iter().filter(|item| range(item).hi >= end).count()
}

fn summary_of(items: &[Item<'_>]) -> Option<Summary> {
    let of = |item: &Item<'_>| {
        count_step();
        Summary { bounds: item.bounds.clone(), oldest: item.orders.0, newest: item.orders.1, size_max: item.size }
    };
    items.iter().map(of).reduce(|a, b| joined(&a, &b))
}

fn joined(a: &Summary, b: &Summary) -> Summary {
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
    pub(crate) static STEPS: std::cell::Cell<u64> = const { std::cell::Cell::new(0) };
}

fn count_step() {
    #[cfg(test)]
    STEPS.with(|steps| steps.set(steps.get() + 1));
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn order(version: u64) -> FragmentOrder {
        FragmentOrder { version, index: 0 }
    }

    fn made((x, w, y, h): (u64, u64, u64, u64)) -> Subarray {
        Subarray::new(vec![KeyRange::new(x, x + w), KeyRange::new(y, y + h)])
    }

    fn index(boxes: &[Subarray]) -> BoxIndex<'_> {
        let item =
            |(place, bounds)| Item { bounds, orders: (order(place as u64), order(place as u64)), size: 0, place };
        BoxIndex::new(boxes.iter().enumerate().map(item).collect())
    }

    proptest! {
        #[test]
        fn it_finds_what_a_look_at_all_finds(
            corners in proptest::collection::vec((0u64..60, 0u64..9, 0u64..60, 0u64..30), 0..70),
            asked in (0u64..60, 0u64..20, 0u64..60, 0u64..20), age in 0u64..70) {
            let boxes: Vec<Subarray> = corners.iter().copied().map(made).collect();
            let (index, asked) = (index(&boxes), made(asked));
            let mut found = Vec::new();
            index.each(&asked, |item| found.push(item.place));
            found.sort_unstable();
            let expected: Vec<usize> = (0..boxes.len()).filter(|i| boxes[*i].intersects(&asked)).collect();
            let older = expected.iter().any(|i| (*i as u64) < age);
            prop_assert_eq!(index.any_older(&asked, order(age)), older);
            for steps in [0, 1, 3, 200] {
                let known = index.any_within(steps, &asked, |s| s.oldest < order(age), |item| item.orders.0 < order(age));
                prop_assert!(known == Some(older) || (known.is_none() && steps < 200), "{:?}", known);
            }
            prop_assert_eq!(found, expected);
        }
    }

    /// The steps that a query of each box takes on average, and those of building, per box.
    fn steps(boxes: &[Subarray]) -> (u64, u64) {
        STEPS.with(|steps| steps.set(0));
        let index = index(boxes);
        let built = STEPS.with(|steps| steps.replace(0));
        for (at, sub) in boxes.iter().enumerate() {
            index.any_older(sub, order(at as u64));
        }
        (STEPS.with(|steps| steps.get()) / boxes.len() as u64, built / boxes.len() as u64)
    }

    #[test]
    fn a_query_among_disjoint_boxes_looks_at_few() {
        type Layout = fn(u64) -> (u64, u64, u64, u64);
        let layouts: [(&str, Layout); 5] = [
            ("a line of boxes", |n| (n * 10, 8, 0, 5)),
            ("strips across the other side", |n| (0, 1_000_000, n * 10, 8)),
            ("a grid, written in no order", |n| (n * 7_919 % 128 * 10, 9, n * 7_919 / 128 % 128 * 10, 9)),
            ("boxes that reach into the next", |n| (n * 10, 14, 0, 5)),
            ("one place, again and again", |_| (5, 5, 5, 5)),
        ];
        for (name, one) in layouts {
            let (few, many): (Vec<_>, Vec<_>) =
                ((0..1_024).map(one).map(made).collect(), (0..16_384).map(one).map(made).collect());
            let ((a, built), (b, rebuilt)) = (steps(&few), steps(&many));
            assert!(b < 120 && b < 2 * a + 20, "{name}: {a} steps, {b} among sixteen times as many");
            assert!(built <= 2 && rebuilt <= 2, "{name}: {built}, {rebuilt} to build");
        }
    }
}
