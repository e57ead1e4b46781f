//! Writes a fragment: pages and index sections stripe by stripe, then root and footer.
//!
//! 1. Encoded tiles are pushed in global order and held until the stripe is full.
//! 2. A full stripe is flushed: the pages of each field one after the other, then the stripe's index sections.
//! 3. `finish` writes root and footer. What a stripe leaves in memory is its row of the section table.

use super::encode::EncodedTile;
use super::format::{ALIGNMENT, CHUNK_BYTES, Footer, LARGE_PAGE_BYTES, encode_header};
use super::root::{Field, Role, Root, Section, StripeInfo};
use super::{FragmentKind, index};
use crate::base::{ByteRange, ByteSink, ByteWriter, Id, Result, crc32c, xxh3};
use crate::schema::{Schema, Subarray};

/// What is known of a fragment before its first tile.
#[derive(Debug, Clone)]
pub struct FragmentSpec {
    /// Its id.
    pub id: Id,
    /// What it holds.
    pub kind: FragmentKind,
    /// Its columns: dimensions first, then attributes by number.
    pub fields: Vec<Field>,
    /// Cells per block at most.
    pub block_cells: u32,
    /// Stored bytes after which a stripe is flushed.
    pub stripe_bytes: usize,
}

impl FragmentSpec {
    /// The columns of a fragment of `kind` that holds the attributes `attrs` (permanent numbers, ascending).
    pub fn fields(schema: &Schema, kind: FragmentKind, attrs: &[u32]) -> Vec<Field> {
        let dims = schema.dims().iter().zip(0u32..).map(|(d, i)| Field {
            role: Role::Dimension(i),
            datatype: d.datatype(),
            nullable: false,
        });
        let attrs = attrs.iter().filter_map(|id| schema.attr_by_id(*id)).map(|a| Field {
            role: Role::Attribute(a.id()),
            datatype: a.datatype(),
            nullable: a.nullable(),
        });
        match kind {
            FragmentKind::Dense => attrs.collect(),
            FragmentKind::Sparse => dims.chain(attrs).collect(),
            FragmentKind::Tombstones => dims.collect(),
        }
    }
}

/// A fragment whose last byte has been written.
#[derive(Debug)]
pub struct Written<S> {
    /// The sink, not finished yet.
    pub sink: S,
    /// The box written, or the MBR of the cells.
    pub bounds: Subarray,
    /// Cells in it.
    pub cells: u64,
    /// Length in bytes.
    pub len: u64,
}

/// A fragment being written to a sink.
pub struct FragmentWriter<S> {
    sink: S,
    position: u64,
    root: Root,
    stripe_bytes: usize,
    pending: Vec<EncodedTile>,
    pending_bytes: usize,
    mbr: Option<Subarray>,
}

impl<S: ByteSink> FragmentWriter<S> {
    /// Starts a fragment on an empty sink. `bounds` is the box of a dense fragment; a sparse one's MBR comes from its
    /// tiles.
    pub fn new(mut sink: S, schema: &Schema, spec: &FragmentSpec, bounds: &Subarray) -> Result<Self> {
        let header = encode_header(spec.id);
        sink.write(&header)?;
        let root = Root {
            kind: spec.kind,
            tile_order: schema.options().tile_order,
            cell_order: schema.options().cell_order,
            block_cells: spec.block_cells,
            cells: 0,
            tiles: 0,
            bounds: bounds.clone(),
            fields: spec.fields.clone(),
            pipelines: Vec::new(),
            stripes: Vec::new(),
            sections: Vec::new(),
        };
        let position = header.len() as u64;
        Ok(Self {
            sink,
            position,
            root,
            stripe_bytes: spec.stripe_bytes,
            pending: Vec::new(),
            pending_bytes: 0,
            mbr: None,
        })
    }

