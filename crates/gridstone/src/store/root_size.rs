//! Computes how many bytes a manifest root takes, without writing one.
//!
//! A root is one line with all nodes, their metadata, schemas and pages, the tags and the condemned files; every
//! opening reads it. The length of the root under a snapshot is known. Each record since adds an upper bound of what it
//! adds to the next root ([`growth`]).

use super::operation::{Condemned, Recorded};
use super::path;
use super::retained::Retained;
use super::state::{ArrayState, Metadata};
use super::tree::{Node, Tree};
use super::wording::schema_value;
use crate::base::{Id, limits};
use crate::schema::Schema;
use std::iter::successors;

/// Bytes of a node without its path, metadata, schemas and pages, at most.
pub(super) const NODE_BYTES: u64 = 110;
/// Bytes of an id in a list.
pub(super) const ID_BYTES: u64 = 35;
/// Bytes of a tag without its name, at most.
pub(super) const TAG_BYTES: u64 = 24;
/// Bytes of a page without its box, at most, and of each dimension of the box.
const PAGE_BYTES: (u64, u64) = (230, 40);

/// Bytes of a root by kind of content.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Parts {
    pub(super) metadata: u64,
    pub(super) schemas: u64,
    pub(super) nodes: u64,
    pub(super) pages: u64,
    pub(super) retained: u64,
}

impl Parts {
    pub(super) fn total(self) -> u64 {
        self.metadata + self.schemas + self.nodes + self.pages + self.retained
    }

    pub(super) fn add_node(&mut self, node: &Node) {
        self.nodes += NODE_BYTES + text(node.path());
        self.metadata += all_metadata(node.metadata());
        if let Node::Array(array) = node {
            self.schemas += array.schemas().iter().map(|s| schema(s)).sum::<u64>();
            let fresh = array.recent().count();
            let pages = array.shelves.len() as u64 + pages(fresh) + u64::from(fresh > 0);
            self.pages += pages * page(array);
        }
    }
}

/// Bytes of a text in JSON.
pub(super) fn text(text: &str) -> u64 {
    let byte = |b: u8| match b {
        b'"' | b'\\' | b'\n' | b'\r' | b'\t' | 8 | 12 => 2,
        0..0x20 => 6,
        _ => 1,
    };
    2 + text.bytes().map(byte).sum::<u64>()
}

fn entry(key: &str, value: &str) -> u64 {
    text(key) + text(value) + 2
}

fn all_metadata(metadata: &Metadata) -> u64 {
    metadata.iter().map(|(key, value)| entry(key, value)).sum()
}

pub(super) fn schema(schema: &Schema) -> u64 {
    schema_value(schema).map_or(0, |value| value.to_string().len() as u64 + 1)
}

fn page(array: &ArrayState) -> u64 {
    PAGE_BYTES.0 + PAGE_BYTES.1 * array.schema().map_or(0, |s| s.ndim()) as u64
}

/// How many pages so many more fragments make, besides one that is partly filled.
fn pages(fragments: usize) -> u64 {
    // Pages that are cut by space are at least half full.
    (fragments / (limits::PAGE_FRAGMENTS_MAX / 2)) as u64
}

/// The bytes by which fragments added to an array, which may not exist yet, make a root longer.
pub(super) fn added(tree: &Tree, array: Id, fragments: usize) -> u64 {
    match tree.get(array) {
        Some(Node::Array(array)) => {
            let first = array.shelves.is_empty() && array.recent.is_empty();
            (pages(fragments) + u64::from(first)) * page(array)
        }
        _ => (pages(fragments) + 1) * (PAGE_BYTES.0 + PAGE_BYTES.1 * limits::AXES_MAX as u64),
    }
}

/// The bytes by which metadata of a node grows; negative if it shrinks.
pub(super) fn set(tree: &Tree, node: Id, key: &str, value: Option<&str>) -> i64 {
    let bytes = |value: Option<&str>| value.map_or(0, |value| entry(key, value)) as i64;
    bytes(value) - bytes(tree.get(node).and_then(|node| node.metadata().get(key)).map(String::as_str))
}

/// The bytes by which the paths of a node and all below it grow when it is moved to `path`; negative if they shrink.
pub(super) fn moved(tree: &Tree, id: Id, path: &str) -> i64 {
    let longer = |node: &Node| text(path) as i64 - text(node.path()) as i64;
    tree.count_below(id) as i64 * tree.get(id).map_or(0, longer)
}

/// Bytes of the missing groups above `path`.
pub(super) fn parents(tree: &Tree, path: &str) -> u64 {
    let missing =
        successors(path::parent(path), |above| path::parent(above)).take_while(|above| tree.find(above).is_none());
    missing.map(|above| NODE_BYTES + text(above)).sum()
}

/// Bytes of a tag; 0 if it exists already, and is moved.
pub(super) fn tag(retained: &Retained, name: &str) -> u64 {
    if retained.tags().contains_key(name) { 0 } else { text(name) + TAG_BYTES }
}

/// The bytes by which `operation`, applied to this state, makes the next root longer, at most.
pub(super) fn growth((tree, retained): (&Tree, &Retained), operation: &Recorded) -> i64 {
    let bytes = match operation {
        Recorded::CreateGroup { path, .. } => NODE_BYTES + text(path),
        Recorded::CreateArray { path, schema: first, .. } => NODE_BYTES + text(path) + schema(first),
        Recorded::AlterArray { schema: next, .. } => schema(next),
        Recorded::Move { id, path } => return moved(tree, *id, path),
        Recorded::AddFragments { array, fragments } | Recorded::ReplaceFragments { array, fragments, .. } => {
            added(tree, *array, fragments.len())
        }
        Recorded::SetMetadata { node, changes } => {
            return changes.iter().map(|(key, value)| set(tree, *node, key, value.as_deref())).sum();
        }
        Recorded::Tag { name, .. } => tag(retained, name),
        Recorded::Condemn(Condemned { data, manifest, .. }) => (data.len() + manifest.len()) as u64 * ID_BYTES,
        Recorded::Remove { .. } | Recorded::Untag { .. } => 0,
    };
    bytes as i64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_takes_what_json_makes_of_it() {
        let all: String = (0..300).filter_map(char::from_u32).collect();
        for part in [all.as_str(), "", "unit", "\"a\\b\"\n\u{1f}"] {
            assert_eq!(text(part), serde_json::to_string(part).unwrap().len() as u64);
        }
    }
}
