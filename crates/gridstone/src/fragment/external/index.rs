//! What the reader of a fragment holds of an external one: its grid, its fields, and the page tables of its stripes.

use super::bytes::ForeignBytes;
use super::decode::FieldDecoder;
use super::grid::ChunkGrid;
use super::table::{ForeignPage, ForeignSource, PAGE_BYTES, decode_fields, decode_page, decode_sources};
use crate::base::{AlignedBuf, ByteSource, Cache, CacheKey, Error, Files, Result, crc32c};
use crate::codec::foreign::ForeignPipeline;
use crate::fragment::format::SectionId;
use crate::fragment::root::{Field, Role, Root};
use crate::schema::Subarray;
use crate::tile::{Column, try_vec};
use bytes::Bytes;
use std::any::Any;
use std::ops::Deref;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock, Weak};

/// The part of an external fragment that native ones do not have.
#[derive(Debug)]
pub(in crate::fragment) struct External {
    grid: ChunkGrid,
    sources: Vec<ForeignSource>,
    decoders: Vec<FieldDecoder>,
    pipelines: Vec<ForeignPipeline>,
    lists: usize,
    /// Whether decoded pages are kept: some hold values of several fields, or a program decodes them, which may take long.
    kept: bool,
    stripes: Vec<OnceLock<Arc<PageTable>>>,
    bytes: OnceLock<Arc<ForeignBytes>>,
    /// Where decoded pages are kept. The cache has the fragment, and so must not be kept by it.
    cache: OnceLock<(Weak<dyn Cache>, CacheKey)>,
    pages_decoded: AtomicU64,
}

/// The pages of a stripe, and which of them each list has for each tile.
#[derive(Debug)]
struct PageTable {
    pages: Bytes,
    of_tiles: Bytes,
    tiles: usize,
}

impl PageTable {
    fn number(&self, list: usize, tile: usize) -> Option<u32> {
        let (words, _) = self.of_tiles.as_chunks::<4>();
        words.get(list.checked_mul(self.tiles)?.checked_add(tile)?).map(|word| u32::from_le_bytes(*word))
    }

    fn page(&self, number: u32) -> Option<&[u8]> {
        let start = (number as usize).checked_mul(PAGE_BYTES)?;
        self.pages.get(start..start + PAGE_BYTES)
    }
}

/// The records of a page: as they are stored, or decoded.
pub(super) enum Records<'a> {
    Stored(&'a [u8]),
    Decoded(Arc<Vec<u8>>),
}

impl Deref for Records<'_> {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        match self {
            Self::Stored(bytes) => bytes,
            Self::Decoded(bytes) => bytes,
        }
    }
}

impl External {
    /// Reads the sections of the whole fragment; `sections` gives those of a stripe, checked.
    ///
    /// # Errors
    /// Corruption: the sections contradict each other or the root; Unsupported: a step or a filter that is not known.
    pub(in crate::fragment) fn open(root: &Root, sections: &[(SectionId, Bytes)]) -> Result<Self> {
        let find = |id: SectionId| {
            let found = sections.iter().find(|(section, _)| *section == id);
            found.map(|(_, bytes)| bytes.clone()).ok_or_else(|| Error::corruption(format!("it has no section {id:?}")))
        };
        let grid = ChunkGrid::decode(&find(SectionId::Grid)?, &root.bounds)?;
        let sources = decode_sources(&find(SectionId::Sources)?)?;
        let fields = decode_fields(&find(SectionId::ForeignFields)?)?;
        let wrong = |e: Error| Error::corruption(format!("its foreign fields do not fit: {e}"));
        if fields.len() != root.fields.len() || grid.len() != root.tiles {
            return Err(Error::corruption("its foreign fields or chunks are not as many as its root has"));
        }
        let decoder =
            |(field, described): (_, &Field)| FieldDecoder::new(field, described.datatype, described.nullable);
        let decoders: Vec<FieldDecoder> =
            fields.into_iter().zip(&root.fields).map(decoder).collect::<Result<_>>().map_err(wrong)?;
        let in_place =
            |(decoder, described): (&FieldDecoder, &Field)| described.role == Role::Attribute(decoder.field().attr);
        if !decoders.iter().zip(&root.fields).all(in_place) {
            return Err(Error::corruption("its foreign fields are of other attributes than its root has"));
        }
        let lists: Vec<u32> = decoders.iter().map(|decoder| decoder.field().list).collect();
        let shared = lists.iter().enumerate().any(|(n, list)| lists.iter().take(n).any(|before| before == list));
        let pipelines: Vec<ForeignPipeline> =
            root.pipelines.iter().map(|text| ForeignPipeline::parse(text)).collect::<Result<_>>()?;
        let kept = shared || pipelines.iter().any(ForeignPipeline::has_user_filters);
        Ok(Self {
            grid,
            sources,
            lists: lists.iter().map(|list| *list as usize + 1).max().unwrap_or(0),
            decoders,
            pipelines,
            kept,
            stripes: root.stripes.iter().map(|_| OnceLock::new()).collect(),
            bytes: OnceLock::new(),
            cache: OnceLock::new(),
            pages_decoded: AtomicU64::new(0),
        })
    }

