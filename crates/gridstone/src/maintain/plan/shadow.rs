//! Fragments that newer ones hide: no reader of the newest version sees a cell of them, and they are removed without a
//! merge.
//!
//! ```text
//! order 3        [  dense a b   ]        hides the attributes that it has
//!       2                [ deletion ]    hides all attributes
//!       1     [old] [ old ]  [ old ]     the second goes, and the third if the two above lie over it together
//! ```
//! 1. A fragment with values is hidden if newer dense fragments and deletions lie over its whole box, for each of its attributes.
//! 2. Tombstones and a deletion are hidden if newer fragments cover them so for every attribute of the schema: the
//!    cells that they delete stay invisible.
//! 3. A mask is removed with the fragment that it lies over.
//!
//! A fragment that hides others may itself be hidden: then something newer lies over both, and the newest of all stays.
//! A later delete of an earlier order changes none of this, since its cells are hidden already, or deleted together
//! with what hides them. A dense fragment with absent cells hides nothing. The number of checks is bounded, and grows
//! only with the number of fragments.

use super::super::cover::minus;
use super::{Part, attrs_seen, part};
use crate::base::Id;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::fragment::{Description, FragmentKind};
use crate::schema::{Attribute, Schema, Subarray};
use std::cell::Cell;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The largest number of newer fragments over one that are considered together.
const OVERLAPS_MAX: usize = 4_096;
/// The largest number of boxes that the visible rest of a fragment may fall into.
const PIECES_MAX: usize = 256;
/// The number of checks per fragment, on average, and the number that is allowed for any number of fragments.
const LOOKS: (usize, usize) = (64, 1 << 16);
/// The largest number of different attribute lists over one fragment that are distinguished.
const LISTS_MAX: usize = 64;

/// The bytes that one record may spend on hidden fragments, which it names one by one. The rest is removed later.
pub const HIDDEN_BYTES_MAX: usize = 8 << 20;

/// The fragments among `all`, those of an array in ascending order, that newer ones hide as `schema` sees them. They
/// are the oldest, with the masks over them, as many as a record names in `room` bytes. `room` becomes the bytes left.
pub fn hidden(schema: &Schema, all: &[Arc<Description>], room: &mut usize) -> Vec<Arc<Description>> {
    let shadow = Shadow::new(schema, all);
    let mut masks: HashMap<Id, usize> = HashMap::new();
    all.iter().filter_map(|d| d.over).for_each(|over| *masks.entry(over).or_default() += 1);
    let fits = |d: &&Arc<Description>| {
        // An id, an order, and two keys for each axis; its masks have the same box.
        let bytes = 120 + 40 * d.bounds.ranges().len();
        let more = room.checked_sub(bytes * (1 + masks.get(&d.id).copied().unwrap_or_default()));
        *room = more.unwrap_or(*room);
        more.is_some()
    };
    let mut found: Vec<Arc<Description>> = all.iter().filter(|d| shadow.hides(d)).take_while(fits).cloned().collect();
    let ids: HashSet<Id> = found.iter().map(|d| d.id).collect();
    found.extend(all.iter().filter(|d| d.over.is_some_and(|over| ids.contains(&over))).cloned());
    found
}

/// The fragments that may hide others.
struct Shadow<'a> {
    schema: &'a Schema,
    /// All attributes of the schema, ascending.
    whole: Vec<u32>,
    /// The attribute lists of those that hide.
    lists: Vec<Vec<u32>>,
    /// The boxes of those that hide; the place is the index of the list, or past all lists for a deletion.
    boxes: BoxIndex<'a>,
    looks: Cell<usize>,
}

impl<'a> Shadow<'a> {
    fn new(schema: &'a Schema, all: &'a [Arc<Description>]) -> Self {
        let (mut lists, mut known) = (Vec::new(), HashMap::new());
        let mut items = Vec::new();
        for d in all {
            let place = match d.kind {
                FragmentKind::Dense if u128::from(d.cells) == d.bounds.cells() => {
                    let attrs = attrs_seen(schema, d);
                    *known.entry(attrs).or_insert_with_key(|attrs| {
                        lists.push(attrs.clone());
                        lists.len() - 1
                    })
                }
                FragmentKind::Deletion => usize::MAX,
                _ => continue,
            };
            items.push(Item { bounds: &d.bounds, orders: (d.order, d.order), size: d.bounds.cells(), place });
        }
        let mut whole: Vec<u32> = schema.attrs().iter().map(Attribute::id).collect();
        whole.sort_unstable();
        let looks = Cell::new(all.len().saturating_mul(LOOKS.0).saturating_add(LOOKS.1));
        Self { schema, whole, lists, boxes: BoxIndex::new(items), looks }
    }

