//! Writes a fragment: pages and index sections stripe by stripe, then root and footer.
//!
//! 1. Encoded tiles are pushed in global order. The page of the first field is written at once, those of the others are
//!    held until the stripe is full.
//! 2. A full stripe is flushed: the pages of each other field one after the other, then the stripe's index sections.
//! 3. `finish` writes root and footer. What a stripe leaves in memory is its row of the section table.

use super::encode::{EncodedTile, PageBytes};
use super::format::{ALIGNMENT, CHUNK_BYTES, Footer, encode_header};
use super::root::{Field, Role, Root, Section, StripeInfo};
use super::value_bounds::{BoundsFold, ValueBounds};
use super::{FragmentKind, index};
use crate::base::{ByteRange, ByteSink, ByteWriter, Id, Result, xxh3};
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
            FragmentKind::Tombstones | FragmentKind::Deletion | FragmentKind::Mask => dims.collect(),
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
    /// What is known of the values of its attributes.
    pub stats: ValueBounds,
}

/// A fragment being written to a sink.
pub struct FragmentWriter<S> {
    sink: S,
    position: u64,
    root: Root,
    stripe_bytes: usize,
    pending: Vec<EncodedTile>,
    pending_bytes: usize,
    /// The index sections of the stripe's pages written so far.
    pages: ByteWriter,
    chunks: ByteWriter,
    mbr: Option<Subarray>,
    stats: BoundsFold,
}

impl<S: ByteSink> FragmentWriter<S> {
    /// Starts a fragment on an empty sink. `bounds` is the box of a dense fragment; a sparse one's MBR comes from its
    /// tiles.
    pub fn new(mut sink: S, schema: &Schema, spec: &FragmentSpec, bounds: &Subarray) -> Result<Self> {
        let header = encode_header(spec.id, 0);
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
            pages: ByteWriter::new(),
            chunks: ByteWriter::new(),
            mbr: None,
            stats: BoundsFold::new(&spec.fields),
        })
    }

    /// Adds the next tile in global order; gives back the memory of the page that was written.
    pub fn push(&mut self, mut tile: EncodedTile) -> Result<PageBytes> {
        self.root.cells += tile.cells;
        self.root.tiles += 1;
        if let Some(shape) = &tile.shape {
            self.mbr = Some(self.mbr.as_ref().map_or_else(|| shape.mbr.clone(), |mbr| mbr.union(&shape.mbr)));
        }
        self.stats.add(&tile);
        self.pending_bytes += tile.size_bytes();
        let written = self.write_page(&mut tile, 0)?;
        self.pending.push(tile);
        if self.pending_bytes >= self.stripe_bytes {
            self.flush()?;
        }
        Ok(written)
    }

    /// Cells per block at most.
    pub fn block_cells(&self) -> u32 {
        self.root.block_cells
    }

    /// Says how many cells a block has at most; of use before the first tile.
    pub fn set_block_cells(&mut self, cells: u32) {
        self.root.block_cells = cells;
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
        let stats = self.stats.finish();
        Ok(Written { sink: self.sink, bounds: self.root.bounds, cells: self.root.cells, len, stats })
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
        let mut tiles = std::mem::take(&mut self.pending);
        self.pending_bytes = 0;
        for field in 1..self.root.fields.len() {
            for tile in &mut tiles {
                self.write_page(tile, field)?;
            }
        }
        let (pages, chunks) = (std::mem::take(&mut self.pages), std::mem::take(&mut self.chunks));
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

    /// Writes the page of one field of a tile, which keeps what the index says of it; gives the page's bytes.
    fn write_page(&mut self, tile: &mut EncodedTile, field: usize) -> Result<PageBytes> {
        let nothing = PageBytes::Packed(Vec::new());
        let Some(page) = tile.pages.get_mut(field) else { return Ok(nothing) };
        self.align(if page.chunks.is_empty() { ALIGNMENT } else { CHUNK_BYTES })?;
        let pipeline = self.pipeline_number(&page.pipeline);
        let bytes = std::mem::replace(&mut page.bytes, nothing);
        self.pages.u64(self.position);
        self.pages.u64(bytes.as_slice().len() as u64);
        self.pages.u32(pipeline);
        self.pages.u32((self.chunks.len() / 4) as u32);
        page.chunks.iter().for_each(|crc| self.chunks.u32(*crc));
        self.write(bytes.as_slice())?;
        Ok(bytes)
    }

    fn pipeline_number(&mut self, name: &str) -> u32 {
        let place = self.root.pipelines.iter().position(|p| p == name);
        place.unwrap_or_else(|| {
            self.root.pipelines.push(name.to_owned());
            self.root.pipelines.len() - 1
        }) as u32
    }
}

impl<S> std::fmt::Debug for FragmentWriter<S> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "FragmentWriter({} tiles, {} bytes)", self.root.tiles, self.position)
    }
}
