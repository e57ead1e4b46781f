//! The types of cells: as NumPy writes them in version 2, by names in version 3.

use super::json::{self, shown};
use crate::error::{Error, Result};
use crate::model::{CompoundMember, ForeignType, TextPadding};
use crate::npy;
use serde_json::{Map, Value};

/// Compounds in compounds.
const DEPTH_MAX: u32 = 24;
/// The most bytes of a cell.
const CELL_BYTES_MAX: u64 = 1 << 30;

/// A type and the bytes of a cell, 0 where they vary.
pub(super) type Sized = (ForeignType, u32);

/// The type in the `dtype` of version 2: a text, or a list of the fields of a record. `None`: an object, which a filter describes.
pub(super) fn of_version_2(given: &Value) -> Result<Option<Sized>> {
    if given.as_str() == Some("|O") {
        return Ok(None);
    }
    described(given, 0).map(Some)
}

fn described(given: &Value, depth: u32) -> Result<Sized> {
    match given {
        Value::Array(fields) if depth < DEPTH_MAX => record(fields, &|of| described(of, depth + 1)),
        Value::String(text) => simple(text),
        _ => Err(Error::damaged(format!("its type is no type of NumPy: {}", shown(Some(given))))),
    }
}

fn simple(text: &str) -> Result<Sized> {
    let unknown = || Error::unsupported(format!("its type {text:?} is not read"));
    let order = text.chars().next().filter(|order| "<>|".contains(*order)).ok_or_else(unknown)?;
    let rest = text.get(1..).unwrap_or_default();
    let big_endian = order == '>';
    if let Some(length) = rest.strip_prefix('U') {
        let length: u32 = length.parse().map_err(|_| unknown())?;
        return sized(ForeignType::CodePoints { length, big_endian }, u64::from(length) * 4, text);
    }
    if let Some(unit) = rest.strip_prefix("M8").or(rest.strip_prefix("m8")) {
        let unit = unit.strip_prefix('[').and_then(|unit| unit.strip_suffix(']')).ok_or_else(unknown)?;
        let digits = unit.find(|c: char| !c.is_ascii_digit()).unwrap_or(unit.len());
        let (count, unit) = unit.split_at(digits);
        let count = if count.is_empty() { 1 } else { count.parse().map_err(|_| unknown())? };
        return Ok((moment(unit, count, rest.starts_with('m'), big_endian)?, 8));
    }
    if rest.starts_with(['M', 'm', 'O']) {
        return Err(unknown());
    }
    let (datatype, size) = npy::simple_type(text)?;
    sized(datatype, size, text)
}

fn sized(datatype: ForeignType, bytes: u64, name: &str) -> Result<Sized> {
    match u32::try_from(bytes) {
        Ok(size) if size > 0 && bytes <= CELL_BYTES_MAX => Ok((datatype, size)),
        _ => Err(Error::unsupported(format!("its type {name:?} has {bytes} bytes"))),
    }
}

fn moment(unit: &str, count: u32, is_duration: bool, big_endian: bool) -> Result<ForeignType> {
    let unit = if unit == "μs" || unit == "µs" { "us" } else { unit };
    let known = ["Y", "M", "W", "D", "h", "m", "s", "ms", "us", "ns", "ps", "fs", "as"].contains(&unit);
    if !known || count == 0 || count > i32::MAX as u32 {
        return Err(Error::unsupported(format!("it holds times in steps of {count} {unit:?}, which are not read")));
    }
    Ok(ForeignType::Moment { unit: unit.to_owned(), count, is_duration, big_endian })
}

