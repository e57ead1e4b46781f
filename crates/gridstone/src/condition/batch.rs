//! The columns that a condition is evaluated on.

use super::bind::{Field, Needed, Place};
use crate::base::{Error, Result};
use crate::schema::text::word;
use crate::schema::{Datatype, Order, Schema, Subarray, key};
use crate::tile::coordinates::text_column;
use crate::tile::{Cells, Column, ColumnView};
use std::borrow::Cow;

/// The coordinates of a batch's rows in one dimension.
#[derive(Debug, Clone, Copy)]
pub enum Coordinates<'a> {
    /// Values; for a text dimension whole texts, at the index of its first axis.
    Column(ColumnView<'a>),
    /// Ordered keys.
    Keys(&'a [u64]),
    /// Those of a dense box: from key `first`, each `repeat` times, `count` different ones, then again from the first.
    Regular {
        /// The first row's key.
        first: u64,
        /// How many consecutive rows have the same key.
        repeat: u64,
        /// How many different keys.
        count: u64,
    },
}

/// The texts of a batch's rows in a text dimension.
pub(super) enum Texts<'a> {
    /// The texts as given.
    Given(ColumnView<'a>),
    /// Texts built from words.
    Made(Column),
}

impl Texts<'_> {
    pub(super) fn view(&self) -> ColumnView<'_> {
        match self {
            Self::Given(view) => *view,
            Self::Made(column) => column.view(),
        }
    }
}

/// Columns of `rows` cells. [`super::Bound::columns`] lists those that a condition needs.
#[derive(Debug, Clone)]
pub struct Batch<'a> {
    rows: usize,
    dims: Vec<(usize, Coordinates<'a>)>,
    attrs: Vec<(usize, ColumnView<'a>)>,
}

impl<'a> Batch<'a> {
    /// A batch of `rows` cells without columns.
    pub fn new(rows: usize) -> Self {
        Self { rows, dims: Vec::new(), attrs: Vec::new() }
    }

    /// The batch of cells from a read; `attrs`: the indexes in `schema` of its attributes.
    pub fn of_cells(schema: &Schema, cells: &'a Cells, attrs: &[usize]) -> Self {
        let columns = schema.coordinates().zip(&cells.dims);
        let dims = columns.map(|(dim, column)| (dim.axes().start, Coordinates::Column(column.view()))).collect();
        let attrs = attrs.iter().zip(&cells.attrs).map(|(place, c)| (*place, c.view())).collect();
        Self { rows: cells.count, dims, attrs }
    }

    /// The batch with the coordinates of the axis with index `place` in the schema.
    #[must_use]
    pub fn with_dim(mut self, place: usize, coordinates: Coordinates<'a>) -> Self {
        self.dims.push((place, coordinates));
        self
    }

    /// The batch with the values of the attribute with index `place` in the schema.
    #[must_use]
    pub fn with_attr(mut self, place: usize, values: ColumnView<'a>) -> Self {
        self.attrs.push((place, values));
        self
    }

    /// The batch with all coordinates of a dense box, whose cells are in `order`; only columns that a condition needs
    /// are materialised.
    #[must_use]
    pub fn with_box(mut self, sub: &Subarray, order: Order) -> Self {
        let shape = sub.shape();
        let mut repeat = 1u64;
        for d in order.slowest_first(shape.len()).rev() {
            let (Some(range), Some(count)) = (sub.ranges().get(d), shape.get(d)) else { continue };
            self.dims.push((d, Coordinates::Regular { first: range.lo, repeat, count: *count }));
            repeat = repeat.saturating_mul(*count);
        }
        self
    }

    /// Some of its rows, in this order: the columns in `needed` alone.
    pub(super) fn gather(&self, rows: &[u32], needed: &Needed) -> Gathered {
        let of_keys = |keys: &[u64]| rows.iter().filter_map(|row| keys.get(*row as usize)).copied().collect();
        let picked = |coordinates: &Coordinates<'_>| match coordinates {
            Coordinates::Column(view) => Picked::Column(view.gather(rows)),
            Coordinates::Keys(keys) => Picked::Keys(of_keys(keys)),
            Coordinates::Regular { first, repeat, count } => {
                let key = |row: &u32| first.saturating_add(u64::from(*row) / (*repeat).max(1) % (*count).max(1));
                Picked::Keys(rows.iter().map(key).collect())
            }
        };
        let dims = self.dims.iter().filter(|(place, _)| needed.dims.contains(place));
        let attrs = self.attrs.iter().filter(|(place, _)| needed.attrs.contains(place));
        Gathered {
            rows: rows.len(),
            dims: dims.map(|(place, coordinates)| (*place, picked(coordinates))).collect(),
            attrs: attrs.map(|(place, view)| (*place, view.gather(rows))).collect(),
        }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.rows
    }

    /// The values of `field`, if they are present as values; an Input error if they do not fit.
    pub(super) fn column(&self, field: Field) -> Result<Option<ColumnView<'a>>> {
        let view = match field.place {
            Place::Attr(place) => self.attrs.iter().find(|(p, _)| *p == place).map(|(_, v)| *v),
            Place::Dim(place) | Place::Text { axis: place, .. } => match self.coordinates(place) {
                Some(Coordinates::Column(view)) => Some(view),
                _ => None,
            },
        };
        match view {
            Some(view) if view.len() != self.rows || view.datatype() != field.datatype => Err(Error::input(format!(
                "a condition needs {} values of {}, the batch has {} of {}",
                self.rows,
                field.datatype,
                view.len(),
                view.datatype()
            ))),
            found => Ok(found),
        }
    }

    fn coordinates(&self, place: usize) -> Option<Coordinates<'a>> {
        self.dims.iter().find(|(p, _)| *p == place).map(|(_, c)| *c)
    }

    /// The texts of a text dimension.
    pub(super) fn texts(&self, field: Field) -> Result<Texts<'a>> {
        if let Some(view) = self.column(field)? {
            return Ok(Texts::Given(view));
        }
        let Place::Text { axis, words } = field.place else {
            return Err(Error::input("a column of numbers is no text dimension"));
        };
        let words =
            (axis..axis + words).map(|axis| Ok(self.axis_keys(axis)?.into_owned())).collect::<Result<Vec<_>>>()?;
        text_column(&words).map(Texts::Made)
    }

    /// The ordered keys along an axis.
    pub(super) fn axis_keys(&self, axis: usize) -> Result<Cow<'a, [u64]>> {
        let lacks = || Error::input(format!("the batch lacks the {} coordinates of axis {axis}", self.rows));
        // A column of texts has the index of its first axis.
        let (first, found) = self.dims.iter().filter(|(p, _)| *p <= axis).max_by_key(|(p, _)| *p).ok_or_else(lacks)?;
        match found {
            Coordinates::Column(view) if view.datatype() == Datatype::String && view.len() == self.rows => {
                Ok(Cow::Owned((0..view.len()).map(|row| word(view.value(row), axis - first)).collect()))
            }
            _ if *first != axis => Err(lacks()),
            Coordinates::Column(view) => key::encode(view.datatype(), view.values()).map(Cow::Owned),
            Coordinates::Keys(keys) if keys.len() == self.rows => Ok(Cow::Borrowed(keys)),
            Coordinates::Regular { first, repeat, count } => {
                Ok(Cow::Owned(regular(*first, *repeat, *count, self.rows)))
            }
            Coordinates::Keys(_) => Err(lacks()),
        }
    }

    /// The ordered keys of a dimension that is not present as values.
    pub(super) fn keys(&self, field: Field) -> Result<Cow<'a, [u64]>> {
        let found = match field.place {
            Place::Dim(place) => self.coordinates(place),
            Place::Attr(_) | Place::Text { .. } => None,
        };
        match found {
            Some(Coordinates::Keys(keys)) if keys.len() == self.rows => Ok(Cow::Borrowed(keys)),
            Some(Coordinates::Regular { first, repeat, count }) => {
                Ok(Cow::Owned(regular(first, repeat, count, self.rows)))
            }
            Some(Coordinates::Column(view)) => key::encode(field.datatype, view.values()).map(Cow::Owned),
            _ => Err(Error::input(format!("the batch lacks a column of {} cells", self.rows))),
        }
    }
}

