//! Texts as coordinates: the words that a text is stored as, and the boxes of an interval of texts.
//!
//! A text of up to `8 k` bytes is `k` words: its bytes, padded with zeros, eight by eight, big-endian. Without NUL, the
//! order of texts (of their UTF-8 bytes, which is that of their code points) is the order of their lists of words.

use super::KeyRange;
use crate::base::limits;
use std::ops::Bound;

/// Bytes of a word.
const WORD: usize = 8;

/// Which word of a text dimension an axis has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Word {
    /// The number of the word, from 0.
    pub number: usize,
    /// The longest text of the dimension, in bytes of UTF-8.
    pub max_bytes: usize,
}

/// The default for the longest text of a dimension, in bytes of UTF-8.
pub const TEXT_BYTES: usize = 32;

/// How many words texts of up to `max_bytes` bytes take.
pub fn word_count(max_bytes: usize) -> usize {
    max_bytes.div_ceil(WORD).clamp(1, limits::AXES_MAX)
}

/// Word `number` of a text.
pub fn word(text: &[u8], number: usize) -> u64 {
    let from = (number * WORD).min(text.len());
    let part = text.get(from..(from + WORD).min(text.len())).unwrap_or_default();
    let mut bytes = [0; WORD];
    bytes.iter_mut().zip(part).for_each(|(byte, given)| *byte = *given);
    u64::from_be_bytes(bytes)
}

/// Appends the text of these words, without the zero padding.
pub fn append_text(words: impl IntoIterator<Item = u64>, out: &mut Vec<u8>) {
    let from = out.len();
    words.into_iter().for_each(|word| out.extend_from_slice(&word.to_be_bytes()));
    let end = out.iter().skip(from).rposition(|byte| *byte != 0).map_or(from, |last| from + last + 1);
    out.truncate(end);
}

/// The bytes of the text of these words.
pub fn text_of(words: impl IntoIterator<Item = u64>) -> Vec<u8> {
    let mut text = Vec::new();
    append_text(words, &mut text);
    text
}

/// A text that is not above any text whose words are at least `words`, word by word.
pub fn low_text(words: impl IntoIterator<Item = u64>) -> String {
    let (valid, _) = valid_part(words);
    valid
}

/// A text that is not below any text whose words are at most `words`, word by word.
pub fn high_text(words: impl IntoIterator<Item = u64>) -> String {
    let (valid, cut) = valid_part(words);
    if cut { above_all(&valid) } else { valid }
}

/// The least text of few characters that is above all texts with the prefix `prefix`; if there is none, one that is
/// above all possible coordinates.
fn above_all(prefix: &str) -> String {
    let mut chars: Vec<char> = prefix.chars().collect();
    while let Some(last) = chars.pop() {
        // Surrogate code points are no characters.
        let next = if last == '\u{d7ff}' { Some('\u{e000}') } else { char::from_u32(u32::from(last) + 1) };
        if let Some(next) = next {
            return chars.into_iter().chain([next]).collect();
        }
    }
    std::iter::repeat_n(char::MAX, limits::AXES_MAX * WORD / char::MAX.len_utf8() + 1).collect()
}

/// The valid text before the first zero byte, and whether other bytes follow there. (A text whose word ends in a zero
/// has no more words: later words of a box's corner are not part of it.)
fn valid_part(words: impl IntoIterator<Item = u64>) -> (String, bool) {
    let mut bytes = text_of(words);
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    bytes.truncate(end);
    match std::str::from_utf8(&bytes) {
        Ok(text) => (text.to_owned(), false),
        Err(e) => {
            let valid = bytes.get(..e.valid_up_to()).unwrap_or_default();
            (String::from_utf8_lossy(valid).into_owned(), true)
        }
    }
}

/// The least and the greatest list of words of an interval of texts; `None` if it is empty.
pub fn word_interval(from: Bound<&[u8]>, to: Bound<&[u8]>, count: usize) -> Option<(Vec<u64>, Vec<u64>)> {
    let words = |text: &[u8]| -> Vec<u64> { (0..count).map(|number| word(text, number)).collect() };
    // No text of `count` words equals a longer one: it is above the truncated one, and above no text in between.
    let long = |text: &[u8]| text.len() > count * WORD;
    let low = match from {
        Bound::Unbounded => vec![0; count],
        Bound::Included(text) if !long(text) => words(text),
        Bound::Included(text) | Bound::Excluded(text) => next(words(text))?,
    };
    let high = match to {
        Bound::Unbounded => vec![u64::MAX; count],
        Bound::Excluded(text) if !long(text) => previous(words(text))?,
        Bound::Included(text) | Bound::Excluded(text) => words(text),
    };
    (low <= high).then_some((low, high))
}

