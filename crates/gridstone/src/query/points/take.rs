//! Taking single cells out of blocks: what is wanted of each block, and how it is fetched and gathered.

use crate::base::{AlignedBuf, ByteRange, Counters, Error, Id, Pending, Result};
use crate::fragment::{BlockRef, BlockSource, ChunkedBlock, StoredBlock};
use crate::query::block::fetch;
use crate::query::request::ReadContext;
use crate::schema::{Attribute, Datatype};
use crate::tile::{Column, try_vec};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// Where the cells of a job come from.
#[derive(Debug)]
pub(super) enum Source {
    /// A block that is fetched and decoded whole.
    Block(Arc<dyn BlockSource>, BlockRef),
    /// Runs of chunks of a raw block, by their place in [`Takes::runs`].
    Chunks(Arc<dyn BlockSource>, ChunkedBlock, Range<usize>),
    /// Values that are in memory.
    Held(Arc<Column>),
}

/// Cells of one attribute wanted of one source.
#[derive(Debug)]
pub(super) struct Job {
    /// The place of the attribute among those asked for.
    slot: usize,
    source: Source,
    takes: Range<usize>,
}

/// Jobs, and the cells that they take.
#[derive(Debug, Default)]
pub(super) struct Takes {
    jobs: Vec<Job>,
    /// Cells of the sources, and the row of the result that each is for.
    cells: Vec<u32>,
    rows: Vec<u32>,
    runs: Vec<Range<u64>>,
}

/// Values gathered, and the rows that they are for.
struct Portion {
    slot: usize,
    values: Column,
    rows: Vec<u32>,
}

/// Bytes asked for in one submission.
const SUBMIT_BYTES: u64 = 1 << 20;
/// Places in a file asked for in one submission. Small buffers live until all of a submission are done with: so many
/// the allocator keeps, instead of asking the system for their pages each time.
const SUBMIT_PLACES: usize = 16;
/// Ranges no further apart than this count as one place.
const NEAR_BYTES: u64 = 8 << 10;
/// A job's weight besides its bytes, so that jobs on memory are cut into batches too.
const JOB_BYTES: u64 = 1_024;
/// Work that is not worth a task of its own, in bytes.
const BATCH_BYTES_MIN: u64 = 128 << 10;

impl Takes {
    /// Cells of the jobs that come next; a row of each is added before the job is closed.
    pub(super) fn cells_mut(&mut self) -> &mut Vec<u32> {
        &mut self.cells
    }

    /// Adds the row of a cell that [`Takes::cells_mut`] got already.
    pub(super) fn push_row(&mut self, row: u32) {
        self.rows.push(row);
    }

    /// Adds a cell to the job that [`Takes::close`] makes next.
    pub(super) fn push(&mut self, cell: u32, row: u32) {
        self.cells.push(cell);
        self.rows.push(row);
    }

    /// Makes a job of the cells pushed since the last one.
    pub(super) fn close(&mut self, slot: usize, source: Source) {
        let from = self.jobs.last().map_or(0, |job| job.takes.end);
        self.jobs.push(Job { slot, source, takes: from..self.rows.len() });
    }

    /// As [`Takes::close`], for a block of a source, of which only the chunks needed are read where that can be. The
    /// cells pushed are in ascending order.
    pub(super) fn close_block(
        &mut self,
        slot: usize,
        blocks: Arc<dyn BlockSource>,
        field: usize,
        block: StoredBlock,
    ) -> Result<()> {
        let source = match blocks.chunked_block(field, block)? {
            None => {
                let found = blocks.block(field, block)?;
                Source::Block(blocks, found)
            }
            Some(chunked) => {
                let from = self.jobs.last().map_or(0, |job| job.takes.end);
                let first = self.runs.len();
                for cell in self.cells.get(from..self.rows.len()).unwrap_or_default() {
                    let chunks = chunked.chunks_of(*cell);
                    match self.runs.get_mut(first..).and_then(<[_]>::last_mut) {
                        Some(run) if chunks.start <= run.end => run.end = run.end.max(chunks.end),
                        _ => self.runs.push(chunks),
                    }
                }
                Source::Chunks(blocks, chunked, first..self.runs.len())
            }
        };
        self.close(slot, source);
        Ok(())
    }

    /// The byte ranges of a job.
    fn ranges(&self, job: &Job) -> impl Iterator<Item = ByteRange> {
        let (whole, chunked, runs) = match &job.source {
            Source::Block(_, block) => (Some(block.range), None, 0..0),
            Source::Chunks(_, chunked, runs) => (None, Some(chunked), runs.clone()),
            Source::Held(_) => (None, None, 0..0),
        };
        let runs = self.runs.get(runs).unwrap_or_default();
        let parts = runs.iter().filter_map(move |run| Some(chunked?.chunk_range(run)));
        whole.into_iter().chain(parts)
    }

