//! Uncompressed cells read straight to their places in the result: the system, which copies them out of its memory anyway, puts each
//! stretch of cells where it belongs, and what lies between them into a buffer that nobody looks at.
//!
//! Chunks are checked where their bytes lie then, still in the core's cache. So cells are copied once and read once, not copied twice.

use super::piece::{BlockPart, Stored};
use super::result::ResultColumn;
use crate::base::{Ahead, ByteRange, Counters, Error, Result, limits};
use crate::fragment::{BlockSource, CHUNK_BYTES, ChunkedBlock};
use crate::query::cells::layout::for_each_run;
use crate::query::request::ReadContext;
use std::cell::Cell;
use std::io::IoSliceMut;
use std::ops::Range;

/// Stretches of fewer bytes are moved by ourselves: each costs the system a step.
const STRETCH_BYTES_MIN: usize = 1 << 10;
/// Chunks read at once, at most: they stay in a core's second-level cache until they are checked.
const RUN_CHUNKS_MAX: u64 = 64;
/// Stretches read at once, at most: with what lies between them, buffers of one call.
const STRETCHES_MAX: usize = limits::READ_PARTS_MAX / 2 - 1;

thread_local! {
    /// What is read and not wanted.
    static SCRATCH: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Cells that lie side by side in a page and in the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stretch {
    /// Where they begin, in bytes of the page.
    at: u64,
    /// Where they belong, in bytes of the result.
    to: usize,
    len: usize,
}

/// Chunks that are read at once.
#[derive(Debug, PartialEq, Eq)]
struct Run {
    chunks: Range<u64>,
    stretches: Vec<Stretch>,
}

/// Reads `pieces`, which are of one source and in its order; `false`, and nothing is done, if they are better moved.
///
/// The promise of `deliver` holds here too: no other call has a cell of theirs.
pub(super) fn read_straight(
    context: &ReadContext,
    result: &ResultColumn<'_>,
    source: &dyn BlockSource,
    pieces: &[BlockPart],
) -> Result<bool> {
    let Some(BlockPart { stored: Stored::Chunks(page, _), .. }) = pieces.first() else { return Ok(false) };
    let Some(stretches) = stretches(page, pieces, result.width())? else { return Ok(false) };
    let runs = runs(stretches);
    let ranges: Vec<ByteRange> = runs.iter().map(|run| page.chunk_range(&run.chunks)).collect();
    let mut ahead = Ahead::default();
    for (at, (run, range)) in runs.iter().zip(&ranges).enumerate() {
        context.cancel.check()?;
        if ranges.len() > 1 {
            ahead.before(at, &ranges, source.source().as_ref());
        }
        Counters::add(&context.counters.requests, 1);
        Counters::add(&context.counters.bytes_fetched, range.len);
        let mut scratch = SCRATCH.take();
        let done = read_run(result, (source, page), (run, *range), &mut scratch);
        SCRATCH.set(scratch);
        done?;
    }
    let (blocks, cells) = (pieces.len() as u64, pieces.iter().map(|piece| piece.block_cells).sum::<usize>());
    Counters::add(&context.counters.blocks_decoded, blocks);
    Counters::add(&context.counters.blocks_alone, blocks);
    Counters::add(&context.counters.bytes_decoded, (cells * result.width()) as u64);
    Ok(true)
}

/// The stretches of `pieces` by their places in the page; `None` if they are short or not of this page.
fn stretches(page: &ChunkedBlock, pieces: &[BlockPart], width: usize) -> Result<Option<Vec<Stretch>>> {
    let mut found = Vec::new();
    for piece in pieces {
        let Stored::Chunks(block, _) = &piece.stored else { return Ok(None) };
        if !block.shares_page(page) {
            return Ok(None);
        }
        let last = piece.from.place(piece.shape.iter().map(|n| n - 1));
        if block.byte_of(last).is_none() {
            return Err(Error::corruption("a block has fewer cells than its place in the array"));
        }
        let mut suits = true;
        for_each_run(&piece.shape, &piece.from, &piece.to, |run| {
            let len = run.len as usize * width;
            let alone = run.len == 1;
            suits &= len >= STRETCH_BYTES_MIN && (alone || (run.from_step == 1 && run.to_step == 1));
            if let (true, Some(at)) = (suits, block.byte_of(run.from)) {
                found.push(Stretch { at, to: run.to as usize * width, len });
            }
        });
        if !suits {
            return Ok(None);
        }
    }
    found.sort_unstable_by_key(|stretch| stretch.at);
    Ok(Some(found))
}

/// Groups stretches, which ascend, into runs of whole chunks.
fn runs(stretches: Vec<Stretch>) -> Vec<Run> {
    let gap = limits::GAP_BYTES / CHUNK_BYTES;
    let mut runs: Vec<Run> = Vec::new();
    for mut stretch in stretches {
        while stretch.len > 0 {
            let first = stretch.at / CHUNK_BYTES;
            let joins = |run: &&mut Run| {
                first <= run.chunks.end + gap
                    && first < run.chunks.start + RUN_CHUNKS_MAX
                    && run.stretches.len() < STRETCHES_MAX
            };
            let run = match runs.last_mut().filter(joins) {
                Some(run) => run,
                None => {
                    runs.push(Run { chunks: first..first, stretches: Vec::new() });
                    let Some(run) = runs.last_mut() else { return runs };
                    run
                }
            };
            let room = (run.chunks.start + RUN_CHUNKS_MAX) * CHUNK_BYTES - stretch.at;
            let len = stretch.len.min(room as usize);
            run.stretches.push(Stretch { len, ..stretch });
            run.chunks.end = run.chunks.end.max((stretch.at + len as u64).div_ceil(CHUNK_BYTES));
            stretch = Stretch { at: stretch.at + len as u64, to: stretch.to + len, len: stretch.len - len };
        }
    }
    runs
}

/// A part of a run: a stretch of the result, or so many bytes that nobody wants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Wanted { to: usize, len: usize },
    Between(usize),
}

