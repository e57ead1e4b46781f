//! What is known of the cells of a tile before any is read: statistics of its attributes, and where its cells lie.

use super::filter::Filter;
use crate::base::{ErrorKind, Id, Result};
use crate::condition::{Facts, Verdict};
use crate::fragment::{BlockSource, Description, Fragment, TileSource, ValueSpread};
use crate::query::block::sparse::{SparseBlock, broken_index, index_not_whole};
use crate::schema::{Attribute, Schema, Subarray};
use crate::tile::{Column, Statistics, Sum};
use std::collections::HashMap;
use std::sync::Arc;

/// So many rows are spoken of where attributes come from tiles of several sizes. Only whether there are none, some, or
/// nothing else of a kind matters.
const ROWS: u64 = 1 << 40;

/// The statistics of one attribute in the tiles of a stripe; `None` where the fragment has none of it.
type OfStripe = Option<Arc<Vec<Statistics>>>;

/// Statistics decoded for one read.
#[derive(Debug, Default)]
pub(in crate::query) struct Known {
    /// By fragment, stripe and attribute.
    held: HashMap<(Id, usize, u32), OfStripe>,
}

impl Known {
    /// The statistics of an attribute in a tile.
    pub(in crate::query) fn of(
        &mut self,
        source: &dyn BlockSource,
        attr: u32,
        tile: u64,
    ) -> Result<Option<Statistics>> {
        let Some((stripe, local)) = source.stripe_of(tile) else {
            return Err(index_not_whole(source.description().id));
        };
        let key = (source.description().id, stripe, attr);
        let found = match self.held.get(&key) {
            Some(held) => held.clone(),
            None => {
                // They only spare reading: without them the values decide.
                let read = match source.statistics_of(stripe, attr) {
                    Err(e) if e.kind() == ErrorKind::Corruption => None,
                    read => read?.map(Arc::new),
                };
                self.held.entry(key).or_insert(read).clone()
            }
        };
        Ok(found.and_then(|all| all.get(local).cloned()))
    }

    /// What holds of an attribute in a region, as [`spread`] gives it; `None` unless the region lies in one tile of the source.
    pub(super) fn of_region(
        &mut self,
        source: &dyn TileSource,
        attr: u32,
        region: &Subarray,
    ) -> Result<Option<Statistics>> {
        let mut tiles = source.tiles_in(region);
        let (Some(tile), None) = (tiles.next(), tiles.next()) else { return Ok(None) };
        let (found, cells) = (self.of(source, attr, tile)?, source.tile_box(tile).map(|tile| tile.cells()));
        Ok(found.zip(cells).and_then(|(statistics, cells)| spread(statistics, u64::try_from(cells).ok()?)))
    }

    /// How many rows of a block of a sparse fragment, those outside `sub` aside, are selected.
    pub(super) fn verdict(
        &mut self,
        filter: &Filter,
        schema: &Schema,
        (fragment, at): (&Fragment, &SparseBlock),
        sub: &Subarray,
    ) -> Result<Verdict> {
        let Some(inside) = at.bounds.intersect(sub) else { return Ok(Verdict::None) };
        let wrong = || broken_index(fragment);
        let (stripe, local) = fragment.stripe_of(at.tile).ok_or_else(wrong)?;
        let cells = fragment.stripe(stripe)?.tile_cells(local).ok_or_else(wrong)?;
        let mut found = Vec::with_capacity(filter.early.len());
        for place in &filter.early {
            let Some(attr) = schema.attrs().get(*place) else { continue };
            found.extend(self.of(fragment, attr.id(), at.tile)?.map(|statistics| (*place, statistics)));
        }
        let facts = found.iter().fold(Facts::new(cells).within(&inside), |f, (place, s)| f.with_attr(*place, s));
        Ok(filter.bound.prune(&facts))
    }
}

/// How many cells of `sub` are selected if `found` is known of attributes, by their places, each as [`spread`] gives it.
pub(super) fn verdict_within(filter: &Filter, sub: &Subarray, found: &[(usize, Statistics)]) -> Verdict {
    let facts = found.iter().fold(Facts::new(ROWS).within(sub), |facts, (place, s)| facts.with_attr(*place, s));
    filter.bound.prune(&facts)
}

/// The statistics of `cells` cells as those of [`ROWS`] cells of the same kinds: null, NaN, values.
pub(super) fn spread(statistics: Statistics, cells: u64) -> Option<Statistics> {
    let Statistics { null_count, nan_count, .. } = statistics;
    let values = cells.checked_sub(null_count)?.checked_sub(nan_count)?;
    let (null_count, nan_count) = counts(null_count > 0, nan_count > 0, values > 0);
    Some(Statistics { null_count, nan_count, ..statistics })
}

/// How many of [`ROWS`] cells are null, and NaN, if there are some of these kinds.
fn counts(nulls: bool, nans: bool, values: bool) -> (u64, u64) {
    match (nulls, nans, values) {
        (nulls, nans, true) => (u64::from(nulls), u64::from(nans)),
        (true, true, false) => (1, ROWS - 1),
        (nulls, nans, false) => (if nulls { ROWS } else { 0 }, if nans { ROWS } else { 0 }),
    }
}

/// What the description of a fragment says of the values that it holds of an attribute, as [`spread`] gives it.
pub(super) fn described(description: &Description, attr: &Attribute) -> Option<Statistics> {
    let ValueSpread { nulls, nans, values, min, max } = description.stats.of(attr.id(), attr.datatype())?;
    let (null_count, nan_count) = counts(nulls, nans, values);
    Some(Statistics { null_count, nan_count, min, max, sum: Sum::None })
}

/// What is known of an attribute where nothing was written.
pub(in crate::query) fn of_fill(attr: &Attribute) -> Option<Statistics> {
    spread(Statistics::of(Column::blank(attr).view()), 1)
}
