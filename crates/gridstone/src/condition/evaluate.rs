//! Evaluates a bound condition on a batch: which rows are true.
//!
//! Bitmaps and their and, or, count are Arrow's. The loops over values are our own: one pass per column and set, 64
//! rows a word, no branch, so that they compile to vector instructions. (`docs/design/007-conditions.md` explains why
//! Arrow's comparisons are not used.)

use super::batch::Batch;
use super::bind::{Bound, Field, Node, Place};
use super::interval::{Cut, Intervals};
use super::selection::Selection;
use super::values::{Values, last_below};
use crate::base::{Element, ElementKind, Result, wide};
use crate::schema::{Datatype, Region, key};
use crate::tile::ColumnView;
use half::f16;

impl Bound {
    /// The rows of `batch` for which the condition is true. An Input error if the batch lacks a column that
    /// [`Bound::columns`] names, or has one of another type or length.
    pub fn evaluate(&self, batch: &Batch<'_>) -> Result<Selection> {
        evaluate(&self.root, batch)
    }
}

fn evaluate(node: &Node, batch: &Batch<'_>) -> Result<Selection> {
    let rows = batch.rows();
    match node {
        Node::Constant(value) => Ok(Selection::all_or_none(rows, *value)),
        Node::Valid(field) => valid(*field, batch),
        Node::Null(field) => Ok(valid(*field, batch)?.not()),
        Node::In(field, values) => members(*field, values, batch),
        Node::Pair(pair) => pair.evaluate(batch),
        Node::Computed(computed) => computed.evaluate(batch),
        Node::Within(region) => within(region, batch),
        Node::And(args) => folded(args, batch, true),
        Node::Or(args) => folded(args, batch, false),
    }
}

/// Stops as soon as the rest cannot change the result.
fn folded(args: &[Node], batch: &Batch<'_>, all: bool) -> Result<Selection> {
    let rows = batch.rows();
    let mut found = Selection::all_or_none(rows, all);
    for arg in args {
        let next = evaluate(arg, batch)?;
        found = if all { found.and(&next) } else { found.or(&next) };
        if found.count() == if all { 0 } else { rows } {
            break;
        }
    }
    Ok(found)
}

fn valid(field: Field, batch: &Batch<'_>) -> Result<Selection> {
    let validity = batch.column(field)?.and_then(|view| view.validity());
    Ok(validity.map_or_else(|| Selection::all_or_none(batch.rows(), true), of_validity))
}

/// The rows that are valid by their validity bytes.
pub(super) fn of_validity(validity: &[u8]) -> Selection {
    Selection::of_words(words(validity, |v| *v == 1), validity.len())
}

fn within(region: &Region, batch: &Batch<'_>) -> Result<Selection> {
    let coords = (0..region.ndim()).map(|axis| batch.axis_keys(axis)).collect::<Result<Vec<_>>>()?;
    let coords: Vec<&[u64]> = coords.iter().map(AsRef::as_ref).collect();
    Ok(Selection::of_words(words(&region.mark(&coords), |inside| *inside), batch.rows()))
}

fn members(field: Field, values: &Values, batch: &Batch<'_>) -> Result<Selection> {
    if let (Place::Text { .. }, Values::Texts(set)) = (field.place, values) {
        return Ok(Selection::of_words(in_texts(set, batch.texts(field)?.view()), batch.rows()));
    }
    let Some(view) = batch.column(field)? else {
        let keys = batch.keys(field)?;
        return Ok(Selection::of_words(in_keys(values, &keys), batch.rows()));
    };
    Ok(members_of(values, view, batch.rows()))
}

/// The rows of a column whose value is in `values`.
pub(super) fn members_of(values: &Values, view: ColumnView<'_>, rows: usize) -> Selection {
    let found = match values {
        Values::Keys(set, nan) => in_fixed(set, *nan, view),
        Values::Texts(set) => in_texts(set, view),
    };
    let found = Selection::of_words(found, rows);
    match view.validity() {
        Some(validity) => found.and(&of_validity(validity)),
        None => found,
    }
}

/// A bit per value, 64 per word. It is a plain loop: it is inlined into functions that are compiled for a processor,
/// and a `collect` is not inlined.
#[inline(always)]
pub(super) fn words<T>(values: &[T], test: impl Fn(&T) -> bool) -> Vec<u64> {
    let mut words = Vec::with_capacity(values.len().div_ceil(64));
    let (whole, rest) = values.as_chunks::<64>();
    for run in whole {
        let mut word = 0u64;
        for (i, value) in run.iter().enumerate() {
            word |= u64::from(test(value)) << i;
        }
        words.push(word);
    }
    if !rest.is_empty() {
        words.push(rest.iter().enumerate().fold(0, |word, (i, value)| word | u64::from(test(value)) << i));
    }
    words
}

/// Up to this many intervals are tested one after the other, without a branch; more are searched.
const LINEAR_MAX: usize = 8;

/// Tests `values` against inclusive ranges, ascending.
#[inline(always)]
fn in_ranges<T, N: Copy + PartialOrd>(values: &[T], read: impl Fn(&T) -> N, ranges: &[(N, N)]) -> Vec<u64> {
    match ranges {
        [] => vec![0; values.len().div_ceil(64)],
        [(lo, hi)] => words(values, |v| {
            let v = read(v);
            (*lo <= v) & (v <= *hi)
        }),
        few if few.len() <= LINEAR_MAX => words(values, |v| {
            let v = read(v);
            few.iter().fold(false, |found, (lo, hi)| found | ((*lo <= v) & (v <= *hi)))
        }),
        many => words(values, |v| {
            let v = read(v);
            let place = many.partition_point(|(_, hi)| *hi < v);
            many.get(place).is_some_and(|(lo, hi)| *lo <= v && v <= *hi)
        }),
    }
}

