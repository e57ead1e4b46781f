//! Plans a consolidation: chooses the merges from the descriptions of fragments alone, before anything is read.
//!
//! 1. Dense fragments that overlap or adjoin each other, and updates inside them, become dense ones ([`dense`]).
//! 2. Sparse fragments become larger ones ([`runs`]); so do small dense ones that are scattered among them
//!    ([`patches`]).
//! 3. Single fragments with cells deleted by newer tombstones are rewritten without them.
//! 4. Fragments of tombstones that stay are merged into fewer ([`buried`]).
//! 5. Fragments are treated as the newest schema sees them ([`evolved`]).
//! 6. Fragments on other bases are left alone, and so are external ones unless they are brought home ([`elsewhere`]): `All` and `Box` rewrite
//!    each that they touch.
//!
//! Before all of this, fragments that newer ones hide are removed ([`shadow`]), in a commit of its own: nothing is read
//! or written for it.
//!
//! **A merge is legal** if no omitted fragment with an order above the least and up to the greatest of the inputs
//! touches an older input. Then everything older stays older than the result, and everything newer stays newer.
//! Tombstones are applied to cells older than they, even if they are newer than all inputs: a reader that sees the
//! merge sees them too. They are removed once nothing older is left under them. Sorting and trees of boxes find all of
//! this: the work is near-linear in the number of fragments.

mod buried;
mod dense;
mod elsewhere;
mod evolved;
mod masks;
mod patches;
mod runs;
mod shadow;
#[cfg(test)]
mod tests;
mod tombstones;

pub use shadow::{HIDDEN_BYTES_MAX, hidden};

pub(super) use evolved::{attrs_seen, has_dropped};

use crate::base::{Error, Id, Result};
use crate::fragment::{Description, FragmentKind, FragmentOrder};
use crate::schema::{Attribute, Schema, Subarray};
use evolved::Seen;
use patches::Patches;
use std::collections::HashSet;
use std::sync::Arc;

/// The least number of fragments that `tiered` merges at once.
const FAN_IN: usize = 8;
/// How many times larger the fragments of the next tier are.
const FACTOR: u64 = 8;
/// The size of the smallest tier, in bytes.
const TIER_BYTES: u64 = 32 << 10;
/// The largest number of deleted boxes that are cut out of the inputs of one merge.
const HOLES_MAX: usize = 64;
/// The share of updated cells, one in so many, from which on the data under the updates is rewritten.
const UPDATED_SHARE: u128 = 10;

/// Which fragments to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Runs of at least eight fragments of similar size, repeatedly. Each cell is rewritten a few times in the life of
    /// an array, and the number of fragments grows with the logarithm of the number of commits.
    Tiered,
    /// Everything that can be merged.
    All,
    /// These fragments, and no others.
    Fragments(Vec<Id>),
    /// Small sparse fragments, and small dense ones, with each other; the data under them only where they pass a tenth
    /// of its cells.
    Updates,
    /// Everything that touches the box, and what must go with it.
    Box(Subarray),
    /// No fragment: the list of fragments itself is packed.
    Manifest,
}

/// Limits of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// The approximate memory in bytes that the inputs of one merge may take while they are read.
    pub memory_bytes: u64,
    /// The approximate memory in bytes of a decoded cell.
    pub cell_bytes: u64,
}

/// A set of fragments to be replaced by merged ones.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The fragments whose cells are merged, in ascending order.
    pub inputs: Vec<Arc<Description>>,
    /// The tombstones and deletions that are applied to inputs older than they, and the masks over inputs.
    pub applied: Vec<Arc<Description>>,
    /// Tombstones that have nothing older left under them: they are removed with the inputs.
    pub retired: Vec<Arc<Description>>,
    /// The boxes that become dense fragments, disjoint; none if the inputs become sparse fragments, or nothing is left
    /// of them.
    pub boxes: Vec<Subarray>,
    /// Whether some of the inputs are dense, and become cells like the others.
    pub as_cells: bool,
    /// Whether a tombstone that it applies is removed once all merges are done: its cells must be deleted in the result.
    pub ends_tombstones: bool,
}

impl Merge {
    /// The order of the result: the greatest of the inputs.
    pub fn order(&self) -> FragmentOrder {
        self.inputs.iter().map(|d| d.order).max().unwrap_or(FragmentOrder { version: 0, index: 0 })
    }

    /// Whether its inputs become sparse fragments.
    pub fn is_of_cells(&self) -> bool {
        // A dense fragment that is deleted completely leaves no box.
        self.as_cells || self.boxes.is_empty() && self.inputs.iter().all(|d| d.kind != FragmentKind::Dense)
    }

    /// Whether its inputs are tombstones, which become one fragment.
    pub fn is_of_tombstones(&self) -> bool {
        !self.inputs.is_empty() && self.inputs.iter().all(|d| d.kind == FragmentKind::Tombstones)
    }

