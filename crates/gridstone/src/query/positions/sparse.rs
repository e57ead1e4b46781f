//! Chosen positions of a sparse array: the boxes that hold them, and which of the cells found there are chosen.
//!
//! ```text
//! along y: 1 2 . . 5     runs 1..=2, 5        along x: 0 . 2 . 4 …     more than 16,384 runs
//! boxes:   1..=2 and 5 along y, each from 0 to the last position along x; then rows whose x is even are kept
//! ```
//!
//! 1. Along each dimension, positions side by side make a run. The boxes are the combinations of runs.
//! 2. While these are more than [`BOXES_MAX`], the dimension with the most runs is taken as one, from its first position to its last.
//! 3. A cell in the boxes stays if its positions along such dimensions are chosen.

use super::axis::{AxisPositions, last_of};
use super::selection::{Chosen, check_counted};
use crate::base::{Error, Result};
use crate::schema::{Coordinate, KeyRange, Region, Schema, Subarray, key};
use crate::tile::{Cells, Column};

/// Boxes that are looked at together, at most.
const BOXES_MAX: usize = 1 << 14;

/// Positions along one axis of the schema, each once.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Axis {
    /// `low`, `low + step`, … up to `high`.
    Strided { low: u64, high: u64, step: u64 },
    /// In ascending order.
    Listed(Vec<u64>),
}

impl Axis {
    /// The positions chosen of an axis that ends at position `last`; `None` if none is.
    fn new(positions: &AxisPositions, last: u64) -> Result<Option<Self>> {
        let Some((low, high)) = positions.hull(last)? else { return Ok(None) };
        Ok(Some(match positions {
            AxisPositions::All => Self::Strided { low, high, step: 1 },
            AxisPositions::Strided { step, .. } => Self::Strided { low, high, step: step.unsigned_abs().max(1) },
            AxisPositions::Listed(list) => {
                let mut sorted = list.clone();
                sorted.sort_unstable();
                sorted.dedup();
                Self::Listed(sorted)
            }
        }))
    }

    /// The first and last position of each run; `None` if there are too many.
    fn runs(&self) -> Option<Vec<(u64, u64)>> {
        match self {
            Self::Strided { low, high, step } if *step == 1 || low == high => Some(vec![(*low, *high)]),
            Self::Strided { low, high, step } if (high - low) / step >= BOXES_MAX as u64 => None,
            Self::Strided { low, high, step } => {
                Some((0..=(high - low) / step).map(|n| low + n * step).map(|at| (at, at)).collect())
            }
            Self::Listed(list) => {
                let runs = list.chunk_by(|a, b| b - a == 1).take(BOXES_MAX + 1);
                let runs: Vec<_> = runs.filter_map(|run| run.first().copied().zip(run.last().copied())).collect();
                (runs.len() <= BOXES_MAX).then_some(runs)
            }
        }
    }

    /// The lowest and the highest position.
    fn hull(&self) -> (u64, u64) {
        match self {
            Self::Strided { low, high, .. } => (*low, *high),
            Self::Listed(list) => (list.first().copied().unwrap_or(0), list.last().copied().unwrap_or(0)),
        }
    }

    /// Whether `position`, which lies in the hull, is chosen.
    fn holds(&self, position: u64) -> bool {
        match self {
            Self::Strided { low, step, .. } => position.wrapping_sub(*low).is_multiple_of(*step),
            Self::Listed(list) => list.binary_search(&position).is_ok(),
        }
    }
}

/// What is chosen of a sparse array, one choice per dimension.
#[derive(Debug, Clone)]
pub struct SparsePositions {
    region: Region,
    /// The dimensions along which more is read than is chosen: the number of each, and what is chosen along it.
    wider: Vec<(usize, Axis)>,
}

impl SparsePositions {
    /// The cells at every combination of the positions chosen along each dimension of `schema`.
    ///
    /// # Errors
    /// Bounds: a position that a dimension does not have, positions of floats or texts. Input: the wrong number of choices, points, a mask.
    pub fn new(schema: &Schema, chosen: &[Chosen]) -> Result<Self> {
        let dims = schema.coordinates().count();
        if chosen.len() != dims {
            return Err(Error::input(format!("{} choices were given for {dims} dimensions", chosen.len())));
        }
        let (mut axes, mut numbers) = (Vec::new(), Vec::new());
        for (number, (dim, chosen)) in schema.coordinates().zip(chosen).enumerate() {
            let Some(found) = axes_of(schema, dim, chosen)? else {
                return Ok(Self { region: Region::new(Vec::new()), wider: Vec::new() });
            };
            numbers.extend(found.iter().map(|_| number));
            axes.extend(found);
        }
        let (runs, hulled) = runs_of(&axes);
        let wider = axes.into_iter().zip(numbers).zip(hulled).filter(|(_, hulled)| *hulled);
        let wider = wider.map(|((axis, number), _)| (number, axis)).collect();
        Ok(Self { region: Region::new(boxes(schema, &runs)), wider })
    }

    /// The boxes that hold the chosen cells; none if no position is chosen.
    pub fn region(&self) -> &Region {
        &self.region
    }

    /// The chosen cells among those of the region, in their order.
    ///
    /// # Errors
    /// Budget: more cells than can be counted in 32 bits.
    pub fn pick(&self, schema: &Schema, cells: Cells) -> Result<Cells> {
        if self.wider.is_empty() {
            return Ok(cells);
        }
        let count = u32::try_from(cells.count).map_err(|e| {
            Error::budget("so many cells lie around the chosen ones; choose fewer at once").with_source(e)
        })?;
        let mut rows: Vec<u32> = (0..count).collect();
        for (number, axis) in &self.wider {
            let (Some(dim), Some(column)) = (schema.coordinates().nth(*number), cells.dims.get(*number)) else {
                continue;
            };
            let keys = key::encode(dim.datatype(), column.view().values())?;
            let low = dim.number().map_or(0, |axis| axis.range().lo);
            rows.retain(|row| keys.get(*row as usize).is_some_and(|key| axis.holds(key.wrapping_sub(low))));
        }
        let picked = |columns: &[Column]| columns.iter().map(|column| column.view().gather(&rows)).collect();
        Ok(Cells { count: rows.len(), dims: picked(&cells.dims), attrs: picked(&cells.attrs) })
    }
}

