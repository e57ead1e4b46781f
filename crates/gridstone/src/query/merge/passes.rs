//! Many fragments of cells made few, in files that only who asked for it reads: what has to look at all of them again and again,
//! or at once, would otherwise decode each for every look, or hold all of them.
//!
//! Each pass merges as many as fit into memory at once, a block of each: passes grow with the logarithm of their number.

use super::cells::{RewriteCells, rewrite_cells};
use crate::base::Result;
use crate::fragment::{Description, FragmentKind, Staged};
use crate::query::request::{ReadContext, Target, WriteContext};
use crate::schema::Schema;
use std::sync::Arc;

/// The fragments, oldest order first, with those of cells that follow each other, with nothing else in between, merged into
/// larger ones, again and again until a block of each fits into memory. What is written is in `scratch`, after an error too.
///
/// # Errors
/// Corruption, Storage, Cancelled.
pub fn merge_in_passes(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    mut fragments: Vec<Arc<Description>>,
    scratch: &mut Vec<Staged>,
) -> Result<Vec<Arc<Description>>> {
    // Not a part of any commit, so in files of their own.
    let write = WriteContext { inline: false, ..write.clone() };
    let (limit, row_bytes) = (read.budget.limit_bytes() / 8, target.row_bytes());
    // A merge, and a tile, hold a block of each.
    let held = |d: &Description| d.cells.min(u64::from(write.blocks.sparse)).saturating_mul(row_bytes);
    let alike = |a: &Arc<Description>, b: &Arc<Description>| {
        let kinds = a.kind == FragmentKind::Sparse && b.kind == FragmentKind::Sparse;
        let places = places_of(&target.schema, a);
        kinds && !places.is_empty() && places == places_of(&target.schema, b)
    };
    loop {
        let groups: Vec<_> = fragments.chunk_by(alike).flat_map(|run| groups(run, limit, held)).collect();
        let sparse = groups.iter().filter(|group| group.first().is_some_and(|d| d.kind == FragmentKind::Sparse));
        let enough = sparse.flat_map(|group| group.iter()).map(|d| held(d)).sum::<u64>() <= limit;
        if enough || groups.iter().all(|group| group.len() < 2) {
            return Ok(fragments);
        }
        let mut found = Vec::with_capacity(groups.len());
        for group in groups {
            if group.len() < 2 {
                found.extend_from_slice(group);
            } else {
                found.extend(gather(read, &write, target, group, scratch)?);
            }
        }
        fragments = found;
    }
}

/// A run of fragments cut so that each part but the last has at least two and all that a merge holds of a part fits
/// `limit`, if two do.
fn groups(run: &[Arc<Description>], limit: u64, held: impl Fn(&Description) -> u64) -> Vec<&[Arc<Description>]> {
    let (mut found, mut rest) = (Vec::new(), run);
    while !rest.is_empty() {
        let mut bytes = 0u64;
        let fit = rest.iter().take_while(|d| {
            bytes = bytes.saturating_add(held(d));
            bytes <= limit
        });
        let (group, later) = rest.split_at(fit.count().max(2).min(rest.len()));
        found.push(group);
        rest = later;
    }
    found
}

/// Merges fragments of cells of the same attributes, which follow each other, into one that stands where the newest stood.
fn gather(
    read: &ReadContext,
    write: &WriteContext<'_>,
    target: &Target,
    group: &[Arc<Description>],
    scratch: &mut Vec<Staged>,
) -> Result<Vec<Arc<Description>>> {
    let inputs = Target { fragments: group.to_vec(), ..target.clone() };
    let places = group.first().map(|d| places_of(&target.schema, d)).unwrap_or_default();
    let job = RewriteCells { target: &inputs, places, cells_max: u64::MAX };
    let from = scratch.len();
    rewrite_cells(read, write, &job, scratch)?;
    let mut made = Vec::new();
    for staged in scratch.iter_mut().skip(from) {
        staged.description.order = group.iter().map(|d| d.order).max().unwrap_or(staged.description.order);
        made.push(Arc::new(staged.description.clone()));
    }
    Ok(made)
}

/// The places in the schema of a fragment's attributes, without those that were dropped since.
fn places_of(schema: &Schema, description: &Description) -> Vec<usize> {
    let place = |id: &u32| schema.attrs().iter().position(|a| a.id() == *id);
    description.attrs.iter().filter_map(place).collect()
}
