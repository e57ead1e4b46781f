//! Reading dense arrays.
//!
//! 1. Plan: the box is cut into units, each a part of one space tile made of whole blocks.
//! 2. A unit is painted from its oldest fragment to its newest: dense fragments box by box, sparse ones and the overlay
//!    cell by cell. What a newer dense fragment covers wholly is never fetched.
//! 3. Painted units are copied to their place in the result. Units are independent and run in parallel.
//!
//! Attributes of fixed width without nulls need no painting where one fragment stands alone: see `copy.rs`.

use super::canvas::Canvas;
use super::plan::{DensePlan, Unit};
use super::prefetch::RemotePrefetch;
use super::readahead::Readahead;
use super::result::{ResultColumn, split};
use crate::base::{Counters, Error, Result};
use crate::query::cells::layout::ResultLayout;
use crate::query::cells::shared_result::SharedResult;
use crate::query::request::{ALONE_BYTES_MAX, ReadContext, Request, Target, attrs_of, is_deliverable};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{Cells, Column, Strided};
use std::collections::VecDeque;
use std::sync::Arc;

/// Reads a box whole; every column has the box's cells in the layout asked for.
///
/// # Errors
/// Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
pub fn read_dense(context: &ReadContext, target: &Target, request: &Request) -> Result<Cells> {
    let schema = target.schema.clone();
    let count = cell_count(&schema, request)?;
    let (delivered, painted) = split(&schema, request);
    let attr = |place: &usize| request.attrs.get(*place).and_then(|p| schema.attrs().get(*p));
    let mut canvases: Vec<Canvas<'_>> =
        painted.iter().filter_map(attr).map(|a| Canvas::new(a, count)).collect::<Result<_>>()?;
    let mut buffers = Vec::with_capacity(delivered.len());
    for attr in delivered.iter().filter_map(attr) {
        buffers.push(context.arena.take_cells(count, attr.datatype().width().unwrap_or(1))?);
    }
    let targets = delivered.iter().filter_map(attr).zip(&mut buffers);
    let results: Vec<ResultColumn<'_>> =
        targets.map(|(attr, buf)| ResultColumn { attr, slots: SharedResult::new(buf.as_mut_slice()) }).collect();
    fill_dense(context, target, request, &results, &mut canvases)?;
    let made = delivered.iter().filter_map(attr).zip(buffers).map(|(a, b)| Column::new(a.datatype(), b, None, None));
    let (mut made, mut drawn) = (made, canvases.into_iter().map(Canvas::finish));
    let columns =
        (0..request.attrs.len()).filter_map(|p| if painted.contains(&p) { drawn.next() } else { made.next() });
    Ok(Cells { count, dims: Vec::new(), attrs: columns.collect::<Result<_>>()? })
}

/// As [`read_dense`], into buffers of the caller: one per attribute asked for, each as long as the box's cells. Only for
/// attributes of fixed width without nulls (none made of booleans); Input otherwise.
pub fn read_dense_into(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    outs: &mut [&mut [u8]],
) -> Result<()> {
    let schema = target.schema.clone();
    let count = cell_count(&schema, request)?;
    let mut results = Vec::with_capacity(outs.len());
    if outs.len() != request.attrs.len() {
        return Err(Error::input(format!("{} buffers were given for {} attributes", outs.len(), request.attrs.len())));
    }
    for (attr, out) in attrs_of(&schema, request).zip(outs.iter_mut()) {
        let width = attr.datatype().width().filter(|_| is_deliverable(attr));
        if width.and_then(|w| w.checked_mul(count)) != Some(out.len()) {
            return Err(Error::input(format!(
                "a buffer of {} bytes cannot take {count} cells of attribute {:?}, a {}",
                out.len(),
                attr.name(),
                attr.datatype()
            )));
        }
        results.push(ResultColumn { attr, slots: SharedResult::new(out) });
    }
    fill_dense(context, target, request, &results, &mut [])
}

