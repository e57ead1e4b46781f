//! A data tile made ready to be written: the pure, parallel part of writing a fragment.

use super::root::{Field, Role};
use crate::base::{Result, crc32c};
use crate::codec::{self, Pipeline};
use crate::schema::{Filters, KeyRange, Subarray};
use crate::tile::{ColumnView, Statistics, encode_block};

/// The stored bytes of one field of one tile.
#[derive(Debug, Clone)]
pub struct EncodedPage {
    /// The pipeline that packed it.
    pub pipeline: String,
    /// Its blocks one after the other.
    pub bytes: Vec<u8>,
    /// Stored length and CRC32C of every block.
    pub blocks: Vec<(u32, u32)>,
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
        self.pages.iter().map(|p| p.bytes.len() + Self::PAGE_OVERHEAD_BYTES).sum()
    }
}

/// Encodes one tile. `columns` follow `fields`; `cuts` are the block boundaries in cells, from 0 to the tile's cells.
pub fn encode_tile(
    fields: &[Field],
    filters: &[Filters],
    columns: &[ColumnView<'_>],
    cuts: &[usize],
    shape: Option<SparseShape>,
) -> Result<EncodedTile> {
    let mut pages = Vec::with_capacity(fields.len());
    for ((field, filters), view) in fields.iter().zip(filters).zip(columns) {
        pages.push(encode_page(field, filters, *view, cuts)?);
    }
    let cells = cuts.last().copied().unwrap_or(0) as u64;
    Ok(EncodedTile { cells, blocks: (cuts.len().max(1) - 1) as u32, pages, shape })
}

fn encode_page(field: &Field, filters: &Filters, view: ColumnView<'_>, cuts: &[usize]) -> Result<EncodedPage> {
    let pipeline = match filters {
        Filters::Auto => choose(view, cuts),
        Filters::Named(name) => Pipeline::parse(name)?,
    };
    let mut bytes = Vec::new();
    let mut blocks = Vec::with_capacity(cuts.len());
    for cut in cuts.windows(2) {
        let [from, to] = *cut else { continue };
        let block = encode_block(view, from, to, field.nullable, &pipeline)?;
        blocks.push((block.len() as u32, crc32c(&block)));
        bytes.extend_from_slice(&block);
    }
    let statistics = matches!(field.role, Role::Attribute(_)).then(|| Statistics::of(view));
    Ok(EncodedPage { pipeline: pipeline.name(), bytes, blocks, statistics })
}

/// The pipeline for a tile, from a sample of its first, middle and last block.
fn choose(view: ColumnView<'_>, cuts: &[usize]) -> Pipeline {
    let last = cuts.len().saturating_sub(2);
    let mut picks = vec![0, last / 2, last];
    picks.dedup();
    let mut sample = Vec::new();
    for pick in picks {
        if let (Some(from), Some(to)) = (cuts.get(pick), cuts.get(pick + 1)) {
            let run = view.copy_range(*from, *to);
            sample.extend_from_slice(run.view().values());
        }
    }
    codec::choose(&sample, view.datatype().element())
}

/// The extent of a run of sparse cells whose coordinates are `keys`, a column per dimension, cut into blocks.
pub fn sparse_shape(keys: &[&[u64]], cuts: &[usize]) -> SparseShape {
    let cells = cuts.last().copied().unwrap_or(0);
    let at = |row: usize| keys.iter().map(|k| k.get(row).copied().unwrap_or(0)).collect::<Vec<u64>>();
    let mbr = |from: usize, to: usize| {
        let range = |column: &&[u64]| {
            let run = column.get(from..to).unwrap_or_default();
            let lo = run.iter().copied().min().unwrap_or(0);
            KeyRange::new(lo, run.iter().copied().max().unwrap_or(lo))
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
