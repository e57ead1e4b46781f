//! Rows: the state of a store at one version, as a sorted map from bytes to bytes in immutable pages.
//!
//! ```text
//! root       line, top page                 a small store is its top page alone
//! top page   row · row · reference · reference · row …
//! page       row · row · row …              rows from the reference's key up to the next key of the page above
//! ```
//! It is a B-tree that is copied on write (O. Rodeh, "B-trees, shadowing, and clones", ACM Transactions on Storage
//! 2008): an update writes the pages that it changes, and names all others again. Invariants:
//!
//! - keys ascend strictly, in each page and across pages;
//! - a page is loaded when it is first needed, and kept as long as a map refers to it;
//! - nothing of a page is used before its checksum matches the reference.

mod frame;
pub(super) mod key;
mod map;
mod page;
mod update;

pub(super) use frame::ObjectRef;
pub(super) use map::{Inspected, RowMap, Visited};
pub(super) use page::{Entry, Stored, stored};
pub(super) use update::{Change, Press, Role, top_of};

#[cfg(feature = "fuzzing")]
pub(super) use page::{page_survives, value_survives};

#[cfg(test)]
mod tests;
