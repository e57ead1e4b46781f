//! The C interface of Gridstone: `gridstone.h` is made of what is public here.
//!
//! ```text
//!  gridstone_*()      one function of C: pointers are checked and copied, one call of the engine follows
//!      |
//!  memory             pointers, texts, option structs: the only place that follows a pointer of the caller
//!  handle             64-bit handles: a slot and its generation, so that one that was freed is known
//!  status             codes, the error of each thread; a panic stops here
//!      |
//!  gridstone::engine
//! ```
//!
//! # Rules
//!
//! 1. A function gives a status and puts what it makes through pointers, which stay as they are if it fails.
//! 2. No pointer of the caller is kept after the call, but for callbacks and what goes with them.
//! 3. What the library hands out is a handle. `gridstone_free` gives it back; a call that uses it meanwhile ends in peace.
//! 4. Option structs begin with their size, so that programs built with an older header go on working.
//! 5. Handles of contexts, arrays, groups and schemas may be used by many threads at once. Those of reads, writers, results' streams
//!    and transactions belong to one thread at a time: a second one gets `GRIDSTONE_ERROR_BUSY`.

#![expect(non_camel_case_types, reason = "the names are those of C")]
#![expect(clippy::missing_safety_doc, reason = "one contract for all functions: the first page of the header")]
#![warn(missing_docs)]

mod aggregate;
mod array;
mod arrow;
mod call;
mod cell;
mod condition;
mod context;
mod copies;
mod deletion;
mod evolution;
mod field;
mod group;
mod handle;
mod history;
mod memory;
mod metadata;
mod points;
mod read;
mod receipt;
mod region;
mod result;
mod schema;
mod source;
mod status;
mod store;
mod text;
mod transaction;
mod upkeep;
mod words;
mod write;
mod writer;

pub use aggregate::*;
pub use array::*;
pub use arrow::*;
pub use call::*;
pub use cell::*;
pub use condition::*;
pub use context::*;
pub use copies::*;
pub use deletion::*;
pub use evolution::*;
pub use group::*;
pub use handle::*;
pub use history::*;
pub use metadata::*;
pub use points::*;
pub use read::*;
pub use receipt::*;
pub use region::*;
pub use result::*;
pub use schema::*;
pub use source::*;
pub use status::*;
pub use store::*;
pub use text::*;
pub use transaction::*;
pub use upkeep::*;
pub use write::*;
pub use writer::*;
