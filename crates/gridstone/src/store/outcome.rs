//! What became of a record that was put into its slot. It is found out, never guessed.
//!
//! 1. Created: the start of the record before and the floor are read. The record before is our parent, or the floor lies just above it:
//!    committed.
//! 2. Not plainly created: the slot is read. Our commit id: committed, and made durable now. Another's: lost. Absent: the same bytes are put
//!    again, a few times. If any of these puts may still take effect, the outcome is unknown; else nothing was committed.
//! 3. Something else than step 1 expects is looked at again, the record first. The version after ours names ours as its parent: committed.
//! 4. Our record is taken back on positive proof alone:
//!    - the record before is read, sound, and not our parent; or record 1, or the root at the floor, is of another store; or the store is
//!      gone for certain. Then the store was deleted, and perhaps another one was made in its place: nothing was committed;
//!    - the floor is above our version, and the next version is read and names another parent; or the next version is in no listing that shows
//!      ours, put once, and later ones, and no vacuum can have deleted it yet. Then nobody looks for our version: the changes are committed anew.
//! 5. Anything else, a refusal, an answer that makes no sense or a missing record, is a CommitUnknown error. Nothing is deleted.

use super::handle::Store;
use super::hint::version_of;
use super::log::Before;
use super::record::Record;
use crate::base::{Error, ErrorKind, Id, Result};
use crate::storage::{LOG, PutOutcome, log_name};

/// How often the same step is tried against a storage that fails.
const ATTEMPTS: usize = 3;

/// Vacuums leave younger records, though the floor has passed them: whoever has just put one there may be about to ask whether it counts.
pub const RECORD_GRACE_US: i64 = 3600 * 1_000_000;

/// What became of a record that was put into a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fate {
    /// It is the version.
    Committed,
    /// Another commit has the slot.
    Lost,
    /// The log was truncated beyond the slot before anybody followed the record.
    BelowFloor,
}

/// A record that is to be put.
#[derive(Debug)]
pub(super) struct Draft {
    pub(super) record: Record,
    pub(super) bytes: Vec<u8>,
    /// The store that it is meant for; of no version yet all zeros.
    pub(super) store: Id,
}

/// How many puts may have brought a record to where it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Puts {
    One,
    Several,
}

/// What one look at a record that is there shows.
enum Verdict {
    Counts,
    /// Nobody follows it: the floor has passed it.
    Void,
    /// It lies in another store than the one that it was meant for, or in none.
    Astray,
    /// Nothing that is certain.
    Unclear(Error),
}

impl Store {
    /// Puts the record into its slot and finds out what became of it.
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
                // A sound record of a later format or another key is not ours, and leaves ours no place.
                Err(e) if e.is_foreign() && !doubt => return Err(e),
                Err(e) if doubt || occupied => return Err(unknown(record.version, e)),
                // No put has happened, whatever lies there.
                Err(_) => {}
            }
        }
        // What exists and cannot be seen may be ours: a put that was repeated on its way is refused for its own success.
        let refusal = refusal
            .unwrap_or_else(|| Error::storage(format!("the storage says that {name} exists and that it does not")));
        Err(if doubt || occupied { unknown(record.version, refusal) } else { refusal })
    }

    /// As [`Store::settled`], of a record that is there after an answer that left doubt.
    fn settled_late(&self, draft: &Draft) -> Result<Fate> {
        let version = draft.record.version;
        self.log.storage.sync(&log_name(version)).map_err(|e| unknown(version, e))?;
        self.settled(draft, Puts::Several)
    }

    /// Whether a record that is there counts. One that certainly does not is removed.
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
                    // Left behind below the floor it does no harm.
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

    /// The record counts; where the storage defers it, its name is made durable now if the commit is to be.
    fn made_durable(&self, draft: &Draft) -> Result<Fate> {
        let Record { version, durable, .. } = draft.record;
        if durable && self.log.storage.defers_sync() {
            self.log.storage.sync(&log_name(version)).map_err(|e| unknown(version, e))?;
        }
        Ok(Fate::Committed)
    }

    /// What the record before and the floor say, asked together.
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

    /// What there is proof of, after a first look that was not plain.
    fn second_look(&self, draft: &Draft, puts: Puts) -> Result<Verdict> {
        let Record { version, parent, xxh3, .. } = draft.record;
        // The record first: a vacuum moves the floor before it takes records away.
        let before = self.log.before(version, parent);
        let floor = match self.log.floor() {
            Ok(floor) => floor,
            // Of a store that is being deleted no floor is shown.
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

    /// Whether a version that the floor has passed counted before, if the next one is not there. Nobody follows a record made below the
    /// floor, and a vacuum leaves young records: so the next version never was, if the storage's own times say that both would be young. Its
    /// time says so of a record that was put once alone: an earlier put may have counted long ago, and been forgotten.
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

    /// Whether the record lies in another store than the one that it was meant for, or in none; `before` could not be had.
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

    /// Whether a listing of the log shows our record and no other. It is an answer of substance, unlike a record that is said to be missing.
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
