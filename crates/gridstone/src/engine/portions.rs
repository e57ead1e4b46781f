//! Reads into buffers of the caller, a portion at a time.

use super::{Array, Call, Condition, Portions, ReadOrder};
use crate::base::Result;
use crate::schema::Region;

/// Which cells are read in portions.
#[derive(Debug, Clone, Copy)]
pub struct PortionsOf<'a> {
    /// The boxes; `None`: the whole domain.
    pub region: Option<&'a Region>,
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
    /// Those of [`Array::scan_region`].
    pub fn portions(&self, wanted: &PortionsOf<'_>, call: &Call) -> Result<Portions> {
        let PortionsOf { region, attrs, condition, order, bytes } = *wanted;
        let scan = self.scan_region(region, Some(attrs), condition, order, bytes, call)?;
        Ok(Portions::new(scan, self.schema()?.is_scalar()))
    }
}
