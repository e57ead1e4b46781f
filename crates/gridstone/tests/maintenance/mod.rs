//! Promise: merges, vacuums, copies, checks and repairs change no cell of a version that is kept.

mod consolidate;
mod consolidate_dense;
mod copies;
mod copies_apart;
mod copies_beside;
mod copies_onward;
mod covered;
mod high_water;
mod leftover;
mod merging;
mod patches;
mod patches_faults;
mod repair;
mod repair_equal;
mod retention;
mod upkeep;
mod vacuum;
mod vacuum_clock;
mod vacuum_schedules;
mod verify;
