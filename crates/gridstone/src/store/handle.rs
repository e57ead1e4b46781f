//! A store: opens it at a version or a time, follows it, and reads its history. Commits are in [`super::commit`].
//!
//! Opening version N reads record N, the root that it names (or the floor's, if that is newer), and the records in
//! between. Besides the last record, that is at most about [`limits::FOLD_VERSIONS`] objects and [`limits::FOLD_BYTES`]
//! of records, whatever the number of versions and fragments. Where each read is a request, the records in between are
//! requested concurrently.

use super::committed::Committed;
use super::conflict::{MustBeFirst, Rebase};
use super::floor::Floor;
use super::log::Log;
use super::newest::{Filling, Found, Newest, Records};
use super::operation::{Changes, Operation};
use super::path;
use super::record::Record;
use super::snapshot::{Made, Snapshot};
use super::times::Times;
use crate::base::{Clock, Digest, Entropy, Error, ErrorKind, Events, Files, Id, Notices, Result, limits};
use crate::storage::{ForeignFiles, Storage, StoreFiles};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};

/// A queue in which commits to a store wait for each other.
pub trait CommitQueue: Send + Sync + std::fmt::Debug {
    /// Commits `changes` to `store` as [`Store::commit_once`] does, now or when its turn comes, perhaps together with others.
    ///
    /// # Errors
    /// Those of [`Store::commit_once`].
    fn commit(
        &self,
        store: &Store,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Committed>;
}

/// The commit queues of a process.
pub trait Queues: Send + Sync + std::fmt::Debug {
    /// The queue of this process; the child of a fork has a queue of its own.
    ///
    /// # Errors
    /// Storage: the queue cannot be made.
    fn queue(&self) -> Result<&dyn CommitQueue>;
}

/// How often opening a version is retried when vacuums remove it meanwhile. Each retry was passed by another vacuum,
/// which takes longer than opening, so this many in a row do not happen by chance.
pub(super) const OPENINGS: usize = 32;

/// A store of arrays in a storage. Threads share it; its only state is the newest version seen.
#[derive(Debug)]
pub struct Store {
    pub(super) log: Log,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) entropy: Arc<dyn Entropy>,
    pub(super) fold_versions: u64,
    /// The queues that join commits of this process, if any.
    pub(super) queues: Option<Arc<dyn Queues>>,
    pub(super) times: Times,
    /// Where events go, if anywhere.
    pub(super) events: Option<Arc<dyn Events>>,
    /// What files of other formats its arrays may read.
    foreign: Arc<ForeignFiles>,
    /// The newest version seen, from which the search for the newest starts.
    seen: AtomicU64,
    /// The hash of the place of its storage, once it was asked for.
    place: OnceLock<Id>,
}

impl Store {
    /// The store in `storage`, existing or not. Nothing is read or written.
    pub fn new(storage: Arc<dyn Storage>, clock: Arc<dyn Clock>, entropy: Arc<dyn Entropy>) -> Self {
        let (log, fold_versions) = (Log { storage }, limits::FOLD_VERSIONS);
        let (times, seen, place) = (Times::default(), AtomicU64::new(0), OnceLock::new());
        Self {
            log,
            clock,
            entropy,
            fold_versions,
            queues: None,
            times,
            events: None,
            foreign: Arc::default(),
            seen,
            place,
        }
    }

    /// The same store, folding when the newest root is `versions` (at least one) behind.
    #[must_use]
    pub fn with_fold_versions(mut self, versions: u64) -> Self {
        self.fold_versions = versions.max(1);
        self
    }

    /// The same store, whose commits queue with those of all stores with the same `queues`: small ones share records.
    #[must_use]
    pub fn with_queues(mut self, queues: Arc<dyn Queues>) -> Self {
        self.queues = Some(queues);
        self
    }

    /// The same store, which sends notices for its users to `notices`.
    #[must_use]
    pub fn with_notices(mut self, notices: Arc<Notices>) -> Self {
        self.times = Times::telling(notices);
        self
    }

    /// The same store, whose arrays may read these files of other formats.
    #[must_use]
    pub fn with_foreign(mut self, foreign: Arc<ForeignFiles>) -> Self {
        self.foreign = foreign;
        self
    }

    /// What files of other formats its arrays may read.
    pub fn foreign(&self) -> &Arc<ForeignFiles> {
        &self.foreign
    }

    /// The storage that it is kept in.
    pub fn storage(&self) -> &Arc<dyn Storage> {
        &self.log.storage
    }

