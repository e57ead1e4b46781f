//! Single values as text. Numbers are decimal integers and shortest round-trip floats; booleans are "true" and "false";
//! complex numbers are "1.5+2.0j". Strings are unchanged, bytes are hexadecimal, vectors and lists are in brackets,
//! "[1,2,3]". Schemas store this text form in JSON, where 64-bit numbers would not survive.

use super::calendar::date_text;
use super::{Datatype, Primitive, key};
use crate::base::{Element, ElementKind, Error, Result};
use half::f16;

/// Parses the value in `text` to little-endian bytes; a Schema error if it is not one of `datatype`.
pub fn text_to_bytes(datatype: Datatype, text: &str) -> Result<Vec<u8>> {
    let bad = || Error::schema(format!("{text:?} is no value of type {datatype}"));
    let some = match datatype {
        Datatype::String => Some(text.as_bytes().to_vec()),
        Datatype::Bytes => from_hex(text),
        Datatype::FixedBytes(len) => from_hex(text).filter(|bytes| bytes.len() == len as usize),
        Datatype::Vector(primitive, shape) => items_to_bytes(primitive, text, Some(shape.count())),
        Datatype::List(primitive) => items_to_bytes(primitive, text, None),
        Datatype::Complex64 => complex_to_bytes(Datatype::Float32, text),
        Datatype::Complex128 => complex_to_bytes(Datatype::Float64, text),
        single => single_to_bytes(single, text),
    };
    some.ok_or_else(bad)
}

/// A number, boolean or time.
fn single_to_bytes(datatype: Datatype, text: &str) -> Option<Vec<u8>> {
    let Element { kind, width } = datatype.element();
    let bits = u32::from(width) * 8;
    let integer = |lo: i128, hi: i128| {
        let value: i128 = text.parse().ok().filter(|value| (lo..=hi).contains(value))?;
        Some(value.to_le_bytes().into_iter().take(usize::from(width)).collect())
    };
    match (datatype, kind, text) {
        (Datatype::Bool, _, "true") => Some(vec![1]),
        (Datatype::Bool, _, "false") => Some(vec![0]),
        (Datatype::Bool, ..) => None,
        (d, _, "NaT") if d.is_time() => Some(i64::MIN.to_le_bytes().to_vec()),
        (_, ElementKind::Unsigned, _) => integer(0, (1i128 << bits) - 1),
        (_, ElementKind::Signed, _) => integer(-(1i128 << (bits - 1)), (1i128 << (bits - 1)) - 1),
        // NaN has no sign in text: "-NaN" would come back as another value.
        (_, ElementKind::Float, _) if text.parse::<f64>().ok()?.is_nan() => Some(match datatype {
            Datatype::Float16 => f16::NAN.to_le_bytes().to_vec(),
            Datatype::Float32 => f32::NAN.to_le_bytes().to_vec(),
            _ => f64::NAN.to_le_bytes().to_vec(),
        }),
        (Datatype::Float16, ..) => Some(f16::from_f64(text.parse().ok()?).to_le_bytes().to_vec()),
        (Datatype::Float32, ..) => Some(text.parse::<f32>().ok()?.to_le_bytes().to_vec()),
        (_, ElementKind::Float, _) => Some(text.parse::<f64>().ok()?.to_le_bytes().to_vec()),
    }
}

/// Parses the values of a vector or list; it must have `count` of them, if given.
fn items_to_bytes(primitive: Primitive, text: &str, count: Option<usize>) -> Option<Vec<u8>> {
    let inner = text.strip_prefix('[')?.strip_suffix(']')?;
    let mut bytes = Vec::new();
    if !inner.is_empty() {
        for item in inner.split(',') {
            bytes.extend(text_to_bytes(primitive.datatype(), item).ok()?);
        }
    }
    count.is_none_or(|count| bytes.len() == count * primitive.width()).then_some(bytes)
}

/// `<real><sign><imaginary>j`.
fn complex_to_bytes(part: Datatype, text: &str) -> Option<Vec<u8>> {
    let inner = text.strip_suffix('j')?;
    let signs = inner.char_indices().skip(1).zip(inner.chars());
    let is_exponent = |before: char| matches!(before, 'e' | 'E');
    let cut = signs.filter(|((_, c), before)| matches!(c, '+' | '-') && !is_exponent(*before)).map(|((at, _), _)| at);
    let (real, imaginary) = inner.split_at(cut.last()?);
    let mut bytes = single_to_bytes(part, real)?;
    bytes.extend(single_to_bytes(part, imaginary)?);
    Some(bytes)
}

