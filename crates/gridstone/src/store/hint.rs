//! The hint: approximately the newest version, where a search begins, and in a bucket the lines of the last records.
//!
//! ```text
//! 0 ..< 31   the version in decimal digits, then spaces
//! 31         newline
//! 32         the tail: the lines of consecutive records, the last one that of the version, each with its checksum as
//!            in its file; bodies are left out
//! ```
//! A hint without a tail is the digits alone, as folders have it. Earlier releases read the first 32 bytes as a number.
//!
//! A hint is never trusted. A tail is used only if it is a chain: each record names the checksum of the one before as
//! its parent. The record of the hint's version, as it lies in the log, must have the checksum of the last line. Then
//! all lines are those of the log, whoever wrote the hint.

use super::line;
use super::record::Record;
use crate::base::limits;
use bytes::Bytes;

/// The bytes that hold the number.
pub(super) const NUMBER_BYTES: usize = 32;
/// The number of commits between two writes of the hint in a folder, where a search among as many versions costs less
/// than a write with each commit.
pub(super) const HINT_EVERY: u64 = 8;
/// The same in a bucket, where an opening requests each record that may follow the hint.
pub(super) const FAR_HINT_EVERY: u64 = 4;

/// A hint as it was read.
#[derive(Debug, Default)]
pub(super) struct Hint {
    /// The version that it names; 0 if it names none.
    pub(super) version: u64,
    /// The records of the tail, oldest first, the last one of that version. They are a chain, and not yet proved to be
    /// of this log.
    pub(super) tail: Vec<Record>,
    /// Whether there is a tail that cannot be used.
    pub(super) damaged: bool,
}

impl Hint {
    /// Decodes a hint. Whatever is wrong with it is as if it were not there.
    pub(super) fn decode(bytes: &[u8]) -> Self {
        let version = number_of(bytes);
        let rest = bytes.get(NUMBER_BYTES..).unwrap_or_default();
        let tail = if version > 0 { tail_of(version, rest) } else { None };
        let damaged = tail.is_none() && !rest.is_empty();
        Self { version, tail: tail.unwrap_or_default(), damaged }
    }

    /// Whether it names no version, or has a tail that cannot be used.
    pub(super) fn is_damaged(&self) -> bool {
        self.version == 0 || self.damaged
    }
}

/// The version that a hint names; 0 if it names none.
pub(super) fn number_of(bytes: &[u8]) -> u64 {
    let number = bytes.get(..NUMBER_BYTES).unwrap_or(bytes);
    std::str::from_utf8(number).ok().and_then(|text| text.trim().parse().ok()).unwrap_or(0)
}

/// The records whose lines are `bytes`, the last of them that of `version`; `None` unless they are a chain.
fn tail_of(version: u64, mut bytes: &[u8]) -> Option<Vec<Record>> {
    if bytes.len() > limits::HINT_BYTES_MAX - NUMBER_BYTES {
        return None;
    }
    let mut heads = Vec::new();
    while !bytes.is_empty() {
        let (head, rest) = line::split_whole(bytes).filter(|(head, _)| head.len() <= limits::HINT_LINE_BYTES_MAX)?;
        heads.push(head);
        bytes = rest;
    }
    let before = version.checked_sub(heads.len() as u64)?;
    let decoded = heads.into_iter().zip(before.saturating_add(1)..).map(|(head, v)| Record::decode_head(head, v).ok());
    let tail: Vec<Record> = decoded.collect::<Option<_>>()?;
    let follows = |pair: &[Record]| matches!(pair, [before, next] if next.parent == Some(before.xxh3));
    tail.windows(2).all(follows).then_some(tail)
}

/// The hint that names `version`, with the lines of as many of `records` as there is room for. These are the last ones,
/// oldest first, up to that of `version`.
pub(super) fn encode<'a>(version: u64, records: impl DoubleEndedIterator<Item = &'a Record>) -> Vec<u8> {
    let mut room = limits::HINT_BYTES_MAX - NUMBER_BYTES;
    let mut heads: Vec<&Bytes> = Vec::new();
    for head in records.rev().map_while(|record| record.head.as_ref()) {
        let Some(left) = room.checked_sub(head.len()) else { break };
        room = left;
        heads.push(head);
    }
    if heads.is_empty() {
        return version.to_string().into_bytes();
    }
    let mut bytes = format!("{version:<width$}\n", width = NUMBER_BYTES - 1).into_bytes();
    heads.iter().rev().for_each(|head| bytes.extend_from_slice(head));
    bytes
}

/// The version whose record has this name.
pub(super) fn version_of(name: &str) -> Option<u64> {
    name.rsplit('/').next().filter(|file| file.len() == 20)?.parse().ok()
}
