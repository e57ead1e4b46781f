//! Converts literals to the type of the column that they are compared with, or refuses them with the column's name and
//! type.

use super::exact::Number;
use super::time::{self, Moment};
use super::tree::{Comparison, Literal};
use super::values::{Against, Values};
use crate::base::{Error, Result};
use crate::schema::{Datatype, Sorting, TimeStep, TimeUnit};

/// Converts `value` to a value that is compared with those of a column.
pub(super) fn against(column: &str, datatype: Datatype, value: &Literal) -> Result<Against> {
    check_comparable(column, datatype)?;
    let refuse = |what: String| Err(Error::input(format!("{column:?} is {datatype}: {what}")));
    Ok(match (datatype, value) {
        (Datatype::Bool, Literal::Bool(value)) => Against::Number(Number::Int(i128::from(*value))),
        (Datatype::String, Literal::Text(text)) => Against::Text(text.as_bytes().to_vec()),
        (Datatype::Bytes, Literal::Bytes(bytes)) => Against::Text(bytes.clone()),
        (Datatype::FixedBytes(len), Literal::Bytes(bytes)) => Against::Text(padded(bytes, len as usize)),
        (Datatype::Datetime(_), Literal::Datetime(i64::MIN, _))
        | (Datatype::Timedelta(_), Literal::Timedelta(i64::MIN, _)) => Against::Unordered,
        (Datatype::Datetime(_), Literal::Datetime(ticks, unit)) => {
            Against::Moment(Moment::of_datetime(*ticks, unit.step()))
        }
        (Datatype::Timedelta(own), Literal::Timedelta(ticks, unit)) => {
            return span(own, *ticks, *unit).map_or_else(refuse, Ok);
        }
        (d, Literal::Text(text)) if d.is_time() && text.trim() == "NaT" => Against::Unordered,
        (Datatype::Datetime(_), Literal::Text(text)) => match time::read_iso(text) {
            Some((moment, _)) => Against::Moment(moment),
            None => return refuse(time::no_datetime(text)),
        },
        (Datatype::Timedelta(own), Literal::Text(text)) => match time::read_ticks(text) {
            Some((i64::MIN, _)) => Against::Unordered,
            Some((ticks, unit)) => return span(own, ticks, unit).map_or_else(refuse, Ok),
            None => return refuse(time::no_timedelta(text)),
        },
        (d, Literal::Int(value)) if is_number(d) => Against::Number(Number::Int(*value)),
        (d, Literal::Float(value)) if is_number(d) && value.is_nan() => Against::Unordered,
        (d, Literal::Float(value)) if is_number(d) => Against::Number(Number::Float(*value)),
        (d, value) => return refuse(mismatch(d, value)),
    })
}

fn is_number(datatype: Datatype) -> bool {
    datatype.sorting() == Sorting::Keys && !datatype.is_time() && datatype != Datatype::Bool
}

/// A value of a type of fixed length, padded with zeros.
fn padded(bytes: &[u8], len: usize) -> Vec<u8> {
    let mut all = bytes.to_vec();
    all.resize(len.max(bytes.len()), 0);
    all
}

/// An Input error if values of this type cannot be compared.
pub(super) fn check_comparable(column: &str, datatype: Datatype) -> Result<()> {
    if datatype.sorting() != Sorting::None {
        return Ok(());
    }
    Err(Error::input(format!(
        "{column:?} is {datatype}, whose values are not compared in conditions: use \"{column} is null\" or \"{column} is not \
         null\", or read the values and compare them in NumPy"
    )))
}

fn span(own: TimeStep, ticks: i64, unit: TimeUnit) -> std::result::Result<Against, String> {
    if time::in_months(own.unit()) == time::in_months(unit) {
        return Ok(Against::Moment(Moment::of_timedelta(ticks, unit.step())));
    }
    Err("months and years have no length in days; compare with a length in the column's own unit".to_owned())
}

/// Why `value` cannot be compared with a column of this type, and what could.
fn mismatch(datatype: Datatype, value: &Literal) -> String {
    let kind = match value {
        Literal::Int(_) | Literal::Float(_) => "a number",
        Literal::Bool(_) => "true or false",
        Literal::Text(_) => "text",
        Literal::Bytes(_) => "bytes",
        Literal::Datetime(..) => "a date or time",
        Literal::Timedelta(..) => "a length of time",
    };
    let wanted = match datatype {
        Datatype::Bool => "true or false, or with nothing: the column by itself is a condition",
        Datatype::String => "text in single quotes",
        Datatype::Bytes | Datatype::FixedBytes(_) => "bytes, as b'…' or x'…'",
        Datatype::Datetime(_) => "a date or time, as '2024-05-01T12:30' or timestamp '…'",
        Datatype::Timedelta(_) => "a length of time, as '90 s' or timedelta '90 s'",
        _ => "a number",
    };
    let shown: String = value.to_string().chars().take(60).collect();
    format!("it cannot be compared with {shown}, which is {kind}; compare it with {wanted}")
}

/// The values that a column by itself accepts.
pub(super) fn flag(column: &str, datatype: Datatype) -> Result<Values> {
    check_comparable(column, datatype)?;
    if datatype != Datatype::Bool {
        return Err(Error::input(format!(
            "{column:?} is {datatype}, so that it is no condition by itself; compare it with something"
        )));
    }
    Ok(Values::compared(datatype, Comparison::Eq, &Against::Number(Number::Int(1))))
}

/// The values from `low` to `high`, both inclusive.
pub(super) fn between(column: &str, datatype: Datatype, low: &Literal, high: &Literal) -> Result<Values> {
    let low = Values::compared(datatype, Comparison::Ge, &against(column, datatype, low)?);
    let high = Values::compared(datatype, Comparison::Le, &against(column, datatype, high)?);
    Ok(low.intersect(&high))
}
