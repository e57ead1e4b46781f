//! Conditions on computed values: each is evaluated on all rows, and its column is tested as one of the array is.
//!
//! Nothing is known of computed values before they are computed, so that they prune nothing and bound nothing.

use super::batch::Batch;
use super::bind::Node;
use super::enumerated::{self, Asked};
use super::evaluate::{members_of, of_validity};
use super::expression::{BoundExpression, Expression};
use super::pair;
use super::selection::Selection;
use super::tree::{Comparison, Literal};
use super::values::Values;
use crate::base::Result;
use crate::schema::Schema;

/// A test of computed values. Rows whose value is null are selected by `Null` only.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum Computed {
    /// Rows with a value in the set.
    In(BoundExpression, Values),
    /// Rows whose values compare with one of these outcomes.
    Pair(BoundExpression, BoundExpression, u8),
    /// Rows without a value.
    Null(BoundExpression),
    /// Rows with a value.
    Valid(BoundExpression),
}

impl Computed {
    /// The columns that it needs.
    pub(super) fn expressions(&self) -> Vec<&BoundExpression> {
        match self {
            Self::In(value, _) | Self::Null(value) | Self::Valid(value) => vec![value],
            Self::Pair(left, right, _) => vec![left, right],
        }
    }

    pub(super) fn evaluate(&self, batch: &Batch<'_>) -> Result<Selection> {
        let rows = batch.rows();
        let valid = |value: &BoundExpression| -> Result<Selection> {
            let column = value.evaluate(batch)?;
            let validity = column.view().validity();
            Ok(validity.map_or_else(|| Selection::all_or_none(rows, true), of_validity))
        };
        match self {
            Self::In(value, values) => Ok(members_of(values, value.evaluate(batch)?.view(), rows)),
            Self::Pair(left, right, outcomes) => {
                let (left, right) = (left.evaluate(batch)?, right.evaluate(batch)?);
                Ok(pair::compare_views(left.view(), right.view(), *outcomes, rows))
            }
            Self::Null(value) => Ok(valid(value)?.not()),
            Self::Valid(value) => valid(value),
        }
    }
}

fn bound(value: &Expression, schema: &Schema) -> Result<BoundExpression> {
    value.bind(schema)?.decoded(schema)
}

/// The node of a value tested as `asked`, or of its opposite.
pub(super) fn tested(value: &Expression, schema: &Schema, asked: Asked<'_>, negated: bool) -> Result<Node> {
    let value = bound(value, schema)?;
    let values = enumerated::values(value.text(), value.datatype(), asked)?;
    let values = if negated { values.complement(value.datatype()) } else { values };
    Ok(Node::Computed(Box::new(Computed::In(value, values))))
}

/// The node of `left is right`, or of its opposite.
pub(super) fn compared(
    is: Comparison,
    (left, right): (&Expression, &Expression),
    schema: &Schema,
    negated: bool,
) -> Result<Node> {
    let literal = |value: &Expression| -> Option<Literal> {
        if let Expression::Literal { value } = value { Some(value.clone()) } else { None }
    };
    if let Some(value) = literal(right) {
        return tested(left, schema, Asked::Compared(is, &value), negated);
    }
    if let Some(value) = literal(left) {
        return tested(right, schema, Asked::Compared(is.flipped(), &value), negated);
    }
    let (left, right) = (bound(left, schema)?, bound(right, schema)?);
    let sides = ((left.text(), left.datatype()), (right.text(), right.datatype()));
    let outcomes = pair::outcomes_of(is, sides.0, sides.1, negated)?;
    Ok(Node::Computed(Box::new(Computed::Pair(left, right, outcomes))))
}

/// The node of a value that is null (`wanted`), or is not.
pub(super) fn nulls(value: &Expression, schema: &Schema, wanted: bool) -> Result<Node> {
    let value = bound(value, schema)?;
    Ok(Node::Computed(Box::new(if wanted { Computed::Null(value) } else { Computed::Valid(value) })))
}
