//! Columns of single numbers, booleans or times, widened to 64 bits for computing with them.

use super::ColumnView;
use crate::base::ElementKind;
use half::f16;

/// Numbers of one kind; what lies under nulls is among them.
#[derive(Debug, Clone)]
pub enum Numbers {
    /// Integers that fit a sign, booleans and ticks of times.
    Signed(Vec<i64>),
    /// uint64.
    Unsigned(Vec<u64>),
    /// Floats.
    Float(Vec<f64>),
}

impl Numbers {
    /// Those of a column.
    pub fn of(view: ColumnView<'_>) -> Self {
        let values = view.values();
        macro_rules! each {
            ($kind:ident, $width:literal, $value:expr) => {
                Self::$kind(values.as_chunks::<$width>().0.iter().copied().map($value).collect())
            };
        }
        let element = view.datatype().element();
        match (element.kind, element.width) {
            (ElementKind::Unsigned, 1) => each!(Signed, 1, |w| i64::from(u8::from_le_bytes(w))),
            (ElementKind::Unsigned, 2) => each!(Signed, 2, |w| i64::from(u16::from_le_bytes(w))),
            (ElementKind::Unsigned, 4) => each!(Signed, 4, |w| i64::from(u32::from_le_bytes(w))),
            (ElementKind::Unsigned, _) => each!(Unsigned, 8, u64::from_le_bytes),
            (ElementKind::Signed, 1) => each!(Signed, 1, |w| i64::from(i8::from_le_bytes(w))),
            (ElementKind::Signed, 2) => each!(Signed, 2, |w| i64::from(i16::from_le_bytes(w))),
            (ElementKind::Signed, 4) => each!(Signed, 4, |w| i64::from(i32::from_le_bytes(w))),
            (ElementKind::Signed, _) => each!(Signed, 8, i64::from_le_bytes),
            (ElementKind::Float, 2) => each!(Float, 2, |w| f64::from(f16::from_le_bytes(w))),
            (ElementKind::Float, 4) => each!(Float, 4, |w| f64::from(f32::from_le_bytes(w))),
            (ElementKind::Float, _) => each!(Float, 8, f64::from_le_bytes),
        }
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        match self {
            Self::Signed(values) => values.len(),
            Self::Unsigned(values) => values.len(),
            Self::Float(values) => values.len(),
        }
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The same as floats.
    pub fn into_floats(self) -> Vec<f64> {
        match self {
            Self::Signed(values) => values.into_iter().map(|v| v as f64).collect(),
            Self::Unsigned(values) => values.into_iter().map(|v| v as f64).collect(),
            Self::Float(values) => values,
        }
    }
}
