//! The bound that keeps a manifest root from growing beyond what readers accept.
//!
//! A commit whose changes add something is refused if the next root would be longer than the bound. The growth is
//! estimated first. If the estimate exceeds the bound, the root is measured, since removed data is not subtracted in
//! the estimate. Changes that shrink the root or keep its size are never refused. A root itself may be larger than the
//! bound ([`limits::ROOT_LINE_BYTES_MAX`](crate::base::limits::ROOT_LINE_BYTES_MAX)). So there is always room for a
//! fold, a delete of metadata and a vacuum.

use super::operation::{Changes, Operation};
use super::root_size::{ID_BYTES, NODE_BYTES, Parts, TAG_BYTES, added, moved, parents, schema, set, tag, text};
use super::snapshot::Snapshot;
use crate::base::{Error, Result};
use std::collections::HashMap;

/// The bytes by which `changes` make the next root longer, at most. Only operations that may be refused count.
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

/// An Input error if `changes` make the root after `newest` longer, and longer than `bytes_max`.
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
