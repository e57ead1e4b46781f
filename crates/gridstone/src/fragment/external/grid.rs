//! The grid of an external fragment: chunks of another format, with an origin, an order of axes and edges of their own.
//!
//! ```text
//! section 13, per dimension: u64 origin | u64 extent | u32 rank | u32 edges (0 clipped, 1 padded)
//! ```

use crate::base::{ByteReader, ByteWriter, Error, Result, limits};
use crate::schema::{KeyRange, Subarray};
use crate::tile::Strided;

/// Chunks of equal sides over a box. Each is one tile and one block; tiles are numbered in row order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChunkGrid {
    bounds: Subarray,
    /// The key of the low edge of the first chunk along each dimension, at or below the box's.
    origin: Vec<u64>,
    /// Cells of a chunk along each dimension.
    sides: Vec<u64>,
    /// The place of each dimension in the order of a chunk's cells, 0 the slowest.
    ranks: Vec<u32>,
    /// Whether a chunk that reaches past the box is stored whole; otherwise it has only the cells in the box.
    padded: bool,
    /// Chunks along each dimension.
    counts: Vec<u64>,
}

impl ChunkGrid {
    /// The grid of chunks of `sides` cells whose first begins at `origin`, over a box.
    ///
    /// # Errors
    /// Input: the parts do not fit each other. Unsupported: more dimensions than an array may have, or chunks of more cells than a block may
    /// hold bytes, or 2^48 chunks or more.
    pub fn new(bounds: Subarray, origin: Vec<u64>, sides: Vec<u64>, ranks: Vec<u32>, padded: bool) -> Result<Self> {
        let ndim = bounds.ndim();
        if ndim > limits::DIMENSIONS_MAX {
            return Err(Error::unsupported(format!(
                "it has {ndim} dimensions; an array has at most {}",
                limits::DIMENSIONS_MAX
            )));
        }
        let mut sorted = ranks.clone();
        sorted.sort_unstable();
        let in_place = sorted.iter().copied().eq(0..ndim as u32);
        let begins = bounds.ranges().iter().zip(&origin).all(|(range, origin)| *origin <= range.lo);
        if ndim == 0 || origin.len() != ndim || sides.len() != ndim || !in_place || !begins || sides.contains(&0) {
            return Err(Error::input("a grid of chunks whose parts do not fit its box"));
        }
        let cells = sides.iter().try_fold(1u64, |n, side| n.checked_mul(*side));
        if cells.is_none_or(|cells| cells > limits::BLOCK_BYTES_MAX as u64) {
            return Err(Error::unsupported(format!("chunks of {sides:?} cells pass the limit of 1 GiB for a chunk")));
        }
        let along = bounds.ranges().iter().zip(&origin).zip(&sides);
        let counts: Vec<u64> = along.map(|((range, origin), side)| (range.hi - origin) / side + 1).collect();
        if counts.iter().try_fold(1u64, |n, count| n.checked_mul(*count)).is_none_or(|n| n >= 1 << 48) {
            return Err(Error::unsupported("a grid of 2^48 chunks or more"));
        }
        Ok(Self { bounds, origin, sides, ranks, padded, counts })
    }

    /// The box.
    pub fn bounds(&self) -> &Subarray {
        &self.bounds
    }

    /// How many chunks there are.
    pub fn len(&self) -> u64 {
        self.counts.iter().product()
    }

    /// Whether there is no chunk; there always is one.
    pub fn is_empty(&self) -> bool {
        false
    }

    /// Chunks along each dimension.
    pub fn counts(&self) -> &[u64] {
        &self.counts
    }

    /// Cells of a whole chunk.
    pub fn chunk_cells(&self) -> u64 {
        self.sides.iter().product()
    }

    /// The same grid elsewhere: each key of its box and its origin lies `by` further.
    #[must_use]
    pub fn moved(mut self, bounds: &Subarray) -> Option<Self> {
        for ((origin, from), to) in self.origin.iter_mut().zip(self.bounds.ranges()).zip(bounds.ranges()) {
            *origin = u64::try_from(i128::from(*origin) + i128::from(to.lo) - i128::from(from.lo)).ok()?;
        }
        self.bounds = bounds.clone();
        Some(self)
    }

