//! Positions along one dimension, counted from the low end of its domain, and how they are found by ranges of positions.

use crate::base::{Error, Result};
use crate::schema::Dimension;
use std::ops::Range;

/// Positions wanted along one dimension, in the order of the result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AxisPositions {
    /// All of it; the only choice along a dimension of floats or texts.
    All,
    /// So many positions from `start` on, each `step` after the one before; a negative step goes down.
    Strided {
        /// The first position.
        start: u64,
        /// How many there are.
        count: u64,
        /// From one to the next; not 0.
        step: i64,
    },
    /// Positions in any order, each as often as it is wanted.
    Listed(Vec<u64>),
}

impl AxisPositions {
    /// The lowest and the highest position wanted of a dimension that ends at position `last`; `None` if none is.
    ///
    /// # Errors
    /// Bounds: a position that the dimension does not have.
    pub(super) fn hull(&self, last: u64) -> Result<Option<(u64, u64)>> {
        let ends = match self {
            Self::All => Some((0, last)),
            Self::Strided { count: 0, .. } => None,
            Self::Strided { start, count, step } => {
                let reach = i128::from(count - 1).saturating_mul(i128::from(*step));
                let end = u64::try_from(i128::from(*start).saturating_add(reach)).map_err(|_| outside(*start, last))?;
                Some((*start.min(&end), *start.max(&end)))
            }
            Self::Listed(list) => list.iter().min().copied().zip(list.iter().max().copied()),
        };
        match ends {
            Some((_, high)) if high > last => Err(outside(high, last)),
            ends => Ok(ends),
        }
    }

    /// Makes all of a dimension without a coordinate none; whether no position is wanted.
    pub(super) fn settle(&mut self, dim: &Dimension) -> bool {
        if *self == Self::All && dim.range().is_empty() {
            *self = Self::Listed(Vec::new());
        }
        *self != Self::All && self.count(0) == 0
    }

    /// How many positions are wanted.
    pub(super) fn count(&self, last: u64) -> u64 {
        match self {
            Self::All => last.saturating_add(1),
            Self::Strided { count, .. } => *count,
            Self::Listed(list) => list.len() as u64,
        }
    }
}

/// The last position of a dimension.
///
/// # Errors
/// Bounds: `is_none` is false, and the dimension has no position.
pub(super) fn last_of(dim: &Dimension, is_none: bool) -> Result<u64> {
    let range = dim.range();
    match (range.is_empty(), is_none) {
        (false, _) => Ok(range.hi - range.lo),
        (true, true) => Ok(0),
        (true, false) => Err(Error::bounds("there is no position yet: the dimension has no coordinate")),
    }
}

fn outside(position: u64, last: u64) -> Error {
    Error::bounds(format!("position {position} lies outside a dimension whose last position is {last}"))
}

/// Positions in ascending order, each with its place in the result.
#[derive(Debug)]
pub(super) enum SortedAxis {
    /// `first`, `first + step`, …; places go up from 0, or down to it.
    Strided { first: u64, step: u64, count: u64, falls: bool },
    /// Positions with their places.
    Listed(Vec<(u64, u64)>),
}

impl SortedAxis {
    pub(super) fn new(positions: &AxisPositions, last: u64) -> Self {
        match positions {
            AxisPositions::All => Self::Strided { first: 0, step: 1, count: positions.count(last), falls: false },
            AxisPositions::Strided { start, count, step } => {
                let down = step.unsigned_abs().saturating_mul(count.saturating_sub(1));
                let falls = *step < 0;
                let first = if falls { start.saturating_sub(down) } else { *start };
                Self::Strided { first, step: step.unsigned_abs().max(1), count: *count, falls }
            }
            AxisPositions::Listed(list) => {
                let mut sorted: Vec<(u64, u64)> = list.iter().copied().zip(0..).collect();
                sorted.sort_unstable();
                Self::Listed(sorted)
            }
        }
    }

    pub(super) fn len(&self) -> u64 {
        match self {
            Self::Strided { count, .. } => *count,
            Self::Listed(list) => list.len() as u64,
        }
    }

