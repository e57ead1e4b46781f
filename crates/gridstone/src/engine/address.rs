//! Stores by their address: a URI, or a storage that the caller has made; and which version of one is meant.

use super::context::Context;
use super::queue::{ProcessQueue, queue_of};
use crate::base::Result;
use crate::runtime::SystemEntropy;
use crate::storage::{SealedStorage, Storage, open_uri};
use crate::store::{Snapshot, Store};
use std::sync::Arc;

/// Which version is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum At {
    /// The newest; the handle moves on with `refresh` and its own commits.
    Latest,
    /// This version.
    Version(u64),
    /// The last version committed not after this time, UTC in microseconds.
    Time(i64),
}

/// A store whose handles queue up with those of its clones only; sealed or not as the context and the store say.
pub(super) fn store_on(context: &Context, storage: Arc<dyn Storage>) -> Arc<Store> {
    queued_store(context, storage, Arc::default())
}

/// The store at `uri`, whose handles queue up with all others of this process.
pub(super) fn store_at(context: &Context, uri: &str) -> Result<Arc<Store>> {
    let storage = storage_at(context, uri)?;
    let queue = queue_of(&storage.identity(), context.durability)?;
    Ok(queued_store(context, storage, queue))
}

/// The storage at `uri`, neither opened nor sealed.
pub(super) fn storage_at(context: &Context, uri: &str) -> Result<Arc<dyn Storage>> {
    open_uri(uri, context.durability, &context.storage_options)
}

/// The store as `context` wants it written.
fn queued_store(context: &Context, storage: Arc<dyn Storage>, queue: Arc<ProcessQueue>) -> Arc<Store> {
    let sealed = SealedStorage::new(storage, context.sealing.clone(), Arc::new(SystemEntropy));
    let store = Store::new(Arc::new(sealed), context.clock.clone(), Arc::new(SystemEntropy));
    let notices = Arc::clone(&context.notices);
    let store = store.with_fold_versions(context.fold_versions).with_queues(queue).with_notices(notices);
    let store = store.with_events(context.events.clone());
    Arc::new(store.with_foreign(Arc::clone(&context.foreign)))
}

/// What `look` finds in the store as it was then, and that version. If a vacuum takes away what the version rests on, it is opened anew.
/// If it takes away the version, and the newest is meant, the look is at the one that is the newest then.
///
/// # Errors
/// Those of [`snapshot_at`] and of `look`; SnapshotExpired if a version that was asked for is vacuumed meanwhile.
pub(super) fn look_at<T>(
    store: &Store,
    at: At,
    look: impl FnMut(&Snapshot) -> Result<T>,
) -> Result<(Arc<Snapshot>, T)> {
    let snapshot = snapshot_at(store, at)?;
    match at {
        At::Latest => store.settling_newest(snapshot, look),
        At::Version(_) | At::Time(_) => store.settling(&snapshot, look),
    }
}

/// The store as it was then.
pub(super) fn snapshot_at(store: &Store, at: At) -> Result<Arc<Snapshot>> {
    match at {
        At::Latest => store.latest(),
        At::Version(version) => store.at_version(version),
        At::Time(time_us) => store.at_time(time_us),
    }
}
