//! Fragments of older schemas in a plan: what they hold as the newest schema sees it.
//!
//! Attributes that were dropped count for nothing: fragments with the same others are merged, and the result is without
//! them. A cell of a sparse array has all attributes, whenever it was written. A fragment of a dense array all of
//! whose attributes were dropped is taken out.

use super::{Merge, Part, Plan, Strategy, part};
use crate::base::Id;
use crate::fragment::Description;
use crate::schema::{Attribute, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The attributes that a fragment has values of, as `schema` sees it.
pub(in super::super) fn attrs_seen(schema: &Schema, d: &Description) -> Vec<u32> {
    if schema.sparse() && d.kind.holds_cells() {
        return schema.attrs().iter().map(Attribute::id).collect();
    }
    d.attrs.iter().copied().filter(|id| schema.attr_by_id(*id).is_some()).collect()
}

/// Whether a fragment has values of an attribute that was dropped.
pub(in super::super) fn has_dropped(schema: &Schema, d: &Description) -> bool {
    d.attrs.iter().any(|id| schema.attr_by_id(*id).is_none())
}

/// Fragments as a schema sees them.
pub(super) struct Seen {
    /// Those with something to see, in their order.
    pub(super) fragments: Vec<Arc<Description>>,
    /// Those of which nothing is left to see.
    gone: Vec<Arc<Description>>,
    /// Those that look other than they are, as they are.
    others: HashMap<Id, Arc<Description>>,
}

impl Seen {
    pub(super) fn new(schema: &Schema, all: &[Arc<Description>]) -> Self {
        let mut seen = Self { fragments: Vec::with_capacity(all.len()), gone: Vec::new(), others: HashMap::new() };
        for d in all {
            let attrs = attrs_seen(schema, d);
            if attrs == d.attrs {
                seen.fragments.push(d.clone());
            } else if attrs.is_empty() {
                seen.gone.push(d.clone());
            } else {
                seen.others.insert(d.id, d.clone());
                seen.fragments.push(Arc::new(Description { attrs, ..Description::clone(d) }));
            }
        }
        seen
    }

    /// The strategy without fragments of which nothing is left to see.
    pub(super) fn asked(&self, strategy: &Strategy) -> Strategy {
        match strategy {
            Strategy::Fragments(ids) => {
                let gone: HashSet<Id> = self.gone.iter().map(|d| d.id).collect();
                Strategy::Fragments(ids.iter().copied().filter(|id| !gone.contains(id)).collect())
            }
            other => other.clone(),
        }
    }

    /// Adds to a plan what rids the array of dropped attributes: single fragments that have some are written anew, where that
    /// was asked for, and those of which nothing is left are taken out.
    pub(super) fn rid(&self, schema: &Schema, plan: &mut Plan, strategy: &Strategy) {
        let asked = |d: &Description, always: bool| match strategy {
            Strategy::All => true,
            Strategy::Box(sub) => d.bounds.intersects(sub),
            Strategy::Fragments(ids) => ids.contains(&d.id),
            Strategy::Tiered | Strategy::Updates => always,
            Strategy::Manifest => false,
        };
        let taken: HashSet<Id> = plan.merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
        let has_dropped = |d: &&Arc<Description>| self.others.get(&d.id).is_some_and(|d| has_dropped(schema, d));
        let alone = self.fragments.iter().filter(has_dropped).filter(|d| !taken.contains(&d.id) && asked(d, false));
        plan.merges.extend(alone.map(|d| Merge {
            inputs: vec![d.clone()],
            applied: Vec::new(),
            retired: Vec::new(),
            boxes: if part(d) == Some(Part::Box) { vec![d.bounds.clone()] } else { Vec::new() },
            as_cells: false,
        }));
        plan.swept.extend(self.gone.iter().filter(|d| asked(d, true)).cloned());
    }

    /// The plan with its fragments as they are.
    pub(super) fn restored(&self, mut plan: Plan) -> Plan {
        if self.others.is_empty() {
            return plan;
        }
        let restore = |all: &mut Vec<Arc<Description>>| {
            for d in all {
                if let Some(other) = self.others.get(&d.id) {
                    *d = other.clone();
                }
            }
        };
        for merge in &mut plan.merges {
            restore(&mut merge.inputs);
        }
        plan
    }
}
