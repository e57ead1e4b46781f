//! Datatypes of dimensions and attributes, and their names on disk and in messages.

use crate::base::{Element, Error, Result};
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
    Float32,
    Float64,
    /// Signed 64-bit ticks since 1970-01-01; the least value is NaT.
    Datetime(TimeUnit),
    /// Signed 64-bit ticks; the least value is NaT.
    Timedelta(TimeUnit),
    /// Variable-length UTF-8.
    String,
    /// Variable-length bytes.
    Bytes,
}

const PLAIN: [(Datatype, &str); 13] = [
    (Datatype::Bool, "bool"),
    (Datatype::Int8, "int8"),
    (Datatype::Int16, "int16"),
    (Datatype::Int32, "int32"),
    (Datatype::Int64, "int64"),
    (Datatype::UInt8, "uint8"),
    (Datatype::UInt16, "uint16"),
    (Datatype::UInt32, "uint32"),
    (Datatype::UInt64, "uint64"),
    (Datatype::Float32, "float32"),
    (Datatype::Float64, "float64"),
    (Datatype::String, "string"),
    (Datatype::Bytes, "bytes"),
];

impl Datatype {
    /// The type named `name` ("int32", "datetime64[us]", "string"); a Schema error lists the names known.
    pub fn parse(name: &str) -> Result<Self> {
        if let Some((datatype, _)) = PLAIN.iter().find(|(_, n)| *n == name) {
            return Ok(*datatype);
        }
        let timed = |prefix: &str| {
            let unit = name.strip_prefix(prefix)?.strip_suffix(']')?;
            UNITS.iter().find(|(_, n)| *n == unit).map(|(u, _)| *u)
        };
        if let Some(unit) = timed("datetime64[") {
            return Ok(Self::Datetime(unit));
        }
        if let Some(unit) = timed("timedelta64[") {
            return Ok(Self::Timedelta(unit));
        }
        let known: Vec<&str> = PLAIN.iter().map(|(_, n)| *n).collect();
        Err(Error::schema(format!(
            "unknown datatype {name:?}; known are {}, datetime64[unit] and timedelta64[unit] with a unit from Y to as",
            known.join(", ")
        )))
    }

    /// Bytes per value, `None` for variable-length types.
    pub fn width(self) -> Option<usize> {
        (!self.is_var()).then(|| self.element().size())
    }

    /// Whether values vary in length.
    pub fn is_var(self) -> bool {
        matches!(self, Self::String | Self::Bytes)
    }

    /// Whether this is a float type.
    pub fn is_float(self) -> bool {
        matches!(self, Self::Float32 | Self::Float64)
    }

    /// Whether this counts time (and so has a NaT).
    pub fn is_time(self) -> bool {
        matches!(self, Self::Datetime(_) | Self::Timedelta(_))
    }

    /// Whether a dimension may have this type in a dense (`float` false) or sparse (`float` true) array.
    pub fn can_be_dimension(self, float: bool) -> bool {
        !self.is_var() && self != Self::Bool && (float || !self.is_float())
    }

    /// What filters may know of it; single bytes for variable-length types.
    pub fn element(self) -> Element {
        match self {
            Self::Bool | Self::UInt8 | Self::String | Self::Bytes => Element::BYTE,
            Self::Int8 => Element::signed(1),
            Self::Int16 => Element::signed(2),
            Self::Int32 => Element::signed(4),
            Self::Int64 | Self::Datetime(_) | Self::Timedelta(_) => Element::signed(8),
            Self::UInt16 => Element::unsigned(2),
            Self::UInt32 => Element::unsigned(4),
            Self::UInt64 => Element::unsigned(8),
            Self::Float32 => Element::float(4),
            Self::Float64 => Element::float(8),
        }
    }
}

impl fmt::Display for Datatype {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let unit_name = |unit: &TimeUnit| UNITS.iter().find(|(u, _)| u == unit).map_or("?", |(_, n)| n);
        match self {
            Self::Datetime(unit) => write!(f, "datetime64[{}]", unit_name(unit)),
            Self::Timedelta(unit) => write!(f, "timedelta64[{}]", unit_name(unit)),
            plain => f.write_str(PLAIN.iter().find(|(d, _)| d == plain).map_or("?", |(_, n)| n)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_parses_back() {
        let timed = UNITS.iter().flat_map(|(u, _)| [Datatype::Datetime(*u), Datatype::Timedelta(*u)]);
        for datatype in PLAIN.iter().map(|(d, _)| *d).chain(timed) {
            assert_eq!(Datatype::parse(&datatype.to_string()).unwrap(), datatype);
        }
        assert!(Datatype::parse("int128").unwrap_err().message().contains("uint64"));
        assert!(Datatype::parse("datetime64[]").is_err());
    }
}
