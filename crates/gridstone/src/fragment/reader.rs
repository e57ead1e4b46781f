//! Reads a fragment: frame and root when it is opened, a stripe's index when it is touched, blocks on demand.
//!
//! The reader gives byte ranges and turns bytes into cells; fetching is the caller's, so that ranges of many fragments
//! can be merged into few requests. Nothing is believed before its checksum was checked, and no checked number is used
//! before it was compared with what it must fit.

use super::external::External;
use super::format::{CHUNK_BYTES, EXTERNAL, FRAME_BYTES, Footer, LARGE_PAGE_BYTES, SectionId, decode_header};
use super::root::{Field, Role, Root, Section};
use super::stripe::{BlockEntry, PageEntry, Stripe};
use super::{Description, ForeignSource, FragmentKind, statistics};
use crate::base::{ByteRange, ByteSource, Cache, CacheKey, Error, Files, Id, MemorySource, Result, crc32c, xxh3};
use crate::codec::Pipeline;
use crate::schema::{Dimension, Extent, KeyRange, Schema, Subarray};
use crate::tile::{Column, Statistics, TileGrid, decode_block, decode_rows};
use bytes::Bytes;
use std::sync::{Arc, OnceLock};

/// Fragments up to this size are fetched whole when opened, in one request.
const WHOLE_BYTES_MAX: u64 = 160 * 1024;
/// How much of the end of a larger one is fetched in the hope that it holds the root.
const TAIL_BYTES: u64 = 64 * 1024;

/// An index that is not longer is fetched ahead, all of it, where the device is waited for.
const INDEX_FORESEEN_BYTES_MAX: u64 = 1 << 20;

/// An open fragment.
#[derive(Debug)]
pub struct Fragment {
    description: Arc<Description>,
    source: Arc<dyn ByteSource>,
    base: u64,
    root: Root,
    pipelines: Vec<Pipeline>,
    first_tiles: Vec<u64>,
    stripes: Vec<OnceLock<Arc<Stripe>>>,
    /// Per stripe the sections of its statistics, and their texts.
    statistics: Vec<OnceLock<(Bytes, Bytes)>>,
    /// What it has if its cells lie in files of another format.
    external: Option<External>,
}

/// One block of one field, ready to be fetched and decoded.
#[derive(Debug, Clone)]
pub struct BlockRef {
    /// The bytes to fetch from the fragment's source.
    pub range: ByteRange,
    skip: usize,
    len: usize,
    check: Check,
    field: usize,
    tile: u64,
    pipeline: u32,
    cells: usize,
}

#[derive(Debug, Clone)]
enum Check {
    Block(u32),
    Chunks(Vec<u32>),
    /// The source that it is of checks it.
    BySource,
}

impl BlockRef {
    /// The block of `cells` cells of a field that lies at `range` in a source which is no fragment.
    pub fn of_source(range: ByteRange, field: usize, tile: u64, cells: usize) -> Self {
        let len = range.len as usize;
        Self { range, skip: 0, len, check: Check::BySource, field, tile, pipeline: 0, cells }
    }

    /// The place of its field.
    pub fn field(&self) -> usize {
        self.field
    }

    /// The number of its tile.
    pub fn tile(&self) -> u64 {
        self.tile
    }

    /// How many cells it holds.
    pub fn cells(&self) -> usize {
        self.cells
    }
}

impl Fragment {
    /// Opens the fragment that `description` locates in `source`, and checks that it is the one described and fits
    /// `schema`. Errors name the fragment.
    pub fn open(source: Arc<dyn ByteSource>, description: Arc<Description>, schema: &Schema) -> Result<Self> {
        let id = description.id;
        Self::open_unnamed(source, description, schema).map_err(|e| e.context(format!("fragment {id}")))
    }

