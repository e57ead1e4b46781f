//! Functions by their names: what they take and give.

use super::super::complaint::nearest;
use super::Expression;
use super::arithmetic::NumberFunction;
use super::bind::{BoundExpression, Node, Typed, common, is_number};
use super::period::{Part, Period};
use super::search::{Pattern, Search};
use crate::base::{Error, Result};
use crate::schema::{Datatype, TimeUnit};

/// A function of a text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum TextFunction {
    Lower,
    Upper,
    /// How many characters.
    Length,
}

/// The functions, for errors.
const NAMES: [&str; 29] = [
    "abs",
    "floor",
    "ceil",
    "round",
    "sqrt",
    "exp",
    "ln",
    "log",
    "log10",
    "lower",
    "upper",
    "length",
    "like",
    "ilike",
    "regexp_matches",
    "starts_with",
    "ends_with",
    "contains",
    "date",
    "year",
    "month",
    "day",
    "hour",
    "minute",
    "second",
    "dayofweek",
    "period",
    "coalesce",
    "cast",
];

impl Expression {
    /// The node of a function of this name.
    pub(super) fn function(&self, name: &str, args: Vec<BoundExpression>) -> Result<Typed> {
        match name {
            "period" => return self.period(args),
            "coalesce" => return self.coalesce(args),
            _ => {}
        }
        if let Some(search) = Search::named(name) {
            return self.search(search, args);
        }
        let count = args.len();
        let [arg] = <[BoundExpression; 1]>::try_from(args).map_err(|_| self.unknown(name, count))?;
        let (nullable, datatype) = (arg.nullable, arg.datatype);
        if let Some(function) = NumberFunction::named(name) {
            let result = match datatype {
                _ if !is_number(datatype) => return Err(self.unfit(&[&arg])),
                _ if datatype.is_float() || !function.keeps_integers() => Datatype::Float64,
                Datatype::UInt64 => Datatype::UInt64,
                _ => Datatype::Int64,
            };
            return Ok((Node::Number(function, Box::new(arg)), result, nullable));
        }
        if let Some(part) = Part::named(name) {
            let Datatype::Datetime(step) = datatype else { return Err(self.unfit(&[&arg])) };
            // NaT has no part.
            return Ok((Node::Part(part, step, Box::new(arg)), Datatype::Int64, true));
        }
        if name == "date" {
            let Datatype::Datetime(_) = datatype else { return Err(self.unfit(&[&arg])) };
            return Ok((Node::Cast(Box::new(arg)), Datatype::Datetime(TimeUnit::Day.step()), nullable));
        }
        let (function, result) = match name {
            "lower" => (TextFunction::Lower, Datatype::String),
            "upper" => (TextFunction::Upper, Datatype::String),
            "length" | "len" => (TextFunction::Length, Datatype::Int64),
            _ => return Err(self.unknown(name, count)),
        };
        if datatype != Datatype::String {
            return Err(self.unfit(&[&arg]));
        }
        Ok((Node::OfText(function, Box::new(arg)), result, nullable))
    }

    fn period(&self, args: Vec<BoundExpression>) -> Result<Typed> {
        let wrong = || Error::input(format!("{self}: period takes a time and a length, as in period(t, '1h')"));
        let [value, length] = <[BoundExpression; 2]>::try_from(args).map_err(|_| wrong())?;
        let Node::Run(length) = &length.node else { return Err(wrong()) };
        let (datatype, nullable) = (value.datatype, value.nullable);
        let period = Period::new(datatype, &String::from_utf8_lossy(length))?;
        Ok((Node::Period(period, Box::new(value)), datatype, nullable))
    }

    fn search(&self, search: Search, args: Vec<BoundExpression>) -> Result<Typed> {
        let count = args.len();
        let [value, part] = <[BoundExpression; 2]>::try_from(args).map_err(|_| {
            Error::input(format!("{self}: it takes a text and what is searched in it, not {count} values"))
        })?;
        if value.datatype != Datatype::String || part.datatype != Datatype::String {
            return Err(self.unfit(&[&value, &part]));
        }
        let nullable = value.nullable || part.nullable;
        let node = match &part.node {
            Node::Run(text) => {
                let pattern = Pattern::new(search, &String::from_utf8_lossy(text))?;
                Node::Search(pattern, Box::new(value))
            }
            _ if search.is_compiled() => {
                return Err(Error::input(format!("{self}: the pattern is a text in single quotes, not {}", part.text)));
            }
            _ => Node::SearchFor(search, Box::new(value), Box::new(part)),
        };
        Ok((node, Datatype::Bool, nullable))
    }

    fn coalesce(&self, args: Vec<BoundExpression>) -> Result<Typed> {
        let all: Vec<&BoundExpression> = args.iter().collect();
        if all.is_empty() {
            return Err(Error::input(format!("{self}: coalesce takes one value at least")));
        }
        let datatype = common(&all).ok_or_else(|| self.unfit(&all))?;
        let nullable = args.iter().all(|arg| arg.nullable);
        Ok((Node::Coalesce(args), datatype, nullable))
    }

    fn unknown(&self, name: &str, given: usize) -> Error {
        let meant = nearest(name, NAMES).filter(|found| *found != name);
        let meant = meant.map_or(String::new(), |found| format!("; did you mean {found}?"));
        let values = if given == 1 { "value" } else { "values" };
        Error::input(format!(
            "{self}: there is no function {name:?} of {given} {values}{meant} (there are: {})",
            NAMES.join(", ")
        ))
    }
}
