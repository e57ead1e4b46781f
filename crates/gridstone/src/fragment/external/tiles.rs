//! The tiles of an external fragment: one per chunk, which is one block.

use super::index::External;
use super::table::ForeignPage;
use crate::base::{ByteSource, Error, Result};
use crate::fragment::source::{BlockSource, StoredBlock, StoredPart, TileSource};
use crate::fragment::{BlockRef, ChunkedBlock, Description, Fragment, Role};
use crate::schema::Subarray;
use crate::tile::{Column, Statistics};
use std::sync::Arc;

/// An open fragment whose cells lie in files of another format.
#[derive(Debug)]
pub struct ExternalFragment {
    fragment: Arc<Fragment>,
    bytes: Arc<dyn ByteSource>,
}

impl ExternalFragment {
    /// The tiles of an external fragment.
    ///
    /// # Errors
    /// Corruption: it is none. Unsupported: it was opened without the files of its store.
    pub fn new(fragment: Arc<Fragment>) -> Result<Self> {
        let bytes = part_of(&fragment)?.bytes()?.clone();
        Ok(Self { fragment, bytes })
    }

    /// How many chunks were decoded through this handle of the fragment.
    pub fn pages_decoded(&self) -> u64 {
        part_of(&self.fragment).map_or(0, External::pages_decoded)
    }

    fn part(&self) -> Result<&External> {
        part_of(&self.fragment)
    }

    fn missing(&self) -> Error {
        Error::corruption(format!("fragment {}: a chunk that is not there", self.description().id))
    }

    /// The page of a field of a tile, by the stripe and the number in it.
    fn page(&self, field: usize, tile: u64) -> Result<((usize, u32), ForeignPage)> {
        let (stripe, local) = self.fragment.stripe_of(tile).ok_or_else(|| self.missing())?;
        let info = self.fragment.root().stripes.get(stripe).ok_or_else(|| self.missing())?;
        let read = || self.fragment.page_tables(stripe);
        let (number, page) = self.part()?.page(field, (stripe, local), read, info.tiles as usize)?;
        Ok(((stripe, number), page))
    }

    fn named(&self, error: Error, block: &BlockRef) -> Error {
        self.fragment.named(error, block.field(), block.tile())
    }

    fn decode_unnamed(&self, block: &BlockRef, stored: &[u8]) -> Result<Column> {
        let (key, page) = self.page(block.field(), block.tile())?;
        let part = self.part()?;
        part.column(block.field(), &page, &part.decode(&page, key, stored)?, (block.tile(), block.cells()))
    }

    fn decode_into_unnamed(&self, block: &BlockRef, stored: &[u8], out: &mut [u8]) -> Result<()> {
        let (key, page) = self.page(block.field(), block.tile())?;
        let part = self.part()?;
        part.column_into(block.field(), &page, &part.decode(&page, key, stored)?, (block.tile(), out))
    }

    fn whole_block(&self, tile: u64) -> Option<StoredBlock> {
        let cells = self.part().ok()?.grid().stored_cells(tile)?;
        Some(StoredBlock { tile, number: 0, cells: cells as usize })
    }
}

fn part_of(fragment: &Fragment) -> Result<&External> {
    let id = fragment.description().id;
    fragment.external().ok_or_else(|| Error::corruption(format!("fragment {id} is not external")))
}

impl BlockSource for ExternalFragment {
    fn description(&self) -> &Arc<Description> {
        self.fragment.description()
    }

    fn source(&self) -> &Arc<dyn ByteSource> {
        &self.bytes
    }

    fn field(&self, role: Role) -> Option<usize> {
        self.fragment.field(role)
    }

    fn block(&self, field: usize, block: StoredBlock) -> Result<BlockRef> {
        if block.number != 0 {
            return Err(self.missing());
        }
        let (_, page) = self.page(field, block.tile).map_err(|e| self.fragment.named(e, field, block.tile))?;
        let range = self.part()?.bytes()?.range_of(&page, self.fragment.at_start())?;
        Ok(BlockRef::of_source(range, field, block.tile, block.cells))
    }

    fn chunked_block(&self, _: usize, _: StoredBlock) -> Result<Option<ChunkedBlock>> {
        Ok(None)
    }

    fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        self.decode_unnamed(block, bytes).map_err(|e| self.named(e, block))
    }

    fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        self.decode_into_unnamed(block, bytes, out).map_err(|e| self.named(e, block))
    }

    fn stripe_of(&self, tile: u64) -> Option<(usize, usize)> {
        self.fragment.stripe_of(tile)
    }

    fn statistics_of(&self, _: usize, _: u32) -> Result<Option<Vec<Statistics>>> {
        Ok(None)
    }
}

impl TileSource for ExternalFragment {
    fn block_cells(&self) -> u64 {
        self.part().map_or(1, |part| part.grid().chunk_cells())
    }

    fn tiles_in(&self, region: &Subarray) -> Box<dyn Iterator<Item = u64> + Send> {
        match self.part() {
            Ok(part) => Box::new(part.grid().touched_by(region)),
            Err(_) => Box::new(std::iter::empty()),
        }
    }

    fn tile_box(&self, tile: u64) -> Option<Subarray> {
        self.part().ok()?.grid().chunk_box(tile)
    }

    fn block_box(&self, block: StoredBlock) -> Option<Subarray> {
        if block.number == 0 { self.tile_box(block.tile) } else { None }
    }

    fn parts_in(&self, tile: u64, region: &Subarray) -> Result<Vec<StoredPart>> {
        let inside = self.tile_box(tile).ok_or_else(|| self.missing())?;
        let Some(region) = inside.intersect(region) else { return Ok(Vec::new()) };
        let from = self.part()?.grid().places_of(tile, &region).ok_or_else(|| self.missing())?;
        let block = self.whole_block(tile).ok_or_else(|| self.missing())?;
        Ok(vec![StoredPart { block, region, from }])
    }

    fn locate(
        &self,
        coords: &[Vec<u64>],
        points: &mut [u32],
        cells: &mut Vec<u32>,
    ) -> Result<Vec<(StoredBlock, usize)>> {
        let grid = self.part()?.grid();
        let place = |point: &u32| {
            let cell: Option<Vec<u64>> = coords.iter().map(|column| column.get(*point as usize).copied()).collect();
            cell.and_then(|cell| grid.place_of_cell(&cell)).map(|place| (place, *point))
        };
        let mut placed: Vec<((u64, u64), u32)> =
            points.iter().map(place).collect::<Option<_>>().ok_or_else(|| self.missing())?;
        placed.sort_unstable();
        let mut found: Vec<(StoredBlock, usize)> = Vec::new();
        for (slot, ((tile, cell), point)) in points.iter_mut().zip(placed) {
            *slot = point;
            match found.last_mut() {
                Some((block, count)) if block.tile == tile => *count += 1,
                _ => found.push((self.whole_block(tile).ok_or_else(|| self.missing())?, 1)),
            }
            cells.push(u32::try_from(cell).map_err(|_| self.missing())?);
        }
        Ok(found)
    }
}
