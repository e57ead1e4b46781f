//! Values of rows that an overlay holds, which of its rows a version has, and the memory that they take.

use crate::fragment::Description;
use crate::tile::Column;
use std::sync::Arc;

/// Values of an attribute at rows that were asked for.
#[derive(Debug)]
pub(in crate::query) struct Values {
    pub(in crate::query) column: Arc<Column>,
    /// Whether these are all that the column holds, in the order asked for; else it holds all rows.
    pub(super) picked: bool,
}

impl Values {
    /// The place in the column of the row that was asked for as number `place`.
    pub(in crate::query) fn at(&self, place: usize, row: u32) -> u32 {
        if self.picked { place as u32 } else { row }
    }
}

/// Which rows of a source a version has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Live {
    None,
    All,
    /// Of a sorted copy: those of these members, by number.
    Members(Vec<bool>),
}

impl Live {
    /// Adds a member of a sorted copy that has `count` of them.
    pub(super) fn add_member(&mut self, number: u16, count: usize) {
        if !matches!(self, Self::Members(_)) {
            *self = Self::Members(vec![false; count]);
        }
        if let Self::Members(flags) = self
            && let Some(flag) = flags.get_mut(number as usize)
        {
            *flag = true;
        }
    }
}

/// Bytes of memory that a small fragment takes when it is held, about.
pub(super) fn held_bytes(description: &Description, width: u64) -> u64 {
    description.cells.saturating_mul(width).saturating_add(description.location.len)
}
