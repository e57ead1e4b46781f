//! A dimension: name, type, domain and tile extent. A text dimension is several, one axis per word.

use super::key::{self, from_float, to_float};
use super::scalar::{key_shown, key_text, text_key};
use super::text::{Word, word_count};
use super::{Datatype, KeyRange, Labels};
use crate::base::{Error, Result, limits};
use std::fmt;
use std::sync::Arc;

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
    /// Where a tile begins: the borders of all others follow from it, and so do labels at steps. It stays when the domain
    /// grows, and may lie outside of the domain.
    origin: u64,
    extent: Extent,
    /// How far the low end lies behind the border of its tile. The domain, or the type, may cut the first tile.
    lead: u64,
    word: Option<Word>,
    /// Whether the low end, and the high end, is open.
    open: [bool; 2],
    /// The closed end, where the other one is open. A domain that is not empty reaches to it.
    fixed: Option<u64>,
    labels: Option<Arc<Labels>>,
}

impl Dimension {
    /// A dimension over the inclusive domain `lo ..= hi`, in tiles of `tile` (`None`: one tile), all written as text
    /// (see [`super::text_to_bytes`]). A Schema error if the domain is empty, or the tile is not positive.
    pub fn new(name: &str, datatype: Datatype, lo: &str, hi: &str, tile: Option<&str>) -> Result<Self> {
        Self::with_ends(name, datatype, [Some(lo), Some(hi)], tile)
    }

    /// Like [`Dimension::new`]; an end that is `None` is open. Then the domain is empty until something is written, and
    /// reaches from the closed end, if there is one, to what was written.
    ///
    /// # Errors
    /// Those of [`Dimension::new`].
    pub fn with_ends(name: &str, datatype: Datatype, ends: [Option<&str>; 2], tile: Option<&str>) -> Result<Self> {
        let wrong = |message: String| Error::schema(format!("dimension {name:?}: {message}"));
        if !datatype.can_be_dimension(true) {
            return Err(wrong(format!("{datatype} cannot be a dimension's type; use an integer, datetime or float")));
        }
        let all = key::range_of(datatype);
        let parse = |text: &str| text_key(datatype, text).map_err(|e| e.context(format!("dimension {name:?}")));
        let [low, high] = ends.map(|end| end.map(parse).transpose());
        let (low, high) = (low?, high?);
        let (lo_key, hi_key) = (low.unwrap_or(all.lo), high.unwrap_or(all.hi));
        let shown = || format!("({}, {})", key_shown(datatype, lo_key), key_shown(datatype, hi_key));
        if lo_key > hi_key {
            return Err(wrong(format!("the domain {} is empty; its ends are inclusive, the lower first", shown())));
        }
        if datatype.is_float() && !(to_float(lo_key).is_finite() && to_float(hi_key).is_finite()) {
            return Err(wrong(format!("the domain {} must be finite", shown())));
        }
        let open = [low, high].map(|end| end.is_none());
        let (range, fixed) = match open {
            [false, false] => (KeyRange::new(lo_key, hi_key), None),
            _ => (KeyRange::EMPTY, low.or(high)),
        };
        let extent = Self::extent_within(name, datatype, tile)?;
        let (name, origin) = (name.to_owned(), lo_key);
        let dim = Self { name, datatype, range, origin, extent, lead: 0, word: None, open, fixed, labels: None };
        let origin = dim.default_origin();
        Ok(Self { origin, ..dim }.led())
    }

    /// A dimension without a coordinate, until a domain is given to it; a tile begins at 0.
    ///
    /// # Errors
    /// Those of [`Dimension::new`].
    pub fn without_domain(name: &str, datatype: Datatype, tile: Option<&str>) -> Result<Self> {
        let all = Self::with_ends(name, datatype, [None, None], tile)?;
        Ok(Self { range: KeyRange::EMPTY, open: [false; 2], ..all }.led())
    }

