//! Keys whose words several cells may share: among equal words the coordinates decide, in row order.
//!
//! ```text
//! words  w0          w1          w2          …      ascending once sorted
//! cells  x0 y0 z0    x1 y1 z1    x2 y2 z2    …      looked at where words are equal
//! ```
//!
//! Equal words are not equal cells: nothing here takes them for such.

use super::radix::{RadixKey, sort_keys};
use crate::base::{Cancel, Result, Spawner, Task};
use std::cmp::Ordering;
use std::ops::Range;

/// The keys of a run of cells: a word each, and its coordinates as ordered keys.
#[derive(Debug, Clone)]
pub struct TiedKeys<K> {
    words: Vec<K>,
    /// Coordinates per cell.
    ndim: usize,
    /// The coordinates of cell after cell.
    cells: Vec<u64>,
}

/// How many rows are processed between two checks for cancellation: a few milliseconds of work.
const PORTION: usize = if cfg!(miri) { 1 << 8 } else { 1 << 18 };
/// How many cells one task gathers.
const GATHERED: usize = 1 << 16;
/// The largest run of equal words that is sorted by comparison.
const COMPARED_MAX: usize = if cfg!(miri) { 8 } else { 192 };

impl<K: Copy> TiedKeys<K> {
    /// The keys of cells with these words and coordinates, a column for each of `ndim` dimensions.
    pub(super) fn new(words: Vec<K>, ndim: usize, columns: &[&[u64]]) -> Self {
        let mut cells = vec![0; words.len() * ndim];
        for (dim, column) in columns.iter().enumerate() {
            let slots = cells.iter_mut().skip(dim).step_by(ndim.max(1));
            slots.zip(*column).for_each(|(slot, coordinate)| *slot = *coordinate);
        }
        Self { words, ndim, cells }
    }

    /// The number of cells.
    pub(super) fn len(&self) -> usize {
        self.words.len()
    }

    /// The word of a cell.
    pub(super) fn word(&self, row: usize) -> Option<K> {
        self.words.get(row).copied()
    }

    fn cell(&self, row: usize) -> &[u64] {
        self.cells.get(row * self.ndim..(row + 1) * self.ndim).unwrap_or_default()
    }

    /// The word and the coordinates of a cell, which compare as cells do; `None` past the end.
    pub fn key(&self, row: usize) -> Option<(K, &[u64])> {
        self.word(row).map(|word| (word, self.cell(row)))
    }

    /// The coordinates of the cells at `places`, a column per dimension.
    pub(super) fn columns(&self, places: Range<usize>) -> Vec<Vec<u64>> {
        let cells = self.cells.get(places.start * self.ndim..places.end * self.ndim).unwrap_or_default();
        (0..self.ndim).map(|dim| cells.iter().skip(dim).step_by(self.ndim).copied().collect()).collect()
    }

    /// Reserves room for so many cells more.
    pub(super) fn reserve(&mut self, more: usize) {
        self.words.reserve_exact(more);
        self.cells.reserve_exact(more * self.ndim);
    }

    /// Appends the keys of `other`.
    pub(super) fn append(&mut self, other: &Self) {
        self.words.extend_from_slice(&other.words);
        self.cells.extend_from_slice(&other.cells);
    }

    /// The keys of `rows`, in that order.
    pub(super) fn pick(&self, rows: &[u32]) -> Self {
        let words = rows.iter().filter_map(|row| self.word(*row as usize)).collect();
        let cells = rows.iter().flat_map(|row| self.cell(*row as usize)).copied().collect();
        Self { words, ndim: self.ndim, cells }
    }
}

impl<K: RadixKey> TiedKeys<K> {
    /// Compares cell `i` with cell `j` of `other`.
    pub(super) fn compare(&self, i: usize, other: &Self, j: usize) -> Ordering {
        self.word(i).cmp(&other.word(j)).then_with(|| self.cell(i).cmp(other.cell(j)))
    }

