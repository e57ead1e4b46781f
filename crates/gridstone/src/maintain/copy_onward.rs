//! Brings a copy of a store with its history up to date: copies the versions that it lacks, and the objects they name.
//!
//! 1. The copy's newest version is shown to be one of the source: both have its record, or the source's next record names
//!    it as its parent. A copy with commits of its own is left alone.
//! 2. Data files, roots and pages that the new versions name, and the copy lacks, are copied.
//! 3. If the source decided a floor, and the copy has published none, the copy publishes the one of its oldest version:
//!    what the copy keeps is its own affair.
//! 4. The new records are copied, oldest first. So at every moment the copy is the store as of one of its versions.
//!
//! Nothing that the copy needs is replaced or deleted. If it stops anywhere, the next call copies the rest. What is left
//! half written then has a name that no version of the copy names; it is compared with the source before it is used.

use super::copy_history::{CHUNK_BYTES, Count, HistoryCopied, HistoryCopier};
use crate::base::{ByteRange, Error, ErrorKind, Id, Result};
use crate::storage::{DATA, MANIFEST, PutOutcome, data_name, log_name, manifest_name};
use crate::store::{Floor, Names, Record, Snapshot};
use std::collections::HashSet;

/// The objects that a copy has.
struct Held {
    /// Those that are listed: whole, or what is left of a copy that was cut short.
    listed: HashSet<String>,
    /// Those that its newest version names; its older ones too, where that matters.
    named: HashSet<String>,
}

impl Held {
    /// Whether it is there, and whole.
    fn has(&self, name: &String) -> bool {
        self.listed.contains(name) && self.named.contains(name)
    }
}

