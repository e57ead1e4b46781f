//! Tiles whose cells are all read, as they are: of such a tile the statistics in the index say what holds of its cells.
//!
//! A tile of a sparse array is whole if the box holds all of it, statistics tell that every row is selected, and no delete
//! touches it. No cell elsewhere may lie at one of its places: so it hides nothing, and nothing hides it.

use super::candidates::BlockRole;
use super::known::Known;
use crate::base::{Counters, Result};
use crate::condition::Verdict;
use crate::fragment::Fragment;
use crate::fragment::box_index::{BoxIndex, Item};
use crate::query::block::sparse::{Unit, broken_index};
use crate::query::sparse::SparseReader;
use crate::query::sparse::lone_tiles::{LoneTile, TileTaker};
use crate::schema::{Schema, Subarray};
use crate::tile::Statistics;
use std::collections::HashMap;

/// So many nodes of an index of boxes are looked at for one tile before it is taken for granted that others touch it.
const STEPS_MAX: usize = 1 << 12;

/// What the index says of the cells of a tile.
#[derive(Debug)]
pub(in crate::query) struct WholeTile {
    /// The least box around its cells, as keys.
    pub(in crate::query) bounds: Subarray,
    /// How many cells.
    pub(in crate::query) cells: u64,
    /// The statistics of the attributes asked for.
    pub(in crate::query) statistics: Vec<Statistics>,
}

/// What answers for whole tiles, of which it wants the statistics of attributes.
pub struct TileAnswers<'a> {
    /// The attributes, by place.
    pub(in crate::query) attrs: &'a [usize],
    /// Whether it answers for a tile.
    pub(in crate::query) accept: &'a mut dyn FnMut(&WholeTile) -> Result<bool>,
}

impl std::fmt::Debug for TileAnswers<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TileAnswers({:?})", self.attrs)
    }
}

/// Whole tiles that are found before blocks are planned.
pub(super) struct EarlyTiles<'a, 'b> {
    pub(super) schema: &'a Schema,
    pub(super) answers: &'a mut TileAnswers<'b>,
    pub(super) known: Known,
    /// How many were answered for.
    pub(super) taken: u64,
}

impl TileTaker for EarlyTiles<'_, '_> {
    fn takes(&mut self, LoneTile { fragment, tile, bounds, cells }: LoneTile<'_>) -> Result<bool> {
        let statistics = statistics(fragment, tile, (self.schema, self.answers.attrs), &mut self.known)?;
        let Some(statistics) = statistics else { return Ok(false) };
        let taken = (self.answers.accept)(&WholeTile { bounds, cells, statistics })?;
        self.taken += u64::from(taken);
        Ok(taken)
    }
}

/// The statistics of attributes of a tile, if all are known.
fn statistics(
    fragment: &Fragment,
    tile: u64,
    (schema, attrs): (&Schema, &[usize]),
    known: &mut Known,
) -> Result<Option<Vec<Statistics>>> {
    let mut statistics = Vec::with_capacity(attrs.len());
    for attr in attrs.iter().filter_map(|place| schema.attrs().get(*place)) {
        let Some(found) = known.of(fragment, attr.id(), tile)? else { return Ok(None) };
        statistics.push(found);
    }
    Ok(Some(statistics))
}

/// Hands whole tiles to what answers for them, and leaves those out of a planned read that it takes. `roles`: what each block is
/// read for, if there is a condition.
pub(super) fn take_whole_tiles(
    sweep: &mut SparseReader,
    mut roles: Option<&mut Vec<BlockRole>>,
    answers: &mut TileAnswers<'_>,
) -> Result<()> {
    if sweep.has_asked {
        return Ok(());
    }
    let tiles = Tiles::of(&sweep.units);
    let mut taken = vec![false; tiles.firsts.len()];
    {
        let places = Places::of(sweep);
        let mut known = Known::default();
        let selected = tiles.selected_cells(&sweep.units, roles.as_deref().map(Vec::as_slice));
        for ((took, first), selected) in taken.iter_mut().zip(&tiles.firsts).zip(selected) {
            sweep.context.cancel.check()?;
            let Some(unit) = sweep.units.get(*first) else { continue };
            // A block that is not planned, since the condition or the box rules it out, is missing from the sum.
            let whole = whole_tile(sweep, unit, &places, &mut known, answers.attrs)?;
            if let Some(whole) = whole.filter(|whole| selected == whole.cells) {
                *took = (answers.accept)(&whole)?;
            }
        }
    }
    let is_left = |tile: &u32| taken.get(*tile as usize) == Some(&false);
    let rows: Vec<u32> = (0u32..).zip(&tiles.of_units).filter(|(_, tile)| is_left(tile)).map(|(row, _)| row).collect();
    if rows.len() < sweep.units.len() {
        sweep.keep_units(&rows);
        if let Some(roles) = &mut roles {
            **roles = rows.iter().filter_map(|row| roles.get(*row as usize)).copied().collect();
        }
        let tiles = taken.iter().filter(|took| **took).count() as u64;
        Counters::add(&sweep.context.counters.tiles_from_index, tiles);
        sweep.context.counters.tiles_read.fetch_sub(tiles, std::sync::atomic::Ordering::Relaxed);
    }
    Ok(())
}

