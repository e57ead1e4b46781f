//! A set of cells of one array, in bounded memory: single cells, and boxes that stand for every cell in them.
//!
//! Where there are too many of either, boxes stand for them that hold more. So a set may have cells that were never put
//! into it, and never lacks one that was.

use crate::schema::{KeyRange, Subarray};
use std::collections::HashSet;

/// Single cells of one set, unless it is made for fewer.
pub const CELLS_MAX: usize = 65_536;

/// Boxes of one set.
const BOXES_MAX: usize = 1_024;

/// Cells of one array, by their ordered keys.
#[derive(Debug, Clone)]
pub struct CellSet {
    cells: HashSet<Box<[u64]>>,
    boxes: Vec<Subarray>,
    hull: Option<Subarray>,
    cells_max: usize,
}

impl Default for CellSet {
    fn default() -> Self {
        Self::of_at_most(CELLS_MAX)
    }
}

impl CellSet {
    /// An empty set that holds so many single cells by themselves.
    pub fn of_at_most(cells_max: usize) -> Self {
        Self { cells: HashSet::new(), boxes: Vec::new(), hull: None, cells_max }
    }

    /// Whether it has no cell.
    pub fn is_empty(&self) -> bool {
        self.hull.is_none()
    }

    /// The least box that holds all of it.
    pub fn hull(&self) -> Option<&Subarray> {
        self.hull.as_ref()
    }

    /// How many more single cells it holds by themselves.
    pub fn room(&self) -> usize {
        self.cells_max.saturating_sub(self.cells.len())
    }

    /// Puts all cells of a box into it.
    pub fn add_box(&mut self, sub: Subarray) {
        if let Some(cell) = only_cell(&sub).filter(|_| self.room() > 0) {
            return self.add_cell(&cell);
        }
        self.widen(&sub);
        self.boxes.push(sub);
        if self.boxes.len() > BOXES_MAX {
            // Neighbours in time are neighbours in space, mostly.
            let pairs = self.boxes.chunks(2).filter_map(|pair| pair.iter().cloned().reduce(|a, b| a.union(&b)));
            self.boxes = pairs.collect();
        }
    }

    /// Puts one cell into it.
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

    /// Puts into it what `of` has in `bounds`.
    pub fn add_common(&mut self, of: &Self, bounds: &Subarray) {
        if !of.near(bounds) {
            return;
        }
        of.boxes.iter().filter_map(|sub| sub.intersect(bounds)).for_each(|sub| self.add_box(sub));
        of.cells.iter().filter(|cell| bounds.contains(cell.iter().copied())).for_each(|cell| self.add_cell(cell));
    }

    /// Whether it has this cell.
    pub fn contains(&self, keys: &[u64]) -> bool {
        let inside = |sub: &Subarray| sub.contains(keys.iter().copied());
        self.hull.as_ref().is_some_and(inside) && (self.cells.contains(keys) || self.boxes.iter().any(inside))
    }

    /// Whether it has a cell of this box.
    pub fn touches(&self, bounds: &Subarray) -> bool {
        let has_box = || self.boxes.iter().any(|sub| sub.intersects(bounds));
        let has_cell = || self.cells.iter().any(|keys| bounds.contains(keys.iter().copied()));
        self.near(bounds) && (has_box() || has_cell())
    }

    /// Whether a box of it holds all of `bounds`. Several that do so only together are not found out.
    pub fn covers(&self, bounds: &Subarray) -> bool {
        self.boxes.iter().any(|sub| sub.covers(bounds))
    }

    /// A box of cells that it has in `bounds`.
    pub fn found_in(&self, bounds: &Subarray) -> Option<Subarray> {
        let mut common = Self::default();
        common.add_common(self, bounds);
        let least = common.cells.iter().min();
        let cell = least.map(|keys| Subarray::new(keys.iter().map(|key| KeyRange::new(*key, *key)).collect()));
        common.boxes.into_iter().next().or(cell)
    }

    fn near(&self, bounds: &Subarray) -> bool {
        self.hull.as_ref().is_some_and(|hull| hull.intersects(bounds))
    }

    fn widen(&mut self, sub: &Subarray) {
        self.hull = Some(self.hull.as_ref().map_or_else(|| sub.clone(), |hull| hull.union(sub)));
    }
}

/// The keys of the cell that is all of a box.
fn only_cell(sub: &Subarray) -> Option<Vec<u64>> {
    sub.ranges().iter().map(|range| (range.lo == range.hi).then_some(range.lo)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn square(y: (u64, u64), x: (u64, u64)) -> Subarray {
        Subarray::new(vec![KeyRange::new(y.0, y.1), KeyRange::new(x.0, x.1)])
    }

    #[test]
    fn more_boxes_and_cells_than_are_held_are_all_found() {
        let mut set = CellSet::default();
        (0..5_000).for_each(|n| set.add_box(square((n * 10, n * 10 + 1), (3, 4))));
        assert!(set.boxes.len() <= BOXES_MAX);
        assert!((0..5_000).all(|n| set.contains(&[n * 10 + 1, 4])), "none is lost");
        assert!(!set.contains(&[0, 5]) && !set.touches(&square((60_000, 60_009), (3, 4))));
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
        /// While few, a set is exactly what was put into it.
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
