//! Small sparse fragments of an array, decoded once and held: a thousand of them cost a read little more than none.
//!
//! The overlay of an array is kept in the cache and extended with the fragments that a read finds missing; it is begun
//! anew only where it would grow too large, or a sorted copy fails. It may hold fragments that a snapshot does not have: every read says which are live for it. The cells of a
//! fragment lie in global order, so a read finds those of its box by binary search, fragment by fragment, and sorts only
//! them: opening an array never sorts what is not asked for.
//!
//! Where many of the missing ones lie in one pack that has a sorted copy ([`sorted_copy::format`]) that is held in their place, and of
//! it the blocks that reads touched. What a read needs of a copy is read before anything is answered from it; a copy that fails is
//! passed over from then on.

mod held;
mod small;
pub(super) mod sorted_copy;
mod values;

pub(super) use held::HeldRows;

use super::block::masks::Masks;
use super::block::open::open_all;
use super::overlay::values::held_bytes;
use super::request::{Area, ReadContext, Target};
use crate::base::{CacheKey, Counters, ErrorKind, FileRef, Id, Result};
use crate::fragment::{Description, FragmentKind};
use crate::schema::{Attribute, Dimension, Extent, KeyRange, Order, Schema, Subarray};
use crate::tile::{CellKeys, Column, KeyLayout, unravel};
use small::SmallFragment;
use sorted_copy::format::MEMBERS_MIN;
use sorted_copy::{Found, SortedCopy};
use std::cmp::Ordering;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use values::{Live, Values};

/// One cell, or one deleted cell, of an overlay.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The source's place in the overlay.
    pub(super) source: u32,
    /// The row in that source.
    pub(super) row: u32,
}

/// The small fragments of an array, some of them as the sorted copies of their packs.
#[derive(Debug, Clone, Default)]
pub(super) struct Overlay {
    sources: Vec<Arc<HeldRows>>,
    /// Fragments that are held alone.
    places: HashMap<Id, u32>,
    /// Fragments in sorted copies, by the place of the copy and their number in it.
    members: HashMap<Id, (u32, u16)>,
    /// Packs whose copies are held, or are none.
    packs: HashSet<Id>,
}

/// The live cells of an overlay in a box, by ascending (key, order, row).
#[derive(Debug)]
pub(super) struct LiveCells {
    pub(super) keys: CellKeys,
    pub(super) entries: Vec<Entry>,
}

/// The overlay and which of its rows belong to the snapshot being read.
#[derive(Debug)]
pub(super) struct LiveOverlay {
    overlay: Arc<Overlay>,
    live: Vec<Live>,
    /// The masks over its fragments.
    masks: Masks,
}

/// For each space tile that `sub` touches the keys of its first and last cell in `sub`, in global order; `None` if the
/// tiles are many or without known ends, or keys are long. In one tile the cells of a box lie between those of its corners.
fn tile_ends(schema: &Schema, layout: &KeyLayout, sub: &Subarray) -> Option<Vec<(u128, u128)>> {
    if schema.options().cell_order == Order::Hilbert {
        return None;
    }
    let tiles = |(dim, range): (&Dimension, &KeyRange)| (dim.tile_of(range.lo), dim.tile_of(range.hi));
    let spans: Vec<(u64, u64)> = schema.dims().iter().zip(sub.ranges()).map(tiles).collect();
    let count = spans.iter().fold(1u128, |n, (lo, hi)| n.saturating_mul(u128::from(hi - lo) + 1));
    // Of tiles along a float dimension only the numbers are known, not the first and last coordinate.
    let unknown = |(dim, (lo, hi)): (&Dimension, &(u64, u64))| lo < hi && matches!(dim.extent(), Extent::Length(_));
    if count > TILES_SEARCHED_MAX || schema.dims().iter().zip(&spans).any(unknown) {
        return None;
    }
    let shape: Vec<u64> = spans.iter().map(|(lo, hi)| hi - lo + 1).collect();
    let mut ends = Vec::with_capacity(count as usize);
    for number in 0..count as u64 {
        let tile = unravel(number, &shape, Order::Row);
        let mut corners: Vec<(u64, u64)> = Vec::with_capacity(spans.len());
        for (((dim, range), (lo, _)), offset) in schema.dims().iter().zip(sub.ranges()).zip(&spans).zip(tile) {
            let clipped = dim.tile_range(lo + offset).intersect(*range)?;
            corners.push((clipped.lo, clipped.hi));
        }
        let corner = |dim: usize| corners.get(dim).copied().unwrap_or((0, 0));
        ends.push((layout.key(|d| corner(d).0)?, layout.key(|d| corner(d).1)?));
    }
    // In global order, so that the rows found ascend.
    ends.sort_unstable();
    Some(ends)
}

