//! The metadata of an array of version 3, `zarr.json`
//! (<https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html>).

use super::dataset::{self, Described};
use super::json::{self, shown};
use super::keys::Encoding;
use super::{codec, datatype, fill};
use crate::error::{Error, Result};
use crate::model::{ForeignType, ObjectCodec, ShardIndex};
use serde_json::{Map, Value};

const KNOWN: [&str; 12] = [
    "zarr_format",
    "node_type",
    "shape",
    "data_type",
    "chunk_grid",
    "chunk_key_encoding",
    "fill_value",
    "codecs",
    "attributes",
    "dimension_names",
    "storage_transformers",
    "consolidated_metadata",
];

/// An extension: a name, and what is configured.
struct Extension<'a> {
    name: &'a str,
    configuration: Map<String, Value>,
}

impl<'a> Extension<'a> {
    fn of(given: &'a Value) -> Result<Self> {
        let wrong = || Error::damaged(format!("an extension has no name: {}", shown(Some(given))));
        if let Some(name) = json::text(given) {
            return Ok(Self { name, configuration: Map::new() });
        }
        let of = given.as_object().ok_or_else(wrong)?;
        let name = of.get("name").and_then(json::text).ok_or_else(wrong)?;
        let configuration = match of.get("configuration") {
            None => Map::new(),
            Some(Value::Object(configuration)) => configuration.clone(),
            Some(_) => return Err(wrong()),
        };
        Ok(Self { name, configuration })
    }

    fn list(given: Option<&'a Value>) -> Result<Vec<Self>> {
        let list = given.and_then(Value::as_array);
        let list = list.ok_or_else(|| Error::damaged(format!("its codecs are no list: {}", shown(given))))?;
        list.iter().map(Self::of).collect()
    }
}

/// The kind of node and the attributes of a `zarr.json`.
pub(super) fn node(of: &Map<String, Value>) -> Result<(&str, Map<String, Value>)> {
    if of.get("zarr_format").and_then(json::whole) != Some(3) {
        return Err(Error::unsupported(format!("its zarr.json is of the version {}", shown(of.get("zarr_format")))));
    }
    let kind = of.get("node_type").and_then(json::text);
    let kind =
        kind.ok_or_else(|| Error::damaged(format!("its zarr.json has no node_type: {}", shown(of.get("node_type")))))?;
    let attributes = match of.get("attributes") {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(attributes)) => attributes.clone(),
        given => return Err(Error::damaged(format!("its attributes are no object: {}", shown(given)))),
    };
    Ok((kind, attributes))
}

/// The array that `zarr.json` describes.
pub(super) fn array(of: &Map<String, Value>, attributes: Map<String, Value>) -> Result<Described> {
    check_extensions(of)?;
    let shape = dataset::shape(of)?;
    let grid = of.get("chunk_grid").ok_or_else(|| Error::damaged("its zarr.json has no chunk_grid"))?;
    let grid = Extension::of(grid)?;
    if grid.name != "regular" {
        return Err(Error::unsupported(format!("its grid of chunks is {:?}; regular ones are read", grid.name)));
    }
    let object = dataset::sides(&grid.configuration, "chunk_shape", &shape)?;
    let (encoding, separator) = keys(of.get("chunk_key_encoding"))?;
    let (datatype, element_size) = datatype::of_version_3(of.get("data_type").unwrap_or(&Value::Null))?;
    let codecs = Extension::list(of.get("codecs"))?;
    let packed = match codecs.iter().find(|codec| codec.name == "sharding_indexed") {
        Some(shard) if codecs.len() == 1 => sharded(shard, &shape, &object, datatype)?,
        Some(_) => return Err(Error::unsupported("its objects of several chunks are packed by other codecs too")),
        None => Packed { chunk: object.clone(), ..Packed::of(&codecs, datatype, shape.len())? },
    };
    let fill = fill::bytes(&packed.datatype, element_size, of.get("fill_value").unwrap_or(&Value::Null))?;
    Ok(Described {
        version: "3",
        chunk: packed.chunk,
        object,
        ranks: packed.ranks,
        datatype: packed.datatype,
        element_size,
        fill,
        encoding,
        separator,
        codecs: packed.codecs,
        shard: packed.shard,
        names: dataset::names(of.get("dimension_names"), shape.len()),
        attributes,
        shape,
    })
}

