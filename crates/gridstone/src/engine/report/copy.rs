//! Copies.

use crate::engine::CopyReport;
use serde_json::json;

impl CopyReport {
    /// The report as a JSON object on one line.
    ///
    /// | key | value |
    /// |---|---|
    /// | `source_version` | the version of the source that was copied |
    /// | `version` | the version of the target that has it |
    /// | `arrays`, `fragments`, `bytes` | arrays, fragments and bytes copied; fragments of a history are those of its newest version |
    /// | `objects`, `versions` | objects and versions copied with a history; 0 for one version |
    pub fn to_json(&self) -> String {
        let Self { source_version, version, arrays, fragments, bytes, objects, versions } = self;
        json!({"source_version": source_version, "version": version, "arrays": arrays, "fragments": fragments,
            "bytes": bytes, "objects": objects, "versions": versions})
        .to_string()
    }
}
