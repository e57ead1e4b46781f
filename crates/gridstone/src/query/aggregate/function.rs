//! Aggregates by name.

use super::state::input::State;
use super::state::{Counts, Extremes, Moments, Picks, Rank, Sketches, Spread, Sums, Total, Truths};
use crate::base::{Error, Result};
use crate::condition::{Call, Expression, Literal};
use crate::schema::Datatype;

/// What an aggregate computes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Function {
    CountAll,
    Count,
    Sum,
    Mean,
    Spread(Spread),
    Min,
    Max,
    Any,
    First,
    Last,
    ArgMax,
    ArgMin,
    /// Whether some value is not zero.
    Some,
    /// Whether none is zero.
    All,
    CountDistinct,
    /// Roughly how many different values there are.
    ApproxCountDistinct,
    /// A share of the values, from 0 to 1; whether the result is one of them.
    Quantile {
        share: f64,
        discrete: bool,
    },
}

/// Every name that is known, and how many arguments it takes.
const NAMES: [(&str, usize); 41] = [
    ("count", 1),
    ("sum", 1),
    ("mean", 1),
    ("avg", 1),
    ("average", 1),
    ("min", 1),
    ("max", 1),
    ("var", 1),
    ("variance", 1),
    ("var_samp", 1),
    ("var_pop", 1),
    ("std", 1),
    ("stddev", 1),
    ("stddev_samp", 1),
    ("std_pop", 1),
    ("stddev_pop", 1),
    ("any_value", 1),
    ("any", 1),
    ("arbitrary", 1),
    ("first", 1),
    ("first_value", 1),
    ("last", 1),
    ("last_value", 1),
    ("count_distinct", 1),
    ("nunique", 1),
    ("approx_count_distinct", 1),
    ("approx_distinct", 1),
    ("arg_max", 2),
    ("argmax", 2),
    ("max_by", 2),
    ("arg_min", 2),
    ("argmin", 2),
    ("min_by", 2),
    ("bool_or", 1),
    ("bool_and", 1),
    ("every", 1),
    ("median", 1),
    ("quantile", 2),
    ("quantile_cont", 2),
    ("percentile_cont", 2),
    ("quantile_disc", 2),
];

impl Function {
    /// The aggregate of a call, and the arguments that are values of cells.
    ///
    /// # Errors
    /// Input: there is none of this name, or it takes other arguments.
    pub(super) fn of(call: &Call) -> Result<(Self, &[Expression])> {
        let name = call.name.as_str();
        if call.star {
            return match name {
                "count" if !call.distinct => Ok((Self::CountAll, &[])),
                _ => Err(Error::input(format!("{name}(*) is no aggregate; only count(*) takes all of a cell"))),
            };
        }
        let Some((_, count)) = NAMES.iter().find(|(known, _)| *known == name) else {
            return Err(unknown(name));
        };
        if name == "count" && call.args.is_empty() && !call.distinct {
            return Ok((Self::CountAll, &[]));
        }
        if call.args.len() != *count {
            let given = call.args.len();
            return Err(Error::input(format!("{name} takes {count} arguments, {given} were given")));
        }
        let function = Self::named(name, call.args.get(1))?;
        let function = match (function, call.distinct) {
            (function, false) => function,
            (Self::Count | Self::CountDistinct, true) => Self::CountDistinct,
            // Repeated values change none of these.
            (function @ (Self::Min | Self::Max | Self::Any | Self::ApproxCountDistinct), true) => function,
            _ => return Err(Error::input(format!("{name}(distinct …) is not known; count(distinct …) is"))),
        };
        let values = if matches!(function, Self::ArgMax | Self::ArgMin) { 2 } else { 1 };
        Ok((function, call.args.get(..values).unwrap_or_default()))
    }

