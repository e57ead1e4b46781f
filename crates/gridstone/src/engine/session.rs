//! What an array's handle goes through: the store at a version, or a transaction.

use super::claim::View;
use super::context::Context;
use super::reading::SnapshotFiles;
use super::staged::Staged;
use crate::base::{Cache, Files, Id, Result};
use crate::store::{Changes, Reads, Snapshot, Store};
use std::sync::{Arc, OnceLock, PoisonError, RwLock};

/// What a session did with changes.
pub(super) enum Submission {
    /// It keeps them for its own commit; handles read this version.
    Kept(u64),
    /// They are the handle's to commit, with their files.
    Direct(Changes, Vec<Staged>),
}

/// The way of a handle to its store.
pub(super) trait Session: std::fmt::Debug + Send + Sync {
    /// Whether changes wait for a commit of many.
    fn is_transaction(&self) -> bool;

    /// Whether it has created the array, which is not in the store yet.
    ///
    /// # Errors
    /// Input if the session has ended; those of a lookup.
    fn creates(&self, array: Id) -> Result<bool>;

    /// Whether it has a key, so that what is given for staged changes has to be known.
    fn wants_content(&self) -> bool;

    /// An Input error if it has ended.
    fn check_open(&self) -> Result<()>;

    /// The store as it is seen.
    fn snapshot(&self) -> Arc<Snapshot>;

    /// Moves on to `newer`, unless another thread has moved it further.
    fn move_to(&self, newer: Arc<Snapshot>);

    /// Calls `look` with `snapshot`, one that was seen here. If a vacuum has taken away what that rests on, the same version is opened anew,
    /// and kept. Gives the snapshot in which `look` succeeded.
    ///
    /// # Errors
    /// SnapshotExpired if the version has been vacuumed; those of `look`.
    fn settle(&self, snapshot: &Arc<Snapshot>, look: &mut dyn FnMut(&Snapshot) -> Result<()>) -> Result<Arc<Snapshot>>;

    /// Where reads of `array` at `snapshot` find bytes and what was decoded. From now on it holds a claim on the version.
    fn reading(&self, array: Id, snapshot: &Arc<Snapshot>) -> (Arc<dyn Files>, Arc<dyn Cache>);

    /// Remembers what is read, if that matters.
    fn note(&self, read: &mut dyn FnMut(&mut Reads));

    /// Remembers that nodes of the base were looked up, if that matters.
    ///
    /// # Errors
    /// Input if the session has ended; those of `read`.
    fn note_nodes(&self, read: &dyn Fn(&mut Reads, &Snapshot) -> Result<()>) -> Result<()>;

    /// Moves small fragments to files, if the record that they wait for is large already.
    fn make_room(&self, staged: &mut [Staged]) -> Result<()>;

    /// Takes `changes`, whose files `staged` holds, or gives them back.
    fn submit(&self, changes: Changes, staged: Vec<Staged>) -> Result<Submission>;

    /// Notes what was given for a statement that changes nothing.
    fn give(&self, array: Id, body: u128) -> Result<()>;

    /// From now on a commit is a Conflict if fragments of `array` that its base has were merged: what was deleted has the order of the base.
    fn deletes_as_of_base(&self, array: Id) -> Result<()>;

    /// A session for another handle at the same version.
    fn another(&self) -> Arc<dyn Session>;
}

/// What `look` finds in `snapshot`, one that was seen in `session`, and the snapshot in which it was found; see [`Session::settle`].
///
/// # Errors
/// Those of [`Session::settle`].
pub(super) fn settled<T>(
    session: &(impl Session + ?Sized),
    snapshot: &Arc<Snapshot>,
    mut look: impl FnMut(&Snapshot) -> Result<T>,
) -> Result<(Arc<Snapshot>, T)> {
    let error = match look(snapshot) {
        Err(e) if e.may_be_missing() => e,
        found => return Ok((Arc::clone(snapshot), found?)),
    };
    let mut found = None;
    let settled = session.settle(snapshot, &mut |snapshot| {
        found = Some(look(snapshot)?);
        Ok(())
    })?;
    Ok((settled, found.ok_or(error)?))
}

/// A handle's own way: each change is a commit.
#[derive(Debug)]
pub(super) struct Direct {
    context: Context,
    store: Arc<Store>,
    view: RwLock<View>,
}

impl Direct {
    pub(super) fn new(context: &Context, store: &Arc<Store>, snapshot: Arc<Snapshot>) -> Self {
        let view = RwLock::new(View::new(context, store, snapshot));
        Self { context: context.clone(), store: Arc::clone(store), view }
    }

    fn view(&self) -> View {
        self.view.read().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Session for Direct {
    fn is_transaction(&self) -> bool {
        false
    }

    fn wants_content(&self) -> bool {
        false
    }

    fn check_open(&self) -> Result<()> {
        Ok(())
    }

    fn snapshot(&self) -> Arc<Snapshot> {
        self.view().snapshot
    }

    fn move_to(&self, newer: Arc<Snapshot>) {
        let newer = View::new(&self.context, &self.store, newer);
        let mut held = self.view.write().unwrap_or_else(PoisonError::into_inner);
        if newer.snapshot.version() > held.snapshot.version() {
            // The claim on the old version is dropped after the lock.
            let _old = std::mem::replace(&mut *held, newer);
            drop(held);
        }
    }

    fn settle(&self, snapshot: &Arc<Snapshot>, look: &mut dyn FnMut(&Snapshot) -> Result<()>) -> Result<Arc<Snapshot>> {
        let (settled, ()) = self.store.settling(snapshot, look)?;
        let mut held = self.view.write().unwrap_or_else(PoisonError::into_inner);
        if held.snapshot.version() == settled.version() {
            held.snapshot = Arc::clone(&settled);
        }
        Ok(settled)
    }

    fn reading(&self, array: Id, snapshot: &Arc<Snapshot>) -> (Arc<dyn Files>, Arc<dyn Cache>) {
        let view = View { snapshot: Arc::clone(snapshot), ..self.view() };
        let view =
            if view.claim.version() == snapshot.version() { view } else { view.another(&self.context, &self.store) };
        view.claim.touch();
        let files = SnapshotFiles {
            files: self.store.files(),
            store: Arc::clone(&self.store),
            snapshot: view.snapshot,
            array,
            claim: view.claim,
            moved: OnceLock::new(),
        };
        (Arc::new(files), Arc::clone(&self.context.cache))
    }

    fn creates(&self, _: Id) -> Result<bool> {
        Ok(false)
    }

    fn note(&self, _: &mut dyn FnMut(&mut Reads)) {}

    fn note_nodes(&self, _: &dyn Fn(&mut Reads, &Snapshot) -> Result<()>) -> Result<()> {
        self.check_open()
    }

    fn make_room(&self, _: &mut [Staged]) -> Result<()> {
        Ok(())
    }

    fn submit(&self, changes: Changes, staged: Vec<Staged>) -> Result<Submission> {
        Ok(Submission::Direct(changes, staged))
    }

    fn give(&self, _: Id, _: u128) -> Result<()> {
        Ok(())
    }

    fn deletes_as_of_base(&self, _: Id) -> Result<()> {
        Ok(())
    }

    fn another(&self) -> Arc<dyn Session> {
        Arc::new(Self::new(&self.context, &self.store, self.snapshot()))
    }
}
