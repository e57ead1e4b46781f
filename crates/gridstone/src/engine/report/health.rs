//! Checks and repairs: damage of arrays and of stores.

use crate::engine::{
    AffectedCells, Damage, LostVersion, RepairAction, RepairReport, StoreDamage, StoreReport, VerifyReport,
};
use serde_json::{Value, json};

impl VerifyReport {
    /// The report as a JSON object on one line. The [module](crate::engine#reports-as-json) describes ids and domains.
    ///
    /// | key | value |
    /// |---|---|
    /// | `fragments`, `tiles` | fragments and data tiles that were checked |
    /// | `blocks` | blocks decoded |
    /// | `bytes` | stored bytes read |
    /// | `damage` | damaged locations, empty if all is sound; an object each, as below |
    ///
    /// | key of a location | value |
    /// |---|---|
    /// | `fragment` | the id of the fragment |
    /// | `tile` | the number of the data tile; null: not known |
    /// | `attribute` | the attribute or dimension; null: not known |
    /// | `domain` | the box of the cells that may be affected |
    /// | `cells` | the largest number of cells affected |
    /// | `message` | what is wrong, in words |
    pub fn to_json(&self) -> String {
        let damage: Vec<Value> = self.damage.iter().map(location).collect();
        json!({"fragments": self.fragments, "tiles": self.tiles, "blocks": self.blocks, "bytes": self.bytes,
            "damage": damage})
        .to_string()
    }
}

fn location(found: &Damage) -> Value {
    let Damage { fragment, tile, column, domain, cells, message } = found;
    json!({"fragment": fragment.to_string(), "tile": tile, "attribute": column, "domain": domain, "cells": cells,
        "message": message})
}

impl StoreReport {
    /// The report as a JSON object on one line. The [module](crate::engine#reports-as-json) describes ids and domains.
    ///
    /// | key | value |
    /// |---|---|
    /// | `oldest`, `newest` | the oldest version that is kept, and the newest |
    /// | `records` | log records read |
    /// | `manifest` | roots and pages of the manifest read |
    /// | `files` | data files that kept versions name |
    /// | `blocks`, `bytes` | blocks decoded, and their stored bytes |
    /// | `leases` | leases checked |
    /// | `orphans` | objects that no kept version names, which are no damage: an object of `objects`, a count, and `bytes` |
    /// | `damage` | damaged or missing objects, empty if all is sound; an object each, as below |
    /// | `unchecked` | what this release cannot read, and so has not checked: sentences |
    ///
    /// | key of a damaged object | value |
    /// |---|---|
    /// | `object` | its name in the store |
    /// | `versions` | versions that cannot be opened, or not read completely: lists of the first and the last; empty: nothing is lost by it |
    /// | `cells` | cells of these versions that cannot be read, an object each, as below; empty: all of them, or none |
    /// | `message` | what is wrong, in words |
    ///
    /// | key of cells | value |
    /// |---|---|
    /// | `array` | the array's path |
    /// | `fragment` | the id of the fragment; null: all fragments of a manifest page |
    /// | `tile` | the number of the data tile; null: not known |
    /// | `attribute` | the attribute or dimension; null: not known |
    /// | `domain` | their box |
    /// | `cells` | their largest number |
    pub fn to_json(&self) -> String {
        let orphans = json!({"objects": self.orphans.objects, "bytes": self.orphans.bytes});
        json!({"oldest": self.oldest, "newest": self.newest, "records": self.records, "manifest": self.manifest,
            "files": self.files, "blocks": self.blocks, "bytes": self.bytes, "leases": self.leases, "orphans": orphans,
            "damage": objects(&self.damage), "unchecked": self.unchecked})
        .to_string()
    }
}

fn objects(damage: &[StoreDamage]) -> Vec<Value> {
    let object = |found: &StoreDamage| {
        let cells: Vec<Value> = found.cells.iter().map(affected).collect();
        json!({"object": found.object, "versions": found.versions, "cells": cells, "message": found.message})
    };
    damage.iter().map(object).collect()
}

fn affected(found: &AffectedCells) -> Value {
    let AffectedCells { array, fragment, tile, column, domain, cells } = found;
    let fragment = fragment.map(|id| id.to_string());
    json!({"array": array, "fragment": fragment, "tile": tile, "attribute": column, "domain": domain, "cells": cells})
}

impl RepairReport {
    /// The report as a JSON object on one line. The [module](crate::engine#reports-as-json) describes times.
    ///
    /// | key | value |
    /// |---|---|
    /// | `damage` | damaged objects that were found, as in [`StoreReport::to_json`] |
    /// | `actions` | the repairs: objects of `object`, its name in the store, and `what`, in words |
    /// | `remaining` | damaged objects that are left, as in `damage` |
    /// | `kept` | the names under which the damaged objects that were replaced are kept |
    /// | `committed` | the version that was committed to name a new root; null: none was needed |
    /// | `lost` | versions cut off the log, oldest first; an object each, as below |
    ///
    /// | key of a lost version | value |
    /// |---|---|
    /// | `version` | its number |
    /// | `time_us` | when it was committed; null: its record cannot be read |
    /// | `message` | the writer's line; null: none was given, or the record cannot be read |
    /// | `operations` | the names of its operations in the log; empty: its record cannot be read |
    pub fn to_json(&self) -> String {
        let actions: Vec<Value> = self.actions.iter().map(action).collect();
        let lost: Vec<Value> = self.lost.iter().map(lost).collect();
        json!({"damage": objects(&self.damage), "actions": actions, "remaining": objects(&self.remaining),
            "kept": self.kept, "committed": self.committed, "lost": lost})
        .to_string()
    }
}

fn action(done: &RepairAction) -> Value {
    json!({"object": done.object, "what": done.what})
}

fn lost(cut: &LostVersion) -> Value {
    let LostVersion { version, time_us, message, operations } = cut;
    json!({"version": version, "time_us": time_us, "message": message, "operations": operations})
}
