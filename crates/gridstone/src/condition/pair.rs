//! Compares two columns row by row.

use super::batch::{Batch, Texts};
use super::bind::{Field, Node, Place};
use super::evaluate::{bytes_of_keys, of_validity, words};
use super::exact::{self, Number};
use super::interval::Intervals;
use super::leaf::check_comparable;
use super::selection::Selection;
use super::simplify;
use super::time::{Moment, in_months};
use super::tree::Comparison;
use super::values::{Values, keys_of, number_of};
use crate::base::{Element, ElementKind, Error, Result};
use crate::schema::{Datatype, Sorting, key};
use crate::tile::ColumnView;
use std::cmp::Ordering;

/// The outcomes of comparing two values, as bits of a set.
const LESS: u8 = 1;
const EQUAL: u8 = 2;
const GREATER: u8 = 4;
const UNORDERED: u8 = 8;

/// Two columns, and the outcomes of comparing them that are accepted.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pair {
    pub(super) left: Field,
    pub(super) right: Field,
    pub(super) outcomes: u8,
}

/// The bit of an outcome.
pub(super) fn outcome(ordering: Option<Ordering>) -> u8 {
    match ordering {
        Some(Ordering::Less) => LESS,
        Some(Ordering::Equal) => EQUAL,
        Some(Ordering::Greater) => GREATER,
        None => UNORDERED,
    }
}

/// The outcomes that a comparison accepts.
fn accepted(is: Comparison) -> u8 {
    match is {
        Comparison::Eq => EQUAL,
        Comparison::Ne => LESS | GREATER | UNORDERED,
        Comparison::Lt => LESS,
        Comparison::Le => LESS | EQUAL,
        Comparison::Gt => GREATER,
        Comparison::Ge => GREATER | EQUAL,
    }
}

/// Types that can be compared with each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Family {
    Number,
    Bool,
    Text,
    Bytes,
    Datetime,
    Months,
    Timedelta,
}

fn family(datatype: Datatype) -> Family {
    match datatype {
        Datatype::Bool => Family::Bool,
        Datatype::String => Family::Text,
        Datatype::Bytes | Datatype::FixedBytes(_) => Family::Bytes,
        Datatype::Datetime(_) => Family::Datetime,
        Datatype::Timedelta(step) if in_months(step.unit()) => Family::Months,
        Datatype::Timedelta(_) => Family::Timedelta,
        _ => Family::Number,
    }
}

impl Pair {
    /// The node of `left is right`, or of its opposite; an Input error if the two columns cannot be compared.
    pub(super) fn node(
        is: Comparison,
        (left_name, left): (&str, Field),
        (right_name, right): (&str, Field),
        negated: bool,
    ) -> Result<Node> {
        let outcomes = outcomes_of(is, (left_name, left.datatype), (right_name, right.datatype), negated)?;
        if left == right {
            return Ok(with_itself(left, outcomes));
        }
        Ok(Node::Pair(Self { left, right, outcomes }))
    }

    /// The rows whose two values compare with an accepted outcome; rows with a null are not selected.
    pub(super) fn evaluate(&self, batch: &Batch<'_>) -> Result<Selection> {
        let (left, right) = (Side::new(self.left, batch)?, Side::new(self.right, batch)?);
        Ok(left.compare(&right, self.outcomes, batch.rows()))
    }
}

/// The outcomes that `left is right` accepts, or its opposite; an Input error if the two types cannot be compared.
pub(super) fn outcomes_of(
    is: Comparison,
    (left_name, left): (&str, Datatype),
    (right_name, right): (&str, Datatype),
    negated: bool,
) -> Result<u8> {
    check_comparable(left_name, left)?;
    check_comparable(right_name, right)?;
    if family(left) != family(right) {
        return Err(Error::input(format!(
            "{left_name:?} is {left} and {right_name:?} is {right}: these cannot be compared with each other"
        )));
    }
    let all = LESS | EQUAL | GREATER | UNORDERED;
    Ok(if negated { accepted(is) ^ all } else { accepted(is) })
}

