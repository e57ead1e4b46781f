//! Values of one type as those of another, if nothing is lost by it.

use gridstone::schema::calendar::Moment;
use gridstone::schema::{Datatype, TimeStep, TimeUnit};

/// A number of any type.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Number {
    Whole(i128),
    Float(f64),
}

impl std::fmt::Display for Number {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Whole(number) => number.fmt(f),
            Self::Float(number) => number.fmt(f),
        }
    }
}

/// The type of numbers of a format of Arrow.
pub(super) fn number_type(format: &str) -> Option<Datatype> {
    Some(match format {
        "c" => Datatype::Int8,
        "C" => Datatype::UInt8,
        "s" => Datatype::Int16,
        "S" => Datatype::UInt16,
        "i" => Datatype::Int32,
        "I" => Datatype::UInt32,
        "l" => Datatype::Int64,
        "L" => Datatype::UInt64,
        "e" => Datatype::Float16,
        "f" => Datatype::Float32,
        "g" => Datatype::Float64,
        _ => return None,
    })
}

/// The number that bytes are; `None` for what is none, and for float16, which is not converted.
pub(super) fn number(datatype: Datatype, bytes: &[u8]) -> Option<Number> {
    Some(match datatype {
        Datatype::Int8 => Number::Whole(i8::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::UInt8 => Number::Whole(u8::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::Int16 => Number::Whole(i16::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::UInt16 => Number::Whole(u16::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::Int32 => Number::Whole(i32::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::UInt32 => Number::Whole(u32::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::Int64 => Number::Whole(i64::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::UInt64 => Number::Whole(u64::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::Float32 => Number::Float(f32::from_ne_bytes(bytes.try_into().ok()?).into()),
        Datatype::Float64 => Number::Float(f64::from_ne_bytes(bytes.try_into().ok()?)),
        _ => return None,
    })
}

/// The bytes of a number in another type; `None` if that cannot hold it. Floats may be rounded to a narrower float.
pub(super) fn put(datatype: Datatype, number: Number, out: &mut Vec<u8>) -> Option<()> {
    let whole = match number {
        Number::Whole(whole) => Some(whole),
        // Beyond that, the cast ends at the least or the greatest number.
        Number::Float(float) if float.trunc() == float && float.abs() < 1e30 => Some(float as i128),
        Number::Float(_) => None,
    };
    match datatype {
        Datatype::Int8 => out.extend_from_slice(&i8::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::UInt8 => out.extend_from_slice(&u8::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::Int16 => out.extend_from_slice(&i16::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::UInt16 => out.extend_from_slice(&u16::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::Int32 => out.extend_from_slice(&i32::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::UInt32 => out.extend_from_slice(&u32::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::Int64 => out.extend_from_slice(&i64::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::UInt64 => out.extend_from_slice(&u64::try_from(whole?).ok()?.to_ne_bytes()),
        Datatype::Float32 => {
            let made = match number {
                Number::Whole(whole) => Some(whole as f32).filter(|made| *made as i128 == whole),
                Number::Float(float) => Some(float as f32).filter(|made| made.is_infinite() == float.is_infinite()),
            };
            out.extend_from_slice(&made?.to_ne_bytes());
        }
        Datatype::Float64 => {
            let made = match number {
                Number::Whole(whole) => Some(whole as f64).filter(|made| *made as i128 == whole),
                Number::Float(float) => Some(float),
            };
            out.extend_from_slice(&made?.to_ne_bytes());
        }
        _ => return None,
    }
    Some(())
}

/// Times as Arrow counts them: bytes of a tick, the step, and whether they are spans. `None`: the format is none of times.
pub(super) fn time_type(format: &str) -> Option<(usize, TimeUnit, bool)> {
    let unit = |letter: &str| {
        Some(match letter {
            "s" => TimeUnit::Second,
            "m" => TimeUnit::Millisecond,
            "u" => TimeUnit::Microsecond,
            "n" => TimeUnit::Nanosecond,
            _ => return None,
        })
    };
    match format {
        "tdD" => return Some((4, TimeUnit::Day, false)),
        "tdm" => return Some((8, TimeUnit::Millisecond, false)),
        _ => {}
    }
    if let Some(letter) = format.strip_prefix("tD") {
        return Some((8, unit(letter)?, true));
    }
    // A zone says how the instants are shown, and they are counted in UTC.
    let (letter, _zone) = format.strip_prefix("ts")?.split_once(':')?;
    Some((8, unit(letter)?, false))
}

/// The tick of a time in another step; `None` if that has none there.
pub(super) fn tick(ticks: i64, (from, to): (TimeStep, TimeStep), is_span: bool) -> Option<i64> {
    if ticks == i64::MIN || from == to {
        return Some(ticks);
    }
    let moment = if is_span { Moment::of_timedelta(ticks, from) } else { Moment::of_datetime(ticks, from) };
    let units = moment.ticks(to.unit())?;
    let count = i64::from(to.count());
    (units % count == 0).then_some(units / count)
}
