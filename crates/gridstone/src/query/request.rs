//! What a read or a write is given.

use crate::base::limits::BlockCells;
use crate::base::{Budget, Cache, Cancel, Counters, Entropy, Error, Files, Id, Progress, Result};
use crate::codec::Effort;
use crate::fragment::{Description, TileSources};
use crate::runtime::{Arena, LruCache, Pool};
use crate::schema::{Attribute, Schema, Subarray};
use std::sync::Arc;

/// The order of a result: of its cells, or of a dense result's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ReadOrder {
    /// Row-major over the box: the last dimension varies fastest.
    Row,
    /// Column-major over the box.
    Col,
    /// The array's global order.
    Global,
    /// Whatever is quickest.
    Any,
}

impl ReadOrder {
    /// The order named "row", "col", "global" or "any".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "row" => Ok(Self::Row),
            "col" => Ok(Self::Col),
            "global" => Ok(Self::Global),
            "any" => Ok(Self::Any),
            other => Err(Error::input(format!(
                "unknown order {other:?}; an order is \"row\", \"col\", \"global\" or \"any\""
            ))),
        }
    }
}

/// What reads share: threads, files, cache, budget, counters and a way to stop.
#[derive(Clone)]
pub struct ReadContext {
    /// The store's id, for cache keys.
    pub store: Id,
    /// Threads.
    pub pool: Arc<Pool>,
    /// The store's files.
    pub files: Arc<dyn Files>,
    /// What gives the tiles of dense fragments.
    pub tiles: Arc<dyn TileSources>,
    /// Decoded indexes and overlays.
    pub cache: Arc<dyn Cache>,
    /// Scratch memory.
    pub budget: Arc<Budget>,
    /// Memory for results.
    pub arena: Arc<Arena>,
    /// What this query did.
    pub counters: Arc<Counters>,
    /// Whether to go on.
    pub cancel: Arc<dyn Cancel>,
    /// Told the cells done.
    pub progress: Arc<dyn Progress>,
}

impl std::fmt::Debug for ReadContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "ReadContext({})", self.store)
    }
}

impl ReadContext {
    /// The outcome of a read; an error says what it means to the reader (see [`Files::explain`]).
    pub fn explain_missing<T>(&self, outcome: Result<T>) -> Result<T> {
        outcome.map_err(|e| self.files.explain(e))
    }

    /// The same with a cache of its own: for reads of what nobody else will ask for, and what is to be let go of afterwards.
    #[must_use]
    pub fn with_private_cache(&self) -> Self {
        let limit = self.cache.limit_bytes().min(self.budget.limit_bytes() / 4);
        Self { cache: Arc::new(LruCache::new(limit)), ..self.clone() }
    }

    /// The same with at most `limit_bytes` of the budget, and a cache and buffers of its own to match.
    #[must_use]
    pub fn with_budget(&self, limit_bytes: u64) -> Self {
        let budget = Arc::new(Budget::part_of(&self.budget, limit_bytes));
        let arena = Arc::new(Arena::new(budget.limit_bytes() / 8));
        Self { budget, arena, ..self.clone() }.with_private_cache()
    }

    /// Bytes that one batch of decoded cells may take: an eighth of the budget, so that encoded, decoded and merged
    /// copies of it fit together, at least one block's worth.
    pub(super) fn batch_bytes(&self) -> u64 {
        (self.budget.limit_bytes() / 8).max(64 * 1024)
    }

    /// Bytes of small fragments that may be held decoded: a quarter of the budget, and what the cache keeps.
    pub(super) fn overlay_bytes(&self) -> u64 {
        (self.budget.limit_bytes() / 4).min(self.cache.limit_bytes())
    }
}

/// What is read: an array at a version.
#[derive(Debug, Clone)]
pub struct Target {
    /// The array.
    pub array: Id,
    /// Its schema at that version.
    pub schema: Arc<Schema>,
    /// Its fragments that may touch the box, oldest order first.
    pub fragments: Vec<Arc<Description>>,
}

impl Target {
    /// Bytes that a decoded row takes, about. What variable-length values take is guessed from the stored bytes of the
    /// fragments, at a compression of four.
    pub fn row_bytes(&self) -> u64 {
        self.schema.ndim() as u64 * 8 + 16 + self.cell_bytes()
    }

