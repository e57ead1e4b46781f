//! Fetching and decoding blocks: all ranges are submitted first, then waited for, then decoded in parallel.

use super::ReadContext;
use crate::base::{ByteRange, Counters, Error, Result};
use crate::fragment::{BlockRef, Fragment};
use crate::schema::{Schema, Subarray, key};
use crate::tile::Column;
use bytes::Bytes;
use std::sync::Arc;

/// A block that is wanted.
pub(super) struct Want {
    pub(super) fragment: Arc<Fragment>,
    pub(super) block: BlockRef,
}

/// Bytes submitted at once: enough to keep a device busy, few enough that stopping is noticed soon.
const SUBMIT_BYTES_MAX: u64 = 32 << 20;

/// The decoded blocks, in the order wanted. `parallel` is false inside a task that is itself one of many.
pub(super) fn fetch(context: &ReadContext, wants: &[Want], parallel: bool) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(wants.len());
    for group in submissions(wants) {
        context.cancel.check()?;
        columns.extend(fetch_group(context, group, parallel)?);
    }
    Ok(columns)
}

/// `wants` in groups, each to be submitted at once.
pub(super) fn submissions(mut wants: &[Want]) -> Vec<&[Want]> {
    let mut groups = Vec::new();
    while !wants.is_empty() {
        let mut bytes = 0u64;
        let fits = |want: &&Want| {
            bytes = bytes.saturating_add(want.block.range.len);
            bytes <= SUBMIT_BYTES_MAX
        };
        let count = wants.iter().take_while(fits).count().max(1);
        let (group, later) = wants.split_at(count.min(wants.len()));
        groups.push(group);
        wants = later;
    }
    groups
}

fn fetch_group(context: &ReadContext, wants: &[Want], parallel: bool) -> Result<Vec<Column>> {
    let bytes = fetch_bytes(context, wants)?;
    let decode = |(want, bytes): (&Want, Bytes)| {
        let column = want.fragment.decode(&want.block, &bytes)?;
        Counters::add(&context.counters.blocks_decoded, 1);
        Counters::add(&context.counters.bytes_decoded, column.size_bytes() as u64);
        Ok(column)
    };
    let items: Vec<(&Want, Bytes)> = wants.iter().zip(bytes).collect();
    if parallel {
        return context.pool.map(items, context.cancel.as_ref(), decode);
    }
    items.into_iter().map(|item| context.cancel.check().and_then(|()| decode(item))).collect()
}

/// One submission per run of wants of the same fragment; all are submitted before the first is waited for.
pub(super) fn fetch_bytes(context: &ReadContext, wants: &[Want]) -> Result<Vec<Bytes>> {
    let mut pending = Vec::new();
    for run in wants.chunk_by(|a, b| Arc::ptr_eq(&a.fragment, &b.fragment)) {
        let Some(first) = run.first() else { continue };
        let ranges: Vec<ByteRange> = run.iter().map(|w| w.block.range).collect();
        Counters::add(&context.counters.requests, 1);
        Counters::add(&context.counters.bytes_fetched, ranges.iter().map(|r| r.len).sum());
        let id = first.fragment.description().id;
        pending.push((id, first.fragment.source().submit(&ranges)?));
    }
    let mut all = Vec::with_capacity(wants.len());
    for (id, one) in pending {
        all.extend(one.wait().map_err(|e| e.context(format!("fragment {id}")))?);
    }
    Ok(all)
}

/// A block of a sparse fragment: where it is, and the MBR of its cells.
#[derive(Debug, Clone)]
pub(super) struct SparseBlock {
    pub(super) tile: u64,
    /// Counted in its tile.
    pub(super) block: usize,
    pub(super) cells: usize,
    pub(super) bounds: Subarray,
}

/// The coordinates of sparse blocks as ordered keys, a column per dimension. Corruption if one lies outside its block's
/// MBR, and so perhaps outside the domain.
pub(super) fn fetch_coordinates(
    context: &ReadContext,
    schema: &Schema,
    blocks: &[(&Arc<Fragment>, &SparseBlock)],
    parallel: bool,
) -> Result<Vec<Vec<Vec<u64>>>> {
    let dims = schema.dims();
    let mut wants = Vec::with_capacity(blocks.len() * dims.len());
    for (fragment, at) in blocks {
        for field in 0..dims.len() {
            let block = fragment.block(field, at.tile, at.block, at.cells)?;
            wants.push(Want { fragment: (*fragment).clone(), block });
        }
    }
    let columns = fetch(context, &wants, parallel)?;
    let mut all = Vec::with_capacity(blocks.len());
    for ((fragment, at), columns) in blocks.iter().zip(columns.chunks(dims.len())) {
        let mut coords = Vec::with_capacity(dims.len());
        for ((column, dim), range) in columns.iter().zip(dims).zip(at.bounds.ranges()) {
            let keys = key::encode(dim.datatype(), column.view().values()).ok();
            let keys = keys.filter(|keys| keys.iter().fold(true, |inside, k| inside & range.contains(*k)));
            coords.push(keys.ok_or_else(|| {
                Error::corruption(format!(
                    "fragment {}, tile {}: a coordinate of {:?} lies outside its block's MBR",
                    fragment.description().id,
                    at.tile,
                    dim.name()
                ))
            })?);
        }
        all.push(coords);
    }
    Ok(all)
}
