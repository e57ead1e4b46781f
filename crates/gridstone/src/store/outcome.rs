//! Determines the outcome of a record that was put into its slot. The outcome is never guessed.
//!
//! 1. The put succeeded: the start of the record before and the floor are read. If the record before is our parent, or
//!    the floor is just above it: committed.
//! 2. The put did not plainly succeed: the slot is read. If it has our commit id: committed, and made durable now. If
//!    it has another's: lost. If it is empty: the same bytes are put again, a few times. If any of these puts may still
//!    take effect, the outcome is unknown; else nothing was committed.
//! 3. If step 1 finds anything else, it is read again, the record first. If the version after ours names ours as its
//!    parent: committed.
//! 4. Our record is removed only on positive proof:
//!    - the record before is read, is sound, and is not our parent; or record 1, or the root at the floor, belongs to
//!      another store; or the store has certainly been deleted. Then the store was deleted, and perhaps another one was
//!      created in its place: nothing was committed;
//!    - the floor is above our version, and one of two things is known. The next version is read and names another
//!      parent; or our record was put once, a listing shows it and later ones but not the next version, and no vacuum
//!      can have deleted that yet. Then no reader looks for our version: the changes are committed anew.
//! 5. Anything else is a CommitUnknown error: a refusal, an inconsistent answer or a missing record. Nothing is
//!    deleted.

use super::handle::Store;
use super::hint::version_of;
use super::log::Before;
use super::record::Record;
use crate::base::{Error, ErrorKind, Id, Result};
use crate::storage::{LOG, PutOutcome, log_name};

/// How often the same step is tried if the storage fails.
const ATTEMPTS: usize = 3;

/// The age in microseconds up to which vacuums keep records below the floor. The writer of such a record may be about
/// to check whether it counts.
pub const RECORD_GRACE_US: i64 = 3600 * 1_000_000;

/// The outcome of a record that was put into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is committed.
    Committed,
    /// Another commit has the slot.
    Lost,
    /// The log was truncated beyond the slot before any record followed this one.
    BelowFloor,
}

/// A record to put.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) record: Record,
    pub(super) bytes: Vec<u8>,
    /// The store that it is meant for; all zeros before version 1.
    pub(super) store: Id,
}

/// How many puts may have created the record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Puts {
    One,
    Several,
}

/// The result of one check of an existing record.
enum Verdict {
    Counts,
    /// No record follows it: the floor has passed it.
    Void,
    /// It is in another store than the one that it was meant for, or in none.
    Astray,
    /// Nothing is certain.
    Unclear(Error),
}

impl Store {
    /// Puts the record into its slot and determines its outcome.
    pub(super) fn publish(&self, draft: &Draft) -> Result<Fate> {
        let record = &draft.record;
        let name = log_name(record.version);
        let (mut refusal, mut doubt, mut occupied) = (None, false, false);
        for _ in 0..ATTEMPTS {
            match self.log.storage.put_if_absent(&name, &draft.bytes) {
                Ok(PutOutcome::Created) if !doubt => return self.settled(draft, Puts::One),
                Ok(PutOutcome::Created | PutOutcome::CreatedLate) => return self.settled(draft, Puts::Several),
                Ok(PutOutcome::Exists) => occupied = true,
                Err(e) if e.kind() == ErrorKind::Unsupported && e.had_no_effect() && !doubt => return Err(e),
                Err(e) => {
                    doubt |= !e.had_no_effect();
                    refusal = Some(e);
                }
            }
            match self.log.read(record.version) {
                Ok(Some(found)) if found.commit_id == record.commit_id => return self.settled_late(draft),
                Ok(Some(_)) => return Ok(Fate::Lost),
                Ok(None) => {}
                // A sound record of a later format or another key is not ours, and leaves no slot for ours.
                Err(e) if e.is_foreign() && !doubt => return Err(e),
                Err(e) if doubt || occupied => return Err(unknown(record.version, e)),
                // No put has happened, whatever is in the slot.
                Err(_) => {}
            }
        }
        // A record that exists and cannot be seen may be ours: a put that was repeated on its way is refused because it
        // succeeded.
        let refusal = refusal
            .unwrap_or_else(|| Error::storage(format!("the storage says that {name} exists and that it does not")));
        Err(if doubt || occupied { unknown(record.version, refusal) } else { refusal })
    }

