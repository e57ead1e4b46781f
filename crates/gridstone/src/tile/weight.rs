//! The sizes of variable-length values, cell by cell, and how many cells fit into a block.
//!
//! A block has room for a number of bytes besides those of its largest cell:
//!
//! ```text
//! room             cells of a block (bytes of each)
//! 10               | 3 3 3 | 2 900 5 3 | 9 1 |
//! ```
//! So a single cell always fits, and a large one among small ones does not force smaller blocks around it.

use super::{BlockGrid, ColumnView};
use crate::base::limits;
use crate::schema::Order;

/// The content of a block that is filled cell by cell.
#[derive(Debug, Clone, Copy, Default)]
struct Load {
    bytes: u64,
    largest: u64,
}

impl Load {
    /// The load with another cell.
    fn with(self, bytes: u64) -> Self {
        Self { bytes: self.bytes.saturating_add(bytes), largest: self.largest.max(bytes) }
    }

    /// Whether it fits a block with this room; a cell beyond what readers must accept is alone.
    fn fits(self, room: u64) -> bool {
        let rest = self.bytes - self.largest;
        rest == 0 || (rest <= room && self.largest <= limits::VALUE_BYTES_MAX as u64)
    }
}

/// The variable-length columns among columns of the same cells.
#[derive(Debug, Clone)]
pub struct Weights<'a> {
    columns: Vec<ColumnView<'a>>,
}

impl<'a> Weights<'a> {
    /// The weights of the cells of these columns.
    pub fn of(columns: impl IntoIterator<Item = ColumnView<'a>>) -> Self {
        Self { columns: columns.into_iter().filter(|column| column.datatype().is_var()).collect() }
    }

    /// The bytes of cell `row`; a null has none.
    pub fn at(&self, row: usize) -> u64 {
        let of = |c: &ColumnView<'_>| if c.is_valid(row) { c.value(row).len() as u64 } else { 0 };
        self.columns.iter().map(of).sum()
    }

    /// The bytes of the cells `from..to`, including those under nulls.
    pub fn span(&self, from: usize, to: usize) -> u64 {
        let of = |c: &ColumnView<'_>| {
            let offset = |row: usize| c.offsets().and_then(|o| o.get(row)).copied().unwrap_or(0);
            offset(to).saturating_sub(offset(from))
        };
        self.columns.iter().map(of).sum()
    }

    /// Whether any `cells` of all these cells fit into a block together, by a quick check.
    pub fn are_light(&self, cells: u32, room: u64) -> bool {
        let all = |c: &ColumnView<'_>| c.values().len() as u64;
        let longest = |c: &ColumnView<'_>| {
            let pairs = c.offsets().unwrap_or_default().windows(2);
            pairs.map(|pair| if let [from, to] = pair { to - from } else { 0 }).max().unwrap_or(0)
        };
        self.columns.iter().map(all).sum::<u64>() <= room
            || self.columns.iter().map(longest).sum::<u64>().saturating_mul(u64::from(cells)) <= room
    }
}

/// How many of the cells with the weights `weights`, the first of which is number `first` of its tile, come before a
/// block of `block_cells` cells has no room for the next one. `before`: the weight of the block's cells before them.
pub fn cells_with_room(
    before: impl IntoIterator<Item = u64>,
    weights: impl IntoIterator<Item = u64>,
    (first, block_cells): (usize, u32),
    room: u64,
) -> usize {
    let block_cells = (block_cells as usize).max(1);
    let mut load = before.into_iter().fold(Load::default(), Load::with);
    let mut count = 0;
    for bytes in weights {
        load = if (first + count) % block_cells == 0 { Load::default() } else { load }.with(bytes);
        if !load.fits(room) {
            break;
        }
        count += 1;
    }
    count
}

/// The number of cells of a dense block: `most`, or a half of it, a quarter and so on. Every block of a tile of this
/// shape then has room.
pub fn block_cells_with_room(weights: &[u64], (shape, order): (&[u64], Order), most: u32, room: u64) -> u32 {
    let mut cells = most.max(1);
    while cells > 1 && !all_fit(weights, &BlockGrid::new(shape, order, u64::from(cells)), room) {
        cells /= 2;
    }
    cells
}

