//! The log as objects: reading records, the floor and the hint, and finding the newest version without listing.
//!
//! Versions are contiguous from the floor, so the newest is found by galloping up from any version that exists and
//! then halving. The hint only saves steps: a missing or wrong one is worth a few more probes.

use super::floor::Floor;
use super::record::Record;
use super::root::{self, Root};
use super::shape::RootRef;
use crate::base::{Error, ErrorKind, Result};
use crate::storage::{FLOOR, LATEST, Storage, log_name, manifest_name};
use bytes::Bytes;
use std::sync::Arc;

/// Commits between two writes of the hint: a gallop over as many versions costs less than a write with each commit.
pub(super) const HINT_EVERY: u64 = 8;

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
        let file = self.read_object(&log_name(version))?;
        let file = file.ok_or_else(|| Error::corruption(format!("the log record of version {version} is missing")))?;
        Ok((Record::decode(&file, version)?, file))
    }

    /// The floor; `None` if the log starts at version 1.
    pub(super) fn floor(&self) -> Result<Option<Floor>> {
        self.read_object(FLOOR)?.map(|bytes| Floor::decode(&bytes)).transpose()
    }

    /// The lowest version still kept.
    pub(super) fn floor_version(&self) -> Result<u64> {
        Ok(self.floor()?.map_or(1, |f| f.version))
    }

    /// The root that `reference` names.
    pub(super) fn root(&self, reference: RootRef) -> Result<Root> {
        let bytes = self.read_object(&manifest_name(reference.id))?.ok_or_else(|| {
            Error::corruption(format!(
                "manifest root {} of version {}, which the log names, is missing",
                reference.id, reference.version
            ))
        })?;
        root::decode(&bytes, reference)
    }

    /// The object of this name; `None` if there is none.
    pub(super) fn read_object(&self, name: &str) -> Result<Option<Bytes>> {
        match self.storage.read_all(name) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e.context(format!("{} in {}", name, self.storage.describe()))),
        }
    }

    fn has(&self, version: u64) -> Result<bool> {
        self.storage.exists(&log_name(version))
    }

    /// What the hint says; 0 if it says nothing.
    fn hint(&self) -> u64 {
        let text = self.storage.read_all(LATEST).ok();
        text.and_then(|t| std::str::from_utf8(&t).ok()?.trim().parse().ok()).unwrap_or(0)
    }

    /// Hints that `version` exists. A failure is of no consequence.
    pub(super) fn put_hint(&self, version: u64) {
        if version.is_multiple_of(HINT_EVERY) {
            // Not an error of the commit: the next reader gallops a little further.
            let _ = self.storage.put_hint(LATEST, version.to_string().as_bytes());
        }
    }

    /// The newest version, where `known` is one that existed (0: none known); `None` if this is not a store.
    pub(super) fn newest(&self, known: u64) -> Result<Option<u64>> {
        let start = self.hint().max(known);
        if start > 0 && self.has(start)? {
            return self.gallop(start).map(Some);
        }
        let floor = self.floor()?;
        let start = floor.map_or(1, |f| f.version);
        match (self.has(start)?, floor) {
            (true, _) => self.gallop(start).map(Some),
            (false, None) => Ok(None),
            (false, Some(f)) => Err(Error::corruption(format!(
                "the log's floor says that version {} is kept, its record is missing",
                f.version
            ))),
        }
    }

    /// The newest version, going up from `start`, which exists.
    fn gallop(&self, start: u64) -> Result<u64> {
        let (mut there, mut step) = (start, 1u64);
        let mut absent = loop {
            let probe = there.saturating_add(step);
            if probe == there || !self.has(probe)? {
                break probe;
            }
            (there, step) = (probe, step.saturating_mul(2));
        };
        while absent - there > 1 {
            let middle = there.midpoint(absent);
            if self.has(middle)? {
                there = middle;
            } else {
                absent = middle;
            }
        }
        Ok(there)
    }
}
