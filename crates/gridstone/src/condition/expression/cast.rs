//! Values as values of another type.

use super::super::time::{self, read_iso, read_ticks};
use super::super::tree::{Literal, ticks_text};
use super::evaluate::{text_at, texts, unlike};
use super::step::{is_countable, recounted};
use super::vector::{Values, Vector};
use crate::base::{Error, Result};
use crate::schema::{Datatype, Sorting};
use crate::tile::{Column, ColumnView};

/// How values become values of another type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    Same,
    /// Between numbers; floats lose what stands behind the point.
    Numbers,
    /// Whether a number is not 0.
    Truth,
    /// Between steps of time, rounded down.
    Steps,
    /// The ticks of a time; NaT has none.
    Ticks,
    /// A time of so many ticks.
    Time,
    Read,
    Print,
}

fn is_number(datatype: Datatype) -> bool {
    datatype.sorting() == Sorting::Keys && !datatype.is_time()
}

fn way(from: Datatype, to: Datatype) -> Option<Way> {
    let integers = |datatype: Datatype| is_number(datatype) && !datatype.is_float() && datatype != Datatype::Bool;
    Some(match (from, to) {
        _ if from == to => Way::Same,
        (_, Datatype::Bool) if is_number(from) => Way::Truth,
        _ if is_number(from) && is_number(to) => Way::Numbers,
        _ if is_countable(from, to) => Way::Steps,
        _ if from.is_time() && integers(to) => Way::Ticks,
        _ if integers(from) && to.is_time() => Way::Time,
        (Datatype::String, _) if is_number(to) || to.is_time() => Way::Read,
        (_, Datatype::String) if is_number(from) || from.is_time() => Way::Print,
        _ => return None,
    })
}

/// Whether there is a cast.
pub(super) fn can_cast(from: Datatype, to: Datatype) -> bool {
    way(from, to).is_some()
}

/// Whether a cast may make nulls.
pub(super) fn makes_nulls(from: Datatype, to: Datatype) -> bool {
    way(from, to) == Some(Way::Ticks)
}

/// The values of `column` in another type; `text` is for errors.
pub(super) fn cast(column: Column, to: Datatype, text: &str) -> Result<Column> {
    let from = column.datatype();
    let unfit = || Error::input(format!("{text}: there is no cast from {from} to {to}"));
    match way(from, to).ok_or_else(unfit)? {
        Way::Same => Ok(column),
        Way::Numbers | Way::Time => Vector::of(column.view()).into_column(to, text),
        Way::Truth => truth(Vector::of(column.view())).into_column(to, text),
        Way::Steps => steps(Vector::of(column.view()), (from, to), text)?.into_column(to, text),
        Way::Ticks => without_nats(Vector::of(column.view()))?.into_column(to, text),
        Way::Read => read(column.view(), to, text),
        Way::Print => print(column.view()),
    }
}

fn truth(found: Vector) -> Vector {
    let values = match &found.values {
        Values::Signed(values) => values.iter().map(|v| i64::from(*v != 0)).collect(),
        Values::Unsigned(values) => values.iter().map(|v| i64::from(*v != 0)).collect(),
        Values::Float(values) => values.iter().map(|v| i64::from(*v != 0.0)).collect(),
    };
    Vector { values: Values::Signed(values), valid: found.valid }
}

fn steps(found: Vector, (from, to): (Datatype, Datatype), text: &str) -> Result<Vector> {
    let Values::Signed(ticks) = &found.values else { return Err(unlike()) };
    let one = |(row, tick): (usize, &i64)| match recounted(*tick, from, to) {
        Some(made) => Ok(made),
        None if !found.is_valid(row) => Ok(0),
        None => Err(Error::input(format!("{text}: {tick} of {from} is beyond the 64 bits of {to}"))),
    };
    let made = ticks.iter().enumerate().map(one).collect::<Result<_>>()?;
    Ok(Vector { values: Values::Signed(made), valid: found.valid })
}

