//! The C interface, called as C calls it. One binary for all tests; `support` has what several of them use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]

mod deletion;
mod evolution;
mod group;
mod history;
mod metadata;
mod receipt;
mod support;
mod transaction;
mod upkeep;
mod writer;
