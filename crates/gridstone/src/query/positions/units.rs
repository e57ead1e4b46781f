//! Chosen cells by the blocks that hold them: each block that holds some is one unit of work, or a few neighbours are.
//!
//! Along a combined dimension chosen positions are cut where tiles end, and in a tile where its blocks end. Points are sorted by tile, and in a tile
//! by block. A unit is one part along each dimension; its region is the least box that holds its cells.

use super::axis::SortedAxis;
use super::mask::Mask;
use super::selection::Positions;
use crate::schema::{Dimension, KeyRange, Order, Schema, Subarray};
use crate::tile::BlockGrid;
use std::ops::Range;
use std::sync::Arc;

/// Neighbouring blocks are one unit if so large a part of the blocks along a dimension holds chosen cells.
const SHARE_MIN: f64 = 0.5;

/// What is chosen along one dimension, or along the paired or masked ones together.
#[derive(Debug)]
enum Factor<'a> {
    /// Positions of one dimension.
    Combined { dim: usize, axis: SortedAxis, stride: u64 },
    /// Positions of each paired dimension, by point; one place in the result per point.
    Paired { dims: Vec<usize>, lists: Vec<&'a [u64]>, stride: u64 },
    /// The true cells of a mask; one place in the result per true cell.
    Masked { mask: &'a Mask<'a>, stride: u64 },
}

/// A part of a factor.
#[derive(Debug, Clone)]
pub(super) enum Part {
    /// Numbers of sorted positions.
    Run(Range<u64>),
    /// Numbers of points.
    Points(Arc<Vec<u64>>),
    /// The least box of true cells of a mask: positions, low and high.
    Box(Vec<(u64, u64)>),
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
    factors: Vec<Factor<'a>>,
    /// By factor, the parts in each tile along it.
    tiles: Vec<Vec<Part>>,
    /// Which combination of tiles comes next; `None` at the end.
    next: Option<Vec<usize>>,
}

impl<'a> Units<'a> {
    /// A selection that is not cut yet.
    pub(super) fn new(schema: &'a Schema, positions: &'a Positions<'_>) -> Self {
        let mut factors = Vec::new();
        let mut stride = 1u64;
        let combined: Vec<_> = positions.combined().collect();
        for (dim, chosen) in combined.into_iter().rev() {
            let axis = SortedAxis::new(chosen, positions.last_of(dim));
            let count = axis.len();
            factors.push(Factor::Combined { dim, axis, stride });
            stride = stride.saturating_mul(count.max(1));
        }
        if let Some(mask) = positions.mask() {
            factors.push(Factor::Masked { mask, stride });
        } else if positions.points().is_some() {
            let (dims, lists) = positions.paired().unzip();
            factors.push(Factor::Paired { dims, lists, stride });
        }
        factors.reverse();
        Self { schema, block_cells: 1, times: 1, factors, tiles: Vec::new(), next: None }
    }

