//! Tiles that are answered from the index: what its statistics say of all cells of a tile goes into the states.
//!
//! A tile is taken if each key has one value, or one bin, over all of it, and each state can be told of all its values at once.

use super::chunk::Asked;
use super::stage::Stages;
use super::state::input::Known;
use crate::base::Result;
use crate::condition::Place;
use crate::query::select::WholeTile;
use crate::schema::{Datatype, key};
use crate::tile::{Bound, Statistics, Sum};

/// Whether statistics can answer a question at all.
pub(super) fn can_answer(asked: &Asked) -> bool {
    let plain = asked.plan.sources.iter().all(|source| matches!(source.plain(), Some(Place::Dim(_) | Place::Attr(_))));
    plain && !asked.plan.asks_places && asked.plan.stages.can_know()
}

/// Takes all cells of a tile in, if what is known of them suffices.
pub(super) fn take_tile(asked: &Asked, stages: &mut Stages, tile: &WholeTile) -> Result<bool> {
    let mut known = Vec::with_capacity(asked.plan.sources.len());
    for source in &asked.plan.sources {
        let found = match source.plain() {
            Some(Place::Dim(axis)) => of_dimension(source.datatype(), tile, axis),
            Some(Place::Attr(place)) => {
                let statistics =
                    asked.attrs.iter().position(|attr| *attr == place).and_then(|at| tile.statistics.get(at));
                statistics.map(|statistics| of_attribute(source.datatype(), tile.cells, statistics))
            }
            Some(Place::Text { .. }) | None => None,
        };
        let Some(found) = found else { return Ok(false) };
        known.push(found);
    }
    stages.take_known(tile.cells, &known)
}

fn of_dimension(datatype: Datatype, tile: &WholeTile, axis: usize) -> Option<Known> {
    let range = tile.bounds.ranges().get(axis)?;
    let value = |key: u64| {
        let mut bytes = Vec::new();
        key::decode(datatype, [key], &mut bytes);
        bytes
    };
    Some(Known {
        datatype,
        nulls: 0,
        nans: 0,
        ends: Some((value(range.lo), value(range.hi))),
        sum: Sum::None,
        rows: tile.cells,
    })
}

fn of_attribute(datatype: Datatype, rows: u64, statistics: &Statistics) -> Known {
    let exact = |bound: &Option<Bound>| bound.as_ref().filter(|bound| bound.exact).map(|bound| bound.bytes.clone());
    Known {
        datatype,
        nulls: statistics.null_count,
        nans: statistics.nan_count,
        ends: exact(&statistics.min).zip(exact(&statistics.max)),
        sum: statistics.sum,
        rows,
    }
}
