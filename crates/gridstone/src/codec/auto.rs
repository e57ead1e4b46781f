//! Chooses a pipeline from a sample of a tile: weighs the stored size against the time to decode and encode.
//!
//! 1. Take a run of values from the middle of each block of the sample, of at most 4,096 values. Runs are encoded one
//!    by one, like blocks: repetition across blocks does not count.
//! 2. Encode them with each candidate of the element's class.
//! 3. Take the candidate of least cost, `none` (cost 1,000 per byte) included, provided that it saves 3 %:
//!
//! ```text
//! cost = 1000 * stored bytes + per_byte * raw bytes + per_value * values           (in thousandths of a byte)
//! ```
//!
//! The weights are constants, so that the choice is deterministic. A nanosecond of decoding costs 0.05 bytes and one of
//! encoding 0.03: a filter that decodes 1 GB/s must save 5 % for that alone. Filters that work value by value (`for`,
//! `pco`) have a weight per value, the others per byte. Candidates are tried in order of weight, until the weight of
//! the next one alone exceeds the best cost so far. Constant values end at the first candidate.
//!
//! The table was measured on one core, with blocks of 16,384 cells: stored / raw size, then encoding and decoding in
//! GB/s of raw bytes. AIS is a US coast guard sample of 99,999 reports. Rows marked "cells" are in the order of 0.1
//! degree cells, the others as received (by time). `f64` is as in the CSV; integers are scaled (degrees by 1e5, SOG and
//! COG by 10).
//!
//! | values | `for` | `delta,for` | `shuffle,zstd:1` | `zstd:1` | `zstd:3` | `pco:1` | `pco:4` |
//! |---|---|---|---|---|---|---|---|
//! | AIS LON, f64 | .829 2.8 8.6 | | .856 1.1 1.3 | .787 .45 1.1 | .632 .26 1.3 | .383 .43 2.0 | .362 .32 2.0 |
//! | AIS LON, f64, cells | .703 2.8 8.6 | | .705 1.2 2.9 | .515 .43 1.4 | .465 .29 1.4 | .277 .44 1.9 | .225 .32 1.8 |
//! | AIS COG, f64 | .986 1.3 7.7 | | .329 .68 1.3 | .331 .38 1.0 | .311 .30 1.1 | .201 .44 2.4 | .183 .28 1.9 |
//! | AIS SOG, f64 | .986 2.6 8.6 | | .163 .59 1.3 | .142 .57 1.1 | .118 .57 1.3 | .079 .44 1.9 | .060 .38 1.9 |
//! | AIS LON, i64 | .376 3.0 9.4 | .385 2.8 7.1 | .360 1.7 2.1 | .408 .37 .8 | .413 .29 1.0 | .367 .92 4.1 | .346 .58 4.1 |
//! | AIS LON, i64, cells | .246 3.2 10 | .238 3.0 7.5 | .244 1.6 3.3 | .250 .55 1.3 | .256 .40 1.0 | .261 1.0 3.9 | .209 .53 3.4 |
//! | AIS LAT, i32 | .689 3.3 4.7 | .720 3.1 3.7 | .711 1.2 1.8 | .806 1.3 2.1 | .798 .44 1.7 | .690 .82 2.9 | .662 .32 2.0 |
//! | AIS LAT, i32, cells | .604 3.4 4.8 | .619 3.2 3.7 | .492 1.0 4.0 | .580 .38 1.1 | .579 .26 1.1 | .663 .66 2.3 | .436 .30 1.7 |
//! | AIS time, i64 | .249 3.2 9.5 | .263 2.9 7.2 | .145 1.6 2.6 | .169 .57 1.3 | .175 .52 1.2 | .215 .97 4.1 | .143 .59 3.8 |
//! | AIS MMSI, i32 | .935 3.1 4.5 | .957 2.8 3.5 | .822 .62 1.3 | .864 1.2 1.9 | .819 .29 1.1 | .910 .34 1.3 | .704 .18 1.0 |
//! | AIS MMSI, i32, cells | .911 3.2 4.7 | .938 2.9 3.6 | .713 .50 1.1 | .506 .42 1.1 | .446 .29 1.0 | .905 .34 1.4 | .392 .09 .7 |
//! | AIS COG, i16 | .752 2.6 2.4 | .814 2.4 1.8 | .807 1.0 1.1 | .807 1.0 1.7 | .806 .35 1.4 | .750 .49 2.1 | .676 .17 1.1 |
//! | AIS SOG, i16 | .613 2.6 2.4 | .676 2.5 1.8 | .236 .56 1.6 | .303 .33 .8 | .300 .27 .9 | .286 .27 1.1 | .210 .21 1.1 |
//! | random walk, i64 | .173 3.2 9.6 | .111 2.8 7.4 | .145 1.5 2.6 | .156 .56 1.1 | .180 .49 1.3 | .133 1.2 5.6 | .105 .59 3.5 |
//! | random walk / 100, f64 | .796 2.7 8.4 | | .582 1.0 1.2 | .315 .43 1.4 | .296 .34 1.4 | .143 .43 2.2 | .114 .32 1.8 |
//! | 0..1000 at random, i32 | .314 3.7 4.9 | .345 3.4 3.7 | .364 .91 2.1 | .437 .36 1.2 | .436 .24 1.3 | .313 .97 3.2 | .313 .53 3.3 |
//! | i * 16384 + j, i32, 128 columns | .533 3.5 4.7 | .439 3.3 3.6 | .007 2.5 6.3 | .657 1.5 3.1 | .657 1.1 3.0 | .007 .61 3.1 | .003 .56 3.1 |
//! | sine + noise, f32 | .919 3.1 6.2 | | .574 1.1 4.8 | .911 1.4 1.7 | .911 1.3 1.7 | .924 .37 2.3 | .540 .27 1.7 |
//! | 0..1 at random, f64 | .876 2.6 8.0 | | .878 1.1 3.9 | .939 1.4 1.7 | .939 1.3 1.7 | .864 .66 3.8 | .847 .50 3.6 |
//!
//! Blocks of 1,024 cells, as sparse arrays have them, behave differently: compressors and `pco` set up their tables for
//! each. The next table has nanoseconds per value to encode and decode: medians over the columns of real sparse arrays
//! (`blocks --rates`), while other programs took half of the machine:
//!
//! | values | `for` | `shuffle,zstd:1` | `zstd:1` | `zstd:3` | `pco:1` | `pco:4` |
//! |---|---|---|---|---|---|---|
//! | integers of 4 bytes, 8 columns | 1.7 1.6 | 12.6 5.8 | 18.6 6.1 | 20.4 6.0 | 22.4 5.3 | 34.1 6.7 |
//! | integers of 8 bytes, 11 columns | 3.5 1.6 | 18.9 8.0 | 37.9 14.5 | 42.1 13.4 | 29.6 5.8 | 45.5 8.2 |
//! | floats of 8 bytes, 7 columns | 4.8 2.2 | 36.3 15.4 | 34.9 14.3 | 35.0 14.3 | 41.1 11.6 | 55.9 9.2 |
//!
//! There `zstd:3` takes no longer than `zstd:1`. `pco:1`, hardly faster than `pco:4` and up to twice its size, is no
//! candidate. The weights correspond to half these times, except for `pco` on integers of 8 bytes, which has its full
//! time. At half of it, savings of a tenth of the raw size made merges and loads of such columns take a third longer.
//! (Values of 1 and 2 bytes and floats of 4 are weighed alike in blocks of every length: no sparse column of such
//! floats was measured.)
//!
//! The figures show that `pco` serves floats best by far, at half the size of `zstd:3` or less. Packed integers decode
//! at 5 to 10 GB/s and are rarely larger than with `zstd:3`. `delta` pays only in sequences. Between two levels that
//! differ little in size the faster wins. So `pco:8` (a few per cent smaller than `pco:4`, at half its encoding speed)
//! is no candidate, nor is `pco:1` for integers.

