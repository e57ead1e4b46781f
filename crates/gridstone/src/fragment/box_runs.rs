//! Hulls around runs of the boxes of an index, so that those which touch something are found without a look at each.
//!
//! ```text
//! boxes    0 1 2 3 4 5 6 7 | 8 9 …  15 | …      in the order of the fragment's cells, so that neighbours lie near each other
//! level 0         0        |      1    | …      a hull around each eight
//! level 1                  0             …      and around each eight of those, until they are few
//! ```
//!
//! Any order will do: of rows, of columns, of space tiles, along a Hilbert curve. Where cells lie in row order, going down the hulls is a
//! binary search for rows.

use super::stripe::IndexBox;
use crate::schema::KeyRange;
use std::ops::Range;

/// So many boxes, or hulls, have a hull of the next level around them.
const RUN: usize = 8;

/// Hulls of runs of boxes.
#[derive(Debug)]
pub(super) struct BoxRuns {
    ndim: usize,
    /// The ranges of hulls, one behind the other; the last level has at most [`RUN`] hulls.
    levels: Vec<Vec<KeyRange>>,
}

impl BoxRuns {
    /// So few boxes are looked at one by one.
    pub(super) const FEW: usize = 2 * RUN;

    /// The hulls of these boxes.
    pub(super) fn new<'a>(ndim: usize, boxes: impl Iterator<Item = IndexBox<'a>>) -> Self {
        let mut levels = vec![hulls(ndim, boxes.map(IndexBox::ranges))];
        while let Some(below) = levels.last().filter(|level| level.len() > RUN * ndim.max(1)) {
            let above = hulls(ndim, below.chunks(ndim.max(1)).map(|hull| hull.iter().copied()));
            levels.push(above);
        }
        Self { ndim, levels }
    }

    /// The numbers of the boxes `within` these, in runs, whose hulls pass `touches`; that is asked of nothing that lies elsewhere.
    pub(super) fn near(&self, within: Range<usize>, touches: &dyn Fn(&[KeyRange]) -> bool) -> Vec<Range<usize>> {
        let (mut found, top) = (Vec::new(), self.levels.len().saturating_sub(1));
        let hulls = self.levels.last().map_or(0, Vec::len) / self.ndim.max(1);
        if !within.is_empty() {
            self.descend(top, 0..hulls, &within, touches, &mut found);
        }
        found
    }

    fn descend(
        &self,
        level: usize,
        hulls: Range<usize>,
        within: &Range<usize>,
        touches: &dyn Fn(&[KeyRange]) -> bool,
        found: &mut Vec<Range<usize>>,
    ) {
        let Some(ranges) = self.levels.get(level) else { return };
        // The number of boxes under a hull.
        let span = RUN.saturating_pow(level as u32 + 1);
        for at in hulls.start.max(within.start / span)..hulls.end.min(within.end.div_ceil(span)) {
            let Some(hull) = ranges.get(at * self.ndim..(at + 1) * self.ndim) else { return };
            if !touches(hull) {
                continue;
            }
            match level.checked_sub(1) {
                Some(below) => self.descend(below, at * RUN..(at + 1) * RUN, within, touches, found),
                None => found.push((at * RUN).max(within.start)..((at + 1) * RUN).min(within.end)),
            }
        }
    }
}

/// Hulls around each [`RUN`] of boxes.
fn hulls(ndim: usize, boxes: impl Iterator<Item = impl Iterator<Item = KeyRange>>) -> Vec<KeyRange> {
    let mut hulls: Vec<KeyRange> = Vec::new();
    for (at, ranges) in boxes.enumerate() {
        if at.is_multiple_of(RUN) {
            hulls.extend(ranges);
            continue;
        }
        let last = hulls.len().saturating_sub(ndim);
        for (hull, range) in hulls.iter_mut().skip(last).zip(ranges) {
            *hull = hull.joined(range);
        }
    }
    hulls
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_box_that_touches_is_left_out(
            corners in prop::collection::vec((0u64..500, 0u64..9, 0u64..60, 0u64..30), 0..700),
            sorted: bool, asked in (0u64..500, 0u64..40, 0u64..60, 0u64..20), from in 0usize..300, len in 0usize..700) {
            let mut corners = corners;
            if sorted {
                corners.sort_unstable();
            }
            let words: Vec<[[u8; 8]; 4]> =
                corners.iter().map(|(x, w, y, h)| [*x, x + w, *y, y + h].map(u64::to_le_bytes)).collect();
            let runs = BoxRuns::new(2, words.iter().map(|words| IndexBox::of(words)));
            let asked = [KeyRange::new(asked.0, asked.0 + asked.1), KeyRange::new(asked.2, asked.2 + asked.3)];
            let meets = |a: &[KeyRange]| a.iter().zip(&asked).all(|(a, b)| a.intersect(*b).is_some());
            let within = from.min(corners.len())..(from + len).min(corners.len());
            let looked = std::cell::Cell::new(0);
            let near = runs.near(within.clone(), &|hull| {
                looked.set(looked.get() + 1);
                meets(hull)
            });
            prop_assert!(near.iter().all(|run| !run.is_empty() && within.start <= run.start && run.end <= within.end));
            let found: Vec<usize> = near.into_iter().flatten().collect();
            prop_assert!(found.is_sorted_by(|a, b| a < b));
            for at in within {
                let ranges: Vec<KeyRange> = IndexBox::of(&words[at]).ranges().collect();
                prop_assert!(!meets(&ranges) || found.contains(&at), "box {}", at);
            }
        }
    }

    #[test]
    fn one_row_of_many_is_found_in_a_few_steps() {
        let words: Vec<[[u8; 8]; 4]> = (0..30_000u64).map(|n| [n / 3, n / 3, 0, 9].map(u64::to_le_bytes)).collect();
        let runs = BoxRuns::new(2, words.iter().map(|words| IndexBox::of(words)));
        let looked = std::cell::Cell::new(0);
        let near = runs.near(0..words.len(), &|hull| {
            looked.set(looked.get() + 1);
            hull.first().is_some_and(|rows| rows.contains(5_000))
        });
        assert!(
            near.iter().map(ExactSizeIterator::len).sum::<usize>() <= 16 && looked.get() <= 60,
            "{near:?}, {looked:?}"
        );
        let ends: usize = runs.levels.iter().map(Vec::len).sum();
        assert!(ends <= 2 * words.len() / 7 + 16, "{ends} ranges of hulls");
    }
}
