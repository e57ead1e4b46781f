//! The entry point for fuzzers: properties that hold for any text.

use super::{Condition, Expression, Facts, Verdict};
use crate::base::{Error, Result};
use crate::schema::Schema;

const SCHEMA: &str = r#"{"sparse":true,"dims":[{"name":"x","dtype":"int64","domain":["-9","999"]},
    {"name":"y","dtype":"float32","domain":["-1.5","1e9"]}],
    "attrs":[{"name":"i","dtype":"int8"},{"name":"u","dtype":"uint64","nullable":true},{"name":"f","dtype":"float32"},
    {"name":"d","dtype":"float64","nullable":true},{"name":"b","dtype":"bool"},{"name":"t","dtype":"datetime64[ns]"},
    {"name":"w","dtype":"timedelta64[W]"},{"name":"s","dtype":"string","nullable":true},{"name":"r","dtype":"bytes"}]}"#;

/// Parses any bytes as a condition, as its JSON and as an expression, and binds a valid condition. An error says which property failed: text
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
    let Ok(value) = Expression::parse(&text) else { return Ok(()) };
    let (printed, json) = (value.to_string(), value.to_json());
    if Expression::parse(&printed)? != value || Expression::from_json(&json)? != value {
        return Err(Error::input(format!("{printed:?} or {json:?} is another expression")));
    }
    Ok(())
}
