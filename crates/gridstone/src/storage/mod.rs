//! Floor `storage`: objects in a directory, in memory or in a bucket of an object store, behind one small trait.
//! Decorators seal, count, inject faults and observe; byte ranges are coalesced.
//!
//! An object is written once and never changes, except for hints. Its name is relative to the store's root,
//! '/'-separated, in one of the folders of the layout:
//!
//! ```text
//! <root>/
//!   _log/<20 digits>   _log/floor   _log/latest
//!   _manifest/<id>
//!   _data/<id>.frag
//!   _lease/<id>
//!   _damaged/          what a repair has put something sound in the place of
//!   _removed/          only while the store is being deleted
//! ```
//!
//! Invariants: an object is visible with its whole content or not at all ([`Storage::put_if_absent`],
//! [`Storage::put`]). Only an unfinished sink may be visible in part, under a name that is not referenced yet. A write
//! that returned success is durable, unless [`Durability::Close`] defers that.

mod coalesce;
#[cfg(test)]
mod conformance;
mod count;
mod fault;
mod files;
mod foreign;
mod hook;
mod layer;
mod local;
mod memory;
mod names;
#[cfg(feature = "object-stores")]
mod object;
mod options;
mod os_error;
mod overlay;
mod sealed;
mod stray;
mod uri;

pub use coalesce::{Merged, Part, coalesce};
pub use count::{CountSnapshot, CountingStorage};
pub use fault::{Fault, FaultPlan, FaultyStorage};
pub use files::{FLOOR, LATEST, StoreFiles, data_name, lease_name, log_name, manifest_name};
pub use foreign::ForeignFiles;
pub use hook::HookedStorage;
pub use layer::Operation;
pub use local::{DiskCalls, Durability, LocalStorage, SystemCalls};
pub use memory::MemoryStorage;
pub use names::{DAMAGED, DATA, LEASE, LOG, MANIFEST};
#[cfg(feature = "object-stores")]
pub use object::ObjectStorage;
pub use options::StorageOptions;
pub use overlay::OverlayStorage;
pub use sealed::{KeyRing, SealedStorage, Sealing, key_from_environment, key_id};
pub use stray::{Stray, StrayStorage};
pub use uri::{is_remote, open_uri};

use crate::base::{ByteSink, ByteSource, Id, KeyId, Result};
use bytes::Bytes;
use std::fmt::Debug;
use std::sync::Arc;

/// Runs `work` to its end, even under a cancellation: the outcome of a commit that was begun must be known.
pub fn patiently<R>(work: impl FnOnce() -> R) -> R {
    crate::runtime::under(None, work)
}

/// The outcome of an attempt to create an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object did not exist; it does now, whole and durable.
    Created,
    /// Like `Created`, after puts whose answers were lost: one of these may have created it before, and it may have
    /// been deleted since.
    CreatedLate,
    /// An object of that name exists and was not touched.
    Exists,
}

/// An object found by [`Storage::survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its full name, `folder/…`.
    pub name: String,
    /// Its stored size; for a sealed object more than its content.
    pub bytes: u64,
    /// When it was last written, by the storage's own clock: UTC, in microseconds.
    pub modified_us: i64,
}

/// Temporary files found by [`Storage::sweep`].
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Swept {
    /// How many.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
}

/// The objects of a store. Threads share it; every call blocks until it is done.
///
/// Every method returns an Input error for a name that leaves the store (absolute, `..`), or that could be taken for a
/// temporary file (a part that starts with a dot). A failure of the operating system is an Access error (permissions)
/// or a Storage error (full, read-only, broken), with the `std::io::Error` as its source. After an error of a writing
/// method, it is unknown whether it took effect, unless stated here.
pub trait Storage: Send + Sync + Debug {
    /// The location of the storage, for messages; [`open_uri`] accepts it.
    fn describe(&self) -> String;

    /// Distinguishes this from other storages of this process, as a key of per-storage data. It consists of the
    /// location, the account and the address by which it is reached. Not for messages.
    fn identity(&self) -> String {
        self.describe()
    }

    /// As [`Storage::identity`], of what lies there now: where that can be told, another store that is put in its place has another one.
    /// It is part of the keys of what was read of the store.
    fn place(&self) -> String {
        self.identity()
    }

    /// Whether probing for an object costs next to nothing: a system call, not a request.
    fn is_near(&self) -> bool {
        false
    }

    /// Whether a power failure may undo a reported write until [`Storage::sync`] is called for it.
    fn defers_sync(&self) -> bool {
        false
    }

    /// The time of the storage's own clock, by which it dates objects: UTC, in microseconds. Costs a write.
    ///
    /// # Errors
    /// Access, Storage.
    fn now_us(&self) -> Result<i64>;

    /// Whether a deletion of the store has begun and is not complete.
    ///
    /// # Errors
    /// Access, Storage.
    fn is_removed(&self) -> Result<bool> {
        Ok(false)
    }

    /// Verifies that [`Storage::put_if_absent`] is exclusive here, once per process and store `id` (zeros: there is no
    /// store yet), before the first commit to it. Returns [the storage's time](Storage::now_us) once per handle, where
    /// it is known.
    ///
    /// # Errors
    /// Unsupported where two writers would overwrite each other; Access, Storage.
    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>> {
        let _ = id;
        Ok(None)
    }

    /// The key id of the newest record that was read or written, if the objects are sealed; `None` before the first
    /// one.
    fn key_id(&self) -> Option<KeyId> {
        None
    }

    /// Creates the root and the folders that every store has, durably. Does nothing where they exist.
    ///
    /// # Errors
    /// Access, Storage.
    fn prepare(&self) -> Result<()>;

