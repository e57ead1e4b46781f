//! A decorator that counts operations, so that tests can assert the I/O cost of a promise.

use super::coalesce::{MERGED_BYTES_MAX, coalesce};
use super::layer::{Call, Layer, Layered};
use super::{Operation, Storage};
use crate::base::{Result, limits};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// A storage that counts the operations on it, on its sources and on its sinks. Failed ones count as well.
pub type CountingStorage = Layered<Counts>;

/// The counts of a [`CountingStorage`].
#[derive(Debug, Default)]
pub struct Counts(Mutex<CountSnapshot>);

/// What was counted up to one moment.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct CountSnapshot {
    /// How often each operation was called.
    pub operations: BTreeMap<Operation, u64>,
    /// How many reads a local store sends to the operating system: ranges after coalescing.
    pub requests: u64,
    /// Bytes returned to readers.
    pub bytes_read: u64,
    /// Bytes given by writers.
    pub bytes_written: u64,
    /// Every name that an operation touched, once, in the order of the first touch.
    pub touched: Vec<String>,
    /// How often each object was read (waits for ranges, and whole reads).
    pub reads: BTreeMap<String, u64>,
}

impl CountSnapshot {
    /// How often `operation` was called.
    pub fn count(&self, operation: Operation) -> u64 {
        self.operations.get(&operation).copied().unwrap_or(0)
    }

    /// How often any operation was called.
    pub fn total(&self) -> u64 {
        self.operations.values().sum()
    }

    fn add(&mut self, call: Call<'_>) {
        *self.operations.entry(call.operation).or_default() += 1;
        self.bytes_written += call.bytes.len() as u64;
        self.requests += coalesce(call.ranges, limits::GAP_BYTES, MERGED_BYTES_MAX).len() as u64;
        if call.operation == Operation::ReadAll {
            self.requests += 1;
        }
        if matches!(call.operation, Operation::Read | Operation::ReadAll) {
            *self.reads.entry(call.name.to_owned()).or_default() += 1;
        }
        if !call.name.is_empty() && !self.touched.iter().any(|name| name == call.name) {
            self.touched.push(call.name.to_owned());
        }
    }
}

impl CountingStorage {
    /// Counts the operations on `inner` from now on.
    pub fn new(inner: Arc<dyn Storage>) -> Self {
        Self::over(inner, Arc::default())
    }

    /// The counts since the start or the last reset.
    pub fn snapshot(&self) -> CountSnapshot {
        self.layer.lock().clone()
    }

    /// Resets all counts to zero.
    pub fn reset(&self) {
        *self.layer.lock() = CountSnapshot::default();
    }
}

impl Counts {
    fn lock(&self) -> MutexGuard<'_, CountSnapshot> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Layer for Counts {
    fn around<T>(&self, call: Call<'_>, run: impl FnOnce(&[u8]) -> Result<T>) -> Result<T> {
        self.lock().add(call);
        run(call.bytes)
    }

    fn received(&self, _name: &str, bytes: u64) {
        self.lock().bytes_read += bytes;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ByteRange;
    use crate::storage::{MemoryStorage, conformance};

    #[test]
    fn counting_changes_nothing() {
        conformance::check(&|| Arc::new(CountingStorage::new(Arc::new(MemoryStorage::new()))));
    }

    #[test]
    fn operations_bytes_names_and_requests_are_counted() {
        let storage = CountingStorage::new(Arc::new(MemoryStorage::new()));
        let mut sink = storage.create("_data/b.frag").unwrap();
        sink.write(&[1; 100_000]).unwrap();
        sink.finish().unwrap();
        storage.put_if_absent("_log/1", b"record").unwrap();
        let far_and_near = [(0, 10), (20, 10), (90_000, 5)].map(|(offset, len)| ByteRange::new(offset, len));
        storage.open("_data/b.frag").unwrap().read(&far_and_near).unwrap();
        storage.read_all("_log/1").unwrap();

        let counts = storage.snapshot();
        use Operation::{Create, Finish, Open, PutIfAbsent, Read, ReadAll, Write};
        for operation in [Create, Write, Finish, PutIfAbsent, Open, Read, ReadAll] {
            assert_eq!(counts.count(operation), 1, "{operation:?}");
        }
        assert_eq!((counts.total(), counts.requests), (7, 3));
        assert_eq!((counts.bytes_read, counts.bytes_written), (31, 100_006));
        assert_eq!(counts.touched, ["_data/b.frag", "_log/1"]);
        assert_eq!(counts.reads["_data/b.frag"], 1);
        storage.reset();
        assert_eq!(storage.snapshot(), CountSnapshot::default());
    }
}