    fn open_unnamed(source: Arc<dyn ByteSource>, description: Arc<Description>, schema: &Schema) -> Result<Self> {
        let location = description.location;
        if location.offset.checked_add(location.len).is_none_or(|end| end > source.len()) {
            return Err(Error::corruption(format!(
                "{} bytes at offset {} are expected, the file has {}",
                location.len,
                location.offset,
                source.len()
            )));
        }
        if Self::is_read_whole(&description) {
            let bytes = source.read_one(ByteRange::new(location.offset, location.len))?;
            return Self::open_at(Arc::new(MemorySource(bytes)), 0, description, schema);
        }
        Self::open_at(source, location.offset, description, schema)
    }

    /// Whether a fragment is so small that it is read whole when it is opened.
    pub fn is_read_whole(description: &Description) -> bool {
        description.location.len <= WHOLE_BYTES_MAX
    }

    /// As [`Fragment::open`], of a fragment whose bytes have been read.
    pub fn open_read(bytes: Bytes, description: Arc<Description>, schema: &Schema) -> Result<Self> {
        let id = description.id;
        if bytes.len() as u64 != description.location.len {
            return Err(Error::storage(format!("fragment {id}: {} bytes were read of it", bytes.len())));
        }
        let opened = Self::open_at(Arc::new(MemorySource(bytes)), 0, description, schema);
        opened.map_err(|e| e.context(format!("fragment {id}")))
    }