/// The list of words directly above `words`.
fn next(mut words: Vec<u64>) -> Option<Vec<u64>> {
    for word in words.iter_mut().rev() {
        *word = word.wrapping_add(1);
        if *word != 0 {
            return Some(words);
        }
    }
    None
}

/// The list of words directly below `words`.
fn previous(mut words: Vec<u64>) -> Option<Vec<u64>> {
    for word in words.iter_mut().rev() {
        *word = word.wrapping_sub(1);
        if *word != u64::MAX {
            return Some(words);
        }
    }
    None
}

const ALL: KeyRange = KeyRange { lo: 0, hi: u64::MAX };

/// The boxes, each a range per word, that contain exactly the lists of words from `low` to `high`: at most `2 k - 1`,
/// disjoint, in ascending order.
pub fn interval_boxes(low: &[u64], high: &[u64]) -> Vec<Vec<KeyRange>> {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let pinned = |words: &[u64], upto: usize, range: KeyRange| -> Vec<KeyRange> {
        let fixed = words.iter().take(upto).map(|word| KeyRange::new(*word, *word));
        fixed.chain([range]).chain((upto + 1..words.len()).map(|_| ALL)).collect()
    };
    let (Some(first), Some(last)) = (low.get(same), high.get(same)) else {
        return vec![low.iter().map(|word| KeyRange::new(*word, *word)).collect()];
    };
    let tail = |words: &[u64], free: u64| words.iter().rposition(|word| *word != free).filter(|at| *at > same);
    let (low_end, high_end) = (tail(low, 0), tail(high, u64::MAX));
    let mut boxes = Vec::new();
    // Lists that equal `low` before a word and are above it there; at the last nonzero word, not below it.
    for at in (same + 1..=low_end.unwrap_or(0)).rev() {
        let from = low.get(at).copied().unwrap_or(0);
        let from = if Some(at) == low_end { Some(from) } else { from.checked_add(1) };
        boxes.extend(from.map(|from| pinned(low, at, KeyRange::new(from, u64::MAX))));
    }
    let from = first + u64::from(low_end.is_some());
    let to = last - u64::from(high_end.is_some());
    if from <= to {
        boxes.push(pinned(low, same, KeyRange::new(from, to)));
    }
    for at in same + 1..=high_end.unwrap_or(0) {
        let to = high.get(at).copied().unwrap_or(u64::MAX);
        let to = if Some(at) == high_end { Some(to) } else { to.checked_sub(1) };
        boxes.extend(to.map(|to| pinned(high, at, KeyRange::new(0, to))));
    }
    boxes
}

