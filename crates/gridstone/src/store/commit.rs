//! The commit protocol. A version is committed by creating one object, `_log/<version>`, that did not exist.
//!
//! 1. If the newest root is `fold_versions` behind, or the records since it are many bytes, fold.
//! 2. Write the record that follows the newest known version, naming that root, with put-if-absent. Where a lookup
//!    costs nothing, first check whether later records exist: if they do, the slot is free only because its record was
//!    lost.
//! 3. Find out its outcome ([`super::outcome`]): committed, lost, or unknown.
//! 4. If lost: read the versions in between, a few at a time, and let the caller rebase. If one of them is a vacuum,
//!    check whether the data files of the changes still exist. Go to 1. If the slot is below the floor: check whether
//!    the changes are committed already, then go to 1.
//!
//! Changes with a caller's key are looked for before step 1, and before the rules of each version in between: if a commit
//! has the key, it is this one, and nothing is written ([`super::key_window`]).
//!
//! Fragments are durable before they are passed to a commit; packs and pages are durable before step 2. So everything
//! that a record names exists. Where the storage defers syncs, a commit that must be durable requests them
//! ([`super::durability`]).

use super::commit_events::Tries;
use super::commit_key::{CommitKey, Keyed, KeyedCommit};
use super::committed::Committed;
use super::conflict::{Queueing, Rebase, StandardRules};
use super::draft;
use super::durability::is_durable;
use super::fold::fold;
use super::handle::Store;
use super::kept::Kept;
use super::line::FORMAT;
use super::log::{Before, Log};
use super::operation::{Changes, Operation, Recorded};
use super::outcome::{self, Draft, Fate};
use super::presence::{check_once, count_added};
use super::record::{self, Head, Record};
use super::snapshot::Snapshot;
use crate::base::{Error, ErrorKind, FileRef, Id, Result};
use crate::storage::{data_name, patiently};
use std::sync::Arc;

/// How many versions in between are held in memory at once.
const MISSED_MAX: u64 = 16;

/// The parts of a commit that are the same in every slot that is tried.
#[derive(Debug, Clone, Copy)]
struct Attempts {
    commit_id: Id,
    read_version: u64,
    fold_versions: u64,
    /// Whether a store of an older format may be written.
    upgrades: bool,
}

impl Store {
    /// Commits `changes` after `base`, or after the versions committed since, and returns the snapshot that has them.
    /// All or nothing. `rebase` is called for every version in between.
    ///
    /// # Errors
    /// Conflict, Exists or NotFound if the changes no longer apply; CommitUnknown if the storage does not report
    /// whether the commit happened; Input if the changes are invalid. With any other error nothing was committed.
    pub fn commit(&self, base: &Arc<Snapshot>, changes: Changes, rebase: &mut dyn Rebase) -> Result<Arc<Snapshot>> {
        self.commit_once(base, changes, rebase).map(|done| done.snapshot)
    }

    /// Like [`Store::commit`]; says which version has the changes. If they have a key that a commit had before, that is
    /// its version, and nothing is written.
    ///
    /// # Errors
    /// Those of [`Store::commit`]; Conflict if the key was given to other content.
    pub fn commit_once(&self, base: &Arc<Snapshot>, changes: Changes, rebase: &mut dyn Rebase) -> Result<Committed> {
        match &self.queues {
            Some(queues) if rebase.queueing() != Queueing::Apart => queues.queue()?.commit(self, base, changes, rebase),
            _ => self.commit_alone(base.version(), base, changes, rebase),
        }
    }

    /// The newest version, found by following `base`, and the commit in it that `key` was given to.
    ///
    /// # Errors
    /// Those of [`Store::latest`].
    pub fn keyed_commit(&self, base: &Arc<Snapshot>, key: &CommitKey) -> Result<(Arc<Snapshot>, Option<KeyedCommit>)> {
        self.settling_newest(self.refresh(base)?, |newest| newest.keyed_commit(key))
    }

    /// The commit that has the key of `keyed`, looked for in the newest version.
    ///
    /// # Errors
    /// Conflict if the key was given to other content; those of [`Store::latest`].
    pub fn done_before(&self, base: &Arc<Snapshot>, keyed: &Keyed) -> Result<Option<Committed>> {
        let (snapshot, found) = self.keyed_commit(base, &keyed.key)?;
        let Some(commit) = found else { return Ok(None) };
        commit.check(keyed)?;
        Ok(Some(Committed { snapshot, version: commit.version, is_repeat: true }))
    }

