//! The hint: approximately the newest version, where a search begins.

use bytes::Bytes;

/// The version that a hint names; 0 if it names none.
pub(super) fn hint_of(text: Option<Bytes>) -> u64 {
    text.and_then(|text| std::str::from_utf8(&text).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// The version whose record has this name.
pub(super) fn version_of(name: &str) -> Option<u64> {
    name.rsplit('/').next().filter(|file| file.len() == 20)?.parse().ok()
}

/// The number of commits between two writes of the hint. A search among as many versions costs less than a write with
/// each commit.
pub(super) const HINT_EVERY: u64 = 8;
