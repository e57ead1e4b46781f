//! Small sparse fragments of an array, decoded once and held sorted by place: a thousand of them cost a read little
//! more than none.
//!
//! An entry is (key, fragment, row), tombstones included, in ascending order of (key, order). The overlay of an array
//! is kept in the cache and extended with the fragments that a read finds missing; it is never rebuilt. It may hold
//! fragments that a snapshot does not have: every read says which are live for it.

use super::fetch::{Want, fetch};
use super::open::open_all;
use super::{ReadContext, Target};
use crate::base::{CacheKey, Counters, Error, Id, Result, limits};
use crate::fragment::{Description, Fragment, FragmentKind, FragmentOrder, Role};
use crate::schema::{Schema, key};
use crate::tile::{CellKeys, Column, KeyLayout};
use std::collections::HashMap;
use std::sync::{Arc, OnceLock};

/// A small fragment: coordinates decoded, attributes decoded when first asked for.
#[derive(Debug)]
pub(super) struct SmallFragment {
    pub(super) fragment: Arc<Fragment>,
    /// Coordinates as ordered keys, a column per dimension.
    pub(super) coords: Vec<Vec<u64>>,
    keys: CellKeys,
    columns: Vec<OnceLock<Arc<Column>>>,
}

/// One cell, or one deleted cell, of a small fragment.
#[derive(Debug, Clone, Copy)]
pub(super) struct Entry {
    /// The fragment's place in the overlay.
    pub(super) fragment: u32,
    /// The row in that fragment.
    pub(super) row: u32,
}

/// The small fragments of an array, merged.
#[derive(Debug)]
pub(super) struct Overlay {
    pub(super) fragments: Vec<Arc<SmallFragment>>,
    places: HashMap<Id, u32>,
    pub(super) keys: CellKeys,
    pub(super) entries: Vec<Entry>,
}

/// The overlay and which of its fragments belong to the snapshot being read.
#[derive(Debug)]
pub(super) struct LiveOverlay {
    pub(super) overlay: Arc<Overlay>,
    pub(super) live: Vec<bool>,
}

/// Whether a fragment is one for the overlay.
pub(super) fn is_small(description: &Description) -> bool {
    description.kind != FragmentKind::Dense && description.location.len <= limits::INLINE_BYTES_MAX as u64
}

/// The overlay over the small fragments of `target`, `None` if there is none or they pass a quarter of the budget.
pub(super) fn live_overlay(context: &ReadContext, target: &Target) -> Result<Option<LiveOverlay>> {
    let small: Vec<&Arc<Description>> = target.fragments.iter().filter(|d| is_small(d)).collect();
    let width = target.row_bytes();
    let bytes = |d: &Description| d.cells.saturating_mul(width).saturating_add(d.location.len);
    let needed = small.iter().fold(0u64, |sum, d| sum.saturating_add(bytes(d)));
    if small.is_empty() || needed > context.overlay_bytes() {
        return Ok(None);
    }
    let key = CacheKey { store: context.store, what: "overlay", id: target.array, version: 0 };
    let held = context.cache.get(&key).and_then(|held| held.downcast::<Overlay>().ok());
    let missing: Vec<Arc<Description>> = small
        .iter()
        .filter(|d| held.as_ref().is_none_or(|o| !o.places.contains_key(&d.id)))
        .map(|d| (*d).clone())
        .collect();
    let overlay = match held {
        Some(overlay) if missing.is_empty() => overlay,
        held => {
            let held_bytes: u64 = held.iter().flat_map(|o| &o.fragments).map(|f| bytes(f.fragment.description())).sum();
            let base = held.filter(|_| held_bytes + needed <= context.overlay_bytes());
            let missing = if base.is_some() { missing } else { small.iter().map(|d| (*d).clone()).collect() };
            let overlay = Arc::new(Overlay::extend(base.as_deref(), load(context, target, missing)?));
            context.cache.put(
                key,
                overlay.clone(),
                overlay.fragments.iter().map(|f| bytes(f.fragment.description())).sum(),
            );
            overlay
        }
    };
    let mut live = vec![false; overlay.fragments.len()];
    for place in small.iter().filter_map(|d| overlay.places.get(&d.id)) {
        if let Some(flag) = live.get_mut(*place as usize) {
            *flag = true;
        }
    }
    Ok(Some(LiveOverlay { overlay, live }))
}

fn load(context: &ReadContext, target: &Target, missing: Vec<Arc<Description>>) -> Result<Vec<Arc<SmallFragment>>> {
    let fragments = open_all(context, &target.schema, missing)?;
    let layout = KeyLayout::new(&target.schema);
    context.pool.map(fragments, context.cancel.as_ref(), |fragment| {
        SmallFragment::load(context, &target.schema, &layout, fragment).map(Arc::new)
    })
}

