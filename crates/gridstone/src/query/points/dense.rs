//! Points of a dense array: the newest fragment or deletion that covers each, unless a newer single cell or tombstone lies
//! there.

use super::hits::{Hits, Wanted};
use super::list::Points;
use super::take::{Takes, take};
use crate::base::{Counters, Result};
use crate::fragment::{Description, FragmentKind, FragmentOrder, Role, TileSource};
use crate::query::block::deletions::Deletions;
use crate::query::block::open::open_all;
use crate::query::overlay::large_fragments;
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, KeyRange, Schema, Subarray};
use crate::tile::Cells;
use std::ops::Range;
use std::sync::Arc;

/// The points in one space tile, and the least box around them.
#[derive(Debug)]
struct Group {
    points: Range<usize>,
    region: Subarray,
}

/// A dense fragment, or a box deleted.
struct Layer {
    order: FragmentOrder,
    bounds: Subarray,
    /// The fragment's tiles; `None` if the box was deleted.
    stored: Option<Arc<dyn TileSource>>,
}

impl Layer {
    fn deletion(description: &Arc<Description>) -> Self {
        Self { order: description.order, bounds: description.bounds.clone(), stored: None }
    }

    fn dense(source: Arc<dyn TileSource>) -> Self {
        let (order, bounds) = (source.description().order, source.description().bounds.clone());
        Self { order, bounds, stored: Some(source) }
    }
}

/// A read of points under way.
struct Plan<'a> {
    context: &'a ReadContext,
    schema: &'a Schema,
    points: &'a Points,
    attrs: &'a [&'a Attribute],
    /// Oldest first.
    layers: Vec<Layer>,
    hits: Hits,
    /// Per attribute asked for: see [`Hits::newest`].
    newest: Vec<Vec<u32>>,
}

/// One row per point, in the order of the list.
pub(super) fn read(context: &ReadContext, target: &Target, points: &Points, attrs: &[&Attribute]) -> Result<Cells> {
    let overlay = points.overlay(context, target, attrs)?;
    let groups = groups(context, &target.schema, points)?;
    let touched = |bounds: &Subarray| groups.iter().any(|group| group.region.intersects(bounds));
    let large = large_fragments(target, overlay.is_some(), |d| touched(&d.bounds));
    let fragments = open_all(context, &target.schema, large)?;
    let hits = Hits::find(context, target, points, overlay.as_ref(), &fragments)?;
    let dense = fragments.into_iter().filter(|f| f.description().kind == FragmentKind::Dense);
    let source = |fragment| context.tiles.of(fragment, &target.schema).map(Layer::dense);
    let mut layers = dense.map(source).collect::<Result<Vec<_>>>()?;
    let deletions = Deletions::of(&target.fragments, &target.schema.domain());
    layers.extend(deletions.all().iter().map(Layer::deletion));
    layers.sort_by_key(|layer| layer.order);
    let newest = attrs.iter().map(|attr| hits.newest(points.len(), attr)).collect();
    let plan = Plan { context, schema: &target.schema, points, attrs, layers, hits, newest };
    let share = groups.len().div_ceil(context.pool.threads() * 4).max(1);
    let parts: Vec<&[Group]> = groups.chunks(share).collect();
    let planned = context.pool.map(parts, context.cancel.as_ref(), |groups| plan.take_groups(groups))?;
    let (mut all, wanted): (Vec<Takes>, Vec<Vec<Wanted>>) = planned.into_iter().unzip();
    let mut of_hits = Takes::default();
    plan.hits.take(context, attrs, wanted.concat(), &mut of_hits)?;
    all.push(of_hits);
    Ok(Cells { count: points.len(), dims: Vec::new(), attrs: take(context, attrs, &all, points.len())? })
}

/// Cuts the points, which are in global order, where a space tile ends.
fn groups(context: &ReadContext, schema: &Schema, points: &Points) -> Result<Vec<Group>> {
    let mut found = Vec::new();
    let mut from = 0;
    while from < points.len() {
        context.cancel.check()?;
        let tile: Vec<KeyRange> =
            schema.dims().iter().zip(points.cell(from)).map(|(d, k)| d.tile_range(d.tile_of(k))).collect();
        let in_tile = |point: &usize| tile.iter().zip(points.cell(*point)).all(|(range, k)| range.contains(k));
        let to = from + (from..points.len()).take_while(in_tile).count();
        let span = |column: &Vec<u64>| {
            let run = column.get(from..to).unwrap_or_default();
            Some(KeyRange::new(*run.iter().min()?, *run.iter().max()?))
        };
        let region = points.coords.iter().map(span).collect::<Option<Vec<_>>>().map(Subarray::new);
        let Some(region) = region else { break };
        found.push(Group { points: from..to, region });
        from = to;
    }
    Ok(found)
}

