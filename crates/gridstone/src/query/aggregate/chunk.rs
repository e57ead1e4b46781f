//! What is asked of chunks of cells, and the values that they give.

use super::columns::ColumnPart;
use super::dense::keys_along;
use super::plan::Plan;
use super::stage::{ChunkValues, Stages};
use super::state::input::{Positions, Rows};
use crate::base::Result;
use crate::condition::{Batch, Bound, BoundExpression, Coordinates, Place};
use crate::schema::{Schema, Subarray};
use crate::tile::coordinates::{axis_keys, coordinate_column};
use crate::tile::{Cells, Column};
use std::sync::Arc;

/// What is asked of chunks of cells.
#[derive(Debug)]
pub(super) struct Asked {
    pub(super) schema: Arc<Schema>,
    pub(super) plan: Plan,
    /// The attributes that cells have, by place.
    pub(super) attrs: Vec<usize>,
}

/// Which rows of a chunk count.
#[derive(Debug)]
pub(super) enum Selected<'a> {
    /// All.
    All,
    /// Those that a condition selects.
    By(&'a Bound),
    /// These, ascending.
    Rows(Vec<u32>),
}

impl Asked {
    /// Takes the cells of a chunk in, each into the group of its keys.
    pub(super) fn take_chunk(&self, stages: &mut Stages, chunk: &Chunk<'_>) -> Result<()> {
        let batch = chunk.batch(&self.schema, &self.attrs);
        let sources = self.values(chunk, &batch)?;
        let axes = if self.plan.asks_places { chunk.axis_keys(&self.schema)? } else { Vec::new() };
        stages.take(&ChunkValues {
            rows: chunk.rows,
            sources: sources.iter().map(ColumnPart::view).collect(),
            positions: Positions { axes: &axes, first: chunk.first },
        })
    }

    /// Takes those cells of a chunk in that count, into groups that are known.
    pub(super) fn take_grouped(
        &self,
        stages: &mut Stages,
        chunk: &Chunk<'_>,
        groups: Rows<'_>,
        selected: Selected<'_>,
    ) -> Result<()> {
        let batch = chunk.batch(&self.schema, &self.attrs);
        let rows: Option<Vec<u32>> = match selected {
            Selected::All => None,
            Selected::By(bound) => Some(bound.evaluate(&batch)?.rows().map(|row| row as u32).collect()),
            Selected::Rows(rows) => Some(rows),
        };
        let mut sources = self.values(chunk, &batch)?;
        let mut axes = if self.plan.asks_places { chunk.axis_keys(&self.schema)? } else { Vec::new() };
        let mut picked = Vec::new();
        let mut groups = groups;
        if let Some(rows) = rows.as_ref().filter(|rows| rows.len() < chunk.rows) {
            sources.iter_mut().for_each(|source| *source = ColumnPart::Own(source.view().gather(rows)));
            let pick = |keys: &Vec<u64>| rows.iter().filter_map(|row| keys.get(*row as usize)).copied().collect();
            axes.iter_mut().for_each(|keys| *keys = pick(keys));
            groups = match groups {
                Rows::One(group, _) => Rows::One(group, rows.len()),
                Rows::Each(all) => {
                    picked.extend(rows.iter().filter_map(|row| all.get(*row as usize)));
                    Rows::Each(&picked)
                }
                Rows::Lines(lines) => {
                    picked.extend(rows.iter().map(|row| lines.group(*row as usize)));
                    Rows::Each(&picked)
                }
            };
        }
        stages.update(
            groups,
            &ChunkValues {
                rows: rows.map_or(chunk.rows, |rows| rows.len()),
                sources: sources.iter().map(ColumnPart::view).collect(),
                positions: Positions { axes: &axes, first: chunk.first },
            },
        )
    }

    fn values<'c>(&self, chunk: &'c Chunk<'_>, batch: &Batch<'_>) -> Result<Vec<ColumnPart<'c>>> {
        self.plan.sources.iter().map(|source| self.value(source, chunk, batch)).collect()
    }

    fn value<'c>(&self, source: &BoundExpression, chunk: &'c Chunk<'_>, batch: &Batch<'_>) -> Result<ColumnPart<'c>> {
        let column = match (source.plain(), &chunk.places) {
            (Some(Place::Attr(place)), _) => {
                self.attrs.iter().position(|attr| *attr == place).and_then(|at| chunk.attrs.get(at))
            }
            (Some(Place::Dim(axis)), Places::Box(region)) => {
                let keys = keys_along(&self.schema, region, axis);
                return coordinate_column(source.datatype(), &keys).map(ColumnPart::Own);
            }
            (Some(Place::Dim(axis) | Place::Text { axis, .. }), Places::Columns(dims)) => {
                self.schema.coordinates().position(|dim| dim.axes().start == axis).and_then(|at| dims.get(at))
            }
            (Some(Place::Text { .. }) | None, _) => None,
        };
        match column {
            Some(column) => Ok(ColumnPart::View(column.view())),
            None => source.evaluate(batch).map(ColumnPart::Own),
        }
    }
}

/// Where the cells of a chunk lie.
#[derive(Debug)]
enum Places<'a> {
    /// At these coordinates, a column per dimension.
    Columns(Vec<ColumnPart<'a>>),
    /// Everywhere in a box, in cell order.
    Box(Subarray),
}

/// Some of the cells of a batch.
#[derive(Debug)]
pub(super) struct Chunk<'a> {
    pub(super) rows: usize,
    /// The number of its first cell.
    first: u64,
    places: Places<'a>,
    attrs: Vec<ColumnPart<'a>>,
}

impl<'a> Chunk<'a> {
    pub(super) fn of(cells: &'a Cells, (from, to): (usize, usize), first: u64) -> Self {
        let part = |column: &'a Column| ColumnPart::of(column.view(), (from, to));
        let (dims, attrs) = (cells.dims.iter().map(part).collect(), cells.attrs.iter().map(part).collect());
        Self { rows: to - from, first, places: Places::Columns(dims), attrs }
    }

    /// The cells of a dense box, a column per attribute.
    pub(super) fn of_box(region: &Subarray, attrs: Vec<Column>, first: u64) -> Self {
        let attrs = attrs.into_iter().map(ColumnPart::Own).collect();
        Self { rows: region.cells() as usize, first, places: Places::Box(region.clone()), attrs }
    }

    fn batch<'c>(&'c self, schema: &Schema, attrs: &[usize]) -> Batch<'c> {
        let mut batch = Batch::new(self.rows);
        match &self.places {
            Places::Box(region) => batch = batch.with_box(region, schema.options().cell_order),
            Places::Columns(dims) => {
                for (dim, column) in schema.coordinates().zip(dims) {
                    batch = batch.with_dim(dim.axes().start, Coordinates::Column(column.view()));
                }
            }
        }
        for (place, column) in attrs.iter().zip(&self.attrs) {
            batch = batch.with_attr(*place, column.view());
        }
        batch
    }

    fn axis_keys(&self, schema: &Schema) -> Result<Vec<Vec<u64>>> {
        let dims = match &self.places {
            Places::Box(region) => {
                return Ok((0..schema.ndim()).map(|axis| keys_along(schema, region, axis)).collect());
            }
            Places::Columns(dims) => dims,
        };
        let dims: Vec<Column> = dims.iter().map(|dim| dim.view().copy_range(0, self.rows)).collect();
        axis_keys(schema, &dims)
    }
}
