//! Copies a store with its versions: every object that a version from the floor on names, byte for byte.
//!
//! 1. `_log/floor` of the target marks a copy in progress ([`UNFINISHED`]): until the last step there is no store, and
//!    no other process can create one among the copied objects.
//! 2. Data files, roots and pages are copied, then the records, oldest first. In a sealed store each object is sealed
//!    anew.
//! 3. The floor of the source replaces the mark, or, if it has none, the mark is deleted: in one step the store exists.
//!
//! If the target is a copy already, it is brought up to date ([`super::copy_onward`]).
//!
//! Ids are kept, including the store's: it is the same history at another place. If a vacuum of the source deletes
//! something meanwhile, the copy fails with SnapshotExpired; the caller's lease prevents that.

use crate::base::{ByteRange, Cancel, Error, ErrorKind, Progress, Result};
use crate::runtime::Pool;
use crate::storage::{FLOOR, LATEST, LOG, PutOutcome, Storage, data_name, log_name, manifest_name, patiently};
use crate::store::{Names, Store, UNFINISHED};
use bytes::Bytes;
use std::sync::atomic::{AtomicU64, Ordering};

/// How many bytes of a data file are copied at a time.
pub(super) const CHUNK_BYTES: u64 = 4 << 20;

/// The result of copying a history.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct HistoryCopied {
    /// The oldest version.
    pub oldest: u64,
    /// The newest.
    pub newest: u64,
    /// Objects copied, including sorted copies that could not be read and were omitted.
    pub objects: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Versions copied.
    pub versions: u64,
}

/// The source, the target and the resources of a history copy.
pub struct HistoryCopier<'a> {
    /// The store that is read.
    pub source: &'a Store,
    /// The place of the new store.
    pub target: &'a Store,
    /// The threads that copy.
    pub pool: &'a Pool,
    /// Checked for every chunk.
    pub cancel: &'a dyn Cancel,
    /// Receives the number of objects copied.
    pub progress: &'a dyn Progress,
    /// Called at intervals, so that a lease can be renewed.
    pub alive: &'a (dyn Fn() + Sync),
}

impl std::fmt::Debug for HistoryCopier<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("HistoryCopier")
    }
}

