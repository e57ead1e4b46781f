//! The types of numbers in the parameters of numcodecs' filters, and their bytes.

use super::filter::corrupt;
use crate::base::{Error, Result};
use crate::codec::filter::front;

/// A number as 64 bits: an integer modulo 2^64, or the bits of a float64.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Unsigned,
    Signed,
    Float,
}

/// A type of numbers, as NumPy writes it: byte order, kind, width. `"<i4"`, `"|u1"`, `">f8"`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Number {
    pub(super) kind: Kind,
    pub(super) width: usize,
    big: bool,
}

impl Number {
    /// Errors: Schema for another type than integers of 1, 2, 4, 8 bytes and floats of 4 and 8.
    pub(super) fn parse(text: &str) -> Result<Self> {
        let unknown = || {
            Error::schema(format!(
                "the type {text:?} of a foreign filter is not known; known are integers and floats such as <i2, >u4, |u1, <f8"
            ))
        };
        let mut chars = text.chars();
        let (order, kind) = (chars.next(), chars.next());
        let width: usize = match chars.as_str() {
            "1" => 1,
            "2" => 2,
            "4" => 4,
            "8" => 8,
            _ => return Err(unknown()),
        };
        let kind = match kind {
            Some('u') => Kind::Unsigned,
            Some('i') => Kind::Signed,
            Some('f') if width >= 4 => Kind::Float,
            _ => return Err(unknown()),
        };
        match order {
            Some('|') if width == 1 => Ok(Self { kind, width, big: false }),
            Some('<') => Ok(Self { kind, width, big: false }),
            Some('>') => Ok(Self { kind, width, big: width > 1 }),
            _ => Err(unknown()),
        }
    }

    /// The type as `parse` reads it.
    pub(super) fn name(&self) -> String {
        let order = match self {
            Self { width: 1, .. } => '|',
            Self { big: true, .. } => '>',
            _ => '<',
        };
        let kind = match self.kind {
            Kind::Unsigned => 'u',
            Kind::Signed => 'i',
            Kind::Float => 'f',
        };
        format!("{order}{kind}{}", self.width)
    }

    /// The integer in `bytes`, one number, modulo 2^64; of a float, its bits.
    pub(super) fn integer(&self, bytes: &[u8]) -> u64 {
        let push = |number: u64, byte: &u8| number << 8 | u64::from(*byte);
        let bits = match self.big {
            true => bytes.iter().fold(0, push),
            false => bytes.iter().rev().fold(0, push),
        };
        let unused = 64 - 8 * self.width as u32;
        match self.kind {
            Kind::Signed => ((bits << unused) as i64 >> unused) as u64,
            _ => bits,
        }
    }

    /// Writes the low bytes of `integer` to `bytes`, one number.
    pub(super) fn put_integer(&self, integer: u64, bytes: &mut [u8]) {
        let places: &mut dyn Iterator<Item = &mut u8> = match self.big {
            true => &mut bytes.iter_mut().rev(),
            false => &mut bytes.iter_mut(),
        };
        places.zip(integer.to_le_bytes()).for_each(|(place, byte)| *place = byte);
    }

    /// The number in `bytes` as a float64.
    pub(super) fn float(&self, bytes: &[u8]) -> f64 {
        let bits = self.integer(bytes);
        match (self.kind, self.width) {
            (Kind::Float, 4) => f32::from_bits(bits as u32).into(),
            (Kind::Float, _) => f64::from_bits(bits),
            (Kind::Signed, _) => bits as i64 as f64,
            (Kind::Unsigned, _) => bits as f64,
        }
    }

