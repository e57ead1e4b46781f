//! Tests of computed values: leaves of a bound condition that no statistics of a column decide.
//!
//! A leaf computes a column and tests it as a stored one is tested: by a set of values beside literals, else by
//! comparing two columns. What is a set of values of one stored column becomes the node of that column, which prunes.

use super::batch::Batch;
use super::bind::{Field, Node, Place, find, set};
use super::enumerated::{self, Asked};
use super::evaluate::{among as members, of_validity};
use super::expression::{BoundExpression, Expression, Pattern, Search};
use super::interval::{Cut, Intervals};
use super::pair::{self, outcomes};
use super::selection::Selection;
use super::simplify;
use super::tree::{Comparison, Literal};
use super::values::Values;
use crate::base::{Error, Result};
use crate::schema::{Datatype, Schema};
use std::sync::Arc;

/// Which rows' computed values are accepted.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Computed {
    /// Values in the set.
    In(BoundExpression, Values),
    /// Two values that compare with one of these outcomes.
    Pair(BoundExpression, BoundExpression, u8),
    Valid(BoundExpression),
    Null(BoundExpression),
}

impl Computed {
    fn values(&self) -> impl Iterator<Item = &BoundExpression> {
        let (first, second) = match self {
            Self::In(value, _) | Self::Valid(value) | Self::Null(value) => (value, None),
            Self::Pair(left, right, _) => (left, Some(right)),
        };
        std::iter::once(first).chain(second)
    }

    /// Adds the columns that its evaluation needs.
    pub(super) fn gather(&self, places: &mut Vec<Place>) {
        self.values().for_each(|value| value.gather(places));
    }

    /// Whether a value may be null.
    pub(super) fn nullable(&self) -> bool {
        self.values().any(BoundExpression::nullable)
    }

    /// The rows that are accepted; rows with a null only by `Null`.
    pub(super) fn evaluate(&self, batch: &Batch<'_>) -> Result<Selection> {
        let valid = |value: &BoundExpression| {
            let column = value.evaluate(batch)?;
            let all = || Selection::all_or_none(batch.rows(), true);
            Ok::<_, Error>(column.view().validity().map_or_else(all, of_validity))
        };
        match self {
            Self::In(value, values) => Ok(members(values, value.evaluate(batch)?.view())),
            Self::Pair(left, right, outcomes) if left == right => {
                let column = left.evaluate(batch)?;
                Ok(pair::compared(column.view(), column.view(), *outcomes))
            }
            Self::Pair(left, right, outcomes) => {
                let (left, right) = (left.evaluate(batch)?, right.evaluate(batch)?);
                Ok(pair::compared(left.view(), right.view(), *outcomes))
            }
            Self::Valid(value) => valid(value),
            Self::Null(value) => Ok(valid(value)?.not()),
        }
    }
}

/// Rows without a value (`wanted`), or with one.
pub(super) fn null(value: BoundExpression, wanted: bool) -> Node {
    match (value.nullable(), wanted) {
        (false, wanted) => Node::Constant(!wanted),
        (true, true) => Node::Computed(Arc::new(Computed::Null(value))),
        (true, false) => Node::Computed(Arc::new(Computed::Valid(value))),
    }
}

/// Rows whose value is asked for, or the others that have a value.
pub(super) fn among(schema: &Schema, value: &Expression, asked: Asked<'_>, negated: bool) -> Result<Node> {
    if let Expression::Column { column } = value {
        return set(schema, column, asked, negated);
    }
    let value = value.value(schema)?;
    let datatype = value.datatype();
    let values = enumerated::values(&value.text, datatype, asked)?;
    let values = if negated { values.complement(datatype) } else { values };
    let nan = datatype.is_float() || datatype.is_time();
    Ok(match () {
        () if values.is_empty(nan) => Node::Constant(false),
        () if values.is_full(datatype, nan) => null(value, false),
        () => Node::Computed(Arc::new(Computed::In(value, values))),
    })
}

/// Rows whose value is true, or those whose value is false.
pub(super) fn truth(schema: &Schema, value: &Expression, negated: bool) -> Result<Node> {
    match prefix(schema, value)? {
        Some((field, values)) => {
            let values = if negated { values.complement(field.datatype) } else { values };
            Ok(simplify::leaf(field, values))
        }
        None => among(schema, value, Asked::Flag, negated),
    }
}

