//! A dimension: name, type, domain and tile extent. A text dimension is several, one axis per word.

use super::key::{self, from_float, to_float};
use super::scalar::{key_text, text_key};
use super::text::{Word, word_count};
use super::{Datatype, KeyRange};
use crate::base::{Error, Result, limits};
use std::fmt;

/// How the domain of a dimension is cut into space tiles.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Extent {
    /// One tile as long as the domain.
    Whole,
    /// Tiles of this many integer coordinates.
    Cells(u64),
    /// Tiles of this length, for float dimensions.
    Length(f64),
}

/// A dimension of an array, or an axis of a text dimension.
#[derive(Debug, Clone, PartialEq)]
pub struct Dimension {
    name: String,
    datatype: Datatype,
    range: KeyRange,
    extent: Extent,
    word: Option<Word>,
}

impl Dimension {
    /// A dimension over the inclusive domain `lo ..= hi`, in tiles of `tile` (`None`: one tile), all written as text
    /// (see [`super::text_to_bytes`]). A Schema error if the domain is empty, or the tile is not positive.
    pub fn new(name: &str, datatype: Datatype, lo: &str, hi: &str, tile: Option<&str>) -> Result<Self> {
        let wrong = |message: String| Error::schema(format!("dimension {name:?}: {message}"));
        if !datatype.can_be_dimension(true) {
            return Err(wrong(format!("{datatype} cannot be a dimension's type; use an integer, datetime or float")));
        }
        let parse = |text: &str| text_key(datatype, text).map_err(|e| e.context(format!("dimension {name:?}")));
        let (lo_key, hi_key) = (parse(lo)?, parse(hi)?);
        if lo_key > hi_key {
            return Err(wrong(format!("the domain ({lo}, {hi}) is empty; its ends are inclusive, the lower first")));
        }
        if datatype.is_float() && !(to_float(lo_key).is_finite() && to_float(hi_key).is_finite()) {
            return Err(wrong(format!("the domain ({lo}, {hi}) must be finite")));
        }
        let extent = match tile {
            None => Extent::Whole,
            Some(text) => Self::extent_of(datatype, text).ok_or_else(|| {
                wrong(format!(
                    "the tile extent {text:?} must be a positive {}",
                    if datatype.is_float() { "number" } else { "integer" }
                ))
            })?,
        };
        if let Extent::Cells(cells) = extent
            && u128::from(cells) > KeyRange::new(lo_key, hi_key).count()
        {
            return Err(wrong(format!("the tile extent {cells} is longer than the domain ({lo}, {hi})")));
        }
        Ok(Self { name: name.to_owned(), datatype, range: KeyRange::new(lo_key, hi_key), extent, word: None })
    }

    /// The axes of a text dimension: one per word of texts of up to `max_bytes` bytes of UTF-8. A Schema error if that
    /// is too long, or zero.
    pub fn text_axes(name: &str, max_bytes: usize) -> Result<Vec<Self>> {
        let longest = limits::AXES_MAX * 8;
        if max_bytes == 0 || max_bytes > longest {
            return Err(Error::schema(format!(
                "dimension {name:?}: max_bytes, the bytes of UTF-8 of its longest text, is 1 to {longest}, not {max_bytes}"
            )));
        }
        let axis = |number| Self {
            name: name.to_owned(),
            datatype: Datatype::UInt64,
            range: KeyRange::new(0, u64::MAX),
            extent: Extent::Whole,
            word: Some(Word { number, max_bytes }),
        };
        Ok((0..word_count(max_bytes)).map(axis).collect())
    }

    fn extent_of(datatype: Datatype, text: &str) -> Option<Extent> {
        if datatype.is_float() {
            text.parse::<f64>().ok().filter(|v| v.is_finite() && *v > 0.0).map(Extent::Length)
        } else {
            text.parse::<u64>().ok().filter(|v| *v > 0).map(Extent::Cells)
        }
    }

    /// The name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Which word of a text it has, if it is an axis of a text dimension.
    pub fn word(&self) -> Option<Word> {
        self.word
    }

    /// The type of its coordinates; uint64 for words.
    pub fn datatype(&self) -> Datatype {
        self.datatype
    }

    /// The domain as ordered keys.
    pub fn range(&self) -> KeyRange {
        self.range
    }

    /// The tile extent.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The coordinate of `key` as text.
    pub fn text(&self, key: u64) -> String {
        key_text(self.datatype, key)
    }

    /// The key of the coordinate written as `text`.
    pub fn key(&self, text: &str) -> Result<u64> {
        text_key(self.datatype, text)
    }

    /// The key of the integer coordinate `value`, of a time in ticks.
    pub fn int_key(&self, value: i128) -> Result<u64> {
        key::of_int(self.datatype, value).ok_or_else(|| self.no_value(&value))
    }

