//! Dates, times and lengths of time in the notation of people: ISO 8601, and a number with a unit.
//!
//! A date or time is a period of its last unit: `2026-03` is a month, `2026-03-01T06` an hour. As a low end it is its first
//! instant, as a high end its last.

use super::calendar::{DAY, HOUR, MINUTE, Moment, SECOND, civil_from_days, days_from_civil, in_months};
use super::{Datatype, TimeStep, TimeUnit};
use crate::base::{Error, Result};

/// The ends of a range of ticks, both included: the least tick that is not before what was written, and the greatest that is not after it.
/// The greatest is below the least if no tick lies in it. Both may lie beyond what 64 bits hold.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ticks {
    /// The least tick.
    pub first: i128,
    /// The greatest tick.
    pub last: i128,
    /// Whether the first one begins just where the period does.
    pub is_exact: bool,
}

impl Ticks {
    /// The low end of a box that begins with it, in 64 bits; `None` above all of them. The least number is no time.
    pub fn low(self) -> Option<i64> {
        i64::try_from(self.first.max(i128::from(i64::MIN + 1))).ok()
    }

    /// The high end of a box that ends with it, in 64 bits; `None` below all of them.
    pub fn high(self) -> Option<i64> {
        i64::try_from(self.last.min(i128::from(i64::MAX))).ok().filter(|ticks| *ticks != i64::MIN)
    }
}

/// The ticks of a type of times that a text is: `2026-03-01T06`, `20454 D`, of lengths `90 s`; `None` of any other type, and of a text
/// that is ticks already, as `20454`.
///
/// # Errors
/// Input: it is none of them, or a number of four digits, which is a year as well as ticks.
pub fn ticks(datatype: Datatype, text: &str) -> Result<Option<Ticks>> {
    let (step, is_span) = match datatype {
        Datatype::Datetime(step) => (step, false),
        Datatype::Timedelta(step) => (step, true),
        _ => return Ok(None),
    };
    let text = text.trim();
    if !is_span && text.len() == 4 && text.bytes().all(|byte| byte.is_ascii_digit()) {
        return Err(Error::input(format!(
            "{text:?} is a year, and a number of steps of {datatype}; write the year as '{text}-01' to '{text}-12', the number as '{text} {}'",
            step.unit().step()
        )));
    }
    if text.parse::<i128>().is_ok() {
        return Ok(None);
    }
    let found = if is_span { length(step, text) } else { period(step, text) };
    found.map(Some).map_err(|why| Error::input(format!("it is {datatype}, and {why}")))
}

/// The ticks of a datetime in a written date or time.
fn period(step: TimeStep, text: &str) -> std::result::Result<Ticks, String> {
    let (begin, unit) = match read_ticks(text) {
        Some((i64::MIN, _)) => return Err(no_datetime(text)),
        Some((ticks, unit)) => (Moment::of_datetime(ticks, unit.step()), unit),
        None => read_iso(text).ok_or_else(|| no_datetime(text))?,
    };
    let first = begin.earlier().datetime_at(step).saturating_add(1);
    let (last, is_exact) = (begin.next(unit).earlier().datetime_at(step), begin.datetime_at(step) == first);
    Ok(Ticks { first, last, is_exact })
}

/// The ticks of a timedelta that are just as long as what is written.
fn length(step: TimeStep, text: &str) -> std::result::Result<Ticks, String> {
    let (ticks, unit) = read_ticks(text).filter(|(ticks, _)| *ticks != i64::MIN).ok_or_else(|| no_timedelta(text))?;
    if in_months(step.unit()) != in_months(unit) {
        return Err(format!("{text:?} is of another kind: months and years have no length in days"));
    }
    let moment = Moment::of_timedelta(ticks, unit.step());
    let first = moment.earlier().timedelta_at(step).saturating_add(1);
    let last = moment.timedelta_at(step);
    Ok(Ticks { first, last, is_exact: first == last })
}

/// What to write instead of `text`.
pub fn no_datetime(text: &str) -> String {
    format!(
        "{text:?} is no date or time; write 2024-05-01, 2024-05-01T12:30:15.250, an offset such as Z or +02:00 after"
    )
}

/// What to write instead of `text`.
pub fn no_timedelta(text: &str) -> String {
    format!("{text:?} is no length of time; write a whole number and a unit: '90 s' (Y M W D h m s ms us ns ps fs as)")
}

/// The unit of this name of NumPy.
pub fn unit_named(name: &str) -> Option<TimeUnit> {
    match Datatype::parse(&format!("datetime64[{name}]")) {
        Ok(Datatype::Datetime(step)) if step.count() == 1 => Some(step.unit()),
        _ => None,
    }
}

