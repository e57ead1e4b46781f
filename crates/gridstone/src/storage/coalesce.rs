//! Merges byte ranges into fewer, larger reads. A pure function; the caller scatters the bytes back by [`Part`].

use crate::base::ByteRange;

/// The largest length of a merged range: a merged read is one allocation, which lives as long as any of its parts. At
/// this length the cost of the call is negligible.
pub(super) const MERGED_BYTES_MAX: u64 = 4 << 20;

/// One of the requested ranges, inside a merged one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The index of the requested range.
    pub index: usize,
    /// Where it starts, in bytes from the start of the merged range.
    pub start: u64,
}

/// A range to read, and the requested ranges inside it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Merged {
    /// The range to read.
    pub range: ByteRange,
    /// The requested ranges, in ascending order of offset; each lies wholly inside `range`.
    pub parts: Vec<Part>,
}

/// Merges `ranges` into reads, sorted by offset. Ranges that overlap, touch, or lie at most `gap` bytes apart are read
/// together, unless the read would exceed `len_max` bytes. A longer range is read alone, or with ranges inside it. Each
/// non-empty range is a part of exactly one read; an empty range is a part of none. A range that passes the last u64
/// ends there.
pub fn coalesce(ranges: &[ByteRange], gap: u64, len_max: u64) -> Vec<Merged> {
    let mut sorted: Vec<(usize, ByteRange)> =
        ranges.iter().copied().enumerate().filter(|(_, range)| range.offset < range.end()).collect();
    sorted.sort_by_key(|(_, range)| (range.offset, range.end()));
    let mut reads: Vec<Merged> = Vec::new();
    for (index, range) in sorted {
        match reads.last_mut() {
            Some(read) if fits(read.range, range, gap, len_max) => {
                read.parts.push(Part { index, start: range.offset - read.range.offset });
                read.range.len = read.range.end().max(range.end()) - read.range.offset;
            }
            _ => reads.push(Merged {
                range: ByteRange::new(range.offset, range.end() - range.offset),
                parts: vec![Part { index, start: 0 }],
            }),
        }
    }
    reads
}

/// Whether `next`, which starts no earlier than `read`, is merged into it.
fn fits(read: ByteRange, next: ByteRange, gap: u64, len_max: u64) -> bool {
    let inside = next.end() <= read.end();
    let near = next.offset <= read.end().saturating_add(gap);
    inside || (near && next.end() - read.offset <= len_max)
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn range(offset: u64, len: u64) -> ByteRange {
        ByteRange::new(offset, len)
    }

    #[test]
    fn near_ranges_merge_and_far_ones_do_not() {
        let reads = coalesce(&[range(100, 10), range(0, 10), range(14, 6), range(25, 5)], 4, 1_000);
        let found: Vec<_> = reads.iter().map(|r| (r.range.offset, r.range.len, r.parts.len())).collect();
        assert_eq!(found, [(0, 20, 2), (25, 5, 1), (100, 10, 1)]);
        assert_eq!(reads[0].parts, [Part { index: 1, start: 0 }, Part { index: 2, start: 14 }]);
    }

    #[test]
    fn a_read_does_not_grow_beyond_the_maximum_unless_one_range_does() {
        let touching: Vec<_> = (0..10).map(|i| range(i * 10, 10)).collect();
        assert_eq!(coalesce(&touching, 0, 30).iter().map(|r| r.range.len).collect::<Vec<_>>(), [30, 30, 30, 10]);
        let long = coalesce(&[range(0, 100), range(50, 10), range(90, 20)], 0, 30);
        assert_eq!(long.iter().map(|r| (r.range.len, r.parts.len())).collect::<Vec<_>>(), [(100, 2), (20, 1)]);
    }

    fn any_range() -> impl Strategy<Value = ByteRange> {
        let near = (0u64..500, 0u64..60);
        let edge = (u64::MAX - 100..=u64::MAX, prop_oneof![0u64..200, Just(u64::MAX)]);
        let wild = (any::<u64>(), any::<u64>());
        prop_oneof![6 => near, 1 => edge, 1 => wild].prop_map(|(offset, len)| range(offset, len))
    }

    fn any_limit() -> impl Strategy<Value = u64> {
        prop_oneof![0u64..100, Just(u64::MAX)]
    }

    proptest! {
        #[test]
        fn every_range_is_covered_exactly(
            ranges in prop::collection::vec(any_range(), 0..40),
            gap in any_limit(),
            len_max in any_limit(),
        ) {
            let reads = coalesce(&ranges, gap, len_max);
            let mut seen = vec![0; ranges.len()];
            for read in &reads {
                prop_assert!(read.range.len > 0 && read.range.offset.checked_add(read.range.len).is_some());
                prop_assert_eq!(read.parts[0].start, 0);
                prop_assert!(read.parts.windows(2).all(|w| w[0].start <= w[1].start));
                let mut end = read.range.offset;
                for part in &read.parts {
                    seen[part.index] += 1;
                    let asked = ranges[part.index];
                    prop_assert_eq!(read.range.offset + part.start, asked.offset);
                    prop_assert!(asked.end() <= read.range.end());
                    prop_assert!(asked.offset <= end.saturating_add(gap), "a gap too wide was read");
                    end = end.max(asked.end());
                }
                prop_assert_eq!(end, read.range.end(), "nothing is read past the last part");
                let longest = read.parts.iter().map(|p| ranges[p.index].end() - ranges[p.index].offset).max();
                prop_assert!(read.range.len <= len_max.max(longest.unwrap()));
            }
            for (range, seen) in ranges.iter().zip(seen) {
                prop_assert_eq!(seen, u32::from(range.offset < range.end()));
            }
            prop_assert!(reads.windows(2).all(|w| w[0].range.offset <= w[1].range.offset));
        }

        #[test]
        fn scattering_back_gives_what_direct_slices_give(
            ranges in prop::collection::vec((0u64..900, 0u64..100).prop_map(|(o, l)| range(o, l)), 0..30),
            gap in 0u64..50,
        ) {
            let file: Vec<u8> = (0..1_000u32).map(|i| (i * 7 % 251) as u8).collect();
            let slice = |r: ByteRange| file[r.offset as usize..r.end() as usize].to_vec();
            let mut found = vec![Vec::new(); ranges.len()];
            for read in coalesce(&ranges, gap, 200) {
                let bytes = slice(read.range);
                for part in read.parts {
                    let start = part.start as usize;
                    found[part.index] = bytes[start..start + ranges[part.index].len as usize].to_vec();
                }
            }
            prop_assert_eq!(found, ranges.iter().map(|r| slice(*r)).collect::<Vec<_>>());
        }
    }
}
