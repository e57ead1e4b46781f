//! A region: several boxes that are queried together.

use super::Subarray;

/// The cells that lie in any of some boxes, which may overlap; without boxes, none.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Region {
    /// Sorted by the low ends of their first ranges.
    boxes: Vec<Subarray>,
    /// The greatest high end of a first range among the boxes up to each.
    reach: Vec<u64>,
    hull: Option<Subarray>,
    /// The boxes as they were asked for, if that is not what they are: where an end was left open, to the last key.
    given: Option<Vec<Subarray>>,
}

fn in_order(boxes: &mut Vec<Subarray>) {
    boxes.sort_by_cached_key(|sub| sub.ranges().iter().map(|r| (r.lo, r.hi)).collect::<Vec<_>>());
    boxes.dedup();
}

/// The first range of a box.
fn first(sub: &Subarray) -> (u64, u64) {
    sub.ranges().first().map_or((0, u64::MAX), |range| (range.lo, range.hi))
}

impl Region {
    /// The region of these boxes, all with the same number of axes.
    pub fn new(mut boxes: Vec<Subarray>) -> Self {
        in_order(&mut boxes);
        let hull = boxes.iter().cloned().reduce(|a, b| a.union(&b));
        let mut greatest = 0;
        let reach = boxes.iter().map(|sub| {
            greatest = first(sub).1.max(greatest);
            greatest
        });
        Self { reach: reach.collect(), boxes, hull, given: None }
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

    /// The boxes that have a cell in common with `sub`.
    pub fn touching<'a>(&'a self, sub: &'a Subarray) -> impl Iterator<Item = &'a Subarray> + Clone {
        let (lo, hi) = first(sub);
        let from = self.reach.partition_point(|reach| *reach < lo);
        let to = self.boxes.partition_point(|b| first(b).0 <= hi);
        self.boxes.get(from..to).unwrap_or_default().iter().filter(move |b| b.intersects(sub))
    }

    /// Whether any cell of `sub` lies in it.
    pub fn touches(&self, sub: &Subarray) -> bool {
        self.touching(sub).next().is_some()
    }

    /// Whether one of the boxes contains all of `sub`. Returns false where only several of them together contain it.
    pub fn covers(&self, sub: &Subarray) -> bool {
        self.touching(sub).any(|b| b.covers(sub))
    }

    /// Which cells lie in it; `coords` are their coordinates as ordered keys, a column per axis.
    pub fn mark(&self, coords: &[&[u64]]) -> Vec<bool> {
        let rows = coords.first().map_or(0, |column| column.len());
        let ends = |keys: &&[u64]| Some(super::KeyRange::new(*keys.iter().min()?, *keys.iter().max()?));
        let Some(around) = coords.iter().map(ends).collect::<Option<Vec<_>>>().map(Subarray::new) else {
            return vec![false; rows];
        };
        let mut flags = vec![false; rows];
        for sub in self.touching(&around) {
            let mut inside = vec![true; rows];
            for (range, column) in sub.ranges().iter().zip(coords) {
                inside.iter_mut().zip(*column).for_each(|(flag, key)| *flag &= range.contains(*key));
            }
            flags.iter_mut().zip(inside).for_each(|(flag, inside)| *flag |= inside);
        }
        flags
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

    proptest! {
        #[test]
        fn a_region_is_its_cells(boxes in prop::collection::vec(a_box(), 1..9), asked in a_box()) {
            let region = Region::new(boxes.clone());
            let held = |x: u64, y: u64| boxes.iter().any(|b| b.contains([x, y]));
            let all: Vec<(u64, u64)> = (0..16).flat_map(|x| (0..16).map(move |y| (x, y))).collect();
            let (xs, ys): (Vec<u64>, Vec<u64>) = all.iter().copied().unzip();
            let wanted: Vec<bool> = all.iter().map(|(x, y)| held(*x, *y)).collect();
            prop_assert_eq!(region.mark(&[&xs, &ys]), wanted);
            let inside: Vec<(u64, u64)> = all.iter().copied().filter(|(x, y)| asked.contains([*x, *y])).collect();
            prop_assert_eq!(region.touches(&asked), inside.iter().any(|(x, y)| held(*x, *y)));
            prop_assert_eq!(region.covers(&asked), boxes.iter().any(|b| b.covers(&asked)));
            prop_assert!(boxes.iter().all(|b| region.hull().unwrap().covers(b)));
        }
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