    /// The same over a box of the same shape elsewhere.
    pub(in crate::fragment) fn moved(mut self, bounds: &Subarray) -> Result<Self> {
        let moved = self.grid.moved(bounds);
        self.grid = moved.ok_or_else(|| Error::corruption("it is said to be moved to where no chunk is"))?;
        Ok(self)
    }

    /// The same whose sources count from a folder, if they have counted from that of the store.
    pub(in crate::fragment) fn counted_from(mut self, folder: Option<&str>) -> Self {
        if let Some(folder) = folder {
            let from = |source: ForeignSource| ForeignSource { object: source.object.counted_from(folder), ..source };
            self.sources = self.sources.into_iter().map(from).collect();
        }
        self
    }

    /// Says where its sources are found; of use once.
    pub(in crate::fragment) fn find_in(&self, files: &Arc<dyn Files>, own: &Arc<dyn ByteSource>) -> Result<()> {
        if let Some(sources) = files.sources().filter(|_| self.bytes.get().is_none()) {
            let bytes = Arc::new(ForeignBytes::new(Arc::clone(own), sources, &self.sources)?);
            self.bytes.get_or_init(|| bytes);
        }
        Ok(())
    }

    /// Says where decoded pages are kept that are needed again; of use once.
    pub(in crate::fragment) fn keep_in(&self, cache: &Arc<dyn Cache>, key: CacheKey) {
        self.cache.get_or_init(|| (Arc::downgrade(cache), key));
    }

    /// The bytes of all its sources.
    pub(super) fn bytes(&self) -> Result<&Arc<ForeignBytes>> {
        self.bytes
            .get()
            .ok_or_else(|| Error::unsupported("an external fragment was opened without the files that it needs"))
    }

    /// Its chunks.
    pub(super) fn grid(&self) -> &ChunkGrid {
        &self.grid
    }

    /// The files whose bytes it shows.
    pub(in crate::fragment) fn sources(&self) -> &[ForeignSource] {
        &self.sources
    }

    /// The pipelines of its chunks, as text, each once.
    pub(in crate::fragment) fn pipelines(&self) -> Vec<String> {
        let mut names: Vec<String> = self.pipelines.iter().map(ForeignPipeline::name).collect();
        names.sort();
        names.dedup();
        names
    }

    /// An Unsupported error if a chunk needs a filter that is not there.
    pub(in crate::fragment) fn check_filters(&self) -> Result<()> {
        self.pipelines.iter().try_for_each(ForeignPipeline::check_available)
    }

    /// How many pages were decoded through this handle.
    pub(super) fn pages_decoded(&self) -> u64 {
        self.pages_decoded.load(Ordering::Relaxed)
    }

    fn decoder(&self, field: usize) -> Result<&FieldDecoder> {
        self.decoders.get(field).ok_or_else(|| Error::corruption("a field that is not there"))
    }

    /// The page that holds the values of a field of a tile: its number in the stripe, and what is known of it. `read` gives the sections
    /// of a stripe.
    pub(super) fn page(
        &self,
        field: usize,
        (stripe, tile): (usize, usize),
        read: impl FnOnce() -> Result<Vec<(SectionId, Bytes)>>,
        tiles: usize,
    ) -> Result<(u32, ForeignPage)> {
        let missing = || Error::corruption("a chunk that is not in its index");
        let slot = self.stripes.get(stripe).ok_or_else(missing)?;
        let table = match slot.get() {
            Some(table) => table,
            None => {
                let table = Arc::new(self.read_table(&read()?, tiles)?);
                slot.get_or_init(|| table)
            }
        };
        let list = self.decoder(field)?.field().list as usize;
        let number = table.number(list, tile).ok_or_else(missing)?;
        let page = decode_page(table.page(number).ok_or_else(missing)?)?;
        Ok((number, page))
    }

    fn read_table(&self, sections: &[(SectionId, Bytes)], tiles: usize) -> Result<PageTable> {
        let find = |id: SectionId| {
            let found = sections.iter().find(|(section, _)| *section == id);
            found.map(|(_, bytes)| bytes.clone()).unwrap_or_default()
        };
        let (pages, of_tiles) = (find(SectionId::ForeignPages), find(SectionId::TilePages));
        let words = tiles.checked_mul(self.lists).and_then(|words| words.checked_mul(4));
        if words != Some(of_tiles.len()) || !pages.len().is_multiple_of(PAGE_BYTES) {
            return Err(Error::corruption("the page table of a stripe does not fit its chunks"));
        }
        Ok(PageTable { pages, of_tiles, tiles })
    }

