//! Fragments of older schemas in a plan: their content as the newest schema sees it.
//!
//! Dropped attributes are ignored: fragments with the same other attributes are merged, and the result is without them.
//! A cell of a sparse array has all attributes, whenever it was written. A fragment of a dense array whose attributes
//! were all dropped is removed.

use super::{Merge, Part, Plan, Strategy, part};
use crate::base::Id;
use crate::fragment::Description;
use crate::schema::{Attribute, Schema};
use std::collections::{HashMap, HashSet};
use std::sync::Arc;

/// The attributes that a fragment has values of, according to `schema`.
pub(in super::super) fn attrs_seen(schema: &Schema, d: &Description) -> Vec<u32> {
    if schema.sparse() && d.kind.holds_cells() {
        return schema.attrs().iter().map(Attribute::id).collect();
    }
    d.attrs.iter().copied().filter(|id| schema.attr_by_id(*id).is_some()).collect()
}

/// Whether a fragment has values of a dropped attribute.
pub(in super::super) fn has_dropped(schema: &Schema, d: &Description) -> bool {
    d.attrs.iter().any(|id| schema.attr_by_id(*id).is_none())
}

/// Fragments as a schema sees them.
pub(super) struct Seen {
    /// Those with visible attributes, in their order.
    pub(super) fragments: Vec<Arc<Description>>,
    /// Those without any visible attribute.
    gone: Vec<Arc<Description>>,
    /// Those that the schema sees differently, in their original form.
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

    /// The strategy without fragments that have no visible attribute.
    pub(super) fn asked(&self, strategy: &Strategy) -> Strategy {
        match strategy {
            Strategy::Fragments(ids) => {
                let gone: HashSet<Id> = self.gone.iter().map(|d| d.id).collect();
                Strategy::Fragments(ids.iter().copied().filter(|id| !gone.contains(id)).collect())
            }
            other => other.clone(),
        }
    }

    /// Adds to a plan what rids the array of dropped attributes. Single fragments with dropped attributes are
    /// rewritten, where that was requested, and fragments without visible attributes are removed.
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
            ends_tombstones: false,
        }));
        plan.swept.extend(self.gone.iter().filter(|d| asked(d, true)).cloned());
    }

    /// The plan with its fragments in their original form.
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
