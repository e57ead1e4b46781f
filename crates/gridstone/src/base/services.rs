//! The services that the engine needs from its environment, as traits, so that the floors above are free of clocks,
//! randomness, signals and global state.

use super::{Error, Id, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Reads the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// UTC, in microseconds since 1970-01-01.
    fn now_us(&self) -> i64;
}

/// Generates random ids and secrets.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// A fresh id. It differs from all others, but need not be hard to guess.
    fn id(&self) -> Id;

    /// Fresh random bytes for sealing, from the source of randomness; a Storage error if that fails.
    fn secret(&self) -> Result<[u8; 32]>;
}

/// A cancellation, checked at least once per block.
pub trait Cancel: Send + Sync {
    /// Whether the work should stop.
    fn cancelled(&self) -> bool;

    /// An error of kind Cancelled if the work should stop.
    fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled("stopped on request; nothing was committed")) } else { Ok(()) }
    }
}

/// A cancellation that never happens.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverCancel;

impl Cancel for NeverCancel {
    fn cancelled(&self) -> bool {
        false
    }
}

/// An independent piece of work.
pub type Task<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// Runs pieces of work, in parallel if there are threads for it.
pub trait Spawner: Send + Sync {
    /// How many pieces run at once.
    fn threads(&self) -> usize;

    /// Runs all tasks; after an error or a cancellation no further one is started.
    fn each(&self, tasks: Vec<Task<'_>>, cancel: &dyn Cancel) -> Result<()>;
}

/// Runs one piece of work after the other.
#[derive(Debug, Clone, Copy, Default)]
pub struct Inline;

impl Spawner for Inline {
    fn threads(&self) -> usize {
        1
    }

    fn each(&self, tasks: Vec<Task<'_>>, cancel: &dyn Cancel) -> Result<()> {
        tasks.into_iter().try_for_each(|task| cancel.check().and_then(|()| task()))
    }
}

/// Receives the progress of the work.
pub trait Progress: Send + Sync {
    /// `done` of `total` units (cells) are done; `total` is 0 while it is not known.
    fn report(&self, done: u64, total: u64);
}

/// Ignores progress.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _done: u64, _total: u64) {}
}

/// The progress of a part of the work that `whole` reports: `before` of its `total` units were done before the part
/// began.
pub struct Part<'a> {
    /// Receives the progress of the whole.
    pub whole: &'a dyn Progress,
    /// Units done before.
    pub before: u64,
    /// Total units.
    pub total: u64,
}

impl std::fmt::Debug for Part<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Part(from {} of {})", self.before, self.total)
    }
}

impl Progress for Part<'_> {
    fn report(&self, done: u64, _total: u64) {
        self.whole.report(self.before.saturating_add(done).min(self.total), self.total);
    }
}

/// Raised once by one thread, waited for by another.
pub trait Signal: Send + Sync + std::fmt::Debug {
    /// Wakes all waiting threads; later waits return at once.
    fn raise(&self);

    /// Blocks until the signal is raised.
    fn wait(&self);
}

/// Makes signals: the runtime decides how threads wait, and in tests a scheduler does.
pub trait Signals: Send + Sync + std::fmt::Debug {
    /// A signal that is not raised.
    fn signal(&self) -> Arc<dyn Signal>;
}

/// One memory budget for scratch memory, caches and indexes, shared by all work of a context.
#[derive(Debug)]
pub struct Budget {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// The budget that this is a part of.
    whole: Option<Arc<Self>>,
}

impl Budget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: AtomicU64::new(0), peak_bytes: AtomicU64::new(0), whole: None }
    }

    /// At most `limit_bytes` of `whole`, for one piece of work: bytes taken here are taken there too.
    pub fn part_of(whole: &Arc<Self>, limit_bytes: u64) -> Self {
        Self { whole: Some(Arc::clone(whole)), ..Self::new(limit_bytes.min(whole.limit_bytes)) }
    }

    /// The limit in bytes.
    pub fn limit_bytes(&self) -> u64 {
        self.limit_bytes
    }

    /// Bytes in use.
    pub fn used_bytes(&self) -> u64 {
        self.used_bytes.load(Ordering::Relaxed)
    }

    /// The high-water mark in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.peak_bytes.load(Ordering::Relaxed)
    }

    /// Takes `bytes`, always: the caller has sized its work beforehand; the high-water mark shows whether it did.
    pub fn take(&self, bytes: u64) {
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.take(bytes));
    }

    /// Returns `bytes`.
    pub fn give(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.give(bytes));
    }
}

/// Identifies a cached value.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The store and where it lies, so that one cache serves many stores, and copies of one store in several places.
    pub place: Id,
    /// The kind of value: "index", "overlay", …
    pub what: &'static str,
    /// The fragment or array it was made from.
    pub id: Id,
    /// The snapshot version if the value depends on one, else 0.
    pub version: u64,
}

/// A cache of decoded structures of any type, bounded in bytes.
pub trait Cache: Send + Sync + std::fmt::Debug {
    /// The value of `key`, if it is cached.
    fn get(&self, key: &CacheKey) -> Option<Arc<dyn Any + Send + Sync>>;

    /// The size limit in bytes; a larger value is not kept.
    fn limit_bytes(&self) -> u64;

    /// Caches `value`, which takes about `bytes`; older values may be dropped.
    fn put(&self, key: CacheKey, value: Arc<dyn Any + Send + Sync>, bytes: u64);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_part_takes_the_whole_has_less() {
        let whole = Arc::new(Budget::new(100));
        let (part, larger) = (Budget::part_of(&whole, 40), Budget::part_of(&whole, 1_000));
        assert_eq!((part.limit_bytes(), larger.limit_bytes()), (40, 100));
        part.take(30);
        larger.take(50);
        assert_eq!((part.used_bytes(), larger.used_bytes(), whole.used_bytes()), (30, 50, 80));
        part.give(30);
        larger.give(50);
        assert_eq!((part.peak_bytes(), whole.used_bytes(), whole.peak_bytes()), (30, 0, 80));
    }
}
