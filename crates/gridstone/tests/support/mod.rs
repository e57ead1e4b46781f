//! What several tests use: stores and arrays to begin with, writers with a known history, processes, clocks and dice.

pub(crate) mod array;
pub(crate) mod child;
pub(crate) mod columns;
pub(crate) mod copy;
pub(crate) mod crowd;
pub(crate) mod dense;
pub(crate) mod gate;
pub(crate) mod life;
pub(crate) mod line;
pub(crate) mod manifest;
pub(crate) mod pair;
pub(crate) mod random;
pub(crate) mod room;
pub(crate) mod scratch;
pub(crate) mod sorted;
pub(crate) mod sparse;
pub(crate) mod store;
pub(crate) mod stray_cell;
pub(crate) mod writer;
pub(crate) mod writers;
