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

/// Appends a column, of which one may have nulls where the other has none.
pub(super) fn join(mine: &mut Column, more: &Column) {
    let nullable = mine.view().validity().is_some() || more.view().validity().is_some();
    if nullable && mine.view().validity().is_none() {
        let taken = std::mem::replace(mine, Column::empty(more.datatype(), true));
        *mine = taken.into_nullable();
    }
    let all = if nullable && more.view().validity().is_none() { more.clone().into_nullable() } else { more.clone() };
    mine.append(all.view(), 0, all.len());
}