    fn open_at(source: Arc<dyn ByteSource>, base: u64, description: Arc<Description>, schema: &Schema) -> Result<Self> {
        let len = description.location.len;
        if len < 2 * FRAME_BYTES {
            return Err(Error::corruption(format!("{len} bytes are too few for a fragment")));
        }
        let (mut root, features) = read_root(source.as_ref(), base, &description)?;
        let external = if features & EXTERNAL == 0 { None } else { Some(read_external(source.as_ref(), base, &root)?) };
        if !description.moved.is_empty() {
            root.bounds = moved_box(&root.bounds, &description.moved, schema)?;
        }
        check_root(&root, &description, schema, external.is_some())?;
        let external = match external {
            Some(external) => Some(external.moved(&root.bounds)?.counted_from(description.sources_from()?)),
            None => None,
        };
        let native = if external.is_none() { root.pipelines.as_slice() } else { &[] };
        let pipelines = native.iter().map(|p| Pipeline::parse(p).map_err(unknown_pipeline)).collect::<Result<_>>()?;
        let mut first_tiles = vec![0];
        for stripe in &root.stripes {
            first_tiles.push(first_tiles.last().copied().unwrap_or(0) + stripe.tiles);
        }
        foresee_index(source.as_ref(), base, &root);
        let stripes = root.stripes.iter().map(|_| OnceLock::new()).collect();
        let statistics = root.stripes.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { description, source, base, root, pipelines, first_tiles, stripes, statistics, external })
    }

    /// The same fragment, which finds the files that its cells lie in, if they lie in others, through `files`, and keeps decoded pages in
    /// the cache of a store at a place.
    pub fn with_files(self, files: &Arc<dyn Files>, (place, cache): (Id, &Arc<dyn Cache>)) -> Result<Self> {
        if let Some(external) = &self.external {
            external.find_in(files, &self.source)?;
            external.keep_in(cache, CacheKey { place, what: "page", id: self.description.id, version: 0 });
        }
        Ok(self)
    }

    /// What it has if its cells lie in files of another format.
    pub(super) fn external(&self) -> Option<&External> {
        self.external.as_ref()
    }

    /// The files of other formats that its cells lie in; none of a native fragment.
    pub fn foreign_sources(&self) -> &[ForeignSource] {
        self.external.as_ref().map_or(&[], External::sources)
    }

    /// The pipelines of chunks in files of other formats, as text, each once; none of a native fragment.
    pub fn foreign_pipelines(&self) -> Vec<String> {
        self.external.as_ref().map_or_else(Vec::new, External::pipelines)
    }

    /// The page tables of a stripe of an external fragment, whose checksums were compared.
    pub(crate) fn page_tables(&self, stripe: usize) -> Result<Vec<(SectionId, Bytes)>> {
        self.read_sections(stripe, |id| matches!(id, SectionId::ForeignPages | SectionId::TilePages))
    }

    /// Where it begins in its source.
    pub(super) fn at_start(&self) -> u64 {
        self.base
    }

    /// What the store knows of it.
    pub fn description(&self) -> &Arc<Description> {
        &self.description
    }

    /// Where its blocks are fetched from; [`BlockRef::range`] counts in it.
    pub fn source(&self) -> &Arc<dyn ByteSource> {
        &self.source
    }

    /// What it holds.
    pub fn root(&self) -> &Root {
        &self.root
    }

    /// An Unsupported error if its pages were packed with a user-defined filter that is not registered: they may be sound.
    pub fn check_filters(&self) -> Result<()> {
        self.external.as_ref().map_or(Ok(()), External::check_filters)?;
        self.pipelines.iter().try_for_each(Pipeline::check_available)
    }

    /// The stripe of tile number `tile`, and its number in that stripe.
    pub fn stripe_of(&self, tile: u64) -> Option<(usize, usize)> {
        let stripe = self.first_tiles.partition_point(|first| *first <= tile).checked_sub(1)?;
        let first = self.first_tiles.get(stripe)?;
        (stripe < self.stripes.len()).then_some((stripe, (tile - first) as usize))
    }

    /// The number of the first tile of a stripe.
    pub fn first_tile(&self, stripe: usize) -> u64 {
        self.first_tiles.get(stripe).copied().unwrap_or(0)
    }

    /// How many stripes there are.
    pub fn stripes(&self) -> usize {
        self.stripes.len()
    }

    /// The index of a stripe, read and checked at the first call.
    pub fn stripe(&self, number: usize) -> Result<Arc<Stripe>> {
        let slot = self.stripes.get(number).ok_or_else(|| Error::corruption("a stripe that is not there"))?;
        if let Some(stripe) = slot.get() {
            return Ok(stripe.clone());
        }
        let stripe = self.read_stripe(number).map_err(|e| e.context(format!("fragment {}", self.description.id)))?;
        Ok(slot.get_or_init(|| Arc::new(stripe)).clone())
    }

    fn read_stripe(&self, number: usize) -> Result<Stripe> {
        let found = self.read_sections(number, Stripe::needs)?;
        let info = self.root.stripes.get(number).ok_or_else(|| Error::corruption("a stripe that is not there"))?;
        Stripe::open(&self.root, *info, &found)
    }

    /// The statistics of a stripe's tiles, those of one attribute (in the order of the fragment's) after those of
    /// another. Read anew at each call.
    pub fn statistics(&self, number: usize) -> Result<Vec<Statistics>> {
        self.read_statistics(number).map_err(|e| e.context(format!("fragment {}", self.description.id)))
    }

    fn read_statistics(&self, number: usize) -> Result<Vec<Statistics>> {
        let (bytes, texts) = self.statistics_sections(number)?;
        let info = self.root.stripes.get(number).ok_or_else(|| Error::corruption("a stripe that is not there"))?;
        statistics::decode(&self.root, *info, &bytes, &texts)
    }

    /// The statistics of one attribute in each tile of a stripe; `None` if the fragment has none of it. They are read and
    /// checked at the first call.
    pub fn statistics_of(&self, number: usize, attr: u32) -> Result<Option<Vec<Statistics>>> {
        self.read_statistics_of(number, attr).map_err(|e| e.context(format!("fragment {}", self.description.id)))
    }

    fn read_statistics_of(&self, number: usize, attr: u32) -> Result<Option<Vec<Statistics>>> {
        let missing = || Error::corruption("a stripe that is not there");
        let (info, slot) = self.root.stripes.get(number).zip(self.statistics.get(number)).ok_or_else(missing)?;
        let (bytes, texts) = match slot.get() {
            Some(held) => held,
            None => {
                let read = self.statistics_sections(number)?;
                slot.get_or_init(|| read)
            }
        };
        statistics::decode_one(&self.root, *info, (bytes, texts), attr)
    }

    fn statistics_sections(&self, number: usize) -> Result<(Bytes, Bytes)> {
        let found = self.read_sections(number, |id| !Stripe::needs(id))?;
        let find = |id: SectionId| found.iter().find(|(s, _)| *s == id).map(|(_, b)| b.clone()).unwrap_or_default();
        Ok((find(SectionId::Statistics), find(SectionId::Texts)))
    }

    /// The index sections of a stripe that are `wanted`, checked against their checksums.
    fn read_sections(&self, number: usize, wanted: impl Fn(SectionId) -> bool) -> Result<Vec<(SectionId, Bytes)>> {
        let sections = self.root.sections.iter().filter(|s| s.stripe as usize == number && wanted(s.id));
        let sections: Vec<&Section> = sections.collect();
        let ranges: Vec<ByteRange> = sections.iter().map(|s| self.at(s.range)).collect();
        let mut found = Vec::with_capacity(sections.len());
        for (section, bytes) in sections.iter().zip(self.source.read(&ranges)?) {
            if xxh3(&bytes) != section.xxh3 {
                return Err(Error::corruption(format!("index section {:?} fails its checksum", section.id)));
            }
            found.push((section.id, bytes));
        }
        Ok(found)
    }

    /// A range of the fragment as one of its source.
    pub(super) fn at(&self, range: ByteRange) -> ByteRange {
        ByteRange::new(self.base.saturating_add(range.offset), range.len)
    }

    /// The place of the field with this role.
    pub fn field(&self, role: Role) -> Option<usize> {
        self.root.fields.iter().position(|f| f.role == role)
    }

    /// The place of a field that the description promises; Corruption if it is not there.
    pub fn promised_field(&self, role: Role) -> Result<usize> {
        self.field(role).ok_or_else(|| {
            Error::corruption(format!("fragment {} lacks an attribute it is said to have", self.description.id))
        })
    }

    /// Cells of block `block` (counted in its tile) of a sparse tile of `cells` cells.
    pub fn sparse_block_cells(&self, cells: u64, block: usize) -> usize {
        let size = u64::from(self.root.block_cells);
        cells.saturating_sub(block as u64 * size).min(size) as usize
    }

    fn no_block(&self, tile: u64, block: usize) -> Error {
        Error::corruption(format!("fragment {}: no block {block} in tile {tile}", self.description.id))
    }

    /// What the index says of a block: its stripe, its page and its place in the page.
    pub(super) fn entries(
        &self,
        field: usize,
        tile: u64,
        block: usize,
    ) -> Result<(Arc<Stripe>, PageEntry, BlockEntry)> {
        let missing = || self.no_block(tile, block);
        let (stripe, local) = self.stripe_of(tile).ok_or_else(missing)?;
        let stripe = self.stripe(stripe)?;
        let named = |e: Error| self.named(e, field, tile);
        let page = stripe.page(&self.root, field, local).map_err(named)?.ok_or_else(missing)?;
        let entry = stripe.block(page, field, local, block).map_err(named)?.ok_or_else(missing)?;
        Ok((stripe, page, entry))
    }

    /// Whether a page holds plain bytes with a checksum per chunk.
    pub(super) fn is_chunked(&self, page: PageEntry) -> bool {
        self.pipelines.get(page.pipeline as usize).is_some_and(Pipeline::is_none) && page.len >= LARGE_PAGE_BYTES
    }

    /// Block number `block` of tile number `tile` of a field; `cells` is how many it holds.
    pub fn block(&self, field: usize, tile: u64, block: usize, cells: usize) -> Result<BlockRef> {
        let missing = || self.no_block(tile, block);
        let (stripe, page, entry) = self.entries(field, tile, block)?;
        let (start, end) = (entry.offset, entry.offset + u64::from(entry.len));
        let (range, check) = if self.is_chunked(page) {
            let (first, last) = (start / CHUNK_BYTES, end.div_ceil(CHUNK_BYTES));
            let range = ByteRange::new(first * CHUNK_BYTES, (last * CHUNK_BYTES).min(page.len) - first * CHUNK_BYTES);
            (range, Check::Chunks(chunk_checksums(&stripe, page, first, last).ok_or_else(missing)?))
        } else {
            (ByteRange::new(start, u64::from(entry.len)), Check::Block(entry.crc))
        };
        Ok(BlockRef {
            range: self.at(ByteRange::new(page.offset + range.offset, range.len)),
            skip: (start - range.offset) as usize,
            len: entry.len as usize,
            check,
            field,
            tile,
            pipeline: page.pipeline,
            cells,
        })
    }

    /// The number of blocks of a tile, for checking it against the grid that the reader computed.
    pub fn tile_blocks(&self, tile: u64) -> Result<usize> {
        let missing = || Error::corruption(format!("fragment {}: no tile {tile}", self.description.id));
        let (stripe, local) = self.stripe_of(tile).ok_or_else(missing)?;
        let (from, to) = self.stripe(stripe)?.block_span(local).ok_or_else(missing)?;
        Ok(to - from)
    }

    /// Checks and decodes the bytes fetched for `block`. A Corruption error names fragment, tile and attribute.
    pub fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        self.decode_unnamed(block, bytes).map_err(|e| self.named(e, block.field, block.tile))
    }

    /// An error with fragment, tile and column in front.
    pub(super) fn named(&self, error: Error, field: usize, tile: u64) -> Error {
        named(error, self.description.id, tile, self.root.fields.get(field).map(|f| f.role))
    }

    /// As [`Fragment::decode`], of a field of fixed width without nulls, into `out`, which is as long as its cells.
    pub fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_fixed(block, bytes, out).map_err(|e| self.named(e, block.field, block.tile))
    }

    /// As [`Fragment::decode_into`], of the cells `rows` (ascending) alone, side by side; `scratch` is for pipelines that have to decode all
    /// cells to find some.
    pub fn decode_rows_into(
        &self,
        block: &BlockRef,
        bytes: &[u8],
        rows: &[u32],
        scratch: &mut Vec<u8>,
        out: &mut [u8],
    ) -> Result<()> {
        let decoded = self.stored(block, bytes).and_then(|(stored, field, pipeline)| {
            if field.nullable || field.datatype.is_var() {
                return Err(Error::corruption("a block of cells without a fixed width or with nulls"));
            }
            decode_rows(stored, (field.datatype, block.cells), pipeline, rows, scratch, out)
        });
        decoded.map_err(|e| self.named(e, block.field, block.tile))
    }

    fn decode_fixed(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        let (stored, field, pipeline) = self.stored(block, bytes)?;
        if field.nullable || field.datatype.width().and_then(|w| w.checked_mul(block.cells)) != Some(out.len()) {
            return Err(Error::corruption(format!("{} cells do not fit {} bytes", block.cells, out.len())));
        }
        pipeline.decode_into(stored, field.datatype.element(), out)
    }

    fn decode_unnamed(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        let (stored, field, pipeline) = self.stored(block, bytes)?;
        decode_block(stored, field.datatype, field.nullable, block.cells, pipeline)
    }

    /// The stored bytes of a block in the bytes fetched for it, checked, and what they are decoded with.
    fn stored<'a>(&'a self, block: &BlockRef, bytes: &'a [u8]) -> Result<(&'a [u8], &'a Field, &'a Pipeline)> {
        if bytes.len() as u64 != block.range.len {
            return Err(Error::corruption(format!("{} bytes were read, {} wanted", bytes.len(), block.range.len)));
        }
        let sound = match &block.check {
            Check::Block(crc) => crc32c(bytes) == *crc,
            Check::BySource => false,
            Check::Chunks(crcs) => {
                bytes.chunks(CHUNK_BYTES as usize).zip(crcs).all(|(chunk, crc)| crc32c(chunk) == *crc)
            }
        };
        if !sound {
            return Err(bad_checksum());
        }
        let missing = || Error::corruption("a block that does not fit its page");
        let stored = bytes.get(block.skip..block.skip + block.len).ok_or_else(missing)?;
        let field = self.root.fields.get(block.field).ok_or_else(missing)?;
        let pipeline = self.pipelines.get(block.pipeline as usize).ok_or_else(missing)?;
        Ok((stored, field, pipeline))
    }
}