/// An Unsupported error for what a reader has to know, and this one does not.
fn check_extensions(of: &Map<String, Value>) -> Result<()> {
    let may_be_ignored = |value: &Value| value.get("must_understand") == Some(&Value::Bool(false));
    if let Some((name, _)) = of.iter().find(|(key, value)| !KNOWN.contains(&key.as_str()) && !may_be_ignored(value)) {
        return Err(Error::unsupported(format!("it has the extension {name:?}, which a reader must know")));
    }
    match of.get("storage_transformers") {
        Some(Value::Array(list)) if !list.is_empty() => {
            Err(Error::unsupported(format!("it has storage transformers: {}", shown(list.first()))))
        }
        _ => Ok(()),
    }
}

fn keys(given: Option<&Value>) -> Result<(Encoding, char)> {
    let given = given.ok_or_else(|| Error::damaged("its zarr.json has no chunk_key_encoding"))?;
    let Extension { name, configuration } = Extension::of(given)?;
    let (encoding, default) = match name {
        "default" => (Encoding::Default, '/'),
        "v2" => (Encoding::V2, '.'),
        other => return Err(Error::unsupported(format!("its chunks have keys by {other:?}, which is not read"))),
    };
    Ok((encoding, dataset::separator(configuration.get("separator"), default)?))
}

/// What codecs make of the cells of a chunk.
struct Packed {
    chunk: Vec<u64>,
    ranks: Vec<u32>,
    datatype: ForeignType,
    codecs: Vec<ObjectCodec>,
    shard: Option<ShardIndex>,
}

