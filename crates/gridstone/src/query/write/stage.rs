//! Staging a fragment: kept in memory while small enough for a record's body, else written to a data file.

use crate::base::{ByteSink, FileRef, Files, Id, Result, limits};
use crate::fragment::{
    Description, EncodedTile, FragmentKind, FragmentOrder, FragmentSpec, FragmentWriter, Location, PageBytes, Staged,
};
use crate::query::request::WriteContext;
use crate::runtime::Arena;
use crate::schema::{Schema, Subarray};
use std::sync::Arc;

/// A sink that becomes a data file once it outgrows a record's body.
pub(super) struct StageSink {
    files: Arc<dyn Files>,
    id: Id,
    memory: Vec<u8>,
    file: Option<Box<dyn ByteSink>>,
    inline_bytes_max: usize,
}

impl StageSink {
    pub(super) fn new(files: Arc<dyn Files>, id: Id, inline: bool) -> Self {
        let inline_bytes_max = if inline { limits::INLINE_BYTES_MAX } else { 0 };
        Self { files, id, memory: Vec::new(), file: None, inline_bytes_max }
    }

    /// Makes the file durable, or gives the bytes for the record's body.
    pub(super) fn close(mut self) -> Result<Option<Vec<u8>>> {
        match self.file.take() {
            Some(file) => file.finish().map(|()| None),
            None => Ok(Some(self.memory)),
        }
    }
}

impl ByteSink for StageSink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        if let Some(file) = &mut self.file {
            return file.write(bytes);
        }
        self.memory.extend_from_slice(bytes);
        if self.memory.len() > self.inline_bytes_max {
            let mut file = self.files.create(self.id)?;
            file.write(&std::mem::take(&mut self.memory))?;
            self.file = Some(file);
        }
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.close().map(|_| ())
    }
}

/// A fragment on its way: tiles in, a staged fragment out.
pub(in crate::query) struct Stage {
    writer: FragmentWriter<StageSink>,
    id: Id,
    kind: FragmentKind,
    attrs: Vec<u32>,
    schema_number: u32,
    arena: Arc<Arena>,
}

/// Stored bytes after which a dense fragment's stripe ends at the latest.
const DENSE_STRIPE_BYTES_MAX: usize = 64 << 20;

impl Stage {
    /// Starts a fragment of `kind` with the attributes `attrs` (permanent numbers, ascending) over `bounds`.
    pub(in crate::query) fn new(
        context: &WriteContext<'_>,
        schema: &Schema,
        kind: FragmentKind,
        attrs: Vec<u32>,
        bounds: &Subarray,
    ) -> Result<Self> {
        let id = context.entropy.id();
        let block_cells = match kind {
            FragmentKind::Dense => context.blocks.dense,
            _ => context.blocks.sparse,
        };
        let spec = FragmentSpec {
            id,
            kind,
            fields: FragmentSpec::fields(schema, kind, &attrs),
            block_cells,
            stripe_bytes: stripe_bytes(context, kind),
        };
        let writer =
            FragmentWriter::new(StageSink::new(context.files.clone(), id, context.inline), schema, &spec, bounds)?;
        Ok(Self { writer, id, kind, attrs, schema_number: context.schema_number, arena: context.arena.clone() })
    }

    /// Cells per block at most.
    pub(in crate::query) fn block_cells(&self) -> u32 {
        self.writer.block_cells()
    }

    /// Says how many cells a block has at most, before the first tile.
    pub(super) fn set_block_cells(&mut self, cells: u32) {
        self.writer.set_block_cells(cells);
    }

    /// Adds the next tile in global order.
    pub(in crate::query) fn push(&mut self, tile: EncodedTile) -> Result<()> {
        if let PageBytes::Plain(values) = self.writer.push(tile)? {
            self.arena.give(values);
        }
        Ok(())
    }

    /// Ends the fragment.
    pub(in crate::query) fn finish(self) -> Result<Staged> {
        let written = self.writer.finish()?;
        let body = written.sink.close()?;
        let location = Location { file: FileRef::Data(self.id), offset: 0, len: written.len };
        let description = Description {
            id: self.id,
            kind: self.kind,
            order: FragmentOrder { version: 0, index: 0 },
            schema: self.schema_number,
            bounds: written.bounds,
            cells: written.cells,
            attrs: self.attrs,
            location,
            over: None,
            stats: written.stats,
            extra: Vec::new(),
            moved: Vec::new(),
        };
        Ok(Staged { description, body: body.map(bytes::Bytes::from) })
    }
}

/// A stripe ends at a quarter of the budget. One of a dense fragment ends earlier: its readers know which stripes they need
/// without a look at the others, and the index of this many bytes without filters, read whole by the first read there, is 75 KB.
fn stripe_bytes(context: &WriteContext<'_>, kind: FragmentKind) -> usize {
    let most = usize::try_from(context.budget.limit_bytes() / 4).unwrap_or(usize::MAX).max(64 * 1024);
    if kind == FragmentKind::Dense { most.min(DENSE_STRIPE_BYTES_MAX) } else { most }
}