    /// The number of the chunk at these places along the dimensions, if there is one.
    pub fn number_of(&self, places: &[u64]) -> Option<u64> {
        let inside = places.len() == self.counts.len() && places.iter().zip(&self.counts).all(|(at, n)| at < n);
        inside.then(|| places.iter().zip(&self.counts).fold(0, |number, (at, count)| number * count + at))
    }

    /// The places of a chunk along the dimensions.
    fn places(&self, number: u64) -> Vec<u64> {
        let mut rest = number;
        let mut places: Vec<u64> = self
            .counts
            .iter()
            .rev()
            .map(|count| {
                let at = rest % count;
                rest /= count;
                at
            })
            .collect();
        places.reverse();
        places
    }

    /// All cells of a chunk, those outside of the box too.
    fn whole(&self, number: u64) -> Subarray {
        let along = self.places(number).into_iter().zip(&self.origin).zip(&self.sides);
        let range = |((at, origin), side): ((u64, &u64), &u64)| {
            let lo = origin + at * side;
            KeyRange::new(lo, lo.saturating_add(side - 1))
        };
        Subarray::new(along.map(range).collect())
    }

    /// The cells of a chunk that lie in the box; `None` if there is no such chunk.
    pub fn chunk_box(&self, number: u64) -> Option<Subarray> {
        if number >= self.len() { None } else { self.whole(number).intersect(&self.bounds) }
    }

    /// The low corner of a chunk as it is stored, and its shape there.
    fn stored(&self, number: u64) -> Option<(Vec<u64>, Vec<u64>)> {
        let inside = self.chunk_box(number)?;
        let whole = self.whole(number);
        let corner = |sub: &Subarray| sub.ranges().iter().map(|range| range.lo).collect::<Vec<u64>>();
        // A chunk that would pass the last key is stored whole nevertheless: its shape is that of all chunks.
        Some(if self.padded { (corner(&whole), self.sides.clone()) } else { (corner(&inside), inside.shape()) })
    }

    /// Cells of a chunk as it is stored; `None` if there is no such chunk.
    pub fn stored_cells(&self, number: u64) -> Option<u64> {
        self.stored(number).map(|(_, shape)| shape.iter().product())
    }

    /// Where the cells of `region`, which lies in a chunk, are when the chunk is decoded.
    pub fn places_of(&self, number: u64, region: &Subarray) -> Option<Strided> {
        let (corner, shape) = self.stored(number)?;
        let offset = region.ranges().iter().zip(&corner);
        let offset: Option<Vec<u64>> = offset.map(|(range, lo)| range.lo.checked_sub(*lo)).collect();
        Some(Strided { start: 0, strides: self.strides(&shape) }.at(&offset?))
    }

    /// Cells from one to the next along each dimension in a chunk of `shape`.
    fn strides(&self, shape: &[u64]) -> Vec<u64> {
        let mut strides = vec![1; shape.len()];
        let mut step = 1;
        for rank in (0..shape.len() as u32).rev() {
            let axis = self.ranks.iter().position(|r| *r == rank);
            if let Some((stride, side)) = axis.and_then(|axis| strides.get_mut(axis).zip(shape.get(axis))) {
                *stride = step;
                step *= side;
            }
        }
        strides
    }

    /// The numbers, ascending, of the chunks that have a cell in `region`.
    pub fn touched_by(&self, region: &Subarray) -> impl Iterator<Item = u64> + Send + use<> {
        let common = region.intersect(&self.bounds);
        let runs: Vec<(u64, u64)> = match &common {
            Some(common) => {
                let along = common.ranges().iter().zip(&self.origin).zip(&self.sides);
                along.map(|((r, origin), side)| ((r.lo - origin) / side, (r.hi - origin) / side)).collect()
            }
            None => Vec::new(),
        };
        let counts = self.counts.clone();
        let total: u64 = if common.is_some() { runs.iter().map(|(lo, hi)| hi - lo + 1).product() } else { 0 };
        (0..total).map(move |place| {
            let mut rest = place;
            let mut number = 0;
            let mut scale = 1;
            for ((lo, hi), count) in runs.iter().zip(&counts).rev() {
                let side = hi - lo + 1;
                number += (lo + rest % side) * scale;
                scale *= count;
                rest /= side;
            }
            number
        })
    }