/// Parses ticks, NaT included.
pub fn ticks_of(text: &str) -> Option<i64> {
    if text == "NaT" { Some(i64::MIN) } else { text.parse().ok() }
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
pub fn read_iso(text: &str) -> Option<(Moment, TimeUnit)> {
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
pub fn read_ticks(text: &str) -> Option<(i64, TimeUnit)> {
    let text = text.trim();
    let end = if text.starts_with("NaT") { 3 } else { text.find(|c: char| c.is_ascii_alphabetic())? };
    let (ticks, unit) = text.split_at_checked(end)?;
    Some((ticks_of(ticks.trim())?, unit_named(unit.trim())?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn of(datatype: &str, text: &str) -> Result<Option<(i128, i128)>> {
        Ok(ticks(Datatype::parse(datatype)?, text)?.map(|ticks| (ticks.first, ticks.last)))
    }

    #[test]
    fn a_written_time_is_a_period() {
        let cases = [
            ("datetime64[D]", "2026-03", (20_513, 20_543)),
            ("datetime64[D]", "2024-02", (19_754, 19_782)),
            ("datetime64[D]", " 2026-03-01 ", (20_513, 20_513)),
            ("datetime64[s]", "1970-01-01T00", (0, 3_599)),
            ("datetime64[s]", "1970-01-01T02+02:00", (0, 3_599)),
            ("datetime64[ms]", "1969-12-31T23:59:59.9", (-100, -100)),
            ("datetime64[us]", "1969-12-31T23:59:59.999", (-1_000, -1)),
            ("datetime64[M]", "2026-12", (683, 683)),
            ("datetime64[Y]", "12026-01", (10_056, 10_056)),
            ("datetime64[W]", "1970-01-01", (0, 0)),
            // A moment within a step: nothing of the step lies in it.
            ("datetime64[D]", "1970-01-02T12", (2, 1)),
            ("datetime64[6h]", "1970-01-01", (0, 3)),
            ("datetime64[6h]", "1970-01-01T07", (2, 1)),
            ("datetime64[h]", "1 D", (24, 47)),
            ("datetime64[D]", "2026 D", (2_026, 2_026)),
            ("datetime64[D]", "-1 M", (-31, -1)),
            ("timedelta64[s]", "90 m", (5_400, 5_400)),
            ("timedelta64[m]", "90 s", (2, 1)),
            ("timedelta64[D]", "-36 h", (-1, -2)),
            ("timedelta64[M]", "2 Y", (24, 24)),
            ("timedelta64[Y]", "6 M", (1, 0)),
        ];
        for (datatype, text, expected) in cases {
            assert_eq!(of(datatype, text).unwrap(), Some(expected), "{datatype} {text}");
        }
    }

    #[test]
    fn ends_beyond_64_bits_take_in_all_that_lies_before_them() {
        let ends = |text: &str| {
            let ticks = ticks(Datatype::parse("datetime64[ns]").unwrap(), text).unwrap().unwrap();
            (ticks.low(), ticks.high())
        };
        assert_eq!(ends("9999-01"), (None, Some(i64::MAX)));
        assert_eq!(ends("-9999-01"), (Some(i64::MIN + 1), None));
        assert_eq!(ends("2262-04"), (Some(9_222_422_400_000_000_000), Some(i64::MAX)));
        assert_eq!(ends("1677-09"), (Some(i64::MIN + 1), Some(-9_222_508_800_000_000_001)));
        let exact = ticks(Datatype::parse("datetime64[as]").unwrap(), "9223372036854775807-01").unwrap().unwrap();
        assert_eq!((exact.low(), exact.high()), (None, Some(i64::MAX)));
    }

    #[test]
    fn ticks_and_other_types_stay_as_they_are() {
        for (datatype, text) in [
            ("datetime64[D]", "20454"),
            ("datetime64[D]", "-2026"),
            ("timedelta64[s]", "2026"),
            ("int32", "2026"),
            ("string", "2026-03"),
        ] {
            assert_eq!(of(datatype, text).unwrap(), None, "{datatype} {text}");
        }
    }

    #[test]
    fn what_is_no_time_is_refused() {
        let cases = [
            ("datetime64[D]", "2026", "is a year, and a number of steps"),
            ("datetime64[D]", "yesterday", "is no date or time"),
            ("datetime64[D]", "2026-02-30", "is no date or time"),
            ("datetime64[D]", "NaT", "is no date or time"),
            ("datetime64[D]", "NaT D", "is no date or time"),
            ("timedelta64[D]", "long", "is no length of time"),
            ("timedelta64[D]", "1 M", "have no length in days"),
        ];
        for (datatype, text, part) in cases {
            let error = of(datatype, text).unwrap_err();
            assert!(error.message().contains(part), "{error}");
        }
    }

    proptest! {
        /// Each tick belongs to the period that it begins in.
        #[test]
        fn periods_follow_each_other(tick in -100_000_i64..100_000, unit in 0..7_usize, count in 1..5_u32) {
            let units = [
                TimeUnit::Year,
                TimeUnit::Month,
                TimeUnit::Week,
                TimeUnit::Day,
                TimeUnit::Hour,
                TimeUnit::Minute,
                TimeUnit::Second,
            ];
            let (unit, step) = (units[unit], TimeStep::new(TimeUnit::Millisecond, 250 * count).unwrap());
            let written = |tick: i64| period(step, &format!("{tick} {}", unit.step())).unwrap();
            let this = written(tick);
            prop_assert_eq!(this.last + 1, written(tick + 1).first);
            let of_unit = |tick| Moment::of_datetime(tick, unit.step());
            for (inside, found) in [(false, this.first - 1), (true, this.first), (true, this.last), (false, this.last + 1)] {
                let begin = Moment::of_datetime(i64::try_from(found).unwrap(), step);
                prop_assert_eq!(begin >= of_unit(tick) && begin < of_unit(tick + 1), inside);
            }
        }
    }
}