    /// The records of a page: those of all cells, or one that stands for them.
    pub(super) fn decode<'a>(&self, page: &ForeignPage, key: (usize, u32), stored: &'a [u8]) -> Result<Records<'a>> {
        if stored.len() as u64 != page.length {
            return Err(Error::corruption(format!("{} bytes were read, {} wanted", stored.len(), page.length)));
        }
        let cache = self.cache.get().filter(|_| self.kept);
        let cache =
            cache.and_then(|(cache, of)| Some((cache.upgrade()?, CacheKey { version: version_of(key), ..*of })));
        if let Some(held) = cache.as_ref().and_then(|(cache, of)| cache.get(of)?.downcast::<Vec<u8>>().ok()) {
            return Ok(Records::Decoded(held));
        }
        if page.crc.is_some_and(|crc| crc != crc32c(stored)) {
            return Err(Error::corruption("a chunk fails its checksum; its file has been damaged or changed"));
        }
        let pipeline = self.pipelines.get(page.pipeline as usize);
        let pipeline = pipeline.ok_or_else(|| Error::corruption("a pipeline that is not in the root"))?;
        if pipeline.is_none() && stored.len() == page.decoded as usize {
            return Ok(Records::Stored(stored));
        }
        self.pages_decoded.fetch_add(1, Ordering::Relaxed);
        let records = Arc::new(pipeline.decode(stored, page.decoded as usize)?);
        if let Some((cache, of)) = cache {
            cache.put(of, Arc::clone(&records) as Arc<dyn Any + Send + Sync>, records.len() as u64);
        }
        Ok(Records::Decoded(records))
    }

    /// The cells of a field in the records of a page.
    pub(super) fn column(
        &self,
        field: usize,
        page: &ForeignPage,
        records: &[u8],
        (tile, cells): (u64, usize),
    ) -> Result<Column> {
        let decoder = self.decoder(field)?;
        if !page.is_fill {
            return decoder.column(records, cells, self.grid.inside(tile).as_deref());
        }
        repeated(&decoder.column(records, 1, None)?, cells)
    }

    /// The same into `out`, of a field of fixed width without nulls.
    pub(super) fn column_into(
        &self,
        field: usize,
        page: &ForeignPage,
        records: &[u8],
        (tile, out): (u64, &mut [u8]),
    ) -> Result<()> {
        let decoder = self.decoder(field)?;
        if !page.is_fill && decoder.copy_plain(records, out)? {
            return Ok(());
        }
        let size = decoder.width();
        let cells = out.len().checked_div(size).unwrap_or(0);
        let column = match page.is_fill {
            true => decoder.column(records, 1, None)?,
            false => decoder.column(records, cells, self.grid.inside(tile).as_deref())?,
        };
        let values = column.view().values();
        if page.is_fill && values.len() == size {
            out.chunks_exact_mut(size).for_each(|cell| cell.copy_from_slice(values));
            return Ok(());
        }
        if values.len() != out.len() || column.view().validity().is_some() {
            return Err(Error::corruption("cells that do not fit their block"));
        }
        out.copy_from_slice(values);
        Ok(())
    }
}

/// The number of a page among all of the fragment.
fn version_of((stripe, page): (usize, u32)) -> u64 {
    (stripe as u64) << 32 | u64::from(page)
}

/// `cells` cells that are all as the one of a column.
fn repeated(one: &Column, cells: usize) -> Result<Column> {
    let view = one.view();
    let (value, count) = (view.values(), cells);
    let too_many = || Error::budget(format!("{count} cells pass this machine's memory"));
    let mut values = AlignedBuf::try_zeroed(value.len().checked_mul(count).ok_or_else(too_many)?)?;
    if value.iter().any(|byte| *byte != 0) {
        values.as_mut_slice().chunks_exact_mut(value.len()).for_each(|cell| cell.copy_from_slice(value));
    }
    let validity = view.validity().map(|flags| try_vec(flags.first().copied().unwrap_or(0), count)).transpose()?;
    let offsets = match view.offsets() {
        None => None,
        Some(_) => {
            let mut ends = try_vec(0u64, count.saturating_add(1))?;
            ends.iter_mut().zip(0u64..).for_each(|(end, number)| *end = number * value.len() as u64);
            Some(ends)
        }
    };
    Column::new(view.datatype(), values, offsets, validity)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::Datatype;

    #[test]
    fn a_cell_is_repeated_whatever_its_type() {
        let text =
            Column::new(Datatype::String, AlignedBuf::from_slice(b"ab"), Some(vec![0, 2]), Some(vec![1])).unwrap();
        let three = repeated(&text, 3).unwrap();
        assert_eq!((three.view().values(), three.view().offsets()), (&b"ababab"[..], Some(&[0, 2, 4, 6][..])));
        assert_eq!(three.view().validity(), Some(&[1, 1, 1][..]));
        let number = Column::new(Datatype::UInt16, AlignedBuf::from_slice(&[7, 0]), None, None).unwrap();
        assert_eq!(repeated(&number, 2).unwrap().view().values(), [7, 0, 7, 0]);
        assert_eq!(repeated(&number, 0).unwrap().len(), 0);
    }
}
