//! A set of cells of one array in bounded memory: single cells, and boxes that include every cell in them.
//!
//! 1. A box is kept as it is; a box of one cell is kept as a single cell.
//! 2. If there are too many boxes, the smallest become single cells while there is room for these.
//! 3. If there are still too many, neighbouring boxes are replaced by larger boxes around them.
//!
//! Only step 3 adds cells that were never put into the set. The set never lacks a cell that was put into it.

use crate::schema::{KeyRange, Subarray};
use std::collections::BTreeSet;
use std::ops::Bound;

/// The largest number of single cells in a set.
pub const CELLS_MAX: usize = 65_536;

/// The largest number of boxes in a set.
const BOXES_MAX: usize = 1_024;

/// A set of cells of one array, by their ordered keys.
#[derive(Debug, Clone, Default)]
pub struct CellSet {
    /// In key order, first dimension first.
    cells: BTreeSet<Box<[u64]>>,
    boxes: Vec<Subarray>,
    hull: Option<Subarray>,
}

impl CellSet {
    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.hull.is_none()
    }

    /// The smallest box around all of its cells.
    pub fn hull(&self) -> Option<&Subarray> {
        self.hull.as_ref()
    }

    /// How many more single cells fit before boxes must stand for them.
    pub fn room(&self) -> usize {
        CELLS_MAX.saturating_sub(self.cells.len())
    }

    /// Adds all cells of a box.
    pub fn add_box(&mut self, sub: Subarray) {
        if let Some(cell) = only_cell(&sub).filter(|_| self.room() > 0) {
            return self.add_cell(&cell);
        }
        self.widen(&sub);
        self.boxes.push(sub);
        if self.boxes.len() > BOXES_MAX {
            self.spread();
        }
        if self.boxes.len() > BOXES_MAX {
            // Boxes added one after the other are mostly close in space.
            let pairs = self.boxes.chunks(2).filter_map(|pair| pair.iter().cloned().reduce(|a, b| a.union(&b)));
            self.boxes = pairs.collect();
        }
    }

    /// Splits boxes into single cells, the smallest first, while there is room.
    fn spread(&mut self) {
        let mut sizes: Vec<u128> = self.boxes.iter().map(Subarray::cells).collect();
        sizes.sort_unstable();
        let mut room = self.room() as u128;
        let fits = |size: &u128| {
            let rest = room.checked_sub(*size);
            room = rest.unwrap_or(0);
            rest.is_some()
        };
        let Some(largest) = sizes.into_iter().take_while(fits).last() else { return };
        let mut small = Vec::new();
        let mut room = self.room() as u128;
        self.boxes.retain(|sub| {
            let size = sub.cells();
            let goes = size <= largest && size <= room;
            if goes {
                room -= size;
                small.push(sub.clone());
            }
            !goes
        });
        self.cells.extend(small.iter().flat_map(Cells::of));
    }

    /// Adds one cell.
    pub fn add_cell(&mut self, keys: &[u64]) {
        if self.contains(keys) {
            return;
        }
        let alone = Subarray::new(keys.iter().map(|key| KeyRange::new(*key, *key)).collect());
        if self.room() == 0 {
            return self.add_box(alone);
        }
        self.widen(&alone);
        self.cells.insert(keys.into());
    }

    /// Adds the cells that `of` has in `bounds`.
    pub fn add_common(&mut self, of: &Self, bounds: &Subarray) {
        if !of.near(bounds) {
            return;
        }
        of.boxes.iter().filter_map(|sub| sub.intersect(bounds)).for_each(|sub| self.add_box(sub));
        of.cells_in(bounds).for_each(|cell| self.add_cell(cell));
    }

    /// Whether it has this cell.
    pub fn contains(&self, keys: &[u64]) -> bool {
        let inside = |sub: &Subarray| sub.contains(keys.iter().copied());
        self.hull.as_ref().is_some_and(inside) && (self.cells.contains(keys) || self.boxes.iter().any(inside))
    }

    /// Whether it has any cell of this box.
    pub fn touches(&self, bounds: &Subarray) -> bool {
        let has_box = || self.boxes.iter().any(|sub| sub.intersects(bounds));
        self.near(bounds) && (has_box() || self.cells_in(bounds).next().is_some())
    }

    /// Whether one box of it, or its single cells, cover all of `bounds`. Returns false where only several of them
    /// together cover it.
    pub fn covers(&self, bounds: &Subarray) -> bool {
        let by_cells = || {
            let size = bounds.cells();
            size <= self.cells.len() as u128 && self.cells_in(bounds).count() as u128 == size
        };
        self.boxes.iter().any(|sub| sub.covers(bounds)) || by_cells()
    }

    /// A box around cells that it has in `bounds`.
    pub fn found_in(&self, bounds: &Subarray) -> Option<Subarray> {
        let mut common = Self::default();
        common.add_common(self, bounds);
        let least = common.cells.first();
        let cell = least.map(|keys| Subarray::new(keys.iter().map(|key| KeyRange::new(*key, *key)).collect()));
        common.boxes.into_iter().next().or(cell)
    }

    /// Its single cells in `bounds`. The first dimension selects a range of keys; only the cells of that range are
    /// tested.
    fn cells_in<'a>(&'a self, bounds: &'a Subarray) -> impl Iterator<Item = &'a [u64]> {
        let (lows, highs): (Vec<u64>, Vec<u64>) = bounds.ranges().iter().map(|range| (range.lo, range.hi)).unzip();
        let ends = (Bound::Included(lows.as_slice()), Bound::Included(highs.as_slice()));
        let between = (lows <= highs).then(|| self.cells.range::<[u64], _>(ends));
        between.into_iter().flatten().map(AsRef::as_ref).filter(|cell| bounds.contains(cell.iter().copied()))
    }

    fn near(&self, bounds: &Subarray) -> bool {
        self.hull.as_ref().is_some_and(|hull| hull.intersects(bounds))
    }

    fn widen(&mut self, sub: &Subarray) {
        self.hull = Some(self.hull.as_ref().map_or_else(|| sub.clone(), |hull| hull.union(sub)));
    }
}

