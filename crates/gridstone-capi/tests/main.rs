//! The functions of C, called as C calls them; a folder per kind of function.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(
    clippy::undocumented_unsafe_blocks,
    reason = "each pointer is that of a value of the test, or wrong on purpose"
)]

mod answers;