    /// Whether every attribute of the inputs may be null: then a dense result needs no tombstone where a cell was
    /// deleted.
    pub fn is_clearable(&self, schema: &Schema) -> bool {
        let mut attrs = self.inputs.iter().flat_map(|d| attrs_seen(schema, d));
        attrs.all(|id| schema.attr_by_id(id).is_some_and(Attribute::nullable))
    }

    /// The bytes that are read, at most.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().chain(&self.applied).map(|d| d.location.len).sum()
    }

    /// The cells that are read, at most.
    pub fn cells(&self) -> u64 {
        self.inputs.iter().map(|d| d.cells).sum()
    }

    /// The approximate stored bytes of a cell of the result.
    pub fn bytes_per_cell(&self) -> u64 {
        let like = |d: &&Arc<Description>| self.is_of_cells() || d.kind == FragmentKind::Dense;
        let (bytes, cells) =
            self.inputs.iter().filter(like).fold((0, 0), |(b, c), d| (b + d.location.len, c + d.cells));
        bytes / cells.max(1) + 1
    }

    /// The cells that are written, at most.
    pub fn cells_written(&self) -> u64 {
        if self.is_of_cells() {
            return self.cells();
        }
        u64::try_from(self.boxes.iter().map(Subarray::cells).sum::<u128>()).unwrap_or(u64::MAX)
    }

    /// The approximate bytes that are written.
    pub fn bytes_written(&self) -> u64 {
        self.cells_written().saturating_mul(self.bytes_per_cell()).min(self.bytes().max(1))
    }
}

/// The merges of a consolidation, in this order. Merges have no input in common, and each is legal after those before
/// it.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The merges.
    pub merges: Vec<Merge>,
    /// Tombstones that have nothing older left under them once all merges are done.
    pub swept: Vec<Arc<Description>>,
}

