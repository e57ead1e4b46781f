//! Versions and fragments.

use crate::engine::{CellChange, Change, FragmentListing, VersionListing};
use serde_json::{Value, json};

impl VersionListing {
    /// The version as a JSON object on one line. The [module](crate::engine#reports-as-json) describes ids and times.
    ///
    /// | key | value |
    /// |---|---|
    /// | `version` | its number |
    /// | `time_us` | when it was committed |
    /// | `message` | the writer's line; null: none was given |
    /// | `operations` | what it did, in order; an object each, as below |
    /// | `commit_id` | the commit's random id |
    /// | `tags` | the names of its tags, sorted |
    ///
    /// | key of an operation | value |
    /// |---|---|
    /// | `op` | its name in the log, such as `"add_fragments"` |
    /// | `count` | fragments added, or keys of metadata changed; 1 for other operations |
    /// | `tag` | the tag that it gave or took away; no other operation has the key |
    ///
    /// An operation on fragments has these keys too:
    ///
    /// | key | value |
    /// |---|---|
    /// | `fragments`, `cells`, `bytes` | fragments added, the cells in them, their bytes |
    /// | `deleted_cells`, `deleted_boxes` | cells and boxes that the added fragments delete |
    /// | `removed` | fragments removed |
    /// | `removed_cells`, `removed_bytes` | the cells in these, their bytes; null: not known, since a vacuum forgot the versions that added them |
    ///
    /// ```
    /// # use gridstone::engine::VersionListing;
    /// # use gridstone::base::Id;
    /// # let (operations, tags) = (Vec::new(), vec!["paper".to_owned()]);
    /// let first = VersionListing { version: 1, time_us: 0, message: None, commit_id: Id([0xab; 16]), operations, tags };
    /// let text = r#"{"version":1,"time_us":0,"message":null,"operations":[],"commit_id":"abababababababababababababababab","tags":["paper"]}"#;
    /// assert_eq!(first.to_json(), text);
    /// ```
    pub fn to_json(&self) -> String {
        let operations: Vec<Value> = self.operations.iter().map(operation).collect();
        json!({"version": self.version, "time_us": self.time_us, "message": self.message, "operations": operations,
            "commit_id": self.commit_id.to_string(), "tags": self.tags})
        .to_string()
    }
}

fn operation(change: &Change) -> Value {
    let always = [("op", json!(change.name)), ("count", json!(change.count))];
    let tag = change.tag.iter().map(|tag| ("tag", json!(tag)));
    always.into_iter().chain(tag).chain(change.cells.iter().flat_map(cells)).collect()
}

fn cells(change: &CellChange) -> [(&'static str, Value); 8] {
    let known = |number: u64| (change.unknown == 0).then_some(number);
    [
        ("fragments", json!(change.fragments)),
        ("cells", json!(change.cells)),
        ("bytes", json!(change.bytes)),
        ("deleted_cells", json!(change.deleted_cells)),
        ("deleted_boxes", json!(change.deleted_boxes)),
        ("removed", json!(change.removed)),
        ("removed_cells", json!(known(change.removed_cells))),
        ("removed_bytes", json!(known(change.removed_bytes))),
    ]
}

impl FragmentListing {
    /// The fragment as a JSON object on one line. The [module](crate::engine#reports-as-json) describes ids and domains.
    ///
    /// | key | value |
    /// |---|---|
    /// | `id` | its id |
    /// | `kind` | `"dense"`, `"sparse"`, `"tombstones"`, `"deletion"` or `"mask"` |
    /// | `version` | the version that committed it |
    /// | `index` | its place in that commit, from 0 |
    /// | `cells` | cells in it |
    /// | `bytes` | bytes that it takes |
    /// | `inline` | whether it lies in a record of the log, not in a data file |
    /// | `attrs` | the attributes that it has values of |
    /// | `domain` | its box, or its MBR |
    pub fn to_json(&self) -> String {
        json!({"id": self.id.to_string(), "kind": self.kind, "version": self.version, "index": self.index,
            "cells": self.cells, "bytes": self.bytes, "inline": self.inline, "attrs": self.attrs, "domain": self.domain})
        .to_string()
    }
}