    /// The same of a cell of a dense box, which has its place and no coordinates.
    pub fn cell_bytes(&self) -> u64 {
        let attrs = self.schema.attrs();
        let fixed: usize = attrs.iter().map(|a| a.datatype().width().unwrap_or(8) + usize::from(a.nullable())).sum();
        let stored = self.fragments.iter().map(|d| d.location.len / d.cells.max(1)).max().unwrap_or(0);
        let varied = if self.has_varied() { stored.saturating_mul(4).clamp(24, 1 << 30) } else { 0 };
        fixed as u64 + varied
    }

    /// Whether some attribute's values vary in length, so that `row_bytes` is but a guess.
    pub(super) fn has_varied(&self) -> bool {
        self.schema.attrs().iter().any(|a| a.datatype().is_var())
    }
}

/// What a read asks for.
#[derive(Debug, Clone)]
pub struct Request {
    /// The box, inside the domain.
    pub sub: Subarray,
    /// The attributes' places in the schema.
    pub attrs: Vec<usize>,
    /// The order.
    pub order: ReadOrder,
}

impl Request {
    /// A request checked against `schema`; attributes by name (`None`: all).
    pub fn new(schema: &Schema, sub: Option<Subarray>, attrs: Option<&[String]>, order: ReadOrder) -> Result<Self> {
        if let Some(sub) = sub.as_ref().filter(|sub| **sub != schema.domain()) {
            schema.check_inside(sub)?;
        }
        let sub = sub.unwrap_or_else(|| schema.domain());
        let attrs = match attrs {
            None => (0..schema.attrs().len()).collect(),
            Some([]) => {
                return Err(Error::input("a read needs at least one attribute; leave attrs out for all of them"));
            }
            Some(names) => names.iter().map(|n| schema.attr(n).map(|(i, _)| i)).collect::<Result<_>>()?,
        };
        Ok(Self { sub, attrs, order })
    }

    /// The permanent numbers of the attributes.
    pub(super) fn attr_ids(&self, schema: &Schema) -> Vec<u32> {
        self.attrs.iter().filter_map(|place| schema.attrs().get(*place)).map(Attribute::id).collect()
    }
}

/// What writes share.
#[derive(Clone)]
pub struct WriteContext<'a> {
    /// Threads.
    pub pool: &'a Pool,
    /// The store's files.
    pub files: Arc<dyn Files>,
    /// Ids of new fragments.
    pub entropy: &'a dyn Entropy,
    /// Scratch memory.
    pub budget: &'a Budget,
    /// Memory that is used again.
    pub arena: &'a Arc<Arena>,
    /// Whether to go on.
    pub cancel: &'a dyn Cancel,
    /// Told the cells done.
    pub progress: &'a dyn Progress,
    /// The number of the schema that the array has now.
    pub schema_number: u32,
    /// Whether a small fragment may be kept for the record's body instead of a file.
    pub inline: bool,
    /// Writes of at most so many cells choose their filters in little time.
    pub quick_cells_max: usize,
    /// Cells per block at most.
    pub blocks: BlockCells,
}

impl WriteContext<'_> {
    /// How long the filters of a write of `cells` cells may be looked for.
    pub(super) fn effort(&self, cells: usize) -> Effort {
        if cells <= self.quick_cells_max { Effort::Quick } else { Effort::Full }
    }
}

impl std::fmt::Debug for WriteContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "WriteContext({} threads)", self.pool.threads())
    }
}

/// Memory of the budget that is given back when this goes.
pub(super) struct BudgetHold<'a>(&'a Budget, u64);

impl<'a> BudgetHold<'a> {
    pub(super) fn take(budget: &'a Budget, bytes: u64) -> Self {
        budget.take(bytes);
        Self(budget, bytes)
    }
}

impl Drop for BudgetHold<'_> {
    fn drop(&mut self) {
        self.0.give(self.1);
    }
}

/// Reads whose blocks hold no more than this are done where they are asked for: waking other threads would take longer.
pub(super) const ALONE_BYTES_MAX: u64 = 1 << 20;

/// The attributes asked for.
pub(super) fn attrs_of<'a>(schema: &'a Schema, request: &'a Request) -> impl Iterator<Item = &'a Attribute> {
    request.attrs.iter().filter_map(|p| schema.attrs().get(*p))
}

/// Whether the cells of an attribute can be delivered: each has its place, and any bytes are a value.
pub(super) fn is_deliverable(attr: &Attribute) -> bool {
    attr.datatype().width().is_some() && !attr.nullable() && !attr.datatype().holds_bools()
}