    /// The chunk that holds a cell of the box, and the cell's place in it as it is stored; `None` if the cell lies outside.
    pub fn place_of_cell(&self, cell: &[u64]) -> Option<(u64, u64)> {
        let at = Subarray::new(cell.iter().map(|key| KeyRange::new(*key, *key)).collect());
        if cell.len() != self.sides.len() || !self.bounds.covers(&at) {
            return None;
        }
        let along = cell.iter().zip(&self.origin).zip(&self.sides);
        let places: Vec<u64> = along.map(|((key, origin), side)| (key - origin) / side).collect();
        let number = self.number_of(&places)?;
        Some((number, self.places_of(number, &at)?.start))
    }

    /// Which cells of a chunk, in the order that they are stored, lie in the box; `None`: all of them.
    pub fn inside(&self, number: u64) -> Option<Vec<bool>> {
        let (_, shape) = self.stored(number)?;
        let within = self.chunk_box(number)?;
        let cells: u64 = shape.iter().product();
        if u128::from(cells) == within.cells() {
            return None;
        }
        let first = self.places_of(number, &within)?;
        let (strides, sides) = (&first.strides, within.shape());
        let is_inside = |place: u64| {
            let along = strides.iter().zip(&shape).zip(&sides);
            along.into_iter().all(|((stride, whole), side)| {
                let (lead, at) = (first.start / stride % whole, place / stride % whole);
                lead <= at && at < lead + side
            })
        };
        Some((0..cells).map(is_inside).collect())
    }

