//! Floor `fragment`: one immutable file of cells: its format, its index, its reader and its writer.
//!
//! Sans-I/O: works over [`crate::base::ByteSource`] and [`crate::base::ByteSink`] and never sees a path.

mod description;

pub use description::{Description, FragmentKind, FragmentOrder, Location, Staged};