    /// The tile extent that `tile` says, which is not longer than all coordinates of the type are. It may be longer than the
    /// domain.
    fn extent_within(name: &str, datatype: Datatype, tile: Option<&str>) -> Result<Extent> {
        let range = key::range_of(datatype);
        let wrong = |message: String| Error::schema(format!("dimension {name:?}: {message}"));
        let extent = match tile {
            None => Extent::Whole,
            Some(text) => Self::extent_of(datatype, text).ok_or_else(|| {
                wrong(format!(
                    "the tile extent {text:?} must be a positive {}",
                    if datatype.is_float() { "number" } else { "integer" }
                ))
            })?,
        };
        match extent {
            Extent::Cells(cells) if u128::from(cells) > range.count() => {
                let (lo, hi) = (key_shown(datatype, range.lo), key_shown(datatype, range.hi));
                Err(wrong(format!("the tile extent {cells} is longer than what {datatype} can say, ({lo}, {hi})")))
            }
            extent => Ok(extent),
        }
    }

    /// The same dimension with a tile that begins at `origin`, written as text.
    ///
    /// # Errors
    /// Schema if that is no coordinate, or not finite.
    pub fn with_origin(self, origin: &str) -> Result<Self> {
        let wrong = |e: Error| e.context(format!("dimension {:?}, origin of tiles", self.name));
        let origin = text_key(self.datatype, origin).map_err(wrong)?;
        if self.datatype.is_float() && !to_float(origin).is_finite() {
            return Err(wrong(Error::schema("it must be finite")));
        }
        Ok(Self { origin, ..self }.led())
    }

    /// The origin of a dimension of which none is written: the low end of the domain that it was given; 0 where that is
    /// open, or the domain empty.
    pub fn default_origin(&self) -> u64 {
        let zero = || self.key("0").unwrap_or(self.range.lo);
        match self.open {
            [false, false] if self.range.is_empty() => zero(),
            [false, false] => self.range.lo,
            [false, true] => self.fixed.unwrap_or_else(zero),
            [true, _] => zero(),
        }
    }

    /// With the distance of the low end from its border.
    fn led(mut self) -> Self {
        self.lead = match self.extent {
            Extent::Cells(n) => match self.range.lo.checked_sub(self.origin) {
                Some(after) => after % n,
                None => (n - (self.origin - self.range.lo) % n) % n,
            },
            Extent::Length(_) => 0,
            // There are no other tiles that it could place, only labels.
            Extent::Whole => {
                if self.labels.is_none() {
                    self.origin = self.default_origin();
                }
                0
            }
        };
        self
    }

    /// The same dimension over the domain that reaches as far as its own and `range`: also to the closed end of one that
    /// has an open one.
    #[must_use]
    pub fn reaching(&self, range: KeyRange) -> Self {
        let joined = self.range.joined(range);
        let end = self.fixed.filter(|_| !joined.is_empty()).map(|end| KeyRange::new(end, end));
        self.over(end.map_or(joined, |end| joined.joined(end)))
    }