    /// Bytes that a job fetches and decodes, about.
    fn weight(&self, job: &Job) -> u64 {
        let decoded = if let Source::Block(_, block) = &job.source { 8 * block.cells() as u64 } else { 0 };
        self.ranges(job).map(|r| r.len).sum::<u64>() + JOB_BYTES + decoded
    }
}

/// The columns of `count` rows that the jobs make; a row that no job has a cell for is blank.
pub(super) fn take(context: &ReadContext, attrs: &[&Attribute], all: &[Takes], count: usize) -> Result<Vec<Column>> {
    let (batches, weight) = batches(context, all);
    let round = context.pool.threads() * 4;
    let total: u64 = all.iter().map(|t| t.cells.len() as u64).sum();
    let (mut done, mut portions) = (0, Vec::new());
    for group in batches.chunks(round.max(1)) {
        let held = weight.saturating_mul(group.len() as u64);
        context.budget.take(held);
        let found = context
            .pool
            .map(group.to_vec(), context.cancel.as_ref(), |(takes, jobs)| run_batch(context, attrs, takes, jobs));
        context.budget.give(held);
        for portion in found?.into_iter().flatten() {
            done += portion.rows.len() as u64;
            portions.push(portion);
        }
        context.progress.report(done, total);
    }
    let one = |(slot, attr): (usize, &&Attribute)| assemble(slot, attr, &mut portions, count);
    attrs.iter().enumerate().map(one).collect()
}

/// Jobs that one thread does.
type Batch<'t> = (&'t Takes, &'t [Job]);

/// The jobs in batches, a few per thread, and what the largest of them weighs, in bytes.
fn batches<'t>(context: &ReadContext, all: &'t [Takes]) -> (Vec<Batch<'t>>, u64) {
    let weights: Vec<Vec<u64>> = all.iter().map(|t| t.jobs.iter().map(|job| t.weight(job)).collect()).collect();
    let total: u64 = weights.iter().flatten().sum();
    let threads = context.pool.threads() as u64;
    let share = (total / (threads * 4)).clamp(BATCH_BYTES_MIN, context.batch_bytes() / (threads * 4) + BATCH_BYTES_MIN);
    let (mut found, mut largest) = (Vec::new(), 0);
    for (takes, weights) in all.iter().zip(&weights) {
        let (mut from, mut weight) = (0, 0);
        for (place, one) in weights.iter().enumerate() {
            weight += one;
            largest = largest.max(weight);
            if weight >= share {
                found.push((takes, takes.jobs.get(from..=place).unwrap_or_default()));
                (from, weight) = (place + 1, 0);
            }
        }
        found.push((takes, takes.jobs.get(from..).unwrap_or_default()));
    }
    found.retain(|(_, jobs)| !jobs.is_empty());
    (found, largest)
}

/// All jobs are submitted before the first is waited for.
fn run_batch(context: &ReadContext, attrs: &[&Attribute], takes: &Takes, jobs: &[Job]) -> Result<Vec<Portion>> {
    let mut submitted = Vec::new();
    for run in jobs.chunk_by(same_source) {
        let mut rest = run;
        while !rest.is_empty() {
            let (group, later) = rest.split_at(submission(takes, rest));
            submitted.push((group, submit(context, takes, group)?));
            rest = later;
        }
    }
    let mut portions: Vec<Portion> = Vec::new();
    for (group, pending) in submitted {
        let mut bytes = wait(group, pending)?.into_iter();
        for job in group {
            context.cancel.check()?;
            let Some(attr) = attrs.get(job.slot) else { continue };
            let rows = takes.rows.get(job.takes.clone()).unwrap_or_default();
            let values = gather(context, attr.datatype(), takes, job, &mut bytes)?;
            // What was written before nulls were allowed is joined with what came later.
            let values = if attr.nullable() { values.into_nullable() } else { values };
            match portions.last_mut().filter(|p| p.slot == job.slot) {
                Some(portion) => {
                    portion.values.append(values.view(), 0, values.len());
                    portion.rows.extend_from_slice(rows);
                }
                None => portions.push(Portion { slot: job.slot, values, rows: rows.to_vec() }),
            }
        }
    }
    Ok(portions)
}

fn blocks_of(job: &Job) -> Option<&Arc<dyn BlockSource>> {
    match &job.source {
        Source::Block(blocks, _) | Source::Chunks(blocks, ..) => Some(blocks),
        Source::Held(_) => None,
    }
}

fn same_source(a: &Job, b: &Job) -> bool {
    match (blocks_of(a), blocks_of(b)) {
        (Some(a), Some(b)) => fetch::same_source(a, b),
        (a, b) => a.is_none() && b.is_none(),
    }
}

