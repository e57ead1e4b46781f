//! Reductions of dense boxes along axes: the other axes remain, and each of their places is a group, known by its number.
//!
//! The box is taken in slabs along the slowest axis that remains, so that the states of a slab fit a share of the budget. A slab
//! ends at tiles where it can, and is read tile by tile.

use super::answer::ResultColumn;
use super::chunk::{Asked, Chunk, Selected};
use super::columns::join;
use super::dense::{DenseCells, DensePart};
use super::gathering::Gathering;
use super::plan::{Outcome, Plan, Question};
use super::stage::Stages;
use super::state::input::{Lines, Rows, strange};
use crate::base::{Error, Result};
use crate::condition::Bound;
use crate::query::request::{ReadContext, Request, Target};
use crate::schema::{Attribute, KeyRange, Schema, Subarray};
use crate::tile::Column;
use std::sync::Arc;

/// Bytes of states that a slab may have, of each thread, as a share of the budget.
const SHARE: u64 = 8;
/// Bytes of a state of one group, about.
const STATE_BYTES: u64 = 32;

/// Which cells of a box count.
#[derive(Debug)]
pub enum Where {
    /// All.
    All,
    /// Those that a condition selects.
    Condition(Bound),
    /// Those whose byte is not 0; cells of the box in row order.
    Mask(Vec<u8>),
}

/// A reduction of a dense box.
#[derive(Debug)]
pub struct Reduction {
    asked: Asked,
    /// The axes that remain, ascending.
    kept: Vec<usize>,
    cells: Where,
}

/// A slab of the box: the part of it, and the sides of the axes that remain.
struct Slab {
    sub: Subarray,
    sides: Vec<KeyRange>,
}

impl Reduction {
    /// Plans the reduction of arrays of a schema to the axes in `kept`.
    ///
    /// # Errors
    /// Input: names or types that do not fit the schema, or an aggregate that needs all values at once.
    pub fn new(schema: Arc<Schema>, question: &Question, kept: Vec<usize>, cells: Where) -> Result<Self> {
        let plan = Plan::new(&schema, question)?;
        if !question.by.is_empty() || plan.stages.all().len() > 1 {
            return Err(Error::input(
                "median, quantile and count_distinct are no reductions along axes; ask for them with aggregate()",
            ));
        }
        let mut attrs = plan.columns_needed(schema.ndim()).attrs;
        if let Where::Condition(bound) = &cells {
            attrs.extend(bound.columns().attrs);
            attrs.sort_unstable();
            attrs.dedup();
        }
        Ok(Self { asked: Asked { schema, plan, attrs }, kept, cells })
    }

    /// The attributes that it looks at, by place.
    pub fn attrs(&self) -> &[usize] {
        &self.asked.attrs
    }

    /// The results over a box, a column per aggregate: one value for each place along the axes that remain, in row order.
    ///
    /// # Errors
    /// Those of a read; Input: a value that an expression or an aggregate cannot take.
    pub fn of_box(
        &self,
        context: &ReadContext,
        target: &Target,
        request: &Request,
    ) -> Result<Vec<(ResultColumn, Column)>> {
        let mut all: Option<Vec<Column>> = None;
        for slab in self.slabs(context, &request.sub) {
            let made = self.of_slab(context, target, (request, &slab))?;
            match &mut all {
                None => all = Some(made),
                Some(all) => all.iter_mut().zip(&made).for_each(|(mine, more)| join(mine, more)),
            }
        }
        Ok(self.asked.plan.columns.iter().cloned().zip(all.unwrap_or_default()).collect())
    }

    /// The results over a box without a cell, at so many places.
    ///
    /// # Errors
    /// Budget: too many places.
    pub fn of_nothing(&self, places: u64) -> Result<Vec<(ResultColumn, Column)>> {
        let groups =
            u32::try_from(places).map_err(|_| Error::budget(format!("a reduction to {places} values at once")))?;
        let stages = self.asked.plan.stages.of_groups(groups as usize);
        Ok(self.asked.plan.columns.iter().cloned().zip(self.results(&stages, groups)?).collect())
    }

