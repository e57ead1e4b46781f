//! The global order of sparse cells as one comparable key per cell.
//!
//! A cell's key is its space tile's coordinates in tile order, then its offsets in cell order: in the tile, or in the
//! domain for float and untiled dimensions. Each takes as many bits as its dimension needs, and they are packed with
//! the most significant first. With a Hilbert curve ([`hilbert`]) the index on the curve replaces the offsets. Keys of
//! up to 64 and 128 bits are machine words; longer ones are compared as words.
//!
//! Tiles are counted from the first of the domain, so keys of the same cells differ between domains; their order does
//! not. Equal keys are equal cells, but equal words need not be: several coordinates may have the same place on the curve,
//! since the domain reaches beyond the curve's frame or the frame is coarse. Then keys are *tied*: all coordinates follow the
//! word, in row order ([`TiedKeys`]).

use super::cell_keys::CellKeys;
use super::hilbert;
use super::tied_keys::TiedKeys;
use crate::schema::{Dimension, Extent, Order, Places, Schema};
use std::ops::{BitOr, Range, Shl};

/// One part of a key.
#[derive(Debug, Clone, Copy)]
struct Part {
    dim: usize,
    tile: bool,
    bits: u32,
}

/// A machine word for a key.
trait KeyWord: Copy + From<u64> + BitOr<Output = Self> + Shl<u32, Output = Self> {}

impl KeyWord for u64 {}
impl KeyWord for u128 {}

/// The layout of the keys of an array's cells.
#[derive(Debug, Clone)]
pub struct KeyLayout {
    dims: Vec<Dimension>,
    parts: Vec<Part>,
    /// Per dimension the places on a Hilbert curve, whose bits follow the parts; `None` if there is no curve.
    curve: Option<Vec<Places>>,
    /// Bits per dimension along the curve; 0 if there is no curve.
    curve_bits: u32,
    /// Whether cells may have the same word, so that the coordinates follow it.
    tied: bool,
    /// The bits of the word.
    bits: u32,
}

/// How many cells are placed on the curve together: as many as stay in a core's cache.
const CURVE_CELLS: usize = 1_024;

fn bits_for(count: u128) -> u32 {
    u128::BITS - count.saturating_sub(1).leading_zeros()
}

