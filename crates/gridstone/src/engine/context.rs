//! What arrays opened together share: threads, memory budget, cache, durability.

use super::Call;
use super::lease_terms::LeaseTerms;
use super::upkeep::{AutoConsolidate, Upkeep};
use crate::base::limits::{self, BlockCells};
use crate::base::{Budget, Cache, Clock, Counters, Error, Events, Files, Id, Keys, Notices, Result};
use crate::fragment::{AsStored, TileSources};
use crate::query::ReadContext;
use crate::runtime::{Arena, LruCache, Pool, SystemClock};
use crate::storage::{Durability, ForeignFiles, KeyRing, Sealing, StorageOptions, key_from_environment};
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
    /// How old the snapshot of a reader is when it gets a lease, which vacuum honours, in microseconds.
    pub lease_after_us: i64,
    /// How long a lease holds, in microseconds; it is renewed by reading.
    pub lease_term_us: i64,
    /// What tells the time: of commits, of leases, and by which a vacuum measures age.
    pub clock: Arc<dyn Clock>,
    /// A writer that finds the newest manifest root so many versions behind folds first. For measurements and tests.
    #[doc(hidden)]
    pub fold_versions: u64,
    /// Cells of the blocks that are written. For measurements and tests: what suits most arrays is the default.
    #[doc(hidden)]
    pub blocks: BlockCells,
    /// What gives the tiles of dense fragments. For tests, which read through sources of other layouts.
    #[doc(hidden)]
    pub tiles: Arc<dyn TileSources>,
    /// Keys of sealed stores. With keys all stores must be sealed, and new ones are. `None`: the key in `GRIDSTONE_KEY` or
    /// `GRIDSTONE_KEY_FILE`, if one is set when the context is made: it opens sealed stores and seals new ones, and stores
    /// that are not sealed are opened too.
    pub key: Option<Arc<dyn Keys>>,
    /// Whether, and when, arrays that are written to are consolidated in the background.
    pub auto_consolidate: Option<AutoConsolidate>,
    /// How object stores are reached: address, credentials, time limits.
    pub storage_options: StorageOptions,
    /// Folders and URLs under which files of other formats may be read that stores refer to. What lies in the folder of a store, or below,
    /// is always allowed to it. `None`: those in `GRIDSTONE_SOURCES`, separated by `;`.
    pub sources: Option<Vec<String>>,
    /// Where events of the stores go: commits, merges, conflicts. `None`: nowhere, at no cost.
    pub events: Option<Arc<dyn Events>>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            memory_budget: 1 << 30,
            threads: None,
            cache: 256 << 20,
            durability: Durability::Full,
            lease_after_us: 60_000_000,
            lease_term_us: 600_000_000,
            clock: Arc::new(SystemClock),
            fold_versions: limits::FOLD_VERSIONS,
            blocks: BlockCells::default(),
            tiles: Arc::new(AsStored),
            key: None,
            auto_consolidate: None,
            storage_options: StorageOptions::default(),
            sources: None,
            events: None,
        }
    }
}

/// The environment variable with the prefixes of sources.
const SOURCES: &str = "GRIDSTONE_SOURCES";

fn sources_of(options: &Options) -> Vec<String> {
    let named = || std::env::var(SOURCES).unwrap_or_default();
    let from_environment = || named().split(';').filter(|p| !p.trim().is_empty()).map(str::to_owned).collect();
    options.sources.clone().unwrap_or_else(from_environment)
}

/// Threads, budget and cache; cloning shares them. One is enough for a program.
///
/// ```
/// use gridstone::{Context, Options};
///
/// # fn main() -> gridstone::Result<()> {
/// let context = Context::new(&Options { memory_budget: 256 << 20, threads: Some(2), ..Options::default() })?;
/// assert_eq!(context.threads(), 2);
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Context {
    pub(super) pool: Arc<Pool>,
    pub(super) budget: Arc<Budget>,
    pub(super) cache: Arc<dyn Cache>,
    pub(super) arena: Arc<Arena>,
    pub(super) durability: Durability,
    pub(super) blocks: BlockCells,
    pub(super) tiles: Arc<dyn TileSources>,
    pub(super) sealing: Sealing,
    pub(super) leases: LeaseTerms,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) fold_versions: u64,
    pub(super) auto: Option<AutoConsolidate>,
    pub(super) storage_options: Arc<StorageOptions>,
    pub(super) foreign: Arc<ForeignFiles>,
    pub(super) upkeep: Arc<Upkeep>,
    pub(super) notices: Arc<Notices>,
    pub(super) events: Option<Arc<dyn Events>>,
}

impl Context {
    /// What reads through `files` of the store at this place ([`crate::store::Store::place`]).
    pub(super) fn read_context(&self, place: Id, files: Arc<dyn Files>, call: &Call) -> ReadContext {
        ReadContext {
            place,
            pool: self.pool.clone(),
            files,
            tiles: self.tiles.clone(),
            cache: self.cache.clone(),
            budget: self.budget.clone(),
            arena: self.arena.clone(),
            counters: Arc::new(Counters::default()),
            cancel: call.cancel.clone(),
            progress: call.progress.clone(),
        }
    }

    /// A context; an Input error says which option is impossible, an Access error that the environment names a key and gives
    /// none. No thread is started before there is work.
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
            tiles: options.tiles.clone(),
            sealing: sealing(options.key.as_ref())?,
            leases: LeaseTerms { after_us: options.lease_after_us, term_us: options.lease_term_us }.check()?,
            clock: options.clock.clone(),
            fold_versions: options.fold_versions,
            auto: options.auto_consolidate,
            storage_options: Arc::new(options.storage_options.clone()),
            foreign: Arc::new(ForeignFiles::new(sources_of(options), options.storage_options.clone())?),
            upkeep: Arc::default(),
            notices: Arc::default(),
            events: options.events.clone(),
        })
    }

    /// The same context, whose writers fold the log when its newest root is `versions` behind: for tests, which want
    /// to see many folds. No reader notices.
    #[must_use]
    pub fn with_fold_versions(self, versions: u64) -> Self {
        Self { fold_versions: versions, ..self }
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

    /// What callers should hear of although nothing failed; each text is given once.
    pub fn take_notices(&self) -> Vec<String> {
        self.notices.take()
    }

    /// The most scratch memory that was in use at once, in bytes.
    pub fn peak_bytes(&self) -> u64 {
        self.budget.peak_bytes()
    }
}

/// Given keys are for sealed stores only; the environment's is for those that are.
fn sealing(given: Option<&Arc<dyn Keys>>) -> Result<Sealing> {
    if let Some(keys) = given {
        return Ok(Sealing::Always(Arc::new(KeyRing::new(Arc::clone(keys)))));
    }
    let found = key_from_environment()?;
    Ok(found.map_or(Sealing::Without, |key| Sealing::AsFound(Arc::new(KeyRing::new(Arc::new(key))))))
}
