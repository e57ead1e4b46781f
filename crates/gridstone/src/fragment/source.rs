//! The seam between queries and what stores cells: blocks of any source, and the tiles of dense ones.
//!
//! A source owns its grid: where its tiles begin, how they are cut into blocks, and how the cells of a block lie when
//! it is decoded. Queries give regions in the array's keys and get parts of blocks. So a source may have an origin of
//! its own, axes in another order, or blocks that are padded at the edges of its box.

use super::chunk::ChunkedBlock;
use super::{BlockRef, Description, Fragment, Role};
use crate::base::{ByteSource, Result};
use crate::schema::{Schema, Subarray};
use crate::tile::{Column, Statistics, Strided};
use std::fmt::Debug;
use std::sync::Arc;

/// A run of stored cells that is decoded as one. All fields of a source have the same blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct StoredBlock {
    /// The number of its tile in the source.
    pub tile: u64,
    /// Its number in the tile.
    pub number: usize,
    /// How many cells it stores, those that pad it included.
    pub cells: usize,
}

/// A block, and those of its cells that lie in a region.
#[derive(Debug, Clone)]
pub struct StoredPart {
    /// The block.
    pub block: StoredBlock,
    /// The cells, in the array's keys.
    pub region: Subarray,
    /// Where they lie in the decoded block.
    pub from: Strided,
}

/// Stored blocks of cells: where their bytes lie, and how they are decoded.
pub trait BlockSource: Debug + Send + Sync {
    /// What the store knows of it.
    fn description(&self) -> &Arc<Description>;

    /// Where its blocks are fetched from; [`BlockRef::range`] counts in it.
    fn source(&self) -> &Arc<dyn ByteSource>;

    /// The place of the field with this role; `None` if it stores none.
    fn field(&self, role: Role) -> Option<usize>;

    /// Where a block of a field lies, ready to be fetched.
    fn block(&self, field: usize, block: StoredBlock) -> Result<BlockRef>;

    /// The block if its cells can be read one by one; else `None`, and [`BlockSource::block`] gives the whole.
    fn chunked_block(&self, field: usize, block: StoredBlock) -> Result<Option<ChunkedBlock>>;

    /// Checks and decodes the bytes fetched for `block`. A Corruption error names fragment, tile and attribute.
    fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column>;

    /// As [`BlockSource::decode`], of a field of fixed width without nulls, into `out`, which is as long as the block's cells.
    fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()>;

    /// The stripe of a tile, whose statistics are read together, and its number there; `None` if there is no such tile.
    fn stripe_of(&self, tile: u64) -> Option<(usize, usize)>;

    /// The statistics of one attribute in each tile of a stripe; `None` if nothing is known of it.
    fn statistics_of(&self, stripe: usize, attr: u32) -> Result<Option<Vec<Statistics>>>;
}

/// Blocks that hold every cell of a box, its description's `bounds`.
pub trait TileSource: BlockSource {
    /// Cells of its largest blocks, about: reads are cut so that few blocks are decoded twice.
    fn block_cells(&self) -> u64;

    /// The numbers, ascending, of its tiles that have a cell in `region`.
    fn tiles_in(&self, region: &Subarray) -> Box<dyn Iterator<Item = u64> + Send>;

    /// The cells of a tile that lie in the source's box; `None` if there is no such tile.
    fn tile_box(&self, tile: u64) -> Option<Subarray>;

    /// The cells of a block that lie in the source's box; `None` if there is no such block.
    fn block_box(&self, block: StoredBlock) -> Option<Subarray>;

    /// The blocks of one tile that have a cell in `region`, in the order that they are stored. A Corruption error if the
    /// tile's index does not fit its grid.
    fn parts_in(&self, tile: u64, region: &Subarray) -> Result<Vec<StoredPart>>;

    /// The blocks that have a cell in `region`, tile by tile. Each of its cells in the source's box is in one of them.
    fn parts(&self, region: &Subarray) -> Result<Vec<StoredPart>> {
        let mut found = Vec::new();
        for tile in self.tiles_in(region) {
            found.extend(self.parts_in(tile, region)?);
        }
        Ok(found)
    }

    /// Finds single cells: `points` are rows of `coords`, a column of keys per dimension. They lie in the source's box and
    /// in one space tile of the array, in its cell order. Gives the blocks that hold them, with the number of points in
    /// each. `points` is put into the order of the blocks, and `cells` gets the place of each in its block, ascending.
    fn locate(
        &self,
        coords: &[Vec<u64>],
        points: &mut [u32],
        cells: &mut Vec<u32>,
    ) -> Result<Vec<(StoredBlock, usize)>>;
}

/// Gives the tiles of dense fragments.
pub trait TileSources: Debug + Send + Sync {
    /// The tiles of a dense fragment of an array with this schema.
    fn of(&self, fragment: Arc<Fragment>, schema: &Schema) -> Result<Arc<dyn TileSource>>;
}

impl BlockSource for Fragment {
    fn description(&self) -> &Arc<Description> {
        self.description()
    }

    fn source(&self) -> &Arc<dyn ByteSource> {
        self.source()
    }

    fn field(&self, role: Role) -> Option<usize> {
        self.field(role)
    }

    fn block(&self, field: usize, block: StoredBlock) -> Result<BlockRef> {
        self.block(field, block.tile, block.number, block.cells)
    }

    fn chunked_block(&self, field: usize, block: StoredBlock) -> Result<Option<ChunkedBlock>> {
        self.chunked_block(field, block.tile, block.number, block.cells)
    }

    fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        self.decode(block, bytes)
    }

    fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_into(block, bytes, out)
    }

    fn stripe_of(&self, tile: u64) -> Option<(usize, usize)> {
        self.stripe_of(tile)
    }

    fn statistics_of(&self, stripe: usize, attr: u32) -> Result<Option<Vec<Statistics>>> {
        self.statistics_of(stripe, attr)
    }
}
