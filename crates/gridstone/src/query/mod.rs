//! Floor `query`: what reads and writes cells: plans, fetching, painting dense results, merging sparse ones, staging
//! fragments.
//!
//! A read is `plan -> fetch -> decode -> merge -> copy out`; dense and sparse reads differ in plan and merge only. A
//! write is `cells -> tiles -> encoded tiles -> fragment`; nothing is visible before the `store` floor commits it.
//! Invariants: newest order wins per cell, whatever the kind of fragment; no query knows a path.

mod begun;
mod buried;
mod canvas;
mod choices_ahead;
mod cutter;
mod damage;
mod delete;
mod deletions;
mod deliver;
mod dense;
mod dense_overlay;
mod fetch;
mod filter;
mod footprint;
mod gather;
mod layout;
mod live_chunks;
mod masks;
mod merge;
mod neighbours;
mod open;
mod ordered_cells;
mod overlay;
mod points;
mod portions;
mod request;
mod rewrite;
mod rewrite_cells;
mod run;
mod scan;
mod slots;
mod sorted_copy;
mod sparse;
mod sparse_apart;
mod sparse_blocks;
mod sparse_painter;
mod stage;
mod straight;
mod stream;
mod stretches;
mod sweeper;
mod unboxed;
mod units_ahead;
mod unsorted;
mod write_cells;
mod write_dense;
mod write_sorted;

pub use buried::united;
pub use damage::{Around, LostPage, Skipped, around, is_damage};
pub use delete::{Doomed, delete_where};
pub use dense::{read_dense, read_dense_into, touched_cells};
pub use filter::read_where;
pub use footprint::Footprint;
pub use gather::gathered;
pub use masks::read_mask;
pub use open::{open_fragment, open_uncached};
pub use points::{Points, read_points};
pub use portions::{OutColumn, Portions};
pub use request::{ReadContext, ReadOrder, Request, Target, WriteContext};
pub use rewrite::{Rewrite, Rewritten, rewrite_dense, warm};
pub use rewrite_cells::{RewriteCells, rewrite_cells};
pub use scan::Scan;
pub use sorted_copy::{MEMBERS_MAX, MEMBERS_MIN, write_sorted_copy};
pub use sparse::read_sparse;
pub use sparse_blocks::outside_bounds;
pub use stream::CellStream;
pub use unboxed::unboxed;
pub use unsorted::UnsortedCells;
pub use write_cells::{CellWrite, Dedup, sorting_bytes, write_cells, write_tombstones};
pub use write_dense::{DenseWrite, write_dense};
pub use write_sorted::{check_sorted, write_sorted};
