//! Deletes a store where objects cannot be renamed.
//!
//! A store's log must vanish in one step, but an object store deletes one name at a time, and every order of deleting
//! records is wrong. Without its newest records the store opens as it was earlier, and objects that those had replaced
//! may be deleted already. Without its oldest ones a new store could be created among the remains, and would find the
//! old store's later records after its own first. So one PUT comes first: it replaces `_log/floor` by a *tombstone*.
//! From then on the log counts as absent, whatever a listing still shows. The rest is deleted in any order; the
//! tombstone goes last. After an interruption there is no store; the next creation or deletion at this place first
//! deletes the remains.
//!
//! This costs no further request. Opening a store, following it and committing to it each read `_log/floor` anyway; a
//! commit reads it after its record was created. Only a handle that has not read it yet does so concurrently with its
//! first request to the log. A handle that has seen the store alive gets an error from the tombstone; any other finds
//! no store.
//!
//! One case cannot be excluded: a commit that has read the floor just before the tombstone may create its record after
//! the remains were listed. The log is listed until nothing is found. A record that appears after that stays, unless
//! its writer lives to find that the record before is gone, and deletes it. So stop the writers of a store before you
//! delete it. For the same reason, do not create a store while another process deletes one at that place. A deletion
//! checks its tombstone before every thousand names, and stops where it is gone.

use super::client::Client;
use super::content::Question;
use crate::base::{Error, ErrorKind, Result};
use crate::storage::{FLOOR, LATEST, log_name, names};
use std::sync::atomic::{AtomicU8, Ordering};

/// The content of `_log/floor` while the store is being deleted. A floor is a line of JSON, or sealed, and starts
/// otherwise.
pub(super) const TOMBSTONE: &[u8] = b"gridstone: this store is being deleted\n";

/// How many objects are deleted between two checks of the tombstone.
const BATCH: usize = 1_000;

/// How often the log is listed for records that were created meanwhile.
const PASSES_MAX: usize = 5;

/// What a handle knows of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// The floor has not been read.
    Unknown,
    /// There was no tombstone.
    Alive,
    /// There was a tombstone.
    Removed,
}

/// What a handle knows of the log, shared by its threads.
#[derive(Debug)]
pub(super) struct LogState(AtomicU8);

impl LogState {
    pub(super) fn new() -> Self {
        Self(AtomicU8::new(0))
    }

    pub(super) fn get(&self) -> Log {
        match self.0.load(Ordering::Acquire) {
            0 => Log::Unknown,
            1 => Log::Alive,
            _ => Log::Removed,
        }
    }

    pub(super) fn set(&self, log: Log) {
        self.0.store(log as u8, Ordering::Release);
    }

    /// The state after the floor was read, or found to be absent.
    pub(super) fn learn(&self, floor: Option<&[u8]>) -> Log {
        let found = if floor == Some(TOMBSTONE) { Log::Removed } else { Log::Alive };
        if self.get() == Log::Unknown {
            self.set(found);
        }
        found
    }
}

/// A read of the floor in flight.
pub(super) struct Look(Question);

impl Look {
    pub(super) fn start(client: &Client) -> Result<Self> {
        Question::start_whole(client, FLOOR).map(Self)
    }

    /// The floor's bytes; `None` if there is none.
    pub(super) fn floor(self, client: &Client) -> Result<Option<bytes::Bytes>> {
        or_absent(self.0.whole(client))
    }
}

/// The bytes of an answer; `None` if the object does not exist.
pub(super) fn or_absent(found: Result<super::client::Found>) -> Result<Option<bytes::Bytes>> {
    match found {
        Ok(found) => Ok(Some(found.bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether the tombstone exists now.
pub(super) fn is_removed(client: &Client) -> Result<bool> {
    // One byte more than the tombstone has, which distinguishes it from a floor of any length, sound or not.
    let start = Question::start(client, FLOOR, TOMBSTONE.len() as u64 + 1)?.first(client);
    Ok(or_absent(start)?.as_deref() == Some(TOMBSTONE))
}

/// The error for a handle that has seen the store alive.
pub(super) fn deleted(client: &Client) -> Error {
    Error::new(
        ErrorKind::Storage,
        format!(
            "{} is being deleted, or was: its log says so. Nothing can be read from it or committed to it",
            client.place.uri
        ),
    )
}

/// Deletes the store; nothing is touched if there is no log.
pub(super) fn remove(client: &Client) -> Result<()> {
    if !is_removed(client)? {
        if !client.any(names::LOG)? {
            return Ok(());
        }
        client.put(FLOOR, TOMBSTONE)?;
    }
    finish(client)
}

/// Deletes the remains of a store that has a tombstone, and then the tombstone.
pub(super) fn finish(client: &Client) -> Result<()> {
    // The first record first: a new store would have one too.
    client.delete(&[log_name(1), LATEST.to_owned()])?;
    empty_log(client)?;
    for folder in [names::DATA, names::MANIFEST, names::LEASE, names::DAMAGED] {
        delete_all(client, folder)?;
    }
    empty_log(client)?;
    client.delete(&[FLOOR.to_owned()])
}

/// Deletes all of the log but the tombstone.
fn empty_log(client: &Client) -> Result<()> {
    for _ in 0..PASSES_MAX {
        if delete_all(client, names::LOG)? == 0 {
            return Ok(());
        }
    }
    Err(Error::storage(format!(
        "{} cannot be deleted: others go on committing to it; stop them, then delete it again",
        client.place.uri
    )))
}

/// Deletes the objects in `folder` but the tombstone; returns how many there were.
fn delete_all(client: &Client, folder: &str) -> Result<usize> {
    let mut found = Vec::new();
    client.each(folder, &mut |file, _| {
        let name = format!("{folder}/{file}");
        if name != FLOOR {
            found.push(name);
        }
    })?;
    for batch in found.chunks(BATCH) {
        if !is_removed(client)? {
            return Err(Error::storage(format!(
                "the deletion of {} was stopped: another process has finished it, and may have created a store there",
                client.place.uri
            )));
        }
        client.delete(batch)?;
    }
    Ok(found.len())
}