use super::Pipeline;
use crate::base::{Element, ElementKind};

/// The largest number of values of one block that are encoded per candidate.
const RUN_VALUES_MAX: usize = 4_096;
/// A pipeline must save this share of the raw size, in thousandths.
const SAVING_MIN: u64 = 30;

/// A pipeline and the weight of its time, in thousandths of a byte.
struct Candidate {
    pipeline: &'static str,
    per_byte: u64,
    per_value: u64,
}

/// How much time a choice may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effort {
    /// All candidates are tried.
    Full,
    /// Only candidates that encode at gigabytes per second are tried: for small commits, where trying the others would
    /// take longer than everything else.
    Quick,
}

impl Candidate {
    fn is_quick(&self) -> bool {
        matches!(self.pipeline, "for" | "delta,for" | "lz4")
    }
}

const fn candidate(pipeline: &'static str, per_byte: u64, per_value: u64) -> Candidate {
    Candidate { pipeline, per_byte, per_value }
}

const FRAME: Candidate = candidate("for", 10, 45);
const DELTA_FRAME: Candidate = candidate("delta,for", 12, 50);
const LZ4: Candidate = candidate("lz4", 50, 0);
const SHUFFLE_ZSTD: Candidate = candidate("shuffle,zstd:1", 60, 0);
const DELTA_SHUFFLE_ZSTD: Candidate = candidate("delta,shuffle,zstd:1", 107, 0);
const ZSTD_1: Candidate = candidate("zstd:1", 110, 0);
const ZSTD_3: Candidate = candidate("zstd:3", 145, 0);
const PCO_INTEGER: Candidate = candidate("pco:4", 0, 650);
const PCO_FLOAT_FAST: Candidate = candidate("pco:1", 0, 710);
const PCO_FLOAT: Candidate = candidate("pco:4", 0, 960);

