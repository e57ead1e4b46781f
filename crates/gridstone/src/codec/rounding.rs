//! Bit rounding: floats that keep only some bits of their mantissa, so that filters compress them further.
//!
//! It is lossy, and so no filter of a pipeline: values are rounded once, before statistics and filters, and a reader
//! needs no information about it. It rounds to nearest, ties to even, as in Klöwer, Razinger, Dominguez, Düben and
//! Palmer, "Compressing atmospheric data into its real information content", Nature Computational Science 1 (2021). NaN
//! and infinities stay unchanged, bit for bit; a value that would become infinite keeps its exponent and is truncated
//! instead. So rounding rounded values to as many bits or more changes nothing.

use crate::base::{Element, ElementKind, Error, Result};
use std::fmt;

/// How many bits of the mantissa are kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Rounding {
    keep_bits: u8,
}

/// Bits of the mantissa of a float of `width` bytes.
fn mantissa_bits(width: u8) -> u8 {
    match width {
        2 => 10,
        4 => 23,
        _ => 52,
    }
}

impl Rounding {
    /// Parses the rounding in `text`, `"bitround:7"`; `None` if it names something else, a Schema error if the number
    /// is missing or wrong.
    pub fn parse(text: &str) -> Result<Option<Self>> {
        let (name, bits) = text.split_once(':').map_or((text, None), |(name, bits)| (name, Some(bits)));
        if name != "bitround" {
            return Ok(None);
        }
        let keep_bits = bits.and_then(|bits| bits.parse().ok()).filter(|bits| (1..52).contains(bits));
        match keep_bits {
            Some(keep_bits) => Ok(Some(Self { keep_bits })),
            None => Err(Error::schema(format!(
                "bitround needs the bits of the mantissa to keep, 1 to 9 of float16, 1 to 22 of float32, 1 to 51 of float64, \
                 as in bitround:7; found {text:?}"
            ))),
        }
    }

    /// A Schema error unless values of `element` can be rounded so.
    pub fn check(self, element: Element) -> Result<()> {
        if element.kind != ElementKind::Float {
            return Err(Error::schema(format!("{self} rounds floats, and these are none")));
        }
        let bits = mantissa_bits(element.width);
        if self.keep_bits < bits {
            return Ok(());
        }
        Err(Error::schema(format!(
            "{self} keeps all there is: the mantissa of a float of {} bytes has {bits} bits; give 1 to {}",
            element.width,
            bits - 1
        )))
    }

    /// Rounds little-endian values of `element`; values other than floats are unchanged.
    pub fn round(self, values: &mut [u8], element: Element) {
        macro_rules! rounded {
            ($t:ty, $mantissa:expr) => {{
                let dropped: u32 = $mantissa - u32::from(self.keep_bits).min($mantissa);
                if dropped == 0 {
                    return;
                }
                let exponent: $t = (<$t>::MAX >> 1) & !((1 << $mantissa) - 1);
                let (half, mask): ($t, $t) = ((1 << (dropped - 1)) - 1, !((1 << dropped) - 1));
                for word in values.as_chunks_mut::<{ size_of::<$t>() }>().0 {
                    let bits = <$t>::from_le_bytes(*word);
                    let near = bits.wrapping_add(half + (bits >> dropped & 1)) & mask;
                    let kept = if bits & exponent == exponent {
                        bits
                    } else if near & exponent == exponent {
                        bits & mask
                    } else {
                        near
                    };
                    *word = kept.to_le_bytes();
                }
            }};
        }
        match (element.kind, element.width) {
            (ElementKind::Float, 2) => rounded!(u16, 10),
            (ElementKind::Float, 4) => rounded!(u32, 23),
            (ElementKind::Float, _) => rounded!(u64, 52),
            _ => {}
        }
    }
}

