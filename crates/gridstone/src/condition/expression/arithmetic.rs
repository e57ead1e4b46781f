//! Operators and functions of numbers, a column at a time.

use super::Operator;
use super::vector::{Vector, both};
use crate::base::{Error, Result};
use crate::tile::Numbers;

/// A function of one number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NumberFunction {
    Abs,
    Floor,
    Ceil,
    /// To the nearest whole number, halves to the even one, as NumPy does.
    Round,
    Sqrt,
    Exp,
    Ln,
    Log10,
}

impl NumberFunction {
    /// The function of this name.
    pub(super) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "abs" => Self::Abs,
            "floor" => Self::Floor,
            "ceil" | "ceiling" => Self::Ceil,
            "round" => Self::Round,
            "sqrt" => Self::Sqrt,
            "exp" => Self::Exp,
            "ln" | "log" => Self::Ln,
            "log10" => Self::Log10,
            _ => return None,
        })
    }

    /// Whether whole numbers stay what they are, or become whole numbers.
    pub(super) fn keeps_integers(self) -> bool {
        matches!(self, Self::Abs | Self::Floor | Self::Ceil | Self::Round)
    }

    /// The results; `text` is for errors.
    pub(super) fn of(self, arg: Vector, text: &str) -> Result<Vector> {
        let values = match (self, &arg.values) {
            (Self::Abs, Numbers::Signed(values)) => {
                let each = values.iter().enumerate().map(|(row, value)| match value.checked_abs() {
                    None if arg.is_valid(row) => Err(too_large(text)),
                    found => Ok(found.unwrap_or(0)),
                });
                Numbers::Signed(each.collect::<Result<_>>()?)
            }
            (function, Numbers::Signed(_) | Numbers::Unsigned(_)) if function.keeps_integers() => return Ok(arg),
            _ => {
                let function = match self {
                    Self::Abs => f64::abs,
                    Self::Floor => f64::floor,
                    Self::Ceil => f64::ceil,
                    Self::Round => f64::round_ties_even,
                    Self::Sqrt => f64::sqrt,
                    Self::Exp => f64::exp,
                    Self::Ln => f64::ln,
                    Self::Log10 => f64::log10,
                };
                Numbers::Float(arg.values.into_floats().into_iter().map(function).collect())
            }
        };
        Ok(Vector { values, valid: arg.valid })
    }
}

fn too_large(text: &str) -> Error {
    Error::input(format!("{text}: a result does not fit 64 bits; compute with floats: cast(x as float64)"))
}

/// The opposite numbers.
pub(super) fn negated(arg: Vector, text: &str) -> Result<Vector> {
    let values = match &arg.values {
        Numbers::Float(values) => Numbers::Float(values.iter().map(|value| -value).collect()),
        _ => {
            let mut made = Vec::with_capacity(arg.len());
            for row in 0..arg.len() {
                let value = if arg.is_valid(row) { -arg.integer(row) } else { 0 };
                made.push(i64::try_from(value).map_err(|_| too_large(text))?);
            }
            Numbers::Signed(made)
        }
    };
    Ok(Vector { values, valid: arg.valid })
}

/// Both sides joined; `float`: computed in floats. `unsigned`: integers are given without a sign.
pub(super) fn joined(
    operator: Operator,
    (left, right): (Vector, Vector),
    (float, unsigned): (bool, bool),
    text: &str,
) -> Result<Vector> {
    let valid = both(left.valid.as_ref(), right.valid.as_ref());
    if float {
        let (left, right) = (left.values.into_floats(), right.values.into_floats());
        let pairs = left.into_iter().zip(right);
        let values = match operator {
            Operator::Add => pairs.map(|(a, b)| a + b).collect(),
            Operator::Subtract => pairs.map(|(a, b)| a - b).collect(),
            Operator::Multiply => pairs.map(|(a, b)| a * b).collect(),
            Operator::Divide => pairs.map(|(a, b)| a / b).collect(),
            Operator::FloorDivide => pairs.map(|(a, b)| (a / b).floor()).collect(),
            Operator::Remainder => pairs.map(|(a, b)| remainder(a, b)).collect(),
        };
        return Ok(Vector { values: Numbers::Float(values), valid });
    }
    integers(operator, (&left, &right), unsigned, valid, text)
}

/// What a division rounded down leaves.
fn remainder(a: f64, b: f64) -> f64 {
    let left = a % b;
    if left != 0.0 && (left < 0.0) != (b < 0.0) { left + b } else { left }
}

fn integers(
    operator: Operator,
    (left, right): (&Vector, &Vector),
    unsigned: bool,
    valid: Option<Vec<u8>>,
    text: &str,
) -> Result<Vector> {
    if let (Numbers::Signed(a), Numbers::Signed(b), None, false) = (&left.values, &right.values, &valid, unsigned) {
        let checked = match operator {
            Operator::Add => Some(i64::checked_add as fn(i64, i64) -> Option<i64>),
            Operator::Subtract => Some(i64::checked_sub as fn(i64, i64) -> Option<i64>),
            Operator::Multiply => Some(i64::checked_mul as fn(i64, i64) -> Option<i64>),
            Operator::Divide | Operator::FloorDivide | Operator::Remainder => None,
        };
        if let Some(checked) = checked {
            let made: Option<Vec<i64>> = a.iter().zip(b).map(|(a, b)| checked(*a, *b)).collect();
            let values = Numbers::Signed(made.ok_or_else(|| too_large(text))?);
            return Ok(Vector { values, valid });
        }
    }
    let rows = left.len();
    let mut flags = valid.unwrap_or_else(|| vec![1; rows]);
    let mut made: Vec<i128> = Vec::with_capacity(rows);
    for (row, flag) in flags.iter_mut().enumerate() {
        let (a, b) = (left.integer(row), right.integer(row));
        let value = match operator {
            _ if *flag == 0 => 0,
            Operator::Add => a + b,
            Operator::Subtract => a - b,
            Operator::Multiply => a.checked_mul(b).ok_or_else(|| too_large(text))?,
            _ if b == 0 => {
                *flag = 0;
                0
            }
            Operator::Divide | Operator::FloorDivide => floor_quotient(a, b),
            Operator::Remainder => a - floor_quotient(a, b) * b,
        };
        made.push(value);
    }
    let values = match unsigned {
        true => made.into_iter().map(u64::try_from).collect::<std::result::Result<_, _>>().map(Numbers::Unsigned),
        false => made.into_iter().map(i64::try_from).collect::<std::result::Result<_, _>>().map(Numbers::Signed),
    };
    let valid = Some(flags).filter(|flags| flags.contains(&0));
    Ok(Vector { values: values.map_err(|_| too_large(text))?, valid })
}

/// The quotient rounded down.
fn floor_quotient(a: i128, b: i128) -> i128 {
    let quotient = a / b;
    if a % b != 0 && (a < 0) != (b < 0) { quotient - 1 } else { quotient }
}
