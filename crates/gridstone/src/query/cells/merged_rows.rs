//! What a merge gives: stretches of rows of loaded chunks, in global order, and the columns they make.

use super::chunk::Chunk;
use crate::base::Result;
use crate::query::request::Request;
use crate::schema::{Attribute, Schema};
use crate::tile::coordinates::coordinate_columns;
use crate::tile::{Cells, Column, ColumnView, Weights};
use std::collections::VecDeque;
use std::sync::Arc;

/// Rows `from..to` of a chunk.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::query) struct Run {
    /// The chunk's number.
    pub(in crate::query) chunk: u32,
    pub(in crate::query) from: u32,
    pub(in crate::query) to: u32,
}

impl Run {
    fn cells(self) -> usize {
        self.to.saturating_sub(self.from) as usize
    }

    fn rows(self) -> std::ops::Range<usize> {
        self.from as usize..self.to as usize
    }
}

/// Live cells in ascending global order.
#[derive(Debug, Clone, Default)]
pub(in crate::query) struct Stretches {
    chunks: Arc<Vec<Arc<Chunk>>>,
    runs: VecDeque<Run>,
    cells: usize,
}

/// Stretches of fewer cells on average are copied cell by cell.
const STRETCH_CELLS: usize = 8;

impl Stretches {
    /// `runs` of `chunks`, which are numbered by their places.
    pub(in crate::query) fn new(chunks: Vec<Arc<Chunk>>, runs: Vec<Run>) -> Self {
        let cells = runs.iter().map(|run| run.cells()).sum();
        Self { chunks: Arc::new(chunks), runs: runs.into(), cells }
    }

    /// How many cells there are.
    pub(in crate::query) fn cells(&self) -> usize {
        self.cells
    }

    pub(in crate::query) fn is_empty(&self) -> bool {
        self.cells == 0
    }

    /// The first `cells` cells, or all if there are fewer; the rest stays.
    #[must_use]
    pub(in crate::query) fn split_front(&mut self, cells: usize) -> Self {
        if cells >= self.cells {
            return std::mem::take(self);
        }
        let (mut room, mut runs) = (cells, VecDeque::new());
        let taken = room;
        while room > 0
            && let Some(run) = self.runs.front_mut()
        {
            let part = Run { to: run.from + run.cells().min(room) as u32, ..*run };
            room -= part.cells();
            run.from = part.to;
            if run.cells() == 0 {
                self.runs.pop_front();
            }
            runs.push_back(part);
        }
        self.cells -= taken;
        Self { chunks: self.chunks.clone(), runs, cells: taken }
    }

    /// Puts the first `cells` cells of `from`, or all if there are fewer, behind these. Of its chunks only those that these cells are from are
    /// kept.
    pub(in crate::query) fn take_from(&mut self, from: &mut Self, cells: usize) {
        let taken = from.split_front(cells);
        let chunks = Arc::make_mut(&mut self.chunks);
        // Where the chunks of `from` stand here.
        let mut places: Vec<Option<u32>> = vec![None; taken.chunks.len()];
        for run in taken.runs {
            let number = run.chunk as usize;
            let (Some(place), Some(chunk)) = (places.get_mut(number), taken.chunks.get(number)) else { continue };
            let chunk = *place.get_or_insert_with(|| {
                chunks.push(Arc::clone(chunk));
                chunks.len() as u32 - 1
            });
            self.runs.push_back(Run { chunk, ..run });
        }
        self.cells += taken.cells;
    }

    /// The coordinates of the first cell, as keys.
    pub(in crate::query) fn first_place(&self) -> Option<Vec<u64>> {
        let run = self.runs.front()?;
        self.place(run.chunk, run.from)
    }

    /// The coordinates of the last cell, as keys.
    pub(in crate::query) fn last_place(&self) -> Option<Vec<u64>> {
        let run = self.runs.back()?;
        self.place(run.chunk, run.to.checked_sub(1)?)
    }

    fn place(&self, chunk: u32, row: u32) -> Option<Vec<u64>> {
        let chunk = self.chunks.get(chunk as usize)?;
        chunk.coords.iter().map(|keys| keys.get(row as usize).copied()).collect()
    }