fn without_nats(found: Vector) -> Result<Vector> {
    let Values::Signed(ticks) = &found.values else { return Err(unlike()) };
    let mut valid = found.valid.unwrap_or_else(|| vec![1; ticks.len()]);
    valid.iter_mut().zip(ticks).for_each(|(flag, tick)| *flag &= u8::from(*tick != i64::MIN));
    Ok(Vector { values: found.values, valid: Some(valid).filter(|valid| valid.contains(&0)) })
}

/// The values that texts say.
fn read(view: ColumnView<'_>, to: Datatype, text: &str) -> Result<Column> {
    let wrong = |found: &str| {
        let shown: String = found.chars().take(60).collect();
        let how = "leave such cells out first, as in case when … then cast(…) end";
        Error::input(format!("{text}: {:?} is no {to}; {how}", shown))
    };
    let (mut signed, mut unsigned, mut floats) = (Vec::new(), Vec::new(), Vec::new());
    for row in 0..view.len() {
        let valid = view.is_valid(row);
        let found = text_at(view, row);
        let found = if valid { found.trim() } else { "" };
        if to.is_float() {
            floats.push(if valid { found.parse().map_err(|_| wrong(found))? } else { 0.0 });
        } else if to == Datatype::UInt64 {
            unsigned.push(if valid { found.parse().map_err(|_| wrong(found))? } else { 0 });
        } else {
            signed.push(if valid { integer(found, to).ok_or_else(|| wrong(found))? } else { 0 });
        }
    }
    let values = match to {
        _ if to.is_float() => Values::Float(floats),
        Datatype::UInt64 => Values::Unsigned(unsigned),
        _ => Values::Signed(signed),
    };
    Vector { values, valid: view.validity().map(<[u8]>::to_vec) }.into_column(to, text)
}

/// The integer, truth or tick that a text says.
fn integer(text: &str, to: Datatype) -> Option<i64> {
    match to {
        Datatype::Bool => match text.to_lowercase().as_str() {
            "true" | "1" => Some(1),
            "false" | "0" => Some(0),
            _ => None,
        },
        _ if to.is_time() && text == "NaT" => Some(i64::MIN),
        Datatype::Datetime(step) => read_iso(text)?.0.ticks_down(step, true),
        Datatype::Timedelta(_) => {
            let (ticks, unit) = read_ticks(text)?;
            let from = Datatype::Timedelta(unit.step());
            if is_countable(from, to) { recounted(ticks, from, to) } else { None }
        }
        _ => text.parse().ok(),
    }
}

/// The texts of values, as literals are written.
fn print(view: ColumnView<'_>) -> Result<Column> {
    let datatype = view.datatype();
    let found = Vector::of(view);
    let one = |row: usize| match (&found.values, datatype) {
        _ if !found.is_valid(row) => String::new(),
        (Values::Float(values), Datatype::Float64) => {
            Literal::Float(values.get(row).copied().unwrap_or(0.0)).to_string()
        }
        (Values::Float(values), _) => {
            let value = values.get(row).copied().unwrap_or(0.0) as f32;
            if value.is_nan() { "nan".to_owned() } else { format!("{value:?}") }
        }
        (Values::Signed(values), Datatype::Bool) => (values.get(row) == Some(&1)).to_string(),
        (Values::Signed(values), _) if datatype.is_time() => time_text(values.get(row).copied().unwrap_or(0), datatype),
        _ => found.integer(row).to_string(),
    };
    texts((0..view.len()).map(one), view.validity().map(<[u8]>::to_vec))
}

/// A time in ISO 8601; a length of time, and what ISO 8601 does not write, as a number and a unit.
fn time_text(tick: i64, datatype: Datatype) -> String {
    let (Datatype::Datetime(step) | Datatype::Timedelta(step)) = datatype else { return String::new() };
    let units = i128::from(tick) * i128::from(step.count());
    let written = match (datatype, i64::try_from(units)) {
        (Datatype::Datetime(_), Ok(units)) if tick != i64::MIN => time::iso(units, step.unit()),
        _ => None,
    };
    match written {
        Some(iso) => iso,
        None if tick == i64::MIN => ticks_text(tick),
        None => format!("{units} {}", step.unit().step()),
    }
}
