//! The commit protocol. A version is the creation of one object, `_log/<version>`, that did not exist.
//!
//! 1. If the newest root is `fold_versions` behind, or the records since it are many bytes, fold.
//! 2. Write the record that follows the newest version known, naming that root; put it if absent. Where looking costs nothing, look first
//!    whether later ones are there: then the slot is free because its record was lost.
//! 3. Not plainly created? Read the slot. Our id in it: committed, and made durable now. Another's: lost. Nothing: try
//!    the same slot again, a few times. Unreadable: the outcome is unknown, and nothing is deleted.
//! 4. Created: read the floor, and the record before. A version below the floor counted if the next one names it as its parent; else it is
//!    lost, since nobody looks for it there: the record is removed. If the record before is not the one that was followed, the store was
//!    deleted meanwhile, and perhaps another made in its place: the record is removed, and nothing was committed.
//! 5. Lost: read what came in between, a few versions at a time, let the caller rebase; if a vacuum was among it, look whether the files
//!    of the changes are still there; go to 1.
//!
//! Fragments are durable before they are given to a commit, packs and pages before step 2: so whatever a record
//! names is there.

use super::conflict::{Queueing, Rebase, StandardRules};
use super::draft;
use super::fold::fold;
use super::log::Log;
use super::operation::{Changes, Operation, Recorded};
use super::record::{self, Head, Record};
use super::root_size;
use super::snapshot::Snapshot;
use super::state::ArrayState;
use super::store::Store;
use crate::base::{Error, ErrorKind, FileRef, Id, Result};
use crate::fragment::Staged;
use crate::storage::{PutOutcome, data_name, log_name, patiently};
use std::collections::HashSet;
use std::sync::Arc;

/// How often the same step is tried against a storage that fails without effect.
const ATTEMPTS: usize = 3;

/// How many versions that came in between are held at once.
const MISSED_MAX: u64 = 16;

/// Vacuums leave younger records, though the floor has passed them: whoever has just put one there may be about to ask whether it counts.
pub const RECORD_GRACE_US: i64 = 3600 * 1_000_000;

/// How far ahead of the clock the previous version's time may be.
const AHEAD_US_MAX: i64 = 24 * 3600 * 1_000_000;

/// What became of a record that was put into a slot.
enum Fate {
    /// It is the version.
    Committed,
    /// Another commit has the slot.
    Lost,
    /// The log has been truncated beyond the slot.
    BelowFloor,
}

/// A record that is to be put.
struct Draft {
    record: Record,
    bytes: Vec<u8>,
    /// What the clock showed before it was.
    made_us: i64,
}

impl Store {
    /// Commits `changes` after `base`, or after whatever came since, and returns the snapshot that has them. All or
    /// nothing. `rebase` is asked about every version that came in between.
    ///
    /// # Errors
    /// Conflict, Exists or NotFound if the changes no longer make sense; CommitUnknown if the storage does not tell
    /// whether the commit happened; Input if they never made sense; else nothing was committed.
    pub fn commit(&self, base: &Arc<Snapshot>, changes: Changes, rebase: &mut dyn Rebase) -> Result<Arc<Snapshot>> {
        match &self.queues {
            Some(queues) if rebase.queueing() != Queueing::Apart => queues.queue()?.commit(self, base, changes, rebase),
            _ => self.commit_alone(base.version(), base, changes, rebase),
        }
    }

    /// As [`Store::commit`], whatever other threads of this process commit meanwhile. `read_version` is what the changes were
    /// made with a look at; they are known to stand after `base`, which may be newer.
    pub(super) fn commit_alone(
        &self,
        read_version: u64,
        base: &Arc<Snapshot>,
        changes: Changes,
        rebase: &mut dyn Rebase,
    ) -> Result<Arc<Snapshot>> {
        patiently(|| self.commit_folding(read_version, base, changes, rebase, self.fold_versions))
    }

    /// Folds what was committed since the newest root, and names the new one in a version that changes nothing; the same
    /// snapshot if there is nothing to fold.
    ///
    /// # Errors
    /// Those of [`Store::commit`].
    pub fn pack(&self, base: &Arc<Snapshot>) -> Result<Arc<Snapshot>> {
        // The version that named the root last is itself one past it.
        if base.version() - base.root_version() <= 1 {
            return Ok(Arc::clone(base));
        }
        patiently(|| self.commit_folding(base.version(), base, Changes::default(), &mut StandardRules, 1))
    }

