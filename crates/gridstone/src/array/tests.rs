//! Tests of the floor as a whole, over storages that count and fail.

mod crash;
mod damage;
mod folding;
mod life;
mod world;
