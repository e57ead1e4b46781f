//! The chunks of a dataset, from whichever index it has.
//!
//! Fixed and extensible arrays number chunks in row-major order of the grid that the dataset may grow to. An
//! extensible array takes the axis without limit first.

use super::btree1::BTree1;
use super::btree2::BTree2;
use super::element::StoredChunk;
use super::reader::Reader;
use super::{extensible_array, fixed_array};
use crate::budget::Budget;
use crate::error::{Error, Result};
use crate::model::{ChunkEntry, ChunkIndex, ForeignDataset, Layout};

/// Types of the records of chunks without and with filters.
const PLAIN_CHUNKS: u8 = 10;
const FILTERED_CHUNKS: u8 = 11;

/// The chunks of a dataset: their grid, and what their bytes are.
#[derive(Debug)]
struct ChunkGrid {
    chunk: Vec<u64>,
    shape: Vec<u64>,
    /// Chunks along each axis.
    counts: Vec<u64>,
    /// Chunks along each axis as far as it may grow; 0 for one without limit.
    counts_max: Vec<u64>,
    /// Bytes of a chunk without filters.
    plain_bytes: u64,
    /// The mask that leaves all filters out.
    all_filters: u32,
    /// Whether chunks at the edges are stored without filters.
    plain_edges: bool,
}

/// What is called with each chunk.
type ChunkFn<'f> = &'f mut dyn FnMut(ChunkEntry) -> Result<()>;

/// Calls `f` with each chunk of `dataset` that was written.
pub(super) fn for_each_chunk(reader: &Reader, dataset: &ForeignDataset, f: ChunkFn<'_>) -> Result<()> {
    let Layout::Chunked { chunk, filters, index } = &dataset.layout else {
        return Err(Error::unsupported(format!("the dataset {:?} is not stored in chunks", dataset.name)));
    };
    let mut grid = ChunkGrid::new(dataset, chunk)?;
    grid.all_filters = 1u32.checked_shl(filters.len() as u32).map_or(u32::MAX, |bit| bit - 1);
    let budget = reader.budget();
    match *index {
        ChunkIndex::Empty => Ok(()),
        ChunkIndex::Listed => Err(Error::unsupported("the chunks of the dataset are listed beside its description")),
        ChunkIndex::Single { address, length, filter_mask } => {
            grid.emit(reader, vec![0; chunk.len()], StoredChunk { address, length, filter_mask }, f)
        }
        ChunkIndex::Implicit { address } => grid.implicit(reader, address, f),
        ChunkIndex::BTree1 { address } => grid.btree1(reader, &budget, address, f),
        ChunkIndex::BTree2 { address, plain_edges } => {
            grid.plain_edges = plain_edges;
            grid.btree2(reader, &budget, address, f)
        }
        ChunkIndex::FixedArray { address, plain_edges } => {
            grid.plain_edges = plain_edges;
            fixed_array::for_each_element(reader, &budget, address, &mut |number, found| {
                let place = grid.place(number, None)?;
                grid.emit(reader, place, found, f)
            })
        }
        ChunkIndex::ExtensibleArray { address, plain_edges } => {
            grid.plain_edges = plain_edges;
            let growing = dataset.max_shape.iter().position(Option::is_none);
            extensible_array::for_each_element(reader, &budget, address, &mut |number, found| {
                let place = grid.place(number, growing)?;
                grid.emit(reader, place, found, f)
            })
        }
    }
}

impl ChunkGrid {
    fn new(dataset: &ForeignDataset, chunk: &[u64]) -> Result<Self> {
        let rank = chunk.len();
        if chunk.contains(&0) || rank != dataset.shape.len() || rank != dataset.max_shape.len() {
            return Err(Error::damaged(format!(
                "chunks of shape {chunk:?} do not fit the dataset of shape {:?}",
                dataset.shape
            )));
        }
        let plain_bytes = chunk.iter().try_fold(u64::from(dataset.element_size), |n, &length| n.checked_mul(length));
        let plain_bytes = plain_bytes
            .ok_or_else(|| Error::damaged(format!("a chunk of shape {chunk:?} is larger than 2^64 bytes")))?;
        let counts = dataset.shape.iter().zip(chunk).map(|(&length, &chunk)| length.div_ceil(chunk)).collect();
        let growing = dataset.max_shape.iter().zip(chunk);
        let counts_max = growing.map(|(max, &chunk)| max.map_or(0, |max| max.div_ceil(chunk))).collect();
        Ok(Self {
            chunk: chunk.to_vec(),
            shape: dataset.shape.clone(),
            counts,
            counts_max,
            plain_bytes,
            all_filters: 0,
            plain_edges: false,
        })
    }

