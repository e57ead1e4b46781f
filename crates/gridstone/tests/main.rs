//! One binary for all integration tests, a module per promise.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod block_sizes;
mod child;
mod commit_schedules;
mod concurrent_commits;
mod consolidate;
mod consolidate_dense;
mod crash;
mod damage;
mod edges;
mod io_count;
mod many_writers;
mod oracle;
mod paper_examples;
mod points;
mod processes;
mod refusals;
mod scratch;
mod stopping;
mod upkeep;
mod vectors;
mod verify;
mod writer;
mod writers;
