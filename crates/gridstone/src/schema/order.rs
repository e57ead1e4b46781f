//! The order of tiles in a domain or of cells in a tile: row- or column-major, or for cells along a Hilbert curve.

use crate::base::{Error, Result};
use std::fmt;

/// Which dimension varies fastest, if any.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Order {
    /// The last dimension varies fastest.
    Row,
    /// The first dimension varies fastest.
    Col,
    /// Along a Hilbert curve: an order of the cells of sparse arrays in which neighbours are close together in all
    /// dimensions. For layouts along dimensions it counts as [`Order::Row`].
    Hilbert,
}

impl Order {
    /// The order named "row" or "col".
    pub fn parse(name: &str) -> Result<Self> {
        match name {
            "row" => Ok(Self::Row),
            "col" => Ok(Self::Col),
            "hilbert" => Err(Error::schema(
                "\"hilbert\" is an order of the cells of sparse arrays; tiles and boxes are in \"row\" or \"col\" order",
            )),
            other => Err(Error::schema(format!("unknown order {other:?}; an order is \"row\" or \"col\""))),
        }
    }

    /// The order of cells named "row", "col" or "hilbert".
    pub fn parse_of_cells(name: &str) -> Result<Self> {
        if name == "hilbert" { Ok(Self::Hilbert) } else { Self::parse(name) }
    }

    /// Dimension numbers from the slowest to the fastest.
    pub fn slowest_first(self, ndim: usize) -> impl DoubleEndedIterator<Item = usize> + Clone {
        (0..ndim).map(move |i| if self == Self::Col { ndim - 1 - i } else { i })
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
        f.write_str(match self {
            Self::Row => "row",
            Self::Col => "col",
            Self::Hilbert => "hilbert",
        })
    }
}
