//! Dense fragments in another layout: a second kind of tile source, as a foreign file may be one.
//!
//! When a fragment is opened its cells are laid out anew in memory: in chunks whose grid begins before the fragment's
//! box, with axes in another order, and padded with other cells where they reach past the box. Chunks have nothing to
//! do with the array's space tiles. Reads through it must give what reads of the fragment give.

use gridstone::base::{ByteRange, ByteSource, Error, Id, MemorySource, Result};
use gridstone::codec::Pipeline;
use gridstone::fragment::{
    BlockRef, BlockSource, ChunkedBlock, DenseFragment, Description, Field, Fragment, Role, StoredBlock, StoredPart,
    TileSource, TileSources,
};
use gridstone::schema::{KeyRange, Schema, Subarray};
use gridstone::tile::{Column, Statistics, Strided, decode_block, encode_block};
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex};

/// Chunks of a fragment, about, at most.
const CHUNKS_MAX: u64 = 200;

/// Lays out anew every dense fragment that is opened, each once.
#[derive(Debug, Default)]
pub struct Relaying {
    laid: Mutex<HashMap<Id, Arc<Relaid>>>,
}

impl TileSources for Relaying {
    fn of(&self, fragment: Arc<Fragment>, schema: &Schema) -> Result<Arc<dyn TileSource>> {
        let id = fragment.description().id;
        if let Some(known) = self.laid.lock().unwrap().get(&id) {
            return Ok(known.clone());
        }
        let made = Arc::new(Relaid::new(&DenseFragment::new(fragment, schema)?)?);
        self.laid.lock().unwrap().insert(id, made.clone());
        Ok(made)
    }
}

/// A grid of chunks over a box.
#[derive(Debug)]
struct Chunks {
    bounds: Subarray,
    /// Where the grid begins, at or before the box.
    origin: Vec<u64>,
    sides: Vec<u64>,
    counts: Vec<u64>,
    /// The axes from the slowest to the fastest: of the cells in a chunk and of the chunks.
    axes: Vec<usize>,
}

impl Chunks {
    /// A grid that the bytes of `id` choose.
    fn new(bounds: &Subarray, id: Id) -> Self {
        let random = |place: usize| u64::from(id.0[place % 16]);
        let shape = bounds.shape();
        let most = if shape.len() == 1 { 60 } else { 7 };
        let mut sides: Vec<u64> = (0..shape.len()).map(|d| 1 + random(d) % most).collect();
        let counts = |sides: &[u64]| -> Vec<u64> { shape.iter().zip(sides).map(|(n, side)| n / side + 2).collect() };
        while counts(&sides).iter().product::<u64>() > CHUNKS_MAX {
            // The axis with the most chunks gets longer ones, so that little pads them.
            let most = counts(&sides).into_iter().enumerate().max_by_key(|(_, count)| *count);
            let Some((d, _)) = most.filter(|(_, count)| *count > 2) else { break };
            sides[d] = sides[d] * 2 + 1;
        }
        let before = |(d, (range, side)): (usize, (&KeyRange, &u64))| range.lo - (random(8 + d) % side).min(range.lo);
        let origin: Vec<u64> = bounds.ranges().iter().zip(&sides).enumerate().map(before).collect();
        let ends = bounds.ranges().iter().zip(&origin).zip(&sides);
        let counts = ends.map(|((range, origin), side)| (range.hi - origin) / side + 1).collect();
        let mut axes: Vec<usize> = (0..shape.len()).collect();
        (1..axes.len()).for_each(|d| axes.swap(d, random(4 + d) as usize % (d + 1)));
        Self { bounds: bounds.clone(), origin, sides, counts, axes }
    }

