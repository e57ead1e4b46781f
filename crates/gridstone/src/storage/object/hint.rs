//! Writes the hint in the background, with one attempt.
//!
//! A hint saves the next reader a few requests, and is worth no wait to its writer. So it is sent by the client that
//! sends once, on the process's own thread, while the caller continues. Each handle has at most one hint in flight. A
//! newer one waits for it, and replaces another that waits, so that an older hint never follows a newer one. Hints not
//! sent when the process ends are lost. The forked child of a process that was sending one starts with none in flight.

use super::client::{Client, Stores};
use crate::base::Result;
use crate::runtime::PerProcess;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The hint to write after the one in flight; `None`: nothing is in flight.
type Waiting = Arc<Mutex<Option<Option<Bytes>>>>;

/// The hints of a handle.
#[derive(Debug, Default)]
pub(super) struct Hints(PerProcess<Waiting>);

fn locked(waiting: &Waiting) -> MutexGuard<'_, Option<Option<Bytes>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hints {
    /// Starts to write `bytes` to `name`, or queues it behind the hint in flight.
    pub(super) fn write(&self, client: &Client, name: &str, bytes: &[u8]) -> Result<()> {
        let waiting = self.0.get_or_try_build(|| Ok(Waiting::default()))?;
        let mut held = locked(waiting);
        if let Some(next) = held.as_mut() {
            *next = Some(Bytes::copy_from_slice(bytes));
            return Ok(());
        }
        let (path, own, bytes) = (client.path(name), Arc::clone(waiting), Bytes::copy_from_slice(bytes));
        // It continues when dropped: dropping only gives up its answer.
        drop(client.start(|stores| write_all(stores, path, bytes, own))?);
        *held = Some(None);
        Ok(())
    }
}

/// Writes `bytes` and each hint queued meanwhile, until none is left.
async fn write_all(stores: Stores, path: Path, mut bytes: Bytes, waiting: Waiting) {
    loop {
        // A hint that was not written costs the next reader a few requests.
        let _ = stores.once.put(&path, PutPayload::from_bytes(bytes)).await;
        let mut held = locked(&waiting);
        match held.take().flatten() {
            None => return,
            Some(next) => {
                *held = Some(None);
                bytes = next;
            }
        }
    }
}
