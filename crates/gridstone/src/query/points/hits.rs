//! What single cells (of sparse fragments, of the overlay) and tombstones say at the points asked for.

use super::list::Points;
use super::search::search;
use super::take::{Source, Takes};
use crate::base::{Counters, Result};
use crate::fragment::{Fragment, FragmentKind, FragmentOrder, Role, StoredBlock};
use crate::query::block::masks::{Masks, is_masked};
use crate::query::block::sparse::SparseBlock;
use crate::query::overlay::{HeldRows, LiveOverlay};
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, Schema};
use std::sync::Arc;

/// A cell, or a tombstone, at a point.
#[derive(Debug, Clone, Copy)]
pub(super) struct Hit {
    /// The point, by its place in global order.
    pub(super) point: u32,
    pub(super) order: FragmentOrder,
    /// Where it lies: a place in [`Hits::origins`], and a row there.
    origin: u32,
    row: u32,
}

/// A run of cells that hits lie in.
#[derive(Debug)]
enum Origin {
    Held(Arc<HeldRows>),
    Block(Arc<Fragment>, SparseBlock),
}

/// A hit that a value is wanted of.
#[derive(Debug, Clone, Copy)]
pub(super) struct Wanted {
    /// The place of the attribute among those asked for.
    pub(super) slot: usize,
    /// A place in [`Hits::all`].
    pub(super) hit: u32,
    /// The row of the result.
    pub(super) row: u32,
}

/// All hits, in ascending order of point, then from the oldest to the newest, those of one fragment in order of writing.
#[derive(Debug)]
pub(super) struct Hits {
    origins: Vec<Origin>,
    pub(super) all: Vec<Hit>,
}

impl Hits {
    /// Searches the overlay and the sparse ones of `fragments`.
    pub(super) fn find(
        context: &ReadContext,
        target: &Target,
        points: &Points,
        overlay: Option<&LiveOverlay>,
        fragments: &[Arc<Fragment>],
    ) -> Result<Self> {
        let mut found = Self { origins: Vec::new(), all: Vec::new() };
        if let Some(live) = overlay {
            found.add_overlay(context, &target.schema, points, live)?;
            live.count(context, found.all.len());
        }
        for (fragment, block, matches) in search(context, &target.schema, points, fragments)? {
            let (origin, order) = (found.origins.len() as u32, fragment.description().order);
            found.all.extend(matches.into_iter().map(|(point, row)| Hit { point, order, origin, row }));
            found.origins.push(Origin::Block(fragment, block));
        }
        context.cancel.check()?;
        let place = |hit: &Hit| (hit.point, hit.order, hit.origin, hit.row);
        if !found.all.is_sorted_by_key(place) {
            found.all.sort_unstable_by_key(place);
        }
        let merged = found.all.chunk_by(|a, b| a.point == b.point).filter(|run| run.len() > 1).map(<[Hit]>::len);
        Counters::add(&context.counters.cells_merged, merged.sum::<usize>() as u64);
        Ok(found)
    }

    fn add_overlay(
        &mut self,
        context: &ReadContext,
        schema: &Schema,
        points: &Points,
        live: &LiveOverlay,
    ) -> Result<()> {
        self.origins = live.sources().iter().map(|held| Origin::Held(held.clone())).collect();
        let Some(bounds) = points.bounds() else { return Ok(()) };
        let cell = |point| points.cell_box(point);
        live.rows_of(context, schema, (&points.keys, &bounds), cell, |origin, held, point, row| {
            self.all.push(Hit { point: point as u32, order: held.order(row), origin, row });
        })
    }

    /// The rows of blocks that were hit: fragment, data tile, row in it.
    pub(super) fn stored(&self) -> impl Iterator<Item = (Arc<Fragment>, u64, usize)> {
        self.all.iter().filter_map(|hit| match self.origins.get(hit.origin as usize)? {
            Origin::Held(_) => None,
            Origin::Block(fragment, at) => Some((fragment.clone(), at.tile, at.first_row(fragment) + hit.row as usize)),
        })
    }

    /// Whether a row was masked.
    pub(super) fn is_masked(&self, hit: &Hit, masks: &Masks) -> bool {
        match self.origins.get(hit.origin as usize) {
            None => false,
            Some(Origin::Held(held)) => held.is_masked(hit.row, masks),
            Some(Origin::Block(fragment, at)) => {
                let row = at.first_row(fragment) + hit.row as usize;
                is_masked(masks.over(fragment.description().id), at.tile, row)
            }
        }
    }

    /// Whether it deletes what is older.
    pub(super) fn is_tombstone(&self, hit: &Hit) -> bool {
        self.origins.get(hit.origin as usize).is_some_and(|origin| match origin {
            Origin::Held(held) => held.is_tombstone(),
            Origin::Block(fragment, _) => fragment.description().kind == FragmentKind::Tombstones,
        })
    }

    /// Whether its cell has a value of the attribute with this permanent number.
    fn has(&self, hit: &Hit, attr: u32) -> bool {
        self.origins.get(hit.origin as usize).is_some_and(|origin| match origin {
            Origin::Held(held) => held.has(attr),
            Origin::Block(fragment, _) => fragment.description().attrs.contains(&attr),
        })
    }

    /// Per point the newest hit that says something of an attribute, as its place in `all`; `u32::MAX` where there is
    /// none. Empty if there is no hit at all.
    pub(super) fn newest(&self, points: usize, attr: &Attribute) -> Vec<u32> {
        if self.all.is_empty() {
            return Vec::new();
        }
        let mut newest = vec![u32::MAX; points];
        for (hit, place) in self.all.iter().zip(0u32..) {
            let says = self.is_tombstone(hit) || self.has(hit, attr.id());
            if let Some(slot) = newest.get_mut(hit.point as usize).filter(|_| says) {
                *slot = place;
            }
        }
        newest
    }

    /// Adds jobs that take the values of `wanted`; a tombstone, or a fragment without the attribute, leaves its row
    /// blank.
    pub(super) fn take(
        &self,
        context: &ReadContext,
        attrs: &[&Attribute],
        mut wanted: Vec<Wanted>,
        takes: &mut Takes,
    ) -> Result<()> {
        let place = |w: &Wanted| self.all.get(w.hit as usize).map(|hit| (w.slot, hit.origin, hit.row));
        wanted.sort_unstable_by_key(place);
        for run in wanted.chunk_by(|a, b| place(a).map(|p| (p.0, p.1)) == place(b).map(|p| (p.0, p.1))) {
            context.cancel.check()?;
            let Some((slot, origin, _)) = run.first().and_then(place) else { continue };
            let (Some(attr), Some(origin)) = (attrs.get(slot), self.origins.get(origin as usize)) else { continue };
            let cells = run.iter().filter_map(|w| Some((self.all.get(w.hit as usize)?.row, w.row)));
            match origin {
                Origin::Held(held) => {
                    let rows: Vec<u32> = cells.clone().map(|(cell, _)| cell).collect();
                    let Some(values) = held.values(context, attr, &rows)? else { continue };
                    cells.enumerate().for_each(|(n, (cell, row))| takes.push(values.at(n, cell), row));
                    takes.close(slot, Source::Held(values.column));
                }
                Origin::Block(fragment, at) => {
                    let Some(field) = fragment.field(Role::Attribute(attr.id())) else { continue };
                    cells.for_each(|(cell, row)| takes.push(cell, row));
                    let block = StoredBlock { tile: at.tile, number: at.block, cells: at.cells };
                    takes.close_block(slot, fragment.clone(), field, block)?;
                }
            }
        }
        Ok(())
    }
}
