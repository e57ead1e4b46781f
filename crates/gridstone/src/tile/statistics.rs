//! Statistics in the index of the values of one attribute in one tile.
//!
//! Nulls are counted and otherwise skipped; so are NaN and NaT. -0.0 counts as +0.0. Complex numbers, vectors and lists
//! have neither bounds nor sums, and their NaNs are not counted. Bounds of strings and bytes are cut to 64 bytes. A
//! lower bound is truncated; an upper bound is truncated, and one is added to the last byte that can take it. Integer
//! sums have 128 bits. Float sums are f64, added pairwise. Runs of more than 128 values are split at the greatest power
//! of two below their length; shorter runs are added to 0.0 from left to right. A sum that is NaN (infinities of both
//! signs) has the bits 0x7ff8000000000000 on every machine.

use super::ColumnView;
use super::pairwise::Pairwise;
use crate::base::{Element, ElementKind, wide};
use crate::schema::{Datatype, Sorting, key};
use half::f16;

const BOUND_BYTES_MAX: usize = 64;

/// A lower or upper bound of a tile's values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Bound {
    /// The little-endian value, or up to 64 bytes of a string or of bytes.
    pub bytes: Vec<u8>,
    /// Whether some cell has exactly this value.
    pub exact: bool,
}

/// The sum of a tile's values.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Sum {
    /// The type has no sum.
    None,
    /// The exact sum of integers (booleans, timedeltas).
    Integer(i128),
    /// The sum of floats, without NaN.
    Float(f64),
}

/// Statistics of one attribute in one tile.
#[derive(Debug, Clone, PartialEq)]
pub struct Statistics {
    /// Null cells.
    pub null_count: u64,
    /// NaN or NaT cells.
    pub nan_count: u64,
    /// The least value; `None` if there is none, or no bound of 64 bytes exists.
    pub min: Option<Bound>,
    /// The greatest value.
    pub max: Option<Bound>,
    /// The sum.
    pub sum: Sum,
}

impl Statistics {
    /// The statistics of all cells of `view`.
    pub fn of(view: ColumnView<'_>) -> Self {
        let null_count = view.validity().map_or(0, |v| v.iter().filter(|b| **b == 0).count() as u64);
        match (view.datatype().sorting(), view.datatype().element().kind) {
            (Sorting::None, _) => Self { null_count, nan_count: 0, min: None, max: None, sum: Sum::None },
            (Sorting::Bytes, _) => Self::of_bytes(view, null_count),
            (Sorting::Keys, ElementKind::Float) => Self::of_floats(view, null_count),
            (Sorting::Keys, ElementKind::Signed | ElementKind::Unsigned) => Self::of_integers(view, null_count),
        }
    }

    fn of_integers(view: ColumnView<'_>, null_count: u64) -> Self {
        let datatype = view.datatype();
        let (mut low, mut high, mut sum, mut nat_count) = (i128::MAX, i128::MIN, 0i128, 0u64);
        if null_count == 0 && !datatype.is_time() {
            (low, high, sum) = fold_integers(view.datatype().element(), view.values());
        } else {
            for_each_integer(view, |row, value| {
                if !view.is_valid(row) {
                    return;
                }
                if datatype.is_time() && value == i128::from(i64::MIN) {
                    nat_count += 1;
                    return;
                }
                low = low.min(value);
                high = high.max(value);
                sum += value;
            });
        }
        let bound = |value: i128| {
            let width = datatype.width().unwrap_or(8);
            (low <= high).then(|| Bound { bytes: value.to_le_bytes().into_iter().take(width).collect(), exact: true })
        };
        let sum = if matches!(datatype, Datatype::Datetime(_)) { Sum::None } else { Sum::Integer(sum) };
        Self { null_count, nan_count: nat_count, min: bound(low), max: bound(high), sum }
    }

