//! Reading and writing the cells at chosen positions.

use super::{Array, Call, CellData, DenseData, Staged};
use crate::base::{CounterSnapshot, Error, Result};
use crate::query::{
    AxisPositions, Chosen, Dedup, Mask, Positions, ReadOrder, Request, SparsePositions, Target, read_positions,
};
use crate::schema::{Order, Region, Schema};
use crate::store::CELLS_MAX;
use crate::tile::coordinates::coordinate_columns;
use crate::tile::{Cells, Column, ColumnView};

/// More cells than this are written piece by piece.
const PIECE_CELLS: u64 = 1 << 20;

/// The choices along the axes: an array of no dimension has one that nobody chooses from.
fn of_axes(schema: &Schema, chosen: Vec<Chosen>) -> Vec<Chosen> {
    match schema.is_scalar() && chosen.is_empty() {
        true => vec![Chosen::Combined(AxisPositions::All)],
        false => chosen,
    }
}

impl Array {
    /// Reads the cells at chosen positions, one choice per dimension. Gives the cells, and what the read did.
    ///
    /// A dense array gives a column per attribute asked for, in row order of the result's shape: an axis of points, if some dimensions are paired,
    /// then one per other dimension. A sparse array gives the cells that exist, with their coordinates, each once and in row order.
    ///
    /// # Errors
    /// Bounds (a position that a dimension does not have), Input (lists of points of several lengths; points or a mask of a sparse array; unknown
    /// attributes), Corruption, Storage, Cancelled; Budget if the result does not fit into memory.
    pub fn read_positions(
        &self,
        chosen: Vec<Chosen>,
        mask: Option<Mask<'_>>,
        attrs: Option<&[String]>,
        call: &Call,
    ) -> Result<(Cells, CounterSnapshot)> {
        let (snapshot, state) = self.state()?;
        let schema = state.schema().clone();
        if schema.sparse() {
            if mask.is_some() {
                return Err(Error::input("the cells of a sparse array under a mask are read as points"));
            }
            let positions = SparsePositions::new(&schema, &chosen)?;
            let (cells, counters) = self.read_region(Some(positions.region()), attrs, None, ReadOrder::Row, call)?;
            return Ok((positions.pick(&schema, cells)?, counters));
        }
        let positions = Positions::new(&schema, of_axes(&schema, chosen), mask)?;
        let attrs = Request::new(&schema, None, attrs, ReadOrder::Row)?.attrs;
        let context = self.read_context(&snapshot, call);
        let fragments = match positions.hull(&schema) {
            Some(hull) => {
                self.note_positions(&schema, &positions, &hull);
                self.described(&snapshot, &state, Some(&hull))?
            }
            None => {
                if schema.is_without_cells() {
                    // That nothing lies there is so by the ends of the domain.
                    self.note_ends()?;
                }
                Vec::new()
            }
        };
        let target = Target { array: self.id(), schema, fragments };
        let cells = context.explain_missing(read_positions(&context, &target, &positions, &attrs))?;
        Ok((cells, context.counters.snapshot()))
    }

    /// Tells the transaction, if there is one, what is read: the cells one by one while they are few, else the box around them.
    fn note_positions(&self, schema: &Schema, positions: &Positions<'_>, hull: &crate::schema::Subarray) {
        let cells = positions.cells();
        if cells > CELLS_MAX as u128 || positions.as_box(schema).is_some() {
            return self.note(hull);
        }
        if self.in_transaction() {
            let keys = positions.keys(schema, 0..cells as u64);
            let rows = (0..cells as usize).map(|row| keys.iter().filter_map(|k| k.get(row).copied()).collect());
            let rows: Vec<Vec<u64>> = rows.collect();
            self.session().note(&mut |reads| reads.note_cells(self.id(), hull, rows.iter().cloned()));
        }
    }

    /// Writes the cells of a dense array at chosen positions; nothing is visible before the commit. A box is written as one.
    ///
    /// Columns are in row order of the selection's shape. If a cell is chosen several times the last value stays.
    ///
    /// # Errors
    /// Those of [`Array::read_positions`]; Input if a column is not as long as the selection.
    pub fn stage_positions(
        &self,
        chosen: Vec<Chosen>,
        mask: Option<Mask<'_>>,
        data: &DenseData<'_>,
        call: &Call,
    ) -> Result<Staged> {
        let schema = self.schema()?;
        let positions = Positions::new(&schema, of_axes(&schema, chosen), mask)?;
        let cells = u64::try_from(positions.cells())
            .map_err(|e| Error::budget("so many cells cannot be written at once").with_source(e))?;
        if let Some((name, view)) = data.iter().find(|(_, view)| view.len() as u64 != cells) {
            return Err(Error::input(format!(
                "{} values of attribute {name:?} were given for a selection of {cells} cells",
                view.len()
            )));
        }
        if let Some(sub) = positions.as_box(&schema) {
            return self.stage_box(Some(&Region::new(vec![sub])), data, Order::Row, call);
        }
        if cells <= PIECE_CELLS {
            let dims = coordinate_columns(&schema, &positions.keys(&schema, 0..cells))?;
            let dims = dims.iter().map(Column::view).collect();
            let attrs = data.clone();
            return self.stage_cells(CellData { dims, attrs, sorted: false, dedup: Dedup::Last }, call);
        }
        self.stage_pieces(&schema, &positions, data, cells, call)
    }

    fn stage_pieces(
        &self,
        schema: &Schema,
        positions: &Positions<'_>,
        data: &DenseData<'_>,
        cells: u64,
        call: &Call,
    ) -> Result<Staged> {
        let names: Vec<String> = data.iter().map(|(name, _)| name.clone()).collect();
        let mut writer = self.unsorted_writer(Some(&names), Dedup::Last)?;
        // A writer takes attributes in the schema's order.
        let mut views: Vec<(usize, ColumnView<'_>)> =
            data.iter().map(|(name, view)| Ok((schema.attr(name)?.0, *view))).collect::<Result<_>>()?;
        views.sort_by_key(|(place, _)| *place);
        for from in (0..cells).step_by(PIECE_CELLS as usize) {
            let to = cells.min(from + PIECE_CELLS);
            let dims = coordinate_columns(schema, &positions.keys(schema, from..to))?;
            let parts: Vec<Column> =
                views.iter().map(|(_, view)| view.copy_range(from as usize, to as usize)).collect();
            let dims: Vec<ColumnView<'_>> = dims.iter().map(Column::view).collect();
            writer.append(call, &dims, &parts.iter().map(Column::view).collect::<Vec<_>>())?;
        }
        writer.finish(call)
    }
}
