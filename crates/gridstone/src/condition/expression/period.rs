//! Periods of time: the start of the hour, the week or the month that a time lies in, and parts of its date. By the proleptic
//! Gregorian calendar, in UTC; weeks begin on Monday.

use super::super::time::{self, attoseconds};
use crate::base::{Error, Result};
use crate::schema::calendar::{DAY, HOUR, MINUTE, SECOND, civil_from_days, days_from_civil};
use crate::schema::{Datatype, TimeStep, TimeUnit};

/// Days from a Monday to 1970-01-01, a Thursday.
const AFTER_MONDAY: i128 = 3;

/// What the ticks of a type are cut down to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::condition) enum Period {
    /// Whole multiples of so many ticks, counted from a tick.
    Ticks { length: i128, from: i128 },
    /// Whole multiples of so many months, of ticks of so many attoseconds.
    Months { months: i128, tick: i128 },
    /// Themselves: the period is no longer than a tick.
    Tick,
}

/// A part of a date or time of day.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::condition) enum Part {
    Year,
    Month,
    Day,
    Hour,
    Minute,
    Second,
    /// From 0, Monday.
    DayOfWeek,
}

/// How long a period is.
enum Length {
    Attoseconds(i128),
    Weeks(i128),
    Months(i128),
}

fn unknown(text: &str) -> Error {
    Error::input(format!(
        "{text:?} is no period; write a whole number and a unit, such as '15m', '1h', '1D', '1W', '1M' or '1Y' (ns us ms s m h D W M Y)"
    ))
}

fn length_of(text: &str) -> Result<Length> {
    let trimmed = text.trim();
    let digits = trimmed.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = trimmed.split_at_checked(digits).ok_or_else(|| unknown(text))?;
    let count: i128 = if number.is_empty() { 1 } else { number.parse().map_err(|_| unknown(text))? };
    if count == 0 || count > 1 << 40 {
        return Err(unknown(text));
    }
    Ok(match unit.trim() {
        "ns" => Length::Attoseconds(count * (SECOND / 1_000_000_000)),
        "us" => Length::Attoseconds(count * (SECOND / 1_000_000)),
        "ms" => Length::Attoseconds(count * (SECOND / 1_000)),
        "s" | "second" | "seconds" => Length::Attoseconds(count * SECOND),
        "m" | "min" | "minute" | "minutes" => Length::Attoseconds(count * MINUTE),
        "h" | "H" | "hour" | "hours" => Length::Attoseconds(count * HOUR),
        "D" | "d" | "day" | "days" => Length::Attoseconds(count * DAY),
        "W" | "w" | "week" | "weeks" => Length::Weeks(count),
        "M" | "month" | "months" => Length::Months(count),
        "Q" | "quarter" | "quarters" => Length::Months(count * 3),
        "Y" | "y" | "year" | "years" => Length::Months(count * 12),
        _ => return Err(unknown(text)),
    })
}

/// Attoseconds of a tick; `None`: it is counted in months.
fn tick_of(step: TimeStep) -> Option<i128> {
    let unit = match step.unit() {
        TimeUnit::Year | TimeUnit::Month => return None,
        TimeUnit::Week => 7 * DAY,
        TimeUnit::Day => DAY,
        unit => attoseconds(unit)?,
    };
    unit.checked_mul(i128::from(step.count()))
}

impl Period {
    /// The period of this length, of times of a type.
    ///
    /// # Errors
    /// Input: no period, no times, or one that is no whole number of ticks.
    pub(in crate::condition) fn new(datatype: Datatype, text: &str) -> Result<Self> {
        let (step, dated) = match datatype {
            Datatype::Datetime(step) => (step, true),
            Datatype::Timedelta(step) => (step, false),
            other => return Err(Error::input(format!("periods such as {text:?} are of times, not of {other}"))),
        };
        let wrong = || {
            Error::input(format!(
                "the period {text:?} is no whole number of the steps that {datatype} counts in; give a longer one, or a multiple"
            ))
        };
        match (length_of(text)?, tick_of(step)) {
            (Length::Attoseconds(_) | Length::Weeks(_), None) => Ok(Self::Tick),
            (Length::Attoseconds(length), Some(tick)) => match length {
                _ if length <= tick => Ok(Self::Tick),
                _ if length % tick == 0 => Ok(Self::Ticks { length: length / tick, from: 0 }),
                _ => Err(wrong()),
            },
            (Length::Weeks(weeks), Some(tick)) => {
                let (length, from) = (weeks * 7 * DAY, if dated { -AFTER_MONDAY * DAY } else { 0 });
                if length % tick != 0 || from % tick != 0 {
                    return Err(wrong());
                }
                Ok(Self::Ticks { length: length / tick, from: from / tick })
            }
            (Length::Months(_), _) if !dated && step.unit() != TimeUnit::Year && step.unit() != TimeUnit::Month => Err(
                Error::input(format!("months such as {text:?} have no fixed length, and {datatype} has no calendar")),
            ),
            (Length::Months(months), None) => {
                let own = i128::from(step.count()) * if step.unit() == TimeUnit::Year { 12 } else { 1 };
                match months {
                    _ if months <= own => Ok(Self::Tick),
                    _ if months % own == 0 => Ok(Self::Ticks { length: months / own, from: 0 }),
                    _ => Err(wrong()),
                }
            }
            (Length::Months(months), Some(tick)) if DAY % tick == 0 => Ok(Self::Months { months, tick }),
            (Length::Months(_), Some(_)) => Err(wrong()),
        }
    }

    /// The tick at which the period of a tick begins; `None` if that is before the first one.
    pub(in crate::condition) fn start(self, tick: i64) -> Option<i64> {
        let at = i128::from(tick);
        let start = match self {
            Self::Tick => at,
            Self::Ticks { length, from } => (at - from).div_euclid(length) * length + from,
            Self::Months { months, tick } => {
                let per_day = DAY / tick;
                let (year, month, _) = civil_from_days(at.div_euclid(per_day));
                let first = (year * 12 + month - 1).div_euclid(months) * months;
                days_from_civil(first.div_euclid(12), first.rem_euclid(12) + 1, 1) * per_day
            }
        };
        i64::try_from(start).ok().filter(|start| *start != i64::MIN)
    }
}

impl Part {
    /// The part of this name.
    pub(in crate::condition) fn named(name: &str) -> Option<Self> {
        Some(match name {
            "year" => Self::Year,
            "month" => Self::Month,
            "day" => Self::Day,
            "hour" => Self::Hour,
            "minute" => Self::Minute,
            "second" => Self::Second,
            "dayofweek" => Self::DayOfWeek,
            _ => return None,
        })
    }

    /// The part of a tick of a datetime.
    pub(in crate::condition) fn of(self, tick: i64, step: TimeStep) -> i64 {
        let (days, clock) = time::Moment::of_datetime(tick, step).parts();
        let (year, month, day) = civil_from_days(days);
        let part = match self {
            Self::Year => year,
            Self::Month => month,
            Self::Day => day,
            Self::Hour => clock / HOUR,
            Self::Minute => clock / MINUTE % 60,
            Self::Second => clock / SECOND % 60,
            Self::DayOfWeek => (days + AFTER_MONDAY).rem_euclid(7),
        };
        i64::try_from(part).unwrap_or(i64::MAX)
    }
}
