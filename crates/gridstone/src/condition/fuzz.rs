//! The entry point for fuzzers: properties that hold for any text.

use super::{Batch, Call, Condition, Expression, Facts, Verdict};
use crate::base::{Error, Result};
use crate::schema::Schema;

const SCHEMA: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["-9","999"]},
    {"name":"y","dtype":"float32","domain":["-1.5","1e9"]}],
    "attrs":[{"name":"i","dtype":"int8"},{"name":"u","dtype":"uint64","nullable":true},{"name":"f","dtype":"float32"},
    {"name":"d","dtype":"float64","nullable":true},{"name":"b","dtype":"bool"},{"name":"t","dtype":"datetime64[ns]"},
    {"name":"w","dtype":"timedelta64[W]"},{"name":"s","dtype":"string","nullable":true},{"name":"r","dtype":"bytes"}]}"#;

/// Parses any bytes as a condition, an expression and an aggregate, and as the JSON of these, and binds valid ones. An
/// error says which property failed: text and JSON parse to the same tree, bounds lie in the domain, pruning zero rows
/// gives `Verdict::None`, and values have the type that was promised.
pub fn fuzz(data: &[u8]) -> Result<()> {
    let text = String::from_utf8_lossy(data);
    for condition in [Condition::parse(&text), Condition::from_json(&text)].into_iter().flatten() {
        let (printed, json) = (condition.to_string(), condition.to_json());
        if Condition::parse(&printed)? != condition {
            return Err(Error::input(format!("{printed:?} is another condition")));
        }
        if Condition::from_json(&json)? != condition {
            return Err(Error::input(format!("{json:?} is another condition")));
        }
        let schema = Schema::from_json(SCHEMA)?;
        let Ok(bound) = condition.bind(&schema) else { continue };
        if bound.prune(&Facts::new(0)) != Verdict::None {
            return Err(Error::input(format!("{printed:?} selects rows where there are none")));
        }
        if let Some(sub) = bound.bounds(&schema) {
            schema.check_inside(&sub)?;
        }
    }
    let aggregate = Call::parse(&text).map(|call| call.args).unwrap_or_default();
    let written = [Expression::parse(&text), Expression::from_json(&text)].into_iter().flatten();
    written.chain(aggregate).try_for_each(|expression| expression_keeps(&expression))
}

fn expression_keeps(expression: &Expression) -> Result<()> {
    let (printed, json) = (expression.to_string(), expression.to_json());
    if Expression::parse(&printed)? != *expression {
        return Err(Error::input(format!("{printed:?} is another expression")));
    }
    if Expression::from_json(&json)? != *expression {
        return Err(Error::input(format!("{json:?} is another expression")));
    }
    let Ok(bound) = expression.bind(&Schema::from_json(SCHEMA)?) else { return Ok(()) };
    let needed = bound.columns();
    if !needed.dims.is_empty() || !needed.attrs.is_empty() {
        return Ok(());
    }
    let Ok(column) = bound.evaluate(&Batch::new(3)) else { return Ok(()) };
    let nulls = (0..3).any(|row| !column.view().is_valid(row));
    if column.len() != 3 || column.datatype() != bound.datatype() || (nulls && !bound.nullable()) {
        return Err(Error::input(format!("{printed:?} is no column of {}", bound.datatype())));
    }
    Ok(())
}
