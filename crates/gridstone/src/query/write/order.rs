//! Cells in global order: which row stands where, and what its coordinates are.

use crate::base::{Cancel, Error, Result};
use crate::query::cells::keys::order_keys;
use crate::query::request::WriteContext;
use crate::schema::Schema;
use crate::tile::coordinates::PORTION;
use crate::tile::{CellKeys, KeyLayout};
use std::cmp::Ordering;
use std::ops::Range;

/// What to do with several cells at one place within one write, where the array does not allow them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dedup {
    /// Refuse the write.
    Error,
    /// Keep the first.
    First,
    /// Keep the last.
    Last,
}

impl Dedup {
    /// The rule named "error", "first" or "last".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "error" => Ok(Self::Error),
            "first" => Ok(Self::First),
            "last" => Ok(Self::Last),
            other => Err(Error::input(format!("unknown dedup {other:?}; it is \"error\", \"first\" or \"last\""))),
        }
    }
}

/// Cells in global order, duplicates treated as asked.
pub(super) struct OrderedCells {
    layout: KeyLayout,
    keys: CellKeys,
    /// The row each comes from.
    rows: Vec<u32>,
    /// The coordinates by row, where keys do not tell them.
    given: Vec<Vec<u64>>,
}

impl OrderedCells {
    /// Sorts cells, given as a column of ordered keys per dimension, with the number of the first for errors. `sorted`: the caller says that they are, which is
    /// checked.
    ///
    /// # Errors
    /// Input: not sorted, or two cells at one place where `dedup` refuses them.
    pub(in crate::query) fn new(
        context: &WriteContext<'_>,
        schema: &Schema,
        (given, first_row): (Vec<Vec<u64>>, u64),
        sorted: bool,
        dedup: Dedup,
    ) -> Result<Self> {
        let cancel = context.cancel;
        let (layout, order) = (KeyLayout::new(schema), order_keys(context.pool, cancel, schema, &given)?);
        if sorted && let Some(row) = order.first_step(Ordering::Less, cancel)? {
            return Err(not_sorted(row));
        }
        let (keys, rows) = order.sort(context.pool, cancel)?;
        match dedup {
            Dedup::Error if schema.options().duplicates => {}
            Dedup::Error => {
                if let Some(at) = keys.first_step(Ordering::Equal, cancel)? {
                    return Err(same_cell(schema, &given, first_row, rows.get(at - 1..=at).unwrap_or_default()));
                }
            }
            Dedup::First | Dedup::Last => {
                let kept = kept(cancel, &keys, dedup)?;
                if kept.len() < rows.len() {
                    let rows = kept.iter().map(|at| rows.get(*at as usize).copied().unwrap_or(0)).collect();
                    return Ok(Self::of(layout, keys.pick(&kept), rows, given));
                }
            }
        }
        Ok(Self::of(layout, keys, rows, given))
    }

    fn of(layout: KeyLayout, keys: CellKeys, rows: Vec<u32>, given: Vec<Vec<u64>>) -> Self {
        // What is not needed any more is let go of before values are gathered.
        let given = if layout.tells_coordinates() { Vec::new() } else { given };
        Self { layout, keys, rows, given }
    }

    /// The rows the cells come from.
    pub(in crate::query) fn rows(&self) -> &[u32] {
        &self.rows
    }

    /// The coordinates of the cells at `places`, a column of ordered keys per dimension.
    pub(in crate::query) fn coordinates(&self, places: Range<usize>) -> Vec<Vec<u64>> {
        // Keys lie in this order: reading them is much quicker than gathering coordinates from all over.
        self.layout.coordinates(&self.keys, places.clone()).unwrap_or_else(|| {
            let rows = self.rows.get(places).unwrap_or_default();
            let pick = |column: &Vec<u64>| rows.iter().map(|r| column.get(*r as usize).copied().unwrap_or(0)).collect();
            self.given.iter().map(pick).collect()
        })
    }
}

/// The error for a row that comes before the one before it.
pub(super) fn not_sorted(row: usize) -> Error {
    Error::input(format!(
        "row {row} comes before row {} in global order, but sorted=True was given; sort the cells or leave it out",
        row.saturating_sub(1)
    ))
}

/// The error for two rows of one cell, which come in row order: counted in `given`, whose first has the number `first_row`.
pub(super) fn same_cell(schema: &Schema, given: &[Vec<u64>], first_row: u64, rows: &[u32]) -> Error {
    let at = |place: usize| rows.get(place).copied().unwrap_or(0);
    let key = |axis: usize| given.get(axis).and_then(|column| column.get(at(0) as usize)).copied().unwrap_or(0);
    Error::input(format!(
        "rows {} and {} are the same cell ({}); drop one, pass dedup=\"first\" or \"last\", or let the array allow \
         duplicates",
        first_row + u64::from(at(0)),
        first_row + u64::from(at(1)),
        schema.describe_cell(key)
    ))
}

/// Of the places of each cell, which stand together in row order, the first or the last.
pub(in crate::query) fn kept(cancel: &dyn Cancel, keys: &CellKeys, dedup: Dedup) -> Result<Vec<u32>> {
    let cells = keys.len();
    let same = |a: usize| a + 1 < cells && keys.compare(a, keys, a + 1) == Ordering::Equal;
    let keep = |at: usize| if dedup == Dedup::Last { !same(at) } else { at == 0 || !same(at - 1) };
    let mut kept = Vec::with_capacity(cells);
    for from in (0..cells).step_by(PORTION) {
        cancel.check()?;
        kept.extend((from..(from + PORTION).min(cells)).filter(|at| keep(*at)).map(|at| at as u32));
    }
    Ok(kept)
}
