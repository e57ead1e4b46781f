//! What the engine needs from its surroundings, as traits, so that the floors above stay free of clocks,
//! randomness, signals and global state.

use super::{Error, Id, Result};
use std::any::Any;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Tells the time.
pub trait Clock: Send + Sync + std::fmt::Debug {
    /// UTC, in microseconds since 1970-01-01.
    fn now_us(&self) -> i64;
}

/// Gives random identities and secrets.
pub trait Entropy: Send + Sync + std::fmt::Debug {
    /// A fresh id. It differs from all others, and need not be hard to guess.
    fn id(&self) -> Id;

    /// Fresh random bytes, for sealing: from the source of randomness, or a Storage error if that is out of order.
    fn secret(&self) -> Result<[u8; 32]>;
}

/// Asked at least once per block whether to go on.
pub trait Cancel: Send + Sync {
    /// Whether the work should stop.
    fn cancelled(&self) -> bool;

    /// An error of kind Cancelled if the work should stop.
    fn check(&self) -> Result<()> {
        if self.cancelled() { Err(Error::cancelled("stopped on request; nothing was committed")) } else { Ok(()) }
    }
}

/// Work that cannot be stopped.
#[derive(Debug, Clone, Copy, Default)]
pub struct NeverCancel;

impl Cancel for NeverCancel {
    fn cancelled(&self) -> bool {
        false
    }
}

/// A piece of work that stands alone.
pub type Task<'a> = Box<dyn FnOnce() -> Result<()> + Send + 'a>;

/// Does pieces of work, side by side where there are threads for it.
pub trait Spawner: Send + Sync {
    /// How many pieces are done at once.
    fn threads(&self) -> usize;

    /// Does all tasks; after an error, or once `cancel` says so, no further one is begun.
    fn each(&self, tasks: Vec<Task<'_>>, cancel: &dyn Cancel) -> Result<()>;
}

/// Does one piece of work after the other.
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

/// Told how far the work is.
pub trait Progress: Send + Sync {
    /// `done` of `total` units (cells) are done; `total` is 0 while it is not known.
    fn report(&self, done: u64, total: u64);
}

/// Progress that nobody watches.
#[derive(Debug, Clone, Copy, Default)]
pub struct Silent;

impl Progress for Silent {
    fn report(&self, _done: u64, _total: u64) {}
}

/// The progress of a part of what `whole` is told of: `before` units of its `total` were done before the part began.
pub struct Part<'a> {
    /// Told of all of it.
    pub whole: &'a dyn Progress,
    /// Done before.
    pub before: u64,
    /// All there is to do.
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
    /// Lets whoever waits go on, now and later.
    fn raise(&self);

    /// Blocks until the signal is raised.
    fn wait(&self);
}

/// Makes signals: how threads wait is for the runtime to say, and in tests for a scheduler.
pub trait Signals: Send + Sync + std::fmt::Debug {
    /// A signal that is not raised.
    fn signal(&self) -> Arc<dyn Signal>;
}

/// One number for scratch memory, caches and indexes, shared by all work of a context.
#[derive(Debug)]
pub struct Budget {
    limit_bytes: u64,
    used_bytes: AtomicU64,
    peak_bytes: AtomicU64,
    /// What this is a part of.
    whole: Option<Arc<Self>>,
}

impl Budget {
    /// A budget of `limit_bytes`.
    pub fn new(limit_bytes: u64) -> Self {
        Self { limit_bytes, used_bytes: AtomicU64::new(0), peak_bytes: AtomicU64::new(0), whole: None }
    }

    /// At most `limit_bytes` of `whole`, for one piece of work: what is taken here is taken there.
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

    /// Takes `bytes`, always: the caller has cut its work to size beforehand; the mark shows whether it did.
    pub fn take(&self, bytes: u64) {
        let used = self.used_bytes.fetch_add(bytes, Ordering::Relaxed) + bytes;
        self.peak_bytes.fetch_max(used, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.take(bytes));
    }

    /// Gives `bytes` back.
    pub fn give(&self, bytes: u64) {
        self.used_bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.whole.iter().for_each(|whole| whole.give(bytes));
    }
}

/// What a cached value belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct CacheKey {
    /// The store's own id, so that one cache serves many stores.
    pub store: Id,
    /// What kind of value: "index", "overlay", …
    pub what: &'static str,
    /// The fragment or array it was made from.
    pub id: Id,
    /// A snapshot version where the value depends on one, else 0.
    pub version: u64,
}

/// A cache of decoded structures of any type, bounded in bytes.
pub trait Cache: Send + Sync + std::fmt::Debug {
    /// The value under `key`, if it is held.
    fn get(&self, key: &CacheKey) -> Option<Arc<dyn Any + Send + Sync>>;

    /// The most bytes it holds; a larger value is not kept.
    fn limit_bytes(&self) -> u64;

    /// Holds `value`, which takes about `bytes`; older values may go.
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