/// The rows of two columns that compare with an accepted outcome; rows with a null are not selected.
pub(super) fn compare_views(left: ColumnView<'_>, right: ColumnView<'_>, outcomes: u8, rows: usize) -> Selection {
    Side::of_view(left).compare(&Side::of_view(right), outcomes, rows)
}

/// A value equals itself unless it is NaN.
fn with_itself(field: Field, outcomes: u8) -> Node {
    let (equal, nan) = (outcomes & EQUAL != 0, outcomes & UNORDERED != 0);
    let all = Values::none(field.datatype).complement(field.datatype);
    let values = match all {
        Values::Keys(..) => {
            let (first, end) = keys_of(field.datatype);
            Values::Keys(if equal { Intervals::one(first, end) } else { Intervals::empty() }, nan)
        }
        Values::Texts(_) if equal => all,
        Values::Texts(_) => Values::none(field.datatype),
    };
    simplify::leaf(field, values)
}

/// The values of one side, widened to the type of its family.
enum Wide<'a> {
    Signed(Vec<i64>),
    Unsigned(Vec<u64>),
    Float(Vec<f64>),
    /// Ticks of a datetime or timedelta.
    Ticks(Vec<i64>, Datatype),
    Texts(Texts<'a>),
}

struct Side<'a> {
    wide: Wide<'a>,
    valid: Option<Selection>,
}

impl<'a> Side<'a> {
    fn new(field: Field, batch: &Batch<'a>) -> Result<Self> {
        if matches!(field.place, Place::Text { .. }) {
            return Ok(Self { wide: Wide::Texts(batch.texts(field)?), valid: None });
        }
        let Some(view) = batch.column(field)? else {
            let bytes = bytes_of_keys(field.datatype, &batch.keys(field)?);
            return Ok(Self { wide: widened(field.datatype, &bytes), valid: None });
        };
        Ok(Self::of_view(view))
    }

    fn of_view(view: ColumnView<'a>) -> Self {
        let wide = match view.datatype().sorting() {
            Sorting::Bytes => Wide::Texts(Texts::Given(view)),
            Sorting::Keys | Sorting::None => widened(view.datatype(), view.values()),
        };
        Self { wide, valid: view.validity().map(of_validity) }
    }

    fn compare(&self, other: &Self, outcomes: u8, rows: usize) -> Selection {
        let found = Selection::of_words(self.wide.compare(&other.wide, outcomes), rows);
        [&self.valid, &other.valid].into_iter().flatten().fold(found, |found, valid| found.and(valid))
    }
}

/// Fixed-width values, widened.
fn widened<'a>(datatype: Datatype, bytes: &[u8]) -> Wide<'a> {
    macro_rules! each {
        ($t:ty, $wide:ty) => {
            bytes.as_chunks::<{ size_of::<$t>() }>().0.iter().map(|b| <$wide>::from(<$t>::from_le_bytes(*b))).collect()
        };
    }
    match datatype.element() {
        _ if datatype.is_time() => Wide::Ticks(each!(i64, i64), datatype),
        Element { kind: ElementKind::Float, width: 2 } => Wide::Float(each!(half::f16, f64)),
        Element { kind: ElementKind::Float, width: 4 } => Wide::Float(each!(f32, f64)),
        Element { kind: ElementKind::Float, .. } => Wide::Float(each!(f64, f64)),
        Element { kind: ElementKind::Signed, width: 1 } => Wide::Signed(each!(i8, i64)),
        Element { kind: ElementKind::Signed, width: 2 } => Wide::Signed(each!(i16, i64)),
        Element { kind: ElementKind::Signed, width: 4 } => Wide::Signed(each!(i32, i64)),
        Element { kind: ElementKind::Signed, .. } => Wide::Signed(each!(i64, i64)),
        Element { kind: ElementKind::Unsigned, width: 1 } => Wide::Unsigned(each!(u8, u64)),
        Element { kind: ElementKind::Unsigned, width: 2 } => Wide::Unsigned(each!(u16, u64)),
        Element { kind: ElementKind::Unsigned, width: 4 } => Wide::Unsigned(each!(u32, u64)),
        Element { kind: ElementKind::Unsigned, .. } => Wide::Unsigned(each!(u64, u64)),
    }
}

