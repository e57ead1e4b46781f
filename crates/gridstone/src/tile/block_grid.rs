//! The blocks of a dense data tile.
//!
//! The block shape is greedy from the fastest dimension of the cell order. A side is the whole extent while the product
//! stays within the limit, then as many cells as still fit, then 1. Blocks are anchored at the tile's low corner and
//! numbered in cell order. So a block is one contiguous run of the tile's cells in cell order.

use super::grid::{ravel, unravel};
use crate::schema::{KeyRange, Order, Subarray};

/// A box relative to a tile's low corner: origin and shape in cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelativeBox {
    /// The low corner.
    pub origin: Vec<u64>,
    /// Cells per dimension, each at least 1.
    pub shape: Vec<u64>,
}

impl RelativeBox {
    /// How many cells it has.
    pub fn cells(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Its cells if the tile's low corner is that of `outer`.
    pub fn within(&self, outer: &Subarray) -> Subarray {
        let ranges = self.origin.iter().zip(&self.shape).zip(outer.ranges());
        Subarray::new(ranges.map(|((o, n), r)| KeyRange::new(r.lo + o, r.lo + o + (n - 1))).collect())
    }

    /// The intersection of both.
    pub fn intersect(&self, other: &Self) -> Option<Self> {
        let mut origin = Vec::with_capacity(self.origin.len());
        let mut shape = Vec::with_capacity(self.origin.len());
        for ((a, n), (b, m)) in self.origin.iter().zip(&self.shape).zip(other.origin.iter().zip(&other.shape)) {
            let (lo, hi) = (*a.max(b), (a + n).min(b + m));
            if lo >= hi {
                return None;
            }
            origin.push(lo);
            shape.push(hi - lo);
        }
        Some(Self { origin, shape })
    }
}

/// The blocks of a dense data tile of a given (clipped) shape.
#[derive(Debug, Clone)]
pub struct BlockGrid {
    tile: Vec<u64>,
    block: Vec<u64>,
    counts: Vec<u64>,
    order: Order,
}

impl BlockGrid {
    /// The blocks of a tile of `shape` with cells in `order`, of at most `limit` cells each.
    pub fn new(shape: &[u64], order: Order, limit: u64) -> Self {
        Self::coarse(shape, order, limit, 1)
    }

    /// Groups of whole blocks: `times` blocks side by side along the dimension in which blocks are cut, so that no
    /// group shares a block with another.
    pub fn coarse(shape: &[u64], order: Order, limit: u64, times: u64) -> Self {
        let mut block = vec![1; shape.len()];
        let mut product = 1u64;
        for d in order.slowest_first(shape.len()).rev() {
            let (Some(side), Some(extent)) = (block.get_mut(d), shape.get(d)) else { continue };
            *side = (*extent).min(limit / product).max(1);
            product = product.saturating_mul(*side);
            if *side < *extent {
                *side = side.saturating_mul(times.max(1)).min(*extent);
                break;
            }
        }
        let counts = shape.iter().zip(&block).map(|(n, b)| n.div_ceil(*b)).collect();
        Self { tile: shape.to_vec(), block, counts, order }
    }

    /// The number of blocks; saturating, since a stream cuts boxes of any size into blocks.
    pub fn len(&self) -> u64 {
        self.counts.iter().fold(1, |n, count| n.saturating_mul(*count))
    }

    /// Whether there is none (never).
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Cells per dimension of a full block.
    pub fn block_shape(&self) -> &[u64] {
        &self.block
    }

    /// The cells of block `index`.
    pub fn block_box(&self, index: u64) -> RelativeBox {
        let coords = unravel(index, &self.counts, self.order);
        let origin: Vec<u64> = coords.iter().zip(&self.block).map(|(c, b)| c * b).collect();
        let rest = self.tile.iter().zip(&origin).map(|(n, o)| n - o);
        let shape = rest.zip(&self.block).map(|(rest, b)| rest.min(*b)).collect();
        RelativeBox { origin, shape }
    }

    /// The position of the first cell of block `index` among the tile's cells in cell order.
    pub fn start(&self, index: u64) -> u64 {
        ravel(&self.block_box(index).origin, &self.tile, self.order)
    }

    /// The number of cells of block `index`.
    pub fn cells(&self, index: u64) -> u64 {
        self.block_box(index).cells()
    }

