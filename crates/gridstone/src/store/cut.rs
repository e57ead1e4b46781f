//! Cuts the descriptions of many fragments into pages that are compact in space, so that a small box needs few pages.
//!
//! The algorithm is a recursive median. The fragments are split at the median of their centres, in the dimension where
//! the centres are spread widest, measured in mean fragment widths. Each part is split until it fits a page.

use crate::fragment::Description;
use std::sync::Arc;

/// Splits `fragments` into parts of at most `max` each, all about equally long, each in ascending order.
pub(super) fn cut(fragments: Vec<Arc<Description>>, max: usize) -> Vec<Vec<Arc<Description>>> {
    let mut parts = Vec::new();
    let mut waiting = vec![fragments];
    while let Some(mut fragments) = waiting.pop() {
        let pages = fragments.len().div_ceil(max.max(1));
        if pages <= 1 {
            fragments.sort_by_key(|f| f.order);
            parts.push(fragments);
            continue;
        }
        let dim = widest(&fragments);
        let middle = fragments.len() * (pages / 2) / pages;
        fragments.select_nth_unstable_by_key(middle, |f| (centre(f, dim), f.order));
        let upper = fragments.split_off(middle);
        waiting.push(upper);
        waiting.push(fragments);
    }
    parts
}

fn centre(fragment: &Description, dim: usize) -> u64 {
    fragment.bounds.ranges().get(dim).map_or(0, |r| r.lo.midpoint(r.hi))
}

/// The dimension in which the centres are spread widest, measured in mean fragment widths.
fn widest(fragments: &[Arc<Description>]) -> usize {
    let dims = fragments.first().map_or(0, |f| f.bounds.ndim());
    let spread = |dim: usize| {
        let centres = || fragments.iter().map(|f| centre(f, dim));
        let range = centres().max().unwrap_or(0) - centres().min().unwrap_or(0);
        let widths: f64 = fragments.iter().filter_map(|f| f.bounds.ranges().get(dim)).map(|r| r.count() as f64).sum();
        range as f64 * fragments.len() as f64 / widths.max(1.0)
    };
    (0..dims).max_by(|a, b| spread(*a).total_cmp(&spread(*b))).unwrap_or(0)
}
