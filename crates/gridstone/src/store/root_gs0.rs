//! Reads a manifest root of GS0: one line that holds the whole state but the fragments. It becomes the same rows as
//! those of a root of GS1, in memory.
//!
//! ```json
//! {"gs":0,"version":64,"time_us":…,"record":"<xxh3 of that version's line>","store":"<id of version 1's commit>",
//!  "nodes":[{"id":…,"path":"/","metadata":{"unit":"\"mm\""},"array":{"schemas":[{…}],"pages":[{"id":…,"xxh3":"…",
//!    "count":9,"bounds":[["…","…"]],"first":[1,0],"last":[64,0],"full":false}]}}]}
//! ```
//! Where there are tags, a floor or condemned files,
//! `"retained":{"tags":{name:7},"floor":{…},"data":[…],"manifest":[…]}` is last. Parents come before their children; a
//! node without `array` is a group.

use super::line::{self, Line};
use super::node_row::{self, Child, Head, PageText};
use super::path;
use super::rows::{RowMap, key};
use super::shape::{Hex, IdText, RootRef, RootText, Signed, Whole};
use super::wording::read_schema;
use crate::base::{Error, Id, Result, id_named_twice, newer};
use crate::storage::Storage;
use bytes::Bytes;
use serde::Deserialize;
use serde_json::Value;
use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct LineText {
    #[expect(dead_code, reason = "the line's format was checked")]
    gs: u64,
    version: Whole,
    time_us: Signed,
    record: Hex,
    store: IdText,
    nodes: Vec<NodeText>,
    #[serde(default)]
    retained: Option<RetainedText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct NodeText {
    id: IdText,
    path: String,
    metadata: BTreeMap<String, String>,
    #[serde(default)]
    array: Option<ArrayText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct ArrayText {
    schemas: Vec<Value>,
    pages: Vec<PageText>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RetainedText {
    tags: BTreeMap<String, Whole>,
    floor: Option<RootText>,
    data: Vec<IdText>,
    manifest: Vec<IdText>,
}

/// The content of a root of GS0.
pub(super) struct Content {
    pub(super) version: u64,
    pub(super) time_us: i64,
    pub(super) record: u64,
    pub(super) store: Id,
    pub(super) node: Id,
    pub(super) floor: Option<RootRef>,
    pub(super) rows: RowMap,
}

/// The content of the root in a line; `what` names it in errors.
pub(super) fn decode(line: Line<'_>, what: &str, storage: &Arc<dyn Storage>) -> Result<Content> {
    let text: LineText = line::parse(line, what)?;
    let mut nodes = Nodes::default();
    for node in text.nodes {
        nodes.add(node).map_err(|e| e.context(what))?;
    }
    if let Some(page) = id_named_twice(nodes.pages.iter().copied()) {
        return Err(Error::corruption(format!("{what} names the page {page} twice")));
    }
    let Some(node) = nodes.by_path.get(path::ROOT).map(|child| child.id) else {
        return Err(Error::corruption(format!("{what} has no node at /")));
    };
    let mut rows = nodes.rows;
    let floor = text.retained.map(|retained| retained.read(&mut rows)).transpose()?.flatten();
    Ok(Content {
        version: text.version.0,
        time_us: text.time_us.0,
        record: text.record.0,
        store: text.store.0,
        node,
        floor,
        rows: RowMap::of(rows.into_iter().collect(), storage),
    })
}

type Rows = BTreeMap<Bytes, Bytes>;

#[derive(Default)]
struct Nodes {
    rows: Rows,
    by_path: HashMap<String, Child>,
    pages: Vec<Id>,
}

impl Nodes {
    fn add(&mut self, node: NodeText) -> Result<()> {
        let NodeText { id: IdText(id), path, metadata, array } = node;
        let wrong = |why: &str| Error::corruption(format!("node {path}: {why}"));
        path::check(&path).map_err(|e| wrong(e.message()))?;
        let child = Child { id, is_array: array.is_some(), is_hidden: false };
        if self.rows.contains_key(&key::head(id)) || self.by_path.insert(path.clone(), child).is_some() {
            return Err(wrong("it is there twice"));
        }
        let above = path::parent(&path).map(|parent| self.by_path.get(parent));
        let parent = match above {
            None => None,
            Some(Some(group)) if !group.is_array => Some(group.id),
            Some(_) => return Err(wrong("there is no group above it")),
        };
        let name = path::name(&path).to_owned();
        if let Some(group) = parent {
            self.rows.insert(key::child(group, &name), child.encode());
        }
        let schemas = array.as_ref().map(|array| array.schemas.len() as u32);
        let head = Head { parent, name, schemas, domain: None, is_hidden: false, ext: None };
        self.rows.insert(key::head(id), head.encode()?);
        for (name, text) in metadata {
            self.rows.insert(key::metadata(id, &name), text.into());
        }
        array.map_or(Ok(()), |array| self.add_array(id, array).map_err(|e| e.context(format!("array {path}"))))
    }

    fn add_array(&mut self, id: Id, array: ArrayText) -> Result<()> {
        let schemas = array.schemas.iter().map(read_schema).collect::<Result<Vec<_>>>()?;
        let Some(first) = schemas.first() else { return Err(Error::corruption("it has no schema")) };
        if schemas.iter().any(|schema| schema.is_beyond_gs0()) || array.pages.iter().any(PageText::has_ext) {
            return Err(newer("it", "an \"ext\" or a feature, which its format does not have"));
        }
        for pair in schemas.windows(2) {
            let [before, after] = pair else { continue };
            after
                .check_follows(before, first)
                .map_err(|e| Error::corruption(format!("its schemas do not follow each other: {e}")))?;
        }
        for (schema, number) in schemas.iter().zip(0u32..) {
            self.rows.insert(key::schema(id, number), schema.to_stored_json().into());
        }
        for page in array.pages {
            let page = page.read()?;
            if page.bounds.ndim() != first.ndim() {
                return Err(Error::corruption(format!("it has {} dimensions, its pages do not", first.ndim())));
            }
            self.pages.push(page.id);
            self.rows.insert(key::page(id, page.id), node_row::encode_page(&page)?);
        }
        Ok(())
    }
}

impl RetainedText {
    /// Adds its rows; returns the floor.
    fn read(self, rows: &mut Rows) -> Result<Option<RootRef>> {
        for (name, version) in self.tags {
            rows.insert(key::tag(&name), node_row::encode_tag(version.0, &None)?);
        }
        for (file, ids) in [(key::File::Data, self.data), (key::File::Manifest, self.manifest)] {
            rows.extend(ids.into_iter().map(|id| (key::condemned(file, id.0), Bytes::new())));
        }
        Ok(self.floor.map(RootRef::from))
    }
}
