//! Gridstone: an embeddable storage engine for dense and sparse multi-dimensional arrays.
//!
//! The floors, from the bottom (each imports only from those below it, checked by `cargo xtask tidy`):
//! `base`, `runtime`, `codec`, `schema`, `tile`, `condition`, `fragment`, `storage`, `store`, `query`, `maintain`, `engine`.
//! Applications use [`engine`]; the lower floors are public for tests, tools and adapters.

pub mod base;
pub mod codec;
pub mod condition;
pub mod engine;
pub mod fragment;
pub mod maintain;
pub mod query;
pub mod runtime;
pub mod schema;
pub mod storage;
pub mod store;
pub mod tile;