/// Coordinates of some rows.
enum Picked {
    Column(Column),
    Keys(Vec<u64>),
}

impl Picked {
    fn coordinates(&self) -> Coordinates<'_> {
        match self {
            Self::Column(column) => Coordinates::Column(column.view()),
            Self::Keys(keys) => Coordinates::Keys(keys),
        }
    }
}

/// Some rows of a batch.
pub(super) struct Gathered {
    rows: usize,
    dims: Vec<(usize, Picked)>,
    attrs: Vec<(usize, Column)>,
}

impl Gathered {
    /// The batch of these rows.
    pub(super) fn batch(&self) -> Batch<'_> {
        Batch {
            rows: self.rows,
            dims: self.dims.iter().map(|(place, picked)| (*place, picked.coordinates())).collect(),
            attrs: self.attrs.iter().map(|(place, column)| (*place, column.view())).collect(),
        }
    }
}

/// The keys of a regular dimension, run by run.
fn regular(first: u64, repeat: u64, count: u64, rows: usize) -> Vec<u64> {
    let repeat = usize::try_from(repeat.max(1)).unwrap_or(usize::MAX);
    let mut keys = Vec::with_capacity(rows);
    let mut next = 0;
    while keys.len() < rows {
        keys.extend(std::iter::repeat_n(first.saturating_add(next), repeat.min(rows - keys.len())));
        next = if next + 1 >= count { 0 } else { next + 1 };
    }
    keys
}
