//! Boxes as callers give them: typed ends, or texts. An interval of texts is several boxes along the axes of its dimension.

use crate::base::{Error, ErrorKind, Result, limits};
use crate::schema::text::{interval_boxes, word_interval};
use crate::schema::{Coordinate, Dimension, KeyRange, Region, Schema, Subarray, key, notation};
use std::fmt;
use std::ops::{Bound, RangeFull, RangeInclusive};

/// A box as text: low and high of every dimension, inclusive; `None`: the whole domain.
pub type ReadBox<'a> = Option<&'a [(String, String)]>;

/// What is made of ends beyond all that a type holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Beyond {
    /// An error.
    Refused,
    /// What lies before them is meant.
    Cut,
}

/// Which end of a box.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Side {
    Low,
    High,
}

/// A coordinate at an end of a box, as callers give it.
#[derive(Debug, Clone, PartialEq)]
pub enum End {
    /// An integer; of times the ticks.
    Int(i128),
    /// A float.
    Float(f64),
    /// A text; along a dimension of numbers the text of one, of times the ticks.
    Text(String),
    /// A text in the notation of people: along a dimension of times `2026-03`, which is a period, or `20454 D`; else as [`End::Text`].
    Notation(String),
}

/// Where an end lies among the coordinates of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// At this key.
    At(u64),
    /// Below all that the type holds.
    Below,
    /// Above all that the type holds.
    Above,
}

impl Place {
    fn of_int(dim: &Dimension, value: i128) -> Self {
        let beyond = if value < 0 { Self::Below } else { Self::Above };
        dim.int_key(value).map_or(beyond, Self::At)
    }
}

impl End {
    /// Its place along a dimension of numbers. A date is a period: its first tick is a low end, its last a high one.
    fn place(&self, dim: &Dimension, side: Side) -> Result<Place> {
        match self {
            Self::Int(value) => Ok(Place::of_int(dim, *value)),
            Self::Float(value) => dim.float_key(*value).map(Place::At),
            Self::Text(text) => text_place(dim, text),
            Self::Notation(text) => match (notation::ticks(dim.datatype(), text)?, side) {
                (Some(ticks), Side::Low) => Ok(ticks.low().map_or(Place::Above, |low| Place::of_int(dim, low.into()))),
                (Some(ticks), Side::High) => {
                    Ok(ticks.high().map_or(Place::Below, |high| Place::of_int(dim, high.into())))
                }
                (None, _) => text_place(dim, text),
            },
        }
    }
}

/// The place of a number as text.
fn text_place(dim: &Dimension, text: &str) -> Result<Place> {
    let outcome = dim.key(text).map(Place::At);
    match text.parse() {
        // A whole number that an integer or a time does not hold.
        Ok(value) if outcome.is_err() => Ok(Place::of_int(dim, value)),
        _ => outcome,
    }
}

impl fmt::Display for End {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Text(text) | Self::Notation(text) => f.write_str(text),
        }
    }
}

