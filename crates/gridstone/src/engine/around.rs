//! Reading what is readable: around damaged blocks, lost files and pages, with a list of what was left out.

use super::boxes::parse_box;
use super::regions::narrowed;
use super::{Array, Call, ReadBox};
use crate::base::{CounterSnapshot, Counters, Error, Id, Result};
use crate::fragment::FragmentOrder;
use crate::query::condition::{Bound, Condition};
use crate::query::{
    Around, Cells, LostPage, ReadOrder, Request, Scan, Skipped, Target, around, is_damage, read_dense, read_sparse,
    read_where,
};
use crate::schema::{Region, Schema, Subarray};
use std::sync::Arc;

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

/// A read planned around damage.
struct Plan {
    around: Around,
    request: Request,
    bound: Option<Bound>,
    /// Whether some cell may be selected.
    any: bool,
}

/// Whether cells are picked from the box that is planned.
fn is_filtered(region: Option<&Region>, condition: Option<&Condition>) -> bool {
    condition.is_some() || region.is_some_and(|region| region.only().is_none())
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
            let ends = region.and_then(Region::only).map(|sub| schema.ends(sub));
            self.read(ends.as_deref(), attrs, order, call)
        };
        match plain {
            Err(error) if is_damage(&error) => {}
            plain => {
                return plain.map(|(cells, shape, counters)| Partial { cells, shape, counters, skipped: Vec::new() });
            }
        }
        let Plan { around, request, bound, any } = self.plan_around(region, attrs, condition, order, call)?;
        let Around { context, target, skipped } = around;
        let mut shape = None;
        let cells = match &bound {
            _ if !any => Ok(Cells::none(&target.schema, &request)),
            Some(bound) => read_where(&context, &target, &request, bound),
            None if target.schema.sparse() => read_sparse(&context, &target, &request),
            None => {
                shape = Some(request.sub.shape());
                read_dense(&context, &target, &request)
            }
        };
        let skipped = skipped.into_iter().map(|s| SkippedCells::of(s, &target.schema)).collect();
        Ok(Partial { cells: context.explained(cells)?, shape, counters: context.counters.snapshot(), skipped })
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
        let Plan { around, request, bound, any } = self.plan_around(region, attrs, condition, order, call)?;
        let Around { context, target, skipped } = around;
        let skipped = skipped.into_iter().map(|s| SkippedCells::of(s, &target.schema)).collect();
        let again = context.clone();
        let scan = match &bound {
            _ if !any => Ok(Scan::nothing(context, target, request)),
            Some(bound) => Scan::filtered(context, target, request, batch_bytes, bound),
            None => Scan::new(context, target, request, batch_bytes),
        };
        Ok((again.explained(scan)?, skipped))
    }

    fn plan_around(
        &self,
        region: Option<&Region>,
        attrs: Option<&[String]>,
        condition: Option<&Condition>,
        order: ReadOrder,
        call: &Call,
    ) -> Result<Plan> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema()?.clone();
        let (reach, bound) = narrowed(&schema, region, condition)?;
        let bound = is_filtered(region, condition).then_some(bound);
        let any = reach.is_some();
        let request = Request::new(&schema, reach, attrs, order)?;
        let target = |fragments| Target { array: self.id(), schema: Arc::clone(&schema), fragments };
        if !any {
            let around =
                Around { context: self.read_context(&snapshot, call), target: target(Vec::new()), skipped: Vec::new() };
            return Ok(Plan { around, request, bound, any });
        }
        match region {
            Some(region) => {
                region.touching(&request.sub).filter_map(|b| b.intersect(&request.sub)).for_each(|b| self.note(&b));
            }
            None => self.note(&request.sub),
        }
        let touched = |sub: &Subarray| region.is_none_or(|region| region.touches(sub));
        let (fragments, lost) = match self.described(&snapshot, &state, Some(&request.sub)) {
            Err(error) if is_damage(&error) => state.fragments_around(Some(&request.sub))?,
            described => (described?, Vec::new()),
        };
        // Pages hold what was committed up to the root.
        let after = FragmentOrder { version: snapshot.root_version().saturating_add(1), index: 0 };
        let pages: Vec<LostPage> = lost.into_iter().map(|(bounds, error): (_, Error)| (bounds, after, error)).collect();
        let target = target(fragments.into_iter().filter(|d| touched(&d.bounds)).collect());
        let context = self.read_context(&snapshot, call);
        let also = bound.as_ref().map(|bound| bound.columns().attrs).unwrap_or_default();
        let mut around = around(&context, &target, &request, &also, pages)?;
        around.skipped.retain(|skipped| touched(&skipped.bounds));
        Counters::add(&context.counters.regions_skipped, around.skipped.len() as u64);
        Ok(Plan { around, request, bound, any })
    }
}