/// The type of a record whose fields are pairs of a name and a type, and maybe a shape.
fn record(fields: &[Value], of: &dyn Fn(&Value) -> Result<Sized>) -> Result<Sized> {
    let wrong = |field: &Value| {
        Error::damaged(format!("a field of its type is no pair of a name and a type: {}", shown(Some(field))))
    };
    let (mut members, mut size) = (Vec::new(), 0u64);
    for field in fields {
        let parts = field.as_array().ok_or_else(|| wrong(field))?;
        let [name, given, shape @ ..] = &parts[..] else { return Err(wrong(field)) };
        let name = json::text(name).ok_or_else(|| wrong(field))?.to_owned();
        let (mut datatype, bytes) = of(given)?;
        let mut bytes = u64::from(bytes);
        if let [shape] = shape {
            let dimensions =
                shape.as_array().and_then(|shape| shape.iter().map(json::length).collect::<Option<Vec<u64>>>());
            let dimensions = dimensions.ok_or_else(|| wrong(field))?;
            let all = dimensions.iter().try_fold(bytes, |bytes, length| bytes.checked_mul(*length));
            bytes = all.filter(|bytes| *bytes <= CELL_BYTES_MAX).ok_or_else(|| wrong(field))?;
            datatype = ForeignType::Array { dimensions, base: Box::new(datatype) };
        }
        let offset = u32::try_from(size).map_err(|_| wrong(field))?;
        size += bytes;
        members.push(CompoundMember { name, offset, datatype });
    }
    let (_, size) = sized(ForeignType::Boolean, size, "of fields")?;
    Ok((ForeignType::Compound { size, members }, size))
}

/// The type that version 3 names, its numbers in the order of a little-endian machine.
pub(super) fn of_version_3(given: &Value) -> Result<Sized> {
    named(given, 0)
}

fn named(given: &Value, depth: u32) -> Result<Sized> {
    let (name, configuration) = match given {
        Value::String(name) => (name.as_str(), None),
        Value::Object(of) => (
            of.get("name").and_then(json::text).unwrap_or_default(),
            of.get("configuration").and_then(Value::as_object),
        ),
        _ => ("", None),
    };
    let integer = |width, signed| Ok((ForeignType::Integer { width, signed, big_endian: false, bits: None }, width));
    let float = |width| Ok((ForeignType::Float { width, big_endian: false, layout: None }, width));
    match name {
        "bool" => Ok((ForeignType::Boolean, 1)),
        "int8" => integer(1, true),
        "int16" => integer(2, true),
        "int32" => integer(4, true),
        "int64" => integer(8, true),
        "uint8" => integer(1, false),
        "uint16" => integer(2, false),
        "uint32" => integer(4, false),
        "uint64" => integer(8, false),
        "float16" => float(2),
        "float32" => float(4),
        "float64" => float(8),
        "complex64" | "complex_float32" => Ok((ForeignType::Complex { width: 8, big_endian: false }, 8)),
        "complex128" | "complex_float64" => Ok((ForeignType::Complex { width: 16, big_endian: false }, 16)),
        "string" => Ok((ForeignType::VariableText { utf8: true }, 0)),
        "bytes" | "variable_length_bytes" => Ok((ForeignType::VariableText { utf8: false }, 0)),
        _ => match configuration {
            Some(configuration) => configured(name, configuration, depth),
            None => raw_bits(name).ok_or_else(|| unknown(given)),
        },
    }
}

fn unknown(given: &Value) -> Error {
    Error::unsupported(format!("its type {} is not read", shown(Some(given))))
}

/// `r16`: bits without meaning.
fn raw_bits(name: &str) -> Option<Sized> {
    let bits: u32 = name.strip_prefix('r')?.parse().ok()?;
    let size = bits / 8;
    (bits.is_multiple_of(8) && size > 0).then(|| (ForeignType::Opaque { size, tag: String::new() }, size))
}

/// A type with a configuration, as zarr-python names those of NumPy.
fn configured(name: &str, of: &Map<String, Value>, depth: u32) -> Result<Sized> {
    let given = || Value::from(name);
    let length = || of.get("length_bytes").and_then(json::length).filter(|length| *length <= CELL_BYTES_MAX);
    let length = || length().map(|length| length as u32).ok_or_else(|| unknown(&given()));
    let step = || {
        let unit = of.get("unit").and_then(json::text).ok_or_else(|| unknown(&given()))?;
        let count = of.get("scale_factor").map_or(Some(1), json::length).and_then(|count| u32::try_from(count).ok());
        moment(unit, count.unwrap_or(0), name == "numpy.timedelta64", false)
    };
    match name {
        "null_terminated_bytes" => {
            let text = ForeignType::FixedText { length: length()?, padding: TextPadding::ZeroPadded, utf8: false };
            sized(text, u64::from(length()?), name)
        }
        "raw_bytes" => sized(ForeignType::Opaque { size: length()?, tag: String::new() }, u64::from(length()?), name),
        "fixed_length_utf32" if length()?.is_multiple_of(4) => {
            sized(ForeignType::CodePoints { length: length()? / 4, big_endian: false }, u64::from(length()?), name)
        }
        "numpy.datetime64" | "numpy.timedelta64" => Ok((step()?, 8)),
        "structured" if depth < DEPTH_MAX => {
            let fields = of.get("fields").and_then(Value::as_array).ok_or_else(|| unknown(&given()))?;
            record(fields, &|field| named(field, depth + 1))
        }
        _ => Err(unknown(&given())),
    }
}

