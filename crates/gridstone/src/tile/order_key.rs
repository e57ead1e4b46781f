//! The global order of sparse cells as one comparable key per cell.
//!
//! A cell's key is its space tile's coordinates in tile order, then its offsets in the tile (for float or untiled
//! dimensions: in the domain) in cell order, each in as many bits as its dimension needs, packed with the most
//! significant first. Keys of up to 64 and 128 bits are machine words; longer ones are compared as words.

use super::radix::sort_keys;
use super::sort::sort;
use crate::base::{Cancel, Result, Spawner};
use crate::schema::{Dimension, Extent, Schema};
use std::cmp::Ordering;

/// One part of a key.
#[derive(Debug, Clone, Copy)]
struct Part {
    dim: usize,
    tile: bool,
    bits: u32,
}

/// How the keys of an array's cells are made.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    dims: Vec<Dimension>,
    parts: Vec<Part>,
    bits: u32,
}

/// The keys of a run of cells.
#[derive(Debug, Clone)]
pub enum CellKeys {
    /// Up to 64 bits.
    Narrow(Vec<u64>),
    /// Up to 128 bits.
    Wide(Vec<u128>),
    /// Longer: `words` words per cell, the most significant first.
    Long {
        /// Words per cell.
        words: usize,
        /// The words of all cells.
        data: Vec<u64>,
    },
}

fn bits_for(count: u128) -> u32 {
    u128::BITS - count.saturating_sub(1).leading_zeros()
}

impl KeyLayout {
    /// The layout for `schema`'s tile and cell orders.
    pub fn new(schema: &Schema) -> Self {
        let dims = schema.dims().to_vec();
        let options = schema.options();
        let width = |tile: bool, dim: usize| {
            dims.get(dim).map_or(0, |d| match (tile, d.extent()) {
                (true, _) => bits_for(d.tiles()),
                (false, Extent::Cells(n)) => bits_for(u128::from(n)),
                (false, _) => bits_for(d.range().count()),
            })
        };
        let tiles =
            options.tile_order.slowest_first(dims.len()).map(|dim| Part { dim, tile: true, bits: width(true, dim) });
        let cells =
            options.cell_order.slowest_first(dims.len()).map(|dim| Part { dim, tile: false, bits: width(false, dim) });
        let parts: Vec<Part> = tiles.chain(cells).filter(|p| p.bits > 0).collect();
        let bits = parts.iter().map(|p| p.bits).sum();
        Self { dims, parts, bits }
    }

    /// A layout that orders cells by their coordinates alone, tiles disregarded: row-major or column-major results.
    pub fn by_coordinates(schema: &Schema, order: crate::schema::Order) -> Self {
        let dims = schema.dims().to_vec();
        let part = |dim: usize| {
            let bits = dims.get(dim).map_or(0, |d| bits_for(d.range().count()));
            Part { dim, tile: false, bits }
        };
        let parts: Vec<Part> = order.slowest_first(dims.len()).map(part).filter(|p| p.bits > 0).collect();
        let bits = parts.iter().map(|p| p.bits).sum();
        let dims = dims.iter().map(Dimension::untiled).collect();
        Self { dims, parts, bits }
    }

    /// Bits of a key.
    pub fn bits(&self) -> u32 {
        self.bits
    }

    fn part_value(&self, part: Part, key: u64) -> u64 {
        let Some(dim) = self.dims.get(part.dim) else { return 0 };
        match (part.tile, dim.extent()) {
            (true, _) => dim.tile_of(key),
            (false, Extent::Cells(n)) => (key - dim.range().lo) % n,
            (false, _) => key - dim.range().lo,
        }
    }

    /// The keys of cells whose coordinates are given column by column as ordered keys in the domain.
    pub fn keys(&self, columns: &[&[u64]]) -> CellKeys {
        let len = columns.first().map_or(0, |c| c.len());
        if self.bits <= 64 {
            let mut keys = vec![0u64; len];
            self.fill(columns, &mut keys, |key, bits, value| if bits == 64 { value } else { *key << bits | value });
            CellKeys::Narrow(keys)
        } else if self.bits <= 128 {
            let mut keys = vec![0u128; len];
            self.fill(columns, &mut keys, |key, bits, value| *key << bits | u128::from(value));
            CellKeys::Wide(keys)
        } else {
            self.long_keys(columns, len)
        }
    }

