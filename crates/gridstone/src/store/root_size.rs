//! How many bytes a manifest root takes, told without writing one, and the bound that keeps it from growing until nobody can use it.
//!
//! A root is one line with all nodes, their metadata, schemas and pages, the tags and what is condemned; every opening reads it.
//!
//! 1. Of the root under a snapshot the length is known. Each record since adds what it may add to the next root, at most ([`growth`]).
//! 2. A commit whose changes add something is refused if that comes to more than the bound ([`check`]). Before it is, all is measured,
//!    since what was removed counts for nothing in 1.
//! 3. What takes away, or keeps the size, is never refused. A root itself may be larger than the bound
//!    ([`limits::ROOT_LINE_BYTES_MAX`]): so there is always room for a fold, a delete of metadata and a vacuum.

use super::operation::{Changes, Condemned, Operation, Recorded};
use super::path;
use super::retained::Retained;
use super::snapshot::Snapshot;
use super::state::{ArrayState, Metadata};
use super::tree::{Node, Tree};
use super::wording::schema_value;
use crate::base::{Error, Id, Result, limits};
use crate::schema::Schema;
use std::collections::HashMap;
use std::iter::successors;

/// Bytes of a node without its path, metadata, schemas and pages, at most.
const NODE_BYTES: u64 = 110;
/// Bytes of an id in a list.
const ID_BYTES: u64 = 35;
/// Bytes of a tag without its name, at most.
const TAG_BYTES: u64 = 24;
/// Bytes of a page without its box, at most, and of each dimension of that.
const PAGE_BYTES: (u64, u64) = (230, 40);

/// Bytes of a root by what they tell of.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
struct Parts {
    metadata: u64,
    schemas: u64,
    nodes: u64,
    pages: u64,
    retained: u64,
}

impl Parts {
    fn total(self) -> u64 {
        self.metadata + self.schemas + self.nodes + self.pages + self.retained
    }

    fn add_node(&mut self, node: &Node) {
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
fn text(text: &str) -> u64 {
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

fn schema(schema: &Schema) -> u64 {
    schema_value(schema).map_or(0, |value| value.to_string().len() as u64 + 1)
}

fn page(array: &ArrayState) -> u64 {
    PAGE_BYTES.0 + PAGE_BYTES.1 * array.schema().map_or(0, |s| s.ndim()) as u64
}

/// Pages that so many fragments more make, besides one that is begun.
fn pages(fragments: usize) -> u64 {
    // Pages that are cut by space are half full at least.
    (fragments / (limits::PAGE_FRAGMENTS_MAX / 2)) as u64
}

/// Bytes that fragments added to an array, which may not be there yet, make a root longer by.
fn added(tree: &Tree, array: Id, fragments: usize) -> u64 {
    match tree.get(array) {
        Some(Node::Array(array)) => {
            let first = array.shelves.is_empty() && array.recent.is_empty();
            (pages(fragments) + u64::from(first)) * page(array)
        }
        _ => (pages(fragments) + 1) * (PAGE_BYTES.0 + PAGE_BYTES.1 * limits::AXES_MAX as u64),
    }
}

/// Bytes by which metadata of a node grow; less than 0 if they shrink.
fn set(tree: &Tree, node: Id, key: &str, value: Option<&str>) -> i64 {
    let bytes = |value: Option<&str>| value.map_or(0, |value| entry(key, value)) as i64;
    bytes(value) - bytes(tree.get(node).and_then(|node| node.metadata().get(key)).map(String::as_str))
}

/// Bytes by which the paths of a node and all below it grow when it is put at `path`; less than 0 if they shrink.
fn moved(tree: &Tree, id: Id, path: &str) -> i64 {
    let longer = |node: &Node| text(path) as i64 - text(node.path()) as i64;
    tree.count_below(id) as i64 * tree.get(id).map_or(0, longer)
}

/// Bytes of the groups above `path` that are missing.
fn parents(tree: &Tree, path: &str) -> u64 {
    let missing =
        successors(path::parent(path), |above| path::parent(above)).take_while(|above| tree.find(above).is_none());
    missing.map(|above| NODE_BYTES + text(above)).sum()
}

/// Bytes of a tag; none if it is there already, and is moved.
fn tag(retained: &Retained, name: &str) -> u64 {
    if retained.tags().contains_key(name) { 0 } else { text(name) + TAG_BYTES }
}

/// Bytes by which `operation`, done to what is there, makes the next root longer, at most.
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

/// Bytes by which `changes` make the next root longer, at most, of what a user may do without.
fn asked(newest: &Snapshot, changes: &Changes) -> i64 {
    let tree = newest.tree();
    let (mut grown, mut values, mut moves) = (0u64, HashMap::new(), 0i64);
    for operation in &changes.operations {
        grown += match operation {
            Operation::CreateGroup { path, .. } => NODE_BYTES + text(path),
            Operation::CreateArray { path, schema: first, .. } => NODE_BYTES + text(path) + schema(first),
            Operation::AlterArray { schema: next, .. } => schema(next),
            Operation::Move { id, path, .. } => {
                moves += moved(tree, *id, path);
                parents(tree, path)
            }
            Operation::AddFragments { array, fragments } => added(tree, *array, fragments.len()),
            Operation::Tag { name, .. } => tag(newest.retained(), name),
            Operation::SetMetadata { node, changes } => {
                values.extend(changes.iter().map(|(key, value)| ((*node, key.as_str()), value.as_deref())));
                0
            }
            Operation::Remove { .. }
            | Operation::ReplaceFragments { .. }
            | Operation::Untag { .. }
            | Operation::Condemn(_) => 0,
        };
    }
    grown as i64 + moves + values.into_iter().map(|((node, key), value)| set(tree, node, key, value)).sum::<i64>()
}

/// An Input error if `changes` make the root of what comes after `newest` longer, and longer than `bytes_max`.
pub(super) fn check(newest: &Snapshot, changes: &Changes, bytes_max: u64) -> Result<()> {
    let grown = asked(newest, changes);
    if grown <= 0 || newest.root_bytes().saturating_add_signed(grown) <= bytes_max {
        return Ok(());
    }
    let (mut parts, mut removed) = (Parts::default(), Parts::default());
    newest.nodes().into_iter().for_each(|node| parts.add_node(node));
    let retained = newest.retained();
    let condemned = (retained.condemned_data().len() + retained.condemned_manifest().len()) as u64;
    parts.retained = retained.tags().keys().map(|name| text(name) + TAG_BYTES).sum::<u64>() + condemned * ID_BYTES;
    for operation in &changes.operations {
        if let Operation::Remove { id } = operation {
            newest.tree().each_below(*id, |node| removed.add_node(node));
        }
    }
    let grown = grown.saturating_sub_unsigned(removed.total());
    let bytes = parts.total().saturating_add_signed(grown);
    if grown <= 0 || bytes <= bytes_max {
        return Ok(());
    }
    let mb = |bytes: u64| bytes as f64 / 1e6;
    Err(Error::input(format!(
        "what every opening of the store reads would come to {:.1} MB by this commit, and at most {:.1} MB are allowed: metadata takes {:.1} MB by \
         now, schemas {:.1} MB, names and lists of fragments {:.1} MB. Delete metadata, or arrays that nobody needs, and keep large values \
         in an array. Nothing was written",
        mb(bytes),
        mb(bytes_max),
        mb(parts.metadata),
        mb(parts.schemas),
        mb(parts.nodes + parts.pages + parts.retained)
    )))
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
