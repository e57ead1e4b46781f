//! Fuzz targets over everything that Gridstone decodes, and a driver for them.
//!
//! A [`Target`] takes any bytes and must not panic, nor ask for much memory at once; what decodes must encode to
//! something that decodes to the same. The driver ([`drive`]) starts from objects of real stores ([`corpus`]) and
//! changes them ([`mutate`]); the targets put right checksums on what they get ([`seal`]), so that what lies behind
//! the checksums is reached. A target is a plain function of bytes: libFuzzer can call it as well.

#![expect(clippy::unwrap_used, reason = "a fuzzer fails by panicking")]

mod copies;
pub mod corpus;
pub mod drive;
mod foreign;
mod foreign_files;
pub mod mutate;
mod receipts;
pub mod seal;
mod sealed;
mod stores;
pub mod targets;

pub use drive::{Finding, drive};
pub use targets::{TARGETS, Target};

/// Notes the largest allocation, which a target bounds.
#[global_allocator]
static ALLOCATOR: gridstone_testkit::Measured = gridstone_testkit::Measured;