    fn of_floats(view: ColumnView<'_>, null_count: u64) -> Self {
        let (mut low, mut high, mut sum) = (f64::INFINITY, f64::NEG_INFINITY, Pairwise::new());
        let mut count = 0;
        for_each_float_run(view, |from, run| {
            let mut kept = run.len();
            if null_count > 0 || run.iter().any(|value| value.is_nan()) {
                kept = 0;
                for place in 0..run.len() {
                    if let Some(value) = run.get(place).copied().filter(|v| !v.is_nan() && view.is_valid(from + place))
                        && let Some(slot) = run.get_mut(kept)
                    {
                        *slot = value;
                        kept += 1;
                    }
                }
            }
            let values = run.get(..kept).unwrap_or_default();
            count += kept as u64;
            (low, high) = widened((low, high), values);
            sum.add(values);
        });
        let bound = |value: f64| {
            let mut bytes = Vec::with_capacity(8);
            key::decode(view.datatype(), [key::from_float(value)], &mut bytes);
            (count > 0).then_some(Bound { bytes, exact: true })
        };
        Self {
            null_count,
            nan_count: view.len() as u64 - null_count - count,
            min: bound(low),
            max: bound(high),
            sum: Sum::Float(canonical(sum.finish())),
        }
    }

    fn of_bytes(view: ColumnView<'_>, null_count: u64) -> Self {
        let valid = || (0..view.len()).filter(|r| view.is_valid(*r)).map(|r| view.value(r));
        let min = valid().min().map(|v| Bound { bytes: cut(v).to_vec(), exact: v.len() <= BOUND_BYTES_MAX });
        Self { null_count, nan_count: 0, min, max: valid().max().and_then(upper_bound), sum: Sum::None }
    }
}

fn cut(value: &[u8]) -> &[u8] {
    value.get(..BOUND_BYTES_MAX).unwrap_or(value)
}

fn upper_bound(value: &[u8]) -> Option<Bound> {
    if value.len() <= BOUND_BYTES_MAX {
        return Some(Bound { bytes: value.to_vec(), exact: true });
    }
    let mut bytes = cut(value).to_vec();
    while let Some(last) = bytes.pop() {
        if last < u8::MAX {
            bytes.push(last + 1);
            return Some(Bound { bytes, exact: false });
        }
    }
    None
}

wide! {
    /// Runs are folded in the type itself, where the compiler can use vectors; a run's sum fits 64 bits for types of up
    /// to 32.
    fn fold_integers(element: Element, values: &[u8]) -> (i128, i128, i128) { fold_integers_any }
}

#[inline(always)]
fn fold_integers_any(element: Element, values: &[u8]) -> (i128, i128, i128) {
    let (mut low, mut high, mut sum) = (i128::MAX, i128::MIN, 0i128);
    macro_rules! fold {
        ($t:ty, $sum:ty) => {
            for run in values.as_chunks::<{ size_of::<$t>() }>().0.chunks(4_096) {
                let values = || run.iter().map(|word| <$t>::from_le_bytes(*word));
                low = low.min(i128::from(values().fold(<$t>::MAX, <$t>::min)));
                high = high.max(i128::from(values().fold(<$t>::MIN, <$t>::max)));
                sum += values().map(<$sum>::from).sum::<$sum>() as i128;
            }
        };
    }
    // The halves of a 64-bit value are summed separately, in 64 bits each: vectors can do this, but not 128-bit sums.
    macro_rules! fold_longs {
        ($t:ty) => {
            for run in values.as_chunks::<8>().0.chunks(4_096) {
                let values = || run.iter().map(|word| <$t>::from_le_bytes(*word));
                low = low.min(i128::from(values().fold(<$t>::MAX, <$t>::min)));
                high = high.max(i128::from(values().fold(<$t>::MIN, <$t>::max)));
                let lower: u64 = values().map(|v| v as u64 & 0xffff_ffff).sum();
                let upper: $t = values().map(|v| v >> 32).sum();
                sum += (i128::from(upper) << 32) + i128::from(lower);
            }
        };
    }
    match element {
        Element { kind: ElementKind::Signed, width: 1 } => fold!(i8, i64),
        Element { kind: ElementKind::Signed, width: 2 } => fold!(i16, i64),
        Element { kind: ElementKind::Signed, width: 4 } => fold!(i32, i64),
        Element { kind: ElementKind::Signed, .. } => fold_longs!(i64),
        Element { width: 1, .. } => fold!(u8, u64),
        Element { width: 2, .. } => fold!(u16, u64),
        Element { width: 4, .. } => fold!(u32, u64),
        Element { .. } => fold_longs!(u64),
    }
    (low, high, sum)
}

