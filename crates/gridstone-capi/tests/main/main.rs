//! The C interface, called as C calls it. One binary for all tests; `support` and `fixture` have what several of them use.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each pointer is that of a value of the test, or wrong on purpose"
)]

mod aggregate;
mod arrow_in;
mod arrow_out;
mod call;
mod cancel;
mod deletion;
mod evolution;
mod fixture;
mod group;
mod history;
mod metadata;
mod points;
mod producer;
mod receipt;
mod region;
mod result;
mod source;
mod support;
mod transaction;
mod upkeep;
mod writer;
