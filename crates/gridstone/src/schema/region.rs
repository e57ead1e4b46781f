//! A region: several boxes that are queried together.
//!
//! ```text
//! a grid     rows 2..=3, 7, 9 and columns 0..=5, 8      each combination of them is a box: an axis is looked at after the other
//! any boxes  a b c d …  | q r s t …  |                  sorted by their low corners; a hull around each sixteen, one around each sixteen of those, …
//! ```

use super::{KeyRange, Subarray};
use std::ops::Range;

/// So many boxes, or hulls, have a hull of the next level around them.
const RUN: usize = 16;

/// The cells that lie in any of some boxes, which may overlap; without boxes, none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Sorted by their low corners, each once.
    boxes: Vec<Subarray>,
    /// Hulls of each [`RUN`] boxes, then of each so many of those, until they are few.
    hulls: Vec<Vec<Subarray>>,
    /// Where the boxes are all combinations of some ranges along each axis: these, joined where they touch, ascending.
    grid: Option<Vec<Vec<KeyRange>>>,
    hull: Option<Subarray>,
    /// The boxes as they were asked for, if that is not what they are: where an end was left open, to the last key.
    given: Option<Vec<Subarray>>,
}

fn in_order(boxes: &mut Vec<Subarray>) {
    fn corners(sub: &Subarray) -> impl Iterator<Item = (u64, u64)> {
        sub.ranges().iter().map(|range| (range.lo, range.hi))
    }
    if !boxes.is_sorted_by(|a, b| corners(a).lt(corners(b))) {
        boxes.sort_by(|a, b| corners(a).cmp(corners(b)));
        boxes.dedup();
    }
}

/// The smallest box around `boxes`.
fn around(boxes: &[Subarray]) -> Option<Subarray> {
    let (first, others) = boxes.split_first()?;
    Some(others.iter().fold(first.clone(), |hull, sub| hull.union(sub)))
}

fn levels(boxes: &[Subarray]) -> Vec<Vec<Subarray>> {
    let mut levels: Vec<Vec<Subarray>> = Vec::new();
    loop {
        let below = levels.last().map_or(boxes, Vec::as_slice);
        if below.len() <= RUN {
            return levels;
        }
        let hulls = below.chunks(RUN).filter_map(around).collect();
        levels.push(hulls);
    }
}

/// The ranges along each axis, if `boxes`, each of which is there once, are all combinations of them.
fn grid_of(boxes: &[Subarray]) -> Option<Vec<Vec<KeyRange>>> {
    let (mut grid, mut combinations) = (Vec::new(), 1usize);
    for axis in 0..boxes.first()?.ndim() {
        let mut ends: Vec<(u64, u64)> =
            boxes.iter().filter_map(|b| b.ranges().get(axis)).map(|r| (r.lo, r.hi)).collect();
        ends.sort_unstable();
        ends.dedup();
        combinations = combinations.checked_mul(ends.len())?;
        if combinations > boxes.len() || ends.iter().any(|(lo, hi)| lo > hi) {
            return None;
        }
        grid.push(joined(&ends));
    }
    (combinations == boxes.len()).then_some(grid)
}

/// Ranges, by ascending ends; those that overlap, or touch, are one.
fn joined(ends: &[(u64, u64)]) -> Vec<KeyRange> {
    let mut ranges: Vec<KeyRange> = Vec::with_capacity(ends.len());
    for (lo, hi) in ends {
        match ranges.last_mut() {
            Some(last) if last.hi.checked_add(1).is_none_or(|next| *lo <= next) => last.hi = last.hi.max(*hi),
            _ => ranges.push(KeyRange { lo: *lo, hi: *hi }),
        }
    }
    ranges
}

/// Those of some ranges, which ascend and are apart, that have a key of `range`.
fn touched(ranges: &[KeyRange], range: KeyRange) -> &[KeyRange] {
    let later = ranges.get(ranges.partition_point(|r| r.hi < range.lo)..).unwrap_or_default();
    later.get(..later.partition_point(|r| r.lo <= range.hi)).unwrap_or_default()
}

/// Whether one of some ranges, which ascend and are apart, holds all of `range`.
fn holds(ranges: &[KeyRange], range: KeyRange) -> bool {
    matches!(touched(ranges, range), [only] if only.lo <= range.lo && range.hi <= only.hi)
}

/// Whether a box has a cell of another one.
fn meet(a: &Subarray, b: impl Iterator<Item = KeyRange>) -> bool {
    a.ranges().iter().zip(b).all(|(a, b)| a.intersect(b).is_some())
}

