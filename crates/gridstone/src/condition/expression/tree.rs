//! The tree of an expression, and its JSON form: one object per node, `op` first, as for conditions.
//!
//! ```json
//! {"op": "binary", "operator": "*", "left": {"op": "column", "column": "sog"},
//!                                   "right": {"op": "literal", "value": {"float": "1.852"}}}
//! ```

use super::super::shared::{Branch, Measure, Term};
use super::super::token::is_plain;
use super::super::tree::{Condition, Literal, TEXT_BYTES_MAX};
use crate::base::{Error, Result};
use crate::schema::Datatype;
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

    /// The operator that is written so; an Input error if there is none.
    pub fn parse(symbol: &str) -> Result<Self> {
        let all = [Self::Add, Self::Subtract, Self::Multiply, Self::Divide, Self::FloorDivide, Self::Remainder];
        let unknown = || Error::input(format!("{symbol:?} is no operator; there are +, -, *, /, // and %"));
        all.into_iter().find(|operator| operator.symbol() == symbol).ok_or_else(unknown)
    }
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
        arg: Term,
    },
    /// Two values joined by an operator.
    Binary {
        /// The operator.
        operator: Operator,
        /// The left side.
        left: Term,
        /// The right side.
        right: Term,
    },
    /// A function of values.
    Function {
        /// Its name, in lower case.
        name: String,
        /// The arguments.
        args: Vec<Term>,
    },
    /// A value of another type.
    Cast {
        /// The value.
        arg: Term,
        /// The name of the type.
        to: String,
    },
    /// The value beside the first condition that is true.
    Case {
        /// One or more.
        whens: Vec<When>,
        /// The value where none is true; null if there is none.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        otherwise: Option<Term>,
    },
    /// Whether a condition is true; null where it is unknown.
    Condition {
        /// The condition.
        condition: Branch,
    },
}

/// A condition and a value in `case`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct When {
    /// The condition.
    pub when: Branch,
    /// The value; null if there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub then: Option<Term>,
}

impl Expression {
    /// Whether a condition is true, as a value.
    pub fn of_condition(condition: Condition) -> Self {
        match condition {
            Condition::Column { column } => Self::Column { column },
            Condition::True {} => Self::Literal { value: Literal::Bool(true) },
            Condition::False {} => Self::Literal { value: Literal::Bool(false) },
            Condition::Value { value } => (*value).clone(),
            other => Self::Condition { condition: other.into() },
        }
    }

    /// A value of the type of this name; an Input error if there is none.
    pub fn cast(arg: Term, to: &str) -> Result<Self> {
        Ok(Self::Cast { arg, to: type_named(to)?.to_string() })
    }

    /// Whether it is a literal.
    pub fn is_literal(&self) -> bool {
        matches!(self, Self::Literal { .. })
    }

    pub(in crate::condition) fn is_column(&self) -> bool {
        matches!(self, Self::Column { .. })
    }

    /// Whether it is more than a column or a literal.
    pub(in crate::condition) fn is_computed(&self) -> bool {
        !self.is_literal() && !self.is_column()
    }

    /// Parses the expression from JSON; an Input error says what is wrong with it.
    pub fn from_json(text: &str) -> Result<Self> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(Error::input(format!("an expression of {} bytes; {TEXT_BYTES_MAX} are allowed", text.len())));
        }
        let expression: Self = serde_json::from_str(text)
            .map_err(|e| Error::input(format!("this is no expression in JSON: {e}")).with_source(e))?;
        expression.check()?;
        Ok(expression)
    }

    /// The expression as JSON on one line.
    pub fn to_json(&self) -> String {
        serde_json::to_string(self).unwrap_or_default()
    }

    /// An Input error if it is deeper or larger than the limits, or has parts that the parser never makes.
    pub(in crate::condition) fn check(&self) -> Result<()> {
        self.measure().check()?;
        self.check_parts()
    }

    pub(in crate::condition) fn check_parts(&self) -> Result<()> {
        let wrong = |what: &str| Err(Error::input(format!("{self}: {what}")));
        match self {
            Self::Column { .. } | Self::Literal { .. } => Ok(()),
            Self::Negate { arg } => arg.check_parts(),
            Self::Binary { left, right, .. } => {
                left.check_parts()?;
                right.check_parts()
            }
            Self::Function { name, args } => {
                if !is_plain(name) || *name != name.to_lowercase() || name == "cast" {
                    return wrong("the name of a function has lower case letters, digits and \"_\"");
                }
                args.iter().try_for_each(|arg| arg.check_parts())
            }
            Self::Cast { arg, to } => {
                if type_named(to)?.to_string() != *to {
                    return wrong("the type has another name");
                }
                arg.check_parts()
            }
            Self::Case { whens, otherwise } => {
                if whens.is_empty() {
                    return wrong("\"case\" needs one \"when\" at least");
                }
                for when in whens {
                    when.when.check_parts()?;
                    when.then.iter().try_for_each(|then| then.check_parts())?;
                }
                otherwise.iter().try_for_each(|value| value.check_parts())
            }
            Self::Condition { condition } => match **condition {
                Condition::Column { .. } | Condition::True {} | Condition::False {} | Condition::Value { .. } => {
                    wrong("a value stands by itself, not within a condition")
                }
                _ => condition.check_parts(),
            },
        }
    }

    /// Its size, from that of its parts.
    pub(in crate::condition) fn measure(&self) -> Measure {
        match self {
            Self::Column { .. } | Self::Literal { .. } => Measure::leaf(1, 1),
            Self::Negate { arg } | Self::Cast { arg, .. } => Measure::around(1, [arg.measure]),
            Self::Binary { left, right, .. } => Measure::around(1, [left.measure, right.measure]),
            Self::Function { args, .. } => Measure::around(2, args.iter().map(|arg| arg.measure)),
            Self::Case { whens, otherwise } => {
                let values = whens.iter().filter_map(|when| when.then.as_ref()).chain(otherwise);
                let values = values.map(|value| value.measure);
                Measure::around(3, whens.iter().map(|when| when.when.measure).chain(values))
            }
            Self::Condition { condition } => Measure::around(1, [condition.measure]),
        }
    }
}

/// Other names of types that people type.
const SYNONYMS: [(&str, &str); 8] = [
    ("double", "float64"),
    ("real", "float32"),
    ("bigint", "int64"),
    ("integer", "int32"),
    ("boolean", "bool"),
    ("text", "string"),
    ("varchar", "string"),
    ("date", "datetime64[D]"),
];

/// The type of this name, or an Input error.
pub(in crate::condition) fn type_named(name: &str) -> Result<Datatype> {
    let name = SYNONYMS.iter().find(|(other, _)| *other == name).map_or(name, |(_, name)| *name);
    Datatype::parse(name).map_err(|e| Error::input(format!("in a cast: {}", e.message())))
}

/// An aggregate as it is written: `mean(sog * 1.852)`, `count(*)`, `count(distinct x)`, `quantile(x, 0.5)`.
#[derive(Debug, Clone, PartialEq, Eq)]
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
