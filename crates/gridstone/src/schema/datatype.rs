//! Datatypes of dimensions and attributes, and their names on disk and in messages.

use super::primitive::too_wide;
use super::{Primitive, VectorShape};
use crate::base::{Element, Error, Result, limits};
use std::fmt;

/// The unit of a datetime or timedelta, as in NumPy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum TimeUnit {
    Year,
    Month,
    Week,
    Day,
    Hour,
    Minute,
    Second,
    Millisecond,
    Microsecond,
    Nanosecond,
    Picosecond,
    Femtosecond,
    Attosecond,
}

/// The greatest number of units in a step.
const STEP_UNITS_MAX: u32 = (1 << 31) - 1;

/// What times of a type are counted in: a unit, or several together, as in NumPy.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TimeStep {
    unit: TimeUnit,
    count: u32,
}

impl TimeStep {
    /// `count` of `unit`; `None` unless that is 1 to 2^31 - 1.
    pub fn new(unit: TimeUnit, count: u32) -> Option<Self> {
        (1..=STEP_UNITS_MAX).contains(&count).then_some(Self { unit, count })
    }

    /// The unit.
    pub fn unit(self) -> TimeUnit {
        self.unit
    }

    /// How many units a step is.
    pub fn count(self) -> u32 {
        self.count
    }

    /// The step named "us", or "6h". A step of one unit has no number.
    fn parse(name: &str) -> Option<Self> {
        let digits = name.bytes().take_while(u8::is_ascii_digit).count();
        let (number, unit) = name.split_at_checked(digits)?;
        let unit = UNITS.iter().find(|(_, n)| *n == unit).map(|(u, _)| *u)?;
        match number {
            "" => Some(unit.step()),
            number => side(number).filter(|count| *count > 1).and_then(|count| Self::new(unit, count)),
        }
    }
}

impl TimeUnit {
    /// A step of one unit.
    pub const fn step(self) -> TimeStep {
        TimeStep { unit: self, count: 1 }
    }
}

impl fmt::Display for TimeStep {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.count > 1 {
            write!(f, "{}", self.count)?;
        }
        f.write_str(UNITS.iter().find(|(u, _)| *u == self.unit).map_or("?", |(_, n)| n))
    }
}

const UNITS: [(TimeUnit, &str); 13] = [
    (TimeUnit::Year, "Y"),
    (TimeUnit::Month, "M"),
    (TimeUnit::Week, "W"),
    (TimeUnit::Day, "D"),
    (TimeUnit::Hour, "h"),
    (TimeUnit::Minute, "m"),
    (TimeUnit::Second, "s"),
    (TimeUnit::Millisecond, "ms"),
    (TimeUnit::Microsecond, "us"),
    (TimeUnit::Nanosecond, "ns"),
    (TimeUnit::Picosecond, "ps"),
    (TimeUnit::Femtosecond, "fs"),
    (TimeUnit::Attosecond, "as"),
];

/// The type of a dimension's coordinates or an attribute's values.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Datatype {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    /// IEEE 754 binary16.
    Float16,
    Float32,
    Float64,
    /// Two float32: the real part, then the imaginary part.
    Complex64,
    /// Two float64.
    Complex128,
    /// Signed 64-bit steps since 1970-01-01; the least value is NaT.
    Datetime(TimeStep),
    /// Signed 64-bit steps; the least value is NaT.
    Timedelta(TimeStep),
    /// Variable-length UTF-8.
    String,
    /// Variable-length bytes.
    Bytes,
    /// This many bytes.
    FixedBytes(u32),
    /// This many values side by side.
    Vector(Primitive, VectorShape),
    /// A list of any number of values.
    List(Primitive),
}

/// How two values of a type are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Sorting {
    /// By their ordered keys (see [`super::key`]): single numbers, booleans and times.
    Keys,
    /// Byte by byte: strings and bytes.
    Bytes,
    /// Not at all: complex numbers, vectors and lists.
    None,
}

const PLAIN: [(Datatype, &str); 16] = [
    (Datatype::Bool, "bool"),
    (Datatype::Int8, "int8"),
    (Datatype::Int16, "int16"),
    (Datatype::Int32, "int32"),
    (Datatype::Int64, "int64"),
    (Datatype::UInt8, "uint8"),
    (Datatype::UInt16, "uint16"),
    (Datatype::UInt32, "uint32"),
    (Datatype::UInt64, "uint64"),
    (Datatype::Float16, "float16"),
    (Datatype::Float32, "float32"),
    (Datatype::Float64, "float64"),
    (Datatype::Complex64, "complex64"),
    (Datatype::Complex128, "complex128"),
    (Datatype::String, "string"),
    (Datatype::Bytes, "bytes"),
];