    fn commit_folding(
        &self,
        read_version: u64,
        base: &Arc<Snapshot>,
        mut changes: Changes,
        rebase: &mut dyn Rebase,
        fold_versions: u64,
    ) -> Result<Arc<Snapshot>> {
        let commit_id = self.entropy.id();
        let mut newest = Arc::clone(base);
        check_files(&self.log, &changes)?;
        loop {
            let head = (commit_id, read_version, fold_versions);
            let (draft, next) = match self.prepare(&mut newest, head, &changes) {
                Ok(prepared) => prepared,
                Err(e) => {
                    newest = self.reopened(&newest, e, rebase, &mut changes)?;
                    continue;
                }
            };
            self.log.check_end(newest.version(), self.seen())?;
            match self.publish(&draft)? {
                Fate::Committed => {
                    self.saw(draft.record.version);
                    self.log.put_hint(draft.record.version);
                    return Ok(Arc::new(next));
                }
                Fate::Lost => newest = self.catch_up(newest, rebase, &mut changes)?,
                Fate::BelowFloor => newest = self.pass_floor(&newest, rebase, &mut changes)?,
            }
        }
    }

    /// The record that does `changes` after `newest`, which is folded if it is time, with its bytes and the snapshot after it.
    fn prepare(
        &self,
        newest: &mut Arc<Snapshot>,
        (commit_id, read_version, fold_versions): (Id, u64, u64),
        changes: &Changes,
    ) -> Result<(Draft, Snapshot)> {
        root_size::check(newest, changes, self.root_bytes_max)?;
        *newest = self.folded(Arc::clone(newest), fold_versions)?;
        let draft = self.draft(newest, commit_id, read_version, changes)?;
        let mut next = Snapshot::clone(newest);
        next.do_next(&draft.record)?;
        Ok((draft, next))
    }

    /// What to follow instead of `newest` if `error` comes from a vacuum that took away what it rests on; else the error.
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

    /// The snapshot, resting on a root that is not too old.
    fn folded(&self, snapshot: Arc<Snapshot>, fold_versions: u64) -> Result<Arc<Snapshot>> {
        if !snapshot.wants_fold(fold_versions) {
            return Ok(snapshot);
        }
        fold(&self.log, self.entropy.as_ref(), &snapshot).map(Arc::new)
    }

    /// The record that does `changes` after `newest`, and its bytes. It is decoded from them, so that nothing is ever
    /// written that cannot be read.
    fn draft(&self, newest: &Snapshot, commit_id: Id, read_version: u64, changes: &Changes) -> Result<Draft> {
        check_once(newest, changes)?;
        let operations = draft::operations(newest, changes, self.entropy.as_ref())?;
        let (version, now_us) = (newest.version() + 1, self.clock.now_us());
        let head = Head {
            commit_id,
            version,
            parent: newest.record(),
            read_version,
            time_us: time_after(newest, now_us)?,
            root: newest.root(),
            message: changes.message.clone(),
        };
        let bytes = record::encode(head, &operations)?;
        Ok(Draft { record: Record::decode(&bytes, version)?, bytes, made_us: now_us })
    }

    /// Puts the record into its slot and finds out what became of it.
    fn publish(&self, draft: &Draft) -> Result<Fate> {
        let record = &draft.record;
        let name = log_name(record.version);
        let mut refusal = None;
        for _ in 0..ATTEMPTS {
            match self.log.storage.put_if_absent(&name, &draft.bytes) {
                Ok(PutOutcome::Created) => return self.obey_floor(draft),
                Ok(PutOutcome::Exists) => {}
                Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                Err(e) => refusal = Some(e),
            }
            match self.log.read(record.version) {
                Ok(Some(found)) if found.commit_id == record.commit_id => {
                    self.log.storage.sync(&name).map_err(|e| unknown(record.version, e))?;
                    return self.obey_floor(draft);
                }
                Ok(Some(_)) => return Ok(Fate::Lost),
                Ok(None) => {}
                // A record of a later format is certainly not ours.
                Err(e) if e.kind() == ErrorKind::Unsupported => return Err(e),
                Err(e) => return Err(unknown(record.version, e)),
            }
        }
        Err(refusal.unwrap_or_else(|| {
            Error::storage(format!("the storage says that {name} exists and that it does not; nothing was committed"))
        }))
    }

