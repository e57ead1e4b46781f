//! Blocks that lie close together in a file: read in one go into a scratch buffer that stays in a core's cache.

use super::ReadContext;
use crate::base::{ByteRange, Counters, Error, Result, limits};
use crate::fragment::Fragment;
use std::cell::Cell;

/// Bytes read at once, at most: with what is decoded from them they stay in a core's second-level cache.
const RUN_BYTES_MAX: u64 = 256 << 10;
/// A scratch buffer above this size is freed after use.
const SCRATCH_BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// What was read, and what was decoded from it.
    static SCRATCH: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Blocks of one fragment in the order that they are wanted, with what is to be done with each.
pub(super) struct Neighbours<T> {
    start: u64,
    end: u64,
    blocks: Vec<(ByteRange, T)>,
}

impl<T> Neighbours<T> {
    /// None yet.
    pub(super) fn new() -> Self {
        Self { start: 0, end: 0, blocks: Vec::new() }
    }

    /// Adds a block that lies at `range`. If it is too far from the others, they are handed out and it begins anew.
    pub(super) fn push(&mut self, range: ByteRange, block: T) -> Option<Self> {
        let joins = range.offset >= self.start
            && range.offset <= self.end.saturating_add(limits::GAP_BYTES)
            && range.end().max(self.end) - self.start <= RUN_BYTES_MAX;
        let before = (!self.blocks.is_empty() && !joins).then(|| std::mem::replace(self, Self::new()));
        if self.blocks.is_empty() {
            self.start = range.offset;
        }
        self.end = self.end.max(range.end());
        self.blocks.push((range, block));
        before
    }

    /// Reads them from `fragment` and calls `each` with every block, the bytes read for it, and a scratch buffer of any
    /// content to decode in. Errors of reading name the fragment.
    pub(super) fn read(
        self,
        context: &ReadContext,
        fragment: &Fragment,
        mut each: impl FnMut(T, &[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        if self.blocks.is_empty() {
            return Ok(());
        }
        context.cancel.check()?;
        let len = self.end - self.start;
        Counters::add(&context.counters.requests, 1);
        Counters::add(&context.counters.bytes_fetched, len);
        Counters::add(&context.counters.blocks_decoded, self.blocks.len() as u64);
        Counters::add(&context.counters.blocks_alone, self.blocks.len() as u64);
        let [mut read, mut decoded] = SCRATCH.take();
        read.resize(len as usize, 0);
        let named = |e: Error| e.context(format!("fragment {}", fragment.description().id));
        let filled = fragment.source().read_into(self.start, &mut read).map_err(named);
        let done = filled.and_then(|()| {
            self.blocks.into_iter().try_for_each(|(range, block)| {
                let at = (range.offset - self.start) as usize;
                each(block, read.get(at..at + range.len as usize).unwrap_or_default(), &mut decoded)
            })
        });
        if read.capacity() + decoded.capacity() <= SCRATCH_BYTES_MAX {
            SCRATCH.set([read, decoded]);
        }
        done
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_near_is_read_together() {
        let mut near = Neighbours::new();
        let mut runs: Vec<Vec<u64>> = Vec::new();
        let offsets = [0, 10, 8_000, 30_000, 29_000, 40_000, 290_000, 600_000];
        for offset in offsets {
            let done = near.push(ByteRange::new(offset, if offset == 40_000 { 250_000 } else { 10 }), offset);
            runs.extend(done.map(|run| run.blocks.into_iter().map(|b| b.1).collect()));
        }
        runs.push(near.blocks.into_iter().map(|b| b.1).collect());
        // Too far; before the others; too long together with what follows.
        assert_eq!(runs, [vec![0, 10, 8_000], vec![30_000], vec![29_000], vec![40_000, 290_000], vec![600_000]]);
    }
}