fn for_each_integer(view: ColumnView<'_>, mut f: impl FnMut(usize, i128)) {
    macro_rules! each {
        ($t:ty) => {
            for (row, word) in view.values().as_chunks::<{ size_of::<$t>() }>().0.iter().enumerate() {
                f(row, i128::from(<$t>::from_le_bytes(*word)));
            }
        };
    }
    match view.datatype().element() {
        Element { kind: ElementKind::Signed, width: 1 } => each!(i8),
        Element { kind: ElementKind::Signed, width: 2 } => each!(i16),
        Element { kind: ElementKind::Signed, width: 4 } => each!(i32),
        Element { kind: ElementKind::Signed, .. } => each!(i64),
        Element { width: 1, .. } => each!(u8),
        Element { width: 2, .. } => each!(u16),
        Element { width: 4, .. } => each!(u32),
        Element { .. } => each!(u64),
    }
}

wide! {
    /// A range extended to include `values`, none of which is NaN or -0.0.
    fn widened(range: (f64, f64), values: &[f64]) -> (f64, f64) { widened_any }
}

#[inline(always)]
fn widened_any((low, high): (f64, f64), values: &[f64]) -> (f64, f64) {
    // Eight lanes: the compiler may not change the order in which floats are compared.
    let (mut lows, mut highs) = ([low; 8], [high; 8]);
    let (eights, rest) = values.as_chunks::<8>();
    let mut take = |values: &[f64]| {
        for ((low, high), value) in lows.iter_mut().zip(&mut highs).zip(values) {
            *low = if *value < *low { *value } else { *low };
            *high = if *value > *high { *value } else { *high };
        }
    };
    eights.iter().for_each(|values| take(values));
    take(rest);
    (lows.into_iter().fold(low, f64::min), highs.into_iter().fold(high, f64::max))
}

/// Calls `f` with the row of the first value of every run, and the values, with -0.0 made +0.0.
fn for_each_float_run(view: ColumnView<'_>, mut f: impl FnMut(usize, &mut [f64])) {
    const RUN: usize = 1_024;
    let mut run = [0.0; RUN];
    macro_rules! each {
        ($t:ty) => {
            for (number, words) in view.values().as_chunks::<{ size_of::<$t>() }>().0.chunks(RUN).enumerate() {
                // Adding +0.0 changes only -0.0.
                let values = words.iter().map(|word| f64::from(<$t>::from_le_bytes(*word)) + 0.0);
                run.iter_mut().zip(values).for_each(|(slot, value)| *slot = value);
                f(number * RUN, run.get_mut(..words.len()).unwrap_or_default());
            }
        };
    }
    match view.datatype() {
        Datatype::Float16 => each!(f16),
        Datatype::Float32 => each!(f32),
        _ => each!(f64),
    }
}

/// The sign and payload of a NaN from arithmetic depend on the processor.
fn canonical(sum: f64) -> f64 {
    if sum.is_nan() { f64::from_bits(0x7ff8_0000_0000_0000) } else { sum }
}

#[cfg(test)]
mod tests {
    use super::super::Column;
    use super::*;
    use crate::base::AlignedBuf;
    use crate::schema::TimeUnit;

    fn of(datatype: Datatype, values: &[u8], validity: Option<&[u8]>) -> Statistics {
        Statistics::of(ColumnView::new(datatype, values, None, validity).unwrap())
    }

    #[test]
    fn integers_dates_and_floats() {
        let bytes: Vec<u8> = [5i64, -7, i64::MAX, i64::MAX].iter().flat_map(|v| v.to_le_bytes()).collect();
        let s = of(Datatype::Int64, &bytes, Some(&[1, 1, 1, 0]));
        assert_eq!((s.null_count, s.sum), (1, Sum::Integer(i128::from(i64::MAX) - 2)));
        assert_eq!(s.min.unwrap().bytes, (-7i64).to_le_bytes());
        let times: Vec<u8> = [i64::MIN, 3].iter().flat_map(|v| v.to_le_bytes()).collect();
        let s = of(Datatype::Datetime(TimeUnit::Second.step()), &times, None);
        assert_eq!((s.nan_count, s.min.unwrap().bytes, s.sum), (1, 3i64.to_le_bytes().to_vec(), Sum::None));
        let floats: Vec<u8> = [f32::NAN, -0.0, 2.5].iter().flat_map(|v| v.to_le_bytes()).collect();
        let s = of(Datatype::Float32, &floats, None);
        assert_eq!((s.nan_count, s.min.unwrap().bytes, s.sum), (1, 0f32.to_le_bytes().to_vec(), Sum::Float(2.5)));
        let s = of(Datatype::Float64, &f64::NAN.to_le_bytes(), None);
        assert_eq!((s.min, s.max), (None, None));
        let Sum::Float(sum) = s.sum else { panic!("a float sum") };
        assert_eq!(sum.to_bits(), 0);
        let both: Vec<u8> = [f64::INFINITY, f64::NEG_INFINITY].iter().flat_map(|v| v.to_le_bytes()).collect();
        let Sum::Float(sum) = of(Datatype::Float64, &both, None).sum else { panic!("a float sum") };
        assert_eq!(sum.to_bits(), 0x7ff8_0000_0000_0000);
    }

