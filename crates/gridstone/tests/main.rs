//! One binary for all integration tests, a folder per promise.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod child;
mod concurrency;
mod durability;
mod format;
mod life;
mod maintenance;
mod reading;
mod scratch;
mod writer;
mod writers;
mod writing;
