//! Sorts keys with their rows, by radix from the most significant bits down.
//!
//! A run of pairs is dealt into 256 (at first up to 2,048) buckets by the highest bits in which its least and greatest
//! key differ. Each bucket is dealt in the same way, until it is small enough for a comparison sort. Only the differing
//! bits are used, so skew does not matter: a harbour's cells share their upper bits and skip them at once. Dealing is
//! stable and pairs compare by row last, so equal keys stay in row order. The buckets of the first deal are sorted in
//! parallel. The method is McIlroy, Bostic, McIlroy, "Engineering Radix Sort", Computing Systems 6(1), 1993.

use crate::base::{Cancel, Result, Spawner, Task};

/// How many pairs are processed between two checks for cancellation: a few milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 10 } else { 1 << 18 };
/// The largest run of pairs that is sorted by comparison.
const COMPARED_MAX: usize = 192;
/// How many bits one deal uses.
const DIGIT_BITS: u32 = 8;
const DIGITS: usize = 1 << DIGIT_BITS;
/// The largest number of bits that the first deal uses.
const FIRST_DIGIT_BITS_MAX: u32 = 11;

/// A key that consists of bits.
pub trait RadixKey: Copy + Ord + Default + Send + Sync {
    /// The number of the highest bit, from 0, in which two keys differ; `None` if they are equal.
    fn highest_difference(self, other: Self) -> Option<u32>;

    /// The bits from number `shift` up.
    fn digit(self, shift: u32) -> usize;
}

impl RadixKey for u64 {
    fn highest_difference(self, other: Self) -> Option<u32> {
        (self ^ other).checked_ilog2()
    }

    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
}

impl RadixKey for u128 {
    fn highest_difference(self, other: Self) -> Option<u32> {
        (self ^ other).checked_ilog2()
    }

    fn digit(self, shift: u32) -> usize {
        (self >> shift) as usize
    }
}

type Pair<K> = (K, u32);

/// The keys in ascending order, and the rows they come from; equal keys in row order. At most 2^32 - 1 keys.
pub(super) fn sort_keys<K: RadixKey>(
    mut keys: Vec<K>,
    spawner: &dyn Spawner,
    cancel: &dyn Cancel,
) -> Result<(Vec<K>, Vec<u32>)> {
    if is_sorted(&keys, cancel)? {
        let rows = (0..keys.len() as u32).collect();
        return Ok((keys, rows));
    }
    let (mut pairs, buckets) = deal_keys(&keys, cancel)?;
    let mut spare = vec![Pair::<K>::default(); pairs.len()];
    let share = (pairs.len() / (spawner.threads() * 4)).max(PORTION / 16);
    let mut tasks: Vec<Task<'_>> = Vec::new();
    let (mut rest, mut rest_spare) = (pairs.as_mut_slice(), spare.as_mut_slice());
    for group in groups(&buckets, share) {
        let len: usize = group.iter().sum();
        let (run, tail) = rest.split_at_mut(len);
        let (run_spare, tail_spare) = rest_spare.split_at_mut(len);
        (rest, rest_spare) = (tail, tail_spare);
        tasks.push(Box::new(move || sort_buckets(run, run_spare, group, false, cancel)));
    }
    spawner.each(tasks, cancel)?;
    let mut rows = Vec::with_capacity(pairs.len());
    for (slots, some) in keys.chunks_mut(PORTION).zip(pairs.chunks(PORTION)) {
        cancel.check()?;
        slots.iter_mut().zip(some).for_each(|(slot, pair)| *slot = pair.0);
        rows.extend(some.iter().map(|pair| pair.1));
    }
    Ok((keys, rows))
}

fn is_sorted<K: RadixKey>(keys: &[K], cancel: &dyn Cancel) -> Result<bool> {
    let mut last = K::default();
    for portion in keys.chunks(PORTION) {
        cancel.check()?;
        if portion.first().is_some_and(|first| *first < last) || !portion.is_sorted() {
            return Ok(false);
        }
        last = portion.last().copied().unwrap_or(last);
    }
    Ok(true)
}

/// The unsorted pairs of `keys`, dealt into buckets, and the buckets' lengths.
fn deal_keys<K: RadixKey>(keys: &[K], cancel: &dyn Cancel) -> Result<(Vec<Pair<K>>, Vec<usize>)> {
    let (mut least, mut greatest) = keys.first().map_or_else(Default::default, |k| (*k, *k));
    for portion in keys.chunks(PORTION) {
        cancel.check()?;
        (least, greatest) = portion.iter().fold((least, greatest), |(lo, hi), k| (lo.min(*k), hi.max(*k)));
    }
    let bits = (usize::BITS - (keys.len() / COMPARED_MAX).leading_zeros()).clamp(1, FIRST_DIGIT_BITS_MAX);
    let shift = (least.highest_difference(greatest).unwrap_or(0) + 1).saturating_sub(bits);
    let mask = (1usize << bits) - 1;
    let mut counts = vec![0usize; 1 << bits];
    for portion in keys.chunks(PORTION) {
        cancel.check()?;
        for key in portion {
            if let Some(count) = counts.get_mut(key.digit(shift) & mask) {
                *count += 1;
            }
        }
    }
    let mut places = counts.clone();
    starts(&mut places);
    let mut pairs = vec![Pair::<K>::default(); keys.len()];
    for (portion, from) in keys.chunks(PORTION).zip((0..).step_by(PORTION)) {
        cancel.check()?;
        for (key, row) in portion.iter().zip(from..) {
            let Some(place) = places.get_mut(key.digit(shift) & mask) else { continue };
            if let Some(slot) = pairs.get_mut(*place) {
                *slot = (*key, row);
            }
            *place += 1;
        }
    }
    Ok((pairs, counts))
}

