//! A manifest root: the whole state of a store at one version, except for the fragments, which are described on pages.
//!
//! A checksummed line without a body:
//! ```json
//! {"gs":0,"version":64,"time_us":…,"record":"<xxh3 of that version's line>","store":"<id of version 1's commit>",
//!  "nodes":[{"id":…,"path":"/","metadata":{"unit":"\"mm\""},"array":{"schemas":[{…}],"pages":[{"id":…,"xxh3":"…",
//!    "count":9,"bounds":[["…","…"]],"first":[1,0],"last":[64,0],"full":false}]}}]}
//! ```
//! Where there are tags, a floor or condemned files,
//! `"retained":{"tags":{name:7},"floor":{…},"data":[…],"manifest":[…]}` is last. Parents come before their children; a
//! node without `array` is a group. Roots are immutable.

use super::line::{self, FORMAT};
use super::page::PageInfo;
use super::retained::{Retained, RetainedText};
use super::shape::{BoxText, Hex, IdText, RootRef, Signed, Whole};
use super::state::Metadata;
use super::wording::{read_schema, schema_value};
use crate::base::{Error, Id, Result, id_named_twice, limits};
use crate::fragment::FragmentOrder;
use crate::schema::Schema;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

/// The state of a store at `version`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Root {
    pub(super) version: u64,
    pub(super) time_us: i64,
    /// The checksum of that version's record, which the next record names as its parent.
    pub(super) record: u64,
    /// The store's own id.
    pub(super) store: Id,
    /// Its size in bytes; 0 before it was written or read.
    pub(super) bytes: u64,
    /// Its nodes, parents before children.
    pub(super) nodes: Vec<RootNode>,
    /// Its tags and condemned files.
    pub(super) retained: Arc<Retained>,
}

/// A node in a root.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RootNode {
    pub(super) id: Id,
    pub(super) path: String,
    pub(super) metadata: Arc<Metadata>,
    /// `None` for a group.
    pub(super) array: Option<RootArray>,
}

