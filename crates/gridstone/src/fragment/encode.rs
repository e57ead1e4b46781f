//! A data tile made ready to be written: the pure, parallel part of writing a fragment.

use super::format::{CHUNK_BYTES, LARGE_PAGE_BYTES};
use super::root::{Field, Role};
use super::sample::{middle, sampled};
use crate::base::{AlignedBuf, Result, crc32c, wide};
use crate::codec::{self, Effort, Pipeline, Rounding};
use crate::schema::{Filters, KeyRange, Subarray};
use crate::tile::{Column, ColumnView, Statistics, encode_block};

/// The bytes of a page.
#[derive(Debug, Clone)]
pub enum PageBytes {
    /// Packed by a pipeline.
    Packed(Vec<u8>),
    /// The values as they were.
    Plain(AlignedBuf),
}

impl PageBytes {
    /// The bytes.
    pub fn as_slice(&self) -> &[u8] {
        match self {
            Self::Packed(bytes) => bytes,
            Self::Plain(bytes) => bytes,
        }
    }
}

/// A column to be encoded.
#[derive(Debug)]
pub enum Cells<'a> {
    /// Lent: its values are copied.
    Lent(ColumnView<'a>),
    /// Given: values that are stored as they are become the page.
    Given(Column),
}

impl Cells<'_> {
    fn owned(self) -> Column {
        match self {
            Self::Lent(view) => view.copy_range(0, view.len()),
            Self::Given(column) => column,
        }
    }

    fn view(&self) -> ColumnView<'_> {
        match self {
            Self::Lent(view) => *view,
            Self::Given(column) => column.view(),
        }
    }
}

/// The stored bytes of one field of one tile.
#[derive(Debug, Clone)]
pub struct EncodedPage {
    /// The pipeline that packed it.
    pub pipeline: String,
    /// Its blocks one after the other.
    pub bytes: PageBytes,
    /// Stored length and CRC32C of every block; the checksum is 0 in a large raw page.
    pub blocks: Vec<(u32, u32)>,
    /// CRC32C of every chunk of a large raw page.
    pub chunks: Vec<u32>,
    /// Statistics, of attributes only.
    pub statistics: Option<Statistics>,
}

/// The extent of a sparse tile and of its blocks.
#[derive(Debug, Clone)]
pub struct SparseShape {
    /// The MBR of its cells.
    pub mbr: Subarray,
    /// The first and last cell's keys.
    pub ends: (Vec<u64>, Vec<u64>),
    /// The MBR of each block's cells.
    pub block_mbrs: Vec<Subarray>,
    /// The first cell's keys of each block.
    pub block_firsts: Vec<Vec<u64>>,
}

/// A data tile made ready to be written.
#[derive(Debug, Clone)]
pub struct EncodedTile {
    /// Cells in it.
    pub cells: u64,
    /// Blocks per field.
    pub blocks: u32,
    /// A page per field, in the fragment's field order.
    pub pages: Vec<EncodedPage>,
    /// Where its cells lie, for sparse tiles.
    pub shape: Option<SparseShape>,
}

impl EncodedTile {
    /// What a page takes in memory besides its stored bytes, about: name, tables, statistics.
    pub const PAGE_OVERHEAD_BYTES: usize = 512;

    /// Bytes of memory it takes, about.
    pub fn size_bytes(&self) -> usize {
        self.pages.iter().map(|p| p.bytes.as_slice().len() + Self::PAGE_OVERHEAD_BYTES).sum()
    }
}

/// How the fields of a tile are packed.
#[derive(Debug, Clone)]
pub struct Packing {
    /// The filters of each field.
    pub filters: Vec<Filters>,
    /// How the values of each field are rounded before anything else, if they are.
    pub rounding: Vec<Option<Rounding>>,
    /// How long `auto` may look for the best.
    pub effort: Effort,
}

impl Packing {
    /// This, with `auto` settled by a sample of the cells: a column per field, cut into blocks at `cuts`.
    #[must_use]
    pub fn settled(&self, sample: &[Column], cuts: &[usize]) -> Self {
        let settle = |((filters, rounding), column): ((&Filters, &Option<Rounding>), &Column)| match filters {
            Filters::Auto => Filters::Named(match rounding {
                Some(rounding) => choose(column.clone().rounded(*rounding).view(), cuts, self.effort).name(),
                None => choose(column.view(), cuts, self.effort).name(),
            }),
            Filters::Named(name) => Filters::Named(name.clone()),
        };
        let filters = self.filters.iter().zip(&self.rounding).zip(sample).map(settle).collect();
        Self { filters, rounding: self.rounding.clone(), effort: self.effort }
    }

    /// This for cells that were written before: these are what they are, whatever is done to new ones.
    #[must_use]
    pub fn exact(mut self) -> Self {
        self.rounding.fill(None);
        self
    }
}