    /// Writes `number` to `bytes`: an integer is cut to a whole number and to the limits of its type.
    pub(super) fn put_float(&self, number: f64, bytes: &mut [u8]) {
        let bits = match (self.kind, self.width) {
            (Kind::Float, 4) => (number as f32).to_bits().into(),
            (Kind::Float, _) => number.to_bits(),
            (Kind::Signed, 1) => number as i8 as u64,
            (Kind::Signed, 2) => number as i16 as u64,
            (Kind::Signed, 4) => number as i32 as u64,
            (Kind::Signed, _) => number as i64 as u64,
            (Kind::Unsigned, 1) => (number as u8).into(),
            (Kind::Unsigned, 2) => (number as u16).into(),
            (Kind::Unsigned, 4) => (number as u32).into(),
            (Kind::Unsigned, _) => number as u64,
        };
        self.put_integer(bits, bytes);
    }
}

/// The types of the values of a chunk, and of the numbers that they are stored as.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Conversion {
    pub(super) of: Number,
    pub(super) stored: Number,
}

impl Conversion {
    /// The types as parameters; the second is left out where it is the first.
    pub(super) fn name(&self) -> String {
        match self.of == self.stored {
            true => self.of.name(),
            false => format!("{}:{}", self.of.name(), self.stored.name()),
        }
    }

    /// The stored bytes of `len` bytes of values.
    pub(super) fn stored_len(&self, len: usize) -> usize {
        len.div_ceil(self.of.width).saturating_mul(self.stored.width)
    }

    /// The zeroed place of what `filter` stores for `input`; an Input error unless that is whole numbers.
    pub(super) fn stored_place(&self, filter: &str, input: &[u8]) -> Result<Vec<u8>> {
        if input.len().is_multiple_of(self.of.width) {
            return Ok(vec![0; self.stored_len(input.len())]);
        }
        let (len, of) = (input.len(), self.of.name());
        Err(Error::input(format!("filter {filter} needs whole numbers of type {of}, found {len} bytes")))
    }

    /// The front of `out` that takes the values of `stored`; a Corruption error of `filter` unless that is whole numbers.
    pub(super) fn values_place<'a>(&self, filter: &str, stored: &[u8], out: &'a mut [u8]) -> Result<&'a mut [u8]> {
        if !stored.len().is_multiple_of(self.stored.width) {
            let message = format!("{} bytes are no whole numbers of type {}", stored.len(), self.stored.name());
            return Err(corrupt(filter, message));
        }
        front(filter, out, (stored.len() / self.stored.width).saturating_mul(self.of.width))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_canonical() {
        for (text, name) in
            [("<i4", "<i4"), (">u8", ">u8"), ("|u1", "|u1"), ("<i1", "|i1"), (">u1", "|u1"), (">f4", ">f4")]
        {
            assert_eq!(Number::parse(text).unwrap().name(), name);
            assert_eq!(Number::parse(name).unwrap(), Number::parse(text).unwrap());
        }
        for bad in ["", "<", "i4", "<f2", "<i3", "|i4", "<i44", "=i4", "<M8", "<c8", "é"] {
            assert!(Number::parse(bad).unwrap_err().message().contains("known are"), "{bad}");
        }
    }

    #[test]
    fn numbers_come_back() {
        let (mut bytes, fits) = ([0; 8], |number: f64| number == 200.0);
        for text in ["|i1", "|u1", "<i2", ">u2", ">i4", "<u4", "<i8", ">u8", "<f4", ">f8"] {
            let number = Number::parse(text).unwrap();
            let place = &mut bytes[..number.width];
            for (value, found) in [(-5.0, -5.0), (3.0, 3.0), (200.0, 200.0)] {
                number.put_float(value, place);
                let wanted = match number.kind {
                    Kind::Unsigned if value < 0.0 => 0.0,
                    Kind::Signed if number.width == 1 && fits(value) => 127.0,
                    _ => found,
                };
                assert_eq!(number.float(place), wanted, "{text} {value}");
            }
            number.put_integer(0x1122_3344_5566_7788, place);
            assert_eq!(place[0], if text.starts_with('>') { 0x88 - 0x11 * (number.width as u8 - 1) } else { 0x88 });
        }
    }
}
