//! Room `dense`: reads a box of cells: plans its tiles, paints fragments over one another, copies into the result.

pub(super) mod canvas;
pub(super) mod copy;
pub(super) mod layer;
pub(super) mod overlay;
mod paint;
mod piece;
pub(super) mod plan;
pub(super) mod prefetch;
pub(super) mod read;
mod readahead;
pub(super) mod result;
mod scatter_read;
mod sparse_layer;
