//! Floor `storage`: objects in a directory, in memory or in a bucket of an object store, behind one small trait; decorators that seal, count, fail
//! and observe; and the coalescing of byte ranges.
//!
//! An object is written once and never changes, except for hints. Its name is relative to the store's root,
//! '/'-separated, in one of the layout's folders:
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
//! Invariants: an object is seen with its whole content or not at all ([`Storage::put_if_absent`],
//! [`Storage::put`]); only an unfinished sink may be seen in part, under a name that nothing refers to yet. What
//! returned success is durable, as far as [`Durability::Close`] does not put that off.

mod coalesce;
#[cfg(test)]
mod conformance;
mod count;
mod fault;
mod files;
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
pub use hook::HookedStorage;
pub use layer::Operation;
pub use local::{DiskCalls, Durability, LocalStorage, SystemCalls};
pub use memory::MemoryStorage;
pub use names::{DATA, LEASE, LOG, MANIFEST};
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

/// Does `work` to its end, whatever cancellation stands over it: of a commit that was begun it must be known what became.
pub fn patiently<R>(work: impl FnOnce() -> R) -> R {
    crate::runtime::under(None, work)
}

/// What became of an attempt to create an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PutOutcome {
    /// The object did not exist; it does now, whole and durable.
    Created,
    /// As `Created`, after puts whose answers were lost: one of these may have created it before, and it may have been deleted since.
    CreatedLate,
    /// An object of that name exists; it was not touched.
    Exists,
}

/// An object found by [`Storage::survey`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// Its whole name, `folder/…`.
    pub name: String,
    /// The bytes that it takes; of a sealed object more than its content has.
    pub bytes: u64,
    /// When it was last written by the storage's own clock: UTC, in microseconds.
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

/// Where a store's objects live. Shared by threads; every call blocks until it is done.
///
/// Every method that takes a name gives an Input error for one that leaves the store (absolute, `..`) or could be
/// taken for a temporary file (a part that starts with a dot). What the operating system refuses is an Access
/// error (permissions) or a Storage error (full, read-only, broken), with the `std::io::Error` as its source.
/// After an error of a writing method, whether it took effect is unknown unless stated here.
pub trait Storage: Send + Sync + Debug {
    /// Where this is, for messages: what [`open_uri`] takes.
    fn describe(&self) -> String;

    /// What tells this from other storages of this process, for who keeps something for each: where it is, and as whom and
    /// through which address it is reached. Not for messages.
    fn identity(&self) -> String {
        self.describe()
    }

    /// Whether asking if an object is there costs next to nothing, a system call and not a request.
    fn is_near(&self) -> bool {
        false
    }

    /// Whether what a write reported as done may be lost in a power failure until [`Storage::sync`] was asked for it.
    fn defers_sync(&self) -> bool {
        false
    }

    /// The time by the storage's own clock, by which it dates what is written: UTC, in microseconds. Costs a write.
    ///
    /// # Errors
    /// Access, Storage.
    fn now_us(&self) -> Result<i64>;

    /// Whether the deletion of the store here was begun and is not at its end.
    ///
    /// # Errors
    /// Access, Storage.
    fn is_removed(&self) -> Result<bool> {
        Ok(false)
    }

    /// Makes sure that [`Storage::put_if_absent`] is exclusive here, once per process and store `id` (zeros: there is none yet), before the first
    /// commit to it. Gives [the storage's time](Storage::now_us) once per handle, where it is known.
    ///
    /// # Errors
    /// Unsupported where two writers would overwrite each other; Access, Storage.
    fn prove_exclusive(&self, id: Id) -> Result<Option<i64>> {
        let _ = id;
        Ok(None)
    }

    /// The key of the newest record that was read or written, if the objects are sealed; `None` as long as there was none.
    fn key_id(&self) -> Option<KeyId> {
        None
    }

    /// Makes the root and the folders that every store has, durably. Does nothing where they are there already.
    ///
    /// # Errors
    /// Access, Storage.
    fn prepare(&self) -> Result<()>;

    /// Opens an object for reading. Who has it open when it is deleted either goes on reading it or is told NotFound.
    ///
    /// # Errors
    /// NotFound if it is not there, Corruption if what has its name is no object, Access, Storage.
    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>>;

    /// The whole content of an object, which should be small.
    ///
    /// # Errors
    /// NotFound if it is not there; Corruption if what has its name is no object, or longer than any of its kind; Budget if there is no
    /// memory for it; Access, Storage.
    fn read_all(&self, name: &str) -> Result<Bytes>;

    /// The first bytes of an object, `len` of them or all that it has.
    ///
    /// # Errors
    /// Those of [`Storage::read_all`].
    fn read_start(&self, name: &str, len: u64) -> Result<Bytes> {
        let whole = self.read_all(name)?;
        Ok(whole.slice(..whole.len().min(usize::try_from(len).unwrap_or(usize::MAX))))
    }

    /// The first bytes of a record, as [`Storage::read_start`], and the floor of the log. Where a read is a request both go out together;
    /// else the floor is read last.
    fn read_start_and_floor(&self, name: &str, len: u64) -> (Result<Bytes>, Result<Bytes>) {
        (self.read_start(name, len), self.read_all(FLOOR))
    }

