//! The log as objects: reads records, the floor and the hint, and finds the newest version without listing.
//!
//! Versions are contiguous from the floor, so the newest is found by galloping up from any existing version, then
//! halving. The hint only saves steps: a missing or wrong one costs a few more probes. Where a probe is a request,
//! [`super::newest`] requests several records at once, and gallops only if they do not show the end.
//!
//! A record that is missing in the middle looks like the end of the log. So a search that finds an end also probes the
//! version after the next. Where a probe is no request, it also probes all versions that a hint may lag behind. A
//! record seen beyond a missing one is an error. A gap that no probe looked behind is found by a reader that crosses
//! it, and by the store's verification.

use super::floor::Floor;
use super::hint::{self, FAR_HINT_EVERY, HINT_EVERY, Hint, version_of};
use super::record::{self, Record};
use super::root::{self, Root};
use super::shape::RootRef;
use super::snapshot::Snapshot;
use crate::base::{Error, ErrorKind, Result, limits};
use crate::storage::{FLOOR, LATEST, LOG, Storage, log_name, manifest_name};
use bytes::Bytes;
use std::ops::Range;
use std::sync::Arc;

/// The records that are requested together: as many as lie between two roots.
pub(super) const RECORDS_AT_ONCE: u64 = limits::FOLD_VERSIONS;

/// How much of a record is read to get its line, which is mostly shorter.
const LINE_START_BYTES: u64 = 64 << 10;

/// What is in the slot of the record that another one follows.
#[derive(Debug)]
pub(super) enum Before {
    /// The record that was followed.
    Parent,
    /// A sound record, but not the parent.
    Other,
    /// The storage reports that there is none.
    Absent,
    /// The slot cannot be read.
    Unclear(Error),
}

pub(super) fn missing(version: u64) -> Error {
    Error::corruption(format!(
        "the log record of version {version} is missing; put {} back from a copy of the store, or let `gridstone repair` say what can be \
         mended",
        log_name(version)
    ))
}

/// The objects of a store's log.
#[derive(Debug, Clone)]
pub(super) struct Log {
    pub(super) storage: Arc<dyn Storage>,
}

impl Log {
    /// The record of `version`; `None` if there is no such object. Corruption or Unsupported if it cannot be understood.
    pub(super) fn read(&self, version: u64) -> Result<Option<Record>> {
        let file = self.read_object(&log_name(version))?;
        file.map(|file| Record::decode(&file, version)).transpose()
    }

    /// The record of `version` and its whole file; Corruption if it is missing.
    pub(super) fn read_file(&self, version: u64) -> Result<(Record, Bytes)> {
        let file = self.read_object(&log_name(version))?.ok_or_else(|| missing(version))?;
        Ok((Record::decode(&file, version)?, file))
    }

