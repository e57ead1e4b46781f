//! Finds the newest version where a probe is a request, in few rounds of concurrent requests.
//!
//! 1. The hint and the floor are read.
//! 2. A hint is behind by less than [`HINT_EVERY`]. So as many records as can exist from the hint on are read, and two
//!    more. The opening mostly needs them anyway. Only the start of long ones is read, since a root may replace them. A
//!    log without a hint is short: it is listed, if the storage can list.
//! 3. The missing root and records are read ([`Log::fill`]). The floor is read once more where the end was inferred
//!    from absent records alone: a vacuum may have passed since the first read.
//!
//! Anything that an intact log without a concurrent vacuum does not show is searched again with sequential probes
//! ([`Log::newest`]).

use super::floor::Floor;
use super::hint::{HINT_EVERY, hint_of, version_of};
use super::log::{Log, RECORDS_AT_ONCE, missing};
use super::record::Record;
use super::root::Root;
use super::shape::RootRef;
use crate::base::{Error, ErrorKind, Result};
use crate::storage::{FLOOR, LATEST, LOG, log_name, manifest_name};
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// More bytes than a hint has.
const HINT_BYTES: u64 = 32;
/// How much of a record is read before it is known whether it is needed: more than most records have.
const START_BYTES: u64 = 16 * 1024;
/// The most objects that a short log has.
const LISTED_MAX: usize = 64;

/// Records as read, by version; an error concerns that record alone.
pub(super) type RecordFiles = BTreeMap<u64, Result<Bytes>>;

/// The newest version, and what was read to find it.
#[derive(Debug)]
pub(super) struct Newest {
    pub(super) version: u64,
    pub(super) floor: Option<Floor>,
    pub(super) found: Found,
}

/// How a version was found.
#[derive(Debug)]
pub(super) enum Found {
    /// By probes, or it was requested; the floor was read afterwards.
    Alone,
    /// By listing a short log whose first record has this version.
    Listed(u64),
    /// By reading records, including its own; the floor was read before.
    Read(RecordFiles),
}

/// What a version is replayed from besides its own record.
#[derive(Debug, Default)]
pub(super) struct Filling {
    pub(super) root: Option<Root>,
    pub(super) files: RecordFiles,
}

impl Log {
    /// The newest version, where `known` is one that existed (0: none known); `None` if this is not a store.
    ///
    /// # Errors
    /// Corruption if a record was seen beyond a missing one, or the floor's record is missing.
    pub(super) fn search(&self, known: u64) -> Result<Option<Newest>> {
        if !self.storage.is_near() {
            let (hint, floor) = self.storage.read_start_and_floor(LATEST, HINT_BYTES);
            let floor = self.present(FLOOR, floor)?.map(|bytes| Floor::decode(&bytes)).transpose()?;
            let start = hint_of(hint.ok()).max(known);
            if start >= HINT_EVERY {
                if let Some((version, files)) = self.read_from(start)? {
                    return Ok(Some(Newest { version, floor, found: Found::Read(files) }));
                }
            } else if let Some(listed) = self.short(floor, known)? {
                return Ok(listed);
            }
        }
        let Some(version) = self.newest(known)? else { return Ok(None) };
        Ok(Some(Newest { version, floor: self.floor()?, found: Found::Alone }))
    }

    /// The end of the log, found by reading records from `start` on, with these records; `None` if `start` does not
    /// exist, or anything is unusual.
    fn read_from(&self, start: u64) -> Result<Option<(u64, RecordFiles)>> {
        let last = start.saturating_add(HINT_EVERY + 1);
        let (mut files, there) = self.starts(start..last.saturating_add(1))?;
        let end = (start..=last).take_while(|version| there.contains(version)).last();
        let Some(end) = end.filter(|end| *end < last) else { return Ok(None) };
        if let Some(later) = there.last().filter(|version| **version > end) {
            // Nothing is wrong if the record has been created meanwhile, or a vacuum is passing; but this is not the
            // end.
            return self.check_gap(end + 1, *later).map(|()| None);
        }
        if end.saturating_add(2) > last {
            self.check_ahead(end, end.checked_add(2).into_iter())?;
        }
        files.retain(|version, _| *version <= end);
        Ok(Some((end, files)))
    }

