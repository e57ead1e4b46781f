//! The dimensions of an array as users know them: each takes one coordinate of a cell, and one axis or, for text,
//! several.

use super::text::{high_text, low_text, text_of};
use super::{Datatype, Dimension, KeyRange};
use crate::base::{Error, Result};
use std::ops::Range;

/// A dimension as users know it, and the axes (dimensions of the schema) that its coordinates are stored as.
#[derive(Debug, Clone, Copy)]
pub struct Coordinate<'s> {
    first: usize,
    axes: &'s [Dimension],
}

impl<'s> Coordinate<'s> {
    /// The dimensions of these axes, in their order.
    pub(super) fn all(axes: &'s [Dimension]) -> impl Iterator<Item = Self> + Clone {
        let goes_on = |_: &Dimension, next: &Dimension| next.word().is_some_and(|word| word.number > 0);
        axes.chunk_by(goes_on).scan(0, |first, axes| {
            let found = Self { first: *first, axes };
            *first += axes.len();
            Some(found)
        })
    }

    /// The name.
    pub fn name(&self) -> &'s str {
        self.axes.first().map_or("", Dimension::name)
    }

    /// The type of the users' coordinates: string for text.
    pub fn datatype(&self) -> Datatype {
        match self.number() {
            Some(axis) => axis.datatype(),
            None => Datatype::String,
        }
    }

    /// The indexes of its axes.
    pub fn axes(&self) -> Range<usize> {
        self.first..self.first + self.axes.len()
    }

    /// Its axis, unless it is a text dimension.
    pub fn number(&self) -> Option<&'s Dimension> {
        self.axes.first().filter(|axis| axis.word().is_none())
    }

    /// The largest length of its texts in bytes of UTF-8, if it is a text dimension.
    pub fn max_bytes(&self) -> Option<usize> {
        self.axes.first()?.word().map(|word| word.max_bytes)
    }

    /// A cell's coordinate as text; `key` returns its key on each axis of the schema.
    pub fn text(&self, key: impl Fn(usize) -> u64) -> String {
        match self.number() {
            Some(axis) => axis.text(key(self.first)),
            None => String::from_utf8_lossy(&text_of(self.axes().map(key))).into_owned(),
        }
    }

    /// The same as messages show it: a time as its date.
    pub fn shown(&self, key: impl Fn(usize) -> u64) -> String {
        match self.number() {
            Some(axis) => axis.shown(key(self.first)),
            None => self.text(key),
        }
    }

    /// The ends of its part of a box as messages show them.
    pub fn shown_ends(&self, ranges: &[KeyRange]) -> (String, String) {
        match (self.number(), ranges.get(self.axes())) {
            (Some(axis), Some([range])) => (axis.shown(range.lo), axis.shown(range.hi)),
            _ => self.ends(ranges),
        }
    }

    /// The ends of its part of a box with these ranges, as text. For a text dimension these are texts such that no cell
    /// in the box lies before the first, or behind the second.
    pub fn ends(&self, ranges: &[KeyRange]) -> (String, String) {
        let mine = ranges.get(self.axes()).unwrap_or_default();
        match (self.number(), mine) {
            (Some(axis), [range]) => (axis.text(range.lo), axis.text(range.hi)),
            _ => (low_text(mine.iter().map(|r| r.lo)), high_text(mine.iter().map(|r| r.hi))),
        }
    }

    /// An Input error if `text` cannot be a coordinate of this text dimension.
    pub fn check_text(&self, text: &[u8]) -> Result<()> {
        let max = self.max_bytes().unwrap_or(0);
        if text.len() > max {
            return Err(Error::input(format!(
                "{} is {} bytes of UTF-8 long, the longest text of this dimension has {max}; raise its max_bytes (in a new \
                 array), or shorten the text",
                shown(text),
                text.len()
            )));
        }
        if text.contains(&0) {
            return Err(Error::input(format!(
                "{} holds a NUL character, which no coordinate may; remove it from the text",
                shown(text)
            )));
        }
        Ok(())
    }

    /// An Input error unless its axes are the words of a text, in order.
    pub(super) fn check_words(&self) -> Result<()> {
        let Some(first) = self.axes.first().and_then(Dimension::word) else { return Ok(()) };
        let numbers = self.axes.iter().filter_map(Dimension::word).map(|word| (word.number, word.max_bytes));
        let whole = numbers.eq((0..super::text::word_count(first.max_bytes)).map(|number| (number, first.max_bytes)));
        if whole && self.axes.iter().all(|axis| axis.name() == self.name()) {
            return Ok(());
        }
        Err(Error::schema(format!("dimension {:?}: its axes are not the words of one text dimension", self.name())))
    }
}

/// The beginning of a text, for messages.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    match text.char_indices().nth(60) {
        Some((cut, _)) => format!("{:?}…", text.get(..cut).unwrap_or_default()),
        None => format!("{text:?}"),
    }
}