    /// The key of the float coordinate `value`.
    pub fn float_key(&self, value: f64) -> Result<u64> {
        key::of_float(self.datatype, value).ok_or_else(|| self.no_value(&value))
    }

    fn no_value(&self, value: &dyn fmt::Debug) -> Error {
        Error::schema(format!("{value:?} is no coordinate of type {}", self.datatype))
    }

    /// The same dimension as one tile.
    #[must_use]
    pub fn untiled(&self) -> Self {
        Self { extent: Extent::Whole, ..self.clone() }
    }

    /// The same dimension over the larger domain `lo ..= hi`, written as text. Every space tile keeps its coordinates,
    /// so that cells written before stay in global order. A Schema error if the domain would not contain the old one,
    /// or would move its low end into a tile.
    pub fn grown(&self, lo: &str, hi: &str) -> Result<Self> {
        if self.word.is_some() {
            return Err(Error::schema(format!(
                "dimension {:?} is text: it has no domain that could grow, and max_bytes cannot change; create another array \
                 and copy the cells",
                self.name
            )));
        }
        let tile = self.texts().2;
        let larger = Self::new(&self.name, self.datatype, lo, hi, tile.as_deref())?;
        larger.check_grown(self)?;
        Ok(larger)
    }

    /// A Schema error unless this is `before` over a domain that contains its domain, with the same tiles.
    pub(super) fn check_grown(&self, before: &Self) -> Result<()> {
        let wrong = |why: String| Err(Error::schema(format!("dimension {:?}: {why}", before.name)));
        let fixed = |dim: &Self| (dim.datatype, dim.extent, dim.word);
        if self.name != before.name || fixed(self) != fixed(before) {
            return wrong("its name, type, tile extent and max_bytes cannot change".to_owned());
        }
        let (old, new) = (before.texts(), self.texts());
        if self.range.lo > before.range.lo || self.range.hi < before.range.hi {
            return wrong(format!(
                "the domain ({}, {}) cannot become ({}, {}): a domain only grows; delete cells instead",
                old.0, old.1, new.0, new.1
            ));
        }
        match self.extent {
            Extent::Length(_) if self.range.lo < before.range.lo => wrong(format!(
                "the low end {} of a float dimension with tiles cannot move, since the borders of tiles would not stay exactly \
                 where they are; the high end can",
                old.0
            )),
            Extent::Cells(n) if !(before.range.lo - self.range.lo).is_multiple_of(n) => {
                let tiles = (before.range.lo - self.range.lo).div_ceil(n);
                let lower = before.range.lo.checked_sub(tiles.saturating_mul(n));
                let higher = before.text(before.range.lo - (tiles - 1) * n);
                // Not every key is a key of the type.
                let exists = |key: &u64| before.key(&before.text(*key)).is_ok_and(|found| found == *key);
                let lower = lower.filter(exists).map(|key| before.text(key));
                let possible = lower.map_or_else(|| higher.clone(), |lower| format!("{lower} or {higher}"));
                wrong(format!(
                    "the low end {} can move down by whole tiles of {n} only, so that tiles stay where they are; not to {}, but \
                     to {possible}",
                    old.0, new.0
                ))
            }
            _ => Ok(()),
        }
    }

    /// How many space tiles there are.
    pub fn tiles(&self) -> u128 {
        match self.extent {
            Extent::Whole => 1,
            Extent::Cells(n) => self.range.count().div_ceil(u128::from(n)),
            Extent::Length(_) => u128::from(self.raw_tile_of(self.range.hi)) + 1,
        }
    }

    /// The space tile of a key in the domain, counted from the low end.
    pub fn tile_of(&self, key: u64) -> u64 {
        self.raw_tile_of(key.clamp(self.range.lo, self.range.hi))
    }

    /// `floor((v - lo) / extent)` is monotone in v, since each of the three steps is, rounding included.
    fn raw_tile_of(&self, key: u64) -> u64 {
        match self.extent {
            Extent::Whole => 0,
            Extent::Cells(n) => (key - self.range.lo) / n,
            Extent::Length(length) => {
                let position = (to_float(key) - to_float(self.range.lo)) / length;
                position.floor().clamp(0.0, 9_007_199_254_740_992.0) as u64
            }
        }
    }

    /// The keys of integer space tile `tile`, clipped to the domain; for floats the whole domain where not integer.
    pub fn tile_range(&self, tile: u64) -> KeyRange {
        match self.extent {
            Extent::Cells(n) => {
                let lo = self.range.lo.saturating_add(tile.saturating_mul(n));
                KeyRange::new(lo, lo.saturating_add(n - 1).min(self.range.hi))
            }
            Extent::Whole | Extent::Length(_) => self.range,
        }
    }

