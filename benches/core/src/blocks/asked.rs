//! The queries of an array: boxes and cells, the same for every block size.

use super::input::Input;
use gridstone::base::{AlignedBuf, Result};
use gridstone::engine::Column;
use gridstone::schema::Schema;
use gridstone_testkit::Dice;

/// A box as text, inclusive.
pub(crate) type Texts = Vec<(String, String)>;

/// All queries of one input.
#[derive(Debug)]
pub(crate) struct Asked {
    /// Boxes of about 10,000 cells of a dense array, 1,000 of a sparse one.
    pub(crate) small: Vec<Texts>,
    /// Boxes of about 1,000,000 cells of a dense array, 10,000 of a sparse one.
    pub(crate) large: Vec<Texts>,
    /// Single cells: a column per dimension, with one coordinate.
    pub(crate) single: Vec<Vec<Column>>,
    /// Many cells at once.
    pub(crate) many: Vec<Column>,
}

const SMALL: usize = 20;
const LARGE: usize = 6;
const SINGLE: usize = 100;
const MANY: usize = 1_000;

impl Asked {
    /// The queries of `input`; the same in every run.
    ///
    /// # Errors
    /// Schema if the input has none.
    pub(crate) fn of(input: &Input, schema: &Schema) -> Result<Self> {
        let mut dice = Dice::new(7);
        let shape: Vec<u64> = schema.domain().shape();
        if input.is_sparse() {
            let cells = Cells::of(input, schema);
            let row = |dice: &mut Dice| cells.at(dice.below(input.cells()));
            let (single, many) = places(schema, &mut dice, row)?;
            return Ok(Self {
                small: (0..SMALL).map(|_| cells.around(1_000, &mut dice)).collect(),
                large: (0..LARGE).map(|_| cells.around(10_000, &mut dice)).collect(),
                single,
                many,
            });
        }
        let row = |dice: &mut Dice| shape.iter().map(|n| dice.below(*n as usize) as i64).collect();
        let (single, many) = places(schema, &mut dice, row)?;
        Ok(Self {
            small: (0..SMALL).map(|_| dense_box(&shape, 10_000.0, &mut dice)).collect(),
            large: (0..LARGE).map(|_| dense_box(&shape, 1_000_000.0, &mut dice)).collect(),
            single,
            many,
        })
    }
}

/// A box of equal sides of about `cells` cells, shorter where the array is.
fn dense_box(shape: &[u64], cells: f64, dice: &mut Dice) -> Texts {
    let side = cells.powf(1.0 / shape.len() as f64).round() as u64;
    let range = |n: &u64| {
        let len = side.clamp(1, *n);
        let from = dice.below((n - len + 1) as usize) as u64;
        (from.to_string(), (from + len - 1).to_string())
    };
    shape.iter().map(range).collect()
}

/// Single cells and many cells, as columns in the dimensions' types.
fn places(
    schema: &Schema,
    dice: &mut Dice,
    mut row: impl FnMut(&mut Dice) -> Vec<i64>,
) -> Result<(Vec<Vec<Column>>, Vec<Column>)> {
    let columns = |rows: &[Vec<i64>]| {
        let column = |d: usize, width: usize| {
            let cells = rows.iter().filter_map(|row| row.get(d));
            cells.flat_map(|v| v.to_le_bytes().into_iter().take(width)).collect::<Vec<u8>>()
        };
        let dims = schema.dims().iter().enumerate();
        let made = dims.map(|(d, dim)| {
            let bytes = column(d, dim.datatype().width().unwrap_or(8));
            Column::new(dim.datatype(), AlignedBuf::from_slice(&bytes), None, None)
        });
        made.collect::<Result<Vec<Column>>>()
    };
    let single = (0..SINGLE).map(|_| columns(&[row(dice)])).collect::<Result<_>>()?;
    let many: Vec<Vec<i64>> = (0..MANY).map(|_| row(dice)).collect();
    Ok((single, columns(&many)?))
}

/// The coordinates of a sparse input as numbers.
struct Cells {
    dims: Vec<Vec<i64>>,
    /// Least and greatest of the domain.
    domain: Vec<(i64, i64)>,
}

impl Cells {
    fn of(input: &Input, schema: &Schema) -> Self {
        let dims = input.dims().iter().map(|column| {
            let view = column.view();
            (0..view.len()).map(|row| number(view.value(row))).collect()
        });
        let bound = |text: &str| text.parse().unwrap_or(0);
        let domain = schema.dims().iter().map(|d| (bound(&d.texts().0), bound(&d.texts().1)));
        Self { dims: dims.collect(), domain: domain.collect() }
    }

    fn at(&self, row: usize) -> Vec<i64> {
        self.dims.iter().filter_map(|column| column.get(row).copied()).collect()
    }

    /// The box around a random cell and its `count` nearest cells, with distances measured in each dimension's extent.
    fn around(&self, count: usize, dice: &mut Dice) -> Texts {
        let rows = self.dims.first().map_or(0, Vec::len);
        let centre = self.at(dice.below(rows.max(1)));
        let extents: Vec<f64> = self.dims.iter().map(|column| extent(column)).collect();
        let far = |row: usize| {
            let per_dim = self.dims.iter().zip(&centre).zip(&extents);
            per_dim.fold(0.0, |far: f64, ((column, c), extent)| {
                far.max(column.get(row).map_or(0.0, |v| (v - c).abs() as f64 / extent))
            })
        };
        let mut distances: Vec<f64> = (0..rows).map(far).collect();
        let nth = count.min(rows).saturating_sub(1);
        let reach = *distances.select_nth_unstable_by(nth, f64::total_cmp).1;
        let range = |((c, extent), (lo, hi)): ((&i64, &f64), &(i64, i64))| {
            let half = (reach * extent).ceil() as i64;
            ((c - half).max(*lo).to_string(), (c + half).min(*hi).to_string())
        };
        centre.iter().zip(&extents).zip(&self.domain).map(range).collect()
    }
}

fn extent(column: &[i64]) -> f64 {
    let (lo, hi) = (column.iter().min().unwrap_or(&0), column.iter().max().unwrap_or(&0));
    ((hi - lo) as f64).max(1.0)
}

/// A signed integer of up to 8 bytes.
fn number(bytes: &[u8]) -> i64 {
    let sign = bytes.last().map_or(0, |last| i64::from(*last as i8) >> 7);
    bytes.iter().rev().fold(sign, |n, byte| n << 8 | i64::from(*byte))
}
