//! `case` and `coalesce`: each value is computed of the cells alone that take it.

use super::super::batch::Batch;
use super::super::bind::{Bound, Needed};
use super::bind::BoundExpression;
use crate::base::Result;
use crate::schema::Datatype;
use crate::tile::Column;

/// A bound condition and its value in `case`.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundWhen {
    pub(super) when: Bound,
    /// `None`: null.
    pub(super) then: Option<BoundExpression>,
}

/// The values of the rows of a batch, as they are found.
struct Chosen {
    /// The rows without a value yet.
    open: Vec<u32>,
    columns: Vec<Column>,
    /// For each row a column and a row of it; a missing column is null.
    cells: Vec<(u32, u32)>,
}

impl Chosen {
    fn new(rows: usize) -> Self {
        let missing = (u32::MAX, 0);
        Self { open: (0..rows as u32).collect(), columns: Vec::new(), cells: vec![missing; rows] }
    }

    /// Gives rows the values of a column, one for each.
    fn give(&mut self, rows: &[u32], column: Column) {
        let source = self.columns.len() as u32;
        for (at, row) in rows.iter().enumerate() {
            if let Some(cell) = self.cells.get_mut(*row as usize) {
                *cell = (source, at as u32);
            }
        }
        self.columns.push(column);
    }

    fn into_column(self, datatype: Datatype) -> Result<Column> {
        let views: Vec<_> = self.columns.iter().map(|column| Some(column.view())).collect();
        let blank = blank(datatype)?;
        let made = Column::gathered(&views, &self.cells, blank.view());
        let (values, offsets, validity) = made.into_parts();
        Column::new(datatype, values, offsets, validity.filter(|valid| valid.contains(&0)))
    }
}

/// A null.
fn blank(datatype: Datatype) -> Result<Column> {
    let bytes = vec![0; datatype.width().unwrap_or(0)];
    let offsets = datatype.is_var().then(|| vec![0, 0]);
    Column::new(datatype, crate::base::AlignedBuf::from_slice(&bytes), offsets, Some(vec![0]))
}

/// The rows of `batch` among `rows`, with what `needed` names.
fn on_rows<T>(
    batch: &Batch<'_>,
    needed: &Needed,
    rows: &[u32],
    then: impl FnOnce(&Batch<'_>) -> Result<T>,
) -> Result<T> {
    if rows.len() == batch.rows() { then(batch) } else { then(&batch.picked(needed, rows).batch()) }
}

/// The value beside the first condition that is true.
pub(super) fn case(
    (whens, otherwise): (&[BoundWhen], Option<&BoundExpression>),
    datatype: Datatype,
    batch: &Batch<'_>,
) -> Result<Column> {
    let mut chosen = Chosen::new(batch.rows());
    for BoundWhen { when, then } in whens {
        let open = std::mem::take(&mut chosen.open);
        let found = on_rows(batch, &when.columns(), &open, |part| when.evaluate(part))?;
        let mut taken = Vec::with_capacity(found.count());
        for (at, row) in open.into_iter().enumerate() {
            if found.contains(at) { taken.push(row) } else { chosen.open.push(row) }
        }
        if let (Some(value), false) = (then, taken.is_empty()) {
            let column = on_rows(batch, &value.columns(), &taken, |part| value.evaluate_as(datatype, part))?;
            chosen.give(&taken, column);
        }
    }
    let rest = std::mem::take(&mut chosen.open);
    if let (Some(value), false) = (otherwise, rest.is_empty()) {
        let column = on_rows(batch, &value.columns(), &rest, |part| value.evaluate_as(datatype, part))?;
        chosen.give(&rest, column);
    }
    chosen.into_column(datatype)
}

/// The first value that is not null.
pub(super) fn coalesce(args: &[BoundExpression], datatype: Datatype, batch: &Batch<'_>) -> Result<Column> {
    let mut chosen = Chosen::new(batch.rows());
    for value in args {
        if chosen.open.is_empty() {
            break;
        }
        let open = std::mem::take(&mut chosen.open);
        let column = on_rows(batch, &value.columns(), &open, |part| value.evaluate_as(datatype, part))?;
        let valid = |at: &usize| column.view().is_valid(*at);
        chosen.open = (0..open.len()).filter(|at| !valid(at)).filter_map(|at| open.get(at).copied()).collect();
        // Rows that are null here are given again by a later value, if it has one.
        chosen.give(&open, column);
    }
    chosen.into_column(datatype)
}
