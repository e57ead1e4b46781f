//! The places where later releases add to the format without a break: features, and `ext` objects.
//!
//! A *feature* is a name in the list `read` or `write` of a record, a root or the floor. A reader must know all of
//! `read`, a writer all of both. The lists of a record are those in force from its version on. An `ext` object is
//! ignored by readers, and kept by folds and copies. It holds no number beyond 2^53 in magnitude and no fraction.

use crate::base::{Error, Result, newer};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// The features that this release knows.
const KNOWN: [&str; 0] = [];

/// An `ext` object; `None` if there is none.
pub(super) type Ext = Option<Box<Map<String, Value>>>;

/// Features in force, by who must know them.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Features {
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) write: Vec<String>,
}

fn unknown(names: &[String]) -> Option<String> {
    let names: Vec<String> =
        names.iter().filter(|name| !KNOWN.contains(&name.as_str())).map(|name| format!("{name:?}")).collect();
    (!names.is_empty()).then(|| names.join(", "))
}

impl Features {
    /// An Unsupported error unless this release knows all features that a reader of `what` must know.
    pub(super) fn check_read(&self, what: &str) -> Result<()> {
        unknown(&self.read).map_or(Ok(()), |names| Err(newer(what, format!("the features {names}"))))
    }

    /// An Unsupported error unless this release knows all features that a writer must know.
    pub(super) fn check_write(&self) -> Result<()> {
        unknown(&self.write).map_or(Ok(()), |names| {
            Err(Error::unsupported(format!(
                "a newer release of Gridstone writes this store with the features {names}, which this one does not know. It can be \
                 read, but not written; use a newer Gridstone. Nothing was written"
            )))
        })
    }
}
