//! Units of a dense read that the device is told of before they are read.

use super::piece::piece_ranges;
use super::plan::{CellSource, DensePlan, Unit};
use super::result::ResultColumn;
use crate::base::Result;
use crate::schema::Subarray;
use crate::tile::Strided;
use std::sync::atomic::Ordering::Relaxed;

/// Bytes that lie told and unread before each of the threads that read.
const WINDOW_BYTES: u64 = 8 << 20;

/// A group of units that several threads read, and the one that comes after it. Who reads a unit tells those that come
/// next, so that the device has work throughout, also from one group to the next, and no thread tells for the others.
pub(super) struct Readahead<'u> {
    group: &'u [Unit],
    next: &'u [Unit],
    /// Units that are told before they are read.
    depth: usize,
}

impl<'u> Readahead<'u> {
    /// Of a group and the one after it, with so many bytes in a cell.
    pub(in crate::query) fn new(group: &'u [Unit], next: &'u [Unit], row_bytes: u64) -> Self {
        let largest = group.iter().map(|unit| unit.region.cells() as u64).max().unwrap_or(1);
        let depth = (WINDOW_BYTES / largest.saturating_mul(row_bytes).max(1)).max(1);
        Self { group, next, depth: depth as usize }
    }

    /// To be called before unit number `at` of the group is read: calls `tell` with it and with those that follow, as many
    /// as the window holds, each once.
    pub(in crate::query) fn before(&self, at: usize, tell: impl Fn(&Unit) -> Result<()>) -> Result<()> {
        let later = self.group.iter().chain(self.next).skip(at).take(1 + self.depth);
        later.filter(|unit| !unit.told.swap(true, Relaxed)).try_for_each(tell)
    }
}

impl DensePlan {
    /// Tells the device, if it is waited for, what will be read of a region.
    pub(super) fn prefetch(&self, results: &[ResultColumn<'_>], region: &Subarray, to: &Strided) -> Result<()> {
        for result in results {
            let CellSource::One(source) = self.origin(result.attr, region) else { continue };
            if !source.source().is_cold() {
                continue;
            }
            source.source().prefetch(&piece_ranges(result.attr, source.as_ref(), region, to)?);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::{KeyRange, Subarray};
    use std::cell::RefCell;

    /// Units of 2^20 cells, number by number from `first` on.
    fn units(first: u64, count: u64) -> Vec<Unit> {
        let region = |n: u64| Subarray::new(vec![KeyRange::new(n << 20, ((n + 1) << 20) - 1)]);
        (first..first + count).map(|n| Unit::new(n, region(n))).collect()
    }

    /// What is told before each of these units of the first group is read.
    fn told(order: &[usize], row_bytes: u64) -> Vec<Vec<u64>> {
        let (group, next) = (units(0, 10), units(10, 10));
        let ahead = Readahead::new(&group, &next, row_bytes);
        let before = |at: &usize| {
            let told = RefCell::new(Vec::new());
            let tell = |unit: &Unit| {
                told.borrow_mut().push(unit.region.ranges()[0].lo >> 20);
                Ok(())
            };
            ahead.before(*at, tell).unwrap();
            told.into_inner()
        };
        order.iter().map(before).collect()
    }

    #[test]
    fn a_window_of_later_units_is_told_and_each_once() {
        assert_eq!(told(&[0, 1, 2], 4), [vec![0, 1, 2], vec![3], vec![4]]);
        assert_eq!(told(&[0, 5, 1, 6, 4], 4), [vec![0, 1, 2], vec![5, 6, 7], vec![3], vec![8], vec![4]]);
        assert_eq!(told(&[0, 9], 1), [(0..9).collect::<Vec<_>>(), (9..18).collect()], "on into the next group");
    }

    #[test]
    fn one_unit_is_told_ahead_however_long_they_are() {
        assert_eq!(told(&[0, 1], u64::MAX), [vec![0, 1], vec![2]]);
    }
}
