//! Plans for arrays with fragments that stay where they are: those on other bases, which this release cannot read, and those whose
//! cells lie in files of another format, unless the strategy brings all home that it touches.
//!
//! Such a fragment, one under a mask that lies there, and all that was committed with one of these are barriers: the fragments of
//! the own store are planned apart before them and after them in their order. So no merge has a barrier between its inputs, and
//! none leaves tombstones over one: these are newer than all of their commit. In the parts after a barrier nothing that
//! deletes is removed: what it deletes may be older than the barrier.

use super::{Merge, Plan, PlanLimits, Strategy, has_dropped, plan_own, refused};
use crate::base::{Error, FileRef, Id, Result};
use crate::fragment::Description;
use crate::schema::Schema;
use std::collections::HashSet;
use std::sync::Arc;

fn is_elsewhere(d: &Description) -> bool {
    matches!(d.location.file, FileRef::OnBase(..))
}

/// Whether a strategy leaves a fragment where it is.
fn stays(strategy: &Strategy, d: &Description) -> bool {
    is_elsewhere(d) || d.is_external() && matches!(strategy, Strategy::Tiered | Strategy::Updates)
}

/// Whether a strategy leaves some fragment where it is.
pub(super) fn any(fragments: &[Arc<Description>], strategy: &Strategy) -> bool {
    fragments.iter().any(|d| stays(strategy, d))
}

/// The merges of `strategy`, as [`super::plan`].
pub(super) fn plan(
    schema: &Schema,
    fragments: &[Arc<Description>],
    strategy: &Strategy,
    limits: PlanLimits,
) -> Result<Plan> {
    let parts = parts(fragments, strategy);
    if let Strategy::Fragments(ids) = strategy {
        return named(schema, (fragments, &parts), ids, limits);
    }
    let mut plan = Plan::default();
    for (number, part) in parts.iter().enumerate() {
        let own = plan_own(schema, part, strategy, limits)?;
        let own = if number == 0 { own } else { kept_deleting(schema, own) };
        plan.merges.extend(own.merges);
        plan.swept.extend(own.swept);
    }
    Ok(plan)
}

/// The fragments of the own store between barriers, each with the masks over it.
fn parts(fragments: &[Arc<Description>], strategy: &Strategy) -> Vec<Vec<Arc<Description>>> {
    let masked: HashSet<Id> = fragments.iter().filter(|d| is_elsewhere(d)).filter_map(|d| d.over).collect();
    let is_alone = |d: &Description| d.over.is_none() && (stays(strategy, d) || masked.contains(&d.id));
    let versions: HashSet<u64> = fragments.iter().filter(|d| is_alone(d)).map(|d| d.order.version).collect();
    let mut parts: Vec<Vec<Arc<Description>>> = vec![Vec::new()];
    for d in fragments.iter().filter(|d| d.over.is_none()) {
        if versions.contains(&d.order.version) {
            parts.push(Vec::new());
        } else if let Some(part) = parts.last_mut() {
            part.push(Arc::clone(d));
        }
    }
    for mask in fragments.iter().filter(|d| d.over.is_some() && !is_elsewhere(d)) {
        let under = |part: &&mut Vec<Arc<Description>>| part.iter().any(|d| Some(d.id) == mask.over);
        if let Some(part) = parts.iter_mut().find(under) {
            part.push(Arc::clone(mask));
        }
    }
    for part in &mut parts {
        part.sort_by_key(|d| d.order);
    }
    parts
}

/// The same plan without removing what deletes. A merge of one fragment that would only make such a removal possible is left
/// out.
fn kept_deleting(schema: &Schema, plan: Plan) -> Plan {
    let gone = |d: &Description| !d.kind.deletes();
    let is_worth = |merge: &Merge| merge.inputs.len() > 1 || merge.inputs.iter().any(|d| has_dropped(schema, d));
    let keep = |merge: Merge| Merge {
        retired: merge.retired.into_iter().filter(|d| gone(d)).collect(),
        ends_tombstones: false,
        ..merge
    };
    let merges = plan.merges.into_iter().filter(is_worth).map(keep).collect();
    Plan { merges, swept: plan.swept.into_iter().filter(|d| gone(d)).collect() }
}

/// The merges of the fragments with these ids.
fn named(
    schema: &Schema,
    (fragments, parts): (&[Arc<Description>], &[Vec<Arc<Description>>]),
    ids: &[Id],
    limits: PlanLimits,
) -> Result<Plan> {
    if let Some(d) = fragments.iter().find(|d| ids.contains(&d.id) && is_elsewhere(d)) {
        return Err(Error::unsupported(format!(
            "fragment {} lies on another base than the store itself, and this release of Gridstone cannot merge it; name others, or use a \
             newer Gridstone",
            d.id
        )));
    }
    let inside = |part: &Vec<Arc<Description>>| ids.iter().all(|id| part.iter().any(|d| d.id == *id));
    let (number, part) = parts.iter().enumerate().find(|(_, part)| inside(part)).ok_or_else(refused)?;
    let own = plan_own(schema, part, &Strategy::Fragments(ids.to_vec()), limits)?;
    Ok(if number == 0 { own } else { kept_deleting(schema, own) })
}
