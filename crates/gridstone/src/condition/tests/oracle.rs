//! The meaning of a condition, cell by cell, without any of the engine's arithmetic: numbers are compared as decimal
//! text.

use super::super::{Comparison, Condition, Literal};
use crate::schema::{Datatype, TimeStep, TimeUnit};
use std::cmp::Ordering;

/// One value of a cell.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Value {
    Int(i128),
    Float(f64),
    Bool(bool),
    Text(String),
    Bytes(Vec<u8>),
    Ticks(i64),
}

/// A column's name and type, and its cells; `None` is null.
#[derive(Debug, Clone)]
pub(super) struct Cells {
    pub(super) name: &'static str,
    pub(super) datatype: Datatype,
    pub(super) nullable: bool,
    pub(super) cells: Vec<Option<Value>>,
}

/// A comparable value; `None`: NaN.
#[derive(Debug, Clone, PartialEq)]
enum Place {
    /// Negative, digits before the point, digits behind it.
    Decimal(Option<(bool, String, String)>),
    Text(Vec<u8>),
    /// Attoseconds, or months.
    Time(Option<i128>),
}

fn decimal(text: String) -> Option<(bool, String, String)> {
    let (negative, digits) = (text.starts_with('-'), text.trim_start_matches('-'));
    let (whole, part) = digits.split_once('.').unwrap_or((digits, ""));
    let (whole, part) = (whole.trim_start_matches('0'), part.trim_end_matches('0'));
    Some((negative && !(whole.is_empty() && part.is_empty()), whole.to_owned(), part.to_owned()))
}

fn of_float(value: f64) -> Place {
    Place::Decimal(match value {
        v if v.is_nan() => None,
        v if v.is_infinite() => Some((v < 0.0, "9".repeat(400), String::new())),
        v => decimal(format!("{v:.1100}")),
    })
}

fn compare(a: &Place, b: &Place) -> Option<Ordering> {
    match (a, b) {
        (Place::Decimal(a), Place::Decimal(b)) => {
            let (a, b) = (a.as_ref()?, b.as_ref()?);
            let size = |v: &(bool, String, String)| (v.1.len(), v.1.clone(), v.2.clone());
            Some(match (a.0, b.0) {
                (false, true) => Ordering::Greater,
                (true, false) => Ordering::Less,
                (false, false) => size(a).cmp(&size(b)),
                (true, true) => size(b).cmp(&size(a)),
            })
        }
        (Place::Text(a), Place::Text(b)) => Some(a.cmp(b)),
        (Place::Time(a), Place::Time(b)) => Some((*a)?.cmp(&(*b)?)),
        _ => panic!("{a:?} and {b:?} are not compared"),
    }
}

fn is_leap(year: i64) -> bool {
    year % 4 == 0 && (year % 100 != 0 || year % 400 == 0)
}

/// Days from 1970 to the first day of `months` after January 1970, counted month by month.
fn days(months: i64) -> i128 {
    let length = |month: i64| {
        let (year, of_year) = (1970 + month.div_euclid(12), month.rem_euclid(12));
        let february = if is_leap(year) { 29 } else { 28 };
        [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31][of_year as usize]
    };
    if months >= 0 { (0..months).map(length).sum() } else { -(months..0).map(length).sum::<i128>() }
}

fn time(steps: i64, step: TimeStep, datetime: bool) -> Place {
    const SECOND: i128 = 1_000_000_000_000_000_000;
    let (unit, ticks) = (step.unit(), steps.wrapping_mul(i64::from(step.count())));
    let wide = i128::from(steps) * i128::from(step.count());
    let day = 86_400 * SECOND;
    Place::Time((steps != i64::MIN).then(|| match unit {
        TimeUnit::Year if datetime => days(ticks * 12) * day,
        TimeUnit::Month if datetime => days(ticks) * day,
        TimeUnit::Year => wide * 12,
        TimeUnit::Month => wide,
        TimeUnit::Week => wide * 7 * day,
        TimeUnit::Day => wide * day,
        TimeUnit::Hour => wide * 3_600 * SECOND,
        TimeUnit::Minute => wide * 60 * SECOND,
        TimeUnit::Second => wide * SECOND,
        TimeUnit::Millisecond => wide * 1_000_000_000_000_000,
        TimeUnit::Microsecond => wide * 1_000_000_000_000,
        TimeUnit::Nanosecond => wide * 1_000_000_000,
        TimeUnit::Picosecond => wide * 1_000_000,
        TimeUnit::Femtosecond => wide * 1_000,
        TimeUnit::Attosecond => wide,
    }))
}

