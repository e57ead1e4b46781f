//! Chosen cells by the blocks that hold them: each block that holds some is one unit of work, or a few neighbours are.
//!
//! Along a combined dimension chosen positions are cut where tiles end, and in a tile where its blocks end. Points are sorted by tile, and in a tile
//! by block. A unit is one part along each dimension; its region is the least box that holds its cells.

use super::axis::SortedAxis;
use super::selection::Positions;
use crate::schema::{KeyRange, Order, Schema, Subarray};
use crate::tile::BlockGrid;
use std::ops::Range;
use std::sync::Arc;

/// Neighbouring blocks are one unit if so large a part of the blocks along a dimension holds chosen cells.
const SHARE_MIN: f64 = 0.5;

/// What is chosen along one dimension, or along the paired ones together.
#[derive(Debug)]
enum Factor {
    Combined {
        dim: usize,
        axis: SortedAxis,
        stride: u64,
    },
    /// Positions of each paired dimension, by point; one place in the result per point.
    Paired {
        dims: Vec<usize>,
        lists: Vec<Vec<u64>>,
        stride: u64,
    },
}

/// A part of a factor: numbers of sorted positions, or points.
#[derive(Debug, Clone)]
pub(super) enum Part {
    Run(Range<u64>),
    Points(Arc<Vec<u64>>),
}

/// Chosen cells in one space tile that are read together.
#[derive(Debug)]
pub(super) struct Unit {
    /// The least box that holds them.
    pub(super) region: Subarray,
    parts: Vec<Part>,
}

/// The factors of a selection and the tiles in which they have parts.
#[derive(Debug)]
pub(super) struct Units<'a> {
    schema: &'a Schema,
    block_cells: u64,
    /// Blocks of a unit, where they lie side by side.
    times: u64,
    factors: Vec<Factor>,
    /// By factor, the parts in each tile along it.
    tiles: Vec<Vec<Part>>,
    /// Which combination of tiles comes next; `None` at the end.
    next: Option<Vec<usize>>,
}

impl<'a> Units<'a> {
    /// The units of a selection.
    pub(super) fn new(schema: &'a Schema, positions: &Positions) -> Self {
        let mut factors = Vec::new();
        let mut stride = 1u64;
        let combined: Vec<_> = positions.combined().collect();
        for (dim, chosen) in combined.into_iter().rev() {
            let axis = SortedAxis::new(chosen, positions.last_of(dim));
            let count = axis.len();
            factors.push(Factor::Combined { dim, axis, stride });
            stride = stride.saturating_mul(count.max(1));
        }
        if positions.points().is_some() {
            let (dims, lists) = positions.paired().map(|(dim, list)| (dim, list.to_vec())).unzip();
            factors.push(Factor::Paired { dims, lists, stride });
        }
        factors.reverse();
        let tiles: Vec<Vec<Part>> = factors.iter().map(|factor| factor.by_tile(schema)).collect();
        let next = tiles.iter().all(|parts| !parts.is_empty()).then(|| vec![0; tiles.len()]);
        Self { schema, block_cells: 1, times: 1, factors, tiles, next }
    }

    /// Units are blocks of at most `block_cells`; where these lie side by side, as many as have about `cells` cells.
    pub(super) fn set_blocks(&mut self, block_cells: u64, cells: u64) {
        self.block_cells = block_cells.max(1);
        self.times = (cells / self.block_cells).max(1);
    }

    /// The units of the next tile; none at the end.
    pub(super) fn next_tile(&mut self) -> Option<Vec<Unit>> {
        let at = self.next.take()?;
        let parts: Vec<&Part> = self.tiles.iter().zip(&at).filter_map(|(parts, at)| parts.get(*at)).collect();
        let units = self.of_tile(&parts);
        self.next = following(at, |factor| self.tiles.get(factor).map_or(0, Vec::len));
        Some(units)
    }

