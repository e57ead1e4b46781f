//! Cells chosen by positions: which, and in which order.

use super::axis::{AxisPositions, last_of};
use super::mask::Mask;
use crate::base::{Error, Result};
use crate::schema::{Datatype, Dimension, KeyRange, Order, Schema, Subarray};
use std::ops::Range;

/// What is chosen along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// These positions, each with every position of the other dimensions.
    Combined(AxisPositions),
    /// These positions, point by point with those of the other paired dimensions, of which each has as many.
    Paired(Vec<u64>),
    /// What the selection's mask says.
    Masked,
}

/// Cells chosen by positions, counted from the low end of each dimension.
///
/// The result has an axis of points first, if some dimensions are paired or masked, then one per combined dimension. Its cells come in row order;
/// those of a mask too.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions<'a> {
    axes: Vec<Chosen>,
    mask: Option<Mask<'a>>,
    /// How many points there are; `None` if no dimension is paired or masked.
    points: Option<u64>,
    /// The lowest and the highest position along each dimension; `None` if no cell is chosen.
    hull: Option<Vec<(u64, u64)>>,
    /// The last position of each dimension.
    last: Vec<u64>,
}

impl<'a> Positions<'a> {
    /// What is chosen of an array of this schema, one choice per dimension; `mask` tells of those that are masked.
    ///
    /// # Errors
    /// Bounds: a position that a dimension does not have, a mask of another shape. Input: the wrong number of choices, lists of points of several
    /// lengths, positions along a dimension of floats or texts, points beside a mask.
    pub fn new(schema: &Schema, axes: Vec<Chosen>, mask: Option<Mask<'a>>) -> Result<Self> {
        let dims = schema.dims();
        if axes.len() != dims.len() {
            return Err(Error::input(format!("{} choices were given for {} dimensions", axes.len(), dims.len())));
        }
        check_mask(schema, &axes, mask.as_ref())?;
        let masked = mask.as_ref().map(|mask| (mask.dims().start, mask.whole_hull()));
        let mut points = mask.as_ref().map(Mask::count);
        let (mut hull, mut last) = (Some(Vec::new()), Vec::new());
        let mut axes = axes;
        for (at, (dim, chosen)) in dims.iter().zip(&mut axes).enumerate() {
            let named = |e: Error| e.context(format!("dimension {:?}", dim.name()));
            if !matches!(chosen, Chosen::Combined(AxisPositions::All)) {
                check_counted(dim)?;
            }
            let is_none = match chosen {
                Chosen::Combined(positions) => positions.settle(dim),
                Chosen::Masked => true,
                Chosen::Paired(list) => list.is_empty(),
            };
            let end = last_of(dim, is_none).map_err(named)?;
            let ends = match chosen {
                Chosen::Combined(positions) => positions.hull(end).map_err(named)?,
                Chosen::Masked => masked.as_ref().and_then(|(first, hull)| hull.as_ref()?.get(at - first).copied()),
                Chosen::Paired(list) => {
                    let count = list.len() as u64;
                    if points.is_some_and(|points| points != count) {
                        return Err(Error::input("lists of points need one length; broadcast them against each other"));
                    }
                    points = Some(count);
                    // A list of points is checked as any other.
                    let list = list.iter().min().zip(list.iter().max());
                    list.map(|(low, high)| AxisPositions::Listed(vec![*low, *high]).hull(end))
                        .transpose()
                        .map_err(named)?
                        .flatten()
                }
            };
            hull = hull.zip(ends).map(|(mut hull, ends)| {
                hull.push(ends);
                hull
            });
            last.push(end);
        }
        Ok(Self { axes, mask, points, hull, last })
    }

    /// What is chosen along each dimension.
    pub fn axes(&self) -> &[Chosen] {
        &self.axes
    }

    /// The shape of the result: points first, if there are any, then the combined dimensions.
    pub fn shape(&self) -> Vec<u64> {
        self.points
            .into_iter()
            .chain(self.combined().map(|(at, positions)| positions.count(self.last_of(at))))
            .collect()
    }

    /// How many cells are chosen, each as often as it is.
    pub fn cells(&self) -> u128 {
        self.shape().into_iter().map(u128::from).product()
    }

    /// The least box that holds all of them; `None` if there is none.
    pub fn hull(&self, schema: &Schema) -> Option<Subarray> {
        let keys =
            |(dim, (low, high)): (&Dimension, &(u64, u64))| KeyRange::new(dim.range().lo + low, dim.range().lo + high);
        Some(Subarray::new(schema.dims().iter().zip(self.hull.as_ref()?).map(keys).collect()))
    }

    /// The same cells as a box in row order, if that is what they are.
    pub fn as_box(&self, schema: &Schema) -> Option<Subarray> {
        let consecutive = |chosen: &Chosen| match chosen {
            Chosen::Combined(AxisPositions::All) => true,
            Chosen::Combined(AxisPositions::Strided { count, step, .. }) => *step == 1 || *count == 1,
            Chosen::Combined(AxisPositions::Listed(list)) => {
                list.windows(2).all(|pair| matches!(pair, [a, b] if a.checked_add(1) == Some(*b)))
            }
            Chosen::Paired(_) | Chosen::Masked => false,
        };
        self.hull(schema).filter(|_| self.axes.iter().all(consecutive))
    }

