//! The properties of values that a filter may use: width, sign, float.

use std::fmt;

/// How the bits of an element are interpreted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ElementKind {
    /// Unsigned integers, booleans and raw bytes.
    Unsigned,
    /// Two's complement integers, dates and durations included.
    Signed,
    /// IEEE 754 binary floats.
    Float,
}

impl fmt::Display for ElementKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unsigned => "unsigned",
            Self::Signed => "signed",
            Self::Float => "float",
        })
    }
}

/// The element type of a byte stream: a kind and a width of 1, 2, 4 or 8 bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Element {
    /// How to interpret the bits.
    pub kind: ElementKind,
    /// Bytes per element: 1, 2, 4 or 8.
    pub width: u8,
}

impl Element {
    /// Single bytes without further meaning.
    pub const BYTE: Self = Self { kind: ElementKind::Unsigned, width: 1 };

    /// An unsigned element of `width` bytes.
    pub const fn unsigned(width: u8) -> Self {
        Self { kind: ElementKind::Unsigned, width }
    }

    /// A signed element of `width` bytes.
    pub const fn signed(width: u8) -> Self {
        Self { kind: ElementKind::Signed, width }
    }

    /// A float element of `width` bytes.
    pub const fn float(width: u8) -> Self {
        Self { kind: ElementKind::Float, width }
    }

    /// Bytes per element.
    pub const fn size(self) -> usize {
        self.width as usize
    }
}
