//! Floor `schema`: the definition of an array: datatypes, dimensions, attributes, orders, and boxes in the domain.
//!
//! Every coordinate is handled as an *ordered key*, a `u64` whose order is the order of the values ([`key`]). So
//! domains over the whole int64 / uint64 range and floats need no special case. Invariants: no cell data here, no I/O;
//! a [`Schema`] value is always valid.

mod array_schema;
mod attribute;
pub mod calendar;
mod categories;
mod coordinate;
mod datatype;
mod dimension;
mod evolution;
mod extra;
mod frame;
mod json;
pub mod key;
mod labels;
pub mod notation;
mod order;
mod places;
mod primitive;
mod region;
mod scalar;
mod subarray;
pub mod text;

pub use array_schema::{Schema, SchemaOptions};
pub use attribute::{Attribute, Filters};
pub use categories::Categories;
pub use coordinate::Coordinate;
pub use datatype::{Datatype, Sorting, TimeStep, TimeUnit};
pub use dimension::{Dimension, Extent};
pub use evolution::Evolution;
pub use frame::{Frame, Framing, Side};
pub use labels::{Labels, Steps};
pub use order::Order;
pub use places::Places;
pub use primitive::{Primitive, VectorShape};
pub use region::Region;
pub use scalar::{bytes_to_text, text_to_bytes};
pub use subarray::{KeyRange, Subarray};
pub use text::Word;

#[cfg(test)]
mod tests;