    /// Cuts the selection into units: blocks of at most `block_cells`; where these lie side by side, as many as have about `cells` cells.
    pub(super) fn cut_by_blocks(&mut self, block_cells: u64, cells: u64) {
        self.tiles = self.factors.iter().map(|factor| factor.by_tile(self.schema)).collect();
        self.next = self.tiles.iter().all(|parts| !parts.is_empty()).then(|| vec![0; self.tiles.len()]);
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
        let shape: Vec<u64> = tile.iter().map(|range| (range.hi - range.lo).saturating_add(1)).collect();
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
                (high.saturating_sub(start) / side - low.saturating_sub(start) / side) as f64 + 1.0
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

    /// How many blocks of at most `block_cells` hold chosen cells, at most, about.
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

impl Factor<'_> {
    fn dims(&self) -> usize {
        match self {
            Self::Combined { .. } => 1,
            Self::Paired { dims, .. } => dims.len(),
            Self::Masked { mask, .. } => mask.shape().len(),
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
                let all = (0..lists.first().map_or(0, |list| list.len()) as u64).collect();
                let tile = |dim: usize, position: u64| {
                    schema.dims().get(dim).map_or(0, |d| d.tile_of(Self::key(schema, dim, position)))
                };
                grouped(dims, lists, all, tile)
            }
            Self::Masked { mask, .. } => {
                let Some(hull) = mask.whole_hull() else { return Vec::new() };
                let end = |at: usize, position: u64| {
                    let Some(d) = schema.dims().get(mask.dims().start + at) else { return u64::MAX };
                    let low = d.range().lo;
                    (d.tile_range(d.tile_of(low + position)).hi - low).saturating_add(1)
                };
                boxes(mask, &hull, end)
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
            (Self::Masked { mask, .. }, Part::Box(held)) => {
                let end = |at: usize, position: u64| {
                    let dim = mask.dims().start + at;
                    let (start, side) = grid(dim);
                    let start = start - Self::key(schema, dim, 0);
                    ((position - start) / side + 1).saturating_mul(side).saturating_add(start)
                };
                boxes(mask, held, end)
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
                let span = |(dim, list): (&usize, &&[u64])| {
                    let keys = points.iter().filter_map(|p| list.get(*p as usize)).map(|p| Self::key(schema, *dim, *p));
                    let (low, high) = keys.fold((u64::MAX, 0), |(low, high), key| (low.min(key), high.max(key)));
                    (*dim, KeyRange::new(low.min(high), high))
                };
                dims.iter().zip(lists).map(span).collect()
            }
            (Self::Masked { mask, .. }, Part::Box(held)) => {
                let key = |dim: usize, position: u64| Self::key(schema, dim, position);
                let span =
                    |(dim, (low, high)): (usize, &(u64, u64))| (dim, KeyRange::new(key(dim, *low), key(dim, *high)));
                mask.dims().zip(held).map(span).collect()
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
            (Self::Masked { mask, stride }, Part::Box(held)) => {
                let (low, high): (Vec<u64>, Vec<u64>) = held.iter().copied().unzip();
                let (inner, mut moves) = (mask.dims().end - 1, Vec::new());
                mask.each_true(&low, &high, |outer, at, rank| {
                    let row: u64 = mask.dims().zip(outer).map(|(dim, position)| along(dim, *position)).sum();
                    moves.push((row + along(inner, at), rank * stride));
                });
                moves
            }
            _ => Vec::new(),
        }
    }

    /// How many blocks along its dimensions hold chosen cells, at most, about: as if the low end of the domain were that of a tile.
    fn blocks(&self, schema: &Schema, block_cells: u64) -> u64 {
        let dims = schema.dims();
        let tile: Vec<u64> = dims.iter().map(Dimension::tile_cells).collect();
        let grid = BlockGrid::new(&tile, schema.options().cell_order, block_cells);
        let side = |dim: usize| grid.block_shape().get(dim).copied().unwrap_or(1);
        let block = |dim: usize, position: u64| {
            let extent = tile.get(dim).copied().unwrap_or(1);
            (position / extent).saturating_mul(extent.div_ceil(side(dim))).saturating_add(position % extent / side(dim))
        };
        match self {
            Self::Combined { dim, axis, .. } => {
                let (Some((first, _)), Some((last, _))) = (axis.get(0), axis.get(axis.len().saturating_sub(1))) else {
                    return 0;
                };
                // No more than there are positions, nor than there are blocks between the ends.
                (block(*dim, last) - block(*dim, first)).saturating_add(1).min(axis.len())
            }
            Self::Paired { dims, lists, .. } => {
                let along = |(dim, list): (&usize, &&[u64])| {
                    let (low, high) = list.iter().fold((u64::MAX, 0), |(low, high), p| (low.min(*p), high.max(*p)));
                    (block(*dim, high) - block(*dim, low.min(high))).saturating_add(1)
                };
                let between = dims.iter().zip(lists).map(along).fold(1, u64::saturating_mul);
                between.min(lists.first().map_or(0, |list| list.len()) as u64)
            }
            Self::Masked { mask, .. } => {
                let Some(hull) = mask.whole_hull() else { return 0 };
                let along =
                    |(dim, (low, high)): (usize, (u64, u64))| (block(dim, high) - block(dim, low)).saturating_add(1);
                mask.dims().zip(hull).map(along).fold(1, u64::saturating_mul).min(mask.count())
            }
        }
    }
}

/// The parts of a box of a mask that hold true cells, cut where `ends_at` says that the interval which holds a position along a dimension ends.
fn boxes(mask: &Mask<'_>, held: &[(u64, u64)], ends_at: impl Fn(usize, u64) -> u64) -> Vec<Part> {
    let intervals = |(at, (low, high)): (usize, &(u64, u64))| {
        let (mut found, mut from) = (Vec::new(), *low);
        while from <= *high {
            let end = ends_at(at, from).min(high.saturating_add(1)).max(from + 1);
            found.push((from, end - 1));
            from = end;
        }
        found
    };
    let along: Vec<Vec<(u64, u64)>> = held.iter().enumerate().map(intervals).collect();
    let (mut parts, mut next) = (Vec::new(), Some(vec![0; along.len()]));
    while let Some(at) = next.take() {
        let ends = along.iter().zip(&at).filter_map(|(all, at)| all.get(*at)).copied();
        let (low, high): (Vec<u64>, Vec<u64>) = ends.unzip();
        parts.extend(mask.hull(&low, &high).map(Part::Box));
        next = following(at, |dim| along.get(dim).map_or(0, Vec::len));
    }
    parts
}

/// Cells of a grid that are counted rather than sorted, at most.
const COUNTED_MAX: u64 = 1 << 20;

/// Points by the cell of a grid that holds them; `cell` gives its number along each dimension.
fn grouped(dims: &[usize], lists: &[&[u64]], points: Vec<u64>, cell: impl Fn(usize, u64) -> u64) -> Vec<Part> {
    let along = |(dim, list): (&usize, &&[u64])| -> Vec<u64> {
        points.iter().map(|point| list.get(*point as usize).map_or(0, |position| cell(*dim, *position))).collect()
    };
    let cells: Vec<Vec<u64>> = dims.iter().zip(lists).map(along).collect();
    let low: Vec<u64> = cells.iter().map(|along| along.iter().min().copied().unwrap_or(0)).collect();
    let extent = |(along, low): (&Vec<u64>, &u64)| along.iter().max().map_or(1, |high| (high - low).saturating_add(1));
    let extents: Vec<u64> = cells.iter().zip(&low).map(extent).collect();
    let all = extents.iter().fold(1u64, |all, n| all.saturating_mul(*n));
    let at = |number: usize| -> Vec<u64> { cells.iter().filter_map(|along| along.get(number).copied()).collect() };
    if all > COUNTED_MAX {
        let mut order: Vec<usize> = (0..points.len()).collect();
        order.sort_by_cached_key(|number| at(*number));
        let groups = order.chunk_by(|a, b| at(*a) == at(*b));
        let group = |group: &[usize]| group.iter().filter_map(|number| points.get(*number).copied()).collect();
        return groups.map(|g| Part::Points(Arc::new(group(g)))).collect();
    }
    let mut groups: Vec<Vec<u64>> = vec![Vec::new(); all as usize];
    for (number, point) in points.iter().enumerate() {
        let parts = cells.iter().zip(&low).zip(&extents);
        let place = parts.fold(0, |place, ((along, low), n)| place * n + along.get(number).map_or(0, |c| c - low));
        if let Some(group) = groups.get_mut(place as usize) {
            group.push(*point);
        }
    }
    groups.into_iter().filter(|group| !group.is_empty()).map(|group| Part::Points(Arc::new(group))).collect()
}

/// Cells to be moved: every combination of one move per factor. A move is rows of the region, and cells of the result, to go on by.
#[derive(Debug)]
pub(super) struct Moves {
    factors: Vec<Vec<(u64, u64)>>,
}

impl Moves {
    /// How many cells are moved.
    pub(super) fn count(&self) -> u64 {
        self.factors.iter().map(|moves| moves.len() as u64).product()
    }

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
