//! A store in memory, for tests and for data that need not outlive the process.
//!
//! A named store belongs to the process: every opening of `mem://name` sees the same objects, until the store is
//! removed or the process ends. The child of a fork has a copy. A fork must not happen while another thread is inside a
//! call of such a store, since the copy would be locked for ever.

use super::{Listed, PutOutcome, Storage, Swept, names};
use crate::base::{ByteSink, ByteSource, Clock, Error, MemorySource, Result};
use crate::runtime::SystemClock;
use bytes::Bytes;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Objects by name; `None` is one that a sink is writing: its name is taken, but it is not visible.
type Objects = BTreeMap<String, Option<Object>>;

/// An object's bytes and when they were written.
#[derive(Debug, Clone)]
struct Object {
    bytes: Bytes,
    modified_us: i64,
}

static REGISTRY: Mutex<BTreeMap<String, Arc<Mutex<Objects>>>> = Mutex::new(BTreeMap::new());

/// A store in memory. Clones share their objects.
#[derive(Debug, Clone)]
pub struct MemoryStorage {
    uri: String,
    near: bool,
    clock: Arc<dyn Clock>,
    objects: Arc<Mutex<Objects>>,
}

impl MemoryStorage {
    /// An empty store that is reached only through this value and its clones.
    pub fn new() -> Self {
        static COUNT: AtomicU64 = AtomicU64::new(0);
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { uri: format!("mem://#{number}"), near: false, clock: Arc::new(SystemClock), objects: Arc::default() }
    }

    /// The same store, but probing whether an object exists counts as free, like in a folder.
    #[must_use]
    pub fn near(self) -> Self {
        Self { near: true, ..self }
    }

    /// The same store, which dates objects by `clock`.
    #[must_use]
    pub fn with_clock(self, clock: Arc<dyn Clock>) -> Self {
        Self { clock, ..self }
    }

    fn object(&self, bytes: Bytes) -> Object {
        Object { bytes, modified_us: self.clock.now_us() }
    }

    /// The store of this name in this process; empty when the name is first used.
    pub fn named(name: &str) -> Self {
        let mut registry = REGISTRY.lock().unwrap_or_else(PoisonError::into_inner);
        let objects = registry.entry(name.to_owned()).or_default().clone();
        Self { uri: format!("mem://{name}"), near: false, clock: Arc::new(SystemClock), objects }
    }

    /// The lock is held for one look-up, never while bytes are copied or a caller's code runs.
    fn objects(&self) -> MutexGuard<'_, Objects> {
        self.objects.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The object of this name, without a copy.
    fn held(&self, name: &str) -> Result<Bytes> {
        let found = self.objects().get(names::checked(name)?).cloned().flatten();
        found.map(|object| object.bytes).ok_or_else(|| self.absent(name))
    }

    fn absent(&self, name: &str) -> Error {
        Error::not_found(format!("cannot open {}/{name}: no such object", self.uri))
    }
}

impl Default for MemoryStorage {
    fn default() -> Self {
        Self::new()
    }
}

impl Storage for MemoryStorage {
    fn describe(&self) -> String {
        self.uri.clone()
    }

    fn is_near(&self) -> bool {
        self.near
    }

    fn now_us(&self) -> Result<i64> {
        Ok(self.clock.now_us())
    }

    fn prepare(&self) -> Result<()> {
        Ok(())
    }

    fn open(&self, name: &str) -> Result<Arc<dyn ByteSource>> {
        Ok(Arc::new(MemorySource(self.held(name)?)))
    }

    fn read_all(&self, name: &str) -> Result<Bytes> {
        let bytes = self.held(name)?;
        names::check_length(&format_args!("{}/{name}", self.uri), bytes.len() as u64, names::bytes_max(name))?;
        Ok(bytes)
    }

    fn create(&self, name: &str) -> Result<Box<dyn ByteSink>> {
        let name = names::checked(name)?.to_owned();
        let mut objects = self.objects();
        if objects.contains_key(&name) {
            return Err(Error::exists(format!("cannot create {}/{name}: it is there", self.uri)));
        }
        objects.insert(name.clone(), None);
        Ok(Box::new(MemorySink { storage: self.clone(), name, bytes: Vec::new() }))
    }

    fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<PutOutcome> {
        let (name, bytes) = (names::checked(name)?, Bytes::copy_from_slice(bytes));
        let mut objects = self.objects();
        if objects.contains_key(name) {
            return Ok(PutOutcome::Exists);
        }
        objects.insert(name.to_owned(), Some(self.object(bytes)));
        Ok(PutOutcome::Created)
    }

