//! Finds the newest version where a probe is a request, in few rounds of concurrent requests.
//!
//! 1. The hint and the floor are read.
//! 2. A hint is behind by less than [`FAR_HINT_EVERY`]. So as many records as can exist from the hint on are read, and
//!    two more. The opening mostly needs them anyway, and of long ones only the line. The hint has the lines of the
//!    records before; that of its own version, as it was read, proves them. A log without a hint is short: it is
//!    listed, if the storage can list.
//! 3. The missing root and records are read ([`Log::fill`]), which are the root alone where the hint was right. The
//!    floor is read once more where the end was inferred from absent records alone: a vacuum may have passed since the
//!    first read.
//!
//! Anything that an intact log without a concurrent vacuum does not show is searched again with sequential probes
//! ([`Log::newest`]).

use super::floor::Floor;
use super::hint::{FAR_HINT_EVERY, Hint, version_of};
use super::log::{Log, RECORDS_AT_ONCE, missing};
use super::record::{self, Record};
use super::root::Root;
use super::shape::RootRef;
use crate::base::{Error, ErrorKind, Result, limits};
use crate::storage::{FLOOR, LATEST, LOG, log_name, manifest_name};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::{Range, RangeInclusive};

/// How much of a record is read before it is known whether it is needed: more than the line of most records.
const START_BYTES: u64 = limits::HINT_LINE_BYTES_MAX as u64;
/// The most objects that a short log has.
const LISTED_MAX: usize = 64;

/// Records that were read, by version; an error concerns that record alone.
pub(super) type Records = BTreeMap<u64, Result<Record>>;

/// The newest version, and what was read to find it.
#[derive(Debug)]
pub(super) struct Newest {
    pub(super) version: u64,
    pub(super) floor: Option<Floor>,
    pub(super) found: Found,
    /// Records that were read on the way, or proved to be those of the hint.
    pub(super) records: Records,
}

/// How a version was found.
#[derive(Debug)]
pub(super) enum Found {
    /// By probes, or it was requested; the floor was read afterwards.
    Alone,
    /// By listing a short log whose first record has this version.
    Listed(u64),
    /// By reading records, mostly including its own; the floor was read before.
    Read,
}

/// What a version is replayed from besides its own record.
#[derive(Debug, Default)]
pub(super) struct Filling {
    pub(super) root: Option<Root>,
    pub(super) records: Records,
}

impl Newest {
    /// A version found without reading a record.
    pub(super) fn new(version: u64, floor: Option<Floor>, found: Found) -> Self {
        Self { version, floor, found, records: Records::new() }
    }
}

impl Log {
    /// The newest version, where `known` is one that existed (0: none known); `None` if this is not a store.
    ///
    /// # Errors
    /// Corruption if a record was seen beyond a missing one, or the floor's record is missing.
    pub(super) fn search(&self, known: u64) -> Result<Option<Newest>> {
        let mut records = Records::new();
        if !self.storage.is_near() {
            let (hint, floor) = self.storage.read_start_and_floor(LATEST, limits::HINT_BYTES_MAX as u64);
            let floor = self.present(FLOOR, floor)?.map(|bytes| Floor::decode(&bytes)).transpose()?;
            let hint = hint.map(|bytes| Hint::decode(&bytes)).unwrap_or_default();
            // The hint serves, if no more is known than what may follow it.
            let is_known = hint.version.saturating_add(FAR_HINT_EVERY) > known;
            let start = if is_known { hint.version } else { known };
            if start >= FAR_HINT_EVERY {
                let (end, read) = self.read_from(start, hint)?;
                if let Some(version) = end.filter(|end| *end >= known) {
                    return Ok(Some(Newest { version, floor, found: Found::Read, records: read }));
                }
                records = read;
            } else if let Some(listed) = self.short(floor, known)? {
                return Ok(listed);
            }
        }
        let Some(version) = self.newest(known)? else { return Ok(None) };
        Ok(Some(Newest { version, floor: self.floor()?, found: Found::Alone, records }))
    }