    /// Whether `d` is hidden. A mask is never hidden by itself, nor is a fragment without visible attributes.
    fn hides(&self, d: &Description) -> bool {
        let needed = match part(d) {
            Some(Part::Box | Part::Cells) => attrs_seen(self.schema, d),
            Some(Part::Clears) => self.whole.clone(),
            None => return false,
        };
        !needed.is_empty() && (self.is_under_one(d, &needed) || self.is_under_many(d, &needed))
    }

    /// Whether the fragment of `place` has values of `attr`, or deletes all.
    fn has(&self, place: usize, attr: u32) -> bool {
        self.lists.get(place).is_none_or(|list| list.binary_search(&attr).is_ok())
    }

    fn is_under_one(&self, d: &Description, needed: &[u32]) -> bool {
        let cells = d.bounds.cells();
        self.boxes.any(
            &d.bounds,
            |s| s.newest > d.order && s.size_max >= cells && s.bounds.covers(&d.bounds),
            |item| {
                let over = item.orders.0 > d.order && item.bounds.covers(&d.bounds);
                over && needed.iter().all(|attr| self.has(item.place, *attr))
            },
        )
    }

    fn is_under_many(&self, d: &Description, needed: &[u32]) -> bool {
        let mut over: Vec<(&Subarray, usize)> = Vec::new();
        let many = self.boxes.any(
            &d.bounds,
            |s| s.newest > d.order,
            |item| {
                if item.orders.0 > d.order {
                    over.push((item.bounds, item.place));
                }
                !self.look(1) || over.len() > OVERLAPS_MAX
            },
        );
        if many || over.len() < 2 {
            return false;
        }
        // Attributes of the same lists are hidden by the same boxes.
        let mut lists: Vec<usize> = over.iter().map(|(_, place)| *place).collect();
        lists.sort_unstable();
        lists.dedup();
        if lists.len() > LISTS_MAX {
            return false;
        }
        let having = |attr: &u32| lists.iter().map(|place| self.has(*place, *attr)).collect::<Vec<bool>>();
        let sets: HashSet<Vec<bool>> = needed.iter().map(having).collect();
        sets.iter().all(|set| {
            let has = |place: &usize| lists.binary_search(place).ok().and_then(|n| set.get(n)).copied();
            let boxes = over.iter().filter(|(_, place)| has(place) == Some(true)).map(|(bounds, _)| *bounds);
            self.is_whole(&d.bounds, boxes)
        })
    }

    /// Whether `boxes` cover all of `bounds`.
    fn is_whole<'b>(&self, bounds: &Subarray, boxes: impl Iterator<Item = &'b Subarray>) -> bool {
        let mut common: Vec<Subarray> = boxes.filter_map(|b| b.intersect(bounds)).collect();
        let cells = common.iter().map(Subarray::cells).fold(0u128, u128::saturating_add);
        if cells < bounds.cells() {
            return false;
        }
        // The largest first, adjacent ones consecutively, so that few boxes remain.
        common.sort_by_cached_key(|b| {
            (std::cmp::Reverse(b.cells()), b.ranges().iter().map(|r| r.lo).collect::<Vec<_>>())
        });
        let mut left = vec![bounds.clone()];
        for part in &common {
            if !self.look(left.len()) {
                return false;
            }
            left = left.into_iter().flat_map(|piece| minus(piece, part)).collect();
            if left.is_empty() {
                return true;
            }
            if left.len() > PIECES_MAX {
                return false;
            }
        }
        false
    }

    /// Spends as many checks; returns whether as many were left.
    fn look(&self, count: usize) -> bool {
        let left = self.looks.get();
        self.looks.set(left.saturating_sub(count));
        left >= count
    }
}