    /// The key of one cell, given its coordinates as ordered keys by dimension; `None` if keys are longer than 128 bits.
    pub fn key(&self, coordinate: impl Fn(usize) -> u64) -> Option<u128> {
        let push = |key: u128, part: &Part| key << part.bits | u128::from(self.part_value(*part, coordinate(part.dim)));
        (self.bits <= 128).then(|| self.parts.iter().fold(0, push))
    }

    fn fill<K: Copy>(&self, columns: &[&[u64]], keys: &mut [K], push: impl Fn(&K, u32, u64) -> K) {
        for part in &self.parts {
            let Some(column) = columns.get(part.dim) else { continue };
            for (key, coordinate) in keys.iter_mut().zip(*column) {
                *key = push(key, part.bits, self.part_value(*part, *coordinate));
            }
        }
    }

    /// Long keys spend one word per part: simple, and rare (more than 128 bits of coordinates).
    fn long_keys(&self, columns: &[&[u64]], len: usize) -> CellKeys {
        let words = self.parts.len();
        let mut data = vec![0u64; len * words];
        for (i, part) in self.parts.iter().enumerate() {
            let Some(column) = columns.get(part.dim) else { continue };
            for (slot, coordinate) in data.iter_mut().skip(i).step_by(words.max(1)).zip(*column) {
                *slot = self.part_value(*part, *coordinate);
            }
        }
        CellKeys::Long { words, data }
    }
}

impl CellKeys {
    /// The number of cells.
    pub fn len(&self) -> usize {
        match self {
            Self::Narrow(keys) => keys.len(),
            Self::Wide(keys) => keys.len(),
            Self::Long { words, data } => data.len() / (*words).max(1),
        }
    }