    /// The first row, from 1 on, that compares to the one before it as `how`.
    pub(super) fn first_step(&self, how: Ordering, cancel: &dyn Cancel) -> Result<Option<usize>> {
        for from in (1..self.len()).step_by(PORTION) {
            cancel.check()?;
            let mut portion = from..(from + PORTION).min(self.len());
            if let Some(at) = portion.find(|at| self.compare(*at, self, at - 1) == how) {
                return Ok(Some(at));
            }
        }
        Ok(None)
    }

    /// The keys in ascending order and the rows they come from, equal cells in row order.
    pub(super) fn sort(mut self, spawner: &dyn Spawner, cancel: &dyn Cancel) -> Result<(Self, Vec<u32>)> {
        let (words, mut rows) = sort_keys(std::mem::take(&mut self.words), spawner, cancel)?;
        let mut rest = rows.as_mut_slice();
        for (number, run) in words.chunk_by(|a, b| a == b).enumerate() {
            if number.is_multiple_of(PORTION) {
                cancel.check()?;
            }
            let (tied, after) = rest.split_at_mut(run.len());
            rest = after;
            if tied.len() > 1 {
                self.sort_tied(tied, 0, spawner, cancel)?;
            }
        }
        let moved = rows.iter().zip(0..).any(|(row, place)| *row != place);
        let cells = if moved { self.gathered(&rows, spawner, cancel)? } else { self.cells };
        Ok((Self { words, ndim: self.ndim, cells }, rows))
    }

    /// Sorts ascending rows by their coordinates from number `dim` on; those of one cell stay as they are.
    fn sort_tied(&self, rows: &mut [u32], dim: usize, spawner: &dyn Spawner, cancel: &dyn Cancel) -> Result<()> {
        let coordinates = |row: u32| self.cell(row as usize).get(dim..).unwrap_or_default();
        if rows.len() <= COMPARED_MAX {
            rows.sort_unstable_by(|a, b| coordinates(*a).cmp(coordinates(*b)).then(a.cmp(b)));
            return Ok(());
        }
        if dim >= self.ndim {
            return Ok(());
        }
        let column = rows.iter().map(|row| coordinates(*row).first().copied().unwrap_or(0)).collect();
        let (sorted, places) = sort_keys::<u64>(column, spawner, cancel)?;
        let moved: Vec<u32> = places.iter().filter_map(|place| rows.get(*place as usize).copied()).collect();
        rows.copy_from_slice(&moved);
        let mut rest = rows;
        for run in sorted.chunk_by(|a, b| a == b) {
            let (tied, after) = rest.split_at_mut(run.len());
            rest = after;
            if tied.len() > 1 {
                self.sort_tied(tied, dim + 1, spawner, cancel)?;
            }
        }
        Ok(())
    }

    /// The coordinates of `rows`, cell after cell, gathered by all threads.
    fn gathered(&self, rows: &[u32], spawner: &dyn Spawner, cancel: &dyn Cancel) -> Result<Vec<u64>> {
        let mut cells = vec![0; rows.len() * self.ndim];
        let runs = cells.chunks_mut(GATHERED * self.ndim.max(1)).zip(rows.chunks(GATHERED));
        let task = |(slots, rows): (&'_ mut [u64], &'_ [u32])| {
            for (slot, row) in slots.chunks_mut(self.ndim.max(1)).zip(rows) {
                slot.copy_from_slice(self.cell(*row as usize));
            }
        };
        let mut tasks: Vec<Task<'_>> = Vec::new();
        for run in runs {
            tasks.push(Box::new(move || {
                task(run);
                Ok(())
            }));
        }
        spawner.each(tasks, cancel)?;
        Ok(cells)
    }
}

#[cfg(test)]
mod tests {
    use super::super::{CellKeys, KeyLayout, hilbert};
    use crate::base::{Inline, NeverCancel};
    use crate::schema::{Datatype, Extent, KeyRange, Schema, Subarray, key};
    use proptest::prelude::*;
    use std::cmp::Ordering;

