//! A sort of many items that can be stopped: portions are sorted, then merged pair by pair.

use crate::base::{Cancel, Result};
use std::cmp::Ordering;

/// Items that are sorted or merged between two looks at whether to go on.
const PORTION: usize = if cfg!(test) { 1 << 6 } else { 1 << 15 };

/// The items in ascending order; those that compare as equal come in any order.
///
/// # Errors
/// Cancelled.
pub(super) fn sort_by<T: Copy>(
    mut items: Vec<T>,
    cancel: &dyn Cancel,
    compare: impl Fn(&T, &T) -> Ordering,
) -> Result<Vec<T>> {
    for portion in items.chunks_mut(PORTION) {
        cancel.check()?;
        portion.sort_unstable_by(&compare);
    }
    let (mut sorted, mut merged) = (PORTION, Vec::new());
    while sorted < items.len() {
        merged.clear();
        merged.reserve_exact(items.len());
        for pair in items.chunks(sorted * 2) {
            merge(pair.split_at(sorted.min(pair.len())), &mut merged, cancel, &compare)?;
        }
        std::mem::swap(&mut items, &mut merged);
        sorted *= 2;
    }
    Ok(items)
}

/// Appends two sorted runs to `out` as one.
fn merge<T: Copy>(
    (mut low, mut high): (&[T], &[T]),
    out: &mut Vec<T>,
    cancel: &dyn Cancel,
    compare: &impl Fn(&T, &T) -> Ordering,
) -> Result<()> {
    while let (Some((a, more)), Some((b, others))) = (low.split_first(), high.split_first()) {
        if out.len().is_multiple_of(PORTION) {
            cancel.check()?;
        }
        if compare(b, a) == Ordering::Less {
            out.push(*b);
            high = others;
        } else {
            out.push(*a);
            low = more;
        }
    }
    out.extend_from_slice(low);
    out.extend_from_slice(high);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn items_are_sorted(mut items in prop::collection::vec(0u32..500, 0..900)) {
            let found = sort_by(items.clone(), &NeverCancel, u32::cmp).unwrap();
            items.sort_unstable();
            prop_assert_eq!(found, items);
        }
    }
}
