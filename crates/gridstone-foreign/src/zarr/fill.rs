//! Fill values: the bytes of a cell that was never written.

use super::base64;
use super::json::{self, shown};
use crate::error::{Error, Result};
use crate::model::ForeignType;
use half::f16;
use serde_json::Value;

/// The longest cell that has a fill value with a byte that is not 0.
const FILL_BYTES_MAX: u32 = 1 << 20;

/// The bytes of a fill value as a cell of `size` bytes is stored. `None`: zero bytes.
///
/// # Errors
/// Unsupported: the type has no such value.
pub(super) fn bytes(datatype: &ForeignType, size: u32, given: &Value) -> Result<Option<Vec<u8>>> {
    if let (ForeignType::Moment { big_endian, .. }, true) = (datatype, given.is_null()) {
        return Ok(Some(ordered(i64::MIN as u64, 8, *big_endian)));
    }
    if given.is_null() || size == 0 {
        return Ok(None);
    }
    let found = value(datatype, given).filter(|bytes| bytes.len() <= size as usize);
    let mut bytes =
        found.ok_or_else(|| Error::unsupported(format!("its fill value is not read: {}", shown(Some(given)))))?;
    if size > FILL_BYTES_MAX {
        if bytes.iter().all(|byte| *byte == 0) {
            return Ok(None);
        }
        return Err(Error::limit(format!("its fill value has {size} bytes, more than {FILL_BYTES_MAX}")));
    }
    bytes.resize(size as usize, 0);
    Ok(Some(bytes))
}

fn value(datatype: &ForeignType, given: &Value) -> Option<Vec<u8>> {
    let is_zero = json::whole(given) == Some(0);
    match datatype {
        ForeignType::Integer { width, signed, big_endian, .. } => {
            let number = json::whole(given)?;
            let bits = 8 * width.min(&8);
            let (low, high) =
                if *signed { (-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1) } else { (0, (1i128 << bits) - 1) };
            (low..=high).contains(&number).then(|| ordered(number as u64, *width, *big_endian))
        }
        ForeignType::Float { width, big_endian, .. } => float(given, *width, *big_endian),
        ForeignType::Complex { width, big_endian } => {
            let parts = given.as_array()?;
            let [real, imaginary] = &parts[..] else { return None };
            let part = |given| float(given, width / 2, *big_endian);
            Some([part(real)?, part(imaginary)?].concat())
        }
        ForeignType::Boolean => match given {
            Value::Bool(truth) => Some(vec![u8::from(*truth)]),
            _ => json::whole(given).filter(|number| matches!(number, 0 | 1)).map(|number| vec![number as u8]),
        },
        ForeignType::Moment { big_endian, .. } => {
            let number =
                if json::text(given) == Some("NaT") { i64::MIN } else { i64::try_from(json::whole(given)?).ok()? };
            Some(ordered(number as u64, 8, *big_endian))
        }
        ForeignType::CodePoints { big_endian, .. } => {
            let order = |letter: char| ordered(u64::from(u32::from(letter)), 4, *big_endian);
            json::text(given).map(|text| text.chars().flat_map(order).collect())
        }
        // Writers of version 2 give 0 for "no bytes".
        ForeignType::FixedText { .. } | ForeignType::Opaque { .. } | ForeignType::Compound { .. } if is_zero => {
            Some(Vec::new())
        }
        ForeignType::FixedText { .. } | ForeignType::Compound { .. } => base64::decoded(json::text(given)?),
        ForeignType::Opaque { size, .. } => match given {
            Value::Array(bytes) if bytes.len() == *size as usize => {
                bytes.iter().map(|byte| json::length(byte).and_then(|byte| u8::try_from(byte).ok())).collect()
            }
            _ => base64::decoded(json::text(given)?),
        },
        _ => None,
    }
}

/// The low `width` bytes of a number in an order.
fn ordered(bits: u64, width: u32, big_endian: bool) -> Vec<u8> {
    let mut bytes: Vec<u8> = bits.to_le_bytes().into_iter().take(width as usize).collect();
    if big_endian {
        bytes.reverse();
    }
    bytes
}