    /// A schema along a curve, whose first domain was smaller: dimensions and frame from numbers.
    fn schema(kinds: &[(u8, u8)], frame: u8, bits: u32, tile_order: &str) -> Schema {
        let dim = |(number, (kind, low)): (usize, &(u8, u8))| {
            let low = i64::from(*low);
            let (dtype, ends, tile) = match kind % 6 {
                0 => ("int64", [low - 40, low + 23].map(|end| end.to_string()), None),
                1 => ("int32", [low - 90, low + 9].map(|end| end.to_string()), Some("7")),
                2 => ("uint16", [low, low + 30].map(|end| end.to_string()), Some("31")),
                3 => ("float64", [format!("-{low}.5"), format!("{low}.25")], None),
                4 => ("float32", [format!("-{low}.5"), format!("{low}.25")], Some("0.75")),
                _ => ("int64", [i64::MIN + 1, i64::MAX].map(|end| end.to_string()), Some("1000")),
            };
            let tile = tile.map_or("null".to_owned(), |tile| format!("\"{tile}\""));
            let [lo, hi] = ends;
            format!(r#"{{"name":"d{number}","dtype":"{dtype}","domain":["{lo}","{hi}"],"tile":{tile}}}"#)
        };
        let dims: Vec<String> = kinds.iter().enumerate().map(dim).collect();
        let text = format!(
            r#"{{"sparse":true,"tile_order":"{tile_order}","cell_order":"hilbert","dims":[{}],"attrs":[{{"name":"v","dtype":"int8"}}]}}"#,
            dims.join(",")
        );
        let schema = Schema::from_json(&text).unwrap();
        if frame.is_multiple_of(4) {
            return schema;
        }
        let made = schema.clone().of_new_array();
        if frame % 4 == 1 {
            return made;
        }
        let side = |dim: &crate::schema::Dimension| match dim.extent() {
            Extent::Cells(n) => format!(r#"["0","{}"]"#, n - 1),
            _ => format!(r#"["{}","{}"]"#, dim.range().lo, dim.range().lo + (dim.range().hi - dim.range().lo) / 2),
        };
        let sides: Vec<String> = schema.dims().iter().map(side).collect();
        let by = if frame % 4 == 2 { "value" } else { "key" };
        let frame = format!(r#","frame":{{"by":"{by}","bits":{bits},"sides":[{}]}}}}"#, sides.join(","));
        let rest = made.to_stored_json();
        Schema::from_stored_json(&format!("{}{frame}", rest.split(",\"frame\":").next().unwrap())).unwrap()
    }

    /// The domain grown at both ends, as far as types go.
    fn grown(schema: &Schema) -> Schema {
        let range = |dim: &crate::schema::Dimension| {
            let ends = |lo: i64, hi: i64| match dim.datatype().is_float() {
                true => (key::from_float(lo as f64), key::from_float(hi as f64)),
                false => (key::from_signed(lo), key::from_signed(hi)),
            };
            let (lo, hi) = if dim.datatype() == Datatype::UInt16 { (0, 400) } else { ends(-400, 400) };
            KeyRange::new(lo.min(dim.range().lo), hi.max(dim.range().hi))
        };
        schema.reaching(&Subarray::new(schema.dims().iter().map(range).collect()))
    }

    /// A coordinate in the domain: close to others, so that many are equal or share a place.
    fn coordinate(dim: &crate::schema::Dimension, number: u16) -> u64 {
        let (range, near) = (dim.range(), i64::from(number % 97) - 48);
        let wanted = match (dim.datatype().is_float(), dim.datatype()) {
            (true, _) => key::from_float(near as f64 / 8.0),
            (_, Datatype::UInt16) => near.unsigned_abs(),
            _ => key::from_signed(near),
        };
        if number.is_multiple_of(11) { range.lo } else { wanted.clamp(range.lo, range.hi) }
    }

    /// The definition: tile numbers from the origin, the index along the curve, the coordinates.
    fn rank(schema: &Schema, cell: &[u64]) -> (Vec<i128>, Vec<u64>, Vec<u64>) {
        let tile = |d: usize| {
            let (dim, k) = (&schema.dims()[d], cell[d]);
            match dim.extent() {
                Extent::Whole => 0,
                Extent::Cells(n) => (i128::from(k) - i128::from(dim.origin())).div_euclid(i128::from(n)),
                Extent::Length(e) => ((key::to_float(k) - key::to_float(dim.origin())) / e).floor() as i128,
            }
        };
        let frame = schema.frame();
        let places: Vec<u64> =
            cell.iter().zip(schema.dims()).enumerate().map(|(d, (k, dim))| frame.place(d, dim, *k)).collect();
        let tiles = schema.options().tile_order.slowest_first(cell.len()).map(tile).collect();
        (tiles, hilbert::tests::index(&places, frame.bits()), cell.to_vec())
    }

    fn keys_of(layout: &KeyLayout, cells: &[Vec<u64>], ndim: usize) -> CellKeys {
        let columns: Vec<Vec<u64>> = (0..ndim).map(|d| cells.iter().map(|c| c[d]).collect()).collect();
        layout.keys(&columns.iter().map(Vec::as_slice).collect::<Vec<_>>())
    }

    fn check(schema: &Schema, cells: &[Vec<u64>]) {
        let (layout, ndim) = (KeyLayout::new(schema), schema.ndim());
        let keys = keys_of(&layout, cells, ndim);
        let ranks: Vec<_> = cells.iter().map(|cell| rank(schema, cell)).collect();
        for (i, a) in ranks.iter().enumerate() {
            let word = layout.key(|d| cells[i][d]);
            assert!(word == keys.word(i) && word.is_some() == layout.has_words());
            for (j, b) in ranks.iter().enumerate() {
                assert_eq!(keys.compare(i, &keys, j), a.cmp(b), "{:?} {:?}", cells[i], cells[j]);
                if layout.has_words() {
                    // The word is the tile and the index, no less and no more.
                    assert_eq!(word.cmp(&keys.word(j)), (&a.0, &a.1).cmp(&(&b.0, &b.1)));
                    assert!(layout.is_tied() || word != keys.word(j) || cells[i] == cells[j]);
                }
            }
        }
        let (sorted, rows) = keys.clone().sort(&Inline, &NeverCancel).unwrap();
        let ascends =
            |w: &[u32]| ranks[w[0] as usize].cmp(&ranks[w[1] as usize]).then(w[0].cmp(&w[1])) == Ordering::Less;
        assert!(rows.len() == cells.len() && rows.windows(2).all(ascends));
        let inside: Vec<Vec<u64>> = rows.iter().map(|row| cells[*row as usize].clone()).collect();
        let again = keys_of(&layout, &inside, ndim);
        let mut appended = keys_of(&layout, &inside[..inside.len() / 2], ndim);
        appended.reserve(inside.len());
        appended.append(&keys_of(&layout, &inside[inside.len() / 2..], ndim));
        for other in [&again, &appended, &keys.pick(&rows)] {
            assert!((0..cells.len()).all(|i| sorted.compare(i, other, i) == Ordering::Equal));
        }
        assert_eq!(sorted.first_step(Ordering::Less, &NeverCancel).unwrap(), None);
        let equal = (1..inside.len()).find(|i| inside[*i] == inside[i - 1]);
        assert_eq!(sorted.first_step(Ordering::Equal, &NeverCancel).unwrap(), equal);
        for (i, a) in ranks.iter().enumerate() {
            let below = rows.iter().filter(|row| ranks[**row as usize] < *a).count();
            assert_eq!(sorted.lower_bound(0, &keys, i), below);
            assert_eq!(sorted.lower_bound(below / 2, &keys, i), below);
        }
        if layout.tells_coordinates() {
            let column = |d: usize| inside.iter().skip(1).map(|cell| cell[d]).collect::<Vec<u64>>();
            let told = layout.coordinates(&sorted, 1.min(inside.len())..inside.len()).unwrap();
            assert_eq!(told, (0..ndim).map(column).collect::<Vec<_>>());
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: if cfg!(miri) { 4 } else { 600 }, ..ProptestConfig::default() })]

        #[test]
        fn cells_have_the_order_of_tile_index_and_coordinates(
            kinds in proptest::collection::vec((any::<u8>(), 1u8..20), 1..5), (frame, bits) in (any::<u8>(), 0u32..7),
            col in any::<bool>(), grows in any::<bool>(),
            numbers in proptest::collection::vec(any::<[u16; 4]>(), 0..if cfg!(miri) { 6 } else { 40 })) {
            let first = schema(&kinds, frame, bits, if col { "col" } else { "row" });
            let schema = if grows { grown(&first) } else { first };
            let cell = |numbers: &[u16; 4]| schema.dims().iter().zip(numbers).map(|(d, n)| coordinate(d, *n)).collect();
            check(&schema, &numbers.iter().map(cell).collect::<Vec<Vec<u64>>>());
        }
    }

    /// More cells with one word than are compared one by one: those are dealt by their coordinates, one after the other.
    #[test]
    fn many_cells_of_one_word_are_sorted_by_their_coordinates() {
        let tied = schema(&[(0, 1), (3, 5), (0, 1)], 2, 1, "row");
        let count = if cfg!(miri) { 40u64 } else { 5_000 };
        // Three values of the first, a few of the second, and each cell twice.
        let cell = |n: u64| {
            let n = n * 7_919 % (count / 2);
            vec![
                key::from_signed(-40 + (n % 3) as i64),
                key::from_float((n % 11) as f64 / 64.0 - 5.0),
                key::from_signed(-(n as i64 % 13) - 8),
            ]
        };
        let cells: Vec<Vec<u64>> = (0..count).map(cell).collect();
        let layout = KeyLayout::new(&tied);
        let (keys, rows) = keys_of(&layout, &cells, 3).sort(&Inline, &NeverCancel).unwrap();
        assert!((1..cells.len()).all(|at| keys.word(at) == keys.word(0)), "one place for all");
        let mut expected: Vec<u32> = (0..count as u32).collect();
        expected.sort_by_key(|row| (cells[*row as usize].clone(), *row));
        assert_eq!(rows, expected);
        let untied = KeyLayout::new(&schema(&[(0, 1), (0, 5)], 0, 0, "row"));
        assert!(layout.is_tied() && !untied.is_tied());
        assert!(layout.key_bytes() == 32 && untied.key_bytes() == 8);
    }

    /// Keys of new arrays are no longer than those of arrays with a frame by key.
    #[test]
    fn words_are_no_longer_than_before() {
        for (kinds, was, is) in [
            (&[(0, 1), (0, 1)][..], (8, false), (8, false)),
            (&[(1, 1), (2, 1)], (8, false), (8, false)),
            (&[(3, 9), (3, 9)], (16, false), (8 + 16, true)),
            (&[(4, 9), (4, 9)], (24, false), (16 + 16, true)),
            (&[(3, 9), (3, 9), (0, 1)], (24, false), (8 + 24, true)),
            (&[(5, 1), (5, 1)], (24, false), (24, false)),
        ] {
            let first = schema(kinds, 0, 0, "row");
            let new = first.clone().of_new_array();
            let found = |schema: &Schema| (KeyLayout::new(schema).key_bytes(), KeyLayout::new(schema).is_tied());
            assert_eq!((found(&first), found(&new)), (was, is), "{kinds:?}");
            assert_eq!(KeyLayout::new(&new).has_words(), kinds[0].0 < 5);
        }
    }
}