/// Tells the source of the index, if it lies apart from the root and is of a moderate size.
fn foresee_index(source: &dyn ByteSource, base: u64, root: &Root) {
    if source.len() <= WHOLE_BYTES_MAX || !source.is_cold() {
        return;
    }
    let index = root.sections.iter().filter(|section| Stripe::needs(section.id)).map(|section| section.range);
    let index: Vec<ByteRange> = index.map(|r| ByteRange::new(base.saturating_add(r.offset), r.len)).collect();
    if index.iter().fold(0, |sum: u64, range| sum.saturating_add(range.len)) <= INDEX_FORESEEN_BYTES_MAX {
        source.prefetch(&index);
    }
}

/// An error with fragment, tile and column in front.
pub(super) fn named(error: Error, fragment: Id, tile: u64, column: Option<Role>) -> Error {
    let column = match column {
        Some(Role::Dimension(n)) => format!("dimension {n}"),
        Some(Role::Attribute(n)) => format!("attribute {n}"),
        None => "no field".to_owned(),
    };
    error.context(format!("fragment {fragment}, tile {tile}, {column}"))
}

pub(super) fn bad_checksum() -> Error {
    Error::corruption("a block fails its checksum; restore this file from a copy")
}

fn chunk_checksums(stripe: &Stripe, page: PageEntry, first: u64, last: u64) -> Option<Vec<u32>> {
    (first..last).map(|n| stripe.chunk_checksum(page.first_chunk as usize + n as usize)).collect()
}