impl From<String> for End {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

/// A box's part along one dimension. A range of Rust is one, both ends included, and `..` is the whole domain.
///
/// ```
/// use gridstone::engine::Span;
///
/// let cells: Vec<Span> = vec![(100..=199).into(), (..).into()];
/// let harbour: Vec<Span> = vec![(-75.0..=-73.0).into(), (40.0..=41.0).into()];
/// let genes: Vec<Span> = vec![("BRCA1"..="BRCA2").into()];
/// assert_eq!(genes, [Span::between("BRCA1", "BRCA2")]);
/// assert_eq!(cells[1], Span::default());
/// ```
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Span {
    /// The low end, included; `None`: that of the domain.
    pub lo: Option<End>,
    /// The high end; `None`: that of the domain.
    pub hi: Option<End>,
    /// Whether the high end is left out; text dimensions only.
    pub below: bool,
}

impl Span {
    /// All from `lo` to `hi`, both included and written as text.
    pub fn between(lo: &str, hi: &str) -> Self {
        Self { lo: Some(End::Text(lo.to_owned())), hi: Some(End::Text(hi.to_owned())), below: false }
    }
}

impl From<RangeInclusive<i64>> for Span {
    fn from(range: RangeInclusive<i64>) -> Self {
        let end = |value: i64| Some(End::Int(value.into()));
        Self { lo: end(*range.start()), hi: end(*range.end()), below: false }
    }
}

impl From<RangeInclusive<f64>> for Span {
    fn from(range: RangeInclusive<f64>) -> Self {
        Self { lo: Some(End::Float(*range.start())), hi: Some(End::Float(*range.end())), below: false }
    }
}

impl From<RangeInclusive<&str>> for Span {
    fn from(range: RangeInclusive<&str>) -> Self {
        Self::between(range.start(), range.end())
    }
}

impl From<RangeFull> for Span {
    fn from(_: RangeFull) -> Self {
        Self::default()
    }
}

/// The cells in any of `boxes`, each a span per dimension; they may overlap.
///
/// # Errors
/// Bounds: a box outside the domain, or empty; Input: more boxes than are looked at together.
pub fn region_of(schema: &Schema, boxes: &[Vec<Span>]) -> Result<Region> {
    resolved(schema, boxes, Beyond::Refused)
}

/// The cells in any of `boxes` that lie in the domain: ends may lie beyond it, and beyond what the types hold. Without a box if there is
/// none.
///
/// # Errors
/// Bounds: a box whose low end is above its high end; Input: more boxes than are looked at together.
pub fn region_within(schema: &Schema, boxes: &[Vec<Span>]) -> Result<Region> {
    let (region, domain) = (resolved(schema, boxes, Beyond::Cut)?, schema.domain());
    let inside = region.boxes().iter().filter_map(|part| part.intersect(&domain)).collect();
    Ok(Region::new(inside).asked_as(region.given().to_vec()))
}

fn resolved(schema: &Schema, boxes: &[Vec<Span>], beyond: Beyond) -> Result<Region> {
    let mut parts = Vec::with_capacity(boxes.len());
    let mut given = Vec::new();
    for spans in boxes {
        parts.extend(parts_of(schema, spans, (Dimension::range, beyond))?);
        given.extend(parts_of(schema, spans, (|_| KeyRange::new(0, u64::MAX), beyond))?);
        if parts.len() > limits::BOXES_MAX {
            return Err(Error::input(format!(
                "{} boxes, and the parts that intervals of texts take, are more than the {} that are looked at together; give \
                 fewer, or one that holds them and a condition",
                boxes.len(),
                limits::BOXES_MAX
            )));
        }
    }
    let has_open_ends = given != parts;
    let region = Region::new(parts);
    Ok(if has_open_ends { region.asked_as(given) } else { region })
}

/// The region of the whole domain; without a box if that is empty.
pub(super) fn whole_of(schema: &Schema) -> Region {
    if schema.is_without_cells() { Region::new(Vec::new()) } else { Region::whole(schema.domain()) }
}

/// The region of a box; `None`: the whole domain.
pub(super) fn parse_box(schema: &Schema, sub: ReadBox<'_>) -> Result<Option<Region>> {
    let Some(sub) = sub else { return Ok(None) };
    let spans: Vec<Span> = sub.iter().map(|(lo, hi)| Span::between(lo, hi)).collect();
    region_of(schema, &[spans]).map(Some)
}

/// The box that a region is, or the whole domain; that around all where it has intervals of texts. An Input error for several
/// boxes of a dense array: the cells between them were not asked for.
pub(super) fn hull_of(schema: &Schema, region: Option<&Region>) -> Result<Subarray> {
    let Some(region) = region else { return Ok(schema.domain()) };
    if !schema.sparse() && region.hull().is_some() && region.only().is_none() {
        return Err(Error::input("several boxes were given where a dense array takes one; give them one by one"));
    }
    match region.hull() {
        None if schema.is_without_cells() => Ok(empty_hull(schema, region)),
        None => Err(Error::bounds("the box is empty: no coordinate of the array lies between its ends")),
        Some(hull) => Ok(hull.clone()),
    }
}

/// The box of a region of an array without cells: along a dimension without coordinates none, along the others what was asked for.
fn empty_hull(schema: &Schema, region: &Region) -> Subarray {
    let domain = schema.domain();
    let Some(given) = given_hull(schema, Some(region)) else { return domain };
    let part = |(own, asked): (&KeyRange, &KeyRange)| match own.is_empty() {
        true => KeyRange::EMPTY,
        false => own.intersect(*asked).unwrap_or(KeyRange::EMPTY),
    };
    Subarray::new(domain.ranges().iter().zip(given.ranges()).map(part).collect())
}

/// What [`hull_of`] gives, as it was asked for: without the ends that were left open.
pub(super) fn given_hull(schema: &Schema, region: Option<&Region>) -> Option<Subarray> {
    let Some(region) = region else { return Some(schema.domain().without_ends()) };
    region.given().iter().cloned().reduce(|a, b| a.union(&b))
}

/// The boxes along the axes that a box is, whose open ends are those of `whole`; none if it holds no text.
fn parts_of(
    schema: &Schema,
    spans: &[Span],
    (whole, beyond): (fn(&Dimension) -> KeyRange, Beyond),
) -> Result<Vec<Subarray>> {
    let count = schema.coordinates().count();
    if spans.len() != count {
        return Err(Error::bounds(format!("a box of {} dimensions was given, the array has {count}", spans.len())));
    }
    // The axis of an array of no dimension is not shown.
    let hidden = if schema.is_scalar() { schema.domain().ranges().to_vec() } else { Vec::new() };
    let mut parts: Vec<Vec<KeyRange>> = vec![hidden];
    for (dim, span) in schema.coordinates().zip(spans) {
        let along = match dim.number() {
            Some(axis) => number_range(axis, span, whole(axis), beyond)?.map(|range| vec![range]).into_iter().collect(),
            None => text_ranges(dim, span)?,
        };
        let longer =
            |part: &Vec<KeyRange>| along.iter().map(|more| [part.as_slice(), more].concat()).collect::<Vec<_>>();
        if parts.len().saturating_mul(along.len()) > limits::BOXES_MAX {
            return Err(Error::input(format!(
                "the intervals of texts of one box take more than {} boxes together; give an interval of one of them and a \
                 condition on the others",
                limits::BOXES_MAX
            )));
        }
        parts = parts.iter().flat_map(longer).collect();
    }
    Ok(parts.into_iter().map(Subarray::new).collect())
}

/// The keys of a span; `None` if it reaches to an end of an empty domain, or lies beyond the type and beyond may be looked at.
fn number_range(dim: &Dimension, span: &Span, whole: KeyRange, beyond: Beyond) -> Result<Option<KeyRange>> {
    if span.below {
        return Err(Error::bounds(format!(
            "dimension {:?}: only the high end of texts can be left out; give the last number instead",
            dim.name()
        )));
    }
    let (low, high) = (
        end_key(dim, &span.lo, (whole.lo, Side::Low), beyond)?,
        end_key(dim, &span.hi, (whole.hi, Side::High), beyond)?,
    );
    let (Some(from), Some(to)) = (low, high) else { return Ok(None) };
    if whole.is_empty() && (span.lo.is_none() || span.hi.is_none()) {
        return Ok(None);
    }
    if from > to && beyond == Beyond::Cut && (span.lo.is_none() || span.hi.is_none()) {
        return Ok(None);
    }
    if from > to {
        return Err(reversed(dim, span, from, to));
    }
    Ok(Some(KeyRange::new(from, to)))
}

/// The key of an end, or of the domain's if it is open; `None` if nothing of the type lies on its side.
fn end_key(dim: &Dimension, end: &Option<End>, (open, side): (u64, Side), beyond: Beyond) -> Result<Option<u64>> {
    let Some(end) = end else { return Ok(Some(open)) };
    let place = end.place(dim, side).map_err(|e| match (e.kind(), end) {
        (ErrorKind::Input, _) => e.context(format!("dimension {:?}", dim.name())),
        (_, End::Text(_) | End::Notation(_)) => {
            Error::bounds(format!("{end} is no coordinate of dimension {:?}, which is {}", dim.name(), dim.datatype()))
                .with_source(e)
        }
        _ => outside(dim, end).with_source(e),
    })?;
    let held = key::range_of(dim.datatype());
    match (place, side, beyond) {
        (Place::At(key), ..) => Ok(Some(key)),
        (_, _, Beyond::Refused) => Err(outside(dim, end)),
        (Place::Below, Side::Low, _) => Ok(Some(held.lo)),
        (Place::Above, Side::High, _) => Ok(Some(held.hi)),
        _ => Ok(None),
    }
}

fn outside(dim: &Dimension, end: &End) -> Error {
    Error::bounds(format!("{end} is outside dimension {:?}, whose domain is {}", dim.name(), dim.shown_domain()))
}

/// The error for a low end above the high one, which of two dates may also be two moments within one step.
fn reversed(dim: &Dimension, span: &Span, from: u64, to: u64) -> Error {
    let (Some(lo @ End::Notation(low)), Some(hi @ End::Notation(high))) = (&span.lo, &span.hi) else {
        return empty_range(dim.name(), &dim.shown(from), &dim.shown(to));
    };
    let begins = |text: &str| notation::ticks(dim.datatype(), text).ok().flatten().map(|ticks| ticks.first);
    if begins(low) > begins(high) || begins(low).is_none() {
        return empty_range(dim.name(), &lo.to_string(), &hi.to_string());
    }
    Error::bounds(format!(
        "dimension {:?}: no coordinate lies from {lo} to {hi}, as its steps are longer; give a longer time",
        dim.name()
    ))
}

fn empty_range(name: &str, lo: &str, hi: &str) -> Error {
    Error::bounds(format!("dimension {name:?}: the low end {lo} is above the high end {hi}; give the lower one first"))
}

/// The boxes, each a range per word, that an interval of texts is.
fn text_ranges(dim: Coordinate<'_>, span: &Span) -> Result<Vec<Vec<KeyRange>>> {
    let (lo, hi) = (text_end(dim, &span.lo)?, text_end(dim, &span.hi)?);
    if let (Some(lo), Some(hi), false) = (lo, hi, span.below)
        && lo > hi
    {
        return Err(empty_range(dim.name(), &format!("{lo:?}"), &format!("{hi:?}")));
    }
    let low = lo.map_or(Bound::Unbounded, |text| Bound::Included(text.as_bytes()));
    let high = match hi {
        None => Bound::Unbounded,
        Some(text) if span.below => Bound::Excluded(text.as_bytes()),
        Some(text) => Bound::Included(text.as_bytes()),
    };
    let interval = word_interval(low, high, dim.axes().len());
    Ok(interval.map_or_else(Vec::new, |(low, high)| interval_boxes(&low, &high)))
}

/// The end of a span along a dimension of texts.
fn text_end<'e>(dim: Coordinate<'_>, end: &'e Option<End>) -> Result<Option<&'e str>> {
    match end {
        None => Ok(None),
        Some(End::Text(text) | End::Notation(text)) if text.contains('\0') => Err(Error::bounds(format!(
            "dimension {:?}: {text:?} holds a NUL character, which no coordinate does; give a text without it",
            dim.name()
        ))),
        Some(End::Text(text) | End::Notation(text)) => Ok(Some(text)),
        Some(number) => Err(Error::bounds(format!(
            "dimension {:?} is of texts: {number} is no coordinate of it; give a text",
            dim.name()
        ))),
    }
}
