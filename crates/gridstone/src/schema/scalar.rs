//! Single values as text: decimal integers, shortest round-trip floats, "true"/"false", strings as they are, bytes in
//! hexadecimal. The text form is what schemas hold in JSON, where 64-bit numbers would not survive.

use super::{Datatype, key};
use crate::base::{Element, ElementKind, Error, Result};

/// The little-endian bytes of the value written in `text`; a Schema error if it is not one of `datatype`.
pub fn text_to_bytes(datatype: Datatype, text: &str) -> Result<Vec<u8>> {
    let bad = || Error::schema(format!("{text:?} is no value of type {datatype}"));
    let integer = |lo: i128, hi: i128| -> Result<i128> {
        let value: i128 = text.parse().map_err(|_| bad())?;
        if value < lo || value > hi { Err(bad()) } else { Ok(value) }
    };
    let Element { kind, width } = datatype.element();
    let bits = u32::from(width) * 8;
    let low = |value: i128| value.to_le_bytes().into_iter().take(usize::from(width)).collect();
    Ok(match (datatype, kind) {
        (Datatype::String, _) => text.as_bytes().to_vec(),
        (Datatype::Bytes, _) => from_hex(text).ok_or_else(bad)?,
        (Datatype::Bool, _) => match text {
            "true" => vec![1],
            "false" => vec![0],
            _ => return Err(bad()),
        },
        (d, _) if d.is_time() && text == "NaT" => i64::MIN.to_le_bytes().to_vec(),
        (_, ElementKind::Unsigned) => low(integer(0, (1i128 << bits) - 1)?),
        (_, ElementKind::Signed) => low(integer(-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1)?),
        (Datatype::Float32, _) => text.parse::<f32>().map_err(|_| bad())?.to_le_bytes().to_vec(),
        (_, ElementKind::Float) => text.parse::<f64>().map_err(|_| bad())?.to_le_bytes().to_vec(),
    })
}

/// The text of a value's little-endian bytes; the mirror of [`text_to_bytes`]. Bytes of a wrong length give "?".
pub fn bytes_to_text(datatype: Datatype, bytes: &[u8]) -> String {
    match datatype {
        Datatype::String => return String::from_utf8_lossy(bytes).into_owned(),
        Datatype::Bytes => return bytes.iter().map(|b| format!("{b:02x}")).collect(),
        Datatype::Bool => return if bytes.first() == Some(&1) { "true" } else { "false" }.to_owned(),
        _ => {}
    }
    let wide = |negative: bool| {
        let mut word = [if negative { 0xff } else { 0 }; 8];
        for (to, from) in word.iter_mut().zip(bytes) {
            *to = *from;
        }
        word
    };
    match (datatype.element().kind, bytes.len()) {
        (ElementKind::Unsigned, _) => u64::from_le_bytes(wide(false)).to_string(),
        (ElementKind::Signed, _) => {
            let value = i64::from_le_bytes(wide(bytes.last().is_some_and(|b| b & 0x80 != 0)));
            if datatype.is_time() && value == i64::MIN { "NaT".to_owned() } else { value.to_string() }
        }
        (ElementKind::Float, 4) => bytes.try_into().map_or("?".to_owned(), |b| float_text(f32::from_le_bytes(b))),
        (ElementKind::Float, _) => bytes.try_into().map_or("?".to_owned(), |b| float_text(f64::from_le_bytes(b))),
    }
}

/// Rust's shortest decimal, with an exponent where plain digits would run long.
fn float_text(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// The text of an ordered key of a dimension of type `datatype`.
pub(super) fn key_text(datatype: Datatype, value: u64) -> String {
    let mut bytes = Vec::with_capacity(8);
    key::decode(datatype, [value], &mut bytes);
    bytes_to_text(datatype, &bytes)
}

/// The ordered key of the coordinate written in `text`.
pub(super) fn text_key(datatype: Datatype, text: &str) -> Result<u64> {
    let keys = key::encode(datatype, &text_to_bytes(datatype, text)?);
    let keys = keys.map_err(|e| Error::schema(format!("{text} is no coordinate")).with_source(e))?;
    keys.first().copied().ok_or_else(|| Error::schema(format!("{text:?} is no coordinate of type {datatype}")))
}

fn from_hex(text: &str) -> Option<Vec<u8>> {
    let digits = text.as_bytes();
    if !digits.len().is_multiple_of(2) {
        return None;
    }
    let nibble = |d: u8| (d as char).to_digit(16).map(|n| n as u8);
    digits.as_chunks::<2>().0.iter().map(|[a, b]| Some(nibble(*a)? << 4 | nibble(*b)?)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::TimeUnit;
    use super::*;

    #[test]
    fn values_survive_as_text() {
        let cases = [
            (Datatype::Int8, "-128"),
            (Datatype::Int64, "-9223372036854775808"),
            (Datatype::UInt64, "18446744073709551615"),
            (Datatype::Float32, "0.1"),
            (Datatype::Float64, "1e300"),
            (Datatype::Float64, "inf"),
            (Datatype::Float64, "NaN"),
            (Datatype::Bool, "true"),
            (Datatype::Datetime(TimeUnit::Second), "NaT"),
            (Datatype::String, "häfen"),
            (Datatype::Bytes, "00ff10"),
        ];
        for (datatype, text) in cases {
            let bytes = text_to_bytes(datatype, text).unwrap();
            assert_eq!(bytes_to_text(datatype, &bytes), text, "{datatype}");
        }
        for (datatype, text) in
            [(Datatype::Int8, "128"), (Datatype::UInt8, "-1"), (Datatype::Bytes, "0"), (Datatype::Bool, "1")]
        {
            assert!(text_to_bytes(datatype, text).is_err());
        }
    }
}
