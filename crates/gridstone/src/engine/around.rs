//! Reading what is readable: around damaged blocks, lost files and pages, with a list of what was left out.

use super::boxes::parse_box;
use super::regions::{LostPages, Planned, is_filtered};
use super::{Array, Call, ReadBox};
use crate::base::{CounterSnapshot, Counters, Id, Result};
use crate::condition::Condition;
use crate::query::{Around, ReadOrder, Scan, Skipped, around, is_damage, read_dense};
use crate::schema::{Region, Schema};
use crate::tile::Cells;
use std::mem;

/// Something of a read that was left out because it is damaged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SkippedCells {
    /// The damaged fragment, or the one under a damaged mask; `None`: all that a manifest page tells of.
    pub fragment: Option<Id>,
    /// The data tile, where only that.
    pub tile: Option<u64>,
    /// The attribute (of sparse cells also the dimension) whose bytes are damaged; `None`: more than one column is.
    pub column: Option<String>,
    /// The box of what was left out, within the one asked for, in texts: low and high per dimension, inclusive.
    pub domain: Vec<(String, String)>,
    /// How many cells of the fragment at most.
    pub cells: u64,
    /// What is wrong.
    pub message: String,
}

impl SkippedCells {
    fn of(skipped: Skipped, schema: &Schema) -> Self {
        let Skipped { fragment, tile, column, bounds, cells, message } = skipped;
        Self { fragment, tile, column, domain: schema.ends(&bounds), cells, message }
    }
}

/// A read of what is readable.
#[derive(Debug)]
pub struct Partial {
    /// The cells: those of sparse arrays in a box that was left out are absent, those of dense ones fill, or null.
    pub cells: Cells,
    /// The box's shape, of a dense array without a condition.
    pub shape: Option<Vec<u64>>,
    /// What the read did, with the search for damage.
    pub counters: CounterSnapshot,
    /// What was left out; empty if nothing is damaged.
    pub skipped: Vec<SkippedCells>,
}

impl Array {
    /// As [`Array::read`], or [`Array::read_where`] with a condition, leaving out what is damaged and saying what that was. Where a newer
    /// fragment is damaged the older cells under it are left out too, since what was written last is not known there.
    /// Nothing is looked for, and nothing read twice, unless a plain read fails.
    ///
    /// # Errors
    /// Those of [`Array::read`], without Corruption of what lies in fragments, masks and manifest pages; Access if the store is sealed
    /// with another key.
    pub fn read_around(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<Partial> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.read_region_around(region.as_ref(), attrs, condition, order, call)
    }

    /// As [`Array::read_around`], of a region (`None`: the whole domain): one box of a dense array without a condition is given as its
    /// cells in their places, anything else as [`Array::read_region`] gives it.
    ///
    /// # Errors
    /// As there.
    pub fn read_region_around(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<Partial> {
        let schema = self.schema()?;
        let plain = if schema.sparse() || is_filtered(region, condition) {
            self.read_region(region, attrs, condition, order, call).map(|(cells, counters)| (cells, None, counters))
        } else {
            self.read_box(region, attrs, order, call)
        };
        match plain {
            Err(error) if is_damage(&error) => {}
            plain => {
                return plain.map(|(cells, shape, counters)| Partial { cells, shape, counters, skipped: Vec::new() });
            }
        }
        let (plan, skipped) = self.plan_around(region, attrs, condition, order, call)?;
        let (cells, shape) = if plan.unfiltered && !plan.target.schema.sparse() {
            let cells = read_dense(&plan.context, &plan.target, &plan.request);
            (plan.context.explain_missing(cells)?, Some(plan.request.sub.shape()))
        } else {
            (plan.cells()?, None)
        };
        Ok(Partial { cells, shape, counters: plan.context.counters.snapshot(), skipped })
    }

    /// As [`Array::scan`], or [`Array::scan_where`], leaving out what is damaged; the whole box is looked at before the first batch.
    ///
    /// # Errors
    /// As [`Array::read_around`].
    pub fn scan_around(
        &self,
        sub: ReadBox<'_>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        form: (ReadOrder, u64),
        call: &Call,
    ) -> Result<(Scan, Vec<SkippedCells>)> {
        let region = parse_box(self.schema()?.as_ref(), sub)?;
        self.scan_region_around(region.as_ref(), attrs, condition, form, call)
    }

    /// As [`Array::scan_around`], of a region.
    ///
    /// # Errors
    /// As there.
    pub fn scan_region_around(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        (order, batch_bytes): (ReadOrder, u64),
        call: &Call,
    ) -> Result<(Scan, Vec<SkippedCells>)> {
        let (plan, skipped) = self.plan_around(region, attrs, condition, order, call)?;
        Ok((plan.scan(batch_bytes)?, skipped))
    }

    /// The plan of a read with holes in the place of what is damaged, and what that is.
    fn plan_around(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<(Planned, Vec<SkippedCells>)> {
        let mut plan = self.plan_region(region, attrs, condition, order, LostPages::Told, call)?;
        if !plan.any {
            return Ok((plan, Vec::new()));
        }
        let (also, pages) = (plan.bound.columns().attrs, mem::take(&mut plan.lost));
        let Around { context, target, mut skipped } = around(&plan.context, &plan.target, &plan.request, &also, pages)?;
        skipped.retain(|skipped| region.is_none_or(|region| region.touches(&skipped.bounds)));
        Counters::add(&context.counters.regions_skipped, skipped.len() as u64);
        let skipped = skipped.into_iter().map(|s| SkippedCells::of(s, &target.schema)).collect();
        Ok((Planned { context, target, ..plan }, skipped))
    }
}