    /// The same dimension over `range`, with the same tiles.
    #[must_use]
    fn over(&self, range: KeyRange) -> Self {
        Self { range, ..self.clone() }.led()
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
            origin: 0,
            extent: Extent::Whole,
            lead: 0,
            word: Some(Word { number, max_bytes }),
            open: [false; 2],
            fixed: None,
            labels: None,
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

    /// The same dimension under another name.
    #[must_use]
    pub fn renamed(&self, name: &str) -> Self {
        Self { name: name.to_owned(), ..self.clone() }
    }

    /// The same dimension with these labels, or without.
    #[must_use]
    pub fn with_labels(&self, labels: Option<Labels>) -> Self {
        Self { labels: labels.map(Arc::new), ..self.clone() }.led()
    }

    /// What its positions stand for, if that is given.
    pub fn labels(&self) -> Option<&Labels> {
        self.labels.as_deref()
    }

    /// Whether the domain has no low end, and no high end: every write makes it reach to what it writes.
    pub fn open(&self) -> [bool; 2] {
        self.open
    }

    /// The ends of the domain as text, as the dimension was given them: `None` where it is open. No ends if it is empty.
    pub fn given_ends(&self) -> Vec<Option<String>> {
        let [lo, hi] = match (self.open, self.fixed) {
            ([false, false], _) if self.range.is_empty() => return Vec::new(),
            ([false, false], _) => [Some(self.range.lo), Some(self.range.hi)],
            ([false, true], end) => [end, None],
            ([true, false], end) => [None, end],
            ([true, true], _) => [None, None],
        };
        [lo, hi].into_iter().map(|end| end.map(|key| self.text(key))).collect()
    }

    /// The coordinates that a write may make the domain reach to, without being told to let it grow.
    pub fn free_range(&self) -> KeyRange {
        let all = if self.word.is_some() { self.range } else { key::range_of(self.datatype) };
        let own = match self.fixed {
            Some(end) => self.range.joined(KeyRange::new(end, end)),
            None => self.range,
        };
        match self.open {
            [false, false] => own,
            [low, high] => KeyRange::new(if low { all.lo } else { own.lo }, if high { all.hi } else { own.hi }),
        }
    }

    /// Where a block of `count` coordinates lies that is appended: behind the domain. If that is empty, it begins at the
    /// closed low end, ends at the closed high end, or begins at the origin of tiles. `None` if there is no such place.
    pub fn behind(&self, count: u64) -> Option<KeyRange> {
        let more = count.checked_sub(1)?;
        let low = match (self.range.is_empty(), self.open, self.fixed) {
            (false, ..) => self.range.hi.checked_add(1)?,
            (true, [true, false], Some(last)) => last.checked_sub(more)?,
            (true, _, Some(first)) => first,
            (true, _, None) => self.origin,
        };
        let all = key::range_of(self.datatype);
        let high = low.checked_add(more).filter(|high| all.contains(low) && *high <= all.hi)?;
        Some(KeyRange::new(low, high))
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

    /// A coordinate at which a tile begins, as an ordered key.
    pub fn origin(&self) -> u64 {
        self.origin
    }

    /// The tile extent.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The coordinate of `key` as text.
    pub fn text(&self, key: u64) -> String {
        key_text(self.datatype, key)
    }

    /// The coordinate of `key` as messages show it: a time as its date.
    pub fn shown(&self, key: u64) -> String {
        key_shown(self.datatype, key)
    }

    /// The domain as messages show it.
    pub fn shown_domain(&self) -> String {
        format!("({}, {})", self.shown(self.range.lo), self.shown(self.range.hi))
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
        Self { extent: Extent::Whole, ..self.clone() }.led()
    }

    /// The same dimension over the larger domain `lo ..= hi`, written as text. Tiles stay where they are. A Schema error
    /// if the domain would not contain the old one.
    pub fn grown(&self, lo: &str, hi: &str) -> Result<Self> {
        if self.word.is_some() {
            return Err(Error::schema(format!(
                "dimension {:?} is text: it has no domain that could grow, and max_bytes cannot change; create another array \
                 and copy the cells",
                self.name
            )));
        }
        let range = Self::new(&self.name, self.datatype, lo, hi, None)?.range;
        self.over(range).check_grown(self)?;
        Ok(self.reaching(range))
    }

    /// A Schema error unless both ends of `range` are coordinates that a domain may have.
    pub fn check_range(&self, range: KeyRange) -> Result<()> {
        let is_end = |key: u64| self.key(&self.text(key)).is_ok_and(|found| found == key);
        let is_finite = |key: u64| !self.datatype.is_float() || to_float(key).is_finite();
        if self.word.is_none() && [range.lo, range.hi].into_iter().all(|end| is_end(end) && is_finite(end)) {
            return Ok(());
        }
        let why = "its type does not have the ends that its domain should reach";
        Err(Error::schema(format!("dimension {:?}: {why}", self.name)))
    }

    /// A Schema error unless this is `before` over a domain that contains its domain, with the same tiles.
    pub(super) fn check_grown(&self, before: &Self) -> Result<()> {
        let wrong = |why: String| Err(Error::schema(format!("dimension {:?}: {why}", before.name)));
        let fixed = |dim: &Self| (dim.datatype, dim.extent, dim.word);
        if fixed(self) != fixed(before) || !self.has_borders_of(before) {
            return wrong("its type, tile extent, origin of tiles and max_bytes cannot change".to_owned());
        }
        if before.open.iter().zip(self.open).any(|(was, is)| *was && !is) {
            return wrong("an end of its domain is open, and stays so".to_owned());
        }
        if before.open == self.open && before.fixed != self.fixed {
            return wrong("the closed end of its domain, whose other end is open, stays where it is".to_owned());
        }
        if self.range.joined(before.range) != self.range {
            return wrong(format!(
                "the domain {} cannot become {}: a domain only grows; delete cells instead",
                before.shown_domain(),
                self.shown_domain()
            ));
        }
        Ok(())
    }

    /// Whether all borders of tiles are those of `other`, which has the same extent.
    fn has_borders_of(&self, other: &Self) -> bool {
        match self.extent {
            Extent::Whole => true,
            Extent::Cells(n) => self.origin.abs_diff(other.origin).is_multiple_of(n),
            Extent::Length(_) => self.origin == other.origin,
        }
    }

    /// How many space tiles there are.
    pub fn tiles(&self) -> u128 {
        match self.extent {
            _ if self.range.is_empty() => 0,
            Extent::Whole => 1,
            Extent::Cells(n) => (self.range.count() + u128::from(self.lead)).div_ceil(u128::from(n)),
            Extent::Length(length) => u128::from(self.float_tile(self.range.hi, length)) + 1,
        }
    }

    /// How far the low end lies behind the border of its tile, in cells: the first tile lacks as many. 0 if tiles do not
    /// have a number of cells.
    pub fn lead(&self) -> u64 {
        self.lead
    }

    /// The space tile of a key in the domain, counted from that of the low end.
    pub fn tile_of(&self, key: u64) -> u64 {
        let key = key.min(self.range.hi).max(self.range.lo);
        match self.extent {
            Extent::Whole => 0,
            Extent::Cells(n) => match (key - self.range.lo).checked_add(self.lead) {
                Some(offset) => offset / n,
                None => ((u128::from(key - self.range.lo) + u128::from(self.lead)) / u128::from(n)) as u64,
            },
            Extent::Length(length) => self.float_tile(key, length),
        }
    }

    /// How far a key of the domain lies behind the border of its tile, for tiles of `cells`.
    pub fn offset_in_tile(&self, key: u64, cells: u64) -> u64 {
        match (key - self.range.lo).checked_add(self.lead) {
            Some(offset) => offset % cells,
            None => ((u128::from(key - self.range.lo) + u128::from(self.lead)) % u128::from(cells)) as u64,
        }
    }

    /// The cells of a whole tile, as far as the domain can hold one; of a dimension of integers.
    pub fn tile_cells(&self) -> u64 {
        let all = u64::try_from(self.range.count()).unwrap_or(u64::MAX);
        match self.extent {
            Extent::Cells(n) => n.min(all),
            Extent::Whole | Extent::Length(_) => all,
        }
    }

    fn float_tile(&self, key: u64, length: f64) -> u64 {
        self.number_of(key, length).abs_diff(self.number_of(self.range.lo, length))
    }

    /// The tile of a float counted from the origin. `floor((v - origin) / length)` is monotone in v, since each of the
    /// three steps is, rounding included.
    fn number_of(&self, key: u64, length: f64) -> i64 {
        const FAR: f64 = 9_007_199_254_740_992.0;
        ((to_float(key) - to_float(self.origin)) / length).floor().clamp(-FAR, FAR) as i64
    }

    /// The keys of integer space tile `tile`, clipped to the domain; for floats the whole domain where not integer.
    pub fn tile_range(&self, tile: u64) -> KeyRange {
        match self.extent {
            Extent::Cells(n) => {
                let first = n - self.lead;
                let lo = match tile.checked_sub(1) {
                    None => self.range.lo,
                    Some(whole) => self.range.lo.saturating_add(first).saturating_add(whole.saturating_mul(n)),
                };
                let cells = if tile == 0 { first } else { n };
                KeyRange::new(lo, lo.saturating_add(cells - 1).min(self.range.hi))
            }
            Extent::Whole | Extent::Length(_) => self.range,
        }
    }

    /// The low end of a float dimension's tile `tile`, for drawing; for an integer dimension its first coordinate.
    pub fn tile_edge(&self, tile: u64) -> u64 {
        match self.extent {
            Extent::Length(length) => {
                let number = self.number_of(self.range.lo, length) as f64 + tile as f64;
                from_float(to_float(self.origin) + number * length)
            }
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
        refuse(Datatype::Int8, "0", "9", Some("257"), "longer");
        refuse(Datatype::Float64, "0", "inf", None, "finite");
        refuse(Datatype::Float64, "0", "NaN", None, "NaN");
        refuse(Datatype::Bool, "false", "true", None, "bool");
        refuse(Datatype::String, "a", "b", None, "string");
    }

    #[test]
    fn domains_grow_at_both_ends_and_tiles_stay() {
        let tiled = Dimension::new("x", Datatype::Int8, "-10", "14", Some("10")).unwrap();
        assert_eq!(tiled.grown("-10", "127").unwrap().tiles(), 14);
        assert_eq!(tiled.grown("-30", "14").unwrap().tile_of(tiled.key("-10").unwrap()), 2);
        assert_eq!(tiled.grown("-10", "14").unwrap(), tiled);
        // The first tile is cut: by the domain, and by the type.
        let cut = tiled.grown("-13", "14").unwrap();
        let texts = |d: &Dimension, tile| [d.text(d.tile_range(tile).lo), d.text(d.tile_range(tile).hi)];
        assert_eq!((cut.tiles(), cut.lead()), (4, 7));
        assert_eq!(
            (texts(&cut, 0), texts(&cut, 1)),
            (["-13", "-11"].map(str::to_owned), ["-10", "-1"].map(str::to_owned))
        );
        let least = tiled.grown("-128", "14").unwrap();
        assert_eq!((texts(&least, 0), least.tiles()), (["-128", "-121"].map(str::to_owned), 15));
        let edge = Dimension::new("u", Datatype::UInt8, "5", "19", Some("7")).unwrap().grown("0", "255").unwrap();
        assert_eq!((texts(&edge, 0), texts(&edge, 1)), (["0", "4"].map(str::to_owned), ["5", "11"].map(str::to_owned)));
        let refuse = |dim: &Dimension, lo, hi, word: &str| {
            let error = dim.grown(lo, hi).unwrap_err();
            assert!(error.message().contains(word), "{error}");
        };
        refuse(&tiled, "-9", "14", "only grows");
        refuse(&tiled, "-10", "13", "only grows");
        refuse(&tiled, "-10", "128", "int8");
        let whole = Dimension::new("x", Datatype::Int64, "0", "9", None).unwrap();
        assert_eq!(whole.grown("-7", "12").unwrap().tiles(), 1);
        let float = Dimension::new("x", Datatype::Float64, "0", "9", Some("2.5")).unwrap();
        assert_eq!(float.grown("0", "99").unwrap().tile_of(float.range().hi), 3);
        let lower = float.grown("-2.6", "9").unwrap();
        assert_eq!((lower.tile_of(lower.key("-2.5").unwrap()), lower.tile_of(float.range().hi)), (1, 5));
        assert_eq!((lower.tiles(), lower.text(lower.tile_edge(2))), (6, "0.0".to_owned()));
    }

    #[test]
    fn an_origin_may_lie_anywhere() {
        for origin in [0, 3, 7, u64::MAX, u64::MAX / 2] {
            let all = Dimension::new("u", Datatype::UInt64, "0", "18446744073709551615", Some("7")).unwrap();
            let d = all.with_origin(&origin.to_string()).unwrap();
            let last = d.tile_of(u64::MAX);
            assert_eq!(u128::from(last) + 1, d.tiles());
            assert_eq!((d.tile_range(0).lo, d.tile_range(last).hi), (0, u64::MAX));
            let near = d.tile_of(origin);
            assert_eq!(d.tile_range(near).lo, origin);
        }
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
