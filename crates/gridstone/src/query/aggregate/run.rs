//! Sorted runs: what stages hold, groups ascending, in files that nothing refers to.
//!
//! ```text
//! file     blocks of the first stage, blocks of the second, …
//! block    columns of some groups: keys, then the fields of states
//! column   u64 bytes of values, u8 flags (1: offsets, 2: validity), values, offsets, validity
//! ```
//! Where a block lies, how many groups it has and its checksum stay in memory. A file goes when the last run in it goes.

use super::ordered::OrderedKeys;
use super::stage::Stage;
use crate::base::{
    AlignedBuf, ByteRange, ByteReader, ByteSink, ByteSource, ByteWriter, Counters, Entropy, Error, FileRef, Files, Id,
    Result, crc32c,
};
use crate::query::request::ReadContext;
use crate::runtime::Owner;
use crate::schema::Datatype;
use crate::tile::Column;
use std::cmp::Ordering;
use std::sync::Arc;

/// Groups of the first block of a stage: the sizes of later ones follow from the bytes that it takes.
const ROWS_FIRST: usize = 256;
const WITH_OFFSETS: u8 = 1;
const WITH_VALIDITY: u8 = 2;

/// Bytes that a block takes, about.
pub(super) fn block_bytes(context: &ReadContext) -> u64 {
    (context.budget.limit_bytes() / 512).clamp(512, 1 << 20)
}

/// A file of runs.
#[derive(Debug)]
struct RunFile {
    files: Arc<dyn Files>,
    id: Id,
    /// The process that removes the file: a forked child only drops its copy.
    owner: Owner,
}

impl Drop for RunFile {
    fn drop(&mut self) {
        if self.owner.is_here() {
            // What stays is an orphan that vacuum removes.
            let _ = self.files.remove(self.id);
        }
    }
}

/// Some groups of a run.
#[derive(Debug, Clone, Copy)]
struct Block {
    range: ByteRange,
    sum: u32,
    rows: usize,
}

/// What a stage held, groups ascending.
#[derive(Debug)]
pub(super) struct Run {
    file: Arc<RunFile>,
    blocks: Vec<Block>,
}

impl Run {
    /// Groups in it.
    pub(super) fn rows(&self) -> usize {
        self.blocks.iter().map(|block| block.rows).sum()
    }
}

/// A file of runs on its way.
pub(super) struct RunWriter<'a> {
    context: &'a ReadContext,
    file: Arc<RunFile>,
    sink: Box<dyn ByteSink>,
    offset: u64,
    blocks: Vec<Block>,
}

impl<'a> RunWriter<'a> {
    pub(super) fn new(context: &'a ReadContext, entropy: &dyn Entropy) -> Result<Self> {
        let id = entropy.id();
        let sink = context.files.create(id)?;
        let file = Arc::new(RunFile { files: Arc::clone(&context.files), id, owner: Owner::here() });
        Ok(Self { context, file, sink, offset: 0, blocks: Vec::new() })
    }

    /// Appends the groups of a stage, ascending, to the run.
    pub(super) fn push(&mut self, stage: &Stage) -> Result<()> {
        let (order, target) = (stage.groups.sorted(self.context.cancel.as_ref())?, block_bytes(self.context) as usize);
        let (mut rest, mut rows) = (order.as_slice(), ROWS_FIRST);
        while !rest.is_empty() {
            self.context.cancel.check()?;
            let (groups, later) = rest.split_at(rows.min(rest.len()));
            let bytes = packed(&stage.columns(groups)?);
            rows = (groups.len() * target / bytes.len().max(1)).clamp(1, 1 << 20);
            // Texts may be longer than those before.
            if bytes.len() > target * 2 && rows < groups.len() {
                continue;
            }
            rest = later;
            self.sink.write(&bytes)?;
            let range = ByteRange::new(self.offset, bytes.len() as u64);
            self.blocks.push(Block { range, sum: crc32c(&bytes), rows: groups.len() });
            self.offset = range.end();
            Counters::add(&self.context.counters.bytes_spilled, range.len);
        }
        Ok(())
    }

    /// Ends the run; the next one begins in the same file.
    pub(super) fn end_run(&mut self) -> Run {
        Run { file: Arc::clone(&self.file), blocks: std::mem::take(&mut self.blocks) }
    }

    /// Ends the file.
    pub(super) fn finish(self) -> Result<()> {
        self.sink.finish()
    }
}

/// A run that is read block by block.
#[derive(Debug)]
pub(super) struct RunReader {
    run: Run,
    source: Option<Arc<dyn ByteSource>>,
    /// The next block.
    next: usize,
    columns: Vec<Column>,
    keys: Option<OrderedKeys>,
    /// The first row of the block that was not taken, and how many there are.
    at: usize,
    rows: usize,
}