/// The ranges of a box.
fn ranges(sub: &Subarray) -> impl Iterator<Item = KeyRange> + Clone {
    sub.ranges().iter().copied()
}

impl Region {
    /// The region of these boxes, all with the same number of axes.
    pub fn new(mut boxes: Vec<Subarray>) -> Self {
        in_order(&mut boxes);
        Self { hull: around(&boxes), hulls: levels(&boxes), grid: grid_of(&boxes), boxes, given: None }
    }

    /// The same region, asked for as `given`: boxes that reach to the least or the greatest key where they were to reach to an end
    /// of the domain, wherever that is.
    #[must_use]
    pub fn asked_as(self, mut given: Vec<Subarray>) -> Self {
        in_order(&mut given);
        Self { given: Some(given), ..self }
    }

    /// The whole of a domain.
    pub fn whole(domain: Subarray) -> Self {
        let given = vec![domain.without_ends()];
        Self::new(vec![domain]).asked_as(given)
    }

    /// The boxes as they were asked for: without the ends that were left open.
    pub fn given(&self) -> &[Subarray] {
        self.given.as_deref().unwrap_or(&self.boxes)
    }

    /// The boxes.
    pub fn boxes(&self) -> &[Subarray] {
        &self.boxes
    }

    /// The number of axes.
    pub fn ndim(&self) -> usize {
        self.hull.as_ref().map_or(0, Subarray::ndim)
    }

    /// The smallest box around all of them.
    pub fn hull(&self) -> Option<&Subarray> {
        self.hull.as_ref()
    }

    /// The box, if there is only one.
    pub fn only(&self) -> Option<&Subarray> {
        if let [only] = self.boxes.as_slice() { Some(only) } else { None }
    }

    /// The smallest box around what lies in `sub`; `None` if nothing does.
    pub fn hull_within(&self, sub: &Subarray) -> Option<Subarray> {
        let ends = |(along, range): (&Vec<KeyRange>, &KeyRange)| {
            let along = touched(along, *range);
            range.intersect(along.first()?.joined(*along.last()?))
        };
        match (&self.hull, &self.grid) {
            (Some(hull), _) if sub.covers(hull) => Some(hull.clone()),
            (_, Some(grid)) => grid.iter().zip(sub.ranges()).map(ends).collect::<Option<Vec<_>>>().map(Subarray::new),
            _ => self.touching(sub).iter().filter_map(|b| b.intersect(sub)).reduce(|a, b| a.union(&b)),
        }
    }

    /// A box of which `sub` holds just what it holds of the region; `None` if that is several boxes, or not known.
    pub fn part(&self, sub: &Subarray) -> Option<Subarray> {
        if let Some(grid) = &self.grid {
            let only = |(along, range): (&Vec<KeyRange>, &KeyRange)| match touched(along, *range) {
                [only] => Some(*only),
                _ => None,
            };
            return grid.iter().zip(sub.ranges()).map(only).collect::<Option<Vec<_>>>().map(Subarray::new);
        }
        let (mut first, mut count) = (None, 0);
        self.find(self.hulls.len(), 0..usize::MAX, &ranges(sub), &mut |b| {
            first = Some(b);
            count += 1;
            count > 1
        });
        first.filter(|_| count == 1).cloned()
    }

