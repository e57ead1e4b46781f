//! A manifest root: the whole state of a store at one version, as rows.
//!
//! ```text
//! line   {"gs":1,"version":64,"time_us":…,"record":"<xxh3 of that version's line>","store":"<id of version 1's commit>",
//!         "node":"<id of the node at />","floor":{"id":…,"version":9,"xxh3":"…"},"rows":"<xxh3 of the top page's rows>"}
//! sum    newline, xxh3 of the line, newline
//! body   the top page of the rows
//! ```
//! Lists of features and an `ext` object come last. Roots are immutable. Those of GS0 have another form
//! ([`super::root_gs0`]) and become the same rows.

use super::extension::{Ext, Features};
use super::line::{self, FORMAT};
use super::root_gs0;
use super::rows::{RowMap, top_of};
use super::shape::{Hex, IdText, RootRef, RootText, Signed, Whole};
use crate::base::{Error, Id, Result};
use crate::storage::Storage;
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// The state of a store at `version`.
#[derive(Debug, Clone)]
pub(super) struct Root {
    /// The format that it was read in.
    pub(super) format: u64,
    pub(super) version: u64,
    pub(super) time_us: i64,
    /// The checksum of that version's record, which the next record names as its parent.
    pub(super) record: u64,
    /// The store's own id.
    pub(super) store: Id,
    /// The node at "/".
    pub(super) node: Id,
    /// The root of the lowest version kept: decided, and published or about to be.
    pub(super) floor: Option<RootRef>,
    pub(super) features: Features,
    pub(super) ext: Ext,
    pub(super) rows: RowMap,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LineText {
    gs: u64,
    version: Whole,
    time_us: Signed,
    record: Hex,
    store: IdText,
    node: IdText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    floor: Option<RootText>,
    rows: Hex,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    read: Vec<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    write: Vec<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

impl Root {
    fn of_gs0(content: root_gs0::Content) -> Self {
        let root_gs0::Content { version, time_us, record, store, node, floor, rows } = content;
        let (features, ext) = (Features::default(), None);
        Self { format: 0, version, time_us, record, store, node, floor, features, ext, rows }
    }
}

/// The bytes of `root`, whatever format it was read in.
pub(super) fn encode(root: &Root) -> Result<Vec<u8>> {
    let (top, rows) = top_of(&root.rows)?;
    let text = LineText {
        gs: FORMAT,
        version: Whole(root.version),
        time_us: Signed(root.time_us),
        record: Hex(root.record),
        store: IdText(root.store),
        node: IdText(root.node),
        floor: root.floor.map(RootText::from),
        rows: Hex(rows),
        read: root.features.read.clone(),
        write: root.features.write.clone(),
        ext: root.ext.clone(),
    };
    let json = serde_json::to_string(&text)
        .map_err(|e| Error::input("the manifest cannot be written as JSON").with_source(e))?;
    let mut bytes = line::sealed(json);
    bytes.extend_from_slice(&top);
    Ok(bytes)
}

/// The checksum by which other objects refer to a root of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> Result<u64> {
    Ok(line::open(bytes, "a manifest root")?.xxh3)
}

/// Decodes the root in `bytes`, which must be the one that `reference` names; its pages are in `storage`. Unsupported if
/// it has another format; Corruption if the bytes are damaged.
pub(super) fn decode(bytes: &[u8], reference: RootRef, storage: &Arc<dyn Storage>) -> Result<Root> {
    let what = format!("manifest root {}", reference.id);
    let line = line::open(bytes, &what)?;
    if line.xxh3 != reference.xxh3 {
        return Err(Error::corruption(format!("{what} is not the one that the log names: its checksum differs")));
    }
    let root = match line.format {
        0 if line.body != bytes.len() => {
            return Err(Error::corruption(format!("{what} is not the one that the log names: its length differs")));
        }
        0 => Root::of_gs0(root_gs0::decode(line, &what, storage)?),
        _ => {
            let text: LineText = line::parse(line, &what)?;
            let features = Features { read: text.read, write: text.write };
            features.check_read(&what)?;
            let top = bytes.get(line.body..).unwrap_or_default();
            Root {
                format: line.format,
                version: text.version.0,
                time_us: text.time_us.0,
                record: text.record.0,
                store: text.store.0,
                node: text.node.0,
                floor: text.floor.map(RootRef::from),
                features,
                ext: text.ext,
                rows: RowMap::open(top, text.rows.0, storage).map_err(|e| e.context(&what))?,
            }
        }
    };
    if root.version != reference.version {
        let (found, named) = (root.version, reference.version);
        return Err(Error::corruption(format!("{what} is of version {found}, the log says version {named}")));
    }
    Ok(root)
}
