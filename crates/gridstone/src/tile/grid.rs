//! The space tiles that a box touches, in tile order.

use crate::base::{Error, Result};
use crate::schema::{Dimension, Order, Schema, Subarray};

/// The coordinates of position `index` in a box of `shape` laid out in `order`.
pub fn unravel(mut index: u64, shape: &[u64], order: Order) -> Vec<u64> {
    let mut coords = vec![0; shape.len()];
    for d in order.slowest_first(shape.len()).rev() {
        if let (Some(c), Some(n)) = (coords.get_mut(d), shape.get(d)) {
            *c = index % n;
            index /= n;
        }
    }
    coords
}

/// The position of `coords` in a box of `shape` laid out in `order`; the inverse of [`unravel`].
pub fn ravel(coords: &[u64], shape: &[u64], order: Order) -> u64 {
    order.slowest_first(shape.len()).fold(0, |index, d| {
        let (n, c) = (shape.get(d).copied().unwrap_or(1), coords.get(d).copied().unwrap_or(0));
        index.wrapping_mul(n).wrapping_add(c)
    })
}

/// The offset of the low corner of `inner` from the low corner of `outer`, in cells.
pub fn offsets_in(inner: &Subarray, outer: &Subarray) -> Vec<u64> {
    inner.ranges().iter().zip(outer.ranges()).map(|(i, o)| i.lo.wrapping_sub(o.lo)).collect()
}

/// The space tiles of an integer domain that a box touches, numbered in tile order.
#[derive(Debug, Clone)]
pub struct TileGrid {
    dims: Vec<Dimension>,
    bounds: Subarray,
    first: Vec<u64>,
    counts: Vec<u64>,
    order: Order,
    len: u64,
}

impl TileGrid {
    /// The tiles of `schema` that `bounds` (a box in the domain) touches; a Bounds error past 2^63 of them.
    pub fn new(schema: &Schema, bounds: &Subarray) -> Result<Self> {
        let first: Vec<u64> = schema.dims().iter().zip(bounds.ranges()).map(|(d, r)| d.tile_of(r.lo)).collect();
        let last = schema.dims().iter().zip(bounds.ranges()).map(|(d, r)| d.tile_of(r.hi));
        let counts: Vec<u64> = last.zip(&first).map(|(l, f)| (l - f).saturating_add(1)).collect();
        let len = counts.iter().try_fold(1u64, |n, c| n.checked_mul(*c)).filter(|n| *n < 1 << 63);
        let len = len.ok_or_else(|| {
            Error::bounds(format!("the box {} touches 2^63 space tiles or more", schema.describe(bounds)))
        })?;
        let order = schema.options().tile_order;
        Ok(Self { dims: schema.dims().to_vec(), bounds: bounds.clone(), first, counts, order, len })
    }

    /// How many tiles the box touches.
    pub fn len(&self) -> u64 {
        self.len
    }

    /// Whether there are none (never: a box is not empty).
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// The tile coordinates of tile number `index`.
    pub fn coords(&self, index: u64) -> Vec<u64> {
        let mut coords = unravel(index, &self.counts, self.order);
        for (c, first) in coords.iter_mut().zip(&self.first) {
            *c += first;
        }
        coords
    }

    /// The number of the tile with these tile coordinates, if the box touches it.
    pub fn index_of(&self, coords: &[u64]) -> Option<u64> {
        let relative = coords.iter().zip(&self.first).map(|(c, f)| c.checked_sub(*f)).collect::<Option<Vec<u64>>>()?;
        relative.iter().zip(&self.counts).all(|(r, n)| r < n).then(|| ravel(&relative, &self.counts, self.order))
    }

    /// The cells of the tile that lie in the box.
    pub fn tile_box(&self, index: u64) -> Option<Subarray> {
        self.clipped(&self.coords(index))
    }

    /// The cells of the tile with these coordinates that lie in the box.
    pub fn clipped(&self, coords: &[u64]) -> Option<Subarray> {
        let whole = self.dims.iter().zip(coords).map(|(d, t)| d.tile_range(*t)).collect();
        Subarray::new(whole).intersect(&self.bounds)
    }

