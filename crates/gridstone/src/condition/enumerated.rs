//! Conditions on enumerated attributes: the codes that one accepts are determined once per category, at binding.
//!
//! Categories are compared by their values. Those of an ordered attribute are compared by their positions, and only
//! with literals that are categories. All later steps see a column of unsigned integers.

use super::interval::{Cut, Intervals};
use super::leaf;
use super::tree::{Comparison, Literal};
use super::values::{Values, keys_of};
use crate::base::{Error, Result};
use crate::schema::{Attribute, Categories, Datatype, key};

/// The test of one column.
#[derive(Debug, Clone, Copy)]
pub(super) enum Asked<'a> {
    /// The column by itself, as a flag.
    Flag,
    /// Its comparison with a literal.
    Compared(Comparison, &'a Literal),
    /// Membership in these literals.
    Among(&'a [Literal]),
    /// A range between these literals, both inclusive.
    Between(&'a Literal, &'a Literal),
}

/// The values of a column of `datatype` that match `asked`.
pub(super) fn values(column: &str, datatype: Datatype, asked: Asked<'_>) -> Result<Values> {
    Ok(match asked {
        Asked::Flag => leaf::flag(column, datatype)?,
        Asked::Compared(is, value) => Values::compared(datatype, is, &leaf::against(column, datatype, value)?),
        Asked::Among(values) => {
            let one = |value: &Literal| leaf::against(column, datatype, value);
            Values::members(datatype, &values.iter().map(one).collect::<Result<Vec<_>>>()?)
        }
        Asked::Between(low, high) => leaf::between(column, datatype, low, high)?,
    })
}

/// The codes of the categories that match `asked`; an Input error names what an ordered attribute cannot be compared
/// with.
pub(super) fn codes(attr: &Attribute, categories: &Categories, asked: Asked<'_>) -> Result<Values> {
    let of = categories.datatype();
    let by_place = |is: Comparison, value: &Literal| {
        let place = place(attr, categories, value)?;
        Ok(among(attr, categories, |code, _| match is {
            Comparison::Lt => code < place,
            Comparison::Le => code <= place,
            Comparison::Gt => code > place,
            _ => code >= place,
        }))
    };
    match asked {
        Asked::Compared(is, value) if categories.ordered() && !matches!(is, Comparison::Eq | Comparison::Ne) => {
            by_place(is, value)
        }
        Asked::Between(low, high) if categories.ordered() => {
            Ok(by_place(Comparison::Ge, low)?.intersect(&by_place(Comparison::Le, high)?))
        }
        _ => {
            let accepted = values(attr.name(), of, asked)?;
            Ok(among(attr, categories, |_, value| holds(&accepted, of, value)))
        }
    }
}

/// The position of the category with the value `value`.
fn place(attr: &Attribute, categories: &Categories, value: &Literal) -> Result<u32> {
    let of = categories.datatype();
    let equal = Values::members(of, &[leaf::against(attr.name(), of, value)?]);
    let found = (0..).zip(categories.values()).find(|(_, category)| holds(&equal, of, category));
    found.map(|(code, _)| code).ok_or_else(|| {
        let shown: Vec<String> = categories.texts().into_iter().take(20).collect();
        let more = if categories.len() > shown.len() { ", …" } else { "" };
        Error::input(format!(
            "{:?} has ordered categories, and {value} is none of them: less and greater go by their places, {}{more}",
            attr.name(),
            shown.join(" < ")
        ))
    })
}

/// Whether a value is in a set of values of its type.
fn holds(accepted: &Values, datatype: Datatype, value: &[u8]) -> bool {
    match accepted {
        Values::Keys(set, _) => {
            let key = key::encode(datatype, value).ok().and_then(|keys| keys.first().copied());
            key.is_some_and(|key| set.touches(&u128::from(key), &(u128::from(key) + 1)))
        }
        Values::Texts(set) => set.touches(&Cut::Below(value.to_vec()), &Cut::above(value)),
    }
}

/// The codes that `takes` accepts among the categories. If all categories are accepted, codes without a category are
/// too, so that no value need be tested then.
fn among(attr: &Attribute, categories: &Categories, takes: impl Fn(u32, &[u8]) -> bool) -> Values {
    let (_, end) = keys_of(attr.datatype());
    let accepted = (0..).zip(categories.values()).filter(|(code, value)| takes(*code, value));
    let mut codes: Vec<(u128, u128)> = accepted.map(|(code, _)| (u128::from(code), u128::from(code) + 1)).collect();
    if codes.len() == categories.len() && !codes.is_empty() {
        codes.push((codes.len() as u128, end));
    }
    Values::Keys(Intervals::of(codes), false)
}

/// An Input error unless comparing the codes of two columns is equivalent to comparing their values.
pub(super) fn check_pair(
    is: Comparison,
    (left, a): (&str, Option<&Categories>),
    (right, b): (&str, Option<&Categories>),
) -> Result<()> {
    let equality = matches!(is, Comparison::Eq | Comparison::Ne);
    match (a, b) {
        (None, None) => Ok(()),
        (Some(a), Some(b)) if a == b && (equality || a.ordered()) => Ok(()),
        _ => Err(Error::input(format!(
            "{left:?} and {right:?} cannot be compared with each other: columns of categories can where both have the same \
             ones, by less and greater if these are ordered; compare each with a value"
        ))),
    }
}