impl SmallFragment {
    fn load(context: &ReadContext, schema: &Schema, layout: &KeyLayout, fragment: Arc<Fragment>) -> Result<Self> {
        let mut coords = Vec::with_capacity(schema.ndim());
        for (dim, number) in schema.dims().iter().zip(0u32..) {
            let column = read_field(context, &fragment, Role::Dimension(number))?;
            let keys = key::encode(dim.datatype(), column.view().values());
            let keys = keys.ok().filter(|keys| keys.iter().all(|k| dim.range().contains(*k)));
            coords.push(keys.ok_or_else(|| {
                Error::corruption(format!("fragment {}: impossible coordinates", fragment.description().id))
            })?);
        }
        let refs: Vec<&[u64]> = coords.iter().map(Vec::as_slice).collect();
        let keys = layout.keys(&refs);
        let columns = fragment.description().attrs.iter().map(|_| OnceLock::new()).collect();
        Ok(Self { fragment, coords, keys, columns })
    }

    /// Its precedence.
    pub(super) fn order(&self) -> FragmentOrder {
        self.fragment.description().order
    }

    /// Whether its rows delete.
    pub(super) fn is_tombstone(&self) -> bool {
        self.fragment.description().kind == FragmentKind::Tombstones
    }

    /// The values of the attribute with this permanent number, `None` if the fragment has none of it.
    pub(super) fn column(&self, context: &ReadContext, attr: u32) -> Result<Option<Arc<Column>>> {
        let Some(place) = self.fragment.description().attrs.iter().position(|a| *a == attr) else { return Ok(None) };
        let Some(slot) = self.columns.get(place) else { return Ok(None) };
        if let Some(column) = slot.get() {
            return Ok(Some(column.clone()));
        }
        let column = Arc::new(read_field(context, &self.fragment, Role::Attribute(attr))?);
        Ok(Some(slot.get_or_init(|| column).clone()))
    }
}

/// All cells of one field of a sparse fragment, in its order.
fn read_field(context: &ReadContext, fragment: &Arc<Fragment>, role: Role) -> Result<Column> {
    let wrong = || Error::corruption(format!("fragment {}: its index is not whole", fragment.description().id));
    let field = fragment.field(role).ok_or_else(wrong)?;
    let described = fragment.root().fields.get(field).ok_or_else(wrong)?;
    let mut wants = Vec::new();
    for stripe in 0..fragment.stripes() {
        let index = fragment.stripe(stripe)?;
        for local in 0..index.tiles() {
            let tile = fragment.first_tile(stripe) + local as u64;
            let cells = index.tile_cells(local).ok_or_else(wrong)?;
            for block in 0..fragment.tile_blocks(tile)? {
                let block = fragment.block(field, tile, block, fragment.sparse_block_cells(cells, block))?;
                wants.push(Want { fragment: fragment.clone(), block });
            }
        }
    }
    let mut all = Column::empty(described.datatype, described.nullable);
    for column in fetch(context, &wants, false)? {
        all.append(column.view(), 0, column.len());
    }
    if all.len() as u64 != fragment.root().cells {
        return Err(wrong());
    }
    Ok(all)
}

impl Overlay {
    /// `base` with more fragments. Sorting is stable and finds the sorted runs, so this is a merge.
    fn extend(base: Option<&Self>, more: Vec<Arc<SmallFragment>>) -> Self {
        let mut fragments = base.map(|b| b.fragments.clone()).unwrap_or_default();
        let mut entries = base.map(|b| b.entries.clone()).unwrap_or_default();
        let mut keys = base.map(|b| b.keys.clone());
        for small in more {
            let fragment = fragments.len() as u32;
            entries.extend((0..small.keys.len() as u32).map(|row| Entry { fragment, row }));
            match &mut keys {
                Some(keys) => keys.append(&small.keys),
                None => keys = Some(small.keys.clone()),
            }
            fragments.push(small);
        }
        let keys = keys.unwrap_or(CellKeys::Narrow(Vec::new()));
        let order = |e: &Entry| (fragments.get(e.fragment as usize).map(|f| f.order()), e.row);
        let mut sorted: Vec<u32> = (0..entries.len() as u32).collect();
        sorted.sort_by(|a, b| {
            let by_order = || entries.get(*a as usize).map(order).cmp(&entries.get(*b as usize).map(order));
            keys.compare(*a as usize, &keys, *b as usize).then_with(by_order)
        });
        let entries = sorted.iter().filter_map(|i| entries.get(*i as usize).copied()).collect();
        let places = fragments.iter().zip(0u32..).map(|(f, place)| (f.fragment.description().id, place)).collect();
        Self { places, keys: keys.pick(&sorted), entries, fragments }
    }
}

impl LiveOverlay {
    /// The fragment of an entry, if it is live.
    pub(super) fn fragment(&self, entry: Entry) -> Option<&Arc<SmallFragment>> {
        let live = self.live.get(entry.fragment as usize).copied().unwrap_or(false);
        if live { self.overlay.fragments.get(entry.fragment as usize) } else { None }
    }

    /// Counts the entries that a read applied.
    pub(super) fn count(&self, context: &ReadContext, entries: usize) {
        Counters::add(&context.counters.overlay_entries, entries as u64);
    }
}