    /// All whole chunks, one after the other.
    pub(in crate::query) fn whole(chunks: Vec<Arc<Chunk>>) -> Self {
        let runs =
            chunks.iter().zip(0u32..).map(|(chunk, number)| Run { chunk: number, from: 0, to: chunk.len() as u32 });
        let runs = runs.collect();
        Self::new(chunks, runs)
    }

    /// The chunks, by their numbers.
    pub(in crate::query) fn chunks(&self) -> &[Arc<Chunk>] {
        &self.chunks
    }

    /// The stretches, in their order.
    pub(in crate::query) fn runs(&self) -> impl Iterator<Item = &Run> {
        self.runs.iter()
    }

    /// Bytes of variable length in all the chunks, which are at least those of the cells.
    pub(in crate::query) fn var_bytes(&self) -> u64 {
        self.chunks.iter().map(|chunk| Weights::of(views(chunk)).span(0, chunk.len())).sum()
    }

    /// Bytes of variable length of each cell.
    pub(in crate::query) fn weights(&self) -> impl Iterator<Item = u64> {
        let chunks: Vec<Weights<'_>> = self.chunks.iter().map(|chunk| Weights::of(views(chunk))).collect();
        let cells = self.runs.iter().flat_map(|run| run.rows().map(|row| (run.chunk as usize, row)));
        cells.map(move |(chunk, row)| chunks.get(chunk).map_or(0, |weights| weights.at(row)))
    }

    /// The cells, whose columns are those of the attributes asked for.
    pub(in crate::query) fn to_cells(&self, schema: &Schema, request: &Request) -> Result<Cells> {
        let coordinates = self.coordinate_keys(schema.ndim());
        let dims = coordinate_columns(schema, &coordinates)?;
        Ok(Cells { count: self.cells, dims, attrs: self.attribute_columns(schema, request)? })
    }

    /// The coordinates, as keys, a column per dimension.
    pub(in crate::query) fn coordinate_keys(&self, ndim: usize) -> Vec<Vec<u64>> {
        (0..ndim).map(|dim| self.coordinates(dim)).collect()
    }

    fn coordinates(&self, dim: usize) -> Vec<u64> {
        let columns: Vec<&[u64]> =
            self.chunks.iter().map(|chunk| chunk.coords.get(dim).map_or(&[][..], Vec::as_slice)).collect();
        let mut keys: Vec<u64> = Vec::with_capacity(self.cells);
        for run in &self.runs {
            let rows = columns.get(run.chunk as usize).and_then(|column| column.get(run.rows())).unwrap_or_default();
            match rows {
                // Most often where fragments lie over each other.
                [key] => keys.push(*key),
                rows => keys.extend_from_slice(rows),
            }
        }
        keys
    }

    /// The values, a column per attribute asked for.
    pub(in crate::query) fn attribute_columns(&self, schema: &Schema, request: &Request) -> Result<Vec<Column>> {
        let attrs = request.attrs.iter().filter_map(|p| schema.attrs().get(*p)).enumerate();
        if self.cells < self.runs.len().saturating_mul(STRETCH_CELLS) {
            let mut cells: Vec<(u32, u32)> = Vec::with_capacity(self.cells);
            self.runs.iter().for_each(|run| cells.extend((run.from..run.to).map(|row| (run.chunk, row))));
            return Ok(attrs.map(|(place, attr)| self.gathered(place, attr, &cells)).collect());
        }
        attrs.map(|(place, attr)| self.appended(place, attr)).collect()
    }

    fn gathered(&self, place: usize, attr: &Attribute, cells: &[(u32, u32)]) -> Column {
        let views: Vec<_> = self.chunks.iter().map(|chunk| chunk.columns.get(place).map(Column::view)).collect();
        Column::gathered(&views, cells, Column::blank(attr).view())
    }

    fn appended(&self, place: usize, attr: &Attribute) -> Result<Column> {
        let mut column = Column::empty(attr.datatype(), attr.nullable());
        column.try_reserve(self.cells)?;
        for run in &self.runs {
            if let Some(values) = self.chunks.get(run.chunk as usize).and_then(|chunk| chunk.columns.get(place)) {
                column.append(values.view(), run.from as usize, run.to as usize);
            }
        }
        Ok(column)
    }
}

fn views(chunk: &Chunk) -> impl Iterator<Item = ColumnView<'_>> {
    chunk.columns.iter().map(Column::view)
}
