//! Units of a dense read whose blocks are asked for before the units are read, where the answer to a request takes long: those of many units
//! together, and while the units before them are decoded.
//!
//! Left out are cells that lie in a sparse fragment, and what newer fragments hide. Memory holds what was asked for of two groups of
//! units, those that are read and the next, both a share of the budget and counted in it.

use super::layer::LayerKind;
use super::piece::piece_ranges;
use super::plan::{CellSource, DensePlan, Unit};
use super::result::ResultColumn;
use crate::base::{Begun, ByteRange, Result};
use crate::fragment::{Role, TileSource};
use crate::query::cells::layout::ResultLayout;
use crate::query::request::{BudgetHold, ReadContext};
use crate::schema::{Attribute, Subarray};
use std::collections::VecDeque;
use std::sync::Arc;

/// Units that are asked for together, at most.
pub(in crate::query) const UNITS_MAX: usize = 1_024;
/// Bytes that are asked for together, and bytes of cells that are read together, at most.
pub(in crate::query) const BYTES_MAX: u64 = 16 << 20;

fn asked_max(context: &ReadContext) -> u64 {
    BYTES_MAX.min(context.batch_bytes())
}

/// Units that are read together.
pub(in crate::query) struct Group<'a> {
    pub(in crate::query) units: Vec<Unit>,
    /// What was asked for them; it is on its way as long as this is held.
    _begun: Vec<Arc<dyn Begun>>,
    _held: BudgetHold<'a>,
}

/// The units of a read in groups.
pub(super) struct RemotePrefetch<'a, I: Iterator<Item = Unit>> {
    pub(in crate::query) context: &'a ReadContext,
    pub(in crate::query) plan: &'a DensePlan,
    pub(super) results: &'a [ResultColumn<'a>],
    pub(in crate::query) painted: &'a [&'a Attribute],
    pub(in crate::query) layout: &'a ResultLayout,
    pub(in crate::query) row_bytes: u64,
    pub(in crate::query) units: I,
    /// Units of which it is known what they need, and are in no group yet.
    pub(in crate::query) looked: VecDeque<(Unit, Wanted<'a>)>,
}

impl<'a, I: Iterator<Item = Unit>> RemotePrefetch<'a, I> {
    /// The next; of no unit at the end.
    pub(in crate::query) fn next_group(&mut self) -> Result<Group<'a>> {
        let budget = &self.context.budget;
        if !self.plan.is_far() {
            let units = self.units.by_ref().take(self.context.pool.threads() * 16).collect();
            return Ok(Group { units, _begun: Vec::new(), _held: BudgetHold::take(budget, 0) });
        }
        let cells_max = BYTES_MAX.min(self.context.batch_bytes().saturating_mul(4));
        let asked_max = asked_max(self.context);
        let (mut units, mut all) = (Vec::new(), Wanted::default());
        let (mut cells, mut asked) = (0u64, 0u64);
        while units.len() < UNITS_MAX {
            if self.looked.is_empty() {
                self.look()?;
            }
            let Some((unit, wanted)) = self.looked.pop_front() else { break };
            let more = (unit.region.cells() as u64).saturating_mul(self.row_bytes);
            let sums = (cells.saturating_add(more), asked.saturating_add(wanted.bytes()));
            if !units.is_empty() && (sums.0 > cells_max || sums.1 > asked_max) {
                self.looked.push_front((unit, wanted));
                break;
            }
            (cells, asked) = sums;
            units.push(unit);
            wanted.files.into_iter().for_each(|(source, ranges)| all.push(source, ranges));
        }
        let held = BudgetHold::take(budget, asked);
        Ok(Group { units, _begun: all.begin(), _held: held })
    }

    /// Finds what some more units need, side by side: indexes of fragments may have to be read for it.
    fn look(&mut self) -> Result<()> {
        let some: Vec<Unit> = self.units.by_ref().take(self.context.pool.threads() * 16).collect();
        let wanted = |unit: Unit| {
            // What is wrong is told by the read, if it needs it.
            let wanted = self.plan.wanted(self.results, self.painted, &unit, self.layout).unwrap_or_default();
            Ok((unit, wanted))
        };
        self.looked.extend(self.context.pool.map(some, self.context.cancel.as_ref(), wanted)?);
        Ok(())
    }
}