fn in_keys(values: &Values, keys: &[u64]) -> Vec<u64> {
    let Values::Keys(set, _) = values else { return vec![0; keys.len().div_ceil(64)] };
    let last = |to: u128| u64::try_from(to.saturating_sub(1)).unwrap_or(u64::MAX);
    let ranges: Vec<(u64, u64)> =
        set.list().iter().map(|(from, to)| (u64::try_from(*from).unwrap_or(u64::MAX), last(*to))).collect();
    in_ranges(keys, |k| *k, &ranges)
}

wide! {
    /// The rows of a fixed-width column whose value is in `set`, or is NaN (NaT) if `nan`. The values under nulls are
    /// tested too.
    fn in_fixed(set: &Intervals<u128>, nan: bool, view: ColumnView<'_>) -> Vec<u64> { in_fixed_any }
}

#[inline(always)]
fn in_fixed_any(set: &Intervals<u128>, nan: bool, view: ColumnView<'_>) -> Vec<u64> {
    let datatype = view.datatype();
    // The ends of the intervals as values of the type.
    let ends =
        set.list().iter().map(|(from, to)| (u64::try_from(*from).unwrap_or(u64::MAX), last_below(datatype, *to)));
    macro_rules! tested {
        ($t:ty, $of_key:expr) => {{
            let cells = view.values().as_chunks::<{ size_of::<$t>() }>().0;
            let ranges: Vec<($t, $t)> = ends.map(|(lo, hi)| ($of_key(lo), $of_key(hi))).collect();
            let read = |cell: &[u8; size_of::<$t>()]| <$t>::from_le_bytes(*cell);
            (in_ranges(cells, read, &ranges), cells, read)
        }};
    }
    macro_rules! whole {
        ($t:ty, $of_key:expr) => {
            tested!($t, $of_key).0
        };
    }
    macro_rules! with_nan {
        ($t:ty, $of_key:expr, $is_nan:expr) => {{
            let (found, cells, read) = tested!($t, $of_key);
            if nan { either(found, words(cells, |cell| $is_nan(read(cell)))) } else { found }
        }};
    }
    macro_rules! signed {
        ($t:ty) => {
            whole!($t, |key| key::to_signed(key) as $t)
        };
    }
    match datatype.element() {
        _ if datatype.is_time() => with_nan!(i64, key::to_signed, |v: i64| v == i64::MIN),
        Element { kind: ElementKind::Float, width: 2 } => {
            with_nan!(f16, |key| f16::from_f64(key::to_float(key)), f16::is_nan)
        }
        Element { kind: ElementKind::Float, width: 4 } => with_nan!(f32, |key| key::to_float(key) as f32, f32::is_nan),
        Element { kind: ElementKind::Float, .. } => with_nan!(f64, key::to_float, f64::is_nan),
        Element { kind: ElementKind::Signed, width: 1 } => signed!(i8),
        Element { kind: ElementKind::Signed, width: 2 } => signed!(i16),
        Element { kind: ElementKind::Signed, width: 4 } => signed!(i32),
        Element { kind: ElementKind::Signed, .. } => signed!(i64),
        Element { kind: ElementKind::Unsigned, width: 1 } => whole!(u8, |key| key as u8),
        Element { kind: ElementKind::Unsigned, width: 2 } => whole!(u16, |key| key as u16),
        Element { kind: ElementKind::Unsigned, width: 4 } => whole!(u32, |key| key as u32),
        Element { kind: ElementKind::Unsigned, .. } => whole!(u64, |key| key),
    }
}

fn either(mut a: Vec<u64>, b: Vec<u64>) -> Vec<u64> {
    a.iter_mut().zip(b).for_each(|(a, b)| *a |= b);
    a
}

/// The rows of a column of strings or bytes whose value is in `set`.
fn in_texts(set: &Intervals<Cut>, view: ColumnView<'_>) -> Vec<u64> {
    let test = |text: &[u8]| {
        let list = set.list();
        let place = list.partition_point(|(_, to)| to.is_below(text));
        list.get(place).is_some_and(|(from, _)| from.is_below(text))
    };
    // Most often a single text is searched.
    let only = match set.list() {
        [(Cut::Below(from), to)] if *to == Cut::above(from) => Some(from.as_slice()),
        _ => None,
    };
    let takes = |text: &[u8]| only.map_or_else(|| test(text), |only| only == text);
    match (view.offsets(), view.datatype().width()) {
        (None, width) => {
            let cells: Vec<&[u8]> = view.values().chunks_exact(width.unwrap_or(1)).collect();
            words(&cells, |text| takes(text))
        }
        (Some(offsets), _) => {
            let ends: Vec<(u64, u64)> = offsets.iter().copied().zip(offsets.iter().copied().skip(1)).collect();
            words(&ends, |(from, to)| takes(view.values().get(*from as usize..*to as usize).unwrap_or_default()))
        }
    }
}

/// The values of a dimension that a batch has as keys, as little-endian bytes.
pub(super) fn bytes_of_keys(datatype: Datatype, keys: &[u64]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(keys.len() * 8);
    key::decode(datatype, keys.iter().copied(), &mut bytes);
    bytes
}
