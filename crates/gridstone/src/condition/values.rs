//! Sets of values of one datatype: the values that a leaf of a bound condition accepts.

use super::exact::{self, Number};
use super::interval::{Cut, Intervals};
use super::time::Moment;
use super::tree::Comparison;
use crate::base::{Element, ElementKind};
use crate::schema::{Datatype, Sorting, key};
use half::f16;
use std::cmp::Ordering;

/// The key that -0.0 would have: no value has it, since -0.0 takes that of +0.0.
const UNUSED: u64 = (1 << 63) - 1;

/// A set of values.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Values {
    /// For a type that sorts by key: ordered keys, and whether NaN (NaT) is in the set.
    Keys(Intervals<u128>, bool),
    /// For strings and bytes.
    Texts(Intervals<Cut>),
}

/// A literal as a value to compare with those of a column.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Against {
    Number(Number),
    /// For a datetime, or a timedelta in the kind, months or days, of the column.
    Moment(Moment),
    Text(Vec<u8>),
    /// NaN or NaT.
    Unordered,
}

/// The first key of the values of a type that sorts by key, and one past the last; NaN and NaT lie outside.
pub(super) fn keys_of(datatype: Datatype) -> (u128, u128) {
    let Element { kind, width } = datatype.element();
    let bits = u32::from(width) * 8;
    match (datatype, kind) {
        (Datatype::Bool, _) => (0, 2),
        (d, _) if d.is_time() => (1, 1 << 64),
        (_, ElementKind::Unsigned) => (0, 1u128 << bits),
        (_, ElementKind::Signed) => {
            let half = 1i64.checked_shl(bits - 1).unwrap_or(i64::MIN);
            (key::from_signed(half.wrapping_neg()).into(), u128::from(key::from_signed(half.wrapping_sub(1))) + 1)
        }
        (_, ElementKind::Float) => {
            (key::from_float(f64::NEG_INFINITY).into(), u128::from(key::from_float(f64::INFINITY)) + 1)
        }
    }
}

/// The greatest key of a value below `end`; there must be such a value.
pub(super) fn last_below(datatype: Datatype, end: u128) -> u64 {
    let last = u64::try_from(end.saturating_sub(1)).unwrap_or(u64::MAX);
    if !datatype.is_float() {
        return last;
    }
    let value = key::to_float(if last == UNUSED { UNUSED - 1 } else { last });
    key::from_float(match datatype {
        Datatype::Float64 => value,
        Datatype::Float16 => f64::from(half_up_to(value)),
        _ => {
            let single = value as f32;
            f64::from(if f64::from(single) > value { single.next_down() } else { single })
        }
    })
}

/// The greatest float16 that is not above `value`, which is not NaN.
fn half_up_to(value: f64) -> f16 {
    let near = f16::from_f64(value);
    let bits = near.to_bits();
    match bits {
        _ if f64::from(near) <= value => near,
        // For negative numbers the greater magnitude is the smaller number.
        0 | 0x8000 => f16::from_bits(0x8001),
        _ => f16::from_bits(if bits & 0x8000 == 0 { bits - 1 } else { bits + 1 }),
    }
}

/// The least cut above the same values as `cut` that is a value's key (or the end).
fn settle(datatype: Datatype, cut: u128) -> u128 {
    let (_, end) = keys_of(datatype);
    let Ok(raw) = u64::try_from(cut) else { return end };
    if !datatype.is_float() || cut >= end {
        return cut.min(end);
    }
    let value = key::to_float(raw);
    let least = match datatype {
        Datatype::Float64 => value,
        Datatype::Float16 => -f64::from(half_up_to(-value)),
        _ => {
            let single = value as f32;
            f64::from(if f64::from(single) < value { single.next_up() } else { single })
        }
    };
    key::from_float(least).into()
}

/// A value by its key, as a number.
pub(super) fn number_of(datatype: Datatype, key: u64) -> Number {
    match datatype.element().kind {
        ElementKind::Unsigned => Number::Int(i128::from(key)),
        ElementKind::Signed => Number::Int(i128::from(key::to_signed(key))),
        ElementKind::Float => Number::Float(key::to_float(key)),
    }
}

/// The order of the value of `key` and `against`.
fn order(datatype: Datatype, key: u64, against: &Against) -> Option<Ordering> {
    match (datatype, against) {
        (Datatype::Datetime(unit), Against::Moment(m)) => Some(Moment::of_datetime(key::to_signed(key), unit).cmp(m)),
        (Datatype::Timedelta(unit), Against::Moment(m)) => Some(Moment::of_timedelta(key::to_signed(key), unit).cmp(m)),
        (_, Against::Number(number)) => exact::compare(number_of(datatype, key), *number),
        _ => None,
    }
}

