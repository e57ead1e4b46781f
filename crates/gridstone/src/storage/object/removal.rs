//! How a store disappears where nothing can be renamed.
//!
//! A store's log must vanish in one step, but an object store takes one name away at a time. Every order of deleting records
//! is wrong: without its newest ones the store opens as it was earlier, and what those had replaced may be deleted already;
//! without its oldest a new store could be created between the remains, and would find the old one's later records after its
//! own first. So one PUT comes first: it replaces `_log/floor` by a *tombstone*. From then on the log counts as absent, whatever
//! of it is still listed, and the rest is deleted in any order; the tombstone goes last. Cut short anywhere in between, there is
//! no store; whoever creates one in its place, or deletes again, first takes away what is left.
//!
//! Nobody needs another request for that. Opening a store, following it and committing to it each read `_log/floor` anyway,
//! the last after the record was created. Only a handle that has not looked yet does so beside its first request to the log.
//! To who has seen the store alive, the tombstone is an error; nobody else sees a store.
//!
//! One thing this cannot exclude: a commit that has read the floor just before the tombstone may create its record after the
//! remains were listed. They are listed until nothing is found; what comes later than that lies around, unless its writer lives to find that the
//! record before is gone, and takes it away. Stop the writers of
//! a store before you delete it. For the same reason nobody should create a store while another process deletes one there:
//! a deletion looks for its tombstone before every thousand names, and stops where it is gone.

use super::client::Client;
use super::content::Question;
use crate::base::{Error, ErrorKind, Result};
use crate::storage::{FLOOR, LATEST, log_name, names};
use std::sync::atomic::{AtomicU8, Ordering};

/// What `_log/floor` holds while the store is being deleted. A floor is a line of JSON, or sealed, and starts otherwise.
pub(super) const TOMBSTONE: &[u8] = b"gridstone: this store is being deleted\n";

/// Objects deleted between two looks at the tombstone.
const BATCH: usize = 1_000;

/// How often the log is listed for records that came meanwhile.
const PASSES_MAX: usize = 5;

/// What a handle knows of the log.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Log {
    /// Nobody has looked.
    Unknown,
    /// No tombstone was there.
    Alive,
    /// There was one.
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

    /// What is known after the floor was read, or found to be absent.
    pub(super) fn learn(&self, floor: Option<&[u8]>) -> Log {
        let found = if floor == Some(TOMBSTONE) { Log::Removed } else { Log::Alive };
        if self.get() == Log::Unknown {
            self.set(found);
        }
        found
    }
}

/// A look at the floor that is under way.
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

/// The bytes of an answer; `None` if there is no such object.
pub(super) fn or_absent(found: Result<super::client::Found>) -> Result<Option<bytes::Bytes>> {
    match found {
        Ok(found) => Ok(Some(found.bytes)),
        Err(e) if e.kind() == ErrorKind::NotFound => Ok(None),
        Err(e) => Err(e),
    }
}

/// Whether the tombstone is there now.
pub(super) fn is_removed(client: &Client) -> Result<bool> {
    // One byte more than it has: a floor of any length, sound or not, is told apart.
    let start = Question::start(client, FLOOR, TOMBSTONE.len() as u64 + 1)?.first(client);
    Ok(or_absent(start)?.as_deref() == Some(TOMBSTONE))
}

/// For who has seen the store alive.
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

/// Deletes what is left of a store whose tombstone is there, and the tombstone.
pub(super) fn finish(client: &Client) -> Result<()> {
    // The first record first: it is the one that a new store would have too.
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

/// Deletes what lies in `folder` but the tombstone; says how much that was.
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