fn place(datatype: Datatype, value: &Value) -> Place {
    match (datatype, value) {
        (_, Value::Int(v)) => Place::Decimal(decimal(v.to_string())),
        (_, Value::Float(v)) => of_float(*v),
        (_, Value::Bool(v)) => Place::Decimal(decimal(u8::from(*v).to_string())),
        (_, Value::Text(v)) => Place::Text(v.as_bytes().to_vec()),
        (_, Value::Bytes(v)) => Place::Text(v.clone()),
        (Datatype::Datetime(unit), Value::Ticks(v)) => time(*v, unit, true),
        (Datatype::Timedelta(unit), Value::Ticks(v)) => time(*v, unit, false),
        (d, v) => panic!("{v:?} in a column of {d}"),
    }
}

fn of_literal(literal: &Literal) -> Place {
    match literal {
        Literal::Int(v) => Place::Decimal(decimal(v.to_string())),
        Literal::Float(v) => of_float(*v),
        Literal::Bool(v) => Place::Decimal(decimal(u8::from(*v).to_string())),
        Literal::Text(v) => Place::Text(v.as_bytes().to_vec()),
        Literal::Bytes(v) => Place::Text(v.clone()),
        Literal::Datetime(ticks, unit) => time(*ticks, unit.step(), true),
        Literal::Timedelta(ticks, unit) => time(*ticks, unit.step(), false),
    }
}

fn holds(is: Comparison, order: Option<Ordering>) -> bool {
    match (is, order) {
        (Comparison::Ne, None) => true,
        (_, None) => false,
        (Comparison::Eq, Some(o)) => o == Ordering::Equal,
        (Comparison::Ne, Some(o)) => o != Ordering::Equal,
        (Comparison::Lt, Some(o)) => o == Ordering::Less,
        (Comparison::Le, Some(o)) => o != Ordering::Greater,
        (Comparison::Gt, Some(o)) => o == Ordering::Greater,
        (Comparison::Ge, Some(o)) => o != Ordering::Less,
    }
}

/// Whether `condition` is true for row `row`; `None`: unknown.
pub(super) fn holds_in(condition: &Condition, world: &[Cells], row: usize) -> Option<bool> {
    let found = |name: &str| {
        let column = world.iter().find(|c| c.name == name).unwrap();
        column.cells[row].as_ref().map(|v| place(column.datatype, v))
    };
    let with = |name: &str, is, literal: &Literal| Some(holds(is, compare(&found(name)?, &of_literal(literal))));
    match condition {
        Condition::True {} => Some(true),
        Condition::False {} => Some(false),
        Condition::Column { column } => with(column, Comparison::Eq, &Literal::Bool(true)),
        Condition::Compare { is, column, value } => with(column, *is, value),
        Condition::CompareColumns { is, left, right } => Some(holds(*is, compare(&found(left)?, &found(right)?))),
        Condition::In { column, values } => {
            found(column)?;
            Some(values.iter().any(|v| with(column, Comparison::Eq, v) == Some(true)))
        }
        Condition::Between { column, low, high } => {
            Some(with(column, Comparison::Ge, low)? && with(column, Comparison::Le, high)?)
        }
        Condition::IsNull { column } => Some(found(column).is_none()),
        Condition::IsNotNull { column } => Some(found(column).is_some()),
        Condition::CompareValues { .. }
        | Condition::InValues { .. }
        | Condition::ValueIsNull { .. }
        | Condition::ValueIsNotNull { .. }
        | Condition::Holds { .. } => panic!("{condition} is computed; tests/computed.rs has a model of those"),
        Condition::Not { arg } => holds_in(arg, world, row).map(|v| !v),
        Condition::And { args } => {
            let all: Vec<_> = args.iter().map(|a| holds_in(a, world, row)).collect();
            if all.contains(&Some(false)) {
                Some(false)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| true)
            }
        }
        Condition::Or { args } => {
            let all: Vec<_> = args.iter().map(|a| holds_in(a, world, row)).collect();
            if all.contains(&Some(true)) {
                Some(true)
            } else {
                all.into_iter().collect::<Option<Vec<_>>>().map(|_| false)
            }
        }
    }
}