/// What is chosen along each axis of a dimension; `None` if nothing is.
fn axes_of(schema: &Schema, dim: Coordinate<'_>, chosen: &Chosen) -> Result<Option<Vec<Axis>>> {
    let Chosen::Combined(positions) = chosen else {
        return Err(Error::input("points of a sparse array are read by their coordinates, not by positions"));
    };
    let axes = schema.dims().get(dim.axes()).unwrap_or_default();
    let mut found = Vec::with_capacity(axes.len());
    for axis in axes {
        if *positions != AxisPositions::All {
            check_counted(axis)?;
        }
        let named = |e: Error| e.context(format!("dimension {:?}", axis.name()));
        if axis.range().is_empty() {
            last_of(axis, positions.clone().settle(axis)).map_err(named)?;
            return Ok(None);
        }
        match Axis::new(positions, last_of(axis, false)?).map_err(named)? {
            Some(axis) => found.push(axis),
            None => return Ok(None),
        }
    }
    Ok(Some(found))
}

/// The runs along each axis, at most [`BOXES_MAX`] combinations of them, and along which axes more is read than is chosen.
fn runs_of(axes: &[Axis]) -> (Vec<Vec<(u64, u64)>>, Vec<bool>) {
    let mut runs: Vec<Option<Vec<(u64, u64)>>> = axes.iter().map(Axis::runs).collect();
    let mut hulled = vec![false; axes.len()];
    let count = |runs: &Option<Vec<(u64, u64)>>| runs.as_ref().map_or(usize::MAX, Vec::len);
    while runs.iter().map(count).fold(1, usize::saturating_mul) > BOXES_MAX {
        // The last of equals is the one whose cells lie nearest to each other.
        let Some(longest) = (0..axes.len()).max_by_key(|at| runs.get(*at).map(count)) else { break };
        for ((runs, hulled), axis) in runs.iter_mut().zip(&mut hulled).zip(axes).skip(longest).take(1) {
            (*runs, *hulled) = (Some(vec![axis.hull()]), true);
        }
    }
    (runs.into_iter().flatten().collect(), hulled)
}

/// The combinations of runs as boxes.
fn boxes(schema: &Schema, runs: &[Vec<(u64, u64)>]) -> Vec<Subarray> {
    let mut boxes: Vec<Vec<KeyRange>> = vec![Vec::with_capacity(runs.len())];
    for (dim, runs) in schema.dims().iter().zip(runs) {
        let low = dim.range().lo;
        let ranges: Vec<KeyRange> = runs.iter().map(|(first, last)| KeyRange::new(low + first, low + last)).collect();
        let longer = |part: &Vec<KeyRange>| ranges.iter().map(|range| [part.as_slice(), &[*range]].concat()).collect();
        boxes = boxes.iter().flat_map(|part| -> Vec<Vec<KeyRange>> { longer(part) }).collect();
    }
    boxes.into_iter().map(Subarray::new).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strided(start: u64, count: u64, step: i64) -> Axis {
        Axis::new(&AxisPositions::Strided { start, count, step }, u64::MAX).unwrap().unwrap()
    }

    fn listed(list: &[u64]) -> Axis {
        Axis::new(&AxisPositions::Listed(list.to_vec()), u64::MAX).unwrap().unwrap()
    }

    #[test]
    fn positions_side_by_side_are_one_run() {
        assert_eq!(listed(&[9, 4, 5, 4, 6, 0]).runs().unwrap(), [(0, 0), (4, 6), (9, 9)]);
        assert_eq!(listed(&[u64::MAX, 0]).runs().unwrap(), [(0, 0), (u64::MAX, u64::MAX)]);
        assert_eq!(strided(9, 4, -3).runs().unwrap(), [(0, 0), (3, 3), (6, 6), (9, 9)]);
        assert_eq!(strided(9, 4, -1).runs().unwrap(), [(6, 9)]);
        assert_eq!(strided(7, 1, 50).runs().unwrap(), [(7, 7)]);
        let most = BOXES_MAX as u64;
        assert_eq!(strided(0, most, 2).runs().map(|runs| runs.len()), Some(BOXES_MAX));
        assert!(strided(0, most + 1, 2).runs().is_none());
        let apart: Vec<u64> = (0..most + 1).map(|n| n * 2).collect();
        assert!(listed(&apart).runs().is_none() && listed(&apart[1..]).runs().is_some());
        assert!(strided(1, 3, 1 << 62).holds(1 + (1 << 63)) && !strided(1, 3, 1 << 62).holds(1 << 63));
    }

    #[test]
    fn too_many_boxes_are_one_along_the_longest_side() {
        let axes = [strided(0, 400, 2), listed(&[1, 5, 9]), strided(3, 200, 7), strided(0, 2_000, 3)];
        let (runs, hulled) = runs_of(&axes);
        assert_eq!(runs.iter().map(Vec::len).collect::<Vec<_>>(), [1, 3, 200, 1]);
        assert_eq!(hulled, [true, false, false, true]);
        assert_eq!((runs[0][0], runs[3][0]), ((0, 798), (0, 5_997)));
        assert_eq!(runs_of(&axes[1..3]).1, [false, false]);
    }
}
