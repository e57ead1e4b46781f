//! Gridstone: an embeddable storage engine for **dense and sparse multi-dimensional arrays**.
//!
//! Every write is an atomic commit, every version stays readable, readers and writers never wait for each other, and
//! there is no server: a store is a folder, a bucket of an object store, or memory.
//!
//! # A first array
//!
//! ```
//! use gridstone::{Array, Attribute, Call, ColumnView, Context, Datatype, Dimension, Options, Order, Schema, SchemaOptions, Span};
//!
//! # fn main() -> gridstone::Result<()> {
//! // What arrays share: threads, a memory budget, a cache.
//! let context = Context::new(&Options::default())?;
//!
//! // Rows 0 to 1,999 and columns 0 to 2,999 in tiles of 500 x 500, a byte in each cell.
//! let dims = vec![
//!     Dimension::new("y", Datatype::Int64, "0", "1999", Some("500"))?,
//!     Dimension::new("x", Datatype::Int64, "0", "2999", Some("500"))?,
//! ];
//! let grey = Attribute::new("grey", Datatype::UInt8, false, None, "auto")?;
//! let schema = Schema::new(dims, vec![grey], SchemaOptions::default())?;
//! // A path, or s3://bucket/key; mem://name is the memory of this process.
//! let image = gridstone::create_array(&context, "mem://image", "/", schema, false)?;
//!
//! // Any box, aligned to nothing. Staged cells are invisible until they are committed.
//! let call = Call::default();
//! let patch = image.region(&[vec![(100..=199).into(), (50..=79).into()]])?;
//! let sevens = vec![7_u8; 100 * 30];
//! let data = vec![("grey".to_owned(), ColumnView::of(&sevens))];
//! let staged = image.stage_box(Some(&patch), &data, Order::Row, &call)?;
//! let version = image.commit(vec![staged], Some("a grey patch".to_owned()))?;
//!
//! // Reading it back: cells in row order, an unwritten one as its fill.
//! let corner = image.region(&[vec![(198..=200).into(), (79..=80).into()]])?;
//! let (cells, shape, _) = image.read_box(Some(&corner), None, gridstone::ReadOrder::Row, &call)?;
//! assert_eq!(shape.as_deref(), Some(&[3, 2][..]));
//! assert_eq!(cells.attrs[0].numbers::<u8>()?, [7, 0, 7, 0, 0, 0]);
//!
//! // The version before is still there.
//! let before: Array = image.at(gridstone::At::Version(version - 1))?;
//! let (cells, ..) = before.read_box(Some(&corner), None, gridstone::ReadOrder::Row, &call)?;
//! assert_eq!(cells.attrs[0].numbers::<u8>()?, [0; 6]);
//! # Ok(())
//! # }
//! ```
//!
//! # How it fits together
//!
//! ```text
//!  Context            threads, memory budget, cache, keys                  one for a program
//!     |
//!     |  create_array, open, Transaction::begin
//!     v
//!  store              a folder, a bucket or memory: one log of versions     1 -- 2 -- 3 -- 4
//!     |                                                                              |
//!     |  a tree of                                                                   | a handle shows one
//!     v                                                                              v
//!  Group, Array       pinned to a version; refresh() moves on               Array ---+
//!     |
//!     |  a Schema: dimensions, attributes, tiles, order
//!     v
//!  fragments          files of cells that never change; the newest wins per cell
//! ```
//!
//! | to | see |
//! |---|---|
//! | describe an array | [`Schema`], [`Dimension`], [`Attribute`], [`Datatype`] |
//! | create and open | [`create_array`], [`create_group`], [`open()`], [`Opened`], [`Group`] |
//! | hand over values, and take them | [`Column`], [`ColumnView`], [`Native`] |
//! | name cells | [`Span`], [`Array::region`], [`engine::AxisPositions`] |
//! | write | [`Array::stage_box`], [`Array::stage_cells`], [`engine::Writer`], [`Array::commit`], [`Array::append`] |
//! | read | [`Array::read_box`], [`Array::read_region`], [`Array::scan_region`], [`Array::points`] |
//! | select by value | [`Condition`] |
//! | ask | [`Question`], [`Array::aggregate`], [`Array::reduce`] |
//! | travel in time | [`At`], [`Array::at`], [`Array::history`], [`engine::tag`] |
//! | change several arrays at once | [`Transaction`] |
//! | delete and correct | [`Array::delete_region_where`], [`Array::stage_delete`], [`Array::alter`] |
//! | keep it quick and small | [`Array::consolidate`], [`Array::vacuum`] |
//! | check | [`Array::verify`], [`engine::verify_uri`], [`engine::repair`] |
//! | encrypt | [`engine::Options::key`] |
//!
//! # Concepts
//!
//! - **Dense and sparse.** A dense array has a value in each cell of its domain: what was never written reads as the fill,
//!   or as null. A sparse array holds only the cells that were written; its dimensions may be floats, times and texts.
//! - **Stage, then commit.** A write makes an immutable *fragment* that is invisible ([`engine::Staged`]). [`Array::commit`]
//!   adds fragments to the log in one step, which only one writer can do for a version. If it fails, nothing has
//!   changed, or the error is of kind [`ErrorKind::CommitUnknown`].
//! - **The newest write wins**, cell by cell, in the order of commits. Clocks decide nothing.
//! - **Handles are snapshots.** An [`Array`] shows one version until [`Array::refresh`], or its own commit, moves it on.
//! - **Memory is bounded.** Scans, merges and aggregates work within [`Options::memory_budget`]. Only a result that is asked for
//!   whole takes as much as it is large.
//! - **A [`Call`]** goes with what may take long. It carries a cancellation, a progress and the key of a commit.
//!
//! # Errors
//!
//! There is one [`Error`]. Its [`ErrorKind`] says what a caller may do about it, and its message what was asked, what was
//! found and what to do. Messages name arguments as the Python package does, `overwrite=True`.
//!
//! # Features
//!
//! - `object-stores` (default): `s3://`, `gs://` and `az://`, with all that speaks HTTP and TLS.
//!
//! # What is stable
//!
//! Version 0.1 promises nothing yet. [`engine`], [`schema`] and [`base`] are the public interface. Other modules are public
//! for tests and tools, do not appear here, and change without notice.

#![warn(missing_docs)]

// The floors, from the bottom. Each imports only from those below it.
pub mod base;
#[doc(hidden)]
pub mod codec;
#[doc(hidden)]
pub mod condition;
pub mod engine;
#[doc(hidden)]
pub mod fragment;
#[doc(hidden)]
pub mod maintain;
#[doc(hidden)]
pub mod query;
#[doc(hidden)]
pub mod runtime;
pub mod schema;
#[doc(hidden)]
pub mod storage;
#[doc(hidden)]
pub mod store;
#[doc(hidden)]
pub mod tile;

pub use base::{Error, ErrorKind, Result};
pub use engine::{
    Array, At, Call, CellData, Cells, Column, ColumnView, Condition, Context, Dedup, Group, Isolation, Native, Opened,
    Options, Question, ReadOrder, Span, Transaction, create_array, create_group, delete_store, exists, open,
};
pub use schema::{Attribute, Datatype, Dimension, Order, Schema, SchemaOptions};