    fn of_tile(&self, parts: &[&Part]) -> Vec<Unit> {
        let mut tile = vec![KeyRange::new(0, 0); self.schema.ndim()];
        for (factor, part) in self.factors.iter().zip(parts) {
            factor.tile_of(self.schema, part, &mut tile);
        }
        let shape: Vec<u64> = tile.iter().map(|range| range.hi - range.lo + 1).collect();
        let order = self.schema.options().cell_order;
        let single = BlockGrid::new(&shape, order, self.block_cells);
        let cut = self.cut(parts, &tile, single.block_shape());
        let groups = BlockGrid::coarse(&shape, order, self.block_cells, self.times);
        let cut = match self.is_dense(&cut, &tile, single.block_shape()) && groups.len() < single.len() {
            true => self.cut(parts, &tile, groups.block_shape()),
            false => cut,
        };
        let mut units = Vec::new();
        let mut next = cut.iter().all(|parts| !parts.is_empty()).then(|| vec![0; cut.len()]);
        while let Some(at) = next.take() {
            let parts: Vec<Part> = cut.iter().zip(&at).filter_map(|(parts, at)| parts.get(*at)).cloned().collect();
            units.push(Unit { region: self.region(&parts), parts });
            next = following(at, |factor| cut.get(factor).map_or(0, Vec::len));
        }
        units
    }

    /// The parts of a tile's parts by blocks of `sides`.
    fn cut(&self, parts: &[&Part], tile: &[KeyRange], sides: &[u64]) -> Vec<Vec<Part>> {
        let cut = self.factors.iter().zip(parts).map(|(factor, part)| factor.by_block(self.schema, part, tile, sides));
        cut.collect()
    }

    /// Whether most blocks between the first and the last that hold chosen cells hold some.
    fn is_dense(&self, cut: &[Vec<Part>], tile: &[KeyRange], sides: &[u64]) -> bool {
        let mut held = 1.0f64;
        for (factor, parts) in self.factors.iter().zip(cut) {
            let (Some(first), Some(last)) = (parts.first(), parts.last()) else { return false };
            let ends = [first, last].map(|part| factor.spans(self.schema, part));
            let blocks = |(dim, _): &(usize, KeyRange)| {
                let low = ends.iter().flatten().filter(|(d, _)| d == dim).map(|(_, r)| r.lo).min().unwrap_or(0);
                let high = ends.iter().flatten().filter(|(d, _)| d == dim).map(|(_, r)| r.hi).max().unwrap_or(0);
                let (start, side) = (tile.get(*dim).map_or(0, |range| range.lo), sides.get(*dim).copied().unwrap_or(1));
                (high.saturating_sub(start) / side - low.saturating_sub(start) / side + 1) as f64
            };
            let all: f64 = ends.iter().flatten().take(factor.dims()).map(blocks).product();
            held *= parts.len() as f64 / all.max(1.0);
        }
        held >= SHARE_MIN
    }

    fn region(&self, parts: &[Part]) -> Subarray {
        let mut ranges = vec![KeyRange::new(0, 0); self.schema.ndim()];
        for (factor, part) in self.factors.iter().zip(parts) {
            for (dim, range) in factor.spans(self.schema, part) {
                if let Some(slot) = ranges.get_mut(dim) {
                    *slot = range;
                }
            }
        }
        Subarray::new(ranges)
    }

    /// Where the cells of a unit lie in its region, in the array's cell order, and where in the result.
    pub(super) fn moves(&self, unit: &Unit, order: Order) -> Moves {
        let strides = order.strides(&unit.region.shape());
        let factors = self.factors.iter().zip(&unit.parts);
        Moves {
            factors: factors.map(|(factor, part)| factor.moves(self.schema, part, &unit.region, &strides)).collect(),
        }
    }

    /// How many blocks of at most `block_cells` hold chosen cells, about.
    pub(super) fn blocks(&self, block_cells: u64) -> u64 {
        let along = |factor: &Factor| factor.blocks(self.schema, block_cells);
        self.factors.iter().map(along).fold(1, u64::saturating_mul)
    }
}

/// The combination that comes after `at`, the last factor going fastest.
fn following(mut at: Vec<usize>, count: impl Fn(usize) -> usize) -> Option<Vec<usize>> {
    for factor in (0..at.len()).rev() {
        let slot = at.get_mut(factor)?;
        *slot += 1;
        if *slot < count(factor) {
            return Some(at);
        }
        *slot = 0;
    }
    None
}