/// Whether a fragment is one for the overlay.
pub(super) fn is_small(description: &Description) -> bool {
    matches!(description.kind, FragmentKind::Sparse | FragmentKind::Tombstones) && description.is_small()
}

/// Bytes that the small fragments of `target` take when they are held, `None` if that is more than an overlay may.
pub(super) fn small_bytes(context: &ReadContext, target: &Target) -> Option<u64> {
    let width = target.row_bytes();
    let small = target.fragments.iter().filter(|d| is_small(d));
    let needed = small.fold(0u64, |sum, d| sum.saturating_add(held_bytes(d, width)));
    (needed <= context.overlay_bytes()).then_some(needed)
}

/// The overlay over the small fragments of `target`, `None` if there is none or they pass a quarter of the budget. It is to be asked
/// about cells in one of `boxes`, and these attributes (permanent numbers).
pub(super) fn live_overlay(
    context: &ReadContext,
    target: &Target,
    boxes: &[Subarray],
    attrs: &[u32],
) -> Result<Option<LiveOverlay>> {
    let small: Vec<&Arc<Description>> = target.fragments.iter().filter(|d| is_small(d)).collect();
    let width = target.row_bytes();
    let Some(needed) = small_bytes(context, target).filter(|_| !small.is_empty()) else { return Ok(None) };
    let masked: HashSet<Id> = target.fragments.iter().filter_map(|d| d.over).collect();
    let key = || CacheKey { place: context.place, what: "overlay", id: target.array, version: 0 };
    let mut held = context.cache.get(&key()).and_then(|held| held.downcast::<Overlay>().ok());
    let mut passed: HashSet<Id> = HashSet::new();
    loop {
        let missing = |overlay: &Overlay| -> Vec<Arc<Description>> {
            small.iter().filter(|d| !overlay.holds(d, &masked)).map(|d| (*d).clone()).collect()
        };
        let overlay = match held {
            Some(overlay) if missing(&overlay).is_empty() => overlay,
            held => {
                let base = held.filter(|overlay| overlay.size_bytes(width) + needed <= context.overlay_bytes());
                let mut base = base.as_deref().cloned().unwrap_or_default();
                base.packs.extend(&passed);
                let missing = missing(&base);
                let overlay = Arc::new(base.extended(context, target, missing, &masked)?);
                context.cache.put(key(), overlay.clone(), overlay.size_bytes(width));
                overlay
            }
        };
        let live = overlay.live(&small, &masked);
        let failed = overlay.prepare(context, &live, boxes, attrs)?;
        if failed.is_empty() {
            return Ok(Some(LiveOverlay { overlay, live, masks: Masks::load(context, &target.fragments)? }));
        }
        held = Some(Arc::new(overlay.without(&failed)));
        passed.extend(failed);
    }
}

impl Overlay {
    /// Adds a source.
    fn hold(&mut self, source: Arc<HeldRows>) {
        let place = self.sources.len() as u32;
        match source.as_ref() {
            HeldRows::Small(small) => {
                self.places.insert(small.fragment.description().id, place);
            }
            HeldRows::Sorted(copy) => {
                self.packs.insert(copy.pack());
                let numbered = copy.members().iter().zip(0u16..);
                self.members.extend(numbered.map(|(member, number)| (member.id, (place, number))));
            }
        }
        self.sources.push(source);
    }

    /// Adds small fragments, each held alone.
    fn hold_alone(&mut self, context: &ReadContext, target: &Target, small: Vec<Arc<Description>>) -> Result<()> {
        let fragments = open_all(context, &target.schema, small)?;
        let load = |fragment| SmallFragment::load(context, &target.schema, fragment);
        let loaded = context.pool.map(fragments, context.cancel.as_ref(), load)?;
        loaded.into_iter().for_each(|small| self.hold(Arc::new(HeldRows::Small(small))));
        Ok(())
    }

    fn size_bytes(&self, width: u64) -> u64 {
        self.sources.iter().fold(0, |sum, source| sum.saturating_add(source.size_bytes(width)))
    }