    /// The results of all groups.
    fn results(&self, stages: &Stages, groups: u32) -> Result<Vec<Column>> {
        let order: Vec<u32> = (0..groups).collect();
        let stage = stages.all().first().ok_or_else(strange)?;
        let finish = |outcome: &Outcome| match outcome {
            Outcome::State(place) => stage.state(*place).ok_or_else(strange)?.finish(&order),
            Outcome::Values(..) => Err(strange()),
        };
        self.asked.plan.outcomes.iter().map(finish).collect()
    }

    fn slabs(&self, context: &ReadContext, sub: &Subarray) -> Vec<Slab> {
        let sides =
            |sub: &Subarray| self.kept.iter().filter_map(|axis| sub.ranges().get(*axis)).copied().collect::<Vec<_>>();
        let (Some(axis), all) = (self.kept.first().copied(), sides(sub)) else {
            return vec![Slab { sub: sub.clone(), sides: Vec::new() }];
        };
        let Some((slowest, others)) = all.split_first() else { return Vec::new() };
        let states = self.asked.plan.stages.all().first().map_or(1, |stage| stage.states_len()) as u128;
        let beside = others.iter().map(|side| side.count()).product::<u128>() * states * u128::from(STATE_BYTES);
        let room = u128::from(context.budget.limit_bytes() / SHARE / context.pool.threads() as u64);
        let count = u64::try_from((room / beside.max(1)).max(1)).unwrap_or(u64::MAX);
        let dim = self.asked.schema.dims().get(axis);
        let (mut slabs, mut low) = (Vec::new(), slowest.lo);
        loop {
            let mut high = low.saturating_add(count - 1).min(slowest.hi);
            // A slab that ends within a tile would have its cells decoded twice.
            if let Some(tile) = dim.map(|dim| dim.tile_range(dim.tile_of(high)))
                && high < slowest.hi
                && high < tile.hi
                && tile.lo > low
            {
                high = tile.lo - 1;
            }
            let mut ranges = sub.ranges().to_vec();
            if let Some(range) = ranges.get_mut(axis) {
                *range = KeyRange::new(low, high);
            }
            let part = Subarray::new(ranges);
            slabs.push(Slab { sides: sides(&part), sub: part });
            if high >= slowest.hi {
                return slabs;
            }
            low = high + 1;
        }
    }

    fn of_slab(&self, context: &ReadContext, target: &Target, (whole, slab): (&Request, &Slab)) -> Result<Vec<Column>> {
        let request = Request { sub: slab.sub.clone(), ..whole.clone() };
        let groups = slab.sides.iter().map(|side| side.count()).product::<u128>();
        let groups = u32::try_from(groups).map_err(|_| {
            Error::budget(format!("a reduction to {groups} values at once; reduce more axes, or a smaller box"))
        })?;
        let mut gathering = Gathering::new(self.asked.plan.stages.of_groups(groups as usize));
        let mut cells = DenseCells::new(context, target, &request, false)?;
        let units_max = context.pool.threads() * 16;
        let mut units = Vec::with_capacity(units_max);
        loop {
            let next = cells.next()?;
            let ended = next.is_none();
            match next {
                Some(DensePart::Unit(region)) => units.push(region),
                Some(DensePart::Whole(tile)) => cells.cut(&tile.bounds),
                None => {}
            }
            if units.len() == units_max || ended {
                self.take_units(&mut gathering, &cells, (&whole.sub, slab), std::mem::take(&mut units))?;
            }
            if ended {
                break;
            }
        }
        gathering.settle(context.cancel.as_ref())?;
        self.results(&gathering.stages, groups)
    }

