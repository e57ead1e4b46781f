//! Floor `tile`: the arithmetic of space tiles, data tiles and blocks, and cells as columns.
//!
//! It does no I/O and never gets a path, an offset in a file, or a version. Invariants: a block is always a contiguous
//! run of cells in its tile's cell order; block boundaries are cell counts common to all attributes of a tile.

mod block;
mod block_grid;
mod cell_keys;
mod cells;
mod column;
pub mod coordinates;
mod grid;
mod hilbert;
mod native;
mod numbers;
mod order_key;
mod pairwise;
mod radix;
mod sort;
mod statistics;
mod strided;
mod tied_keys;
mod weight;
mod width;

pub use block::{decode_block, decode_rows, encode_block};
pub use block_grid::{BlockGrid, RelativeBox};
pub use cell_keys::CellKeys;
pub use cells::Cells;
pub use column::{Column, ColumnView, gather_into, try_vec};
pub use grid::{TileGrid, offsets_in, ravel, unravel};
pub use native::Native;
pub use numbers::Numbers;
pub use order_key::KeyLayout;
pub use statistics::{Bound, Statistics, Sum};
pub use strided::Strided;
pub use tied_keys::TiedKeys;
pub use weight::{Weights, block_cells_with_room, cells_with_room};
pub(crate) use width::by_cell_width;