/// Runs of at most this many integers of 4 and 8 bytes and floats of 8 are weighed as short ones.
const BRIEF_RUN: usize = 2_048;
// For short runs: compressors and `pco` set up their tables for every block.
const BRIEF_DELTA_SHUFFLE_ZSTD: Candidate = candidate("delta,shuffle,zstd:1", 160, 0);
const BRIEF_SHUFFLE_ZSTD: Candidate = candidate("shuffle,zstd:1", 80, 0);
const BRIEF_ZSTD_1: Candidate = candidate("zstd:1", 115, 0);
const BRIEF_ZSTD_3: Candidate = candidate("zstd:3", 120, 0);
const BRIEF_PCO_INTEGER: Candidate = candidate("pco:4", 0, 850);
const BRIEF_PCO_FLOAT: Candidate = candidate("pco:4", 0, 1_100);
const BRIEF_PCO_LONG: Candidate = candidate("pco:4", 0, 1_780);

// Each in order of weight, for its widths.
const BYTES: [Candidate; 3] = [LZ4, FRAME, ZSTD_1];
const SHORTS: [Candidate; 5] = [FRAME, DELTA_FRAME, SHUFFLE_ZSTD, DELTA_SHUFFLE_ZSTD, ZSTD_1];
const WORDS: [Candidate; 7] = [FRAME, DELTA_FRAME, SHUFFLE_ZSTD, DELTA_SHUFFLE_ZSTD, ZSTD_1, ZSTD_3, PCO_INTEGER];
const LONGS: [Candidate; 7] = [FRAME, DELTA_FRAME, SHUFFLE_ZSTD, PCO_INTEGER, DELTA_SHUFFLE_ZSTD, ZSTD_1, ZSTD_3];
const HALVES: [Candidate; 4] = [FRAME, SHUFFLE_ZSTD, ZSTD_1, PCO_FLOAT];
const SINGLES: [Candidate; 5] = [FRAME, SHUFFLE_ZSTD, ZSTD_1, PCO_FLOAT_FAST, PCO_FLOAT];
const DOUBLES: [Candidate; 5] = [FRAME, SHUFFLE_ZSTD, PCO_FLOAT_FAST, ZSTD_1, PCO_FLOAT];
const BRIEF_WORDS: [Candidate; 7] =
    [FRAME, DELTA_FRAME, BRIEF_SHUFFLE_ZSTD, BRIEF_ZSTD_1, BRIEF_ZSTD_3, BRIEF_DELTA_SHUFFLE_ZSTD, BRIEF_PCO_INTEGER];
