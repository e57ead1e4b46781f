//! Writing the hint: one try that nobody waits for.
//!
//! A hint is worth a few requests to the next reader, and less than any wait to its writer. So it goes through the client that sends once,
//! on the process's own thread, while the caller goes on. Of one handle at most one is under way: a newer one waits for it, and takes the
//! place of another that waits, so that an older hint never follows a newer one. What is not sent when the process ends is lost, and so
//! is what a parent was sending to its forked child, which starts with nothing under way.

use super::client::{Client, Stores};
use crate::base::Result;
use crate::runtime::PerProcess;
use bytes::Bytes;
use object_store::path::Path;
use object_store::{ObjectStoreExt, PutPayload};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// What is to be written after what is under way; `None`: nothing is under way.
type Waiting = Arc<Mutex<Option<Option<Bytes>>>>;

/// The hints of a handle.
#[derive(Debug, Default)]
pub(super) struct Hints(PerProcess<Waiting>);

fn locked(waiting: &Waiting) -> MutexGuard<'_, Option<Option<Bytes>>> {
    waiting.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Hints {
    /// Starts to write `bytes` to `name`, or lets whoever is writing do so afterwards.
    pub(super) fn write(&self, client: &Client, name: &str, bytes: &[u8]) -> Result<()> {
        let waiting = self.0.get_or_try_build(|| Ok(Waiting::default()))?;
        let mut held = locked(waiting);
        if let Some(next) = held.as_mut() {
            *next = Some(Bytes::copy_from_slice(bytes));
            return Ok(());
        }
        let (path, own, bytes) = (client.path(name), Arc::clone(waiting), Bytes::copy_from_slice(bytes));
        // Dropped, it goes on: only who asks gives up.
        drop(client.start(|stores| write_all(stores, path, bytes, own))?);
        *held = Some(None);
        Ok(())
    }
}

/// Writes `bytes` and what comes to wait meanwhile, until nothing does.
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
