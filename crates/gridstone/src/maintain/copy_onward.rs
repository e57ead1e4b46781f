//! Brings a copy of a store with its history up to date: copies the versions that it lacks, and the objects they name.
//!
//! 1. The copy's newest version is shown to be one of the source: both have its record, or the source's next record names
//!    it as its parent. A copy with commits of its own is left alone.
//! 2. What the copy's newest version names, and the copy has lost or has cut, is copied anew: a disk loses files.
//!    Then data files, roots and pages that the new versions name, and the copy lacks, are copied.
//! 3. If the source decided a floor, and the copy has published none, the copy publishes the one of its oldest version:
//!    what the copy keeps is its own affair.
//! 4. The new records are copied, oldest first. So at every moment the copy is the store as of one of its versions.
//!
//! Nothing that the copy needs, and that is whole, is replaced or deleted. If it stops anywhere, the next call copies the rest. What is left
//! half written then has a name that no version of the copy names; it is compared with the source before it is used.

use super::copy_history::{CHUNK_BYTES, Count, HistoryCopied, HistoryCopier};
use crate::base::{ByteRange, Error, ErrorKind, FileRef, Id, Progress, Result, Silent};
use crate::fragment::Location;
use crate::storage::{DATA, Listed, MANIFEST, PutOutcome, data_name, log_name, manifest_name};
use crate::store::{Floor, Names, Node, Record, Snapshot, Store};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The objects that a copy has.
struct Held {
    /// Those that are listed, with their bytes: whole, or what is left of a copy that was cut short.
    listed: HashMap<String, u64>,
    /// Those that its newest version names; its older ones too, where that matters.
    named: HashSet<String>,
}

impl Held {
    /// Whether it is there, and whole.
    fn has(&self, name: &String) -> bool {
        self.listed.contains_key(name) && self.named.contains(name)
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
        let source = self.source.at_version(newest)?;
        let (copy, opened) = self.opened()?;
        self.check_same(&source, &copy)?;
        self.check_follows(&copy)?;
        let oldest = self.target.floor()?.map_or(1, |floor| floor.version);
        let (held, walked) = self.held(&copy)?;
        let lost = self.lost(&copy, &held)?;
        let copied = if copy.version() >= newest {
            let again = self.again(lost, self.progress)?;
            self.target.mend_hint(&copy);
            HistoryCopied { newest: copy.version(), ..again }
        } else {
            let sent = self.send((&source, &copy), (held, lost), oldest);
            sent.map_err(|e| match self.source.floor() {
                Ok(Some(floor)) if floor.version > copy.version() + 1 && e.may_be_missing() => {
                    self.passed(copy.version(), floor.version).with_source(e)
                }
                _ => e,
            })?
        };
        let objects = copied.objects + opened.objects + walked.objects;
        Ok(HistoryCopied { oldest, objects, bytes: copied.bytes + opened.bytes + walked.bytes, ..copied })
    }

    /// The copy's newest version, and what was copied so that it opens: its root may be lost.
    fn opened(&self) -> Result<(Arc<Snapshot>, HistoryCopied)> {
        let error = match self.target.latest() {
            Err(e) if e.may_be_missing() => e,
            opened => return Ok((opened?, HistoryCopied::default())),
        };
        let Some(version) = self.target.newest_version().ok().flatten() else { return Err(error) };
        match (self.target.record(version), self.source.record(version)) {
            (Ok(copied), Ok(record)) if copied.xxh3 == record.xxh3 => {}
            _ => return Err(error),
        }
        let again = self.manifest_again(version)?;
        Ok((self.target.latest().map_err(|_| error)?, again))
    }

    /// Copies the roots and pages anew that a version of the source names, and the copy has lost or has in another length. The source's
    /// are read before, so that nothing is replaced by what is damaged.
    fn manifest_again(&self, version: u64) -> Result<HistoryCopied> {
        let mut names = Names::default();
        match self.source.at_version(version).and_then(|snapshot| names.add_snapshot(self.source, &snapshot)) {
            // The source has forgotten it.
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => return Ok(HistoryCopied::default()),
            named => named?,
        }
        let mut lost = Vec::new();
        for name in names.manifest().map(manifest_name) {
            self.cancel.check()?;
            let (source, copied) = (self.source.storage().open(&name)?, len_of(self.target, &name)?);
            lost.extend((copied != Some(source.len())).then_some(name));
        }
        self.again(lost, &Silent)
    }

