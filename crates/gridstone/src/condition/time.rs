//! Dates, times and lengths of time as text: ISO 8601, and a number with a unit.

use super::tree::{Literal, ticks_of, unit_named};
use crate::schema::TimeUnit;
pub(super) use crate::schema::calendar::{
    DAY, HOUR, MINUTE, Moment, SECOND, attoseconds, civil_from_days, days_from_civil, in_months, iso,
};

/// Parses a text from its front.
struct Scanner<'a>(&'a str);

impl Scanner<'_> {
    fn takes(&mut self, sign: char) -> bool {
        let rest = self.0.strip_prefix(sign);
        self.0 = rest.unwrap_or(self.0);
        rest.is_some()
    }

    /// Parses `count` digits as a number between `low` and `high`.
    fn digits(&mut self, count: usize, low: i128, high: i128) -> Option<i128> {
        let found = self.0.get(..count).filter(|d| d.bytes().all(|b| b.is_ascii_digit()))?;
        self.0 = self.0.get(count..)?;
        found.parse().ok().filter(|v| (low..=high).contains(v))
    }

    /// The number of leading digits.
    fn run(&mut self) -> usize {
        self.0.bytes().take_while(u8::is_ascii_digit).count()
    }
}

/// Parses an ISO 8601 moment, and the unit of its precision: `2024`, `2024-05`, `2024-05-01`, `2024-05-01T12`, `…:30`,
/// `…:15`, `….250`, with `Z` or an offset after a time of day.
pub(super) fn read_iso(text: &str) -> Option<(Moment, TimeUnit)> {
    let mut s = Scanner(text.trim());
    let negative = s.takes('-');
    let digits = s.run();
    let year = s.digits(digits, 0, 9_999_999_999_999_999_999).filter(|_| digits >= 4)?;
    let year = if negative { -year } else { year };
    if s.0.is_empty() {
        return Some((Moment::midnight(days_from_civil(year, 1, 1)), TimeUnit::Year));
    }
    let month = if s.takes('-') { s.digits(2, 1, 12)? } else { return None };
    if s.0.is_empty() {
        return Some((Moment::midnight(days_from_civil(year, month, 1)), TimeUnit::Month));
    }
    let day = if s.takes('-') { s.digits(2, 1, 31)? } else { return None };
    let days = days_from_civil(year, month, day);
    if civil_from_days(days) != (year, month, day) {
        return None;
    }
    if s.0.is_empty() {
        return Some((Moment::midnight(days), TimeUnit::Day));
    }
    if !(s.takes('T') || s.takes('t') || s.takes(' ')) {
        return None;
    }
    let (mut clock, unit) = read_clock(&mut s)?;
    clock -= read_offset(&mut s)?;
    let days = days + clock.div_euclid(DAY);
    s.0.is_empty().then_some((Moment::new(days, clock.rem_euclid(DAY)), unit))
}

/// Attoseconds since midnight.
fn read_clock(s: &mut Scanner<'_>) -> Option<(i128, TimeUnit)> {
    let hour = s.digits(2, 0, 23)? * HOUR;
    if !s.takes(':') {
        return Some((hour, TimeUnit::Hour));
    }
    let minute = s.digits(2, 0, 59)? * MINUTE;
    if !s.takes(':') {
        return Some((hour + minute, TimeUnit::Minute));
    }
    let second = s.digits(2, 0, 59)? * SECOND;
    if !s.takes('.') {
        return Some((hour + minute + second, TimeUnit::Second));
    }
    let digits = s.run();
    let unit = match digits.div_ceil(3) {
        1 => TimeUnit::Millisecond,
        2 => TimeUnit::Microsecond,
        3 => TimeUnit::Nanosecond,
        4 => TimeUnit::Picosecond,
        5 => TimeUnit::Femtosecond,
        6 => TimeUnit::Attosecond,
        _ => return None,
    };
    let fraction = s.digits(digits, 0, SECOND)? * 10i128.pow(18 - u32::try_from(digits).ok()?);
    Some((hour + minute + second + fraction, unit))
}

/// Attoseconds east of Greenwich.
fn read_offset(s: &mut Scanner<'_>) -> Option<i128> {
    if s.takes('Z') || s.takes('z') || s.0.is_empty() {
        return Some(0);
    }
    let sign = if s.takes('+') {
        1
    } else if s.takes('-') {
        -1
    } else {
        return None;
    };
    let hours = s.digits(2, 0, 23)? * HOUR;
    s.takes(':');
    let minutes = if s.0.is_empty() { 0 } else { s.digits(2, 0, 59)? * MINUTE };
    Some(sign * (hours + minutes))
}

/// A number and a unit: "90 s", "-5min" is none, "NaT ms".
pub(super) fn read_ticks(text: &str) -> Option<(i64, TimeUnit)> {
    let text = text.trim();
    let end = if text.starts_with("NaT") { 3 } else { text.find(|c: char| c.is_ascii_alphabetic())? };
    let (ticks, unit) = text.split_at_checked(end)?;
    Some((ticks_of(ticks.trim())?, unit_named(unit.trim())?))
}

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

/// What to write instead of `text`.
pub(super) fn no_datetime(text: &str) -> String {
    format!(
        "{text:?} is no date or time; write 2024-05-01, 2024-05-01T12:30:15.250, an offset such as Z or +02:00 after"
    )
}

/// What to write instead of `text`.
pub(super) fn no_timedelta(text: &str) -> String {
    format!("{text:?} is no length of time; write a whole number and a unit: '90 s' (Y M W D h m s ms us ns ps fs as)")
}
