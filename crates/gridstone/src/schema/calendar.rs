//! Moments: ticks of any unit on one exact scale, and the dates that they are.
//!
//! A [`Moment`] is whole days and attoseconds, so every tick of every unit of NumPy has one, including a 64-bit count
//! of years. Months and years have no fixed number of days, so spans of them are another kind.

use super::{TimeStep, TimeUnit};

/// Attoseconds of an hour.
pub const HOUR: i128 = 60 * MINUTE;
/// Attoseconds of a day.
pub const DAY: i128 = 24 * HOUR;
/// Attoseconds of a minute.
pub const MINUTE: i128 = 60 * SECOND;
/// Attoseconds of a second.
pub const SECOND: i128 = 1_000_000_000_000_000_000;

/// Days since 1970-01-01 (for a span: in total) and attoseconds of the day. For spans in months: months, and 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Moment {
    days: i128,
    attoseconds: i128,
}

/// Attoseconds per tick, for units that divide a day.
pub fn attoseconds(unit: TimeUnit) -> Option<i128> {
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
pub fn in_months(unit: TimeUnit) -> bool {
    matches!(unit, TimeUnit::Year | TimeUnit::Month)
}

impl Moment {
    /// The instant at which the tick `ticks` of a datetime in this step begins.
    pub fn of_datetime(ticks: i64, step: TimeStep) -> Self {
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
    pub fn of_timedelta(ticks: i64, step: TimeStep) -> Self {
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

    /// The moment of so many attoseconds of a day.
    pub fn new(days: i128, attoseconds: i128) -> Self {
        Self { days, attoseconds }
    }

    /// Days since 1970-01-01, and attoseconds of the day.
    pub fn parts(self) -> (i128, i128) {
        (self.days, self.attoseconds)
    }

    /// The start of a day.
    pub fn midnight(days: i128) -> Self {
        Self { days, attoseconds: 0 }
    }

    /// The tick of `unit` that begins exactly then, if any.
    pub fn ticks(self, unit: TimeUnit) -> Option<i64> {
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

    /// The moment one attosecond earlier.
    #[must_use]
    pub fn earlier(self) -> Self {
        match self.attoseconds {
            0 => Self { days: self.days - 1, attoseconds: DAY - 1 },
            attoseconds => Self { attoseconds: attoseconds - 1, ..self },
        }
    }

    /// The moment one unit later; of months and years from the first day of one.
    #[must_use]
    pub fn next(self, unit: TimeUnit) -> Self {
        let (year, month, _) = civil_from_days(self.days);
        match (unit, attoseconds(unit)) {
            (TimeUnit::Year, _) => Self::midnight(days_from_civil(year + 1, 1, 1)),
            (TimeUnit::Month, _) if month == 12 => Self::midnight(days_from_civil(year + 1, 1, 1)),
            (TimeUnit::Month, _) => Self::midnight(days_from_civil(year, month + 1, 1)),
            (TimeUnit::Week, _) => Self { days: self.days + 7, ..self },
            (_, None) => Self { days: self.days + 1, ..self },
            (_, Some(length)) => {
                let attoseconds = self.attoseconds + length;
                Self { days: self.days + attoseconds / DAY, attoseconds: attoseconds % DAY }
            }
        }
    }

    /// The last tick of a datetime that is not after it, at most as large as 128 bits hold.
    pub fn datetime_at(self, step: TimeStep) -> i128 {
        let (year, month, _) = civil_from_days(self.days);
        match step.unit() {
            TimeUnit::Year => (year - 1970).div_euclid(i128::from(step.count())),
            TimeUnit::Month => ((year - 1970) * 12 + month - 1).div_euclid(i128::from(step.count())),
            _ => self.units(step.unit()).div_euclid(i128::from(step.count())),
        }
    }

    /// The last tick of a timedelta that is not longer, at most as large as 128 bits hold.
    pub fn timedelta_at(self, step: TimeStep) -> i128 {
        let units = match step.unit() {
            TimeUnit::Year => self.days.div_euclid(12),
            unit => self.units(unit),
        };
        units.div_euclid(i128::from(step.count()))
    }

    /// Whole units of a fixed length; months of a span in months are its days.
    fn units(self, unit: TimeUnit) -> i128 {
        match (unit, attoseconds(unit)) {
            (TimeUnit::Week, _) => self.days.div_euclid(7),
            (_, None) => self.days,
            (_, Some(length)) => self.days.saturating_mul(DAY / length).saturating_add(self.attoseconds / length),
        }
    }

    /// ISO 8601, as precise as a unit is.
    fn written(self, unit: TimeUnit) -> String {
        let (year, month, day) = civil_from_days(self.days);
        let clock = self.attoseconds;
        let sign = if year < 0 { "-" } else { "" };
        let year = format!("{sign}{:04}", year.unsigned_abs());
        let date = format!("{year}-{month:02}-{day:02}");
        let time = format!("{:02}:{:02}:{:02}", clock / HOUR, clock / MINUTE % 60, clock / SECOND % 60);
        let digits = match unit {
            TimeUnit::Year => return year,
            TimeUnit::Month => return format!("{year}-{month:02}"),
            TimeUnit::Day | TimeUnit::Week => return date,
            TimeUnit::Hour => return format!("{date}T{:02}", clock / HOUR),
            TimeUnit::Minute => return format!("{date}T{}", time.get(..5).unwrap_or_default()),
            TimeUnit::Second => return format!("{date}T{time}"),
            TimeUnit::Millisecond => 3,
            TimeUnit::Microsecond => 6,
            TimeUnit::Nanosecond => 9,
            TimeUnit::Picosecond => 12,
            TimeUnit::Femtosecond => 15,
            TimeUnit::Attosecond => 18,
        };
        let fraction = format!("{:018}", clock % SECOND);
        format!("{date}T{time}.{}", fraction.get(..digits).unwrap_or_default())
    }
}

/// Days from 1970-01-01 to a day of the proleptic Gregorian calendar (Howard Hinnant, "chrono-compatible low-level date
/// algorithms").
pub fn days_from_civil(year: i128, month: i128, day: i128) -> i128 {
    let year = if month <= 2 { year - 1 } else { year };
    let (era, of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    era * 146_097 + of_era * 365 + of_era / 4 - of_era / 100 + of_year - 719_468
}

/// Year, month and day; the inverse of [`days_from_civil`].
pub fn civil_from_days(days: i128) -> (i128, i128, i128) {
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
pub fn iso(ticks: i64, unit: TimeUnit) -> Option<String> {
    let moment = Moment::of_datetime(ticks, unit.step());
    let (year, _, _) = civil_from_days(moment.days);
    let is_plain = ticks != i64::MIN && unit != TimeUnit::Week && (0..=9_999).contains(&year);
    is_plain.then(|| moment.written(unit))
}

/// The tick of a datetime as NumPy writes it: a date, with as much of a time of day as the unit has.
pub fn date_text(ticks: i64, step: TimeStep) -> String {
    if ticks == i64::MIN { "NaT".to_owned() } else { Moment::of_datetime(ticks, step).written(step.unit()) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tick_is_written_as_numpy_writes_it() {
        let written = |ticks, unit: TimeUnit| date_text(ticks, unit.step());
        assert_eq!(written(1_606_798_185, TimeUnit::Second), "2020-12-01T04:49:45");
        assert_eq!(written(-1, TimeUnit::Nanosecond), "1969-12-31T23:59:59.999999999");
        assert_eq!(written(2, TimeUnit::Week), "1970-01-15");
        assert_eq!(written(-1_971, TimeUnit::Year), "-0001");
        assert_eq!(written(10_030, TimeUnit::Year), "12000");
        assert_eq!(written(5, TimeUnit::Month), "1970-06");
        assert_eq!(written(i64::MIN, TimeUnit::Day), "NaT");
        assert_eq!(written(i64::MAX, TimeUnit::Second), "292277026596-12-04T15:30:07");
        let quarters = TimeStep::new(TimeUnit::Hour, 6).unwrap();
        assert_eq!(date_text(3, quarters), "1970-01-01T18");
        assert_eq!(iso(2, TimeUnit::Week), None);
    }
}