const BRIEF_LONGS: [Candidate; 7] =
    [FRAME, DELTA_FRAME, BRIEF_SHUFFLE_ZSTD, BRIEF_ZSTD_1, BRIEF_ZSTD_3, BRIEF_DELTA_SHUFFLE_ZSTD, BRIEF_PCO_LONG];
const BRIEF_DOUBLES: [Candidate; 5] = [FRAME, BRIEF_SHUFFLE_ZSTD, BRIEF_ZSTD_1, BRIEF_ZSTD_3, BRIEF_PCO_FLOAT];

/// The pipeline for a tile with typical blocks `blocks` (raw values of some of its blocks); `none` if nothing saves 3
/// %.
///
/// Deterministic: the same sample gives the same pipeline on every machine. The result accepts `element`.
pub fn choose(blocks: &[&[u8]], element: Element, effort: Effort) -> Pipeline {
    let runs: Vec<&[u8]> = blocks.iter().map(|block| middle(block, element.size().max(1))).collect();
    let raw = runs.iter().map(|run| run.len() as u64).sum::<u64>();
    let values = raw / u64::from(element.width.max(1));
    let mut best = (1_000 * raw, Pipeline::none());
    let mut stored = Vec::new();
    let longest = runs.iter().map(|run| run.len()).max().unwrap_or(0) / usize::from(element.width.max(1));
    for candidate in candidates(element, longest).iter().filter(|c| effort == Effort::Full || c.is_quick()) {
        let weight = candidate.per_byte * raw + candidate.per_value * values;
        if best.0 <= weight {
            break;
        }
        let Ok(pipeline) = Pipeline::parse(candidate.pipeline) else { continue };
        stored.clear();
        // A pipeline that does not accept the element is skipped.
        if runs.iter().any(|run| pipeline.encode_into(run, element, &mut stored).is_err()) {
            continue;
        }
        let size = 1_000 * stored.len() as u64;
        if size <= (1_000 - SAVING_MIN) * raw && size + weight < best.0 {
            best = (size + weight, pipeline);
        }
    }
    best.1
}

/// The candidates if the longest run of the sample has `longest` values.
fn candidates(element: Element, longest: usize) -> &'static [Candidate] {
    match (element.kind, element.width) {
        (ElementKind::Float, 8) if longest <= BRIEF_RUN => &BRIEF_DOUBLES,
        (ElementKind::Float, 8) => &DOUBLES,
        (ElementKind::Float, 2) => &HALVES,
        (ElementKind::Float, _) => &SINGLES,
        (_, 8) if longest <= BRIEF_RUN => &BRIEF_LONGS,
        (_, 8) => &LONGS,
        (_, 4) if longest <= BRIEF_RUN => &BRIEF_WORDS,
        (_, 4) => &WORDS,
        (_, 2) => &SHORTS,
        _ => &BYTES,
    }
}