impl Datatype {
    /// The type named `name` (`int32`, `datetime64[us]`, `bytes[16]`, `float32[2,3]`, `list[int32]`, `string`); a Schema
    /// error lists the names known.
    pub fn parse(name: &str) -> Result<Self> {
        if let Some(found) = single(name) {
            return Ok(found);
        }
        if let Some(inner) = name.strip_prefix("list[").and_then(|rest| rest.strip_suffix(']')) {
            return single(inner).and_then(Primitive::of).map(Self::List).ok_or_else(|| unknown(name));
        }
        let Some((base, sides)) = name.strip_suffix(']').and_then(|rest| rest.rsplit_once('[')) else {
            return Err(unknown(name));
        };
        let sides: Option<Vec<u32>> = sides.split(',').map(side).collect();
        match (base, sides.as_deref(), single(base).and_then(Primitive::of)) {
            ("bytes", Some([len]), _) => Self::fixed_bytes(*len),
            (_, Some(sides), Some(primitive)) => Self::vector(primitive, VectorShape::new(sides)?),
            _ => Err(unknown(name)),
        }
    }

    /// Values of `len` bytes; a Schema error if that is too long.
    pub fn fixed_bytes(len: u32) -> Result<Self> {
        match len {
            0 => Err(Error::schema("bytes[0] has no room for a value; give a length of at least 1")),
            _ if len as usize > limits::CELL_BYTES_MAX => Err(too_wide(&Self::FixedBytes(len).to_string())),
            _ => Ok(Self::FixedBytes(len)),
        }
    }

    /// Vectors of `shape`; a Schema error if these take too many bytes.
    pub fn vector(primitive: Primitive, shape: VectorShape) -> Result<Self> {
        match shape.count().checked_mul(primitive.width()) {
            Some(width) if width <= limits::CELL_BYTES_MAX => Ok(Self::Vector(primitive, shape)),
            _ => Err(too_wide(&Self::Vector(primitive, shape).to_string())),
        }
    }

    /// Bytes per cell, `None` for variable-length types.
    pub fn width(self) -> Option<usize> {
        match self {
            Self::String | Self::Bytes | Self::List(_) => None,
            Self::FixedBytes(len) => Some(len as usize),
            Self::Vector(primitive, shape) => Some(primitive.width() * shape.count()),
            single => Primitive::of(single).map(Primitive::width),
        }
    }

    /// The item size in bytes: values of a variable-length type are whole multiples of it.
    pub fn item_width(self) -> usize {
        if let Self::List(primitive) = self { primitive.width() } else { 1 }
    }

    /// Whether values vary in length.
    pub fn is_var(self) -> bool {
        matches!(self, Self::String | Self::Bytes | Self::List(_))
    }

    /// Whether this is a float type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float16 | Self::Float32 | Self::Float64)
    }

    /// Whether this counts time (and so has a NaT).
    pub fn is_time(self) -> bool {
        matches!(self, Self::Datetime(_) | Self::Timedelta(_))
    }

    /// Whether it consists of booleans, whose bytes are 0 or 1; for all other fixed-width types any bytes are a value.
    pub fn holds_bools(self) -> bool {
        matches!(self, Self::Bool | Self::Vector(Primitive::Bool, _) | Self::List(Primitive::Bool))
    }

    /// How two values are compared.
    pub fn sorting(self) -> Sorting {
        match self {
            Self::String | Self::Bytes | Self::FixedBytes(_) => Sorting::Bytes,
            Self::Complex64 | Self::Complex128 | Self::Vector(..) | Self::List(_) => Sorting::None,
            _ => Sorting::Keys,
        }
    }

    /// Whether a dimension may have this type in a dense (`float` false) or sparse (`float` true) array.
    pub fn can_be_dimension(self, float: bool) -> bool {
        self.sorting() == Sorting::Keys && !matches!(self, Self::Bool | Self::Float16) && (float || !self.is_float())
    }

    /// The element type that filters see: a cell is one or several elements; single bytes for strings and bytes.
    pub fn element(self) -> Element {
        match self {
            Self::Bool | Self::UInt8 | Self::String | Self::Bytes | Self::FixedBytes(_) => Element::BYTE,
            Self::Int8 => Element::signed(1),
            Self::Int16 => Element::signed(2),
            Self::Int32 => Element::signed(4),
            Self::Int64 | Self::Datetime(_) | Self::Timedelta(_) => Element::signed(8),
            Self::UInt16 => Element::unsigned(2),
            Self::UInt32 => Element::unsigned(4),
            Self::UInt64 => Element::unsigned(8),
            Self::Float16 => Element::float(2),
            Self::Float32 | Self::Complex64 => Element::float(4),
            Self::Float64 | Self::Complex128 => Element::float(8),
            Self::Vector(primitive, _) | Self::List(primitive) => primitive.datatype().element(),
        }
    }
}