impl Factor {
    fn dims(&self) -> usize {
        match self {
            Self::Combined { .. } => 1,
            Self::Paired { dims, .. } => dims.len(),
        }
    }

    /// The key of a position along a dimension.
    fn key(schema: &Schema, dim: usize, position: u64) -> u64 {
        schema.dims().get(dim).map_or(0, |d| d.range().lo).wrapping_add(position)
    }

    fn by_tile(&self, schema: &Schema) -> Vec<Part> {
        match self {
            Self::Combined { dim, axis, .. } => {
                let Some(d) = schema.dims().get(*dim) else { return Vec::new() };
                let low = d.range().lo;
                let end = |position: u64| (d.tile_range(d.tile_of(low + position)).hi - low).saturating_add(1);
                axis.runs(0..axis.len(), end).into_iter().map(Part::Run).collect()
            }
            Self::Paired { dims, lists, .. } => {
                let all = (0..lists.first().map_or(0, Vec::len) as u64).collect();
                let tile = |dim: usize, position: u64| {
                    schema.dims().get(dim).map_or(0, |d| d.tile_of(Self::key(schema, dim, position)))
                };
                grouped(dims, lists, all, tile)
            }
        }
    }

    /// Notes the space tile, clipped to the domain, that holds a part.
    fn tile_of(&self, schema: &Schema, part: &Part, tile: &mut [KeyRange]) {
        for (dim, span) in self.spans(schema, part) {
            if let (Some(d), Some(slot)) = (schema.dims().get(dim), tile.get_mut(dim)) {
                *slot = d.tile_range(d.tile_of(span.lo));
            }
        }
    }

    fn by_block(&self, schema: &Schema, part: &Part, tile: &[KeyRange], sides: &[u64]) -> Vec<Part> {
        let grid = |dim: usize| (tile.get(dim).map_or(0, |r| r.lo), sides.get(dim).copied().unwrap_or(1));
        match (self, part) {
            (Self::Combined { dim, axis, .. }, Part::Run(run)) => {
                let (start, side) = grid(*dim);
                let start = start - Self::key(schema, *dim, 0);
                let end = |position: u64| ((position - start) / side + 1).saturating_mul(side).saturating_add(start);
                axis.runs(run.clone(), end).into_iter().map(Part::Run).collect()
            }
            (Self::Paired { dims, lists, .. }, Part::Points(points)) => {
                let block = |dim: usize, position: u64| {
                    let (start, side) = grid(dim);
                    (Self::key(schema, dim, position) - start) / side
                };
                grouped(dims, lists, points.to_vec(), block)
            }
            _ => Vec::new(),
        }
    }

    /// The keys from the least to the greatest of a part, by dimension.
    fn spans(&self, schema: &Schema, part: &Part) -> Vec<(usize, KeyRange)> {
        match (self, part) {
            (Self::Combined { dim, axis, .. }, Part::Run(run)) => {
                let at = |number: u64| axis.get(number).map_or(0, |(position, _)| Self::key(schema, *dim, position));
                vec![(*dim, KeyRange::new(at(run.start), at(run.end.saturating_sub(1).max(run.start))))]
            }
            (Self::Paired { dims, lists, .. }, Part::Points(points)) => {
                let span = |(dim, list): (&usize, &Vec<u64>)| {
                    let keys = points.iter().filter_map(|p| list.get(*p as usize)).map(|p| Self::key(schema, *dim, *p));
                    let (low, high) = keys.fold((u64::MAX, 0), |(low, high), key| (low.min(key), high.max(key)));
                    (*dim, KeyRange::new(low.min(high), high))
                };
                dims.iter().zip(lists).map(span).collect()
            }
            _ => Vec::new(),
        }
    }

