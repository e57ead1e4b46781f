//! Lists the objects in a store's folders, with their times by the storage's own clock.

use crate::base::{Id, Result};
use crate::storage::{DATA, LOG, Listed, MANIFEST};
use crate::store::Store;
use std::collections::BTreeMap;

/// A file of the store.
#[derive(Debug, Clone, Copy)]
pub(super) struct File {
    pub(super) id: Id,
    pub(super) bytes: u64,
    pub(super) modified_us: i64,
}

/// The record of a version.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    pub(super) bytes: u64,
    pub(super) modified_us: i64,
}

/// Objects by folder.
#[derive(Debug, Default)]
pub(super) struct Listing {
    pub(super) data: Vec<File>,
    pub(super) manifest: Vec<File>,
    pub(super) records: BTreeMap<u64, Entry>,
}

impl Listing {
    /// The objects of `store`. An object whose name is not in the store's layout is ignored.
    pub(super) fn of(store: &Store) -> Result<Self> {
        let mut listing = Self { data: files(store, DATA, ".frag")?, ..Self::default() };
        listing.manifest = files(store, MANIFEST, "")?;
        store.storage().survey(LOG, &mut |Listed { name, bytes, modified_us }| {
            let digits = name.rsplit('/').next().filter(|file| file.len() == 20);
            if let Some(version) = digits.and_then(|d| d.parse().ok()) {
                listing.records.insert(version, Entry { bytes, modified_us });
            }
        })?;
        Ok(listing)
    }

    /// The latest time at which a record was written. It has passed, whatever any clock shows.
    pub(super) fn latest_us(&self) -> Option<i64> {
        self.records.values().map(|entry| entry.modified_us).max()
    }

    /// The version that was the newest at `time_us`, among those from `base` to `newest`; `base` if none of them
    /// existed. A version exists from the time when its record and all before it exist: recent copies or restores keep
    /// more.
    pub(super) fn newest_at(&self, time_us: i64, base: u64, newest: u64) -> u64 {
        let is_old = |version: &u64| self.records.get(version).is_some_and(|entry| entry.modified_us <= time_us);
        (base..=newest).take_while(is_old).last().unwrap_or(base)
    }

    /// Removes the records below `floor` that were written at `before_us` or earlier from the listing, and returns
    /// them.
    pub(super) fn take_records(&mut self, floor: u64, before_us: i64) -> Vec<(u64, u64)> {
        let old = self.records.range(..floor).filter(|(_, entry)| entry.modified_us <= before_us);
        let old: Vec<(u64, u64)> = old.map(|(version, entry)| (*version, entry.bytes)).collect();
        for (version, _) in &old {
            self.records.remove(version);
        }
        old
    }
}

fn files(store: &Store, folder: &str, ending: &str) -> Result<Vec<File>> {
    let mut found = Vec::new();
    store.storage().survey(folder, &mut |Listed { name, bytes, modified_us }| {
        let file = name.strip_prefix(folder).and_then(|rest| rest.strip_prefix('/'));
        if let Some(Ok(id)) = file.and_then(|file| file.strip_suffix(ending)).map(Id::parse) {
            found.push(File { id, bytes, modified_us });
        }
    })?;
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_version_is_as_old_as_the_youngest_record_up_to_it() {
        let records = [(3, 30), (4, 40), (5, 90), (6, 60), (8, 80)];
        let records = records.map(|(version, modified_us)| (version, Entry { bytes: 1, modified_us })).into();
        let mut listing = Listing { records, ..Listing::default() };
        let at = |listing: &Listing, time| listing.newest_at(time, 3, 8);
        assert_eq!([29, 30, 39, 40, 70, 89].map(|time| at(&listing, time)), [3, 3, 3, 4, 4, 4]);
        assert_eq!(at(&listing, 90), 6, "of version 7 nothing is known");
        assert_eq!(listing.latest_us(), Some(90));
        assert_eq!(listing.take_records(6, 40), [(3, 1), (4, 1)]);
        assert_eq!(listing.take_records(6, 40), []);
    }
}