    /// The data files of the copy's newest version that it has not, or not whole, and that the source has: as long as fragments need
    /// them, so that nothing is replaced by what is cut.
    fn lost(&self, copy: &Snapshot, held: &Held) -> Result<Vec<String>> {
        let (needed, is_sealed) = (self.needed(copy)?, self.target.storage().key_id().is_some());
        let needs = |name: &String| needed.get(name).copied().unwrap_or_default();
        let data = held.named.iter().filter(|name| name.starts_with(DATA));
        // A listing does not tell the length of what is sealed.
        let doubtful = |name: &&String| is_sealed || held.listed.get(*name).is_none_or(|bytes| *bytes < needs(name));
        let look = |name: String| -> Result<Option<String>> {
            (self.alive)();
            let is_short = |len: Option<u64>| len.is_none_or(|len| len < needs(&name));
            let (copied, source) = (len_of(self.target, &name)?, len_of(self.source, &name)?);
            // A sealed object that has grown fits no seal either.
            let is_lost = is_short(copied) || (is_sealed && copied != source);
            Ok((is_lost && !is_short(source)).then_some(name))
        };
        let found = self.pool.map(data.filter(doubtful).cloned().collect(), self.cancel, look)?;
        Ok(found.into_iter().flatten().collect())
    }

    /// The bytes that the fragments of a version of the copy take in its data files.
    fn needed(&self, copy: &Snapshot) -> Result<HashMap<String, u64>> {
        let mut needed: HashMap<String, u64> = HashMap::new();
        for node in copy.nodes()? {
            let Node::Array(array) = node else { continue };
            self.cancel.check()?;
            for fragment in self.target.fragments_of(&array)? {
                let Location { file, offset, len } = fragment.location;
                if let FileRef::Data(id) = file {
                    let end = needed.entry(data_name(id)).or_default();
                    *end = (*end).max(offset.saturating_add(len));
                }
            }
        }
        Ok(needed)
    }

    /// Copies lost objects anew.
    fn again(&self, lost: Vec<String>, progress: &dyn Progress) -> Result<HistoryCopied> {
        let (objects, count) = (lost.len() as u64, Count::new(lost.len() as u64, progress));
        self.pool.map(lost, self.cancel, |name| self.one_again(&name, &count))?;
        Ok(HistoryCopied { objects, bytes: count.bytes(), ..HistoryCopied::default() })
    }

    fn one_again(&self, name: &str, count: &Count<'_>) -> Result<()> {
        self.target.storage().delete(name)?;
        let copied = if name.starts_with(MANIFEST) { self.small(name, count) } else { self.large(name, count) };
        match copied {
            // Another process brings it too.
            Err(e) if e.kind() == ErrorKind::Exists => Ok(()),
            copied => copied,
        }
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

    /// Copies what is `lost`, and the versions after the copy's newest, with what they name.
    fn send(
        &self,
        (source, newest_held): (&Snapshot, &Snapshot),
        (mut held, lost): (Held, Vec<String>),
        oldest: u64,
    ) -> Result<HistoryCopied> {
        let (first, newest, to) = (newest_held.version() + 1, source.version(), self.target.storage());
        held.listed.extend(lost.iter().map(|name| (name.clone(), 0)));
        let named = self.named_since(first, newest, (oldest, &held))?;
        let mut objects = named.data().map(data_name).chain(named.manifest().map(manifest_name));
        if objects.any(|name| held.listed.contains_key(&name) && !held.named.contains(&name)) {
            self.add_older(&mut held, oldest, newest_held.version())?;
        }
        let data: Vec<String> = named.data().map(data_name).filter(|name| !held.has(name)).collect();
        let copies: Vec<String> = self.copies(&named)?.into_iter().filter(|name| !held.has(name)).collect();
        let manifest: Vec<String> = named.manifest().map(manifest_name).filter(|name| !held.has(name)).collect();
        let total = (lost.len() + data.len() + copies.len() + manifest.len()) as u64 + (newest - first + 1);
        let count = Count::new(total, self.progress);
        self.pool.map(lost, self.cancel, |name| self.one_again(&name, &count))?;
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
        Ok(all.all(|name| held.listed.contains_key(&name)))
    }

    /// The objects that the copy has, and those that its newest version names; what was copied so that its pages say so.
    fn held(&self, newest: &Snapshot) -> Result<(Held, HistoryCopied)> {
        let (mut names, mut again) = (Names::default(), HistoryCopied::default());
        if let Err(e) = names.add_snapshot(self.target, newest) {
            if !e.may_be_missing() {
                return Err(e);
            }
            again = self.manifest_again(newest.version())?;
            names = Names::default();
            names.add_snapshot(self.target, newest).map_err(|_| e)?;
        }
        let named = names.data().map(data_name).chain(names.manifest().map(manifest_name)).collect();
        let mut listed = HashMap::new();
        for folder in [DATA, MANIFEST] {
            self.target.storage().survey(folder, &mut |Listed { name, bytes, .. }| {
                listed.insert(name, bytes);
            })?;
        }
        Ok((Held { listed, named }, again))
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
        if held.listed.contains_key(name) {
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

/// The length of an object; `None` if it is missing, or cut so that it has none.
fn len_of(store: &Store, name: &str) -> Result<Option<u64>> {
    match store.storage().open(name) {
        Err(e) if e.may_be_missing() => Ok(None),
        object => Ok(Some(object?.len())),
    }
}