    /// Gives a version up that was made below the floor, or in another store than the one that it was made for.
    fn obey_floor(&self, draft: &Draft) -> Result<Fate> {
        let record = &draft.record;
        let mut refusal = None;
        for _ in 0..ATTEMPTS {
            match self.log.followed(record.version, record.parent) {
                Ok((floor, true)) if floor <= record.version => return Ok(Fate::Committed),
                Ok((floor, false)) if floor <= record.version => {
                    self.take_back(record).map_err(|e| unknown(record.version, e))?;
                    return Err(self.log.gone());
                }
                // Who opens the store is stopped by the record before, and finds no way to this one.
                Err(e) if e.kind() == ErrorKind::Corruption => {
                    self.take_back(record).map_err(|e| unknown(record.version, e))?;
                    return Err(e.context("nothing was committed: the record before is damaged, or of another store"));
                }
                Ok(_) => match self.is_followed(draft) {
                    Ok(true) => return Ok(Fate::Committed),
                    Ok(false) => {
                        let _ = self.take_back(record);
                        return Ok(Fate::BelowFloor);
                    }
                    Err(e) => refusal = Some(e),
                },
                Err(e) => refusal = Some(e),
            }
        }
        let cause = refusal.unwrap_or_else(|| Error::storage("the log's floor cannot be read"));
        Err(unknown(record.version, cause))
    }

    /// Removes a record that does not count, if it is still this one. Left behind below the floor it does no harm, since nobody looks there; in
    /// a store that was made in the place of another, whoever finds it says that the log is mixed.
    fn take_back(&self, record: &Record) -> Result<()> {
        match self.log.read(record.version)? {
            Some(found) if found.commit_id == record.commit_id => self.log.storage.delete(&log_name(record.version)),
            _ => Ok(()),
        }
    }

    /// Whether a version that the floor has passed counted before: then the next one names it as its parent. Nobody follows a record
    /// made below the floor, and a vacuum leaves young records, so if the next one is not there it never was.
    fn is_followed(&self, Draft { record, made_us, .. }: &Draft) -> Result<bool> {
        if let Some(next) = self.log.read(record.version.saturating_add(1))? {
            return Ok(next.parent == Some(record.xxh3));
        }
        let since_us = self.clock.now_us().saturating_sub(*made_us);
        if !(0..=RECORD_GRACE_US / 2).contains(&since_us) {
            return Err(Error::storage(
                "so much time has passed that a vacuum may have deleted the record of the next version",
            ));
        }
        Ok(false)
    }

