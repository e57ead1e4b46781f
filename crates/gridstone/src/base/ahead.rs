//! Which of the ranges that will be read are to be told beforehand.

use super::ByteRange;

/// Bytes that are told before they are read, at most: what a fast device brings in a few milliseconds.
const WINDOW_BYTES: u64 = 4 << 20;

/// How far a list of ranges has been told to a source (`ByteSource::foresee`) while they are read one after the other.
#[derive(Debug, Default)]
pub struct Ahead {
    told: usize,
}

impl Ahead {
    /// To be called before range number `at` of `ranges` is read, for each in turn. Tells the ranges from there on, as many
    /// as a window holds, once half of what was told has been read; `foresee` answers whether anything was begun for them.
    pub fn before(&mut self, at: usize, ranges: &[ByteRange], foresee: impl FnOnce(&[ByteRange]) -> bool) {
        let from = self.told.max(at);
        let outstanding: u64 = ranges.get(at..from).unwrap_or_default().iter().map(|r| r.len).sum();
        if outstanding > WINDOW_BYTES / 2 {
            return;
        }
        let mut bytes = outstanding;
        let fits = |range: &&ByteRange| {
            bytes = bytes.saturating_add(range.len);
            bytes <= WINDOW_BYTES
        };
        let later = ranges.get(from..).unwrap_or_default();
        let count = later.iter().take_while(fits).count().max(1).min(later.len());
        if count > 0 && foresee(later.get(..count).unwrap_or_default()) {
            self.told = from + count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RUN: u64 = 256 << 10;

    fn ranges(count: u64) -> Vec<ByteRange> {
        (0..count).map(|n| ByteRange::new(n * RUN, RUN)).collect()
    }

    /// What was told at which range, if the source is slow from range `slow` on.
    fn told(ranges: &[ByteRange], slow: usize) -> Vec<(usize, u64, usize)> {
        let (mut ahead, mut all) = (Ahead::default(), Vec::new());
        for at in 0..ranges.len() {
            ahead.before(at, ranges, |told| {
                let first = told.first().map_or(0, |r| r.offset / RUN);
                all.extend((at >= slow).then_some((at, first, told.len())));
                at >= slow
            });
        }
        all
    }

    #[test]
    fn a_window_is_told_and_filled_up_when_half_of_it_is_read() {
        // Sixteen ranges make a window.
        assert_eq!(told(&ranges(40), 0), [(0, 0, 16), (8, 16, 8), (16, 24, 8), (24, 32, 8)]);
        assert_eq!(told(&ranges(5), 0), [(0, 0, 5)]);
        assert_eq!(told(&[], 0), []);
    }

    #[test]
    fn nothing_counts_as_told_before_the_source_turns_slow() {
        assert_eq!(told(&ranges(40), 3), [(3, 3, 16), (11, 19, 8), (19, 27, 8), (27, 35, 5)]);
        assert_eq!(told(&ranges(40), 40), []);
    }

    #[test]
    fn every_range_is_told_once_whatever_their_lengths() {
        let lengths = [1, 9 << 20, 3 << 20, 1 << 20, 1, 0, 5 << 20, u64::MAX, 7];
        let ranges: Vec<ByteRange> = (0..).zip(lengths).map(|(at, len)| ByteRange::new(at, len)).collect();
        let (mut ahead, mut all) = (Ahead::default(), Vec::new());
        for at in 0..ranges.len() {
            ahead.before(at, &ranges, |told| {
                all.extend_from_slice(told);
                true
            });
            assert!(all.len() > at, "a range was read before it was told");
        }
        assert_eq!(all, ranges);
    }
}