fn unknown_pipeline(error: Error) -> Error {
    Error::unsupported(format!(
        "it is packed with filters that this version does not know ({error}); use a newer Gridstone"
    ))
}

/// The sections of an external fragment that concern all of it.
fn read_external(source: &dyn ByteSource, base: u64, root: &Root) -> Result<External> {
    let whole = [SectionId::Grid, SectionId::Sources, SectionId::ForeignFields];
    let wanted = |section: &&Section| section.stripe == 0 && whole.contains(&section.id);
    let sections: Vec<&Section> = root.sections.iter().filter(wanted).collect();
    let at = |section: &&Section| ByteRange::new(base.saturating_add(section.range.offset), section.range.len);
    let read = source.read(&sections.iter().map(at).collect::<Vec<_>>())?;
    if let Some((section, _)) = sections.iter().zip(&read).find(|(section, bytes)| xxh3(bytes) != section.xxh3) {
        return Err(Error::corruption(format!("index section {:?} fails its checksum", section.id)));
    }
    let found: Vec<(SectionId, Bytes)> = sections.iter().map(|section| section.id).zip(read).collect();
    External::open(root, &found)
}

/// The root of a fragment, and the features that its header says it needs.
fn read_root(source: &dyn ByteSource, base: u64, description: &Description) -> Result<(Root, u64)> {
    let len = description.location.len;
    let tail_len = if len <= WHOLE_BYTES_MAX { len } else { TAIL_BYTES };
    let tail_start = len - tail_len;
    let ranges = [ByteRange::new(base, FRAME_BYTES), ByteRange::new(base + tail_start, tail_len)];
    let parts = source.read(&ranges)?;
    let [header, tail] = parts.as_slice() else {
        return Err(Error::storage("a source gave the wrong number of parts"));
    };
    let (id, features) = decode_header(header)?;
    if id != description.id {
        return Err(Error::corruption("another fragment lies at its place"));
    }
    let footer_at = tail.len().saturating_sub(FRAME_BYTES as usize);
    let footer = Footer::decode(tail.get(footer_at..).unwrap_or_default(), len)?;
    let root = if footer.root_offset >= tail_start {
        let from = (footer.root_offset - tail_start) as usize;
        tail.slice(from..from + footer.root_len as usize)
    } else {
        source.read_one(ByteRange::new(base + footer.root_offset, footer.root_len))?
    };
    if xxh3(&root) != footer.root_xxh3 {
        return Err(Error::corruption("its root fails its checksum"));
    }
    let root = Root::decode(&root)?;
    if root.sections.iter().any(|s| s.range.offset.checked_add(s.range.len).is_none_or(|end| end > footer.root_offset))
    {
        return Err(Error::corruption("an index section lies past the root"));
    }
    Ok((root, features))
}

