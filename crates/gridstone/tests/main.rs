//! One binary for all integration tests, a folder per promise; `support` has what several of them use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

use concurrency::{processes, stress};
use durability::{crash, kill};
use writing::receipts;

mod attached;
mod concurrency;
mod durability;
mod examples;
mod format;
mod maintenance;
mod reading;
mod support;
mod writing;

/// Where child processes begin. Only [`support::child::Child::start`] runs it, by name.
#[test]
#[ignore = "the body of the processes that other tests start"]
fn entry() {
    support::child::play(|role, store, number| match role {
        "write-for-ever" => crash::write_for_ever(store),
        "write-beside-others" => processes::write_beside_others(store, number),
        "read-beside-writers" => processes::read_beside_writers(store, number),
        "write-a-part" => receipts::write_a_part(store, number),
        "write-in-threads" => stress::write_in_threads(store, number),
        "live-a-chapter" => kill::live_a_chapter(store, number),
        other => panic!("no role {other}"),
    });
}
