//! A decorator that calls a closure before every operation. It hands control to a scheduler that explores
//! interleavings, or kills the process at a chosen point.

use super::layer::{Call, Layer, Layered};
use super::{Operation, Storage};
use crate::base::Result;
use std::sync::Arc;

/// A storage that calls a closure before every operation on it, on its sources and on its sinks.
pub type HookedStorage = Layered<Hook>;

type Before = dyn Fn(Operation, &str) + Send + Sync;

/// The closure of a [`HookedStorage`].
pub struct Hook(Box<Before>);

impl std::fmt::Debug for Hook {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Hook")
    }
}

impl HookedStorage {
    /// `before` is called with the operation and the name (empty for the store as a whole). No lock is held during the
    /// call.
    pub fn new(inner: Arc<dyn Storage>, before: impl Fn(Operation, &str) + Send + Sync + 'static) -> Self {
        Self::over(inner, Arc::new(Hook(Box::new(before))))
    }
}

impl Layer for Hook {
    fn around<T>(&self, call: Call<'_>, run: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        (self.0)(call.operation, call.name);
        run(call.bytes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::storage::{MemoryStorage, conformance};
    use std::sync::Mutex;

    #[test]
    fn hooking_changes_nothing() {
        conformance::check(&|| Arc::new(HookedStorage::new(Arc::new(MemoryStorage::new()), |_, _| ())));
    }

    #[test]
    fn the_hook_comes_before_the_operation() {
        let memory = MemoryStorage::new();
        let seen = Arc::new(Mutex::new(Vec::new()));
        let (log, behind) = (seen.clone(), memory.clone());
        let storage = HookedStorage::new(Arc::new(memory), move |operation, name: &str| {
            log.lock().unwrap().push((operation, name.to_owned(), behind.exists("_log/1").unwrap()));
        });
        storage.put_if_absent("_log/1", b"record").unwrap();
        storage.prepare().unwrap();
        let expected =
            [(Operation::PutIfAbsent, "_log/1".to_owned(), false), (Operation::Prepare, String::new(), true)];
        assert_eq!(*seen.lock().unwrap(), expected);
    }

    /// Two writers race for one slot under every kind of schedule that shuttle finds: exactly one gets `Created`.
    #[test]
    fn a_scheduler_can_sit_in_the_hook() {
        let race = || {
            let memory: Arc<dyn Storage> = Arc::new(MemoryStorage::new());
            let storage = Arc::new(HookedStorage::new(memory, |_, _| shuttle::thread::yield_now()));
            let put = |bytes: &'static [u8]| {
                let storage = storage.clone();
                shuttle::thread::spawn(move || storage.put_if_absent("_log/1", bytes).unwrap())
            };
            let outcomes = [put(b"one"), put(b"two")].map(|thread| thread.join().unwrap());
            assert_ne!(outcomes[0], outcomes[1]);
        };
        shuttle::check_random(race, 50);
    }
}
