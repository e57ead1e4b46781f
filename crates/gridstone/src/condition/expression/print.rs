//! Prints an expression as text that parses to the same tree, with the parentheses that it needs.

use super::super::print::Name;
use super::super::tree::Literal;
use super::{Call, Expression, Operator};
use std::fmt::{self, Display, Formatter};

/// How strongly the text of an expression holds together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(in crate::condition) enum Hold {
    /// Like a condition: it stands alone, or in parentheses.
    Condition,
    Sum,
    Product,
    Sign,
    Atom,
}

/// A part in parentheses unless its text holds together at least so strongly.
pub(in crate::condition) struct Within<'a>(pub(in crate::condition) &'a Expression, pub(in crate::condition) Hold);

impl Display for Within<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self(expression, least) = self;
        // A condition has its own parentheses.
        let bare = expression.hold() >= *least || matches!(expression, Expression::Condition { .. });
        if bare { write!(f, "{expression}") } else { write!(f, "({expression})") }
    }
}

/// The word between the two sides of a pattern's test, which is a function.
fn infix(name: &str, args: usize) -> bool {
    args == 2 && matches!(name, "like" | "ilike")
}

impl Expression {
    fn hold(&self) -> Hold {
        match self {
            Self::Binary { operator: Operator::Add | Operator::Subtract, .. } => Hold::Sum,
            Self::Binary { .. } => Hold::Product,
            Self::Negate { .. } => Hold::Sign,
            Self::Function { name, args } if infix(name, args.len()) => Hold::Condition,
            Self::Condition { .. } => Hold::Condition,
            _ => Hold::Atom,
        }
    }
}

impl Display for Expression {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Column { column } => Name(column).fmt(f),
            Self::Literal { value } => value.fmt(f),
            Self::Negate { arg } => match **arg {
                // The parser takes a sign before a number as a part of it.
                Self::Negate { .. } | Self::Literal { value: Literal::Int(_) | Literal::Float(_) } => {
                    write!(f, "-({arg})", arg = **arg)
                }
                _ => write!(f, "-{}", Within(arg, Hold::Sign)),
            },
            Self::Binary { operator, left, right } => {
                let (least, more) = match self.hold() {
                    Hold::Sum => (Hold::Sum, Hold::Product),
                    _ => (Hold::Product, Hold::Sign),
                };
                write!(f, "{} {} {}", Within(left, least), operator.symbol(), Within(right, more))
            }
            Self::Cast { arg, to } => write!(f, "cast({} as {to})", **arg),
            Self::Function { name, args } => match args.as_slice() {
                [value, pattern] if infix(name, 2) => {
                    write!(f, "{} {name} {}", Within(value, Hold::Sum), Within(pattern, Hold::Sum))
                }
                _ => {
                    write!(f, "{name}(")?;
                    listed(f, args.iter().map(|arg| &**arg))?;
                    f.write_str(")")
                }
            },
            Self::Case { whens, otherwise } => {
                f.write_str("case")?;
                for when in whens {
                    write!(f, " when {} then ", *when.when)?;
                    value_or_null(f, when.then.as_deref())?;
                }
                if let Some(value) = otherwise {
                    write!(f, " else {}", **value)?;
                }
                f.write_str(" end")
            }
            Self::Condition { condition } => write!(f, "({})", **condition),
        }
    }
}

fn value_or_null(f: &mut Formatter<'_>, value: Option<&Expression>) -> fmt::Result {
    match value {
        Some(value) => value.fmt(f),
        None => f.write_str("null"),
    }
}

fn listed<'a>(f: &mut Formatter<'_>, args: impl Iterator<Item = &'a Expression>) -> fmt::Result {
    for (i, arg) in args.enumerate() {
        write!(f, "{}{arg}", if i > 0 { ", " } else { "" })?;
    }
    Ok(())
}

impl Display for Call {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}(", self.name)?;
        if self.star {
            return f.write_str("*)");
        }
        if self.distinct {
            f.write_str("distinct ")?;
        }
        listed(f, self.args.iter())?;
        f.write_str(")")
    }
}
