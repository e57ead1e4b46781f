//! The JSON form of operations and fragment descriptions in a record. Each may have an `"ext"` of newer releases. It goes to
//! the row of a node that is created or given metadata, or of a tag; that of any other operation ends with its record.
//!
//! ```json
//! {"op":"create_group","id":…,"path":"/city"}
//! {"op":"create_array","id":…,"path":"/city/rain","schema":{…}}
//! {"op":"alter_array","id":…,"number":1,"schema":{…}}
//! {"op":"grow","array":…,"dimension":0,"low":"…","high":"…"}              ordered keys
//! {"op":"remove","id":…}
//! {"op":"move","id":…,"path":"/town/rain"}
//! {"op":"add_fragments","array":…,"fragments":[{"id":…,"kind":"dense","schema":0,"bounds":[["…","…"]],"cells":9,
//!    "attrs":[0],"at":{"body":{"offset":0,"len":700,"xxh3":"…"}}}]}          or "at":{"data":{"id":…,"offset":0,"len":9}}
//!                                                                              of a deletion "at":"nowhere"
//! {"op":"replace_fragments","array":…,"removed":[{"id":…,"order":[4,0],"bounds":[["…","…"]]}],"fragments":[{…,"order":[9,0]}]}
//! {"op":"set_metadata","node":…,"changes":[["unit","\"mm\""],["old",null]]}
//! {"op":"tag","name":"before the storm","version":7}
//! {"op":"untag","name":"before the storm"}
//! {"op":"condemn","floor":{"id":…,"version":9,"xxh3":"…"},"data":[…],"manifest":[…],"forget":[…]}         or "floor":null
//! {"op":"keep","array":…,"entry":…,"kept":{"owner":{"fragment":…},"kind":"bloom","files":[{"id":…,"len":700}]}}
//! {"op":"release","array":…,"entry":…}
//! {"op":"set_base","number":1,"base":{"kind":"store","places":[{"place":"s3://…","state":"active"}]}}        or "base":null
//! ```
//! What is known of values is in `"stats":"…"` ([`ValueBounds`]).
//! What lies on another base than the own store has `"base":number` in its `data`. What newer releases say of a fragment is
//! in `"ext"`, or in `"parts":[[bit,"hex"]]` ([`super::page_parts`]). A mask has `"over":id`. Tombstones and deletions that delete only what an earlier version held have its `"order"`.
//! Offsets of bodies count from the start of the record's body. The order of an added fragment is not written: it is
//! the record's version and the fragment's position among all fragments that the record adds. The order of a merged
//! fragment is written.

use super::bases::Base;
use super::extension::Ext;
use super::field::Field;
use super::kept::KeptText;
use super::operation::{Condemned, Operation, Recorded, Removed};
use super::page_parts::{PartText, extra_texts, read_extra};
use super::shape::{BoxText, BytesText, Hex, IdText, RootRef, RootText, Signed, Whole, id_texts, ids};
use crate::base::{ByteRange, Error, FileRef, Id, Result, limits, newer, xxh3};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Location, Staged, ValueBounds};
use crate::schema::{KeyRange, Schema};
use bytes::Bytes;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::sync::Arc;

pub(super) const KNOWN: [&str; 15] = [
    "create_group",
    "create_array",
    "alter_array",
    "grow",
    "remove",
    "move",
    "add_fragments",
    "replace_fragments",
    "set_metadata",
    "tag",
    "untag",
    "condemn",
    "keep",
    "release",
    "set_base",
];