    /// Whether there is no cell.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Compares cell `i` with cell `j` of `other`, which has the same layout.
    pub fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => a.get(i).cmp(&b.get(j)),
            (Self::Wide(a), Self::Wide(b)) => a.get(i).cmp(&b.get(j)),
            (Self::Long { words, data: a }, Self::Long { data: b, .. }) => {
                a.get(i * words..(i + 1) * words).cmp(&b.get(j * words..(j + 1) * words))
            }
            _ => Ordering::Equal,
        }
    }

    /// The key of cell `i` as [`KeyLayout::key`] gives it.
    pub fn word(&self, i: usize) -> Option<u128> {
        match self {
            Self::Narrow(keys) => keys.get(i).map(|k| u128::from(*k)),
            Self::Wide(keys) => keys.get(i).copied(),
            Self::Long { .. } => None,
        }
    }

    /// Appends the keys of `other`, which has the same layout.
    pub fn append(&mut self, other: &Self) {
        match (self, other) {
            (Self::Narrow(a), Self::Narrow(b)) => a.extend_from_slice(b),
            (Self::Wide(a), Self::Wide(b)) => a.extend_from_slice(b),
            (Self::Long { data: a, .. }, Self::Long { data: b, .. }) => a.extend_from_slice(b),
            _ => debug_assert!(false, "keys of two layouts"),
        }
    }

    /// The keys of `rows`, in that order.
    #[must_use]
    pub fn pick(&self, rows: &[u32]) -> Self {
        let at = |row: &u32| *row as usize;
        match self {
            Self::Narrow(keys) => Self::Narrow(rows.iter().filter_map(|r| keys.get(at(r)).copied()).collect()),
            Self::Wide(keys) => Self::Wide(rows.iter().filter_map(|r| keys.get(at(r)).copied()).collect()),
            Self::Long { words, data } => {
                let cell = |r: &u32| data.get(at(r) * words..(at(r) + 1) * words).unwrap_or_default();
                Self::Long { words: *words, data: rows.iter().flat_map(cell).copied().collect() }
            }
        }
    }

    /// The first cell from `from` on, of cells in ascending order, whose key is not below cell `j` of `other`.
    /// Gallops, so that a short stretch is found in few steps.
    pub fn lower_bound(&self, from: usize, other: &Self, j: usize) -> usize {
        let below = |i: usize| self.compare(i, other, j) == Ordering::Less;
        let (mut lo, mut step) = (from, 1);
        while lo + step <= self.len() && below(lo + step - 1) {
            lo += step;
            step *= 2;
        }
        let mut hi = (lo + step).min(self.len());
        while lo < hi {
            let mid = lo + (hi - lo) / 2;
            if below(mid) { lo = mid + 1 } else { hi = mid }
        }
        lo
    }

    /// The first row, from 1 on, that stands to the one before it as `how` says.
    pub fn first_step(&self, how: Ordering, cancel: &dyn Cancel) -> Result<Option<usize>> {
        match self {
            Self::Narrow(keys) => first_step(keys, how, cancel),
            Self::Wide(keys) => first_step(keys, how, cancel),
            Self::Long { words, data } => {
                let cells: Vec<&[u64]> = data.chunks((*words).max(1)).collect();
                first_step(&cells, how, cancel)
            }
        }
    }

    /// The keys in ascending order and the rows they come from, equal keys in row order. Cancelled if `cancel` says so.
    pub fn sort(self, spawner: &dyn Spawner, cancel: &dyn Cancel) -> Result<(Self, Vec<u32>)> {
        match self {
            Self::Narrow(keys) => sort_keys(keys, spawner, cancel).map(|(keys, rows)| (Self::Narrow(keys), rows)),
            Self::Wide(keys) => sort_keys(keys, spawner, cancel).map(|(keys, rows)| (Self::Wide(keys), rows)),
            Self::Long { .. } => {
                let by_key = |a: &u32, b: &u32| self.compare(*a as usize, &self, *b as usize).then(a.cmp(b));
                let rows = sort((0..self.len() as u32).collect(), by_key, cancel)?;
                Ok((self.pick(&rows), rows))
            }
        }
    }
}

/// Keys looked at between two questions whether to go on: a few milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 8 } else { 1 << 18 };