    /// The words of section 13.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut w = ByteWriter::new();
        for ((origin, side), rank) in self.origin.iter().zip(&self.sides).zip(&self.ranks) {
            w.u64(*origin);
            w.u64(*side);
            w.u32(*rank);
            w.u32(u32::from(self.padded));
        }
        w.into_bytes()
    }

    /// The grid in the bytes of section 13, over the box of a root.
    pub(super) fn decode(bytes: &[u8], bounds: &Subarray) -> Result<Self> {
        let mut r = ByteReader::new(bytes, "the grid of an external fragment");
        let (mut origin, mut sides, mut ranks, mut edges) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
        for _ in 0..bounds.ndim() {
            origin.push(r.u64()?);
            sides.push(r.u64()?);
            ranks.push(r.u32()?);
            edges.push(r.u32()?);
        }
        r.expect_end()?;
        let padded = edges.first() == Some(&1);
        if edges.iter().any(|edge| *edge != u32::from(padded)) {
            return Err(Error::corruption("a grid of chunks whose edges are of several kinds"));
        }
        Self::new(bounds.clone(), origin, sides, ranks, padded)
            .map_err(|e| Error::corruption(format!("its grid of chunks is impossible: {e}")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn boxed(ranges: &[(u64, u64)]) -> Subarray {
        Subarray::new(ranges.iter().map(|(lo, hi)| KeyRange::new(*lo, *hi)).collect())
    }

    fn axis() -> impl Strategy<Value = (u64, u64, u64, u64)> {
        // The origin, where the box begins after it, the length of the box, the side of a chunk.
        (prop_oneof![0u64..5, Just(u64::MAX - 40)], 0u64..9, 1u64..9, 1u64..7)
    }

    proptest! {
        #[test]
        fn each_cell_of_the_box_has_one_place_in_one_chunk(axes in prop::collection::vec(axis(), 1..4), turn in 0usize..3, padded: bool) {
            let ranges: Vec<(u64, u64)> =
                axes.iter().map(|(origin, lead, len, _)| (origin + lead, origin + lead + len - 1)).collect();
            let bounds = boxed(&ranges);
            let mut ranks: Vec<u32> = (0..axes.len() as u32).collect();
            ranks.rotate_left(turn % axes.len());
            let origin = axes.iter().map(|a| a.0).collect();
            let sides: Vec<u64> = axes.iter().map(|a| a.3).collect();
            let grid = ChunkGrid::new(bounds.clone(), origin, sides, ranks, padded).unwrap();
            prop_assert_eq!(ChunkGrid::decode(&grid.encode(), &bounds).unwrap(), grid.clone());
            let mut seen: BTreeMap<(u64, u64), u32> = BTreeMap::new();
            let mut cells = 0;
            for chunk in grid.touched_by(&bounds) {
                let Some(inside) = grid.chunk_box(chunk) else { continue };
                let stored = grid.stored_cells(chunk).unwrap();
                prop_assert!(padded || stored == inside.cells() as u64);
                let count = grid.inside(chunk).map_or(stored, |all| all.iter().filter(|cell| **cell).count() as u64);
                prop_assert_eq!(count, inside.cells() as u64);
                let from = grid.places_of(chunk, &inside).unwrap();
                let shape = inside.shape();
                for n in 0..inside.cells() as u64 {
                    let mut rest = n;
                    let mut at = vec![0; shape.len()];
                    for d in (0..shape.len()).rev() {
                        at[d] = rest % shape[d];
                        rest /= shape[d];
                    }
                    let place = from.place(at.iter().copied());
                    prop_assert!(place < stored);
                    let cell: Vec<u64> = at.iter().zip(inside.ranges()).map(|(a, r)| r.lo + a).collect();
                    prop_assert_eq!(grid.place_of_cell(&cell), Some((chunk, place)));
                    prop_assert!(grid.inside(chunk).is_none_or(|all| all[place as usize]));
                    *seen.entry((chunk, place)).or_default() += 1;
                    cells += 1;
                }
            }
            prop_assert_eq!(cells, bounds.cells() as u64);
            prop_assert!(seen.values().all(|n| *n == 1));
        }

        #[test]
        fn chunks_that_a_region_touches_are_those_that_have_a_cell_there(
            side in (1u64..6, 1u64..6), len in (1u64..20, 1u64..20), from in (0u64..25, 0u64..25), to in (0u64..25, 0u64..25),
        ) {
            let bounds = boxed(&[(3, 2 + len.0), (1, len.1)]);
            let grid = ChunkGrid::new(bounds, vec![2, 0], vec![side.0, side.1], vec![0, 1], true).unwrap();
            let region = boxed(&[(from.0.min(to.0), from.0.max(to.0)), (from.1.min(to.1), from.1.max(to.1))]);
            let touched: Vec<u64> = grid.touched_by(&region).collect();
            let expected: Vec<u64> =
                (0..grid.len()).filter(|n| grid.chunk_box(*n).is_some_and(|c| c.intersects(&region))).collect();
            let lead = |n: &u64| grid.chunk_box(*n).is_some();
            prop_assert_eq!(touched.into_iter().filter(lead).collect::<Vec<_>>(), expected);
        }
    }

    #[test]
    fn what_does_not_fit_is_refused() {
        let bounds = boxed(&[(4, 9), (0, 3)]);
        let made = |origin: Vec<u64>, sides: Vec<u64>, ranks: Vec<u32>| {
            ChunkGrid::new(bounds.clone(), origin, sides, ranks, true).is_ok()
        };
        assert!(made(vec![4, 0], vec![2, 2], vec![1, 0]));
        assert!(!made(vec![5, 0], vec![2, 2], vec![0, 1]), "the grid begins behind the box");
        assert!(!made(vec![4, 0], vec![2, 0], vec![0, 1]), "chunks without cells");
        assert!(!made(vec![4, 0], vec![2, 2], vec![0, 0]), "two dimensions at one place");
        assert!(!made(vec![4], vec![2, 2], vec![0, 1]), "an origin without a dimension");
        assert!(!made(vec![4, 0], vec![1 << 31, 1 << 31], vec![0, 1]), "chunks larger than any memory");
        let nine = boxed(&[(0, 1); 9]);
        assert!(ChunkGrid::new(nine, vec![0; 9], vec![1; 9], (0..9).collect(), true).is_err(), "nine dimensions");
    }

    #[test]
    fn a_grid_moves_with_its_box() {
        let grid = ChunkGrid::new(boxed(&[(4, 9)]), vec![3], vec![4], vec![0], false).unwrap();
        let moved = grid.clone().moved(&boxed(&[(14, 19)])).unwrap();
        let chunks: Vec<_> = (0..2).map(|n| moved.chunk_box(n).unwrap()).collect();
        assert_eq!(chunks, [boxed(&[(14, 16)]), boxed(&[(17, 19)])]);
        assert!(grid.moved(&boxed(&[(0, 5)])).is_none(), "the origin would lie before the first key");
    }
}
