//! What a consolidation merges: chosen from the descriptions of fragments alone, before anything is read.
//!
//! 1. Dense fragments that lie over each other or side by side, and updates inside them, become dense ones ([`dense`]).
//! 2. Fragments of cells become larger ones ([`runs`]), small dense ones that lie scattered among them ([`patches`]).
//! 3. Single fragments of which newer tombstones delete cells are written anew without them.
//! 4. Fragments of tombstones that stay become fewer ([`buried`]).
//! 5. Fragments are taken as the newest schema sees them ([`evolved`]).
//!
//! Before all of this goes what newer fragments hide ([`shadow`]), in a commit of its own: nothing is read or written for it.
//!
//! **A merge is legal** if no fragment that is left out, with an order above the least and up to the greatest of the inputs,
//! touches an older input: whatever is older stays older than the result, whatever is newer stays newer. Tombstones are
//! applied to the cells older than they, also those that are newer than all inputs: whoever sees the merge sees them. They
//! go once nothing older is left under them. Everything is found by sorting and by trees of boxes: the work is near-linear in the
//! number of fragments.

mod buried;
mod dense;
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

/// Fragments merged at once by `tiered`, at least.
const FAN_IN: usize = 8;
/// How many times larger the fragments of the next tier are.
const FACTOR: u64 = 8;
/// The size of the smallest tier, in bytes.
const TIER_BYTES: u64 = 32 << 10;
/// More deleted boxes than this are not cut out of the inputs of one merge.
const HOLES_MAX: usize = 64;
/// One cell in so many must be an update before what it lies on is written again.
const UPDATED_SHARE: u128 = 10;

/// Which fragments to merge.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Strategy {
    /// Runs of at least eight fragments of similar size, again and again: each cell is rewritten a few times in the life
    /// of an array, and the number of fragments grows with the logarithm of the number of commits.
    Tiered,
    /// All that can be merged.
    All,
    /// These fragments, and no other.
    Fragments(Vec<Id>),
    /// Small fragments of cells, and small dense ones, with each other; what they lie on only where they pass a tenth of its cells.
    Updates,
    /// All that touches the box, and what must go with it.
    Box(Subarray),
    /// No fragment: the list of fragments itself is packed.
    Manifest,
}

/// Limits of a plan.
#[derive(Debug, Clone, Copy)]
pub struct PlanLimits {
    /// Bytes of memory that the inputs of one merge may take while they are read, about.
    pub memory_bytes: u64,
    /// Bytes of memory that a decoded cell takes, about.
    pub cell_bytes: u64,
}

/// Fragments that merged ones take the place of.
#[derive(Debug, Clone)]
pub struct Merge {
    /// The fragments whose cells are merged, by ascending order.
    pub inputs: Vec<Arc<Description>>,
    /// The tombstones and deletions that are applied to inputs older than they, and the masks over inputs.
    pub applied: Vec<Arc<Description>>,
    /// Tombstones that nothing older is left under: they are taken out with the inputs.
    pub retired: Vec<Arc<Description>>,
    /// The boxes that become dense fragments, disjoint; none if the inputs become fragments of cells, or nothing is left of
    /// them.
    pub boxes: Vec<Subarray>,
    /// Whether some of the inputs are dense, and become cells with the others.
    pub as_cells: bool,
}

impl Merge {
    /// The order of the result: the greatest of the inputs.
    pub fn order(&self) -> FragmentOrder {
        self.inputs.iter().map(|d| d.order).max().unwrap_or(FragmentOrder { version: 0, index: 0 })
    }

    /// Whether its inputs become fragments of cells.
    pub fn is_of_cells(&self) -> bool {
        // Of a dense fragment that is deleted wholly no box is left.
        self.as_cells || self.boxes.is_empty() && self.inputs.iter().all(|d| d.kind != FragmentKind::Dense)
    }

    /// Whether its inputs are tombstones, which become one fragment of them.
    pub fn is_of_tombstones(&self) -> bool {
        !self.inputs.is_empty() && self.inputs.iter().all(|d| d.kind == FragmentKind::Tombstones)
    }

    /// Whether every attribute of the inputs may be null: a dense result then needs no tombstone where a cell was deleted.
    pub fn is_clearable(&self, schema: &Schema) -> bool {
        let mut attrs = self.inputs.iter().flat_map(|d| attrs_seen(schema, d));
        attrs.all(|id| schema.attr_by_id(id).is_some_and(Attribute::nullable))
    }

