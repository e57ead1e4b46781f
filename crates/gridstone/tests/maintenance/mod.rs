//! Promise: merges, vacuums, copies, checks and repairs change no cell of a version that is kept.

mod consolidate;
pub(crate) mod consolidate_dense;
pub(crate) mod copies;
mod copies_beside;
mod covered;
mod high_water;
mod leftover;
mod merging;
mod patches;
mod patches_faults;
mod repair;
mod retention;
pub(crate) mod upkeep;
pub(crate) mod vacuum;
mod vacuum_clock;
mod vacuum_schedules;
mod verify;