    fn take_units(
        &self,
        gathering: &mut Gathering,
        cells: &DenseCells,
        (whole, slab): (&Subarray, &Slab),
        units: Vec<Subarray>,
    ) -> Result<()> {
        let schema = &cells.plan.schema;
        let attrs: Vec<&Attribute> = self.asked.attrs.iter().filter_map(|place| schema.attrs().get(*place)).collect();
        let _begun = match cells.plan.is_far() {
            true => Some(cells.plan.begin(&cells.context, units.iter().collect(), &attrs)?),
            false => None,
        };
        let take = |stages: &mut Stages, region: Subarray| {
            let columns = cells.plan.paint(&cells.context, &region, &attrs)?;
            let chunk = Chunk::of_box(&region, columns, 0);
            let lines = self.lines_of(schema, &region, slab);
            let selected = match &self.cells {
                Where::All => Selected::All,
                Where::Condition(bound) => Selected::By(bound),
                Where::Mask(mask) => Selected::Rows(rows_of(mask, schema, &region, whole)),
            };
            let rows = match &lines {
                Some((firsts, length, step)) => Rows::Lines(Lines { firsts, length: *length, step: *step }),
                None => Rows::One(self.first_group(&region, slab), chunk.rows),
            };
            self.asked.take_grouped(stages, &chunk, rows, selected)
        };
        gathering.take_each(&cells.context, units, take)
    }

    /// The strides of the axes that remain, over the groups of a slab.
    fn strides(&self, slab: &Slab) -> Vec<u64> {
        let mut strides = vec![0; self.kept.len()];
        let mut step = 1;
        for (stride, side) in strides.iter_mut().zip(&slab.sides).rev() {
            *stride = step;
            step *= side.hi - side.lo + 1;
        }
        strides
    }

    /// The group of the low corner of a region.
    fn first_group(&self, region: &Subarray, slab: &Slab) -> u32 {
        let low = |axis: &usize| region.ranges().get(*axis).map_or(0, |range| range.lo);
        let axes = self.kept.iter().map(low).zip(&slab.sides).zip(self.strides(slab));
        axes.map(|((low, side), stride)| (low - side.lo) * stride).sum::<u64>() as u32
    }

    /// The first groups of the lines of a region, in cell order, the length of a line, and how far the groups of two neighbours in
    /// it are apart; `None` if all cells are of one group.
    fn lines_of(&self, schema: &Schema, region: &Subarray, slab: &Slab) -> Option<(Vec<u32>, usize, u32)> {
        let shape = region.shape();
        if self.kept.iter().all(|axis| shape.get(*axis) == Some(&1)) {
            return None;
        }
        let strides = self.strides(slab);
        let stride = |axis: usize| {
            let kept = self.kept.iter().position(|kept| *kept == axis).and_then(|place| strides.get(place));
            kept.copied().unwrap_or(0) as u32
        };
        let axes: Vec<usize> = schema.options().cell_order.slowest_first(shape.len()).collect();
        let (fastest, slower) = axes.split_last()?;
        let mut firsts = vec![self.first_group(region, slab)];
        for axis in slower {
            let Some(count) = shape.get(*axis).filter(|count| **count > 1) else { continue };
            let step = stride(*axis);
            firsts = firsts.iter().flat_map(|group| (0..*count as u32).map(move |at| group + at * step)).collect();
        }
        Some((firsts, *shape.get(*fastest)? as usize, stride(*fastest)))
    }
}

/// The cells of a region, in cell order, whose byte in `mask` is not 0, which has the cells of `whole` in row order.
fn rows_of(mask: &[u8], schema: &Schema, region: &Subarray, whole: &Subarray) -> Vec<u32> {
    let strides = crate::schema::Order::Row.strides(&whole.shape());
    let mut places = vec![0u64];
    for (range, (own, stride)) in region.ranges().iter().zip(whole.ranges().iter().zip(&strides)) {
        places.iter_mut().for_each(|place| *place += (range.lo - own.lo) * stride);
    }
    let shape = region.shape();
    for axis in schema.options().cell_order.slowest_first(shape.len()) {
        let (Some(count), Some(stride)) = (shape.get(axis), strides.get(axis)) else { continue };
        places = places.iter().flat_map(|place| (0..*count).map(move |step| place + step * stride)).collect();
    }
    let is_set = |place: &u64| mask.get(*place as usize).is_some_and(|byte| *byte != 0);
    (0u32..).zip(&places).filter(|(_, place)| is_set(place)).map(|(row, _)| row).collect()
}
