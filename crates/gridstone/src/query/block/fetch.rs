//! Fetching and decoding blocks: all ranges are submitted first, then waited for, then decoded in parallel.

use crate::base::{ByteRange, Counters, Result};
use crate::fragment::{BlockRef, BlockSource};
use crate::query::request::ReadContext;
use crate::tile::Column;
use bytes::Bytes;
use std::sync::Arc;

/// A block that is wanted.
pub(in crate::query) struct Want {
    pub(in crate::query) source: Arc<dyn BlockSource>,
    pub(in crate::query) block: BlockRef,
}

/// Bytes submitted at once: enough to keep a device busy, few enough that stopping is noticed soon.
pub(super) const SUBMIT_BYTES_MAX: u64 = 32 << 20;

/// The decoded blocks, in the order wanted. `parallel`: side by side; not inside a task that is itself one of many, unless each of them has many to
/// wait for.
pub(in crate::query) fn fetch(context: &ReadContext, wants: &[Want], parallel: bool) -> Result<Vec<Column>> {
    let mut columns = Vec::with_capacity(wants.len());
    for group in submissions(wants, |want| want.block.range.len, SUBMIT_BYTES_MAX) {
        context.cancel.check()?;
        columns.extend(fetch_group(context, group, parallel)?);
    }
    Ok(columns)
}

/// `wants` in groups, each to be submitted at once: of no more than `bytes_max`, or of one.
pub(super) fn submissions<T>(mut wants: &[T], bytes_of: impl Fn(&T) -> u64, bytes_max: u64) -> Vec<&[T]> {
    let mut groups = Vec::new();
    while !wants.is_empty() {
        let mut bytes = 0u64;
        let fits = |want: &&T| {
            bytes = bytes.saturating_add(bytes_of(want));
            bytes <= bytes_max
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
        let column = want.source.decode(&want.block, &bytes)?;
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

/// One submission per run of wants of the same source; all are submitted before the first is waited for.
fn fetch_bytes(context: &ReadContext, wants: &[Want]) -> Result<Vec<Bytes>> {
    let mut pending = Vec::new();
    for run in wants.chunk_by(|a, b| same_source(&a.source, &b.source)) {
        let Some(first) = run.first() else { continue };
        let ranges: Vec<ByteRange> = run.iter().map(|w| w.block.range).collect();
        Counters::add(&context.counters.requests, 1);
        Counters::add(&context.counters.bytes_fetched, ranges.iter().map(|r| r.len).sum());
        let id = first.source.description().id;
        pending.push((id, first.source.source().submit(&ranges)?));
    }
    let mut all = Vec::with_capacity(wants.len());
    for (id, one) in pending {
        all.extend(one.wait().map_err(|e| e.context(format!("fragment {id}")))?);
    }
    Ok(all)
}

/// Whether two handles are of one source.
pub(in crate::query) fn same_source(a: &Arc<dyn BlockSource>, b: &Arc<dyn BlockSource>) -> bool {
    std::ptr::addr_eq(Arc::as_ptr(a), Arc::as_ptr(b))
}
