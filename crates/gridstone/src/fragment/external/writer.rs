//! Writes an external fragment: what its own pages hold, the page tables stripe by stripe, root and footer.

use super::grid::ChunkGrid;
use super::table::{ForeignPage, ForeignSource, OWN_SOURCE, encode_fields, encode_page, encode_sources};
use super::value::ForeignField;
use crate::base::{ByteRange, ByteSink, ByteWriter, Error, Id, Result, limits, xxh3};
use crate::codec::foreign::ForeignPipeline;
use crate::fragment::FragmentKind;
use crate::fragment::format::{ALIGNMENT, EXTERNAL, FRAME_BYTES, Footer, SectionId, encode_header};
use crate::fragment::root::{Field, Role, Root, Section, StripeInfo};
use crate::schema::Schema;

/// Tiles of a stripe: a reader of one cell reads the page table of one stripe, about a megabyte.
const STRIPE_TILES: u64 = 16_384;

/// What is known of an external fragment before its first tile.
#[derive(Debug, Clone)]
pub struct ExternalSpec {
    /// The chunks over the box.
    pub grid: ChunkGrid,
    /// The files that hold the cells.
    pub sources: Vec<ForeignSource>,
    /// The attributes, ascending by number.
    pub fields: Vec<ForeignField>,
    /// For each list of pages the record that cells have whose chunk was never written.
    pub fills: Vec<Vec<u8>>,
}

/// The page of a list in a tile.
#[derive(Debug, Clone)]
pub enum TilePage {
    /// The chunk was never written: all cells have the fill.
    Fill,
    /// Bytes of a source, packed with this pipeline.
    Stored {
        /// Where they lie; the place of the pipeline is set when they are written.
        page: ForeignPage,
        /// The pipeline.
        pipeline: String,
    },
    /// Records that are kept in the fragment itself.
    Kept(Vec<u8>),
}

/// An external fragment on its way to a sink.
#[derive(Debug)]
pub struct ExternalWriter<S> {
    sink: S,
    position: u64,
    root: Root,
    spec: ExternalSpec,
    /// Where the fill of each list lies in the fragment.
    fills: Vec<u64>,
    stripe: StripePages,
}

/// The pages of the stripe that is being written.
#[derive(Debug, Default)]
struct StripePages {
    pages: ByteWriter,
    count: u32,
    /// Per list the page of each tile.
    of_tiles: Vec<ByteWriter>,
    /// Per list the page that is its fill.
    fills: Vec<Option<u32>>,
    tiles: u64,
}

impl<S: ByteSink> ExternalWriter<S> {
    /// Starts a fragment on an empty sink.
    ///
    /// # Errors
    /// Input: the fields do not fit the attributes of the array.
    pub fn new(mut sink: S, schema: &Schema, id: Id, spec: ExternalSpec) -> Result<Self> {
        let fields = spec.fields.iter().map(|field| field_of(schema, field)).collect::<Result<Vec<Field>>>()?;
        let lists = spec.fields.iter().map(|field| field.list as usize + 1).max().unwrap_or(0);
        if lists == 0 || spec.fills.len() != lists {
            return Err(Error::input("foreign fields whose lists of pages do not fit their fills"));
        }
        let header = encode_header(id, EXTERNAL);
        sink.write(&header)?;
        let root = Root {
            kind: FragmentKind::Dense,
            tile_order: schema.options().tile_order,
            cell_order: schema.options().cell_order,
            block_cells: limits::BLOCK_CELLS_MAX,
            cells: u64::try_from(spec.grid.bounds().cells())
                .map_err(|_| Error::unsupported("a foreign array of 2^64 cells or more"))?,
            tiles: 0,
            bounds: spec.grid.bounds().clone(),
            fields,
            pipelines: Vec::new(),
            stripes: Vec::new(),
            sections: Vec::new(),
        };
        let position = header.len() as u64;
        let mut writer = Self { sink, position, root, spec, fills: Vec::new(), stripe: StripePages::new(lists) };
        for fill in std::mem::take(&mut writer.spec.fills) {
            writer.fills.push(writer.position);
            writer.write(&fill)?;
            writer.spec.fills.push(fill);
        }
        Ok(writer)
    }

    /// Adds the next tile in the grid's order: a page per list.
    pub fn push(&mut self, pages: Vec<TilePage>) -> Result<()> {
        if pages.len() != self.spec.fills.len() || self.root.tiles >= self.spec.grid.len() {
            return Err(Error::input("more chunks, or other pages of a chunk, than the grid has"));
        }
        for (list, page) in pages.into_iter().enumerate() {
            self.push_page(list, page)?;
        }
        self.stripe.tiles += 1;
        self.root.tiles += 1;
        if self.stripe.tiles >= STRIPE_TILES { self.flush() } else { Ok(()) }
    }