fn all_fit(weights: &[u64], blocks: &BlockGrid, room: u64) -> bool {
    (0..blocks.len()).all(|block| {
        let from = blocks.start(block) as usize;
        let cells = weights.get(from..from + blocks.cells(block) as usize).unwrap_or_default();
        cells.iter().fold(Load::default(), |load, bytes| load.with(*bytes)).fits(room)
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::AlignedBuf;
    use crate::schema::Datatype;
    use crate::tile::Column;
    use proptest::prelude::*;

    fn fits(cells: &[u64], room: u64) -> bool {
        cells.iter().sum::<u64>() - cells.iter().max().copied().unwrap_or(0) <= room
    }

    proptest! {
        /// No block exceeds its room, apart from its largest cell, and twice as many cells would not have fitted.
        #[test]
        fn every_block_of_a_tile_has_room(shape in proptest::collection::vec(1u64..9, 1..4), seeds in proptest::collection::vec(0u64..60, 512),
            most in 1u32..70, room in 0u64..200, row in any::<bool>()) {
            let order = if row { Order::Row } else { Order::Col };
            let weights = &seeds[..shape.iter().product::<u64>() as usize];
            let fit = |cells: u32| {
                let blocks = BlockGrid::new(&shape, order, u64::from(cells));
                (0..blocks.len()).all(|b| fits(&weights[blocks.start(b) as usize..][..blocks.cells(b) as usize], room))
            };
            let cells = block_cells_with_room(weights, (&shape, order), most, room);
            prop_assert!(cells == 1 || fit(cells));
            prop_assert!(cells == most || !fit(most));
        }

        /// The cells of a run that are taken before a block is full, in whatever portions they come.
        #[test]
        fn every_block_of_a_run_has_room(weights in proptest::collection::vec(0u64..60, 1..60), cut in 0usize..60, block in 1u32..9, room in 0u64..200) {
            let taken = cells_with_room([], weights.iter().copied(), (0, block), room);
            prop_assert!(taken > 0 && weights[..taken].chunks(block as usize).all(|cells| fits(cells, room)));
            if let Some(next) = weights.get(taken) {
                let from = taken / block as usize * block as usize;
                prop_assert!(taken > from && !fits(&[&weights[from..taken], &[*next]].concat(), room));
            }
            let cut = cut.min(taken);
            let from = cut / block as usize * block as usize;
            let rest = cells_with_room(weights[from..cut].iter().copied(), weights[cut..].iter().copied(), (cut, block), room);
            prop_assert_eq!(cut + rest, taken);
        }
    }

    #[test]
    fn nulls_weigh_nothing_and_what_is_seen_at_a_glance_holds() {
        let texts = Column::new(
            Datatype::String,
            AlignedBuf::from_slice(b"aaaabbbbbbc"),
            Some(vec![0, 4, 10, 11]),
            Some(vec![1, 0, 1]),
        );
        let (texts, numbers) = (texts.unwrap(), Column::empty(Datatype::Int8, false));
        let weights = Weights::of([texts.view(), numbers.view()]);
        assert_eq!([0, 1, 2].map(|row| weights.at(row)), [4, 0, 1]);
        assert_eq!((weights.span(0, 3), weights.span(1, 2), weights.span(2, 2)), (11, 6, 0));
        assert!(weights.are_light(9, 11) && weights.are_light(1, 6) && !weights.are_light(2, 10));
        assert!(Weights::of([numbers.view()]).are_light(u32::MAX, 0));
    }

    #[test]
    fn a_cell_that_is_too_large_stands_alone() {
        let large = limits::VALUE_BYTES_MAX as u64 + 1;
        assert_eq!(cells_with_room([], [large, 1], (0, 8), 100), 1);
        assert_eq!(cells_with_room([], [large - 1, 1, 99, 1], (0, 8), 100), 3);
        assert_eq!(block_cells_with_room(&[large, 1], (&[2], Order::Row), 8, 100), 1);
    }
}