/// What a root holds of an array.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct RootArray {
    pub(super) schemas: Vec<Arc<Schema>>,
    pub(super) pages: Vec<PageInfo>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct RootText<N> {
    gs: u64,
    version: Whole,
    time_us: Signed,
    record: Hex,
    store: IdText,
    nodes: Vec<N>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    retained: Option<RetainedText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText<M> {
    id: IdText,
    path: String,
    metadata: M,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    array: Option<ArrayText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayText {
    schemas: Vec<Value>,
    pages: Vec<PageText>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct PageText {
    id: IdText,
    xxh3: Hex,
    count: u32,
    bounds: BoxText,
    first: (Whole, u32),
    last: (Whole, u32),
    full: bool,
}

/// The bytes of `root`.
pub(super) fn encode(root: &Root) -> Result<Vec<u8>> {
    let text = RootText {
        gs: FORMAT,
        version: Whole(root.version),
        time_us: Signed(root.time_us),
        record: Hex(root.record),
        store: IdText(root.store),
        nodes: root.nodes.iter().map(NodeText::of).collect::<Result<_>>()?,
        retained: RetainedText::of(&root.retained),
    };
    let json = serde_json::to_string(&text)
        .map_err(|e| Error::input("the manifest cannot be written as JSON").with_source(e))?;
    if json.len() > limits::ROOT_LINE_BYTES_MAX {
        return Err(Error::input(format!(
            "what every opening of the store reads would take {} bytes, at most {} are allowed; delete metadata, or arrays that nobody needs",
            json.len(),
            limits::ROOT_LINE_BYTES_MAX
        )));
    }
    Ok(line::sealed(json))
}

/// The checksum by which other objects refer to a root of these bytes.
pub(super) fn checksum(bytes: &[u8]) -> Result<u64> {
    Ok(line::open(bytes, "a manifest root")?.xxh3)
}

/// Decodes the root in `bytes`, which must be the one that `reference` names. Unsupported if it has another format;
/// Corruption if the bytes are damaged.
pub(super) fn decode(bytes: &[u8], reference: RootRef) -> Result<Root> {
    let what = format!("manifest root {}", reference.id);
    let line = line::open(bytes, &what)?;
    if line.xxh3 != reference.xxh3 || line.body != bytes.len() {
        return Err(Error::corruption(format!(
            "{what} is not the one that the log names: its checksum or length differs"
        )));
    }
    let text: RootText<NodeText<Metadata>> = line::parse(line, &what)?;
    if text.version.0 != reference.version {
        let (found, named) = (text.version.0, reference.version);
        return Err(Error::corruption(format!("{what} is of version {found}, the log says version {named}")));
    }
    let nodes = text.nodes.into_iter().map(NodeText::read).collect::<Result<Vec<_>>>().map_err(|e| e.context(&what))?;
    let arrays = nodes.iter().filter_map(|node| node.array.as_ref());
    if let Some(page) = id_named_twice(arrays.flat_map(|array| &array.pages).map(|page| page.id)) {
        return Err(Error::corruption(format!("{what} names the page {page} twice")));
    }
    let (version, time_us, record, store) = (text.version.0, text.time_us.0, text.record.0, text.store.0);
    let retained = Arc::new(text.retained.map(RetainedText::read).unwrap_or_default());
    Ok(Root { version, time_us, record, store, bytes: bytes.len() as u64, nodes, retained })
}

impl<'a> NodeText<&'a Metadata> {
    fn of(node: &'a RootNode) -> Result<Self> {
        let array = node.array.as_ref().map(|array| {
            let schemas = array.schemas.iter().map(|s| schema_value(s)).collect::<Result<_>>()?;
            Ok::<_, Error>(ArrayText { schemas, pages: array.pages.iter().map(PageText::of).collect() })
        });
        let (id, path, metadata) = (IdText(node.id), node.path.clone(), node.metadata.as_ref());
        Ok(Self { id, path, metadata, array: array.transpose()? })
    }
}

impl NodeText<Metadata> {
    fn read(self) -> Result<RootNode> {
        let array = self.array.map(|array| {
            if array.schemas.is_empty() {
                return Err(Error::corruption(format!("array {} has no schema", self.path)));
            }
            let schemas = array.schemas.iter().map(read_schema).collect::<Result<Vec<_>>>()?;
            let pages = array.pages.into_iter().map(PageText::read).collect::<Result<Vec<_>>>()?;
            let history =
                schemas.first().into_iter().flat_map(|first| schemas.windows(2).map(move |pair| (pair, first)));
            for (pair, first) in history {
                let [before, after] = pair else { continue };
                after.check_follows(before, first).map_err(|e| {
                    Error::corruption(format!("array {} has schemas that do not follow each other: {e}", self.path))
                })?;
            }
            let dims = schemas.first().map_or(0, |s| s.ndim());
            if pages.iter().any(|p| p.bounds.ndim() != dims) {
                return Err(Error::corruption(format!("array {} has {dims} dimensions, its pages do not", self.path)));
            }
            Ok(RootArray { schemas, pages })
        });
        let metadata = Arc::new(self.metadata);
        Ok(RootNode { id: self.id.0, path: self.path, metadata, array: array.transpose()? })
    }
}

impl PageText {
    fn of(page: &PageInfo) -> Self {
        let order = |o: FragmentOrder| (Whole(o.version), o.index);
        Self {
            id: IdText(page.id),
            xxh3: Hex(page.xxh3),
            count: page.count,
            bounds: BoxText::of(&page.bounds),
            first: order(page.first),
            last: order(page.last),
            full: page.full,
        }
    }

    fn read(self) -> Result<PageInfo> {
        if self.count == 0 || self.count as usize > limits::PAGE_FRAGMENTS_MAX {
            return Err(Error::corruption(format!(
                "manifest page {} is said to describe {} fragments",
                self.id.0, self.count
            )));
        }
        let order = |(version, index): (Whole, u32)| FragmentOrder { version: version.0, index };
        Ok(PageInfo {
            id: self.id.0,
            xxh3: self.xxh3.0,
            count: self.count,
            bounds: self.bounds.bounds()?,
            first: order(self.first),
            last: order(self.last),
            full: self.full,
        })
    }
}
