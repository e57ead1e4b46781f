//! Sets of values as sorted half-open intervals between cuts.
//!
//! A cut lies between values. For fixed-width types it is an ordered key in 128 bits, one past the last included; for
//! texts it is the least text above it. So complement, union and contact need no notion of "the next value".

/// Disjoint half-open intervals `[from, to)`, ascending; no two touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Intervals<C> {
    list: Vec<(C, C)>,
}

/// A place between texts: below the text, or behind all.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Cut {
    Below(Vec<u8>),
    End,
}

impl Cut {
    /// The cut directly above `text`: below the text that is one zero byte longer, since no text lies in between.
    pub(super) fn above(text: &[u8]) -> Self {
        Self::Below([text, &[0]].concat())
    }

    /// Whether `text` is above it.
    pub(super) fn is_below(&self, text: &[u8]) -> bool {
        matches!(self, Self::Below(least) if least.as_slice() <= text)
    }
}

impl<C: Ord + Clone> Intervals<C> {
    pub(super) fn empty() -> Self {
        Self { list: Vec::new() }
    }

    /// `[from, to)`; empty if no value is in it.
    pub(super) fn one(from: C, to: C) -> Self {
        Self { list: if from < to { vec![(from, to)] } else { Vec::new() } }
    }

    /// The union of these intervals, which may come in any order and overlap.
    pub(super) fn of(mut found: Vec<(C, C)>) -> Self {
        found.retain(|(from, to)| from < to);
        found.sort();
        let mut list: Vec<(C, C)> = Vec::with_capacity(found.len());
        for (from, to) in found {
            match list.last_mut() {
                Some((_, end)) if *end >= from => {
                    if to > *end {
                        *end = to;
                    }
                }
                _ => list.push((from, to)),
            }
        }
        Self { list }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    pub(super) fn list(&self) -> &[(C, C)] {
        &self.list
    }

    pub(super) fn union(&self, other: &Self) -> Self {
        Self::of([self.list.as_slice(), other.list.as_slice()].concat())
    }

    pub(super) fn intersect(&self, other: &Self) -> Self {
        let (mut a, mut b) = (self.list.iter().peekable(), other.list.iter().peekable());
        let mut list = Vec::new();
        while let (Some(x), Some(y)) = (a.peek(), b.peek()) {
            let (from, to) = ((&x.0).max(&y.0), (&x.1).min(&y.1));
            if from < to {
                list.push((from.clone(), to.clone()));
            }
            if x.1 <= y.1 {
                a.next()
            } else {
                b.next()
            };
        }
        Self { list }
    }

    /// The part of `[first, end)` that is not in it.
    pub(super) fn complement(&self, first: &C, end: &C) -> Self {
        let mut list = Vec::with_capacity(self.list.len() + 1);
        let mut from = first.clone();
        for (lo, hi) in &self.list {
            if from < *lo {
                list.push((from, lo.clone()));
            }
            from = hi.clone();
        }
        if from < *end {
            list.push((from, end.clone()));
        }
        Self { list }
    }

    /// Whether any part of `[from, to)` is in it.
    pub(super) fn touches(&self, from: &C, to: &C) -> bool {
        let place = self.list.partition_point(|(_, hi)| hi <= from);
        from < to && self.list.get(place).is_some_and(|(lo, _)| lo < to)
    }

    /// Whether all of `[from, to)` is in it.
    pub(super) fn covers(&self, from: &C, to: &C) -> bool {
        let place = self.list.partition_point(|(_, hi)| hi <= from);
        self.list.get(place).is_some_and(|(lo, hi)| lo <= from && to <= hi)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(bits: u32) -> Intervals<u128> {
        Intervals::of((0..20u128).filter(|i| bits >> i & 1 == 1).map(|i| (i, i + 1)).collect())
    }

    proptest! {
        #[test]
        fn intervals_are_sets(a in 0u32..1 << 20, b in 0u32..1 << 20, from in 0u128..20, to in 0u128..21) {
            let all = (1u32 << 20) - 1;
            prop_assert_eq!(of(a).union(&of(b)), of(a | b));
            prop_assert_eq!(of(a).intersect(&of(b)), of(a & b));
            prop_assert_eq!(of(a).complement(&0, &20), of(!a & all));
            let asked = (from..to).fold(0u32, |m, i| m | 1 << i);
            prop_assert_eq!(of(a).touches(&from, &to), a & asked != 0);
            if asked != 0 { prop_assert_eq!(of(a).covers(&from, &to), a & asked == asked); }
        }
    }

    #[test]
    fn cuts_of_texts_lie_between_them() {
        let above = Cut::above(b"ab");
        assert!(!above.is_below(b"ab") && above.is_below(b"ab\0") && above.is_below(b"b"));
        assert!(Cut::Below(b"ab".to_vec()).is_below(b"ab") && above < Cut::End && !Cut::End.is_below(b"\xff"));
        let (b, end) = (Cut::Below(b"b".to_vec()), Cut::End);
        let two = Intervals::of(vec![(b.clone(), end), (Cut::Below(vec![]), b)]);
        assert_eq!(two.list().len(), 1);
    }
}