    /// The block that contains cell `place` of the tile, counted in cell order: its number, and the positions of its
    /// first cell and one past its last.
    pub fn block_at(&self, place: u64) -> (u64, u64, u64) {
        let mut inner = 1u64;
        for d in self.order.slowest_first(self.tile.len()).rev() {
            let (Some(extent), Some(side)) = (self.tile.get(d), self.block.get(d)) else { continue };
            if side == extent {
                inner = inner.saturating_mul(*extent);
                continue;
            }
            // Blocks are cut along this dimension; along slower ones they are one cell thick.
            let (step, plane) = (side.saturating_mul(inner), extent.saturating_mul(inner));
            let (slab, rest) = (place / plane, place % plane);
            let (start, end) = (slab * plane + rest / step * step, (slab + 1).saturating_mul(plane));
            return (slab * extent.div_ceil(*side) + rest / step, start, start.saturating_add(step).min(end));
        }
        (0, 0, inner)
    }

    /// The numbers, ascending, of the blocks that have a cell in `wanted`.
    pub fn touched_by(&self, wanted: &RelativeBox) -> Vec<u64> {
        let per_dim = wanted.origin.iter().zip(&wanted.shape).zip(&self.block);
        let spans: Vec<(u64, u64)> = per_dim.map(|((o, n), b)| (o / b, (o + n - 1) / b + 1)).collect();
        let shape: Vec<u64> = spans.iter().map(|(lo, hi)| hi - lo).collect();
        let total: u64 = shape.iter().product();
        let number = |i| {
            let mut coords = unravel(i, &shape, self.order);
            for (c, (lo, _)) in coords.iter_mut().zip(&spans) {
                *c += lo;
            }
            ravel(&coords, &self.counts, self.order)
        };
        (0..total).map(number).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn huge_boxes_have_many_blocks() {
        assert_eq!(BlockGrid::new(&[1 << 32, 1 << 32], Order::Row, 1).len(), u64::MAX);
        assert_eq!(BlockGrid::new(&[u64::MAX, u64::MAX], Order::Col, 1_000).block_box(1).origin, [1_000, 0]);
    }

    #[test]
    fn shapes_follow_the_rule() {
        let shape = |tile: &[u64], order| BlockGrid::new(tile, order, 16_384).block_shape().to_vec();
        assert_eq!(shape(&[2500, 1000], Order::Row), [16, 1000]);
        assert_eq!(shape(&[2500, 1000], Order::Col), [2500, 6]);
        assert_eq!(shape(&[3, 100_000], Order::Row), [1, 16_384]);
        assert_eq!(shape(&[10, 10, 10], Order::Row), [10, 10, 10]);
        assert_eq!(shape(&[100, 100, 100], Order::Row), [1, 100, 100]);
    }

    proptest! {
        #[test]
        fn blocks_are_contiguous_runs(
            tile in proptest::collection::vec(1u64..if cfg!(miri) { 6 } else { 12 }, 1..4),
            limit in 1u64..40,
            row in any::<bool>()) {
            let order = if row { Order::Row } else { Order::Col };
            let grid = BlockGrid::new(&tile, order, limit);
            let mut next = 0;
            for i in 0..grid.len() {
                prop_assert!(grid.cells(i) <= limit);
                prop_assert_eq!(grid.start(i), next);
                let b = grid.block_box(i);
                for j in 0..b.cells() {
                    let inner = unravel(j, &b.shape, order);
                    let at: Vec<u64> = inner.iter().zip(&b.origin).map(|(a, o)| a + o).collect();
                    prop_assert_eq!(ravel(&at, &tile, order), next + j);
                    prop_assert_eq!(grid.block_at(next + j), (i, next, next + grid.cells(i)));
                }
                next += grid.cells(i);
            }
            prop_assert_eq!(next, tile.iter().product::<u64>());
        }

        #[test]
        fn touched_blocks_are_those_that_intersect(tile in proptest::collection::vec(1u64..12, 2..3), limit in 1u64..40,
            a in proptest::collection::vec(0u64..12, 2), b in proptest::collection::vec(0u64..12, 2)) {
            let grid = BlockGrid::new(&tile, Order::Row, limit);
            let origin: Vec<u64> = a.iter().zip(&b).zip(&tile).map(|((a, b), n)| *a.min(b).min(&(n - 1))).collect();
            let shape = a.iter().zip(&b).zip(&tile).zip(&origin).map(|(((a, b), n), o)| a.max(b).min(&(n - 1)) - o + 1).collect();
            let wanted = RelativeBox { origin, shape };
            let expected: Vec<u64> = (0..grid.len()).filter(|i| grid.block_box(*i).intersect(&wanted).is_some()).collect();
            prop_assert_eq!(grid.touched_by(&wanted), expected);
        }
    }
}