    /// The store of this id where it lies. It tells what a process remembers of the store from what it remembers of its copies
    /// elsewhere, which have the store's id and those of its fragments.
    pub fn place(&self, store: Id) -> Id {
        let hashed = || {
            let mut digest = Digest::new("place");
            digest.bytes(self.log.storage.place().as_bytes());
            Id(digest.finish().to_be_bytes())
        };
        let place = self.place.get_or_init(hashed);
        Id((u128::from_be_bytes(place.0) ^ u128::from_be_bytes(store.0)).to_be_bytes())
    }

    /// Its data files by id, for reading and writing fragments.
    pub fn files(&self) -> Arc<dyn Files> {
        Arc::new(StoreFiles { storage: Arc::clone(&self.log.storage), foreign: Some(Arc::clone(&self.foreign)) })
    }

    /// Whether there is a store, damaged or not.
    pub fn exists(&self) -> Result<bool> {
        match self.log.newest(self.seen()) {
            Err(e) if e.kind() == ErrorKind::Corruption => Ok(true),
            newest => Ok(newest?.is_some()),
        }
    }

    /// The number of its newest version, which may not open; `None` if there is no store.
    ///
    /// # Errors
    /// Corruption if a record is missing; Storage, Access.
    pub fn newest_version(&self) -> Result<Option<u64>> {
        self.log.newest(self.seen())
    }

    /// Creates the store with `changes` as its version 1. Without an array at "/", a group is created there.
    ///
    /// # Errors
    /// Exists if there is a store, or one is created meanwhile; Corruption if there are remains of one; Input, before
    /// anything is written, if a path is invalid; those of [`Store::commit`].
    pub fn create(&self, changes: Changes) -> Result<Arc<Snapshot>> {
        if self.exists()? {
            return Err(Error::exists(format!("there is a store in {} already", self.log.storage.describe())));
        }
        for operation in &changes.operations {
            if let Operation::CreateGroup { path, .. } | Operation::CreateArray { path, .. } = operation {
                path::check(path)?;
            }
        }
        if self.log.storage.is_near() {
            self.log.check_absent()?;
        } else {
            self.log.check_end(0, 2)?;
        }
        self.log.storage.prepare()?;
        self.commit(&Arc::new(Snapshot::before_all()), changes, &mut MustBeFirst)
    }

    /// The newest version.
    ///
    /// # Errors
    /// NotFound if this is no store; Corruption if its newest record, or one needed to replay it, is damaged, since
    /// records are never skipped; Unsupported if a newer Gridstone wrote it.
    pub fn latest(&self) -> Result<Arc<Snapshot>> {
        for _ in 0..OPENINGS {
            let Some(newest) = self.log.search(self.seen())? else {
                self.log.check_absent()?;
                return Err(self.no_store());
            };
            if let Some(snapshot) = self.open(newest)? {
                return Ok(snapshot);
            }
        }
        Err(self.restless())
    }

    /// Version `version`.
    ///
    /// # Errors
    /// NotFound if there is no such version (yet), SnapshotExpired if it has been vacuumed; those of [`Store::latest`].
    pub fn at_version(&self, version: u64) -> Result<Arc<Snapshot>> {
        let mut floors = Vec::new();
        for _ in 0..OPENINGS {
            let asked = Newest::new(version, self.log.floor()?, Found::Alone);
            if let Some(snapshot) = self.open(asked)? {
                return Ok(snapshot);
            }
            let floor = self.log.floor_version()?;
            if version < floor && version > 0 {
                return Err(expired(version, floor));
            }
            // The floor does not move, so no vacuum is the cause: the record itself is damaged or missing.
            if floors.ends_with(&[floor, floor]) {
                break;
            }
            floors.push(floor);
            let newest = self.log.newest(floor)?.ok_or_else(|| self.no_store())?;
            if version == 0 || version > newest {
                return Err(Error::not_found(format!(
                    "there is no version {version}; versions {floor} to {newest} can be opened"
                )));
            }
        }
        // If its record is missing though later ones exist, that is the error.
        self.kept(version)?;
        Err(self.restless())
    }

    /// The last version whose time is not after `time_us` (UTC, microseconds).
    ///
    /// # Errors
    /// NotFound if the store is younger, SnapshotExpired if that version has been vacuumed; those of [`Store::latest`].
    pub fn at_time(&self, time_us: i64) -> Result<Arc<Snapshot>> {
        let (version, floor) = self.version_at(time_us)?;
        match version {
            version if version >= floor => self.at_version(version),
            0 => Err(Error::not_found("the store is younger than the time asked for: its first version came later")),
            version => Err(expired(version, floor)),
        }
    }

