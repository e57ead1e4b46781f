//! Blocks that lie close together in a file: read in one go into a scratch buffer that stays in a core's cache.

use super::fetch::{SUBMIT_BYTES_MAX, submissions};
use crate::base::{Ahead, ByteRange, Counters, Error, Result, limits};
use crate::fragment::BlockSource;
use crate::query::request::{BudgetHold, ReadContext};
use bytes::Bytes;
use std::cell::Cell;

/// Bytes read at once, at most: with what is decoded from them they stay in a core's second-level cache.
const RUN_BYTES_MAX: u64 = 256 << 10;
/// Bytes asked of a far source at once: a few long requests side by side.
const FAR_BYTES_MAX: u64 = 8 << 20;
/// A scratch buffer above this size is freed after use.
const SCRATCH_BYTES_MAX: usize = 4 << 20;

thread_local! {
    /// What was read, and what was decoded from it.
    static SCRATCH: Cell<[Vec<u8>; 2]> = const { Cell::new([Vec::new(), Vec::new()]) };
}

/// Blocks of one fragment that lie close together, in the order that they are wanted, with what is to be done with each.
struct Run<T> {
    start: u64,
    end: u64,
    blocks: Vec<(ByteRange, T)>,
}

impl<T> Run<T> {
    fn range(&self) -> ByteRange {
        ByteRange::new(self.start, self.end - self.start)
    }

    /// Its blocks, each with its bytes in `read`, those of the run.
    fn blocks_in(self, read: &[u8]) -> impl Iterator<Item = (T, &[u8])> {
        let start = self.start;
        self.blocks.into_iter().map(move |(range, block)| {
            let at = (range.offset - start) as usize;
            (block, read.get(at..at + range.len as usize).unwrap_or_default())
        })
    }

    /// Whether a block at `range` can be read with the others.
    fn takes(&self, range: ByteRange) -> bool {
        range.offset >= self.start
            && range.offset <= self.end.saturating_add(limits::GAP_BYTES)
            && range.end().max(self.end) - self.start <= RUN_BYTES_MAX
    }
}

/// Blocks of one fragment in the order that they are wanted, those close together in runs.
pub(in crate::query) struct CoalescedReads<T> {
    runs: Vec<Run<T>>,
}

impl<T> CoalescedReads<T> {
    /// None yet.
    pub(in crate::query) fn new() -> Self {
        Self { runs: Vec::new() }
    }

    /// Adds a block that lies at `range`.
    pub(in crate::query) fn push(&mut self, range: ByteRange, block: T) {
        match self.runs.last_mut() {
            Some(run) if run.takes(range) => {
                run.end = run.end.max(range.end());
                run.blocks.push((range, block));
            }
            _ => self.runs.push(Run { start: range.offset, end: range.end(), blocks: vec![(range, block)] }),
        }
    }

    /// Reads them from the source of `blocks` and calls `each` with every block, the bytes read for it, and a scratch buffer of any
    /// content to decode in. Errors of reading name the fragment.
    pub(in crate::query) fn read(
        self,
        context: &ReadContext,
        blocks: &dyn BlockSource,
        mut each: impl FnMut(T, &[u8], &mut Vec<u8>) -> Result<()>,
    ) -> Result<()> {
        let source = blocks.source();
        if let Some(gap) = source.remote_gap() {
            let mut decoded = Vec::new();
            return self.read_far(context, blocks, (gap, FAR_BYTES_MAX), |found| {
                found.into_iter().try_for_each(|(run, read)| hand_out(run, &read, &mut decoded, &mut each))
            });
        }
        let ranges: Vec<ByteRange> = self.runs.iter().map(Run::range).collect();
        let named = |e: Error| e.context(format!("fragment {}", blocks.description().id));
        let mut ahead = Ahead::default();
        for (at, run) in self.runs.into_iter().enumerate() {
            context.cancel.check()?;
            count(context, &run);
            if ranges.len() > 1 {
                ahead.before(at, &ranges, source.as_ref());
            }
            let [mut read, mut decoded] = SCRATCH.take();
            read.resize(run.range().len as usize, 0);
            let filled = source.read_into(run.start, &mut read).map_err(named);
            let done = filled.and_then(|()| hand_out(run, &read, &mut decoded, &mut each));
            if read.capacity() + decoded.capacity() <= SCRATCH_BYTES_MAX {
                SCRATCH.set([read, decoded]);
            }
            done?;
        }
        Ok(())
    }