fn cell_count(schema: &Schema, request: &Request) -> Result<usize> {
    usize::try_from(request.sub.cells()).map_err(|e| {
        let asked = schema.describe(&request.sub);
        Error::budget(format!(
            "the box {asked} has {} cells; ask for a smaller one, or stream it with scan()",
            request.sub.cells()
        ))
        .with_source(e)
    })
}

/// Delivers the cells of each result's attribute, and paints each canvas, one per other attribute asked for.
fn fill_dense(
    context: &ReadContext,
    target: &Target,
    request: &Request,
    results: &[ResultColumn<'_>],
    canvases: &mut [Canvas<'_>],
) -> Result<()> {
    let plan = DensePlan::new(context, target, request)?;
    let (count, row_bytes) = (request.sub.cells() as u64, target.row_bytes());
    let layout = ResultLayout::new(&plan.schema, &request.sub, request.order)?;
    let painted: Vec<&Attribute> = canvases.iter().map(Canvas::attr).collect();
    let width: usize = attrs_of(&plan.schema, request).map(|a| a.datatype().width().unwrap_or(16)).sum();
    let alone = plan.touched_cells().saturating_mul(width as u64) <= ALONE_BYTES_MAX;
    let units = plan.units(context, row_bytes)?;
    let (painted, mut done) = (painted.as_slice(), 0u64);
    let (plan, layout, looked) = (&plan, &layout, VecDeque::new());
    let mut groups = RemotePrefetch { context, plan, results, painted, layout, row_bytes, units, looked };
    let mut group = groups.next_group()?;
    while !group.units.is_empty() {
        let next = groups.next_group()?;
        let cells: u64 = group.units.iter().map(|u| u.region.cells() as u64).sum();
        let held = if painted.is_empty() { 0 } else { cells * row_bytes };
        let ahead = plan.is_cold().then(|| Readahead::new(&group.units, &next.units, width as u64));
        let tell = |unit: &Unit| plan.prefetch(results, &unit.region, &layout.place(&unit.region, unit.tile));
        context.budget.take(held);
        let fill = |(at, unit): (usize, &Unit)| {
            ahead.iter().try_for_each(|ahead| ahead.before(at, tell))?;
            let to = layout.place(&unit.region, unit.tile);
            Ok((to.clone(), plan.fill_unit(context, &unit.region, &to, results, painted)?))
        };
        let filled = if alone {
            group.units.iter().enumerate().map(fill).collect()
        } else {
            context.pool.map(group.units.iter().enumerate().collect(), context.cancel.as_ref(), fill)
        };
        context.budget.give(held);
        for (unit, (to, columns)) in group.units.iter().zip(filled?) {
            let shape = unit.region.shape();
            let from = Strided::packed(&shape, plan.schema.options().cell_order);
            for (canvas, column) in canvases.iter_mut().zip(columns) {
                canvas.paint_box(&Arc::new(column), &shape, &from, &to);
            }
        }
        done += cells;
        context.progress.report(done, count);
        group = next;
    }
    Counters::add(&context.counters.cells_returned, count);
    Ok(())
}

impl DensePlan {
    /// Writes the cells of a unit to its results; gives the columns of the `painted` attributes.
    fn fill_unit(
        &self,
        context: &ReadContext,
        region: &Subarray,
        to: &Strided,
        results: &[ResultColumn<'_>],
        painted: &[&Attribute],
    ) -> Result<Vec<Column>> {
        let (mut left, mut entries) = (Vec::new(), 0);
        for result in results {
            match self.deliver(context, result, region, to)? {
                Some(put) => entries = put.max(entries),
                None => left.push(result),
            }
        }
        let attrs: Vec<&Attribute> = left.iter().map(|s| s.attr).chain(painted.iter().copied()).collect();
        if attrs.is_empty() {
            // An entry counts once, on however many attributes it was put. Painting counts all those of the region.
            Counters::add(&context.counters.overlay_entries, entries as u64);
            return Ok(Vec::new());
        }
        let mut columns = self.paint(context, region, &attrs)?;
        let rest = columns.split_off(left.len());
        for (result, column) in left.iter().zip(&columns) {
            self.move_painted(result, column, region, to);
        }
        Ok(rest)
    }
}
