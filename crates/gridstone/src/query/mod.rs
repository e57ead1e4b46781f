//! Floor `query`: what reads and writes cells: plans, fetching, painting dense results, merging sparse ones, staging
//! fragments.
//!
//! A read is `plan -> fetch -> decode -> merge -> copy out`; dense and sparse reads differ in plan and merge only. A
//! write is `cells -> tiles -> encoded tiles -> fragment`; nothing is visible before the `store` floor commits it.
//! Invariants: newest order wins per cell, whatever the kind of fragment; no query knows a path.

mod aggregate;
mod block;
mod cells;
mod damage;
mod delete;
mod dense;
mod footprint;
mod merge;
mod overlay;
mod points;
mod positions;
mod request;
mod scan;
mod select;
mod sparse;
mod write;

pub use aggregate::{
    Aggregate, Aggregation, Answer, Answers, BudgetShare, By, PartialTable, Question, Reduction, ResultColumn, Where,
    Width,
};
pub use block::masks::read_mask;
pub use block::open::{open_fragment, open_uncached};
pub use block::sparse::outside_bounds;
pub use damage::{Around, LostPage, Skipped, around, is_damage};
pub use delete::delete_where;
pub use delete::request::DeleteRequest;
pub use dense::plan::touched_cells;
pub use dense::read::{read_dense, read_dense_into};
pub use footprint::Footprint;
pub use merge::cells::{RewriteCells, rewrite_cells};
pub use merge::dense::{Rewrite, Rewritten, preload_small, rewrite_dense};
pub use merge::dense_as_cells::dense_as_cells;
pub use merge::external_sort::UnsortedCells;
pub use merge::passes::merge_in_passes;
pub use merge::tombstones::merge_tombstones;
pub use overlay::sorted_copy::format::{MEMBERS_MAX, MEMBERS_MIN};
pub use overlay::sorted_copy::write::write_sorted_copy;
pub use points::list::Points;
pub use points::read_points;
pub use positions::{AxisPositions, Chosen, Mask, Positions, SparsePositions, read_positions};
pub use request::{ReadContext, ReadOrder, Request, Target, WriteContext};
pub use scan::Scan;
pub use scan::buffers::{OutColumn, Portions};
pub use select::{TileAnswers, read_where};
pub use sparse::read_sparse;
pub use write::cells::{CellWrite, sorting_bytes, write_cells, write_tombstones};
pub use write::dense::{DenseWrite, check_columns, write_dense};
pub use write::external::write_external;
pub use write::order::Dedup;
pub use write::sorted::{check_sorted, write_sorted};
pub use write::stream::CellStream;
