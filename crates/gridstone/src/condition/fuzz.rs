//! The entry point for fuzzers: properties that hold for any text.

use super::{Batch, Call, Condition, Expression, Facts, Verdict};
use crate::base::{Error, Result};
use crate::schema::Schema;

const SCHEMA: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["-9","999"]},
    {"name":"y","dtype":"float32","domain":["-1.5","1e9"]}],
    "attrs":[{"name":"i","dtype":"int8"},{"name":"u","dtype":"uint64","nullable":true},{"name":"f","dtype":"float32"},
    {"name":"d","dtype":"float64","nullable":true},{"name":"b","dtype":"bool"},{"name":"t","dtype":"datetime64[ns]"},
    {"name":"w","dtype":"timedelta64[W]"},{"name":"s","dtype":"string","nullable":true},{"name":"r","dtype":"bytes"}]}"#;

/// Parses any bytes as a condition, as its JSON and as an expression, and binds a valid one. An error says which property failed: text
/// and JSON parse to the same tree, bounds lie in the domain, and pruning zero rows gives `Verdict::None`.
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
    fuzz_expression(&text)
}

/// The same as an expression and as an aggregate: text and JSON parse to the same tree, and the type of values is the type that was
/// promised.
fn fuzz_expression(text: &str) -> Result<()> {
    let aggregate = Call::parse(text).map(|call| call.args).unwrap_or_default();
    for expression in Expression::parse(text).into_iter().chain(aggregate) {
        let (printed, json) = (expression.to_string(), expression.to_json());
        // What is printed has more parentheses, and so may be nested too deep.
        if Expression::parse(&printed).is_ok_and(|again| again != expression)
            || Expression::from_json(&json)? != expression
        {
            return Err(Error::input(format!("{printed:?} or {json:?} is another expression")));
        }
        let Ok(bound) = expression.bind(&Schema::from_json(SCHEMA)?) else { continue };
        let needed = bound.columns();
        if needed.dims.is_empty() && needed.attrs.is_empty() {
            let Ok(column) = bound.evaluate(&Batch::new(3)) else { continue };
            if column.len() != 3 || column.datatype() != bound.datatype() {
                return Err(Error::input(format!("{printed:?} is no column of {}", bound.datatype())));
            }
        }
    }
    Ok(())
}
