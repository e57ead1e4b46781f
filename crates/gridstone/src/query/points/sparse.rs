//! Points of a sparse array: the cells that exist there.

use super::hits::{Hit, Hits, Wanted};
use super::list::Points;
use super::take::{Takes, take};
use crate::base::{Error, Result};
use crate::query::block::deletions::Deletions;
use crate::query::block::masks::Masks;
use crate::query::block::open::open_all;
use crate::query::overlay::large_fragments;
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, Schema};
use crate::tile::coordinates::coordinate_columns;
use crate::tile::{Cells, try_vec};

/// The cells at the points, in the order of the list, duplicates in order of writing.
pub(super) fn read(context: &ReadContext, target: &Target, points: &Points, attrs: &[&Attribute]) -> Result<Cells> {
    let overlay = points.overlay(context, target, attrs)?;
    let deletions = Deletions::of(&target.fragments, &target.schema.domain());
    let large = large_fragments(target, overlay.is_some(), |d| !deletions.cover(d.order, &d.bounds));
    let fragments = open_all(context, &target.schema, large)?;
    let mut hits = Hits::find(context, target, points, overlay.as_ref(), &fragments)?;
    let masks = Masks::load(context, &target.fragments)?;
    if !masks.is_empty() {
        let masked: Vec<bool> = hits.all.iter().map(|hit| hits.is_masked(hit, &masks)).collect();
        let mut masked = masked.into_iter();
        hits.all.retain(|_| !masked.next().unwrap_or(false));
    }
    if !deletions.is_empty() {
        hits.all.retain(|hit| !deletions.take(hit.order, points.cell(hit.point as usize)));
    }
    let living = living(&target.schema, &hits)?;
    let mut takes = Takes::default();
    for slot in 0..attrs.len() {
        let wanted = living.iter().zip(0u32..).map(|((hit, _), row)| Wanted { slot, hit: *hit, row }).collect();
        hits.take(context, attrs, wanted, &mut takes)?;
    }
    let columns = take(context, attrs, &[takes], living.len())?;
    let order = in_order(points, &living)?;
    let found = |coords: &Vec<u64>| {
        let coordinate = |row: &u32| coords.get(living.get(*row as usize)?.1.point as usize).copied();
        order.iter().filter_map(coordinate).collect::<Vec<u64>>()
    };
    let dims = coordinate_columns(&target.schema, &points.coords.iter().map(found).collect::<Vec<_>>())?;
    let attrs = columns.into_iter().map(|column| column.view().gather(&order)).collect();
    Ok(Cells { count: order.len(), dims, attrs })
}

/// The hits that live, with their places in [`Hits::all`]: those newer than the newest tombstone of their point; without
/// duplicates the newest alone.
fn living(schema: &Schema, hits: &Hits) -> Result<Vec<(u32, Hit)>> {
    if u32::try_from(hits.all.len()).is_err() {
        return Err(Error::budget("more than 2^32 cells lie at these points; ask for fewer points at once"));
    }
    let mut found = Vec::new();
    let mut from = 0;
    for run in hits.all.chunk_by(|a, b| a.point == b.point) {
        let deleted = run.iter().rposition(|hit| hits.is_tombstone(hit)).map_or(0, |last| last + 1);
        let skip = if schema.options().duplicates { deleted } else { deleted.max(run.len() - 1) };
        found.extend((from..).zip(run.iter().copied()).skip(skip));
        from += run.len() as u32;
    }
    Ok(found)
}

/// The places in `living` in the order that their points were given in.
fn in_order(points: &Points, living: &[(u32, Hit)]) -> Result<Vec<u32>> {
    let mut spans = try_vec((0u32, 0u32), points.len())?;
    let mut from = 0;
    for run in living.chunk_by(|a, b| a.1.point == b.1.point) {
        let to = from + run.len() as u32;
        let row = run.first().map(|(_, hit)| points.row(hit.point as usize));
        if let Some(span) = row.and_then(|row| spans.get_mut(row as usize)) {
            *span = (from, to);
        }
        from = to;
    }
    Ok(spans.into_iter().flat_map(|(from, to)| from..to).collect())
}