    /// Whether the rows of a fragment can be told from here: a mask tells them by their places in the fragment.
    fn holds(&self, d: &Description, masked: &HashSet<Id>) -> bool {
        self.places.contains_key(&d.id) || self.member(d, masked).is_some()
    }

    /// The sorted copy that tells the rows of a fragment: its place, and the fragment's number in it.
    fn member(&self, d: &Description, masked: &HashSet<Id>) -> Option<(u32, u16)> {
        let (place, number) = self.members.get(&d.id).copied().filter(|_| !masked.contains(&d.id))?;
        let HeldRows::Sorted(copy) = self.sources.get(place as usize)?.as_ref() else { return None };
        // What a version says of a fragment is what counts.
        copy.members().get(number as usize).filter(|member| member.order == d.order).map(|_| (place, number))
    }

    /// This and the fragments that it is missing.
    fn extended(
        mut self,
        context: &ReadContext,
        target: &Target,
        missing: Vec<Arc<Description>>,
        masked: &HashSet<Id>,
    ) -> Result<Self> {
        self.add_copies(context, target, &missing, masked)?;
        let alone: Vec<Arc<Description>> = missing.into_iter().filter(|d| !self.holds(d, masked)).collect();
        self.hold_alone(context, target, alone)?;
        Ok(self)
    }

    /// Adds the sorted copies of packs that many of the missing fragments lie in.
    fn add_copies(
        &mut self,
        context: &ReadContext,
        target: &Target,
        missing: &[Arc<Description>],
        masked: &HashSet<Id>,
    ) -> Result<()> {
        // Where a look is a request, none is made for what is not written there.
        if !context.files.is_near() {
            return Ok(());
        }
        let mut lying: HashMap<Id, usize> = HashMap::new();
        for d in missing.iter().filter(|d| d.kind == FragmentKind::Sparse && !masked.contains(&d.id)) {
            if let FileRef::Data(pack) = d.location.file {
                *lying.entry(pack).or_default() += 1;
            }
        }
        let mut packs: Vec<Id> =
            lying.into_iter().filter(|(_, count)| *count >= MEMBERS_MIN).map(|(id, _)| id).collect();
        packs.retain(|pack| !self.packs.contains(pack));
        let (width, mut held) = (target.row_bytes(), self.size_bytes(target.row_bytes()));
        let open = |pack: Id| Ok((pack, SortedCopy::open(context, &target.schema, target.array, pack)));
        for (pack, found) in context.pool.map(packs, context.cancel.as_ref(), open)? {
            let copy = match found {
                Found::Copy(copy) => *copy,
                Found::Never => {
                    self.packs.insert(pack);
                    continue;
                }
                Found::NotNow => continue,
            };
            // At worst all of it is decoded.
            let bytes = (copy.len() as u64).saturating_mul(width);
            if held.saturating_add(bytes) > context.overlay_bytes() {
                continue;
            }
            held += bytes;
            self.hold(Arc::new(HeldRows::Sorted(copy)));
        }
        Ok(())
    }

    /// Which rows belong to a version that has these small fragments, by source.
    fn live(&self, small: &[&Arc<Description>], masked: &HashSet<Id>) -> Vec<Live> {
        let mut live = vec![Live::None; self.sources.len()];
        for d in small {
            if let Some(place) = self.places.get(&d.id) {
                if let Some(slot) = live.get_mut(*place as usize) {
                    *slot = Live::All;
                }
            } else if let Some((place, number)) = self.member(d, masked)
                && let (Some(slot), Some(HeldRows::Sorted(copy))) =
                    (live.get_mut(place as usize), self.sources.get(place as usize).map(Arc::as_ref))
            {
                slot.add_member(number, copy.members().len());
            }
        }
        live
    }

    /// Reads what will be asked of the sorted copies that are live; gives those that cannot tell.
    fn prepare(&self, context: &ReadContext, live: &[Live], boxes: &[Subarray], attrs: &[u32]) -> Result<HashSet<Id>> {
        let copies = self.sources.iter().zip(live).filter(|(_, live)| **live != Live::None);
        let copies = copies.filter_map(|(source, _)| match source.as_ref() {
            HeldRows::Sorted(copy) => Some(copy),
            HeldRows::Small(_) => None,
        });
        let read = |copy: &SortedCopy| match copy.prepare(context, boxes, attrs) {
            Ok(()) => Ok(None),
            Err(e) if matches!(e.kind(), ErrorKind::Cancelled | ErrorKind::Budget) => Err(e),
            Err(_) => Ok(Some(copy.pack())),
        };
        let failed = context.pool.map(copies.collect(), context.cancel.as_ref(), read)?;
        Ok(failed.into_iter().flatten().collect())
    }

