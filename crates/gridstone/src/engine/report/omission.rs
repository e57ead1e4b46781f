//! Damaged cells that a read left out.

use crate::engine::SkippedCells;
use serde_json::json;

impl SkippedCells {
    /// What was left out as a JSON object on one line. The [module](crate::engine#reports-as-json) describes ids and domains.
    ///
    /// | key | value |
    /// |---|---|
    /// | `fragment` | the id of the damaged fragment; null: all fragments that a manifest page lists |
    /// | `tile` | the number of the data tile; null: more than one tile |
    /// | `attribute` | the attribute whose bytes are damaged, or the dimension of sparse cells; null: more than one column |
    /// | `domain` | the box that was left out, within the one asked for |
    /// | `cells` | cells of the fragment in it, at most |
    /// | `reason` | what is wrong, in words |
    pub fn to_json(&self) -> String {
        let Self { fragment, tile, column, domain, cells, message } = self;
        let fragment = fragment.map(|id| id.to_string());
        json!({"fragment": fragment, "tile": tile, "attribute": column, "domain": domain, "cells": cells,
            "reason": message})
        .to_string()
    }
}