    fn len(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Cells of a chunk, those that pad it included.
    fn cells(&self) -> u64 {
        self.sides.iter().product()
    }

    /// Strides by dimension of a box of `shape` whose axes lie as those of the chunks.
    fn strides(&self, shape: &[u64]) -> Vec<u64> {
        let (mut strides, mut step) = (vec![1; shape.len()], 1);
        for axis in self.axes.iter().rev() {
            strides[*axis] = step;
            step *= shape[*axis];
        }
        strides
    }

    /// The number of the chunk that holds a cell, and the cell's place in it.
    fn place(&self, cell: &[u64]) -> (u64, u64) {
        let from: Vec<u64> = cell.iter().zip(&self.origin).map(|(key, origin)| key - origin).collect();
        let sum = |parts: &dyn Fn(u64, u64) -> u64, strides: &[u64]| -> u64 {
            from.iter().zip(&self.sides).zip(strides).map(|((at, side), stride)| parts(*at, *side) * stride).sum()
        };
        let chunk = sum(&|at, side| at / side, &self.strides(&self.counts));
        (chunk, sum(&|at, side| at % side, &self.strides(&self.sides)))
    }

    /// The low corner of a chunk.
    fn corner(&self, chunk: u64) -> Vec<u64> {
        let strides = self.strides(&self.counts);
        let axis = |d: usize| self.origin[d] + chunk / strides[d] % self.counts[d] * self.sides[d];
        (0..self.sides.len()).map(axis).collect()
    }

    /// The cells of a chunk that lie in the box.
    fn chunk_box(&self, chunk: u64) -> Option<Subarray> {
        if chunk >= self.len() {
            return None;
        }
        let ranges = self.corner(chunk).into_iter().zip(&self.sides);
        let whole = ranges.map(|(lo, side)| KeyRange::new(lo, lo.saturating_add(side - 1))).collect();
        Subarray::new(whole).intersect(&self.bounds)
    }

    /// The keys of all cells of a chunk, in the order that they are stored; `None` where the cell lies past the last key.
    fn keys(&self, chunk: u64) -> Vec<Option<Vec<u64>>> {
        let (corner, strides) = (self.corner(chunk), self.strides(&self.sides));
        let key = |place: u64, d: usize| corner[d].checked_add(place / strides[d] % self.sides[d]);
        (0..self.cells()).map(|place| (0..corner.len()).map(|d| key(place, d)).collect()).collect()
    }
}

/// A dense fragment laid out anew.
#[derive(Debug)]
pub(crate) struct Relaid {
    description: Arc<Description>,
    chunks: Chunks,
    fields: Vec<Field>,
    bytes: Arc<dyn ByteSource>,
    /// By field and chunk.
    ranges: Vec<Vec<ByteRange>>,
    statistics: Vec<Vec<Statistics>>,
}

impl Relaid {
    fn new(stored: &DenseFragment) -> Result<Self> {
        let description = stored.description().clone();
        let chunks = Chunks::new(&description.bounds, description.id);
        let fields = stored.fragment().root().fields.clone();
        let (mut bytes, mut ranges, mut statistics) = (Vec::new(), Vec::new(), Vec::new());
        for (number, field) in fields.iter().enumerate() {
            let (cells, rows) = all_cells(stored, number)?;
            let row_of = |key: &Vec<u64>| Some(rows[number_in(&description.bounds, key)?]);
            let (mut of_field, mut known) = (BTreeMap::new(), BTreeMap::new());
            for chunk in stored_order(chunks.len(), description.id) {
                let stray = |place: usize| (place * 7 + chunk as usize) % cells.len();
                let keys = chunks.keys(chunk);
                let row = |(place, key): (usize, &Option<Vec<u64>>)| {
                    key.as_ref().and_then(row_of).unwrap_or(stray(place) as u32)
                };
                let padded = cells.view().gather(&keys.iter().enumerate().map(row).collect::<Vec<u32>>());
                let inside: Vec<u32> = keys.iter().flatten().filter_map(row_of).collect();
                known.insert(chunk, Statistics::of(cells.view().gather(&inside).view()));
                let start = bytes.len() as u64;
                encode_block(padded.view(), 0, padded.len(), field.nullable, &Pipeline::none(), &mut bytes)?;
                of_field.insert(chunk, ByteRange::new(start, bytes.len() as u64 - start));
            }
            ranges.push(of_field.into_values().collect());
            statistics.push(known.into_values().collect());
        }
        let bytes = Arc::new(MemorySource(bytes.into()));
        Ok(Self { description, chunks, fields, bytes, ranges, statistics })
    }

    fn missing(&self) -> Error {
        Error::corruption(format!("fragment {}: a chunk that is not there", self.description.id))
    }
}

/// The chunks in the order that they are stored in: of every second fragment as they are numbered, of others mixed.
fn stored_order(count: u64, id: Id) -> Vec<u64> {
    let mut order: Vec<u64> = (0..count).collect();
    if id.0[15] % 2 == 1 {
        order.sort_by_key(|chunk| (chunk + u64::from(id.0[14])).wrapping_mul(0x9e37_79b9_7f4a_7c15) >> 32);
    }
    order
}

/// The number of a cell of a box, the last dimension going fastest; `None` if it lies outside.
fn number_in(bounds: &Subarray, cell: &[u64]) -> Option<usize> {
    let dims = bounds.ranges().iter().zip(cell);
    let number = |number: u64, (range, key): (&KeyRange, &u64)| {
        range.contains(*key).then(|| number * (range.hi - range.lo + 1) + (key - range.lo))
    };
    dims.into_iter().try_fold(0, number).map(|number| number as usize)
}

/// All cells of a field of a fragment, and the row of each by its number in the box.
fn all_cells(stored: &DenseFragment, field: usize) -> Result<(Column, Vec<u32>)> {
    let described = &stored.fragment().root().fields[field];
    let mut all = Column::empty(described.datatype, described.nullable);
    let bounds = &stored.description().bounds;
    let mut rows = vec![0; bounds.cells() as usize];
    for part in stored.parts(bounds)? {
        let block = stored.block(field, part.block)?;
        let column = stored.decode(&block, &stored.source().read_one(block.range)?)?;
        let shape = part.region.shape();
        let strides = &part.from.strides;
        for number in 0..part.region.cells() as u64 {
            // The last dimension goes fastest here, whatever the order in the block.
            let mut rest = number;
            let mut inner = vec![0; shape.len()];
            for d in (0..shape.len()).rev() {
                inner[d] = rest % shape[d];
                rest /= shape[d];
            }
            let place: u64 = part.from.start + inner.iter().zip(strides).map(|(at, stride)| at * stride).sum::<u64>();
            let cell: Vec<u64> = inner.iter().zip(part.region.ranges()).map(|(at, range)| range.lo + at).collect();
            if let Some(row) = number_in(bounds, &cell).and_then(|number| rows.get_mut(number)) {
                *row = all.len() as u32 + place as u32;
            }
        }
        all.append(column.view(), 0, column.len());
    }
    Ok((all, rows))
}

impl BlockSource for Relaid {
    fn description(&self) -> &Arc<Description> {
        &self.description
    }