    /// As `read`, but of a source whose answers take long all runs are asked for at once, as far as memory goes, and what came is decoded
    /// side by side.
    pub(in crate::query) fn read_side_by_side(
        self,
        context: &ReadContext,
        blocks: &dyn BlockSource,
        each: impl Fn(T, &[u8], &mut Vec<u8>) -> Result<()> + Sync,
    ) -> Result<()>
    where
        T: Send,
    {
        let Some(gap) = blocks.source().remote_gap() else { return self.read(context, blocks, each) };
        let one = |(block, bytes): (T, &[u8])| {
            let [unused, mut decoded] = SCRATCH.take();
            let done = each(block, bytes, &mut decoded);
            if unused.capacity() + decoded.capacity() <= SCRATCH_BYTES_MAX {
                SCRATCH.set([unused, decoded]);
            }
            done
        };
        self.read_far(context, blocks, (gap, SUBMIT_BYTES_MAX), |found| {
            let (runs, reads): (Vec<Run<T>>, Vec<Bytes>) = found.into_iter().unzip();
            let blocks = runs.into_iter().zip(&reads).flat_map(|(run, read)| run.blocks_in(read)).collect();
            context.pool.map(blocks, context.cancel.as_ref(), one).map(drop)
        })
    }

    /// As `read`, of a source whose answers take long: many runs are asked for at once, about `bytes_max` with what lies between those no further
    /// apart than `gap`, and the next many while `each` is given those that came.
    fn read_far(
        self,
        context: &ReadContext,
        blocks: &dyn BlockSource,
        (gap, bytes_max): (u64, u64),
        mut each: impl FnMut(Vec<(Run<T>, Bytes)>) -> Result<()>,
    ) -> Result<()> {
        let ranges: Vec<ByteRange> = self.runs.iter().map(Run::range).collect();
        let spans = spans(&ranges, gap);
        let source = blocks.source();
        let named = |e: Error| e.context(format!("fragment {}", blocks.description().id));
        let begin = |group: &[(ByteRange, u64)]| {
            context.cancel.check()?;
            let ranges: Vec<ByteRange> = group.iter().map(|(range, _)| *range).collect();
            let held = BudgetHold::take(&context.budget, group.iter().map(|(_, bytes)| bytes).sum());
            Ok((source.submit(&ranges).map_err(named)?, held))
        };
        let mut groups = submissions(&spans, |(_, bytes)| *bytes, bytes_max).into_iter();
        let mut under_way = groups.next().map(begin).transpose()?;
        let mut runs = self.runs.into_iter();
        while let Some((pending, _held)) = under_way {
            let found = pending.wait().map_err(named)?;
            under_way = groups.next().map(begin).transpose()?;
            let found: Vec<_> = found.into_iter().zip(&mut runs).map(|(read, run)| (run, read)).collect();
            found.iter().for_each(|(run, _)| count(context, run));
            each(found)?;
        }
        Ok(())
    }
}

/// Each range with the bytes that are fetched for it where ranges are fetched together across `gap` bytes: its own, and those
/// between the one before and it.
fn spans(ranges: &[ByteRange], gap: u64) -> Vec<(ByteRange, u64)> {
    let mut end = None;
    let mut span = |range: &ByteRange| {
        let between = end.and_then(|end| range.offset.checked_sub(end)).filter(|between| *between <= gap);
        end = Some(range.end());
        (*range, range.len.saturating_add(between.unwrap_or(0)))
    };
    ranges.iter().map(&mut span).collect()
}

fn count<T>(context: &ReadContext, run: &Run<T>) {
    Counters::add(&context.counters.requests, 1);
    Counters::add(&context.counters.bytes_fetched, run.range().len);
    Counters::add(&context.counters.blocks_decoded, run.blocks.len() as u64);
    Counters::add(&context.counters.blocks_alone, run.blocks.len() as u64);
}

/// Calls `each` with every block of a run, of which `read` are the bytes.
fn hand_out<T>(
    run: Run<T>,
    read: &[u8],
    decoded: &mut Vec<u8>,
    each: &mut impl FnMut(T, &[u8], &mut Vec<u8>) -> Result<()>,
) -> Result<()> {
    run.blocks_in(read).try_for_each(|(block, bytes)| each(block, bytes, decoded))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_lies_between_ranges_is_counted_where_it_is_fetched() {
        let ranges: Vec<ByteRange> = [0, 100, 1_000, 10, 5].map(|offset| ByteRange::new(offset, 10)).to_vec();
        let bytes = |gap| spans(&ranges, gap).into_iter().map(|(_, bytes)| bytes).collect::<Vec<_>>();
        assert_eq!(bytes(90), [10, 100, 10, 10, 10]);
        assert_eq!(bytes(1_000), [10, 100, 900, 10, 10]);
        assert_eq!(bytes(0), [10; 5]);
    }

    #[test]
    fn what_is_near_is_read_together() {
        let mut near = CoalescedReads::new();
        let offsets = [0, 10, 8_000, 30_000, 29_000, 40_000, 290_000, 600_000];
        for offset in offsets {
            near.push(ByteRange::new(offset, if offset == 40_000 { 250_000 } else { 10 }), offset);
        }
        let runs: Vec<Vec<u64>> = near.runs.into_iter().map(|r| r.blocks.into_iter().map(|b| b.1).collect()).collect();
        // Too far; before the others; too long together with what follows.
        assert_eq!(runs, [vec![0, 10, 8_000], vec![30_000], vec![29_000], vec![40_000, 290_000], vec![600_000]]);
    }
}
