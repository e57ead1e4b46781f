//! Prints a condition as text that parses to the same tree.

use super::time;
use super::token::is_plain;
use super::tree::{Branch, Condition, Literal, ticks_text, unit_name};
use crate::schema::{Datatype, TimeUnit, bytes_to_text};
use std::fmt::{self, Display, Formatter};

/// A name as written in a condition.
pub(super) struct Name<'a>(pub(super) &'a str);

impl Display for Name<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if is_plain(self.0) { f.write_str(self.0) } else { write!(f, "\"{}\"", self.0.replace('"', "\"\"")) }
    }
}

impl Display for Literal {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::Int(value) => write!(f, "{value}"),
            Self::Float(value) if value.is_nan() => f.write_str("nan"),
            Self::Float(value) => write!(f, "{value:?}"),
            Self::Bool(value) => write!(f, "{value}"),
            Self::Text(value) => write!(f, "'{}'", value.replace('\'', "''")),
            Self::Bytes(value) => write!(f, "x'{}'", bytes_to_text(Datatype::Bytes, value)),
            Self::Datetime(ticks, unit) => match time::iso(*ticks, *unit) {
                Some(iso) if matches!(unit, TimeUnit::Day) => write!(f, "date '{iso}'"),
                Some(iso) => write!(f, "timestamp '{iso}'"),
                None => write!(f, "timestamp '{} {}'", ticks_text(*ticks), unit_name(*unit)),
            },
            Self::Timedelta(ticks, unit) => write!(f, "timedelta '{} {}'", ticks_text(*ticks), unit_name(*unit)),
        }
    }
}

/// A part, in parentheses where it needs them.
struct Part<'a>(&'a Condition);

impl Display for Part<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0 {
            inner @ (Condition::And { .. } | Condition::Or { .. }) => write!(f, "({inner})"),
            inner => write!(f, "{inner}"),
        }
    }
}

fn joined(f: &mut Formatter<'_>, args: &[Branch], word: &str) -> fmt::Result {
    for (i, arg) in args.iter().enumerate() {
        if i > 0 {
            write!(f, " {word} ")?;
        }
        Part(arg).fmt(f)?;
    }
    Ok(())
}

impl Display for Condition {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Self::True {} => f.write_str("true"),
            Self::False {} => f.write_str("false"),
            Self::Column { column } => Name(column).fmt(f),
            Self::Compare { is, column, value } => write!(f, "{} {} {value}", Name(column), is.symbol()),
            Self::CompareColumns { is, left, right } => write!(f, "{} {} {}", Name(left), is.symbol(), Name(right)),
            Self::In { column, values } => {
                write!(f, "{} in (", Name(column))?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Self::Between { column, low, high } => write!(f, "{} between {low} and {high}", Name(column)),
            Self::IsNull { column } => write!(f, "{} is null", Name(column)),
            Self::IsNotNull { column } => write!(f, "{} is not null", Name(column)),
            Self::CompareValues { is, left, right } => write!(f, "{left} {} {right}", is.symbol()),
            Self::InValues { value, values } => {
                write!(f, "{value} in (")?;
                for (i, value) in values.iter().enumerate() {
                    write!(f, "{}{value}", if i > 0 { ", " } else { "" })?;
                }
                f.write_str(")")
            }
            Self::ValueIsNull { value } => write!(f, "{value} is null"),
            Self::ValueIsNotNull { value } => write!(f, "{value} is not null"),
            Self::Holds { value } => value.fmt(f),
            Self::Not { arg } => write!(f, "not {}", Part(arg)),
            Self::And { args } => joined(f, args, "and"),
            Self::Or { args } => joined(f, args, "or"),
        }
    }
}