    /// Like [`Store::settled`], for a record that exists after an ambiguous answer.
    fn settled_late(&self, draft: &Draft) -> Result<Fate> {
        let version = draft.record.version;
        self.log.storage.sync(&log_name(version)).map_err(|e| unknown(version, e))?;
        self.settled(draft, Puts::Several).inspect(|_| self.tell_found(version))
    }

    /// Whether an existing record counts. A record that certainly does not is removed.
    fn settled(&self, draft: &Draft, puts: Puts) -> Result<Fate> {
        let version = draft.record.version;
        let mut cause = match self.first_look(draft) {
            Verdict::Counts => return self.made_durable(draft),
            Verdict::Unclear(e) => Some(e),
            Verdict::Void | Verdict::Astray => None,
        };
        for _ in 0..ATTEMPTS {
            match self.second_look(draft, puts).unwrap_or_else(Verdict::Unclear) {
                Verdict::Counts => return self.made_durable(draft),
                Verdict::Void => {
                    // If it is left behind below the floor, it does no harm.
                    let _ = self.take_back(&draft.record);
                    return Ok(Fate::BelowFloor);
                }
                Verdict::Astray => {
                    self.take_back(&draft.record).map_err(|e| unknown(version, e))?;
                    return Err(self.log.gone());
                }
                Verdict::Unclear(e) => cause = Some(e),
            }
        }
        Err(unknown(version, cause.unwrap_or_else(|| Error::storage("the log cannot be read"))))
    }

    /// The record counts. Where the storage defers syncs, its name is made durable now if the commit is to be.
    fn made_durable(&self, draft: &Draft) -> Result<Fate> {
        let Record { version, durable, .. } = draft.record;
        if durable && self.log.storage.defers_sync() {
            self.log.storage.sync(&log_name(version)).map_err(|e| unknown(version, e))?;
        }
        Ok(Fate::Committed)
    }

    /// What the record before and the floor show, requested together.
    fn first_look(&self, draft: &Draft) -> Verdict {
        let record = &draft.record;
        let (before, floor) = self.log.before_and_floor(record.version, record.parent);
        let floor = match floor {
            Ok(floor) => floor.map_or(1, |f| f.version),
            Err(e) => return Verdict::Unclear(e),
        };
        match before {
            Before::Parent if floor <= record.version => Verdict::Counts,
            Before::Absent if floor == record.version => Verdict::Counts,
            _ if floor > record.version => Verdict::Void,
            Before::Parent | Before::Absent | Before::Other => Verdict::Astray,
            Before::Unclear(e) => Verdict::Unclear(e),
        }
    }

    /// What can be proved after a first check that was not conclusive.
    fn second_look(&self, draft: &Draft, puts: Puts) -> Result<Verdict> {
        let Record { version, parent, xxh3, .. } = draft.record;
        // The record first: a vacuum moves the floor before it deletes records.
        let before = self.log.before(version, parent);
        let floor = match self.log.floor() {
            Ok(floor) => floor,
            // A store that is being deleted shows no floor.
            Err(_) if self.log.storage.is_removed()? => return Ok(Verdict::Astray),
            Err(e) => return Ok(Verdict::Unclear(e)),
        };
        let lowest = floor.map_or(1, |f| f.version);
        match (&before, lowest <= version) {
            (Before::Parent, true) => return Ok(Verdict::Counts),
            (Before::Absent, true) if lowest == version => return Ok(Verdict::Counts),
            _ => {}
        }
        match self.log.read(version.saturating_add(1))? {
            Some(next) if next.parent == Some(xxh3) => return Ok(Verdict::Counts),
            Some(_) if lowest > version => return Ok(Verdict::Void),
            None if lowest > version && puts == Puts::One => return self.never_followed(draft, lowest),
            None if lowest > version => return Ok(Verdict::Unclear(Error::storage("the log has been truncated"))),
            _ => {}
        }
        match before {
            Before::Other => Ok(Verdict::Astray),
            Before::Unclear(e) if e.kind() == ErrorKind::Storage => Ok(Verdict::Unclear(e)),
            before => self.of_another_store(draft, before),
        }
    }

