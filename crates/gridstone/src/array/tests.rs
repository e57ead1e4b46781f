//! Tests of the floor as a whole, over storages that count, fail and run in threads.

mod crash;
mod damage;
mod folding;
mod life;
mod races;
mod world;
