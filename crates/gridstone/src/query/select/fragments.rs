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
use crate::base::{Cancel, Counters, Id, Result};
use crate::condition::Verdict;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, Subarray};
use crate::tile::Statistics;
use std::borrow::Cow;
use std::collections::HashSet;
use std::sync::Arc;

/// So many nodes of an index of boxes are looked at for one fragment, less than a millisecond, before it is taken for granted that something
/// meets its box. All nodes are fewer where fewer than 16,000 boxes decide; among more, boxes that are disjoint need about twenty.
const STEPS_MAX: usize = 1 << 12;

/// The target without the fragments that need not be opened to find the cells in `sub` that `filter` selects.
pub(in crate::query) fn opened<'t>(
    context: &ReadContext,
    target: &'t Target,
    sub: &Subarray,
    filter: &Filter,
) -> Result<Cow<'t, Target>> {
    let unread = if filter.early.is_empty() {
        HashSet::new()
    } else {
        Choice::new(target, sub, filter).unread(context.cancel.as_ref())?
    };
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

fn item(d: &Description) -> Item<'_> {
    Item { bounds: &d.bounds, orders: (d.order, d.order), size: 0, place: 0 }
}

/// Whether something older than `order` may meet `bounds`.
fn older_meets(index: &BoxIndex<'_>, bounds: &Subarray, order: FragmentOrder) -> bool {
    index.any_within(STEPS_MAX, bounds, |s| s.oldest < order, |item| item.orders.0 < order).unwrap_or(true)
}

