//! The proof that creation is exclusive: when two writers create one object, only one succeeds. The log's order of
//! versions depends on it.
//!
//! Whether a store honours `If-None-Match` is tested, not inferred from its name: a bucket may lie behind a gateway
//! that does not, and a store may be copied there. So two conditional PUTs of one name are sent at once. One must be
//! answered with `Created`, the other refused. The object is a temporary one, and is deleted.
//!
//! A process proves each place and store once, before its first commit; so does the creation of a store. Nothing is
//! recorded in the store: a proof of another place is no evidence here. A handle that has the proof checks one number;
//! later handles check a table. The child of a fork has its own table, but also its parent's handles, which have the
//! proof.
//!
//! The bucket dates the object of the proof, so the proof also measures how far this machine's clock is off the
//! bucket's. The table keeps that too.

use super::client::{Client, Stores};
use super::failure::{Effect, effect};
use super::write::put_once;
use crate::base::{Clock, Entropy, Error, ErrorKind, Id, Result};
use crate::runtime::{PerProcess, SystemClock, SystemEntropy};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error as Store, PutMode};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

/// How often the proof is tried if answers are lost.
const ATTEMPTS: usize = 3;

/// Proved places and stores, and how far the bucket's clock is ahead of this machine's, in microseconds, where known.
static PROVED: PerProcess<Mutex<HashMap<String, Option<i64>>>> = PerProcess::new();

/// Nothing is proved.
const OPEN: u8 = 0;
/// The place was proved, before a store existed.
const PLACE: u8 = 1;
/// The store is proved, and is in the table.
const KNOWN: u8 = 2;

/// What a handle knows of the proof.
#[derive(Debug, Default)]
pub(super) struct Proof {
    known: AtomicU8,
    /// As in [`PROVED`].
    ahead_us: OnceLock<i64>,
}

impl Proof {
    /// Proves a place in which there is no store yet.
    pub(super) fn of_place(&self, client: &Client) -> Result<()> {
        if self.known.load(Ordering::Acquire) == OPEN {
            self.learn(prove(client)?);
            self.known.store(PLACE, Ordering::Release);
        }
        Ok(())
    }

    /// Proves the store `id` in the place `identity`, unless this process has. The first call returns the bucket's
    /// time. If there is no store yet (an id of zeros), the place was proved when it was prepared.
    pub(super) fn of_store(&self, client: &Client, identity: &str, id: Id) -> Result<Option<i64>> {
        let known = self.known.load(Ordering::Acquire);
        if known == KNOWN {
            return Ok(None);
        }
        if id == Id([0; 16]) {
            return Ok(self.now_us());
        }
        let (proved, key) = (PROVED.get_or_try_build(|| Ok(Mutex::default()))?, format!("{identity} {id}"));
        let found = proved.lock().unwrap_or_else(PoisonError::into_inner).get(&key).copied();
        match found {
            Some(ahead_us) => self.learn(ahead_us),
            None if known == OPEN => self.learn(prove(client)?),
            None => {}
        }
        proved.lock().unwrap_or_else(PoisonError::into_inner).insert(key, self.ahead_us.get().copied());
        self.known.store(KNOWN, Ordering::Release);
        Ok(self.now_us())
    }

    /// The bucket's time, computed from this machine's clock and the proof; `None` before a proof.
    fn now_us(&self) -> Option<i64> {
        self.ahead_us.get().map(|ahead_us| SystemClock.now_us().saturating_add(*ahead_us))
    }

    fn learn(&self, ahead_us: Option<i64>) {
        if let Some(ahead_us) = ahead_us {
            let _ = self.ahead_us.set(ahead_us);
        }
    }
}

/// The outcome of one of the two writes.
enum Answer {
    Created,
    Refused,
    /// It is unknown.
    Lost(Store),
    /// The request was never accepted.
    Failed(Store),
}

async fn answer(stores: &Stores, path: &Path, content: &'static [u8], mark: &str) -> Answer {
    match put_once(stores, path, Bytes::from_static(content), mark, PutMode::Create).await {
        Ok(()) => Answer::Created,
        Err(e) => match effect(&e) {
            // A conflict between the two counts as a refusal too, if the other one was created.
            Effect::Refused => Answer::Refused,
            Effect::Unknown if matches!(e, Store::AlreadyExists { .. }) => Answer::Refused,
            Effect::Unknown => Answer::Lost(e),
            Effect::None => Answer::Failed(e),
        },
    }
}

/// Sends the two writes; returns how far the bucket's clock is ahead, if it dated the created object. An error had no
/// effect on the store.
fn prove(client: &Client) -> Result<Option<i64>> {
    let mut failure = None;
    for _ in 0..ATTEMPTS {
        let mark = SystemEntropy.id().to_string();
        let name = super::temporary_name(&mark);
        let path = client.path(&name);
        let asked = client.start(|stores| async move {
            let [first, second] =
                [b"first".as_slice(), b"second"].map(|content| answer(&stores, &path, content, &mark));
            futures_util::join!(first, second)
        });
        let answers = asked.and_then(crate::runtime::Driven::wait).map_err(Error::without_effect)?;
        let dated = client.head(&name).ok().flatten().map(|found| found.meta.last_modified.timestamp_micros());
        let ahead_us = dated.map(|dated| dated.saturating_sub(SystemClock.now_us()));
        // If it stays behind, it is swept like other temporary objects; a user without permission to delete may commit.
        let _ = client.delete(std::slice::from_ref(&name));
        let failed = |error| client.error("cannot try conditional writes with", &name, error).without_effect();
        match answers {
            (Answer::Created, Answer::Refused) | (Answer::Refused, Answer::Created) => return Ok(ahead_us),
            (Answer::Created, Answer::Created) => return Err(unconditional(client)),
            (Answer::Failed(e), _) | (_, Answer::Failed(e)) => return Err(failed(e)),
            (Answer::Lost(e), _) | (_, Answer::Lost(e)) => failure = Some(failed(e)),
            (Answer::Refused, Answer::Refused) => {}
        }
    }
    Err(failure.unwrap_or_else(|| unconditional(client)))
}

fn unconditional(client: &Client) -> Error {
    let why = "of two PUTs of one object with If-None-Match not exactly one was taken, so two writers would overwrite each other; use \
               a store that knows conditional writes, or a newer version of this one";
    let message = format!("{} cannot hold a store that is written to: {why}", client.place.bucket);
    Error::new(ErrorKind::Unsupported, message).without_effect()
}