    /// Whether a version that the floor has passed counted before, if the next one does not exist. No record follows
    /// one made below the floor, and a vacuum keeps young records. So the next version never existed, if by the
    /// storage's own times both would be young. The time proves this only for a record that was put once: an earlier
    /// put may have counted long ago, and been forgotten.
    fn never_followed(&self, draft: &Draft, lowest: u64) -> Result<Verdict> {
        let version = draft.record.version;
        let (mut ours_us, mut next, mut later) = (None, false, false);
        self.log.storage.survey(LOG, &mut |listed| match version_of(&listed.name) {
            Some(v) if v == version => ours_us = Some(listed.modified_us),
            Some(v) if v == version + 1 => next = true,
            Some(v) if v >= lowest => later = true,
            _ => {}
        })?;
        let (Some(ours_us), true, false) = (ours_us, later, next) else {
            return Ok(Verdict::Unclear(Error::storage("the log has been truncated, and its listing does not tell")));
        };
        let since_us = self.log.storage.now_us()?.saturating_sub(ours_us);
        if (-RECORD_GRACE_US / 2..RECORD_GRACE_US / 2).contains(&since_us) {
            return Ok(Verdict::Void);
        }
        Ok(Verdict::Unclear(Error::storage(
            "so much time has passed that a vacuum may have deleted the record of the next version",
        )))
    }

    /// Whether the record is in another store than the one that it was meant for, or in none; `before` could not be
    /// read.
    fn of_another_store(&self, draft: &Draft, before: Before) -> Result<Verdict> {
        let storage = &self.log.storage;
        let first = self.log.read(1);
        if let Ok(Some(first)) = &first
            && first.commit_id != draft.store
        {
            return Ok(Verdict::Astray);
        }
        let floor = self.log.floor();
        if let Ok(Some(floor)) = floor
            && self.log.root(floor.root).is_ok_and(|root| root.store != draft.store)
        {
            return Ok(Verdict::Astray);
        }
        if storage.is_removed()? {
            return Ok(Verdict::Astray);
        }
        let nothing = matches!((&before, &first, &floor), (Before::Absent, Ok(None), Ok(None)));
        if nothing && (storage.is_near() || self.stands_alone(draft.record.version)?) {
            return Ok(Verdict::Astray);
        }
        let cause = match (before, first, floor) {
            (Before::Unclear(e), _, _) | (_, Err(e), _) | (_, _, Err(e)) => e,
            _ => Error::storage(format!("the log record of version {} cannot be found", draft.record.version - 1)),
        };
        Ok(Verdict::Unclear(cause))
    }

    /// Whether a listing of the log shows our record and no other. A listing is positive evidence, unlike a report that
    /// a record is missing.
    fn stands_alone(&self, version: u64) -> Result<bool> {
        let (mut ours, mut others) = (false, false);
        self.log.storage.survey(LOG, &mut |listed| match version_of(&listed.name) {
            Some(found) if found == version => ours = true,
            _ => others = true,
        })?;
        Ok(ours && !others)
    }

    /// Removes a record that does not count, if it is still this one.
    fn take_back(&self, record: &Record) -> Result<()> {
        match self.log.read(record.version)? {
            Some(found) if found.commit_id == record.commit_id => self.log.storage.delete(&log_name(record.version)),
            _ => Ok(()),
        }
    }
}

pub(super) fn unknown(version: u64, cause: Error) -> Error {
    Error::commit_unknown(format!(
        "whether version {version} was committed could not be found out, and nothing was deleted ({cause}). Once the storage answers \
         again, look whether the history has version {version} with your change, and repeat it only if not"
    ))
    .with_source(cause)
}
