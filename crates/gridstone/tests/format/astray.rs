//! Promise: a coordinate outside the box that the index says of its block, behind checksums that are right, is damage for who reads it: never
//! a cell outside the box that was asked for.

use crate::support::stray_cell::check;
use gridstone::storage::{MemoryStorage, Storage};
use std::sync::Arc;

#[test]
fn a_coordinate_outside_its_blocks_box_is_damage_where_it_is_read() {
    check(&(Arc::new(MemoryStorage::new().near()) as Arc<dyn Storage>));
}