/// The texts of a column that begin with a given text, if that is all that `value` asks for.
fn prefix(schema: &Schema, value: &Expression) -> Result<Option<(Field, Values)>> {
    let Expression::Function { name, args } = value else { return Ok(None) };
    let (Some(search @ (Search::Like | Search::StartsWith)), [text, pattern]) = (Search::named(name), args.as_slice())
    else {
        return Ok(None);
    };
    let (Expression::Column { column }, Expression::Literal { value: Literal::Text(written) }) = (&**text, &**pattern)
    else {
        return Ok(None);
    };
    let field = find(schema, column)?;
    let pattern = Pattern::new(search, written)?;
    let (Datatype::String, Some(start)) = (field.datatype, pattern.start()) else { return Ok(None) };
    // Behind all texts with this start is the start with its last byte increased, which in UTF-8 never overflows.
    let mut end = start.as_bytes().to_vec();
    let end = match end.pop() {
        Some(last) => Cut::Below([end, vec![last.saturating_add(1)]].concat()),
        None => Cut::End,
    };
    Ok(Some((field, Values::Texts(Intervals::one(Cut::Below(start.as_bytes().to_vec()), end)))))
}

/// Rows at which two values compare so, or the others at which both have a value.
pub(super) fn compared(
    schema: &Schema,
    (left, is, right): (&Expression, Comparison, &Expression),
    negated: bool,
) -> Result<Node> {
    match (constant(schema, left)?, constant(schema, right)?) {
        // Nothing compares with null.
        (Constant::Null, _) | (_, Constant::Null) => Ok(Node::Constant(false)),
        (Constant::No, Constant::Literal(value)) => among(schema, left, Asked::Compared(is, &value), negated),
        (Constant::Literal(value), Constant::No) => {
            among(schema, right, Asked::Compared(is.flipped(), &value), negated)
        }
        _ => {
            let (left, right) = (left.value(schema)?, right.value(schema)?);
            let sides = ((left.text.as_str(), left.datatype()), (right.text.as_str(), right.datatype()));
            let outcomes = outcomes(is, sides.0, sides.1, negated)?;
            Ok(Node::Computed(Arc::new(Computed::Pair(left, right, outcomes))))
        }
    }
}

/// The value of an expression without columns.
enum Constant {
    No,
    Null,
    Literal(Literal),
}

fn constant(schema: &Schema, expression: &Expression) -> Result<Constant> {
    match expression {
        Expression::Literal { value } => return Ok(Constant::Literal(value.clone())),
        Expression::Column { .. } => return Ok(Constant::No),
        _ => {}
    }
    let bound = expression.value(schema)?;
    let needed = bound.columns();
    if !needed.dims.is_empty() || !needed.attrs.is_empty() {
        return Ok(Constant::No);
    }
    let column = bound.evaluate(&Batch::new(1))?;
    if !column.view().is_valid(0) {
        return Ok(Constant::Null);
    }
    Ok(literal(column.datatype(), column.view().value(0)).map_or(Constant::No, Constant::Literal))
}

/// The literal of a value; `None`: there is none that says the same.
fn literal(datatype: Datatype, bytes: &[u8]) -> Option<Literal> {
    let word = || bytes.try_into().ok().map(i64::from_le_bytes);
    Some(match datatype {
        Datatype::Bool => Literal::Bool(bytes.first() == Some(&1)),
        Datatype::Int64 => Literal::Int(word()?.into()),
        Datatype::UInt64 => Literal::Int(u64::from_le_bytes(bytes.try_into().ok()?).into()),
        Datatype::Float64 => Literal::Float(f64::from_le_bytes(bytes.try_into().ok()?)),
        Datatype::String => Literal::Text(String::from_utf8(bytes.to_vec()).ok()?),
        Datatype::Datetime(step) if step.count() == 1 => Literal::Datetime(word()?, step.unit()),
        Datatype::Timedelta(step) if step.count() == 1 => Literal::Timedelta(word()?, step.unit()),
        _ => return None,
    })
}
