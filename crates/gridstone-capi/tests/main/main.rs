//! The functions of C, called as C calls them.

#![expect(missing_debug_implementations, reason = "they are tests")]
#![expect(
    clippy::undocumented_unsafe_blocks,
    reason = "each pointer is that of a value of the test, or wrong on purpose"
)]

mod aggregate;
mod arrow_in;
mod arrow_out;
mod fixture;
mod points;
mod producer;
mod result;
mod source;