    fn put(&self, name: &str, bytes: &[u8]) -> Result<()> {
        let (name, bytes) = (names::checked(name)?, Bytes::copy_from_slice(bytes));
        self.objects().insert(name.to_owned(), Some(self.object(bytes)));
        Ok(())
    }

    fn put_hint(&self, name: &str, bytes: &[u8]) -> Result<()> {
        self.put(name, bytes)
    }

    fn sync(&self, name: &str) -> Result<()> {
        self.held(name).map(drop)
    }

    fn delete(&self, name: &str) -> Result<()> {
        self.objects().remove(names::checked(name)?);
        Ok(())
    }

    fn list(&self, folder: &str) -> Result<Vec<String>> {
        let folder = format!("{}/", names::checked(folder)?);
        let inside = |name: &str| name.strip_prefix(&folder).is_some_and(|rest| !rest.contains('/'));
        let objects = self.objects();
        let from_folder = objects.range(folder.clone()..).take_while(|(name, _)| name.starts_with(&folder));
        Ok(from_folder.filter(|(name, held)| held.is_some() && inside(name)).map(|(name, _)| name.clone()).collect())
    }

    fn survey(&self, folder: &str, visit: &mut dyn FnMut(Listed)) -> Result<()> {
        for name in self.list(folder)? {
            let found = self.objects().get(&name).cloned().flatten();
            if let Some(Object { bytes, modified_us }) = found {
                visit(Listed { name, bytes: bytes.len() as u64, modified_us });
            }
        }
        Ok(())
    }

    fn sweep(&self, folder: &str, _before_us: i64, _delete: bool) -> Result<Swept> {
        names::checked(folder).map(|_| Swept::default())
    }

    fn put_if_unchanged(&self, name: &str, expected: Option<&[u8]>, bytes: &[u8]) -> Result<bool> {
        let (name, bytes) = (names::checked(name)?, Bytes::copy_from_slice(bytes));
        let mut objects = self.objects();
        let unchanged = objects.get(name).cloned().flatten().map(|object| object.bytes).as_deref() == expected;
        if unchanged {
            objects.insert(name.to_owned(), Some(self.object(bytes)));
        }
        Ok(unchanged)
    }

    fn exists(&self, name: &str) -> Result<bool> {
        Ok(self.objects().get(names::checked(name)?).is_some_and(Option::is_some))
    }

    fn remove_everything(&self) -> Result<()> {
        let folder = |name: &str| name.split('/').next().unwrap_or_default().to_owned();
        let known = [names::LOG, names::DATA, names::MANIFEST, names::LEASE, names::DAMAGED];
        let mut objects = self.objects();
        if objects.keys().any(|name| folder(name) == names::LOG) {
            objects.retain(|name, _| !known.contains(&folder(name).as_str()));
        }
        Ok(())
    }
}

/// An object being written; visible once it is finished.
#[derive(Debug)]
struct MemorySink {
    storage: MemoryStorage,
    name: String,
    bytes: Vec<u8>,
}

impl ByteSink for MemorySink {
    fn write(&mut self, bytes: &[u8]) -> Result<()> {
        self.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(mut self: Box<Self>) -> Result<()> {
        let bytes = Bytes::from(std::mem::take(&mut self.bytes));
        self.storage.objects().insert(self.name.clone(), Some(self.storage.object(bytes)));
        Ok(())
    }
}

impl Drop for MemorySink {
    fn drop(&mut self) {
        let mut objects = self.storage.objects();
        if objects.get(&self.name).is_some_and(Option::is_none) {
            objects.remove(&self.name);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::conformance;

    #[test]
    fn memory_conforms() {
        conformance::check(&|| Arc::new(MemoryStorage::new()));
        conformance::check_lengths(&|| Arc::new(MemoryStorage::new()));
    }

    #[test]
    fn a_name_is_shared_by_the_process_and_an_anonymous_store_by_none() {
        MemoryStorage::named("shared").put("_data/a.frag", b"x").unwrap();
        assert!(MemoryStorage::named("shared").exists("_data/a.frag").unwrap());
        assert!(!MemoryStorage::named("other").exists("_data/a.frag").unwrap());
        assert!(!MemoryStorage::new().exists("_data/a.frag").unwrap());
        assert_ne!(MemoryStorage::new().describe(), MemoryStorage::new().describe());
    }

    #[test]
    fn a_sink_shows_nothing_before_it_is_finished() {
        let storage = MemoryStorage::new();
        let mut sink = storage.create("_data/a.frag").unwrap();
        sink.write(b"half").unwrap();
        assert!(!storage.exists("_data/a.frag").unwrap());
        assert!(storage.list("_data").unwrap().is_empty());
        sink.finish().unwrap();
        assert_eq!(storage.list("_data").unwrap(), ["_data/a.frag"]);
    }
}