impl HistoryCopier<'_> {
    /// Copies the versions after the newest of the copy in the target, up to `newest`.
    ///
    /// # Errors
    /// Exists if another store is there; Conflict if the copy has versions that the source has not; SnapshotExpired if a
    /// vacuum of the source forgot versions that the copy lacks; Corruption, Storage, Access, Cancelled. The copy is the
    /// store at one of its versions then.
    pub(super) fn copy_onward(&self, newest: u64) -> Result<HistoryCopied> {
        let (source, held) = (self.source.at_version(newest)?, self.target.latest()?);
        self.check_same(&source, &held)?;
        self.check_follows(&held)?;
        let oldest = self.target.floor()?.map_or(1, |floor| floor.version);
        if held.version() >= newest {
            self.target.mend_hint(&held);
            return Ok(HistoryCopied { oldest, newest: held.version(), ..HistoryCopied::default() });
        }
        let copied = self.send((&source, &held), oldest);
        let copied = copied.map_err(|e| match self.source.floor() {
            Ok(Some(floor)) if floor.version > held.version() + 1 && e.may_be_missing() => {
                self.passed(held.version(), floor.version).with_source(e)
            }
            _ => e,
        })?;
        Ok(HistoryCopied { oldest, newest, ..copied })
    }

    /// An Input error if both are one place, an Exists error unless they are of one store.
    fn check_same(&self, source: &Snapshot, held: &Snapshot) -> Result<()> {
        let (from, to) = (self.source.storage(), self.target.storage());
        if from.identity() == to.identity() {
            return Err(Error::input(format!("{} cannot be copied onto itself; give another target", from.describe())));
        }
        if source.store() != held.store() {
            return Err(Error::exists(format!(
                "there is another store in {}, which is no copy of {}: a copy with its history goes to a place of its own, or onto an \
                 earlier copy of the same store; give another target, or delete that store first",
                to.describe(),
                from.describe()
            )));
        }
        Ok(())
    }

    /// A Conflict error unless the copy's newest version is one of the source.
    fn check_follows(&self, held: &Snapshot) -> Result<()> {
        let (mine, theirs) = (held.version(), self.source.latest()?.version());
        let shared = mine.min(theirs);
        let is_shared = match (self.target.record(shared), self.source.record(shared)) {
            (Ok(copied), Ok(record)) => copied.xxh3 == record.xxh3,
            // The source may have forgotten the copy's newest version, and have the next one, which names it.
            (Ok(copied), Err(e)) if e.kind() == ErrorKind::SnapshotExpired => match self.source.record(shared + 1) {
                Ok(next) => next.parent == Some(copied.xxh3),
                Err(e) if e.kind() == ErrorKind::SnapshotExpired => {
                    let floor = self.source.floor()?.map_or(1, |floor| floor.version);
                    return Err(self.passed(mine, floor));
                }
                Err(e) => return Err(e),
            },
            // The copy has forgotten all that the source has.
            (Err(e), _) if e.kind() == ErrorKind::SnapshotExpired => false,
            (Err(e), _) | (_, Err(e)) => return Err(e),
        };
        if is_shared && mine <= theirs {
            return Ok(());
        }
        let (from, to) = (self.source.storage().describe(), self.target.storage().describe());
        let what = match is_shared {
            true => format!("the copy in {to} goes on to version {mine}, and {from} ends at version {theirs}"),
            false => format!("the copy in {to} and {from} have different commits as version {shared}"),
        };
        Err(Error::conflict(format!(
            "{what}: one of them was committed to, vacuumed or restored by itself since the last copy. Nothing was copied, since \
             it would lose those commits; copy to another place, or look at both with history"
        )))
    }

    /// The error if the source has no versions any more that the copy lacks.
    fn passed(&self, held: u64, floor: u64) -> Error {
        let (from, to) = (self.source.storage().describe(), self.target.storage().describe());
        Error::snapshot_expired(format!(
            "the copy in {to} ends at version {held}, and a vacuum of {from} forgot the versions before {floor}, so that the copy \
             cannot go on from there; it stays as it is. Copy to another place, and tag what was copied last \
             (`gridstone tag {from} backup --replace`), which keeps the versions until the next copy"
        ))
    }

    fn send(&self, (source, newest_held): (&Snapshot, &Snapshot), oldest: u64) -> Result<HistoryCopied> {
        let (first, newest, to) = (newest_held.version() + 1, source.version(), self.target.storage());
        let mut held = self.held(newest_held)?;
        let named = self.named_since(first, newest, (oldest, &held))?;
        let mut objects = named.data().map(data_name).chain(named.manifest().map(manifest_name));
        if objects.any(|name| held.listed.contains(&name) && !held.named.contains(&name)) {
            self.add_older(&mut held, oldest, newest_held.version())?;
        }
        let data: Vec<String> = named.data().map(data_name).filter(|name| !held.has(name)).collect();
        let copies: Vec<String> = self.copies(&named)?.into_iter().filter(|name| !held.has(name)).collect();
        let manifest: Vec<String> = named.manifest().map(manifest_name).filter(|name| !held.has(name)).collect();
        let total = (data.len() + copies.len() + manifest.len()) as u64 + (newest - first + 1);
        let count = Count::new(total, self.progress);
        self.pool.map(data, self.cancel, |name| self.over_rest(&name, &held, &count, || self.large(&name, &count)))?;
        self.pool.map(copies, self.cancel, |name| {
            self.over_rest(&name, &held, &count, || self.sorted_copy(&name, &count))
        })?;
        self.pool
            .map(manifest, self.cancel, |name| self.over_rest(&name, &held, &count, || self.small(&name, &count)))?;
        self.keep_oldest(source)?;
        (first..=newest).map(log_name).try_for_each(|name| {
            self.cancel.check()?;
            self.record(&name, &count)
        })?;
        to.sync(&log_name(newest))?;
        self.hint(newest);
        Ok(HistoryCopied { oldest, newest, objects: total, bytes: count.bytes(), versions: newest - first + 1 })
    }

    /// The files that the versions `first ..= newest` name. Roots below the source's floor may be gone there, and the copy
    /// must have those from `oldest` on, its oldest version.
    fn named_since(&self, first: u64, newest: u64, (oldest, held): (u64, &Held)) -> Result<Names> {
        let floor = self.source.floor()?.map_or(1, |floor| floor.version);
        let mut named = Names::default();
        let mut checked: HashSet<Id> = HashSet::new();
        for version in first..=newest {
            self.cancel.check()?;
            (self.alive)();
            let record = self.source.kept(version)?;
            named.add_record(self.source, &record, floor)?;
            if let Some(root) = record.root.filter(|root| (oldest..floor).contains(&root.version))
                && checked.insert(root.id)
                && !self.has_root(&record, held)?
            {
                return Err(self.passed(first - 1, floor));
            }
        }
        Ok(named)
    }

    /// Whether the copy has the root that a record names, with all that it names.
    fn has_root(&self, record: &Record, held: &Held) -> Result<bool> {
        let mut bare = record.clone();
        bare.operations.clear();
        let mut named = Names::default();
        match named.add_record(self.target, &bare, 0) {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => return Ok(false),
            named => named?,
        }
        let mut all = named.data().map(data_name).chain(named.manifest().map(manifest_name));
        Ok(all.all(|name| held.listed.contains(&name)))
    }

    /// The objects that the copy has, and those that its newest version names.
    fn held(&self, newest: &Snapshot) -> Result<Held> {
        let (to, mut names) = (self.target.storage(), Names::default());
        names.add_snapshot(self.target, newest)?;
        let named = names.data().map(data_name).chain(names.manifest().map(manifest_name)).collect();
        Ok(Held { listed: to.list(DATA)?.into_iter().chain(to.list(MANIFEST)?).collect(), named })
    }

    /// Publishes a floor at the copy's oldest version, if it has none although the versions to come decide on one.
    fn keep_oldest(&self, source: &Snapshot) -> Result<()> {
        if source.retained().floor().is_none() || self.target.floor()?.is_some() {
            return Ok(());
        }
        match self.target.rooted(1, None)?.root() {
            Some(root) => self.target.publish_floor(Floor { version: 1, root }),
            None => Ok(()),
        }
    }

    /// Adds what the versions of the copy before `newest` name. It is whole, whatever became of it in the source since.
    fn add_older(&self, held: &mut Held, oldest: u64, newest: u64) -> Result<()> {
        let mut names = Names::default();
        for record in self.target.history(oldest.saturating_add(1), newest)? {
            self.cancel.check()?;
            names.add_record(self.target, &record?, oldest)?;
        }
        names.add_snapshot(self.target, &*self.target.at_version(oldest)?)?;
        held.named.extend(names.data().map(data_name).chain(names.manifest().map(manifest_name)));
        Ok(())
    }

    /// Copies an object by `copy`. One that is there already may be whole, or what a copy that was cut short has left: it is compared,
    /// and replaced if it differs.
    fn over_rest(&self, name: &str, held: &Held, count: &Count<'_>, copy: impl FnOnce() -> Result<()>) -> Result<()> {
        if held.listed.contains(name) {
            if self.is_same(name)? {
                count.add(0);
                return self.sync_deferred(name);
            }
            self.target.storage().delete(name)?;
        }
        match copy() {
            // Another process brings the copy up to date too.
            Err(e) if e.kind() == ErrorKind::Exists => Ok(()),
            outcome => outcome,
        }
    }

    /// Whether an object of the copy has the bytes of the source's.
    fn is_same(&self, name: &str) -> Result<bool> {
        let (source, copied) = (self.source.storage().open(name)?, self.target.storage().open(name));
        let copied = match copied {
            Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => return Ok(false),
            copied => copied?,
        };
        let (len, mut at) = (source.len(), 0);
        if copied.len() != len {
            return Ok(false);
        }
        while at < len {
            self.cancel.check()?;
            (self.alive)();
            let part = ByteRange::new(at, CHUNK_BYTES.min(len - at));
            match copied.read_one(part) {
                Ok(bytes) if bytes == source.read_one(part)? => at = part.end(),
                Ok(_) => return Ok(false),
                Err(e) if matches!(e.kind(), ErrorKind::NotFound | ErrorKind::Corruption) => return Ok(false),
                Err(e) => return Err(e),
            }
        }
        Ok(true)
    }

    /// Copies a record, unless the copy has it already: another process may bring it up to date too.
    fn record(&self, name: &str, count: &Count<'_>) -> Result<()> {
        (self.alive)();
        let (bytes, to) = (self.source.storage().read_all(name)?, self.target.storage());
        if to.put_if_absent(name, &bytes)? == PutOutcome::Exists && to.read_all(name)? != bytes {
            return Err(Error::conflict(format!(
                "somebody committed to the copy in {} while it was brought up to date: it has commits of its own now, and cannot \
                 go on from this store; copy to another place",
                to.describe()
            )));
        }
        self.sync_deferred(name)?;
        count.add(bytes.len() as u64);
        Ok(())
    }
}
