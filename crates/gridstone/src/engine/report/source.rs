//! Files of other formats that cells lie in.

use crate::engine::SourceState;
use serde_json::json;

impl SourceState {
    /// The file and its state as a JSON object on one line. The [module](crate::engine#reports-as-json) describes times.
    ///
    /// | key | value |
    /// |---|---|
    /// | `uri` | where it lies; without a scheme and a root: a path from the folder that the store lies in |
    /// | `size` | its size in bytes when it was attached; null: not known then |
    /// | `time_us` | when it was last changed before it was attached; null: not known |
    /// | `etag` | the tag that its storage gave that content; null: none |
    /// | `cells` | cells of the array that lie in it, about |
    /// | `pipelines` | the filter pipelines of its chunks, each once |
    /// | `problem` | what is wrong with it now, in words; null: it is as it was |
    pub fn to_json(&self) -> String {
        let file = &self.attached;
        let problem = self.problem.as_ref().map(|error| error.to_string());
        json!({"uri": file.uri, "size": file.size, "time_us": file.time_us, "etag": file.etag, "cells": self.cells,
            "pipelines": self.pipelines, "problem": problem})
        .to_string()
    }
}