    /// Shows the whole content of objects to `visit`, in the order of `names`, each with its name; an error of `visit` ends it. Where a read
    /// is a request all of them are asked for side by side, so they should be few and small.
    ///
    /// # Errors
    /// Those of `visit`, which is given those of [`Storage::read_all`].
    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        names.iter().try_for_each(|name| visit(name, self.read_all(name)))
    }

    /// As [`Storage::read_each`], of the first bytes of each object: `len` of them or all that it has.
    ///
    /// # Errors
    /// Those of `visit`, which is given those of [`Storage::read_start`].
    fn read_each_start(
        &self,
        names: &[String],
        len: u64,
        visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>,
    ) -> Result<()> {
        names.iter().try_for_each(|name| visit(name, self.read_start(name, len)))
    }

    /// Starts an object, to be written front to back. [`ByteSink::finish`] makes its bytes, then its name durable;
    /// dropped before that, it is removed.
    ///
    /// # Errors
    /// Exists if it is there, Access, Storage.
    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>>;

    /// Creates an object, unless there is one: of all that try, in any process, exactly one is told `Created`. The
    /// object appears with its whole content, and is durable when this returns.
    ///
    /// # Errors
    /// Unsupported where the storage has no such operation (nothing happened), Access, Storage. Unless the error says that it had
    /// [no effect](crate::base::Error::had_no_effect), the object may be there, or may come to be there later.
    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome>;

    /// Creates or replaces an object in one step, durably.
    ///
    /// # Errors
    /// Access, Storage.
    fn put(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Creates or replaces an object in one step that a power failure may undo or garble: for hints, which nobody
    /// trusts.
    ///
    /// # Errors
    /// Access, Storage.
    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()>;

    /// Makes an object that is there, and its name, durable, whatever the storage [defers](Storage::defers_sync): after a write whose
    /// outcome was in doubt, and for what a durable commit stands on.
    ///
    /// # Errors
    /// NotFound if it is not there, Access, Storage.
    fn sync(&self, name: &str) -> Result<()>;

    /// Copies an object, as it lies there and whatever it is, to a free name in `_damaged/`, durably; gives that name.
    ///
    /// # Errors
    /// NotFound if it is not there, Access, Storage.
    fn set_aside(&self, name: &str) -> Result<String> {
        names::copy_aside(self, name)
    }

    /// Deletes an object; one that is not there is deleted already. Not durable: after a power failure the object
    /// may be back, whole.
    ///
    /// # Errors
    /// Access, Storage.
    fn delete(&self, name: &str) -> Result<()>;

    /// Deletes objects as [`Storage::delete`] does, in any order; where a deletion is a request, many by one. After an error any of
    /// them may be gone.
    ///
    /// # Errors
    /// Access, Storage.
    fn delete_each(&self, names: &[String]) -> Result<()> {
        names.iter().try_for_each(|name| self.delete(name))
    }

    /// The whole names (`folder/…`) of the objects directly in `folder`, sorted, without temporary files. A folder
    /// that is not there is empty.
    ///
    /// # Errors
    /// Access, Storage.
    fn list(&self, folder: &str) -> Result<Vec<String>>;

    /// As [`Storage::list`], of a folder that has `most` objects or fewer; `None` if it has more. Costs one request where that is what costs.
    ///
    /// # Errors
    /// Access, Storage.
    fn list_few(&self, folder: &str, most: usize) -> Result<Option<Vec<String>>> {
        self.list(folder).map(|names| (names.len() <= most).then_some(names))
    }

    /// Shows every object directly in `folder` to `visit`, in any order and without holding all of them at once, with
    /// those that a sink is still writing where the storage shows them. Temporary files are left out. One that is deleted
    /// meanwhile may be left out. A folder that is not there is empty.
    ///
    /// # Errors
    /// Access, Storage.
    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()>;

    /// Finds the temporary files of `folder` that were last written before `before_us`, left by processes that died, and
    /// deletes them if `delete` says so. A storage without such files finds none.
    ///
    /// # Errors
    /// Access, Storage.
    fn sweep(&self, folder: &str, before_us: i64, delete: bool) -> Result<Swept>;

    /// Creates or replaces an object, as [`Storage::put`] does, if its content is `expected` (`None`: it is not there); says
    /// whether it was. Of several that expect the same at once, one is told that it was.
    ///
    /// # Errors
    /// Access, Storage.
    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool>;

    /// Whether an object of that name is there, or something else that keeps it from being created.
    ///
    /// # Errors
    /// Access, Storage.
    fn exists(&self, name: &str) -> Result<bool>;

    /// Deletes the store: all that the layout knows, then the root if it is empty. Without a log there is no
    /// store, and nothing is touched.
    ///
    /// The whole log disappears first, in one atomic step. Deleting records one by one would be wrong in any
    /// order: without its newest records a store opens as it was earlier, and what those records had replaced may
    /// be deleted already; without its oldest it may look as if it had just been made. A deletion that was cut
    /// short leaves no store, only files that the next call removes.
    ///
    /// # Errors
    /// Access, Storage.
    fn remove_everything(&self) -> Result<()>;
}