    /// The position of number `at` in ascending order, and its place in the result.
    pub(super) fn get(&self, at: u64) -> Option<(u64, u64)> {
        match self {
            Self::Strided { first, step, count, falls } => {
                let place = if *falls { count.checked_sub(at + 1)? } else { at };
                (at < *count).then_some((first + at * step, place))
            }
            Self::Listed(list) => list.get(at as usize).copied(),
        }
    }

    /// The numbers of the positions below `end`, from number `from` on.
    pub(super) fn below(&self, from: u64, end: u64) -> Range<u64> {
        let to = match self {
            Self::Strided { first, step, count, .. } => end.saturating_sub(*first).div_ceil(*step).min(*count),
            Self::Listed(list) => list.partition_point(|(position, _)| *position < end) as u64,
        };
        from..to.max(from)
    }

    /// Runs of numbers whose positions lie in one interval of a grid; `ends_at` gives the first position after the interval that holds a position.
    pub(super) fn runs(&self, within: Range<u64>, ends_at: impl Fn(u64) -> u64) -> Vec<Range<u64>> {
        let (mut runs, mut from) = (Vec::new(), within.start);
        while from < within.end
            && let Some((position, _)) = self.get(from)
        {
            let run = self.below(from, ends_at(position));
            let run = run.start..run.end.clamp(from + 1, within.end);
            from = run.end;
            runs.push(run);
        }
        runs
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn expected(positions: &AxisPositions, size: u64) -> Vec<(u64, u64)> {
        let listed: Vec<u64> = match positions {
            AxisPositions::All => (0..size).collect(),
            AxisPositions::Strided { start, count, step } => {
                (0..*count as i64).map(|n| (*start as i64 + n * step) as u64).collect()
            }
            AxisPositions::Listed(list) => list.clone(),
        };
        let mut sorted: Vec<(u64, u64)> = listed.into_iter().zip(0..).collect();
        sorted.sort_unstable();
        sorted
    }

    fn any_axis() -> impl Strategy<Value = AxisPositions> {
        let strided = (0..100u64, 0..20u64, -9..9i64).prop_filter_map("inside", |(start, count, step)| {
            let last = start as i64 + step * (count as i64 - 1).max(0);
            (step != 0 && (0..100).contains(&last)).then_some(AxisPositions::Strided { start, count, step })
        });
        let listed = prop::collection::vec(0..100u64, 0..30).prop_map(AxisPositions::Listed);
        prop_oneof![Just(AxisPositions::All), strided, listed]
    }

    proptest! {
        #[test]
        fn sorted_positions_keep_their_places(axis in any_axis(), side in 1..40u64) {
            let (sorted, expected) = (SortedAxis::new(&axis, 99), expected(&axis, 100));
            let all: Vec<(u64, u64)> = (0..sorted.len()).filter_map(|at| sorted.get(at)).collect();
            prop_assert_eq!(&all, &expected);
            let hull = axis.hull(99).unwrap();
            prop_assert_eq!(hull, expected.first().map(|low| (low.0, expected.last().unwrap().0)));
            let runs = sorted.runs(0..sorted.len(), |position| (position / side + 1) * side);
            let cells: Vec<Vec<u64>> = runs
                .iter()
                .map(|run| run.clone().map(|at| sorted.get(at).unwrap().0 / side).collect())
                .collect();
            prop_assert!(cells.iter().all(|cell| !cell.is_empty() && cell.iter().all(|c| *c == cell[0])));
            prop_assert!(cells.windows(2).all(|pair| pair[0][0] < pair[1][0]));
            prop_assert_eq!(cells.iter().map(Vec::len).sum::<usize>(), expected.len());
        }
    }

    #[test]
    fn positions_outside_are_refused() {
        let strided = |start, count, step| AxisPositions::Strided { start, count, step };
        for bad in [strided(0, 11, 1), strided(3, 3, -2), strided(9, 2, 1), AxisPositions::Listed(vec![1, 10])] {
            assert!(bad.hull(9).is_err(), "{bad:?}");
        }
        assert_eq!(strided(9, 4, -3).hull(9).unwrap(), Some((0, 9)));
        assert_eq!(strided(99, 0, 1).hull(9).unwrap(), None);
        assert_eq!(AxisPositions::All.hull(u64::MAX).unwrap(), Some((0, u64::MAX)));
    }
}