    /// Like [`Store::commit`], but without waiting for other threads of this process. `read_version` is the version
    /// that the changes were based on. The changes are known to apply after `base`, which may be newer.
    pub(super) fn commit_alone(
        &self,
        read_version: u64,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Committed> {
        let outcome = patiently(|| self.commit_folding(read_version, base, changes, rebase, self.fold_versions));
        outcome.inspect_err(|error| self.tell_failed(read_version, error))
    }

    /// Folds the records since the newest root, and names the new root in a version without changes. Returns the same
    /// snapshot if there is nothing to fold.
    ///
    /// # Errors
    /// Those of [`Store::commit`].
    pub fn pack(&self, base: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        // The version that named the last root is itself one past it.
        if base.version() - base.root_version() <= 1 {
            return Ok(Arc::clone(base));
        }
        patiently(|| self.commit_folding(base.version(), base, Changes::default(), &mut StandardRules, 1))
            .map(|done| done.snapshot)
    }

    fn commit_folding(
        &self,
        read_version: u64,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
        fold_versions: u64,
    ) -> Result<Committed> {
        let attempts = Attempts { commit_id: self.entropy.id(), read_version, fold_versions, upgrades: false };
        self.commit_attempts(attempts, base, changes, rebase)
    }

    /// Makes a store of an older format one of this release's, in a version without changes: a root and a record. No
    /// fragment and no page of fragments is written anew. Returns the newest version if that has the format already.
    ///
    /// # Errors
    /// Those of [`Store::commit`].
    pub fn upgrade(&self) -> Result<Arc<Snapshot>> {
        loop {
            let newest = self.latest()?;
            if newest.format() >= FORMAT {
                return Ok(newest);
            }
            match self.upgraded(&newest) {
                // Another commit came first: of this format, or of the older one; perhaps a vacuum too, which passed it.
                Err(e) if matches!(e.kind(), ErrorKind::Conflict | ErrorKind::SnapshotExpired) => {}
                upgraded => return upgraded,
            }
        }
    }

    fn upgraded(&self, newest: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        let (commit_id, read_version) = (self.entropy.id(), newest.version());
        let attempts = Attempts { commit_id, read_version, fold_versions: 0, upgrades: true };
        self.commit_attempts(attempts, newest, Changes::default(), &mut Overtaken).map(|done| done.snapshot)
    }

    /// Names a new root of the newest version, in a version without changes: [`Store::pack`], or an upgrade of a store
    /// of an older format, whose roots are not written any more.
    ///
    /// # Errors
    /// Those of [`Store::commit`].
    pub(super) fn rooted_anew(&self, newest: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        if newest.format() < FORMAT { self.upgraded(newest) } else { self.pack(newest) }
    }

    fn commit_attempts(
        &self,
        attempts: Attempts,
        base: &Arc<Snapshot>,
        mut changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Committed> {
        let mut newest = Arc::clone(base);
        let (mut is_checked, mut passed_floor) = (false, false);
        let mut tries = Tries::begun(self);
        loop {
            let (draft, next) = match self.next_step(&mut newest, attempts, &changes, rebase, &mut is_checked) {
                Ok(Step::Put(draft, next)) => (draft, next),
                Ok(Step::Done(commit)) => {
                    // A record of ours that the floor has passed may be that commit.
                    let is_repeat = !passed_floor;
                    return Ok(Committed { snapshot: newest, version: commit.version, is_repeat });
                }
                Err(e) => {
                    newest = self.reopened(&newest, e, rebase, &mut changes)?;
                    continue;
                }
            };
            self.log.check_end(newest.version(), self.seen())?;
            let fate = self.publish(&draft)?;
            tries.tell(self, &draft, &next, fate);
            match fate {
                Fate::Committed => {
                    self.saw(draft.record.version);
                    self.log.put_hint(&next);
                    return Ok(Committed::now(Arc::from(next)));
                }
                Fate::Lost => newest = self.catch_up(newest, rebase, &mut changes)?,
                Fate::BelowFloor => {
                    passed_floor = true;
                    if let Some(committed) = self.already_in(&newest, &changes, draft.record.version)? {
                        let look = |newest: &Snapshot| known(newest, &changes, rebase);
                        let (committed, before) = self.settling_newest(committed, look)?;
                        let version = before.map_or(committed.version(), |commit| commit.version);
                        return Ok(Committed { snapshot: committed, version, is_repeat: false });
                    }
                    newest = self.pass_floor(&newest, rebase, &mut changes)?;
                }
            }
        }
    }

    /// What comes next for `changes` after `newest`.
    fn next_step(
        &self,
        newest: &mut Arc<Snapshot>,
        attempts: Attempts,
        changes: &Changes,
        rebase: &dyn Rebase,
        is_checked: &mut bool,
    ) -> Result<Step> {
        if let Some(commit) = known(newest, changes, rebase)? {
            return Ok(Step::Done(commit));
        }
        if !*is_checked {
            check_files(&self.log, changes)?;
            *is_checked = true;
        }
        self.prepare(newest, attempts, changes).map(|(draft, next)| Step::Put(Box::new(draft), Box::new(next)))
    }

    /// The newest version, if it contains the fragments of `changes`, including the inline ones. Then our record was
    /// committed before the floor passed it, or another writer committed the same receipts. The absence of all of them
    /// proves nothing, since fragments are merged.
    ///
    /// # Errors
    /// CommitUnknown if only some of them are in it: the others were merged, or never committed.
    fn already_in(&self, base: &Snapshot, changes: &Changes, version: u64) -> Result<Option<Arc<Snapshot>>> {
        let newest = self.latest()?;
        if newest.store() != base.store() {
            return Ok(None);
        }
        let (newest, (found, all)) = self.settling_newest(newest, |newest| count_added(newest, changes))?;
        match found {
            0 => Ok(None),
            found if found == all => Ok(Some(newest)),
            found => Err(outcome::unknown(
                version,
                Error::storage(format!(
                    "of its {all} fragments {found} are in the newest version; the others were merged, or never committed"
                )),
            )),
        }
    }

    /// The record of `changes` after `newest`, with its bytes and the snapshot after it. Folds `newest` first if that
    /// is due. If the record must be durable, everything it depends on is durable on return.
    fn prepare(&self, newest: &mut Arc<Snapshot>, attempts: Attempts, changes: &Changes) -> Result<(Draft, Snapshot)> {
        self.prove(newest)?;
        match attempts.upgrades {
            true => newest.features().check_write()?,
            false => self.check_writable(newest)?,
        }
        *newest = self.folded(Arc::clone(newest), attempts.fold_versions)?;
        let draft = self.draft(newest, attempts, changes)?;
        let mut next = Snapshot::clone(newest);
        next.do_next(Arc::new(draft.record.clone()))?;
        if draft.record.durable {
            self.log.make_durable(newest, changes)?;
        }
        Ok((draft, next))
    }

    /// An Unsupported error unless this release may write after `newest`. A store of GS0 is written after an upgrade.
    ///
    /// # Errors
    /// Unsupported.
    pub fn check_writable(&self, newest: &Snapshot) -> Result<()> {
        if newest.format() < FORMAT {
            return Err(Error::unsupported(format!(
                "the store {} has format {}, which this release reads but does not write; upgrade it once with `gridstone upgrade`, or \
                 gs.upgrade(uri). No data is rewritten, and older releases cannot open it afterwards. Nothing was written",
                self.log.storage.describe(),
                newest.format()
            )));
        }
        newest.features().check_write()
    }

    /// Verifies that slots are exclusive, and compares clocks if that check returns the storage's time.
    fn prove(&self, newest: &Snapshot) -> Result<()> {
        if let Some(storage_us) = self.log.storage.prove_exclusive(newest.store())? {
            self.times.compare(storage_us, self.clock.now_us());
        }
        Ok(())
    }

    /// Returns the snapshot to follow instead of `newest` if `error` comes from a vacuum that removed its root or
    /// records; else returns the error.
    fn reopened(
        &self,
        newest: &Snapshot,
        error: Error,
        rebase: &mut dyn Rebase,
        changes: &mut Changes,
    ) -> Result<Arc<Snapshot>> {
        if !error.may_be_missing() {
            return Err(error);
        }
        match self.resettled(newest) {
            Ok(Some(settled)) => Ok(settled),
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.pass_floor(newest, rebase, changes),
            _ => Err(error),
        }
    }

    /// The snapshot, based on a root that is recent enough.
    fn folded(&self, snapshot: Arc<Snapshot>, fold_versions: u64) -> Result<Arc<Snapshot>> {
        if !snapshot.wants_fold(fold_versions) {
            return Ok(snapshot);
        }
        fold(&self.log, self.entropy.as_ref(), &snapshot).map(Arc::new)
    }

    /// The record of `changes` after `newest`, and its bytes. It is decoded from those bytes, so that no unreadable
    /// record is ever written.
    fn draft(&self, newest: &Snapshot, attempts: Attempts, changes: &Changes) -> Result<Draft> {
        let Attempts { commit_id, read_version, .. } = attempts;
        check_once(newest, changes)?;
        let operations = draft::operations(newest, changes, self.entropy.as_ref())?;
        let (version, time_us) = (newest.version() + 1, self.times.after(newest, self.clock.now_us()));
        if newest.version() > 0 && time_us <= newest.time_us() {
            return Err(Error::corruption(format!(
                "version {} is dated at the end of time, and nothing can be dated after it; nothing was committed",
                newest.version()
            )));
        }
        let head = Head {
            commit_id,
            version,
            parent: newest.record(),
            read_version,
            time_us,
            root: newest.root(),
            message: changes.message.clone(),
            keys: changes.keys.clone(),
            durable: !self.log.storage.defers_sync() || is_durable(newest, changes),
            features: newest.features().clone(),
        };
        let bytes = record::encode(head, &operations)?;
        let store = if version == 1 { commit_id } else { newest.store() };
        Ok(Draft { record: Record::decode(&bytes, version)?, bytes, store })
    }

    /// The newest version, after `rebase` has been called for each one since `base`. If `base` is far behind and the
    /// rules allow it, or it has been vacuumed, only for the newest.
    fn catch_up(&self, base: Arc<Snapshot>, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        let near = base.version().saturating_add(self.fold_versions.saturating_mul(2));
        let (mut newest, mut condemned) = (base, false);
        loop {
            if rebase.newest_suffices() && newest.version() > near {
                return self.pass_floor(&newest, rebase, changes);
            }
            let mut missed = Vec::new();
            let outcome = self.read_on(&newest, &mut missed);
            // Below the floor, records may be missing, or may be leftovers of commits that were lost there.
            if self.log.floor_version()? > newest.version() + 1 {
                return self.pass_floor(&newest, rebase, changes);
            }
            let at_end = match outcome {
                Ok(at_end) => at_end,
                Err(e) => match self.resettled(&newest) {
                    Ok(Some(settled)) if e.may_be_missing() => {
                        newest = settled;
                        continue;
                    }
                    Err(gone) if e.may_be_missing() && gone.kind() == ErrorKind::SnapshotExpired => {
                        return self.pass_floor(&newest, rebase, changes);
                    }
                    _ => return Err(self.or_gone(&newest, e)),
                },
            };
            for (record, snapshot) in missed {
                self.saw(snapshot.version());
                if !rebase.is_of_many() && record.has_key_of(&changes.keys) {
                    return Ok(snapshot);
                }
                newest = self.rebased(&record, snapshot, rebase, changes)?;
                if newest.version() > record.version {
                    return Ok(newest);
                }
                condemned |= record.operations.iter().any(|o| matches!(o, Recorded::Condemn(_)));
            }
            if at_end {
                return if condemned { self.rested(newest, rebase, changes) } else { Ok(newest) };
            }
        }
    }

    /// The error for what follows `newest`, if it is damage. If another store has replaced this one, its records follow
    /// others, and the error says so.
    fn or_gone(&self, newest: &Snapshot, error: Error) -> Error {
        if error.kind() != ErrorKind::Corruption {
            return error;
        }
        match self.log.before(newest.version() + 1, newest.record()) {
            Before::Other => self.log.gone().with_source(error),
            _ => error,
        }
    }

    /// The snapshot opened anew, or a later one. A root folded for this commit, which no record names yet, may be among
    /// the condemned files, and the next vacuum may pass even this version. Files of the changes may have been
    /// condemned and forgotten since, so the state no longer lists them.
    fn rested(&self, newest: Arc<Snapshot>, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        match self.at_version(newest.version()) {
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.pass_floor(&newest, rebase, changes),
            opened => opened.and_then(|opened| check_files(&self.log, changes).map(|()| opened)),
        }
    }

    /// The snapshot `newest` after `record`, once `rebase` has been called for it. A later snapshot, also passed to
    /// `rebase`, if a vacuum removed the root or records of this one.
    fn rebased(
        &self,
        record: &Record,
        mut newest: Arc<Snapshot>,
        rebase: &mut dyn Rebase,
        changes: &mut Changes,
    ) -> Result<Arc<Snapshot>> {
        while newest.version() == record.version {
            match rebase.rebase(record, &newest, changes) {
                Ok(()) => break,
                Err(e) => newest = self.reopened(&newest, e, rebase, changes)?,
            }
        }
        Ok(newest)
    }

    /// Appends the next versions after `base` to `missed`, each with the store as of it. Returns whether the end was
    /// reached.
    fn read_on(&self, base: &Arc<Snapshot>, missed: &mut Vec<(Record, Arc<Snapshot>)>) -> Result<bool> {
        let mut newest = Arc::clone(base);
        self.log.read_on(newest.version() + 1, MISSED_MAX, &mut |record| {
            newest = Arc::new(self.advanced(&newest, record.clone())?);
            missed.push((record, Arc::clone(&newest)));
            Ok(())
        })
    }

    /// The newest version, if it is of the same store as `base`. A `base` without a store accepts any.
    fn pass_floor(&self, base: &Snapshot, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        loop {
            let newest = self.latest()?;
            if base.version() > 0 && newest.store() != base.store() {
                return Err(self.log.gone());
            }
            let past = match known(&newest, changes, rebase) {
                Ok(Some(_)) => return Ok(newest),
                Ok(None) => rebase.rebase_past_floor(&newest, changes),
                Err(e) => Err(e),
            };
            match past {
                // The floor has moved again.
                Err(e) if e.may_be_missing() && self.log.floor_version()? > newest.root_version() => {}
                outcome => return outcome.and_then(|()| check_files(&self.log, changes)).map(|()| newest),
            }
        }
    }
}

/// The next step of a commit.
enum Step {
    /// This record is to be put; it makes this snapshot.
    Put(Box<Draft>, Box<Snapshot>),
    /// It was done before.
    Done(KeyedCommit),
}

/// The commit in `newest` that has the key of `changes`.
///
/// # Errors
/// Conflict if the key was given to other content; those of [`Snapshot::keyed_commit`].
fn known(newest: &Snapshot, changes: &Changes, rebase: &dyn Rebase) -> Result<Option<KeyedCommit>> {
    let Some(keyed) = changes.keys.first().filter(|_| !rebase.is_of_many()) else { return Ok(None) };
    let Some(commit) = newest.keyed_commit(&keyed.key)? else { return Ok(None) };
    commit.check(keyed).map(|()| Some(commit))
}

/// Gives up if any commit came first.
struct Overtaken;

impl Rebase for Overtaken {
    fn rebase(&mut self, lost_to: &Record, _: &Arc<Snapshot>, _: &mut Changes) -> Result<()> {
        Err(Error::conflict(format!("version {} was committed meanwhile", lost_to.version)))
    }
}

/// A Conflict error if the data file of a fragment is missing: it was written so long ago that a vacuum removed it. A
/// file condemned from here on is found when its record is applied, until a later vacuum forgets it. So this check is
/// repeated whenever a vacuum has been passed, after its record was read.
fn check_files(log: &Log, changes: &Changes) -> Result<()> {
    for operation in &changes.operations {
        if let Operation::Keep { kept, .. } = operation {
            check_kept_files(log, kept)?;
        }
        let (Operation::AddFragments { fragments, .. } | Operation::ReplaceFragments { fragments, .. }) = operation
        else {
            continue;
        };
        for staged in fragments.iter().filter(|f| f.body.is_none()) {
            if let FileRef::Data(id) = staged.description.location.file
                && !log.storage.exists(&data_name(id))?
            {
                return Err(Error::conflict(format!(
                    "the file of fragment {} is missing: it was written so long ago that a vacuum has removed it, or was deleted \
                     by hand; write the data again. Nothing was committed",
                    staged.description.id
                )));
            }
        }
    }
    Ok(())
}

/// A Conflict error if a file to be kept is missing.
fn check_kept_files(log: &Log, kept: &Kept) -> Result<()> {
    for file in &kept.files {
        if !log.storage.exists(&data_name(file.id))? {
            return Err(Error::conflict(format!(
                "the file {}, which was to be kept, is missing: it was written so long ago that a vacuum has removed it, or was deleted \
                 by hand; write it again. Nothing was committed",
                file.id
            )));
        }
    }
    Ok(())
}