    /// Opens an object for reading. If it is deleted while open, reads either succeed or return NotFound.
    ///
    /// # Errors
    /// NotFound if it does not exist, Corruption if the name belongs to something other than an object, Access,
    /// Storage.
    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>>;

    /// The whole content of an object, which should be small.
    ///
    /// # Errors
    /// NotFound if it does not exist; Corruption if the name belongs to something other than an object, or it is longer
    /// than its kind allows; Budget if there is no memory for it; Access, Storage.
    fn read_all(&self, name: &str) -> Result<Bytes>;

    /// The first `len` bytes of an object, or all that it has.
    ///
    /// # Errors
    /// Those of [`Storage::read_all`].
    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        let whole = self.read_all(name)?;
        Ok(whole.slice(..whole.len().min(usize::try_from(len).unwrap_or(usize::MAX))))
    }

    /// The first bytes of a record, as in [`Storage::read_start`], and the floor of the log. Where a read is a request,
    /// both are sent together; else the floor is read last.
    fn read_start_and_floor(&self, name: &str, len: u64) -> (Result<Bytes>, Result<Bytes>) {
        (self.read_start(name, len), self.read_all(FLOOR))
    }

    /// Passes the whole content of objects to `visit`, in the order of `names`, each with its name; an error of `visit`
    /// ends it. Where a read is a request, all are sent concurrently, so the objects should be few and small.
    ///
    /// # Errors
    /// Those of `visit`, to which those of [`Storage::read_all`] are passed.
    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        names.iter().try_for_each(|name| visit(name, self.read_all(name)))
    }

    /// Like [`Storage::read_each`], but for the first `len` bytes of each object, or all that it has.
    ///
    /// # Errors
    /// Those of `visit`, to which those of [`Storage::read_start`] are passed.
    fn read_each_start(
        &self,
        names: &[String],
        len: u64,
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        names.iter().try_for_each(|name| visit(name, self.read_start(name, len)))
    }

    /// Starts an object, written front to back. [`ByteSink::finish`] makes its bytes durable, then its name; if it is
    /// dropped before that, it is removed.
    ///
    /// # Errors
    /// Exists if it exists, Access, Storage.
    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>>;

    /// Creates an object, unless it exists: among all concurrent calls, in any process, exactly one returns `Created`.
    /// The object appears with its whole content, and is durable when this returns.
    ///
    /// # Errors
    /// Unsupported where the storage has no such operation (nothing happened), Access, Storage. Unless the error says
    /// that it had [no effect](crate::base::Error::had_no_effect), the object may exist, or may appear later.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome>;

    /// Creates or replaces an object in one step, durably.
    ///
    /// # Errors
    /// Access, Storage.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Creates or replaces an object in one step that a power failure may undo or garble: for hints, which are never
    /// trusted.
    ///
    /// # Errors
    /// Access, Storage.
    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Makes an existing object and its name durable, even where the storage [defers](Storage::defers_sync) that. For a
    /// write whose outcome was in doubt, and for objects that a durable commit depends on.
    ///
    /// # Errors
    /// NotFound if it does not exist, Access, Storage.
    fn sync(&self, name: &str) -> Result<()>;

    /// Copies the stored bytes of an object, whatever it is, to a free name in `_damaged/`, durably; returns that name.
    ///
    /// # Errors
    /// NotFound if it does not exist, Access, Storage.
    fn set_aside(&self, name: &str) -> Result<String> {
        names::copy_aside(self, name)
    }

    /// Deletes an object, if it exists. The deletion is not durable: after a power failure the object may be back,
    /// whole.
    ///
    /// # Errors
    /// Access, Storage.
    fn delete(&self, name: &str) -> Result<()>;

    /// Deletes objects as [`Storage::delete`] does, in any order; where a deletion is a request, one request deletes
    /// many. After an error any of them may be gone.
    ///
    /// # Errors
    /// Access, Storage.
    fn delete_each(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| self.delete(name))
    }

    /// The full names (`folder/…`) of the objects directly in `folder`, sorted, without temporary files. A missing
    /// folder counts as empty.
    ///
    /// # Errors
    /// Access, Storage.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// Like [`Storage::list`], for a folder that has at most `most` objects; `None` if it has more. Costs one request
    /// where requests matter.
    ///
    /// # Errors
    /// Access, Storage.
    fn list_few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        self.list(folder).map(|names| (names.len() <= most).then_some(names))
    }

    /// Passes every object directly in `folder` to `visit`, in any order and without holding all of them at once.
    /// Objects that a sink is still writing are included where the storage shows them; temporary files are omitted. An
    /// object that is deleted meanwhile may be omitted. A missing folder counts as empty.
    ///
    /// # Errors
    /// Access, Storage.
    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()>;

    /// Finds the temporary files of `folder` that were last written before `before_us`, left by dead processes, and
    /// deletes them if `delete` is set. A storage without such files finds none.
    ///
    /// # Errors
    /// Access, Storage.
    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept>;

    /// Creates or replaces an object, as [`Storage::put`] does, if its content is `expected` (`None`: it does not
    /// exist); returns whether it was. Among concurrent calls with the same `expected`, one succeeds.
    ///
    /// # Errors
    /// Access, Storage.
    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool>;

    /// Whether an object of that name exists, or something else that keeps it from being created.
    ///
    /// # Errors
    /// Access, Storage.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Deletes the store: everything that the layout knows, then the root if it is empty. Without a log there is no
    /// store, and nothing is touched.
    ///
    /// The whole log disappears first, in one atomic step. Deleting records one by one would be wrong in any order.
    /// Without its newest records a store opens as it was earlier, and objects that those records had replaced may be
    /// deleted already. Without its oldest records it may look like a new store. An interrupted deletion leaves no
    /// store, only files that the next call removes.
    ///
    /// # Errors
    /// Access, Storage.
    fn remove_everything(&self) -> Result<()>;
}