/// Encodes one tile. `columns` follow `fields`; `cuts` are the block boundaries in cells, from 0 to the tile's cells.
pub fn encode_tile(
    fields: &[Field],
    packing: &Packing,
    columns: Vec<Cells<'_>>,
    cuts: &[usize],
    shape: Option<SparseShape>,
) -> Result<EncodedTile> {
    let mut pages = Vec::with_capacity(fields.len());
    let packed = packing.filters.iter().zip(&packing.rounding);
    for ((field, (filters, rounding)), cells) in fields.iter().zip(packed).zip(columns) {
        let cells = match rounding {
            Some(rounding) => Cells::Given(cells.owned().rounded(*rounding)),
            None => cells,
        };
        pages.push(encode_page(field, (filters, packing.effort), cells, cuts)?);
    }
    let cells = cuts.last().copied().unwrap_or(0) as u64;
    Ok(EncodedTile { cells, blocks: (cuts.len().max(1) - 1) as u32, pages, shape })
}

fn encode_page(
    field: &Field,
    (filters, effort): (&Filters, Effort),
    cells: Cells<'_>,
    cuts: &[usize],
) -> Result<EncodedPage> {
    let view = cells.view();
    let pipeline = match filters {
        Filters::Auto => choose(view, cuts, effort),
        Filters::Named(name) => Pipeline::parse(name)?,
    };
    let statistics = matches!(field.role, Role::Attribute(_)).then(|| Statistics::of(view));
    let plain = pipeline.is_none() && !field.nullable && !field.datatype.is_var();
    let (bytes, mut blocks) = match cells {
        Cells::Given(column) if plain => {
            let width = field.datatype.width().unwrap_or(1);
            let blocks = cuts.windows(2).map(|cut| if let [a, b] = cut { (b - a) * width } else { 0 }).collect();
            (PageBytes::Plain(column.into_parts().0), blocks)
        }
        cells => {
            let (bytes, blocks) = encode_blocks(field, cells.view(), cuts, &pipeline)?;
            (PageBytes::Packed(bytes), blocks)
        }
    };
    let stored = bytes.as_slice();
    let large = pipeline.is_none() && stored.len() as u64 >= LARGE_PAGE_BYTES;
    let chunks = if large { stored.chunks(CHUNK_BYTES as usize).map(crc32c).collect() } else { Vec::new() };
    let mut rest = stored;
    let mut checked = |len: usize| {
        let (block, later) = rest.split_at(len.min(rest.len()));
        rest = later;
        (len as u32, if large { 0 } else { crc32c(block) })
    };
    let blocks = blocks.drain(..).map(&mut checked).collect();
    Ok(EncodedPage { pipeline: pipeline.name(), bytes, blocks, chunks, statistics })
}

/// The blocks of a page one after the other, and their lengths.
fn encode_blocks(
    field: &Field,
    view: ColumnView<'_>,
    cuts: &[usize],
    pipeline: &Pipeline,
) -> Result<(Vec<u8>, Vec<usize>)> {
    let mut bytes = Vec::new();
    let mut blocks = Vec::with_capacity(cuts.len());
    for cut in cuts.windows(2) {
        let [from, to] = *cut else { continue };
        let start = bytes.len();
        encode_block(view, from, to, field.nullable, pipeline, &mut bytes)?;
        blocks.push(bytes.len() - start);
    }
    Ok((bytes, blocks))
}

/// The pipeline for a tile, from a sample of its blocks.
fn choose(view: ColumnView<'_>, cuts: &[usize], effort: Effort) -> Pipeline {
    let spans = if effort == Effort::Quick { middle(cuts).into_iter().collect() } else { sampled(cuts) };
    let blocks: Vec<Column> = spans.into_iter().map(|(from, to)| view.copy_range(from, to)).collect();
    let blocks: Vec<&[u8]> = blocks.iter().map(|block| block.view().values()).collect();
    codec::choose(&blocks, view.datatype().element(), effort)
}

wide! {
    /// The least and the greatest of some keys; of none, an empty range.
    fn extremes(keys: &[u64]) -> (u64, u64) { extremes_any }
}

#[inline(always)]
fn extremes_any(keys: &[u64]) -> (u64, u64) {
    keys.iter().fold((u64::MAX, 0), |(lo, hi), key| (lo.min(*key), hi.max(*key)))
}

/// The extent of a run of sparse cells whose coordinates are `keys`, a column per dimension, cut into blocks.
pub fn sparse_shape(keys: &[&[u64]], cuts: &[usize]) -> SparseShape {
    let cells = cuts.last().copied().unwrap_or(0);
    let at = |row: usize| keys.iter().map(|k| k.get(row).copied().unwrap_or(0)).collect::<Vec<u64>>();
    let mbr = |from: usize, to: usize| {
        let range = |column: &&[u64]| {
            let (lo, hi) = extremes(column.get(from..to).unwrap_or_default());
            if lo <= hi { KeyRange::new(lo, hi) } else { KeyRange::new(0, 0) }
        };
        Subarray::new(keys.iter().map(range).collect())
    };
    let blocks = || cuts.windows(2).filter_map(|w| if let [a, b] = *w { Some((a, b)) } else { None });
    SparseShape {
        mbr: mbr(0, cells),
        ends: (at(0), at(cells.saturating_sub(1))),
        block_mbrs: blocks().map(|(a, b)| mbr(a, b)).collect(),
        block_firsts: blocks().map(|(a, _)| at(a)).collect(),
    }
}
