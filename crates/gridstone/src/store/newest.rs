//! Finding the newest version where a look is a request: in few rounds, each of requests side by side.
//!
//! 1. The hint and the floor are read.
//! 2. A hint is behind by less than [`HINT_EVERY`]: so the records from it on are read, as many as there can be and two more. They are
//!    mostly what the opening needs; of those that are long only the start is read, since a root may stand behind them. A log without a
//!    hint is short: it is listed, if it is.
//! 3. The root and the records that are lacking are read ([`Log::fill`]), and the floor once more where the end was found by absent records alone: a
//!    vacuum may have passed since it was read first.
//!
//! Whatever does not look as in a whole log that nobody vacuums is looked at once more as in a folder, one record after the other
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

/// More than a hint has.
const HINT_BYTES: u64 = 32;
/// What is read of a record before it is known whether it is needed: all of most.
const START_BYTES: u64 = 16 * 1024;
/// A log with more objects is not short.
const LISTED_MAX: usize = 64;

/// Records as they were read, by version; an error is of that record alone.
pub(super) type RecordFiles = BTreeMap<u64, Result<Bytes>>;

/// The newest version, and what was read on the way to it.
#[derive(Debug)]
pub(super) struct Newest {
    pub(super) version: u64,
    pub(super) floor: Option<Floor>,
    pub(super) found: Found,
}

/// By what a version was found.
#[derive(Debug)]
pub(super) enum Found {
    /// By looking for it, or it was asked for; the floor was read afterwards.
    Alone,
    /// By the listing of a short log whose first record is of this version.
    Listed(u64),
    /// By reading records, among them its own; the floor was read before.
    Read(RecordFiles),
}

/// What a version is made of besides its own record.
#[derive(Debug, Default)]
pub(super) struct Filling {
    pub(super) root: Option<Root>,
    pub(super) files: RecordFiles,
}

impl Log {
    /// The newest version, where `known` is one that existed (0: none known); `None` if this is not a store.
    ///
    /// # Errors
    /// Corruption if a record was seen beyond one that is missing, or that of the floor is.
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

    /// The end of the log by reading records from `start` on, and these; `None` if it is not there, or anything is unusual.
    fn read_from(&self, start: u64) -> Result<Option<(u64, RecordFiles)>> {
        let last = start.saturating_add(HINT_EVERY + 1);
        let (mut files, there) = self.starts(start..last.saturating_add(1))?;
        let end = (start..=last).take_while(|version| there.contains(version)).last();
        let Some(end) = end.filter(|end| *end < last) else { return Ok(None) };
        if let Some(later) = there.last().filter(|version| **version > end) {
            // Nothing is wrong if it has come meanwhile, or a vacuum is passing; but it is not the end that was looked for.
            return self.check_gap(end + 1, *later).map(|()| None);
        }
        if end.saturating_add(2) > last {
            self.check_ahead(end, end.checked_add(2).into_iter())?;
        }
        files.retain(|version, _| *version <= end);
        Ok(Some((end, files)))
    }

    /// The end of a short log, `Some(None)` if nothing is there; `None` if it is not short or anything is unusual.
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

    /// Which records of `versions` are there, asked for together; and those of them that are short, or are no records that can be read.
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
                // It is there, whatever it is.
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

    /// What a version rests on: the root `reference`, and `records` as far as `files` lacks them, asked for together. With `floor`, it is
    /// read too, and is an error if it is another one by now.
    pub(super) fn fill(
        &self,
        reference: Option<RootRef>,
        records: Range<u64>,
        mut files: RecordFiles,
        floor: Option<Option<Floor>>,
    ) -> Result<Filling> {
        // How many there are is told by what was read, and may be wrong.
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
        let root = reference.map(|reference| Self::root_in(root, reference)).transpose()?;
        Ok(Filling { root, files })
    }

    /// The record of `version` in a file that was read.
    pub(super) fn decoded(file: Result<Bytes>, version: u64) -> Result<Record> {
        Record::decode(&file?, version)
    }
}
