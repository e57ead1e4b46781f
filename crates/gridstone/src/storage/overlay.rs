//! A storage over another one that is only read: writes stay in memory, so that a change can be tried before it is
//! made.

use super::{Listed, PutOutcome, Storage, Swept};
use crate::base::{ByteSink, ByteSource, Clock, Error, KeyId, MemorySource, Result};
use crate::runtime::SystemClock;
use bytes::Bytes;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects written (`None`: deleted), by name.
type Changed = BTreeMap<String, Option<Bytes>>;

/// A storage whose writes never reach the storage below.
#[derive(Debug, Clone)]
pub struct OverlayStorage {
    inner: Arc<dyn Storage>,
    changed: Arc<Mutex<Changed>>,
    /// Names that sinks are writing to.
    claimed: Arc<Mutex<BTreeSet<String>>>,
    /// Objects below for which a sync was requested.
    synced: Arc<Mutex<BTreeSet<String>>>,
}

impl OverlayStorage {
    /// Starts without changes.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self { inner, changed: Arc::default(), claimed: Arc::default(), synced: Arc::default() }
    }

    fn claimed(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn changed(&self) -> MutexGuard<'_, Changed> {
        self.changed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The content written to `name`; `Some(None)` if it was deleted.
    fn held(&self, name: &str) -> Option<Option<Bytes>> {
        self.changed().get(name).cloned()
    }

    fn absent(&self, name: &str) -> Error {
        Error::not_found(format!("cannot open {}/{name}: no such object", self.inner.describe()))
    }

    fn set(&self, name: &str, bytes: Option<&[u8]>) {
        self.changed().insert(name.to_owned(), bytes.map(Bytes::copy_from_slice));
    }

    /// All changes: the objects written (`None`: deleted) by name.
    pub fn changes(&self) -> BTreeMap<String, Option<Bytes>> {
        self.changed().clone()
    }

    /// The objects of the storage below that must be durable before the changes are written.
    pub fn synced(&self) -> BTreeSet<String> {
        self.synced.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets the change of `name`.
    pub fn forget(&self, name: &str) {
        self.changed().remove(name);
    }
}

/// Held until it is finished.
struct OverlaySink {
    storage: OverlayStorage,
    name: String,
    bytes: Vec<u8>,
}

impl ByteSink for OverlaySink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> Result<()> {
        self.storage.put(&self.name, &self.bytes)
    }
}

impl Drop for OverlaySink {
    fn drop(&mut self) {
        self.storage.claimed().remove(&self.name);
    }
}

impl Storage for OverlayStorage {
    fn describe(&self) -> String {
        self.inner.describe()
    }

    fn identity(&self) -> String {
        self.inner.identity()
    }

    fn place(&self) -> String {
        self.inner.place()
    }

    fn is_near(&self) -> bool {
        self.inner.is_near()
    }

    fn defers_sync(&self) -> bool {
        self.inner.defers_sync()
    }

    /// Objects written here are in memory, and dated by the machine's clock.
    fn now_us(&self) -> Result<i64> {
        Ok(SystemClock.now_us())
    }

    fn is_removed(&self) -> Result<bool> {
        self.inner.is_removed()
    }

    fn key_id(&self) -> Option<KeyId> {
        self.inner.key_id()
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        match self.held(name) {
            None => self.inner.open(name),
            Some(bytes) => Ok(Arc::new(MemorySource(bytes.ok_or_else(|| self.absent(name))?))),
        }
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        match self.held(name) {
            None => self.inner.read_all(name),
            Some(bytes) => bytes.ok_or_else(|| self.absent(name)),
        }
    }

