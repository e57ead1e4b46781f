//! Columns of int64, and their values.

use gridstone::base::AlignedBuf;
use gridstone::schema::Datatype;
use gridstone::tile::{Column, ColumnView};

pub(crate) fn numbers(column: &Column) -> Vec<i64> {
    column.view().values().as_chunks::<8>().0.iter().map(|w| i64::from_le_bytes(*w)).collect()
}

pub(crate) fn bytes_of(values: impl IntoIterator<Item = i64>) -> Vec<u8> {
    values.into_iter().flat_map(i64::to_le_bytes).collect()
}

pub(crate) fn view(bytes: &[u8]) -> ColumnView<'_> {
    ColumnView::new(Datatype::Int64, bytes, None, None).unwrap()
}

/// The range of a dimension as the engine takes it.
pub(crate) fn as_text((lo, hi): (i64, i64)) -> (String, String) {
    (lo.to_string(), hi.to_string())
}

pub(crate) fn longs(values: impl IntoIterator<Item = i64>) -> Column {
    let bytes: Vec<u8> = values.into_iter().flat_map(i64::to_le_bytes).collect();
    Column::new(Datatype::Int64, AlignedBuf::from_slice(&bytes), None, None).unwrap()
}