    /// The boxes that have a cell in common with `sub`, in their order.
    pub fn touching<'a>(&'a self, sub: &Subarray) -> Vec<&'a Subarray> {
        let mut found = Vec::new();
        self.find(self.hulls.len(), 0..usize::MAX, &ranges(sub), &mut |b| {
            found.push(b);
            false
        });
        found
    }

    /// Hands the boxes that touch a box to `end`, until it says that this is the end; gives whether it did. They lie under the hulls of a level
    /// (0: they are the boxes) whose places are in `run`.
    fn find<'a, I: Iterator<Item = KeyRange> + Clone>(
        &'a self,
        level: usize,
        run: Range<usize>,
        sub: &I,
        end: &mut dyn FnMut(&'a Subarray) -> bool,
    ) -> bool {
        let all = match level.checked_sub(1) {
            Some(place) => self.hulls.get(place).map(Vec::as_slice).unwrap_or_default(),
            None => &self.boxes,
        };
        let run = run.start..run.end.min(all.len());
        for (at, hull) in run.clone().zip(all.get(run).unwrap_or_default()) {
            let ended = meet(hull, sub.clone())
                && match level.checked_sub(1) {
                    Some(below) => self.find(below, at * RUN..(at + 1) * RUN, sub, end),
                    None => end(hull),
                };
            if ended {
                return true;
            }
        }
        false
    }

    /// Whether any cell of `sub` lies in it.
    pub fn touches(&self, sub: &Subarray) -> bool {
        self.meets(ranges(sub))
    }

    /// The same of a box of these ranges.
    pub fn meets(&self, ranges: impl Iterator<Item = KeyRange> + Clone) -> bool {
        match &self.grid {
            Some(grid) => grid.iter().zip(ranges).all(|(along, range)| !touched(along, range).is_empty()),
            None => self.find(self.hulls.len(), 0..usize::MAX, &ranges, &mut |_| true),
        }
    }

    /// Whether it contains all of `sub`; may be false where only several of its boxes together contain it.
    pub fn covers(&self, sub: &Subarray) -> bool {
        match &self.grid {
            Some(grid) => grid.iter().zip(sub.ranges()).all(|(along, range)| holds(along, *range)),
            None => self.find(self.hulls.len(), 0..usize::MAX, &ranges(sub), &mut |b| b.covers(sub)),
        }
    }

    /// Along which axes coordinates in `sub` have to be looked at to know which of its cells lie in it.
    pub fn deciding(&self, sub: &Subarray) -> Vec<bool> {
        match &self.grid {
            Some(grid) => grid.iter().zip(sub.ranges()).map(|(along, range)| !holds(along, *range)).collect(),
            None => vec![true; sub.ndim()],
        }
    }

    /// Which cells lie in it; `coords` are their coordinates as ordered keys, a column per axis.
    pub fn mark(&self, coords: &[&[u64]]) -> Vec<bool> {
        let mut flags = vec![!self.boxes.is_empty(); coords.first().map_or(0, |column| column.len())];
        self.clear_outside(&coords.iter().map(|keys| Some(*keys)).collect::<Vec<_>>(), &mut flags);
        flags
    }

    /// Clears the flags of the cells that do not lie in it. `coords` has a column per axis that decides, as [`Region::deciding`] says.
    pub fn clear_outside(&self, coords: &[Option<&[u64]>], flags: &mut [bool]) {
        let ends = |keys: &Option<&[u64]>| match keys {
            Some(keys) => Some(KeyRange { lo: *keys.iter().min()?, hi: *keys.iter().max()? }),
            None => Some(KeyRange { lo: 0, hi: u64::MAX }),
        };
        let Some(ends) = coords.iter().map(ends).collect::<Option<Vec<_>>>() else { return };
        if let Some(grid) = &self.grid {
            for ((along, range), column) in grid.iter().zip(ends).zip(coords) {
                if let Some(column) = column {
                    clear_beside(touched(along, range), column, flags);
                }
            }
            return;
        }
        let mut inside = vec![false; flags.len()];
        for sub in self.touching(&Subarray::new(ends)) {
            for (row, inside) in inside.iter_mut().enumerate() {
                let holds = |range: &KeyRange, keys: &[u64]| keys.get(row).is_some_and(|key| range.contains(*key));
                let mut columns = sub.ranges().iter().zip(coords);
                *inside |= columns.all(|(range, keys)| keys.is_none_or(|keys| holds(range, keys)));
            }
        }
        flags.iter_mut().zip(inside).for_each(|(flag, inside)| *flag &= inside);
    }
}

/// Clears the flags of keys that lie in none of some ranges, which ascend and are apart.
fn clear_beside(ranges: &[KeyRange], keys: &[u64], flags: &mut [bool]) {
    let cells = flags.iter_mut().zip(keys);
    match ranges {
        [] => flags.fill(false),
        [only] => cells.for_each(|(flag, key)| *flag &= only.contains(*key)),
        many => cells.filter(|(flag, _)| **flag).for_each(|(flag, key)| {
            let at = many.partition_point(|range| range.hi < *key);
            *flag = many.get(at).is_some_and(|range| range.lo <= *key);
        }),
    }
}

#[cfg(test)]
mod tests {
    use super::super::KeyRange;
    use super::*;
    use proptest::prelude::*;

    fn a_box() -> impl Strategy<Value = Subarray> {
        let range = (0..12u64, 0..4u64).prop_map(|(lo, len)| KeyRange::new(lo, lo + len));
        (range.clone(), range).prop_map(|(a, b)| Subarray::new(vec![a, b]))
    }

    /// A few boxes, many, or all combinations of some ranges.
    fn boxes() -> impl Strategy<Value = Vec<Subarray>> {
        let range = (0..12u64, 0..4u64).prop_map(|(lo, len)| KeyRange::new(lo, lo + len));
        let ranges = prop::collection::vec(range, 1..5);
        let combined = |(rows, cols): (Vec<KeyRange>, Vec<KeyRange>)| {
            let row = |row: &KeyRange| cols.iter().map(|col| Subarray::new(vec![*row, *col])).collect::<Vec<_>>();
            rows.iter().flat_map(row).collect()
        };
        prop_oneof![
            prop::collection::vec(a_box(), 1..9),
            prop::collection::vec(a_box(), 250..300),
            (ranges.clone(), ranges).prop_map(combined),
        ]
    }

