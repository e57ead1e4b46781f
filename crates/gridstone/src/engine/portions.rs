//! Reads into buffers of the caller, a portion at a time.

use super::{Array, Call, Condition, Portions, ReadBox, ReadOrder};
use crate::base::Result;

/// Which cells are read in portions.
#[derive(Debug, Clone, Copy)]
pub struct PortionsOf<'a> {
    /// The box; `None`: the whole domain.
    pub sub: ReadBox<'a>,
    /// The attributes, in the order of their buffers.
    pub attrs: &'a [String],
    /// Only cells for which this is true.
    pub condition: Option<&'a Condition>,
    /// Their order.
    pub order: ReadOrder,
    /// Bytes of all buffers, about.
    pub bytes: u64,
}

impl Array {
    /// Starts a read whose cells are given in portions as large as the buffers of each call; coordinates come with them, of dense
    /// arrays too. It goes on reading the version that this handle shows now.
    ///
    /// # Errors
    /// Those of [`Array::scan`] and [`Array::scan_where`].
    pub fn portions(&self, wanted: &PortionsOf<'_>, call: &Call) -> Result<Portions> {
        let (sub, attrs, order, bytes) = (wanted.sub, Some(wanted.attrs), wanted.order, wanted.bytes);
        let scan = match wanted.condition {
            None => self.scan(sub, attrs, order, bytes, call),
            Some(condition) => self.scan_where(sub, attrs, condition, order, bytes, call),
        };
        scan.map(Portions::new)
    }
}