    fn push_page(&mut self, list: usize, page: TilePage) -> Result<()> {
        let number = match page {
            TilePage::Fill => match self.stripe.fills.get(list).copied().flatten() {
                Some(number) => number,
                None => {
                    let page = self.fill_page(list)?;
                    let number = self.stripe.add(&page);
                    if let Some(slot) = self.stripe.fills.get_mut(list) {
                        *slot = Some(number);
                    }
                    number
                }
            },
            TilePage::Stored { page, pipeline } => {
                let pipeline = self.pipeline_number(&pipeline)?;
                self.stripe.add(&ForeignPage { pipeline, ..page })
            }
            TilePage::Kept(bytes) => {
                let page = self.own_page(self.position, bytes.len(), false)?;
                self.write(&bytes)?;
                self.stripe.add(&page)
            }
        };
        if let Some(of_tiles) = self.stripe.of_tiles.get_mut(list) {
            of_tiles.u32(number);
        }
        Ok(())
    }

    fn fill_page(&mut self, list: usize) -> Result<ForeignPage> {
        let at = self.fills.get(list).copied().zip(self.spec.fills.get(list));
        let (offset, record) = at.ok_or_else(|| Error::input("a list of pages without a fill"))?;
        let len = record.len();
        self.own_page(offset, len, true)
    }

    fn own_page(&mut self, offset: u64, len: usize, is_fill: bool) -> Result<ForeignPage> {
        let decoded = u32::try_from(len).map_err(|_| Error::unsupported("a chunk above 1 GiB"))?;
        let pipeline = self.pipeline_number("none")?;
        let (source, length) = (OWN_SOURCE, len as u64);
        Ok(ForeignPage { source, offset, length, time_us: 0, pipeline, decoded, crc: None, object_size: None, is_fill })
    }

    fn pipeline_number(&mut self, text: &str) -> Result<u32> {
        if let Some(known) = self.root.pipelines.iter().position(|p| p == text) {
            return Ok(known as u32);
        }
        ForeignPipeline::parse(text)?;
        self.root.pipelines.push(text.to_owned());
        Ok(self.root.pipelines.len() as u32 - 1)
    }

    fn flush(&mut self) -> Result<()> {
        let lists = self.spec.fills.len();
        let done = std::mem::replace(&mut self.stripe, StripePages::new(lists));
        let stripe = self.root.stripes.len() as u32;
        self.root.stripes.push(StripeInfo { tiles: done.tiles, blocks: done.tiles, texts: 0 });
        if stripe == 0 {
            let whole = [
                (SectionId::Grid, self.spec.grid.encode()),
                (SectionId::Sources, encode_sources(&self.spec.sources)?),
                (SectionId::ForeignFields, encode_fields(&self.spec.fields)?),
            ];
            whole.into_iter().try_for_each(|(id, bytes)| self.section(id, stripe, &bytes))?;
        }
        self.section(SectionId::ForeignPages, stripe, done.pages.as_slice())?;
        let of_tiles: Vec<u8> = done.of_tiles.iter().flat_map(|list| list.as_slice().to_vec()).collect();
        self.section(SectionId::TilePages, stripe, &of_tiles)
    }

    fn section(&mut self, id: SectionId, stripe: u32, bytes: &[u8]) -> Result<()> {
        self.align()?;
        let range = ByteRange::new(self.position, bytes.len() as u64);
        self.root.sections.push(Section { id, stripe, range, xxh3: xxh3(bytes) });
        self.write(bytes)
    }

    fn align(&mut self) -> Result<()> {
        let gap = self.position.next_multiple_of(ALIGNMENT) - self.position;
        const ZEROS: [u8; ALIGNMENT as usize] = [0; ALIGNMENT as usize];
        self.write(ZEROS.get(..gap as usize).unwrap_or_default())
    }

    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.sink.write(bytes)?;
        self.position += bytes.len() as u64;
        Ok(())
    }

    /// Writes what is left, root and footer; gives the sink, not finished yet, and the length in bytes.
    ///
    /// # Errors
    /// Input: tiles are missing.
    pub fn finish(mut self) -> Result<(S, u64)> {
        if self.root.tiles != self.spec.grid.len() {
            let (found, wanted) = (self.root.tiles, self.spec.grid.len());
            return Err(Error::input(format!("{found} chunks were given of a grid of {wanted}")));
        }
        if self.stripe.tiles > 0 {
            self.flush()?;
        }
        self.align()?;
        let root = self.root.encode()?;
        let root_offset = self.position;
        self.write(&root)?;
        let len = self.position + FRAME_BYTES;
        let footer = Footer { root_offset, root_len: root.len() as u64, root_xxh3: xxh3(&root), len };
        self.write(&footer.encode())?;
        Ok((self.sink, len))
    }
}

impl StripePages {
    fn new(lists: usize) -> Self {
        Self { of_tiles: vec![ByteWriter::new(); lists], fills: vec![None; lists], ..Self::default() }
    }

    fn add(&mut self, page: &ForeignPage) -> u32 {
        encode_page(page, &mut self.pages);
        self.count += 1;
        self.count - 1
    }
}

fn field_of(schema: &Schema, field: &ForeignField) -> Result<Field> {
    let attr = schema.attr_by_id(field.attr).ok_or_else(|| Error::input("a foreign field of no attribute"))?;
    field.check(attr.datatype(), attr.nullable()).map_err(|e| e.context(format!("attribute {:?}", attr.name())))?;
    Ok(Field { role: Role::Attribute(attr.id()), datatype: attr.datatype(), nullable: attr.nullable() })
}
