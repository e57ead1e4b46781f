//! What newer releases say in a schema: features, and `ext` objects.
//!
//! Features concern the array of the schema alone. A reader must know all of `read`, a writer all of both. A schema with an
//! unknown feature in `read` is kept as it is: this release knows its dimensions, and no more of it.

use super::json::DimensionJson;
use super::{Dimension, Schema};
use crate::base::{Error, Result};
use serde::Deserialize;
use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::fmt;

/// The features of schemas that this release knows.
const KNOWN: [&str; 0] = [];

/// An `ext` object.
pub(super) type Ext = Map<String, Value>;

/// What a schema has besides what this release reads.
#[derive(Debug, Clone, Default, PartialEq)]
pub(super) struct Extra {
    pub(super) read: Vec<String>,
    pub(super) write: Vec<String>,
    pub(super) ext: Option<Ext>,
    /// By the places of dimensions.
    pub(super) dims: BTreeMap<usize, Ext>,
    /// By the permanent numbers of attributes.
    pub(super) attrs: BTreeMap<u32, Ext>,
    /// All of the schema, if it has an unknown feature that a reader must know.
    pub(super) whole: Option<String>,
}

/// What is read of a schema with unknown features.
#[derive(Deserialize)]
struct UnknownJson {
    read: Vec<String>,
    dims: Vec<UnknownDimensionJson>,
}

#[derive(Deserialize)]
struct UnknownDimensionJson {
    #[serde(flatten)]
    fields: serde_json::Map<String, Value>,
}

/// The unknown features among `names`, quoted; `None` if there is none.
fn unknown(names: &[String]) -> Option<String> {
    let names: Vec<String> =
        names.iter().filter(|name| !KNOWN.contains(&name.as_str())).map(|name| format!("{name:?}")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

/// Whether a list of features has one that this release does not know.
pub(super) fn has_unknown(names: &[String]) -> bool {
    unknown(names).is_some()
}

/// The schema in `text`, if it has an unknown feature that a reader must know, and dimensions that this release knows.
pub(super) fn unreadable(text: &str) -> Option<Schema> {
    let json: UnknownJson = serde_json::from_str(text).ok().filter(|json: &UnknownJson| has_unknown(&json.read))?;
    let known = ["name", "dtype", "domain", "tile", "max_bytes", "origin"];
    let dimension = |mut dim: UnknownDimensionJson| {
        dim.fields.retain(|name, _| known.contains(&name.as_str()));
        serde_json::from_value::<DimensionJson>(Value::Object(dim.fields)).ok()?.read().ok()
    };
    let dims = json.dims.into_iter().map(dimension).collect::<Option<Vec<_>>>()?.concat();
    let extra = Extra { read: json.read, whole: Some(text.to_owned()), ..Extra::default() };
    (!dims.is_empty()).then(|| Schema::unreadable(dims, extra))
}

impl Schema {
    /// Whether this release can read it. If not, it has the dimensions alone, and no attribute.
    pub fn is_readable(&self) -> bool {
        self.extra().is_none_or(|extra| extra.whole.is_none())
    }

    /// Whether this release knows all that a writer must know.
    pub fn is_writable(&self) -> bool {
        self.is_readable() && self.extra().is_none_or(|extra| !has_unknown(&extra.write))
    }

    /// An Unsupported error, which names the features, unless this release can read the array, which is called `what`.
    ///
    /// # Errors
    /// Unsupported.
    pub fn check_readable(&self, what: impl fmt::Display) -> Result<()> {
        let names = self.extra().filter(|_| !self.is_readable()).and_then(|extra| unknown(&extra.read));
        names.map_or(Ok(()), |names| {
            Err(Error::unsupported(format!(
                "{what} was written by a newer release of Gridstone with the features {names}, which this one does not know; use a \
                 newer Gridstone. The rest of the store can be read and written"
            )))
        })
    }

    /// An Unsupported error, which names the features, unless this release can write to the array, which is called `what`.
    ///
    /// # Errors
    /// Unsupported.
    pub fn check_writable(&self, what: impl fmt::Display + Copy) -> Result<()> {
        self.check_readable(what)?;
        self.extra().and_then(|extra| unknown(&extra.write)).map_or(Ok(()), |names| {
            Err(Error::unsupported(format!(
                "a newer release of Gridstone writes {what} with the features {names}, which this one does not know. It can be \
                 read, but not written; use a newer Gridstone. Nothing was written"
            )))
        })
    }

    /// Whether it says what no schema of GS0 says, types aside: a feature or an `ext`, labels, a domain that is open or empty, or
    /// that the array has no dimension.
    pub fn is_beyond_gs0(&self) -> bool {
        let is_newer = |dim: &Dimension| dim.labels().is_some() || dim.range().is_empty() || dim.open() != [false; 2];
        self.extra().is_some() || self.is_scalar() || self.dims().iter().any(is_newer)
    }
}
