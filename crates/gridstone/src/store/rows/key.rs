//! The keys of rows: a tag, then what it is about. Numbers are big-endian, so that keys sort as they do.
//!
//! | tag | then | value |
//! |---|---|---|
//! | `B` | u32 number | a base, JSON |
//! | `C` | `d` a data file or `m` a manifest object, id | nothing: it is condemned |
//! | `I` | node id, 0 | head of the node, JSON |
//! | `I` | node id, 1, page id | a page of fragment descriptions, JSON |
//! | `I` | node id, 2, 2^32 - 1 - number | a schema, JSON |
//! | `I` | node id, 3, entry id | kept files, JSON |
//! | `I` | node id, 4, key | metadata, a JSON text |
//! | `I` | node id, 5, `a` or `d`, number, key | metadata of an attribute or dimension, a JSON text |
//! | `K` | nothing | how many commit keys there were, JSON |
//! | `K` | epoch, xxh3 of the commit key, commit key | the commit that it was given to |
//! | `N` | id of the group, name | id of the child, kind |
//! | `T` | name | a tag, JSON |

use crate::base::{Id, limits, xxh3};
use crate::store::field::Field;
use bytes::Bytes;

const BASE: u8 = b'B';
const CONDEMNED: u8 = b'C';
const NODE: u8 = b'I';
const COMMIT_KEY: u8 = b'K';
const NAME: u8 = b'N';
const TAG: u8 = b'T';

const HEAD: u8 = 0;
const PAGE: u8 = 1;
const SCHEMA: u8 = 2;
const KEPT: u8 = 3;
const METADATA: u8 = 4;
const FIELD_METADATA: u8 = 5;

/// Bytes of a tag and an id.
const ID_END: usize = 17;

/// The content of a row of a node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum NodeRow<'a> {
    Head,
    Page(Id),
    Schema(u32),
    Kept(Id),
    Metadata(&'a [u8]),
    FieldMetadata(Field, &'a [u8]),
    /// A newer release wrote it.
    Other,
}

/// A file of which a row says that it is condemned.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::store) enum File {
    Data,
    Manifest,
}

fn joined(parts: &[&[u8]]) -> Bytes {
    parts.concat().into()
}

/// All rows of a node.
pub(in crate::store) fn node(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0])
}

pub(in crate::store) fn head(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[HEAD]])
}

/// All pages of an array.
pub(in crate::store) fn pages(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[PAGE]])
}

pub(in crate::store) fn page(id: Id, page: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[PAGE], &page.0])
}

/// A schema of an array. The newest comes first, beside the head.
pub(in crate::store) fn schema(id: Id, number: u32) -> Bytes {
    joined(&[&[NODE], &id.0, &[SCHEMA], &(!number).to_be_bytes()])
}

/// All kept files of an array.
pub(in crate::store) fn all_kept(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[KEPT]])
}

pub(in crate::store) fn kept(id: Id, entry: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[KEPT], &entry.0])
}

/// All bases.
pub(in crate::store) fn bases() -> Bytes {
    joined(&[&[BASE]])
}

pub(in crate::store) fn base(number: u32) -> Bytes {
    joined(&[&[BASE], &number.to_be_bytes()])
}

/// The number in the key of a base.
pub(in crate::store) fn read_base(key: &[u8]) -> Option<u32> {
    key.strip_prefix(&[BASE])?.try_into().ok().map(u32::from_be_bytes)
}

/// All metadata of a node.
pub(in crate::store) fn all_metadata(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[METADATA]])
}

pub(in crate::store) fn metadata(id: Id, key: &str) -> Bytes {
    joined(&[&[NODE], &id.0, &[METADATA], key.as_bytes()])
}

/// All metadata of the attributes and dimensions of an array.
pub(in crate::store) fn all_field_metadata(id: Id) -> Bytes {
    joined(&[&[NODE], &id.0, &[FIELD_METADATA]])
}

/// All metadata of an attribute or dimension.
pub(in crate::store) fn field_metadata(id: Id, field: Field) -> Bytes {
    let (kind, number) = match field {
        Field::Attribute(number) => (b'a', number),
        Field::Dimension(place) => (b'd', place),
    };
    joined(&[&[NODE], &id.0, &[FIELD_METADATA, kind], &number.to_be_bytes()])
}

/// All children of a group, or hidden arrays of an array.
pub(in crate::store) fn children(group: Id) -> Bytes {
    joined(&[&[NAME], &group.0])
}

pub(in crate::store) fn child(group: Id, name: &str) -> Bytes {
    joined(&[&[NAME], &group.0, name.as_bytes()])
}

/// All tags.
pub(in crate::store) fn tags() -> Bytes {
    joined(&[&[TAG]])
}

pub(in crate::store) fn tag(name: &str) -> Bytes {
    joined(&[&[TAG], name.as_bytes()])
}

/// All condemned files.
pub(in crate::store) fn all_condemned() -> Bytes {
    joined(&[&[CONDEMNED]])
}

pub(in crate::store) fn condemned(file: File, id: Id) -> Bytes {
    let kind = match file {
        File::Data => b'd',
        File::Manifest => b'm',
    };
    joined(&[&[CONDEMNED, kind], &id.0])
}

