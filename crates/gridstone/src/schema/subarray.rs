//! Boxes in a domain: one inclusive range of ordered keys per dimension.

use super::Dimension;
use std::fmt;

/// An inclusive range of ordered keys; not empty, but for [`KeyRange::EMPTY`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyRange {
    /// The least key, inclusive.
    pub lo: u64,
    /// The greatest key, inclusive.
    pub hi: u64,
}

impl KeyRange {
    /// The domain of a dimension that has none yet. It contains no key, and joined with another range it is that one.
    pub const EMPTY: Self = Self { lo: u64::MAX, hi: 0 };

    /// Whether it is [`KeyRange::EMPTY`].
    pub fn is_empty(self) -> bool {
        self.lo > self.hi
    }

    /// The least range with all keys of both.
    #[must_use]
    pub fn joined(self, other: Self) -> Self {
        Self { lo: self.lo.min(other.lo), hi: self.hi.max(other.hi) }
    }

    /// The range from `lo` to `hi`, both inclusive.
    pub fn new(lo: u64, hi: u64) -> Self {
        debug_assert!(lo <= hi, "a key range is never empty");
        Self { lo, hi }
    }

    /// How many keys lie in it.
    pub fn count(self) -> u128 {
        (u128::from(self.hi) + 1).saturating_sub(u128::from(self.lo))
    }

    /// Whether `key` lies in it.
    pub fn contains(self, key: u64) -> bool {
        self.lo <= key && key <= self.hi
    }

    /// The keys in both.
    pub fn intersect(self, other: Self) -> Option<Self> {
        let (lo, hi) = (self.lo.max(other.lo), self.hi.min(other.hi));
        (lo <= hi).then_some(Self { lo, hi })
    }
}

/// A box: an inclusive key range per dimension.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Subarray {
    ranges: Vec<KeyRange>,
}

impl Subarray {
    /// The box of these ranges.
    pub fn new(ranges: Vec<KeyRange>) -> Self {
        Self { ranges }
    }

    /// The whole domain of `dims`.
    pub fn domain(dims: &[Dimension]) -> Self {
        Self::new(dims.iter().map(Dimension::range).collect())
    }

    /// Every key along every dimension.
    #[must_use]
    pub fn without_ends(&self) -> Self {
        Self::new(vec![KeyRange::new(0, u64::MAX); self.ranges.len()])
    }

    /// The same box without the ends that it shares with `domain`: it reaches to the least or the greatest key there.
    #[must_use]
    pub fn open_at(&self, domain: &Self) -> Self {
        let open = |(own, domain): (&KeyRange, &KeyRange)| {
            let lo = if own.lo == domain.lo { 0 } else { own.lo };
            KeyRange::new(lo, if own.hi == domain.hi { u64::MAX } else { own.hi })
        };
        Self::new(self.ranges.iter().zip(&domain.ranges).map(open).collect())
    }

    /// Boxes that together hold every key outside: for each dimension what lies below and above.
    pub fn beyond(&self) -> Vec<Self> {
        self.beyond_ends(|_| (true, true))
    }

    /// Those of the low and the high ends that `ends` says of each dimension.
    pub fn beyond_ends(&self, ends: impl Fn(usize) -> (bool, bool)) -> Vec<Self> {
        let mut found = Vec::new();
        for (dim, range) in self.ranges.iter().enumerate() {
            let (low, high) = ends(dim);
            if range.is_empty() {
                // Whichever end was looked at, all lies beyond it.
                found.extend((low || high).then(|| self.without_ends()));
                continue;
            }
            let below = range.lo.checked_sub(1).filter(|_| low).map(|hi| KeyRange::new(0, hi));
            let above = range.hi.checked_add(1).filter(|_| high).map(|lo| KeyRange::new(lo, u64::MAX));
            for side in below.into_iter().chain(above) {
                let mut beyond = self.without_ends();
                beyond.ranges.iter_mut().skip(dim).take(1).for_each(|own| *own = side);
                found.push(beyond);
            }
        }
        found
    }

    /// The ranges, one per dimension.
    pub fn ranges(&self) -> &[KeyRange] {
        &self.ranges
    }

    /// The number of dimensions.
    pub fn ndim(&self) -> usize {
        self.ranges.len()
    }

    /// How many integer cells lie in it, saturating.
    pub fn cells(&self) -> u128 {
        self.ranges.iter().fold(1u128, |n, r| n.saturating_mul(r.count()))
    }

    /// The cells in both boxes, if any.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let pairs = self.ranges.iter().zip(&other.ranges);
        pairs.map(|(a, b)| a.intersect(*b)).collect::<Option<Vec<_>>>().map(Self::new)
    }

    /// Whether the two have a cell in common.
    pub fn intersects(&self, other: &Self) -> bool {
        self.ranges.iter().zip(&other.ranges).all(|(a, b)| a.intersect(*b).is_some())
    }

    /// Whether `other` lies wholly inside.
    pub fn covers(&self, other: &Self) -> bool {
        self.ranges.iter().zip(&other.ranges).all(|(a, b)| a.lo <= b.lo && b.hi <= a.hi)
    }

    /// Whether the cell with these keys lies inside.
    pub fn contains(&self, keys: impl IntoIterator<Item = u64>) -> bool {
        self.ranges.iter().zip(keys).all(|(r, k)| r.contains(k))
    }

    /// The smallest box around both.
    #[must_use]
    pub fn union(&self, other: &Self) -> Self {
        let pairs = self.ranges.iter().zip(&other.ranges);
        Self::new(pairs.map(|(a, b)| KeyRange::new(a.lo.min(b.lo), a.hi.max(b.hi))).collect())
    }

    /// Cells per dimension, if each fits 64 bits (dense results; checked before allocating); 0 where a range is empty.
    pub fn shape(&self) -> Vec<u64> {
        self.ranges.iter().map(|r| u64::try_from(r.count()).unwrap_or(u64::MAX)).collect()
    }

    /// The two halves of the box, cut across its longest side; `None` if it is one cell.
    pub fn halved(&self) -> Option<(Self, Self)> {
        let (longest, range) = self.ranges.iter().enumerate().max_by_key(|(_, range)| range.count())?;
        let middle = range.lo.midpoint(range.hi);
        let with = |cut: KeyRange| {
            let mut half = self.clone();
            half.ranges.get_mut(longest).map(|range| *range = cut).map(|()| half)
        };
        if range.lo == range.hi {
            return None;
        }
        Some((with(KeyRange::new(range.lo, middle))?, with(KeyRange::new(middle + 1, range.hi))?))
    }
}

impl fmt::Display for Subarray {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let parts = self.ranges.iter().map(|r| format!("{:#x}..={:#x}", r.lo, r.hi));
        write!(f, "[{}]", parts.collect::<Vec<_>>().join(", "))
    }
}
