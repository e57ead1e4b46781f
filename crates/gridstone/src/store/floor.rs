//! The floor: the lowest version still kept, and the manifest root that replaces all versions before it.
//!
//! A checksummed line without a body: `{"gs":1,"version":F,"root":{"id":…,"version":F,"xxh3":…}}`. Versions below F
//! cannot be opened any more, and their records may be missing. A log without this object starts at version 1.

use super::extension::{Ext, Features};
use super::line::{self, FORMAT};
use super::shape::{RootRef, RootText, Whole};
use crate::base::{Error, Result};
use serde::{Deserialize, Serialize};

/// The content of `_log/floor` while a store is copied here with its history. Until the copy is complete there is no
/// store.
pub const UNFINISHED: &[u8] = b"gridstone: a copy of a store to this place was not finished\n";

/// The lowest version still kept.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Floor {
    /// The version.
    pub version: u64,
    /// The root that holds its state.
    pub root: RootRef,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct FloorText {
    gs: u64,
    version: Whole,
    root: RootText,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    write: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

impl Floor {
    /// Its bytes.
    pub fn encode(&self) -> Result<Vec<u8>> {
        let (gs, version, root) = (FORMAT, Whole(self.version), self.root.into());
        let text = FloorText { gs, version, root, read: Vec::new(), write: Vec::new(), ext: None };
        let json = serde_json::to_string(&text)
            .map_err(|e| Error::input("the floor cannot be written as JSON").with_source(e))?;
        line::seal(json, 1)
    }

    /// Decodes what [`Floor::encode`] wrote. Unsupported if it has another format; Corruption if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        const WHAT: &str = "the log's floor";
        if bytes == UNFINISHED {
            return Err(Error::not_found(
                "there is no store here but the beginning of a copy, which is under way or was interrupted; if nobody is at \
                 it any more, delete what is there and copy again",
            ));
        }
        let line = line::open(bytes, WHAT)?;
        let text: FloorText = line::parse(line, WHAT)?;
        Features { read: text.read, write: text.write }.check_read(WHAT)?;
        let (version, root) = (text.version.0, RootRef::from(text.root));
        if line.body != bytes.len() || version == 0 || root.version != version {
            return Err(Error::corruption(format!(
                "{WHAT} names version {version} and a root of version {}; they must be the same, and not 0",
                root.version
            )));
        }
        Ok(Self { version, root })
    }
}
