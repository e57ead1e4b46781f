//! Promise: an acknowledged commit survives kills, power cuts and full disks.

pub(crate) mod crash;
mod full_disk;
pub(crate) mod kill;
mod power;