    pub(super) fn mask(&self) -> Option<&Mask<'a>> {
        self.mask.as_ref()
    }

    pub(super) fn points(&self) -> Option<u64> {
        self.points
    }

    pub(super) fn last_of(&self, dim: usize) -> u64 {
        self.last.get(dim).copied().unwrap_or(0)
    }

    /// The combined dimensions.
    pub(super) fn combined(&self) -> impl Iterator<Item = (usize, &AxisPositions)> {
        self.axes.iter().enumerate().filter_map(|(at, chosen)| match chosen {
            Chosen::Combined(positions) => Some((at, positions)),
            Chosen::Paired(_) | Chosen::Masked => None,
        })
    }

    /// The paired dimensions.
    pub(super) fn paired(&self) -> impl Iterator<Item = (usize, &[u64])> {
        self.axes.iter().enumerate().filter_map(|(at, chosen)| match chosen {
            Chosen::Paired(list) => Some((at, list.as_slice())),
            Chosen::Combined(_) | Chosen::Masked => None,
        })
    }

    /// The ordered keys of some cells of the result, which are counted in row order: a column per dimension.
    pub fn keys(&self, schema: &Schema, cells: Range<u64>) -> Vec<Vec<u64>> {
        let shape = self.shape();
        let strides = Order::Row.strides(&shape);
        let along = |axis: usize| {
            let stride = strides.get(axis).copied().unwrap_or(1).max(1);
            (stride, shape.get(axis).copied().unwrap_or(1).max(1))
        };
        let mut next = usize::from(self.points.is_some());
        let masked = self.masked(cells.clone(), along(0).0);
        let mut columns = Vec::with_capacity(self.axes.len());
        for (dim, (number, chosen)) in schema.dims().iter().zip(self.axes.iter().enumerate()) {
            let axis = if matches!(chosen, Chosen::Combined(_)) { next } else { 0 };
            next += usize::from(matches!(chosen, Chosen::Combined(_)));
            let ((stride, extent), low) = (along(axis), dim.range().lo);
            let position = |cell: u64| {
                let at = cell / stride % extent;
                match chosen {
                    Chosen::Combined(AxisPositions::All) => at,
                    Chosen::Combined(AxisPositions::Strided { start, step, .. }) => {
                        start.wrapping_add_signed((at as i64).wrapping_mul(*step))
                    }
                    Chosen::Combined(AxisPositions::Listed(list)) | Chosen::Paired(list) => {
                        list.get(at as usize).copied().unwrap_or(0)
                    }
                    Chosen::Masked => masked.position(number, at),
                }
            };
            columns.push(match chosen {
                // Nothing to divide by.
                Chosen::Paired(list) if stride == 1 && cells.end <= list.len() as u64 => {
                    let some = list.get(cells.start as usize..cells.end as usize).unwrap_or_default();
                    some.iter().map(|position| low.wrapping_add(*position)).collect()
                }
                _ => cells.clone().map(|cell| low.wrapping_add(position(cell))).collect(),
            });
        }
        columns
    }

    /// The masked positions of those points that have some of `cells`, each of them `across` cells.
    fn masked(&self, cells: Range<u64>, across: u64) -> MaskedPoints<'_> {
        let (first, last) = (cells.start / across, cells.end.saturating_sub(1) / across);
        let numbers = |mask: &Mask<'_>| mask.true_cells(first).take((last + 1 - first) as usize).collect();
        MaskedPoints { mask: self.mask.as_ref(), first, numbers: self.mask.as_ref().map(numbers).unwrap_or_default() }
    }
}

/// Points that a mask chooses, from number `first` on.
struct MaskedPoints<'a> {
    mask: Option<&'a Mask<'a>>,
    first: u64,
    /// The cells of the mask.
    numbers: Vec<u64>,
}

impl MaskedPoints<'_> {
    /// The position of a point along a dimension.
    fn position(&self, dim: usize, point: u64) -> u64 {
        let (Some(mask), Some(number)) = (self.mask, self.numbers.get((point - self.first) as usize)) else { return 0 };
        let place = dim - mask.dims().start;
        let inner: u64 = mask.shape().iter().skip(place + 1).product();
        number / inner.max(1) % mask.shape().get(place).copied().unwrap_or(1).max(1)
    }
}

/// Whether the mask is over the dimensions that are said to be masked, and has their shape.
fn check_mask(schema: &Schema, axes: &[Chosen], mask: Option<&Mask<'_>>) -> Result<()> {
    let said: Vec<usize> = (0..axes.len()).filter(|at| axes.get(*at) == Some(&Chosen::Masked)).collect();
    let held: Vec<usize> = mask.map(|mask| mask.dims().collect()).unwrap_or_default();
    if said != held || (mask.is_some() && axes.iter().any(|chosen| matches!(chosen, Chosen::Paired(_)))) {
        return Err(Error::input("a mask stands for neighbouring dimensions, and beside it no other is paired"));
    }
    let Some(mask) = mask else { return Ok(()) };
    let dims = schema.dims().get(mask.dims()).unwrap_or_default();
    let sizes: Vec<u128> = dims.iter().map(|dim| dim.range().count()).collect();
    if sizes.iter().copied().ne(mask.shape().iter().map(|n| u128::from(*n))) {
        return Err(Error::bounds(format!(
            "a mask of shape {:?} was given for dimensions of shape {sizes:?}; a mask has their shape",
            mask.shape()
        )));
    }
    Ok(())
}

/// A Bounds error if a dimension's coordinates cannot be counted.
pub(super) fn check_counted(dim: &Dimension) -> Result<()> {
    if dim.word().is_none() && !dim.datatype().is_float() {
        return Ok(());
    }
    let datatype = if dim.word().is_some() { Datatype::String } else { dim.datatype() };
    Err(Error::bounds(format!(
        "dimension {:?} is {datatype} and has no positions; ask for all of it, or for coordinates",
        dim.name()
    )))
}