impl fmt::Display for Rounding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "bitround:{}", self.keep_bits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use half::f16;
    use proptest::prelude::*;

    fn keeping(bits: u8) -> Rounding {
        Rounding::parse(&format!("bitround:{bits}")).unwrap().unwrap()
    }

    fn single(bits: u8, value: f32) -> f32 {
        let mut bytes = value.to_le_bytes();
        keeping(bits).round(&mut bytes, Element::float(4));
        f32::from_le_bytes(bytes)
    }

    /// The nearest float with so many bits, by arithmetic instead of bits: the result is a whole number of steps.
    fn by_arithmetic(bits: u8, value: f64) -> f64 {
        if value == 0.0 || !value.is_finite() || value.abs() < f64::MIN_POSITIVE {
            return value;
        }
        let exponent = (value.to_bits() >> 52 & 0x7ff) as i32 - 1_023;
        let step = 2f64.powi(exponent - i32::from(bits));
        (value / step).round_ties_even() * step
    }

    #[test]
    fn ties_go_to_even_and_special_values_stay() {
        assert_eq!(single(1, 1.25), 1.0);
        assert_eq!(single(1, 1.75), 2.0);
        assert_eq!(single(2, 1.125), 1.0);
        assert_eq!(single(2, 1.375), 1.5);
        assert_eq!(single(2, -1.376), -1.5);
        assert_eq!(single(7, -0.0).to_bits(), (-0.0f32).to_bits());
        assert_eq!(single(3, f32::INFINITY), f32::INFINITY);
        assert_eq!(single(3, f32::NEG_INFINITY), f32::NEG_INFINITY);
        for bits in [0x7f80_0001u32, 0x7fff_ffff, 0xffc0_0001] {
            assert_eq!(single(3, f32::from_bits(bits)).to_bits(), bits, "a NaN keeps its payload");
        }
        assert_eq!(single(3, f32::MAX), f32::from_bits(0x7f70_0000), "the greatest is cut, not infinite");
        assert_eq!(single(3, f32::MIN), -f32::from_bits(0x7f70_0000));
        assert_eq!(single(3, f32::from_bits(1)), 0.0);
    }

    #[test]
    fn what_cannot_be_rounded_so_is_refused() {
        for text in ["bitround", "bitround:", "bitround:0", "bitround:52", "bitround:-1", "bitround:x"] {
            assert!(Rounding::parse(text).unwrap_err().message().contains("bitround:7"), "{text}");
        }
        assert!(Rounding::parse("shuffle").unwrap().is_none());
        assert!(keeping(9).check(Element::float(2)).is_ok() && keeping(10).check(Element::float(2)).is_err());
        assert!(keeping(22).check(Element::float(4)).is_ok() && keeping(23).check(Element::float(4)).is_err());
        assert!(keeping(51).check(Element::float(8)).is_ok());
        assert!(keeping(7).check(Element::signed(4)).unwrap_err().message().contains("floats"));
    }

    #[test]
    fn every_half_is_rounded_to_the_nearest() {
        for keep in 1..10 {
            for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 1_021 } else { 1 }) {
                let value = f16::from_bits(bits);
                let mut bytes = value.to_le_bytes();
                keeping(keep).round(&mut bytes, Element::float(2));
                let found = f16::from_le_bytes(bytes);
                if value.is_nan() {
                    assert_eq!(found.to_bits(), bits);
                } else if f64::from(value).abs() >= 2f64.powi(-14) {
                    let nearest = by_arithmetic(keep, f64::from(value));
                    let wanted =
                        if nearest.is_finite() && nearest.abs() >= 65_536.0 { f64::from(found) } else { nearest };
                    assert_eq!(f64::from(found), wanted, "{value:?} to {keep} bits");
                    assert!(found.is_finite() || value.is_infinite());
                }
            }
        }
    }

    proptest! {
        #[test]
        fn doubles_go_to_the_nearest_and_stay_there(value in any::<f64>(), keep in 1u8..52) {
            let mut bytes = value.to_le_bytes();
            keeping(keep).round(&mut bytes, Element::float(8));
            let found = f64::from_le_bytes(bytes);
            if value.abs() < 1e300 && value.abs() > 1e-290 {
                prop_assert_eq!(found, by_arithmetic(keep, value));
            }
            for more in [keep, 51] {
                let mut again = bytes;
                keeping(more).round(&mut again, Element::float(8));
                prop_assert_eq!(again, bytes);
            }
        }
    }
}