/// The run of whole values that represents a block.
fn middle(block: &[u8], width: usize) -> &[u8] {
    let values = block.len() / width;
    let run = values.min(RUN_VALUES_MAX);
    let start = (values - run) / 2 * width;
    block.get(start..start + run * width).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Element; 7] = [
        Element::BYTE,
        Element::signed(2),
        Element::unsigned(4),
        Element::signed(8),
        Element::float(2),
        Element::float(4),
        Element::float(8),
    ];

    fn noise(n: usize) -> Vec<u8> {
        let mut state = 1u64;
        let mut next = || {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
            state.to_le_bytes()
        };
        (0..n / 8).flat_map(|_| next()).collect()
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn the_choice_fits_the_values() {
        let random: Vec<i64> = noise(16_384 * 8).iter().step_by(8).map(|b| i64::from(*b)).collect();
        let i64s =
            |f: fn((i64, &i64)) -> i64| (0..).zip(&random).map(f).flat_map(i64::to_le_bytes).collect::<Vec<u8>>();
        let f64s: Vec<u8> = random.iter().flat_map(|r| (*r as f64 * 0.01).to_le_bytes()).collect();
        let long = Element::signed(8);
        assert_eq!(choose(&[&i64s(|(_, r)| *r)], long, Effort::Full).name(), "for");
        assert_eq!(choose(&[&i64s(|(i, r)| i * 1_000 + r)], long, Effort::Full).name(), "delta,for");
        assert_eq!(choose(&[&i64s(|(i, _)| i / 128 * 16_384 + i % 128)], long, Effort::Full).name(), "shuffle,zstd:1");
        assert_eq!(choose(&[&f64s], Element::float(8), Effort::Full).name(), "pco:1");
        assert_eq!(choose(&[&b"harbour, berth and pilot ".repeat(400)], Element::BYTE, Effort::Full).name(), "lz4");
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn short_blocks_are_weighed_as_such() {
        // Tenths, which `pco` makes small at any level; the tables of the lower level weigh most where blocks are
        // short.
        let tenths: Vec<u8> =
            noise(16_384 * 8).chunks_exact(8).flat_map(|b| (f64::from(b[0]) * 0.1).to_le_bytes()).collect();
        let double = Element::float(8);
        let short = |values: &[u8]| choose(&[&values[..8_192], &values[8_192..16_384]], double, Effort::Full).name();
        let long = |values: &[u8]| choose(&[values], double, Effort::Full).name();
        assert_eq!((short(&tenths).as_str(), long(&tenths).as_str()), ("pco:4", "pco:1"));
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn equal_values_take_the_cheapest_filter_and_noise_none() {
        for element in ALL {
            assert_ne!(choose(&[&vec![7; 64 * 1024]], element, Effort::Full).name(), "none");
            if element.width > 1 {
                assert_eq!(choose(&[&vec![7; 64 * 1024]], element, Effort::Full).name(), "for");
            }
            assert!(choose(&[&noise(64 * 1024)], element, Effort::Full).is_none());
            assert!(choose(&[&[]], element, Effort::Full).is_none());
            assert!(choose(&[&[1, 2, 3]], element, Effort::Full).is_none());
        }
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn what_repeats_from_block_to_block_is_no_gain() {
        let block = noise(8 * 1_024);
        assert!(choose(&[&block, &block, &block], Element::signed(8), Effort::Full).is_none());
        let (plain, runs) = (noise(8 * 1_024), vec![3; 8 * 1_024]);
        assert_ne!(choose(&[&plain, &runs, &runs], Element::signed(8), Effort::Full).name(), "none");
    }

    #[test]
    #[cfg_attr(miri, ignore = "calls C")]
    fn a_quick_choice_tries_quick_candidates_only() {
        let values: Vec<u8> = (0..4_096i64).flat_map(|i| (i / 128 * 16_384 + i % 128).to_le_bytes()).collect();
        assert_eq!(choose(&[&values], Element::signed(8), Effort::Full).name(), "shuffle,zstd:1");
        assert!(["for", "delta,for"].contains(&choose(&[&values], Element::signed(8), Effort::Quick).name().as_str()));
        assert!(choose(&[&noise(64 * 1024)], Element::float(8), Effort::Quick).is_none());
        assert!(ALL.iter().all(|e| [1_024, 16_384].iter().all(|n| candidates(*e, *n).iter().any(Candidate::is_quick))));
    }

    #[test]
    fn candidates_exist_accept_their_element_and_are_in_order_of_weight() {
        for (element, longest) in ALL.into_iter().flat_map(|e| [(e, 1_024), (e, 16_384)]) {
            let weight = |c: &Candidate| c.per_byte * u64::from(element.width) + c.per_value;
            let all = candidates(element, longest);
            assert!(all.is_sorted_by_key(weight), "{element:?}");
            all.iter().for_each(|c| Pipeline::parse(c.pipeline).unwrap().check(element).unwrap());
        }
    }
}
