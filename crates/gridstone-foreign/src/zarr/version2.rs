//! The metadata of an array of version 2, `.zarray` and `.zattrs`
//! (<https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html>).

use super::dataset::{self, Described};
use super::json::{self, shown};
use super::keys::Encoding;
use super::{codec, datatype, fill};
use crate::error::{Error, Result};
use crate::model::{ForeignType, ObjectCodec};
use serde_json::{Map, Value};

/// The array that `.zarray` describes, with the attributes of `.zattrs`.
pub(super) fn array(of: &Map<String, Value>, attributes: Map<String, Value>) -> Result<Described> {
    if of.get("zarr_format").and_then(json::whole) != Some(2) {
        return Err(Error::unsupported(format!("its .zarray is of the version {}", shown(of.get("zarr_format")))));
    }
    let shape = dataset::shape(of)?;
    let chunk = dataset::sides(of, "chunks", &shape)?;
    let axes = shape.len() as u32;
    let ranks = match of.get("order").and_then(Value::as_str) {
        Some("C") => (0..axes).collect(),
        Some("F") => (0..axes).rev().collect(),
        _ => return Err(Error::damaged(format!("its order is neither C nor F: {}", shown(of.get("order"))))),
    };
    let filters = match of.get("filters") {
        None | Some(Value::Null) => Vec::new(),
        Some(Value::Array(filters)) => filters.iter().map(identified).collect::<Result<_>>()?,
        given => return Err(Error::damaged(format!("its filters are no list: {}", shown(given)))),
    };
    let compressor = match of.get("compressor") {
        None | Some(Value::Null) => None,
        Some(given) => Some(identified(given)?),
    };
    let dtype = of.get("dtype").ok_or_else(|| Error::damaged("its .zarray has no dtype"))?;
    let sized = datatype::of_version_2(dtype)?;
    let is_by_columns = axes > 1 && of.get("order").and_then(Value::as_str) == Some("F");
    let (datatype, element_size, codecs) = match sized {
        Some((datatype, size)) => (datatype, size, codecs(&filters, compressor, is_by_columns)?),
        // The values vary in length, and are read by another way.
        None => {
            let datatype = of_objects(&filters)?;
            codec::check_native(&codecs(filters.get(1..).unwrap_or_default(), compressor, false)?)?;
            (datatype, 0, Vec::new())
        }
    };
    let fill = fill::bytes(&datatype, element_size, of.get("fill_value").unwrap_or(&Value::Null))?;
    Ok(Described {
        version: "2",
        object: chunk.clone(),
        chunk,
        ranks,
        datatype,
        element_size,
        fill,
        encoding: Encoding::V2,
        separator: dataset::separator(of.get("dimension_separator"), '.')?,
        codecs,
        shard: None,
        names: dataset::names(attributes.get("_ARRAY_DIMENSIONS"), shape.len()),
        attributes,
        shape,
    })
}

/// The name and the configuration of a codec.
fn identified(given: &Value) -> Result<(&str, &Map<String, Value>)> {
    let found = given.as_object().and_then(|codec| Some((codec.get("id").and_then(json::text)?, codec)));
    found.ok_or_else(|| Error::damaged(format!("a codec has no id: {}", shown(Some(given)))))
}

fn codecs(
    filters: &[(&str, &Map<String, Value>)],
    compressor: Option<(&str, &Map<String, Value>)>,
    is_by_columns: bool,
) -> Result<Vec<ObjectCodec>> {
    let all = filters.iter().copied().chain(compressor);
    let mut codecs = Vec::new();
    for (id, configuration) in all {
        if is_by_columns && matches!(id, "zfpy" | "pcodec") {
            return Err(Error::unsupported(format!(
                "its chunks are packed by the codec {id:?} in the order of columns"
            )));
        }
        codecs.extend(codec::of_numcodecs(id, configuration)?);
    }
    Ok(codecs)
}

/// The type of the values that a filter makes of objects.
fn of_objects(filters: &[(&str, &Map<String, Value>)]) -> Result<ForeignType> {
    let Some((id, configuration)) = filters.first() else {
        return Err(Error::unsupported("it holds objects of Python, and no filter says how they are stored"));
    };
    match *id {
        "vlen-utf8" => Ok(ForeignType::VariableText { utf8: true }),
        "vlen-bytes" => Ok(ForeignType::VariableText { utf8: false }),
        "vlen-array" => {
            let base = configuration.get("dtype").map(datatype::of_version_2).transpose()?.flatten();
            let (base, _) = base.ok_or_else(|| Error::damaged("its lists have no type"))?;
            Ok(ForeignType::VariableLength { base: Box::new(base) })
        }
        other => Err(Error::unsupported(format!("it holds objects of Python, packed by {other:?}"))),
    }
}