#[derive(Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum OperationText {
    CreateGroup {
        id: IdText,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    CreateArray {
        id: IdText,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        owner: Option<IdText>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        name: Option<String>,
        schema: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    AlterArray {
        id: IdText,
        number: u32,
        schema: Value,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Grow {
        array: IdText,
        dimension: u32,
        low: Hex,
        high: Hex,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Remove {
        id: IdText,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Move {
        id: IdText,
        path: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    AddFragments {
        array: IdText,
        fragments: Vec<FragmentText>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    ReplaceFragments {
        array: IdText,
        removed: Vec<RemovedText>,
        fragments: Vec<FragmentText>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    SetMetadata {
        node: IdText,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        attr: Option<u32>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        dim: Option<u32>,
        changes: Vec<(String, Option<String>)>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Tag {
        name: String,
        version: Whole,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Untag {
        name: String,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Condemn {
        floor: Option<RootText>,
        data: Vec<IdText>,
        manifest: Vec<IdText>,
        forget: Vec<IdText>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Keep {
        array: IdText,
        entry: IdText,
        kept: KeptText,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    Release {
        array: IdText,
        entry: IdText,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
    SetBase {
        number: u32,
        base: Option<Base>,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ext: Ext,
    },
}

/// An order: version and place.
type OrderText = (Whole, u32);

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RemovedText {
    id: IdText,
    order: OrderText,
    bounds: BoxText,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct FragmentText {
    id: IdText,
    kind: String,
    schema: u32,
    bounds: BoxText,
    cells: Whole,
    attrs: Vec<u32>,
    at: PlaceText,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    order: Option<OrderText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    over: Option<IdText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    moved: Vec<Signed>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    stats: Option<BytesText>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    parts: Vec<PartText>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    ext: Ext,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
enum PlaceText {
    Data {
        id: IdText,
        offset: Whole,
        len: Whole,
        #[serde(default, skip_serializing_if = "is_own")]
        base: u32,
    },
    Body {
        offset: Whole,
        len: Whole,
        xxh3: Hex,
    },
    Nowhere,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_own(base: &u32) -> bool {
    *base == 0
}

impl OperationText {
    /// Encodes `operation`; bodies of its fragments are appended to `bodies`.
    pub(super) fn of(operation: &Operation, bodies: &mut Bodies) -> Result<Self> {
        Ok(match operation {
            Operation::CreateGroup { id, path, ext } => {
                Self::CreateGroup { id: IdText(*id), path: path.clone(), ext: ext.clone() }
            }
            Operation::CreateArray { id, path, schema, ext } => {
                let (path, schema, ext) = (Some(path.clone()), schema_value(schema)?, ext.clone());
                Self::CreateArray { id: IdText(*id), path, owner: None, name: None, schema, ext }
            }
            Operation::CreateHidden { id, owner, name, schema, ext } => {
                let (owner, name, schema) = (Some(IdText(*owner)), Some(name.clone()), schema_value(schema)?);
                Self::CreateArray { id: IdText(*id), path: None, owner, name, schema, ext: ext.clone() }
            }
            Operation::AlterArray { id, number, schema } => {
                Self::AlterArray { id: IdText(*id), number: *number, schema: schema_value(schema)?, ext: None }
            }
            Operation::Grow { array, dimension, range } => {
                let (array, low, high) = (IdText(*array), Hex(range.lo), Hex(range.hi));
                Self::Grow { array, dimension: *dimension, low, high, ext: None }
            }
            Operation::Remove { id } => Self::Remove { id: IdText(*id), ext: None },
            Operation::Move { id, path, .. } => Self::Move { id: IdText(*id), path: path.clone(), ext: None },
            Operation::AddFragments { array, fragments } => Self::AddFragments {
                array: IdText(*array),
                fragments: fragments.iter().map(|f| FragmentText::of(f, earlier(f), bodies)).collect::<Result<_>>()?,
                ext: None,
            },
            Operation::ReplaceFragments { array, removed, fragments } => {
                let merged = |f: &Staged| FragmentText::of(f, Some(order_text(f.description.order)), bodies);
                Self::ReplaceFragments {
                    array: IdText(*array),
                    removed: removed.iter().map(RemovedText::of).collect(),
                    fragments: fragments.iter().map(merged).collect::<Result<_>>()?,
                    ext: None,
                }
            }
            Operation::SetMetadata { node, changes } => {
                Self::SetMetadata { node: IdText(*node), attr: None, dim: None, changes: changes.clone(), ext: None }
            }
            Operation::SetFieldMetadata { array, field, changes } => {
                let (attr, dim) = match field {
                    Field::Attribute(number) => (Some(*number), None),
                    Field::Dimension(place) => (None, Some(*place)),
                };
                Self::SetMetadata { node: IdText(*array), attr, dim, changes: changes.clone(), ext: None }
            }
            Operation::Tag { name, version, .. } => {
                Self::Tag { name: name.clone(), version: Whole(*version), ext: None }
            }
            Operation::Untag { name, .. } => Self::Untag { name: name.clone(), ext: None },
            Operation::Condemn(condemned) => Self::Condemn {
                floor: condemned.floor.map(RootText::from),
                data: id_texts(&condemned.data),
                manifest: id_texts(&condemned.manifest),
                forget: id_texts(&condemned.forget),
                ext: None,
            },
            Operation::Keep { array, kept, .. } => {
                Self::Keep { array: IdText(*array), entry: IdText(kept.entry), kept: KeptText::of(kept), ext: None }
            }
            Operation::Release { array, entry } => {
                Self::Release { array: IdText(*array), entry: IdText(*entry), ext: None }
            }
            Operation::SetBase { number, base, .. } => {
                Self::SetBase { number: *number, base: base.as_deref().cloned(), ext: None }
            }
        })
    }
}

/// A schema as a JSON value, to be embedded.
pub(super) fn schema_value(schema: &Schema) -> Result<Value> {
    serde_json::from_str(&schema.to_stored_json())
        .map_err(|e| Error::schema("the schema cannot be written as JSON").with_source(e))
}

/// Parses the value of [`schema_value`].
pub(super) fn read_schema(value: &Value) -> Result<Arc<Schema>> {
    Schema::from_stored_json(&value.to_string()).map(Arc::new)
}

/// Parses the row of a schema.
pub(super) fn schema_in(text: &[u8]) -> Result<Arc<Schema>> {
    let text = std::str::from_utf8(text).map_err(|e| Error::corruption("a schema is not UTF-8").with_source(e))?;
    Schema::from_stored_json(text).map(Arc::new)
}

fn order_text(order: FragmentOrder) -> OrderText {
    (Whole(order.version), order.index)
}

fn read_order((version, index): OrderText) -> FragmentOrder {
    FragmentOrder { version: version.0, index }
}

/// The order of a deletion that deletes only what was present at an earlier version.
pub(super) fn earlier(staged: &Staged) -> Option<OrderText> {
    let d = &staged.description;
    (d.kind.deletes() && d.order.version > 0).then(|| order_text(d.order))
}

impl RemovedText {
    fn of(removed: &Removed) -> Self {
        Self { id: IdText(removed.id), order: order_text(removed.order), bounds: BoxText::of(&removed.bounds) }
    }

    fn read(self) -> Result<Removed> {
        Ok(Removed { id: self.id.0, order: read_order(self.order), bounds: self.bounds.bounds()? })
    }
}

impl FragmentText {
    pub(super) fn of(staged: &Staged, order: Option<OrderText>, bodies: &mut Bodies) -> Result<Self> {
        let d = &staged.description;
        let (ext, parts) = extra_texts(&d.extra);
        Ok(Self {
            id: IdText(d.id),
            kind: d.kind.name().to_owned(),
            schema: d.schema,
            bounds: BoxText::of(&d.bounds),
            cells: Whole(d.cells),
            attrs: d.attrs.clone(),
            at: PlaceText::of(staged, bodies)?,
            order,
            over: d.over.map(IdText),
            moved: d.moved.iter().copied().map(Signed).collect(),
            stats: Some(d.stats.as_bytes()).filter(|bytes| !bytes.is_empty()).map(|b| BytesText(b.to_vec())),
            parts,
            ext,
        })
    }

    /// Whether the order is written.
    pub(super) fn has_order(&self) -> bool {
        self.order.is_some()
    }

    /// `merged`: whether the order is written.
    pub(super) fn read(self, merged: bool, place: &mut Place) -> Result<Description> {
        let (id, at) = (self.id.0, self.at);
        let kind = FragmentKind::parse(&self.kind)
            .ok_or_else(|| newer(format!("fragment {id}"), format!("the kind {:?}", self.kind)))?;
        if !self.attrs.is_sorted_by(|a, b| a < b) || self.attrs.len() > limits::ATTRIBUTES_MAX {
            return Err(Error::corruption(format!("fragment {id} lists its attributes out of order or twice")));
        }
        let (schema, bounds, cells, attrs) = (self.schema, self.bounds.bounds()?, self.cells.0, self.attrs);
        let order = match self.order {
            None if !merged => place.next_order()?,
            Some(order) if merged => read_order(order),
            Some(order) if kind.deletes() && order.0.0 < place.version => read_order(order),
            _ => return Err(Error::corruption(format!("fragment {id} is said to be merged, and not to be"))),
        };
        let location = place.locate(id, at)?;
        let (over, moved) = (self.over.map(|id| id.0), self.moved.into_iter().map(|by| by.0).collect());
        let stats =
            ValueBounds::new(self.stats.unwrap_or_default().0).map_err(|e| e.context(format!("fragment {id}")))?;
        let extra = read_extra(self.ext, &self.parts).map_err(|e| e.context(format!("fragment {id}")))?;
        Ok(Description { id, kind, order, schema, bounds, cells, attrs, location, over, stats, moved, extra })
    }
}

impl PlaceText {
    fn of(staged: &Staged, bodies: &mut Bodies) -> Result<Self> {
        let d = &staged.description;
        match (&staged.body, d.location.file) {
            (Some(body), _) if body.is_empty() || body.len() > limits::INLINE_BYTES_MAX => Err(Error::input(format!(
                "fragment {} has {} bytes; 1 to {} may live in the log",
                d.id,
                body.len(),
                limits::INLINE_BYTES_MAX
            ))),
            (Some(body), _) => {
                let (offset, len) = (Whole(bodies.push(body)), Whole(body.len() as u64));
                Ok(Self::Body { offset, len, xxh3: Hex(xxh3(body)) })
            }
            (None, FileRef::Data(id)) => Ok(Self::data(0, id, d)),
            (None, FileRef::OnBase(base, id)) => Ok(Self::data(base, id, d)),
            (None, FileRef::Nowhere) => Ok(Self::Nowhere),
            (None, FileRef::Log(version)) => Err(Error::input(format!(
                "fragment {} lies in the log record of version {version}; a new fragment needs bytes or a data file",
                d.id
            ))),
        }
    }
}

impl PlaceText {
    fn data(base: u32, id: Id, d: &Description) -> Self {
        Self::Data { id: IdText(id), offset: Whole(d.location.offset), len: Whole(d.location.len), base }
    }
}

/// The bodies of a record being written, in order.
#[derive(Debug, Default)]
pub(super) struct Bodies {
    pub(super) parts: Vec<Bytes>,
    end: u64,
}

impl Bodies {
    /// Appends a body and returns its offset.
    fn push(&mut self, body: &Bytes) -> u64 {
        let offset = next_body(self.end);
        self.end = offset.saturating_add(body.len() as u64);
        self.parts.push(body.clone());
        offset
    }
}

/// The offset of the next body after one that ended at `end`.
fn next_body(end: u64) -> u64 {
    end.checked_next_multiple_of(BODY_ALIGNMENT).unwrap_or(u64::MAX)
}

/// Walks through a record's fragments and gives each its order and its location in the file.
pub(super) struct Place {
    version: u64,
    /// The offset of the record's body in its file.
    body: u64,
    /// The end of the last body, counted from the start of the record's body.
    end: u64,
    index: u32,
    pub(super) inline: Vec<Inline>,
}

impl Place {
    pub(super) fn new(version: u64, body: u64) -> Self {
        Self::starting(version, body, 0)
    }

    /// Like `new`, after `index` earlier fragments of the version.
    pub(super) fn starting(version: u64, body: u64, index: u32) -> Self {
        Self { version, body, end: 0, index, inline: Vec::new() }
    }

    /// How many fragments of the version have got an order.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    fn next_order(&mut self) -> Result<FragmentOrder> {
        let order = FragmentOrder { version: self.version, index: self.index };
        self.index = self.index.checked_add(1).ok_or_else(|| Error::input("one commit adds over 2^32 fragments"))?;
        Ok(order)
    }

    /// Bodies are contiguous; anything else could make two fragments share bytes.
    fn locate(&mut self, fragment: Id, at: PlaceText) -> Result<Location> {
        match at {
            PlaceText::Data { id, offset, len, base } => {
                let file = if base == 0 { FileRef::Data(id.0) } else { FileRef::OnBase(base, id.0) };
                Ok(Location { file, offset: offset.0, len: len.0 })
            }
            PlaceText::Nowhere => Ok(Location { file: FileRef::Nowhere, offset: 0, len: 0 }),
            PlaceText::Body { offset, len, xxh3 } => {
                let end = offset.0.checked_add(len.0).filter(|_| offset.0 == next_body(self.end) && len.0 > 0);
                let end = end.filter(|end| end.checked_add(self.body).is_some());
                self.end = end.ok_or_else(|| {
                    Error::corruption(format!("the body of fragment {fragment} is not where the one before it ends"))
                })?;
                let range = ByteRange::new(self.body + offset.0, len.0);
                self.inline.push(Inline { id: fragment, range, xxh3: xxh3.0 });
                Ok(Location { file: FileRef::Log(self.version), offset: range.offset, len: range.len })
            }
        }
    }
}

/// Parses the operation in `value`. Unsupported if its kind is unknown: it must not be ignored.
pub(super) fn read_operation(value: Value, place: &mut Place) -> Result<Recorded> {
    let name = value.get("op").and_then(Value::as_str).unwrap_or_default();
    if !KNOWN.contains(&name) {
        return Err(match value.get("op") {
            Some(Value::String(_)) => newer("it", format!("the operation {name:?}")),
            _ => Error::corruption("an operation has no name"),
        });
    }
    let text: OperationText = serde_json::from_value(value)
        .map_err(|e| Error::corruption(format!("an operation is not understood: {e}")).with_source(e))?;
    Ok(match text {
        OperationText::CreateGroup { id, path, ext } => Recorded::CreateGroup { id: id.0, path, ext },
        OperationText::CreateArray { id, path, owner, name, schema, ext } => {
            let (id, schema) = (id.0, read_schema(&schema)?);
            match (path, owner, name) {
                (Some(path), None, None) => Recorded::CreateArray { id, path, schema, ext },
                (None, Some(owner), Some(name)) => Recorded::CreateHidden { id, owner: owner.0, name, schema, ext },
                _ => return Err(Error::corruption("an array is created neither at a path nor in an array alone")),
            }
        }
        OperationText::AlterArray { id, number, schema, .. } => {
            Recorded::AlterArray { id: id.0, number, schema: read_schema(&schema)? }
        }
        OperationText::Grow { array, dimension, low, high, .. } => {
            if low.0 > high.0 {
                return Err(Error::corruption("a domain is said to grow to an empty range"));
            }
            Recorded::Grow { array: array.0, dimension, range: KeyRange::new(low.0, high.0) }
        }
        OperationText::Remove { id, .. } => Recorded::Remove { id: id.0 },
        OperationText::Move { id, path, .. } => Recorded::Move { id: id.0, path },
        OperationText::AddFragments { array, fragments, .. } => Recorded::AddFragments {
            array: array.0,
            fragments: fragments.into_iter().map(|f| f.read(false, place).map(Arc::new)).collect::<Result<_>>()?,
        },
        OperationText::ReplaceFragments { array, removed, fragments, .. } => Recorded::ReplaceFragments {
            array: array.0,
            removed: removed.into_iter().map(RemovedText::read).collect::<Result<_>>()?,
            fragments: fragments.into_iter().map(|f| f.read(true, place).map(Arc::new)).collect::<Result<_>>()?,
        },
        OperationText::SetMetadata { node, attr, dim, changes, ext } => match (attr, dim) {
            (None, None) => Recorded::SetMetadata { node: node.0, changes, ext },
            (Some(number), None) => {
                Recorded::SetFieldMetadata { array: node.0, field: Field::Attribute(number), changes }
            }
            (None, Some(place)) => {
                Recorded::SetFieldMetadata { array: node.0, field: Field::Dimension(place), changes }
            }
            _ => return Err(Error::corruption("metadata is of an attribute and a dimension at once")),
        },
        OperationText::Tag { name, version, ext } => Recorded::Tag { name, version: version.0, ext },
        OperationText::Untag { name, .. } => Recorded::Untag { name },
        OperationText::Condemn { floor, data, manifest, forget, .. } => Recorded::Condemn(Condemned {
            floor: floor.map(RootRef::from),
            data: ids(data),
            manifest: ids(manifest),
            forget: ids(forget),
        }),
        OperationText::Keep { array, entry, kept, .. } => {
            Recorded::Keep { array: array.0, kept: Arc::new(kept.read(entry.0)?) }
        }
        OperationText::Release { array, entry, .. } => Recorded::Release { array: array.0, entry: entry.0 },
        OperationText::SetBase { number: 0, .. } => {
            return Err(Error::corruption("base 0 is the own store, and nothing else can be said of it"));
        }
        OperationText::SetBase { number, base, .. } => Recorded::SetBase { number, base: base.map(Arc::new) },
    })
}

/// The alignment in bytes of bodies and folded fragments, so that their indexes are usable in place.
pub(super) const BODY_ALIGNMENT: u64 = 64;

/// A fragment in the body of a record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Inline {
    /// The fragment.
    pub id: Id,
    /// Its range in the record's file.
    pub range: ByteRange,
    /// The checksum of its bytes.
    pub xxh3: u64,
}
