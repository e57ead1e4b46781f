//! What arrays opened together share: threads, memory budget, cache, durability.

use super::background::{AutoConsolidate, Upkeep};
use crate::base::limits::BlockCells;
use crate::base::{Budget, Cache, Error, Result};
use crate::runtime::{Arena, LruCache, Pool};
use crate::storage::Durability;
use std::sync::Arc;
use std::time::Duration;

/// The least budget that still holds a few blocks of every kind.
const BUDGET_BYTES_MIN: u64 = 1 << 20;

/// Choices of a [`Context`].
#[derive(Debug, Clone)]
pub struct Options {
    /// Bytes for scratch memory, caches and indexes; at least 1 MiB. Results that are asked for whole do not count.
    pub memory_budget: u64,
    /// Threads; `None`: `GRIDSTONE_THREADS`, or the cores this process may use.
    pub threads: Option<usize>,
    /// Bytes of decoded indexes and small fragments held between calls; at most half the budget is used.
    pub cache: u64,
    /// Whether writes reach the disk before they are acknowledged.
    pub durability: Durability,
    /// Cells of the blocks that are written. For measurements and tests: what suits most arrays is the default.
    pub blocks: BlockCells,
    /// Whether, and when, arrays that are written to are consolidated in the background.
    pub auto_consolidate: Option<AutoConsolidate>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_budget: 1 << 30,
            threads: None,
            cache: 256 << 20,
            durability: Durability::Full,
            blocks: BlockCells::default(),
            auto_consolidate: None,
        }
    }
}

/// Threads, budget and cache; cloning shares them.
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) pool: Arc<Pool>,
    pub(super) budget: Arc<Budget>,
    pub(super) cache: Arc<dyn Cache>,
    pub(super) arena: Arc<Arena>,
    pub(super) durability: Durability,
    pub(super) blocks: BlockCells,
    pub(super) auto: Option<AutoConsolidate>,
    pub(super) upkeep: Arc<Upkeep>,
}

impl Context {
    /// A context; an Input error says which option is impossible. No thread is started before there is work.
    pub fn new(options: &Options) -> Result<Self> {
        if options.memory_budget < BUDGET_BYTES_MIN {
            return Err(Error::input(format!(
                "a memory budget of {} bytes is too small; give at least {BUDGET_BYTES_MIN}",
                options.memory_budget
            )));
        }
        options.blocks.check()?;
        if options.auto_consolidate.is_some_and(|auto| auto.fragments < 2) {
            return Err(Error::input("auto_consolidate needs a number of fragments of at least 2"));
        }
        let cache = options.cache.min(options.memory_budget / 2);
        Ok(Self {
            pool: Arc::new(Pool::new(options.threads)?),
            budget: Arc::new(Budget::new(options.memory_budget)),
            cache: Arc::new(LruCache::new(cache)),
            arena: Arc::new(Arena::shared(options.memory_budget / 8)),
            durability: options.durability,
            blocks: options.blocks,
            auto: options.auto_consolidate,
            upkeep: Arc::default(),
        })
    }

    /// The number of threads.
    pub fn threads(&self) -> usize {
        self.pool.threads()
    }

    /// Runs `work` on another thread while `watch` is called here every so often, as long as `work` goes on. A Budget
    /// error if no thread can be started.
    pub fn beside<R: Send>(&self, work: impl FnOnce() -> R + Send, every: Duration, watch: impl FnMut()) -> Result<R> {
        self.pool.beside(work, every, watch)
    }

    /// Where the memory of results comes from, and may be given back to.
    pub fn arena(&self) -> &Arc<Arena> {
        &self.arena
    }

    /// The most scratch memory that was in use at once, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.budget.peak_bytes()
    }
}
