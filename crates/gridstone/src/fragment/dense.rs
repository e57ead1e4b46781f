//! The tiles and blocks of a dense fragment: one tile per space tile of the array that its box touches, cut to the box.

use super::chunk::ChunkedBlock;
use super::source::{BlockSource, StoredBlock, StoredPart, TileSource, TileSources};
use super::{BlockRef, Description, ExternalFragment, Fragment, Role};
use crate::base::{ByteSource, Error, Result};
use crate::schema::{Schema, Subarray};
use crate::tile::{BlockGrid, Column, RelativeBox, Statistics, Strided, TileGrid, offsets_in};
use std::sync::Arc;

/// An open dense fragment and its grid.
#[derive(Debug)]
pub struct DenseFragment {
    fragment: Arc<Fragment>,
    grid: TileGrid,
}

/// The tiles of a fragment as it stores them.
#[derive(Debug, Clone, Copy, Default)]
pub struct AsStored;

impl TileSources for AsStored {
    fn of(&self, fragment: Arc<Fragment>, schema: &Schema) -> Result<Arc<dyn TileSource>> {
        if fragment.external().is_some() {
            return Ok(Arc::new(ExternalFragment::new(fragment)?));
        }
        Ok(Arc::new(DenseFragment::new(fragment, schema)?))
    }
}

impl DenseFragment {
    /// A fragment of an array with this schema.
    ///
    /// # Errors
    /// Bounds: its box touches 2^63 space tiles or more.
    pub fn new(fragment: Arc<Fragment>, schema: &Schema) -> Result<Self> {
        let grid = TileGrid::new(schema, &fragment.root().bounds)?;
        Ok(Self { fragment, grid })
    }

    /// The fragment.
    pub fn fragment(&self) -> &Arc<Fragment> {
        &self.fragment
    }

    /// The tile whose cells are those of `region`, if one is.
    pub fn tile_of(&self, region: &Subarray) -> Option<u64> {
        self.grid.holding(region).filter(|(_, tile)| tile == region).map(|(number, _)| number)
    }

    /// All blocks of a tile. A Corruption error if its index does not fit its grid.
    pub fn blocks(&self, tile: u64) -> Result<Vec<StoredBlock>> {
        let tile_box = self.grid.tile_box(tile).ok_or_else(|| self.wrong())?;
        let blocks = self.checked_grid(tile, &tile_box)?;
        let block = |number: u64| StoredBlock { tile, number: number as usize, cells: blocks.cells(number) as usize };
        Ok((0..blocks.len()).map(block).collect())
    }

    fn wrong(&self) -> Error {
        Error::corruption(format!("fragment {}: its tiles do not fit its box", self.fragment.description().id))
    }

    /// The blocks of a tile that has these cells.
    fn grid_of(&self, tile_box: &Subarray) -> BlockGrid {
        let root = self.fragment.root();
        BlockGrid::new(&tile_box.shape(), root.cell_order, u64::from(root.block_cells))
    }

    /// The same, compared with the number of blocks that the index has.
    fn checked_grid(&self, tile: u64, tile_box: &Subarray) -> Result<BlockGrid> {
        let blocks = self.grid_of(tile_box);
        if blocks.len() == self.fragment.tile_blocks(tile)? as u64 { Ok(blocks) } else { Err(self.wrong()) }
    }

    /// The blocks of a tile that hold cells of `region`, which lies in it.
    fn parts_of_tile(&self, tile: u64, tile_box: &Subarray, region: &Subarray) -> Result<Vec<StoredPart>> {
        let blocks = self.checked_grid(tile, tile_box)?;
        let order = self.fragment.root().cell_order;
        let wanted = RelativeBox { origin: offsets_in(region, tile_box), shape: region.shape() };
        let part = |number: u64| {
            let block_box = blocks.block_box(number);
            let common = block_box.intersect(&wanted)?;
            let inner: Vec<u64> = common.origin.iter().zip(&block_box.origin).map(|(a, b)| a - b).collect();
            Some(StoredPart {
                block: StoredBlock { tile, number: number as usize, cells: block_box.cells() as usize },
                region: common.within(tile_box),
                from: Strided::packed(&block_box.shape, order).at(&inner),
            })
        };
        Ok(blocks.touched_by(&wanted).into_iter().filter_map(part).collect())
    }
}

