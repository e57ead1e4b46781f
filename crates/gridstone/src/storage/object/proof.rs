//! The proof that of two who create one object only one does: without it the log's order of versions is worth nothing.
//!
//! Whether a store honours `If-None-Match` is asked of it, and not concluded from its name: a bucket may lie behind a gateway that does
//! not, and a store may be copied there. So two conditional PUTs of one name are sent at once. One must be told `Created`, the other be
//! refused. The object is a temporary one, and is deleted.
//!
//! It is done once per place and store in a process, before its first commit, and by who creates a store. Nothing is written down in the
//! store: what was proved somewhere else says nothing here. A handle that has proved looks at one number; handles that come later look in
//! a set. The child of a fork has a set of its own, and handles of its parent, which have proved.

use super::client::{Client, Stores};
use super::failure::{Effect, effect};
use super::write::put_once;
use crate::base::{Entropy, Error, ErrorKind, Id, Result};
use crate::runtime::{PerProcess, SystemEntropy};
use bytes::Bytes;
use object_store::path::Path;
use object_store::{Error as Store, PutMode};
use std::collections::HashSet;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Mutex, PoisonError};

/// How often it is tried if answers are lost.
const ATTEMPTS: usize = 3;

/// Places and stores of which it is known.
static PROVED: PerProcess<Mutex<HashSet<String>>> = PerProcess::new();

/// Nothing is known.
const OPEN: u8 = 0;
/// The place was proved, before there was a store.
const PLACE: u8 = 1;
/// It is known, and stands in the set.
const KNOWN: u8 = 2;

/// What a handle knows.
#[derive(Debug, Default)]
pub(super) struct Proof(AtomicU8);

impl Proof {
    /// Proves it for a place in which there is no store yet.
    pub(super) fn of_place(&self, client: &Client) -> Result<()> {
        if self.0.load(Ordering::Acquire) == OPEN {
            prove(client)?;
            self.0.store(PLACE, Ordering::Release);
        }
        Ok(())
    }

    /// Proves it for the store `id` in the place `identity`, unless this process has.
    pub(super) fn of_store(&self, client: &Client, identity: &str, id: Id) -> Result<()> {
        let known = self.0.load(Ordering::Acquire);
        if known == KNOWN {
            return Ok(());
        }
        let (proved, key) = (PROVED.get_or_try_build(|| Ok(Mutex::default()))?, format!("{identity} {id}"));
        let is_there = |key: &str| proved.lock().unwrap_or_else(PoisonError::into_inner).contains(key);
        if known == OPEN && !is_there(&key) {
            prove(client)?;
        }
        proved.lock().unwrap_or_else(PoisonError::into_inner).insert(key);
        self.0.store(KNOWN, Ordering::Release);
        Ok(())
    }
}

/// What became of one of the two writes.
enum Answer {
    Created,
    Refused,
    /// Nobody knows.
    Lost(Store),
    /// It was never taken up.
    Failed(Store),
}

async fn answer(stores: &Stores, path: &Path, content: &'static [u8], mark: &str) -> Answer {
    match put_once(stores, path, Bytes::from_static(content), mark, PutMode::Create).await {
        Ok(()) => Answer::Created,
        Err(e) => match effect(&e) {
            // A conflict of the two is a refusal too, if the other one was created.
            Effect::Refused => Answer::Refused,
            Effect::Unknown if matches!(e, Store::AlreadyExists { .. }) => Answer::Refused,
            Effect::Unknown => Answer::Lost(e),
            Effect::None => Answer::Failed(e),
        },
    }
}

/// Sends the two writes; an error had no effect on the store.
fn prove(client: &Client) -> Result<()> {
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
        // What stays behind is swept as temporary objects are; who may not delete may commit.
        let _ = client.delete(std::slice::from_ref(&name));
        let failed = |error| client.error("cannot try conditional writes with", &name, error).without_effect();
        match answers {
            (Answer::Created, Answer::Refused) | (Answer::Refused, Answer::Created) => return Ok(()),
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