/// Turns lengths into start positions.
fn starts(lengths: &mut [usize]) {
    let mut start = 0;
    for length in lengths {
        (*length, start) = (start, start + *length);
    }
}

/// Neighbouring buckets in groups of `share` pairs or a little more; a larger bucket is alone.
fn groups(buckets: &[usize], share: usize) -> Vec<Vec<usize>> {
    let (mut all, mut group, mut held) = (Vec::new(), Vec::new(), 0);
    for len in buckets.iter().filter(|len| **len > 0) {
        if held + len > share && held > 0 {
            all.push(std::mem::take(&mut group));
            held = 0;
        }
        group.push(*len);
        held += len;
    }
    all.push(group);
    all
}

/// Sorts the consecutive buckets of `run`; the result is in `run`, or in `spare` if `away`.
fn sort_buckets<K: RadixKey>(
    mut run: &mut [Pair<K>],
    mut spare: &mut [Pair<K>],
    buckets: impl IntoIterator<Item = usize>,
    away: bool,
    cancel: &dyn Cancel,
) -> Result<()> {
    for len in buckets {
        let (bucket, rest) = run.split_at_mut(len);
        let (bucket_spare, rest_spare) = spare.split_at_mut(len);
        (run, spare) = (rest, rest_spare);
        sort_run(bucket, bucket_spare, away, cancel)?;
    }
    Ok(())
}

fn sort_run<K: RadixKey>(run: &mut [Pair<K>], spare: &mut [Pair<K>], away: bool, cancel: &dyn Cancel) -> Result<()> {
    if run.len() > PORTION / 64 {
        cancel.check()?;
    }
    let Some(shift) = shift_of(run).filter(|_| run.len() > COMPARED_MAX) else {
        run.sort_unstable();
        if away {
            spare.copy_from_slice(run);
        }
        return Ok(());
    };
    let mut counts = [0usize; DIGITS];
    for (key, _) in run.iter() {
        if let Some(count) = counts.get_mut(key.digit(shift) & (DIGITS - 1)) {
            *count += 1;
        }
    }
    let mut places = counts;
    starts(&mut places);
    for pair in run.iter() {
        let Some(place) = places.get_mut(pair.0.digit(shift) & (DIGITS - 1)) else { continue };
        if let Some(slot) = spare.get_mut(*place) {
            *slot = *pair;
        }
        *place += 1;
    }
    sort_buckets(spare, run, counts, !away, cancel)
}

/// The lowest of the bits to deal by, `None` if all keys are equal.
fn shift_of<K: RadixKey>(run: &[Pair<K>]) -> Option<u32> {
    let first = run.first()?.0;
    let (least, greatest) = run.iter().fold((first, first), |(lo, hi), (k, _)| (lo.min(*k), hi.max(*k)));
    Some((least.highest_difference(greatest)? + 1).saturating_sub(DIGIT_BITS))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Inline, NeverCancel};
    use proptest::prelude::*;
    use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};

    fn check<K: RadixKey + std::fmt::Debug>(keys: Vec<K>) {
        let mut expected: Vec<Pair<K>> = keys.iter().copied().zip(0..).collect();
        expected.sort();
        let (sorted, rows) = sort_keys(keys, &Inline, &NeverCancel).unwrap();
        assert!(sorted.into_iter().zip(rows).eq(expected));
    }

    /// Pseudo-random numbers (a linear congruence).
    fn numbers(count: usize) -> impl Iterator<Item = u64> {
        std::iter::successors(Some(7u64), |s| Some(s.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1)))
            .take(count)
    }

    proptest! {
        #[test]
        fn any_keys(keys in prop::collection::vec(any::<u64>(), 0..2_000), shift in 0u32..64, spread in 1u64..300) {
            check(keys.iter().map(|k| k >> shift).collect());
            check(keys.iter().map(|k| (k % spread) << (shift / 2)).collect());
            check(keys.iter().map(|k| u128::from(*k) << shift).collect());
        }
    }

    #[test]
    fn skew_and_runs() {
        for count in [PORTION - 1, 2 * PORTION + 5] {
            // Nine of ten in a few harbours, each with a few thousand positions.
            check(numbers(count).map(|n| if n % 10 < 9 { ((n >> 8) % 5) << 50 | n >> 52 } else { n }).collect());
            check((0..count as u64).collect());
            check((0..count as u64).rev().collect());
            check(vec![3u64; count]);
        }
    }

    #[test]
    fn groups_hold_every_bucket_in_order() {
        let buckets = [0, 5, 9, 0, 1, 30, 2, 2];
        for share in [1, 6, 14, 100] {
            let all = groups(&buckets, share);
            assert!(all.iter().flatten().copied().eq(buckets.iter().copied().filter(|b| *b > 0)));
            assert!(all.iter().all(|g| g.len() == 1 || g.iter().sum::<usize>() <= share));
        }
    }

    struct After(AtomicUsize);

    impl Cancel for After {
        fn cancelled(&self) -> bool {
            self.0.fetch_sub(1, Relaxed) == 0
        }
    }

    #[test]
    fn it_stops_wherever_it_asks() {
        let keys: Vec<u64> = numbers(3 * PORTION).collect();
        let asked = AtomicUsize::new(usize::MAX);
        let counting = After(asked);
        sort_keys(keys.clone(), &Inline, &counting).unwrap();
        let questions = usize::MAX - counting.0.load(Relaxed);
        assert!(questions > 12, "{questions}");
        for patience in [0, 1, 4, 8, questions - 4, questions - 1] {
            let stopped = sort_keys(keys.clone(), &Inline, &After(AtomicUsize::new(patience)));
            assert!(stopped.is_err(), "question {patience} of {questions}");
        }
    }
}