/// How many of the first jobs are submitted together.
fn submission(takes: &Takes, jobs: &[Job]) -> usize {
    let (mut bytes, mut places, mut end) = (0, 0, None);
    let fits = |job: &&Job| {
        for range in takes.ranges(job) {
            let near = end.is_some_and(|end| (end..=end + NEAR_BYTES).contains(&range.offset));
            places += usize::from(!near);
            bytes += range.len;
            end = Some(range.end());
        }
        bytes <= SUBMIT_BYTES && places <= SUBMIT_PLACES
    };
    jobs.iter().take_while(fits).count().clamp(1, jobs.len().max(1))
}

fn submit<'j>(context: &ReadContext, takes: &Takes, jobs: &'j [Job]) -> Result<Option<Box<dyn Pending + 'j>>> {
    let Some(blocks) = jobs.first().and_then(blocks_of) else { return Ok(None) };
    let ranges: Vec<ByteRange> = jobs.iter().flat_map(|job| takes.ranges(job)).collect();
    Counters::add(&context.counters.requests, 1);
    Counters::add(&context.counters.bytes_fetched, ranges.iter().map(|r| r.len).sum());
    blocks.source().submit(&ranges).map(Some)
}

fn wait(jobs: &[Job], pending: Option<Box<dyn Pending + '_>>) -> Result<Vec<Bytes>> {
    let Some(pending) = pending else { return Ok(Vec::new()) };
    pending.wait().map_err(|e| match jobs.first().and_then(blocks_of) {
        Some(blocks) => e.context(format!("fragment {}", blocks.description().id)),
        None => e,
    })
}

/// The cells that a job takes; `bytes` gives what was fetched for it.
fn gather(
    context: &ReadContext,
    datatype: Datatype,
    takes: &Takes,
    job: &Job,
    bytes: &mut impl Iterator<Item = Bytes>,
) -> Result<Column> {
    let cells = takes.cells.get(job.takes.clone()).unwrap_or_default();
    let decoded = match &job.source {
        Source::Held(column) => return Ok(column.view().gather(cells)),
        Source::Block(blocks, block) => {
            let column = blocks.decode(block, &bytes.next().unwrap_or_default())?;
            Counters::add(&context.counters.bytes_decoded, column.size_bytes() as u64);
            column.view().gather(cells)
        }
        Source::Chunks(blocks, block, runs) => {
            let runs = takes.runs.get(runs.clone()).unwrap_or_default();
            let values = gather_chunks(blocks.description().id, block, runs, cells, bytes)?;
            Counters::add(&context.counters.bytes_decoded, values.len() as u64);
            Column::new(datatype, values, None, None).map_err(|e| {
                let id = blocks.description().id;
                Error::corruption(format!("fragment {id}: a block holds impossible values")).with_source(e)
            })?
        }
    };
    Counters::add(&context.counters.blocks_decoded, 1);
    Ok(decoded)
}

/// The values of ascending cells, whose chunks lie in ascending runs.
fn gather_chunks(
    fragment: Id,
    block: &ChunkedBlock,
    runs: &[Range<u64>],
    cells: &[u32],
    bytes: &mut impl Iterator<Item = Bytes>,
) -> Result<AlignedBuf> {
    let width = block.width();
    let mut values = AlignedBuf::zeroed(cells.len() * width);
    let mut slots = values.as_mut_slice().chunks_exact_mut(width).zip(cells).peekable();
    for run in runs {
        let bytes = bytes.next().unwrap_or_default();
        block.check_chunks(run, &bytes)?;
        while let Some((slot, cell)) = slots.next_if(|(_, cell)| block.chunks_of(**cell).end <= run.end) {
            let value = block.value(*cell, run.start, &bytes);
            slot.copy_from_slice(value.ok_or_else(|| Error::corruption("a cell lies outside its chunk"))?);
        }
    }
    match slots.next() {
        None => Ok(values),
        Some(_) => Err(Error::corruption(format!("fragment {fragment}: a cell lies in no block"))),
    }
}

/// Puts the portions of an attribute into the order of their rows.
fn assemble(slot: usize, attr: &Attribute, portions: &mut [Portion], count: usize) -> Result<Column> {
    // Rows that nothing was taken for stay at place 0.
    let mut all = Column::blank(attr);
    let mut places = try_vec(0u32, count)?;
    for portion in portions.iter_mut().filter(|p| p.slot == slot) {
        for (row, place) in portion.rows.iter().zip(all.len() as u32..) {
            if let Some(slot) = places.get_mut(*row as usize) {
                *slot = place;
            }
        }
        all.append(portion.values.view(), 0, portion.values.len());
        portion.values = Column::empty(attr.datatype(), attr.nullable());
    }
    Ok(all.view().gather(&places))
}
