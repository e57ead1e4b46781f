//! Boxes whose older cells are deleted: which of them a read has to look at.

use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::schema::Subarray;
use std::sync::Arc;

/// The deletions of boxes that touch what is read, oldest first; among them holes in one attribute (`damage.rs`), which delete no cell as a whole.
#[derive(Debug, Clone, Default)]
pub(in crate::query) struct Deletions {
    boxes: Vec<Arc<Description>>,
}

impl Deletions {
    /// Those of `fragments` (by ascending order) that touch `sub`.
    pub(in crate::query) fn of(fragments: &[Arc<Description>], sub: &Subarray) -> Self {
        let touches = |d: &&Arc<Description>| d.kind == FragmentKind::Deletion && d.bounds.intersects(sub);
        Self { boxes: fragments.iter().filter(touches).cloned().collect() }
    }

    /// The boxes that are newer than `order` and touch `bounds`.
    pub(in crate::query) fn newer<'a>(
        &'a self,
        order: FragmentOrder,
        bounds: &'a Subarray,
    ) -> impl Iterator<Item = &'a Subarray> + Clone {
        let from = self.boxes.partition_point(|d| d.order <= order);
        let newer = self.boxes.get(from..).unwrap_or_default();
        newer.iter().filter(|d| d.attrs.is_empty()).map(|d| &d.bounds).filter(move |b| b.intersects(bounds))
    }

    /// Whether some cells in `bounds` that were written with `order` are deleted.
    pub(in crate::query) fn touch(&self, order: FragmentOrder, bounds: &Subarray) -> bool {
        self.newer(order, bounds).next().is_some()
    }

    /// Whether one deletion takes all cells in `bounds` that were written with `order`. Several that do so only together are not found out here.
    pub(in crate::query) fn cover(&self, order: FragmentOrder, bounds: &Subarray) -> bool {
        self.newer(order, bounds).any(|b| b.covers(bounds))
    }

    /// Whether a fragment has a cell in `sub` that no single deletion takes.
    pub(in crate::query) fn leave(&self, fragment: &Description, sub: &Subarray) -> bool {
        let read = fragment.bounds.intersect(sub);
        read.is_some_and(|read| !self.cover(fragment.order, &read))
    }

    /// Whether the cell at these coordinates that was written with `order` is deleted.
    pub(in crate::query) fn take(&self, order: FragmentOrder, cell: impl Iterator<Item = u64> + Clone) -> bool {
        let from = self.boxes.partition_point(|d| d.order <= order);
        self.boxes.get(from..).unwrap_or_default().iter().any(|d| d.attrs.is_empty() && d.bounds.contains(cell.clone()))
    }

    /// Whether there is none.
    pub(in crate::query) fn is_empty(&self) -> bool {
        self.boxes.is_empty()
    }

    /// All of them, oldest first.
    pub(in crate::query) fn all(&self) -> &[Arc<Description>] {
        &self.boxes
    }
}

/// Clears the flags of the cells (coordinates as ordered keys, a column per dimension) that lie in one of `boxes`.
pub(in crate::query) fn clear_inside<'a>(
    boxes: impl Iterator<Item = &'a Subarray>,
    coords: &[Vec<u64>],
    flags: &mut [bool],
) {
    for deleted in boxes {
        let mut inside = vec![true; flags.len()];
        for (range, column) in deleted.ranges().iter().zip(coords) {
            inside.iter_mut().zip(column).for_each(|(flag, k)| *flag &= range.contains(*k));
        }
        flags.iter_mut().zip(inside).for_each(|(flag, inside)| *flag &= !inside);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;
    use crate::schema::KeyRange;

    fn deletion(version: u64, lo: u64, hi: u64) -> Arc<Description> {
        let bounds = Subarray::new(vec![KeyRange::new(lo, hi), KeyRange::new(0, 9)]);
        let order = FragmentOrder { version, index: 0 };
        Arc::new(Description { order, ..Description::deletion(Id([version as u8; 16]), 0, bounds) })
    }

    #[test]
    fn only_what_is_older_is_taken() {
        let sub = Subarray::new(vec![KeyRange::new(0, 50), KeyRange::new(0, 9)]);
        let deletions = Deletions::of(&[deletion(3, 0, 9), deletion(5, 5, 20), deletion(7, 60, 70)], &sub);
        assert_eq!(deletions.all().len(), 2, "one lies outside what is read");
        let order = |version| FragmentOrder { version, index: 0 };
        let takes = |version, x| deletions.take(order(version), [x, 4].into_iter());
        assert!(takes(2, 0) && takes(2, 20) && takes(4, 5) && takes(4, 20));
        let hole = Arc::new(Description { attrs: vec![1], ..Description::clone(&deletion(9, 0, 50)) });
        let beside = Deletions::of(&[hole], &sub);
        assert!(!beside.take(order(2), [0, 4].into_iter()), "a hole in one attribute takes no cell");
        assert!(!takes(3, 0) && !takes(4, 4) && !takes(5, 5) && !takes(2, 21));
        let part = |lo, hi| Subarray::new(vec![KeyRange::new(lo, hi), KeyRange::new(2, 3)]);
        assert!(deletions.cover(order(4), &part(6, 20)) && !deletions.cover(order(4), &part(4, 6)));
        assert!(deletions.touch(order(4), &part(4, 6)) && !deletions.touch(order(5), &part(4, 6)));
        let mut flags = [true; 4];
        clear_inside(deletions.newer(order(4), &sub), &[vec![4, 5, 20, 21], vec![0, 9, 9, 0]], &mut flags);
        assert_eq!(flags, [true, false, false, true]);
    }
}