    fn named(name: &str, second: Option<&Expression>) -> Result<Self> {
        let spread = |population, root| Self::Spread(Spread { population, root });
        Ok(match name {
            "count" => Self::Count,
            "sum" => Self::Sum,
            "mean" | "avg" | "average" => Self::Mean,
            "min" => Self::Min,
            "max" => Self::Max,
            "var" | "variance" | "var_samp" => spread(false, false),
            "var_pop" => spread(true, false),
            "std" | "stddev" | "stddev_samp" => spread(false, true),
            "std_pop" | "stddev_pop" => spread(true, true),
            "any_value" | "any" | "arbitrary" => Self::Any,
            "first" | "first_value" => Self::First,
            "last" | "last_value" => Self::Last,
            "count_distinct" | "nunique" => Self::CountDistinct,
            "approx_count_distinct" | "approx_distinct" => Self::ApproxCountDistinct,
            "arg_max" | "argmax" | "max_by" => Self::ArgMax,
            "arg_min" | "argmin" | "min_by" => Self::ArgMin,
            "bool_or" => Self::Some,
            "bool_and" | "every" => Self::All,
            "median" => Self::Quantile { share: 0.5, discrete: false },
            "quantile" | "quantile_cont" | "percentile_cont" => {
                Self::Quantile { share: share_of(name, second)?, discrete: false }
            }
            "quantile_disc" => Self::Quantile { share: share_of(name, second)?, discrete: true },
            _ => return Err(unknown(name)),
        })
    }

    /// Whether its result may be null; `of_nothing`: a group may have no value.
    pub(super) fn may_be_null(self, of_nothing: bool) -> bool {
        match self {
            Self::CountAll | Self::Count | Self::CountDistinct | Self::ApproxCountDistinct => false,
            Self::Spread(_) | Self::ArgMax | Self::ArgMin => true,
            _ => of_nothing,
        }
    }

    /// The argument whose values it compares.
    pub(super) fn compares(self) -> Option<usize> {
        match self {
            Self::Min | Self::Max | Self::Quantile { discrete: true, .. } => Some(0),
            Self::ArgMax | Self::ArgMin => Some(1),
            _ => None,
        }
    }

    /// Whether it asks where rows stand in the order of the array.
    pub(super) fn asks_places(self) -> bool {
        matches!(self, Self::First | Self::Last | Self::ArgMax | Self::ArgMin)
    }

    /// The state of it, over arguments of these types; `None` if it needs all values at once.
    pub(super) fn state(self, types: &[Datatype], ndim: usize, text: &str) -> Result<Option<Box<dyn State>>> {
        let value = types.first().copied().unwrap_or(Datatype::Int64);
        let by = |greatest| Rank::By { datatype: types.get(1).copied().unwrap_or(value), greatest };
        let picks = |rank| Picks::new(value, rank, ndim, text).map(|picks| Box::new(picks) as Box<dyn State>);
        Ok(Some(match self {
            Self::CountAll => Box::new(Counts::new(true)),
            Self::Count => Box::new(Counts::new(false)),
            Self::Sum => Box::new(Sums::new(value, Total::Sum, text)?),
            Self::Mean => Box::new(Sums::new(value, Total::Mean, text)?),
            Self::Spread(spread) => Box::new(Moments::new(value, spread, text)?),
            Self::Some => Box::new(Truths::new(value, false, text)?),
            Self::All => Box::new(Truths::new(value, true, text)?),
            Self::Min => Box::new(Extremes::new(value, false, text)?),
            Self::Max => Box::new(Extremes::new(value, true, text)?),
            Self::ApproxCountDistinct => Box::new(Sketches::new(value, text)?),
            Self::Any => picks(Rank::Any)?,
            Self::First => picks(Rank::Place { last: false })?,
            Self::Last => picks(Rank::Place { last: true })?,
            Self::ArgMax => picks(by(true))?,
            Self::ArgMin => picks(by(false))?,
            Self::CountDistinct | Self::Quantile { .. } => return Ok(None),
        }))
    }
}

fn share_of(name: &str, second: Option<&Expression>) -> Result<f64> {
    let share = match second {
        Some(Expression::Literal { value: Literal::Float(share) }) => Some(*share),
        Some(Expression::Literal { value: Literal::Int(share) }) => Some(*share as f64),
        _ => None,
    };
    share.filter(|share| (0.0..=1.0).contains(share)).ok_or_else(|| {
        Error::input(format!("the second argument of {name} is a number from 0 to 1, as in {name}(x, 0.9)"))
    })
}

fn unknown(name: &str) -> Error {
    Error::input(format!(
        "there is no aggregate {name:?}; there are count, sum, mean, min, max, var, std, var_pop, std_pop, any_value, first, last, \
         arg_max, arg_min, bool_or, bool_and, count_distinct, approx_count_distinct, median, quantile and quantile_disc"
    ))
}
