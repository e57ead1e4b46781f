//! A cache bounded in bytes that drops the least recently used values.
//!
//! It is safe after a fork: the child starts with an empty cache and a lock of its own, since the parent's lock may
//! have been held at that moment. The parent's values stay in memory that is shared until it is written to; the child
//! never frees them.

use super::PerProcess;
use crate::base::{Cache, CacheKey};
use std::any::Any;
use std::collections::{BTreeMap, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

type Value = Arc<dyn Any + Send + Sync>;

/// A [`Cache`] with a size limit that drops the least recently used values first.
#[derive(Debug)]
pub struct LruCache {
    limit_bytes: u64,
    state: PerProcess<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    entries: HashMap<CacheKey, Entry>,
    /// The keys by the moment of their last use; holds exactly the keys of `entries`.
    order: BTreeMap<u64, CacheKey>,
    used_bytes: u64,
    moment: u64,
}

#[derive(Debug)]
struct Entry {
    value: Value,
    bytes: u64,
    moment: u64,
}

impl LruCache {
    /// An empty cache of at most `limit_bytes`; 0 caches nothing.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, state: PerProcess::new() }
    }

    /// The bytes cached, as declared by the callers of `put`.
    pub fn used_bytes(&self) -> u64 {
        self.lock().map_or(0, |state| state.used_bytes)
    }

    fn lock(&self) -> Option<MutexGuard<'_, State>> {
        let state = self.state.get_or_try_build(|| Ok(Mutex::default())).ok()?;
        Some(state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Cache for LruCache {
    fn get(&self, key: &CacheKey) -> Option<Value> {
        self.lock()?.touch(key)
    }

    fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    fn put(&self, key: CacheKey, value: Value, bytes: u64) {
        if bytes > self.limit_bytes {
            return;
        }
        // The removed values are dropped after the lock is released: freeing a large value takes a while.
        let _gone = self.lock().map(|mut state| state.insert(key, value, bytes, self.limit_bytes));
    }
}

impl State {
    fn touch(&mut self, key: &CacheKey) -> Option<Value> {
        self.moment += 1;
        let entry = self.entries.get_mut(key)?;
        if let Some(key) = self.order.remove(&entry.moment) {
            self.order.insert(self.moment, key);
        }
        entry.moment = self.moment;
        Some(entry.value.clone())
    }

    fn insert(&mut self, key: CacheKey, value: Value, bytes: u64, limit_bytes: u64) -> Vec<Value> {
        let mut gone: Vec<Value> = self.remove(&key).into_iter().collect();
        while self.used_bytes.saturating_add(bytes) > limit_bytes {
            let Some((_, oldest)) = self.order.pop_first() else { break };
            gone.extend(self.remove(&oldest));
        }
        self.moment += 1;
        self.used_bytes += bytes;
        self.order.insert(self.moment, key.clone());
        self.entries.insert(key, Entry { value, bytes, moment: self.moment });
        gone
    }

    fn remove(&mut self, key: &CacheKey) -> Option<Value> {
        let entry = self.entries.remove(key)?;
        self.order.remove(&entry.moment);
        self.used_bytes -= entry.bytes;
        Some(entry.value)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::Id;

    fn key(n: u8) -> CacheKey {
        CacheKey { place: Id([0; 16]), what: "index", id: Id([n; 16]), version: 0 }
    }

    fn held(cache: &LruCache) -> Vec<u8> {
        (0..20).filter(|n| cache.lock().unwrap().entries.contains_key(&key(*n))).collect()
    }

    #[test]
    fn the_least_recently_used_goes_first() {
        let cache = LruCache::new(100);
        for n in 0..4 {
            cache.put(key(n), Arc::new(n), 25);
        }
        assert_eq!(*cache.get(&key(0)).unwrap().downcast::<u8>().unwrap(), 0);
        cache.put(key(9), Arc::new(9u8), 30);
        assert_eq!(held(&cache), [0, 3, 9]);
        assert_eq!(cache.used_bytes(), 80);
    }

    #[test]
    fn a_value_replaces_its_elder_and_one_too_large_is_not_kept() {
        let cache = LruCache::new(100);
        cache.put(key(1), Arc::new("old"), 90);
        cache.put(key(1), Arc::new("new"), 20);
        assert_eq!(cache.used_bytes(), 20);
        assert_eq!(*cache.get(&key(1)).unwrap().downcast::<&str>().unwrap(), "new");
        cache.put(key(2), Arc::new("huge"), 101);
        assert_eq!(held(&cache), [1]);
        assert!(cache.get(&key(2)).is_none());
    }

    #[test]
    fn the_bound_holds_and_the_books_balance_under_any_use() {
        let cache = LruCache::new(64);
        let mut random = 1u64;
        for _ in 0..5_000 {
            random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            let n = (random >> 60) as u8;
            if random & (1 << 40) == 0 {
                cache.put(key(n), Arc::new(n), (random >> 50) % 40)
            } else {
                drop(cache.get(&key(n)))
            }
            let state = cache.lock().unwrap();
            assert!(state.used_bytes <= 64);
            assert_eq!(state.used_bytes, state.entries.values().map(|e| e.bytes).sum::<u64>());
            assert_eq!(state.order.len(), state.entries.len());
            assert!(state.order.iter().all(|(moment, key)| state.entries[key].moment == *moment));
        }
    }
}