    /// This without the sorted copies of these packs, which are not looked for again.
    fn without(&self, failed: &HashSet<Id>) -> Self {
        let mut left = Self { packs: self.packs.clone(), ..Self::default() };
        let fails = |source: &HeldRows| matches!(source, HeldRows::Sorted(copy) if failed.contains(&copy.pack()));
        let sound = self.sources.iter().filter(|source| !fails(source.as_ref()));
        sound.for_each(|source| left.hold(Arc::clone(source)));
        left
    }
}

/// A box over more space tiles than this is looked for cell by cell.
const TILES_SEARCHED_MAX: u128 = 16;

impl LiveOverlay {
    /// All fragments of `target`, which are small, each held alone, under these masks; without a cache.
    pub(super) fn of_all(context: &ReadContext, target: &Target, masks: Masks) -> Result<Self> {
        let mut overlay = Overlay::default();
        overlay.hold_alone(context, target, target.fragments.clone())?;
        let live = vec![Live::All; overlay.sources.len()];
        Ok(Self { overlay: Arc::new(overlay), live, masks })
    }

    /// Whether there is no live cell in `sub`, for all that is known without a look at cells.
    pub(super) fn is_empty_in(&self, sub: &Subarray) -> bool {
        self.touching(sub).is_empty()
    }

    /// What it holds, by place.
    pub(super) fn sources(&self) -> &[Arc<HeldRows>] {
        &self.overlay.sources
    }

    /// What an entry is a row of.
    pub(super) fn source(&self, entry: Entry) -> Option<&Arc<HeldRows>> {
        self.overlay.sources.get(entry.source as usize)
    }

    /// The sources that may hold a live cell of `sub`, oldest order first, with their places.
    fn touching(&self, sub: &Subarray) -> Vec<(u32, &Arc<HeldRows>, &Live)> {
        let all = self.overlay.sources.iter().zip(&self.live).zip(0u32..);
        let touching = all.filter(|((held, live), _)| **live != Live::None && held.bounds().intersects(sub));
        let mut found: Vec<_> = touching.map(|((held, live), place)| (place, held, live)).collect();
        found.sort_by_key(|(_, held, _)| held.least_order());
        found
    }

    /// The live cells in `area`.
    pub(super) fn cells_in(&self, context: &ReadContext, schema: &Schema, area: Area<'_>) -> Result<LiveCells> {
        let (layout, sub) = (KeyLayout::new(schema), area.sub);
        let ends = tile_ends(schema, &layout, sub);
        let none: Vec<&[u64]> = vec![&[]; schema.ndim()];
        let (mut keys, mut entries, mut copies) = (layout.keys(&none), Vec::new(), false);
        for (source, held, live) in self.touching(sub) {
            context.cancel.check()?;
            let mut rows = held.rows_in(context, sub, (&layout, ends.as_deref()), live)?;
            if !self.masks.is_empty() {
                rows.retain(|row| !held.is_masked(*row, &self.masks));
            }
            if area.region.is_some() {
                rows.retain(|row| area.holds((0..schema.ndim()).filter_map(|dim| held.coordinate(dim, *row))));
            }
            if !rows.is_empty() {
                keys.append(&held.keys(&layout, &rows));
            }
            copies |= matches!(held.as_ref(), HeldRows::Sorted(_));
            entries.extend(rows.into_iter().map(|row| Entry { source, row }));
        }
        // Oldest first, so that cells of one place stay in order of their age.
        let (keys, sorted) = keys.sort(context.pool.as_ref(), context.cancel.as_ref())?;
        let mut entries: Vec<Entry> = sorted.iter().filter_map(|at| entries.get(*at as usize).copied()).collect();
        if copies {
            self.by_age(&keys, &mut entries);
        }
        Ok(LiveCells { keys, entries })
    }

    /// Puts entries of one place in order of their age: fragments in a sorted copy may be older and newer than others.
    fn by_age(&self, keys: &CellKeys, entries: &mut [Entry]) {
        let mut from = 0;
        while from < entries.len() {
            let same = (from + 1..entries.len()).take_while(|at| keys.compare(*at, keys, from) == Ordering::Equal);
            let to = from + 1 + same.count();
            if let Some(place) = entries.get_mut(from..to).filter(|place| place.len() > 1) {
                place.sort_by_key(|e| self.source(*e).map(|held| held.order(e.row)));
            }
            from = to;
        }
    }

