//! A column whose rows come from several values, each of which is computed for its rows alone.

use super::super::batch::Batch;
use super::super::selection::Selection;
use super::bind::BoundExpression;
use crate::base::{AlignedBuf, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView};

/// No source: such a row is null.
const NOTHING: (u32, u32) = (u32::MAX, 0);

/// The column in the making.
pub(super) struct Pick<'b> {
    batch: &'b Batch<'b>,
    datatype: Datatype,
    sources: Vec<Column>,
    /// For each row its source and the row there.
    cells: Vec<(u32, u32)>,
}

impl<'b> Pick<'b> {
    pub(super) fn new(datatype: Datatype, batch: &'b Batch<'b>) -> Self {
        Self { batch, datatype, sources: Vec::new(), cells: vec![NOTHING; batch.rows()] }
    }

    /// Takes some rows from a value; gives those of them where it is null.
    pub(super) fn take(&mut self, value: &BoundExpression, rows: &Selection) -> Result<Selection> {
        let source = self.sources.len() as u32;
        if rows.count() == 0 {
            return Ok(rows.clone());
        }
        let column = if rows.count() == self.batch.rows() {
            value.evaluate_as(self.datatype, self.batch)?
        } else {
            let places: Vec<u32> = rows.rows().map(|row| row as u32).collect();
            value.evaluate_as(self.datatype, &self.batch.gather(&places, &value.columns()).batch())?
        };
        for (place, row) in rows.rows().enumerate() {
            self.cells.get_mut(row).into_iter().for_each(|cell| *cell = (source, place as u32));
        }
        let nulls = match column.view().validity() {
            None => Selection::all_or_none(self.batch.rows(), false),
            Some(valid) => {
                let is_null = rows.rows().zip(valid).filter(|(_, flag)| **flag == 0);
                Selection::of_rows(is_null.map(|(row, _)| row), self.batch.rows())
            }
        };
        self.sources.push(column);
        Ok(nulls)
    }

    /// The rows, each null that no value gave.
    pub(super) fn into_column(self, nullable: bool) -> Result<Column> {
        let width = self.datatype.width();
        let offsets = width.is_none().then(|| vec![0, 0]);
        let validity = nullable.then(|| vec![0]);
        let blank = Column::new(self.datatype, AlignedBuf::zeroed(width.unwrap_or(0)), offsets, validity)?;
        let sources: Vec<Option<ColumnView<'_>>> = self.sources.iter().map(|source| Some(source.view())).collect();
        Ok(Column::gathered(&sources, &self.cells, blank.view()))
    }
}
