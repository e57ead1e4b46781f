//! What a read or a write is given.

use crate::base::limits::BlockCells;
use crate::base::{Budget, Cache, Cancel, Counters, Entropy, Error, Files, Id, Progress, Result};
use crate::codec::Effort;
use crate::fragment::{Description, TileSources};
use crate::runtime::{Arena, LruCache, Pool};
use crate::schema::{Attribute, KeyRange, Region, Schema, Subarray, key};
use crate::tile::Column;
use std::borrow::Cow;
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
    /// The store and where it lies, for cache keys.
    pub place: Id,
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
        write!(f, "ReadContext({})", self.place)
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
    /// Several boxes in it, of a sparse array: cells in none of them are not wanted.
    pub region: Option<Arc<Region>>,
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
        Ok(Self::of_box(sub, attrs, order))
    }

    /// The request for the attributes at some places of the cells of a box.
    pub(super) fn of_box(sub: Subarray, attrs: Vec<usize>, order: ReadOrder) -> Self {
        Self { sub, region: None, attrs, order }
    }

    /// Where the cells lie that are wanted.
    pub(super) fn area(&self) -> Area<'_> {
        Area { sub: &self.sub, region: self.region.as_deref() }
    }

    /// The permanent numbers of the attributes.
    pub(super) fn attr_ids(&self, schema: &Schema) -> Vec<u32> {
        self.attrs.iter().filter_map(|place| schema.attrs().get(*place)).map(Attribute::id).collect()
    }
}

/// Where the cells of a sparse array lie that are wanted: in a box, and in one of the boxes of a region if there is one.
#[derive(Debug, Clone, Copy)]
pub(super) struct Area<'a> {
    pub(super) sub: &'a Subarray,
    pub(super) region: Option<&'a Region>,
}

impl<'a> Area<'a> {
    /// All of a box.
    pub(super) fn whole(sub: &'a Subarray) -> Self {
        Self { sub, region: None }
    }

    /// Whether a box of these ranges may have a cell of it.
    pub(super) fn touches(self, ranges: impl Iterator<Item = KeyRange> + Clone) -> bool {
        let meets = self.sub.ranges().iter().zip(ranges.clone()).all(|(a, b)| a.lo <= b.hi && b.lo <= a.hi);
        meets && self.region.is_none_or(|region| region.meets(ranges))
    }

    /// Whether all cells in `bounds` belong to it; may be false where they do.
    pub(super) fn covers(self, bounds: &Subarray) -> bool {
        self.sub.covers(bounds) && self.region.is_none_or(|region| region.covers(bounds))
    }

    /// Whether the cell with these keys belongs to it.
    pub(super) fn holds(self, cell: impl Iterator<Item = u64> + Clone) -> bool {
        self.touches(cell.map(|key| KeyRange { lo: key, hi: key }))
    }

    /// Clears the flags of the cells that do not belong to it; `coords` are their keys, a column per dimension.
    pub(super) fn clear_outside(self, coords: &[Vec<u64>], flags: &mut [bool]) {
        for (range, column) in self.sub.ranges().iter().zip(coords) {
            flags.iter_mut().zip(column).for_each(|(flag, key)| *flag &= range.contains(*key));
        }
        if let Some(region) = self.region {
            region.clear_outside(&coords.iter().map(|keys| Some(keys.as_slice())).collect::<Vec<_>>(), flags);
        }
    }

    /// Along which dimensions coordinates in `bounds` have to be looked at to know which cells belong to it.
    pub(super) fn deciding(self, bounds: &Subarray) -> Vec<bool> {
        let (sub, several) = self.within(bounds);
        let several = self.region.filter(|_| several).map(|region| region.deciding(bounds)).unwrap_or_default();
        let ends = bounds.ranges().iter().zip(sub.ranges());
        let cut = |(bounds, range): (&KeyRange, &KeyRange)| bounds.lo < range.lo || range.hi < bounds.hi;
        ends.map(cut).enumerate().map(|(axis, cut)| cut || several.get(axis) == Some(&true)).collect()
    }

    /// As [`Area::clear_outside`], of coordinates as they are stored, those in `coords` from row `from` on, which are to lie in `bounds`; there are
    /// those that decide. Gives the number of the first dimension along which one does not lie there.
    pub(super) fn clear_stored(
        self,
        schema: &Schema,
        bounds: &Subarray,
        (coords, from): (&[Option<&Column>], usize),
        flags: &mut [bool],
    ) -> Result<Option<usize>> {
        let (sub, several) = self.within(bounds);
        let mut keys = Vec::new();
        let ranges = bounds.ranges().iter().zip(sub.ranges());
        for (number, ((column, dim), (bounds, range))) in coords.iter().zip(schema.dims()).zip(ranges).enumerate() {
            let Some(column) = column else {
                keys.push(None);
                continue;
            };
            let width = dim.datatype().width().unwrap_or(1);
            let values = column.view().values().get(from * width..(from + flags.len()) * width).unwrap_or_default();
            if !key::mark(dim.datatype(), values, *bounds, *range, flags) {
                return Ok(Some(number));
            }
            if several {
                keys.push(Some(key::encode(dim.datatype(), values)?));
            }
        }
        if let Some(region) = self.region.filter(|_| several) {
            region.clear_outside(&keys.iter().map(|keys| keys.as_deref()).collect::<Vec<_>>(), flags);
        }
        Ok(None)
    }

    /// A box that holds what belongs to it of `bounds`, and whether cells in both may not belong to it.
    fn within(self, bounds: &Subarray) -> (Cow<'a, Subarray>, bool) {
        let Some(region) = self.region else { return (Cow::Borrowed(self.sub), false) };
        let one = region.part(bounds).and_then(|part| part.intersect(self.sub));
        one.map_or((Cow::Borrowed(self.sub), true), |one| (Cow::Owned(one), false))
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
