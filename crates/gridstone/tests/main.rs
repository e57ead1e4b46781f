//! One binary for all integration tests, a module per promise.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod ahead;
mod around;
mod block_sizes;
mod child;
mod commit_schedules;
mod concurrent_commits;
mod consolidate;
mod consolidate_dense;
mod copies;
mod copies_beside;
mod crash;
mod damage;
mod doubles;
mod edges;
mod evolution;
mod filtered;
mod group_commit;
mod group_schedules;
mod io_count;
mod kill;
mod life;
mod many_writers;
mod moves;
#[cfg(feature = "object-stores")]
mod objects;
mod oracle;
mod overtaken;
mod paper_examples;
mod points;
mod portions;
mod power;
mod processes;
mod pure_rust;
mod receipts;
mod refusals;
mod repair;
mod retention;
mod scratch;
mod sealing;
mod serializable;
mod sorted_copies;
mod staged_deletes;
mod stopping;
mod stress;
mod together;
mod transactions;
mod unsorted;
mod upkeep;
mod vacuum;
mod vacuum_schedules;
mod vectors;
mod verify;
mod writer;
mod writers;
