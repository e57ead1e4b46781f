//! The floor: the lowest version still kept, and the manifest root that replaces all versions before it.
//!
//! A checksummed line without a body: `{"gs":1,"version":F,"root":{"id":…,"version":F,"xxh3":…}}`. Versions below F
//! cannot be opened any more, and their records may be missing. A log without this object starts at version 1.

use super::extension::{Ext, Features};
use super::line::{self, FORMAT};
use super::shape::{RootRef, RootText, Whole};
use crate::base::{Error, Result, newer};
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
    ///
    /// # Errors
    /// Input: they cannot be written as JSON.
    pub fn encode(&self) -> Result<Vec<u8>> {
        self.encode_as(FORMAT)
    }

    /// Its bytes in a format that the writers of the store know. All formats have the same fields.
    ///
    /// # Errors
    /// Those of [`Floor::encode`].
    pub fn encode_as(&self, format: u64) -> Result<Vec<u8>> {
        self.encoded(format, Features::default(), None)
    }

    /// Its bytes in place of the floor in `held`: with the features and the `ext` of that one.
    ///
    /// # Errors
    /// Those of [`Floor::encode`] and [`Floor::decode`].
    pub(super) fn encode_over(&self, held: Option<&[u8]>) -> Result<Vec<u8>> {
        let Some(held) = held else { return self.encode() };
        let (_, features, ext) = Self::read(held)?;
        self.encoded(FORMAT, features, ext)
    }

    fn encoded(self, gs: u64, Features { read, write }: Features, ext: Ext) -> Result<Vec<u8>> {
        let text = FloorText { gs, version: Whole(self.version), root: self.root.into(), read, write, ext };
        let json = serde_json::to_string(&text)
            .map_err(|e| Error::input("the floor cannot be written as JSON").with_source(e))?;
        line::seal(json, 1)
    }

    /// Decodes what [`Floor::encode`] wrote. Unsupported if it has another format; Corruption if the bytes are damaged.
    pub fn decode(bytes: &[u8]) -> Result<Self> {
        Self::read(bytes).map(|(floor, ..)| floor)
    }

    fn read(bytes: &[u8]) -> Result<(Self, Features, Ext)> {
        const WHAT: &str = "the log's floor";
        if bytes == UNFINISHED {
            return Err(Error::not_found(
                "there is no store here but the beginning of a copy, which is under way or was interrupted; if nobody is at \
                 it any more, delete what is there and copy again",
            ));
        }
        let line = line::open(bytes, WHAT)?;
        let text: FloorText = line::parse(line, WHAT)?;
        let features = Features { read: text.read, write: text.write };
        if line.format == 0 && (features != Features::default() || text.ext.is_some()) {
            return Err(newer(WHAT, "features or an \"ext\""));
        }
        features.check_read(WHAT)?;
        let (version, root) = (text.version.0, RootRef::from(text.root));
        if line.body != bytes.len() || version == 0 || root.version != version {
            return Err(Error::corruption(format!(
                "{WHAT} names version {version} and a root of version {}; they must be the same, and not 0",
                root.version
            )));
        }
        Ok((Self { version, root }, features, text.ext))
    }
}