    fn moves(&self, schema: &Schema, part: &Part, region: &Subarray, strides: &[u64]) -> Vec<(u64, u64)> {
        let along = |dim: usize, position: u64| {
            let low = region.ranges().get(dim).map_or(0, |range| range.lo);
            (Self::key(schema, dim, position) - low) * strides.get(dim).copied().unwrap_or(0)
        };
        match (self, part) {
            (Self::Combined { dim, axis, stride }, Part::Run(run)) => {
                let moved = |(position, place): (u64, u64)| (along(*dim, position), place * stride);
                run.clone().filter_map(|number| axis.get(number)).map(moved).collect()
            }
            (Self::Paired { dims, lists, stride }, Part::Points(points)) => {
                let row = |point: &u64| {
                    let parts = dims.iter().zip(lists);
                    let rows = parts.filter_map(|(dim, list)| Some(along(*dim, *list.get(*point as usize)?)));
                    (rows.sum(), point * stride)
                };
                points.iter().map(row).collect()
            }
            _ => Vec::new(),
        }
    }

    /// How many blocks along its dimensions hold chosen cells, about: as if the low end of the domain were that of a tile.
    fn blocks(&self, schema: &Schema, block_cells: u64) -> u64 {
        let dims = schema.dims();
        let tile: Vec<u64> = dims.iter().map(|d| d.tile_range(0)).map(|range| range.hi - range.lo + 1).collect();
        let grid = BlockGrid::new(&tile, schema.options().cell_order, block_cells);
        let side = |dim: usize| grid.block_shape().get(dim).copied().unwrap_or(1);
        let block = |dim: usize, position: u64| {
            let extent = tile.get(dim).copied().unwrap_or(1);
            position / extent * extent.div_ceil(side(dim)) + position % extent / side(dim)
        };
        match self {
            Self::Combined { dim, axis, .. } => {
                let (Some((first, _)), Some((last, _))) = (axis.get(0), axis.get(axis.len().saturating_sub(1))) else {
                    return 0;
                };
                // No more than there are positions, nor than there are blocks between the ends.
                (block(*dim, last) - block(*dim, first) + 1).min(axis.len())
            }
            Self::Paired { dims, lists, .. } => {
                let count = lists.first().map_or(0, Vec::len);
                let cell = |point: usize| {
                    let parts = dims.iter().zip(lists);
                    parts.filter_map(|(dim, list)| Some(block(*dim, *list.get(point)?))).collect::<Vec<u64>>()
                };
                (0..count).map(cell).collect::<std::collections::HashSet<_>>().len() as u64
            }
        }
    }
}

/// Points by the cell of a grid that `cell` gives for each dimension's position.
fn grouped(dims: &[usize], lists: &[Vec<u64>], mut points: Vec<u64>, cell: impl Fn(usize, u64) -> u64) -> Vec<Part> {
    let at = |point: u64| -> Vec<u64> {
        let parts = dims.iter().zip(lists);
        parts.filter_map(|(dim, list)| Some(cell(*dim, *list.get(point as usize)?))).collect()
    };
    points.sort_by_cached_key(|point| at(*point));
    let groups = points.chunk_by(|a, b| at(*a) == at(*b));
    groups.map(|group| Part::Points(Arc::new(group.to_vec()))).collect()
}

/// Cells to be moved: every combination of one move per factor. A move is rows of the region, and cells of the result, to go on by.
#[derive(Debug)]
pub(super) struct Moves {
    factors: Vec<Vec<(u64, u64)>>,
}

impl Moves {
    /// Calls `f` with each row to start from, each place in the result, and the moves from there, which are those of the last factor.
    pub(super) fn each(&self, mut f: impl FnMut(u64, u64, &[(u64, u64)])) {
        let Some((last, outer)) = self.factors.split_last() else { return };
        let mut next = outer.iter().all(|moves| !moves.is_empty()).then(|| vec![0; outer.len()]);
        while let Some(at) = next.take() {
            let steps = outer.iter().zip(&at).filter_map(|(moves, at)| moves.get(*at));
            let (row, place) = steps.fold((0, 0), |(row, place), step| (row + step.0, place + step.1));
            f(row, place, last);
            next = following(at, |factor| outer.get(factor).map_or(0, Vec::len));
        }
    }
}