/// The instant of a tick, or its duration; `None` for NaT.
fn moment(datatype: Datatype, ticks: i64) -> Option<Moment> {
    match datatype {
        _ if ticks == i64::MIN => None,
        Datatype::Timedelta(unit) => Some(Moment::of_timedelta(ticks, unit)),
        Datatype::Datetime(unit) => Some(Moment::of_datetime(ticks, unit)),
        _ => None,
    }
}

/// The order of two values by their ordered keys; the keys belong to values, not to NaN.
pub(super) fn compare_keys((left, a): (Datatype, u64), (right, b): (Datatype, u64)) -> Option<Ordering> {
    if left.is_time() {
        return Some(moment(left, key::to_signed(a))?.cmp(&moment(right, key::to_signed(b))?));
    }
    exact::compare(number_of(left, a), number_of(right, b))
}

fn rows<A: Copy, B: Copy>(a: &[A], b: &[B], outcomes: u8, compare: impl Fn(A, B) -> Option<Ordering>) -> Vec<u64> {
    let pairs: Vec<(A, B)> = a.iter().copied().zip(b.iter().copied()).collect();
    words(&pairs, |(a, b)| outcome(compare(*a, *b)) & outcomes != 0)
}

impl Wide<'_> {
    /// A bit per row: whether its outcome is among `outcomes`.
    fn compare(&self, other: &Self, outcomes: u8) -> Vec<u64> {
        let float = |v: f64| Number::Float(v);
        match (self, other) {
            (Self::Signed(a), Self::Signed(b)) => rows(a, b, outcomes, |a, b| Some(a.cmp(&b))),
            (Self::Unsigned(a), Self::Unsigned(b)) => rows(a, b, outcomes, |a, b| Some(a.cmp(&b))),
            (Self::Float(a), Self::Float(b)) => rows(a, b, outcomes, |a, b| a.partial_cmp(&b)),
            (Self::Signed(a), Self::Unsigned(b)) => {
                rows(a, b, outcomes, |a, b| Some(i128::from(a).cmp(&i128::from(b))))
            }
            (Self::Unsigned(a), Self::Signed(b)) => {
                rows(a, b, outcomes, |a, b| Some(i128::from(a).cmp(&i128::from(b))))
            }
            (Self::Signed(a), Self::Float(b)) => {
                rows(a, b, outcomes, |a, b| exact::compare(Number::Int(a.into()), float(b)))
            }
            (Self::Unsigned(a), Self::Float(b)) => {
                rows(a, b, outcomes, |a, b| exact::compare(Number::Int(a.into()), float(b)))
            }
            (Self::Float(a), Self::Signed(b)) => {
                rows(a, b, outcomes, |a, b| exact::compare(float(a), Number::Int(b.into())))
            }
            (Self::Float(a), Self::Unsigned(b)) => {
                rows(a, b, outcomes, |a, b| exact::compare(float(a), Number::Int(b.into())))
            }
            (Self::Ticks(a, x), Self::Ticks(b, y)) if x == y => {
                rows(a, b, outcomes, |a, b| if a == i64::MIN || b == i64::MIN { None } else { Some(a.cmp(&b)) })
            }
            (Self::Ticks(a, x), Self::Ticks(b, y)) => {
                rows(a, b, outcomes, |a, b| Some(moment(*x, a)?.cmp(&moment(*y, b)?)))
            }
            (Self::Texts(a), Self::Texts(b)) => {
                let (a, b) = (a.view(), b.view());
                let all: Vec<usize> = (0..a.len()).collect();
                words(&all, |row| outcome(Some(a.value(*row).cmp(b.value(*row)))) & outcomes != 0)
            }
            // Sides of different families were refused when the pair was made.
            _ => Vec::new(),
        }
    }
}