/// The cut below the values equal to `against`, and the cut above them. A binary search over 64 bits of keys finds
/// them, so that no type needs an inverse of its own, nor can round.
fn around(datatype: Datatype, against: &Against) -> (u128, u128) {
    let (first, end) = keys_of(datatype);
    let cut = |is_before: &dyn Fn(Option<Ordering>) -> bool| {
        let (mut low, mut high) = (first, end);
        while low < high {
            let middle = low + (high - low) / 2;
            let raw = u64::try_from(middle).unwrap_or(u64::MAX);
            if is_before(order(datatype, raw, against)) { low = middle + 1 } else { high = middle }
        }
        settle(datatype, low)
    };
    (cut(&|o| o == Some(Ordering::Less)), cut(&|o| o != Some(Ordering::Greater)))
}

/// The part of `[first, end)` that compares with the values in `[below, above)` as `is`.
fn side<C: Ord + Clone>(is: Comparison, first: C, (below, above): (C, C), end: C) -> Intervals<C> {
    match is {
        Comparison::Eq => Intervals::one(below, above),
        Comparison::Ne => Intervals::of(vec![(first, below), (above, end)]),
        Comparison::Lt => Intervals::one(first, below),
        Comparison::Le => Intervals::one(first, above),
        Comparison::Gt => Intervals::one(above, end),
        Comparison::Ge => Intervals::one(below, end),
    }
}

impl Values {
    /// The empty set of this type.
    pub(super) fn none(datatype: Datatype) -> Self {
        match datatype.sorting() {
            Sorting::Bytes => Self::Texts(Intervals::empty()),
            Sorting::Keys | Sorting::None => Self::Keys(Intervals::empty(), false),
        }
    }

    /// The values of a type that compare with `against` as `is`.
    pub(super) fn compared(datatype: Datatype, is: Comparison, against: &Against) -> Self {
        match against {
            Against::Unordered if is == Comparison::Ne => Self::none(datatype).complement(datatype),
            Against::Unordered => Self::none(datatype),
            Against::Text(text) => {
                let around = (Cut::Below(text.clone()), Cut::above(text));
                Self::Texts(side(is, Cut::Below(Vec::new()), around, Cut::End))
            }
            _ => {
                let (first, end) = keys_of(datatype);
                let set = side(is, first, around(datatype, against), end);
                Self::Keys(set, is == Comparison::Ne)
            }
        }
    }

    /// The values of a type that equal one of `all`.
    pub(super) fn members(datatype: Datatype, all: &[Against]) -> Self {
        if datatype.sorting() == Sorting::Bytes {
            let texts = all.iter().filter_map(|a| match a {
                Against::Text(text) => Some((Cut::Below(text.clone()), Cut::above(text))),
                _ => None,
            });
            return Self::Texts(Intervals::of(texts.collect()));
        }
        let keys = all.iter().filter(|a| **a != Against::Unordered).map(|a| around(datatype, a));
        Self::Keys(Intervals::of(keys.collect()), false)
    }

    /// All other values of the type, NaN included or not.
    pub(super) fn complement(&self, datatype: Datatype) -> Self {
        match self {
            Self::Keys(set, nan) => {
                let (first, end) = keys_of(datatype);
                Self::Keys(set.complement(&first, &end), !nan)
            }
            Self::Texts(set) => Self::Texts(set.complement(&Cut::Below(Vec::new()), &Cut::End)),
        }
    }

    /// The values in both, which are of one type.
    pub(super) fn intersect(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Keys(a, x), Self::Keys(b, y)) => Self::Keys(a.intersect(b), *x && *y),
            (Self::Texts(a), Self::Texts(b)) => Self::Texts(a.intersect(b)),
            _ => self.clone(),
        }
    }

    /// The values in either; both are of one type.
    pub(super) fn union(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Keys(a, x), Self::Keys(b, y)) => Self::Keys(a.union(b), *x || *y),
            (Self::Texts(a), Self::Texts(b)) => Self::Texts(a.union(b)),
            _ => self.clone(),
        }
    }

    /// How many intervals it has.
    pub(super) fn len(&self) -> usize {
        match self {
            Self::Keys(set, _) => set.list().len(),
            Self::Texts(set) => set.list().len(),
        }
    }

    /// Whether it is empty; `nan`: whether the column may have NaN or NaT.
    pub(super) fn is_empty(&self, nan: bool) -> bool {
        match self {
            Self::Keys(set, has_nan) => set.is_empty() && !(*has_nan && nan),
            Self::Texts(set) => set.is_empty(),
        }
    }

    /// Whether every value of the type is in it.
    pub(super) fn is_full(&self, datatype: Datatype, nan: bool) -> bool {
        self.complement(datatype).is_empty(nan)
    }
}
