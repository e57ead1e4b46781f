//! The items of vectors and lists: single values of fixed width; and the shape of a vector.

use super::{Datatype, TimeStep};
use crate::base::{Error, Result, limits};
use std::fmt;

/// The largest number of axes of a vector.
const AXES_MAX: usize = 4;

/// The type of a single value of fixed width: the item of a vector or a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it")]
pub enum Primitive {
    Bool,
    Int8,
    Int16,
    Int32,
    Int64,
    UInt8,
    UInt16,
    UInt32,
    UInt64,
    Float16,
    Float32,
    Float64,
    Complex64,
    Complex128,
    Datetime(TimeStep),
    Timedelta(TimeStep),
}

impl Primitive {
    /// The type of a single value.
    pub fn datatype(self) -> Datatype {
        match self {
            Self::Bool => Datatype::Bool,
            Self::Int8 => Datatype::Int8,
            Self::Int16 => Datatype::Int16,
            Self::Int32 => Datatype::Int32,
            Self::Int64 => Datatype::Int64,
            Self::UInt8 => Datatype::UInt8,
            Self::UInt16 => Datatype::UInt16,
            Self::UInt32 => Datatype::UInt32,
            Self::UInt64 => Datatype::UInt64,
            Self::Float16 => Datatype::Float16,
            Self::Float32 => Datatype::Float32,
            Self::Float64 => Datatype::Float64,
            Self::Complex64 => Datatype::Complex64,
            Self::Complex128 => Datatype::Complex128,
            Self::Datetime(unit) => Datatype::Datetime(unit),
            Self::Timedelta(unit) => Datatype::Timedelta(unit),
        }
    }

    /// The inverse of [`Primitive::datatype`]; `None` for types that are no single value of fixed width.
    pub fn of(datatype: Datatype) -> Option<Self> {
        Some(match datatype {
            Datatype::Bool => Self::Bool,
            Datatype::Int8 => Self::Int8,
            Datatype::Int16 => Self::Int16,
            Datatype::Int32 => Self::Int32,
            Datatype::Int64 => Self::Int64,
            Datatype::UInt8 => Self::UInt8,
            Datatype::UInt16 => Self::UInt16,
            Datatype::UInt32 => Self::UInt32,
            Datatype::UInt64 => Self::UInt64,
            Datatype::Float16 => Self::Float16,
            Datatype::Float32 => Self::Float32,
            Datatype::Float64 => Self::Float64,
            Datatype::Complex64 => Self::Complex64,
            Datatype::Complex128 => Self::Complex128,
            Datatype::Datetime(unit) => Self::Datetime(unit),
            Datatype::Timedelta(unit) => Self::Timedelta(unit),
            Datatype::String | Datatype::Bytes | Datatype::FixedBytes(_) | Datatype::Vector(..) | Datatype::List(_) => {
                return None;
            }
        })
    }

    /// Bytes per value.
    pub fn width(self) -> usize {
        let datatype = self.datatype();
        datatype.element().size() * if matches!(self, Self::Complex64 | Self::Complex128) { 2 } else { 1 }
    }
}

impl fmt::Display for Primitive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.datatype().fmt(f)
    }
}

/// The shape of a vector: 1 to 4 axes, each at least 1 long; its values lie in row-major order.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct VectorShape {
    /// 1 past the last axis.
    sides: [u32; AXES_MAX],
    axes: u8,
}

impl VectorShape {
    /// A shape; a Schema error says what is wrong with it.
    pub fn new(sides: &[u32]) -> Result<Self> {
        if sides.is_empty() || sides.len() > AXES_MAX || sides.contains(&0) {
            return Err(Error::schema(format!(
                "a vector of shape {sides:?} is impossible; it has 1 to {AXES_MAX} axes, each at least 1 long"
            )));
        }
        let mut all = [1; AXES_MAX];
        all.iter_mut().zip(sides).for_each(|(to, from)| *to = *from);
        let made = Self { sides: all, axes: sides.len() as u8 };
        if sides.iter().try_fold(1u32, |n, side| n.checked_mul(*side)).is_none() {
            return Err(too_wide(&made.to_string()));
        }
        Ok(made)
    }

    /// The length of each axis.
    pub fn sides(&self) -> &[u32] {
        self.sides.get(..usize::from(self.axes)).unwrap_or_default()
    }

    /// How many values a vector of this shape has.
    pub fn count(self) -> usize {
        self.sides.iter().map(|side| *side as usize).product()
    }
}

/// The axes separated by commas.
impl fmt::Display for VectorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.sides().iter().map(u32::to_string).collect::<Vec<_>>().join(","))
    }
}

impl fmt::Debug for VectorShape {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.sides()).finish()
    }
}

/// The error for a value of fixed width that is too long.
pub(super) fn too_wide(name: &str) -> Error {
    Error::schema(format!(
        "a value of {name} is too long: one of fixed width takes {} bytes at most; use a list, bytes, or a dimension more",
        limits::CELL_BYTES_MAX
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shapes_count_their_values_and_refuse_what_is_none() {
        let shape = VectorShape::new(&[2, 3]).unwrap();
        assert_eq!((shape.count(), shape.sides(), shape.to_string().as_str()), (6, &[2, 3][..], "2,3"));
        assert_ne!(VectorShape::new(&[3]).unwrap(), VectorShape::new(&[3, 1]).unwrap());
        for bad in [&[][..], &[0], &[3, 0], &[1, 1, 1, 1, 1], &[1 << 16, 1 << 16]] {
            assert!(VectorShape::new(bad).is_err(), "{bad:?}");
        }
    }
}