/// The type of this name, if it has no length, shape or items.
fn single(name: &str) -> Option<Datatype> {
    let timed = |prefix: &str| TimeStep::parse(name.strip_prefix(prefix)?.strip_suffix(']')?);
    let plain = PLAIN.iter().find(|(_, n)| *n == name).map(|(d, _)| *d);
    plain
        .or_else(|| timed("datetime64[").map(Datatype::Datetime))
        .or_else(|| timed("timedelta64[").map(Datatype::Timedelta))
}

/// Parses a length: decimal digits without a leading zero.
fn side(text: &str) -> Option<u32> {
    text.parse().ok().filter(|n: &u32| n.to_string() == text)
}

fn unknown(name: &str) -> Error {
    let known: Vec<&str> = PLAIN.iter().map(|(_, n)| *n).collect();
    Error::schema(format!(
        "unknown datatype {name:?}; known are {}, datetime64[unit] and timedelta64[unit] with a unit from Y to as or several (6h), \
         bytes[length], vectors such as uint8[3] and float32[2,3], and lists such as list[int32]",
        known.join(", ")
    ))
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Datetime(step) => write!(f, "datetime64[{step}]"),
            Self::Timedelta(step) => write!(f, "timedelta64[{step}]"),
            Self::FixedBytes(len) => write!(f, "bytes[{len}]"),
            Self::Vector(primitive, shape) => write!(f, "{primitive}[{shape}]"),
            Self::List(primitive) => write!(f, "list[{primitive}]"),
            plain => f.write_str(PLAIN.iter().find(|(d, _)| d == plain).map_or("?", |(_, n)| n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        let timed = UNITS.iter().flat_map(|(u, _)| [Datatype::Datetime(u.step()), Datatype::Timedelta(u.step())]);
        let steps = [(TimeUnit::Hour, 6), (TimeUnit::Minute, 15), (TimeUnit::Year, STEP_UNITS_MAX)];
        let steps = steps.map(|(unit, count)| Datatype::Datetime(TimeStep::new(unit, count).unwrap()));
        let timed = timed.chain(steps);
        for datatype in PLAIN.iter().map(|(d, _)| *d).chain(timed) {
            assert_eq!(Datatype::parse(&datatype.to_string()).unwrap(), datatype);
            let Some(primitive) = Primitive::of(datatype) else {
                assert!(Datatype::parse(&format!("list[{datatype}]")).is_err());
                continue;
            };
            assert_eq!(primitive.datatype(), datatype);
            assert_eq!(Datatype::parse(&format!("list[{datatype}]")).unwrap(), Datatype::List(primitive));
            for sides in [&[1][..], &[3], &[2, 3], &[1, 2, 1, 4]] {
                let made = Datatype::vector(primitive, VectorShape::new(sides).unwrap()).unwrap();
                assert_eq!(Datatype::parse(&made.to_string()).unwrap(), made);
                let count: u32 = sides.iter().product();
                assert_eq!(made.width(), Some(count as usize * datatype.width().unwrap()));
                assert_eq!(made.element(), datatype.element());
            }
        }
        assert_eq!(Datatype::parse("bytes[16]").unwrap(), Datatype::FixedBytes(16));
        assert_eq!(Datatype::parse("datetime64[us][3]").unwrap().width(), Some(24));
        assert_eq!(Datatype::parse("list[timedelta64[15m]]").unwrap().item_width(), 8);
        assert_eq!(Datatype::parse("complex64[2]").unwrap().width(), Some(16));
    }

    #[test]
    fn names_that_are_none_are_refused() {
        assert!(Datatype::parse("int128").unwrap_err().message().contains("uint64"));
        let bad = [
            "",
            "[",
            "]",
            "[3]",
            "int8[]",
            "int8[0]",
            "int8[03]",
            "int8[+3]",
            "int8[ 3]",
            "int8[3",
            "int8[3,]",
            "int8[1,1,1,1,1]",
            "int8[-1]",
            "int8[3][2]",
            "string[3]",
            "bytes[]",
            "bytes[0]",
            "bytes[2,3]",
            "bytes[65537]",
            "uint8[65537]",
            "float64[8193]",
            "float64[4294967295]",
            "int8[4294967296]",
            "int8[65536,65536]",
            "list[]",
            "list[string]",
            "list[list[int8]]",
            "list[int8[3]]",
            "list[int8][3]",
            "list[bytes[3]]",
            "datetime64[]",
            "datetime64[3]",
            "datetime64[1h]",
            "datetime64[0h]",
            "datetime64[06h]",
            "datetime64[-6h]",
            "datetime64[6 h]",
            "timedelta64[6x]",
            "timedelta64[2147483648h]",
            "list",
        ];
        for name in bad {
            let error = Datatype::parse(name).unwrap_err();
            assert_eq!(error.kind(), crate::base::ErrorKind::Schema, "{name}");
        }
        assert!(Datatype::parse("bytes[65537]").unwrap_err().message().contains("65536"));
    }
}