/// What a run of chunks that begins at byte `start` of the page and has `len` bytes consists of, in order.
fn parts(run: &Run, start: u64, len: u64) -> Result<Vec<Part>> {
    let wrong = || Error::corruption("a page is shorter than the cells in it");
    let (mut parts, mut at) = (Vec::with_capacity(2 * run.stretches.len() + 1), start);
    for stretch in &run.stretches {
        match usize::try_from(stretch.at.checked_sub(at).ok_or_else(wrong)?) {
            Ok(0) => {}
            Ok(between) => parts.push(Part::Between(between)),
            Err(_) => return Err(wrong()),
        }
        parts.push(Part::Wanted { to: stretch.to, len: stretch.len });
        at = stretch.at + stretch.len as u64;
    }
    let behind = (start + len).checked_sub(at).ok_or_else(wrong)?;
    if behind > 0 {
        parts.push(Part::Between(behind as usize));
    }
    Ok(parts)
}

fn read_run(
    result: &ResultColumn<'_>,
    (source, page): (&dyn BlockSource, &ChunkedBlock),
    (run, range): (&Run, ByteRange),
    scratch: &mut Vec<u8>,
) -> Result<()> {
    let outside = || Error::corruption("cells of a block belong outside the result");
    let parts = parts(run, run.chunks.start * CHUNK_BYTES, range.len)?;
    let between = |part: &Part| if let Part::Between(len) = part { *len } else { 0 };
    let spare: usize = parts.iter().map(between).sum();
    if scratch.len() < spare {
        scratch.resize(spare, 0);
    }
    let mut outs = Vec::with_capacity(parts.len());
    let mut rest = scratch.as_mut_slice();
    for part in &parts {
        let out = match *part {
            Part::Between(len) => {
                let (now, later) = std::mem::take(&mut rest).split_at_mut(len);
                rest = later;
                now
            }
            // SAFETY: stretches are of different cells, all of them of this call of `deliver` alone; these are gone before
            // the bytes are looked at below.
            Part::Wanted { to, len } => unsafe { result.slots.bytes_mut(to, len) }.ok_or_else(outside)?,
        };
        outs.push(IoSliceMut::new(out));
    }
    let named = |e: Error| e.context(format!("fragment {}", source.description().id));
    source.source().read_into_each(range.offset, &mut outs).map_err(named)?;
    drop(outs);
    let mut rest = scratch.as_slice();
    let mut read = Vec::with_capacity(parts.len());
    for part in &parts {
        read.push(match *part {
            Part::Between(len) => {
                let (now, later) = rest.split_at(len);
                rest = later;
                now
            }
            // SAFETY: as above; nobody writes these bytes until this returns.
            Part::Wanted { to, len } => unsafe { result.slots.bytes_mut(to, len) }.ok_or_else(outside)?,
        });
    }
    page.check_scattered(&run.chunks, read.into_iter())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stretch(at: u64, to: usize, len: usize) -> Stretch {
        Stretch { at, to, len }
    }

    #[test]
    fn runs_are_of_whole_chunks_and_not_too_long() {
        assert_eq!(runs(Vec::new()), []);
        // Two rows in neighbouring chunks, one far away.
        let found = runs(vec![stretch(5_000, 0, 4_000), stretch(9_000, 70_000, 4_000), stretch(90_000, 9, 1_024)]);
        let chunks: Vec<Range<u64>> = found.iter().map(|run| run.chunks.clone()).collect();
        assert_eq!(chunks, [1..4, 21..23]);
        assert_eq!(found[0].stretches.len(), 2);
        // A long one is cut where chunks meet, and none of it is lost.
        let long = stretch(100, 7, 600_000);
        let cut = runs(vec![long]);
        assert_eq!(cut.iter().map(|run| run.chunks.clone()).collect::<Vec<_>>(), [0..64, 64..128, 128..147]);
        let mut next = long;
        for part in cut.iter().flat_map(|run| &run.stretches) {
            assert_eq!((part.at, part.to), (next.at, next.to));
            next = stretch(next.at + part.len as u64, next.to + part.len, next.len - part.len);
        }
        assert_eq!(next.len, 0);
        // Many short ones are more calls.
        let many = (0..2_000).map(|n| stretch(n * 100, n as usize * 100, 100)).collect();
        assert!(runs(many).iter().all(|run| run.stretches.len() <= STRETCHES_MAX));
    }

    #[test]
    fn a_run_is_what_is_wanted_and_what_lies_between() {
        let run = Run { chunks: 1..3, stretches: vec![stretch(4_096, 8, 100), stretch(5_000, 200, 1_000)] };
        let expected = [
            Part::Wanted { to: 8, len: 100 },
            Part::Between(804),
            Part::Wanted { to: 200, len: 1_000 },
            Part::Between(6_288),
        ];
        assert_eq!(parts(&run, 4_096, 8_192).unwrap(), expected);
        assert!(parts(&run, 4_096, 1_000).is_err());
        assert!(parts(&run, 4_100, 8_192).is_err());
    }
}
