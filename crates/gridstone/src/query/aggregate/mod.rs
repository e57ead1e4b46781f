//! Aggregates of cells, by groups.
//!
//! ```text
//! question --plan--> stages          what is evaluated of each cell, which groups are made of it, which states they have
//! tiles --index-->   states          where statistics answer for a whole tile
//! cells --chunks-->  states          a set of stages per thread; merged at the end
//! states <-------->  partial tables  columns that can be sent to another machine, and merged in any order
//! states --finish--> result          groups ascending
//! ```
//! A result is never computed from columns of the whole answer: cells come in batches, and go into states chunk by chunk.
//!
//! Invariants: a partial table says all that a state holds, and merging goes by it alone. Chunks of a question without groups are
//! merged in the order of the cells, so that the bits of float sums do not depend on the number of threads.

mod aggregation;
mod answer;
mod answers;
mod budget_share;
mod chunk;
mod columns;
mod dense;
mod direct;
mod function;
mod gathering;
mod groups;
mod index;
mod key;
mod merger;
mod ordered;
mod plan;
mod quantile;
mod rank;
mod reduce;
mod run;
mod sort;
mod stage;
mod state;
mod table;
mod words;

#[cfg(test)]
mod tests;

pub use aggregation::Aggregation;
pub use answer::{Answer, ResultColumn};
pub use answers::Answers;
pub use budget_share::BudgetShare;
pub use plan::{Aggregate, By, Question, Width};
pub use reduce::{Reduction, Where};
pub use stage::PartialTable;
