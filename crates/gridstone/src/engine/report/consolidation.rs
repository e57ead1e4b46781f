//! Consolidations: planned, done, or in the background.

use crate::engine::{ConsolidateReport, MergeListing};
use serde_json::{Value, json};

impl ConsolidateReport {
    /// The report as a JSON object on one line.
    ///
    /// | key | value |
    /// |---|---|
    /// | `before`, `after` | fragments of the array before and after it |
    /// | `overtaken` | merges given up because another commit removed their fragments |
    /// | `merges` | the merges in their order; an object each, as below |
    /// | `failure` | the message of the error that ended the last consolidation in the background, once; null: none did |
    /// | `tiles_copied` | data tiles copied as they are stored |
    /// | `blocks_decoded` | blocks decoded, each of one attribute or dimension |
    ///
    /// | key of a merge | value |
    /// |---|---|
    /// | `kind` | `"dense"`, `"sparse"`, `"tombstones"` or `"hidden"`, as [`MergeListing::kind`] has it |
    /// | `fragments` | fragments that it removes, tombstones among them |
    /// | `cells`, `bytes` | cells and bytes read, at most |
    /// | `estimate` | fragments and bytes that will be written, about: a list of two |
    /// | `memory` | bytes of memory that it takes, about |
    /// | `written` | fragments and bytes written: a list of two; null: the merge is planned only |
    pub fn to_json(&self) -> String {
        let merges: Vec<Value> = self.merges.iter().map(merge).collect();
        json!({"before": self.before, "after": self.after, "overtaken": self.overtaken, "merges": merges,
            "failure": self.background_failure, "tiles_copied": self.counters.tiles_copied,
            "blocks_decoded": self.counters.blocks_decoded})
        .to_string()
    }
}

fn merge(listing: &MergeListing) -> Value {
    let MergeListing { kind, fragments, cells, bytes, estimate, memory, written } = listing;
    json!({"kind": kind, "fragments": fragments, "cells": cells, "bytes": bytes, "estimate": estimate, "memory": memory,
        "written": written})
}
