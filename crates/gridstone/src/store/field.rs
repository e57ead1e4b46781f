//! The parts of an array that have metadata of their own.

use std::fmt;

/// An attribute or a dimension of an array.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Field {
    /// The attribute with this permanent number.
    Attribute(u32),
    /// The dimension at this place.
    Dimension(u32),
}

impl Field {
    /// A key of its metadata, as one that differs from all keys of its array that are likely: what a transaction notes.
    pub fn noted(self, key: &str) -> String {
        format!("\0{self}\0{key}")
    }
}

impl fmt::Display for Field {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Attribute(number) => write!(f, "attribute number {number}"),
            Self::Dimension(place) => write!(f, "dimension number {place}"),
        }
    }
}
