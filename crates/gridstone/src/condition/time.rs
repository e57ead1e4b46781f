//! Instants and spans: ticks of any unit on one exact scale, and ISO 8601 text.
//!
//! A [`Moment`] is whole days and attoseconds, so every tick of every unit of NumPy has one, including a 64-bit count
//! of years. Months and years have no fixed number of days, so spans of them are another kind.

use super::tree::{Literal, ticks_of, unit_named};
use crate::schema::{TimeStep, TimeUnit};

pub(super) const HOUR: i128 = 3_600 * SECOND;
pub(super) const DAY: i128 = 24 * HOUR;
pub(super) const MINUTE: i128 = 60 * SECOND;
pub(super) const SECOND: i128 = 1_000_000_000_000_000_000;

/// Days since 1970-01-01 (for a span: in total) and attoseconds of the day. For spans in months: months, and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Moment {
    days: i128,
    attoseconds: i128,
}

/// Attoseconds per tick, for units that divide a day.
pub(super) fn attoseconds(unit: TimeUnit) -> Option<i128> {
    Some(match unit {
        TimeUnit::Year | TimeUnit::Month | TimeUnit::Week | TimeUnit::Day => return None,
        TimeUnit::Hour => HOUR,
        TimeUnit::Minute => MINUTE,
        TimeUnit::Second => SECOND,
        TimeUnit::Millisecond => SECOND / 1_000,
        TimeUnit::Microsecond => SECOND / 1_000_000,
        TimeUnit::Nanosecond => 1_000_000_000,
        TimeUnit::Picosecond => 1_000_000,
        TimeUnit::Femtosecond => 1_000,
        TimeUnit::Attosecond => 1,
    })
}

/// Whether spans of this unit are counted in months.
pub(super) fn in_months(unit: TimeUnit) -> bool {
    matches!(unit, TimeUnit::Year | TimeUnit::Month)
}

impl Moment {
    /// The instant at which the tick `ticks` of a datetime in this step begins.
    pub(super) fn of_datetime(ticks: i64, step: TimeStep) -> Self {
        let units = i128::from(ticks) * i128::from(step.count());
        match step.unit() {
            TimeUnit::Year => Self::midnight(days_from_civil(1970 + units, 1, 1)),
            TimeUnit::Month => {
                Self::midnight(days_from_civil(1970 + units.div_euclid(12), units.rem_euclid(12) + 1, 1))
            }
            _ => Self::of_timedelta(ticks, step),
        }
    }

    /// The duration of `ticks` of a timedelta in this step.
    pub(super) fn of_timedelta(ticks: i64, step: TimeStep) -> Self {
        let ticks = i128::from(ticks) * i128::from(step.count());
        let unit = step.unit();
        match (unit, attoseconds(unit)) {
            (TimeUnit::Year, _) => Self::midnight(ticks * 12),
            (TimeUnit::Week, _) => Self::midnight(ticks * 7),
            (_, Some(length)) => {
                let per_day = DAY / length;
                Self { days: ticks.div_euclid(per_day), attoseconds: ticks.rem_euclid(per_day) * length }
            }
            _ => Self::midnight(ticks),
        }
    }

    /// Days since 1970-01-01, and attoseconds of the day.
    pub(super) fn parts(self) -> (i128, i128) {
        (self.days, self.attoseconds)
    }

    fn midnight(days: i128) -> Self {
        Self { days, attoseconds: 0 }
    }

    /// The tick of `unit` that begins exactly then, if any.
    fn ticks(self, unit: TimeUnit) -> Option<i64> {
        let (year, month, day) = civil_from_days(self.days);
        let whole = self.attoseconds == 0;
        let ticks = match (unit, attoseconds(unit)) {
            (TimeUnit::Year, _) if whole && (month, day) == (1, 1) => year - 1970,
            (TimeUnit::Month, _) if whole && day == 1 => (year - 1970) * 12 + month - 1,
            (TimeUnit::Day, _) if whole => self.days,
            (TimeUnit::Week, _) if whole && self.days.rem_euclid(7) == 0 => self.days.div_euclid(7),
            (_, Some(length)) if self.attoseconds % length == 0 => {
                self.days.checked_mul(DAY / length)?.checked_add(self.attoseconds / length)?
            }
            _ => return None,
        };
        i64::try_from(ticks).ok().filter(|t| *t != i64::MIN)
    }
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
pub(super) fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day; the inverse of [`days_from_civil`].
pub(super) fn civil_from_days(days: i128) -> (i128, i128, i128) {
    let days = days + 719_468;
    let (era, of_era) = (days.div_euclid(146_097), days.rem_euclid(146_097));
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let day = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (year + era * 400 + i128::from(month <= 2), month, day)
}

/// ISO 8601 of a tick, exactly as precise as its unit; `None` for weeks, NaT, and years without four digits.
pub(super) fn iso(ticks: i64, unit: TimeUnit) -> Option<String> {
    let moment = Moment::of_datetime(ticks, unit.step());
    let (year, month, day) = civil_from_days(moment.days);
    if ticks == i64::MIN || unit == TimeUnit::Week || !(0..=9_999).contains(&year) {
        return None;
    }
    let clock = moment.attoseconds;
    let date = format!("{year:04}-{month:02}-{day:02}");
    let time = format!("{:02}:{:02}:{:02}", clock / HOUR, clock / MINUTE % 60, clock / SECOND % 60);
    let digits = match unit {
        TimeUnit::Year => return Some(format!("{year:04}")),
        TimeUnit::Month => return Some(format!("{year:04}-{month:02}")),
        TimeUnit::Day | TimeUnit::Week => return Some(date),
        TimeUnit::Hour => return Some(format!("{date}T{:02}", clock / HOUR)),
        TimeUnit::Minute => return Some(format!("{date}T{}", time.get(..5).unwrap_or_default())),
        TimeUnit::Second => return Some(format!("{date}T{time}")),
        TimeUnit::Millisecond => 3,
        TimeUnit::Microsecond => 6,
        TimeUnit::Nanosecond => 9,
        TimeUnit::Picosecond => 12,
        TimeUnit::Femtosecond => 15,
        TimeUnit::Attosecond => 18,
    };
    let fraction = format!("{:018}", clock % SECOND);
    Some(format!("{date}T{time}.{}", fraction.get(..digits).unwrap_or_default()))
}

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
    s.0.is_empty().then_some((Moment { days, attoseconds: clock.rem_euclid(DAY) }, unit))
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