/// The keys of the cell, if the box has only one.
fn only_cell(sub: &Subarray) -> Option<Vec<u64>> {
    sub.ranges().iter().map(|range| (range.lo == range.hi).then_some(range.lo)).collect()
}

/// Iterates over the cells of a box.
struct Cells<'a> {
    ranges: &'a [KeyRange],
    next: Option<Box<[u64]>>,
}

impl<'a> Cells<'a> {
    fn of(sub: &'a Subarray) -> Self {
        Self { ranges: sub.ranges(), next: Some(sub.ranges().iter().map(|range| range.lo).collect()) }
    }
}

impl Iterator for Cells<'_> {
    type Item = Box<[u64]>;

    fn next(&mut self) -> Option<Self::Item> {
        let cell = self.next.take()?;
        let mut following = cell.clone();
        for (key, range) in following.iter_mut().zip(self.ranges).rev() {
            if *key < range.hi {
                *key += 1;
                self.next = Some(following);
                break;
            }
            *key = range.lo;
        }
        Some(cell)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    fn square(y: (u64, u64), x: (u64, u64)) -> Subarray {
        Subarray::new(vec![KeyRange::new(y.0, y.1), KeyRange::new(x.0, x.1)])
    }

    #[test]
    fn more_boxes_and_cells_than_are_held_are_all_found() {
        let mut set = CellSet::default();
        (0..5_000).for_each(|n| set.add_box(square((n * 100, n * 100 + 19), (3, 7))));
        assert!(set.boxes.len() <= BOXES_MAX && set.cells.len() <= CELLS_MAX);
        assert!((0..5_000).all(|n| set.contains(&[n * 100 + 19, 7])), "none is lost");
        assert!(!set.contains(&[0, 8]) && !set.touches(&square((600_000, 600_009), (3, 4))));
        let mut set = CellSet::default();
        (0..70_000).for_each(|n| set.add_cell(&[n * 3, 7]));
        assert!(set.cells.len() <= CELLS_MAX && set.boxes.len() <= BOXES_MAX);
        assert!((0..70_000).all(|n| set.contains(&[n * 3, 7])));
        assert!(!set.contains(&[1, 7]), "the first ones stay exact");
    }

    #[test]
    fn a_box_of_one_cell_is_a_cell() {
        let mut set = CellSet::default();
        set.add_box(square((5, 5), (6, 6)));
        assert_eq!((set.cells.len(), set.boxes.len()), (1, 0));
        assert_eq!(set.found_in(&square((0, 9), (0, 9))), Some(square((5, 5), (6, 6))));
        assert!(set.found_in(&square((0, 4), (0, 9))).is_none());
    }

    #[test]
    fn many_small_boxes_stay_what_they_are_while_there_is_room() {
        let mut set = CellSet::default();
        let of = |n: u64| square((n * 16, n * 16 + 1), (3, 5));
        // The large boxes do not make the small ones larger.
        (0..10_000).for_each(|n| {
            set.add_box(of(n));
            if n % 100 == 0 {
                set.add_box(square((n * 16, n * 16 + 1_000_000), (100, 200)));
            }
        });
        assert_eq!((0..10_000).filter(|n| set.touches(&square((n * 16 + 2, n * 16 + 15), (0, 99)))).count(), 0);
        assert!((0..10_000).all(|n| set.covers(&of(n)) && set.touches(&of(n)) && set.contains(&[n * 16 + 1, 4])));
        let held = (set.cells.len(), set.boxes.len());
        (0..1_000).for_each(|n| assert!(set.covers(&of(n)) && !set.covers(&square((n * 16, n * 16 + 2), (3, 5)))));
        assert!(held.0 <= CELLS_MAX && held.1 <= BOXES_MAX, "{held:?}");
    }

    fn boxes() -> impl Strategy<Value = Vec<(u64, u64, u64, u64)>> {
        proptest::collection::vec((0u64..12, 0u64..4, 0u64..12, 0u64..4), 0..8)
    }

    fn set_of(boxes: &[(u64, u64, u64, u64)]) -> (CellSet, HashSet<Vec<u64>>) {
        let (mut set, mut naive) = (CellSet::default(), HashSet::new());
        for (y, high, x, wide) in boxes {
            set.add_box(square((*y, y + high), (*x, x + wide)));
            naive.extend((*y..=y + high).flat_map(|y| (*x..=x + wide).map(move |x| vec![y, x])));
        }
        (set, naive)
    }

    proptest! {
        /// A small set is exactly what was added to it.
        #[test]
        fn small_sets_are_exact(mine in boxes(), of in boxes()) {
            let (set, naive) = set_of(&mine);
            let mut common = CellSet::default();
            let mut both = HashSet::new();
            for one in &of {
                let sub = square((one.0, one.0 + one.1), (one.2, one.2 + one.3));
                common.add_common(&set, &sub);
                let (_, cells) = set_of(std::slice::from_ref(one));
                prop_assert_eq!(set.touches(&sub), naive.intersection(&cells).next().is_some());
                both.extend(naive.intersection(&cells).cloned());
            }
            for y in 0..17 {
                for x in 0..17 {
                    prop_assert_eq!(set.contains(&[y, x]), naive.contains(&vec![y, x]));
                    prop_assert_eq!(common.contains(&[y, x]), both.contains(&vec![y, x]));
                }
            }
            prop_assert_eq!(common.is_empty(), both.is_empty());
        }
    }
}
