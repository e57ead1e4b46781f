//! Columns of given values.

use crate::base::{AlignedBuf, Result};
use crate::schema::Datatype;
use crate::tile::{Column, ColumnView};

/// A column of values of a type, each as bytes.
pub(super) fn column_of(datatype: Datatype, values: &[&[u8]]) -> Result<Column> {
    let offsets = datatype.is_var().then(|| {
        let ends = values.iter().scan(0, |end, value| {
            *end += value.len() as u64;
            Some(*end)
        });
        std::iter::once(0).chain(ends).collect()
    });
    Column::new(datatype, AlignedBuf::from_slice(&values.concat()), offsets, None)
}

/// The views of columns.
pub(super) fn views(columns: &[Column]) -> Vec<ColumnView<'_>> {
    columns.iter().map(Column::view).collect()
}

/// Some rows of a column: where these lie there, or a copy of them.
#[derive(Debug)]
pub(super) enum ColumnPart<'a> {
    View(ColumnView<'a>),
    Own(Column),
}

impl<'a> ColumnPart<'a> {
    /// The rows from `from` on, up to `to`.
    pub(super) fn of(column: ColumnView<'a>, (from, to): (usize, usize)) -> Self {
        match column.part(from, to) {
            Some(view) => Self::View(view),
            None => Self::Own(column.copy_range(from, to)),
        }
    }

    pub(super) fn view(&self) -> ColumnView<'_> {
        match self {
            Self::View(view) => *view,
            Self::Own(column) => column.view(),
        }
    }
}

/// Appends a column, of which one may have nulls where the other has none.
pub(super) fn join(mine: &mut Column, more: &Column) {
    let nullable = mine.view().validity().is_some() || more.view().validity().is_some();
    if nullable && mine.view().validity().is_none() {
        let taken = std::mem::replace(mine, Column::empty(more.datatype(), true));
        *mine = taken.into_nullable();
    }
    if nullable && more.view().validity().is_none() {
        let all = more.clone().into_nullable();
        mine.append(all.view(), 0, all.len());
    } else {
        mine.append(more.view(), 0, more.len());
    }
}
