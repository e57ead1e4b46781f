//! Expressions: values computed of each cell, and calls of aggregates over them.
//!
//! ```text
//! "sog * 1.852"          --parse-->  Expression  --bind(&Schema)-->  BoundExpression  --evaluate(&Batch)-->  Column
//! "mean(sog * 1.852)"    --parse-->  Call
//! ```
//! Integers are computed exactly and give int64, or uint64 where one of them is; what does not fit is an error, never a
//! wrapped number. Floats are computed in float64. A null makes the result null; `coalesce` and `case` choose the cells
//! first that each of their values is computed of. Conditions and expressions are one tree: either may hold the other.

mod arithmetic;
mod bind;
mod cast;
mod choice;
mod evaluate;
mod function;
mod period;
mod print;
mod search;
mod step;
mod tree;
mod vector;

pub use bind::BoundExpression;
pub(super) use print::{Hold, Within};
pub(super) use search::{Pattern, Search};
pub(super) use tree::type_named;
pub use tree::{Call, Expression, Operator, When};
