//! What the metadata of an array say, whatever their version.

use super::json::{self, written};
use super::keys::Encoding;
use crate::error::{Error, Result};
use crate::model::{ForeignAttribute, ForeignDataset, ForeignType, ForeignValue, Layout, ObjectCodec, ShardIndex};
use serde_json::{Map, Value};

/// The most axes that are looked at; arrays with more than 8 are refused later, by their names.
const AXES_MAX: usize = 64;

/// An array as its metadata describe it.
#[derive(Debug)]
pub(super) struct Described {
    pub(super) version: &'static str,
    pub(super) shape: Vec<u64>,
    /// Cells of a chunk of the grid: of an inner one, where an object holds several.
    pub(super) chunk: Vec<u64>,
    /// Cells of an object along each axis.
    pub(super) object: Vec<u64>,
    pub(super) ranks: Vec<u32>,
    pub(super) datatype: ForeignType,
    pub(super) element_size: u32,
    pub(super) fill: Option<Vec<u8>>,
    pub(super) encoding: Encoding,
    pub(super) separator: char,
    pub(super) codecs: Vec<ObjectCodec>,
    pub(super) shard: Option<ShardIndex>,
    /// The names of the axes, where they have some.
    pub(super) names: Vec<Option<String>>,
    pub(super) attributes: Map<String, Value>,
}

impl Described {
    /// The dataset called `name`, whose objects lie in `folder` from the root on.
    pub(super) fn into_dataset(self, name: String, folder: String) -> ForeignDataset {
        let axes = self.shape.len();
        let along = self.shape.iter().zip(&self.object);
        let objects = along.map(|(length, side)| length.div_ceil((*side).max(1)).max(1)).collect();
        let names = if self.names.iter().any(Option::is_some) { self.names } else { Vec::new() };
        ForeignDataset {
            name,
            max_shape: self.shape.iter().map(|_| None).collect(),
            is_null: false,
            datatype: self.datatype,
            element_size: self.element_size,
            fill: self.fill,
            attributes: attributes(&self.attributes),
            dimension_scales: vec![None; axes],
            dimension_names: names,
            is_scale: false,
            is_bare_dimension: false,
            layout: Layout::Objects {
                folder,
                version: self.version.to_owned(),
                chunk: self.chunk,
                ranks: self.ranks,
                template: self.encoding.template(axes, self.separator),
                objects,
                codecs: self.codecs,
                shard: self.shard,
            },
            refused: Vec::new(),
            shape: self.shape,
        }
    }
}

/// Attributes as JSON values.
pub(super) fn attributes(given: &Map<String, Value>) -> Vec<ForeignAttribute> {
    let one = |(name, value): (&String, &Value)| ForeignAttribute {
        name: name.clone(),
        shape: Vec::new(),
        datatype: ForeignType::Opaque { size: 0, tag: "json".into() },
        value: ForeignValue::Json(written(value)),
    };
    given.iter().map(one).collect()
}

/// The shape in the metadata, of so few axes that they can be counted.
pub(super) fn shape(of: &Map<String, Value>) -> Result<Vec<u64>> {
    let shape = json::lengths(of, "shape")?;
    if shape.len() > AXES_MAX {
        return Err(Error::unsupported(format!("it has {} dimensions", shape.len())));
    }
    if shape.iter().any(|length| *length > i64::MAX as u64) {
        return Err(Error::limit(format!("its shape {shape:?} has a side of 2^63 cells or more")));
    }
    Ok(shape)
}

/// The sides of chunks, one for each axis, at least 1.
pub(super) fn sides(of: &Map<String, Value>, key: &str, shape: &[u64]) -> Result<Vec<u64>> {
    let mut sides = json::lengths(of, key)?;
    if sides.len() != shape.len() {
        return Err(Error::damaged(format!("its {key} {sides:?} are not those of the shape {shape:?}")));
    }
    if shape.contains(&0) {
        // There are no chunks, and some writers give them no cells.
        sides.iter_mut().for_each(|side| *side = (*side).max(1));
    }
    if sides.contains(&0) {
        return Err(Error::damaged(format!("its {key} {sides:?} have no cells")));
    }
    Ok(sides)
}

/// Names of axes in a list of texts and nulls; nothing if it is none for the axes.
pub(super) fn names(given: Option<&Value>, axes: usize) -> Vec<Option<String>> {
    let list = given.and_then(Value::as_array).filter(|list| list.len() == axes);
    let name = |one: &Value| json::text(one).filter(|name| !name.is_empty()).map(str::to_owned);
    list.map(|list| list.iter().map(name).collect()).unwrap_or_default()
}

/// A separator of numbers in keys.
pub(super) fn separator(given: Option<&Value>, default: char) -> Result<char> {
    match given.map(|value| value.as_str()) {
        None => Ok(default),
        Some(Some(".")) => Ok('.'),
        Some(Some("/")) => Ok('/'),
        Some(_) => Err(Error::unsupported(format!("its keys have the separator {}", json::shown(given)))),
    }
}
