//! The keys of a run of cells, which [`super::KeyLayout`] makes: compared, searched, sorted.

use super::radix::sort_keys;
use super::sort::sort;
use super::tied_keys::TiedKeys;
use crate::base::{Cancel, Result, Spawner};
use std::cmp::Ordering;
use std::ops::Range;

/// The keys of a run of cells.
#[derive(Debug, Clone)]
pub enum CellKeys {
    /// Up to 64 bits.
    Narrow(Vec<u64>),
    /// Up to 128 bits.
    Wide(Vec<u128>),
    /// Longer: `words` words per cell, the most significant first.
    Long {
        /// Words per cell.
        words: usize,
        /// The words of all cells.
        data: Vec<u64>,
    },
    /// Up to 64 bits that several cells may share, and their coordinates.
    TiedNarrow(TiedKeys<u64>),
    /// Up to 128 bits that several cells may share, and their coordinates.
    TiedWide(TiedKeys<u128>),
}

impl CellKeys {
    /// The number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(keys) => keys.len(),
            Self::Wide(keys) => keys.len(),
            Self::Long { words, data } => data.len() / (*words).max(1),
            Self::TiedNarrow(keys) => keys.len(),
            Self::TiedWide(keys) => keys.len(),
        }
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares cell `i` with cell `j` of `other`, which has the same layout.
    pub fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => a.get(i).cmp(&b.get(j)),
            (Self::Wide(a), Self::Wide(b)) => a.get(i).cmp(&b.get(j)),
            (Self::Long { words, data: a }, Self::Long { data: b, .. }) => {
                a.get(i * words..(i + 1) * words).cmp(&b.get(j * words..(j + 1) * words))
            }
            (Self::TiedNarrow(a), Self::TiedNarrow(b)) => a.compare(i, b, j),
            (Self::TiedWide(a), Self::TiedWide(b)) => a.compare(i, b, j),
            _ => Ordering::Equal,
        }
    }

    /// The word of cell `i`, equal to that of [`super::KeyLayout::key`]. Where keys are tied, other cells may have the same.
    pub fn word(&self, i: usize) -> Option<u128> {
        match self {
            Self::Narrow(keys) => keys.get(i).map(|k| u128::from(*k)),
            Self::Wide(keys) => keys.get(i).copied(),
            Self::Long { .. } => None,
            Self::TiedNarrow(keys) => keys.word(i).map(u128::from),
            Self::TiedWide(keys) => keys.word(i),
        }
    }

    /// The coordinates of the cells at `places`, a column per dimension, where keys are tied.
    pub(super) fn tied_columns(&self, places: Range<usize>) -> Option<Vec<Vec<u64>>> {
        match self {
            Self::TiedNarrow(keys) => Some(keys.columns(places)),
            Self::TiedWide(keys) => Some(keys.columns(places)),
            Self::Narrow(_) | Self::Wide(_) | Self::Long { .. } => None,
        }
    }

    /// Reserves room for the keys of `cells` cells in total.
    pub fn reserve(&mut self, cells: usize) {
        let more = cells.saturating_sub(self.len());
        match self {
            Self::Narrow(keys) => keys.reserve_exact(more),
            Self::Wide(keys) => keys.reserve_exact(more),
            Self::Long { words, data } => data.reserve_exact(more * *words),
            Self::TiedNarrow(keys) => keys.reserve(more),
            Self::TiedWide(keys) => keys.reserve(more),
        }
    }

    /// Appends the keys of `other`, which has the same layout.
    pub fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => a.extend_from_slice(b),
            (Self::Wide(a), Self::Wide(b)) => a.extend_from_slice(b),
            (Self::Long { data: a, .. }, Self::Long { data: b, .. }) => a.extend_from_slice(b),
            (Self::TiedNarrow(a), Self::TiedNarrow(b)) => a.append(b),
            (Self::TiedWide(a), Self::TiedWide(b)) => a.append(b),
            _ => debug_assert!(false, "keys of two layouts"),
        }
    }

    /// The keys of `rows`, in that order.
    #[must_use]
    pub fn pick(&self, rows: &[u32]) -> Self {
        let at = |row: &u32| *row as usize;
        match self {
            Self::Narrow(keys) => Self::Narrow(rows.iter().map(|r| keys.get(at(r)).copied().unwrap_or(0)).collect()),
            Self::Wide(keys) => Self::Wide(rows.iter().map(|r| keys.get(at(r)).copied().unwrap_or(0)).collect()),
            Self::Long { words, data } => {
                let cell = |r: &u32| data.get(at(r) * words..(at(r) + 1) * words).unwrap_or_default();
                Self::Long { words: *words, data: rows.iter().flat_map(cell).copied().collect() }
            }
            Self::TiedNarrow(keys) => Self::TiedNarrow(keys.pick(rows)),
            Self::TiedWide(keys) => Self::TiedWide(keys.pick(rows)),
        }
    }

    /// Among cells in ascending order, the first cell from `from` on whose key is not below cell `j` of `other`. It
    /// gallops, so a near cell is found in few steps.
    pub fn lower_bound(&self, from: usize, other: &Self, j: usize) -> usize {
        let below = |i: usize| self.compare(i, other, j) == Ordering::Less;
        let (mut lo, mut step) = (from, 1);
        while lo + step <= self.len() && below(lo + step - 1) {
            lo += step;
            step *= 2;
        }
        let mut hi = (lo + step).min(self.len());
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if below(mid) { lo = mid + 1 } else { hi = mid }
        }
        lo
    }

    /// The first row, from 1 on, that compares to the one before it as `how`.
    pub fn first_step(&self, how: Ordering, cancel: &dyn Cancel) -> Result<Option<usize>> {
        match self {
            Self::Narrow(keys) => first_step(keys, how, cancel),
            Self::Wide(keys) => first_step(keys, how, cancel),
            Self::Long { words, data } => {
                let cells: Vec<&[u64]> = data.chunks((*words).max(1)).collect();
                first_step(&cells, how, cancel)
            }
            Self::TiedNarrow(keys) => keys.first_step(how, cancel),
            Self::TiedWide(keys) => keys.first_step(how, cancel),
        }
    }

    /// The keys in ascending order and the rows they come from, equal keys in row order. Cancelled if `cancel` is
    /// raised.
    pub fn sort(self, spawner: &dyn Spawner, cancel: &dyn Cancel) -> Result<(Self, Vec<u32>)> {
        match self {
            Self::Narrow(keys) => sort_keys(keys, spawner, cancel).map(|(keys, rows)| (Self::Narrow(keys), rows)),
            Self::Wide(keys) => sort_keys(keys, spawner, cancel).map(|(keys, rows)| (Self::Wide(keys), rows)),
            Self::Long { .. } => {
                let by_key = |a: &u32, b: &u32| self.compare(*a as usize, &self, *b as usize).then(a.cmp(b));
                let rows = sort((0..self.len() as u32).collect(), by_key, cancel)?;
                Ok((self.pick(&rows), rows))
            }
            Self::TiedNarrow(keys) => keys.sort(spawner, cancel).map(|(keys, rows)| (Self::TiedNarrow(keys), rows)),
            Self::TiedWide(keys) => keys.sort(spawner, cancel).map(|(keys, rows)| (Self::TiedWide(keys), rows)),
        }
    }
}

/// How many keys are compared between two checks for cancellation: a few milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 8 } else { 1 << 18 };

fn first_step<K: Ord>(keys: &[K], how: Ordering, cancel: &dyn Cancel) -> Result<Option<usize>> {
    // Portions overlap by one key, so that every step is in one of them.
    for from in (0..keys.len()).step_by(PORTION) {
        cancel.check()?;
        let portion = keys.get(from..(from + PORTION + 1).min(keys.len())).unwrap_or_default();
        if let Some(at) = portion.windows(2).position(|w| matches!(w, [a, b] if b.cmp(a) == how)) {
            return Ok(Some(from + at + 1));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::NeverCancel;

    #[test]
    fn steps_are_found_across_portions() {
        let mut keys: Vec<u64> = (0..3 * PORTION as u64).collect();
        keys[PORTION] -= 1;
        keys[2 * PORTION] -= 2;
        let keys = CellKeys::Narrow(keys);
        assert_eq!(keys.first_step(Ordering::Equal, &NeverCancel).unwrap(), Some(PORTION));
        assert_eq!(keys.first_step(Ordering::Less, &NeverCancel).unwrap(), Some(2 * PORTION));
    }
}
