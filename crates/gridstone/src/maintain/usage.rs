//! What a store takes: bytes by array and by what they are for. Objects are listed, and the log and the manifest read;
//! no data file is opened.

use super::vacuum::Tally;
use crate::base::{Cancel, FileRef, Id, Result};
use crate::storage::{DAMAGED, DATA, LEASE, LOG, Listed, MANIFEST};
use crate::store::{Names, Node, Snapshot, Store};
use std::collections::HashMap;

/// What an array of the newest version takes, with its hidden arrays.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ArrayUsage {
    /// Its path.
    pub path: String,
    /// Its fragments.
    pub fragments: u64,
    /// Cells in them; overwritten and deleted ones count until they are merged.
    pub cells: u64,
    /// Bytes of them in data files.
    pub data_bytes: u64,
    /// Bytes of them in log records.
    pub log_bytes: u64,
    /// How many of them only describe files outside of the store.
    pub external: u64,
}

/// What a store takes, by what it is for. The tallies add up to all of its objects.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct StoreUsage {
    /// The newest version.
    pub version: u64,
    /// The oldest version that is kept.
    pub oldest: u64,
    /// Arrays of the newest version, by path.
    pub arrays: Vec<ArrayUsage>,
    /// Data files that the newest version names.
    pub live: Tally,
    /// Data files that only older versions name.
    pub older: Tally,
    /// Data files that no kept version names: of writes that are under way or were given up, or about to be deleted.
    pub orphans: Tally,
    /// Roots and pages of the manifest.
    pub manifest: Tally,
    /// Log records, the floor and the hint. Records hold small fragments too.
    pub log: Tally,
    /// Leases, temporary files, and copies of damaged objects.
    pub other: Tally,
}

/// What the store takes.
///
/// # Errors
/// NotFound if there is no store; Corruption, Storage, Access, Cancelled; SnapshotExpired if vacuums overtake it.
pub fn usage(store: &Store, cancel: &dyn Cancel) -> Result<StoreUsage> {
    let newest = store.latest()?;
    let (mut live, mut kept) = (Names::default(), Names::default());
    live.add_snapshot(store, &newest)?;
    let oldest = store.floor()?.map_or(1, |floor| floor.version);
    kept.add_snapshot(store, &*store.at_version(oldest)?)?;
    for record in store.history(oldest.saturating_add(1), newest.version())? {
        cancel.check()?;
        kept.add_record(store, &record?, oldest)?;
    }
    let mut found = StoreUsage { version: newest.version(), oldest, ..StoreUsage::default() };
    found.arrays = arrays(store, &newest, cancel)?;
    store.storage().survey(DATA, &mut |Listed { name, bytes, .. }| {
        let id = name.rsplit('/').next().and_then(|file| file.strip_suffix(".frag")).and_then(|id| Id::parse(id).ok());
        let tally = match id {
            Some(id) if live.has_data(id) => &mut found.live,
            Some(id) if kept.has_data(id) => &mut found.older,
            _ => &mut found.orphans,
        };
        tally.add(bytes);
    })?;
    let survey =
        |folder: &str, tally: &mut Tally| store.storage().survey(folder, &mut |listed| tally.add(listed.bytes));
    survey(MANIFEST, &mut found.manifest)?;
    survey(LOG, &mut found.log)?;
    for folder in [LEASE, DAMAGED] {
        survey(folder, &mut found.other)?;
    }
    for folder in [LOG, DATA, MANIFEST, LEASE] {
        let temporary = store.storage().sweep(folder, i64::MAX, false)?;
        found.other = found.other.and(Tally { objects: temporary.files, bytes: temporary.bytes });
    }
    Ok(found)
}

/// What each array takes; a hidden one counts for its owner.
fn arrays(store: &Store, newest: &Snapshot, cancel: &dyn Cancel) -> Result<Vec<ArrayUsage>> {
    let mut found: HashMap<Id, ArrayUsage> = HashMap::new();
    for node in newest.nodes()? {
        cancel.check()?;
        let Node::Array(array) = node else { continue };
        let entry = found.entry(array.owner().unwrap_or(array.id())).or_default();
        if array.owner().is_none() {
            array.path().clone_into(&mut entry.path);
        }
        for d in store.fragments_of(&array)? {
            if array.owner().is_none() {
                entry.fragments += 1;
                entry.cells += if d.kind.holds_cells() { d.cells } else { 0 };
            }
            entry.external += u64::from(d.is_external());
            match d.location.file {
                FileRef::Data(_) => entry.data_bytes += d.location.len,
                FileRef::Log(_) => entry.log_bytes += d.location.len,
                _ => {}
            }
        }
    }
    let mut arrays: Vec<ArrayUsage> = found.into_values().collect();
    arrays.sort_by(|a, b| a.path.cmp(&b.path));
    Ok(arrays)
}
