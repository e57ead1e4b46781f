//! Room `merge`: fragments become one: dense boxes, sparse cells, tombstones; and cells in any order become sorted ones.

pub(super) mod cells;
pub(super) mod dense;
pub(super) mod dense_as_cells;
pub(super) mod external_sort;
mod input;
pub(super) mod passes;
pub(super) mod tombstones;
