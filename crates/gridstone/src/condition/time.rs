//! Dates, times and lengths of time as text: ISO 8601, and a number with a unit.

use super::tree::Literal;
use crate::schema::TimeUnit;
pub(super) use crate::schema::calendar::{Moment, attoseconds, in_months, iso};
pub(super) use crate::schema::notation::{no_datetime, no_timedelta, read_iso, read_ticks};

/// `timestamp '…'`: ISO 8601, or ticks and a unit.
pub(super) fn datetime(text: &str) -> Result<Literal, String> {
    if let Some((ticks, unit)) = read_ticks(text) {
        return Ok(Literal::Datetime(ticks, unit));
    }
    if text.trim() == "NaT" {
        return Ok(Literal::Datetime(i64::MIN, TimeUnit::Second));
    }
    let (moment, unit) = read_iso(text).ok_or_else(|| no_datetime(text))?;
    let ticks = moment.ticks(unit).ok_or_else(|| format!("{text:?} does not fit 64 bits in so fine a unit"))?;
    Ok(Literal::Datetime(ticks, unit))
}

/// `date '…'`: ISO 8601 without a time of day.
pub(super) fn date(text: &str) -> Result<Literal, String> {
    match datetime(text)? {
        Literal::Datetime(ticks, unit) if attoseconds(unit).is_none() => Ok(Literal::Datetime(ticks, unit)),
        _ => Err(format!("{text:?} has a time of day; write timestamp '…'")),
    }
}

/// The beginning of a written date or time, and that of the one after it.
pub(super) fn period(text: &str) -> Result<(Literal, Literal), String> {
    let (moment, unit) = read_iso(text).ok_or_else(|| no_datetime(text))?;
    let too_fine = || format!("{text:?} does not fit 64 bits in so fine a unit");
    let begin = moment.ticks(unit).ok_or_else(too_fine)?;
    let next = begin.checked_add(1).ok_or_else(too_fine)?;
    let literal = |ticks| iso(ticks, unit).map_or(Literal::Datetime(ticks, unit), Literal::Text);
    Ok((literal(begin), literal(next)))
}

/// `timedelta '…'`: ticks and a unit.
pub(super) fn timedelta(text: &str) -> Result<Literal, String> {
    let found = read_ticks(text).map(|(ticks, unit)| Literal::Timedelta(ticks, unit));
    found.ok_or_else(|| no_timedelta(text))
}
