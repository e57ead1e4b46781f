//! Cells asked for by their coordinates.

use crate::base::Result;
use crate::query::cells::keys::order_keys;
use crate::query::overlay::{LiveOverlay, SEARCHED_MAX, live_overlay};
use crate::query::request::{ReadContext, Target};
use crate::schema::{Attribute, KeyRange, Schema, Subarray};
use crate::tile::coordinates::coordinate_keys;
use crate::tile::{CellKeys, ColumnView, KeyLayout};
use std::cmp::Ordering;

/// Cells asked for by their coordinates, sorted into global order.
#[derive(Debug)]
pub struct Points {
    /// The place of each in the list as it was given.
    pub(super) rows: Vec<u32>,
    /// Coordinates as ordered keys, a column per dimension.
    pub(super) coords: Vec<Vec<u64>>,
    pub(super) keys: CellKeys,
}

impl Points {
    /// The points of these coordinates, a column per dimension.
    ///
    /// # Errors
    /// Bounds (a point outside the domain), Input (types, lengths, NaN, null), Cancelled; all name the row.
    pub fn new(context: &ReadContext, schema: &Schema, dims: &[ColumnView<'_>]) -> Result<Self> {
        Self::of_keys(context, schema, coordinate_keys(context.cancel.as_ref(), schema, dims)?)
    }

    /// The points of these ordered keys, which lie in the domain, a column per dimension.
    pub(in crate::query) fn of_keys(context: &ReadContext, schema: &Schema, given: Vec<Vec<u64>>) -> Result<Self> {
        let cancel = context.cancel.as_ref();
        let keys = order_keys(context.pool.as_ref(), cancel, schema, &given)?;
        if keys.first_step(Ordering::Less, cancel)?.is_none() {
            return Ok(Self { rows: (0..keys.len() as u32).collect(), coords: given, keys });
        }
        let (keys, rows) = keys.sort(context.pool.as_ref(), cancel)?;
        let pick = |column: &Vec<u64>| rows.iter().filter_map(|r| column.get(*r as usize).copied()).collect();
        Ok(Self { coords: given.iter().map(pick).collect(), keys, rows })
    }

    /// How many there are.
    pub fn len(&self) -> usize {
        self.rows.len()
    }

    /// Whether there is none.
    pub fn is_empty(&self) -> bool {
        self.rows.is_empty()
    }

    /// The least box that holds all of them, `None` if there is none.
    pub fn bounds(&self) -> Option<Subarray> {
        let range = |column: &Vec<u64>| Some(KeyRange::new(*column.iter().min()?, *column.iter().max()?));
        self.coords.iter().map(range).collect::<Option<Vec<_>>>().map(Subarray::new)
    }

    /// Their coordinates as ordered keys, in global order.
    pub fn cells(&self) -> impl ExactSizeIterator<Item = Vec<u64>> {
        (0..self.len()).map(|point| self.cell(point).collect())
    }

    /// The overlay over the small fragments that may have one of them.
    pub(super) fn overlay(
        &self,
        context: &ReadContext,
        target: &Target,
        attrs: &[&Attribute],
    ) -> Result<Option<LiveOverlay>> {
        let Some(bounds) = self.bounds() else { return Ok(None) };
        let ids: Vec<u32> = attrs.iter().map(|attr| attr.id()).collect();
        // What is looked for one by one touches less than the box around all.
        let alone = self.len() <= SEARCHED_MAX && KeyLayout::new(&target.schema).has_words();
        let boxes = if alone { (0..self.len()).map(|point| self.cell_box(point)).collect() } else { vec![bounds] };
        live_overlay(context, target, &boxes, &ids)
    }

    /// The box of point `point` alone.
    pub(super) fn cell_box(&self, point: usize) -> Subarray {
        Subarray::new(self.cell(point).map(|key| KeyRange::new(key, key)).collect())
    }

    /// The coordinates of point `point`.
    pub(super) fn cell(&self, point: usize) -> impl Iterator<Item = u64> + Clone {
        self.coords.iter().filter_map(move |column| column.get(point).copied())
    }

    /// The coordinates of the point that was given in this row, if points were given in global order.
    pub(in crate::query) fn cell_of_row(&self, row: usize) -> impl Iterator<Item = u64> + Clone {
        self.cell(row)
    }

    /// The place of point `point` in the list as it was given.
    pub(super) fn row(&self, point: usize) -> u32 {
        self.rows.get(point).copied().unwrap_or(0)
    }
}