/// The smallest box, a range per word, that contains the lists of words from `low` to `high`.
pub fn interval_hull(low: &[u64], high: &[u64]) -> Vec<KeyRange> {
    let same = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let range = |(place, (lo, hi)): (usize, (&u64, &u64))| if place <= same { KeyRange::new(*lo, *hi) } else { ALL };
    low.iter().zip(high).enumerate().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn words(text: &str, count: usize) -> Vec<u64> {
        (0..count).map(|number| word(text.as_bytes(), number)).collect()
    }

    /// Texts with common prefixes, of lengths around whole words.
    fn texts() -> impl Strategy<Value = String> {
        let letters = prop::sample::select(vec!["a", "b", "\u{1}", "\u{7f}", "é", "漢", "😀", "\u{10ffff}", "z"]);
        let runs = (prop::sample::select(vec![0usize, 6, 7, 8, 14, 15, 16]), prop::collection::vec(letters, 0..4));
        runs.prop_map(|(len, rest)| "a".repeat(len) + &rest.concat())
    }

    fn inside(boxes: &[Vec<KeyRange>], cell: &[u64]) -> usize {
        boxes.iter().filter(|b| b.iter().zip(cell).all(|(range, word)| range.contains(*word))).count()
    }

    fn bound(kind: u8, text: &str) -> Bound<&[u8]> {
        match kind {
            0 => Bound::Included(text.as_bytes()),
            1 => Bound::Excluded(text.as_bytes()),
            _ => Bound::Unbounded,
        }
    }

    #[test]
    fn words_are_the_bytes() {
        assert_eq!(words("abcdefghi", 2), [0x6162_6364_6566_6768, 0x69 << 56]);
        assert_eq!(words("", 2), [0, 0]);
        assert_eq!(text_of(words("abcdefghi", 4)), b"abcdefghi");
        assert_eq!((word_count(1), word_count(8), word_count(9), word_count(32)), (1, 1, 2, 4));
        let one = |from, to| {
            let (low, high) = word_interval(from, to, 4).unwrap();
            interval_boxes(&low, &high).len()
        };
        let text = |t: &'static str| t.as_bytes();
        assert_eq!(one(Bound::Included(text("BRCA1")), Bound::Included(text("BRCA1"))), 1);
        assert_eq!(one(Bound::Included(text("BRCA")), Bound::Excluded(text("BRCB"))), 1);
        assert_eq!(one(Bound::Unbounded, Bound::Unbounded), 1);
        assert_eq!(one(Bound::Included(text("BRCA1")), Bound::Included(text("BRCA2"))), 2);
        assert!(word_interval(Bound::Unbounded, Bound::Excluded(b""), 2).is_none());
        assert!(word_interval(Bound::Included(b"b"), Bound::Included(b"a"), 2).is_none());
    }

    #[test]
    fn corners_are_shown_as_bounds() {
        let corner = |parts: [&[u8]; 2]| parts.map(|p| word(p, 0));
        assert_eq!(high_text(corner([b"B", b"zz"])), "B");
        let cut = corner(["aaaaaaa漢".as_bytes(), b""]);
        assert_eq!((low_text(cut), high_text(cut)), ("aaaaaaa".to_owned(), "aaaaaab".to_owned()));
        assert_eq!(above_all("a\u{d7ff}\u{10ffff}"), "a\u{e000}");
        assert!(above_all("\u{10ffff}").len() > 8 * limits::AXES_MAX);
        assert_eq!(low_text(corner([b"abcdefgh", b"i"])), "abcdefghi");
    }

    proptest! {
        #[test]
        fn order_and_text_survive(a in texts(), b in texts()) {
            let (x, y) = (words(&a, 4), words(&b, 4));
            prop_assert_eq!(a.cmp(&b), x.cmp(&y));
            prop_assert_eq!(text_of(x.iter().copied()), a.as_bytes());
            let corner = |f: fn(u64, u64) -> u64| x.iter().zip(&y).map(|(p, q)| f(*p, *q)).collect::<Vec<_>>();
            let (low, high) = (low_text(corner(u64::min)), high_text(corner(u64::max)));
            prop_assert!(low <= a && low <= b && a <= high && b <= high, "{low:?} {high:?}");
        }

        #[test]
        fn boxes_are_the_interval(
            ends in (texts(), texts()), cells in prop::collection::vec(texts(), 1..20), kinds in (0..3u8, 0..3u8), count in 1..4usize
        ) {
            // Ends may be longer than the words; cells are not.
            let (a, b) = (ends.0.as_str(), ends.1.as_str());
            let (from, to) = (bound(kinds.0, a), bound(kinds.1, b));
            let interval = word_interval(from, to, count);
            let boxes = interval.clone().map_or(Vec::new(), |(low, high)| interval_boxes(&low, &high));
            if let Some((low, high)) = interval {
                let sub = |ranges: &Vec<KeyRange>| super::super::Subarray::new(ranges.clone());
                prop_assert_eq!(boxes.iter().map(sub).reduce(|a, b| a.union(&b)), Some(sub(&interval_hull(&low, &high))));
            }
            prop_assert!(boxes.len() < 2 * count);
            let known = [a.to_owned(), b.to_owned()];
            for cell in cells.iter().chain(&known).filter(|c| c.len() <= count * WORD) {
                let wanted = std::ops::RangeBounds::<[u8]>::contains(&(from, to), cell.as_bytes());
                prop_assert_eq!(inside(&boxes, &words(cell, count)), usize::from(wanted), "{:?}", cell);
            }
        }
    }
}