/// Whether something newer may.
fn newer_meets(index: &BoxIndex<'_>, bounds: &Subarray, order: FragmentOrder) -> bool {
    index.any_within(STEPS_MAX, bounds, |s| s.newest > order, |item| item.orders.1 > order).unwrap_or(true)
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
    fn unread(&self, cancel: &dyn Cancel) -> Result<HashSet<Id>> {
        let told = self.target.fragments.iter().any(|d| !d.stats.as_bytes().is_empty());
        // A hole in one attribute uncovers what the others hide.
        let holed = self.target.fragments.iter().any(|d| d.kind == FragmentKind::Deletion && !d.attrs.is_empty());
        if !told || holed {
            return Ok(HashSet::new());
        }
        let dense = !self.target.schema.sparse();
        // Cells hide nothing.
        let free = self.target.schema.options().duplicates && !dense;
        let (mut barren, mut fertile, mut partial) = (Vec::new(), Vec::new(), Vec::new());
        let painted = if dense { self.painted() } else { HashSet::new() };
        for d in self.target.fragments.iter().filter(|d| d.kind.holds_cells()) {
            cancel.check()?;
            let Some(inside) = d.bounds.intersect(self.sub) else { continue };
            match self.is_barren(d, &inside) {
                true => barren.push((d, inside)),
                false if free => {}
                false => fertile.push(item(d)),
            }
            if painted.iter().any(|attr| !d.attrs.contains(attr)) {
                partial.push(item(d));
            }
        }
        let (fertile, partial) = (BoxIndex::new(fertile), BoxIndex::new(partial));
        let mut unread = HashSet::new();
        for (d, inside) in barren {
            cancel.check()?;
            let hides = older_meets(&fertile, &inside, d.order);
            let mixes = newer_meets(&partial, &inside, d.order);
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::{FileRef, NeverCancel};
    use crate::condition::Condition;
    use crate::fragment::{Location, ValueBounds};
    use crate::query::request::{ReadOrder, Request};
    use crate::schema::{Datatype, KeyRange, Schema, key};
    use proptest::prelude::*;

    /// A fragment: its box, and the value that all its cells have of each attribute that it has.
    type Made = ((u64, u64, u64, u64), Option<i8>, Option<i8>);

    fn schema(sparse: bool) -> Arc<Schema> {
        let kind = if sparse { r#""sparse":true,"# } else { "" };
        let text = format!(
            r#"{{{kind}"dims":[{{"name":"x","dtype":"uint64","domain":["0","99"],"tile":"10"}},
            {{"name":"y","dtype":"uint64","domain":["0","99"],"tile":"10"}}],
            "attrs":[{{"name":"a","dtype":"int8"}},{{"name":"b","dtype":"int8"}}]}}"#
        );
        Arc::new(Schema::from_json(&text).unwrap())
    }

    fn rect((x, w, y, h): (u64, u64, u64, u64)) -> Subarray {
        Subarray::new(vec![KeyRange::new(x, x + w), KeyRange::new(y, y + h)])
    }

    fn described(number: u64, (corner, a, b): Made, sparse: bool) -> Description {
        let mut id = [0; 16];
        id[..8].copy_from_slice(&number.to_le_bytes());
        let (mut attrs, mut stats) = (Vec::new(), vec![0]);
        for (attr, value) in [(0u32, a), (1, b)].into_iter().filter_map(|(attr, value)| Some((attr, value?))) {
            attrs.push(attr);
            let key = key::encode(Datatype::Int8, &value.to_le_bytes()).unwrap()[0].to_be_bytes();
            stats.extend(attr.to_le_bytes());
            stats.push(4 | 8 | 16);
            for bound in [key, key] {
                stats.push(8);
                stats.extend(bound);
            }
        }
        let bounds = rect(corner);
        Description {
            id: Id(id),
            kind: if sparse { FragmentKind::Sparse } else { FragmentKind::Dense },
            order: FragmentOrder { version: number / 3, index: (number % 3) as u32 },
            schema: 0,
            cells: bounds.cells() as u64,
            bounds,
            attrs,
            location: Location { file: FileRef::Data(Id(id)), offset: 0, len: 100 },
            over: None,
            stats: ValueBounds::new(stats).unwrap(),
            extra: Vec::new(),
            moved: Vec::new(),
        }
    }

    /// What the rule of this file says of each fragment, looking at all pairs: `a` is to be 3, and is 0 where nothing was written.
    fn plainly(made: &[Made], sub: &Subarray, sparse: bool) -> Vec<usize> {
        let touches = |at: usize| rect(made[at].0).intersects(sub);
        let meet = |one: usize, other: usize| {
            rect(made[one].0).intersect(sub).is_some_and(|b| b.intersects(&rect(made[other].0)))
        };
        let barren = |at: usize| match made[at].1 {
            Some(value) => value != 3,
            None => sparse,
        };
        let all = || (0..made.len()).filter(|at| touches(*at));
        let painted = |attr: fn(&Made) -> bool| made.iter().any(attr);
        let (a, b) = (painted(|m| m.1.is_some()), painted(|m| m.2.is_some()));
        let partial = |at: usize| (a && made[at].1.is_none()) || (b && made[at].2.is_none());
        let stays = |at: usize| {
            let hides = all().any(|other| other < at && !barren(other) && meet(at, other));
            let mixes = !sparse && all().any(|other| other > at && partial(other) && meet(at, other));
            hides || mixes
        };
        all().filter(|at| barren(*at) && !stays(*at)).collect()
    }

    fn unread(fragments: Vec<Description>, sub: &Subarray, sparse: bool) -> Vec<usize> {
        let schema = schema(sparse);
        let request = Request::new(&schema, Some(sub.clone()), None, ReadOrder::Row).unwrap();
        let filter = Filter::new(&Condition::parse("a == 3").unwrap().bind(&schema).unwrap(), &request);
        let fragments = fragments.into_iter().map(Arc::new).collect();
        let target = Target { array: Id([0; 16]), schema, fragments };
        let found = Choice::new(&target, sub, &filter).unread(&NeverCancel).unwrap();
        (0..target.fragments.len()).filter(|at| found.contains(&target.fragments[*at].id)).collect()
    }

    fn made() -> impl Strategy<Value = Made> {
        let corner = prop_oneof![
            (0u64..90, 0u64..9, 0u64..90, 0u64..9),
            (0u64..20, 0u64..60, 0u64..80, 0u64..3),
            (0u64..9, 0u64..2, 0u64..9, 0u64..2),
        ];
        (corner, prop::option::weighted(0.9, 2i8..5), prop::option::weighted(0.9, 0i8..2))
    }

    proptest! {
        #[test]
        fn the_fragments_left_out_are_those_that_all_pairs_say(
            some in prop::collection::vec(made(), 1..120), sub in (0u64..40, 1u64..60, 0u64..40, 1u64..60), sparse: bool) {
            // A dense fragment without an attribute hides in part, and a sparse one has all.
            let some: Vec<Made> = match sparse {
                true => some.into_iter().map(|(at, a, b)| (at, Some(a.unwrap_or(2)), Some(b.unwrap_or(0)))).collect(),
                false => some,
            };
            let fragments = some.iter().zip(0..).map(|(made, number)| described(number, *made, sparse)).collect();
            let sub = rect(sub);
            prop_assert_eq!(unread(fragments, &sub, sparse), plainly(&some, &sub, sparse));
        }
    }
}
