//! Codecs as the filters of foreign pipelines.
//!
//! What numcodecs has, and the pipeline does not, is named `numcodecs.NAME`, with its configuration as JSON: a program may have registered
//! such a filter. Codecs that make objects of bytes have no form.

use super::json::{self, shown, written};
use crate::error::{Error, Result};
use crate::model::ObjectCodec;
use serde_json::{Map, Value};

/// Codecs whose decoded cells have no fixed length, or are objects.
const OF_OBJECTS: [&str; 9] =
    ["json", "json2", "msgpack", "msgpack2", "pickle", "categorize", "vlen-utf8", "vlen-bytes", "vlen-array"];

/// The codec of numcodecs with this name; `None` if its decoded bytes are the stored ones.
pub(super) fn of_numcodecs(id: &str, configuration: &Map<String, Value>) -> Result<Option<ObjectCodec>> {
    let text = |key: &str| configuration.get(key).and_then(json::text).unwrap_or_default();
    let native = match id {
        "zlib" => Some("deflate".to_owned()),
        "gzip" | "zstd" | "lz4" | "blosc" | "fletcher32" => Some(id.to_owned()),
        "bz2" => Some("bzip2".to_owned()),
        "crc32c" if text("location") == "end" => Some(id.to_owned()),
        "shuffle" => {
            let width = configuration.get("elementsize").map_or(Some(4), json::length);
            let width = width.filter(|width| (1..=1 << 30).contains(width));
            Some(format!("shuffle:{}", width.ok_or_else(|| wrong(id, configuration))?))
        }
        "delta" => numbers(configuration).map(|types| format!("delta:{types}")),
        "fixedscaleoffset" => {
            let number = |key: &str| configuration.get(key).and_then(json::float).filter(|number| number.is_finite());
            let scale = number("scale");
            if scale == Some(0.0) {
                return Err(wrong(id, configuration));
            }
            let parts = number("offset").zip(scale).zip(numbers(configuration));
            parts.map(|((offset, scale), types)| format!("fixedscaleoffset:{offset}:{scale}:{types}"))
        }
        // Both round numbers when they are written, and leave them as they are.
        "bitround" => return Ok(None),
        "quantize" if matches!(text("astype"), "" | "None") || text("astype") == text("dtype") => return Ok(None),
        _ => None,
    };
    if let Some(name) = native {
        return Ok(Some(ObjectCodec { name, parameters: None }));
    }
    let is_id = !id.is_empty() && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-');
    if OF_OBJECTS.contains(&id) || !is_id {
        return Err(Error::unsupported(format!(
            "its chunks are packed by the codec {id:?}, which is not read in place"
        )));
    }
    let mut whole = Map::new();
    whole.insert("id".to_owned(), Value::from(id));
    whole.extend(configuration.iter().filter(|(key, _)| *key != "id").map(|(key, value)| (key.clone(), value.clone())));
    let parameters = written(&Value::Object(whole));
    Ok(Some(ObjectCodec { name: format!("numcodecs.{id}"), parameters: Some(parameters) }))
}

/// Refuses what is not known to make bytes of bytes alone: such values are read by another library, which would run whatever it has under
/// the name of a codec.
pub(super) fn check_native(codecs: &[ObjectCodec]) -> Result<()> {
    match codecs.iter().find(|codec| codec.parameters.is_some()) {
        None => Ok(()),
        Some(codec) => Err(Error::unsupported(format!(
            "its values vary in length, and are packed by the codec {:?}, which is not read for these",
            codec.name
        ))),
    }
}

fn wrong(id: &str, configuration: &Map<String, Value>) -> Error {
    Error::damaged(format!(
        "its codec {id:?} has an impossible configuration: {}",
        shown(Some(&Value::Object(configuration.clone())))
    ))
}

/// The types of the values and of the stored numbers, `T:A`, if both are ones that the pipeline knows.
fn numbers(configuration: &Map<String, Value>) -> Option<String> {
    let known = |name: &str| {
        let name = if name == "|i1" || name == "|u1" { name.to_owned() } else { name.replacen('=', "<", 1) };
        let known = ["i1", "i2", "i4", "i8", "u1", "u2", "u4", "u8", "f4", "f8"].contains(&name.get(1..)?);
        (known && name.starts_with(['<', '>', '|'])).then_some(name)
    };
    let of = configuration.get("dtype").and_then(json::text).and_then(known)?;
    match configuration.get("astype").filter(|of| !of.is_null()) {
        None => Some(of),
        Some(stored) => Some(format!("{of}:{}", known(json::text(stored)?)?)),
    }
}

/// A codec of version 3 that makes bytes of bytes; `None` if it is none of those.
pub(super) fn of_bytes(name: &str, configuration: &Map<String, Value>) -> Result<Option<ObjectCodec>> {
    if let Some(id) = name.strip_prefix("numcodecs.") {
        return of_numcodecs(id, configuration);
    }
    let plain = ["gzip", "zstd", "blosc", "crc32c"].contains(&name);
    match plain {
        true => Ok(Some(ObjectCodec { name: name.to_owned(), parameters: None })),
        false => Err(Error::unsupported(format!("its chunks are packed by the codec {name:?}, which is not read"))),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn name(id: &str, configuration: Value) -> Result<Option<(String, Option<String>)>> {
        let Value::Object(configuration) = configuration else { panic!() };
        of_numcodecs(id, &configuration).map(|codec| codec.map(|codec| (codec.name, codec.parameters)))
    }

    #[test]
    fn codecs_have_the_names_of_filters() {
        let native = |id, configuration| {
            let (name, parameters) = name(id, configuration).unwrap().unwrap();
            assert_eq!(parameters, None);
            name
        };
        assert_eq!(native("zlib", json!({"id": "zlib", "level": 1})), "deflate");
        assert_eq!(native("shuffle", json!({"elementsize": 8})), "shuffle:8");
        assert_eq!(native("shuffle", json!({})), "shuffle:4");
        assert_eq!(native("delta", json!({"dtype": "<i4", "astype": "|i1"})), "delta:<i4:|i1");
        let scaled = json!({"offset": 1000, "scale": 0.5, "dtype": "<f8", "astype": "|u1"});
        assert_eq!(native("fixedscaleoffset", scaled), "fixedscaleoffset:1000:0.5:<f8:|u1");
        assert_eq!(native("crc32c", json!({"location": "end"})), "crc32c");
        assert_eq!(name("bitround", json!({"keepbits": 3})).unwrap(), None);
    }

    #[test]
    fn the_others_keep_their_configuration_or_are_refused() {
        let user = |id, configuration| name(id, configuration).unwrap().unwrap();
        let lzma = user("lzma", json!({"preset": 1, "id": "lzma"}));
        assert_eq!(lzma, ("numcodecs.lzma".into(), Some("{\"id\":\"lzma\",\"preset\":1}".into())));
        assert_eq!(user("crc32c", json!({})).0, "numcodecs.crc32c");
        assert_eq!(user("delta", json!({"dtype": "<f2"})).0, "numcodecs.delta");
        assert_eq!(user("quantize", json!({"dtype": "<f8", "astype": "<f4"})).0, "numcodecs.quantize");
        for id in ["json2", "pickle", "vlen-utf8", "a b", "", "a.b"] {
            assert!(name(id, json!({})).is_err(), "{id}");
        }
        assert!(name("shuffle", json!({"elementsize": -1})).is_err());
        assert!(name("fixedscaleoffset", json!({"offset": 1, "scale": 0, "dtype": "<f8"})).is_err());
    }
}
