//! Expressions: values computed of each cell, and calls of aggregates over them.
//!
//! ```text
//! "sog * 1.852"          --parse-->  Expression  --bind(&Schema)-->  BoundExpression  --evaluate(&Batch)-->  Column
//! "mean(sog * 1.852)"    --parse-->  Call
//! ```
//! Integers are computed exactly and give int64, or uint64 where one of them is; what does not fit is an error, never a
//! wrapped number. Floats are computed in float64. A null makes the result null; `coalesce` takes the first that is none.

mod arithmetic;
mod bind;
mod evaluate;
mod parse;
mod period;
mod vector;

pub use bind::BoundExpression;

use super::tree::Literal;

/// An operator of two numbers, or of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operator {
    /// `+`
    Add,
    /// `-`
    Subtract,
    /// `*`
    Multiply,
    /// `/`: a float64, whatever the sides are.
    Divide,
    /// `//`: the quotient rounded down; by 0, of integers, null.
    FloorDivide,
    /// `%`: what `//` leaves, with the sign of the right side; by 0, of integers, null.
    Remainder,
}

impl Operator {
    /// Its sign.
    pub fn symbol(self) -> &'static str {
        match self {
            Self::Add => "+",
            Self::Subtract => "-",
            Self::Multiply => "*",
            Self::Divide => "/",
            Self::FloorDivide => "//",
            Self::Remainder => "%",
        }
    }
}

/// A value per cell, by the names of dimensions and attributes.
#[derive(Debug, Clone, PartialEq)]
pub enum Expression {
    /// A column.
    Column {
        /// Its name.
        column: String,
    },
    /// The same value for each cell.
    Literal {
        /// The value.
        value: Literal,
    },
    /// The opposite number.
    Negate {
        /// The number.
        arg: Box<Expression>,
    },
    /// Two values joined by an operator.
    Binary {
        /// The operator.
        operator: Operator,
        /// The left side.
        left: Box<Expression>,
        /// The right side.
        right: Box<Expression>,
    },
    /// A function of values.
    Function {
        /// Its name, in lower case.
        name: String,
        /// The arguments.
        args: Vec<Expression>,
    },
    /// A number of another type.
    Cast {
        /// The number.
        arg: Box<Expression>,
        /// The name of the type.
        to: String,
    },
}

/// An aggregate as it is written: `mean(sog * 1.852)`, `count(*)`, `count(distinct x)`, `quantile(x, 0.5)`.
#[derive(Debug, Clone, PartialEq)]
pub struct Call {
    /// Its name, in lower case.
    pub name: String,
    /// Whether equal values count once.
    pub distinct: bool,
    /// Whether it is of whole cells: `(*)`.
    pub star: bool,
    /// The arguments.
    pub args: Vec<Expression>,
}