impl Packed {
    fn of(codecs: &[Extension<'_>], datatype: ForeignType, axes: usize) -> Result<Self> {
        let mut ranks: Vec<u32> = (0..axes as u32).collect();
        let (mut before, mut rest) = (Vec::new(), codecs.iter());
        // The axis of the cells that lies at each place, slowest first.
        let mut order: Vec<usize> = (0..axes).collect();
        let serializer = loop {
            let codec = rest.next().ok_or_else(|| Error::damaged("no codec makes bytes of its cells"))?;
            match codec.name {
                "transpose" => order = transposed(&order, codec)?,
                "numcodecs.bitround"
                | "numcodecs.quantize"
                | "numcodecs.delta"
                | "numcodecs.fixedscaleoffset"
                | "numcodecs.packbits" => before.push(codec),
                _ => break codec,
            }
        };
        for (place, axis) in order.iter().enumerate() {
            if let Some(rank) = ranks.get_mut(*axis) {
                *rank = place as u32;
            }
        }
        let is_turned = order.iter().enumerate().any(|(place, axis)| place != *axis);
        let (datatype, mut packed) = serialized(serializer, datatype, &before, is_turned)?;
        for codec in rest {
            packed.extend(codec::of_bytes(codec.name, &codec.configuration)?);
        }
        if matches!(datatype, ForeignType::VariableText { .. }) {
            codec::check_native(&packed)?;
        }
        Ok(Self { chunk: Vec::new(), ranks, datatype, codecs: packed, shard: None })
    }
}

/// The order after a transposition: `order[i]` is the axis that becomes axis `i`.
fn transposed(before: &[usize], codec: &Extension<'_>) -> Result<Vec<usize>> {
    let given = codec.configuration.get("order");
    let axes = before.len();
    let order: Option<Vec<usize>> = match given {
        Some(Value::Array(list)) => {
            list.iter().map(|axis| json::length(axis).and_then(|axis| usize::try_from(axis).ok())).collect()
        }
        Some(Value::String(letter)) if letter == "C" => Some((0..axes).collect()),
        Some(Value::String(letter)) if letter == "F" => Some((0..axes).rev().collect()),
        _ => None,
    };
    let is_permutation = |order: &Vec<usize>| {
        let mut sorted = order.clone();
        sorted.sort_unstable();
        sorted.into_iter().eq(0..axes)
    };
    let order = order.filter(is_permutation);
    let order = order.and_then(|order| order.iter().map(|axis| before.get(*axis).copied()).collect());
    order.ok_or_else(|| Error::damaged(format!("its axes are transposed by {}, which is no permutation", shown(given))))
}

/// The type of the decoded cells, and the filters of codecs that come before bytes are made, and of the one that makes them.
fn serialized(
    serializer: &Extension<'_>,
    datatype: ForeignType,
    before: &[&Extension<'_>],
    is_turned: bool,
) -> Result<(ForeignType, Vec<ObjectCodec>)> {
    let refused =
        |name: &str, why: &str| Err(Error::unsupported(format!("its chunks are packed by the codec {name:?}{why}")));
    if let (Some(first), true) = (before.first(), is_turned) {
        return refused(first.name, ", with axes in another order");
    }
    if matches!(datatype, ForeignType::VariableText { .. }) {
        if let Some(first) = before.first() {
            return refused(first.name, ", which is not read for texts");
        }
        return match serializer.name {
            // Such values are read by another way.
            "vlen-utf8" | "vlen-bytes" => Ok((datatype, Vec::new())),
            other => refused(other, ", which is not read for texts"),
        };
    }
    let mut codecs = Vec::new();
    for codec in before {
        codecs.extend(codec::of_bytes(codec.name, &codec.configuration)?);
    }
    match serializer.name {
        "bytes" => {
            let order = serializer.configuration.get("endian").map(|given| given.as_str().unwrap_or_default());
            let is_structured = matches!(datatype, ForeignType::Compound { .. });
            match order {
                Some("little") => Ok((datatype, codecs)),
                // Libraries disagree on what the order of a record is.
                None if is_structured || !datatype::has_order(&datatype) => Ok((datatype, codecs)),
                Some("big") if !is_structured && codecs.is_empty() => Ok((datatype::big_endian(datatype), codecs)),
                Some("big") => {
                    refused("bytes", ", with the most significant byte first, of records or of filtered numbers")
                }
                _ => Err(Error::damaged(format!(
                    "its numbers have the order of bytes {}",
                    shown(serializer.configuration.get("endian"))
                ))),
            }
        }
        "numcodecs.pcodec" | "numcodecs.zfpy" if codecs.is_empty() && !is_turned => {
            let packed = codec::of_bytes(serializer.name, &serializer.configuration)?;
            Ok((datatype, packed.into_iter().collect()))
        }
        other => refused(other, ", which is not read"),
    }
}

/// Chunks inside of objects.
fn sharded(shard: &Extension<'_>, shape: &[u64], object: &[u64], datatype: ForeignType) -> Result<Packed> {
    let of = &shard.configuration;
    let inner = Extension::list(of.get("codecs"))?;
    if inner.iter().any(|codec| codec.name == "sharding_indexed") {
        return Err(Error::unsupported("its objects of several chunks hold such objects again"));
    }
    let chunk = dataset::sides(of, "chunk_shape", shape)?;
    if chunk.iter().zip(object).any(|(side, whole)| whole % side != 0) && !shape.contains(&0) {
        return Err(Error::damaged(format!("objects of {object:?} cells are no whole number of chunks of {chunk:?}")));
    }
    let index = Extension::list(of.get("index_codecs"))?;
    let names: Vec<&str> = index.iter().map(|codec| codec.name).collect();
    let has_checksum = match &names[..] {
        ["bytes"] => false,
        ["bytes", "crc32c"] => true,
        _ => return Err(Error::unsupported(format!("its index of chunks is packed by {names:?}"))),
    };
    let order = index.first().and_then(|codec| codec.configuration.get("endian"));
    let big_endian = match order.and_then(Value::as_str) {
        Some("little") => false,
        Some("big") => true,
        _ => return Err(Error::damaged(format!("its index of chunks has the order of bytes {}", shown(order)))),
    };
    let at_start = match of.get("index_location").map(|place| place.as_str().unwrap_or_default()) {
        None | Some("end") => false,
        Some("start") => true,
        Some(_) => {
            return Err(Error::damaged(format!("its index of chunks lies at {}", shown(of.get("index_location")))));
        }
    };
    let counts = chunk.iter().zip(object).map(|(side, whole)| (whole / side).max(1)).collect();
    let shard = Some(ShardIndex { counts, at_start, big_endian, has_checksum });
    Ok(Packed { chunk, shard, ..Packed::of(&inner, datatype, shape.len())? })
}