    /// The place of chunk `number`, if the axis `growing` counts slowest.
    fn place(&self, number: u64, growing: Option<usize>) -> Result<Vec<u64>> {
        let mut place = vec![0; self.chunk.len()];
        let mut left = number;
        let axes = (0..self.chunk.len()).rev().filter(|&axis| Some(axis) != growing);
        for axis in axes {
            let count = self.counts_max.get(axis).copied().filter(|&count| count > 0);
            let count = count.ok_or_else(|| Error::damaged("an array of chunks has an axis of unknown length"))?;
            if let Some(place) = place.get_mut(axis) {
                *place = left % count;
            }
            left /= count;
        }
        match growing.and_then(|axis| place.get_mut(axis)) {
            Some(place) => *place = left,
            None if left > 0 => return Err(Error::damaged(format!("chunk {number} lies outside the dataset"))),
            None => {}
        }
        Ok(place)
    }

    /// Gives a chunk to `f`, unless it lies outside the dataset's present shape.
    fn emit(&self, reader: &Reader, place: Vec<u64>, found: StoredChunk, f: ChunkFn<'_>) -> Result<()> {
        if place.iter().zip(&self.counts).any(|(place, count)| place >= count) {
            return Ok(());
        }
        let is_plain = self.plain_edges && self.is_at_edge(&place);
        let length = found.length.unwrap_or(self.plain_bytes);
        let offset = reader.offset_of(found.address, length, "chunk")?;
        let filter_mask = if is_plain { self.all_filters } else { found.filter_mask };
        f(ChunkEntry { place, offset, length, filter_mask })
    }

    fn is_at_edge(&self, place: &[u64]) -> bool {
        let mut axes = place.iter().zip(&self.chunk).zip(&self.shape);
        axes.any(|((&place, &chunk), &length)| place.saturating_add(1).saturating_mul(chunk) > length)
    }

    fn implicit(&self, reader: &Reader, address: u64, f: ChunkFn<'_>) -> Result<()> {
        if self.counts.contains(&0) {
            return Ok(());
        }
        let total = self.counts_max.iter().try_fold(1u64, |total, &count| total.checked_mul(count));
        let bytes = total.and_then(|total| total.checked_mul(self.plain_bytes));
        let (Some(total), Some(bytes)) = (total, bytes) else {
            return Err(Error::damaged("a dataset has more chunks than a file can hold"));
        };
        reader.offset_of(address, bytes, "run of chunks")?;
        for number in 0..total {
            let found = StoredChunk { address: address + number * self.plain_bytes, length: None, filter_mask: 0 };
            self.emit(reader, self.place(number, None)?, found, f)?;
        }
        Ok(())
    }

    fn btree1(&self, reader: &Reader, budget: &Budget, address: u64, f: ChunkFn<'_>) -> Result<()> {
        let tree = BTree1::Chunks { rank: self.chunk.len() };
        tree.for_each_leaf(reader, budget, address, &mut |key, address| {
            let mut cursor = reader.cursor(key, "key of a chunk");
            let (length, filter_mask) = (u64::from(cursor.u32()?), cursor.u32()?);
            let mut place = Vec::with_capacity(self.chunk.len());
            for &chunk in &self.chunk {
                let first = cursor.u64()?;
                if first % chunk != 0 {
                    return Err(Error::damaged(format!("a chunk begins at cell {first}, inside a chunk of {chunk}")));
                }
                place.push(first / chunk);
            }
            self.emit(reader, place, StoredChunk { address, length: Some(length), filter_mask }, f)
        })
    }

    fn btree2(&self, reader: &Reader, budget: &Budget, address: u64, f: ChunkFn<'_>) -> Result<()> {
        let tree = BTree2::read(reader, budget, address)?;
        let rank = self.chunk.len();
        let other = usize::from(reader.widths().offset) + 8 * rank;
        let spare = usize::from(tree.record_bytes).checked_sub(other);
        let length_bytes = match (tree.kind, spare) {
            (PLAIN_CHUNKS, Some(0)) => None,
            (FILTERED_CHUNKS, Some(spare)) if (5..=12).contains(&spare) => Some(spare - 4),
            _ => {
                return Err(Error::damaged(format!(
                    "an index of chunks of type {} has records of {} bytes",
                    tree.kind, tree.record_bytes
                )));
            }
        };
        tree.for_each_record(reader, budget, &mut |record| {
            let mut cursor = reader.cursor(record, "record of a chunk");
            let address = cursor.defined_address()?;
            let (length, filter_mask) = match length_bytes {
                Some(width) => (Some(cursor.uint(width)?), cursor.u32()?),
                None => (None, 0),
            };
            let place = (0..rank).map(|_| cursor.u64()).collect::<Result<Vec<_>>>()?;
            self.emit(reader, place, StoredChunk { address, length, filter_mask }, f)
        })
    }
}