/// How many commit keys there were.
pub(in crate::store) fn commit_key_count() -> Bytes {
    joined(&[&[COMMIT_KEY]])
}

/// All rows of commit keys of an epoch. Epochs ascend.
pub(in crate::store) fn commit_key_epoch(epoch: u64) -> Bytes {
    joined(&[&[COMMIT_KEY], &epoch.to_be_bytes()])
}

/// Where a commit key is looked for in an epoch.
pub(in crate::store) fn commit_key(epoch: u64, key: &[u8]) -> Bytes {
    joined(&[&[COMMIT_KEY], &epoch.to_be_bytes(), &xxh3(key).to_be_bytes(), key])
}

/// All rows of all nodes.
pub(in crate::store) fn nodes() -> Bytes {
    joined(&[&[NODE]])
}

fn id_in(bytes: &[u8]) -> Option<Id> {
    bytes.first_chunk::<16>().map(|id| Id(*id))
}

/// The node that a row is about, and the content of that row.
pub(in crate::store) fn read_node(key: &[u8]) -> Option<(Id, NodeRow<'_>)> {
    let id = id_in(key.strip_prefix(&[NODE])?)?;
    let rest = key.get(ID_END..)?;
    let row = match rest.split_first() {
        Some((&HEAD, [])) => NodeRow::Head,
        Some((&PAGE, page)) if page.len() == 16 => id_in(page).map_or(NodeRow::Other, NodeRow::Page),
        Some((&SCHEMA, number)) => match number.try_into() {
            Ok(number) => NodeRow::Schema(!u32::from_be_bytes(number)),
            Err(_) => NodeRow::Other,
        },
        Some((&KEPT, entry)) if entry.len() == 16 => id_in(entry).map_or(NodeRow::Other, NodeRow::Kept),
        Some((&METADATA, name)) => NodeRow::Metadata(name),
        Some((&FIELD_METADATA, field)) => read_field(field).unwrap_or(NodeRow::Other),
        _ => NodeRow::Other,
    };
    Some((id, row))
}

/// A field, and a key of its metadata.
fn read_field(bytes: &[u8]) -> Option<NodeRow<'_>> {
    let (kind, rest) = bytes.split_first()?;
    let (number, name) = rest.split_first_chunk::<4>()?;
    let number = u32::from_be_bytes(*number);
    match kind {
        b'a' => Some(NodeRow::FieldMetadata(Field::Attribute(number), name)),
        b'd' => Some(NodeRow::FieldMetadata(Field::Dimension(number), name)),
        _ => None,
    }
}

/// The name in the key of a child.
pub(in crate::store) fn read_child(key: &[u8]) -> Option<&str> {
    key.get(ID_END..).and_then(|name| std::str::from_utf8(name).ok())
}

/// The name in the key of a tag.
pub(in crate::store) fn read_tag(key: &[u8]) -> Option<&str> {
    key.get(1..).and_then(|name| std::str::from_utf8(name).ok())
}

/// The file that the key of a condemned one names.
pub(in crate::store) fn read_condemned(key: &[u8]) -> Option<(File, Id)> {
    let (kind, id) = key.get(1..)?.split_first()?;
    let id = id_in(id).filter(|_| id.len() == 16)?;
    match kind {
        b'd' => Some((File::Data, id)),
        b'm' => Some((File::Manifest, id)),
        _ => None,
    }
}

/// What a row tells of commit keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::store) enum CommitKeyRow<'a> {
    Count,
    /// The epoch, and the commit key.
    Key(u64, &'a [u8]),
    /// The key of the row is wrong.
    Wrong,
}

/// What a row tells of commit keys; `None` if it has another tag.
pub(in crate::store) fn read_commit_key(key: &[u8]) -> Option<CommitKeyRow<'_>> {
    let rest = key.strip_prefix(&[COMMIT_KEY])?;
    if rest.is_empty() {
        return Some(CommitKeyRow::Count);
    }
    let parts = rest.split_first_chunk::<8>().and_then(|(epoch, rest)| Some((epoch, rest.split_first_chunk::<8>()?)));
    Some(match parts {
        Some((epoch, (hash, commit_key)))
            if (1..=limits::COMMIT_KEY_BYTES_MAX).contains(&commit_key.len())
                && u64::from_be_bytes(*hash) == xxh3(commit_key) =>
        {
            CommitKeyRow::Key(u64::from_be_bytes(*epoch), commit_key)
        }
        _ => CommitKeyRow::Wrong,
    })
}

/// Whether this release knows what a row with this key is about.
pub(in crate::store) fn is_known(key: &[u8]) -> bool {
    match key.first() {
        Some(&(BASE | COMMIT_KEY | NAME | TAG)) => true,
        Some(&CONDEMNED) => read_condemned(key).is_some(),
        Some(&NODE) => read_node(key).is_some_and(|(_, row)| row != NodeRow::Other),
        _ => false,
    }
}

/// The least key that is greater than all keys with this prefix; `None` if there is none.
pub(in crate::store) fn after(prefix: &[u8]) -> Option<Bytes> {
    let last = prefix.iter().rposition(|byte| *byte < u8::MAX)?;
    let mut next = prefix.get(..=last)?.to_vec();
    *next.last_mut()? += 1;
    Some(next.into())
}
