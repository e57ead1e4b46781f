//! Room `dense`: reads a box of cells: plans its tiles, paints fragments over one another, copies into the result.

mod canvas;
pub(super) mod copy;
pub(super) mod overlay;
pub(super) mod prefetch;
pub(super) mod read;
mod readahead;
mod scatter_read;
mod sparse_layer;