impl KeyLayout {
    /// The layout for the tile and cell orders of `schema`.
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
        let (tiles, cells) = (schema.slowest_first(options.tile_order), schema.slowest_first(options.cell_order));
        let tiles = tiles.into_iter().map(|dim| Part { dim, tile: true, bits: width(true, dim) });
        let cells = cells.into_iter().map(|dim| Part { dim, tile: false, bits: width(false, dim) });
        let curve = options.cell_order == Order::Hilbert;
        let parts = tiles.chain(cells.filter(|_| !curve)).filter(|p| p.bits > 0);
        let parts: Vec<Part> = parts.collect();
        // One width for all dimensions: the curve runs through a cube.
        let frame = curve.then(|| schema.frame());
        let curve_bits = frame.as_ref().map_or(0, |frame| frame.bits());
        let tied = frame.as_ref().is_some_and(|frame| !frame.tells_cells(&dims));
        let bits = parts.iter().map(|p| p.bits).sum::<u32>() + curve_bits * dims.len() as u32;
        let curve = frame.map(|frame| dims.iter().enumerate().filter_map(|(at, dim)| frame.places(at, dim)).collect());
        Self { parts, curve, curve_bits, tied, bits, dims }
    }

    /// A layout that orders cells by their coordinates alone, ignoring tiles, for row-major or column-major results.
    pub fn by_coordinates(schema: &Schema, order: crate::schema::Order) -> Self {
        let dims = schema.dims().to_vec();
        let part = |dim: usize| {
            let bits = dims.get(dim).map_or(0, |d| bits_for(d.range().count()));
            Part { dim, tile: false, bits }
        };
        let parts: Vec<Part> = schema.slowest_first(order).into_iter().map(part).filter(|p| p.bits > 0).collect();
        let bits = parts.iter().map(|p| p.bits).sum();
        let dims = dims.iter().map(Dimension::untiled).collect();
        Self { dims, parts, curve: None, curve_bits: 0, tied: false, bits }
    }

    /// Whether keys begin with a word that [`Self::key`] gives, and which is all of them unless they are tied.
    pub fn has_words(&self) -> bool {
        self.bits <= 128
    }

    /// Whether cells with the same word may be different cells.
    pub fn is_tied(&self) -> bool {
        self.tied
    }

    /// Bytes that a key takes.
    pub fn key_bytes(&self) -> u64 {
        let cell = if self.tied { self.dims.len() as u64 } else { 0 };
        (u64::from(self.bits).div_ceil(64).max(1) + cell) * 8
    }

    fn part_value(&self, part: Part, key: u64) -> u64 {
        let Some(dim) = self.dims.get(part.dim) else { return 0 };
        match (part.tile, dim.extent()) {
            (true, _) => dim.tile_of(key),
            (false, Extent::Cells(n)) => dim.offset_in_tile(key, n),
            (false, _) => key - dim.range().lo,
        }
    }

    /// The keys of cells whose coordinates are given column by column as ordered keys in the domain.
    pub fn keys(&self, columns: &[&[u64]]) -> CellKeys {
        let ndim = self.dims.len();
        match (self.bits, self.tied) {
            (..=64, false) => CellKeys::Narrow(self.fill(columns)),
            (..=64, true) => CellKeys::TiedNarrow(TiedKeys::new(self.fill(columns), ndim, columns)),
            (..=128, false) => CellKeys::Wide(self.fill(columns)),
            (..=128, true) => CellKeys::TiedWide(TiedKeys::new(self.fill(columns), ndim, columns)),
            _ => self.long_keys(columns, columns.first().map_or(0, |c| c.len())),
        }
    }

    /// Whether [`Self::coordinates`] can recover them: from tied words, and from all without a curve.
    pub fn tells_coordinates(&self) -> bool {
        self.curve.is_none() || (self.tied && self.has_words())
    }

    /// The inverse of [`Self::keys`]: the coordinates of the cells at `places`, a column per dimension; `None` where keys do
    /// not tell them.
    pub fn coordinates(&self, keys: &CellKeys, places: Range<usize>) -> Option<Vec<Vec<u64>>> {
        if self.curve.is_some() {
            return keys.tied_columns(places);
        }
        // The first tile may begin before the domain, even before all keys: the sums wrap there and come out right.
        let start = |d: &Dimension| d.range().lo.wrapping_sub(d.lead());
        let mut columns: Vec<Vec<u64>> = self.dims.iter().map(|d| vec![start(d); places.len()]).collect();
        let mut shift = self.bits;
        for (number, part) in self.parts.iter().enumerate() {
            shift -= part.bits;
            let step = match self.dims.get(part.dim)?.extent() {
                Extent::Cells(cells) if part.tile => cells,
                // The offset is from the domain's low end, so the tile is redundant.
                _ if part.tile => continue,
                _ => 1,
            };
            let mask = u64::MAX >> (64 - part.bits);
            let column = columns.get_mut(part.dim)?.iter_mut();
            match keys {
                CellKeys::Narrow(keys) => {
                    let add = |(c, k): (&mut u64, &u64)| *c = c.wrapping_add((*k >> shift & mask).wrapping_mul(step));
                    column.zip(keys.get(places.clone())?).for_each(add);
                }
                CellKeys::Wide(keys) => {
                    let part = |k: &u128| ((*k >> shift) as u64 & mask).wrapping_mul(step);
                    column.zip(keys.get(places.clone())?).for_each(|(c, k)| *c = c.wrapping_add(part(k)));
                }
                CellKeys::Long { words, data } => {
                    let cells = data.get(places.start * words..places.end * words)?.iter();
                    let parts = cells.skip(number).step_by(*words);
                    column.zip(parts).for_each(|(c, k)| *c = c.wrapping_add(k.wrapping_mul(step)));
                }
                // Only along a curve.
                CellKeys::TiedNarrow(_) | CellKeys::TiedWide(_) => return None,
            }
        }
        Some(columns)
    }

    /// The word of one cell, given its coordinates as ordered keys by dimension; `None` if it is longer than 128 bits. Tied
    /// cells may share it.
    pub fn key(&self, coordinate: impl Fn(usize) -> u64) -> Option<u128> {
        if !self.has_words() {
            return None;
        }
        let push = |key: u128, part: &Part| key << part.bits | u128::from(self.part_value(*part, coordinate(part.dim)));
        let mut key = [self.parts.iter().fold(0, push)];
        if self.curve_bits > 0 {
            let cell: Vec<[u64; 1]> = (0..self.dims.len()).map(|dim| [coordinate(dim)]).collect();
            let columns: Vec<&[u64]> = cell.iter().map(<[u64; 1]>::as_slice).collect();
            append_curve(&mut key, &self.along(&columns, 0, 1), self.curve_bits);
        }
        Some(key[0])
    }

    fn fill<K: KeyWord>(&self, columns: &[&[u64]]) -> Vec<K> {
        let mut keys = vec![K::from(0); columns.first().map_or(0, |c| c.len())];
        // The positions of the parts of each dimension in a key, if they have any bits.
        let mut shifts: Vec<(Option<u32>, Option<u32>)> = vec![(None, None); self.dims.len()];
        let mut shift = self.parts.iter().map(|part| part.bits).sum::<u32>();
        for part in &self.parts {
            shift -= part.bits;
            let Some((tile, offset)) = shifts.get_mut(part.dim) else { continue };
            *(if part.tile { tile } else { offset }) = Some(shift);
        }
        for ((dim, column), shifts) in self.dims.iter().zip(columns).zip(shifts) {
            add_parts(dim, column, shifts, &mut keys);
        }
        if self.curve_bits > 0 {
            for (from, keys) in (0..).step_by(CURVE_CELLS).zip(keys.chunks_mut(CURVE_CELLS)) {
                append_curve(keys, &self.along(columns, from, keys.len()), self.curve_bits);
            }
        }
        keys
    }

    /// The places of `len` cells from `from` on, transposed along the curve.
    fn along(&self, columns: &[&[u64]], from: usize, len: usize) -> Vec<Vec<u64>> {
        let places = |((places, dim), column): ((&Places, &Dimension), &&[u64])| {
            places.of_all(dim, column.get(from..from + len).unwrap_or_default())
        };
        let sides = self.curve.iter().flatten().zip(&self.dims);
        let mut along: Vec<Vec<u64>> = sides.zip(columns).map(places).collect();
        hilbert::transpose(&mut along, self.curve_bits);
        along
    }

    /// Long keys use one word per part, and as few words as possible for bits along a curve. This is simple, and rare
    /// (more than 128 bits of coordinates).
    fn long_keys(&self, columns: &[&[u64]], len: usize) -> CellKeys {
        let along_curve = (self.curve_bits as usize * self.dims.len()).div_ceil(64);
        let cells_from = self.parts.len() + along_curve;
        let words = cells_from + if self.tied { self.dims.len() } else { 0 };
        let mut data = vec![0u64; len * words];
        for (i, part) in self.parts.iter().enumerate() {
            let Some(column) = columns.get(part.dim) else { continue };
            for (slot, coordinate) in data.iter_mut().skip(i).step_by(words.max(1)).zip(*column) {
                *slot = self.part_value(*part, *coordinate);
            }
        }
        let cells = if self.curve_bits == 0 { 0 } else { len };
        for from in (0..cells).step_by(CURVE_CELLS) {
            let along = self.along(columns, from, CURVE_CELLS.min(len - from));
            let bits = (0..self.curve_bits).rev().flat_map(|bit| along.iter().map(move |x| (bit, x)));
            for (number, (bit, x)) in bits.enumerate() {
                let first = from * words + self.parts.len() + number / 64;
                for (slot, x) in data.iter_mut().skip(first).step_by(words).zip(x) {
                    *slot = *slot << 1 | (*x >> bit & 1);
                }
            }
        }
        if self.tied {
            for (dim, column) in columns.iter().enumerate() {
                let slots = data.iter_mut().skip(cells_from + dim).step_by(words.max(1));
                slots.zip(*column).for_each(|(slot, coordinate)| *slot = *coordinate);
            }
        }
        CellKeys::Long { words, data }
    }
}

