//! Expressions: values computed of each cell, and calls of aggregates over them.
//!
//! ```text
//! "sog * 1.852"          --parse-->  Expression  --bind(&Schema)-->  BoundExpression  --evaluate(&Batch)-->  Column
//! "mean(sog * 1.852)"    --parse-->  Call
//! ```
//! Integers are computed exactly and give int64, or uint64 where one of them is; what does not fit is an error, never a
//! wrapped number. Floats are computed in float64. A null makes the result null; `coalesce` takes the first that is none.
//! A `case` computes each of its values only for the rows that take it, so that it cannot fail for the others.

mod arithmetic;
mod bind;
mod case;
mod evaluate;
mod parse;
mod period;
mod pick;
mod search;
mod vector;

pub use bind::BoundExpression;
pub(super) use parse::Parser;

use super::token::is_plain;
use super::tree::{Branch, DEPTH_MAX, Literal};
use crate::base::{Error, Result};
use crate::schema::{Datatype, Sorting};
use serde::{Deserialize, Serialize};

/// An operator of two numbers, or of times.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operator {
    /// `+`
    #[serde(rename = "+")]
    Add,
    /// `-`
    #[serde(rename = "-")]
    Subtract,
    /// `*`
    #[serde(rename = "*")]
    Multiply,
    /// `/`: a float64, whatever the sides are.
    #[serde(rename = "/")]
    Divide,
    /// `//`: the quotient rounded down; by 0, of integers, null.
    #[serde(rename = "//")]
    FloorDivide,
    /// `%`: what `//` leaves, with the sign of the right side; by 0, of integers, null.
    #[serde(rename = "%")]
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

/// A condition of a case, and the value where it is the first that is true.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The condition.
    #[serde(rename = "if")]
    pub condition: Branch,
    /// The value; null if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Expression>,
}

/// A value per cell, by the names of dimensions and attributes.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(tag = "op", rename_all = "snake_case", deny_unknown_fields)]
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
    /// The value of the first condition that is true.
    Case {
        /// One condition or more.
        whens: Vec<When>,
        /// The value where no condition is true; null if there is none.
        #[serde(rename = "else", default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<Box<Expression>>,
    },
}

impl Expression {
    /// Parses an expression from its JSON form.
    ///
    /// # Errors
    /// Input: it says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        let found: Self = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("this is no expression in JSON: {e}")).with_source(e))?;
        found.check()?;
        Ok(found)
    }

    /// The expression as JSON on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// Whether it is neither a column nor a literal.
    pub(super) fn is_computed(&self) -> bool {
        !matches!(self, Self::Column { .. } | Self::Literal { .. })
    }

    fn args(&self) -> Vec<&Self> {
        match self {
            Self::Column { .. } | Self::Literal { .. } => Vec::new(),
            Self::Negate { arg } | Self::Cast { arg, .. } => vec![arg],
            Self::Binary { left, right, .. } => vec![left, right],
            Self::Function { args, .. } => args.iter().collect(),
            Self::Case { whens, otherwise } => {
                whens.iter().filter_map(|when| when.then.as_ref()).chain(otherwise.as_deref()).collect()
            }
        }
    }

    /// The conditions within it, those within its arguments aside.
    fn conditions(&self) -> &[When] {
        if let Self::Case { whens, .. } = self { whens } else { &[] }
    }

    /// How many levels it has. A case counts as two, since JSON nests it deeper than other nodes.
    pub(super) fn levels(&self) -> usize {
        let conditions = self.conditions().iter().map(|when| when.condition.levels());
        let own = if conditions.len() > 0 { 2 } else { 1 };
        self.args().into_iter().map(Self::levels).chain(conditions).max().unwrap_or(0) + own
    }

    /// How many nodes it has.
    pub(super) fn parts(&self) -> usize {
        let conditions = self.conditions().iter().map(|when| when.condition.parts() + 1);
        self.args().into_iter().map(Self::parts).chain(conditions).sum::<usize>() + 1
    }

    /// An Input error if it is too deep, or a node could not be written as text.
    pub(super) fn check(&self) -> Result<()> {
        if self.levels() > DEPTH_MAX {
            return Err(Error::input(format!("an expression of more than {DEPTH_MAX} levels; compute it in steps")));
        }
        self.check_parts()
    }

    fn check_parts(&self) -> Result<()> {
        match self {
            Self::Function { name, .. } if !is_plain(name) || *name != name.to_lowercase() => {
                return Err(Error::input(format!("{name:?} is no name of a function; it is written in lower case")));
            }
            Self::Function { name, .. } if name == "cast" || case::SYNONYMS.contains(&name.as_str()) => {
                return Err(Error::input(format!("{name} is no function of a tree, but a cast, a case or coalesce")));
            }
            Self::Case { whens, .. } => {
                if whens.is_empty() || self.args().is_empty() {
                    return Err(Error::input("a case has a condition, and a value that is not null"));
                }
                whens.iter().try_for_each(|when| when.condition.check_parts())?;
            }
            Self::Cast { to, .. } => {
                let datatype = Datatype::parse(to)?;
                if datatype.to_string() != *to || datatype.sorting() != Sorting::Keys || datatype.is_time() {
                    return Err(Error::input(format!("nothing is cast to {to}; cast to a number such as float64")));
                }
            }
            _ => {}
        }
        self.args().into_iter().try_for_each(Self::check_parts)
    }
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
