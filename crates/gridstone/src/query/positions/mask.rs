//! A mask over neighbouring dimensions: the cells where it is true, in row order, and how many are true before any of them.

use crate::base::{Error, Result};
use std::ops::Range;

/// Cells between two counts that are kept.
const COUNTED: usize = 512;

/// A mask over some dimensions that follow each other: a byte per position, in row order, 0 where it is false.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mask<'a> {
    first: usize,
    shape: Vec<u64>,
    cells: &'a [u8],
    /// How many are true before cell 0, [`COUNTED`], twice that, and so on; at the end how many in all.
    counts: Vec<u64>,
}

impl<'a> Mask<'a> {
    /// The mask over the dimensions from number `first` on, whose sizes are `shape`.
    ///
    /// # Errors
    /// Input: `cells` is not as long as the shape says.
    pub fn new(first: usize, shape: Vec<u64>, cells: &'a [u8]) -> Result<Self> {
        let asked = shape.iter().map(|n| u128::from(*n)).product::<u128>();
        if shape.is_empty() || asked != cells.len() as u128 {
            return Err(Error::input(format!(
                "a mask of {} values was given for dimensions of {shape:?}",
                cells.len()
            )));
        }
        let mut counts = Vec::with_capacity(cells.len() / COUNTED + 2);
        let mut count = 0;
        for part in cells.chunks(COUNTED) {
            counts.push(count);
            count += count_true(part);
        }
        counts.push(count);
        Ok(Self { first, shape, cells, counts })
    }

    /// The dimensions that it is over.
    pub(super) fn dims(&self) -> Range<usize> {
        self.first..self.first + self.shape.len()
    }

    pub(super) fn shape(&self) -> &[u64] {
        &self.shape
    }

    /// How many cells are true.
    pub fn count(&self) -> u64 {
        self.counts.last().copied().unwrap_or(0)
    }

    /// How many cells before number `cell` are true.
    fn rank(&self, cell: usize) -> u64 {
        let part = cell / COUNTED;
        let before = self.cells.get(part * COUNTED..cell).unwrap_or_default();
        self.counts.get(part).copied().unwrap_or(0) + count_true(before)
    }

    /// The numbers of the true cells from the `rank`th true one on.
    pub(super) fn true_cells(&self, rank: u64) -> impl Iterator<Item = u64> + '_ {
        let part = self.counts.partition_point(|count| *count <= rank).saturating_sub(1);
        let start = (part * COUNTED).min(self.cells.len());
        let skipped = rank.saturating_sub(self.counts.get(part).copied().unwrap_or(0));
        let cells = self.cells.get(start..).unwrap_or_default().iter().zip(start as u64..);
        cells.filter(|(cell, _)| **cell != 0).map(|(_, number)| number).skip(skipped as usize)
    }

    /// The same of all of it.
    pub(super) fn whole_hull(&self) -> Option<Vec<(u64, u64)>> {
        let high: Option<Vec<u64>> = self.shape.iter().map(|n| n.checked_sub(1)).collect();
        self.hull(&vec![0; self.shape.len()], &high?)
    }

    /// The first and last position of each dimension between which `low..=high` holds true cells; `None` if it holds none.
    pub(super) fn hull(&self, low: &[u64], high: &[u64]) -> Option<Vec<(u64, u64)>> {
        let mut hull: Option<Vec<(u64, u64)>> = None;
        self.each_row(low, high, |outer, from, row| {
            let (Some(first), Some(last)) = (row.iter().position(|c| *c != 0), row.iter().rposition(|c| *c != 0))
            else {
                return;
            };
            let ends = outer.iter().map(|at| (*at, *at)).chain([(from + first as u64, from + last as u64)]);
            match &mut hull {
                None => hull = Some(ends.collect()),
                Some(hull) => hull.iter_mut().zip(ends).for_each(|(held, (a, b))| {
                    *held = (held.0.min(a), held.1.max(b));
                }),
            }
        });
        hull
    }

    /// Calls `f` with each true cell of a box: its positions, and how many cells are true before it.
    pub(super) fn each_true(&self, low: &[u64], high: &[u64], mut f: impl FnMut(&[u64], u64, u64)) {
        let width = self.shape.last().copied().unwrap_or(1);
        self.each_row(low, high, |outer, from, row| {
            let line = outer.iter().zip(&self.shape).fold(0, |line, (at, n)| line * n + at);
            let mut rank = self.rank((line * width + from) as usize);
            for (cell, at) in row.iter().zip(from..) {
                if *cell != 0 {
                    f(outer, at, rank);
                    rank += 1;
                }
            }
        });
    }

    /// Calls `f` with each row of a box: the positions of the outer dimensions, the first one along the last dimension, and the row's cells.
    fn each_row(&self, low: &[u64], high: &[u64], mut f: impl FnMut(&[u64], u64, &[u8])) {
        let (Some((from, outer_low)), Some((to, outer_high))) = (low.split_last(), high.split_last()) else { return };
        let width = self.shape.last().copied().unwrap_or(1);
        let mut at = outer_low.to_vec();
        loop {
            let line = at.iter().zip(&self.shape).fold(0, |line, (at, n)| line * n + at);
            let start = (line * width + from) as usize;
            f(&at, *from, self.cells.get(start..start + (to - from + 1) as usize).unwrap_or_default());
            let Some(axis) = (0..at.len()).rev().find(|axis| at.get(*axis) < outer_high.get(*axis)) else { return };
            at.iter_mut().skip(axis).take(1).for_each(|slot| *slot += 1);
            at.iter_mut().zip(outer_low).skip(axis + 1).for_each(|(slot, low)| *slot = *low);
        }
    }
}