    /// Calls `found` with the live rows that have one of these keys, which are in global order and of cells in `sub`: place of the
    /// source, source, place of the key, row. `cell` gives the cell with a key.
    pub(super) fn rows_of(
        &self,
        context: &ReadContext,
        schema: &Schema,
        (keys, sub): (&CellKeys, &Subarray),
        cell: impl Fn(usize) -> Subarray,
        mut found: impl FnMut(u32, &HeldRows, usize, u32),
    ) -> Result<()> {
        let (layout, domain) = (KeyLayout::new(schema), schema.domain());
        for (source, held, live) in self.touching(sub) {
            context.cancel.check()?;
            let few = keys.len() <= SEARCHED_MAX || keys.len() * SEARCHED_SHARE < held.len();
            if few && layout.has_words() {
                for (place, key) in (0..keys.len()).filter_map(|place| Some((place, keys.word(place)?))) {
                    let rows = held.rows_at(context, (&layout, &domain), (&cell(place), key), live)?;
                    rows.into_iter().for_each(|row| found(source, held, place, row));
                }
                continue;
            }
            let rows = held.rows_in(context, sub, (&layout, None), live)?;
            let theirs = held.keys(&layout, &rows);
            // The shorter side is walked, the other one searched.
            let ours_few = keys.len() < theirs.len();
            let (few, many) = if ours_few { (keys, &theirs) } else { (&theirs, keys) };
            let mut next = 0;
            for at in 0..few.len() {
                next = many.lower_bound(next, few, at);
                let same = (next..many.len()).take_while(|i| many.compare(*i, few, at) == Ordering::Equal);
                for other in same {
                    let (place, row) = if ours_few { (at, other) } else { (other, at) };
                    rows.get(row).into_iter().for_each(|row| found(source, held, place, *row));
                }
            }
        }
        Ok(())
    }

    /// The values of an attribute at cells, each the place of a source and a row of it.
    pub(super) fn column(&self, context: &ReadContext, attr: &Attribute, cells: &[(u32, u32)]) -> Result<Column> {
        let mut asked: Vec<Vec<u32>> = vec![Vec::new(); self.overlay.sources.len()];
        let mut places = Vec::with_capacity(cells.len());
        for (source, row) in cells {
            let Some(rows) = asked.get_mut(*source as usize) else { continue };
            places.push((*source, rows.len(), *row));
            rows.push(*row);
        }
        let mut found: Vec<Option<Values>> = Vec::with_capacity(asked.len());
        for (held, rows) in self.overlay.sources.iter().zip(&asked) {
            found.push(if rows.is_empty() { None } else { held.values(context, attr, rows)? });
        }
        let at = |(source, place, row): (u32, usize, u32)| {
            let values = found.get(source as usize).and_then(Option::as_ref);
            (source, values.map_or(row, |values| values.at(place, row)))
        };
        let cells: Vec<(u32, u32)> = places.into_iter().map(at).collect();
        let views: Vec<_> = found.iter().map(|values| values.as_ref().map(|v| v.column.view())).collect();
        Ok(Column::gathered(&views, &cells, Column::blank(attr).view()))
    }

    /// Counts the entries that a read applied.
    pub(super) fn count(&self, context: &ReadContext, entries: usize) {
        Counters::add(&context.counters.overlay_entries, entries as u64);
    }
}

/// Cells that are fewer than this share of a source's are searched one by one.
const SEARCHED_SHARE: usize = 16;

/// So few cells are always searched one by one, unless their keys are long.
pub(super) const SEARCHED_MAX: usize = 64;

/// The fragments to be opened one by one: not those of the overlay, nor what has no bytes, nor what `wanted` leaves out.
pub(super) fn large_fragments(
    target: &Target,
    overlay: bool,
    wanted: impl Fn(&Description) -> bool,
) -> Vec<Arc<Description>> {
    let in_file = |d: &Description| d.kind.holds_cells() || d.kind == FragmentKind::Tombstones;
    let opened = |d: &&Arc<Description>| in_file(d) && (!overlay || !is_small(d));
    target.fragments.iter().filter(opened).filter(|d| wanted(d)).cloned().collect()
}