/// Ranges wanted, those of each file together.
#[derive(Default)]
pub(in crate::query) struct Wanted<'p> {
    files: Vec<(&'p Arc<dyn TileSource>, Vec<ByteRange>)>,
}

impl<'p> Wanted<'p> {
    fn push(&mut self, source: &'p Arc<dyn TileSource>, ranges: Vec<ByteRange>) {
        match self.files.iter_mut().find(|(other, _)| std::ptr::eq(*other, source)) {
            Some((_, all)) => all.extend(ranges),
            None => self.files.push((source, ranges)),
        }
    }

    fn begin(self) -> Vec<Arc<dyn Begun>> {
        self.files.into_iter().filter_map(|(source, ranges)| source.source().begin(&ranges)).collect()
    }

    fn bytes(&self) -> u64 {
        self.files.iter().flat_map(|(_, ranges)| ranges).map(|range| range.len).fold(0, u64::saturating_add)
    }
}

impl DensePlan {
    /// Asks for what is decoded to paint attributes in some regions, the first of them as far as memory allows; it is on its way as long as the
    /// result is held.
    ///
    /// # Errors
    /// Cancelled.
    pub(in crate::query) fn begin<'a>(
        &self,
        context: &'a ReadContext,
        regions: Vec<&Subarray>,
        attrs: &[&Attribute],
    ) -> Result<(Vec<Arc<dyn Begun>>, BudgetHold<'a>)> {
        let (mut all, mut asked) = (Wanted::default(), 0u64);
        if !attrs.is_empty() {
            let wanted = |region: &Subarray| {
                let mut wanted = Wanted::default();
                // What is wrong is told by the read, if it needs it.
                let found = attrs.iter().try_for_each(|attr| self.want_blocks(attr, region, &mut wanted));
                Ok(if found.is_ok() { wanted } else { Wanted::default() })
            };
            for wanted in context.pool.map(regions, context.cancel.as_ref(), wanted)? {
                asked = asked.saturating_add(wanted.bytes());
                if asked > asked_max(context) {
                    break;
                }
                wanted.files.into_iter().for_each(|(source, ranges)| all.push(source, ranges));
            }
        }
        let held = BudgetHold::take(&context.budget, all.bytes());
        Ok((all.begin(), held))
    }

    /// What a unit will read.
    fn wanted(
        &self,
        results: &[ResultColumn<'_>],
        painted: &[&Attribute],
        Unit { region, tile, .. }: &Unit,
        layout: &ResultLayout,
    ) -> Result<Wanted<'_>> {
        let (mut wanted, to) = (Wanted::default(), layout.place(region, *tile));
        for attr in results.iter().map(|result| result.attr) {
            match self.origin(attr, region) {
                CellSource::One(source) => {
                    wanted.push(source, piece_ranges(attr, source.as_ref(), region, &to)?);
                }
                CellSource::Many => self.want_blocks(attr, region, &mut wanted)?,
                CellSource::Nowhere(_) => {}
            }
        }
        painted.iter().try_for_each(|attr| self.want_blocks(attr, region, &mut wanted))?;
        Ok(wanted)
    }

    /// Wants what is decoded to paint an attribute in a region.
    fn want_blocks<'p>(&'p self, attr: &Attribute, region: &Subarray, wanted: &mut Wanted<'p>) -> Result<()> {
        for (place, layer) in self.layers.iter().enumerate() {
            let LayerKind::Dense(source) = &layer.kind else { continue };
            let part = region.intersect(&source.description().bounds);
            let (Some(part), Some(field)) = (part, source.field(Role::Attribute(attr.id()))) else { continue };
            if self.shadowed(place, attr, &part) {
                continue;
            }
            let mut ranges = Vec::new();
            for part in source.parts(&part)? {
                if !self.shadowed(place, attr, &part.region) {
                    ranges.push(source.block(field, part.block)?.range);
                }
            }
            wanted.push(source, ranges);
        }
        Ok(())
    }
}
