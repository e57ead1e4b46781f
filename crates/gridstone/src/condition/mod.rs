//! Conditions on cells: the tree, its text and JSON forms, and its evaluation.
//!
//! ```text
//! "sog > 3 and status in (1, 5)"  --parse-->  Condition  <--serde-->  JSON (pickles, to_json)
//!                                                 | bind(&Schema)
//!                                                 v
//!                                               Bound  --evaluate(&Batch)-->  Selection   (which rows)
//!                                                      --prune(&Facts)----->  Verdict     (None, All, Some)
//!                                                      --bounds(&Schema)--->  Subarray    (where to look)
//! ```
//!
//! Invariants: a [`Bound`] has no `not`: it was pushed down to the leaves. So one bitmap finds the rows for which a
//! condition is *true*, though its logic is three-valued. A leaf accepts a set of half-open intervals, which
//! evaluation, pruning and bounds all use. Literals are converted to the column's type once, exactly, when the set is
//! made. The module does no I/O. Semantics for users: `docs/guide/conditions.md`; reasons:
//! `docs/design/007-conditions.md`.

mod batch;
mod bind;
mod complaint;
mod computed;
mod enumerated;
mod evaluate;
mod exact;
mod expression;
mod fuzz;
mod interval;
mod leaf;
mod pair;
mod parse;
mod print;
mod prune;
mod selection;
mod simplify;
#[cfg(test)]
mod tests;
mod time;
mod token;
mod tree;
mod values;

pub use batch::{Batch, Coordinates};
pub use bind::{Bound, Needed, Place};
pub use expression::{BoundExpression, Call, Expression, When};
pub use fuzz::fuzz;
pub use prune::{Facts, Verdict};
pub use selection::Selection;
pub use tree::{Branch, Comparison, Condition, Literal};
