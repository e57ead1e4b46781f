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
