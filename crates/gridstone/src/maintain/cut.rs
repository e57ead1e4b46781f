//! Cuts a log at its last sound version, to repair what a power cut under `durability="close"` may leave behind.
//!
//! Commits that are not durable may be lost in any order: a record is missing while later ones exist, or a record names
//! a data file that is truncated. The log is sound up to the first such version. Only commits after the last durable
//! one are given up because of their data files: damage of older files is no reason to forget versions.

use super::verify_store::StoreDamage;
use crate::base::{Cancel, Error, Result};
use crate::storage::{data_name, log_name};
use crate::store::{Inspection, Record, Recorded, Store};
use std::collections::BTreeSet;

/// A version that a cut gives up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LostVersion {
    /// The version.
    pub version: u64,
    /// When it was committed, UTC in microseconds; `None` if its record cannot be read.
    pub time_us: Option<i64>,
    /// The writer's line for the history.
    pub message: Option<String>,
    /// Its operations, by their names in the log; empty if its record cannot be read.
    pub operations: Vec<&'static str>,
}

/// The position at which a log is cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cut {
    /// The version that will be the newest.
    pub(super) newest: u64,
    /// The versions after it, oldest first.
    pub(super) lost: Vec<LostVersion>,
}

/// The cut of `store`'s log; `None` if it is sound to its end.
///
/// # Errors
/// Corruption if no version is sound; Storage, Access, Cancelled.
pub(super) fn find(
    store: &Store,
    found: &Inspection,
    damage: &[StoreDamage],
    cancel: &dyn Cancel,
) -> Result<Option<Cut>> {
    let flawed: BTreeSet<&str> = damage.iter().map(|d| d.object.as_str()).collect();
    let mut sound: Vec<Record> = Vec::new();
    for version in found.oldest()..=found.newest {
        cancel.check()?;
        if flawed.contains(log_name(version).as_str()) {
            break;
        }
        sound.push(store.kept(version)?);
    }
    let durable = sound.iter().rposition(|record| record.durable).map_or(0, |place| place + 1);
    let torn = |record: &Record| record.data().any(|id| flawed.contains(data_name(id).as_str()));
    let kept = sound.iter().skip(durable).position(torn).map_or(sound.len(), |place| durable + place);
    let Some(newest) = sound.get(..kept).and_then(|kept| kept.last()).map(|record| record.version) else {
        return Err(Error::corruption(format!(
            "the log cannot be cut: version {}, the oldest that is kept, is damaged itself",
            found.oldest()
        )));
    };
    let lost: Vec<LostVersion> = (newest + 1..=found.newest).map(|version| lost_version(store, version)).collect();
    Ok((!lost.is_empty()).then_some(Cut { newest, lost }))
}

fn lost_version(store: &Store, version: u64) -> LostVersion {
    match store.kept(version) {
        Ok(record) => LostVersion {
            version,
            time_us: Some(record.time_us),
            operations: record.operations.iter().map(Recorded::name).collect(),
            message: record.message,
        },
        Err(_) => LostVersion { version, time_us: None, message: None, operations: Vec::new() },
    }
}
