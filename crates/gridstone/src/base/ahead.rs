//! Chooses which upcoming ranges to prefetch.

use super::{ByteRange, ByteSource};

/// The largest number of bytes prefetched ahead of reads: what a fast device delivers in a few milliseconds.
const WINDOW_BYTES: u64 = 4 << 20;

/// How far a list of ranges has been prefetched from a source (`ByteSource::prefetch`) while they are read one after
/// the other.
#[derive(Debug, Default)]
pub struct Ahead {
    told: usize,
    /// Bytes that were prefetched and are not read yet.
    outstanding: u64,
}

impl Ahead {
    /// Must be called before range number `at` of `ranges` is read, for each in turn. If recent reads of `source`
    /// waited, prefetches the ranges from there on, as many as a window holds, once half of the prefetched bytes have
    /// been read.
    pub fn before(&mut self, at: usize, ranges: &[ByteRange], source: &dyn ByteSource) {
        if at < self.told {
            let read = at.checked_sub(1).and_then(|before| ranges.get(before)).map_or(0, |range| range.len);
            self.outstanding = self.outstanding.saturating_sub(read);
        } else {
            (self.told, self.outstanding) = (at, 0);
        }
        if self.outstanding > WINDOW_BYTES / 2 || !source.is_cold() {
            return;
        }
        let later = ranges.get(self.told..).unwrap_or_default();
        let mut bytes = self.outstanding;
        let fits = |range: &&ByteRange| {
            bytes = bytes.saturating_add(range.len);
            bytes <= WINDOW_BYTES
        };
        let count = later.iter().take_while(fits).count().max(1).min(later.len());
        let next = later.get(..count).unwrap_or_default();
        if !next.is_empty() {
            source.prefetch(next);
            self.told += count;
            self.outstanding = next.iter().fold(self.outstanding, |sum, range| sum.saturating_add(range.len));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::{Pending, Ready, Result};
    use super::*;
    use std::sync::Mutex;

    const RUN: u64 = 256 << 10;

    fn ranges(count: u64) -> Vec<ByteRange> {
        (0..count).map(|n| ByteRange::new(n * RUN, RUN)).collect()
    }

    /// A source that is cold from its `slow`th query on, and records each prefetch: at which query, where, how many
    /// ranges.
    #[derive(Debug, Default)]
    struct Noted {
        slow: usize,
        looks: Mutex<usize>,
        told: Mutex<Vec<(usize, u64, usize)>>,
    }

    impl ByteSource for Noted {
        fn len(&self) -> u64 {
            0
        }

        fn submit(&self, _: &[ByteRange]) -> Result<Box<dyn Pending + '_>> {
            Ok(Box::new(Ready(Vec::new())))
        }

        fn is_cold(&self) -> bool {
            let mut looks = self.looks.lock().unwrap();
            *looks += 1;
            *looks > self.slow
        }

        fn prefetch(&self, ranges: &[ByteRange]) {
            let first = ranges.first().map_or(0, |range| range.offset);
            self.told.lock().unwrap().push((*self.looks.lock().unwrap(), first, ranges.len()));
        }
    }

    /// The prefetches, and the range that was read after each.
    fn told(ranges: &[ByteRange], slow: usize) -> Vec<(usize, u64, usize)> {
        let (mut ahead, mut all) = (Ahead::default(), Vec::new());
        let source = Noted { slow, ..Noted::default() };
        for at in 0..ranges.len() {
            ahead.before(at, ranges, &source);
            all.extend(source.told.lock().unwrap().drain(..).map(|(_, first, count)| (at, first, count)));
        }
        all
    }

    #[test]
    fn a_window_is_told_and_filled_up_when_half_of_it_is_read() {
        // Sixteen ranges make a window.
        let places = |told: Vec<(usize, u64, usize)>| -> Vec<(usize, u64, usize)> {
            told.into_iter().map(|(at, first, count)| (at, first / RUN, count)).collect()
        };
        assert_eq!(places(told(&ranges(40), 0)), [(0, 0, 16), (8, 16, 8), (16, 24, 8), (24, 32, 8)]);
        assert_eq!(places(told(&ranges(5), 0)), [(0, 0, 5)]);
        assert_eq!(told(&[], 0), []);
    }

    #[test]
    fn nothing_is_told_before_the_source_is_waited_for() {
        let first: Vec<(usize, u64)> = told(&ranges(40), 3).iter().map(|(at, first, _)| (*at, first / RUN)).collect();
        assert_eq!(first, [(3, 3), (11, 19), (19, 27), (27, 35)]);
        assert_eq!(told(&ranges(40), 40), []);
    }

    #[test]
    fn every_range_is_told_once_whatever_their_lengths() {
        let lengths = [1, 9 << 20, 3 << 20, 1 << 20, 1, 0, 5 << 20, u64::MAX, 7];
        let ranges: Vec<ByteRange> = (0..).zip(lengths).map(|(at, len)| ByteRange::new(at, len)).collect();
        let mut next = 0;
        for (at, first, count) in told(&ranges, 0) {
            assert!(first == next && at as u64 <= first, "{at}: {first}");
            next += count as u64;
        }
        assert_eq!(next, ranges.len() as u64);
    }
}
