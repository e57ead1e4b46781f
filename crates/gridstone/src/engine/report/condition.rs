//! Conditions, as their array understands them.

use crate::engine::ConditionListing;
use serde_json::json;

impl ConditionListing {
    /// What the condition means as a JSON object on one line. The [module](crate::engine#reports-as-json) describes domains.
    ///
    /// | key | value |
    /// |---|---|
    /// | `columns` | names of the columns that decide it: dimensions, then attributes |
    /// | `box` | a domain, to which it confines the cells; null: it selects none |
    /// | `constant` | true or false: the condition is so for every cell; null: it differs |
    pub fn to_json(&self) -> String {
        json!({"columns": self.columns, "box": self.bounds, "constant": self.constant}).to_string()
    }
}