/// Appends the bits of transposed indices along the curve to keys.
fn append_curve<K: KeyWord>(keys: &mut [K], along: &[Vec<u64>], bits: u32) {
    for bit in (0..bits).rev() {
        for x in along {
            keys.iter_mut().zip(x).for_each(|(key, x)| *key = *key << 1 | K::from(*x >> bit & 1));
        }
    }
}

/// Adds one dimension's part to keys: the tile and the offset of its coordinates, each shifted as given.
fn add_parts<K: KeyWord>(dim: &Dimension, column: &[u64], (tile, offset): (Option<u32>, Option<u32>), keys: &mut [K]) {
    let placed = |value: u64, shift: Option<u32>| shift.map_or(K::from(0), |shift| K::from(value) << shift);
    let (low, cells) = (dim.range().lo, keys.iter_mut().zip(column));
    let Extent::Cells(extent) = dim.extent() else {
        let in_tile = |k: u64| if tile.is_some() { placed(dim.tile_of(k), tile) } else { K::from(0) };
        return cells.for_each(|(key, k)| *key = *key | in_tile(*k) | placed(*k - low, offset));
    };
    let lead = dim.lead();
    if (dim.range().hi - low).checked_add(lead).is_none() {
        let part = |k: u64| placed(dim.tile_of(k), tile) | placed(dim.offset_in_tile(k, extent), offset);
        return cells.for_each(|(key, k)| *key = *key | part(*k));
    }
    // Ordered cells come tile by tile: only the first one of a tile needs a division.
    let (mut start, mut in_tile) = (0, K::from(0));
    for (key, k) in cells {
        let at = *k - low + lead;
        if at < start || at - start >= extent {
            let number = at / extent;
            (start, in_tile) = (number * extent, placed(number, tile));
        }
        *key = *key | in_tile | placed(at - start, offset);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{Inline, NeverCancel};
    use crate::schema::{KeyRange, Order, Subarray, key};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    fn schema(dims: &str) -> Schema {
        ordered(dims, "row")
    }

    fn ordered(dims: &str, order: &str) -> Schema {
        Schema::from_json(&format!(
            r#"{{"sparse":true,"tile_order":"col","cell_order":"{order}","dims":[{dims}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#
        ))
        .unwrap()
    }

    /// The keys of cells, a row each.
    fn keys_of(schema: &Schema, cells: &[Vec<u64>]) -> CellKeys {
        let columns: Vec<Vec<u64>> = (0..schema.ndim()).map(|d| cells.iter().map(|c| c[d]).collect()).collect();
        KeyLayout::new(schema).keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    /// Tile after tile, and in each along the curve; keys of any width give the same order.
    #[test]
    fn hilbert_keys_lead_through_each_tile_without_a_jump() {
        let dims = |far: &str| {
            format!(
                r#"{{"name":"a","dtype":"int16","domain":["-8","{far}"],"tile":"8"}},
                {{"name":"b","dtype":"uint64","domain":["5","{far}"],"tile":"8"}}"#
            )
        };
        let cells: Vec<Vec<u64>> =
            (0..32u64).flat_map(|a| (0..16u64).map(move |b| vec![key::from_signed(a as i64 - 8), 5 + b])).collect();
        let narrow = keys_of(&ordered(&dims("3000"), "hilbert"), &cells);
        let (_, rows) = narrow.clone().sort(&Inline, &NeverCancel).unwrap();
        for (tile, run) in rows.chunks(64).enumerate() {
            let places: Vec<[u64; 2]> = run
                .iter()
                .map(|row| [cells[*row as usize][0] - key::from_signed(-8), cells[*row as usize][1] - 5])
                .collect();
            assert!(places.iter().all(|p| p[0] / 8 == tile as u64 % 4 && p[1] / 8 == tile as u64 / 4), "{places:?}");
            let step = |w: &[[u64; 2]]| w[0][0].abs_diff(w[1][0]) + w[0][1].abs_diff(w[1][1]);
            assert!(places.windows(2).all(|w| step(w) == 1), "{places:?}");
        }
        // The same offsets in domains without tiles, with wide and long keys.
        let untiled = |more: &str| {
            format!(
                r#"{{"name":"a","dtype":"int64","domain":["-9000000000000000000","9000000000000000000"]}},
                {{"name":"b","dtype":"uint64","domain":["0","18446744073709551615"]}}{more}"#
            )
        };
        let third = r#",{"name":"c","dtype":"float64","domain":["-1e9","1e9"]}"#;
        for (schema, words) in [(ordered(&untiled(""), "hilbert"), 0), (ordered(&untiled(third), "hilbert"), 3)] {
            let lo: Vec<u64> = schema.dims().iter().map(|d| d.range().lo).collect();
            let place =
                |n: u64| [n / 7 % 5, n % 7 * 3, n % 11].iter().zip(&lo).map(|(o, lo)| lo + o).collect::<Vec<u64>>();
            let cells: Vec<Vec<u64>> = (0..if cfg!(miri) { 8 } else { 60 }).map(place).collect();
            let keys = keys_of(&schema, &cells);
            assert_eq!(matches!(keys, CellKeys::Long { words: 3, .. }), words == 3);
            for (i, a) in cells.iter().enumerate() {
                for (j, b) in cells.iter().enumerate() {
                    let index = |cell: &Vec<u64>| {
                        let offsets: Vec<u64> = cell.iter().zip(&lo).map(|(k, lo)| k - lo).collect();
                        hilbert::tests::index(&offsets, 64)
                    };
                    assert_eq!(keys.compare(i, &keys, j), index(a).cmp(&index(b)));
                }
                let word = KeyLayout::new(&schema).key(|d| a[d]);
                assert!(word == keys.word(i) && word.is_some() == (words == 0));
            }
        }
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
        assert_eq!(KeyLayout::new(schema).coordinates(&keys, 0..cells.len()), Some(columns.clone()));
        assert_eq!(
            KeyLayout::by_coordinates(schema, Order::Col).coordinates(&by_row, 0..cells.len()),
            Some(columns.clone())
        );
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

    /// Cells of a domain that grew, and so reaches beyond the frame of the curve, in each order that the definition gives.
    #[test]
    fn cells_keep_their_order_when_the_domain_grows() {
        let dims = r#"{"name":"a","dtype":"int16","domain":["-4","9"],"tile":"5"},
            {"name":"b","dtype":"uint8","domain":["10","20"]},{"name":"c","dtype":"float64","domain":["0","2"],"tile":"0.5"}"#;
        for order in ["row", "hilbert"] {
            let first = ordered(dims, order);
            let ends =
                [(key::from_signed(-6), key::from_signed(17)), (0, 40), (key::from_float(-1.25), key::from_float(3.0))];
            let domain = Subarray::new(ends.iter().map(|(lo, hi)| KeyRange::new(*lo, *hi)).collect());
            let grown = first.reaching(&domain);
            let floats = [-1.25, -0.5, 0.0, 0.75, 2.0, 3.0].map(key::from_float);
            let all = |lo: i64, hi: i64, b: &[u64], c: &[u64]| -> Vec<Vec<u64>> {
                let pair = |a: i64| {
                    b.iter()
                        .flat_map(move |b| c.iter().map(move |c| vec![key::from_signed(a), *b, *c]))
                        .collect::<Vec<_>>()
                };
                (lo..=hi).flat_map(pair).collect()
            };
            let cells = all(-6, 17, &[0, 3, 9, 10, 11, 15, 20, 25, 26, 40], &floats);
            let (keys, layout) = (keys_of(&grown, &cells), KeyLayout::new(&grown));
            assert_eq!(layout.is_tied(), order == "hilbert");
            let (sorted, rows) = keys.clone().sort(&Inline, &NeverCancel).unwrap();
            assert_eq!(sorted.first_step(Ordering::Equal, &NeverCancel).unwrap(), None, "no two cells have one key");
            let rank = |cell: &[u64]| {
                let tile = |d: usize| {
                    // Counted from the origin, by the definition.
                    match d {
                        0 => (key::to_signed(cell[0]) + 4).div_euclid(5),
                        1 => 0,
                        _ => (key::to_float(cell[2]) / 0.5).floor() as i64,
                    }
                };
                let offsets: Vec<u64> = (0..3).map(|d| grown.frame().place(d, &grown.dims()[d], cell[d])).collect();
                let curve =
                    if order == "hilbert" { hilbert::tests::index(&offsets, grown.frame().bits()) } else { Vec::new() };
                ((0..3).rev().map(tile).collect::<Vec<i64>>(), curve, cell.to_vec())
            };
            let ranks: Vec<_> = rows.iter().map(|row| rank(&cells[*row as usize])).collect();
            assert!(ranks.is_sorted_by(|a, b| a < b), "{order}");
            // In the first domain they have the same order.
            let inside = all(-4, 9, &[10, 11, 15, 20], &[0.0, 0.75, 2.0].map(key::from_float));
            let rows_in = |schema: &Schema| keys_of(schema, &inside).sort(&Inline, &NeverCancel).unwrap().1;
            assert_eq!(rows_in(&first), rows_in(&grown), "{order}");
            if order == "row" {
                let columns: Vec<Vec<u64>> = (0..3).map(|d| cells.iter().map(|c| c[d]).collect()).collect();
                assert_eq!(layout.coordinates(&keys, 0..cells.len()), Some(columns));
            }
        }
    }

    /// Coordinates at both ends of the whole range, whose differences wrap.
    #[test]
    fn keys_of_the_widest_domain_are_those_of_one_cell_alone() {
        let schema = Schema::from_json(
            r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["-9223372036854775807","9223372036854775807"],
            "tile":"6"}],"attrs":[{"name":"v","dtype":"int8"}]}"#,
        )
        .unwrap();
        let layout = KeyLayout::new(&schema);
        let column: Vec<u64> = [9, u64::MAX, 1, u64::MAX - 4, 2, 1 << 63, u64::MAX - 1, 7, 3].to_vec();
        let keys = layout.keys(&[&column]);
        for (place, coordinate) in column.iter().enumerate() {
            assert_eq!(keys.word(place), layout.key(|_| *coordinate), "{coordinate}");
        }
    }

    #[test]
    fn key_widths() {
        assert!(KeyLayout::new(&schema(SMALL)).bits <= 64);
        assert_eq!(KeyLayout::new(&schema(ONE)).bits, 64);
        assert!(KeyLayout::new(&schema(WIDE)).bits > 128);
    }
}
