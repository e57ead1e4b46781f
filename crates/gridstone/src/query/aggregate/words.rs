//! Values as words: unsigned numbers in the order of the values, NaN and NaT among them.
//!
//! Integers and floats have the words that are their ordered keys ([`crate::schema::key`]). NaN takes a word that no float
//! has, at either end. NaT has the least key; where it is to stand last, each word is one less, and that of NaT wraps.

use crate::base::{AlignedBuf, Element, ElementKind, Result};
use crate::schema::{Datatype, key};
use crate::tile::{Column, ColumnView};
use half::f16;

/// Where NaN and NaT stand among the values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NanPlace {
    /// Below all values.
    First,
    /// Above all values.
    Last,
}

impl NanPlace {
    /// The word of NaN and NaT.
    pub(super) fn word(self) -> u64 {
        match self {
            Self::First => 0,
            Self::Last => u64::MAX,
        }
    }

    /// Whether `word` is that of NaN or NaT.
    pub(super) fn is_nan(self, datatype: Datatype, word: u64) -> bool {
        (datatype.is_float() || datatype.is_time()) && word == self.word()
    }
}

/// Appends the words of a column of single numbers, booleans or times; of nulls any word.
pub(super) fn words_into(view: ColumnView<'_>, nan: NanPlace, out: &mut Vec<u64>) {
    let (datatype, values) = (view.datatype(), view.values());
    macro_rules! each {
        ($width:literal, $word:expr) => {
            out.extend(values.as_chunks::<$width>().0.iter().copied().map($word))
        };
    }
    let float = |value: f64| if value.is_nan() { nan.word() } else { key::from_float(value) };
    let Element { kind, width } = datatype.element();
    match (kind, width) {
        (ElementKind::Unsigned, 1) => each!(1, |w| u64::from(u8::from_le_bytes(w))),
        (ElementKind::Unsigned, 2) => each!(2, |w| u64::from(u16::from_le_bytes(w))),
        (ElementKind::Unsigned, 4) => each!(4, |w| u64::from(u32::from_le_bytes(w))),
        (ElementKind::Unsigned, _) => each!(8, u64::from_le_bytes),
        (ElementKind::Signed, 1) => each!(1, |w| key::from_signed(i64::from(i8::from_le_bytes(w)))),
        (ElementKind::Signed, 2) => each!(2, |w| key::from_signed(i64::from(i16::from_le_bytes(w)))),
        (ElementKind::Signed, 4) => each!(4, |w| key::from_signed(i64::from(i32::from_le_bytes(w)))),
        (ElementKind::Signed, _) if datatype.is_time() && nan == NanPlace::Last => {
            each!(8, |w| key::from_signed(i64::from_le_bytes(w)).wrapping_sub(1))
        }
        (ElementKind::Signed, _) => each!(8, |w| key::from_signed(i64::from_le_bytes(w))),
        (ElementKind::Float, 2) => each!(2, |w| float(f64::from(f16::from_le_bytes(w)))),
        (ElementKind::Float, 4) => each!(4, |w| float(f64::from(f32::from_le_bytes(w)))),
        (ElementKind::Float, _) => each!(8, |w| float(f64::from_le_bytes(w))),
    }
}

/// The column of these words; `None`: null.
pub(super) fn column_of(
    datatype: Datatype,
    nan: NanPlace,
    words: impl ExactSizeIterator<Item = Option<u64>>,
) -> Result<Column> {
    let shift = u64::from(datatype.is_time() && nan == NanPlace::Last);
    let (mut keys, mut valid) = (Vec::with_capacity(words.len()), Vec::with_capacity(words.len()));
    for word in words {
        valid.push(u8::from(word.is_some()));
        // Zero lies under nulls.
        keys.push(word.map(|word| word.wrapping_add(shift)).unwrap_or_else(|| zero_key(datatype)));
    }
    let mut values = Vec::new();
    key::decode(datatype, keys, &mut values);
    let validity = valid.contains(&0).then_some(valid);
    Column::new(datatype, AlignedBuf::from_slice(&values), None, validity)
}

fn zero_key(datatype: Datatype) -> u64 {
    match datatype.element().kind {
        ElementKind::Unsigned => 0,
        ElementKind::Signed => key::from_signed(0),
        ElementKind::Float => key::from_float(0.0),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::TimeUnit;

    fn around(datatype: Datatype, values: &[u8]) {
        let view = ColumnView::new(datatype, values, None, None).unwrap();
        for nan in [NanPlace::First, NanPlace::Last] {
            let mut words = Vec::new();
            words_into(view, nan, &mut words);
            let made = column_of(datatype, nan, words.iter().copied().map(Some)).unwrap();
            assert_eq!(made.view().values(), values, "{datatype} {nan:?}");
        }
    }

    #[test]
    fn values_come_back_from_their_words() {
        around(Datatype::Int8, &[0x80, 0xff, 0, 1, 0x7f]);
        around(Datatype::UInt64, &[0u64, 1, u64::MAX].map(u64::to_le_bytes).concat());
        around(Datatype::Int64, &[i64::MIN, -1, 0, i64::MAX].map(i64::to_le_bytes).concat());
        let floats = [f64::NEG_INFINITY, f64::MIN, -1.5, 0.0, 5e-324, f64::INFINITY];
        around(Datatype::Float64, &floats.map(f64::to_le_bytes).concat());
        let times = [i64::MIN, i64::MIN + 1, -1, 0, i64::MAX];
        around(Datatype::Datetime(TimeUnit::Second.step()), &times.map(i64::to_le_bytes).concat());
    }

    #[test]
    fn nan_and_nat_stand_at_the_end_that_is_asked_for() {
        let floats = [f64::INFINITY, f64::NAN, -f64::NAN, f64::NEG_INFINITY].map(f64::to_le_bytes).concat();
        let times = [i64::MAX, i64::MIN, i64::MIN, i64::MIN + 1].map(i64::to_le_bytes).concat();
        let time = Datatype::Datetime(TimeUnit::Second.step());
        for (datatype, values) in [(Datatype::Float64, floats), (time, times)] {
            let view = ColumnView::new(datatype, &values, None, None).unwrap();
            for nan in [NanPlace::First, NanPlace::Last] {
                let mut words = Vec::new();
                words_into(view, nan, &mut words);
                assert!(nan.is_nan(datatype, words[1]) && nan.is_nan(datatype, words[2]), "{words:?}");
                let others = [words[0], words[3]];
                assert!(others.iter().all(|w| if nan == NanPlace::First { *w > words[1] } else { *w < words[1] }));
                assert!(words[3] < words[0]);
            }
        }
    }
}