fn count_true(cells: &[u8]) -> u64 {
    cells.iter().map(|cell| u64::from(*cell != 0)).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn ranks_and_boxes_are_those_of_a_look_at_each_cell(
            shape in prop::collection::vec(1..14u64, 1..4),
            seed in prop::collection::vec(0..5u8, 2_200),
            rank in 0..40u64,
        ) {
            let len = shape.iter().product::<u64>() as usize;
            let cells: Vec<u8> = seed.iter().take(len).map(|s| u8::from(*s == 0)).collect();
            let mask = Mask::new(0, shape.clone(), &cells).unwrap();
            let all: Vec<u64> = (0..len as u64).filter(|n| cells[*n as usize] != 0).collect();
            prop_assert_eq!(mask.count(), all.len() as u64);
            prop_assert_eq!(mask.true_cells(rank).collect::<Vec<_>>(), all.get(rank as usize..).unwrap_or_default());
            let low: Vec<u64> = shape.iter().map(|n| n / 3).collect();
            let high: Vec<u64> = shape.iter().map(|n| n - 1).collect();
            let mut found = Vec::new();
            mask.each_true(&low, &high, |outer, at, rank| {
                found.push((outer.iter().copied().chain([at]).collect::<Vec<u64>>(), rank));
            });
            let positions = |mut number: u64| {
                let mut at: Vec<u64> = shape.iter().rev().map(|n| { let p = number % n; number /= n; p }).collect();
                at.reverse();
                at
            };
            let expected: Vec<(Vec<u64>, u64)> = all.iter().zip(0..).map(|(n, rank)| (positions(*n), rank))
                .filter(|(at, _)| at.iter().zip(&low).all(|(p, l)| p >= l)).collect();
            prop_assert_eq!(&found, &expected);
            let hull = mask.hull(&low, &high);
            let ends = (0..shape.len()).map(|d| {
                let along = expected.iter().map(|(at, _)| at[d]);
                Some((along.clone().min()?, along.max()?))
            }).collect::<Option<Vec<_>>>();
            prop_assert_eq!(hull, ends);
        }
    }

    #[test]
    fn a_mask_has_the_length_of_its_dimensions() {
        assert!(Mask::new(0, vec![2, 3], &[1; 5]).is_err());
        assert!(Mask::new(0, vec![], &[]).is_err());
        assert_eq!(Mask::new(0, vec![0, 3], &[]).unwrap().count(), 0);
    }
}