    /// The end of the log, found by reading records from `start` on, and the records that are known then; `None` if
    /// `start` does not exist, or anything is unusual. Some more are read if all of these exist: hints may be lost.
    fn read_from(&self, start: u64, hint: Hint) -> Result<(Option<u64>, Records)> {
        let (mut records, mut there) = (Records::new(), BTreeSet::new());
        let (mut next, mut count) = (start, FAR_HINT_EVERY + 2);
        loop {
            let to = next.saturating_add(count);
            let (read, found) = self.starts(next..to)?;
            let at_end = (found.len() as u64) < count;
            records.extend(read);
            there.extend(found);
            (next, count) = (to, 2 * count);
            if at_end || next - start + count > RECORDS_AT_ONCE {
                break;
            }
        }
        take_tail(&mut records, hint);
        let end = self.end_of(start..=next - 1, &there)?;
        records.retain(|version, _| end.is_none_or(|end| *version <= end));
        Ok((end, records))
    }

    /// The last of the versions `probed`, of which these are `there`; `None` as in [`Log::read_from`].
    fn end_of(&self, probed: RangeInclusive<u64>, there: &BTreeSet<u64>) -> Result<Option<u64>> {
        let last = *probed.end();
        let end = probed.take_while(|version| there.contains(version)).last();
        let Some(end) = end.filter(|end| *end < last) else { return Ok(None) };
        if let Some(later) = there.last().filter(|version| **version > end) {
            // Nothing is wrong if the record has been created meanwhile, or a vacuum is passing; but this is not the
            // end.
            return self.check_gap(end + 1, *later).map(|()| None);
        }
        if end.saturating_add(2) > last {
            self.check_ahead(end, end.checked_add(2).into_iter())?;
        }
        Ok(Some(end))
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
            _ => Ok(Some(Some(Newest::new(*end, floor, Found::Listed(lowest))))),
        }
    }

    /// The records of `versions` that exist, requested together, with those of them whose lines are not very long.
    pub(super) fn starts(&self, versions: Range<u64>) -> Result<(Records, BTreeSet<u64>)> {
        let names: Vec<String> = versions.clone().map(log_name).collect();
        let (mut records, mut there, mut next) = (Records::new(), BTreeSet::new(), versions.start);
        self.storage.read_each_start(&names, START_BYTES, &mut |name, start| {
            let version = next;
            next += 1;
            match start {
                Err(e) if e.kind() == ErrorKind::NotFound => return Ok(()),
                Ok(start) if start.len() as u64 >= START_BYTES => {
                    if record::has_line(&start) {
                        records.insert(version, Record::decode_head(&start, version));
                    }
                }
                Ok(whole) => drop(records.insert(version, Record::decode(&whole, version))),
                // It exists, whatever it is.
                Err(e) if matches!(e.kind(), ErrorKind::Corruption | ErrorKind::Unsupported) => {
                    records.insert(version, Err(self.unreadable(name, e)));
                }
                Err(e) => return Err(self.unreadable(name, e)),
            }
            there.insert(version);
            Ok(())
        })?;
        Ok((records, there))
    }

    /// What a version is based on: the root `reference`, and those of `versions` that `records` lacks, requested together.
    /// With `floor`, the floor is read too; it is an error if it has changed.
    pub(super) fn fill(
        &self,
        reference: Option<RootRef>,
        versions: Range<u64>,
        mut records: Records,
        floor: Option<Option<Floor>>,
    ) -> Result<Filling> {
        // Their number comes from data that was read, and may be wrong.
        let end = versions.end.min(versions.start.saturating_add(RECORDS_AT_ONCE));
        let lacking: Vec<u64> = (versions.start..end).filter(|version| !records.contains_key(version)).collect();
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
                records.insert(version, Record::decode(&file, version));
            }
            Ok(())
        })?;
        let root = reference.map(|reference| self.root_in(root, reference)).transpose()?;
        Ok(Filling { root, records })
    }
}

/// Adds the records of a hint's tail to `records`, which were read, if the one of its version is among these and proves
/// them.
fn take_tail(records: &mut Records, hint: Hint) {
    let read = records.get(&hint.version).and_then(|record| record.as_ref().ok()).map(|record| record.xxh3);
    if hint.tail.last().is_some_and(|last| read == Some(last.xxh3)) {
        for record in hint.tail {
            records.entry(record.version).or_insert(Ok(record));
        }
    }
}