/// The text of a value's little-endian bytes; the inverse of [`text_to_bytes`]. Bytes of a wrong length give "?".
pub fn bytes_to_text(datatype: Datatype, bytes: &[u8]) -> String {
    let parts = |part: Datatype| {
        let (real, imaginary) = bytes.split_at(bytes.len() / 2);
        let (real, imaginary) = (bytes_to_text(part, real), bytes_to_text(part, imaginary));
        format!("{real}{}{imaginary}j", if imaginary.starts_with('-') { "" } else { "+" })
    };
    let items = |primitive: Primitive| {
        let items = bytes.chunks(primitive.width()).map(|item| bytes_to_text(primitive.datatype(), item));
        format!("[{}]", items.collect::<Vec<_>>().join(","))
    };
    match datatype {
        Datatype::String => String::from_utf8_lossy(bytes).into_owned(),
        Datatype::Bytes | Datatype::FixedBytes(_) => bytes.iter().map(|b| format!("{b:02x}")).collect(),
        Datatype::Bool => if bytes.first() == Some(&1) { "true" } else { "false" }.to_owned(),
        Datatype::Complex64 => parts(Datatype::Float32),
        Datatype::Complex128 => parts(Datatype::Float64),
        Datatype::Vector(primitive, _) | Datatype::List(primitive) => items(primitive),
        single => number_text(single, bytes),
    }
}

fn number_text(datatype: Datatype, bytes: &[u8]) -> String {
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
        (ElementKind::Float, 2) => bytes.try_into().map_or("?".to_owned(), |b| half_text(f16::from_le_bytes(b))),
        (ElementKind::Float, 4) => bytes.try_into().map_or("?".to_owned(), |b| float_text(f32::from_le_bytes(b))),
        (ElementKind::Float, _) => bytes.try_into().map_or("?".to_owned(), |b| float_text(f64::from_le_bytes(b))),
    }
}

/// Rust's shortest decimal, with an exponent where plain digits would be long.
fn float_text(value: impl std::fmt::Debug) -> String {
    format!("{value:?}")
}

/// The shortest decimal that parses to `value`: five digits always do.
fn half_text(value: f16) -> String {
    let wide = f64::from(value);
    let rounded = (0..5).filter_map(|digits| format!("{wide:.digits$e}").parse::<f64>().ok());
    let shortest = rounded.filter(|v| v.is_finite()).find(|v| f16::from_f64(*v).to_bits() == value.to_bits());
    float_text(shortest.unwrap_or(wide))
}

/// The text of an ordered key of a dimension of type `datatype`.
pub(super) fn key_text(datatype: Datatype, value: u64) -> String {
    let mut bytes = Vec::with_capacity(8);
    key::decode(datatype, [value], &mut bytes);
    bytes_to_text(datatype, &bytes)
}

/// The coordinate of an ordered key as messages show it: a time as its date, a length of time with its unit.
pub(super) fn key_shown(datatype: Datatype, value: u64) -> String {
    let text = key_text(datatype, value);
    match (datatype, text.parse::<i64>()) {
        (Datatype::Datetime(step), Ok(ticks)) => date_text(ticks, step),
        (Datatype::Timedelta(step), Ok(ticks)) => {
            format!("{} {}", i128::from(ticks) * i128::from(step.count()), step.unit().step())
        }
        _ => text,
    }
}

