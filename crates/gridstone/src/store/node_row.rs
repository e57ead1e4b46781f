//! The values of rows: heads of nodes, pages of fragments, children, tags.
//!
//! ```text
//! head    {"parent":"<id>","name":"rain","kind":"array","schemas":2,"domain":[["…","…"]]}
//!         of "/" "parent" is null and "name" empty; a group has neither "schemas" nor "domain"; a hidden array has
//!         "hidden":true; null stands for the domain of a dimension that has none yet
//! page    {"id":…,"xxh3":"…","count":9,"bounds":[["…","…"]],"first":[1,0],"last":[64,0],"full":false}
//! child   id, 16 bytes · kind, a byte: 0 a group, 1 an array, 2 a hidden array
//! tag     {"version":7}
//! ```
//! A schema is its JSON, metadata the JSON text. Each JSON object may have an `ext`.

use super::extension::Ext;
use super::page::PageInfo;
use super::path::MARK;
use super::shape::{BoxText, DomainText, Hex, IdText, Whole};
use crate::base::{Error, Id, Result, limits, newer, unknown_name};
use crate::fragment::FragmentOrder;
use crate::schema::Subarray;
use bytes::Bytes;
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// What a head says of a node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Head {
    /// The group that it lies in; `None` for "/".
    pub(super) parent: Option<Id>,
    /// Its name in that group.
    pub(super) name: String,
    /// The number of schemas that an array ever had; `None` for a group.
    pub(super) schemas: Option<u32>,
    /// The domain of an array; `None`: that of its last schema.
    pub(super) domain: Option<Subarray>,
    /// Whether it is a hidden array; what it lies in is an array.
    pub(super) is_hidden: bool,
    pub(super) ext: Ext,
}

/// A node, as the group that it lies in names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Child {
    /// The node.
    pub id: Id,
    /// Whether it is an array.
    pub is_array: bool,
    /// Whether it is a hidden array: what it lies in is an array.
    pub is_hidden: bool,
}

impl Child {
    /// "group" or "array".
    pub fn kind(&self) -> &'static str {
        if self.is_array { "array" } else { "group" }
    }

    pub(super) fn encode(self) -> Bytes {
        let kind = if self.is_hidden { 2 } else { u8::from(self.is_array) };
        [&self.id.0[..], &[kind]].concat().into()
    }

    pub(super) fn decode(value: &[u8]) -> Result<Self> {
        let (id, kind) = value.split_first_chunk::<16>().ok_or_else(|| Error::corruption("a child is cut"))?;
        match kind {
            [kind @ (0..=2)] => Ok(Self { id: Id(*id), is_array: *kind > 0, is_hidden: *kind == 2 }),
            [] => Err(Error::corruption("a child is cut")),
            _ => Err(newer("a child of a group", format!("the kind {kind:?}"))),
        }
    }
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct HeadText {
    parent: Option<IdText>,
    name: String,
    kind: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    schemas: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    domain: Option<DomainText>,
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    hidden: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TagText {
    version: Whole,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

/// A page of fragment descriptions, as a root names it.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct PageText {
    id: IdText,
    xxh3: Hex,
    count: u32,
    bounds: BoxText,
    first: (Whole, u32),
    last: (Whole, u32),
    full: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

fn write<T: Serialize>(text: &T) -> Result<Bytes> {
    serde_json::to_vec(text)
        .map(Bytes::from)
        .map_err(|e| Error::input("the manifest cannot be written as JSON").with_source(e))
}

/// The JSON in `value`. Unsupported if it has unknown names; Corruption if it is not understood otherwise.
pub(super) fn read<T: DeserializeOwned>(value: &[u8], what: &str) -> Result<T> {
    serde_json::from_slice(value).map_err(|e| {
        let text = std::str::from_utf8(value).unwrap_or_default();
        match unknown_name::<T>(text) {
            Some(name) => newer(what, name),
            None => Error::corruption(format!("{what} is intact but not understood: {e}")).with_source(e),
        }
    })
}

impl Head {
    pub(super) fn encode(&self) -> Result<Bytes> {
        let kind = if self.schemas.is_some() { "array" } else { "group" }.to_owned();
        let (parent, name, ext) = (self.parent.map(IdText), self.name.clone(), self.ext.clone());
        let domain = self.domain.as_ref().map(DomainText::of);
        write(&HeadText { parent, name, kind, schemas: self.schemas, domain, hidden: self.is_hidden, ext })
    }

    pub(super) fn decode(value: &[u8], id: Id) -> Result<Self> {
        let what = format!("the head of node {id}");
        let text: HeadText = read(value, &what)?;
        let is_array = match text.kind.as_str() {
            "array" => true,
            "group" => false,
            other => return Err(newer(what, format!("the kind {other:?}"))),
        };
        let is_whole = is_array == text.schemas.is_some_and(|count| count > 0) && (is_array || text.domain.is_none());
        let is_hidden = !text.hidden || (is_array && text.parent.is_some() && text.name.starts_with(MARK));
        if !is_whole || !is_hidden || text.parent.is_none() != text.name.is_empty() {
            return Err(Error::corruption(format!("{what} contradicts itself")));
        }
        let domain = text.domain.map(|domain| domain.domain()).transpose()?;
        let (parent, is_hidden) = (text.parent.map(|id| id.0), text.hidden);
        Ok(Self { parent, name: text.name, schemas: text.schemas, domain, is_hidden, ext: text.ext })
    }
}

/// The row of a page.
pub(super) fn encode_page(page: &PageInfo) -> Result<Bytes> {
    write(&PageText::of(page))
}

/// The page in the row of the page `id`.
pub(super) fn decode_page(id: Id, value: &[u8]) -> Result<PageInfo> {
    let page = read::<PageText>(value, "a page of fragments")?.read()?;
    if page.id == id {
        return Ok(page);
    }
    Err(Error::corruption(format!("the row of manifest page {id} is of another page, {}", page.id)))
}

/// The row of a tag.
pub(super) fn encode_tag(version: u64, ext: &Ext) -> Result<Bytes> {
    write(&TagText { version: Whole(version), ext: ext.clone() })
}

/// The version that the row of a tag names.
pub(super) fn decode_tag(value: &[u8]) -> Result<u64> {
    Ok(read::<TagText>(value, "a tag")?.version.0)
}

impl PageText {
    pub(super) fn of(page: &PageInfo) -> Self {
        let order = |o: FragmentOrder| (Whole(o.version), o.index);
        Self {
            id: IdText(page.id),
            xxh3: Hex(page.xxh3),
            count: page.count,
            bounds: BoxText::of(&page.bounds),
            first: order(page.first),
            last: order(page.last),
            full: page.full,
            ext: None,
        }
    }

    pub(super) fn has_ext(&self) -> bool {
        self.ext.is_some()
    }

    pub(super) fn read(self) -> Result<PageInfo> {
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
