//! A cancellable sort: runs are sorted, then merged two by two; cancellation is checked between portions.

use crate::base::{Cancel, Result};
use std::cmp::Ordering;

/// How many items are sorted or merged between two checks: a few tens of milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 8 } else { 1 << 18 };

/// Sorts `items` by `compare`, by which no two of them may be equal. Cancelled if `cancel` is raised.
pub(super) fn sort<T: Copy>(
    mut items: Vec<T>,
    compare: impl Fn(&T, &T) -> Ordering,
    cancel: &dyn Cancel,
) -> Result<Vec<T>> {
    for run in items.chunks_mut(PORTION) {
        cancel.check()?;
        run.sort_unstable_by(&compare);
    }
    let mut width = PORTION;
    while width < items.len() {
        let mut merged = Vec::with_capacity(items.len());
        for pair in items.chunks(2 * width) {
            let (left, right) = pair.split_at(width.min(pair.len()));
            merge(left, right, &compare, cancel, &mut merged)?;
        }
        items = merged;
        width *= 2;
    }
    Ok(items)
}

fn merge<T: Copy>(
    mut left: &[T],
    mut right: &[T],
    compare: &impl Fn(&T, &T) -> Ordering,
    cancel: &dyn Cancel,
    out: &mut Vec<T>,
) -> Result<()> {
    while let ([l, l_rest @ ..], [r, r_rest @ ..]) = (left, right) {
        if out.len().is_multiple_of(PORTION) {
            cancel.check()?;
        }
        if compare(r, l) == Ordering::Less {
            out.push(*r);
            right = r_rest;
        } else {
            out.push(*l);
            left = l_rest;
        }
    }
    out.extend_from_slice(left);
    out.extend_from_slice(right);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    /// Pseudo-random numbers (a linear congruence) with their indexes, so that equal numbers differ.
    fn numbers(count: usize) -> Vec<(u32, u32)> {
        let states = std::iter::successors(Some(7u32), |s| Some(s.wrapping_mul(1_664_525).wrapping_add(1_013_904_223)));
        states.map(|s| (s >> 12) % 1000).zip(0..count as u32).collect()
    }

    #[test]
    fn runs_and_merges_sort() {
        for count in [0, 1, 2, PORTION - 1, PORTION, PORTION + 1, 3 * PORTION + 5] {
            let items = numbers(count);
            let mut expected = items.clone();
            expected.sort_unstable();
            assert!(sort(items, Ord::cmp, &NeverCancel).unwrap() == expected, "{count} items");
        }
    }

    struct After(AtomicUsize);

    impl Cancel for After {
        fn cancelled(&self) -> bool {
            self.0.fetch_sub(1, Relaxed) == 0
        }
    }

    #[test]
    fn it_stops_in_runs_and_in_merges() {
        // Three runs, then about five checks in the merges: each of the first six stops it.
        for patience in 0..6 {
            let stopped = sort(numbers(3 * PORTION), Ord::cmp, &After(AtomicUsize::new(patience)));
            assert!(stopped.is_err(), "question {patience}");
        }
    }
}
