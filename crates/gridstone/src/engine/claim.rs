//! A handle's claim on the version that it shows: a lease in the store, once the snapshot is in use for some time.
//!
//! No thread looks after it. Whenever something is read through the handle the claim looks at the clock: a snapshot that is a
//! minute old gets a lease, and one whose term is half over is renewed. So a reader that pauses for longer than the term may find
//! that its version is gone. Reads under way hold the claim too, and the lease goes with the last of them.
//!
//! Where the store cannot be written there is no lease, and no error: it is asked for again after half a term.

use super::Context;
use super::lease_terms::LeaseTerms;
use crate::base::{ErrorKind, Result};
use crate::runtime::Owner;
use crate::storage::lease_name;
use crate::store::{Lease, Snapshot, Store};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex};

/// What a handle shows, and its claim on it.
#[derive(Debug, Clone)]
pub(super) struct View {
    pub(super) snapshot: Arc<Snapshot>,
    pub(super) claim: Arc<Claim>,
}

impl View {
    pub(super) fn new(context: &Context, store: &Arc<Store>, snapshot: Arc<Snapshot>) -> Self {
        let claim = Arc::new(Claim::new(context, store, snapshot.version()));
        Self { snapshot, claim }
    }

    /// The same snapshot with a claim of its own.
    pub(super) fn another(&self, context: &Context, store: &Arc<Store>) -> Self {
        Self::new(context, store, Arc::clone(&self.snapshot))
    }
}

/// A claim on a version; dropped, its lease is removed.
#[derive(Debug)]
pub(super) struct Claim {
    store: Arc<Store>,
    version: u64,
    terms: LeaseTerms,
    /// When to look after the lease next.
    next_us: AtomicI64,
    /// The lease's name, and whose it is: a forked child writes its own and leaves its parent's alone.
    held: Mutex<Option<(String, Owner)>>,
}

impl Claim {
    fn new(context: &Context, store: &Arc<Store>, version: u64) -> Self {
        let terms = context.leases;
        let next_us = AtomicI64::new(store.now_us().saturating_add(terms.after_us));
        Self { store: Arc::clone(store), version, terms, next_us, held: Mutex::new(None) }
    }

    /// One with a lease from now on, for work that takes long.
    pub(super) fn held(context: &Context, store: &Arc<Store>, version: u64) -> Self {
        let claim = Self::new(context, store, version);
        claim.next_us.store(i64::MIN, Ordering::Relaxed);
        claim.touch();
        claim
    }

    pub(super) fn version(&self) -> u64 {
        self.version
    }

    /// Called whenever something is read: writes or renews the lease if it is time.
    pub(super) fn touch(&self) {
        let now = self.store.now_us();
        let wait_us = self.next_us.load(Ordering::Relaxed).saturating_sub(now);
        // More than there ever is to wait for: the clock was set back.
        let wait_us_max = self.terms.after_us.max(self.terms.term_us / 2);
        if (1..=wait_us_max).contains(&wait_us) {
            return;
        }
        // Another thread is at it; a lock that a fork left held means no lease.
        let Ok(mut held) = self.held.try_lock() else { return };
        self.next_us.store(now.saturating_add(self.terms.term_us / 2), Ordering::Relaxed);
        let mine = held.take().filter(|(_, owner)| owner.is_here());
        let name = mine.map_or_else(|| lease_name(self.store.fresh_id()), |(name, _)| name);
        // Best effort: without a lease a vacuum may expire this snapshot, which is said then.
        if self.write(&name, now).is_ok() {
            *held = Some((name, Owner::here()));
        }
    }

    fn write(&self, name: &str, now: i64) -> Result<()> {
        let expires_us = now.saturating_add(self.terms.term_us);
        let bytes = Lease { version: self.version, written_us: now, expires_us }.encode()?;
        let storage = self.store.storage();
        match storage.put_hint(name, &bytes) {
            // The folder may be missing in a store that was copied without empty folders.
            Err(e) if e.kind() == ErrorKind::NotFound => {
                storage.prepare()?;
                storage.put_hint(name, &bytes)
            }
            outcome => outcome,
        }
    }
}

impl Drop for Claim {
    fn drop(&mut self) {
        let held = self.held.get_mut().ok().and_then(Option::take);
        if let Some((name, _)) = held.filter(|(_, owner)| owner.is_here()) {
            // Best effort: it expires otherwise, and a vacuum removes it.
            let _ = self.store.storage().delete(&name);
        }
    }
}