impl HistoryCopier<'_> {
    /// Copies the versions up to `newest`; onto a copy of the same store those that it lacks.
    ///
    /// # Errors
    /// Exists if the target has another store, or what is left of one; Conflict if it is a copy that has versions of its
    /// own; SnapshotExpired if a vacuum of the source forgot versions
    /// meanwhile; Corruption, Storage, Access, Cancelled. There is no store in the target then, or the copy as it was,
    /// or at one of the versions that it lacked.
    pub fn copy(&self, newest: u64) -> Result<HistoryCopied> {
        let to = self.target.storage();
        let there = self.target.exists().map_err(|e| match e.kind() {
            ErrorKind::NotFound => {
                Error::exists(format!("nothing can be copied to {}: {}", to.describe(), e.message()))
            }
            _ => e,
        })?;
        if there {
            return self.copy_onward(newest);
        }
        if !to.list(LOG)?.is_empty() {
            return Err(Error::exists(format!(
                "there is what is left of a store in {}; a copy with its history needs a place of its own: delete that first",
                to.describe()
            )));
        }
        to.prepare()?;
        if to.put_if_absent(FLOOR, UNFINISHED)? == PutOutcome::Exists {
            return Err(Error::exists(format!("another copy to {} is under way", to.describe())));
        }
        let floor = self.check_alone().and_then(|()| self.floor());
        // The floor may have passed every version to copy.
        let oldest = floor.as_ref().map_or(1, |(oldest, _)| *oldest).min(newest);
        let outcome = floor.and_then(|(oldest, floor)| match oldest > newest {
            true => Err(Error::not_found(format!("version {newest}, the newest when the copy began"))),
            false => self.copy_from(oldest, floor.as_deref(), newest),
        });
        // Objects written by another process, and what may be a store already, are not ours to remove.
        if outcome.as_ref().is_err_and(|e| !matches!(e.kind(), ErrorKind::Exists | ErrorKind::CommitUnknown)) {
            // Best effort, to its end even if the copy was cancelled: the rest can be deleted, and is no store.
            let _ = patiently(|| to.remove_everything());
        }
        outcome.map_err(|e| match self.source.floor() {
            Ok(Some(floor)) if floor.version > oldest && e.may_be_missing() => Error::snapshot_expired(format!(
                "versions {oldest} to {} were vacuumed while they were copied; nothing was copied, do it again",
                floor.version - 1
            ))
            .with_source(e),
            _ => e,
        })
    }

    /// A process that created a store before the mark existed has not seen it, and keeps its commits: the result is
    /// Exists, and the mark is deleted.
    fn check_alone(&self) -> Result<()> {
        let to = self.target.storage();
        if to.list(LOG)?.iter().all(|name| FLOOR.ends_with(name.as_str())) {
            return Ok(());
        }
        to.delete(FLOOR)?;
        Err(somebody_else(to.as_ref()))
    }

    /// The oldest version of the source and the bytes of its floor, if it has one. Both belong to the same floor, even
    /// if it moves meanwhile.
    fn floor(&self) -> Result<(u64, Option<Bytes>)> {
        let read = || match self.source.storage().read_all(FLOOR) {
            Ok(bytes) => Ok(Some(bytes)),
            Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
            Err(e) => Err(e),
        };
        loop {
            self.cancel.check()?;
            let (bytes, floor) = (read()?, self.source.floor()?);
            if bytes == read()? {
                return Ok((floor.map_or(1, |floor| floor.version), bytes));
            }
        }
    }

    fn copy_from(&self, oldest: u64, floor: Option<&[u8]>, newest: u64) -> Result<HistoryCopied> {
        let named = self.named(oldest, newest)?;
        let data: Vec<String> = named.data().map(data_name).collect();
        let copies = self.copies(&named)?;
        let manifest: Vec<String> = named.manifest().map(manifest_name).collect();
        let records: Vec<String> = (oldest..=newest).map(log_name).collect();
        let total = (data.len() + copies.len() + manifest.len() + records.len()) as u64;
        let count = Count::new(total, self.progress);
        self.pool.map(data, self.cancel, |name| self.large(&name, &count))?;
        self.pool.map(copies, self.cancel, |name| self.sorted_copy(&name, &count))?;
        self.pool.map(manifest, self.cancel, |name| self.small(&name, &count))?;
        // In order: an incomplete history is the beginning of the whole one.
        records.iter().try_for_each(|name| self.cancel.check().and_then(|()| self.small(name, &count)))?;
        self.finish(floor, newest)?;
        Ok(HistoryCopied { oldest, newest, objects: total, bytes: count.bytes(), versions: newest - oldest + 1 })
    }

    /// The existing sorted copies, if both ends are storages that have them.
    pub(super) fn copies(&self, named: &Names) -> Result<Vec<String>> {
        let from = self.source.storage();
        if !from.is_near() || !self.target.storage().is_near() {
            return Ok(Vec::new());
        }
        let there = |name: String| from.exists(&name).map(|there| there.then_some(name)).transpose();
        named.copies().map(data_name).filter_map(there).collect()
    }

    /// The files that the versions `oldest ..= newest` name.
    fn named(&self, oldest: u64, newest: u64) -> Result<Names> {
        let mut named = Names::default();
        named.add_snapshot(self.source, &*self.source.at_version(oldest)?)?;
        for version in oldest + 1..=newest {
            self.cancel.check()?;
            (self.alive)();
            named.add_record(self.source, &self.source.kept(version)?, oldest)?;
        }
        Ok(named)
    }

    pub(super) fn large(&self, name: &str, count: &Count<'_>) -> Result<()> {
        (self.alive)();
        let source = self.source.storage().open(name)?;
        let mut sink = self.target.storage().create(name)?;
        let mut at = 0;
        while at < source.len() {
            self.cancel.check()?;
            let part = ByteRange::new(at, CHUNK_BYTES.min(source.len() - at));
            sink.write(&source.read_one(part)?)?;
            at = part.end();
        }
        sink.finish()?;
        self.sync_deferred(name)?;
        count.add(at);
        Ok(())
    }

    /// A sorted copy that cannot be read is omitted: nothing depends on it, and its fragments are copied in their pack.
    pub(super) fn sorted_copy(&self, name: &str, count: &Count<'_>) -> Result<()> {
        (self.alive)();
        let read = || {
            let source = self.source.storage().open(name)?;
            source.read_one(ByteRange::new(0, source.len()))
        };
        match read() {
            Ok(bytes) => {
                let mut sink = self.target.storage().create(name)?;
                sink.write(&bytes)?;
                sink.finish()?;
                self.sync_deferred(name)?;
                count.add(bytes.len() as u64);
                Ok(())
            }
            Err(e) if e.kind() == ErrorKind::Cancelled => Err(e),
            Err(_) => {
                count.add(0);
                Ok(())
            }
        }
    }

    pub(super) fn small(&self, name: &str, count: &Count<'_>) -> Result<()> {
        (self.alive)();
        let bytes = self.source.storage().read_all(name)?;
        if self.target.storage().put_if_absent(name, &bytes)? == PutOutcome::Exists {
            return Err(somebody_else(self.target.storage().as_ref()));
        }
        self.sync_deferred(name)?;
        count.add(bytes.len() as u64);
        Ok(())
    }

    /// The copy is durable once it is a store, whatever its context leaves to the system.
    pub(super) fn sync_deferred(&self, name: &str) -> Result<()> {
        let to = self.target.storage();
        if to.defers_sync() { to.sync(name) } else { Ok(()) }
    }

    /// The error if the last step, which replaces the mark by `floor`, failed with `error`: the same error if something
    /// else is there, so that the store was never visible.
    fn in_doubt(&self, error: Error, floor: Option<&[u8]>) -> Error {
        let to = self.target.storage();
        if to.read_all(FLOOR).is_ok_and(|bytes| floor.is_none_or(|floor| bytes != floor)) {
            return error;
        }
        let place = to.describe();
        let told =
            format!("the copy to {place} is complete, but whether it is a store now is not known: open it to see");
        Error::new(ErrorKind::CommitUnknown, told).with_source(error)
    }

    /// Turns the copy into a store, durably.
    fn finish(&self, floor: Option<&[u8]>, newest: u64) -> Result<()> {
        let to = self.target.storage();
        let record = log_name(newest);
        to.sync(&record)?;
        // From here on others may see a store.
        let made = match floor {
            Some(floor) => to.put_if_unchanged(FLOOR, Some(UNFINISHED), floor),
            None => to.delete(FLOOR).and_then(|()| to.sync(&record)).map(|()| true),
        };
        if !made.map_err(|e| self.in_doubt(e, floor))? {
            return Err(somebody_else(to.as_ref()));
        }
        self.hint(newest);
        Ok(())
    }

    /// Writes the hint, which only saves readers a few steps.
    pub(super) fn hint(&self, newest: u64) {
        let to = self.target.storage();
        let opened = if to.is_near() { None } else { self.target.latest().ok() };
        match opened {
            Some(newest) => self.target.renew_hint(&newest),
            None => drop(to.put_hint(LATEST, newest.to_string().as_bytes())),
        }
    }
}

/// The objects of that process are not touched.
fn somebody_else(to: &dyn Storage) -> Error {
    Error::exists(format!(
        "somebody else made a store in {} while one was copied there; copy to another place, or delete that one first",
        to.describe()
    ))
}

/// The progress of a copy.
pub(super) struct Count<'a> {
    done: AtomicU64,
    bytes: AtomicU64,
    total: u64,
    progress: &'a dyn Progress,
}

impl<'a> Count<'a> {
    pub(super) fn new(total: u64, progress: &'a dyn Progress) -> Self {
        Self { done: AtomicU64::new(0), bytes: AtomicU64::new(0), total, progress }
    }

    /// Bytes copied so far.
    pub(super) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    pub(super) fn add(&self, bytes: u64) {
        self.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.progress.report(self.done.fetch_add(1, Ordering::Relaxed) + 1, self.total);
    }
}