/// Where the box of a root lies by a description that says `moved`: by so many whole tiles off, per dimension.
fn moved_box(bounds: &Subarray, moved: &[i64], schema: &Schema) -> Result<Subarray> {
    let wrong = || Error::corruption("it is said to be moved to where no tile is");
    if moved.len() != bounds.ndim() || moved.len() != schema.ndim() {
        return Err(wrong());
    }
    let range = |((range, dim), by): ((&KeyRange, &Dimension), &i64)| match (dim.extent(), by) {
        (_, 0) => Some(*range),
        (Extent::Cells(n), by) => {
            let offset = i128::from(n) * i128::from(*by);
            let moved = |key: u64| u64::try_from(i128::from(key) + offset).ok();
            Some(KeyRange::new(moved(range.lo)?, moved(range.hi)?))
        }
        _ => None,
    };
    let ranges = bounds.ranges().iter().zip(schema.dims()).zip(moved).map(range).collect::<Option<Vec<_>>>();
    ranges.map(Subarray::new).ok_or_else(wrong)
}

/// Checks that a root is the one its description promised and that it fits the array.
fn check_root(root: &Root, description: &Description, schema: &Schema, is_external: bool) -> Result<()> {
    let wrong =
        |what: &str| Err(Error::corruption(format!("its {what} are not those of its array or its description")));
    if root.kind != description.kind || root.cells != description.cells {
        return wrong("kind and cells");
    }
    if root.bounds != description.bounds || !schema.domain().covers(&root.bounds) || root.bounds.ndim() != schema.ndim()
    {
        return wrong("bounds");
    }
    if root.cell_order != schema.options().cell_order || root.tile_order != schema.options().tile_order {
        return wrong("orders");
    }
    let attrs: Vec<&Field> = root.fields.iter().filter(|f| matches!(f.role, Role::Attribute(_))).collect();
    let described = attrs.iter().map(|f| if let Role::Attribute(n) = f.role { n } else { u32::MAX });
    if !described.eq(description.attrs.iter().copied()) {
        return wrong("attributes");
    }
    let dims: Vec<&Field> = root.fields.iter().filter(|f| matches!(f.role, Role::Dimension(_))).collect();
    let expected = if root.kind == FragmentKind::Dense { 0 } else { schema.ndim() };
    let in_place = dims
        .iter()
        .zip(0u32..)
        .zip(schema.dims())
        .all(|((f, i), d)| f.role == Role::Dimension(i) && f.datatype == d.datatype());
    if dims.len() != expected || !in_place {
        return wrong("dimensions");
    }
    let fits = |f: &&Field| match f.role {
        // An attribute that was dropped since is not looked at; one that may be null by now was not always so.
        Role::Attribute(n) => {
            schema.attr_by_id(n).is_none_or(|a| a.datatype() == f.datatype && a.nullable() >= f.nullable)
        }
        Role::Dimension(_) => true,
    };
    if !attrs.iter().all(fits) {
        return wrong("attribute types");
    }
    if is_external && root.kind != FragmentKind::Dense {
        return wrong("kind");
    }
    if root.kind == FragmentKind::Dense {
        let tiles = if is_external { root.tiles } else { TileGrid::new(schema, &root.bounds)?.len() };
        if tiles != root.tiles || u128::from(root.cells) != root.bounds.cells() {
            return wrong("tiles");
        }
    }
    Ok(())
}