    fn read_each(&self, names: &[String], visit: &mut dyn FnMut(&str, Result<Bytes>) -> Result<()>) -> Result<()> {
        if names.iter().any(|name| self.held(name).is_some()) {
            return names.iter().try_for_each(|name| visit(name, self.read_all(name)));
        }
        self.inner.read_each(names, visit)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let name = super::names::checked(name)?;
        if self.exists(name)? || !self.claimed().insert(name.to_owned()) {
            return Err(Error::exists(format!("cannot create {}/{name}: it is there", self.inner.describe())));
        }
        Ok(Box::new(OverlaySink { storage: self.clone(), name: name.to_owned(), bytes: Vec::new() }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        let name = super::names::checked(name)?;
        // Held from the check to the change: among concurrent calls, one returns that it succeeded.
        let mut changed = self.changed();
        let there = match changed.get(name) {
            Some(bytes) => bytes.is_some(),
            None => self.inner.exists(name)?,
        };
        if there || self.claimed().contains(name) {
            return Ok(PutOutcome::Exists);
        }
        changed.insert(name.to_owned(), Some(Bytes::copy_from_slice(bytes)));
        Ok(PutOutcome::Created)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.set(super::names::checked(name)?, Some(bytes));
        Ok(())
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(name, bytes)
    }

    /// Remembers the object if it is in the storage below.
    fn sync(&self, name: &str) -> Result<()> {
        if !self.exists(name)? {
            return Err(self.absent(name));
        }
        if self.held(name).is_none() {
            self.synced.lock().unwrap_or_else(PoisonError::into_inner).insert(name.to_owned());
        }
        Ok(())
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.set(super::names::checked(name)?, None);
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let mut names = Vec::new();
        self.survey(folder, &mut |listed| names.push(listed.name))?;
        names.sort();
        Ok(names)
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        // Objects in memory count as written now.
        let (changed, now_us) = (self.changed().clone(), SystemClock.now_us());
        self.inner.survey(folder, &mut |listed| {
            if !changed.contains_key(&listed.name) {
                visit(listed);
            }
        })?;
        for (name, bytes) in &changed {
            if let (Some((within, _)), Some(bytes)) = (name.rsplit_once('/'), bytes)
                && within == folder
            {
                visit(Listed { name: name.clone(), bytes: bytes.len() as u64, modified_us: now_us });
            }
        }
        Ok(())
    }

    fn sweep(&self, folder: &str, before_us: i64, _delete: bool) -> Result<Swept> {
        self.inner.sweep(folder, before_us, false)
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        let name = super::names::checked(name)?;
        let mut changed = self.changed();
        let found = match changed.get(name) {
            Some(bytes) => bytes.clone(),
            None if self.inner.exists(name)? => Some(self.inner.read_all(name)?),
            None => None,
        };
        if found.as_deref() != expected {
            return Ok(false);
        }
        changed.insert(name.to_owned(), Some(Bytes::copy_from_slice(bytes)));
        Ok(true)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        self.held(name).map_or_else(|| self.inner.exists(name), |bytes| Ok(bytes.is_some()))
    }

    /// Deletes, in memory, the objects of all folders that a store has.
    fn remove_everything(&self) -> Result<()> {
        for folder in [super::LOG, super::DATA, super::MANIFEST, super::LEASE, super::names::DAMAGED] {
            for name in self.list(folder)? {
                self.delete(&name)?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{LOG, MemoryStorage};

    #[test]
    fn an_overlay_conforms() {
        crate::storage::conformance::check(&|| Arc::new(OverlayStorage::new(Arc::new(MemoryStorage::new()))));
    }

    #[test]
    fn what_lies_below_is_seen_and_never_changed() {
        let below = MemoryStorage::new();
        below.put("_log/1", b"one").unwrap();
        below.put("_log/2", b"two").unwrap();
        let over = OverlayStorage::new(Arc::new(below.clone()));
        over.put("_log/1", b"other").unwrap();
        over.delete("_log/2").unwrap();
        over.put("_log/3", b"three").unwrap();
        assert_eq!(over.list(LOG).unwrap(), ["_log/1", "_log/3"]);
        assert_eq!(over.read_all("_log/1").unwrap(), "other");
        over.open("_log/2").unwrap_err();
        assert_eq!(below.list(LOG).unwrap(), ["_log/1", "_log/2"]);
        over.forget("_log/1");
        over.forget("_log/2");
        assert_eq!((over.read_all("_log/1").unwrap(), over.read_all("_log/2").unwrap()), ("one".into(), "two".into()));
    }
}
