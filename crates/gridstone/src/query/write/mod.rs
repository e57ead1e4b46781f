//! Room `write`: cells -> tiles -> encoded tiles -> a staged fragment.

pub(super) mod cells;
pub(super) mod dense;
pub(super) mod external;
pub(super) mod order;
pub(super) mod pipelines;
pub(super) mod sorted;
pub(super) mod stage;
pub(super) mod stream;
pub(super) mod tiler;