fn first_step<K: Ord>(keys: &[K], how: Ordering, cancel: &dyn Cancel) -> Result<Option<usize>> {
    // Portions overlap by one key, so that every step lies in one of them.
    for from in (0..keys.len()).step_by(PORTION) {
        cancel.check()?;
        let portion = keys.get(from..(from + PORTION + 1).min(keys.len())).unwrap_or_default();
        if let Some(at) = portion.windows(2).position(|w| matches!(w, [a, b] if b.cmp(a) == how)) {
            return Ok(Some(from + at + 1));
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Inline, NeverCancel};
    use crate::schema::{Order, key};
    use proptest::prelude::*;

    fn schema(dims: &str) -> Schema {
        Schema::from_json(&format!(
            r#"{{"sparse":true,"tile_order":"col","cell_order":"row","dims":[{dims}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        ))
        .unwrap()
    }

    /// The definition: tile coordinates in tile order, then coordinates in cell order.
    fn naive(schema: &Schema, cell: &[u64]) -> Vec<u64> {
        let n = schema.ndim();
        let tiles = schema.options().tile_order.slowest_first(n).map(|d| schema.dims()[d].tile_of(cell[d]));
        let cells = schema.options().cell_order.slowest_first(n).map(|d| cell[d]);
        tiles.chain(cells).collect()
    }

    fn check(schema: &Schema, cells: &[Vec<u64>]) {
        let columns: Vec<Vec<u64>> = (0..schema.ndim()).map(|d| cells.iter().map(|c| c[d]).collect()).collect();
        let refs: Vec<&[u64]> = columns.iter().map(Vec::as_slice).collect();
        let keys = KeyLayout::new(schema).keys(&refs);
        let by_row = KeyLayout::by_coordinates(schema, Order::Col).keys(&refs);
        for i in 0..cells.len() {
            for j in 0..cells.len() {
                let expected = naive(schema, &cells[i]).cmp(&naive(schema, &cells[j]));
                assert_eq!(keys.compare(i, &keys, j), expected, "{:?} {:?}", cells[i], cells[j]);
                let reversed = |c: &Vec<u64>| c.iter().rev().copied().collect::<Vec<u64>>();
                assert_eq!(by_row.compare(i, &by_row, j), reversed(&cells[i]).cmp(&reversed(&cells[j])));
                let layout = KeyLayout::new(schema);
                if let (Some(a), Some(b)) = (layout.key(|d| cells[i][d]), layout.key(|d| cells[j][d])) {
                    assert_eq!(a.cmp(&b), expected);
                    assert_eq!(keys.word(i), Some(a));
                }
            }
        }
        let (sorted, rows) = keys.clone().sort(&Inline, &NeverCancel).unwrap();
        let ascending =
            |w: &[u32]| keys.compare(w[0] as usize, &keys, w[1] as usize).then(w[0].cmp(&w[1])) == Ordering::Less;
        assert!(rows.windows(2).all(ascending));
        assert!(rows.iter().enumerate().all(|(i, row)| sorted.compare(i, &keys, *row as usize) == Ordering::Equal));
        assert_eq!(sorted.first_step(Ordering::Less, &NeverCancel).unwrap(), None);
        let naive_equal = (1..rows.len()).find(|i| cells[rows[*i] as usize] == cells[rows[i - 1] as usize]);
        assert_eq!(sorted.first_step(Ordering::Equal, &NeverCancel).unwrap(), naive_equal);
    }

    const SMALL: &str = r#"{"name":"a","dtype":"int8","domain":["-9","90"],"tile":"7"},{"name":"b","dtype":"uint16","domain":["3","999"],"tile":"100"}"#;
    const WIDE: &str = r#"{"name":"a","dtype":"int64","domain":["-9223372036854775808","9223372036854775807"],"tile":"7"},{"name":"b","dtype":"float64","domain":["-1e3","1e3"],"tile":"0.5"}"#;
    const ONE: &str = r#"{"name":"a","dtype":"uint64","domain":["0","18446744073709551615"],"tile":null}"#;

    proptest! {
        #[test]
        fn keys_order_cells_globally(
            cells in proptest::collection::vec(
                (any::<u64>(), any::<u64>(), any::<f64>()), 0..if cfg!(miri) { 8 } else { 25 })) {
            let small = schema(SMALL);
            let within = |s: &Schema, d: usize, v: u64| { let r = s.dims()[d].range(); r.lo + v % (r.hi - r.lo + 1) };
            check(&small, &cells.iter().map(|(a, b, _)| vec![within(&small, 0, *a), within(&small, 1, *b)]).collect::<Vec<_>>());
            let wide = schema(WIDE);
            let float = |f: f64| key::from_float(if f.is_finite() { f % 1e3 } else { 0.25 });
            check(&wide, &cells.iter().map(|(a, _, f)| vec![*a, float(*f)]).collect::<Vec<_>>());
            check(&schema(ONE), &cells.iter().map(|(a, _, _)| vec![*a]).collect::<Vec<_>>());
        }
    }

    #[test]
    fn steps_are_found_across_portions() {
        let mut keys: Vec<u64> = (0..3 * PORTION as u64).collect();
        keys[PORTION] -= 1;
        keys[2 * PORTION] -= 2;
        let keys = CellKeys::Narrow(keys);
        assert_eq!(keys.first_step(Ordering::Equal, &NeverCancel).unwrap(), Some(PORTION));
        assert_eq!(keys.first_step(Ordering::Less, &NeverCancel).unwrap(), Some(2 * PORTION));
    }

    #[test]
    fn key_widths() {
        assert!(KeyLayout::new(&schema(SMALL)).bits() <= 64);
        assert_eq!(KeyLayout::new(&schema(ONE)).bits(), 64);
        assert!(KeyLayout::new(&schema(WIDE)).bits() > 128);
    }
}
