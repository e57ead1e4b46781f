//! Row- and column-major order, of tiles in a domain or of cells in a tile.

use crate::base::{Error, Result};
use std::fmt;

/// Which dimension varies fastest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last dimension varies fastest.
    Row,
    /// The first dimension varies fastest.
    Col,
}

impl Order {
    /// The order named "row" or "col".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "row" => Ok(Self::Row),
            "col" => Ok(Self::Col),
            "hilbert" => Err(Error::unsupported("the Hilbert cell order is not supported yet; use \"row\" or \"col\"")),
            other => Err(Error::schema(format!("unknown order {other:?}; an order is \"row\" or \"col\""))),
        }
    }

    /// Dimension numbers from the slowest to the fastest.
    pub fn slowest_first(self, ndim: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..ndim).map(move |i| if self == Self::Row { i } else { ndim - 1 - i })
    }

    /// Strides, in cells, of a box of `shape` laid out in this order.
    pub fn strides(self, shape: &[u64]) -> Vec<u64> {
        let mut strides = vec![0; shape.len()];
        let mut step = 1u64;
        for d in self.slowest_first(shape.len()).rev() {
            if let (Some(stride), Some(n)) = (strides.get_mut(d), shape.get(d)) {
                *stride = step;
                step = step.saturating_mul(*n);
            }
        }
        strides
    }
}

impl fmt::Display for Order {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if *self == Self::Row { "row" } else { "col" })
    }
}