impl BlockSource for DenseFragment {
    fn description(&self) -> &Arc<Description> {
        self.fragment.description()
    }

    fn source(&self) -> &Arc<dyn ByteSource> {
        self.fragment.source()
    }

    fn field(&self, role: Role) -> Option<usize> {
        self.fragment.field(role)
    }

    fn block(&self, field: usize, block: StoredBlock) -> Result<BlockRef> {
        self.fragment.block(field, block.tile, block.number, block.cells)
    }

    fn chunked_block(&self, field: usize, block: StoredBlock) -> Result<Option<ChunkedBlock>> {
        self.fragment.chunked_block(field, block.tile, block.number, block.cells)
    }

    fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        self.fragment.decode(block, bytes)
    }

    fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        self.fragment.decode_into(block, bytes, out)
    }

    fn stripe_of(&self, tile: u64) -> Option<(usize, usize)> {
        self.fragment.stripe_of(tile)
    }

    fn statistics_of(&self, stripe: usize, attr: u32) -> Result<Option<Vec<Statistics>>> {
        self.fragment.statistics_of(stripe, attr)
    }
}

impl TileSource for DenseFragment {
    fn block_cells(&self) -> u64 {
        u64::from(self.fragment.root().block_cells)
    }

    fn tiles_in(&self, region: &Subarray) -> Box<dyn Iterator<Item = u64> + Send> {
        Box::new(self.grid.touched_by(region))
    }

    fn tile_box(&self, tile: u64) -> Option<Subarray> {
        self.grid.tile_box(tile)
    }

    fn block_box(&self, block: StoredBlock) -> Option<Subarray> {
        let tile_box = self.grid.tile_box(block.tile)?;
        let blocks = self.grid_of(&tile_box);
        let number = block.number as u64;
        (number < blocks.len()).then(|| blocks.block_box(number).within(&tile_box))
    }

    fn parts_in(&self, tile: u64, region: &Subarray) -> Result<Vec<StoredPart>> {
        let tile_box = self.grid.tile_box(tile).ok_or_else(|| self.wrong())?;
        match region.intersect(&tile_box) {
            Some(part) => self.parts_of_tile(tile, &tile_box, &part),
            None => Ok(Vec::new()),
        }
    }

    fn parts(&self, region: &Subarray) -> Result<Vec<StoredPart>> {
        if let Some((tile, tile_box)) = self.grid.holding(region) {
            return self.parts_of_tile(tile, &tile_box, region);
        }
        let parts: Result<Vec<_>> = self.grid.touched_by(region).map(|tile| self.parts_in(tile, region)).collect();
        Ok(parts?.into_iter().flatten().collect())
    }

    /// The points lie in one tile here, so their places ascend: the blocks follow one another.
    fn locate(
        &self,
        coords: &[Vec<u64>],
        points: &mut [u32],
        cells: &mut Vec<u32>,
    ) -> Result<Vec<(StoredBlock, usize)>> {
        let Some(first) = points.first() else { return Ok(Vec::new()) };
        let cell: Option<Vec<u64>> = coords.iter().map(|column| column.get(*first as usize).copied()).collect();
        let (tile, tile_box) = cell.and_then(|cell| self.grid.holding_cell(&cell)).ok_or_else(|| self.wrong())?;
        let blocks = self.checked_grid(tile, &tile_box)?;
        let strides = self.fragment.root().cell_order.strides(&tile_box.shape());
        let axes: Vec<(&[u64], u64, u64)> = coords
            .iter()
            .zip(tile_box.ranges())
            .zip(strides)
            .map(|((column, range), stride)| (column.as_slice(), range.lo, stride))
            .collect();
        let mut found: Vec<(StoredBlock, usize)> = Vec::new();
        let (mut start, mut end) = (0, 0);
        for point in &*points {
            let offset = |(column, lo, stride): &(&[u64], u64, u64)| {
                column.get(*point as usize).map_or(0, |key| (key - lo) * stride)
            };
            let place: u64 = axes.iter().map(offset).sum();
            if place >= end {
                let number;
                (number, start, end) = blocks.block_at(place);
                found.push((StoredBlock { tile, number: number as usize, cells: (end - start) as usize }, 0));
            }
            cells.push((place - start) as u32);
            if let Some((_, count)) = found.last_mut() {
                *count += 1;
            }
        }
        Ok(found)
    }
}
