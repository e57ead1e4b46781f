//! The cells of a read as columns of coordinates and of attributes.

use super::Column;
use super::coordinates::no_coordinates;
use crate::base::Result;
use crate::schema::Schema;

/// The cells of a read: columns of the same length.
#[derive(Debug, Clone)]
pub struct Cells {
    /// How many cells.
    pub count: usize,
    /// Coordinates, a column per dimension; none for a dense box.
    pub dims: Vec<Column>,
    /// Values, a column per requested attribute.
    pub attrs: Vec<Column>,
}

impl Cells {
    /// No cells: a column per dimension, and one per attribute, given by its index in `schema`.
    pub fn none(schema: &Schema, attrs: &[usize]) -> Self {
        let attrs = attrs.iter().filter_map(|place| schema.attrs().get(*place));
        let dims = no_coordinates(schema);
        Self { count: 0, dims, attrs: attrs.map(|a| Column::empty(a.datatype(), a.nullable())).collect() }
    }

    /// Appends cells with the same columns; a Budget error if there is no memory for them.
    pub fn append(&mut self, more: Self) -> Result<()> {
        if self.count == 0 {
            *self = more;
            return Ok(());
        }
        self.count += more.count;
        for (mine, theirs) in self.dims.iter_mut().chain(&mut self.attrs).zip(more.dims.iter().chain(&more.attrs)) {
            mine.try_append(theirs.view())?;
        }
        Ok(())
    }

    /// The cells `from..to`.
    #[must_use]
    pub fn part(&self, from: usize, to: usize) -> Self {
        let (from, to) = (from.min(self.count), to.min(self.count));
        let cut = |columns: &[Column]| columns.iter().map(|column| column.view().copy_range(from, to)).collect();
        Self { count: to.saturating_sub(from), dims: cut(&self.dims), attrs: cut(&self.attrs) }
    }

    /// The bytes of memory that they take.
    pub fn size_bytes(&self) -> u64 {
        self.dims.iter().chain(&self.attrs).map(|column| column.size_bytes() as u64).sum()
    }
}
