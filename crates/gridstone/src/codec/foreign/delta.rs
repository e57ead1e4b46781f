//! Foreign filter `delta:T[:A]`: the `delta` of numcodecs. Numbers of type T are stored as numbers of type A, by default T:
//!
//! ```text
//! stored[0] = x[0]     stored[i] = x[i] - x[i - 1]
//! ```
//!
//! Integers wrap around, and go between the types modulo a power of two. Floats are subtracted and added one after the
//! other in their type, and must be stored in it; rounding may change their last bits.

use super::filter::ForeignFilter;
use super::number::{Conversion, Kind, Number};
use crate::base::{Error, Result};

const NAME: &str = "delta";

/// The foreign filter `delta`.
#[derive(Debug, Clone, Copy)]
pub struct Delta {
    types: Conversion,
}

impl Delta {
    /// Errors: Schema for floats and integers together, or floats of two widths.
    pub(super) fn new(types: Conversion) -> Result<Self> {
        let float = |number: Number| (number.kind == Kind::Float).then_some(number.width);
        if float(types.of) == float(types.stored) {
            return Ok(Self { types });
        }
        let (of, stored) = (types.of.name(), types.stored.name());
        Err(Error::schema(format!("filter delta cannot store {of} as {stored}; floats are stored in their own type")))
    }

    /// `a + b`, or `a - b`, in the type of the values.
    fn combine(&self, a: u64, b: u64, minus: bool) -> u64 {
        let sign = if minus { -1.0 } else { 1.0 };
        match (self.types.of.kind, self.types.of.width) {
            (Kind::Float, 4) => (f32::from_bits(a as u32) + sign as f32 * f32::from_bits(b as u32)).to_bits().into(),
            (Kind::Float, _) => (f64::from_bits(a) + sign * f64::from_bits(b)).to_bits(),
            _ if minus => a.wrapping_sub(b),
            _ => a.wrapping_add(b),
        }
    }
}

impl ForeignFilter for Delta {
    fn name(&self) -> String {
        format!("delta:{}", self.types.name())
    }

    fn encoded_len_max(&self, len: usize) -> usize {
        self.types.stored_len(len)
    }

    fn encode(&self, input: &[u8]) -> Result<Vec<u8>> {
        let Conversion { of, stored } = self.types;
        let mut out = self.types.stored_place(NAME, input)?;
        let mut before = None;
        for (bytes, place) in input.chunks_exact(of.width).zip(out.chunks_exact_mut(stored.width)) {
            let value = of.integer(bytes);
            stored.put_integer(before.map_or(value, |before| self.combine(value, before, true)), place);
            before = Some(value);
        }
        Ok(out)
    }

    fn decode(&self, input: &[u8], out: &mut [u8]) -> Result<usize> {
        let Conversion { of, stored } = self.types;
        let out = self.types.values_place(NAME, input, out)?;
        let mut before = None;
        for (bytes, place) in input.chunks_exact(stored.width).zip(out.chunks_exact_mut(of.width)) {
            let number = stored.integer(bytes);
            let value = before.map_or(number, |before| self.combine(before, number, false));
            of.put_integer(value, place);
            before = Some(value);
        }
        Ok(out.len())
    }
}

#[cfg(test)]
mod tests {
    use super::super::conformance;
    use super::*;

    fn delta(of: &str, stored: &str) -> Result<Delta> {
        Delta::new(Conversion { of: Number::parse(of)?, stored: Number::parse(stored)? })
    }

    #[test]
    fn conforms() {
        for (of, stored) in [("|u1", "|i1"), ("<i2", "<i2"), (">i4", "<i8"), ("<u8", ">u8"), ("|i1", "<u8")] {
            conformance::check(&delta(of, stored).unwrap());
        }
    }

    #[test]
    fn exact_bytes() {
        let values: Vec<u8> = [1000i32, 998, 1001].iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(delta("<i4", "<i2").unwrap().encode(&values).unwrap(), [0xe8, 3, 0xfe, 0xff, 3, 0]);
        let mut out = [0; 12];
        assert_eq!(delta("<i4", "<i2").unwrap().decode(&[0xe8, 3, 0xfe, 0xff, 3, 0], &mut out).unwrap(), 12);
        assert_eq!(out[..], values);
    }

    #[test]
    fn floats_are_added_in_their_type() {
        for (types, values) in [("<f4", vec![0.5f64, 1.0, -2.25, 1e30]), (">f8", vec![0.1, 0.1, 7.5])] {
            let (filter, number) = (delta(types, types).unwrap(), Number::parse(types).unwrap());
            let mut input = vec![0; values.len() * number.width];
            let places = input.chunks_exact_mut(number.width);
            places.zip(&values).for_each(|(place, value)| number.put_float(*value, place));
            let mut out = input.clone();
            assert_eq!(filter.decode(&filter.encode(&input).unwrap(), &mut out).unwrap(), input.len());
            assert_eq!(out, input);
        }
        assert!(delta("<f4", "<f8").unwrap_err().message().contains("cannot store <f4 as <f8"));
        assert!(delta("<i4", "<f4").is_err());
    }
}