    /// The low end of a float dimension's tile `tile`, for drawing; for an integer dimension its first coordinate.
    pub fn tile_edge(&self, tile: u64) -> u64 {
        match self.extent {
            Extent::Length(length) => from_float(to_float(self.range.lo) + tile as f64 * length),
            _ => self.tile_range(tile).lo,
        }
    }

    /// The domain and extent as text: low, high, tile.
    pub fn texts(&self) -> (String, String, Option<String>) {
        let tile = match self.extent {
            Extent::Whole => None,
            Extent::Cells(n) => Some(n.to_string()),
            Extent::Length(length) => Some(format!("{length:?}")),
        };
        (self.text(self.range.lo), self.text(self.range.hi), tile)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn domains_at_the_edges_of_64_bits() {
        let d =
            Dimension::new("x", Datatype::Int64, "-9223372036854775808", "9223372036854775807", Some("10")).unwrap();
        assert_eq!(d.range().count(), 1 << 64);
        assert_eq!(d.tiles(), (1u128 << 64).div_ceil(10));
        let last = d.tile_of(u64::MAX);
        assert_eq!(d.tile_range(last), KeyRange::new(u64::MAX - 5, u64::MAX));
        let u = Dimension::new("u", Datatype::UInt64, "0", "18446744073709551615", None).unwrap();
        assert_eq!((u.tiles(), u.tile_range(0)), (1, KeyRange::new(0, u64::MAX)));
    }

    #[test]
    fn refusals_say_why() {
        let refuse = |dt, lo, hi, tile, word: &str| {
            let error = Dimension::new("x", dt, lo, hi, tile).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        refuse(Datatype::Int8, "5", "4", None, "empty");
        refuse(Datatype::Int8, "0", "200", None, "int8");
        refuse(Datatype::Int8, "0", "9", Some("0"), "positive");
        refuse(Datatype::Int8, "0", "9", Some("11"), "longer");
        refuse(Datatype::Float64, "0", "inf", None, "finite");
        refuse(Datatype::Float64, "0", "NaN", None, "NaN");
        refuse(Datatype::Bool, "false", "true", None, "bool");
        refuse(Datatype::String, "a", "b", None, "string");
    }

    #[test]
    fn domains_grow_by_whole_tiles_at_the_low_end() {
        let tiled = Dimension::new("x", Datatype::Int8, "-10", "14", Some("10")).unwrap();
        assert_eq!(tiled.grown("-10", "127").unwrap().tiles(), 14);
        assert_eq!(tiled.grown("-30", "14").unwrap().tile_of(tiled.key("-10").unwrap()), 2);
        assert_eq!(tiled.grown("-10", "14").unwrap(), tiled);
        let refuse = |dim: &Dimension, lo, hi, word: &str| {
            let error = dim.grown(lo, hi).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        refuse(&tiled, "-13", "14", "to -20 or -10");
        refuse(&tiled, "-125", "14", "to -120");
        refuse(&tiled, "-9", "14", "only grows");
        refuse(&tiled, "-10", "13", "only grows");
        refuse(&tiled, "-10", "128", "int8");
        let whole = Dimension::new("x", Datatype::Int64, "0", "9", None).unwrap();
        assert_eq!(whole.grown("-7", "12").unwrap().tiles(), 1);
        let float = Dimension::new("x", Datatype::Float64, "0", "9", Some("2.5")).unwrap();
        assert_eq!(float.grown("0", "99").unwrap().tile_of(float.range().hi), 3);
        refuse(&float, "-2.5", "9", "float");
        let untiled = Dimension::new("x", Datatype::Float64, "0", "9", None).unwrap();
        assert!(untiled.grown("-2.5", "9").is_ok());
        let edge = Dimension::new("u", Datatype::UInt64, "3", "9", Some("5")).unwrap();
        refuse(&edge, "0", "9", "but to 3");
    }

    proptest! {
        #[test]
        fn float_tiles_are_monotone(lo in -1e9..1e9f64, span in 1e-3..1e9f64, tile in 1e-3..1e9f64, a in 0.0..1.0f64, b in 0.0..1.0f64) {
            let d = Dimension::new("x", Datatype::Float64, &format!("{lo:?}"), &format!("{:?}", lo + span), Some(&format!("{tile:?}"))).unwrap();
            let (ka, kb) = (from_float(lo + a * span), from_float(lo + b * span));
            prop_assert!(u128::from(d.tile_of(ka)) < d.tiles());
            if ka <= kb { prop_assert!(d.tile_of(ka) <= d.tile_of(kb)); }
        }
    }
}
