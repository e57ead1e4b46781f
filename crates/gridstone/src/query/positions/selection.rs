//! Cells chosen by positions: which, and in which order.

use super::axis::AxisPositions;
use crate::base::{Error, Result};
use crate::schema::{Dimension, KeyRange, Order, Schema, Subarray};
use std::ops::Range;

/// What is chosen along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Chosen {
    /// These positions, each with every position of the other dimensions.
    Combined(AxisPositions),
    /// These positions, point by point with those of the other paired dimensions, of which each has as many.
    Paired(Vec<u64>),
}

/// Cells chosen by positions, counted from the low end of each dimension.
///
/// The result has an axis of points first, if some dimensions are paired, then one per combined dimension; its cells come in row order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Positions {
    axes: Vec<Chosen>,
    /// How many points there are; `None` if no dimension is paired.
    points: Option<u64>,
    /// The lowest and the highest position along each dimension; `None` if no cell is chosen.
    hull: Option<Vec<(u64, u64)>>,
    /// The last position of each dimension.
    last: Vec<u64>,
}

impl Positions {
    /// What is chosen of an array of this schema, one choice per dimension.
    ///
    /// # Errors
    /// Bounds: a position that a dimension does not have. Input: the wrong number of choices, lists of points of several lengths, positions
    /// along a dimension of floats or texts.
    pub fn new(schema: &Schema, axes: Vec<Chosen>) -> Result<Self> {
        let dims = schema.dims();
        if axes.len() != dims.len() {
            return Err(Error::input(format!("{} choices were given for {} dimensions", axes.len(), dims.len())));
        }
        let (mut points, mut hull, mut last) = (None, Some(Vec::new()), Vec::new());
        for (dim, chosen) in dims.iter().zip(&axes) {
            let range = dim.range();
            let end = range.hi - range.lo;
            let named = |e: Error| e.context(format!("dimension {:?}", dim.name()));
            if !matches!(chosen, Chosen::Combined(AxisPositions::All)) && !has_positions(dim) {
                return Err(Error::bounds(format!(
                    "dimension {:?} is {} and has no positions; ask for all of it, or for coordinates",
                    dim.name(),
                    dim.datatype()
                )));
            }
            let ends = match chosen {
                Chosen::Combined(positions) => positions.hull(end).map_err(named)?,
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
        Ok(Self { axes, points, hull, last })
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
                list.windows(2).all(|pair| matches!(pair, [a, b] if a + 1 == *b))
            }
            Chosen::Paired(_) => false,
        };
        self.hull(schema).filter(|_| self.axes.iter().all(consecutive))
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
            Chosen::Paired(_) => None,
        })
    }

    /// The paired dimensions.
    pub(super) fn paired(&self) -> impl Iterator<Item = (usize, &[u64])> {
        self.axes.iter().enumerate().filter_map(|(at, chosen)| match chosen {
            Chosen::Paired(list) => Some((at, list.as_slice())),
            Chosen::Combined(_) => None,
        })
    }

    /// The ordered keys of some cells of the result, which are counted in row order: a column per dimension.
    pub fn keys(&self, schema: &Schema, cells: Range<u64>) -> Vec<Vec<u64>> {
        let shape = self.shape();
        let strides = Order::Row.strides(&shape);
        let mut next = usize::from(self.points.is_some());
        let mut column = |(dim, chosen): (&Dimension, &Chosen)| {
            let axis = match chosen {
                Chosen::Paired(_) => 0,
                Chosen::Combined(_) => {
                    next += 1;
                    next - 1
                }
            };
            let (stride, extent) =
                (strides.get(axis).copied().unwrap_or(1), shape.get(axis).copied().unwrap_or(1).max(1));
            let low = dim.range().lo;
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
                }
            };
            cells.clone().map(|cell| low.wrapping_add(position(cell))).collect()
        };
        schema.dims().iter().zip(&self.axes).map(&mut column).collect()
    }
}

/// Whether a dimension's coordinates can be counted.
fn has_positions(dim: &Dimension) -> bool {
    dim.word().is_none() && !dim.datatype().is_float()
}