impl RunReader {
    pub(super) fn new(run: Run) -> Self {
        Self { run, source: None, next: 0, columns: Vec::new(), keys: None, at: 0, rows: 0 }
    }

    /// Whether all rows of the block were taken.
    pub(super) fn is_drained(&self) -> bool {
        self.at == self.rows
    }

    /// Whether blocks follow.
    pub(super) fn has_more(&self) -> bool {
        self.next < self.run.blocks.len()
    }

    /// Bytes of the block.
    pub(super) fn size_bytes(&self) -> u64 {
        let keys = self.keys.as_ref().map_or(0, OrderedKeys::size_bytes);
        self.columns.iter().map(|column| column.size_bytes() as u64).sum::<u64>() + keys
    }

    /// Reads the next block of groups of a stage like `form`.
    pub(super) fn load(&mut self, context: &ReadContext, form: &Stage) -> Result<()> {
        let Some(block) = self.run.blocks.get(self.next).copied() else { return Ok(()) };
        let source = match &self.source {
            Some(source) => source,
            None => self.source.insert(context.files.open(FileRef::Data(self.run.file.id))?),
        };
        let bytes = source.read_one(block.range)?;
        if crc32c(&bytes) != block.sum {
            return Err(Error::corruption(format!(
                "a file of groups beyond memory, {}, was changed while it was in use; ask again",
                self.run.file.id
            )));
        }
        self.columns = unpacked(&bytes, block.rows, &form.kinds())?;
        self.keys = Some(OrderedKeys::new(form.groups.keys(), &self.columns)?);
        (self.next, self.at, self.rows) = (self.next + 1, 0, block.rows);
        Ok(())
    }

    /// The order of the last key of the block, and that of another one.
    pub(super) fn compare_last(&self, other: &Self) -> Ordering {
        match (&self.keys, &other.keys) {
            (Some(mine), Some(theirs)) => {
                mine.compare(self.rows.saturating_sub(1), (theirs, other.rows.saturating_sub(1)))
            }
            _ => Ordering::Equal,
        }
    }

    /// Where the rows end whose keys are at most the last key of the block of `cut`; `None`: all are taken.
    pub(super) fn end_at(&self, cut: Option<&Self>) -> usize {
        let (Some(keys), Some((last, row))) =
            (&self.keys, cut.and_then(|cut| Some((cut.keys.as_ref()?, cut.rows.saturating_sub(1)))))
        else {
            return self.rows;
        };
        let (mut low, mut high) = (self.at, self.rows);
        while low < high {
            let middle = low.midpoint(high);
            match keys.compare(middle, (last, row)) {
                Ordering::Greater => high = middle,
                Ordering::Less | Ordering::Equal => low = middle + 1,
            }
        }
        low
    }

    /// Gives the rows up to `end` to a stage.
    pub(super) fn take(&mut self, end: usize, stage: &mut Stage) -> Result<()> {
        if end <= self.at {
            return Ok(());
        }
        let part = |column: &Column| column.view().copy_range(self.at, end);
        let parts: Vec<Column> = self.columns.iter().map(part).collect();
        stage.absorb_columns(end - self.at, &parts.iter().map(Column::view).collect::<Vec<_>>())?;
        self.at = end;
        Ok(())
    }
}

/// Columns of as many rows each, as bytes.
fn packed(columns: &[Column]) -> Vec<u8> {
    let mut out = ByteWriter::new();
    for column in columns {
        let view = column.view();
        let flags =
            u8::from(view.offsets().is_some()) * WITH_OFFSETS + u8::from(view.validity().is_some()) * WITH_VALIDITY;
        out.u64(view.values().len() as u64);
        out.u8(flags);
        out.raw(view.values());
        view.offsets().unwrap_or_default().iter().for_each(|offset| out.u64(*offset));
        out.raw(view.validity().unwrap_or_default());
    }
    out.into_bytes()
}

/// The columns of a block, of these types.
fn unpacked(bytes: &[u8], rows: usize, kinds: &[Datatype]) -> Result<Vec<Column>> {
    let mut reader = ByteReader::new(bytes, "a block of a run");
    let mut columns = Vec::with_capacity(kinds.len());
    for kind in kinds {
        let (len, flags) = (reader.u64()? as usize, reader.u8()?);
        let values = AlignedBuf::from_slice(reader.take(len)?);
        let offsets = match flags & WITH_OFFSETS {
            0 => None,
            _ => {
                Some(reader.take((rows + 1) * 8)?.as_chunks::<8>().0.iter().copied().map(u64::from_le_bytes).collect())
            }
        };
        let validity = if flags & WITH_VALIDITY == 0 { None } else { Some(reader.take(rows)?.to_vec()) };
        columns.push(Column::new(*kind, values, offsets, validity)?);
    }
    reader.expect_end()?;
    Ok(columns)
}