    /// The newest version, after `rebase` has seen each one since `base`; or only the newest, if it is far ahead and
    /// that will do.
    fn catch_up(&self, base: Arc<Snapshot>, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        let near = base.version().saturating_add(self.fold_versions.saturating_mul(2));
        let (mut newest, mut condemned) = (base, false);
        loop {
            if rebase.newest_suffices() && newest.version() > near {
                return self.pass_floor(&newest, rebase, changes);
            }
            let mut missed = Vec::new();
            let outcome = self.read_on(&newest, &mut missed);
            // Below the floor records may be missing, or be left from commits that were lost there.
            if self.log.floor_version()? > newest.version() + 1 {
                return self.pass_floor(&newest, rebase, changes);
            }
            let at_end = outcome.map_err(|e| self.or_gone(&newest, e))?;
            for (record, snapshot) in missed {
                self.saw(snapshot.version());
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

    /// The error of what follows `newest` if it is damage; or that the store is another one by now, whose records follow others.
    fn or_gone(&self, newest: &Snapshot, error: Error) -> Error {
        if error.kind() != ErrorKind::Corruption {
            return error;
        }
        match self.log.followed(newest.version() + 1, newest.record()) {
            Ok((_, false)) => self.log.gone().with_source(error),
            _ => error,
        }
    }

    /// The snapshot opened anew, or a later one: a root that was folded for this commit and that no record names yet may be among
    /// what was condemned, and the next vacuum may pass even this version. Files of the changes may have been condemned and
    /// forgotten since, of which the state says nothing any more.
    fn rested(&self, newest: Arc<Snapshot>, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        match self.at_version(newest.version()) {
            Err(e) if e.kind() == ErrorKind::SnapshotExpired => self.pass_floor(&newest, rebase, changes),
            opened => opened.and_then(|opened| check_files(&self.log, changes).map(|()| opened)),
        }
    }

    /// The snapshot `newest`, to which `record` has led, after `rebase` has seen it; a later one, which it has seen too, if a
    /// vacuum has taken away what this one rests on.
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

    /// Appends the next versions after `base` to `missed`, with the store as it was then; says whether they are all.
    fn read_on(&self, base: &Arc<Snapshot>, missed: &mut Vec<(Record, Arc<Snapshot>)>) -> Result<bool> {
        let mut newest = Arc::clone(base);
        self.log.read_on(newest.version() + 1, MISSED_MAX, &mut |record| {
            newest = Arc::new(self.advanced(&newest, &record)?);
            missed.push((record, Arc::clone(&newest)));
            Ok(())
        })
    }

    /// The newest version, if it is of the store that `base` is of; of none, any.
    fn pass_floor(&self, base: &Snapshot, rebase: &mut dyn Rebase, changes: &mut Changes) -> Result<Arc<Snapshot>> {
        loop {
            let newest = self.latest()?;
            if base.version() > 0 && newest.store() != base.store() {
                return Err(self.log.gone());
            }
            match rebase.rebase_past_floor(&newest, changes) {
                // The floor has moved again.
                Err(e) if e.may_be_missing() && self.log.floor_version()? > newest.root_version() => {}
                outcome => return outcome.and_then(|()| check_files(&self.log, changes)).map(|()| newest),
            }
        }
    }
}

/// `now`, or just after the previous version if the clock is behind it.
fn time_after(previous: &Snapshot, now: i64) -> Result<i64> {
    if previous.version() == 0 {
        return Ok(now);
    }
    let ahead = previous.time_us().saturating_sub(now);
    if ahead > AHEAD_US_MAX {
        return Err(Error::conflict(format!(
            "version {} was committed {} hours in the future of this machine's clock; set the clock of this machine, or of \
             the one that wrote it, right. Nothing was committed",
            previous.version(),
            ahead / 3_600_000_000
        )));
    }
    Ok(now.max(previous.time_us().saturating_add(1)))
}

fn unknown(version: u64, cause: Error) -> Error {
    Error::commit_unknown(format!(
        "whether version {version} was committed could not be found out, and nothing was deleted; look at the history once the \
         storage answers again ({cause})"
    ))
    .with_source(cause)
}

/// A Conflict error if the data file of a fragment is missing: it was written so long ago that a vacuum has removed it. One
/// that is condemned from here on is found when its record is applied, until a later vacuum forgets it: so this is asked again
/// whenever a vacuum has been passed, after its record was read.
fn check_files(log: &Log, changes: &Changes) -> Result<()> {
    for operation in &changes.operations {
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

/// A Conflict error if a fragment that came by data file is in its array already, or one to be taken out is not. Ids of inline fragments are checked
/// against recent versions only, when the record is applied: they were made for this one commit and cannot be older.
fn check_once(newest: &Snapshot, changes: &Changes) -> Result<()> {
    for operation in &changes.operations {
        let (array, fragments, removed) = match operation {
            Operation::AddFragments { array, fragments } => (array, fragments, &[][..]),
            Operation::ReplaceFragments { array, removed, fragments } => (array, fragments, removed.as_slice()),
            _ => continue,
        };
        let Ok(state) = newest.array_by_id(*array) else { continue };
        let by_file = |f: &&Staged| f.body.is_none() && f.description.location.file != FileRef::Nowhere;
        check_pages(state, fragments.iter().filter(by_file))?;
        state.check_masked(changes.added_to(*array))?;
        state.check_present(removed)?;
    }
    Ok(())
}

fn check_pages<'a>(array: &ArrayState, staged: impl Iterator<Item = &'a Staged>) -> Result<()> {
    let staged: Vec<&Staged> = staged.collect();
    let ids: HashSet<Id> = staged.iter().map(|f| f.description.id).collect();
    // The same fragment has the same box, so only pages that touch it can describe it.
    let touched = |bounds: &crate::schema::Subarray| staged.iter().any(|f| f.description.bounds.intersects(bounds));
    for shelf in array.shelves.iter().filter(|s| touched(&s.info().bounds)) {
        if let Some(known) = shelf.load()?.iter().find(|d| ids.contains(&d.id)) {
            return Err(array.twice(known.id));
        }
    }
    Ok(())
}
