//! Reading what a transaction has staged: its files and its cache lie over those of the store.

use crate::base::{ByteRange, ByteSink, ByteSource, Cache, CacheKey, Error, FileRef, Files, Id, Result, Sources};
use crate::runtime::LruCache;
use std::any::Any;
use std::collections::HashSet;
use std::sync::{Arc, PoisonError, RwLock};

/// A store's files, and one more that exists in memory only.
#[derive(Debug)]
pub(super) struct StagedFiles {
    pub(super) store: Arc<dyn Files>,
    pub(super) file: FileRef,
    pub(super) source: Arc<dyn ByteSource>,
}

impl StagedFiles {
    /// The same one over other files of the store.
    pub(super) fn over(&self, store: Arc<dyn Files>) -> Self {
        Self { store, file: self.file, source: Arc::clone(&self.source) }
    }
}

impl Files for StagedFiles {
    fn sources(&self) -> Option<Arc<dyn Sources>> {
        self.store.sources()
    }

    fn moved(&self, fragment: Id) -> Result<Option<(FileRef, ByteRange)>> {
        self.store.moved(fragment)
    }

    fn explain(&self, error: Error) -> Error {
        self.store.explain(error)
    }

    fn open(&self, file: FileRef) -> Result<Arc<dyn ByteSource>> {
        if file == self.file { Ok(Arc::clone(&self.source)) } else { self.store.open(file) }
    }

    fn is_near(&self) -> bool {
        self.store.is_near()
    }

    fn create(&self, id: Id) -> Result<Box<dyn ByteSink>> {
        self.store.create(id)
    }

    fn remove(&self, id: Id) -> Result<()> {
        self.store.remove(id)
    }
}

/// A cache that keeps to itself what depends on staged fragments: their order changes once they are committed, and nobody else
/// may see them.
#[derive(Debug)]
pub(super) struct StagedCache {
    shared: Arc<dyn Cache>,
    own: LruCache,
    staged: RwLock<HashSet<Id>>,
}

impl StagedCache {
    pub(super) fn new(shared: Arc<dyn Cache>) -> Self {
        let own = LruCache::new(shared.limit_bytes());
        Self { shared, own, staged: RwLock::default() }
    }

    /// From now on what is cached of these fragments, and of their array, is not shared.
    pub(super) fn keep(&self, array: Id, fragments: impl Iterator<Item = Id>) {
        let mut staged = self.staged.write().unwrap_or_else(PoisonError::into_inner);
        staged.insert(array);
        staged.extend(fragments);
    }

    fn is_staged(&self, key: &CacheKey) -> bool {
        self.staged.read().unwrap_or_else(PoisonError::into_inner).contains(&key.id)
    }
}

impl Cache for StagedCache {
    fn get(&self, key: &CacheKey) -> Option<Arc<dyn Any + Send + Sync>> {
        self.own.get(key).or_else(|| self.shared.get(key))
    }

    fn limit_bytes(&self) -> u64 {
        self.shared.limit_bytes()
    }

    fn put(&self, key: CacheKey, value: Arc<dyn Any + Send + Sync>, bytes: u64) {
        if self.is_staged(&key) { self.own.put(key, value, bytes) } else { self.shared.put(key, value, bytes) }
    }
}