    /// The end of a short log, `Some(None)` if it is empty; `None` if it is not short or anything is unusual.
    fn short(&self, floor: Option<Floor>, known: u64) -> Result<Option<Option<Newest>>> {
        let names = match self.storage.list_few(LOG, LISTED_MAX) {
            Err(e) if e.kind() == ErrorKind::Access => return Ok(None),
            names => names?,
        };
        let Some(names) = names else { return Ok(None) };
        let lowest = floor.map_or(1, |floor| floor.version);
        let mut versions: Vec<u64> =
            names.iter().filter_map(|name| version_of(name)).filter(|v| *v >= lowest).collect();
        versions.sort_unstable();
        let end = versions.iter().zip(lowest..).take_while(|(version, next)| **version == *next).last();
        let Some((end, _)) = end else {
            return Ok((versions.is_empty() && floor.is_none() && known == 0).then_some(None));
        };
        match versions.last() {
            Some(later) if later > end => self.check_gap(end + 1, *later).map(|()| None),
            _ if known > *end => Ok(None),
            _ => Ok(Some(Some(Newest { version: *end, floor, found: Found::Listed(lowest) }))),
        }
    }

    /// The records of `versions` that exist, requested together, and those of them that are short or cannot be decoded.
    pub(super) fn starts(&self, versions: Range<u64>) -> Result<(RecordFiles, BTreeSet<u64>)> {
        let names: Vec<String> = versions.clone().map(log_name).collect();
        let (mut files, mut there, mut next) = (RecordFiles::new(), BTreeSet::new(), versions.start);
        self.storage.read_each_start(&names, START_BYTES, &mut |name, start| {
            let version = next;
            next += 1;
            match start {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Ok(start) if start.len() as u64 >= START_BYTES => {}
                Ok(whole) => drop(files.insert(version, Ok(whole))),
                // It exists, whatever it is.
                Err(e) if matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) => {
                    files.insert(version, Err(self.unreadable(name, e)));
                }
                Err(e) => return Err(self.unreadable(name, e)),
            }
            there.insert(version);
            Ok(())
        })?;
        Ok((files, there))
    }

    /// What a version is based on: the root `reference`, and those of `records` that `files` lacks, requested together.
    /// With `floor`, the floor is read too; it is an error if it has changed.
    pub(super) fn fill(
        &self,
        reference: Option<RootRef>,
        records: Range<u64>,
        mut files: RecordFiles,
        floor: Option<Option<Floor>>,
    ) -> Result<Filling> {
        // Their number comes from data that was read, and may be wrong.
        let end = records.end.min(records.start.saturating_add(RECORDS_AT_ONCE));
        let lacking: Vec<u64> = (records.start..end).filter(|version| !files.contains_key(version)).collect();
        let root_name = reference.map(|reference| manifest_name(reference.id));
        let names: Vec<String> = (root_name.iter().cloned())
            .chain(lacking.iter().copied().map(log_name))
            .chain(floor.is_some().then(|| FLOOR.to_owned()))
            .collect();
        let (mut root, mut lacking) = (None, lacking.into_iter());
        self.storage.read_each(&names, &mut |name, file| {
            if root_name.as_deref() == Some(name) {
                root = self.present(name, file)?;
            } else if name == FLOOR {
                let found = self.present(name, file)?.map(|bytes| Floor::decode(&bytes)).transpose()?;
                if floor != Some(found) {
                    return Err(Error::storage("the log was vacuumed while it was read; try again"));
                }
            } else if let Some(version) = lacking.next() {
                let file = self.present(name, file)?.ok_or_else(|| missing(version))?;
                files.insert(version, Ok(file));
            }
            Ok(())
        })?;
        let root = reference.map(|reference| self.root_in(root, reference)).transpose()?;
        Ok(Filling { root, files })
    }

    /// The record of `version` in a file that was read.
    pub(super) fn decoded(file: Result<Bytes>, version: u64) -> Result<Record> {
        Record::decode(&file?, version)
    }
}
