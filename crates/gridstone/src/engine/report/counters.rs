//! Counters of a read.

use crate::base::CounterSnapshot;
use serde_json::Value;

impl CounterSnapshot {
    /// The counters as a JSON object on one line: the number of each field by its name, in their fixed order.
    pub fn to_json(&self) -> String {
        self.entries().into_iter().collect::<Value>().to_string()
    }
}