    #[test]
    fn floats_in_many_runs_are_those_that_count() {
        let value = |i: usize| if i.is_multiple_of(13) { f64::NAN } else { (i as f64 - 2_000.0) * 0.1 };
        let values: Vec<f64> = (0..5_000).map(value).collect();
        let validity: Vec<u8> = (0..5_000usize).map(|i| u8::from(!i.is_multiple_of(7))).collect();
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        for validity in [None, Some(validity.as_slice())] {
            let valid = |i: &usize| validity.is_none_or(|v| v[*i] == 1);
            let kept: Vec<f64> = (0..5_000).filter(valid).map(value).filter(|v| !v.is_nan()).collect();
            let s = of(Datatype::Float64, &bytes, validity);
            assert_eq!(s.min.unwrap().bytes, kept[0].to_le_bytes());
            assert_eq!(s.max.unwrap().bytes, kept[kept.len() - 1].to_le_bytes());
            assert_eq!(s.null_count + s.nan_count, 5_000 - kept.len() as u64);
            let mut sum = Pairwise::new();
            sum.add(&kept);
            assert_eq!(s.sum, Sum::Float(sum.finish()));
        }
    }

    #[test]
    fn halves_are_floats_and_values_without_order_have_counts_alone() {
        let halves: Vec<u8> = [0x3e00u16, 0x7e00, 0x8000, 0xc000].iter().flat_map(|v| v.to_le_bytes()).collect();
        let s = Statistics::of(ColumnView::new(Datatype::Float16, &halves, None, Some(&[1, 1, 1, 1])).unwrap());
        let (min, max) = (s.min.unwrap(), s.max.unwrap());
        assert_eq!((min.bytes, max.bytes), (0xc000u16.to_le_bytes().to_vec(), 0x3e00u16.to_le_bytes().to_vec()));
        assert_eq!((s.nan_count, s.sum), (1, Sum::Float(-0.5)));
        for name in ["complex64", "uint8[8]", "float64[1]"] {
            let datatype = Datatype::parse(name).unwrap();
            let s = Statistics::of(ColumnView::new(datatype, &[0xff; 16], None, Some(&[1, 0])).unwrap());
            assert_eq!((s.null_count, s.nan_count, s.min, s.max, s.sum), (1, 0, None, None, Sum::None), "{name}");
        }
        let fixed = Datatype::FixedBytes(2);
        let s = Statistics::of(ColumnView::new(fixed, b"zzab\0c", None, Some(&[0, 1, 1])).unwrap());
        assert_eq!((s.min.unwrap().bytes, s.max.unwrap().bytes), (b"\0c".to_vec(), b"ab".to_vec()));
    }

    #[test]
    fn long_strings_have_inexact_bounds() {
        let long = [vec![b'a'; 63], vec![0xff; 10]].concat();
        let offsets = Some(vec![0, long.len() as u64]);
        let column = Column::new(Datatype::Bytes, AlignedBuf::from_slice(&long), offsets, None).unwrap();
        let s = Statistics::of(column.view());
        let max = s.max.unwrap();
        assert!(!max.exact && max.bytes > long && max.bytes.len() == 63);
        assert!(s.min.unwrap().bytes < long);
        let column =
            Column::new(Datatype::Bytes, AlignedBuf::from_slice(&[0xff; 70]), Some(vec![0, 70]), None).unwrap();
        assert_eq!(Statistics::of(column.view()).max, None);
    }
}