/// The merges of `strategy` over all `fragments` of an array, in ascending order. Input if named fragments cannot be
/// merged.
pub fn plan(schema: &Schema, fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Result<Plan> {
    if *strategy == Strategy::Manifest {
        return Ok(Plan::default());
    }
    if elsewhere::any(fragments, strategy) {
        return elsewhere::plan(schema, fragments, strategy, limits);
    }
    plan_own(schema, fragments, strategy, limits)
}

/// The merges of `strategy` over `fragments` of the own store.
fn plan_own(schema: &Schema, fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Result<Plan> {
    let seen = Seen::new(schema, fragments);
    let (unmasked, masks) = masks::apart(&seen.fragments);
    let mut found = match seen.asked(strategy) {
        Strategy::Fragments(ids) if ids.is_empty() => Plan::default(),
        Strategy::Fragments(ids) => named(schema, &unmasked, &ids, limits)?,
        _ => chosen(schema, &unmasked, strategy, limits),
    };
    bring_home(&unmasked, &mut found, strategy);
    seen.rid(schema, &mut found, strategy);
    Ok(seen.restored(masks::applied(&unmasked, &masks, found, strategy)))
}

/// Adds the external fragments that no merge has as an input, each alone: it becomes a native one.
fn bring_home(fragments: &[Arc<Description>], plan: &mut Plan, strategy: &Strategy) {
    let is_asked = |d: &Description| match strategy {
        Strategy::All => true,
        Strategy::Box(sub) => d.bounds.intersects(sub),
        Strategy::Tiered | Strategy::Updates | Strategy::Fragments(_) | Strategy::Manifest => false,
    };
    let taken: HashSet<Id> = plan.merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let left = fragments.iter().filter(|d| d.is_external() && is_asked(d) && !taken.contains(&d.id));
    plan.merges.extend(left.map(|d| Merge { boxes: vec![d.bounds.clone()], ..of_cells(vec![Arc::clone(d)]) }));
}

/// The merges of a strategy over all fragments except masks.
fn chosen(schema: &Schema, fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Plan {
    let dense = match strategy {
        _ if schema.sparse() => Vec::new(),
        Strategy::Tiered => dense::tiers(schema, fragments),
        Strategy::Updates => dense::updated(schema, fragments),
        Strategy::Box(sub) => dense::within(schema, fragments, sub),
        Strategy::All | Strategy::Fragments(_) | Strategy::Manifest => dense::all(schema, fragments),
    };
    // The fragments that the dense merges leave, with their results in place.
    let mut rest = after(fragments, &dense);
    let patches = match strategy {
        Strategy::Tiered | Strategy::Updates => Patches::found(&mut rest, &dense),
        // These strategies merge what lies in a dense fragment with it, or were not asked to.
        Strategy::All | Strategy::Box(_) | Strategy::Fragments(_) | Strategy::Manifest => Patches::none(),
    };
    let runs = runs::neighbours(&rest);
    let runs: Vec<Run> = match strategy {
        Strategy::Tiered => runs.into_iter().flat_map(|run| runs::tiers(run, limits)).collect(),
        Strategy::Updates => runs::small(&rest, runs, limits),
        Strategy::Box(sub) => runs.into_iter().flat_map(|run| runs::within(run, sub, limits)).collect(),
        Strategy::All | Strategy::Fragments(_) | Strategy::Manifest => {
            runs.into_iter().flat_map(|run| runs::portions(run, limits)).collect()
        }
    };
    let cells = runs.into_iter().filter_map(|run| runs::untied(run, &rest)).map(of_cells);
    let merges: Vec<Merge> = dense.into_iter().chain(cells.map(|merge| patches.restored(merge))).collect();
    let mut plan = tombstones::applied(schema, fragments, merges, strategy);
    let gone = plan.merges.iter().flat_map(|m| &m.retired).chain(&plan.swept).map(|d| d.id).collect();
    plan.merges.extend(buried::merges(fragments, &gone, strategy, limits));
    plan
}

type Run = Vec<Arc<Description>>;

/// The merge of a run of sparse fragments.
fn of_cells(inputs: Run) -> Merge {
    Merge {
        inputs,
        applied: Vec::new(),
        retired: Vec::new(),
        boxes: Vec::new(),
        as_cells: false,
        ends_tombstones: false,
    }
}

/// The effect of a fragment on what lies under it; `None`: nothing that a merge could apply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Part {
    Box,
    Cells,
    Clears,
}

fn part(d: &Description) -> Option<Part> {
    match d.kind {
        FragmentKind::Dense => Some(Part::Box),
        FragmentKind::Sparse => Some(Part::Cells),
        FragmentKind::Tombstones | FragmentKind::Deletion => Some(Part::Clears),
        FragmentKind::Mask => None,
    }
}

/// Whether it matters which of the two is newer where they touch.
fn related(a: &Description, b: &Description) -> bool {
    let holds_values = |d: &Description| matches!(part(d), Some(Part::Box | Part::Cells));
    !(holds_values(a) && holds_values(b)) || a.attrs.iter().any(|attr| b.attrs.contains(attr))
}

/// The fragments, in ascending order, after these merges.
fn after(fragments: &[Arc<Description>], merges: &[Merge]) -> Run {
    let taken: HashSet<Id> = merges.iter().flat_map(|m| &m.inputs).map(|d| d.id).collect();
    let mut rest: Run = fragments.iter().filter(|d| !taken.contains(&d.id)).cloned().collect();
    for merge in merges {
        let Some(first) = merge.inputs.iter().find(|d| d.kind == FragmentKind::Dense) else { continue };
        let made = merge.boxes.iter().map(|bounds| {
            let cells = u64::try_from(bounds.cells()).unwrap_or(u64::MAX);
            Arc::new(Description { bounds: bounds.clone(), order: merge.order(), cells, ..Description::clone(first) })
        });
        rest.extend(made);
    }
    rest.sort_by_key(|d| d.order);
    rest
}

/// The fragments of `all`, which ascend, with orders above `above` and up to `to`.
fn between(all: &[Arc<Description>], above: FragmentOrder, to: FragmentOrder) -> &[Arc<Description>] {
    let (from, to) = (all.partition_point(|d| d.order <= above), all.partition_point(|d| d.order <= to));
    all.get(from..to.max(from)).unwrap_or_default()
}

/// The merge of the fragments with these ids, or several merges if they are sparse and do not fit into memory together.
fn named(schema: &Schema, fragments: &[Arc<Description>], ids: &[Id], limits: PlanLimits) -> Result<Plan> {
    let wanted: HashSet<Id> = ids.iter().copied().collect();
    let inputs: Run = fragments.iter().filter(|d| wanted.contains(&d.id)).cloned().collect();
    if inputs.len() < wanted.len() {
        let known: HashSet<Id> = inputs.iter().map(|d| d.id).collect();
        let missing = ids.iter().find(|id| !known.contains(id)).map(Id::to_string).unwrap_or_default();
        return Err(Error::input(format!("the array has no fragment {missing}; look at its list of fragments")));
    }
    if inputs.iter().all(|d| d.kind == FragmentKind::Tombstones) {
        let merges = buried::of(fragments, &inputs, limits).ok_or_else(refused)?;
        return Ok(Plan { merges, swept: Vec::new() });
    }
    let merge = if inputs.iter().any(|d| part(d) == Some(Part::Box)) {
        dense::of(schema, fragments, &inputs)
    } else {
        runs::of(fragments, inputs)
    };
    let merge = merge.ok_or_else(refused)?;
    let merges = if merge.is_of_cells() {
        let portions = runs::portions(merge.inputs, limits).into_iter();
        portions.filter_map(|run| runs::untied(run, fragments)).map(of_cells).collect()
    } else if merge.inputs.len() > 1 || merge.inputs.iter().any(|d| d.is_external()) {
        vec![merge]
    } else {
        Vec::new()
    };
    Ok(tombstones::applied(schema, fragments, merges, &Strategy::Fragments(Vec::new())))
}

/// The error for named fragments that cannot be merged.
fn refused() -> Error {
    Error::input(
        "these fragments cannot be merged: they must be cells with the same attributes, or dense boxes that make few boxes together, \
         with the updates that lie wholly inside, or tombstones; and no other fragment that touches one of them may stand between \
         them in order",
    )
}
