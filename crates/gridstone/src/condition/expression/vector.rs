//! Values on their way through an expression: numbers widened, with a byte per row that has a value.

use crate::base::{AlignedBuf, ElementKind, Error, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView, Numbers};
use half::f16;

/// Numbers, and which of them there are.
#[derive(Debug, Clone)]
pub(super) struct Vector {
    pub(super) values: Numbers,
    pub(super) valid: Option<Vec<u8>>,
}

impl Vector {
    /// The numbers of a column of single numbers, booleans or times.
    pub(super) fn of(view: ColumnView<'_>) -> Self {
        Self { values: Numbers::of(view), valid: view.validity().map(<[u8]>::to_vec) }
    }

    pub(super) fn len(&self) -> usize {
        self.values.len()
    }

    pub(super) fn is_valid(&self, row: usize) -> bool {
        self.valid.as_ref().is_none_or(|valid| valid.get(row).is_some_and(|v| *v != 0))
    }

    /// One of the numbers, an integer.
    pub(super) fn integer(&self, row: usize) -> i128 {
        match &self.values {
            Numbers::Signed(values) => values.get(row).copied().unwrap_or(0).into(),
            Numbers::Unsigned(values) => values.get(row).copied().unwrap_or(0).into(),
            Numbers::Float(values) => values.get(row).copied().unwrap_or(0.0) as i128,
        }
    }

    /// The column of a type of these numbers.
    ///
    /// # Errors
    /// Input: a number does not fit the type; it is named beside `text`.
    pub(super) fn into_column(self, datatype: Datatype, text: &str) -> Result<Column> {
        let valid = self.valid;
        let is_valid = |row: usize| valid.as_ref().is_none_or(|v: &Vec<u8>| v.get(row).is_some_and(|v| *v != 0));
        let width = datatype.width().unwrap_or(8);
        let kind = datatype.element().kind;
        let mut bytes = Vec::with_capacity(width * 8);
        let unfit = |value: &dyn std::fmt::Display| {
            Error::input(format!(
                "{text}: {value} does not fit {datatype}; cast to float64 before, or leave such cells out"
            ))
        };
        let mut push = |row: usize, value: i128| -> Result<()> {
            let value = if is_valid(row) { value } else { 0 };
            let bits = width as u32 * 8;
            let fits = match kind {
                _ if datatype == Datatype::Bool => (0..=1).contains(&value),
                ElementKind::Unsigned => value >= 0 && value >> bits == 0,
                ElementKind::Signed | ElementKind::Float => {
                    (-(1i128 << (bits - 1))..(1i128 << (bits - 1))).contains(&value)
                }
            };
            if !fits {
                return Err(unfit(&value));
            }
            bytes.extend(value.to_le_bytes().into_iter().take(width));
            Ok(())
        };
        match (&self.values, kind) {
            (Numbers::Signed(values), ElementKind::Signed | ElementKind::Unsigned) => {
                values.iter().enumerate().try_for_each(|(row, value)| push(row, i128::from(*value)))?;
            }
            (Numbers::Unsigned(values), ElementKind::Signed | ElementKind::Unsigned) => {
                values.iter().enumerate().try_for_each(|(row, value)| push(row, i128::from(*value)))?;
            }
            (Numbers::Float(values), ElementKind::Signed | ElementKind::Unsigned) => {
                for (row, value) in values.iter().enumerate() {
                    if is_valid(row) && (value.is_nan() || value.abs() >= 1e38) {
                        return Err(unfit(value));
                    }
                    push(row, *value as i128)?;
                }
            }
            (_, ElementKind::Float) => {
                for value in self.values.into_floats() {
                    match width {
                        2 => bytes.extend(f16::from_f64(value).to_le_bytes()),
                        4 => bytes.extend((value as f32).to_le_bytes()),
                        _ => bytes.extend(value.to_le_bytes()),
                    }
                }
            }
        }
        let validity = valid.filter(|valid| valid.contains(&0));
        Column::new(datatype, AlignedBuf::from_slice(&bytes), None, validity)
    }
}

/// Rows that have a value on both sides.
pub(super) fn both(a: Option<&Vec<u8>>, b: Option<&Vec<u8>>) -> Option<Vec<u8>> {
    match (a, b) {
        (Some(a), Some(b)) => Some(a.iter().zip(b).map(|(a, b)| a & b).collect()),
        (a, b) => a.or(b).cloned(),
    }
}
