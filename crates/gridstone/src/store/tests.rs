//! Tests of the floor as a whole, over storages that count and fail.

mod commit_keys;
mod conflicts;
mod crash;
mod damage;
mod evolution;
mod folding;
mod gaps;
mod hidden;
mod hints;
mod life;
mod outcome;
mod parts;
mod serializable;
pub(super) mod world;