fn float(given: &Value, width: u32, big_endian: bool) -> Option<Vec<u8>> {
    if let Some(digits) = json::text(given).and_then(|text| text.strip_prefix("0x")) {
        // The bits themselves: of a NaN with a payload, say.
        let bits = u64::from_str_radix(digits, 16).ok().filter(|_| digits.len() == 2 * width as usize)?;
        return Some(ordered(bits, width, big_endian));
    }
    let number = json::float(given)?;
    let bits = match width {
        2 => u64::from(f16::from_f64(number).to_bits()),
        4 => u64::from((number as f32).to_bits()),
        _ => number.to_bits(),
    };
    Some(ordered(bits, width, big_endian))
}

#[cfg(test)]
mod tests {
    use super::super::{datatype, json};
    use super::*;

    fn of(dtype: &str, given: &str) -> Option<Vec<u8>> {
        let (datatype, size) = datatype::of_version_2(&Value::from(dtype)).unwrap().unwrap();
        let given = json::parse(format!("{{\"v\": {given}}}").as_bytes()).unwrap().remove("v").unwrap();
        bytes(&datatype, size, &given).ok().map(|bytes| bytes.unwrap_or_default())
    }

    #[test]
    fn every_spelling_has_its_bytes() {
        assert_eq!(of("<f4", "null"), Some(vec![]));
        assert_eq!(of("<f4", "NaN"), Some(f32::NAN.to_le_bytes().to_vec()));
        assert_eq!(of(">f8", "\"-Infinity\""), Some(f64::NEG_INFINITY.to_be_bytes().to_vec()));
        assert_eq!(of("<f4", "\"0x7fc00001\""), Some(0x7fc0_0001u32.to_le_bytes().to_vec()));
        assert_eq!(of("<f2", "65504"), Some(vec![0xff, 0x7b]));
        assert_eq!(of("<f8", "0.1"), Some(0.1f64.to_le_bytes().to_vec()));
        assert_eq!(of("<u8", "18446744073709551615"), Some(vec![255; 8]));
        assert_eq!(of(">i2", "-2"), Some(vec![255, 254]));
        assert_eq!(of("<i4", "7.0"), Some(vec![7, 0, 0, 0]));
        assert_eq!(of("<c8", "[1.0, \"NaN\"]"), Some([1f32.to_le_bytes(), f32::NAN.to_le_bytes()].concat()));
        assert_eq!(of("|b1", "true"), Some(vec![1]));
        assert_eq!(of("|S4", "\"YWI=\""), Some(b"ab\0\0".to_vec()));
        assert_eq!(of("|S2", "0"), Some(vec![0, 0]));
        assert_eq!(of("|S32000000", "0"), Some(vec![]));
        assert_eq!(of("<M8[s]", "null"), Some(i64::MIN.to_le_bytes().to_vec()));
        assert_eq!(of(">U2", "\"b\""), Some(vec![0, 0, 0, 98, 0, 0, 0, 0]));
        assert_eq!(of("<M8[s]", "\"NaT\""), Some(i64::MIN.to_le_bytes().to_vec()));
    }

    #[test]
    fn what_a_type_does_not_have_is_refused() {
        for (dtype, given) in [
            ("|u1", "256"),
            ("|u1", "-1"),
            ("<i4", "1.5"),
            ("<i4", "\"1\""),
            ("<f4", "\"0x7fc0\""),
            ("<f4", "\"nan\""),
            ("<f4", "true"),
            ("<c8", "1"),
            ("<c8", "[1]"),
            ("|b1", "2"),
            ("|S2", "\"YWJj\""),
            ("|S2", "\"a\""),
            ("<U1", "\"ab\""),
            ("<U1", "1"),
            ("<M8[s]", "9223372036854775808"),
            ("<M8[s]", "\"2020-01-01\""),
            ("|V2", "[1, 256]"),
            ("|V2", "[1]"),
            ("<i4", "{}"),
            ("<f8", "1e"),
            ("|S1048577", "\"YWI=\""),
        ] {
            let text = format!("{{\"v\": {given}}}");
            let refused = json::parse(text.as_bytes()).is_err() || of(dtype, given).is_none();
            assert!(refused, "{dtype} {given}");
        }
    }
}