impl Plan<'_> {
    fn take_groups(&self, groups: &[Group]) -> Result<(Takes, Vec<Wanted>)> {
        let (mut takes, mut wanted) = (Takes::default(), Vec::new());
        for group in groups {
            self.context.cancel.check()?;
            for slot in 0..self.attrs.len() {
                self.take_group(group, slot, &mut takes, &mut wanted)?;
            }
        }
        Ok((takes, wanted))
    }

    /// Finds where one attribute's values at the points of a group lie.
    fn take_group(&self, group: &Group, slot: usize, takes: &mut Takes, wanted: &mut Vec<Wanted>) -> Result<()> {
        let Some(attr) = self.attrs.get(slot) else { return Ok(()) };
        let mut open: Vec<u32> = (group.points.start as u32..group.points.end as u32).collect();
        let mut covered = Vec::new();
        for layer in self.layers.iter().rev() {
            if open.is_empty() {
                break;
            }
            let bounds = &layer.bounds;
            let field = layer.stored.as_ref().map(|source| source.field(Role::Attribute(attr.id())));
            if field == Some(None) || !bounds.intersects(&group.region) {
                continue;
            }
            covered.clear();
            if bounds.covers(&group.region) {
                std::mem::swap(&mut open, &mut covered);
            } else {
                self.split_inside(bounds, &mut open, &mut covered);
            }
            let whole = covered.len() == group.points.len();
            covered.retain(|point| match self.newest_hit(slot, *point) {
                Some((hit, order)) if order > layer.order => {
                    wanted.push(Wanted { slot, hit, row: self.points.row(*point as usize) });
                    false
                }
                _ => true,
            });
            // What was deleted and not written since stays blank.
            let (Some(source), Some(Some(field))) = (&layer.stored, field) else { continue };
            let blocks = self.take_layer(source, (slot, field), &mut covered, takes)?;
            let alone = whole && covered.len() == group.points.len();
            Counters::add(&self.context.counters.blocks_alone, if alone { blocks } else { 0 });
        }
        let hit = |point: u32| self.newest_hit(slot, point).map(|(hit, _)| (hit, self.points.row(point as usize)));
        wanted.extend(open.into_iter().filter_map(hit).map(|(hit, row)| Wanted { slot, hit, row }));
        Ok(())
    }

    fn newest_hit(&self, slot: usize, point: u32) -> Option<(u32, FragmentOrder)> {
        let place = *self.newest.get(slot)?.get(point as usize)?;
        self.hits.all.get(place as usize).map(|hit| (place, hit.order))
    }

    /// Moves the points inside `bounds` from `open`, which is in cell order of one tile, to `inside`.
    fn split_inside(&self, bounds: &Subarray, open: &mut Vec<u32>, inside: &mut Vec<u32>) {
        let slowest = self.schema.options().cell_order.slowest_first(self.schema.ndim()).next().unwrap_or(0);
        let (Some(range), Some(column)) = (bounds.ranges().get(slowest), self.points.coords.get(slowest)) else {
            return;
        };
        // Along the slowest dimension the points ascend, so that a fragment of few slices looks at few points.
        let key = |point: &u32| column.get(*point as usize).copied().unwrap_or(0);
        let from = open.partition_point(|point| key(point) < range.lo);
        let to = open.partition_point(|point| key(point) <= range.hi);
        let mut kept = from;
        for place in from..to {
            let Some(point) = open.get(place).copied() else { break };
            if bounds.contains(self.points.cell(point as usize)) {
                inside.push(point);
            } else if let Some(slot) = open.get_mut(kept) {
                *slot = point;
                kept += 1;
            }
        }
        open.drain(kept..to);
    }

    /// Takes one attribute at ascending points of one space tile from the source that covers them; gives the number of
    /// blocks.
    fn take_layer(
        &self,
        source: &Arc<dyn TileSource>,
        (slot, field): (usize, usize),
        points: &mut [u32],
        takes: &mut Takes,
    ) -> Result<u64> {
        if points.is_empty() {
            return Ok(0);
        }
        let blocks = source.locate(&self.points.coords, points, takes.cells_mut())?;
        Counters::add(&self.context.counters.tiles_considered, 1);
        Counters::add(&self.context.counters.tiles_read, 1);
        let mut points = points.iter();
        for (block, count) in &blocks {
            points.by_ref().take(*count).for_each(|point| takes.push_row(self.points.row(*point as usize)));
            takes.close_block(slot, source.clone(), field, *block)?;
        }
        Ok(blocks.len() as u64)
    }
}
