//! Which fragments a read with a condition opens: what their descriptions say of values may rule some out.
//!
//! A fragment in which no cell can be selected may still hide an older cell that is, or the fill. So it is left out only if nothing shows
//! in its place that may be selected:
//!
//! - Sparse arrays with duplicates: always. Nothing is hidden by cells.
//! - Sparse arrays without: no older fragment that may have a selected cell reaches into its box. A cell has all its attributes from one
//!   fragment.
//! - Dense arrays: the attributes of a cell may come from several fragments. So it holds all attributes of the condition, and the fill is not
//!   selected in its box. Older fragments that reach into its box hold all of these attributes too, and no cell that is selected. Newer ones
//!   there hold all attributes that are read, so that they hide it as a whole where they lie over it.
//!
//! Tombstones and deletions stay; a mask goes with the fragment that it lies over.

use super::filter::Filter;
use super::known::{described, of_fill, verdict_within};
use crate::base::{Counters, Id, Result};
use crate::condition::Verdict;
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, Subarray};
use crate::tile::Statistics;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// Pairs of boxes looked at before it is taken for granted that they meet: a few milliseconds.
const PAIRS_MAX: usize = 1 << 18;

/// The target without the fragments that need not be opened to find the cells in `sub` that `filter` selects.
pub(in crate::query) fn opened<'t>(
    context: &ReadContext,
    target: &'t Target,
    sub: &Subarray,
    filter: &Filter,
) -> Result<Cow<'t, Target>> {
    let unread =
        if filter.early.is_empty() { HashSet::new() } else { Choice::new(target, sub, filter).unread(context)? };
    if unread.is_empty() {
        return Ok(Cow::Borrowed(target));
    }
    let count = unread.len() as u64;
    Counters::add(&context.counters.fragments_pruned, count);
    Counters::add(&context.counters.fragments_considered, count);
    let stays = |d: &&Arc<Description>| !unread.contains(&d.id) && d.over.is_none_or(|over| !unread.contains(&over));
    let fragments = target.fragments.iter().filter(stays).cloned().collect();
    Ok(Cow::Owned(Target { fragments, ..target.clone() }))
}

/// The boxes of fragments that decide about others, by ascending order.
#[derive(Default)]
struct Boxes<'t> {
    held: Vec<(FragmentOrder, &'t Subarray)>,
    /// Around them all.
    hull: Option<Subarray>,
}

impl<'t> Boxes<'t> {
    fn hold(&mut self, d: &'t Description) {
        self.hull = Some(self.hull.take().map_or_else(|| d.bounds.clone(), |hull| hull.union(&d.bounds)));
        self.held.push((d.order, &d.bounds));
    }

    /// Whether one of them meets `bounds` and `counts`, by its order. Past [`PAIRS_MAX`] pairs, counted in `pairs`, that is assumed.
    fn meet(&self, bounds: &Subarray, pairs: &mut usize, counts: impl Fn(FragmentOrder) -> bool) -> bool {
        if !self.hull.as_ref().is_some_and(|hull| hull.intersects(bounds)) {
            return false;
        }
        *pairs = pairs.saturating_add(self.held.len());
        *pairs > PAIRS_MAX || self.held.iter().any(|(order, held)| counts(*order) && held.intersects(bounds))
    }
}

/// What is weighed.
struct Choice<'a> {
    target: &'a Target,
    sub: &'a Subarray,
    filter: &'a Filter,
    /// The attributes that the condition looks at, with their places.
    early: Vec<(usize, &'a Attribute)>,
    /// What they are where nothing was written.
    fills: Vec<(usize, Statistics)>,
}

impl<'a> Choice<'a> {
    fn new(target: &'a Target, sub: &'a Subarray, filter: &'a Filter) -> Self {
        let attrs = target.schema.attrs();
        let early: Vec<_> = filter.early.iter().filter_map(|place| Some((*place, attrs.get(*place)?))).collect();
        let fills = early.iter().filter_map(|(place, attr)| Some((*place, of_fill(attr)?))).collect();
        Self { target, sub, filter, early, fills }
    }

    /// The fragments that need not be opened.
    fn unread(&self, context: &ReadContext) -> Result<HashSet<Id>> {
        let told = self.target.fragments.iter().any(|d| !d.stats.as_bytes().is_empty());
        // A hole in one attribute uncovers what the others hide.
        let holed = self.target.fragments.iter().any(|d| d.kind == FragmentKind::Deletion && !d.attrs.is_empty());
        if !told || holed {
            return Ok(HashSet::new());
        }
        let dense = !self.target.schema.sparse();
        let (mut barren, mut fertile, mut partial) = (Vec::new(), Boxes::default(), Boxes::default());
        let painted = if dense { self.painted() } else { HashSet::new() };
        for d in self.target.fragments.iter().filter(|d| d.kind.holds_cells()) {
            context.cancel.check()?;
            let Some(inside) = d.bounds.intersect(self.sub) else { continue };
            match self.is_barren(d, &inside) {
                true => barren.push((d, inside)),
                false => fertile.hold(d),
            }
            if painted.iter().any(|attr| !d.attrs.contains(attr)) {
                partial.hold(d);
            }
        }
        let (mut unread, mut pairs) = (HashSet::new(), 0);
        let free = self.target.schema.options().duplicates && !dense;
        for (d, inside) in barren {
            let hides = !free && fertile.meet(&inside, &mut pairs, |order| order < d.order);
            let mixes = dense && partial.meet(&inside, &mut pairs, |order| order > d.order);
            let fills = || dense && verdict_within(self.filter, &inside, &self.fills) != Verdict::None;
            if !hides && !mixes && !fills() {
                unread.insert(d.id);
            }
        }
        Ok(unread)
    }

    /// The attributes that are read and that some fragment holds, by permanent number.
    fn painted(&self) -> HashSet<u32> {
        let attrs = self.target.schema.attrs();
        let asked = self.filter.early.iter().chain(&self.filter.late);
        let asked = asked.filter_map(|place| attrs.get(*place)).map(Attribute::id);
        let held: HashSet<u32> = self.target.fragments.iter().flat_map(|d| d.attrs.iter().copied()).collect();
        asked.filter(|attr| held.contains(attr)).collect()
    }

    /// Whether no cell of a fragment in `inside` can be selected by its own values. In a dense array that is known only of one that has
    /// all attributes of the condition.
    fn is_barren(&self, d: &Description, inside: &Subarray) -> bool {
        let mut found = Vec::with_capacity(self.early.len());
        for (place, attr) in &self.early {
            let statistics = match d.attrs.contains(&attr.id()) {
                true => described(d, attr),
                false if !self.target.schema.sparse() => return false,
                // An attribute that came after the fragment is blank in it.
                false => self.fills.iter().find(|(of, _)| of == place).map(|(_, fill)| fill.clone()),
            };
            found.extend(statistics.map(|statistics| (*place, statistics)));
        }
        verdict_within(self.filter, inside, &found) == Verdict::None
    }
}