    /// Bytes that are read, at most.
    pub fn bytes(&self) -> u64 {
        self.inputs.iter().chain(&self.applied).map(|d| d.location.len).sum()
    }

    /// Cells that are read, at most.
    pub fn cells(&self) -> u64 {
        self.inputs.iter().map(|d| d.cells).sum()
    }

    /// Stored bytes of a cell of the result, about.
    pub fn bytes_per_cell(&self) -> u64 {
        let like = |d: &&Arc<Description>| self.is_of_cells() || d.kind == FragmentKind::Dense;
        let (bytes, cells) =
            self.inputs.iter().filter(like).fold((0, 0), |(b, c), d| (b + d.location.len, c + d.cells));
        bytes / cells.max(1) + 1
    }

    /// Cells that are written, at most.
    pub fn cells_written(&self) -> u64 {
        if self.is_of_cells() {
            return self.cells();
        }
        u64::try_from(self.boxes.iter().map(Subarray::cells).sum::<u128>()).unwrap_or(u64::MAX)
    }

    /// Bytes that are written, about.
    pub fn bytes_written(&self) -> u64 {
        self.cells_written().saturating_mul(self.bytes_per_cell()).min(self.bytes().max(1))
    }
}

/// What is merged, in this order. Merges have no input in common, and each is legal after those before it.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    /// The merges.
    pub merges: Vec<Merge>,
    /// Tombstones that nothing older is left under once all merges are done.
    pub swept: Vec<Arc<Description>>,
}

/// The merges of `strategy` over all `fragments` of an array, by ascending order. Input if fragments that were named cannot be
/// merged.
pub fn plan(schema: &Schema, fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Result<Plan> {
    if *strategy == Strategy::Manifest {
        return Ok(Plan::default());
    }
    let seen = Seen::new(schema, fragments);
    let (unmasked, masks) = masks::apart(&seen.fragments);
    let mut found = match seen.asked(strategy) {
        Strategy::Fragments(ids) if ids.is_empty() => Plan::default(),
        Strategy::Fragments(ids) => named(schema, &unmasked, &ids, limits)?,
        _ => chosen(schema, &unmasked, strategy, limits),
    };
    seen.rid(schema, &mut found, strategy);
    Ok(seen.restored(masks::applied(&unmasked, &masks, found, strategy)))
}

/// The merges of a strategy over all fragments but masks.
fn chosen(schema: &Schema, fragments: &[Arc<Description>], strategy: &Strategy, limits: PlanLimits) -> Plan {
    let dense = match strategy {
        _ if schema.sparse() => Vec::new(),
        Strategy::Tiered => dense::tiers(schema, fragments),
        Strategy::Updates => dense::updated(schema, fragments),
        Strategy::Box(sub) => dense::within(schema, fragments, sub),
        Strategy::All | Strategy::Fragments(_) | Strategy::Manifest => dense::all(schema, fragments),
    };
    // What the dense merges leave, with their results where they will stand.
    let mut rest = after(fragments, &dense);
    let patches = match strategy {
        Strategy::Tiered | Strategy::Updates => Patches::found(&mut rest, &dense),
        // These merge what lies in a dense fragment with it, or were not asked to.
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

/// The merge of a run of fragments of cells.
fn of_cells(inputs: Run) -> Merge {
    Merge { inputs, applied: Vec::new(), retired: Vec::new(), boxes: Vec::new(), as_cells: false }
}

/// What a fragment does to what lies under it; `None`: nothing that a merge could do for it.
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

/// The fragments, by ascending order, after these merges.
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

/// The merge of the fragments with these ids, or several where they are cells that do not fit into memory together.
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
    } else if merge.inputs.len() > 1 {
        vec![merge]
    } else {
        Vec::new()
    };
    Ok(tombstones::applied(schema, fragments, merges, &Strategy::Fragments(Vec::new())))
}

/// What is said of fragments that were named and cannot be merged.
fn refused() -> Error {
    Error::input(
        "these fragments cannot be merged: they must be cells with the same attributes, or dense boxes that make few boxes together, \
         with the updates that lie wholly inside, or tombstones; and no other fragment that touches one of them may stand between \
         them in order",
    )
}