    /// Adds the next tile in global order.
    pub fn push(&mut self, tile: EncodedTile) -> Result<()> {
        self.root.cells += tile.cells;
        self.root.tiles += 1;
        if let Some(shape) = &tile.shape {
            self.mbr = Some(self.mbr.as_ref().map_or_else(|| shape.mbr.clone(), |mbr| mbr.union(&shape.mbr)));
        }
        self.pending_bytes += tile.size_bytes();
        self.pending.push(tile);
        if self.pending_bytes >= self.stripe_bytes { self.flush() } else { Ok(()) }
    }

    /// Cells pushed so far.
    pub fn cells(&self) -> u64 {
        self.root.cells
    }

    /// Writes what is left, root and footer. The sink is left for the caller to finish.
    pub fn finish(mut self) -> Result<Written<S>> {
        if !self.pending.is_empty() {
            self.flush()?;
        }
        if let Some(mbr) = self.mbr.take() {
            self.root.bounds = mbr;
        }
        self.align(ALIGNMENT)?;
        let root = self.root.encode()?;
        let root_offset = self.position;
        self.write(&root)?;
        let len = self.position + super::format::FRAME_BYTES;
        let footer = Footer { root_offset, root_len: root.len() as u64, root_xxh3: xxh3(&root), len };
        self.write(&footer.encode())?;
        Ok(Written { sink: self.sink, bounds: self.root.bounds, cells: self.root.cells, len })
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    fn align(&mut self, alignment: u64) -> Result<()> {
        let gap = self.position.next_multiple_of(alignment) - self.position;
        const ZEROS: [u8; CHUNK_BYTES as usize] = [0; CHUNK_BYTES as usize];
        self.write(ZEROS.get(..gap as usize).unwrap_or_default())
    }

    fn flush(&mut self) -> Result<()> {
        let tiles = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        let mut pages = ByteWriter::new();
        let mut chunks = ByteWriter::new();
        for field in 0..self.root.fields.len() {
            for tile in &tiles {
                self.write_page(tile, field, &mut pages, &mut chunks)?;
            }
        }
        let blocks = tiles.iter().map(|t| u64::from(t.blocks)).sum();
        let sections = index::encode(&tiles, &self.root.fields, pages, chunks)?;
        let stripe = self.root.stripes.len() as u32;
        self.root.stripes.push(StripeInfo { tiles: tiles.len() as u64, blocks, texts: sections.texts });
        for (id, bytes) in sections.sections {
            self.align(ALIGNMENT)?;
            let range = ByteRange::new(self.position, bytes.len() as u64);
            self.root.sections.push(Section { id, stripe, range, xxh3: xxh3(&bytes) });
            self.write(&bytes)?;
        }
        Ok(())
    }

    fn write_page(
        &mut self,
        tile: &EncodedTile,
        field: usize,
        pages: &mut ByteWriter,
        chunks: &mut ByteWriter,
    ) -> Result<()> {
        let Some(page) = tile.pages.get(field) else { return Ok(()) };
        let large = page.is_large_raw();
        self.align(if large { CHUNK_BYTES } else { ALIGNMENT })?;
        let pipeline = self.pipeline_number(&page.pipeline);
        pages.u64(self.position);
        pages.u64(page.bytes.len() as u64);
        pages.u32(pipeline);
        pages.u32((chunks.len() / 4) as u32);
        if large {
            page.bytes.chunks(CHUNK_BYTES as usize).for_each(|chunk| chunks.u32(crc32c(chunk)));
        }
        self.write(&page.bytes)
    }

    fn pipeline_number(&mut self, name: &str) -> u32 {
        let place = self.root.pipelines.iter().position(|p| p == name);
        place.unwrap_or_else(|| {
            self.root.pipelines.push(name.to_owned());
            self.root.pipelines.len() - 1
        }) as u32
    }
}

impl super::encode::EncodedPage {
    /// Whether the page is raw and large, so that it is page-aligned and checksummed per 4 KiB instead of per block.
    pub(super) fn is_large_raw(&self) -> bool {
        self.pipeline == "none" && self.bytes.len() as u64 >= LARGE_PAGE_BYTES
    }
}

impl<S> std::fmt::Debug for FragmentWriter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FragmentWriter({} tiles, {} bytes)", self.root.tiles, self.position)
    }
}
