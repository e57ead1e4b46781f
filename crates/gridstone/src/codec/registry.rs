//! The table of filters: the only place with their names.

use super::user::{Named, is_id};
use super::zstd::Zstd;
use super::{Filter, Rounding};
use super::{bitshuffle::Bitshuffle, delta::Delta, dictionary::Dictionary, frame::Frame, gzip::Gzip, lz4::Lz4};
use super::{pco::Pco, rle::RunLength, shuffle::Shuffle};
use crate::base::{Error, Result};
use std::ops::RangeInclusive;
use std::sync::Arc;

/// A filter with a level: its range, its default, and its constructor.
struct Levels {
    name: &'static str,
    range: RangeInclusive<u8>,
    default: u8,
    make: fn(u8) -> Arc<dyn Filter>,
}

const LEVELLED: [Levels; 3] = [
    Levels { name: "gzip", range: 1..=12, default: 6, make: |level| Arc::new(Gzip { level }) },
    Levels { name: "pco", range: 0..=12, default: 4, make: |level| Arc::new(Pco { level }) },
    Levels { name: "zstd", range: 1..=22, default: 3, make: |level| Arc::new(Zstd { level }) },
];

/// The filter that `text` names, `"name"` or `"name:level"`; otherwise a Schema error that lists the known ones.
pub(super) fn filter(text: &str) -> Result<Arc<dyn Filter>> {
    let (name, level) = match text.split_once(':') {
        Some((name, level)) => (name, Some(level)),
        None => (text, None),
    };
    if let Some(entry) = LEVELLED.iter().find(|entry| entry.name == name) {
        return Ok((entry.make)(level_of(entry, level)?));
    }
    let plain: Arc<dyn Filter> = match name {
        "bitshuffle" => Arc::new(Bitshuffle),
        "delta" => Arc::new(Delta),
        "dict" => Arc::new(Dictionary),
        "for" => Arc::new(Frame),
        "lz4" => Arc::new(Lz4),
        "rle" => Arc::new(RunLength),
        "shuffle" => Arc::new(Shuffle),
        id if is_id(id) => Arc::new(Named(id.to_owned())),
        _ if Rounding::parse(text)?.is_some() => {
            return Err(Error::schema(format!(
                "{text} is for attributes, and stands in front of the other filters: values are rounded first"
            )));
        }
        _ => return Err(Error::schema(format!("filter {name:?} is not known; {}", known()))),
    };
    match level {
        None => Ok(plain),
        Some(level) => Err(Error::schema(format!("filter {name} has no level, found {level:?}"))),
    }
}

fn level_of(entry: &Levels, text: Option<&str>) -> Result<u8> {
    let Some(text) = text else { return Ok(entry.default) };
    text.parse().ok().filter(|level| entry.range.contains(level)).ok_or_else(|| {
        let (name, low, high) = (entry.name, entry.range.start(), entry.range.end());
        Error::schema(format!("filter {name} has levels {low} to {high}, found {text:?}"))
    })
}

fn known() -> String {
    let levelled = LEVELLED.iter().map(|e| format!("{}:{}..{}", e.name, e.range.start(), e.range.end()));
    let names = ["none", "bitshuffle", "delta", "dict", "for", "lz4", "rle", "shuffle"].map(String::from);
    let all: Vec<String> = names.into_iter().chain(levelled).collect();
    format!("known are {}, and user-defined ones, which have a dot in their name", all.join(", "))
}
