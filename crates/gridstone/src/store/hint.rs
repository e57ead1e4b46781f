//! The hint: about which version is the newest, so that a search begins there.

use bytes::Bytes;

/// What a hint says; 0 if it says nothing.
pub(super) fn hint_of(text: Option<Bytes>) -> u64 {
    text.and_then(|text| std::str::from_utf8(&text).ok()?.trim().parse().ok()).unwrap_or(0)
}

/// The version whose record has this name.
pub(super) fn version_of(name: &str) -> Option<u64> {
    name.rsplit('/').next().filter(|file| file.len() == 20)?.parse().ok()
}

/// Commits between two writes of the hint: a search among as many versions costs less than a write with each commit.
pub(super) const HINT_EVERY: u64 = 8;