/// Whether the order of bytes matters to a type.
pub(super) fn has_order(datatype: &ForeignType) -> bool {
    match datatype {
        ForeignType::Integer { width, .. } => *width > 1,
        ForeignType::Float { .. }
        | ForeignType::Complex { .. }
        | ForeignType::CodePoints { .. }
        | ForeignType::Moment { .. } => true,
        ForeignType::Array { base, .. } => has_order(base),
        ForeignType::Compound { members, .. } => members.iter().any(|member| has_order(&member.datatype)),
        _ => false,
    }
}

/// The same type with its most significant bytes first.
pub(super) fn big_endian(mut datatype: ForeignType) -> ForeignType {
    match &mut datatype {
        ForeignType::Integer { big_endian, .. }
        | ForeignType::Float { big_endian, .. }
        | ForeignType::Complex { big_endian, .. }
        | ForeignType::CodePoints { big_endian, .. }
        | ForeignType::Moment { big_endian, .. } => *big_endian = true,
        _ => {}
    }
    datatype
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn types_of_numpy() {
        let of = |given: Value| of_version_2(&given).unwrap().unwrap();
        assert_eq!(
            of(json!("<i2")),
            (ForeignType::Integer { width: 2, signed: true, big_endian: false, bits: None }, 2)
        );
        assert_eq!(of(json!(">U3")), (ForeignType::CodePoints { length: 3, big_endian: true }, 12));
        let moment = |unit: &str, count, is_duration| ForeignType::Moment {
            unit: unit.into(),
            count,
            is_duration,
            big_endian: false,
        };
        assert_eq!(of(json!("<M8[10s]")), (moment("s", 10, false), 8));
        assert_eq!(of(json!("<m8[ns]")), (moment("ns", 1, true), 8));
        let (record, size) = of(json!([["a", "|u1"], ["b", [["c", "<f4"]], [2, 3]], ["d", "|S2"]]));
        let ForeignType::Compound { members, .. } = record else { panic!() };
        assert_eq!((size, members.iter().map(|m| m.offset).collect::<Vec<_>>()), (27, vec![0, 1, 25]));
        assert!(of_version_2(&json!("|O")).unwrap().is_none());
    }

    #[test]
    fn types_that_are_none() {
        for given in [
            json!("i4"),
            json!("<i3"),
            json!("<M8"),
            json!("<M8[x]"),
            json!("<M8[0s]"),
            json!("<U"),
            json!("|S0"),
            json!("<U0"),
            json!("<U4294967295"),
            json!(3),
            json!([["a"]]),
            json!([[1, "<i4"]]),
            json!([]),
            json!([["a", "<f8", [4294967295u64, 4294967295u64]]]),
            json!("<f16"),
            json!("<c4"),
            json!(""),
        ] {
            assert!(of_version_2(&given).is_err(), "{given}");
        }
        let mut deep = json!("<i4");
        for _ in 0..60 {
            deep = json!([["a", deep]]);
        }
        assert!(of_version_2(&deep).is_err());
        for given in [
            json!("r12"),
            json!("r0"),
            json!("int4"),
            json!("bfloat16"),
            json!({"name": "fixed_length_utf32", "configuration": {"length_bytes": 6}}),
            json!({"name": "numpy.datetime64", "configuration": {"unit": "generic", "scale_factor": 1}}),
            json!({"name": "optional", "configuration": {}}),
            json!(null),
            json!({"name": "raw_bytes", "configuration": {"length_bytes": -1}}),
        ] {
            assert!(of_version_3(&given).is_err(), "{given}");
        }
    }
}