    fn source(&self) -> &Arc<dyn ByteSource> {
        &self.bytes
    }

    fn field(&self, role: Role) -> Option<usize> {
        self.fields.iter().position(|field| field.role == role)
    }

    fn block(&self, field: usize, block: StoredBlock) -> Result<BlockRef> {
        let range = self.ranges.get(field).and_then(|chunks| chunks.get(block.tile as usize));
        let range = range.filter(|_| block.number == 0).ok_or_else(|| self.missing())?;
        Ok(BlockRef::of_source(*range, field, block.tile, block.cells))
    }

    fn chunked_block(&self, _: usize, _: StoredBlock) -> Result<Option<ChunkedBlock>> {
        Ok(None)
    }

    fn decode(&self, block: &BlockRef, bytes: &[u8]) -> Result<Column> {
        let field = self.fields.get(block.field()).ok_or_else(|| self.missing())?;
        decode_block(bytes, field.datatype, field.nullable, block.cells(), &Pipeline::none())
    }

    fn decode_into(&self, block: &BlockRef, bytes: &[u8], out: &mut [u8]) -> Result<()> {
        let column = self.decode(block, bytes)?;
        out.copy_from_slice(column.view().values());
        Ok(())
    }

    fn stripe_of(&self, tile: u64) -> Option<(usize, usize)> {
        (tile < self.chunks.len()).then_some((0, tile as usize))
    }

    fn statistics_of(&self, _: usize, attr: u32) -> Result<Option<Vec<Statistics>>> {
        Ok(self.field(Role::Attribute(attr)).and_then(|field| self.statistics.get(field).cloned()))
    }
}

impl TileSource for Relaid {
    fn block_cells(&self) -> u64 {
        self.chunks.cells()
    }

    fn tiles_in(&self, region: &Subarray) -> Box<dyn Iterator<Item = u64> + Send> {
        let touched = |chunk: &u64| self.chunks.chunk_box(*chunk).is_some_and(|cells| cells.intersects(region));
        Box::new((0..self.chunks.len()).filter(touched).collect::<Vec<u64>>().into_iter())
    }

    fn tile_box(&self, tile: u64) -> Option<Subarray> {
        self.chunks.chunk_box(tile)
    }

    fn block_box(&self, block: StoredBlock) -> Option<Subarray> {
        self.chunks.chunk_box(block.tile)
    }

    fn parts_in(&self, tile: u64, region: &Subarray) -> Result<Vec<StoredPart>> {
        let whole = self.chunks.chunk_box(tile).ok_or_else(|| self.missing())?;
        let Some(region) = whole.intersect(region) else { return Ok(Vec::new()) };
        let corner = self.chunks.corner(tile);
        let inner: Vec<u64> = region.ranges().iter().zip(&corner).map(|(range, lo)| range.lo - lo).collect();
        let from = Strided { start: 0, strides: self.chunks.strides(&self.chunks.sides) }.at(&inner);
        let block = StoredBlock { tile, number: 0, cells: self.chunks.cells() as usize };
        Ok(vec![StoredPart { block, region, from }])
    }

    fn locate(
        &self,
        coords: &[Vec<u64>],
        points: &mut [u32],
        cells: &mut Vec<u32>,
    ) -> Result<Vec<(StoredBlock, usize)>> {
        let place = |point: &u32| {
            let cell: Vec<u64> = coords.iter().map(|column| column[*point as usize]).collect();
            self.chunks.place(&cell)
        };
        points.sort_by_key(place);
        let mut found: Vec<(StoredBlock, usize)> = Vec::new();
        for (tile, cell) in points.iter().map(place) {
            match found.last_mut() {
                Some((block, count)) if block.tile == tile => *count += 1,
                _ => found.push((StoredBlock { tile, number: 0, cells: self.chunks.cells() as usize }, 1)),
            }
            cells.push(cell as u32);
        }
        Ok(found)
    }
}
