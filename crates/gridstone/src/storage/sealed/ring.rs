//! Keys that were requested once and are kept as long as their context.

use super::cipher::MasterKey;
use crate::base::{Error, KeyId, Keys, Result};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// Requests keys, checks that they are those requested, and keeps them. No lock is held during a request, and none is
/// waited for: a caller that finds it taken (or left locked by a fork) requests the key again.
#[derive(Debug)]
pub struct KeyRing {
    keys: Arc<dyn Keys>,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    current: Option<Arc<MasterKey>>,
    by_id: BTreeMap<KeyId, Arc<MasterKey>>,
}

impl KeyRing {
    /// A ring that requests keys from `keys`.
    pub fn new(keys: Arc<dyn Keys>) -> Self {
        Self { keys, known: Mutex::default() }
    }

    /// The key with which new objects are sealed.
    pub(super) fn current(&self) -> Result<Arc<MasterKey>> {
        if let Some(key) = self.known.try_lock().ok().and_then(|known| known.current.clone()) {
            return Ok(key);
        }
        let key = Arc::new(MasterKey::new(self.keys.key(None)?)?);
        if let Ok(mut known) = self.known.try_lock() {
            known.current = Some(Arc::clone(&key));
            known.by_id.insert(key.id, Arc::clone(&key));
        }
        Ok(key)
    }

    /// The key `id`, with which the object `what` is sealed. Access if `keys` returns another one.
    pub(super) fn by_id(&self, id: KeyId, what: &str) -> Result<Arc<MasterKey>> {
        if let Some(key) = self.known.try_lock().ok().and_then(|known| known.by_id.get(&id).cloned()) {
            return Ok(key);
        }
        let key = self.keys.key(Some(id)).map_err(|e| e.context(format_args!("{what} is sealed with the key {id}")))?;
        let key = Arc::new(MasterKey::new(key)?);
        if key.id != id {
            return Err(Error::access(format!(
                "{what} is sealed with the key {id}; the key given is {}: open the store with the right one",
                key.id
            ))
            .foreign());
        }
        if let Ok(mut known) = self.known.try_lock() {
            known.by_id.insert(id, Arc::clone(&key));
        }
        Ok(key)
    }
}
