//! Files of other formats that cells lie in.

use crate::base::ForeignObject;
use crate::engine::{AttachedBox, SourceState};
use crate::schema::Schema;
use serde_json::json;

impl ForeignObject {
    /// The file as a JSON object on one line. The [module](crate::engine#reports-as-json) describes times.
    ///
    /// | key | value |
    /// |---|---|
    /// | `uri` | where it lies; without a scheme and a root: a path from the folder that the store lies in |
    /// | `size` | its size in bytes; null: not known |
    /// | `time_us` | when it was last changed; null: not known |
    /// | `etag` | the tag that its storage gives its content; null: none |
    pub fn to_json(&self) -> String {
        json!({"uri": self.uri, "size": self.size, "time_us": self.time_us, "etag": self.etag}).to_string()
    }
}

impl AttachedBox {
    /// The box as a JSON object on one line. `schema`: that of the array.
    ///
    /// | key | value |
    /// |---|---|
    /// | `id` | the id of the fragment that says where its cells lie |
    /// | `position` | the position of its first cell, from the low edge of each dimension's domain |
    /// | `shape` | its cells along each dimension |
    /// | `attrs` | the names of the attributes whose values lie in the files; null: one that was removed |
    /// | `uris` | the files, or the prefixes under which they lie |
    pub fn to_json(&self, schema: &Schema) -> String {
        let domain = schema.domain();
        let ends = self.bounds.ranges().iter().zip(domain.ranges());
        let position: Vec<u64> = ends.map(|(own, all)| own.lo.saturating_sub(all.lo)).collect();
        let name = |id: &u32| schema.attrs().iter().find(|attr| attr.id() == *id).map(|attr| attr.name());
        let attrs: Vec<Option<&str>> = self.attrs.iter().map(name).collect();
        let uris: Vec<&str> = self.sources.iter().map(|source| source.uri.as_str()).collect();
        json!({"id": self.id.to_string(), "position": position, "shape": self.bounds.shape(), "attrs": attrs, "uris": uris})
            .to_string()
    }
}

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