/// The tiles of planned blocks, each with a number.
struct Tiles {
    of_units: Vec<u32>,
    /// The first block of each.
    firsts: Vec<usize>,
}

impl Tiles {
    fn of(units: &[Unit]) -> Self {
        let (mut of_units, mut firsts) = (Vec::with_capacity(units.len()), Vec::new());
        let mut numbers: HashMap<(usize, u64), u32> = HashMap::new();
        let mut last = None;
        for (place, unit) in units.iter().enumerate() {
            let tile = (unit.queue, unit.at.tile);
            let number = match last {
                // Blocks of a tile mostly follow each other.
                Some((before, number)) if before == tile => number,
                _ => *numbers.entry(tile).or_insert_with(|| {
                    firsts.push(place);
                    firsts.len() as u32 - 1
                }),
            };
            last = Some((tile, number));
            of_units.push(number);
        }
        Self { of_units, firsts }
    }

    /// How many cells of each tile lie in planned blocks of which every row is selected.
    fn selected_cells(&self, units: &[Unit], roles: Option<&[BlockRole]>) -> Vec<u64> {
        let mut selected = vec![0; self.firsts.len()];
        for (at, (unit, tile)) in units.iter().zip(&self.of_units).enumerate() {
            let all = roles.is_none_or(|roles| roles.get(at).is_some_and(|role| role.verdict == Verdict::All));
            if let Some(cells) = selected.get_mut(*tile as usize).filter(|_| all) {
                *cells += unit.at.cells as u64;
            }
        }
        selected
    }
}

/// The tile of a block, if its cells are all read as they are, and all that is asked for is known.
fn whole_tile(
    sweep: &SparseReader,
    unit: &Unit,
    places: &Places<'_>,
    known: &mut Known,
    attrs: &[usize],
) -> Result<Option<WholeTile>> {
    let fragment = sweep.fragment(unit)?;
    let wrong = || broken_index(fragment);
    let (stripe, local) = fragment.stripe_of(unit.at.tile).ok_or_else(wrong)?;
    let stripe = fragment.stripe(stripe)?;
    let bounds = stripe.tile_bounds(local).ok_or_else(wrong)?.to_subarray();
    let cells = stripe.tile_cells(local).ok_or_else(wrong)?;
    let description = fragment.description();
    if sweep.is_tombstones(unit)
        || !sweep.request.area().covers(&bounds)
        || !sweep.masks.over(description.id).is_empty()
        || sweep.deletions.touch(description.order, &bounds)
        || places.touch(unit, &bounds)
    {
        return Ok(None);
    }
    let statistics = statistics(fragment, unit.at.tile, (&sweep.schema, attrs), known)?;
    Ok(statistics.map(|statistics| WholeTile { bounds, cells, statistics }))
}

/// Where cells may lie.
struct Places<'s> {
    /// The blocks of all fragments, if there are several.
    blocks: Option<BoxIndex<'s>>,
    /// The box around what small fragments hold.
    small: Option<Subarray>,
}

impl<'s> Places<'s> {
    fn of(sweep: &'s SparseReader) -> Self {
        let duplicates = sweep.schema.options().duplicates;
        let several = sweep.units.iter().any(|unit| Some(unit.queue) != sweep.units.first().map(|first| first.queue));
        // Where a place may hold several cells only deletes of single cells matter.
        let matters = |unit: &&Unit| !duplicates || sweep.is_tombstones(unit);
        let order = |fragment: Option<&std::sync::Arc<Fragment>>| fragment.map(|f| f.description().order);
        let item = |unit: &'s Unit| {
            let order = order(sweep.fragments.get(unit.queue))?;
            Some(Item { bounds: &unit.at.bounds, orders: (order, order), size: 0, place: unit.queue })
        };
        let blocks = several.then(|| BoxIndex::new(sweep.units.iter().filter(matters).filter_map(item).collect()));
        Self { blocks, small: sweep.small_reach() }
    }

    /// Whether a cell elsewhere may lie at a place of a cell in `bounds`.
    fn touch(&self, unit: &Unit, bounds: &Subarray) -> bool {
        if self.small.as_ref().is_some_and(|small| small.intersects(bounds)) {
            return true;
        }
        let Some(blocks) = &self.blocks else { return false };
        blocks.any_within(STEPS_MAX, bounds, |_| true, |item| item.place != unit.queue).unwrap_or(true)
    }
}
