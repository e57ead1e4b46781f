//! Errors at a position in a condition's text: the text, a caret below the position, and what was expected there.

use crate::base::{Error, ErrorKind, is_unprintable};

/// How many characters are shown before and after the position.
const AROUND: usize = 48;

/// An Input error: `message`, then the part of `text` around byte `at` with a caret under it.
pub(super) fn complaint(text: &str, at: usize, message: impl AsRef<str>) -> Error {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    let (before, after) = text.split_at(at);
    let plain = |c: char| if is_unprintable(c) { ' ' } else { c };
    let head: Vec<char> = before.chars().rev().take(AROUND + 1).map(plain).collect();
    let tail: String = after.chars().take(AROUND).map(plain).collect();
    let cut = head.len() > AROUND;
    let head: String = head.into_iter().take(AROUND).rev().collect();
    let (start, end) = (if cut { "…" } else { "" }, if after.chars().nth(AROUND).is_some() { "…" } else { "" });
    let column = head.chars().count() + usize::from(cut);
    let lines =
        [message.as_ref().to_owned(), format!("  {start}{head}{tail}{end}"), format!("  {}^", " ".repeat(column))];
    Error::of_lines(ErrorKind::Input, lines)
}

/// The name among `names` that is most similar to `name`, if any is similar.
pub(super) fn nearest<'a>(name: &str, names: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let wanted: Vec<char> = name.chars().take(256).flat_map(char::to_lowercase).collect();
    let best = names.into_iter().map(|n| (distance(&wanted, n), n)).min_by_key(|(d, _)| *d)?;
    (best.0 <= 1 + wanted.len() / 3).then_some(best.1)
}

/// How many letters must be changed, inserted or removed to turn one into the other, ignoring case.
fn distance(wanted: &[char], name: &str) -> usize {
    let mut row: Vec<usize> = (0..=wanted.len()).collect();
    for (i, letter) in name.chars().take(256).flat_map(char::to_lowercase).enumerate() {
        let mut next = vec![i + 1];
        for (pair, have) in row.windows(2).zip(wanted) {
            let (diagonal, above) = (pair.first().copied().unwrap_or(0), pair.last().copied().unwrap_or(0));
            let left = next.last().copied().unwrap_or(0);
            next.push((diagonal + usize::from(*have != letter)).min(above + 1).min(left + 1));
        }
        row = next;
    }
    row.last().copied().unwrap_or(0)
}