    /// The last version whose time is not after `time_us` (UTC, microseconds), and the floor. The version is one less
    /// than the floor if no kept version is that old.
    ///
    /// # Errors
    /// Those of [`Store::latest`]; SnapshotExpired if the floor moves meanwhile.
    pub fn version_at(&self, time_us: i64) -> Result<(u64, u64)> {
        let floor = self.log.floor_version()?;
        let newest = self.log.newest(self.seen().max(floor))?.ok_or_else(|| self.no_store())?;
        // Versions below `low` are not after the time, those from `high` on are; times ascend strictly.
        let (mut low, mut high) = (floor, newest.saturating_add(1));
        while low < high {
            let middle = low.midpoint(high);
            if self.kept(middle)?.time_us <= time_us {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Ok((low - 1, floor))
    }

    /// The newest version, found by following `snapshot`: only new records are read, and all unchanged state is shared.
    /// Returns the same snapshot if nothing is new.
    ///
    /// # Errors
    /// Those of [`Store::latest`].
    pub fn refresh(&self, snapshot: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let mut newest = Snapshot::clone(snapshot);
        let at_end = self.follow_all(&mut newest);
        let floor = self.log.floor_version()?;
        // Below the floor, records may be missing, or may be leftovers of commits that were lost there. So may pages of
        // the root underneath.
        let passed = at_end.as_ref().is_err_and(Error::may_be_missing) && floor > newest.root_version();
        if floor > snapshot.version() + 1 || passed || !at_end? {
            return self.latest();
        }
        self.log.check_end(newest.version(), self.seen())?;
        self.saw(newest.version());
        Ok(if newest.version() == snapshot.version() { Arc::clone(snapshot) } else { Arc::new(newest) })
    }

    /// Advances `snapshot`; returns whether it is at the end. A snapshot that is far behind is better opened anew.
    fn follow_all(&self, snapshot: &mut Snapshot) -> Result<bool> {
        self.log.read_on(snapshot.version() + 1, self.fold_versions.saturating_mul(2) + 1, &mut |record| {
            *snapshot = self.advanced(snapshot, record)?;
            Ok(())
        })
    }

    /// The snapshot after `record`, based on the root that the record names if that is newer.
    pub(super) fn advanced(&self, snapshot: &Snapshot, record: Record) -> Result<Snapshot> {
        let (mut next, named) = (snapshot.clone(), record.root);
        next.follow(record)?;
        if let Some(reference) = named.filter(|r| r.version > next.root_version()) {
            let rested = self.log.root(reference).and_then(|root| {
                if root.store != next.store() {
                    return Err(Error::corruption(format!("manifest root {} belongs to another store", reference.id)));
                }
                next.rested_on(root, reference, Made::default())
            });
            return match rested {
                // A vacuum removes roots below the floor, and their pages; a later record names a newer one.
                Err(e) if e.may_be_missing() && self.log.floor_version()? > reference.version => Ok(next),
                rested => rested,
            };
        }
        Ok(next)
    }

    /// The snapshot of the version that was found; `None` if there is none, or if the floor passed it while its records
    /// were read.
    fn open(&self, newest: Newest) -> Result<Option<Arc<Snapshot>>> {
        let Newest { version, floor, found, mut records } = newest;
        if let Some(floor) = floor.filter(|f| f.version > version) {
            self.saw(floor.version);
            return Ok(None);
        }
        // An end that was found because a record is missing is the end only if the floor has not moved since.
        let again = match found {
            Found::Alone => None,
            Found::Listed(lowest) => {
                records = self.log.starts(lowest..version.saturating_add(1))?.0;
                None
            }
            Found::Read => Some(floor),
        };
        let last = match records.remove(&version) {
            Some(record) => Some(record?),
            None => self.log.read(version)?,
        };
        records.retain(|found, _| *found < version);
        let Some(last) = last else { return Ok(None) };
        match self.replay(&last, floor, records, again) {
            Ok(snapshot) => {
                self.saw(version);
                Ok(Some(Arc::new(snapshot)))
            }
            Err(_) if self.log.floor()? != floor => Ok(None),
            Err(e) => Err(e),
        }
    }

    /// The state after `last`: the newest known root, and the records since, of which `records` were read. With `again`,
    /// the floor is read once more concurrently, and must equal it.
    fn replay(
        &self,
        last: &Record,
        floor: Option<Floor>,
        records: Records,
        again: Option<Option<Floor>>,
    ) -> Result<Snapshot> {
        let version = last.version;
        let reference = [last.root, floor.map(|f| f.root)].into_iter().flatten().max_by_key(|r| r.version);
        let mut filling = Filling { root: None, records };
        if !self.log.storage.is_near() {
            let first = reference.map_or(1, |r| r.version.saturating_add(1));
            filling = self.log.fill(reference, first..version, filling.records, again)?;
        }
        let mut snapshot = match reference {
            Some(reference) => {
                let root = filling.root.map_or_else(|| self.log.root(reference), Ok)?;
                Snapshot::of_root(root, reference)
            }
            None => Snapshot::before_all(),
        };
        while let Some(record) = filling.records.remove(&(snapshot.version() + 1)) {
            snapshot.follow(record?)?;
        }
        self.log.read_each(snapshot.version() + 1..version, &mut |record| snapshot.follow(record))?;
        if snapshot.version() < version {
            snapshot.follow(last.clone())?;
        } else if snapshot.record() != Some(last.xxh3) {
            return Err(Error::corruption(format!(
                "the log's floor rests on another record than that of version {version}"
            )));
        } else {
            snapshot.agree_with(last);
        }
        Ok(snapshot)
    }

    /// The records of the versions `from ..= to`, oldest first, read one by one. Versions below the floor and above the
    /// newest are omitted.
    ///
    /// # Errors
    /// Those of [`Store::latest`]; for each record SnapshotExpired if the floor passed it meanwhile, Corruption if it
    /// is missing or damaged.
    pub fn history(&self, from: u64, to: u64) -> Result<History<'_>> {
        let floor = self.log.floor_version()?;
        let newest = self.log.newest(self.seen().max(floor))?.ok_or_else(|| self.no_store())?;
        let (next, to) = (floor.max(from), newest.min(to));
        Ok(History { store: self, next, to })
    }

    /// The record of `version`.
    ///
    /// # Errors
    /// SnapshotExpired or NotFound if it does not exist (any more), Corruption (also if it is missing but later ones
    /// exist), Unsupported.
    pub fn record(&self, version: u64) -> Result<Record> {
        if let Some(record) = self.log.read(version)? {
            return Ok(record);
        }
        let floor = self.log.floor_version()?;
        if version > 0 && version < floor {
            return Err(expired(version, floor));
        }
        let newest = self.log.newest(self.seen().max(floor))?.ok_or_else(|| self.no_store())?;
        if version == 0 || version > newest {
            return Err(Error::not_found(format!(
                "there is no version {version}; versions {floor} to {newest} are there"
            )));
        }
        self.kept(version)
    }

    /// The record of a version below the newest, which must exist unless the floor has passed it.
    ///
    /// # Errors
    /// SnapshotExpired, Corruption (also if it is missing), Unsupported.
    pub fn kept(&self, version: u64) -> Result<Record> {
        match self.log.read(version)? {
            Some(record) => Ok(record),
            None => match self.log.floor_version()? {
                floor if version < floor => Err(expired(version, floor)),
                _ => self.log.read_file(version).map(|(record, _)| record),
            },
        }
    }

    /// Writes the hint anew, for `newest`. A failure is ignored, as of any hint.
    pub fn renew_hint(&self, newest: &Snapshot) {
        self.log.renew_hint(newest);
    }

    /// Writes the hint anew if it is damaged.
    pub fn mend_hint(&self, newest: &Snapshot) {
        self.log.mend_hint(newest);
    }

    /// The newest version that was seen.
    pub(super) fn seen(&self) -> u64 {
        self.seen.load(Ordering::Relaxed)
    }

    /// Remembers that `version` exists.
    pub(super) fn saw(&self, version: u64) {
        self.seen.fetch_max(version, Ordering::Relaxed);
    }

    pub(super) fn no_store(&self) -> Error {
        Error::not_found(format!(
            "there is no Gridstone store in {}; check the place, or create one there",
            self.log.storage.describe()
        ))
    }

    fn restless(&self) -> Error {
        Error::storage(format!(
            "the log in {} is truncated faster than it can be read; try again",
            self.log.storage.describe()
        ))
    }
}

pub(super) fn expired(version: u64, floor: u64) -> Error {
    Error::snapshot_expired(format!(
        "version {version} has been vacuumed; the oldest that can be opened is {floor}: refresh, or open another version"
    ))
}

/// The records of a range of versions, oldest first; see [`Store::history`].
#[derive(Debug)]
pub struct History<'a> {
    store: &'a Store,
    next: u64,
    to: u64,
}

impl Iterator for History<'_> {
    type Item = Result<Record>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.next > self.to {
            return None;
        }
        let found = self.store.kept(self.next);
        // The iteration ends after an error.
        (self.next, self.to) = match &found {
            Ok(record) if record.version < u64::MAX => (self.next + 1, self.to),
            _ => (1, 0),
        };
        Some(found)
    }
}
