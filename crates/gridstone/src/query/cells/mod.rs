//! Room `cells`: rows in memory: where they lie, in which order, and how sorted runs of them become one.

pub(super) mod chunk;
pub(super) mod k_way_merge;
pub(super) mod keys;
pub(super) mod layout;
pub(super) mod merged_rows;
pub(super) mod shared_result;