/// The ordered key of the coordinate in `text`.
pub(super) fn text_key(datatype: Datatype, text: &str) -> Result<u64> {
    let keys = key::encode(datatype, &text_to_bytes(datatype, text)?);
    let keys = keys.map_err(|e| Error::schema(format!("{text} is no coordinate of type {datatype}")).with_source(e))?;
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
            (Datatype::Datetime(TimeUnit::Second.step()), "NaT"),
            (Datatype::String, "häfen"),
            (Datatype::Bytes, "00ff10"),
            (Datatype::FixedBytes(3), "00ff10"),
            (Datatype::Float16, "0.1"),
            (Datatype::Float16, "65500.0"),
            (Datatype::Float16, "6e-8"),
            (Datatype::Float16, "-0.0"),
            (Datatype::Float16, "-inf"),
            (Datatype::Float16, "NaN"),
            (Datatype::Complex64, "1.5+2.0j"),
            (Datatype::Complex64, "-0.0-0.1j"),
            (Datatype::Complex128, "1e-300-1e300j"),
            (Datatype::Complex128, "NaN-infj"),
            (Datatype::Complex128, "inf+NaNj"),
            (Datatype::parse("uint8[3]").unwrap(), "[1,2,255]"),
            (Datatype::parse("int16[2,2]").unwrap(), "[-1,2,3,4]"),
            (Datatype::parse("complex64[2]").unwrap(), "[1.5+2.0j,0.0-1e-9j]"),
            (Datatype::parse("datetime64[s][1]").unwrap(), "[NaT]"),
            (Datatype::parse("bool[2]").unwrap(), "[true,false]"),
            (Datatype::parse("list[float32]").unwrap(), "[]"),
            (Datatype::parse("list[float32]").unwrap(), "[0.1,NaN]"),
        ];
        for (datatype, text) in cases {
            let bytes = text_to_bytes(datatype, text).unwrap();
            assert_eq!(bytes_to_text(datatype, &bytes), text, "{datatype}");
        }
        let bad = [
            ("int8", "128"),
            ("uint8", "-1"),
            ("bytes", "0"),
            ("bool", "1"),
            ("bytes[2]", "00"),
            ("bytes[2]", "000000"),
            ("complex64", "1.5"),
            ("complex64", "j"),
            ("complex64", "1e+5j"),
            ("complex64", "1.5+2.0"),
            ("complex64", "1.5++2.0j"),
            ("uint8[3]", "[1,2]"),
            ("uint8[3]", "[1,2,3,4]"),
            ("uint8[3]", "1,2,3"),
            ("uint8[3]", "[1,2,]"),
            ("uint8[1]", "[]"),
            ("list[uint8]", "[256]"),
            ("list[uint8]", ""),
        ];
        for (datatype, text) in bad {
            let datatype = Datatype::parse(datatype).unwrap();
            assert!(text_to_bytes(datatype, text).is_err(), "{datatype} {text}");
        }
    }

    #[test]
    fn a_number_has_the_key_of_its_text() {
        let edges = [63, 64, 65, 127].map(|bits| (1i128 << (bits - 1)) - 1);
        let small = [0, 1, 127, 128, 255, 256, 32_767, 32_768, 65_535, 65_536, 1 << 31, (1 << 24) + 1, 1 << 32];
        let ints: Vec<i128> = edges.into_iter().chain(small).flat_map(|v| [v, -v, v + 1, -v - 1]).collect();
        let floats = [0.0, -0.0, 0.1, 1e300, 65_519.9, 3.5e38, f64::INFINITY, f64::NEG_INFINITY, f64::NAN, 5e-324];
        let names = ["int8", "uint8", "int16", "uint16", "int32", "uint32", "int64", "uint64", "float16", "float32"];
        for name in names.into_iter().chain(["float64", "datetime64[s]", "timedelta64[ns]", "string", "complex64"]) {
            let datatype = Datatype::parse(name).unwrap();
            for value in &ints {
                let text = text_key(datatype, &value.to_string()).ok();
                assert_eq!(key::of_int(datatype, *value), text, "{name} {value}");
            }
            for value in floats {
                let text = text_key(datatype, &format!("{value:?}")).ok().filter(|_| datatype.is_float());
                assert_eq!(key::of_float(datatype, value), text, "{name} {value}");
            }
        }
    }

    #[test]
    fn nan_has_no_sign_in_text() {
        for (name, text, plain) in [
            ("float64", "-NaN", "NaN"),
            ("float32", "-nan", "NaN"),
            ("float16", "-NaN", "NaN"),
            ("complex64", "1.0-NaNj", "1.0+NaNj"),
        ] {
            let datatype = Datatype::parse(name).unwrap();
            let bytes = text_to_bytes(datatype, text).unwrap();
            assert_eq!(bytes, text_to_bytes(datatype, plain).unwrap(), "{name}");
            assert_eq!(bytes_to_text(datatype, &bytes), plain);
        }
    }

    #[test]
    fn every_half_survives_as_text_in_few_digits() {
        for bits in (0..=u16::MAX).step_by(if cfg!(miri) { 1_021 } else { 1 }) {
            let value = f16::from_bits(bits);
            let text = bytes_to_text(Datatype::Float16, &value.to_le_bytes());
            let back = text_to_bytes(Datatype::Float16, &text).unwrap();
            if value.is_nan() {
                assert_eq!(text, "NaN");
            } else {
                assert_eq!(back, value.to_le_bytes(), "{text}");
                let digits = text.split('e').next().unwrap().chars().filter(char::is_ascii_digit).collect::<String>();
                assert!(digits.trim_matches('0').len() <= 5, "{text}");
            }
        }
    }
}