    proptest! {
        #[test]
        fn a_region_is_its_cells(boxes in boxes(), asked in a_box()) {
            let region = Region::new(boxes.clone());
            let held = |x: u64, y: u64| boxes.iter().any(|b| b.contains([x, y]));
            let all: Vec<(u64, u64)> = (0..16).flat_map(|x| (0..16).map(move |y| (x, y))).collect();
            let (xs, ys): (Vec<u64>, Vec<u64>) = all.iter().copied().unzip();
            let wanted: Vec<bool> = all.iter().map(|(x, y)| held(*x, *y)).collect();
            prop_assert_eq!(region.mark(&[&xs, &ys]), wanted);
            let inside: Vec<(u64, u64)> = all.iter().copied().filter(|(x, y)| asked.contains([*x, *y])).collect();
            prop_assert_eq!(region.touches(&asked), inside.iter().any(|(x, y)| held(*x, *y)));
            let whole = inside.iter().all(|(x, y)| held(*x, *y));
            prop_assert!(!region.covers(&asked) || whole);
            prop_assert!(!boxes.iter().any(|b| b.covers(&asked)) || region.covers(&asked));
            let touching: Vec<&Subarray> = region.boxes().iter().filter(|b| b.intersects(&asked)).collect();
            let parts = touching.iter().filter_map(|b| b.intersect(&asked)).reduce(|a, b| a.union(&b));
            prop_assert_eq!(region.hull_within(&asked), parts);
            if let Some(part) = region.part(&asked) {
                prop_assert!(inside.iter().all(|(x, y)| part.contains([*x, *y]) == held(*x, *y)));
            }
            let columns: Vec<Vec<u64>> = vec![inside.iter().map(|c| c.0).collect(), inside.iter().map(|c| c.1).collect()];
            let deciding = region.deciding(&asked);
            let read = |(keys, decides): (&'_ Vec<u64>, &bool)| decides.then(|| keys.clone());
            let read: Vec<Option<Vec<u64>>> = columns.iter().zip(&deciding).map(read).collect();
            let mut flags = vec![region.touches(&asked); inside.len()];
            region.clear_outside(&read.iter().map(Option::as_deref).collect::<Vec<_>>(), &mut flags);
            prop_assert_eq!(flags, inside.iter().map(|(x, y)| held(*x, *y)).collect::<Vec<_>>());
            prop_assert!(touching.len() != 1 || region.part(&asked).is_some());
            prop_assert_eq!(region.touching(&asked), touching);
            prop_assert!(boxes.iter().all(|b| region.hull().unwrap().covers(b)));
        }
    }

    #[test]
    fn rows_and_columns_are_looked_at_one_after_the_other() {
        let of = |ends: &[(u64, u64)]| ends.iter().map(|(lo, hi)| KeyRange::new(*lo, *hi)).collect::<Vec<_>>();
        let (rows, cols) = (of(&[(0, 0), (1, 3), (9, u64::MAX)]), of(&[(4, 5), (7, 7)]));
        let row = |row: &KeyRange| cols.iter().map(|col| Subarray::new(vec![*row, *col])).collect::<Vec<_>>();
        let mut boxes: Vec<Subarray> = rows.iter().flat_map(row).collect();
        let region = Region::new(boxes.clone());
        assert_eq!(region.grid, Some(vec![of(&[(0, 3), (9, u64::MAX)]), cols.clone()]));
        let asked = |x: (u64, u64), y: (u64, u64)| Subarray::new(of(&[x, y]));
        assert!(region.covers(&asked((0, 3), (4, 4))), "two boxes together");
        assert!(!region.covers(&asked((0, 4), (4, 4))) && !region.touches(&asked((0, 20), (6, 6))));
        boxes.pop();
        assert_eq!(Region::new(boxes).grid, None);
    }

    #[test]
    fn of_no_box_nothing_is_held() {
        let one = Subarray::new(vec![KeyRange::new(1, 2)]);
        let none = Region::new(Vec::new());
        assert!(none.hull().is_none() && !none.touches(&one) && !none.covers(&one));
        assert_eq!(none.mark(&[&[1, 2]]), [false, false]);
        let region = Region::new(vec![one.clone(), one.clone()]);
        assert_eq!((region.only(), region.mark(&[&[]])), (Some(&one), vec![]));
    }
}