    /// Passes the records of `versions` to `visit`, oldest first; Corruption if one is missing.
    pub(super) fn read_each(&self, versions: Range<u64>, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<()> {
        let mut next = versions.start;
        while next < versions.end {
            // Their number comes from data that was read, and may be wrong: the first missing record ends the loop.
            let to = versions.end.min(next.saturating_add(RECORDS_AT_ONCE));
            let names: Vec<String> = (next..to).map(log_name).collect();
            self.storage.read_each(&names, &mut |name, file| {
                let version = next;
                next += 1;
                let file = file.map_err(|e| match e.kind() {
                    ErrorKind::NotFound => missing(version),
                    _ => self.unreadable(name, e),
                })?;
                visit(Record::decode(&file, version)?)
            })?;
        }
        Ok(())
    }

    /// Passes the records from version `from` on to `visit`, oldest first and at most `most`, until there is no next
    /// one. Returns whether the end was reached.
    pub(super) fn read_on(&self, from: u64, most: u64, visit: &mut dyn FnMut(Record) -> Result<()>) -> Result<bool> {
        let (mut next, end) = (from, from.saturating_add(most));
        // Where a read is a request, batches double in size, so that about as many requests miss as hit at most.
        let mut at_once = 1;
        while next < end {
            let names: Vec<String> = (next..end.min(next + at_once)).map(log_name).collect();
            let mut at_end = false;
            let read = self.storage.read_each(&names, &mut |name, file| {
                let file = match file {
                    Err(e) if e.kind() == ErrorKind::NotFound => {
                        at_end = true;
                        return Err(e);
                    }
                    file => file.map_err(|e| self.unreadable(name, e))?,
                };
                visit(Record::decode(&file, next)?)?;
                next += 1;
                Ok(())
            });
            if at_end {
                return Ok(true);
            }
            read?;
            if !self.storage.is_near() {
                at_once = (at_once * 2).min(RECORDS_AT_ONCE);
            }
        }
        Ok(false)
    }

    pub(super) fn unreadable(&self, name: &str, error: Error) -> Error {
        error.context(format!("{name} in {}", self.storage.describe()))
    }

    /// The floor; `None` if the log starts at version 1.
    pub(super) fn floor(&self) -> Result<Option<Floor>> {
        self.read_object(FLOOR)?.map(|bytes| Floor::decode(&bytes)).transpose()
    }

    /// The lowest version still kept.
    pub(super) fn floor_version(&self) -> Result<u64> {
        Ok(self.floor()?.map_or(1, |f| f.version))
    }

    /// What is in the slot of the record before `version`, whose line should have the checksum `parent`.
    pub(super) fn before(&self, version: u64, parent: Option<u64>) -> Before {
        let Some(parent) = parent else { return Before::Parent };
        let before = version.saturating_sub(1);
        self.compared(before, parent, self.storage.read_start(&log_name(before), LINE_START_BYTES))
    }

    /// Like [`Log::before`], with the floor; where a read is a request, both are requested concurrently.
    pub(super) fn before_and_floor(&self, version: u64, parent: Option<u64>) -> (Before, Result<Option<Floor>>) {
        let Some(parent) = parent else { return (Before::Parent, self.floor()) };
        let before = version.saturating_sub(1);
        let (start, floor) = self.storage.read_start_and_floor(&log_name(before), LINE_START_BYTES);
        let floor = self.present(FLOOR, floor).and_then(|bytes| bytes.map(|bytes| Floor::decode(&bytes)).transpose());
        (self.compared(before, parent, start), floor)
    }

    /// Compares a record, whose file starts with `start`, with the expected parent.
    fn compared(&self, version: u64, parent: u64, start: Result<Bytes>) -> Before {
        let whole = |start: Bytes| match start.len() as u64 == LINE_START_BYTES && !record::has_line(&start) {
            true => self.storage.read_all(&log_name(version)),
            false => Ok(start),
        };
        match start.and_then(whole).and_then(|file| Record::checksum(&file, version)) {
            Ok(found) if found == parent => Before::Parent,
            Ok(_) => Before::Other,
            // It was read and is sound, but has a format or key that the parent did not have.
            Err(e) if e.is_foreign() => Before::Other,
            Err(e) if e.kind() == ErrorKind::NotFound => Before::Absent,
            Err(e) => Before::Unclear(self.unreadable(&log_name(version), e)),
        }
    }

    /// The error for a store that is not the one that was opened.
    pub(super) fn gone(&self) -> Error {
        Error::not_found(format!(
            "the store {} was deleted since it was opened, or another one was made in its place; open it again. Nothing was committed",
            self.storage.describe()
        ))
    }

    /// The root that `reference` names.
    pub(super) fn root(&self, reference: RootRef) -> Result<Root> {
        self.root_in(self.read_object(&manifest_name(reference.id))?, reference)
    }

    /// The root that `reference` names, decoded from the bytes read.
    pub(super) fn root_in(&self, bytes: Option<Bytes>, reference: RootRef) -> Result<Root> {
        let bytes = bytes.ok_or_else(|| {
            Error::corruption(format!(
                "manifest root {} of version {}, which the log names, is missing",
                reference.id, reference.version
            ))
        })?;
        root::decode(&bytes, reference, &self.storage)
    }

    /// The object of this name; `None` if there is none.
    pub(super) fn read_object(&self, name: &str) -> Result<Option<Bytes>> {
        self.present(name, self.storage.read_all(name))
    }

    /// The result of a read of `name`; `None` if there is no such object.
    pub(super) fn present(&self, name: &str, read: Result<Bytes>) -> Result<Option<Bytes>> {
        match read {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(self.unreadable(name, e)),
        }
    }

    fn has(&self, version: u64) -> Result<bool> {
        self.storage.exists(&log_name(version))
    }

    /// The version that the hint names; 0 if it names none.
    fn hint(&self) -> u64 {
        self.storage.read_all(LATEST).map_or(0, |bytes| hint::number_of(&bytes))
    }

    /// Writes the hint that the version of `snapshot` exists, if it is due. A failure is ignored.
    pub(super) fn put_hint(&self, snapshot: &Snapshot) {
        let every = if self.storage.is_near() { HINT_EVERY } else { FAR_HINT_EVERY };
        if snapshot.version().is_multiple_of(every) {
            self.renew_hint(snapshot);
        }
    }

    /// Writes the hint that the version of `snapshot` exists. A failure is ignored.
    pub(super) fn renew_hint(&self, snapshot: &Snapshot) {
        let bytes = match self.storage.is_near() {
            true => snapshot.version().to_string().into_bytes(),
            false => hint::encode(snapshot.version(), snapshot.since()),
        };
        // A failure is no error of the commit: the next reader gallops a little further.
        let _ = self.storage.put_hint(LATEST, &bytes);
    }

    /// Writes the hint anew if the one that is there is damaged: a copy that was cut short may have left a part of it.
    pub(super) fn mend_hint(&self, snapshot: &Snapshot) {
        if self.storage.read_all(LATEST).is_ok_and(|bytes| Hint::decode(&bytes).is_damaged()) {
            self.renew_hint(snapshot);
        }
    }

    /// The newest version, where `known` is one that existed (0: none known), found by sequential probes; `None` if
    /// this is not a store.
    ///
    /// # Errors
    /// Corruption if a record was seen beyond a missing one, or the floor's record is missing.
    pub(super) fn newest(&self, known: u64) -> Result<Option<u64>> {
        let start = self.hint().max(known);
        if start > 0
            && let Some(end) = self.end_from(start, HINT_EVERY)?
        {
            return Ok(Some(end));
        }
        let mut floor = self.floor()?;
        loop {
            if let Some(end) = self.end_above(floor.map_or(1, |f| f.version), start)? {
                return Ok(Some(end));
            }
            let before = floor;
            floor = self.floor()?;
            if floor == before {
                return floor.map_or(Ok(None), |f| Err(without_floor(f)));
            }
            // A vacuum has moved the floor meanwhile, and removed the records probed.
        }
    }

    /// The newest version, searched upwards from `lowest`; `None` if that does not exist. `start` is a version that
    /// should exist.
    fn end_above(&self, lowest: u64, start: u64) -> Result<Option<u64>> {
        let end = if self.has(lowest)? { self.end_from(lowest, 2)? } else { None };
        // Either the writer of the hint saw more, or the hint is wrong.
        if let Some(end) = end.filter(|end| *end < start)
            && let Some(later) = self.listed_above(end)?
        {
            self.check_gap(end + 1, later)?;
        }
        Ok(end)
    }

    /// The newest version, searched upwards from `start`, at first by `step`; `None` if no version is found from there
    /// on.
    ///
    /// If the hint is as new as it can be, the end is less than eight versions beyond it. So the first step mostly goes
    /// too far, and halving takes three more. With the probe of the version after the next, that is no more than
    /// galloping from a step of one took.
    fn end_from(&self, start: u64, mut step: u64) -> Result<Option<u64>> {
        let (mut there, mut probed) = (start, Vec::new());
        let mut absent = loop {
            let probe = there.saturating_add(step);
            if probe == there || !self.has(probe)? {
                break probe;
            }
            (there, step) = (probe, step.saturating_mul(2));
        };
        probed.push(absent);
        while absent - there > 1 {
            let middle = there.midpoint(absent);
            if self.has(middle)? {
                there = middle;
            } else {
                absent = middle;
                probed.push(absent);
            }
        }
        if there == start && !self.has(start)? {
            return Ok(None);
        }
        let ahead = if self.storage.is_near() { HINT_EVERY } else { 2 };
        self.check_ahead(there, (2..=ahead).filter_map(|n| there.checked_add(n)).filter(|v| !probed.contains(v)))?;
        Ok(Some(there))
    }

    /// Corruption if one of the versions `later` exists although the one after `end` still does not. In an intact log a
    /// version is only ever created after the one before it.
    pub(super) fn check_ahead(&self, end: u64, later: impl DoubleEndedIterator<Item = u64>) -> Result<()> {
        for version in later.rev() {
            if self.has(version)? {
                return self.check_gap(end + 1, version);
            }
        }
        Ok(())
    }

    /// The same check for a version `end` that was found to be the newest by other means; `seen` is a version that
    /// existed. Where a probe is a request, nothing is probed unless `seen` is beyond `end`.
    ///
    /// # Errors
    /// Corruption if a record beyond a missing one was seen.
    pub(super) fn check_end(&self, end: u64, seen: u64) -> Result<()> {
        let ahead = if self.storage.is_near() { HINT_EVERY } else { 0 };
        let near = (2..=ahead).filter_map(|n| end.checked_add(n));
        self.check_ahead(end, near.chain((seen > end.saturating_add(1)).then_some(seen)))
    }

    /// Corruption if any record exists although that of version 1, which no floor makes void, is missing.
    pub(super) fn check_absent(&self) -> Result<()> {
        match self.listed_above(0)? {
            Some(later) => self.check_gap(1, later),
            None => Ok(()),
        }
    }

    /// A version above `end` that has a record; `None` also if listing is not allowed. For rare cases only: this may
    /// list a long log.
    fn listed_above(&self, end: u64) -> Result<Option<u64>> {
        let mut later = None;
        let listed = self.storage.survey(LOG, &mut |object| {
            later = later.or(version_of(&object.name).filter(|version| *version > end));
        });
        match listed {
            Err(e) if e.kind() == ErrorKind::Access => Ok(None),
            listed => listed.map(|()| later),
        }
    }

    /// Corruption if `missing` still does not exist; `later` was seen after it was found missing. Below the floor any
    /// record may be missing.
    pub(super) fn check_gap(&self, missing: u64, later: u64) -> Result<()> {
        if self.has(missing)? || self.floor_version()? > missing {
            return Ok(());
        }
        let before = match missing {
            0 | 1 => String::new(),
            missing => format!("; version {} may still be opened as such", missing - 1),
        };
        Err(Error::corruption(format!(
            "the log record of version {missing} is missing, and a later one, of version {later}, is there: somebody deleted it, or the store was \
             copied in part. Put {} back from another copy, or let `gridstone repair` say what can be mended{before}. Nothing was written",
            log_name(missing)
        )))
    }
}

fn without_floor(floor: Floor) -> Error {
    Error::corruption(format!(
        "the log's floor says that version {} is kept, its record is missing; put {} back from a copy of the store, or let \
         `gridstone repair` say what can be mended",
        floor.version,
        log_name(floor.version)
    ))
}
