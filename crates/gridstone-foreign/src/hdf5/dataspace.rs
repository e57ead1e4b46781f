//! Dataspaces: the shape of a dataset or attribute.
//!
//! ```text
//! version 1   version | rank | flags | - 5 | lengths | [limits]
//! version 2   version | rank | flags | kind | lengths | [limits]
//! ```

use crate::cursor::Cursor;
use crate::error::{Error, Result};

/// Axes that the format allows.
pub(super) const RANK_MAX: u8 = 32;
/// The length of an axis without limit.
const UNLIMITED: u64 = u64::MAX;

/// The shape of a dataset or attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Dataspace {
    pub(super) shape: Vec<u64>,
    pub(super) max_shape: Vec<Option<u64>>,
    /// No cells, not even a single one.
    pub(super) is_null: bool,
}

impl Dataspace {
    pub(super) fn parse(mut cursor: Cursor<'_>) -> Result<Self> {
        let (version, rank, flags) = (cursor.u8()?, cursor.u8()?, cursor.u8()?);
        let is_null = match version {
            1 => cursor.skip(5).map(|()| false)?,
            2 => cursor.u8()? == 2,
            _ => return Err(cursor.unknown_version(version)),
        };
        if rank > RANK_MAX {
            return Err(Error::damaged(format!("a shape has {rank} axes; the format allows {RANK_MAX}")));
        }
        let shape = (0..rank).map(|_| cursor.length()).collect::<Result<Vec<_>>>()?;
        let limit = |value: u64, width: u8| (value != UNLIMITED >> (64 - 8 * u32::from(width))).then_some(value);
        let width = cursor.widths().length;
        let max_shape = if flags & 1 != 0 {
            (0..rank).map(|_| cursor.length().map(|value| limit(value, width))).collect::<Result<Vec<_>>>()?
        } else {
            shape.iter().copied().map(Some).collect()
        };
        if shape.iter().zip(&max_shape).any(|(&length, max)| max.is_some_and(|max| length > max)) {
            return Err(Error::damaged(format!("the shape {shape:?} is larger than its limit {max_shape:?}")));
        }
        Ok(Self { shape, max_shape, is_null })
    }

    /// The number of cells.
    pub(super) fn cells(&self) -> Result<u64> {
        if self.is_null {
            return Ok(0);
        }
        if self.shape.contains(&0) {
            return Ok(0);
        }
        let cells = self.shape.iter().try_fold(1u64, |cells, &length| cells.checked_mul(length));
        cells.ok_or_else(|| Error::limit(format!("the shape {:?} has more than 2^64 cells", self.shape)))
    }
}
