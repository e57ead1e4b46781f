//! A box of cells in a buffer.

use crate::schema::Order;

/// Where the cells of a box lie in a buffer: the place of its first cell and a stride per dimension, in cells.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Strided {
    /// The place of the cell at the low corner.
    pub start: u64,
    /// Cells from one cell to the next along each dimension.
    pub strides: Vec<u64>,
}

impl Strided {
    /// A box of `shape` alone in a buffer.
    pub fn packed(shape: &[u64], order: Order) -> Self {
        Self { start: 0, strides: order.strides(shape) }
    }

    /// The part of this box that starts at `offset` cells per dimension.
    #[must_use]
    pub fn at(&self, offset: &[u64]) -> Self {
        let shift: u64 = offset.iter().zip(&self.strides).map(|(o, s)| o * s).sum();
        Self { start: self.start + shift, strides: self.strides.clone() }
    }

    /// The place of the cell at `offset`.
    pub fn place(&self, offset: impl IntoIterator<Item = u64>) -> u64 {
        self.start + offset.into_iter().zip(&self.strides).map(|(o, s)| o * s).sum::<u64>()
    }
}