    /// The tile that holds the cell with these keys, if the box touches it: its number, and its cells in the box.
    pub fn holding_cell(&self, cell: &[u64]) -> Option<(u64, Subarray)> {
        let coords: Vec<u64> = self.dims.iter().zip(cell).map(|(d, key)| d.tile_of(*key)).collect();
        Some((self.index_of(&coords)?, self.clipped(&coords)?))
    }

    /// The tile that holds all cells of `region`, if one does: its number, and its cells in the box.
    pub fn holding(&self, region: &Subarray) -> Option<(u64, Subarray)> {
        let first: Vec<u64> = region.ranges().iter().map(|range| range.lo).collect();
        self.holding_cell(&first).filter(|(_, tile)| tile.covers(region))
    }

    /// The numbers, in tile order, of the tiles that `query` touches too.
    pub fn touched_by(&self, query: &Subarray) -> impl Iterator<Item = u64> + use<> {
        let common = query.intersect(&self.bounds);
        let spans: Option<Vec<(u64, u64)>> = common.map(|common| {
            let per_dim = self.dims.iter().zip(common.ranges()).zip(&self.first);
            per_dim.map(|((d, r), first)| (d.tile_of(r.lo) - first, d.tile_of(r.hi) - first + 1)).collect()
        });
        let counts = self.counts.clone();
        let order = self.order;
        let shape: Vec<u64> = spans.as_deref().unwrap_or_default().iter().map(|(lo, hi)| hi - lo).collect();
        let total = if spans.is_some() { shape.iter().product() } else { 0 };
        (0..total).map(move |i| {
            let mut coords = unravel(i, &shape, order);
            for (c, (lo, _)) in coords.iter_mut().zip(spans.as_deref().unwrap_or_default()) {
                *c += lo;
            }
            ravel(&coords, &counts, order)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::schema::KeyRange;
    use proptest::prelude::*;

    fn schema(order: &str) -> Schema {
        Schema::from_json(&format!(
            r#"{{"tile_order":"{order}","dims":[{{"name":"y","dtype":"int32","domain":["-5","14"],"tile":"7"}},
            {{"name":"x","dtype":"uint8","domain":["0","255"],"tile":"100"}}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        ))
        .unwrap()
    }

    proptest! {
        #[test]
        fn tiles_partition_the_box(y in (0u64..20, 0u64..20), x in (0u64..256, 0u64..256), row in any::<bool>()) {
            let schema = schema(if row { "row" } else { "col" });
            let low = schema.domain().ranges()[0].lo;
            let bounds = Subarray::new(vec![
                KeyRange::new(low + y.0.min(y.1), low + y.0.max(y.1)),
                KeyRange::new(x.0.min(x.1), x.0.max(x.1)),
            ]);
            let grid = TileGrid::new(&schema, &bounds).unwrap();
            let mut cells = 0;
            for i in 0..grid.len() {
                let tile = grid.tile_box(i).unwrap();
                prop_assert!(bounds.covers(&tile));
                prop_assert_eq!(grid.index_of(&grid.coords(i)), Some(i));
                cells += tile.cells();
            }
            prop_assert_eq!(cells, bounds.cells());
            prop_assert_eq!(grid.touched_by(&bounds).collect::<Vec<_>>(), (0..grid.len()).collect::<Vec<_>>());
        }
    }

    #[test]
    fn touched_tiles_are_those_that_intersect() {
        let schema = schema("col");
        let grid = TileGrid::new(&schema, &schema.domain()).unwrap();
        let low = schema.domain().ranges()[0].lo;
        let query = Subarray::new(vec![KeyRange::new(low + 6, low + 7), KeyRange::new(99, 100)]);
        let expected: Vec<u64> = (0..grid.len()).filter(|i| grid.tile_box(*i).unwrap().intersects(&query)).collect();
        assert_eq!(grid.touched_by(&query).collect::<Vec<_>>(), expected);
        assert_eq!(expected.len(), 4);
    }
}
